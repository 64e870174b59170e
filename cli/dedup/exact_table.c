/* exact_table.c - a table of the places of lines: open addressing, linear probing from the
 * beginning of a cache line on.
 *
 *     cache line, 64 bytes     8 tags of 16 bits | 8 places, 32 low bits | 16 high bits of each
 *     16 high bits             came again : 1 | place : 15
 *
 * A slot is a tag, 0 where it is empty, and a place.  The first half of a hash tells in which
 * cache line the search begins, and the highest bits of the second are the tag.  (Its lowest
 * bits have chosen the shard.)  The search looks at the tags up to the first empty one, those
 * of a cache line at once, and at a line only if its tag is the same: of some 9,000 new lines
 * one is compared with another one.  Slots are never emptied, so a search that has passed a
 * slot need not look at it again.
 *
 * At most MOST of DENOMINATOR slots are used.  So most searches end in the cache line in which
 * they began. */
#include "exact_table.h"

#include "../base/pages.h"

enum { MOST = 4, DENOMINATOR = 5 };

static size_t next_slot(const struct exact_table *table, size_t at)
{
    return at + 1 < table->nslots ? at + 1 : 0;
}

static struct exact_slots *slots_at(const struct exact_table *table, size_t at)
{
    return &table->slots[at / EXACT_SLOTS];
}

static uint16_t tag_at(const struct exact_table *table, size_t at)
{
    return slots_at(table, at)->tag[at % EXACT_SLOTS];
}

static void write_slot(struct exact_table *table, size_t at, uint16_t tag, uint64_t place)
{
    struct exact_slots *slots = slots_at(table, at);
    slots->tag[at % EXACT_SLOTS] = tag;
    slots->low[at % EXACT_SLOTS] = (uint32_t)place;
    slots->high[at % EXACT_SLOTS] = (uint16_t)(place >> 32);
}

/* There is always an empty slot, where a search ends. */
static uint64_t nslots_for(uint64_t nlines)
{
    return nlines + nlines / MOST + 2;
}

uint64_t exact_table_nbytes(uint64_t nlines)
{
    return pages_nbytes(nslots_for(nlines) * sizeof(uint64_t));
}

/* What rounding to pages adds is used, too. */
bool exact_table_make(struct exact_table *table, uint64_t nlines, bool notes)
{
    uint64_t nbytes = exact_table_nbytes(nlines);
    struct exact_slots *slots = pages_new(nbytes);
    _Static_assert(sizeof *slots == EXACT_SLOTS * sizeof(uint64_t), "a cache line");
    if (!slots)
        return false;
    *table = (struct exact_table){ .slots = slots,
                                   .nslots = nbytes / sizeof(uint64_t),
                                   .notes = notes };
    table->most = table->nslots - table->nslots / DENOMINATOR - 1;
    return true;
}

void exact_table_free(struct exact_table *table)
{
    pages_free(table->slots, table->nslots * sizeof(uint64_t));
    *table = (struct exact_table){ 0 };
}

enum exact_met exact_table_meet(struct exact_table *table, const struct exact_line *line)
{
    const uint16_t wanted = exact_tag(line->hash);
    size_t at = line->seek;
    for (uint16_t tag; (tag = tag_at(table, at)); at = next_slot(table, at))
        if (tag == wanted && line->same(line->context, exact_place_at(table, at), line->key)) {
            if (table->notes)
                slots_at(table, at)->high[at % EXACT_SLOTS] |= EXACT_AGAIN;
            return EXACT_REPEATED;
        }
    if (table->count == table->most)
        return EXACT_FULL;
    write_slot(table, at, wanted, line->place);
    table->count++;
    return EXACT_NEW;
}

bool exact_table_came_once(const struct exact_table *table, const struct perhaps_hashed *hash,
                           uint64_t place)
{
    for (size_t at = exact_first_slot(table, hash); tag_at(table, at);
         at = next_slot(table, at))
        if (exact_place_at(table, at) == place)
            return !(slots_at(table, at)->high[at % EXACT_SLOTS] & EXACT_AGAIN);
    return false;
}
