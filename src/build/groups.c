/* groups.c - which bits suit each group of keys.
 *
 * Of n listed keys of a group beside m others, a first part of r bits takes n r bits, and the
 * last one n + m / 2^r; or, if the part is over those that are not listed, m r and m + n /
 * 2^r.  Both are least where the larger side is some 2^(r + 1/2) times the smaller one.  The
 * last part alone takes n + m; where one side is empty nothing is needed.  But each part has
 * its own room to spare, and each group that is told its entry in the table: so the smaller the
 * set, the fewer parts pay, and many small groups are stored alike.
 *
 * All costs are linear in n and m.  So groups of nearly the same ratio count as one. */
#include "groups.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../base/bytes.h"
#include "../base/memory.h"
#include "../kinds/built/against.h"
#include "../kinds/kinds.h"

#define GROUPS_MOST (UINT64_C(1) << 20)

/* The bits of an entry of the table. */
enum { ENTRY_BITS = 40 };

/* ---- The table of groups ----------------------------------------------------------------- */

static struct group *slot_of(const struct groups *all, uint32_t number)
{
    uint64_t at = number * ODD_GOLDEN >> 32;
    while (all->at[at & (all->room - 1)].code && all->at[at & (all->room - 1)].number != number)
        at++;
    return &all->at[at & (all->room - 1)];
}

/* Makes the table larger.  Returns false, having changed nothing, if there is no memory. */
static bool grow(struct groups *all, const struct perhaps_allocator *allocator)
{
    const struct groups old = *all;
    const uint64_t room = old.room ? 2 * old.room : 64;
    struct group *at = allocate(allocator, room * sizeof *at);
    if (!at)
        return false;
    all->at = at;
    all->room = room;
    for (uint64_t i = 0; i < old.room; i++)
        if (old.at[i].code)
            *slot_of(all, old.at[i].number) = old.at[i];
    release(allocator, old.at, old.room * sizeof *at);
    return true;
}

struct group *groups_find(struct groups *all, uint32_t number, bool adds,
                          const struct perhaps_allocator *allocator)
{
    struct group *group = all->room ? slot_of(all, number) : NULL;
    if (group && group->code)
        return group;
    if (!adds || all->n >= GROUPS_MOST)
        return &all->rest;
    if (2 * all->n >= all->room && !grow(all, allocator))
        return NULL;
    group = slot_of(all, number);
    all->n++;
    *group = (struct group){ .number = number, .code = GROUP_NONE };
    return group;
}

void groups_end(struct groups *all, const struct perhaps_allocator *allocator)
{
    release(allocator, all->at, all->room * sizeof *all->at);
    all->at = NULL;
}

/* ---- What a group takes ------------------------------------------------------------------ */

/* What may be chosen. */
struct choices {
    unsigned least; /* no first part has fewer bits; 0: the last one alone will do */
    bool flips;     /* a part may be over keys that are not listed */
    bool has[GROUPS_PARTS_MOST + 1]; /* parts of so many bits; [0] does not matter */
};

/* A way to store keys: 'bits' 0 stands for the last part alone. */
struct way {
    unsigned bits;
    bool flipped;
};

/* Returns how many bits a set takes in this way, without what parts have to spare. */
static double way_cost(double listed, double others, struct way way)
{
    const double few = way.flipped ? others : listed, many = way.flipped ? listed : others;
    return few * (way.bits + 1) + ldexp(many, -(int)way.bits);
}

/* Returns the best way.  There is one: a choice has parts, or the last one alone will do. */
static struct way best_way(double listed, double others, const struct choices *choices)
{
    struct way best = { 0 };
    double least = choices->least ? INFINITY : listed + others;
    for (unsigned bits = 1; bits <= GROUPS_PARTS_MOST; bits++)
        for (unsigned flipped = 0; choices->has[bits] && flipped <= choices->flips; flipped++) {
            struct way way = { bits, flipped };
            double cost = way_cost(listed, others, way);
            if (cost < least) {
                least = cost;
                best = way;
            }
        }
    return best;
}

