/* heavy_table.c - counts lines in bounded memory: open addressing, linear probing. */
#include "heavy_table.h"

#include <stdlib.h>

#include "../base/pages.h"

/* Of 4 slots 3 are used at most.  While a table is made anew there are two, and the median
 * takes another number for each line. */
enum { USED = 3, OF = 4, LEAST_NSLOTS = 1024 };
#define SLOT_NBYTES (2 * sizeof(struct heavy_slot) + sizeof(uint64_t))

struct heavy_table heavy_table_new(uint64_t nbytes)
{
    struct heavy_table table = { .nmost = LEAST_NSLOTS };
    while (2 * table.nmost * SLOT_NBYTES <= nbytes)
        table.nmost *= 2;
    return table;
}

void heavy_table_free(struct heavy_table *table)
{
    pages_free(table->slot, table->nslots * sizeof *table->slot);
    table->slot = NULL;
}

void heavy_table_fetch(const struct heavy_table *table, uint64_t hash)
{
    if (table->nslots)
        __builtin_prefetch(&table->slot[(size_t)hash & (table->nslots - 1)]);
}

uint64_t heavy_table_guess(const struct heavy_table *table, uint64_t hash)
{
    enum { LOOKS = 3 };
    const size_t mask = table->nslots - 1;
    for (size_t i = 0, at = (size_t)hash & mask; table->nslots && i < LOOKS; i++) {
        const struct heavy_slot *slot = &table->slot[(at + i) & mask];
        if (slot->behind && slot->hash == hash)
            return slot->behind - 1;
    }
    return HEAVY_NONE;
}

/* Returns the slot of the line, or the empty one where its search ends. */
static struct heavy_slot *find_line(const struct heavy_table *table,
                                    const struct heavy_line *line)
{
    const size_t mask = table->nslots - 1;
    for (size_t at = (size_t)line->hash & mask;; at = (at + 1) & mask) {
        struct heavy_slot *slot = &table->slot[at];
        if (!slot->behind || (slot->hash == line->hash &&
                              line->same(line->context, slot->behind - 1, line->key)))
            return slot;
    }
}

/* Moves the lines with more than 'cut' to a table of so many slots, and takes 'cut' off each.
 * Returns false without memory. */
static bool remake(struct heavy_table *table, size_t nslots, uint64_t cut)
{
    struct heavy_slot *slot = pages_new(nslots * sizeof *slot);
    size_t count = 0;
    if (!slot)
        return false;
    for (size_t i = 0; i < table->nslots; i++) {
        const struct heavy_slot *old = &table->slot[i];
        if (!old->behind || old->count <= cut)
            continue;
        size_t at = (size_t)old->hash & (nslots - 1);
        while (slot[at].behind)
            at = (at + 1) & (nslots - 1);
        slot[at] = (struct heavy_slot){ old->hash, old->behind, old->count - cut };
        count++;
    }
    pages_free(table->slot, table->nslots * sizeof *slot);
    table->slot = slot;
    table->nslots = nslots;
    table->count = count;
    table->cut += cut;
    return true;
}

static int by_size(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* Sets *median to the number that at most half of the counters exceed.  Returns false without
 * memory. */
static bool find_median(const struct heavy_table *table, uint64_t *median)
{
    uint64_t *counts = malloc(table->count * sizeof *counts);
    size_t n = 0;
    if (!counts)
        return false;
    for (size_t i = 0; i < table->nslots; i++)
        if (table->slot[i].behind)
            counts[n++] = table->slot[i].count;
    qsort(counts, n, sizeof *counts, by_size);
    *median = counts[n / 2];
    free(counts);
    return true;
}

/* Makes room for another line. */
static bool make_table_room(struct heavy_table *table)
{
    uint64_t median;
    if (!table->nslots)
        return remake(table, LEAST_NSLOTS, 0);
    if (table->count < table->nslots / OF * USED)
        return true;
    if (table->nslots < table->nmost)
        return remake(table, 2 * table->nslots, 0);
    return find_median(table, &median) && remake(table, table->nslots, median);
}

bool heavy_table_count(struct heavy_table *table, const struct heavy_line *line)
{
    if (!make_table_room(table))
        return false;
    struct heavy_slot *slot = find_line(table, line);
    if (!slot->behind) {
        *slot = (struct heavy_slot){ line->hash, line->place + 1, 0 };
        table->count++;
    }
    slot->count++;
    return true;
}

void heavy_table_restart(struct heavy_table *table)
{
    for (size_t i = 0; i < table->nslots; i++)
        table->slot[i].count = 0;
}

void heavy_table_recount(struct heavy_table *table, const struct heavy_line *line)
{
    struct heavy_slot *slot = table->nslots ? find_line(table, line) : NULL;
    if (!slot || !slot->behind)
        return;
    if (slot->count++ == 0)
        slot->behind = line->place + 1;
}
