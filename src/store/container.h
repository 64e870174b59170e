/* container.h - the header of a filter file, in memory and as bytes; doc/FORMAT.md is its
 * specification.  Nothing here reads or writes a file. */
#ifndef CONTAINER_H
#define CONTAINER_H

#include "../filter/filter.h"

enum {
    HEADER_NBYTES = 4096, /* of a file of up to 24 sections; of more, a multiple of that */
    SECTIONS_MOST = 8192,
    SECTION_ROOT = 0xffffffff, /* the parent of the first */
    FORMAT_VERSION = 1,
    PAGE_NBYTES = PERHAPS_PAGE_NBYTES,
    MAGIC_NBYTES = 8,
};

/* The size of a file that is not known. */
#define NBYTES_UNKNOWN UINT64_MAX

struct header {
    uint64_t nbytes; /* of itself; the pages begin behind it */
    uint64_t file_nbytes;
    uint64_t table_offset;
    uint32_t sections;
    uint32_t hash_id;
    uint64_t hash_seed;
    uint64_t hash_check;
    bool live; /* being written in place: the counters change, the checksums are void */
};

/* Of the bodies, which are divided into pages. */
static inline uint64_t header_pages_nbytes(const struct header *h)
{
    return h->table_offset - h->nbytes;
}

/* Of the page that begins at 'at', where they end at 'end'. */
static inline uint64_t page_nbytes(uint64_t end, uint64_t at)
{
    return end - at < PAGE_NBYTES ? end - at : PAGE_NBYTES;
}

/* A filter, or a part of one. */
struct section {
    const struct filter_kind *kind;
    uint32_t parent;
    struct geometry geometry;
    struct counters counters;
    uint64_t body_offset;
};

/* Whether a filter can hold so many: half of it is looked at, since the limit is computed, and
 * others may compute it a little differently. */
static inline bool section_may_hold(const struct geometry *g, uint64_t keys)
{
    return keys / 2 <= g->key_limit;
}

/* Where a live file's counters lie. */
enum { COUNTERS_OFFSET = 144 };

/* Lays out the file of a filter and its parts. */
void container_plan(const perhaps_filter *f, struct header *header);

/* Writes header->nbytes bytes, checksum included. */
void container_encode(const perhaps_filter *f, const struct header *header, uint8_t *bytes);

/* Whether these header bytes, which were sound once, are now a live file's. */
bool container_is_live(const uint8_t *bytes);

/* Makes the sound header of a file with one section a live file's. */
void container_mark_live(uint8_t bytes[HEADER_NBYTES]);

/* Whether this is the beginning of a filter file. */
bool container_has_magic(const uint8_t bytes[MAGIC_NBYTES]);

/* Looks at the beginning of a file that has the magic, for the size of its header.  Returns 0,
 * PERHAPS_ERR_VERSION or PERHAPS_ERR_DAMAGED.  'file_nbytes' may be NBYTES_UNKNOWN, here and
 * below. */
int container_measure(const uint8_t bytes[HEADER_NBYTES], uint64_t file_nbytes,
                      uint64_t *nbytes);

/* Reads a header, of as many bytes as container_measure() said, that container_encode() wrote,
 * or an enemy did.  Returns 0 or an error as container_measure(). */
int container_decode(const uint8_t *bytes, uint64_t file_nbytes, struct header *header);

/* Reads the sections of such a header.  After success every offset lies in the file and all
 * sections are sound: their geometry is their kind's.  Returns 0 or an error as there. */
int container_sections(const uint8_t *bytes, const struct header *header,
                       struct section *sections);

/* The checksum table for 'nbytes' of pages: a number for each page, then one for the table. */
uint64_t container_page_count(uint64_t nbytes);
uint64_t container_table_nbytes(uint64_t nbytes);
void container_fill_entry(uint8_t *table, uint64_t number, const uint8_t *page,
                          uint64_t nbytes);
bool container_page_intact(const uint8_t *table, uint64_t number, const uint8_t *page,
                           uint64_t nbytes);
void container_seal_table(uint8_t *table, uint64_t nbytes);
bool container_table_intact(const uint8_t *table, uint64_t nbytes);

#endif
