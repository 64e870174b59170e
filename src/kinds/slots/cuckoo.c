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
#include "../kinds.h"
#include "flat.h"

static const char *const cuckoo_fields[] = { "nbuckets", "fingerprint_bits", NULL };

/* The search reaches a load of .955 at every width (.963 from 7 bits on). */
static const struct flat_shape cuckoo_shape = { .slots = BUCKET_SLOTS,
                                                .copies = PERHAPS_COPIES_MAX,
                                                .size_most = UINT64_C(1) << 56,
                                                .width_min = WIDTH_MIN,
                                                .width_small = 8,
                                                .load = 0.94,
                                                .load_compact = 0.94 };

/* ---- Rate and plan --------------------------------------------------------------------- */

static int cuckoo_plan(struct geometry *g, const struct perhaps_options *options, char *why)
{
    return flat_plan(&cuckoo_shape, g, options, why);
}

static int cuckoo_set_geometry(struct geometry *g)
{
    return flat_set_geometry(&cuckoo_shape, g);
}

static double cuckoo_predict(const struct geometry *g, double keys)
{
    return flat_predict(&cuckoo_shape, g, keys);
}

static void cuckoo_picking(const struct geometry *g, struct picking *m)
{
    flat_picking(&cuckoo_shape, g, m);
}

/* ---- Operations ------------------------------------------------------------------------ */

static void cuckoo_bind(perhaps_filter *f)
{
    flat_bind(f, &cuckoo_shape);
}

static bool cuckoo_holds(perhaps_filter *f, const struct keyhash *key)
{
    struct table t = flat_table(f);
    struct entry e = flat_table_entry(&t, key);
    table_lock(&t, e.first, e.second);
    const bool there = table_copies(&t, &e) > 0;
    table_unlock(&t, e.first, e.second);
    return there;
}

/* While others write it counts again if an entry may have moved meanwhile, which could count it
 * twice or not at all. */
static uint64_t cuckoo_count(const perhaps_filter *f, const struct keyhash *key)
{
    if (!f->body.writers)
        return loops_count(f, key);
    struct table t = flat_table(f);
    struct entry e = flat_table_entry(&t, key);
    const uint32_t *version = table_version(&t, e.first, e.second);
    uint32_t before;
    uint64_t copies;
    do {
        before = __atomic_load_n(version, __ATOMIC_ACQUIRE);
        copies = table_copies(&t, &e);
        __atomic_thread_fence(__ATOMIC_ACQUIRE);
    } while (__atomic_load_n(version, __ATOMIC_RELAXED) != before);
    return copies;
}

void perhaps_cuckoo_view_fill(const perhaps_filter *f, unsigned version,
                              struct perhaps_cuckoo_view *view)
{
    const unsigned width = (unsigned)f->body.geometry.field[WIDTH];
    enum perhaps_input input;
    if (f->kind != &kind_cuckoo || width > NARROW_MAX || !filter_has_view(f, version, &input))
        return;
    view->nbuckets[input] = f->body.geometry.field[SIZE];
    view->buckets = f->body.bytes;
    view->flip = f->body.flip;
    view->fingerprints = (UINT64_C(1) << width) - 1;
    view->pairs = f->body.geometry.field[SIZE] / 2;
    view->ones = lane_ones(width);
    view->tops = lane_ones(width) << (width - 1);
    view->bucket_nbits = BUCKET_SLOTS * width;
}

static const struct compares compares = { .picking = cuckoo_picking,
                                          .count = flat_count_picked };

const struct filter_kind kind_cuckoo = {
    .about = { .name = "cuckoo",
               .summary = "cuckoo filter: keys can be removed, copies counted up to 8",
               .abilities = PERHAPS_CAN_REMOVE | PERHAPS_CAN_COUNT | PERHAPS_CAN_MERGE |
                            PERHAPS_CAN_THREADS },
    .id = 3,
    .field_names = cuckoo_fields,
    .plan = cuckoo_plan,
    .set_geometry = cuckoo_set_geometry,
    .predict = cuckoo_predict,
    .measure = flat_measure,
    .bind = cuckoo_bind,
    .writers_nbytes = flat_writers_nbytes,
    .prefetch = loops_prefetch,
    .contains = loops_contain,
    .reads = flat_reads,
    .answer = flat_answer,
    .holds = cuckoo_holds,
    .add = flat_add,
    .remove = flat_remove,
    .count = cuckoo_count,
    .copies_most = PERHAPS_COPIES_MAX,
    .merge = flat_merge,
    .intersect = flat_intersect,
    .compares = &compares,
};