/* Returns whether nothing need be stored. */
static bool is_trivial(const struct group *group, const struct choices *choices)
{
    return !group->listed || (!group->others && choices->flips);
}

/* ---- Which parts there are --------------------------------------------------------------- */

/* Groups of nearly the same ratio. */
enum { STEPS = 4, OCTAVES = 64, ALIKE = 2 * STEPS * OCTAVES };

struct alike {
    double listed, others;
};

static void add_alike(struct alike *alike, const struct group *group,
                      const struct choices *choices)
{
    if (is_trivial(group, choices))
        return;
    const double listed = (double)group->listed, others = (double)group->others;
    const double octave = log2((others + 0.5) / listed);
    struct alike *same = &alike[(int)floor(octave * STEPS) + STEPS * OCTAVES];
    same->listed += listed;
    same->others += others;
}

/* Returns of how many bits a ribbon is. */
static double ribbon_bits(double keys, unsigned bits)
{
    const struct perhaps_options none = { 0 };
    struct geometry g = { .capacity = (uint64_t)fmax(keys, 1), .fpr = ldexp(1.25, -(int)bits) };
    char why[WHY_NBYTES];
    return geometry_plan(kind_by_name("ribbon"), &none, &g, why) ? INFINITY
                                                                 : 8.0 * (double)g.body_nbytes;
}

/* Returns how many bits all parts take. */
static double parts_cost(const struct alike *alike, const struct choices *choices)
{
    double keys[GROUPS_PARTS_MOST + 1] = { 0 }, last = 0, cost;
    for (unsigned i = 0; i < ALIKE; i++) {
        const double listed = alike[i].listed, others = alike[i].others;
        if (listed == 0 && others == 0)
            continue;
        const struct way way = best_way(listed, others, choices);
        const double few = way.flipped ? others : listed;
        keys[way.bits] += few;
        last += way_cost(listed, others, way) - few * way.bits;
    }
    cost = ribbon_bits(last, 1);
    for (unsigned bits = 1; bits <= GROUPS_PARTS_MOST; bits++)
        if (keys[bits] > 0)
            cost += ribbon_bits(keys[bits], bits);
    return cost;
}

static unsigned count_parts(const struct choices *choices)
{
    unsigned n = 0;
    for (unsigned bits = 1; bits <= GROUPS_PARTS_MOST; bits++)
        n += choices->has[bits];
    return n;
}

/* Leaves out one part after the other, always the one that is missed least, as long as that
 * makes the whole no larger. */
static void choose_parts(const struct alike *alike, struct choices *choices)
{
    double least = parts_cost(alike, choices);
    for (unsigned out = 1; out && count_parts(choices) > (choices->least > 0);) {
        out = 0;
        for (unsigned bits = 1; bits <= GROUPS_PARTS_MOST; bits++) {
            if (!choices->has[bits])
                continue;
            choices->has[bits] = false;
            double cost = parts_cost(alike, choices);
            choices->has[bits] = true;
            if (cost <= least) {
                least = cost;
                out = bits;
            }
        }
        choices->has[out] = false;
    }
}

/* ---- The codes --------------------------------------------------------------------------- */

static unsigned code_of(const struct groups *all, struct way way)
{
    unsigned part = 0;
    if (!way.bits)
        return GROUP_EXACT;
    while (all->bits[part] != way.bits)
        part++;
    return GROUP_PARTS + 2 * part + way.flipped;
}

/* Sets the code of a group, if it is told.  Returns how many bits it takes beside its entry. */
static double tell(const struct groups *all, struct group *group, const struct choices *choices)
{
    const double listed = (double)group->listed, others = (double)group->others;
    if (is_trivial(group, choices)) {
        group->code = group->listed ? GROUP_ALL : GROUP_NONE;
        return 0;
    }
    const struct way way = best_way(listed, others, choices);
    group->code = (uint8_t)code_of(all, way);
    return way_cost(listed, others, way);
}

