/* container.c - the header of a filter file and the checksums of its pages. */
#include "container.h"

#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "bytes.h"
#include "plan.h"

/* The first byte is no text, the last ones break when line ends are converted (as PNG's). */
static const uint8_t magic[8] = { 0x89, 'p', 'e', 'r', 'h', '\r', '\n', 0x1a };

enum { FEATURES_OFFSET = 16, CHECKSUM_OFFSET = 32, SECTION_ROOT = 0xffffffff };

/* The features there are. */
enum { FEATURE_LIVE = 1 };

/* ---- One list of fields for both directions --------------------------------------------- */

/* Walks through the header: a field is stored, or loaded, or (where its value is given by the
 * format) compared. */
struct cursor {
    uint8_t *at;
    bool storing;
    bool as_expected;
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

static void fixed64(struct cursor *c, uint64_t expected)
{
    uint64_t value = expected;
    field64(c, &value);
    c->as_expected &= value == expected;
}

static void fixed32(struct cursor *c, uint32_t expected)
{
    uint32_t value = expected;
    field32(c, &value);
    c->as_expected &= value == expected;
}

/* The fields behind the magic and version, in the order of doc/FORMAT.md. */
static void walk_fields(struct cursor *c, struct header *h, uint32_t *kind_id)
{
    c->at += CHECKSUM_OFFSET - sizeof h->file_nbytes;
    field64(c, &h->file_nbytes);
    c->at += sizeof(uint64_t); /* the checksum itself */
    fixed32(c, 1);             /* sections */
    field32(c, &h->hash_id);
    field64(c, &h->hash_seed);
    field64(c, &h->hash_check);
    field64(c, &h->pages_offset);
    field64(c, &h->table_offset);
    for (int i = 0; i < 5; i++)
        fixed64(c, 0);

    field32(c, kind_id);
    fixed32(c, SECTION_ROOT); /* parent */
    field64(c, &h->geometry.capacity);
    field_double(c, &h->geometry.fpr);
    field64(c, &h->counters.keys);
    field64(c, &h->counters.failed_adds);
    field64(c, &h->counters.unmatched_removals);
    field64(c, &h->body_offset);
    field64(c, &h->geometry.body_nbytes);
    for (int i = 0; i < PERHAPS_FIELDS_MAX; i++)
        field64(c, &h->geometry.field[i]);
}

bool container_is_live(const uint8_t *bytes)
{
    return load64(bytes + FEATURES_OFFSET) & FEATURE_LIVE;
}

/* A live file's counters change all the time and are left out. */
static uint64_t header_checksum(const uint8_t bytes[HEADER_NBYTES])
{
    uint8_t copy[HEADER_NBYTES];
    memcpy(copy, bytes, sizeof copy);
    store64(copy + CHECKSUM_OFFSET, 0);
    if (container_is_live(copy))
        memset(copy + COUNTERS_OFFSET, 0, sizeof(struct counters));
    return XXH3_64bits(copy, sizeof copy);
}

/* ---- Encode and decode ------------------------------------------------------------------ */

void container_plan(const perhaps_filter *f, struct header *header)
{
    uint64_t nbytes = f->geometry.body_nbytes;
    *header = (struct header){
        .pages_offset = HEADER_NBYTES,
        .table_offset = HEADER_NBYTES + nbytes,
        .file_nbytes = HEADER_NBYTES + nbytes + container_table_nbytes(nbytes),
        .hash_id = f->hasher.id,
        .hash_seed = f->hasher.seed,
        .hash_check = f->hasher.check,
        .kind = f->kind,
        .geometry = f->geometry,
        .counters = *f->counters,
        .body_offset = HEADER_NBYTES,
    };
}

void container_encode(const struct header *header, uint8_t bytes[HEADER_NBYTES])
{
    struct header h = *header;
    uint32_t kind_id = h.kind->id;
    memset(bytes, 0, HEADER_NBYTES);
    memcpy(bytes, magic, sizeof magic);
    store32(bytes + 8, FORMAT_VERSION);
    store32(bytes + 12, HEADER_NBYTES);
    store64(bytes + FEATURES_OFFSET, h.live ? FEATURE_LIVE : 0);
    struct cursor c = { .at = bytes, .storing = true, .as_expected = true };
    walk_fields(&c, &h, &kind_id);
    store64(bytes + CHECKSUM_OFFSET, header_checksum(bytes));
}

static bool all_zero(const uint8_t *from, const uint8_t *end)
{
    while (from < end && !*from)
        from++;
    return from == end;
}

/* The body is derived from the fields: the file must agree with what they say. */
static int check_geometry(struct header *h)
{
    struct geometry derived = h->geometry;
    if (!plan_in_range(derived.capacity, derived.fpr))
        return PERHAPS_ERR_DAMAGED;
    for (unsigned i = kind_field_count(h->kind); i < PERHAPS_FIELDS_MAX; i++)
        if (derived.field[i])
            return PERHAPS_ERR_VERSION;
    if (h->kind->set_geometry(&derived) || derived.body_nbytes != h->geometry.body_nbytes)
        return PERHAPS_ERR_DAMAGED;
    if (h->counters.keys / 2 > derived.key_limit) /* half: the limit is a computed one */
        return PERHAPS_ERR_DAMAGED;
    h->geometry = derived;
    return 0;
}

static bool offsets_agree(const struct header *h, uint64_t file_nbytes)
{
    uint64_t nbytes = h->geometry.body_nbytes;
    return h->file_nbytes == file_nbytes && nbytes <= file_nbytes - HEADER_NBYTES &&
           h->pages_offset == HEADER_NBYTES && h->body_offset == HEADER_NBYTES &&
           h->table_offset == HEADER_NBYTES + nbytes &&
           file_nbytes == h->table_offset + container_table_nbytes(nbytes);
}

int container_decode(const uint8_t bytes[HEADER_NBYTES], uint64_t file_nbytes, struct header *h)
{
    uint8_t copy[HEADER_NBYTES];
    uint32_t kind_id;
    *h = (struct header){ 0 };
    if (file_nbytes < sizeof magic || memcmp(bytes, magic, sizeof magic) != 0)
        return PERHAPS_ERR_FORMAT;
    if (file_nbytes < HEADER_NBYTES)
        return PERHAPS_ERR_DAMAGED;
    if (load32(bytes + 8) > FORMAT_VERSION)
        return PERHAPS_ERR_VERSION;
    if (load32(bytes + 8) != FORMAT_VERSION)
        return PERHAPS_ERR_DAMAGED;
    if (load64(bytes + FEATURES_OFFSET) & ~(uint64_t)FEATURE_LIVE)
        return PERHAPS_ERR_VERSION; /* an unknown one may change all that follows */
    if (load32(bytes + 12) != HEADER_NBYTES ||
        load64(bytes + CHECKSUM_OFFSET) != header_checksum(bytes))
        return PERHAPS_ERR_DAMAGED;

    memcpy(copy, bytes, sizeof copy);
    struct cursor c = { .at = copy, .as_expected = true };
    walk_fields(&c, h, &kind_id);
    h->live = container_is_live(bytes);
    h->kind = kind_by_id(kind_id);
    if (!h->kind || !c.as_expected || !all_zero(c.at, copy + HEADER_NBYTES))
        return PERHAPS_ERR_VERSION; /* intact, so it was meant: by a later version */
    if (!offsets_agree(h, file_nbytes))
        return PERHAPS_ERR_DAMAGED;
    if (h->live && !(h->kind->about.abilities & PERHAPS_SHARE))
        return PERHAPS_ERR_DAMAGED;
    return check_geometry(h);
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

/* Seeded with the page's number: exchanged pages are found, too. */
uint64_t container_page_checksum(const uint8_t *pages, uint64_t nbytes, uint64_t page)
{
    uint64_t at = page * PAGE_NBYTES;
    uint64_t size = nbytes - at < PAGE_NBYTES ? nbytes - at : PAGE_NBYTES;
    return XXH3_64bits_withSeed(pages + at, (size_t)size, page);
}

static uint64_t table_checksum(const uint8_t *table, uint64_t pages)
{
    return XXH3_64bits_withSeed(table, (size_t)(pages * sizeof(uint64_t)), pages);
}

void container_fill_table(const uint8_t *pages, uint64_t nbytes, uint8_t *table)
{
    uint64_t count = container_page_count(nbytes);
    for (uint64_t page = 0; page < count; page++)
        store64(table + page * sizeof(uint64_t), container_page_checksum(pages, nbytes, page));
    store64(table + count * sizeof(uint64_t), table_checksum(table, count));
}

bool container_table_intact(const uint8_t *table, uint64_t nbytes)
{
    uint64_t count = container_page_count(nbytes);
    return load64(table + count * sizeof(uint64_t)) == table_checksum(table, count);
}
