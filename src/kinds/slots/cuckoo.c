/* cuckoo.c - cuckoo filter (Fan, Andersen, Kaminsky, Mitzenmacher: Cuckoo Filter: Practically
 * Better Than Bloom, CoNEXT 2014).
 *
 *   body   = nbuckets buckets, then 8 bytes of room for the last load
 *   bucket = 4 slots of 'width' bits, bucket b beginning at bit 4 * width * b; 0 = empty
 *
 * An entry is the fingerprint of a key.  It lies in one of two buckets, each of which follows
 * from the other and the fingerprint: second = c(fingerprint) - first mod nbuckets.  That is
 * its own inverse for any number of buckets (an XOR needs a power of two), so an entry can move
 * although its key is not known.  c is odd and nbuckets is even, so the two buckets always
 * differ.
 *
 * Every add stores a copy: the filter is a multiset, from which added keys can be removed.  An
 * add first plans the moves that make room (breadth first, without writing) and then makes them
 * from the empty slot backwards: a failed add has changed nothing.
 *
 * Many threads.  A writer of a bucket holds its lock (one of many, taken in order).  Buckets
 * share words, so words are changed atomically.  A slot is cleared by a removal, or because its
 * entry has been copied to the other bucket; before that, the writer counts up the version of
 * the pair of buckets.  A reader reads the version, both buckets, and the version again.  It
 * can miss an entry only if it reads the new place too early and the old place too late; then
 * the version has changed, and it looks again.  Readers never wait.
 *
 * Limits: 4 to 32 bits a fingerprint; 8 copies of a key.
 * Invariant: each entry lies in one of its two buckets. */
#include <math.h>
#include <stdio.h>

#include "../../base/sizing.h"
#include "../kinds.h"
#include "buckets.h"

static const char *const field_names[] = { "nbuckets", "fingerprint_bits", NULL };

/* ---- Rate and plan --------------------------------------------------------------------- */

/* Returns how many different combinations of a bucket pair and a fingerprint there are.  An
 * absent key is "perhaps there" if its combination is occupied. */
static double pair_count(const struct geometry *g)
{
    return (double)g->field[NBUCKETS] / 2 * (exp2((double)g->field[WIDTH]) - 1);
}

static double predict(const struct geometry *g, double keys)
{
    return sizing_occupancy(pair_count(g), keys).mean;
}

/* Returns how many entries keep the fpr even if all of them differ. */
static double distinct_limit(const struct geometry *g)
{
    return floor(g->fpr * pair_count(g));
}

/* The load up to which adds are sure to find room: the search reaches .955 at every width
 * (.963 from 7 bits on).  A small table can be crowded by chance.  So it gets slots to spare
 * (plan_buckets()), and fingerprints that are long enough to spread its keys over all pairs of
 * buckets (SMALL_WIDTH).  Of 1.6 million tables for 9 to 33 keys, and 60,000 for 1000 and more,
 * none was full too early. */
static const double planned_load = 0.94;
enum { SMALL_CAPACITY = 10000, SMALL_WIDTH = 8 };

static uint64_t plan_buckets(uint64_t capacity)
{
    double slots = (double)capacity / planned_load + 3 * sqrt((double)capacity) + 16;
    uint64_t pairs = (uint64_t)ceil(slots / (2 * BUCKET_SLOTS));
    return 2 * pairs;
}

/* Returns how many combinations of bucket pair and fingerprint are expected to get nine keys or
 * more: one more than fit into the two buckets. */
static double crowded_pairs(const struct geometry *g)
{
    const double ninth = 362880; /* 9! */
    double pairs = pair_count(g);
    return pairs * pow((double)g->capacity / pairs, PERHAPS_COPIES_MAX + 1) / ninth;
}

/* Takes the narrowest fingerprints that keep the fpr for 'capacity' different keys and do not
 * crowd any pair of buckets. */