/* Returns how many bits a group takes with the code of the rest, in this way; NULL: no key of
 * it is listed. */
static double untold_cost(const struct group *group, const struct way *way)
{
    if (!way)
        return group->listed ? INFINITY : 0;
    return way_cost((double)group->listed, (double)group->others, *way);
}

/* Tells each group of its own way, if that is worth the entry, and leaves it to the rest
 * otherwise. Returns the bits of all. */
static double tell_all(struct groups *all, const struct way *rest,
                       const struct choices *choices)
{
    double cost = untold_cost(&all->rest, rest);
    all->rest.code = (uint8_t)(rest ? code_of(all, *rest) : GROUP_NONE);
    for (uint64_t i = 0; i < all->room; i++) {
        struct group *group = &all->at[i];
        if (!group->code)
            continue;
        const double own = tell(all, group, choices) + ENTRY_BITS;
        const double untold = untold_cost(group, rest);
        if (untold <= own)
            group->code = all->rest.code;
        cost += fmin(own, untold);
    }
    return cost;
}

static void list_parts(struct groups *all, const struct choices *choices)
{
    all->nparts = 0;
    for (unsigned bits = 1; bits <= GROUPS_PARTS_MOST; bits++)
        if (choices->has[bits])
            all->bits[all->nparts++] = bits;
}

/* Tells all with this way for the rest, for which there is a part then.  Returns the bits of
 * all, with what a part more has to spare. */
static double try_rest(struct groups *all, struct way rest, struct choices choices)
{
    const double some = 1000; /* keys */
    double spare = 0;
    if (rest.bits && !choices.has[rest.bits])
        spare = ribbon_bits(some, rest.bits) - some * rest.bits;
    choices.has[rest.bits] = true;
    list_parts(all, &choices);
    return tell_all(all, &rest, &choices) + spare;
}

/* Chooses how the rest is stored, and tells all others. */
static void choose_rest(struct groups *all, const struct choices *choices)
{
    list_parts(all, choices);
    double least = tell_all(all, NULL, choices);
    struct way best = { .flipped = true }; /* which is none */
    for (unsigned bits = choices->least; bits <= GROUPS_PARTS_MOST; bits++) {
        const struct way rest = { .bits = bits };
        const double cost = try_rest(all, rest, *choices);
        if (cost < least) {
            least = cost;
            best = rest;
        }
    }
    if (!best.flipped) {
        try_rest(all, best, *choices);
        return;
    }
    list_parts(all, choices);
    tell_all(all, NULL, choices);
}

void groups_choose(struct groups *all, double fpr)
{
    const double least = fmin(fmax(ceil(-log2(fpr)) - 1, 0), GROUPS_PARTS_MOST);
    struct choices choices = { .least = (unsigned)least, .flips = fpr > 0.5 };
    struct alike alike[ALIKE] = { { 0 } };
    for (unsigned bits = 1; bits <= GROUPS_PARTS_MOST; bits++)
        choices.has[bits] = bits >= choices.least;
    for (uint64_t i = 0; i < all->room; i++)
        add_alike(alike, &all->at[i], &choices);
    add_alike(alike, &all->rest, &choices);
    choose_parts(alike, &choices);
    choose_rest(all, &choices);
}

uint64_t groups_told(const struct groups *all)
{
    uint64_t n = 0;
    for (uint64_t i = 0; i < all->room; i++)
        n += all->at[i].code && all->at[i].code != all->rest.code;
    return n;
}

static int compare_groups(const void *a, const void *b)
{
    const uint32_t x = ((const struct group *)a)->number, y = ((const struct group *)b)->number;
    return (x > y) - (x < y);
}

void groups_sort(const struct groups *all, struct group *sorted)
{
    uint64_t n = 0;
    for (uint64_t i = 0; i < all->room; i++)
        if (all->at[i].code && all->at[i].code != all->rest.code)
            sorted[n++] = all->at[i];
    qsort(sorted, n, sizeof *sorted, compare_groups);
}
