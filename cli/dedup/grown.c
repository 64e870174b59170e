/* grown.c - tables of short hashes, which grow.
 *
 * A table has 'nlines' cache lines.  Each is the home of 'width' short hashes: of short hash h
 * it is line h / width, and the rest h % width is what the line holds.
 *
 *     line, 16 words     entry ... entry | state
 *     entry, 32 bits     step + 1 : 3 | rest : 29                          0: empty
 *     state              reach : 3 | how many entries there are : 4
 *
 * An entry whose home is full takes a step to a line behind it, or up to STEPS of them (1, 3,
 * 6, ... lines from home).  'reach' is the most steps that any entry took which has its home
 * here; FURTHER, if there was one that found no place: it is among the strays, a list, which
 * has some 20 of a million keys, or none.  So most questions read one line.
 *
 * A table is made of width 2^29, and grows by making the lines narrower: by 4/5, 3/4, 5/6, and
 * so on.  Line and rest always tell the whole short hash, so the keys are not needed for it.
 *
 * The widths divide the number of short hashes, so floor(x * nlines / 2^64) of the hash x is
 * the line of the short hash floor(x * nhashes / 2^64). */
#include "grown.h"

#include <stdlib.h>
#include <string.h>

#include "../base/pages.h"

enum { ENTRIES = 15, STATE = ENTRIES, STEPS = 6, FURTHER = STEPS + 1, REACH = 4 };
enum { SPARE = STEPS * (STEPS + 1) / 2 }; /* lines at the end that are nobody's home */
enum { REST_BITS = 29 };
#define STEP ((uint32_t)1 << REST_BITS)

/* Lines of all shards at first: 15 << k, so that the widths divide their short hashes. */
enum { BEGIN = 15 << 13 };

/* Of the entries of a table, so many are used at most; with more, many steps are taken. */
#define LOAD 0.78

/* Keys go through a table in batches: the lines of all of them are fetched first. */
enum { BATCH = 128 };

/* A table that begins with so many lines has as many short hashes as 64 bits can tell, or half
 * of that.  It comes after 10^10 keys of a shard; those behind it take fewer and fewer keys. */
#define LINES_MOST ((uint64_t)1 << (63 - REST_BITS))

/* A number of tables that is never reached: up to LINES_MOST each takes more keys than all
 * before it. */
enum { TABLES_MOST = 32 };

typedef uint32_t lanes __attribute__((vector_size(16)));

struct line {
    union {
        uint32_t word[16];
        lanes lane[4];
    };
};

struct table {
    struct line *line;
    uint64_t nlines, nhashes;
    uint64_t part; /* the width is 5, 4 or 3 times a power of two */
    unsigned shift;
    uint64_t nkeys;
    uint64_t room, most; /* how many keys it takes before it must grow, or be closed */
    uint64_t *stray;     /* short hashes */
    size_t nstrays;
};

struct grown {
    double fpr;
    size_t nshards;
    struct table table[TABLES_MOST];
    size_t count; /* of tables: all but the last one are closed */
    bool starved; /* there was no memory: the tables may lack keys */
};

static uint64_t high_product(uint64_t a, uint64_t b)
{
    __extension__ typedef unsigned __int128 wide;
    return (uint64_t)((wide)a * b >> 64);
}

static uint64_t width_of(const struct table *table)
{
    return table->part << table->shift;
}

static uint32_t entry_of(uint64_t rest, unsigned step)
{
    return (uint32_t)rest + (step + 1) * STEP;
}

/* Returns how many lines from home the step leads. */
static size_t lines_of(unsigned step)
{
    return step * (step + 1) / 2;
}

/* ---- A line -------------------------------------------------------------------------- */

static bool line_has(const struct line *line, uint32_t entry)
{
    const lanes all = { entry, entry, entry, entry };
    typedef uint64_t halves __attribute__((vector_size(16)));
    const halves found = (halves)((line->lane[0] == all) | (line->lane[1] == all) |
                                  (line->lane[2] == all) | (line->lane[3] == all));
    return found[0] | found[1];
}

