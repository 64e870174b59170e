/* counted.c - what a count of keys means, and what it becomes in another filter.
 *
 * In kinds whose keys share bits a key is counted if it set a bit when it was added; of the
 * others nothing tells them from repeats.  So n different keys have the count
 *
 *   C(n) = integral of 1 - fpr from 0 to n, in expectation                                  (1)
 *
 * which depends on the geometry, since the fpr does.  A count must not be carried over to a
 * filter of another geometry, nor two counts be added: only numbers of different keys may.  A
 * count gives such a number by the inverse of (1), and that gives the count in its new place.
 * Of n keys about n - C(n) were not counted, by chance some more or fewer: the square root of
 * that is the deviation of the number.
 *
 * With one bit a key each key that is counted has set one bit, whatever came in which order:
 * the count is the number of set bits. */
#include <math.h>

#include "../base/sample.h"
#include "../base/sizing.h"
#include "counted.h"
#include "counters.h"

bool filter_counts_bits(const perhaps_filter *f)
{
    return f->kind->counted && !f->removes;
}

static struct picking picking_of(const perhaps_filter *f)
{
    struct picking m;
    f->kind->compares->picking(&f->body.geometry, &m);
    return m;
}

struct perhaps_estimate filter_estimate(const perhaps_filter *f, uint64_t most_nbytes)
{
    const struct picking picking = picking_of(f);
    const double picked = f->kind->measure(f, most_nbytes).load * picking.cells;
    return overlap_size(&picking, (uint64_t)round(picked));
}

/* Returns how many keys may be counted at most by what the bits tell, with what chance and a
 * sample may add to it. */
static double most_counted(const perhaps_filter *f)
{
    const struct perhaps_estimate there = filter_estimate(f, SAMPLE_NBYTES);
    const double sampled = f->body.geometry.body_nbytes > SAMPLE_NBYTES ? 0.01 : 0;
    const double keys = (1 + sampled) * there.value + SIZING_DEVIATIONS * there.error;
    return isfinite(keys) ? f->kind->counted(&f->body.geometry, ceil(keys)) + 1 : 0x1p60;
}

bool filter_is_estimated(const perhaps_filter *f)
{
    bool any = __atomic_load_n(&f->keys_estimated, __ATOMIC_RELAXED);
    for (size_t i = 0; i < parts_count(f) && !any; i++)
        any = filter_is_estimated(f->parts->part[i]);
    return any;
}

uint64_t filter_keys(const perhaps_filter *f)
{
    filter_settle(f);
    const uint64_t keys = counter_get(&f->counters->keys);
    uint64_t sum = 0;
    if (!filter_is_estimated(f))
        return keys;
    if (f->kind->rate_with)
        return (uint64_t)fmin((double)keys, most_counted(f));
    for (size_t i = 0; i < parts_count(f); i++)
        sum += filter_keys(f->parts->part[i]);
    return keys < sum ? keys : sum;
}

/* Returns n for a count C(n).  C is concave, so Newton's steps from the left never pass the
 * solution.  They are bounded, since a count from a file may be more than any number of keys
 * has. */
static double keys_of_count(const perhaps_filter *f, double count)
{
    enum { STEPS = 64 };
    const double most = 0x1p60, near = 1e-3;
    double keys = fmin(count, most);
    for (int i = 0; i < STEPS && keys < most; i++) {
        const double step = fmax(1, keys / 1024),
                     now = f->kind->counted(&f->body.geometry, keys);
        const double more = f->kind->counted(&f->body.geometry, keys + step) - now;
        if (count - now <= near)
            break;
        keys = fmin(keys + (count - now) * step / fmax(more, 1e-9 * step), 2 * keys + 1);
    }
    return keys;
}

/* Returns how many different keys came to a set of fingerprints that has stored so many.  Its
 * fpr follows from what is stored: so this is the integral of 1 / (1 - fpr), by Simpson's
 * rule. */
static double keys_of_stored(const perhaps_filter *f, double stored)
{
    enum { INTERVALS = 16 };
    const struct geometry g = filter_geometry(f);
    double sum = 0;
    for (int i = 0; i <= INTERVALS; i++) {
        const double weight = i == 0 || i == INTERVALS ? 1 : i % 2 ? 4 : 2;
        const double rate = f->kind->predict(&g, floor(stored * i / (double)INTERVALS));
        sum +=
            weight / (rate < 1 ? fmax(1 - rate, 1e-9) : 1); /* of a count that cannot be true */
    }
    return sum * stored / (double)INTERVALS / 3;
}

/* Of the keys that came to a layer of a chain, the layers before it had taken some for
 * present, which it never got; as many as the rate from its bits says, since a small layer may
 * be far from what is predicted. */
static double keys_of_layers(const perhaps_filter *f)
{
    double keys = 0, missed = 1;
    for (size_t i = 0; i < parts_count(f); i++) {
        const perhaps_filter *layer = f->parts->part[i];
        keys += filter_different(layer) / fmax(missed, 1e-9);
        missed *= 1 - layer->kind->measure(layer, SAMPLE_NBYTES / parts_count(f)).fpr;
    }
    return keys;
}

double filter_different(const perhaps_filter *f)
{
    const double hardly_any = 0.25, count = (double)filter_keys(f);
    const bool counts_all = f->removes || !f->kind->add || f->kind->exact || f->kind->forgets;
    if (counts_all || count * f->body.geometry.fpr < hardly_any)
        return count;
    if (f->kind->composite)
        return keys_of_layers(f);
    return f->kind->counted ? keys_of_count(f, count) : keys_of_stored(f, count);
}

bool filter_picks_one(const perhaps_filter *f)
{
    const struct picking m = picking_of(f);
    return m.cells * m.chance < 1.5;
}

uint64_t filter_count_of(const perhaps_filter *f, double different, double load)
{
    const double limit = (double)f->body.geometry.key_limit;
    const double count = filter_picks_one(f) ? load * picking_of(f).cells
                                             : f->kind->counted(&f->body.geometry, different);
    return (uint64_t)fmin(round(count), limit);
}

/* The union has at least the keys of the larger filter, and at most the sum of both. */
void filter_count_union(perhaps_filter *f, double one, double two, uint64_t picked)
{
    const struct picking m = picking_of(f);
    const double keys = overlap_size(&m, picked).value;
    const double within = fmin(fmax(keys, fmax(one, two)), one + two);
    f->counters->keys = filter_count_of(f, within, (double)picked / m.cells);
}

/* It becomes the count of as many keys as set so many bits, so later adds find as much room as
 * in a filter of so many keys. */
void filter_count_common(perhaps_filter *f, uint64_t most, uint64_t picked)
{
    const struct picking m = picking_of(f);
    const double keys = ceil(overlap_size(&m, picked).value);
    const uint64_t count = filter_count_of(f, keys, (double)picked / m.cells);
    f->counters->keys = count < most ? count : most;
}
