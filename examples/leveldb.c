/* leveldb.c - a database of LevelDB with filters of this library, beside LevelDB's own.
 * LevelDB makes a filter for every two KiB or so of a table, of some 10 to 100 keys.  A header
 * would take more than these, so a filter here is the bare bits of a layout, and behind them
 * the number of its keys, which tells the layout again.
 * Shows: layouts for bits that another program keeps; how many bits such a filter takes; how
 * often it is wrong, and what that costs: a block of the table is read.
 * Run: build/examples/leveldb [KEYS [FPR]]   (returns 0 if no key is missed, and filters are
 * wrong as rarely as they should be) */
#include <leveldb/c.h>
#include <perhaps_fast.h>
#include <perhaps_layout.h>
#include <perhaps_plan.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { KEY_NBYTES = 16, VALUE_NBYTES = 100 };

/* ---- Filters ----------------------------------------------------------------------------- */

enum { FILTER_KEYS_MOST = 4000, TAIL_NBYTES = 2 }; /* more keys have no filter */

/* How a filter of so many keys is laid out, and how many bytes its bits take. */
struct plan {
    perhaps_layout *layout;
    size_t nbytes;
};

/* A plan for each number of keys that was met so far.  LevelDB calls from several threads. */
struct filters {
    double fpr;
    pthread_mutex_t lock;
    _Atomic(struct plan *) plan[FILTER_KEYS_MOST + 1];
    atomic_ulong
        count_of[FILTER_KEYS_MOST + 1]; /* how many filters of so many keys were made */
    atomic_ulong asked, passed;         /* questions, and how many were told "perhaps" */
};

/* Plans a filter.  The layout is NULL if there is none of this rate. */
static struct plan plan_for_rate(size_t nkeys, double fpr)
{
    const struct perhaps_options options = { .capacity = nkeys,
                                             .fpr = fpr,
                                             .hashing = { PERHAPS_HASH_XXH3_64, .seed = 1 } };
    struct perhaps_plan facts = { .body_nbytes = 0 };
    struct plan plan = { .layout = NULL };
    if (!perhaps_layout_create(&options, &plan.layout))
        perhaps_layout_plan(plan.layout, &facts);
    plan.nbytes = (size_t)facts.body_nbytes;
    return plan;
}

/* Bits come in lines of 64 bytes, so a lower rate may take no more: then it is taken. */
static struct plan *make_plan(size_t nkeys, double fpr)
{
    struct plan *plan = malloc(sizeof *plan), better;
    if (!plan)
        return NULL;
    *plan = plan_for_rate(nkeys, fpr);
    better = plan_for_rate(nkeys, fpr /= 1.25);
    for (; better.layout && better.nbytes <= plan->nbytes;
         better = plan_for_rate(nkeys, fpr /= 1.25)) {
        perhaps_layout_free(plan->layout);
        *plan = better;
    }
    perhaps_layout_free(better.layout);
    return plan;
}

/* Returns the plan for so many keys, or NULL. */
static const struct plan *plan_for(struct filters *filters, size_t nkeys)
{
    if (nkeys == 0 || nkeys > FILTER_KEYS_MOST)
        return NULL;
    struct plan *plan = atomic_load(&filters->plan[nkeys]);
    if (!plan) {
        pthread_mutex_lock(&filters->lock);
        plan = atomic_load(&filters->plan[nkeys]);
        if (!plan)
            plan = make_plan(nkeys, filters->fpr);
        atomic_store(&filters->plan[nkeys], plan);
        pthread_mutex_unlock(&filters->lock);
    }
    return plan && plan->layout ? plan : NULL;
}

/* Finds the bits of a key, which begin at the byte that is returned. */
static size_t find_bits(const perhaps_layout *layout, const char *key, size_t nbytes,
                        struct perhaps_bits *bits)
{
    const struct perhaps_key one = { key, nbytes };
    const struct perhaps_keys keys = perhaps_keys_each(&one, 1);
    struct perhaps_hashed hashed;
    (void)perhaps_layout_hash_many(layout, &keys, &hashed); /* this hash takes all keys */
    perhaps_layout_locate(layout, &hashed, bits);
    return (size_t)bits->block * bits->nlines * PERHAPS_LINE_NBYTES;
}

