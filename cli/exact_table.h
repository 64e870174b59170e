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

/* Places of lines are less than this: 16 TiB. */
#define EXACT_PLACES ((UINT64_C(1) << 44) - 1)

/* No place. */
#define EXACT_NONE UINT64_MAX

struct exact_table {
    uint64_t *slot;
    size_t nslots;
    size_t count, most; /* how many lines it holds, and can hold */
    bool notes;         /* which lines came again */
};

/* Returns how many bytes a table for so many lines takes. */
uint64_t exact_table_nbytes(uint64_t nlines);

/* Makes an empty table for so many lines.  Returns false without memory. */
bool exact_table_make(struct exact_table *table, uint64_t nlines, bool notes);

void exact_table_free(struct exact_table *table);

/* Fetches from memory what exact_table_seek() will read. */
void exact_table_fetch(const struct exact_table *table, const struct perhaps_hashed *hash);

/* Returns the slot at which the search for a line with this hash has to look at a line, or
 * ends. It stays right while lines are put in. */
size_t exact_table_seek(const struct exact_table *table, const struct perhaps_hashed *hash);

/* Returns the place of the line in a slot; EXACT_NONE if it is empty. */
uint64_t exact_table_place(const struct exact_table *table, size_t slot);

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
