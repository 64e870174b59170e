/* limits.h - how much memory and how many CPUs a process may use, on Linux. */
#ifndef LIMITS_H
#define LIMITS_H

#include "system.h"

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

#endif
