/* host.h - what this process may use of the machine: memory and CPUs. */
#ifndef HOST_H
#define HOST_H

#include <stdint.h>

/* Do what perhaps_host_memory_nbytes() and perhaps_host_threads() do, with files below 'root'
 * ("" : the system's) in place of /proc and /sys; for tests. */
uint64_t host_memory_nbytes(const char *root);
unsigned host_threads(const char *root);

#endif