static int plan(struct geometry *g, const struct perhaps_options *options, char *why)
{
    (void)options;
    g->field[NBUCKETS] = plan_buckets(g->capacity);
    uint64_t least = g->capacity < SMALL_CAPACITY ? SMALL_WIDTH : WIDTH_MIN;
    for (uint64_t width = least; width <= WIDTH_MAX; width++) {
        g->field[WIDTH] = width;
        if ((double)g->capacity <= distinct_limit(g) && crowded_pairs(g) < 1e-6) {
            snprintf(why, WHY_NBYTES,
                     "keys can be removed: fingerprints of %u bits, two cache lines a key",
                     (unsigned)width);
            return 0;
        }
    }
    return PERHAPS_ERR_LIMIT;
}

static int set_geometry(struct geometry *g)
{
    uint64_t nbuckets = g->field[NBUCKETS];
    uint64_t width = g->field[WIDTH];
    if (nbuckets < 2 || nbuckets % 2 || nbuckets > UINT64_C(1) << 56 || width < WIDTH_MIN ||
        width > WIDTH_MAX)
        return PERHAPS_ERR_LIMIT;
    g->body_nbytes = round_up(nbuckets / 2 * width + sizeof(uint64_t), LINE_NBYTES);
    double limit = distinct_limit(g);
    uint64_t slots = nbuckets * BUCKET_SLOTS;
    g->key_limit = limit < (double)slots ? (uint64_t)limit : slots;
    return 0;
}

/* Computes both from the number of entries, as if all of them differed: the fpr is a little
 * lower if some are copies. */
static struct fill measure(const perhaps_filter *f, uint64_t most_nbytes)
{
    (void)most_nbytes;
    const struct geometry *g = &f->geometry;
    double keys = (double)__atomic_load_n(&f->counters->keys, __ATOMIC_RELAXED);
    return (struct fill){ .load = keys / (double)(g->field[NBUCKETS] * BUCKET_SLOTS),
                          .fpr = predict(g, keys) };
}

/* ---- Many threads ---------------------------------------------------------------------- */

/* What the threads of a shared filter need: versions, and a lock for every LOCK_BUCKETS buckets
 * within these limits. */
enum { LOCK_BUCKETS = 4, LOCKS_MIN = 64, LOCKS_MAX = 1 << 20 };

struct bucket_locks {
    uint32_t version[CUCKOO_VERSIONS];
    uint8_t lock[]; /* a power of two */
};

static uint64_t lock_count(uint64_t nbuckets)
{
    uint64_t n = LOCKS_MIN;
    while (n < LOCKS_MAX && n < nbuckets / LOCK_BUCKETS)
        n *= 2;
    return n;
}

static size_t writers_nbytes(const struct geometry *g)
{
    return sizeof(struct bucket_locks) + (size_t)lock_count(g->field[NBUCKETS]);
}

static struct table table_of(const perhaps_filter *f)
{
    uint64_t nbuckets = f->geometry.field[NBUCKETS];
    struct table t = table_make(f->body.bytes, nbuckets, (unsigned)f->geometry.field[WIDTH], 0);
    struct bucket_locks *locks = f->writers;
    if (!locks)
        return t;
    t.versions = locks->version;
    t.locks = locks->lock;
    t.lock_mask = lock_count(nbuckets) - 1;
    return t;
}

/* ---- Entries --------------------------------------------------------------------------- */

static struct entry entry_of(const struct table *t, const struct keyhash *key)
{
    return cuckoo_entry(*key, t->nbuckets, t->width);
}

/* ---- Operations ------------------------------------------------------------------------ */

static void bind(perhaps_filter *f)
{
    slot_loops_bind(f, cuckoo_loops(f->cpu, (unsigned)f->geometry.field[WIDTH]));
    if (f->writers)
        f->loops.contains_one = NULL; /* single keys go through contains() */
}

static size_t contains(const perhaps_filter *f, const struct keyhash *keys,
                       const struct keyhash *ahead, size_t n, bool *answer)
{
    const struct bucket_locks *locks = f->writers;
    if (!locks)
        return loops_contain(f, keys, ahead, n, answer);
    return cuckoo_contains_beside(&f->body, locks->version, keys, ahead, n, answer);
}

static void reads(const perhaps_filter *f, struct keyhash key, struct reads *r)
{
    struct table t = table_of(f);
    struct entry e = entry_of(&t, &key);
    const uint64_t buckets[] = { e.first, e.second };
    for (unsigned i = 0; i < 2; i++) {
        uint64_t bit = buckets[i] * BUCKET_SLOTS * t.width, end = bit + BUCKET_SLOTS * t.width;
        reads_add(r, f->body.bytes + bit / 8, (end + 7) / 8 - bit / 8);
    }
}

