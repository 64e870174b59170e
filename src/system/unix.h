/* unix.h - what unix.c asks of linux.c or posix.c. */
#ifndef UNIX_H
#define UNIX_H

#include <errno.h>

#include "system.h"

/* Returns whether a call failed with this errno because the kernel, the file system (exFAT,
 * FUSE, a network's) or a container does not have it.  Each of these is what some of them
 * answer. */
static inline bool is_lacking(int error)
{
    return error == EOPNOTSUPP || error == ENOTSUP || error == ENOSYS || error == EINVAL ||
           error == EPERM;
}

/* Gives a file another name, unless a file has that (EEXIST).  Returns 0 or -1:
 * is_lacking(). */
int rename_replacing_nothing(const char *from, const char *to);

/* Asks for huge pages.  Leaves errno alone. */
void want_huge_pages(void *memory, size_t nbytes);

/* Has pages lie at another address, in place of what is there.  Returns false, with no change,
 * if the system cannot do that. */
bool move_pages(void *from, void *to, size_t nbytes);

#endif
