/* container.h - the header of a filter file, as a struct and as bytes, and the checksums of its
 * pages.  doc/FORMAT.md is the specification.  Nothing here reads or writes a file.
 *
 *     header           HEADER_NBYTES or a multiple: fixed fields, then one section for each
 *                      filter: the filter itself and its parts
 *     pages            the bodies of all sections, cut into pages of PAGE_NBYTES
 *     checksum table   one number for each page, and one for the table
 *
 * A file that would be shorter than a page is small, unless it has a journal:
 *
 *     header           packed: a multiple of SMALL_UNIT, with one checksum for the whole file
 *     bodies           of all sections
 *     counters         of all sections */
#ifndef CONTAINER_H
#define CONTAINER_H

#include "../filter/filter.h"
#include <perhaps_file.h>

enum {
    HEADER_NBYTES = 4096, /* with up to 24 sections; with more, the header is a multiple */
    SECTIONS_MOST = 8192,
    SECTION_ROOT = 0xffffffff, /* the parent of the first section */
    FORMAT_VERSION = 1,
    PAGE_NBYTES = PERHAPS_PAGE_NBYTES,
    MAGIC_NBYTES = 8,
    BEGIN_NBYTES = 32, /* that tell how to read on */
    SMALL_UNIT = 64,
    SMALL_NBYTES_MOST = PAGE_NBYTES - 1,
};

/* Stands for the size of a file if it is not known. */
#define NBYTES_UNKNOWN UINT64_MAX

/* What the header of a live file says of its journal (journal.h). */
struct journal_point {
    uint64_t branch;   /* of the last record that is in the file; 0: the file has no journal */
    uint64_t sequence; /* the number of that record */
};

struct header {
    uint64_t nbytes; /* the size of the header: the pages begin behind it */
    uint64_t file_nbytes;
    uint64_t table_offset; /* where the pages end, and the checksum table begins; or counters */
    uint64_t counters_offset; /* where those of the first section lie */
    uint64_t sections_offset;
    uint32_t sections; /* how many there are */
    uint32_t hash_id;
    uint64_t hash_seed;
    uint64_t hash_check;
    bool hash_checks; /* the file tells hash_check */
    bool small;
    bool in_place;  /* processes write it in place: counters change, checksums are void */
    bool set;       /* its kind stores copies of a key, and this filter does not */
    bool estimated; /* its number of keys is an estimate */
    struct journal_point journal;
    uint64_t note_nbytes; /* of what hash.h calls a note */
    char note[PERHAPS_NOTE_MAX + 1];
};

/* Returns how many bytes all pages have. */
static inline uint64_t header_pages_nbytes(const struct header *h)
{
    return h->table_offset - h->nbytes;
}

/* Returns the size of the page that begins at 'at', if the last page ends at 'end'. */
static inline uint64_t page_nbytes(uint64_t end, uint64_t at)
{
    return end - at < PAGE_NBYTES ? end - at : PAGE_NBYTES;
}

/* What the header says of a filter, or of a part of one. */
struct section {
    const struct filter_kind *kind;
    uint32_t parent; /* the number of the section whose part this is, or SECTION_ROOT */
    struct geometry geometry;
    struct counters counters;
    uint64_t body_offset;
};

/* Lays out the file of a filter and its parts: a small one, if that is possible. */
void container_plan(const perhaps_filter *f, struct header *header);

/* Does so for a file that is not small, also if it could be.  'point' is NULL if it has no
 * journal. */
void container_plan_large(const perhaps_filter *f, const struct journal_point *point,
                          struct header *header);

/* Writes the header as header->nbytes bytes; with its checksum, unless the file is small. */
void container_encode(const perhaps_filter *f, const struct header *header, uint8_t *bytes);

/* Writes the counters of a small file to where they belong in it. */
void container_encode_counters(const perhaps_filter *f, const struct header *header,
                               uint8_t *file);

