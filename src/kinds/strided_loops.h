/* strided_loops.h - the loops of strided filters, for one instruction set; each_cpu.h includes
 * it. */
#ifndef STRIDED_LOOPS_NAMES
#define STRIDED_LOOPS_NAMES
#define slots_prefetch FOR_CPU(strided_prefetch)
#define load_places    FOR_CPU(strided_load_places)
#define slots_have     FOR_CPU(strided_have)
#define slots_put      FOR_CPU(strided_put)
#define prefetch_moves FOR_CPU(strided_prefetch_moves)
#define add_at         FOR_CPU(strided_add_at)
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

/* Reads the four cells of an entry; the bits above a cell may be anything. */
static ALWAYS_INLINE void load_places(const uint8_t *body, unsigned width,
                                      const struct strided *e, uint64_t cell[STRIDED_COPIES])
{
    for (unsigned i = 0; i < STRIDED_COPIES; i += 2) {
        cell[i] = strided_load(body, e->place[i / 2], width);
        cell[i + 1] = width <= SHORT_MOST ? cell[i] >> e->stride * width
                                          : strided_load(body, strided_cell(e, i + 1), width);
    }
}

static ALWAYS_INLINE bool slots_have(const uint8_t *body, uint64_t nplaces, unsigned width,
                                     struct keyhash key)
{
    const uint64_t mask = (UINT64_C(1) << width) - 1;
    struct strided e = strided_of(key, nplaces, width);
    uint64_t cell[STRIDED_COPIES];
    bool found = false;
    load_places(body, width, &e, cell);
    for (unsigned i = 0; i < STRIDED_COPIES; i++)
        found |= ((cell[i] ^ strided_value(&e, i)) & mask) == 0;
    return found;
}

/* Puts the key into the first empty one of its cells.  An empty cell is all zeros, so its bits
 * need not be cleared. */
static ALWAYS_INLINE bool slots_put(uint8_t *body, uint64_t nplaces, unsigned width,
                                    struct keyhash key)
{
    const uint64_t mask = (UINT64_C(1) << width) - 1;
    struct strided e = strided_of(key, nplaces, width);
    uint64_t cell[STRIDED_COPIES];
    unsigned empty = 0;
    load_places(body, width, &e, cell);
    for (unsigned i = 0; i < STRIDED_COPIES; i++)
        empty |= (unsigned)((cell[i] & mask) == 0) << i;
    if (!empty)
        return false;
    unsigned first = (unsigned)__builtin_ctz(empty);
    uint64_t bit = strided_cell(&e, first) * width;
    uint8_t *at = body + (bit >> 3);
    store64(at, load64(at) | (uint64_t)strided_value(&e, first) << (bit & 7));
    return true;
}

/* Prefetches where the entries in the cells of a key could move. */
static ALWAYS_INLINE void prefetch_moves(const uint8_t *body, uint64_t nplaces, unsigned width,
                                         struct keyhash key)
{
    struct strided e = strided_of(key, nplaces, width);
    unsigned second;
    for (unsigned i = 0; i < STRIDED_COPIES; i++) {
        uint64_t cell = strided_cell(&e, i);
        struct strided moving =
            strided_in(cell, strided_get(body, cell, width), nplaces, &second);
        PREFETCH(body + (moving.place[1] * width >> 3));
    }
}

/* Adds the keys for which a cell is empty.  Meanwhile come the cells to which entries of the
 * others could move. */
static ALWAYS_INLINE int add_at(const struct body *b, unsigned width,
                                const struct keyhash *keys, const struct keyhash *ahead,
                                size_t n, size_t *done)
{
    const uint64_t nplaces = strided_places(b);
    uint16_t waiting[BATCH_MOST];
    size_t nwaiting = 0;
    for (size_t i = 0; i < n; i++) {
        slots_prefetch(b->bytes, nplaces, width, ahead[i]);
        if (slots_put(b->bytes, nplaces, width, keys[i]))
            continue;
        prefetch_moves(b->bytes, nplaces, width, keys[i]);
        waiting[nwaiting++] = (uint16_t)i;
    }
    return strided_add_waiting(b, keys, n, waiting, nwaiting, done);
}

#include "slot_loops.h"
