/* flat.c - operations of filters whose body is one table of slots: cuckoo and strided. */
#include "flat.h"

#include <math.h>
#include <stdio.h>

#include "../../base/sizing.h"

/* ---- Rate and plan --------------------------------------------------------------------- */

/* Returns how many different combinations of two places and a fingerprint there are.  An absent
 * key is "perhaps there" if its combination is occupied. */
static double combinations(const struct flat_shape *shape, const struct geometry *g)
{
    double bits = (double)(g->field[WIDTH] - shape->width_other);
    return (double)(g->field[SIZE] - shape->behind) / 2 * (exp2(bits) - 1);
}

double flat_predict(const struct flat_shape *shape, const struct geometry *g, double keys)
{
    return sizing_occupancy(combinations(shape, g), keys).mean;
}

double flat_distinct_limit(const struct flat_shape *shape, const struct geometry *g)
{
    return floor(g->fpr * combinations(shape, g));
}

/* A small table can be crowded by chance.  So it gets slots to spare, and fingerprints that are
 * long enough to spread its keys over all pairs of places (width_small).  Of 1.6 million cuckoo
 * tables for 9 to 33 keys, and 60,000 for 1000 and more, none was full too early. */
enum { SMALL_CAPACITY = 10000 };

static uint64_t plan_size(const struct flat_shape *shape, uint64_t capacity, double load)
{
    double slots = (double)capacity / load + 3 * sqrt((double)capacity) + 16;
    return 2 * (uint64_t)ceil(slots / (2 * shape->slots)) + shape->behind;
}

/* Returns how many combinations are expected to get one key more than there is room for, or
 * more. */
static double crowded(const struct flat_shape *shape, const struct geometry *g)
{
    double all = combinations(shape, g), factorial = 1;
    for (unsigned i = 2; i <= shape->copies + 1; i++)
        factorial *= i;
    return all * pow((double)g->capacity / all, shape->copies + 1) / factorial;
}

/* Takes the narrowest slots that keep the fpr for 'capacity' different keys and do not crowd
 * any pair of places. */
int flat_plan(const struct flat_shape *shape, struct geometry *g,
              const struct perhaps_options *options, char *why)
{
    bool compact = options->preference == PERHAPS_PREFER_COMPACT;
    g->field[SIZE] = plan_size(shape, g->capacity, compact ? shape->load_compact : shape->load);
    uint64_t least = g->capacity < SMALL_CAPACITY ? shape->width_small : shape->width_min;
    for (uint64_t width = least; width <= WIDTH_MAX; width++) {
        g->field[WIDTH] = width;
        if ((double)g->capacity <= flat_distinct_limit(shape, g) && crowded(shape, g) < 1e-6) {
            snprintf(why, WHY_NBYTES,
                     "keys can be removed: %s of %u bits, two cache lines a key",
                     shape->strided ? "cells" : "fingerprints", (unsigned)width);
            return 0;
        }
    }
    return PERHAPS_ERR_LIMIT;
}

int flat_set_geometry(const struct flat_shape *shape, struct geometry *g)
{
    uint64_t size = g->field[SIZE], width = g->field[WIDTH];
    if (size < shape->behind + 2 || (size - shape->behind) % 2 || size > shape->size_most ||
        width < shape->width_min || width > WIDTH_MAX)
        return PERHAPS_ERR_LIMIT;
    uint64_t slots = size * shape->slots;
    g->body_nbytes = round_up((slots + 7) / 8 * width + sizeof(uint64_t), LINE_NBYTES);
    double limit = flat_distinct_limit(shape, g);
    g->key_limit = limit < (double)slots ? (uint64_t)limit : slots;
    return 0;
}

void flat_picking(const struct flat_shape *shape, const struct geometry *g, struct picking *m)
{
    double cells = combinations(shape, g), others = cells - 1;
    *m = (struct picking){
        .cells = cells,
        .chance = 1 / cells,
        .ngroups = 1,
        .group = { { .cells = others, .together = -1 / (others * others) } },
    };
}

static const struct flat_shape *shape_of(const perhaps_filter *f)
{
    return f->body.table;
}

/* Computes both from the number of entries, as if all of them differed: the fpr is a little
 * lower if some are copies. */
struct fill flat_measure(const perhaps_filter *f, uint64_t most_nbytes)
{
    (void)most_nbytes;
    const struct flat_shape *shape = shape_of(f);
    const struct geometry *g = &f->body.geometry;
    double keys = (double)__atomic_load_n(&f->counters->keys, __ATOMIC_RELAXED);
    return (struct fill){ .load = keys / (double)(g->field[SIZE] * shape->slots),
                          .fpr = flat_predict(shape, g, keys) };
}

