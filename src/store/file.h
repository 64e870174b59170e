/* file.h - bytes and headers of open files. */
#ifndef FILE_H
#define FILE_H

#include <errno.h>
#include <unistd.h>

#include "container.h"

static inline void close_keeping_errno(int fd)
{
    int saved = errno;
    close(fd);
    errno = saved;
}

/* Reads or writes so many bytes, over interruptions.  Returns 0; PERHAPS_ERR_IO (errno); or
 * PERHAPS_ERR_DAMAGED where the file ends too early: it had the right length when it was
 * opened. */
int file_read_all(int fd, uint8_t *bytes, uint64_t nbytes);
int file_write_all(int fd, const uint8_t *bytes, uint64_t nbytes);

/* The header of an open file: its bytes, and what they say. */
struct head {
    struct header header;
    uint8_t *bytes; /* 'page', or 'nbytes' allocated ones */
    uint64_t nbytes;
    uint8_t page[HEADER_NBYTES];
};

/* Reads and checks it.  Returns 0 or an error of perhaps_open(); release it after either. */
int head_read(int fd, uint64_t file_nbytes, const struct perhaps_allocator *allocator,
              struct head *head);
void head_release(struct head *head, const struct perhaps_allocator *allocator);

#endif
