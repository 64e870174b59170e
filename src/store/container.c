/* container.c - the header of a filter file and the checksums of its pages. */
#include "container.h"

#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "../base/bytes.h"
#include "../base/sizing.h"
#include "../filter/counted.h"
#include "../kinds/kinds.h"

/* As in PNG, the first byte occurs in no text, and the last ones change if a program
 * converts line ends. */
static const uint8_t magic[MAGIC_NBYTES] = { 0x89, 'p', 'e', 'r', 'h', '\r', '\n', 0x1a };

enum {
    FEATURES_OFFSET = 16,
    CHECKSUM_OFFSET = 32,
    SECTIONS_OFFSET = 40,
    JOURNAL_OFFSET = 80,
    NOTE_OFFSET = 96,
    FIXED_NBYTES = 120, /* the header without its sections, which come next */
    SECTION_NBYTES = 160,
};

/* The known bits of the features: a file with any other is of a later version. */
enum {
    FEATURE_IN_PLACE = 1,
    FEATURE_JOURNAL = 2,
    FEATURE_SET = 4,
    FEATURE_ESTIMATED = 8,
    FEATURES = 15,
};

/* No file is larger than this.  Sums of two offsets in a file do not overflow. */
#define FILE_NBYTES_MOST (UINT64_C(1) << 62)

/* ---- One list of fields for both directions --------------------------------------------- */

/* Walks through the header, and stores or loads one field after the other.  One list of fields
 * serves writing and reading, so that the two cannot differ. */
struct cursor {
    uint8_t *at;
    bool storing;
    bool as_expected; /* loading: fields with a fixed value have had it so far */
};

static void field64(struct cursor *c, uint64_t *value)
{
    if (c->storing)
        store64(c->at, *value);
    else
        *value = load64(c->at);
    c->at += sizeof *value;
}

static void field32(struct cursor *c, uint32_t *value)
{
    if (c->storing)
        store32(c->at, *value);
    else
        *value = load32(c->at);
    c->at += sizeof *value;
}

static void field_double(struct cursor *c, double *value)
{
    uint64_t bits;
    memcpy(&bits, value, sizeof bits);
    field64(c, &bits);
    memcpy(value, &bits, sizeof bits);
}

/* A field whose value the format fixes. */
static void fixed64(struct cursor *c, uint64_t expected)
{
    uint64_t value = expected;
    field64(c, &value);
    c->as_expected &= value == expected;
}

/* The fields behind the magic and version, in the order of doc/FORMAT.md. */
static void header_fields(struct cursor *c, struct header *h)
{
    uint64_t pages_offset = h->nbytes;
    c->at += CHECKSUM_OFFSET - sizeof h->file_nbytes;
    field64(c, &h->file_nbytes);
    c->at += sizeof(uint64_t); /* the checksum itself */
    field32(c, &h->sections);
    field32(c, &h->hash_id);
    field64(c, &h->hash_seed);
    field64(c, &h->hash_check);
    fixed64(c, pages_offset);
    field64(c, &h->table_offset);
    field64(c, &h->journal.branch);
    field64(c, &h->journal.sequence);
    field64(c, &h->note_nbytes);
    for (int i = 0; i < 2; i++)
        fixed64(c, 0);
}

static void section_fields(struct cursor *c, struct section *s, uint32_t *kind_id)
{
    field32(c, kind_id);
    field32(c, &s->parent);
    field64(c, &s->geometry.capacity);
    field_double(c, &s->geometry.fpr);
    field64(c, &s->counters.keys);
    field64(c, &s->counters.failed_adds);
    field64(c, &s->counters.unmatched_removals);
    field64(c, &s->body_offset);
    field64(c, &s->geometry.body_nbytes);
    for (int i = 0; i < PERHAPS_FIELDS_MAX; i++)
        field64(c, &s->geometry.field[i]);
}

bool container_is_in_place(const uint8_t *bytes)
{
    return load64(bytes + FEATURES_OFFSET) & FEATURE_IN_PLACE;
}

bool container_is_set(const uint8_t *bytes)
{
    return load64(bytes + FEATURES_OFFSET) & FEATURE_SET;
}

bool container_has_journal(const uint8_t *bytes)
{
    return load64(bytes + FEATURES_OFFSET) & FEATURE_JOURNAL;
}

struct journal_point container_journal(const uint8_t *bytes)
{
    return (struct journal_point){ .branch = load64(bytes + JOURNAL_OFFSET),
                                   .sequence = load64(bytes + JOURNAL_OFFSET + 8) };
}

