/* HyperLogLog (Flajolet et al., AofA 2007) with the estimator of Ertl, "New cardinality
 * estimation algorithms for HyperLogLog sketches" (2017), which has no bias at any size. */
#include "distinct.h"

#include <math.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

enum { RANK_MAX = 64 - DISTINCT_BITS };

/* A counter grows a few times in all, so threads hardly ever meet here. */
static void raise_to(_Atomic uint8_t *counter, uint8_t rank)
{
    uint8_t before = atomic_load_explicit(counter, memory_order_relaxed);
    while (before < rank &&
           !atomic_compare_exchange_weak_explicit(counter, &before, rank, memory_order_relaxed,
                                                  memory_order_relaxed))
        continue;
}

void distinct_add(struct distinct *distinct, const struct perhaps_key *keys, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        uint64_t hash = XXH3_64bits(keys[i].bytes, keys[i].nbytes);
        uint64_t rest = hash << DISTINCT_BITS | UINT64_C(1) << (DISTINCT_BITS - 1);
        uint8_t rank = (uint8_t)(__builtin_clzll(rest) + 1);
        raise_to(&distinct->rank[hash >> (64 - DISTINCT_BITS)], rank);
    }
}

/* Sum over k >= 0 of 2^(k-1) x^(2^k), and x: the share x of counters that are still zero. */
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

/* The same for counters that cannot grow any more: 1 - x is their share. */
static double tau(double x)
{
    double sum = 1 - x, before, weight = 1;
    if (x == 0 || x == 1)
        return 0;
    do {
        before = sum;
        x = sqrt(x);
        weight /= 2;
        sum -= (1 - x) * (1 - x) * weight;
    } while (sum != before);
    return sum / 3;
}

uint64_t distinct_bound(const struct distinct *distinct)
{
    const double deviation = 1.04 / 256; /* 1.04 / sqrt(counters) */
    const double counters = DISTINCT_COUNTERS;
    double count[RANK_MAX + 2] = { 0 };
    for (unsigned i = 0; i < DISTINCT_COUNTERS; i++)
        count[atomic_load_explicit(&distinct->rank[i], memory_order_relaxed)]++;
    double z = counters * tau(1 - count[RANK_MAX + 1] / counters);
    for (unsigned rank = RANK_MAX; rank >= 1; rank--)
        z = (z + count[rank]) / 2;
    z += counters * sigma(count[0] / counters);
    double estimate = counters / (2 * log(2)) * counters / z;
    return (uint64_t)ceil(estimate * (1 + 6 * deviation)) + 64;
}
