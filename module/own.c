/* own.c - our filters behind a key: filters of libperhaps, keyed by a secret.
 *
 *     BF   chain of blocked filters, two cache lines a key; NONSCALING: blocked; WINDOW: window
 *          over a chain
 *     CF   reserved: chain of cuckoo filters, or cuckoo if it may not grow; made by the
 *          first add: elastic
 *
 * The secret is drawn where the filter is made, and goes wherever the filter goes: to replicas,
 * to the RDB and AOF, into DUMP and SCANDUMP.  No other command shows it.  Whoever does not
 * have it cannot craft items that meet in one place. */
#include <string.h>

#include "memory.h"
#include "own.h"
#include <perhaps_plan.h>
#include <perhaps_sets.h>
#include <perhaps_window.h>

/* ---- Make ------------------------------------------------------------------------------- */

/* The fpr with which a cuckoo filter has fingerprints of 16 bits.  The first layer of a chain
 * has a tenth of the chain's. */
#define FPR_OF_16_BITS    1.2e-4
#define CHAIN_OF_16_BITS  1.2e-3
#define FPR_OF_UNRESERVED 2.4e-3
#define FPR_MOST          .5 /* a stricter rate than asked is no mistake */
#define UNRESERVED_UNTIL  (UINT64_C(1) << 30)

/* A window consists of so many periods and one more generation, as the library has it. */
enum { WINDOW_PERIODS = 4 };

enum { BUCKET_SLOTS = 4 };

static struct perhaps_options options_of(const struct wish *wish)
{
    struct perhaps_options o = { .capacity = wish->capacity,
                                 .fpr = wish->fpr < FPR_MOST ? wish->fpr : FPR_MOST,
                                 .needs = wish->family == FAMILY_CUCKOO
                                              ? PERHAPS_CAN_REMOVE | PERHAPS_CAN_COUNT
                                              : 0U,
                                 .chain.factor = wish->expansion,
                                 .hashing.hash = PERHAPS_HASH_SIP,
                                 .allocator = &memory_of_server };
    if (wish->family == FAMILY_CUCKOO && !wish->reserved) {
        o.kind = "elastic";
        o.fpr = wish->fpr > 0 ? o.fpr : FPR_OF_UNRESERVED;
        o.elastic.fpr_until =
            wish->capacity > UNRESERVED_UNTIL ? wish->capacity : UNRESERVED_UNTIL;
    } else if (wish->family == FAMILY_CUCKOO) {
        o.kind = wish->expansion ? "chain" : "cuckoo";
        o.base = wish->expansion ? "cuckoo" : NULL;
        if (!(wish->fpr > 0))
            o.fpr = wish->expansion ? CHAIN_OF_16_BITS : FPR_OF_16_BITS;
    } else if (wish->window_ms) {
        o.kind = "window";
        o.window.time = wish->window_ms;
        o.window.generations = WINDOW_PERIODS + 1;
    } else if (wish->expansion) {
        o.kind = "chain";
        o.preference = PERHAPS_PREFER_COMPACT;
    } else {
        o.kind = "blocked";
    }
    return o;
}

/* Planning a filter takes longer than making it, and most filters of a server are planned
 * alike: so the last few plans are kept, as empty filters, if these are small. */
enum { MODELS = 8, MODEL_MOST_NBYTES = 1 << 16 };

static struct model {
    struct wish wish;
    perhaps_filter *filter; /* NULL: none yet */
} models[MODELS];

static bool same_wish(const struct wish *a, const struct wish *b)
{
    return a->family == b->family && a->capacity == b->capacity && a->fpr == b->fpr &&
           a->expansion == b->expansion && a->reserved == b->reserved &&
           a->window_ms == b->window_ms;
}

static perhaps_filter *model_for(const struct wish *wish)
{
    for (size_t i = 0; i < MODELS; i++)
        if (models[i].filter && same_wish(&models[i].wish, wish))
            return models[i].filter;
    return NULL;
}

