/* decode.c - reads headers of filter files, which an enemy may have written. */
#include <string.h>

#include "../base/bytes.h"
#include "../base/sizing.h"
#include "../kinds/kinds.h"
#include "fields.h"

/* No file is larger than this.  Sums of two offsets in a file do not overflow. */
#define FILE_NBYTES_MOST (UINT64_C(1) << 62)

/* ---- Headers ---------------------------------------------------------------------------- */

static int begin_small(const uint8_t *bytes, uint64_t file_nbytes, uint64_t *nbytes)
{
    const uint32_t sizes = load32(bytes + SMALL_SIZES_OFFSET), header = sizes & UINT16_MAX;
    *nbytes = sizes >> 16;
    return header && header % SMALL_UNIT == 0 && header < *nbytes && *nbytes <= file_nbytes &&
                   !(features_of(bytes) & FEATURE_JOURNAL)
               ? 0
               : PERHAPS_ERR_DAMAGED;
}

int container_begin(const uint8_t bytes[BEGIN_NBYTES], uint64_t file_nbytes, uint64_t *nbytes)
{
    if (load32(bytes + 8) > FORMAT_VERSION)
        return PERHAPS_ERR_VERSION;
    if (load32(bytes + 8) != FORMAT_VERSION)
        return PERHAPS_ERR_DAMAGED;
    if (features_of(bytes) & ~(uint64_t)FEATURES)
        return PERHAPS_ERR_VERSION; /* an unknown feature may change all that follows */
    if (container_is_small(bytes))
        return begin_small(bytes, file_nbytes, nbytes);
    *nbytes = HEADER_NBYTES;
    return *nbytes <= file_nbytes ? 0 : PERHAPS_ERR_DAMAGED;
}

int container_measure(const uint8_t *bytes, uint64_t file_nbytes, uint64_t *nbytes)
{
    int error = container_begin(bytes, file_nbytes, nbytes);
    if (error || container_is_small(bytes))
        return error;
    const uint32_t sections = load32(bytes + SECTIONS_OFFSET);
    const uint64_t note_nbytes = load64(bytes + NOTE_OFFSET);
    *nbytes = load32(bytes + 12);
    if (sections < 1 || sections > SECTIONS_MOST || note_nbytes > PERHAPS_NOTE_MAX ||
        *nbytes != header_nbytes(sections, note_nbytes) || *nbytes > file_nbytes)
        return PERHAPS_ERR_DAMAGED;
    return 0;
}

static bool all_zero(const uint8_t *from, const uint8_t *end)
{
    while (from < end && !*from)
        from++;
    return from == end;
}

/* Returns whether sizes and offsets of a header agree with each other. */
static bool sizes_agree(const struct header *h, uint64_t file_nbytes)
{
    return (h->file_nbytes == file_nbytes || file_nbytes == NBYTES_UNKNOWN) &&
           h->file_nbytes <= FILE_NBYTES_MOST && h->table_offset >= h->nbytes &&
           h->table_offset <= h->file_nbytes;
}

/* Reads the fields of a large header.  Returns whether the rest of it is as this version
 * writes it. */
static bool decode_large(const uint8_t *bytes, struct header *h)
{
    struct cursor c = { .from = bytes, .end = h->nbytes, .sound = true, .as_expected = true };
    header_fields(&c, h);
    h->sections_offset = FIXED_NBYTES;
    h->counters_offset = COUNTERS_OFFSET;
    c.at = sections_end(h->sections);
    note_field(&c, h);
    return c.as_expected && all_zero(bytes + c.at, bytes + h->nbytes);
}

/* Reads the fields of a small header, up to its sections.  Returns 0, PERHAPS_ERR_VERSION or
 * PERHAPS_ERR_DAMAGED. */
static int decode_small(const uint8_t *bytes, struct header *h)
{
    struct cursor c = {
        .from = bytes, .end = h->nbytes, .packed = true, .sound = true, .as_expected = true
    };
    header_fields(&c, h);
    note_field(&c, h);
    h->sections_offset = c.at;
    const uint64_t counters_nbytes = h->sections * sizeof(struct counters);
    if (!c.as_expected)
        return PERHAPS_ERR_VERSION;
    if (!c.sound || h->sections < 1 || counters_nbytes >= h->file_nbytes - h->nbytes)
        return PERHAPS_ERR_DAMAGED;
    h->table_offset = h->counters_offset = h->file_nbytes - counters_nbytes;
    return 0;
}