/* Returns the checksum of a header, computed as if the field for it were 0.  The counters of a
 * live file change all the time, so they count as 0, too. */
static uint64_t header_checksum(const uint8_t *bytes, uint64_t nbytes)
{
    uint8_t first[HEADER_NBYTES];
    XXH3_state_t state;
    memcpy(first, bytes, sizeof first);
    store64(first + CHECKSUM_OFFSET, 0);
    if (container_is_in_place(first))
        memset(first + COUNTERS_OFFSET, 0, sizeof(struct counters));
    XXH3_64bits_reset(&state);
    XXH3_64bits_update(&state, first, sizeof first);
    XXH3_64bits_update(&state, bytes + sizeof first, (size_t)nbytes - sizeof first);
    return XXH3_64bits_digest(&state);
}

/* Writes the checksum into a header. */
static void seal(uint8_t *bytes, uint64_t nbytes)
{
    store64(bytes + CHECKSUM_OFFSET, header_checksum(bytes, nbytes));
}

/* ---- Encode ----------------------------------------------------------------------------- */

/* Returns where the sections end, and the note begins. */
static uint64_t sections_end(uint32_t sections)
{
    return FIXED_NBYTES + (uint64_t)sections * SECTION_NBYTES;
}

static uint64_t header_nbytes(uint32_t sections, uint64_t note_nbytes)
{
    return round_up(sections_end(sections) + note_nbytes, HEADER_NBYTES);
}

/* Returns where a body begins after one that ends at 'end': at a multiple of 4096 bytes, the
 * usual page of the system, so that it can be mapped. */
static uint64_t next_body(uint64_t end)
{
    return round_up(end, HEADER_NBYTES);
}

static uint32_t count_sections(const perhaps_filter *f)
{
    uint32_t n = 1;
    for (size_t i = 0; i < f->parts.count; i++)
        n += count_sections(f->parts.part[i]);
    return n;
}

/* Returns where the last body of a filter and its parts ends, if the one
 * before ends at 'at'. */
static uint64_t bodies_end(const perhaps_filter *f, uint64_t at)
{
    uint64_t nbytes = filter_geometry(f).body_nbytes;
    if (nbytes)
        at = next_body(at) + nbytes;
    for (size_t i = 0; i < f->parts.count; i++)
        at = bodies_end(f->parts.part[i], at);
    return at;
}

void container_plan(const perhaps_filter *f, struct header *h)
{
    uint32_t sections = count_sections(f);
    const uint64_t note_nbytes = strlen(f->hasher.note);
    uint64_t nbytes = header_nbytes(sections, note_nbytes), end = bodies_end(f, nbytes);
    *h = (struct header){
        .nbytes = nbytes,
        .table_offset = end,
        .file_nbytes = end + container_table_nbytes(end - nbytes),
        .sections = sections,
        .hash_id = f->hasher.id,
        .hash_seed = f->hasher.seed,
        .hash_check = f->hasher.check,
        .note_nbytes = note_nbytes,
    };
    memcpy(h->note, f->hasher.note, note_nbytes + 1);
}

struct encoder {
    struct cursor cursor;
    uint32_t number; /* of the next section */
    uint64_t end;    /* where the last body ends */
};

/* Writes the section of a filter, and behind it those of its parts. */
static void encode_sections(struct encoder *e, const perhaps_filter *f, uint32_t parent)
{
    struct section s = { .parent = parent,
                         .geometry = filter_geometry(f),
                         .counters = *f->counters };
    uint32_t kind_id = f->kind->id, number = e->number++;
    s.body_offset = next_body(e->end);
    if (s.geometry.body_nbytes)
        e->end = s.body_offset + s.geometry.body_nbytes;
    section_fields(&e->cursor, &s, &kind_id);
    for (size_t i = 0; i < f->parts.count; i++)
        encode_sections(e, f->parts.part[i], number);
}

void container_encode(const perhaps_filter *f, const struct header *header, uint8_t *bytes)
{
    struct header h = *header;
    memset(bytes, 0, h.nbytes);
    memcpy(bytes, magic, sizeof magic);
    store32(bytes + 8, FORMAT_VERSION);
    store32(bytes + 12, (uint32_t)h.nbytes);
    store64(bytes + FEATURES_OFFSET, (h.journal.branch ? FEATURE_JOURNAL : 0U) |
                                         (f->is_set ? FEATURE_SET : 0U) |
                                         (filter_is_estimated(f) ? FEATURE_ESTIMATED : 0U));
    struct encoder e = { .cursor = { .at = bytes, .storing = true }, .end = h.nbytes };
    header_fields(&e.cursor, &h);
    encode_sections(&e, f, SECTION_ROOT);
    memcpy(e.cursor.at, h.note, h.note_nbytes);
    seal(bytes, h.nbytes);
}