/* Keeps an empty copy of a filter that was just made, in the place of the oldest model. */
static void keep_model(const struct wish *wish, const perhaps_filter *filter)
{
    static size_t next;
    perhaps_filter *copy;
    const struct perhaps_hashing unkeyed = { .hash = PERHAPS_HASH_XXH3, .seed = 1 };
    if (perhaps_memory_nbytes(filter) > MODEL_MOST_NBYTES ||
        perhaps_create_like(filter, &unkeyed, &memory_of_server, &copy))
        return;
    perhaps_free(models[next].filter);
    models[next] = (struct model){ *wish, copy };
    next = (next + 1) % MODELS;
}

static int make_filter(const struct wish *wish, const uint8_t *secret, perhaps_filter **filter)
{
    struct perhaps_options options = options_of(wish);
    const perhaps_filter *model = model_for(wish);
    options.hashing.secret = secret;
    if (model)
        return perhaps_create_like(model, &options.hashing, &memory_of_server, filter);
    int error = perhaps_create(&options, filter);
    if (!error)
        keep_model(wish, *filter);
    return error;
}

uint64_t own_period_ms(uint64_t window_ms)
{
    return window_ms / WINDOW_PERIODS + (window_ms % WINDOW_PERIODS > 0);
}

uint64_t own_field(const struct perhaps_stats *stats, const char *name)
{
    for (unsigned i = 0; i < stats->plan.nfields; i++)
        if (!strcmp(stats->plan.field_name[i], name))
            return stats->plan.field[i];
    return 0;
}

struct own *own_new(void)
{
    return memory_take(sizeof(struct own));
}

void *own_create(const struct wish *wish, const uint8_t *secret, int *error)
{
    struct own *own = own_new();
    if (!own) {
        *error = PERHAPS_ERR_MEMORY;
        return NULL;
    }
    own->wish = *wish;
    *error = make_filter(wish, secret, &own->filter);
    if (!*error) {
        own->period_ms = own_period_ms(wish->window_ms);
        return own;
    }
    own_release(own);
    return NULL;
}

void own_secret(const struct own *own, uint8_t secret[SECRET_NBYTES])
{
    if (own->filter)
        perhaps_secret(own->filter, secret);
    else
        memcpy(secret, own->loading->secret, SECRET_NBYTES);
}

void own_end_loading(struct own *own)
{
    if (!own->loading)
        return;
    pieces_release(&own->loading->pieces);
    explicit_bzero(own->loading, sizeof *own->loading);
    memory_give(own->loading);
    own->loading = NULL;
}

void own_describe(const void *filter, struct wish *wish, uint8_t secret[SECRET_NBYTES])
{
    const struct own *own = filter;
    *wish = own->wish;
    own_secret(own, secret);
}

void own_release(void *filter)
{
    struct own *own = filter;
    perhaps_free(own->filter);
    own_end_loading(own);
    memory_give(own);
}

/* ---- Add, ask, remove -------------------------------------------------------------------- */

int own_add(void *filter, const struct perhaps_key *items, size_t n, bool unless_present,
            bool *was_present, size_t *done)
{
    struct own *own = filter;
    const struct perhaps_keys keys = perhaps_keys_each(items, n);
    size_t present = 0;
    int error;
    *done = 0;
    if (unless_present && n == 1) {
        error =
            perhaps_add_unless_present(own->filter, items->bytes, items->nbytes, was_present);
        *done = !error;
    } else if (unless_present) {
        error = perhaps_add_unless_present_many(own->filter, &keys, was_present, done);
    } else if (n == 1) {
        *was_present = false;
        error = perhaps_add(own->filter, items->bytes, items->nbytes);
        *done = !error;
    } else {
        memset(was_present, false, n);
        error = perhaps_add_many(own->filter, &keys, done);
    }
    for (size_t i = 0; i < *done; i++)
        present += was_present[i];
    own->items += *done - present;
    own->changes += *done - present;
    return error;
}

void own_contains(const void *filter, const struct perhaps_key *items, size_t n,
                  uint64_t now_ms, bool *present)
{
    const struct own *own = filter;
    const struct perhaps_keys keys = perhaps_keys_each(items, n);
    if (own->wish.window_ms && now_ms)
        perhaps_contains_many_at(own->filter, &keys, now_ms, present);
    else if (n == 1)
        *present = perhaps_contains(own->filter, items->bytes, items->nbytes);
    else
        perhaps_contains_many(own->filter, &keys, present);
}

