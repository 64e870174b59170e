/* system.h - what a system may lack: old kernels, file systems of other systems, containers that
 * refuse calls. */
#ifndef SYSTEM_H
#define SYSTEM_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>

/* Returns whether a call failed with this errno because the kernel, the file system or a
 * container does not have it.  Each of the four is what some of them answer. */
static inline bool is_lacking(int error)
{
    return error == EOPNOTSUPP || error == ENOSYS || error == EINVAL || error == EPERM;
}

/* Fills bytes with random ones, at most 256.  Returns 0, or -1 (errno). */
int draw_random(void *bytes, size_t nbytes);

#endif