/* ---- Many threads ---------------------------------------------------------------------- */

/* What the threads of a shared filter need: versions, and a lock for every LOCK_BUCKETS buckets
 * within these limits. */
enum { LOCK_BUCKETS = 4, LOCKS_MIN = 64, LOCKS_MAX = 1 << 20 };

struct bucket_locks {
    uint32_t version[TABLE_VERSIONS];
    uint8_t lock[]; /* a power of two */
};

static uint64_t bucket_lock_count(uint64_t nbuckets)
{
    uint64_t n = LOCKS_MIN;
    while (n < LOCKS_MAX && n < nbuckets / LOCK_BUCKETS)
        n *= 2;
    return n;
}

size_t flat_writers_nbytes(const struct geometry *g)
{
    return sizeof(struct bucket_locks) + (size_t)bucket_lock_count(g->field[SIZE]);
}

struct table flat_table(const perhaps_filter *f)
{
    struct table t = flat_table_alone(&f->body, shape_of(f)->strided);
    struct bucket_locks *locks = f->body.writers;
    if (!locks)
        return t;
    t.versions = locks->version;
    t.locks = locks->lock;
    t.lock_mask = bucket_lock_count(t.nplaces) - 1;
    return t;
}

/* ---- Operations ------------------------------------------------------------------------ */

static const struct slot_loops *loops_of(const perhaps_filter *f)
{
    return slot_loops_of(f->cpu, shape_of(f)->strided, (unsigned)f->body.geometry.field[WIDTH]);
}

void flat_bind(perhaps_filter *f, const struct flat_shape *shape)
{
    f->body.table = shape;
    const struct slot_loops *slots = loops_of(f);
    f->loops = f->body.writers ? &slots->beside : f->is_set ? &slots->of_set : &slots->loops;
}

/* The bytes of a place. */
struct stretch {
    uint64_t at, nbytes;
};

static struct stretch stretch_of(const struct table *t, uint64_t place, uint32_t fingerprint)
{
    const uint64_t slots = t->strided ? strided_stride(fingerprint) + 1 : BUCKET_SLOTS;
    const uint64_t bit = place * t->width * (t->strided ? 1 : BUCKET_SLOTS);
    return (struct stretch){ bit / 8, (bit + slots * t->width + 7) / 8 - bit / 8 };
}

void flat_reads(const perhaps_filter *f, struct keyhash key, struct reads *r)
{
    struct table t = flat_table(f);
    struct entry e = flat_table_entry(&t, &key);
    const uint64_t places[] = { e.first, e.second };
    for (unsigned i = 0; i < 2; i++) {
        const struct stretch s = stretch_of(&t, places[i], e.fingerprint);
        reads_add(r, s.at, s.nbytes);
    }
}

/* Asks a table that has the two places alone.  They begin at the same bit of a byte as in the
 * body, since eight slots or two buckets are whole bytes. */
bool flat_answer(const perhaps_filter *f, struct keyhash key, const uint8_t *const *bytes)
{
    enum { APART_CELLS = 16, APART_BUCKETS = 2 }; /* from one of the two to the other */
    uint8_t few[3 * APART_CELLS * WIDTH_MAX / 8] = { 0 };
    struct table t = flat_table(f);
    struct entry e = flat_table_entry(&t, &key), here = e;
    here.first = t.strided ? e.first % 8 : e.first % 2;
    here.second = t.strided ? APART_CELLS + e.second % 8 : APART_BUCKETS + e.second % 2;
    const uint64_t places[] = { e.first, e.second }, to[] = { here.first, here.second };
    for (unsigned i = 0; i < 2; i++)
        memcpy(few + stretch_of(&t, to[i], e.fingerprint).at, bytes[i],
               stretch_of(&t, places[i], e.fingerprint).nbytes);
    t.body = few;
    return table_copies(&t, &here) > 0;
}

static ALWAYS_INLINE void prefetch_to_write(const struct table *t, struct keyhash key)
{
    struct entry e = flat_table_entry(t, &key);
    table_prefetch(t, e.first);
    table_prefetch(t, e.second);
}

int flat_add(perhaps_filter *f, const struct keyhash *keys, const struct keyhash *ahead,
             size_t n, bool unless_present, bool *answer, size_t *done)
{
    if (!f->body.writers) {
        memset(answer, false, n * sizeof *answer);
        return loops_of(f)->add(&f->body, keys, ahead, n, unless_present, answer, done);
    }
    struct table t = flat_table(f);
    for (*done = 0; *done < n; ++*done) {
        prefetch_to_write(&t, ahead[*done]);
        struct entry e = flat_table_entry(&t, &keys[*done]);
        int error = table_insert(&t, &e, unless_present, &answer[*done]);
        if (error)
            return error;
    }
    return 0;
}

