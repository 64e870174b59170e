/* atomic.c - adds for bodies that others write at the same moment.
 *
 * A bit is looked at first, and set by an atomic OR only if it is missing: an atomic operation
 * costs as much as ten others, and each waits for the one before. */
#include "layout.h"

struct line_rule {
    unsigned bits;
};

static inline struct line_rule line_rule(unsigned bits)
{
    return (struct line_rule){ .bits = bits };
}

static inline bool line_has(const uint8_t *line, uint64_t mark, const struct line_rule *rule)
{
    const uint32_t *words = (const void *)line;
    struct blocked_walk walk = blocked_walk_start(mark);
    bool all = true;
    for (unsigned i = 0; i < rule->bits && all; i++) {
        uint32_t word = __atomic_load_n(&words[walk.word], __ATOMIC_RELAXED);
        all = word >> blocked_bit(walk.factor, i) & 1;
        walk.word = (walk.word + walk.stride) & (LINE_WORDS - 1);
    }
    return all;
}

static inline bool line_add(uint8_t *line, uint64_t mark, const struct line_rule *rule)
{
    uint32_t *words = (void *)line;
    struct blocked_walk walk = blocked_walk_start(mark);
    bool all = true;
    for (unsigned i = 0; i < rule->bits; i++) {
        uint32_t *at = &words[walk.word];
        uint32_t bit = UINT32_C(1) << blocked_bit(walk.factor, i);
        if (!(__atomic_load_n(at, __ATOMIC_RELAXED) & bit))
            all &= (__atomic_fetch_or(at, bit, __ATOMIC_RELEASE) & bit) != 0;
        walk.word = (walk.word + walk.stride) & (LINE_WORDS - 1);
    }
    return all;
}

#define RETURN_FOR_BITS(bits, call) return call((unsigned)(bits));
#include "blocked.h"

#define BYTE_ADD
static inline unsigned byte_add(uint8_t *at, unsigned mask)
{
    if (__atomic_load_n(at, __ATOMIC_RELAXED) & mask)
        return 0;
    return ~(unsigned)__atomic_fetch_or(at, (uint8_t)mask, __ATOMIC_RELEASE) & mask;
}

#include "bloom.h"

const struct kernels kernels_atomic = {
    .name = "atomic",
    .blocked = BLOCKED_LOOPS,
    .bloom = BLOOM_LOOPS,
};