static bool line_is_full(const struct line *line)
{
    return (line->word[STATE] & ENTRIES) == ENTRIES;
}

static void line_put(struct line *line, uint32_t entry)
{
    line->word[line->word[STATE]++ & ENTRIES] = entry;
}

static unsigned reach_of(const struct line *line)
{
    return line->word[STATE] >> REACH;
}

/* Returns whether it has a place for an entry that is at home, and has sent none away: no other
 * line need be looked at. */
static bool line_is_plain(const struct line *line)
{
    return line->word[STATE] < ENTRIES;
}

/* ---- A table ------------------------------------------------------------------------- */

/* Makes the lines, as many as the width tells. */
static bool make_lines(struct table *table)
{
    table->nlines = table->nhashes / width_of(table);
    table->room = (uint64_t)(LOAD * ENTRIES * (double)table->nlines);
    table->line = pages_new((table->nlines + SPARE) * sizeof *table->line);
    return table->line;
}

static void free_lines(struct table *table)
{
    pages_free(table->line, (table->nlines + SPARE) * sizeof *table->line);
}

static bool add_stray(struct table *table, uint64_t hash)
{
    const size_t n = table->nstrays;
    if (!(n & (n - 1))) {
        uint64_t *more = realloc(table->stray, (n ? 2 * n : 1) * sizeof *more);
        if (!more)
            return false;
        table->stray = more;
    }
    table->stray[table->nstrays++] = hash;
    return true;
}

static bool has_stray(const struct table *table, uint64_t hash)
{
    for (size_t i = 0; i < table->nstrays; i++)
        if (table->stray[i] == hash)
            return true;
    return false;
}

static uint64_t short_hash(const struct table *table, const struct line *home, uint64_t rest)
{
    return (uint64_t)(home - table->line) * width_of(table) + rest;
}

/* Returns whether the table has the entry, as far from home as any has gone. */
static bool has_far(const struct table *table, const struct line *home, uint64_t rest)
{
    const unsigned reach = reach_of(home);
    for (unsigned step = 0; step <= reach && step <= STEPS; step++)
        if (line_has(home + lines_of(step), entry_of(rest, step)))
            return true;
    return reach == FURTHER && has_stray(table, short_hash(table, home, rest));
}

/* Puts an entry in, which the table has not.  Returns false without memory. */
static bool put(struct table *table, struct line *home, uint64_t rest)
{
    unsigned step = 0;
    while (step <= STEPS && line_is_full(home + lines_of(step)))
        step++;
    if (step > reach_of(home))
        home->word[STATE] += (step - reach_of(home)) << REACH;
    if (step == FURTHER)
        return add_stray(table, short_hash(table, home, rest));
    line_put(home + lines_of(step), entry_of(rest, step));
    return true;
}

/* ---- Growing ------------------------------------------------------------------------- */

/* Puts a short hash into a table that is made anew.  'inverse' is 2^64 / part. */
static bool move_hash(struct table *to, uint64_t hash, uint64_t inverse)
{
    const uint64_t line = high_product(hash >> to->shift, inverse);
    const uint64_t rest = hash - line * width_of(to);
    struct line *home = &to->line[line];
    if (!line_is_plain(home))
        return put(to, home, rest);
    line_put(home, entry_of(rest, 0));
    return true;
}

static bool move_line(struct table *to, const struct table *from, uint64_t at, uint64_t inverse)
{
    const struct line *line = &from->line[at];
    const uint64_t width = width_of(from), first = at * width;
    const unsigned n = line->word[STATE] & ENTRIES;
    for (unsigned i = 0; i < n; i++) {
        const uint32_t entry = line->word[i];
        const unsigned step = (entry >> REST_BITS) - 1;
        if (!move_hash(to, first - lines_of(step) * width + entry % STEP, inverse))
            return false;
    }
    return true;
}