static char *create_filter(void *state, const char *const *key, const size_t *key_nbytes,
                           int count, size_t *filter_nbytes)
{
    struct filters *filters = state;
    const size_t nkeys = (size_t)count;
    const struct plan *plan = plan_for(filters, nkeys);
    const size_t nbytes = plan ? plan->nbytes : 0;
    uint8_t *filter = calloc(nbytes + TAIL_NBYTES, 1);
    struct perhaps_bits bits;
    *filter_nbytes = filter && plan ? nbytes + TAIL_NBYTES : 0;
    if (*filter_nbytes == 0)
        return (char *)filter;
    for (size_t i = 0; i < nkeys; i++) {
        uint8_t *block = filter + find_bits(plan->layout, key[i], key_nbytes[i], &bits);
        for (unsigned b = 0; b < bits.nbits; b++)
            block[bits.bit[b] / 8] |= (uint8_t)(1 << bits.bit[b] % 8);
    }
    filter[nbytes] = (uint8_t)nkeys;
    filter[nbytes + 1] = (uint8_t)(nkeys >> 8);
    filters->count_of[nkeys]++;
    return (char *)filter;
}

static bool has_bits(const uint8_t *block, const struct perhaps_bits *bits)
{
    for (unsigned b = 0; b < bits->nbits; b++)
        if (!(block[bits->bit[b] / 8] >> bits->bit[b] % 8 & 1))
            return false;
    return true;
}

/* What is no filter of ours may hold any key. */
static uint8_t key_may_match(void *state, const char *key, size_t key_nbytes,
                             const char *filter, size_t filter_nbytes)
{
    struct filters *filters = state;
    const uint8_t *bytes = (const uint8_t *)filter, *tail = bytes + filter_nbytes - TAIL_NBYTES;
    struct perhaps_bits bits;
    if (filter_nbytes < TAIL_NBYTES)
        return true;
    const struct plan *plan = plan_for(filters, tail[0] + 256U * tail[1]);
    if (!plan || plan->nbytes + TAIL_NBYTES != filter_nbytes)
        return true;
    const size_t at = find_bits(plan->layout, key, key_nbytes, &bits);
    bool passes = has_bits(bytes + at, &bits);
    filters->asked++;
    filters->passed += passes;
    return passes;
}

/* LevelDB reads only filters that have the name of its policy. */
static const char *name_of_filters(void *state)
{
    (void)state;
    return "perhaps.layout.1";
}

static void nothing(void *state)
{
    (void)state;
}

static void free_filters(struct filters *filters)
{
    for (size_t i = 0; i <= FILTER_KEYS_MOST; i++) {
        struct plan *plan = filters->plan[i];
        perhaps_layout_free(plan ? plan->layout : NULL);
        free(plan);
    }
    pthread_mutex_destroy(&filters->lock);
    free(filters);
}

/* ---- Databases --------------------------------------------------------------------------- */

/* A database, which is open while 'db' is, and what was measured of it. */
struct database {
    const char *path;
    leveldb_filterpolicy_t *policy;
    leveldb_options_t *options;
    leveldb_cache_t *cache;
    leveldb_t *db;

    double fill_seconds, absent_ns, present_ns; /* the best of all rounds */
    unsigned long read_nbytes;
    bool wrong; /* a key was missing, or an absent one there */
};

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static void check(char *problem)
{
    if (!problem)
        return;
    fprintf(stderr, "leveldb: %s\n", problem);
    exit(2);
}