/* Returns whether the header in these bytes is now that of a live file.  For a mapped file,
 * whose header was sound when it was opened. */
bool container_is_in_place(const uint8_t *bytes);

/* Returns whether it is that of a set, whose kind can store copies. */
bool container_is_set(const uint8_t *bytes);

/* Returns whether it is that of a small file. */
bool container_is_small(const uint8_t *bytes);

/* Returns whether the header in these bytes is that of a file with a journal. */
bool container_has_journal(const uint8_t *bytes);

/* Returns what such a header says of its journal. */
struct journal_point container_journal(const uint8_t *bytes);

/* Changes the sound header of a file with one section to that of one written in place. */
void container_mark_in_place(uint8_t *bytes, uint64_t nbytes);

/* Returns whether these bytes begin a filter file. */
bool container_has_magic(const uint8_t bytes[MAGIC_NBYTES]);

/* Sets *nbytes to how many bytes must be there to read on in a file that begins with these
 * bytes and has the magic: all bytes of a small file; HEADER_NBYTES of another one.  Returns 0,
 * PERHAPS_ERR_VERSION or PERHAPS_ERR_DAMAGED.  'file_nbytes' may be NBYTES_UNKNOWN, here and
 * below. */
int container_begin(const uint8_t bytes[BEGIN_NBYTES], uint64_t file_nbytes, uint64_t *nbytes);

/* Sets *nbytes to how many bytes container_decode() needs of a file that begins with as many
 * bytes as container_begin() said.  Returns 0 or an error of container_begin(). */
int container_measure(const uint8_t *bytes, uint64_t file_nbytes, uint64_t *nbytes);

/* Reads a header of as many bytes as container_measure() said.  An enemy may have written it.
 * Returns 0 or an error of container_begin(). */
int container_decode(const uint8_t *bytes, uint64_t file_nbytes, struct header *header);

/* Reads the sections of such a header.  After success every offset lies in the file, and the
 * kind of each section has accepted its geometry; if the filter is 'to_write', it has its
 * limits, too.  Returns 0 or an error of container_begin(). */
int container_sections(const uint8_t *bytes, const struct header *header, bool to_write,
                       struct section *sections);

/* ---- Checksums of a header -------------------------------------------------------------- */

/* Write the checksum into a header; it may be that of a small file, whose other bytes lie at
 * 'rest'. */
void header_seal(uint8_t *bytes, uint64_t nbytes);
void small_seal(uint8_t *header, uint64_t nbytes, const uint8_t *rest, uint64_t rest_nbytes);

/* Return whether a header, or a small file, has its checksum. */
bool header_intact(const uint8_t *bytes, uint64_t nbytes);
bool small_intact(const uint8_t *file, uint64_t header_nbytes, uint64_t file_nbytes);

/* ---- The checksum table for 'nbytes' bytes of pages -------------------------------------- */

/* Returns how many pages these are. */
uint64_t container_page_count(uint64_t nbytes);

/* Returns the size of the table: 8 bytes for each page, and 8 for the table itself. */
uint64_t container_table_nbytes(uint64_t nbytes);

/* Writes the checksum of page 'number', which has 'nbytes' bytes, into the table. */
void container_fill_entry(uint8_t *table, uint64_t number, const uint8_t *page,
                          uint64_t nbytes);

/* Returns whether page 'number', which has 'nbytes' bytes, has the checksum in the table. */
bool container_page_intact(const uint8_t *table, uint64_t number, const uint8_t *page,
                           uint64_t nbytes);

/* Returns whether the page has the checksum of this entry of the table. */
bool container_entry_agrees(const uint8_t *entry, uint64_t number, const uint8_t *page,
                            uint64_t nbytes);

/* Writes the checksum of a table whose other entries are filled. */
void container_seal_table(uint8_t *table, uint64_t nbytes);

/* Returns whether the checksum of the table is right. */
bool container_table_intact(const uint8_t *table, uint64_t nbytes);

#endif