/* Moves all to a table with more lines, and gives back the lines that were moved, so that both
 * never take much more than the larger one.  Returns false without memory: the table is then
 * as it was, or has lost keys. */
static bool grow(struct table *table)
{
    struct table to = *table;
    to.shift -= to.part == 3;
    to.part = to.part == 3 ? 5 : to.part - 1;
    to.stray = NULL;
    to.nstrays = 0;
    const uint64_t inverse = UINT64_MAX / to.part + 1;
    char *dropped = (char *)table->line;
    bool ok = make_lines(&to);
    for (uint64_t i = 0; i < table->nlines + SPARE && ok; i++) {
        ok = move_line(&to, table, i, inverse);
        if (i * sizeof *table->line % HUGE_NBYTES == 0)
            dropped = pages_drop(dropped, (char *)&table->line[i]);
    }
    for (size_t i = 0; i < table->nstrays && ok; i++)
        ok = move_hash(&to, table->stray[i], inverse);
    struct table *dead = ok ? table : &to;
    free_lines(dead);
    free(dead->stray);
    if (ok)
        *table = to;
    return ok;
}

/* Opens another table: the next one may use half of what is left of the rate, and takes twice
 * as many keys as the one before it. */
static bool open_table(struct grown *grown)
{
    const struct table *before = grown->count ? &grown->table[grown->count - 1] : NULL;
    const double share = grown->fpr / (double)(UINT64_C(2) << grown->count);
    uint64_t nlines = BEGIN / grown->nshards;
    struct table table = { .part = 4, .shift = REST_BITS - 2 };
    if (grown->count == TABLES_MOST)
        return false;
    while (before && nlines < LINES_MOST &&
           share * (double)(nlines << REST_BITS) < 2 * (double)before->nkeys)
        nlines *= 2;
    table.nhashes = nlines << REST_BITS;
    table.most = (uint64_t)(share * (double)table.nhashes);
    if (!make_lines(&table))
        return false;
    grown->table[grown->count++] = table;
    return true;
}

/* Makes room for so many more keys in the last table. */
static bool make_room(struct grown *grown, size_t count)
{
    const struct table *last = &grown->table[grown->count - 1];
    if (last->nkeys + count > last->most && !open_table(grown))
        return false;
    struct table *table = &grown->table[grown->count - 1];
    return table->nkeys + count <= table->room || grow(table);
}

/* ---- Batches ------------------------------------------------------------------------- */

/* Where the keys of a batch lie in a table. */
struct homes {
    struct line *line[BATCH];
    uint32_t rest[BATCH];
};

static void find_homes(const struct table *table, const struct perhaps_hashed *hash,
                       size_t count, struct homes *homes)
{
    const uint64_t nlines = table->nlines, nhashes = table->nhashes, width = width_of(table);
    for (size_t i = 0; i < count; i++) {
        uint64_t first;
        memcpy(&first, hash[i].bytes, sizeof first);
        const uint64_t line = high_product(first, nlines);
        homes->line[i] = &table->line[line];
        homes->rest[i] = (uint32_t)(high_product(first, nhashes) - line * width);
        __builtin_prefetch(homes->line[i], 1);
    }
}

/* Adds keys to a table with room for them.  Returns how many were added before there was no
 * memory.  Whether a key was there has no branch, since a CPU could not predict it. */
static size_t add_batch(struct table *table, const struct perhaps_hashed *hash, size_t count,
                        bool *was_present)
{
    struct homes homes;
    uint64_t nold = 0;
    size_t i = 0;
    find_homes(table, hash, count, &homes);
    for (; i < count; i++) {
        struct line *home = homes.line[i];
        const uint32_t rest = homes.rest[i], entry = entry_of(rest, 0);
        bool old;
        if (line_is_plain(home)) {
            const uint32_t n = home->word[STATE];
            old = line_has(home, entry);
            home->word[n] = entry & ((uint32_t)old - 1);
            home->word[STATE] = n + !old;
        } else {
            old = has_far(table, home, rest);
            if (!old && !put(table, home, rest))
                break;
        }
        was_present[i] = old;
        nold += old;
    }
    table->nkeys += i - nold;
    return i;
}

