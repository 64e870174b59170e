/* fields.h - the fields of a header, of both forms (doc/FORMAT.md).
 *
 * One list of fields serves writing and reading, so that the two cannot differ; and both forms,
 * so that a field has one place in the sources.  A packed header, that of a small file, leaves
 * out what follows from other fields, and numbers take as many bytes as they need: 7 bits in
 * each, the lowest first, and the highest bit of a byte says that another one follows. */
#ifndef FIELDS_H
#define FIELDS_H

#include "../base/bytes.h"
#include "container.h"

enum {
    FEATURES_OFFSET = 16,
    FILE_NBYTES_OFFSET = 24, /* the first field that is not in a small header */
    CHECKSUM_OFFSET = 32,
    SECTIONS_OFFSET = 40,
    JOURNAL_OFFSET = 80,
    NOTE_OFFSET = 96,
    FIXED_NBYTES = 120, /* the header without its sections, which come next */
    COUNTERS_OFFSET = 144,
    SECTION_NBYTES = 160,
};

/* The same of small files. */
enum {
    SMALL_SIZES_OFFSET = 12, /* of the header and of the file, as u16 */
    SMALL_CHECKSUM_OFFSET = 24,
    SMALL_FIELDS_OFFSET = BEGIN_NBYTES,
};

/* The known bits of the features: a file with any other is of a later version. */
enum {
    FEATURE_IN_PLACE = 1,
    FEATURE_JOURNAL = 2,
    FEATURE_SET = 4,
    FEATURE_ESTIMATED = 8,
    FEATURE_SMALL = 16,
    FEATURES = 31,
};

static inline uint64_t features_of(const uint8_t *bytes)
{
    return load64(bytes + FEATURES_OFFSET);
}

/* Return where the sections of a header that is not packed end, and its size. */
static inline uint64_t sections_end(uint32_t sections)
{
    return FIXED_NBYTES + (uint64_t)sections * SECTION_NBYTES;
}

static inline uint64_t header_nbytes(uint32_t sections, uint64_t note_nbytes)
{
    return round_up(sections_end(sections) + note_nbytes, HEADER_NBYTES);
}

/* Returns where a body begins after one that ends at 'end': at a multiple of 4096 bytes, the
 * usual page of the system, so that it can be mapped; or of a cache line. */
static inline uint64_t next_body(uint64_t end, bool small)
{
    return round_up(end, small ? SMALL_UNIT : HEADER_NBYTES);
}

/* Walks through a header, and stores or loads one field after the other. */
struct cursor {
    uint8_t *to;         /* storing: the header; NULL: the fields are only measured */
    const uint8_t *from; /* loading: the header; NULL: storing */
    uint64_t at;         /* where in it the next field is */
    uint64_t end;        /* loading: no field is read from here on */
    bool packed;
    bool sound;       /* loading: each field was there, in its only form */
    bool as_expected; /* loading: fields with a fixed value have had it so far */
};

/* The fields of a header behind those that container_begin() reads, in the order of
 * doc/FORMAT.md; then a packed header has the note, the sections and zeros, and another one the
 * sections, the note and zeros. */
void header_fields(struct cursor *c, struct header *h);
void note_field(struct cursor *c, struct header *h);

/* The fields of a section, of which s->kind is NULL if no such kind is known. */
void section_fields(struct cursor *c, struct section *s, uint32_t number);

#endif