static ALWAYS_INLINE void prefetch_key(const struct table *t, const struct keyhash *key)
{
    struct entry e = entry_of(t, key);
    table_prefetch(t, e.first);
    table_prefetch(t, e.second);
}

static int add(perhaps_filter *f, const struct keyhash *keys, const struct keyhash *ahead,
               size_t n, bool unless_present, bool *answer, size_t *done)
{
    struct table t = table_of(f);
    if (!f->writers) {
        memset(answer, false, n * sizeof *answer);
        return cuckoo_loops(f->cpu, t.width)
            ->add(&f->body, keys, ahead, n, unless_present, answer, done);
    }
    for (*done = 0; *done < n; ++*done) {
        prefetch_key(&t, &ahead[*done]);
        struct entry e = entry_of(&t, &keys[*done]);
        int error = table_insert(&t, &e, unless_present, &answer[*done]);
        if (error)
            return error;
    }
    return 0;
}

static bool holds(perhaps_filter *f, const struct keyhash *key)
{
    struct table t = table_of(f);
    struct entry e = entry_of(&t, key);
    table_lock(&t, e.first, e.second);
    const bool there = table_copies(&t, &e) > 0;
    table_unlock(&t, e.first, e.second);
    return there;
}

/* Removes one copy of an entry whose buckets are locked.  Returns whether there was one. */
static bool remove_one(const struct table *t, const struct entry *e)
{
    unsigned slot = table_find(t, e->first, e->fingerprint);
    if (slot < BUCKET_SLOTS) {
        table_clear(t, e->first, slot, e->second);
        return true;
    }
    slot = table_find(t, e->second, e->fingerprint);
    if (slot < BUCKET_SLOTS)
        table_clear(t, e->second, slot, e->first);
    return slot < BUCKET_SLOTS;
}

static size_t remove_(perhaps_filter *f, const struct keyhash *keys,
                      const struct keyhash *ahead, size_t n, bool *answer)
{
    struct table t = table_of(f);
    size_t removed = 0;
    for (size_t i = 0; i < n; i++) {
        prefetch_key(&t, &ahead[i]);
        struct entry e = entry_of(&t, &keys[i]);
        table_lock(&t, e.first, e.second);
        answer[i] = remove_one(&t, &e);
        table_unlock(&t, e.first, e.second);
        removed += answer[i];
    }
    return removed;
}

/* Counts again if an entry may have moved meanwhile, which could count it twice or not at
 * all. */
static uint64_t count(const perhaps_filter *f, const struct keyhash *key)
{
    struct table t = table_of(f);
    struct entry e = entry_of(&t, key);
    const uint32_t *version = t.versions ? table_version(&t, e.first, e.second) : NULL;
    uint32_t before = 0;
    uint64_t copies;
    do {
        if (version)
            before = __atomic_load_n(version, __ATOMIC_ACQUIRE);
        copies = table_copies(&t, &e);
        __atomic_thread_fence(__ATOMIC_ACQUIRE);
    } while (version && __atomic_load_n(version, __ATOMIC_RELAXED) != before);
    return copies;
}

/* Inserts each entry of the other table: a bucket and a fingerprint give the other bucket, so
 * no key is needed.  f is a copy (core/merge.c), which the caller drops after a failure. */
static int merge(perhaps_filter *f, const perhaps_filter *other)
{
    struct table to = table_of(f), from = table_of(other);
    for (uint64_t bucket = 0; bucket < from.nbuckets; bucket++)
        for (unsigned slot = 0; slot < BUCKET_SLOTS; slot++) {
            struct entry e = { .fingerprint = table_get(&from, bucket, slot), .first = bucket };
            if (!e.fingerprint)
                continue;
            e.second = cuckoo_other_bucket(bucket, e.fingerprint, to.nbuckets);
            bool was_present;
            int error = table_insert(&to, &e, f->is_set, &was_present);
            if (!error && !was_present && f->counters->keys++ >= f->geometry.key_limit)
                error = PERHAPS_ERR_FULL;
            if (error)
                return error;
        }
    return 0;
}

