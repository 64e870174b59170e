/* exact_table.h - which lines came before, without an error: a table of the places of lines.
 *
 * Two lines are the same only if their bytes are, which the caller compares.  The hashes
 * must be uniform, or the table is slow; but it is right with any. */
#ifndef EXACT_TABLE_H
#define EXACT_TABLE_H

#include <perhaps.h>
#include <perhaps_fast.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Places of lines are less than this: 16 TiB. */
#define EXACT_PLACES ((UINT64_C(1) << 44) - 1)

/* No place. */
#define EXACT_NONE UINT64_MAX

/* A cache line of slots. */
enum { EXACT_SLOTS = 8, EXACT_AGAIN = 0x8000 };
struct exact_slots {
    uint16_t tag[EXACT_SLOTS];
    uint32_t low[EXACT_SLOTS];
    uint16_t high[EXACT_SLOTS];
};

struct exact_table {
    struct exact_slots *slots;
    size_t nslots;
    size_t count, most; /* how many lines it holds, and can hold */
    bool notes;         /* which lines came again */
};

/* Returns how many bytes a table for so many lines takes. */
uint64_t exact_table_nbytes(uint64_t nlines);

/* Makes an empty table for so many lines.  Returns false without memory. */
bool exact_table_make(struct exact_table *table, uint64_t nlines, bool notes);

void exact_table_free(struct exact_table *table);

/* Returns the slot at which the search for a hash begins: hash * lines / 2^64 is its line. */
static inline size_t exact_first_slot(const struct exact_table *table,
                                      const struct perhaps_hashed *hash)
{
    __extension__ typedef unsigned __int128 wide;
    uint64_t first;
    memcpy(&first, hash->bytes, sizeof first);
    return (size_t)(((wide)first * (table->nslots / EXACT_SLOTS)) >> 64) * EXACT_SLOTS;
}

/* Returns the highest bits of a hash, but 1 for 0. */
static inline uint16_t exact_tag(const struct perhaps_hashed *hash)
{
    uint16_t tag;
    memcpy(&tag, hash->bytes + sizeof *hash - sizeof tag, sizeof tag);
    return tag ? tag : 1;
}

/* Fetches from memory what exact_table_seek() will read. */
static inline void exact_table_fetch(const struct exact_table *table,
                                     const struct perhaps_hashed *hash)
{
    __builtin_prefetch(&table->slots[exact_first_slot(table, hash) / EXACT_SLOTS]);
}

/* Returns a byte for each slot of a cache line, the first one lowest: not 0 if a search for the
 * tag stops there.  It has no branch, since a CPU cannot predict in which slot that is. */
static inline uint64_t exact_stops(const struct exact_slots *slots, uint16_t tag)
{
    typedef uint16_t tags __attribute__((vector_size(16)));
    typedef uint8_t bytes __attribute__((vector_size(8)));
    tags all;
    uint64_t stops;
    memcpy(&all, slots->tag, sizeof all);
    bytes found = __builtin_convertvector((tags)((all == tag) | (all == 0)), bytes);
    memcpy(&stops, &found, sizeof stops);
    return stops;
}

/* Returns the slot at which the search for a line with this hash has to look at a line, or
 * ends. It stays right while lines are put in. */
static inline size_t exact_table_seek(const struct exact_table *table,
                                      const struct perhaps_hashed *hash)
{
    const uint16_t tag = exact_tag(hash);
    size_t at = exact_first_slot(table, hash);
    uint64_t stops;
    while (!(stops = exact_stops(&table->slots[at / EXACT_SLOTS], tag)))
        at = at + EXACT_SLOTS < table->nslots ? at + EXACT_SLOTS : 0;
    return at + (size_t)__builtin_ctzll(stops) / 8;
}

/* Returns the place in a slot that is not empty. */
static inline uint64_t exact_place_at(const struct exact_table *table, size_t slot)
{
    const struct exact_slots *slots = &table->slots[slot / EXACT_SLOTS];
    const uint64_t high = slots->high[slot % EXACT_SLOTS] & (EXACT_AGAIN - 1);
    return high << 32 | slots->low[slot % EXACT_SLOTS];
}

/* Returns the place of the line in a slot; EXACT_NONE if it is empty. */
static inline uint64_t exact_table_place(const struct exact_table *table, size_t slot)
{
    return table->slots[slot / EXACT_SLOTS].tag[slot % EXACT_SLOTS]
               ? exact_place_at(table, slot)
               : EXACT_NONE;
}

/* A line, and how it is compared with the one at a place. */
struct exact_line {
    const struct perhaps_hashed *hash;
    size_t seek; /* of its hash */
    uint64_t place;
    bool (*same)(void *context, uint64_t place, const struct perhaps_key *key);
    void *context;
    const struct perhaps_key *key;
};

enum exact_met { EXACT_NEW, EXACT_REPEATED, EXACT_FULL };

/* Returns whether the line is there already, and then notes that it came again if the table
 * 'notes' that; if it is not there, puts it in.  Changes nothing if the table is full. */
enum exact_met exact_table_meet(struct exact_table *table, const struct exact_line *line);

/* Returns whether the line at this place is in the table and, for all that was noted, never
 * came again.  So it is false of all lines that are not the first of their like. */
bool exact_table_came_once(const struct exact_table *table, const struct perhaps_hashed *hash,
                           uint64_t place);

#endif
