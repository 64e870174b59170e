/* stream.h - the bytes of one file or of standard input, unpacked if they are packed. */
#ifndef STREAM_H
#define STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "unpack.h"

/* How many bytes are read to find the format, if there are so many: more than the longest magic
 * number has, so that the first block of a file is no short one. */
#define STREAM_HEAD_NBYTES ((size_t)64 << 10)

/* What a file holds, unpacked, in memory that mapped.h knows. */
struct piece {
    const char *bytes;
    uint64_t nbytes;
};

/* What a first reading has seen of a file, for the second one, which shall see the same,
 * whatever comes to the file or its name meanwhile. */
struct extent {
    bool known;
    int fd; /* of the file; -1: it must be opened again */
    struct stat found;
    uint64_t nbytes; /* how many bytes were read, as they stand there */
};

/* One open file, as the bytes that it holds.  Invariant: 'head' has bytes that were read and
 * not yet given to the reader; of a packed file they were copied to 'packed'.  A stream may
 * also read a piece of memory, and has then no file. */
struct stream {
    const char *problem; /* why it failed, after a failure; NULL: no memory */
    uint64_t nread;      /* how many bytes were read, of all files, as they stand there */

    int fd;                       /* -1: closed */
    struct stat found;            /* what the file was when it was opened */
    uint64_t file_begin, file_at; /* offsets, where reading began and has come to */
    uint64_t file_end; /* where it stops, though more may have come; UINT64_MAX: at the end */
    struct piece left; /* of the piece that it reads; else its bytes are NULL */
    const struct unpacker *unpacker; /* NULL: the bytes are not packed */
    uint8_t *head; /* the first bytes, from which the format is known; NULL: not read */
    size_t nhead;  /* how many of them were not given yet */

    uint8_t *packed; /* bytes from 'at' to 'end' were read and are not unpacked yet */
    size_t at, end;
    void *state;  /* of the unpacker */
    bool inside;  /* in the middle of a member, so the file may not end here */
    bool pending; /* the unpacker may hold more bytes than there was room for */
};

/* Opens a file and finds its format, unless its bytes are taken as they are (raw).  If
 * 'extent' is given and known, reads what that has seen, and no more.  Returns false
 * (problem) if it fails. */
bool stream_open(struct stream *stream, const char *path, bool raw, struct extent *extent);

/* Reads up to 'nbytes' unpacked bytes.  Returns how many, 0 at the end, or -1 (problem). */
ssize_t stream_read(struct stream *stream, void *buffer, size_t nbytes);

/* Closes the file, so that the stream can open the next one.  Standard input stays open. */
void stream_close(struct stream *stream);

/* Closes a file that has been read to its end, and notes in *extent what it was. */
void stream_close_known(struct stream *stream, struct extent *extent);

/* What became of a file while it was read up to an offset. */
enum file_change {
    CHANGE_NONE,
    CHANGE_GREW,     /* there is more behind what was read */
    CHANGE_REPLACED, /* another file has its name */
    CHANGE_OTHER,    /* what was read may be there no more */
};

/* Returns what became of the file at the path; CHANGE_NONE if nothing is there any more. */
enum file_change change_of(const char *path, const struct stat *was, uint64_t end);

/* Returns whether this path, number 'n', is a pipe with a name, and an earlier one is the same
 * pipe.  It can be read once, and then who wrote into it has gone. */
bool is_read_before(char *const *paths, size_t n);

/* Returns why a file will be refused, if its first bytes tell that it holds no lines; else
 * NULL.  So a wrong file is found before the work begins. */
const char *stream_refusal(const char *path);

/* Returns whether the bytes of an open file, from its place on, begin like a packed file. */
bool stream_is_packed(int fd);

/* Returns whether these are the same file. */
bool is_same_file(const struct stat *a, const struct stat *b);

#endif
