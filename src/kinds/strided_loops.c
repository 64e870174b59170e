/* strided_loops.c - the loops of strided filters, for each instruction set, and the search for
 * room when all cells of a key are full. */
#include "strided.h"

unsigned strided_find(const struct body *b, const struct strided *e)
{
    const unsigned width = (unsigned)b->field[WIDTH];
    unsigned found = 0;
    for (unsigned i = 0; i < STRIDED_COPIES; i++)
        found |= (unsigned)(strided_get(b->bytes, strided_cell(e, i), width) ==
                            strided_value(e, i))
                 << i;
    return found;
}

/* ---- Making room ------------------------------------------------------------------------- */

/* A breadth-first search for an empty cell, which writes nothing.  Step i of it looks at
 * cell[i].  The first four steps are the cells of the new entry; each step has led to three
 * more, the other cells of the entry in its cell: two in the other place, which are prefetched,
 * and the other one of its own place.  So the array is the queue of the search and its tree at
 * once. */
enum { FIRST_STEPS = STRIDED_COPIES, BRANCHES = 3, STEPS_MOST = 1536, STEPS_AHEAD = 16 };

struct search {
    const struct body *b;
    uint64_t nplaces;
    unsigned width;
    unsigned count;
    uint64_t cell[STEPS_MOST];
};

/* The cell i of an entry, beginning with the one where it lies, is the (i - 1)-th branch. */
static const uint8_t branch_cell[2][BRANCHES] = { { 2, 3, 1 }, { 2, 3, 0 } };

/* Appends the three steps that the entry in the cell of a step leads to.  Returns whether the
 * last one, which is in the cache already, is empty. */
static bool branch(struct search *s, unsigned at)
{
    unsigned second;
    uint32_t value = strided_get(s->b->bytes, s->cell[at], s->width);
    struct strided e = strided_in(s->cell[at], value, s->nplaces, &second);
    PREFETCH(s->b->bytes + (e.place[1] * s->width >> 3));
    for (unsigned i = 0; i < BRANCHES; i++)
        s->cell[s->count++] = strided_cell(&e, branch_cell[second][i]);
    return strided_get(s->b->bytes, s->cell[s->count - 1], s->width) == 0;
}

/* Looks for the nearest empty cell, breadth first, and at a cell of another place STEPS_AHEAD
 * steps after it was prefetched.  Returns its step; or 0 if none of STEPS_MOST is empty.  The
 * bound is needed, since crafted keys can make all paths lead back to the same cells. */
static unsigned find_path(struct search *s)
{
    unsigned looked = FIRST_STEPS;
    for (unsigned at = 0; at < s->count; at++) {
        for (; looked <= at || looked + STEPS_AHEAD < s->count; looked++)
            if (strided_get(s->b->bytes, s->cell[looked], s->width) == 0)
                return looked;
        if (s->count + BRANCHES <= STEPS_MOST && branch(s, at))
            return s->count - 1;
    }
    return 0;
}

/* Moves the entries along the path to an empty cell, the last one first, and puts the new one
 * into the cell where the path begins.  No cell is twice on a path: the search would have gone
 * on from its first occurrence, which is the shorter way. */
static void move_along(const struct search *s, unsigned end, const struct strided *new)
{
    uint8_t *body = s->b->bytes;
    unsigned at = end, second;
    while (at >= FIRST_STEPS) {
        unsigned parent = (at - FIRST_STEPS) / BRANCHES, way = (at - FIRST_STEPS) % BRANCHES;
        uint32_t value = strided_get(body, s->cell[parent], s->width);
        struct strided e = strided_in(s->cell[parent], value, s->nplaces, &second);
        strided_set(body, s->cell[at], s->width, strided_value(&e, branch_cell[second][way]));
        at = parent;
    }
    strided_set(body, s->cell[at], s->width, strided_value(new, at));
}

NOINLINE int strided_insert(const struct body *b, const struct strided *e)
{
    struct search s; /* too large to be set to zero */
    unsigned end = 0, full = 0;
    s.b = b;
    s.nplaces = strided_places(b);
    s.width = (unsigned)b->field[WIDTH];
    s.count = FIRST_STEPS;
    for (unsigned i = 0; i < FIRST_STEPS; i++) {
        s.cell[i] = strided_cell(e, i);
        full += strided_get(b->bytes, s.cell[i], s.width) != 0;
        end = full > i ? i + 1 : end; /* as long as all before it are full */
    }
    if (full == FIRST_STEPS && !(end = find_path(&s)))
        return strided_find(b, e) == (1U << STRIDED_COPIES) - 1 ? PERHAPS_ERR_COPIES
                                                                : PERHAPS_ERR_FULL;
    move_along(&s, end, e);
    return 0;
}

/* ---- Many keys --------------------------------------------------------------------------- */

static int add_by_moves(const struct body *b, struct keyhash key)
{
    struct strided e = strided_of(key, strided_places(b), (unsigned)b->field[WIDTH]);
    return strided_insert(b, &e);
}

bool strided_remove(const struct body *b, const struct strided *e)
{
    unsigned found = strided_find(b, e);
    if (found)
        strided_set(b->bytes, strided_cell(e, (unsigned)__builtin_ctz(found)),
                    (unsigned)b->field[WIDTH], 0);
    return found != 0;
}

static void take_out(const struct body *b, struct keyhash key)
{
    struct strided e = strided_of(key, strided_places(b), (unsigned)b->field[WIDTH]);
    strided_remove(b, &e);
}

/* Adds n keys in order.  Returns what add() of the kind returns. */
static int add_in_order(const struct body *b, const struct keyhash *keys, size_t n,
                        size_t *done)
{
    int error = 0;
    for (*done = 0; *done < n && !(error = add_by_moves(b, keys[*done]));)
        ++*done;
    return error;
}

/* Adds those of n keys that wait, in order, when all others have been added.  If one of them
 * has no room, those behind it are taken out again and added in order, since they may be in its
 * way. */
static NOINLINE int strided_add_waiting(const struct body *b, const struct keyhash *keys,
                                        size_t n, const uint16_t *waiting, size_t nwaiting,
                                        size_t *done)
{
    for (size_t w = 0; w < nwaiting; w++) {
        const size_t at = waiting[w];
        if (!add_by_moves(b, keys[at]))
            continue;
        for (size_t i = at + 1; i < n; i++)
            if (w + 1 < nwaiting && waiting[w + 1] == i)
                w++;
            else
                take_out(b, keys[i]);
        int error = add_in_order(b, keys + at, n - at, done);
        *done += at;
        return error;
    }
    *done = n;
    return 0;
}

/* ---- The loops --------------------------------------------------------------------------- */

#define slots_size(b)    strided_places(b)
#define SLOTS_NARROW_MAX SHORT_MOST

#define NO_AVX512 1 /* nothing here is wider than a word */
#define LOOPS     "../kinds/strided_loops.h"
#include "../base/each_cpu.h"

#define AT_CPU(cpu) slot_loops_at_##cpu

const struct slot_loops *strided_loops(enum cpu cpu, unsigned width)
{
    static const struct slot_loops *(*const at[CPU_COUNT])(unsigned) = { EACH_CPU(AT_CPU) };
    return at[cpu](width);
}
