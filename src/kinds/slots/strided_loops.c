/* strided_loops.c - the loops of strided filters, for each instruction set. */
#include "strided.h"

unsigned strided_find(const struct body *b, const struct strided *e)
{
    const unsigned width = (unsigned)b->field[WIDTH];
    unsigned found = 0;
    for (unsigned i = 0; i < STRIDED_COPIES; i++)
        found |=
            (unsigned)(strided_get(b->bytes, strided_cell(e, i), width) == strided_value(e, i))
            << i;
    return found;
}

bool strided_remove(const struct body *b, const struct strided *e)
{
    unsigned found = strided_find(b, e);
    if (found)
        strided_set(b->bytes, strided_cell(e, (unsigned)__builtin_ctz(found)),
                    (unsigned)b->field[WIDTH], 0);
    return found != 0;
}

/* ---- Making room ------------------------------------------------------------------------- */

/* A breadth-first search for an empty cell, which writes nothing.  Step i of it looks at the
 * i-th cell.  The first four steps are the cells of the new entry; each step has led to three
 * more, the other cells of the entry in its cell: two in the other place, which are prefetched,
 * and the other one of its own place.  So the array is the queue of the search and its tree at
 * once. */
enum { FIRST_STEPS = STRIDED_COPIES, BRANCHES = 3, STEPS_MOST = 2600, STEPS_AHEAD = 16 };

struct search {
    const struct body *b;
    uint64_t nplaces;
    unsigned width;
    unsigned count;
    uint32_t low[STEPS_MOST]; /* the cells of the steps, in 48 bits */
    uint16_t high[STEPS_MOST];
};

static ALWAYS_INLINE uint64_t cell_of(const struct search *s, unsigned step)
{
    return s->low[step] | (uint64_t)s->high[step] << 32;
}

static ALWAYS_INLINE void append(struct search *s, uint64_t cell)
{
    s->low[s->count] = (uint32_t)cell;
    s->high[s->count++] = (uint16_t)(cell >> 32);
}

/* To which cells of an entry its branches lead, if it lies in the first or in the second cell
 * of its first place: to both of the other place, and to the other one of its own. */
static const uint8_t branch_cell[2][BRANCHES] = { { 2, 3, 1 }, { 2, 3, 0 } };

/* Returns whether all cells of an entry hold copies of it.  If the second cell of one place is
 * the first one of the other, these are three. */
static bool is_full_of(const struct body *b, const struct strided *e)
{
    for (unsigned i = 0, second; i < STRIDED_COPIES; i++) {
        uint64_t cell = strided_cell(e, i);
        uint32_t value = strided_get(b->bytes, cell, (unsigned)b->field[WIDTH]);
        struct strided in = strided_in(cell, value, strided_places(b), &second);
        bool same_places = in.place[0] == e->place[0] || in.place[0] == e->place[1];
        if (in.fingerprint != e->fingerprint || !same_places)
            return false;
    }
    return true;
}

/* ---- The loops --------------------------------------------------------------------------- */

/* What a key would fill of a place, in cells of up to SHORT_MOST bits: a one in the lanes of
 * its two cells, and the values in them.  Other lanes are 0. */
struct lanes {
    uint64_t ones, values, tops;
};

#define slots_size(b)    strided_places(b)
#define SLOTS_NARROW_MAX SHORT_MOST

#define NO_AVX512 1 /* nothing here is wider than a word */
#define LOOPS     "../kinds/slots/strided_loops.h"
#include "../../base/each_cpu.h"

#define AT_CPU(cpu) slot_loops_at_##cpu

const struct slot_loops *strided_loops(enum cpu cpu, unsigned width)
{
    static const struct slot_loops *(*const at[CPU_COUNT])(unsigned) = { EACH_CPU(AT_CPU) };
    return at[cpu](width);
}

int strided_insert(const struct body *b, const struct strided *e)
{
    return insert_scalar(b, e);
}
