/* stream.h - the bytes of a file or of standard input, unpacked if they are packed. */
#ifndef STREAM_H
#define STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "unpack.h"

#define STREAM_HEAD_NBYTES 12 /* as many as a format is known by, and more */

struct stream {
    const char *problem; /* after a failure: why */
    uint64_t *nread;     /* counts the bytes read, as they stand in the files */

    int fd;                           /* -1: closed */
    const struct unpacker *unpacker;  /* NULL: the bytes are not packed */
    uint8_t head[STREAM_HEAD_NBYTES]; /* the first bytes, read to learn the format */
    size_t nhead;

    uint8_t *packed; /* what was read and is not unpacked yet: from 'at' to 'end' */
    size_t at, end;
    void *state;  /* the unpacker's */
    bool inside;  /* a member: the file may not end here */
    bool pending; /* the unpacker may hold more than it had room to give */
};

/* A stream that is not open. */
void stream_init(struct stream *stream, uint64_t *nread);

/* Opens a file; "-" is standard input.  'raw': it is not looked at, and not unpacked.  false:
 * 'problem' says why. */
bool stream_open(struct stream *stream, const char *path, bool raw);

/* Why stream_open() will refuse the file, if its first bytes tell: it holds no lines.  Or
 * NULL. */
const char *stream_refusal(const char *path);

/* Waits for bytes and reads up to 'nbytes' of them: what is there, not all that was asked.
 * Returns their number; 0 at the end; -1 on failure or when asked to stop. */
ssize_t stream_read(struct stream *stream, void *buffer, size_t nbytes);

/* May be called on a closed stream. */
void stream_close(struct stream *stream);

#endif
