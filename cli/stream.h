/* stream.h - the bytes of one file or of standard input, unpacked if they are packed. */
#ifndef STREAM_H
#define STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "unpack.h"

/* How many bytes are read to find the format: at least as many as the longest magic number. */
#define STREAM_HEAD_NBYTES 12

/* What a file holds, unpacked, in memory that mapped.h knows. */
struct piece {
    const char *bytes;
    uint64_t nbytes;
};

/* One open file, as the bytes that it holds.  Invariant: 'head' has bytes that were read and
 * not yet given to the reader; of a packed file they were copied to 'packed'.  A stream may
 * also read a piece of memory, and has then no file. */
struct stream {
    const char *problem; /* why it failed, after a failure */
    uint64_t nread;      /* how many bytes were read, of all files, as they stand there */

    int fd;                           /* -1: closed */
    struct piece left;                /* of the piece that it reads; else its bytes are NULL */
    const struct unpacker *unpacker;  /* NULL: the bytes are not packed */
    uint8_t head[STREAM_HEAD_NBYTES]; /* the first bytes, from which the format is known */
    size_t nhead;

    uint8_t *packed; /* bytes from 'at' to 'end' were read and are not unpacked yet */
    size_t at, end;
    void *state;  /* of the unpacker */
    bool inside;  /* in the middle of a member, so the file may not end here */
    bool pending; /* the unpacker may hold more bytes than there was room for */
};

/* Opens a file and finds its format; with 'raw' takes its bytes as they are, packed or not.
 * Returns false (problem) if it fails. */
bool stream_open(struct stream *stream, const char *path, bool raw);

/* Reads up to 'nbytes' unpacked bytes.  Returns how many, 0 at the end, or -1 (problem). */
ssize_t stream_read(struct stream *stream, void *buffer, size_t nbytes);

/* Closes the file, so that the stream can open the next one.  Standard input stays open. */
void stream_close(struct stream *stream);

/* Returns why a file will be refused, if its first bytes tell that it holds no lines; else
 * NULL.  So a wrong file is found before the work begins. */
const char *stream_refusal(const char *path);

/* Returns whether the bytes of an open file, from its place on, begin like a packed file. */
bool stream_is_packed(int fd);

#endif