/* Nothing of the header is used before its checksum has been compared, except what is needed to
 * find the checksum: version, features and sizes. */
static int decode_form(const uint8_t *bytes, uint64_t file_nbytes, struct header *h)
{
    int error = container_measure(bytes, file_nbytes, &h->nbytes);
    if (error)
        return error;
    h->small = container_is_small(bytes);
    if (h->small) {
        h->file_nbytes = h->nbytes;
        h->nbytes = load32(bytes + SMALL_SIZES_OFFSET) & UINT16_MAX;
        return small_intact(bytes, h->nbytes, h->file_nbytes) ? decode_small(bytes, h)
                                                              : PERHAPS_ERR_DAMAGED;
    }
    if (!header_intact(bytes, h->nbytes))
        return PERHAPS_ERR_DAMAGED;
    return decode_large(bytes, h) ? 0 : PERHAPS_ERR_VERSION; /* a later version wrote this */
}

int container_decode(const uint8_t *bytes, uint64_t file_nbytes, struct header *h)
{
    *h = (struct header){ 0 };
    int error = decode_form(bytes, file_nbytes, h);
    if (error)
        return error;
    h->in_place = container_is_in_place(bytes);
    h->set = container_is_set(bytes);
    h->estimated = h->in_place || features_of(bytes) & FEATURE_ESTIMATED;
    bool journaled = container_has_journal(bytes);
    if (!journaled && (h->journal.branch || h->journal.sequence))
        return PERHAPS_ERR_VERSION;
    if (journaled && (h->in_place || !h->journal.branch))
        return PERHAPS_ERR_DAMAGED;
    if (!is_note(h->note, h->note_nbytes))
        return PERHAPS_ERR_VERSION;
    return sizes_agree(h, file_nbytes) ? 0 : PERHAPS_ERR_DAMAGED;
}

/* ---- Sections --------------------------------------------------------------------------- */

/* The sections of a file while they are checked one after the other. */
struct sections {
    struct section *section;
    const struct header *header;
    bool to_write;
    uint64_t end; /* where the last body ends */
    uint32_t ndistinct;
    uint32_t distinct[PARTS_MOST]; /* the first sections that had a new geometry each */
};

static bool same_fields(const struct section *a, const struct section *b)
{
    const struct geometry *g = &a->geometry, *h = &b->geometry;
    return a->kind == b->kind && g->capacity == h->capacity && g->fpr == h->fpr &&
           !memcmp(g->field, h->field, sizeof g->field);
}

/* Checks and completes the geometry of a section.  Its limits take some microseconds, and all
 * generations of a window have the same geometry, so it is copied from an earlier section with
 * the same fields. */
static int derive(struct sections *all, uint32_t number, struct geometry *g)
{
    for (uint32_t i = 0; i < all->ndistinct; i++) {
        const struct section *known = &all->section[all->distinct[i]];
        if (same_fields(known, &all->section[number])) {
            *g = known->geometry;
            return 0;
        }
    }
    if (all->ndistinct < PARTS_MOST)
        all->distinct[all->ndistinct++] = number;
    const struct filter_kind *kind = all->section[number].kind;
    int error = kind_set_geometry(kind, g);
    if (error || !kind->set_limits)
        return error ? error : geometry_limit(kind, g);
    if (all->to_write)
        geometry_limit(kind, g); /* which then refuses keys, and not the file */
    return 0;
}

/* Checks the fields of a section, and derives the rest.  They determine the size of the body,
 * so a size that the file gives must agree. */
static int check_geometry(struct sections *all, uint32_t number)
{
    struct section *s = &all->section[number];
    struct geometry *g = &s->geometry;
    const uint64_t told_nbytes = g->body_nbytes;
    if (!geometry_in_range(s->kind, g->capacity, g->fpr))
        return PERHAPS_ERR_DAMAGED;
    for (unsigned i = kind_field_count(s->kind); i < PERHAPS_FIELDS_MAX; i++)
        if (g->field[i])
            return PERHAPS_ERR_VERSION;
    if (derive(all, number, g) || (!all->header->small && g->body_nbytes != told_nbytes))
        return PERHAPS_ERR_DAMAGED;
    if (s->counters.keys / 2 > (s->kind->set_limits ? KEYS_UNLIMITED : g->key_limit))
        return PERHAPS_ERR_DAMAGED; /* it may be wrong, but sums of it do not overflow */
    return 0;
}