/* ---- Two filters ------------------------------------------------------------------------- */

enum { AHEAD = 8 }; /* buckets */

/* Prefetches the other buckets of the entries of a bucket, in the same table and in another. */
static ALWAYS_INLINE void prefetch_others(const struct table *t, const struct table *also,
                                          uint64_t bucket)
{
    uint32_t entry[BUCKET_SLOTS];
    if (bucket >= t->nbuckets)
        return;
    table_get_all(t, bucket, entry);
    for (unsigned slot = 0; slot < BUCKET_SLOTS; slot++) {
        uint64_t other = table_other(t, bucket, entry[slot]);
        PREFETCH(t->body + other * BUCKET_SLOTS * t->width / 8);
        PREFETCH(also->body + other * BUCKET_SLOTS * t->width / 8);
    }
}

/* Keeps of each entry as many copies as the other table has. */
static void intersect(perhaps_filter *f, const perhaps_filter *other)
{
    struct table t = table_of(f), wanted = table_of(other);
    uint64_t left = 0;
    for (uint64_t bucket = 0; bucket < t.nbuckets; bucket++) {
        prefetch_others(&t, &wanted, bucket + AHEAD);
        for (unsigned slot = 0; slot < BUCKET_SLOTS; slot++) {
            struct entry e = { .fingerprint = table_get(&t, bucket, slot), .first = bucket };
            if (!e.fingerprint)
                continue;
            e.second = table_other(&t, bucket, e.fingerprint);
            if (table_copies(&t, &e) > table_copies(&wanted, &e))
                table_clear(&t, bucket, slot, e.second);
            else
                left++;
        }
    }
    f->counters->keys = left;
}

static void marking(const struct geometry *g, struct marking *m)
{
    entries_marking(pair_count(g), m);
}

/* Returns how many different entries the table has that the other has not.  An entry counts
 * where its first copy lies: in the lower one of its buckets. */
static uint64_t count_entries(const struct table *t, const struct table *without)
{
    uint64_t count = 0;
    for (uint64_t bucket = 0; bucket < t->nbuckets; bucket++) {
        uint32_t entry[BUCKET_SLOTS];
        prefetch_others(t, without ? without : t, bucket + AHEAD);
        table_get_all(t, bucket, entry);
        for (unsigned slot = 0; slot < BUCKET_SLOTS; slot++) {
            struct entry e = { .fingerprint = entry[slot], .first = bucket };
            if (!e.fingerprint || table_find(t, bucket, e.fingerprint) < slot)
                continue;
            e.second = table_other(t, bucket, e.fingerprint);
            if (e.second < bucket && table_find(t, e.second, e.fingerprint) < BUCKET_SLOTS)
                continue;
            count += !without || table_copies(without, &e) == 0;
        }
    }
    return count;
}

static void count_marked(const perhaps_filter *a, uint64_t a_factor, const perhaps_filter *b,
                         uint64_t b_factor, struct marked *marked)
{
    (void)a_factor;
    (void)b_factor;
    struct table of_a = table_of(a), of_b = table_of(b);
    marked->a = count_entries(&of_a, NULL);
    marked->b = count_entries(&of_b, NULL);
    marked->either = marked->b + count_entries(&of_a, &of_b);
}

static const struct compares compares = { .marking = marking, .count = count_marked };

const struct filter_kind kind_cuckoo = {
    .about = { .name = "cuckoo",
               .summary = "cuckoo filter: keys can be removed, copies counted up to 8",
               .abilities = PERHAPS_CAN_REMOVE | PERHAPS_CAN_COUNT | PERHAPS_CAN_MERGE |
                            PERHAPS_CAN_THREADS },
    .id = 3,
    .field_names = field_names,
    .plan = plan,
    .set_geometry = set_geometry,
    .predict = predict,
    .measure = measure,
    .bind = bind,
    .writers_nbytes = writers_nbytes,
    .prefetch = loops_prefetch,
    .contains = contains,
    .reads = reads,
    .holds = holds,
    .add = add,
    .remove = remove_,
    .count = count,
    .copies_most = PERHAPS_COPIES_MAX,
    .merge = merge,
    .intersect = intersect,
    .compares = &compares,
};
