/* fields.c - the lists of fields of a header, and how a field is stored and loaded. */
#include "fields.h"

#include <string.h>

#include "../base/bytes.h"
#include "../base/compiler.h"
#include "../kinds/kinds.h"

/* ---- Fields ----------------------------------------------------------------------------- */

/* Bytes as they are. */
static ALWAYS_INLINE void field_bytes(struct cursor *c, void *bytes, uint64_t nbytes)
{
    if (c->from) {
        if (nbytes > c->end - c->at) {
            c->sound = false;
            return;
        }
        memcpy(bytes, c->from + c->at, nbytes);
    } else if (c->to) {
        memcpy(c->to + c->at, bytes, nbytes);
    }
    c->at += nbytes;
}

/* A number that any bit pattern may be: of 8 bytes in both forms. */
static void field_word(struct cursor *c, uint64_t *value)
{
    field_bytes(c, value, sizeof *value);
}

static void field_double(struct cursor *c, double *value)
{
    field_bytes(c, value, sizeof *value);
}

static void pack(struct cursor *c, uint64_t value)
{
    for (; value > 127; value >>= 7)
        field_bytes(c, &(uint8_t){ (uint8_t)(value | 128) }, 1);
    field_bytes(c, &(uint8_t){ (uint8_t)value }, 1);
}

static ALWAYS_INLINE uint64_t unpack(struct cursor *c)
{
    uint64_t value = 0;
    uint8_t byte = 0;
    if (c->at < c->end && c->from[c->at] < 128) /* as most are */
        return c->from[c->at++];
    for (unsigned shift = 0; shift < 64; shift += 7) {
        field_bytes(c, &byte, sizeof byte);
        value |= (uint64_t)(byte & 127) << shift;
        if (byte < 128) {
            c->sound &= (byte || !shift) && (shift < 63 || byte == 1);
            return value;
        }
    }
    c->sound = false;
    return 0;
}

static void field64(struct cursor *c, uint64_t *value)
{
    if (!c->packed)
        field_word(c, value);
    else if (c->from)
        *value = unpack(c);
    else
        pack(c, *value);
}

static void field32(struct cursor *c, uint32_t *value)
{
    uint64_t wide = *value;
    if (!c->packed) {
        field_bytes(c, value, sizeof *value);
        return;
    }
    field64(c, &wide);
    c->sound &= wide <= UINT32_MAX;
    *value = (uint32_t)wide;
}

/* A field that a packed header leaves out. */
static void implied64(struct cursor *c, uint64_t *value)
{
    if (!c->packed)
        field64(c, value);
}

/* One of these whose value the format fixes. */
static void fixed64(struct cursor *c, uint64_t expected)
{
    uint64_t value = expected;
    implied64(c, &value);
    c->as_expected &= value == expected;
}

/* ---- Their lists ------------------------------------------------------------------------- */

/* The hash of a small file has no check value that follows from its seed. */
static void hash_fields(struct cursor *c, struct header *h)
{
    field32(c, &h->hash_id);
    c->as_expected &= !c->packed || h->hash_id < PERHAPS_HASH_COUNT;
    const struct hash_row *row =
        h->hash_id < PERHAPS_HASH_COUNT ? &hash_rows[h->hash_id] : NULL;
    if (!c->packed || (row && row->seeded))
        field_word(c, &h->hash_seed);
    h->hash_checks = !c->packed || (row && row->needs != HASH_NEEDS_NOTHING);
    if (h->hash_checks)
        field_word(c, &h->hash_check);
}

void header_fields(struct cursor *c, struct header *h)
{
    c->at = c->packed ? SMALL_FIELDS_OFFSET : FILE_NBYTES_OFFSET;
    implied64(c, &h->file_nbytes);
    if (!c->packed)
        c->at += sizeof(uint64_t); /* the checksum itself */
    field32(c, &h->sections);
    hash_fields(c, h);
    fixed64(c, h->nbytes);
    implied64(c, &h->table_offset);
    implied64(c, &h->journal.branch);
    implied64(c, &h->journal.sequence);
    field64(c, &h->note_nbytes);
    for (int i = 0; i < 2; i++)
        fixed64(c, 0);
}

/* A note that is too long counts as one that is not there. */
void note_field(struct cursor *c, struct header *h)
{
    if (h->note_nbytes <= PERHAPS_NOTE_MAX)
        field_bytes(c, h->note, h->note_nbytes);
    else
        c->sound = false;
}

void section_fields(struct cursor *c, struct section *s, uint32_t number)
{
    uint32_t kind_id = s->kind ? s->kind->id : 0;
    field32(c, &kind_id);
    s->kind = kind_by_id(kind_id);
    if (!c->packed || number)
        field32(c, &s->parent);
    field64(c, &s->geometry.capacity);
    field_double(c, &s->geometry.fpr);
    implied64(c, &s->counters.keys);
    implied64(c, &s->counters.failed_adds);
    implied64(c, &s->counters.unmatched_removals);
    implied64(c, &s->body_offset);
    implied64(c, &s->geometry.body_nbytes);
    const unsigned count = !c->packed ? PERHAPS_FIELDS_MAX
                           : s->kind  ? kind_packed_count(s->kind)
                                      : 0;
    for (unsigned i = 0; i < count; i++)
        field64(c, &s->geometry.field[i]);
}
