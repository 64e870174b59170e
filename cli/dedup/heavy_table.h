/* heavy_table.h - counts lines in bounded memory: finds those that come most often.
 *
 * Misra and Gries, "Finding repeated elements" (1982), in the form of Anderson et al., "A
 * high-performance algorithm for identifying frequent items in data streams" (IMC 2017).
 * Each line has a counter while there is room.  When there is none, the median m of all
 * counters is taken off each of them, and those that come to 0 are dropped: at least half of
 * them.
 *
 * Let 'cut' be the sum of all m.  A counter is at most the true count and at least the true
 * count less 'cut', so a line that came more than 'cut' times has a counter.  Each time at
 * least half of the S counters lose m, and all together they never lose more than the N
 * lines that came; so cut <= 2 N / S.  (Metwally et al., "Efficient computation of frequent
 * and top-k elements in data streams" (2005), need fewer counters for the same promise, but
 * a list in their order.) */
#ifndef HEAVY_TABLE_H
#define HEAVY_TABLE_H

#include <perhaps.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct heavy_slot {
    uint64_t hash;
    uint64_t behind; /* the place of a line, and 1; 0: the slot is empty */
    uint64_t count;
};

struct heavy_table {
    struct heavy_slot *slot;
    size_t nslots; /* a power of two; 0: no memory is taken yet */
    size_t nmost;  /* how many slots there may be */
    size_t count;  /* how many lines it has */
    uint64_t cut;  /* a line that came more often is in the table */
};

/* A line, and how it is compared with the one at a place. */
struct heavy_line {
    uint64_t hash;
    uint64_t place;
    bool (*same)(void *context, uint64_t place, const struct perhaps_key *key);
    void *context;
    const struct perhaps_key *key;
};

/* Makes an empty table that will take at most so many bytes, which are at least
 * HEAVY_LEAST_NBYTES. */
#define HEAVY_LEAST_NBYTES ((uint64_t)64 << 10)
struct heavy_table heavy_table_new(uint64_t nbytes);

/* Fetches from memory what the search for a hash will read first. */
void heavy_table_fetch(const struct heavy_table *table, uint64_t hash);

/* No place. */
#define HEAVY_NONE UINT64_MAX

/* Returns the place of a line with this hash, which may have to be compared, so that it can be
 * fetched; HEAVY_NONE if there is none near where its search begins. */
uint64_t heavy_table_guess(const struct heavy_table *table, uint64_t hash);

/* Counts a line.  Returns false without memory. */
bool heavy_table_count(struct heavy_table *table, const struct heavy_line *line);

/* Sets all counters to 0, and keeps the lines. */
void heavy_table_restart(struct heavy_table *table);

/* Counts a line if it is in the table.  The first one becomes the place of its like. */
void heavy_table_recount(struct heavy_table *table, const struct heavy_line *line);

void heavy_table_free(struct heavy_table *table);

#endif
