/* contenders.c - the kinds of the library, as the registry has them, and the peers. */
#include <string.h>

#include "bench.h"

static struct perhaps_options options_of(const struct contender *self, uint64_t capacity,
                                         double fpr)
{
    return (struct perhaps_options){ .capacity = capacity,
                                     .fpr = fpr,
                                     .kind = self->name,
                                     .window.keys = self->forgets ? capacity : 0 };
}

static const char *create(const struct contender *self, const struct task *task, void **filter)
{
    struct perhaps_options options = options_of(self, task->capacity, task->fpr);
    options.hashing.hash = task->settings->hashed ? PERHAPS_HASH_NONE : PERHAPS_HASH_XXH3;
    options.hashing.seed = 1; /* the same in every run */
    options.shared = task->shared;
    perhaps_filter *made;
    int error = perhaps_create(&options, &made);
    *filter = made;
    return error ? perhaps_strerror(error) : NULL;
}

static void destroy(void *filter)
{
    perhaps_free(filter);
}

static void clear(void *filter)
{
    perhaps_clear(filter);
}

static uint64_t nbytes(const void *filter)
{
    struct perhaps_stats stats;
    perhaps_stats_of(filter, &stats);
    return stats.plan.body_nbytes;
}

static double load(const void *filter)
{
    struct perhaps_stats stats;
    perhaps_stats_of(filter, &stats);
    return stats.load;
}

static uint64_t huge_nbytes(const void *filter)
{
    return perhaps_huge_nbytes(filter);
}

static const char *cpu(const void *filter)
{
    struct perhaps_stats stats;
    perhaps_stats_of(filter, &stats);
    return stats.cpu;
}

/* The body is almost proportional to the capacity: a few corrections settle it. */
static uint64_t capacity(const struct contender *self, double fpr, uint64_t body_nbytes)
{
    struct perhaps_plan plan;
    double keys = (double)body_nbytes;
    for (int i = 0; i < 8; i++) {
        struct perhaps_options options = options_of(self, (uint64_t)keys, fpr);
        if (perhaps_plan_for(&options, &plan))
            return 0;
        keys *= (double)body_nbytes / (double)plan.body_nbytes;
    }
    return (uint64_t)keys;
}

static const uint8_t *key_at(const struct perhaps_keys *keys, size_t i)
{
    return (const uint8_t *)keys->packed + i * keys->key_nbytes;
}

static size_t add_single(void *filter, const struct perhaps_keys *keys)
{
    size_t added = 0;
    while (added < keys->count && !perhaps_add(filter, key_at(keys, added), keys->key_nbytes))
        added++;
    return added;
}

static size_t ask_single(const void *filter, const struct perhaps_keys *keys)
{
    size_t found = 0;
    for (size_t i = 0; i < keys->count; i++)
        found += perhaps_contains(filter, key_at(keys, i), keys->key_nbytes);
    return found;
}

static size_t add_batched(void *filter, const struct perhaps_keys *keys)
{
    size_t added = 0;
    while (added < keys->count) {
        struct perhaps_keys batch = keys_slice(keys, added, BATCH_KEYS);
        size_t done;
        int error = perhaps_add_many(filter, &batch, &done);
        added += done;
        if (error)
            break;
    }
    return added;
}

static size_t ask_batched(const void *filter, const struct perhaps_keys *keys)
{
    bool present[BATCH_KEYS];
    size_t found = 0;
    for (size_t at = 0; at < keys->count; at += BATCH_KEYS) {
        struct perhaps_keys batch = keys_slice(keys, at, BATCH_KEYS);
        found += perhaps_contains_many(filter, &batch, present);
    }
    return found;
}

/* Others that remove stop at their rate, or grow. */
static bool has_buckets(const struct perhaps_kind *kind)
{
    struct perhaps_options options = { .capacity = 1000, .fpr = 0.01, .kind = kind->name };
    struct perhaps_plan plan;
    if (perhaps_plan_for(&options, &plan))
        return false;
    for (unsigned i = 0; i < plan.nfields; i++)
        if (!strcmp(plan.field_name[i], "nbuckets"))
            return true;
    return false;
}

static struct contender contender_of(const struct perhaps_kind *kind)
{
    return (struct contender){
        .name = kind->name,
        .has_slots = kind->abilities & PERHAPS_CAN_REMOVE,
        .has_buckets = has_buckets(kind),
        .forgets = kind->abilities & PERHAPS_CAN_FORGET,
        .can_share = kind->abilities & PERHAPS_CAN_THREADS,
        .can_threads = true,
        .create = create,
        .destroy = destroy,
        .clear = clear,
        .nbytes = nbytes,
        .load = load,
        .huge_nbytes = huge_nbytes,
        .cpu = cpu,
        .capacity = capacity,
        .add = { [SINGLE] = add_single, [BATCHED] = add_batched },
        .ask = { [SINGLE] = ask_single, [BATCHED] = ask_batched },
    };
}

size_t contenders_list(struct contender list[CONTENDERS_MAX])
{
    const struct perhaps_kind *kind;
    size_t count = 0;
    for (size_t i = 0; (kind = perhaps_kind_at(i)) && count < CONTENDERS_MAX; i++)
        list[count++] = contender_of(kind);
    return count + peers_list(list + count, CONTENDERS_MAX - count);
}
