/* distinct.c - counts different keys by HyperLogLog. */
#include "distinct.h"

#include <math.h>
#include <stdatomic.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

enum { RANK_MAX = 64 - DISTINCT_BITS };

/* Raises a counter.  It grows only a few times in all, so threads hardly ever meet here. */
static void raise_to(_Atomic uint8_t *counter, uint8_t rank)
{
    uint8_t before = atomic_load_explicit(counter, memory_order_relaxed);
    while (before < rank &&
           !atomic_compare_exchange_weak_explicit(counter, &before, rank, memory_order_relaxed,
                                                  memory_order_relaxed))
        continue;
}

/* The highest bits of the hash choose the counter.  The rank is the place of the first 1 among
 * the other bits; a 1 behind them ends the search. */
bool distinct_add(void *context, struct block *block)
{
    struct distinct *distinct = context;
    for (size_t i = 0; i < block->count; i++) {
        uint64_t hash = XXH3_64bits(block->key[i].bytes, block->key[i].nbytes);
        uint64_t rest = hash << DISTINCT_BITS | UINT64_C(1) << (DISTINCT_BITS - 1);
        uint8_t rank = (uint8_t)(__builtin_clzll(rest) + 1);
        raise_to(&distinct->rank[hash >> (64 - DISTINCT_BITS)], rank);
    }
    return true;
}

/* Returns x and the sum over k >= 1 of 2^(k-1) x^(2^k), where x is the share of counters that
 * are still zero. */
static double sigma(double x)
{
    double sum = x, before, weight = 1;
    if (x == 1)
        return INFINITY;
    do {
        before = sum;
        x *= x;
        sum += x * weight;
        weight *= 2;
    } while (sum != before);
    return sum;
}

/* Returns about how many keys differ.  The standard deviation is DISTINCT_DEVIATION of it. */
#define DISTINCT_DEVIATION (1.04 / 256) /* 1.04 / sqrt(counters) */
static double distinct_estimate(const struct distinct *distinct)
{
    const double counters = DISTINCT_COUNTERS;
    double count[RANK_MAX + 2] = { 0 };
    for (unsigned i = 0; i < DISTINCT_COUNTERS; i++)
        count[atomic_load_explicit(&distinct->rank[i], memory_order_relaxed)]++;
    double z = 0; /* counters at their end are left out: they add one in 2^48 keys */
    for (unsigned rank = RANK_MAX; rank >= 1; rank--)
        z = (z + count[rank]) / 2;
    z += counters * sigma(count[0] / counters);
    return counters / (2 * log(2)) * counters / z;
}

uint64_t distinct_bound(const struct distinct *distinct)
{
    return (uint64_t)ceil(distinct_estimate(distinct) * (1 + 6 * DISTINCT_DEVIATION)) + 64;
}

uint64_t distinct_least(const struct distinct *distinct)
{
    double least = distinct_estimate(distinct) * (1 - 6 * DISTINCT_DEVIATION) - 64;
    return least > 0 ? (uint64_t)least : 0;
}