/* Removes keys, when no other thread writes.  The caller counts them. */
static size_t remove_alone(const perhaps_filter *f, const struct keyhash *keys,
                           const struct keyhash *ahead, size_t n, bool *answer)
{
    const struct loops *loops = f->loops;
    struct counters counters = { 0 };
    for (size_t i = 0; i < n; i++) {
        loops->prefetch(&f->body, &ahead[i], 1);
        answer[i] = !loops->remove_one(&f->body, keys[i], &counters);
    }
    return n - (size_t)counters.unmatched_removals;
}

size_t flat_remove(perhaps_filter *f, const struct keyhash *keys, const struct keyhash *ahead,
                   size_t n, bool *answer)
{
    if (!f->body.writers)
        return remove_alone(f, keys, ahead, n, answer);
    struct table t = flat_table(f);
    size_t removed = 0;
    for (size_t i = 0; i < n; i++) {
        prefetch_to_write(&t, ahead[i]);
        struct entry e = flat_table_entry(&t, &keys[i]);
        table_lock(&t, e.first, e.second);
        answer[i] = table_remove(&t, &e);
        table_unlock(&t, e.first, e.second);
        removed += answer[i];
    }
    return removed;
}

/* ---- Two filters ------------------------------------------------------------------------- */

static uint64_t slot_count(const perhaps_filter *f)
{
    return f->body.geometry.field[SIZE] * shape_of(f)->slots;
}

enum { AHEAD = 8 }; /* buckets */

/* Prefetches the other buckets of the entries AHEAD buckets behind a slot, in its table and in
 * another one. */
static void prefetch_others(const struct table *t, const struct table *also, uint64_t at)
{
    const uint64_t bucket = at / BUCKET_SLOTS + AHEAD;
    uint32_t entry[BUCKET_SLOTS];
    if (t->strided || at % BUCKET_SLOTS || bucket >= t->nplaces)
        return;
    bucket_get(t->body, bucket, t->width, entry);
    for (unsigned slot = 0; slot < BUCKET_SLOTS; slot++) {
        uint64_t byte = bucket_byte(table_other(t, bucket, entry[slot]), t->width);
        PREFETCH(t->body + byte);
        PREFETCH(also->body + byte);
    }
}

/* Inserts each entry of the other table: a slot tells both places of its entry, so no key is
 * needed.  f is a copy (core/merge.c), which the caller drops after a failure. */
int flat_merge(perhaps_filter *f, const perhaps_filter *other)
{
    struct table to = flat_table(f), from = flat_table(other);
    for (uint64_t at = 0; at < slot_count(f); at++) {
        struct entry e = table_entry(&from, at);
        if (!e.fingerprint)
            continue;
        bool was_present;
        int error = table_insert(&to, &e, f->is_set, &was_present);
        if (!error && !was_present && f->counters->keys++ >= f->body.geometry.key_limit)
            error = PERHAPS_ERR_FULL;
        if (error)
            return error;
    }
    return 0;
}

/* Keeps of each entry as many copies as the other table has. */
void flat_intersect(perhaps_filter *f, const perhaps_filter *other)
{
    struct table t = flat_table(f), wanted = flat_table(other);
    uint64_t left = 0;
    for (uint64_t at = 0; at < slot_count(f); at++) {
        prefetch_others(&t, &wanted, at);
        struct entry e = table_entry(&t, at);
        if (!e.fingerprint)
            continue;
        if (table_copies(&t, &e) > table_copies(&wanted, &e))
            table_clear(&t, at);
        else
            left++;
    }
    f->counters->keys = left;
}

/* Returns how many different entries a filter has, or with 'without' how many that has not. */
static uint64_t count_entries(const perhaps_filter *f, const perhaps_filter *without)
{
    struct table t = flat_table(f), other = flat_table(without ? without : f);
    uint64_t count = 0;
    for (uint64_t at = 0; at < slot_count(f); at++) {
        prefetch_others(&t, &other, at);
        struct entry e = table_entry(&t, at);
        count += e.fingerprint && table_is_first_copy(&t, &e, at) &&
                 !(without && table_copies(&other, &e));
    }
    return count;
}

void flat_count_picked(const perhaps_filter *a, uint64_t a_factor, const perhaps_filter *b,
                       uint64_t b_factor, struct picked *picked)
{
    (void)a_factor;
    (void)b_factor;
    picked->a = count_entries(a, NULL);
    picked->b = count_entries(b, NULL);
    picked->either = picked->b + count_entries(a, b);
}
