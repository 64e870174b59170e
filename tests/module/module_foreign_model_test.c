/* module_foreign_model_test.c - proves that RedisBloom's own filters answer and change as
 * they do there: random operations beside plain models of its rules, which are compared byte
 * by byte.
 *
 * It fails when one bit or fingerprint lies elsewhere than in RedisBloom. */
#include "support.h"

#include <math.h>
#include <string.h>

#include "../../module/memory.h"
#include "../../module/settings.h"
#include "fake_server.h"
#include "foreign.h"
#include "hostile.h"

/* ---- A model of Bloom filters ----------------------------------------------------------- */

static uint64_t model_hash(const uint8_t *bytes, size_t n, uint64_t seed)
{
    const uint64_t m = UINT64_C(0xc6a4a7935bd1e995);
    uint64_t h = seed ^ n * m, k = 0;
    for (size_t i = 0; i < n; i++) {
        k |= (uint64_t)bytes[i] << 8 * (i % 8);
        if (i % 8 == 7) {
            k *= m;
            k ^= k >> 47;
            h = (h ^ k * m) * m;
            k = 0;
        }
    }
    h = n % 8 ? (h ^ k) * m : h;
    h = (h ^ h >> 47) * m;
    return h ^ h >> 47;
}

static uint64_t model_hash_32(const uint8_t *bytes, size_t n, uint32_t seed)
{
    uint32_t h = seed ^ (uint32_t)n, k = 0;
    for (size_t i = 0; i < n; i++) {
        k |= (uint32_t)bytes[i] << 8 * (i % 4);
        if (i % 4 == 3) {
            k *= 0x5bd1e995;
            k ^= k >> 24;
            h = h * 0x5bd1e995 ^ k * 0x5bd1e995;
            k = 0;
        }
    }
    h = n % 4 ? (h ^ k) * 0x5bd1e995 : h;
    h = (h ^ h >> 13) * 0x5bd1e995;
    return h ^ h >> 15;
}

enum { LINKS_HERE = 12 };

struct model {
    unsigned options, growth;
    struct plan links[LINKS_HERE];
    uint8_t *bits[LINKS_HERE];
    uint64_t items[LINKS_HERE];
    unsigned n;
};

static void model_grow(struct model *m, uint64_t entries, double error)
{
    expect(m->n < LINKS_HERE);
    m->links[m->n] = plan_link(entries, error, m->options);
    m->bits[m->n] = calloc(m->links[m->n].nbytes, 1);
    m->items[m->n++] = 0;
}

/* Tells whether a link has all bits of an item; 'set' sets them. */
static bool model_bits(struct model *m, unsigned link, struct perhaps_key item, bool set)
{
    const struct plan *p = &m->links[link];
    const uint64_t modulus = p->n2 ? UINT64_C(1) << p->n2 : p->nbytes * 8;
    const bool wide = m->options & FORCE64;
    uint64_t a = wide ? model_hash(item.bytes, item.nbytes, UINT64_C(0xc6a4a7935bd1e995))
                      : model_hash_32(item.bytes, item.nbytes, 0x9747b28c);
    uint64_t b = wide ? model_hash(item.bytes, item.nbytes, a)
                      : model_hash_32(item.bytes, item.nbytes, (uint32_t)a);
    bool all = true;
    for (unsigned i = 0; i < p->hashes; i++) {
        const uint64_t bit = (a + i * b) % modulus;
        all = all && m->bits[link][bit / 8] >> bit % 8 & 1;
        if (set)
            m->bits[link][bit / 8] |= (uint8_t)(1U << bit % 8);
    }
    return all;
}

static bool model_has(struct model *m, struct perhaps_key item)
{
    for (unsigned i = 0; i < m->n; i++)
        if (model_bits(m, i, item, false))
            return true;
    return false;
}

/* Returns false if the filter is full. */
static bool model_add(struct model *m, struct perhaps_key item)
{
    const struct plan *last = &m->links[m->n - 1];
    if (model_has(m, item))
        return true;
    if (m->items[m->n - 1] >= last->entries) {
        if (m->options & NONSCALING)
            return false;
        model_grow(m, last->entries * m->growth, last->error / 2);
    }
    model_bits(m, m->n - 1, item, true);
    m->items[m->n - 1]++;
    return true;
}

