/* estimate.c - how many keys a layer has, from its bits. */
#include "estimate.h"

#include <math.h>

/* Returns how many of 'keys' different keys set no bit when they were added, in expectation:
 * the integral of the fpr over the keys, by Simpson's rule. */
static double keys_unseen(const struct layer *layer, double keys)
{
    enum { INTERVALS = 8 };
    double sum = 0;
    for (int i = 0; i <= INTERVALS; i++) {
        double weight = i == 0 || i == INTERVALS ? 1 : i % 2 ? 4 : 2;
        sum += weight * perhaps_layout_predict_fpr(layer->layout,
                                                   (uint64_t)(keys * i / (double)INTERVALS));
    }
    return sum * keys / (double)INTERVALS / 3;
}

/* Returns the variance of the number of keys that is estimated from bits, for those that lie in
 * these bits.
 *
 *     collisions   of m k bits that fall on n places: the variance of the places that are hit
 *                  is n (e^-f - (1 + f) e^-2f), f = m k / n; in keys: divided by (k e^-f)^2
 *     blocks       some have more keys than others: in keys f^2 / 2 for each block */
static double variance_of_bits(const struct layer *layer, double load, double nbits)
{
    if (layer->key_nbits == 1) /* each key that is counted has set one bit */
        return 0;
    double fill = -log1p(-fmin(load, 1 - 0.5 / nbits)), k = layer->key_nbits;
    double collisions = nbits * (expm1(fill) - fill) / (k * k);
    double blocks = nbits / (8 * (double)layer->block_nbytes) * fill * fill / 2;
    return collisions + blocks;
}

/* Fills in the keys of a layer all of whose bits have this load. */
static void find_keys(const struct layer *layer, double load, struct estimate *estimate)
{
    estimate->keys = perhaps_layout_estimate_keys(layer->layout, load);
    estimate->counted =
        estimate->keys - fmin(keys_unseen(layer, estimate->keys), estimate->keys);
}

/* The keys of the bits that were looked at are a random share of all. */
struct estimate estimate_keys(const struct layer *layer, uint64_t nset, uint64_t nbits)
{
    struct estimate all = { 0 };
    if (!nbits)
        return all;
    const double load = (double)nset / (double)nbits;
    const double share = fmin((double)nbits / (8 * (double)layer->plan.body_nbytes), 1);
    find_keys(layer, load, &all);
    double sampling = (1 - share) / share * fmax(all.keys, 1 / share);
    double bits = variance_of_bits(layer, load, (double)nbits) / (share * share);
    all.deviation = sqrt(sampling + bits + all.keys - all.counted);
    return all;
}

void estimate_add(struct estimate *sum, const struct layer *layer, uint64_t nset,
                  uint64_t nbits)
{
    struct estimate all = { 0 };
    const double load = (double)nset / (double)nbits;
    const double share = (double)nbits / (8 * (double)layer->plan.body_nbytes);
    find_keys(layer, load, &all);
    double variance = variance_of_bits(layer, load, (double)nbits);
    sum->keys += share * all.keys;
    sum->counted += share * all.counted;
    sum->deviation = hypot(sum->deviation, sqrt(variance + share * (all.keys - all.counted)));
}

/* The keys that set no bit grow more slowly than all keys, so each step comes nearer. */
double estimate_different(const struct layer *layer, uint64_t counted)
{
    enum { STEPS = 40 };
    double keys = (double)counted, before = 0;
    for (int i = 0; i < STEPS && keys - before >= 0.5; i++) {
        before = keys;
        keys = (double)counted + keys_unseen(layer, keys);
    }
    return keys;
}

/* Below: a failover may lose the last changes of the count, and a percent of the capacity does
 * little to the rate.  Above: clients that died have left what they had reserved, at most a
 * batch each. */
bool estimate_contradicts(const struct layer *layer, const struct estimate *estimate,
                          uint64_t count)
{
    enum { DEVIATIONS = 6, CLIENTS_MOST = 64 };
    double off = (double)DEVIATIONS * estimate->deviation;
    double least =
        estimate->counted - off - fmin(0.01 * (double)layer->plan.capacity, BATCH_KEYS);
    double most = 2 * (estimate->counted + off) + (double)(CLIENTS_MOST * BATCH_KEYS);
    return (double)count < least || (double)count > most;
}
