/* container.c - lays out filter files, and writes their headers. */
#include <string.h>

#include "../base/bytes.h"
#include "../filter/counted.h"
#include "../filter/counters.h"
#include "fields.h"

/* As in PNG, the first byte occurs in no text, and the last ones change if a program
 * converts line ends. */
static const uint8_t magic[MAGIC_NBYTES] = { 0x89, 'p', 'e', 'r', 'h', '\r', '\n', 0x1a };

bool container_has_magic(const uint8_t bytes[MAGIC_NBYTES])
{
    return !memcmp(bytes, magic, sizeof magic);
}

bool container_is_in_place(const uint8_t *bytes)
{
    return features_of(bytes) & FEATURE_IN_PLACE;
}

bool container_is_set(const uint8_t *bytes)
{
    return features_of(bytes) & FEATURE_SET;
}

bool container_has_journal(const uint8_t *bytes)
{
    return (features_of(bytes) & (FEATURE_JOURNAL | FEATURE_SMALL)) == FEATURE_JOURNAL;
}

bool container_is_small(const uint8_t *bytes)
{
    return features_of(bytes) & FEATURE_SMALL;
}

struct journal_point container_journal(const uint8_t *bytes)
{
    return (struct journal_point){ .branch = load64(bytes + JOURNAL_OFFSET),
                                   .sequence = load64(bytes + JOURNAL_OFFSET + 8) };
}

/* ---- Encode ----------------------------------------------------------------------------- */

static uint32_t count_sections(const perhaps_filter *f)
{
    uint32_t n = 1;
    for (size_t i = 0; i < f->parts->count; i++)
        n += count_sections(f->parts->part[i]);
    return n;
}

/* Returns where the last body of a filter and its parts ends, if the one
 * before ends at 'at'. */
static uint64_t bodies_end(const perhaps_filter *f, uint64_t at, bool small)
{
    uint64_t nbytes = filter_geometry(f).body_nbytes;
    if (nbytes)
        at = next_body(at, small) + nbytes;
    for (size_t i = 0; i < f->parts->count; i++)
        at = bodies_end(f->parts->part[i], at, small);
    return at;
}

struct encoder {
    struct cursor cursor;
    uint32_t number; /* of the next section */
    uint64_t end;    /* where the last body ends */
};

/* Writes the section of a filter, and behind it those of its parts. */
static void encode_sections(struct encoder *e, const perhaps_filter *f, uint32_t parent)
{
    filter_settle(f);
    struct section s = { .kind = f->kind,
                         .parent = parent,
                         .geometry = filter_geometry(f),
                         .counters = *f->counters };
    uint32_t number = e->number++;
    s.body_offset = next_body(e->end, e->cursor.packed);
    if (s.geometry.body_nbytes)
        e->end = s.body_offset + s.geometry.body_nbytes;
    section_fields(&e->cursor, &s, number);
    for (size_t i = 0; i < f->parts->count; i++)
        encode_sections(e, f->parts->part[i], number);
}

/* Writes all fields to 'bytes', or to nowhere if that is NULL.  Returns where they end. */
static uint64_t encode_fields(const perhaps_filter *f, struct header *h, uint8_t *bytes)
{
    struct encoder e = { .cursor = { .to = bytes, .packed = h->small }, .end = h->nbytes };
    header_fields(&e.cursor, h);
    if (h->small)
        note_field(&e.cursor, h);
    encode_sections(&e, f, SECTION_ROOT);
    if (!h->small)
        note_field(&e.cursor, h);
    return e.cursor.at;
}

/* Begins to lay out the file. */
static struct header begin_plan(const perhaps_filter *f)
{
    struct header h = {
        .sections = count_sections(f),
        .hash_id = f->hasher.id,
        .hash_seed = f->hasher.seed,
        .hash_check = hasher_check(&f->hasher),
        .note_nbytes = strlen(f->hasher.note),
    };
    memcpy(h.note, f->hasher.note, h.note_nbytes + 1);
    return h;
}

/* Returns whether a small file has all fields of a filter that are not 0. */
static bool can_be_packed(const perhaps_filter *f)
{
    for (unsigned i = kind_packed_count(f->kind); i < PERHAPS_FIELDS_MAX; i++)
        if (f->body.geometry.field[i])
            return false;
    return true;
}

/* Lays out a small file.  Returns false if it would be too large, or lack a field. */
static bool plan_small(const perhaps_filter *f, struct header *h)
{
    *h = begin_plan(f);
    const uint64_t counters_nbytes = h->sections * sizeof(struct counters);
    if (bodies_end(f, 0, true) + counters_nbytes > SMALL_NBYTES_MOST || !can_be_packed(f))
        return false;
    h->small = true;
    h->nbytes = round_up(encode_fields(f, h, NULL), SMALL_UNIT);
    h->table_offset = h->counters_offset = bodies_end(f, h->nbytes, true);
    h->file_nbytes = h->counters_offset + counters_nbytes;
    return h->file_nbytes <= SMALL_NBYTES_MOST;
}

void container_plan(const perhaps_filter *f, struct header *h)
{
    if (!plan_small(f, h))
        container_plan_large(f, NULL, h);
}

void container_plan_large(const perhaps_filter *f, const struct journal_point *point,
                          struct header *h)
{
    *h = begin_plan(f);
    h->nbytes = header_nbytes(h->sections, h->note_nbytes);
    h->table_offset = bodies_end(f, h->nbytes, false);
    h->file_nbytes = h->table_offset + container_table_nbytes(h->table_offset - h->nbytes);
    h->counters_offset = COUNTERS_OFFSET;
    if (point)
        h->journal = *point;
}

void container_encode(const perhaps_filter *f, const struct header *header, uint8_t *bytes)
{
    struct header h = *header;
    memset(bytes, 0, h.nbytes);
    memcpy(bytes, magic, sizeof magic);
    store32(bytes + 8, FORMAT_VERSION);
    store32(bytes + SMALL_SIZES_OFFSET,
            (uint32_t)(h.small ? h.nbytes | h.file_nbytes << 16 : h.nbytes));
    store64(bytes + FEATURES_OFFSET, (h.journal.branch ? FEATURE_JOURNAL : 0U) |
                                         (f->is_set ? FEATURE_SET : 0U) |
                                         (filter_is_estimated(f) ? FEATURE_ESTIMATED : 0U) |
                                         (h.small ? FEATURE_SMALL : 0U));
    encode_fields(f, &h, bytes);
    if (!h.small)
        header_seal(bytes, h.nbytes);
}

static uint8_t *put_counters(const perhaps_filter *f, uint8_t *to)
{
    filter_settle(f);
    memcpy(to, f->counters, sizeof *f->counters);
    to += sizeof *f->counters;
    for (size_t i = 0; i < f->parts->count; i++)
        to = put_counters(f->parts->part[i], to);
    return to;
}

void container_encode_counters(const perhaps_filter *f, const struct header *h, uint8_t *file)
{
    put_counters(f, file + h->counters_offset);
}

void container_mark_in_place(uint8_t *bytes, uint64_t nbytes)
{
    const bool small = container_is_small(bytes);
    store64(bytes + FEATURES_OFFSET, FEATURE_IN_PLACE | (small ? FEATURE_SMALL : 0U));
    if (small)
        small_seal(bytes, nbytes, NULL, 0);
    else
        header_seal(bytes, nbytes);
}
