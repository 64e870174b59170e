/* host.h - how much memory and how many CPUs this process may use. */
#ifndef HOST_H
#define HOST_H

#include <perhaps_build.h>

/* What the system tells a process by calls.  The rest lies in /proc and /sys. */
struct host {
    const char *root;     /* stands before the paths of these; "": they are the real ones */
    uint64_t ram_nbytes;  /* physical memory */
    uint64_t page_nbytes; /* in which /proc/self/statm counts */
    uint64_t addresses_nbytes; /* that the process may map (ulimit -v) */
    uint64_t data_nbytes;      /* that of these it may write to, alone (ulimit -d) */
    unsigned cpus;             /* on which its threads may run */
};

/* Asks the system. */
struct host host_now(void);

/* Do what perhaps_host_memory_nbytes() and perhaps_host_threads() do, for this host. */
uint64_t host_memory_nbytes(const struct host *host);
unsigned host_threads(const struct host *host);

/* Returns how much memory to use if the caller does not say. */
static inline uint64_t memory_by_default(void)
{
    return perhaps_host_memory_nbytes() / 4;
}

/* Returns how many threads to use: those that were asked for, or if that is 0 as many as this
 * process may. */
static inline unsigned threads_or_all(unsigned asked)
{
    return asked ? asked : perhaps_host_threads();
}

#endif