void container_mark_in_place(uint8_t bytes[HEADER_NBYTES])
{
    store64(bytes + FEATURES_OFFSET, FEATURE_IN_PLACE);
    seal(bytes, HEADER_NBYTES);
}

/* ---- Decode ----------------------------------------------------------------------------- */

bool container_has_magic(const uint8_t bytes[MAGIC_NBYTES])
{
    return !memcmp(bytes, magic, sizeof magic);
}

int container_measure(const uint8_t bytes[HEADER_NBYTES], uint64_t file_nbytes,
                      uint64_t *nbytes)
{
    if (load32(bytes + 8) > FORMAT_VERSION)
        return PERHAPS_ERR_VERSION;
    if (load32(bytes + 8) != FORMAT_VERSION)
        return PERHAPS_ERR_DAMAGED;
    if (load64(bytes + FEATURES_OFFSET) & ~(uint64_t)FEATURES)
        return PERHAPS_ERR_VERSION; /* an unknown feature may change all that follows */
    const uint32_t sections = load32(bytes + SECTIONS_OFFSET);
    const uint64_t note_nbytes = load64(bytes + NOTE_OFFSET);
    *nbytes = load32(bytes + 12);
    if (sections < 1 || sections > SECTIONS_MOST || note_nbytes > PERHAPS_NOTE_MAX ||
        *nbytes != header_nbytes(sections, note_nbytes) || *nbytes > file_nbytes)
        return PERHAPS_ERR_DAMAGED;
    return 0;
}

/* Reads section 'number' as it is, and checks only its kind. */
static int load_section(const uint8_t *bytes, uint32_t number, struct section *s)
{
    uint8_t copy[SECTION_NBYTES];
    uint32_t kind_id;
    memcpy(copy, bytes + FIXED_NBYTES + (size_t)number * SECTION_NBYTES, sizeof copy);
    struct cursor c = { .at = copy };
    *s = (struct section){ 0 };
    section_fields(&c, s, &kind_id);
    s->kind = kind_by_id(kind_id);
    return s->kind ? 0 : PERHAPS_ERR_VERSION;
}

static bool all_zero(const uint8_t *from, const uint8_t *end)
{
    while (from < end && !*from)
        from++;
    return from == end;
}

/* Nothing of the header is used before its checksum has been compared, except what is needed to
 * find the checksum: version, features and size. */
int container_decode(const uint8_t *bytes, uint64_t file_nbytes, struct header *h)
{
    uint8_t copy[FIXED_NBYTES];
    struct section first;
    *h = (struct header){ 0 };
    int error = container_measure(bytes, file_nbytes, &h->nbytes);
    if (error)
        return error;
    if (load64(bytes + CHECKSUM_OFFSET) != header_checksum(bytes, h->nbytes))
        return PERHAPS_ERR_DAMAGED;
    memcpy(copy, bytes, sizeof copy);
    struct cursor c = { .at = copy, .as_expected = true };
    header_fields(&c, h);
    const uint8_t *note = bytes + sections_end(h->sections);
    memcpy(h->note, note, h->note_nbytes);
    h->in_place = container_is_in_place(bytes);
    h->set = container_is_set(bytes);
    h->estimated = h->in_place || load64(bytes + FEATURES_OFFSET) & FEATURE_ESTIMATED;
    error = load_section(bytes, 0, &first);
    bool journaled = container_has_journal(bytes);
    if (!journaled && (h->journal.branch || h->journal.sequence))
        return PERHAPS_ERR_VERSION;
    if (journaled && (h->in_place || !h->journal.branch))
        return PERHAPS_ERR_DAMAGED;
    if (error || !c.as_expected || !is_note(h->note, h->note_nbytes) ||
        !all_zero(note + h->note_nbytes, bytes + h->nbytes))
        return PERHAPS_ERR_VERSION; /* the checksum is right: a later version wrote this */
    if (!kind_takes_hash(first.kind, h->hash_id))
        return PERHAPS_ERR_DAMAGED;
    if (h->in_place && !(h->sections == 1 && first.kind->about.abilities & PERHAPS_CAN_SHARE))
        return PERHAPS_ERR_DAMAGED;
    if (h->file_nbytes != file_nbytes && file_nbytes != NBYTES_UNKNOWN)
        return PERHAPS_ERR_DAMAGED;
    return h->file_nbytes <= FILE_NBYTES_MOST && h->table_offset >= h->nbytes &&
                   h->table_offset <= h->file_nbytes
               ? 0
               : PERHAPS_ERR_DAMAGED;
}

