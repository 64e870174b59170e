/* file.c - bytes and headers of open files. */
#include "file.h"

#include <string.h>

#include "../base/memory.h"

/* One call writes or reads at most this; Linux itself stops at 2 GiB. */
#define CHUNK_NBYTES ((size_t)1 << 30)

int file_write_all(int fd, const uint8_t *bytes, uint64_t nbytes)
{
    while (nbytes) {
        ssize_t n = write(fd, bytes, nbytes < CHUNK_NBYTES ? (size_t)nbytes : CHUNK_NBYTES);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return PERHAPS_ERR_IO;
        bytes += n;
        nbytes -= (uint64_t)n;
    }
    return 0;
}

/* A file that ends too early is damaged: it had the right length when it was opened. */
int file_read_all(int fd, uint8_t *bytes, uint64_t nbytes)
{
    while (nbytes) {
        ssize_t n = read(fd, bytes, nbytes < CHUNK_NBYTES ? (size_t)nbytes : CHUNK_NBYTES);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return PERHAPS_ERR_IO;
        if (n == 0)
            return PERHAPS_ERR_DAMAGED;
        bytes += n;
        nbytes -= (uint64_t)n;
    }
    return 0;
}

/* ---- Headers --------------------------------------------------------------------------- */

int head_read(int fd, uint64_t file_nbytes, const struct perhaps_allocator *allocator,
              struct head *head)
{
    uint64_t nbytes = file_nbytes < HEADER_NBYTES ? file_nbytes : HEADER_NBYTES;
    memset(head->page, 0, sizeof head->page);
    head->bytes = head->page;
    if (lseek(fd, 0, SEEK_SET) < 0)
        return PERHAPS_ERR_IO;
    int error = file_read_all(fd, head->page, nbytes);
    if (!error)
        error = container_measure(head->page, file_nbytes, &nbytes);
    if (!error && nbytes > HEADER_NBYTES) {
        uint8_t *bytes = allocate(allocator, nbytes);
        if (!bytes)
            return PERHAPS_ERR_MEMORY;
        memcpy(bytes, head->page, HEADER_NBYTES);
        head->bytes = bytes;
        head->nbytes = nbytes;
        error = file_read_all(fd, bytes + HEADER_NBYTES, nbytes - HEADER_NBYTES);
    }
    return error ? error : container_decode(head->bytes, file_nbytes, &head->header);
}

void head_release(struct head *head, const struct perhaps_allocator *allocator)
{
    if (head->bytes != head->page)
        release(allocator, head->bytes, head->nbytes);
    head->bytes = head->page;
}