uint64_t own_count(const void *filter, const struct perhaps_key *item)
{
    const struct own *own = filter;
    uint64_t copies;
    perhaps_count(own->filter, item->bytes, item->nbytes, &copies);
    return copies;
}

bool own_remove(void *filter, const struct perhaps_key *item)
{
    struct own *own = filter;
    /* asked first: the library counts removals that find nothing, and a replica gets none */
    if (!perhaps_contains(own->filter, item->bytes, item->nbytes) ||
        perhaps_remove(own->filter, item->bytes, item->nbytes))
        return false;
    own->items -= own->items > 0;
    own->deleted++;
    own->changes++;
    return true;
}

uint64_t own_window_ms(const void *filter)
{
    return ((const struct own *)filter)->wish.window_ms;
}

bool own_advance(void *filter, uint64_t now_ms)
{
    struct own *own = filter;
    if (!own->wish.window_ms ||
        (own->began_ms && (now_ms < own->began_ms || now_ms - own->began_ms < own->period_ms)))
        return false;
    perhaps_advance(own->filter, now_ms);
    own->began_ms = own->began_ms ? now_ms - (now_ms - own->began_ms) % own->period_ms : now_ms;
    own->changes++;
    return true;
}

bool own_is_ahead(const void *filter, uint64_t now_ms)
{
    const struct own *own = filter;
    return own->began_ms > now_ms && own->began_ms - now_ms > own->wish.window_ms;
}

bool own_set_back(void *filter, uint64_t now_ms)
{
    struct own *own = filter;
    if (!own->wish.window_ms || own->began_ms <= now_ms)
        return false;
    perhaps_set_back(own->filter, now_ms);
    own->began_ms = now_ms;
    own->told = false;
    own->changes++;
    return true;
}

/* When only the newest generation is left, the window answers what that one answers. */
int own_add_to_window(void *filter, const struct perhaps_key *items, size_t n,
                      bool *was_present, bool *is_change, size_t *done)
{
    struct own *own = filter;
    const uint64_t later_ms = own->began_ms + WINDOW_PERIODS * own->period_ms;
    int error = 0;
    for (*done = 0; *done < n; ++*done) {
        const struct perhaps_key *item = &items[*done];
        const struct perhaps_keys key = perhaps_keys_each(item, 1);
        bool in_newest;
        perhaps_contains_many_at(own->filter, &key, later_ms, &in_newest);
        was_present[*done] = perhaps_contains(own->filter, item->bytes, item->nbytes);
        is_change[*done] = !in_newest;
        if (!in_newest && (error = perhaps_add(own->filter, item->bytes, item->nbytes)))
            break;
        own->items += !was_present[*done];
        own->changes += !in_newest;
    }
    return error;
}

/* ---- Shrink and merge -------------------------------------------------------------------- */

static void replace(struct own *own, perhaps_filter *filter)
{
    perhaps_free(own->filter);
    own->filter = filter;
    own->changes++;
}

int own_shrink(void *filter, double fpr, uint64_t *freed_nbytes)
{
    struct own *own = filter;
    perhaps_filter *small;
    uint64_t before = perhaps_memory_nbytes(own->filter);
    int error = perhaps_shrink(own->filter, fpr, &small);
    *freed_nbytes = 0;
    if (error)
        return error == PERHAPS_ERR_LIMIT ? 0 : error;
    replace(own, small);
    *freed_nbytes = before - perhaps_memory_nbytes(small);
    return 0;
}

void own_exchange(void *filter, void *other)
{
    struct own *a = filter, *b = other, both = *a;
    uint64_t changes = a->changes + b->changes + 1;
    *a = *b;
    *b = both;
    a->changes = b->changes = changes;
}

int own_merge(void *filter, const void *other)
{
    struct own *own = filter;
    const struct own *from = other;
    struct perhaps_stats stats;
    int error = perhaps_merge(own->filter, from->filter);
    if (error)
        return error;
    perhaps_stats_of(own->filter, &stats);
    own->items = stats.keys;
    own->changes++;
    return 0;
}

/* ---- Tell -------------------------------------------------------------------------------- */

