/* system.h - what a system may lack. */
#ifndef SYSTEM_H
#define SYSTEM_H

#include <errno.h>
#include <stdbool.h>

/* Returns whether a call failed with this errno because the kernel, the file system (exFAT,
 * FUSE, a network's) or a container does not have it.  Each of the four is what some of them
 * answer. */
static inline bool is_lacking(int error)
{
    return error == EOPNOTSUPP || error == ENOSYS || error == EINVAL || error == EPERM;
}

#endif
