/* container.h - the header of a filter file, in memory and as bytes; doc/FORMAT.md is its
 * specification.  Nothing here reads or writes a file. */
#ifndef CONTAINER_H
#define CONTAINER_H

#include "filter.h"

enum {
    HEADER_NBYTES = 4096, /* of a file with one section; the body begins behind it */
    FORMAT_VERSION = 1,
    PAGE_NBYTES = PERHAPS_PAGE_NBYTES,
};

struct header {
    uint64_t file_nbytes;
    uint64_t pages_offset;
    uint64_t table_offset;
    uint32_t hash_id;
    uint64_t hash_seed;
    uint64_t hash_check;
    const struct filter_kind *kind;
    struct geometry geometry;
    struct counters counters;
    uint64_t body_offset;
    bool live; /* being written in place: the counters change, the checksums are void */
};

/* Where a live file's counters lie. */
enum { COUNTERS_OFFSET = 144 };

/* Lays out the file of a filter. */
void container_plan(const perhaps_filter *f, struct header *header);

/* Whether these header bytes, which were sound once, are now a live file's. */
bool container_is_live(const uint8_t *bytes);

/* Writes HEADER_NBYTES bytes, checksum included. */
void container_encode(const struct header *header, uint8_t bytes[HEADER_NBYTES]);

/* Reads what container_encode() wrote, or an enemy did.  After success every offset lies in
 * the file and the geometry is the kind's.  Returns 0, PERHAPS_ERR_FORMAT, PERHAPS_ERR_VERSION
 * or PERHAPS_ERR_DAMAGED. */
int container_decode(const uint8_t bytes[HEADER_NBYTES], uint64_t file_nbytes,
                     struct header *header);

/* The checksum table for 'nbytes' of pages: a number for each page, then one for the table. */
uint64_t container_page_count(uint64_t nbytes);
uint64_t container_table_nbytes(uint64_t nbytes);
uint64_t container_page_checksum(const uint8_t *pages, uint64_t nbytes, uint64_t page);
void container_fill_table(const uint8_t *pages, uint64_t nbytes, uint8_t *table);
bool container_table_intact(const uint8_t *table, uint64_t nbytes);

#endif