/* Returns how many buckets a cuckoo or elastic filter has. */
static uint64_t buckets_of(const struct perhaps_stats *stats)
{
    uint64_t slot_bits = own_field(stats, "slot_bits"), buckets = own_field(stats, "nbuckets");
    return slot_bits ? 8 * stats->plan.body_nbytes / slot_bits / BUCKET_SLOTS : buckets;
}

void own_info(const void *filter, struct info *info)
{
    const struct own *own = filter;
    struct perhaps_stats all, part;
    perhaps_stats_of(own->filter, &all);
    *info =
        (struct info){ .capacity = all.plan.capacity,
                       .size_nbytes = own_memory_nbytes(own),
                       .filters = all.parts ? all.parts : 1,
                       .items = own->items,
                       .deleted = own->deleted,
                       .buckets = buckets_of(&all),
                       .bucket_size = BUCKET_SLOTS,
                       .max_iterations = own->wish.max_iterations,
                       .expansion = own->wish.expansion ? (long long)own->wish.expansion : -1,
                       .fpr_asked = all.plan.fpr,
                       .fpr_now = all.fpr_now,
                       .hash = "sip (secret)",
                       .window_ms = own->wish.window_ms };
    if (all.parts && !own->wish.window_ms)
        info->capacity = 0;
    for (size_t i = 0; !own->wish.window_ms && perhaps_part(own->filter, i, &part); i++) {
        info->capacity += part.plan.capacity;
        info->buckets += buckets_of(&part);
    }
    if (own->items)
        info->bits_per_item = 8 * (double)info->size_nbytes / (double)own->items;
}

bool own_layer(const void *filter, size_t index, struct layer *layer)
{
    const struct own *own = filter;
    struct perhaps_stats all, one;
    perhaps_stats_of(own->filter, &all);
    one = all;
    if (all.parts
            ? index >= all.parts || !perhaps_part(own->filter, all.parts - 1 - index, &one)
            : index > 0)
        return false;
    *layer = (struct layer){ .nbytes = one.memory_nbytes,
                             .bits = 8 * one.plan.body_nbytes,
                             .capacity = one.plan.capacity,
                             .items = one.keys,
                             .hashes = (unsigned)own_field(&one, "line_bits"),
                             .ratio = one.plan.fpr };
    return true;
}

uint64_t own_items(const void *filter)
{
    return ((const struct own *)filter)->items;
}

size_t own_memory_nbytes(const void *filter)
{
    const struct own *own = filter;
    return sizeof *own + (own->filter ? perhaps_memory_nbytes(own->filter)
                                      : sizeof *own->loading + own->loading->pieces.nbytes);
}

void own_digest(RedisModuleDigest *digest, const void *filter)
{
    const struct own *own = filter;
    uint8_t bytes[16] = { 0 }, secret[SECRET_NBYTES];
    own_secret(own, secret);
    if (own->filter)
        perhaps_digest(own->filter, bytes);
    server.DigestAddStringBuffer(digest, (const char *)bytes, sizeof bytes);
    server.DigestAddStringBuffer(digest, (const char *)secret, sizeof secret);
    server.DigestAddLongLong(digest, (long long)own->items);
    server.DigestAddLongLong(digest, (long long)own->deleted);
    if (own->loading)
        server.DigestAddLongLong(digest, (long long)own->loading->pieces.nbytes);
    explicit_bzero(secret, sizeof secret);
    server.DigestEndSequence(digest);
}

/* ---- Copy and move ----------------------------------------------------------------------- */

void *own_copy(const void *filter)
{
    const struct own *own = filter;
    struct own *copy = own->filter ? own_new() : NULL;
    if (!copy)
        return NULL;
    *copy = *own;
    if (!perhaps_clone(own->filter, &copy->filter))
        return copy;
    memory_give(copy);
    return NULL;
}

static void *move(void *context, void *memory, size_t nbytes)
{
    (void)nbytes;
    return server.DefragAlloc(context, memory);
}

void own_defrag(RedisModuleDefragCtx *ctx, void **filter)
{
    struct own *own = *filter,
               *moved = server.DefragAlloc ? server.DefragAlloc(ctx, own) : NULL;
    if (moved)
        *filter = own = moved;
    if (server.DefragAlloc && own->filter)
        perhaps_relocate(&own->filter, move, ctx);
}
