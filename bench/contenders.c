/* contenders.c - lists who is measured: all kinds in the library's registry, then the peers.
 * It names no kind, so a new kind is measured without a change here. */
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <perhaps_build.h>
#include <perhaps_embed.h>
#include <perhaps_fast.h>
#include <perhaps_plan.h>

#include "bench.h"

/* ---- Kinds of the library ---------------------------------------------------------------- */

/* Returns the range of a kind of integers: half of it is added. */
static struct perhaps_bitmap_options range_of(const struct contender *self, uint64_t capacity)
{
    if (!self->of_integers)
        return (struct perhaps_bitmap_options){ 0 };
    return (struct perhaps_bitmap_options){ INTEGER_LOW,
                                            INTEGER_LOW + integers_for(capacity) - 1 };
}

static const struct perhaps_kind *kind_named(const char *name)
{
    const struct perhaps_kind *kind;
    for (size_t i = 0; (kind = perhaps_kind_at(i)); i++)
        if (!strcmp(kind->name, name))
            break;
    return kind;
}

/* What a kind is measured with, and what is recorded of it: copies of keys, if it can store
 * them. */
static unsigned needs_of(const struct contender *self)
{
    const unsigned copies = PERHAPS_CAN_REMOVE | PERHAPS_CAN_COUNT;
    return self->finish ? PERHAPS_CAN_BUILD : kind_named(self->name)->abilities & copies;
}

/* A window has as many keys as the filters beside it have capacity, so that they compare. */
static struct perhaps_options options_of(const struct contender *self, uint64_t capacity,
                                         double fpr)
{
    return (struct perhaps_options){ .capacity = capacity,
                                     .fpr = fpr,
                                     .kind = self->name,
                                     .needs = needs_of(self),
                                     .window.keys = self->forgets ? capacity : 0,
                                     .bitmap = range_of(self, capacity) };
}

/* The seed and the secret are fixed, so that every run measures the same filter. */
struct perhaps_hashing hashing_of(const struct settings *settings)
{
    static const uint8_t secret[] = "perhaps, or not.";
    return (struct perhaps_hashing){ .hash = settings->hashed   ? PERHAPS_HASH_NONE
                                             : settings->secret ? PERHAPS_HASH_SIP
                                                                : PERHAPS_HASH_XXH3_64,
                                     .seed = 1,
                                     .secret = secret };
}

