/* read.h - makes filters from bytes that come in one after the other. */
#ifndef READ_H
#define READ_H

#include "container.h"

/* The header of a file: its bytes, and what they say. */
struct head {
    struct header header;
    uint8_t *bytes;  /* 'page', or allocated if the header is larger */
    uint64_t nbytes; /* how many bytes were allocated */
    uint8_t page[HEADER_NBYTES];
};

/* Reads and checks a header.  Returns 0 or an error of perhaps_read(); either way the caller
 * calls head_release(). */
int head_read(const struct perhaps_source *source, const struct perhaps_allocator *allocator,
              struct head *head);
void head_release(struct head *head, const struct perhaps_allocator *allocator);

/* A filter while it is read. */
struct reading {
    const struct perhaps_source *source;
    const struct perhaps_open_options *options;
    struct perhaps_allocator allocator;
    struct head head;
    struct hasher hasher;
    struct section *sections;
    perhaps_filter **made; /* the filter of each section; its parent owns it, but the first */
};

/* Reads the header, makes the filter and its parts, and calls fill(), which gives all of them
 * their bodies and returns 0 or an error.  Returns 0 or an error of perhaps_open(). */
int filter_read(const struct perhaps_source *source, const struct perhaps_open_options *options,
                int (*fill)(struct reading *r), perhaps_filter **filter);

/* A fill() for bodies in allocated memory: reads them from the source, and compares every page
 * with its checksum. */
int read_bodies(struct reading *r);

#endif