/* Returns whether the parent of a section is allowed.  The first section is the filter.  A part
 * comes behind the composite to which it belongs.  A part may be a composite itself only if it
 * belongs to the first section: so composites are nested at most two deep. */
static bool parent_agrees(const struct sections *all, uint32_t number)
{
    const struct section *s = &all->section[number];
    if (number == 0)
        return s->parent == SECTION_ROOT;
    return s->parent < number && all->section[s->parent].kind->composite &&
           (!s->kind->composite || s->parent == 0);
}

/* Checks one section, whose body must begin where the one before ends. */
static int check_section(struct sections *all, uint32_t number)
{
    struct section *s = &all->section[number];
    const struct header *h = all->header;
    const uint64_t next = next_body(all->end, h->small);
    if (!parent_agrees(all, number))
        return PERHAPS_ERR_VERSION;
    if (h->small)
        s->body_offset = next;
    if (s->body_offset != next || s->body_offset > h->table_offset)
        return PERHAPS_ERR_DAMAGED;
    int error = check_geometry(all, number);
    if (error)
        return error;
    if (s->geometry.body_nbytes > h->table_offset - s->body_offset)
        return PERHAPS_ERR_DAMAGED;
    if (s->geometry.body_nbytes)
        all->end = s->body_offset + s->geometry.body_nbytes;
    return 0;
}

/* Returns whether hash and flags of the header go with the kind of the first section. */
static bool header_agrees(const struct header *h, const struct filter_kind *kind)
{
    return kind_takes_hash(kind, h->hash_id) &&
           (!h->in_place || (h->sections == 1 && kind->about.abilities & PERHAPS_CAN_SHARE));
}

/* Reads the next section as it is, and checks only its kind. */
static int load_section(struct cursor *c, uint32_t number, struct section *s)
{
    *s = (struct section){ .parent = SECTION_ROOT };
    section_fields(c, s, number);
    return !s->kind ? PERHAPS_ERR_VERSION : c->sound ? 0 : PERHAPS_ERR_DAMAGED;
}

/* Reads the counters of a section of a small file, which lie behind the bodies. */
static void load_counters(const uint8_t *file, const struct header *h, uint32_t number,
                          struct section *s)
{
    memcpy(&s->counters, file + h->counters_offset + number * sizeof s->counters,
           sizeof s->counters);
}

int container_sections(const uint8_t *bytes, const struct header *h, bool to_write,
                       struct section *sections)
{
    struct cursor c = { .from = bytes,
                        .at = h->sections_offset,
                        .end = h->nbytes,
                        .packed = h->small,
                        .sound = true };
    struct sections all;
    int error = 0;
    all.section = sections;
    all.header = h;
    all.to_write = to_write;
    all.end = h->nbytes;
    all.ndistinct = 0;
    for (uint32_t i = 0; i < h->sections && !error; i++) {
        error = load_section(&c, i, &sections[i]);
        if (!error && i == 0 && !header_agrees(h, sections->kind))
            error = PERHAPS_ERR_DAMAGED;
        if (!error && h->small)
            load_counters(bytes, h, i, &sections[i]);
        if (!error)
            error = check_section(&all, i);
    }
    if (error)
        return error;
    if (h->small && !all_zero(bytes + c.at, bytes + h->nbytes))
        return PERHAPS_ERR_VERSION; /* the checksum is right: a later version wrote this */
    if (h->small && h->nbytes != round_up(c.at, SMALL_UNIT))
        return PERHAPS_ERR_DAMAGED;
    const uint64_t behind = h->small ? h->file_nbytes - h->counters_offset
                                     : container_table_nbytes(all.end - h->nbytes);
    return h->table_offset == all.end && h->file_nbytes == all.end + behind
               ? 0
               : PERHAPS_ERR_DAMAGED;
}
