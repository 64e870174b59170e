/* lines_walks.c - the table of all walks through a line. */
#include "lines.h"

static struct walks walks[LINE_WORDS] __attribute__((aligned(64)));

/* If several threads get here at once, they write the same numbers. */
const struct walks *lines_table(uint64_t picks)
{
    static bool filled[LINE_WORDS];
    struct walks *w = &walks[picks - 1];
    if (__atomic_load_n(&filled[picks - 1], __ATOMIC_ACQUIRE))
        return w;
    for (unsigned i = 0; i < LINE_WORDS; i++)
        __atomic_store_n(&w->ones[i], 1, __ATOMIC_RELAXED);
    for (unsigned walk = 0; walk < WALK_COUNT; walk++)
        for (unsigned i = 0; i < picks; i++) {
            struct blocked_walk at = blocked_walk_start((uint64_t)walk << WALK_SHIFT);
            unsigned word = (at.word + i * at.stride) % LINE_WORDS;
            __atomic_store_n(&w->row[walk][word], blocked_factors[i], __ATOMIC_RELAXED);
        }
    __atomic_store_n(&filled[picks - 1], true, __ATOMIC_RELEASE);
    return w;
}
