/* read.h - bytes that come in one after the other into filters. */
#ifndef READ_H
#define READ_H

#include "container.h"

/* A header: its bytes, and what they say. */
struct head {
    struct header header;
    uint8_t *bytes; /* 'page', or 'nbytes' allocated ones */
    uint64_t nbytes;
    uint8_t page[HEADER_NBYTES];
};

/* Reads and checks it.  Returns 0 or an error of perhaps_read(); release it after either. */
int head_read(const struct perhaps_source *source, const struct perhaps_allocator *allocator,
              struct head *head);
void head_release(struct head *head, const struct perhaps_allocator *allocator);

/* Bytes on their way to a filter.  Its sections are filters; all but the first belong to their
 * parents. */
struct reading {
    const struct perhaps_source *source;
    const struct perhaps_open_options *options;
    struct perhaps_allocator allocator;
    struct head head;
    struct hasher hasher;
    struct section *sections;
    perhaps_filter **made; /* of each of them */
};

/* Reads the header, makes the filter and its parts, and has 'fill' give all of them their
 * bodies: it returns 0 or an error, too.  Returns as perhaps_open(). */
int filter_read(const struct perhaps_source *source, const struct perhaps_open_options *options,
                int (*fill)(struct reading *r), perhaps_filter **filter);

/* A 'fill': reads the bodies, which have memory of their own, and compares every page with its
 * checksum. */
int read_bodies(struct reading *r);

#endif