static void expect_model(struct model *m, const void *filter)
{
    struct text dump = dump_of(&redis_bloom, filter), wanted;
    uint64_t items = 0;
    for (unsigned i = 0; i < m->n; i++)
        items += m->items[i];
    wanted = bloom_header(items, m->n, m->options, m->growth);
    for (unsigned i = 0; i < m->n; i++)
        put_link(&wanted, &m->links[i], m->items[i]);
    expect(dump.nbytes >= wanted.nbytes && !memcmp(dump.at, wanted.at, wanted.nbytes));
    size_t at = wanted.nbytes;
    for (unsigned i = 0; i < m->n; at += m->links[i++].nbytes)
        expect(!memcmp(dump.at + at, m->bits[i], m->links[i].nbytes));
    expect(dump.nbytes == at && redis_bloom.items(filter) == items);
    free(dump.at);
    free(wanted.at);
}

/* Adds a batch of items to both, and asks both for other ones. */
static bool step_both(struct model *m, void *filter, struct rng *rng, uint64_t range)
{
    uint64_t numbers[100];
    struct perhaps_key items[100];
    bool present[100], fits = true;
    size_t done, n = 1 + rng_below(rng, 100);
    for (size_t i = 0; i < n; i++) {
        numbers[i] = mix64(rng_below(rng, range));
        items[i] = item_of(&numbers[i]);
    }
    int error = redis_bloom.add(filter, items, n, false, present, &done);
    for (size_t i = 0; i < done; i++) {
        expect(present[i] == model_has(m, items[i]));
        expect(model_add(m, items[i]));
    }
    if (done < n) {
        expect(error == PERHAPS_ERR_FULL && !model_add(m, items[done]));
        fits = false;
    }
    for (size_t i = 0; i < n; i++) {
        numbers[i] = mix64(rng_below(rng, 2 * range));
        items[i] = item_of(&numbers[i]);
    }
    redis_bloom.contains(filter, items, n, 0, present);
    for (size_t i = 0; i < n; i++)
        expect(present[i] == model_has(m, items[i]));
    return fits;
}

TEST(test_bloom_beside_a_model)
{
    static const unsigned choices[] = { NOROUND | FORCE64, FORCE64, 0,
                                        NOROUND | FORCE64 | NONSCALING, NONSCALING };
    struct rng rng = rng_for("bloom");
    setup();
    for (unsigned run = 0; run < 30; run++) {
        struct model m = { .options = choices[run % 5], .growth = 1 + run % 4 };
        const uint64_t entries = 1 + rng_below(&rng, 300), range = entries * 8 / m.growth;
        const double error = 1 / (2.0 + (double)rng_below(&rng, 1000));
        scene("run %u, options %u, growth %u, %u entries", run, m.options, m.growth,
              (unsigned)entries);
        model_grow(&m, entries, error);
        void *filter = make_bloom(entries, error, m.options, m.growth);
        for (unsigned step = 0; step < 20 && step_both(&m, filter, &rng, range); step++)
            expect_model(&m, filter);
        expect_model(&m, filter);
        expect_copies(&redis_bloom, filter);
        redis_bloom.release(filter);
        while (m.n > 0)
            free(m.bits[--m.n]);
    }
    expect_nothing_left();
}

/* ---- A model of cuckoo filters ---------------------------------------------------------- */

struct cuckoo_model {
    unsigned size, iterations, expansion, n;
    uint64_t buckets[LINKS_HERE], items, deleted;
    uint8_t *slots[LINKS_HERE];
};

static uint64_t model_fingerprint(struct perhaps_key item, uint64_t *first, uint64_t *second)
{
    *first = model_hash(item.bytes, item.nbytes, 0);
    const uint64_t fingerprint = *first % 255 + 1;
    *second = *first ^ fingerprint * 0x5bd1e995;
    return fingerprint;
}

/* Returns a slot with this value in one of the two buckets of a filter, or NULL. */
static uint8_t *model_slot(struct cuckoo_model *m, unsigned j, uint64_t first, uint64_t second,
                           uint64_t value)
{
    const uint64_t buckets[] = { first % m->buckets[j], second % m->buckets[j] };
    for (unsigned i = 0; i < 2 * m->size; i++) {
        uint8_t *slot = m->slots[j] + buckets[i / m->size] * m->size + i % m->size;
        if (*slot == value)
            return slot;
    }
    return NULL;
}