/* ---- Sections --------------------------------------------------------------------------- */

/* The sections of a file while they are checked one after the other. */
struct sections {
    struct section *section;
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

/* Checks and completes the geometry of a section.  This takes up to a millisecond, and all
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
    return kind_set_geometry(all->section[number].kind, g);
}

/* Checks the fields of a section.  They determine the size of the body, so the size that the
 * file gives must agree. */
static int check_geometry(struct sections *all, uint32_t number)
{
    struct section *s = &all->section[number];
    struct geometry derived = s->geometry;
    if (!geometry_in_range(s->kind, derived.capacity, derived.fpr))
        return PERHAPS_ERR_DAMAGED;
    for (unsigned i = kind_field_count(s->kind); i < PERHAPS_FIELDS_MAX; i++)
        if (derived.field[i])
            return PERHAPS_ERR_VERSION;
    if (derive(all, number, &derived) || derived.body_nbytes != s->geometry.body_nbytes)
        return PERHAPS_ERR_DAMAGED;
    if (!geometry_may_hold(&derived, s->counters.keys))
        return PERHAPS_ERR_DAMAGED;
    s->geometry = derived;
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
static int check_section(struct sections *all, uint32_t number, uint64_t table_offset)
{
    const struct section *s = &all->section[number];
    if (!parent_agrees(all, number))
        return PERHAPS_ERR_VERSION;
    if (s->body_offset != next_body(all->end) || s->geometry.body_nbytes > table_offset ||
        s->body_offset > table_offset)
        return PERHAPS_ERR_DAMAGED;
    if (s->geometry.body_nbytes)
        all->end = s->body_offset + s->geometry.body_nbytes;
    return check_geometry(all, number);
}

int container_sections(const uint8_t *bytes, const struct header *h, struct section *sections)
{
    struct sections all = { .section = sections, .end = h->nbytes };
    int error = 0;
    for (uint32_t i = 0; i < h->sections && !error; i++) {
        error = load_section(bytes, i, &sections[i]);
        if (!error)
            error = check_section(&all, i, h->table_offset);
    }
    if (error)
        return error;
    uint64_t table_nbytes = container_table_nbytes(all.end - h->nbytes);
    return h->table_offset == all.end && h->file_nbytes == all.end + table_nbytes
               ? 0
               : PERHAPS_ERR_DAMAGED;
}

/* ---- Pages ------------------------------------------------------------------------------ */

uint64_t container_page_count(uint64_t nbytes)
{
    return nbytes / PAGE_NBYTES + (nbytes % PAGE_NBYTES != 0);
}

uint64_t container_table_nbytes(uint64_t nbytes)
{
    return (container_page_count(nbytes) + 1) * sizeof(uint64_t);
}

/* The seed is the number of the page, so that exchanged pages are found, too. */
static uint64_t page_checksum(uint64_t number, const uint8_t *page, uint64_t nbytes)
{
    return XXH3_64bits_withSeed(page, (size_t)nbytes, number);
}

void container_fill_entry(uint8_t *table, uint64_t number, const uint8_t *page, uint64_t nbytes)
{
    store64(table + number * sizeof(uint64_t), page_checksum(number, page, nbytes));
}

bool container_page_intact(const uint8_t *table, uint64_t number, const uint8_t *page,
                           uint64_t nbytes)
{
    return load64(table + number * sizeof(uint64_t)) == page_checksum(number, page, nbytes);
}

static uint64_t table_checksum(const uint8_t *table, uint64_t pages)
{
    return XXH3_64bits_withSeed(table, (size_t)(pages * sizeof(uint64_t)), pages);
}

void container_seal_table(uint8_t *table, uint64_t nbytes)
{
    uint64_t count = container_page_count(nbytes);
    store64(table + count * sizeof(uint64_t), table_checksum(table, count));
}

bool container_table_intact(const uint8_t *table, uint64_t nbytes)
{
    uint64_t count = container_page_count(nbytes);
    return load64(table + count * sizeof(uint64_t)) == table_checksum(table, count);
}
