/* inspect.c - what a filter tells about itself. */
#include <math.h>

#include "../base/sample.h"
#include "../filter/counted.h"
#include "../filter/counters.h"
#include "../filter/filter.h"
#include "../system/system.h"

/* Returns the size of the bodies of a filter and its parts, with what they take to grow. */
static uint64_t bodies_nbytes(const perhaps_filter *f)
{
    uint64_t nbytes = f->body.geometry.body_nbytes;
    if (f->kind->grows)
        nbytes += f->kind->grows->beyond_nbytes(f);
    for (size_t i = 0; i < parts_count(f); i++)
        nbytes += bodies_nbytes(f->parts->part[i]);
    return nbytes;
}

uint64_t perhaps_huge_nbytes(const perhaps_filter *f)
{
    uint64_t nbytes =
        f->body.bytes ? huge_nbytes(f->body.bytes, f->body.geometry.body_nbytes) : 0;
    for (size_t i = 0; i < parts_count(f); i++)
        nbytes += perhaps_huge_nbytes(f->parts->part[i]);
    return nbytes;
}

/* Returns the fpr that is predicted at capacity.  It may take long to compute, so this is done
 * once and kept in the filter.  Threads that call at the same time all compute the same
 * number, so it does not matter which of them stores it. */
static double predicted_at_capacity(const perhaps_filter *f)
{
    double *kept = (double *)&f->fpr_predicted, fpr;
    __atomic_load(kept, &fpr, __ATOMIC_RELAXED);
    if (fpr > 0)
        return fpr;
    fpr = f->kind->predict(&f->body.geometry, (double)f->body.geometry.capacity);
    __atomic_store(kept, &fpr, __ATOMIC_RELAXED);
    return fpr;
}

const struct perhaps_kind *perhaps_kind_of(const perhaps_filter *f)
{
    return &f->kind->about;
}

enum perhaps_hash perhaps_hash_of(const perhaps_filter *f)
{
    return f->hasher.id;
}

void perhaps_stats_of(const perhaps_filter *f, struct perhaps_stats *stats)
{
    struct geometry g = filter_geometry(f);
    if (f->mapping->large)
        f->mapping->calls->fetch_sample(f);
    struct fill fill = f->kind->measure(f, SAMPLE_NBYTES);
    uint64_t nbytes = bodies_nbytes(f);
    *stats = (struct perhaps_stats){
        .hash = perhaps_hash_name(f->hasher.id),
        .keys = filter_keys(f),
        .keys_estimated = filter_is_estimated(f),
        .keys_different = (uint64_t)round(fmin(filter_different(f), 0x1p63)),
        .load = fill.load,
        .memory_nbytes = nbytes,
        .fpr_now = fill.fpr,
        .parts = parts_count(f),
        .elastic.segments = fill.segments,
        .counting.saturated = fill.saturated,
        .stale = fill.stale,
        .failed_adds = counter_get(&f->counters->failed_adds),
        .unmatched_removals = counter_get(&f->counters->unmatched_removals),
        /* a part of a mapped filter has no mapping of its own, but no allocated body either */
        .mapped = f->mapping->file || (f->body.bytes && !f->body_nbytes),
        .shared = f->shared,
        .cpu = cpu_name(f->cpu),
    };
    if (f->kind->forgets) {
        stats->window.time = f->kind->forgets->time(f);
        stats->window.knows_time = f->kind->forgets->newest(f, &stats->window.newest);
    }
    geometry_describe(f->kind, &g, predicted_at_capacity(f), &stats->plan);
    stats->plan.body_nbytes = nbytes;
    if (stats->keys)
        stats->bits_per_key = 8.0 * (double)nbytes / (double)stats->keys;
}

bool perhaps_part(const perhaps_filter *f, size_t index, struct perhaps_stats *stats)
{
    size_t count = parts_count(f);
    if (index >= count)
        return false;
    perhaps_stats_of(f->parts->part[count - 1 - index], stats);
    return true;
}

double perhaps_predict_fpr(const perhaps_filter *f, uint64_t keys)
{
    struct geometry g = filter_geometry(f);
    return f->kind->predict(&g, (double)keys);
}