/* Leaves those keys that are in no closed table, at the places index[].  Returns how many. */
static size_t leave_new(const struct grown *grown, const struct perhaps_hashed *hash,
                        size_t count, size_t index[BATCH])
{
    struct homes homes;
    bool old[BATCH] = { false };
    size_t n = 0;
    for (size_t t = 0; t + 1 < grown->count; t++) {
        find_homes(&grown->table[t], hash, count, &homes);
        for (size_t i = 0; i < count; i++)
            old[i] |= has_far(&grown->table[t], homes.line[i], homes.rest[i]);
    }
    for (size_t i = 0; i < count; i++) {
        index[n] = i;
        n += !old[i];
    }
    return n;
}

/* add_batch(), where there are closed tables. */
static size_t add_to_last(struct grown *grown, const struct perhaps_hashed *hash, size_t count,
                          bool *was_present)
{
    size_t index[BATCH + 1];
    struct perhaps_hashed left[BATCH] = { { { 0 } } };
    bool old[BATCH];
    const size_t n = leave_new(grown, hash, count, index);
    for (size_t i = 0; i < n; i++)
        left[i] = hash[index[i]];
    const size_t done = add_batch(&grown->table[grown->count - 1], left, n, old);
    memset(was_present, true, count);
    for (size_t i = 0; i < done; i++)
        was_present[index[i]] = old[i];
    return done < n ? index[done] : count;
}

int grown_add(struct grown *grown, const struct perhaps_hashed *hash, size_t count,
              bool *was_present, size_t *done)
{
    size_t n;
    for (*done = 0; *done < count && !grown->starved; *done += n) {
        const size_t batch = count - *done < BATCH ? count - *done : BATCH;
        n = 0;
        if (make_room(grown, batch))
            n = grown->count == 1
                    ? add_batch(&grown->table[0], hash + *done, batch, was_present + *done)
                    : add_to_last(grown, hash + *done, batch, was_present + *done);
        grown->starved = n < batch;
    }
    return grown->starved ? PERHAPS_ERR_MEMORY : 0;
}

/* ---- All tables ---------------------------------------------------------------------- */

struct grown *grown_new(double fpr, size_t nshards)
{
    struct grown *grown = calloc(1, sizeof *grown);
    if (!grown)
        return NULL;
    grown->fpr = fpr;
    grown->nshards = nshards;
    if (open_table(grown))
        return grown;
    free(grown);
    return NULL;
}

void grown_free(struct grown *grown)
{
    for (size_t i = 0; grown && i < grown->count; i++) {
        free_lines(&grown->table[i]);
        free(grown->table[i].stray);
    }
    free(grown);
}

/* While a table takes n keys, its rate grows from 0 to n / nhashes, and is half of it in the
 * mean.  The tables before it have their last rate. */
struct grown_facts grown_facts(const struct grown *grown)
{
    struct grown_facts facts = {
        .capacity = (uint64_t)(LOAD * ENTRIES * BEGIN) / grown->nshards,
    };
    for (size_t i = 0; i < grown->count; i++) {
        const struct table *table = &grown->table[i];
        const double keys = (double)table->nkeys, rate = keys / (double)table->nhashes;
        facts.keys += table->nkeys;
        facts.memory_nbytes += (table->nlines + SPARE) * sizeof *table->line +
                               table->nstrays * sizeof *table->stray;
        facts.expected_losses += keys * (facts.fpr_now + rate / 2);
        facts.fpr_now += rate;
    }
    return facts;
}
