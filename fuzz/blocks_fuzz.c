/* blocks_fuzz.c - fuzzes the reading of key files, compressed or not.  The command line cuts a
 * file into blocks and a block into records: every byte comes exactly once, and in order. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../cli/input/lines.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes);

/* Returns whether the file may be compressed or a filter, by its first byte: that of gzip,
 * zstd, xz, bzip2, zip, lz4, or a filter file.  Then its bytes need not come as they are. */
static bool is_packed(const uint8_t *data, size_t nbytes)
{
    static const uint8_t first[] = { 0x1f, 0x28, 0xfd, 'B', 'P', 0x04, 0x89 };
    return nbytes > 0 && (memchr(first, *data, sizeof first) || *data >> 4 == 5);
}

/* Checks that a block has the bytes of the file from 'at' on, and ends with a delimiter: the
 * reader appends one to the file if it is missing. */
static void check_block(const struct block *block, const uint8_t *data, size_t nbytes,
                        size_t at, char delimiter)
{
    size_t left = nbytes - at, same = block->nbytes < left ? block->nbytes : left;
    if (at > nbytes || memcmp(block->text, data + at, same) != 0)
        abort();
    if (block->nbytes > left + 1 || block->text[block->nbytes - 1] != delimiter)
        abort();
}

/* Checks that the records of a block lie one after the other, and that each ends at the next
 * delimiter. */
static void check_records(struct block *block, char delimiter)
{
    struct key_form form = { .end = delimiter };
    const char *at = block->text;
    block->count = 0;
    if (!block_split(&form, block))
        abort();
    for (size_t i = 0; i < block->count; i++) {
        const struct perhaps_key *record = &block->record[i];
        if (record->bytes != at || at[record->nbytes] != delimiter ||
            memchr(at, delimiter, record->nbytes))
            abort();
        at += record->nbytes + 1;
    }
    if (at != block->text + block->nbytes)
        abort();
}

/* Reads the file as the command line does.  A file that is not compressed must come completely;
 * a problem must come with a line that tells it. */
static void read_blocks(char *path, const uint8_t *data, size_t nbytes, char delimiter,
                        bool raw)
{
    char *paths[] = { path };
    struct reader *reader = reader_open(paths, 1, delimiter, raw, BLOCK_NBYTES);
    struct block block = { 0 };
    size_t at = 0;
    bool as_they_are = raw || !is_packed(data, nbytes);
    if (!reader)
        abort();
    while (reader_read(reader, &block), block.holds == BLOCK_RECORDS) {
        if (as_they_are)
            check_block(&block, data, nbytes, at, delimiter);
        check_records(&block, delimiter);
        at += block.nbytes;
    }
    if (block.holds == BLOCK_PROBLEM && !*reader_problem(reader))
        abort();
    if (as_they_are && at < nbytes)
        abort();
    block_release(&block);
    reader_close(reader);
}

/* The first byte of the input gives the delimiter and whether to read as with --raw; the rest
 * is the file. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes)
{
    char path[64];
    if (nbytes < 1)
        return 0;
    int fd = memfd_create("keys", MFD_CLOEXEC);
    if (fd < 0 || write(fd, data + 1, nbytes - 1) != (ssize_t)(nbytes - 1))
        abort();
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    read_blocks(path, data + 1, nbytes - 1, *data & 1 ? '\0' : '\n', *data & 2);
    close(fd);
    return 0;
}
