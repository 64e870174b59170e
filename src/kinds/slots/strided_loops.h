/* strided_loops.h - the loops of strided filters, for one instruction set; each_cpu.h includes
 * it. */
#ifndef STRIDED_LOOPS_NAMES
#define STRIDED_LOOPS_NAMES
#define slots_prefetch FOR_CPU(strided_prefetch)
#define branch         FOR_CPU(branch)
#define find_path      FOR_CPU(find_path)
#define move_along     FOR_CPU(move_along)
#define insert         FOR_CPU(insert)
#define add_by_moves   FOR_CPU(strided_add_by_moves)
#define lanes_of       FOR_CPU(lanes_of)
#define lanes_zero     FOR_CPU(lanes_zero)
#define short_put      FOR_CPU(short_put)
#define long_put       FOR_CPU(long_put)
#define slots_have     FOR_CPU(strided_have)
#define slots_put      FOR_CPU(strided_put)
#endif

/* Prefetches the first and the last byte of each place, which may straddle two cache lines. */
static ALWAYS_INLINE void slots_prefetch(const uint8_t *body, uint64_t nplaces, unsigned width,
                                         struct keyhash key)
{
    struct strided e = strided_of(key, nplaces, width);
    for (unsigned i = 0; i < 2; i++) {
        uint64_t bit = e.place[i] * width;
        PREFETCH(body + (bit >> 3));
        PREFETCH(body + ((bit + (STRIDE_MOST + 1) * width - 1) >> 3));
    }
}

static ALWAYS_INLINE struct lanes lanes_of(const struct strided *e, unsigned width)
{
    uint64_t second = UINT64_C(1) << e->stride * width, ones = 1 | second;
    return (struct lanes){ .ones = ones,
                           .values = 2 * (uint64_t)e->fingerprint * ones | second,
                           .tops = ones << (width - 1) };
}

/* Returns the top bits of those of the two lanes that are zero in 'x'.  The second may be there
 * by mistake, if the first is there rightly: a subtraction borrows upwards. */
static ALWAYS_INLINE uint64_t lanes_zero(uint64_t x, const struct lanes *l)
{
    return (x - l->ones) & ~x & l->tops;
}

static ALWAYS_INLINE bool slots_have(const uint8_t *body, uint64_t nplaces, unsigned width,
                                     struct keyhash key)
{
    struct strided e = strided_of(key, nplaces, width);
    bool found = false;
    if (width <= SHORT_MOST) {
        struct lanes l = lanes_of(&e, width);
        uint64_t first = strided_load(body, e.place[0], width) ^ l.values;
        uint64_t second = strided_load(body, e.place[1], width) ^ l.values;
        return (lanes_zero(first, &l) | lanes_zero(second, &l)) != 0;
    }
    for (unsigned i = 0; i < STRIDED_COPIES; i++)
        found |= strided_get(body, strided_cell(&e, i), width) == strided_value(&e, i);
    return found;
}

/* Puts an entry into an empty cell, the first one of a place if there is a choice.  There is no
 * branch on which place it is. */
static ALWAYS_INLINE bool short_put(uint8_t *body, unsigned width, const struct strided *e)
{
    struct lanes l = lanes_of(e, width);
    uint64_t in_first = lanes_zero(strided_load(body, e->place[0], width), &l);
    uint64_t in_second = lanes_zero(strided_load(body, e->place[1], width), &l);
    if (!(in_first | in_second))
        return false;
    in_first &= -in_first;
    in_second &= -in_second;
    bool to_first = in_first - 1 <= in_second - 1; /* 0 becomes the largest number */
    uint64_t top = to_first ? in_first : in_second;
    uint64_t bit = e->place[!to_first] * width, lane = 2 * top - (top >> (width - 1));
    uint8_t *at = body + (bit >> 3);
    store64(at, load64(at) | (l.values & lane) << (bit & 7));
    return true;
}

static ALWAYS_INLINE bool long_put(uint8_t *body, unsigned width, const struct strided *e)
{
    for (unsigned i = 0; i < STRIDED_COPIES; i++)
        if (strided_get(body, strided_cell(e, i), width) == 0) {
            strided_set(body, strided_cell(e, i), width, strided_value(e, i));
            return true;
        }
    return false;
}

static ALWAYS_INLINE bool slots_put(uint8_t *body, uint64_t nplaces, unsigned width,
                                    struct keyhash key)
{
    struct strided e = strided_of(key, nplaces, width);
    return width <= SHORT_MOST ? short_put(body, width, &e) : long_put(body, width, &e);
}

/* ---- Making room ------------------------------------------------------------------------- */

/* Appends the three steps that the entry in the cell of a step leads to.  Returns whether the
 * last one, which is in the cache already, is empty. */
static bool branch(struct search *s, unsigned at)
{
    unsigned second;
    uint32_t value = strided_get(s->b->bytes, cell_of(s, at), s->width);
    struct strided e = strided_in(cell_of(s, at), value, s->nplaces, &second);
    PREFETCH(s->b->bytes + (e.place[1] * s->width >> 3));
    for (unsigned i = 0; i < BRANCHES; i++)
        append(s, strided_cell(&e, branch_cell[second][i]));
    return strided_get(s->b->bytes, cell_of(s, s->count - 1), s->width) == 0;
}

/* Looks for the nearest empty cell, breadth first, and at a cell of another place STEPS_AHEAD
 * steps after it was prefetched.  Returns its step; or 0 if none of STEPS_MOST is empty.  The
 * bound is needed, since crafted keys can make all paths lead back to the same cells. */
static unsigned find_path(struct search *s)
{
    unsigned looked = FIRST_STEPS;
    for (unsigned at = 0; at < s->count; at++) {
        for (; looked <= at || looked + STEPS_AHEAD < s->count; looked++)
            if (strided_get(s->b->bytes, cell_of(s, looked), s->width) == 0)
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
        uint32_t value = strided_get(body, cell_of(s, parent), s->width);
        struct strided e = strided_in(cell_of(s, parent), value, s->nplaces, &second);
        strided_set(body, cell_of(s, at), s->width,
                    strided_value(&e, branch_cell[second][way]));
        at = parent;
    }
    strided_set(body, cell_of(s, at), s->width, strided_value(new, at));
}

static NOINLINE int insert(const struct body *b, const struct strided *e)
{
    struct search s; /* too large to be set to zero */
    unsigned end = 0, full = 0;
    s.b = b;
    s.nplaces = strided_places(b);
    s.width = (unsigned)b->field[WIDTH];
    s.count = 0;
    for (unsigned i = 0; i < FIRST_STEPS; i++) {
        append(&s, strided_cell(e, i));
        full += strided_get(b->bytes, strided_cell(e, i), s.width) != 0;
        end = full > i ? i + 1 : end; /* as long as all before it are full */
    }
    if (full == FIRST_STEPS && !(end = find_path(&s)))
        return is_full_of(b, e) ? PERHAPS_ERR_COPIES : PERHAPS_ERR_FULL;
    move_along(&s, end, e);
    return 0;
}

/* ---- Many keys --------------------------------------------------------------------------- */

static int add_by_moves(const struct body *b, struct keyhash key)
{
    struct strided e = strided_of(key, strided_places(b), (unsigned)b->field[WIDTH]);
    return insert(b, &e);
}

#include "slot_loops.h"
