/* file.h - open files as sinks and sources. */
#ifndef FILE_H
#define FILE_H

#include <errno.h>
#include <unistd.h>

#include <perhaps.h>

static inline void close_keeping_errno(int fd)
{
    int saved = errno;
    close(fd);
    errno = saved;
}

/* Return a sink or source for an open descriptor, which the caller keeps and closes; 'fd' must
 * stay valid as long as the sink or source is in use.  Both go on when a signal interrupts the
 * system call, and return PERHAPS_ERR_IO (errno) when it fails.  A file that ends too early is
 * PERHAPS_ERR_DAMAGED, since it had 'nbytes' bytes when it was opened. */
struct perhaps_sink file_sink(int *fd);
struct perhaps_source file_source(int *fd, uint64_t nbytes);

#endif
