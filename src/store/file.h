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

/* The file of a descriptor, which stays the caller's.  Both return PERHAPS_ERR_IO (errno) where
 * the system refuses, and go on where it interrupts; a file that ends too early is damaged,
 * since it had 'nbytes' when it was opened. */
struct perhaps_sink file_sink(int *fd);
struct perhaps_source file_source(int *fd, uint64_t nbytes);

#endif