static const char *create(const struct contender *self, const struct task *task, void **filter)
{
    struct perhaps_options options = options_of(self, task->capacity, task->fpr);
    options.hashing = hashing_of(task->settings);
    if (self->of_integers)
        options.hashing.hash = PERHAPS_HASH_INTEGER;
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

/* The load of a Bloom filter is a share of bits, not of slots; only kinds that remove have
 * slots (a bitmap: its bits). */
static void tell(const void *filter, struct facts *facts)
{
    struct perhaps_stats stats;
    perhaps_stats_of(filter, &stats);
    uint64_t nbytes = stats.plan.body_nbytes, huge = perhaps_huge_nbytes(filter);
    bool has_slots = kind_named(stats.plan.kind)->abilities & PERHAPS_CAN_REMOVE;
    *facts = (struct facts){ .nbytes = nbytes,
                             .huge_nbytes = huge < nbytes ? huge : nbytes,
                             .huge_known = true,
                             .load = has_slots ? stats.load : 0,
                             .cpu = stats.cpu };
}

/* The body is almost proportional to the capacity, so a few corrections come close enough. */
uint64_t contender_capacity(const struct contender *contender, double fpr, double body_nbytes)
{
    struct perhaps_plan plan;
    double keys = body_nbytes;
    for (int i = 0; i < 8; i++) {
        struct perhaps_options options = options_of(contender, (uint64_t)keys, fpr);
        if (contender->is_peer || perhaps_plan_for(&options, &plan))
            return 0;
        keys *= body_nbytes / (double)plan.body_nbytes;
    }
    return (uint64_t)keys;
}

/* All forms of a call take a piece of keys: the batched form calls the library once for all of
 * them, the others at least once a key. */

static size_t add_single(void *filter, const struct perhaps_keys *keys)
{
    const uint8_t *key = keys->packed;
    size_t added = 0;
    for (; added < keys->count; added++, key += keys->key_nbytes)
        if (perhaps_add(filter, key, keys->key_nbytes))
            break;
    return added;
}

static size_t ask_single(void *filter, const struct perhaps_keys *keys)
{
    const uint8_t *key = keys->packed;
    size_t found = 0;
    for (size_t i = 0; i < keys->count; i++, key += keys->key_nbytes)
        found += perhaps_contains(filter, key, keys->key_nbytes);
    return found;
}

static size_t add_batched(void *filter, const struct perhaps_keys *keys)
{
    size_t added;
    (void)perhaps_add_many(filter, keys, &added);
    return added;
}

static size_t ask_batched(void *filter, const struct perhaps_keys *keys)
{
    bool present[PIECE_KEYS];
    return perhaps_contains_many(filter, keys, present);
}

/* Keys on their way: a key is prepared PREPARED_AHEAD keys before the call for it. */
struct ahead {
    perhaps_filter *filter;
    const struct perhaps_keys *keys;
    struct perhaps_prepared ring[PREPARED_AHEAD];
};

static void prepare(struct ahead *ahead, size_t number)
{
    const struct perhaps_keys *keys = ahead->keys;
    if (number < keys->count)
        perhaps_prepare(ahead->filter,
                        (const uint8_t *)keys->packed + number * keys->key_nbytes,
                        keys->key_nbytes, &ahead->ring[number % PREPARED_AHEAD]);
}

static struct ahead begin_ahead(void *filter, const struct perhaps_keys *keys)
{
    struct ahead ahead = { .filter = filter, .keys = keys };
    for (size_t i = 0; i < PREPARED_AHEAD; i++)
        prepare(&ahead, i);
    return ahead;
}

static size_t add_prepared(void *filter, const struct perhaps_keys *keys)
{
    struct ahead ahead = begin_ahead(filter, keys);
    size_t added = 0;
    for (; added < keys->count; added++) {
        if (perhaps_add_prepared(filter, &ahead.ring[added % PREPARED_AHEAD]))
            break;
        prepare(&ahead, added + PREPARED_AHEAD);
    }
    return added;
}

static size_t ask_prepared(void *filter, const struct perhaps_keys *keys)
{
    struct ahead ahead = begin_ahead(filter, keys);
    size_t found = 0;
    for (size_t i = 0; i < keys->count; i++) {
        found += perhaps_contains_prepared(filter, &ahead.ring[i % PREPARED_AHEAD]);
        prepare(&ahead, i + PREPARED_AHEAD);
    }
    return found;
}

/* There is no single form: removals are only measured in batches. */
static size_t remove_batched(void *filter, const struct perhaps_keys *keys)
{
    bool removed[PIECE_KEYS];
    size_t nremoved;
    return perhaps_remove_many(filter, keys, removed, &nremoved, NULL) ? SIZE_MAX : nremoved;
}

/* Returns whether the kind is one table of buckets, which its geometry tells.  Such a filter
 * takes keys as long as it finds a free slot; other kinds that remove stop at their key limit,
 * or grow. */
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

/* Returns whether keys may be any bytes: a kind of integers is not planned without a range. */
static bool takes_any_key(const struct perhaps_kind *kind)
{
    struct perhaps_options options = { .capacity = 1000,
                                       .fpr = 0.01,
                                       .kind = kind->name,
                                       .needs = kind->abilities & PERHAPS_CAN_BUILD };
    struct perhaps_plan plan;
    return perhaps_plan_for(&options, &plan) == 0;
}

/* Describes a kind of the library by what the registry says about it. */
static struct contender contender_of(const struct perhaps_kind *kind)
{
    return (struct contender){
        .name = kind->name,
        .has_buckets = has_buckets(kind),
        .forgets = kind->abilities & PERHAPS_CAN_FORGET,
        .of_integers = !takes_any_key(kind),
        .can_share = kind->abilities & PERHAPS_CAN_THREADS,
        .can_threads = true,
        .create = create,
        .destroy = destroy,
        .clear = clear,
        .tell = tell,
        .add = { add_single, add_batched, add_prepared },
        .ask = { ask_single, ask_batched, ask_prepared },
        .remove = remove_batched,
    };
}

/* ---- Kinds that are built once ----------------------------------------------------------- */

/* A filter before and after it is built. */
struct built {
    const struct contender *contender;
    struct task task;
    perhaps_builder *builder; /* takes the keys; NULL: 'filter' has them */
    perhaps_filter *filter;
};

/* As many threads build as give keys, and as ask later. */
static const char *begin_built(struct built *built)
{
    struct perhaps_options options =
        options_of(built->contender, built->task.capacity, built->task.fpr);
    const struct perhaps_build_options how = { .threads = (unsigned)built->task.nthreads };
    options.hashing = hashing_of(built->task.settings);
    int error = perhaps_builder_create(&options, &how, &built->builder);
    return error ? perhaps_strerror(error) : NULL;
}

static const char *create_built(const struct contender *self, const struct task *task,
                                void **filter)
{
    struct built *built = allocate_zeroed(1, sizeof *built);
    built->contender = self;
    built->task = *task;
    *filter = built;
    return begin_built(built);
}

static void release_built(struct built *built)
{
    perhaps_builder_free(built->builder);
    perhaps_free(built->filter);
    built->builder = NULL;
    built->filter = NULL;
}

static void destroy_built(void *filter)
{
    release_built(filter);
    free(filter);
}

static void clear_built(void *filter)
{
    release_built(filter);
    begin_built(filter);
}

static void tell_built(const void *filter, struct facts *facts)
{
    const struct built *built = filter;
    struct perhaps_options options =
        options_of(built->contender, built->task.capacity, built->task.fpr);
    struct perhaps_plan plan;
    if (built->filter)
        tell(built->filter, facts);
    else if (!perhaps_plan_for(&options, &plan))
        *facts = (struct facts){ .nbytes = plan.body_nbytes };
}

static size_t add_built(void *filter, const struct perhaps_keys *keys)
{
    return perhaps_builder_add_many(((struct built *)filter)->builder, keys) ? 0 : keys->count;
}

static bool finish_built(void *filter)
{
    struct built *built = filter;
    int error = perhaps_builder_finish(built->builder, &built->filter);
    perhaps_builder_free(built->builder);
    built->builder = NULL;
    return !error;
}

static size_t ask_built_single(void *filter, const struct perhaps_keys *keys)
{
    return ask_single(((struct built *)filter)->filter, keys);
}

static size_t ask_built_batched(void *filter, const struct perhaps_keys *keys)
{
    return ask_batched(((struct built *)filter)->filter, keys);
}

static size_t ask_built_prepared(void *filter, const struct perhaps_keys *keys)
{
    return ask_prepared(((struct built *)filter)->filter, keys);
}

static struct contender contender_built(const struct perhaps_kind *kind)
{
    return (struct contender){
        .name = kind->name,
        .can_share = true,
        .can_threads = true,
        .create = create_built,
        .destroy = destroy_built,
        .clear = clear_built,
        .tell = tell_built,
        .finish = finish_built,
        .add = { add_built }, /* in batches, but the time to build belongs to no call */
        .ask = { ask_built_single, ask_built_batched, ask_built_prepared },
    };
}

/* ---- libbloom (github.com/jvirkki/libbloom): a classic Bloom filter in C ----------------- */

/* Without the library it is still listed, and the table says what is missing. */

#ifdef HAVE_LIBBLOOM
#include <bloom.h>

/* bloom_init() would overflow for more bits than an int can count, so that is refused first. */
static const char *libbloom_create(const struct contender *self, const struct task *task,
                                   void **filter)
{
    (void)self;
    double nbits = (double)task->capacity * -log(task->fpr) / (M_LN2 * M_LN2);
    if (nbits > INT_MAX)
        return "counts its bits in an int: too many here";
    *filter = allocate_zeroed(1, sizeof(struct bloom));
    return bloom_init(*filter, (int)task->capacity, task->fpr) ? "could not be created" : NULL;
}

static void libbloom_destroy(void *filter)
{
    bloom_free(filter);
    free(filter);
}

static void libbloom_clear(void *filter)
{
    bloom_reset(filter);
}

static void libbloom_tell(const void *filter, struct facts *facts)
{
    facts->nbytes = (uint64_t)((const struct bloom *)filter)->bytes;
}

static size_t libbloom_add(void *filter, const struct perhaps_keys *keys)
{
    const uint8_t *key = keys->packed;
    for (size_t i = 0; i < keys->count; i++, key += keys->key_nbytes)
        bloom_add(filter, key, (int)keys->key_nbytes);
    return keys->count;
}

static size_t libbloom_ask(void *filter, const struct perhaps_keys *keys)
{
    const uint8_t *key = keys->packed;
    size_t found = 0;
    for (size_t i = 0; i < keys->count; i++, key += keys->key_nbytes)
        found += bloom_check(filter, key, (int)keys->key_nbytes) == 1;
    return found;
}
#endif

static const struct contender libbloom = {
    .name = "libbloom",
    .is_peer = true,
#ifdef HAVE_LIBBLOOM
    .can_threads = true,
    .create = libbloom_create,
    .destroy = libbloom_destroy,
    .clear = libbloom_clear,
    .tell = libbloom_tell,
    .add = { libbloom_add },
    .ask = { libbloom_ask },
#else
    .missing = "not installed (Debian: libbloom-dev)",
#endif
};

/* ---- All of them ------------------------------------------------------------------------- */

/* Stands in for peer_rocksdb.cc where that is not built. */
#ifndef HAVE_ROCKSDB
size_t peer_rocksdb(struct contender *list)
{
    *list = (struct contender){
        .name = "rocksdb",
        .is_peer = true,
        .missing = "not installed, or another version (Debian 12: librocksdb-dev, 7.8)",
    };
    return 1;
}
#endif

/* Keeps room for all peers, even if the registry has more kinds than fit. */
size_t contenders_list(struct contender list[CONTENDERS_MAX])
{
    enum { PEERS_MOST = 8 };
    const struct perhaps_kind *kind;
    size_t count = 0;
    for (size_t i = 0; count < CONTENDERS_MAX - PEERS_MOST && (kind = perhaps_kind_at(i)); i++)
        list[count++] =
            kind->abilities & PERHAPS_CAN_BUILD ? contender_built(kind) : contender_of(kind);
    list[count++] = libbloom;
    count += peer_rocksdb(list + count);
    return count + peer_processes(list + count);
}
