/* pieces.h - a dump in pieces, which are released as they are read. */
#ifndef PIECES_H
#define PIECES_H

#include <stddef.h>
#include <stdint.h>

struct piece {
    struct piece *next;
    size_t nbytes;
    char bytes[];
};

/* Begins as { 0 }. */
struct pieces {
    struct piece *first, *last;
    uint64_t nbytes; /* of all pieces */
    uint64_t of;     /* how many bytes the whole dump has */
};

/* Appends a copy of these bytes.  Returns 0 or PERHAPS_ERR_MEMORY. */
int pieces_append(struct pieces *pieces, const char *bytes, size_t nbytes);

void pieces_release(struct pieces *pieces);

/* The pieces as a source of the library: read() of struct perhaps_source.  What is read is
 * released. */
struct pieces_reader {
    struct pieces *pieces;
    size_t at; /* in the first piece */
};
int pieces_read(void *reader, void *bytes, size_t nbytes);

#endif