static void cuckoo_model_grow(struct cuckoo_model *m, uint64_t buckets)
{
    expect(m->n < LINKS_HERE);
    m->buckets[m->n] = buckets;
    m->slots[m->n++] = calloc(buckets, m->size);
}

/* Moves fingerprints in a copy of the newest filter. */
static bool model_kick(struct cuckoo_model *m, uint64_t bucket, uint64_t fingerprint)
{
    const uint64_t buckets = m->buckets[m->n - 1];
    uint8_t *copy = malloc(buckets * m->size);
    memcpy(copy, m->slots[m->n - 1], buckets * m->size);
    bucket %= buckets;
    for (unsigned step = 0; step < m->iterations; step++) {
        uint8_t *victim = copy + bucket * m->size + step % m->size, was = *victim;
        *victim = (uint8_t)fingerprint;
        fingerprint = was;
        bucket = (bucket ^ fingerprint * 0x5bd1e995) % buckets;
        uint8_t *slot = memchr(copy + bucket * m->size, 0, m->size);
        if (slot) {
            *slot = (uint8_t)fingerprint;
            free(m->slots[m->n - 1]);
            m->slots[m->n - 1] = copy;
            return true;
        }
    }
    free(copy);
    return false;
}

static int cuckoo_model_add(struct cuckoo_model *m, struct perhaps_key item)
{
    uint64_t first, second, fingerprint = model_fingerprint(item, &first, &second);
    uint8_t *slot = NULL;
    for (unsigned j = m->n; !slot && j-- > 0;)
        slot = model_slot(m, j, first, second, 0);
    if (!slot && !model_kick(m, first, fingerprint)) {
        if (!m->expansion)
            return PERHAPS_ERR_FULL;
        if (m->n >= settings.cf_max_expansions)
            return PERHAPS_ERR_LAYERS;
        cuckoo_model_grow(m, m->buckets[m->n - 1] * m->expansion);
        slot = model_slot(m, m->n - 1, first, second, 0);
    }
    if (slot)
        *slot = (uint8_t)fingerprint;
    m->items++;
    return 0;
}

static uint64_t cuckoo_model_count(struct cuckoo_model *m, struct perhaps_key item)
{
    uint64_t first, second, fingerprint = model_fingerprint(item, &first, &second), n = 0;
    for (unsigned j = 0; j < m->n; j++)
        for (uint64_t bucket = 0; bucket < m->buckets[j]; bucket++)
            for (unsigned i = 0; i < m->size; i++)
                n += m->slots[j][bucket * m->size + i] == fingerprint &&
                     (bucket == first % m->buckets[j] || bucket == second % m->buckets[j]);
    return n;
}

static bool cuckoo_model_remove(struct cuckoo_model *m, struct perhaps_key item)
{
    uint64_t first, second, fingerprint = model_fingerprint(item, &first, &second);
    uint8_t *slot = NULL;
    for (unsigned j = m->n; !slot && j-- > 0;)
        slot = model_slot(m, j, first, second, fingerprint);
    if (!slot)
        return false;
    *slot = 0;
    m->items--;
    m->deleted++;
    return true;
}

static void expect_cuckoo_model(struct cuckoo_model *m, const void *filter)
{
    struct text dump = dump_of(&redis_cuckoo, filter);
    struct text wanted =
        cuckoo_header(m->buckets[0], m->n, m->size, m->iterations, m->expansion);
    put64(wanted.at, m->items);
    put64(wanted.at + 16, m->deleted);
    expect(dump.nbytes >= CUCKOO_HEAD && !memcmp(dump.at, wanted.at, CUCKOO_HEAD));
    size_t at = CUCKOO_HEAD;
    for (unsigned j = 0; j < m->n; at += m->buckets[j++] * m->size)
        expect(!memcmp(dump.at + at, m->slots[j], m->buckets[j] * m->size));
    expect(dump.nbytes == at && redis_cuckoo.items(filter) == m->items);
    free(dump.at);
    free(wanted.at);
}