static uint64_t mix(uint64_t x)
{
    x = (x ^ x >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    x = (x ^ x >> 27) * UINT64_C(0x94D049BB133111EB);
    return x ^ x >> 31;
}

/* Keys of even numbers are put in, those of odd ones are absent. */
static void make_key(uint64_t number, char key[KEY_NBYTES + 1])
{
    snprintf(key, KEY_NBYTES + 1, "%016llx", (unsigned long long)mix(number + 1));
}

/* LevelDB keeps the blocks that it has unpacked in its cache, which here forgets none: so the
 * cache tells what was read. */
static void open_database(struct database *d)
{
    const size_t no_limit = (size_t)1 << 40;
    char *problem = NULL;
    d->options = leveldb_options_create();
    d->cache = leveldb_cache_create_lru(no_limit);
    leveldb_options_set_create_if_missing(d->options, 1);
    leveldb_options_set_filter_policy(d->options, d->policy);
    leveldb_options_set_cache(d->options, d->cache);
    leveldb_options_set_compression(d->options, leveldb_snappy_compression);
    d->db = leveldb_open(d->options, d->path, &problem);
    check(problem);
}

static void close_database(struct database *d)
{
    leveldb_close(d->db);
    leveldb_options_destroy(d->options);
    leveldb_cache_destroy(d->cache);
}

static void destroy_database(const char *path)
{
    leveldb_options_t *options = leveldb_options_create();
    char *problem = NULL;
    leveldb_destroy_db(options, path, &problem);
    leveldb_options_destroy(options);
    leveldb_free(problem);
}

/* Half of a value is the same byte, so that it can be packed, as usual ones can. */
static void put_all(struct database *d, uint64_t keys)
{
    leveldb_writeoptions_t *how = leveldb_writeoptions_create();
    char key[KEY_NBYTES + 1], value[VALUE_NBYTES], *problem = NULL;
    memset(value, 'v', sizeof value);
    for (uint64_t i = 0; i < keys; i++) {
        make_key(2 * i, key);
        for (size_t at = 0; at < VALUE_NBYTES / 2; at += sizeof(uint64_t)) {
            const uint64_t noise = mix(i * VALUE_NBYTES + at);
            memcpy(value + at, &noise, sizeof noise);
        }
        leveldb_put(d->db, how, key, KEY_NBYTES, value, sizeof value, &problem);
        check(problem);
    }
    leveldb_compact_range(d->db, NULL, 0, NULL, 0);
    leveldb_writeoptions_destroy(how);
}

static void fill(struct database *d, uint64_t keys)
{
    destroy_database(d->path);
    const double begin = now();
    open_database(d);
    put_all(d, keys);
    close_database(d);
    d->fill_seconds = now() - begin;
}

static unsigned long cached_nbytes(const struct database *d)
{
    char *text = leveldb_property_value(d->db, "leveldb.approximate-memory-usage");
    unsigned long nbytes = text ? strtoul(text, NULL, 10) : 0;
    leveldb_free(text);
    return nbytes;
}

/* Asks for keys in a random order, which all must be there or all absent. */
static void ask(struct database *d, uint64_t keys, bool absent, double *best_ns)
{
    leveldb_readoptions_t *how = leveldb_readoptions_create();
    char key[KEY_NBYTES + 1], *problem = NULL;
    size_t nbytes;
    const double begin = now();
    for (uint64_t i = 0; i < keys; i++) {
        make_key(2 * (i * 7919 % keys) + absent, key);
        char *value = leveldb_get(d->db, how, key, KEY_NBYTES, &nbytes, &problem);
        check(problem);
        d->wrong |= absent == (value != NULL);
        leveldb_free(value);
    }
    const double ns = 1e9 * (now() - begin) / (double)keys;
    *best_ns = *best_ns && *best_ns < ns ? *best_ns : ns;
    leveldb_readoptions_destroy(how);
}

/* Absent keys are asked for first: the blocks that are read then should not have been. */
static void ask_all(struct database *d, uint64_t keys)
{
    open_database(d);
    const unsigned long before = cached_nbytes(d);
    ask(d, keys, true, &d->absent_ns);
    d->read_nbytes = cached_nbytes(d) - before;
    ask(d, keys, false, &d->present_ns);
    close_database(d);
}

static void end(struct database *d)
{
    destroy_database(d->path);
    leveldb_filterpolicy_destroy(d->policy);
}

/* ---- Both -------------------------------------------------------------------------------- */

/* What all filters that were made take: ours, and LevelDB's own with so many bits a key. */
struct sizes {
    unsigned long filters, keys, ours_nbytes, leveldb_nbytes;
};

static struct sizes sizes_of(struct filters *filters, unsigned bits)
{
    struct sizes s = { 0 };
    for (unsigned long n = 1; n <= FILTER_KEYS_MOST; n++) {
        const unsigned long count = filters->count_of[n], nbits = n * bits < 64 ? 64 : n * bits;
        if (!count)
            continue;
        s.filters += count;
        s.keys += count * n;
        s.ours_nbytes += count * (plan_for(filters, n)->nbytes + TAIL_NBYTES);
        s.leveldb_nbytes += count * ((nbits + 7) / 8 + 1);
    }
    return s;
}

/* Returns how many bits a key LevelDB's own filters get, which takes whole ones: as many bytes
 * as ours take, or a few more. */
static unsigned same_bits(struct filters *filters)
{
    unsigned bits = 1;
    for (struct sizes s = sizes_of(filters, bits); s.leveldb_nbytes < s.ours_nbytes;)
        s = sizes_of(filters, ++bits);
    return bits;
}

static void print(const char *name, const struct database *d, double bytes_a_key)
{
    printf("%-17s %8.2f %8.2f %10lu %10.0f %10.0f\n", name, bytes_a_key, d->fill_seconds,
           d->read_nbytes, d->absent_ns, d->present_ns);
}

int main(int argc, char **argv)
{
    enum { ROUNDS = 3 };
    const uint64_t keys = argc > 1 ? strtoull(argv[1], NULL, 10) : 20000;
    struct filters *filters = calloc(1, sizeof *filters);
    struct database ours = { .path = "leveldb.ours" }, own = { .path = "leveldb.own" };
    if (!filters || !keys) {
        free(filters);
        return puts("usage: leveldb [KEYS [FPR]]"), 2;
    }
    filters->fpr = argc > 2 ? strtod(argv[2], NULL) : 0.01;
    pthread_mutex_init(&filters->lock, NULL);
    ours.policy = leveldb_filterpolicy_create(filters, nothing, create_filter, key_may_match,
                                              name_of_filters);
    fill(&ours, keys);
    const unsigned bits = same_bits(filters);
    const struct sizes s = sizes_of(filters, bits);
    own.policy = leveldb_filterpolicy_create_bloom((int)bits);
    fill(&own, keys);
    for (int i = 0; i < ROUNDS; i++) {
        ask_all(&ours, keys);
        ask_all(&own, keys);
    }

    /* All keys that are there were asked for, too, and passed. */
    const unsigned long present = ROUNDS * keys, absent = filters->asked - present;
    const unsigned long passed = filters->passed - present;
    printf(
        "%llu keys of %d bytes, values of %d; %.0f keys a filter, asked for %.3g %%: %.3g %% "
        "passed\n\n",
        (unsigned long long)keys, KEY_NBYTES, VALUE_NBYTES, (double)s.keys / (double)s.filters,
        100 * filters->fpr, 100 * (double)passed / (double)absent);
    printf("%-17s %8s %8s %10s %10s %10s\n", "filters", "bytes a", "seconds", "bytes read",
           "ns to ask", "ns to ask");
    printf("%-17s %8s %8s %10s %10s %10s\n", "", "key", "to fill", "for absent", "absent key",
           "for a key");
    print("of this library", &ours, (double)s.ours_nbytes / (double)s.keys);
    print("LevelDB's own", &own, (double)s.leveldb_nbytes / (double)s.keys);
    printf("(LevelDB's own with %u bits a key)\n", bits);
    bool wrong = ours.wrong || own.wrong || (double)passed > filters->fpr * (double)absent;
    end(&ours);
    end(&own);
    free_filters(filters);
    return wrong;
}
