/* file.h - filters in files. */
#ifndef FILE_H
#define FILE_H

#include <errno.h>
#include <unistd.h>

#include "container.h"

/* One call writes or reads at most this; Linux itself stops at 2 GiB. */
#define CHUNK_NBYTES ((size_t)1 << 30)

static inline void close_keeping_errno(int fd)
{
    int saved = errno;
    close(fd);
    errno = saved;
}

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

/* Saves a filter without parts that has no body; 'reader' gives the bytes of that.  Returns as
 * perhaps_layout_save(). */
int filter_save_read(const perhaps_filter *f, perhaps_reader *reader, void *context,
                     const char *path);

/* Unmaps the file of a mapped filter; the last who wrote it in place gives it its checksums. */
void mapping_release(perhaps_filter *f);

#endif
