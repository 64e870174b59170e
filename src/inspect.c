/* inspect.c - what a filter tells about itself. */
#include "alloc.h"
#include "counters.h"
#include "filter.h"
#include "plan.h"

struct memory {
    uint64_t nbytes;
    uint64_t huge_nbytes;
};

static void add_memory(const perhaps_filter *f, struct memory *m)
{
    m->nbytes += f->geometry.body_nbytes;
    if (f->kind->beyond_nbytes)
        m->nbytes += f->kind->beyond_nbytes(f);
    if (f->body)
        m->huge_nbytes += huge_nbytes(f->body, f->geometry.body_nbytes);
    for (size_t i = 0; i < parts_count(f); i++)
        add_memory(f->parts.part[i], m);
}

void perhaps_stats(const perhaps_filter *f, struct perhaps_stats *stats)
{
    struct geometry g = filter_geometry(f);
    struct fill fill = f->kind->measure(f);
    struct memory memory = { 0 };
    add_memory(f, &memory);
    *stats = (struct perhaps_stats){
        .hash = hasher_name(&f->hasher),
        .keys = counter_get(&f->counters->keys),
        .load = fill.load,
        .memory_nbytes = memory.nbytes,
        .fpr_now = fill.fpr,
        .parts = parts_count(f),
        .segments = fill.segments,
        .saturated = fill.saturated,
        .stale = fill.stale,
        .failed_adds = counter_get(&f->counters->failed_adds),
        .unmatched_removals = counter_get(&f->counters->unmatched_removals),
        .mapped = f->mapping.file || (f->body && !f->body_nbytes),
        .shared = f->shared,
        .huge_nbytes = memory.huge_nbytes,
        .cpu = f->kernels->name,
    };
    plan_describe(f->kind, &g, &stats->plan);
    stats->plan.body_nbytes = memory.nbytes;
    if (stats->keys)
        stats->bits_per_key = 8.0 * (double)memory.nbytes / (double)stats->keys;
}

bool perhaps_part(const perhaps_filter *f, size_t index, struct perhaps_stats *stats)
{
    size_t count = parts_count(f);
    if (index >= count)
        return false;
    perhaps_stats(f->parts.part[count - 1 - index], stats);
    return true;
}

double perhaps_predict_fpr(const perhaps_filter *f, uint64_t keys)
{
    struct geometry g = filter_geometry(f);
    return f->kind->predict(&g, (double)keys).mean;
}