/* Adds or removes one item in both.  Returns false if the filter is full. */
static bool step_cuckoos(struct cuckoo_model *m, void *filter, struct rng *rng, uint64_t range)
{
    const uint64_t number = mix64(rng_below(rng, range));
    const struct perhaps_key item = item_of(&number);
    const uint64_t count = cuckoo_model_count(m, item);
    const bool unless_present = rng_below(rng, 2);
    bool present;
    size_t done;
    redis_cuckoo.contains(filter, &item, 1, 0, &present);
    expect(present == (count > 0) && redis_cuckoo.count(filter, &item) == count);
    if (rng_below(rng, 4) == 0) {
        expect(redis_cuckoo.remove(filter, &item) == cuckoo_model_remove(m, item));
        return true;
    }
    int error = redis_cuckoo.add(filter, &item, 1, unless_present, &present, &done);
    expect(done == !error);
    if (unless_present && count) {
        expect(!error && present);
        return true;
    }
    expect(error == cuckoo_model_add(m, item));
    return !error;
}

TEST(test_cuckoo_beside_a_model)
{
    struct rng rng = rng_for("cuckoo");
    setup();
    settings.cf_max_expansions = 4;
    for (unsigned run = 0; run < 24; run++) {
        struct cuckoo_model m = { .size = 1 + run % 5,
                                  .iterations = 1 + run * run % 40,
                                  .expansion = (unsigned[]){ 0, 1, 2, 4 }[run % 4] };
        cuckoo_model_grow(&m, UINT64_C(1) << run % 6);
        const uint64_t range = m.buckets[0] * m.size * 4;
        scene("run %u, %u buckets of %u", run, (unsigned)m.buckets[0], m.size);
        void *filter = make_cuckoo(m.buckets[0], m.size, m.iterations, m.expansion);
        for (unsigned step = 0; step < 1500; step++)
            if (!step_cuckoos(&m, filter, &rng, range) || step % 50 == 0)
                expect_cuckoo_model(&m, filter);
        expect_cuckoo_model(&m, filter);
        expect_copies(&redis_cuckoo, filter);
        redis_cuckoo.release(filter);
        while (m.n > 0)
            free(m.slots[--m.n]);
    }
    expect_nothing_left();
}

/* Compacting loses no copy of any item, and makes the filter smaller where there is room. */
TEST(test_compact)
{
    enum { ITEMS = 3000 };
    uint64_t numbers[ITEMS], counts[ITEMS];
    struct perhaps_key items[ITEMS];
    bool was_present[ITEMS];
    size_t done;
    struct info before, after;
    struct rng rng = rng_for("compact");
    setup();
    for (unsigned expansion = 1; expansion <= 4; expansion *= 2) {
        void *filter = make_cuckoo(64, 2, 20, expansion);
        for (size_t i = 0; i < ITEMS; i++) {
            numbers[i] = rng_next(&rng);
            items[i] = item_of(&numbers[i]);
        }
        expect_success(redis_cuckoo.add(filter, items, ITEMS, false, was_present, &done));
        expect(done == ITEMS && !was_present[0]);
        for (size_t i = 0; i < ITEMS; i += 1 + i % 2)
            expect(redis_cuckoo.remove(filter, &items[i]));
        for (size_t i = 0; i < ITEMS; i++)
            counts[i] = redis_cuckoo.count(filter, &items[i]);
        redis_cuckoo.info(filter, &before);
        redis_cuckoo.compact(filter);
        redis_cuckoo.info(filter, &after);
        expect(after.items == before.items && after.deleted == 0 && before.deleted > 0);
        expect(after.filters < before.filters && after.size_nbytes < before.size_nbytes);
        for (size_t i = 0; i < ITEMS; i++) {
            bool present;
            const uint64_t count = redis_cuckoo.count(filter, &items[i]);
            redis_cuckoo.contains(filter, &items[i], 1, 0, &present);
            /* a bucket of an older filter belongs to more items */
            expect(count >= counts[i] && present == (count > 0));
        }
        expect_success(redis_cuckoo.add(filter, items, 100, false, was_present, &done));
        expect_copies(&redis_cuckoo, filter);
        redis_cuckoo.release(filter);
    }
    expect_nothing_left();
}
