/* module_foreign_test.c - proves that RedisBloom's own filters are served as they are: answers and
 * bytes beside plain models of its rules, dumps that its documentation prints, its RDB fields, and
 * filters of which only some pieces came.
 *
 * It fails when an item that was added is denied, when one bit lies elsewhere than in RedisBloom,
 * or when damaged bytes are taken for a filter that breaks. */
#include "support.h"

#include <math.h>
#include <string.h>

#include "../module/form.h"
#include "../module/memory.h"
#include "../module/settings.h"
#include "fake_server.h"
#include "hostile.h"

enum { NOROUND = 1, FORCE64 = 4, NONSCALING = 8, HEAD = 20, LINK = 53, CUCKOO_HEAD = 38 };

/* ---- Bytes of headers ---------------------------------------------------------------------- */

struct text {
    uint8_t *at;
    size_t nbytes;
};

static void put(struct text *text, uint64_t value, size_t nbytes)
{
    text->at = realloc(text->at, text->nbytes + nbytes);
    expect(text->at);
    put_number(text->at + text->nbytes, value, nbytes);
    text->nbytes += nbytes;
}

static void put_double(struct text *text, double value)
{
    uint64_t word;
    memcpy(&word, &value, sizeof word);
    put(text, word, sizeof word);
}

/* The numbers of a link, by the formulas of RedisBloom. */
struct plan {
    uint64_t nbytes, entries;
    double error, bpe;
    uint32_t hashes;
    uint8_t n2;
};

static struct plan plan_link(uint64_t entries, double error, unsigned options)
{
    struct plan p = { .entries = entries, .error = error };
    p.bpe = -log(error) / 0.480453013918201;
    p.hashes = (uint32_t)ceil(0.693147180559945 * p.bpe);
    uint64_t bits = (uint64_t)((double)entries * p.bpe);
    if (!(options & NOROUND)) {
        p.n2 = (uint8_t)(logb((double)entries * p.bpe) + 1);
        bits = UINT64_C(1) << p.n2;
        p.entries += (uint64_t)(trunc((double)bits - (double)entries * p.bpe) / p.bpe);
    }
    p.nbytes = (bits + 63) / 64 * 8;
    return p;
}

static void put_link(struct text *text, const struct plan *p, uint64_t items)
{
    put(text, p->nbytes, 8);
    put(text, p->nbytes * 8, 8);
    put(text, items, 8);
    put_double(text, p->error);
    put_double(text, p->bpe);
    put(text, p->hashes, 4);
    put(text, p->entries, 8);
    put(text, p->n2, 1);
}

static struct text bloom_header(uint64_t items, uint32_t links, uint32_t options,
                                uint32_t growth)
{
    struct text text = { 0 };
    put(&text, items, 8);
    put(&text, links, 4);
    put(&text, options, 4);
    put(&text, growth, 4);
    return text;
}

static struct text cuckoo_header(uint64_t buckets, uint64_t filters, unsigned bucket_size,
                                 unsigned iterations, unsigned expansion)
{
    struct text text = { 0 };
    put(&text, 0, 8);
    put(&text, buckets, 8);
    put(&text, 0, 8);
    put(&text, filters, 8);
    put(&text, bucket_size, 2);
    put(&text, iterations, 2);
    put(&text, expansion, 2);
    return text;
}

/* ---- Filters ------------------------------------------------------------------------------- */

static unsigned long long taken_before;

static void setup(void)
{
    fake_server();
    taken_before = memory_taken();
    fake_memory_ends = 0;
    settings.cf_max_expansions = 32;
}

static void *begin(const struct form *form, const struct text *header)
{
    const char *why = NULL;
    expect(form->is_header((const char *)header->at, header->nbytes));
    void *filter = form->begin_load((const char *)header->at, header->nbytes, &why);
    expect(filter || why);
    return filter;
}

static int load(const struct form *form, void *filter, uint64_t position, const void *bytes,
                size_t nbytes)
{
    const char *why = NULL;
    int error = form->load(filter, position, bytes, nbytes, &why);
    expect(!error || why);
    return error;
}

/* Makes a filter with these links and no items.  Releases the header. */
static void *make(const struct form *form, struct text header, uint64_t nbytes)
{
    void *filter = begin(form, &header), *zeros = calloc(nbytes, 1);
    expect(filter && zeros);
    expect(!form->is_complete(filter));
    expect_success(load(form, filter, 1 + nbytes, zeros, nbytes));
    expect(form->is_complete(filter));
    free(zeros);
    free(header.at);
    return filter;
}

static void *make_bloom(uint64_t entries, double error, unsigned options, unsigned growth)
{
    const struct plan p = plan_link(entries, error, options);
    struct text header = bloom_header(0, 1, options, growth);
    put_link(&header, &p, 0);
    return make(&redis_bloom, header, p.nbytes);
}

static void *make_cuckoo(uint64_t buckets, unsigned size, unsigned iterations, unsigned expansion)
{
    return make(&redis_cuckoo, cuckoo_header(buckets, 1, size, iterations, expansion),
                buckets * size);
}

static struct perhaps_key item_of(const uint64_t *number)
{
    return (struct perhaps_key){ number, 1 + *number % sizeof *number };
}

static bool has(const struct form *form, const void *filter, const char *text)
{
    bool present;
    form->contains(filter, &(struct perhaps_key){ text, strlen(text) }, 1, 0, &present);
    return present;
}

/* Returns all pieces of a dump, the header first, and their positions. */
static struct text dump_of(const struct form *form, const void *filter)
{
    struct text text = { 0 };
    struct dump piece;
    uint64_t position = 0;
    do {
        expect_success(form->dump(filter, position, &piece));
        text.at = realloc(text.at, text.nbytes + piece.nbytes + 1);
        expect(text.at && piece.nbytes <= DUMP_MOST_NBYTES && !piece.next == !piece.nbytes);
        if (piece.nbytes)
            memcpy(text.at + text.nbytes, piece.bytes, piece.nbytes);
        text.nbytes += piece.nbytes;
        memory_give(piece.memory);
        position = piece.next;
    } while (position);
    return text;
}

static void expect_same_dumps(const struct form *form, const void *a, const void *b)
{
    struct text one = dump_of(form, a), other = dump_of(form, b);
    expect(one.nbytes == other.nbytes && !memcmp(one.at, other.at, one.nbytes));
    expect(form->is_complete(a) == form->is_complete(b) && form->items(a) == form->items(b));
    free(one.at);
    free(other.at);
}

/* Loads the dump of a filter into a new one.  Stops before the piece of number 'most'. */
static void *reload(const struct form *form, const void *filter, unsigned most)
{
    struct dump piece;
    const char *why;
    void *loaded = NULL;
    uint64_t position = 0;
    for (unsigned i = 0; i < most; i++, position = piece.next) {
        expect_success(form->dump(filter, position, &piece));
        if (!piece.nbytes)
            break;
        if (!loaded)
            loaded = form->begin_load(piece.bytes, piece.nbytes, &why);
        else
            expect_success(load(form, loaded, piece.next, piece.bytes, piece.nbytes));
        memory_give(piece.memory);
    }
    return loaded;
}

static void *saved_and_read(const struct form *form, const void *filter)
{
    RedisModuleIO rdb = { 0 };
    form->save(&rdb, filter);
    void *again = form->read(&rdb, form->encoding);
    expect(again && rdb.at == rdb.nbytes && !rdb.logged);
    free(rdb.bytes);
    return again;
}

/* Checks all ways from one filter to another that is the same. */
static void expect_copies(const struct form *form, const void *filter)
{
    struct RedisModuleDigest digest = { 0 }, other = { 0 };
    void *copies[] = { form->copy(filter), saved_and_read(form, filter),
                       reload(form, filter, UINT32_MAX) };
    form->digest(&digest, filter);
    for (size_t i = 0; i < sizeof copies / sizeof *copies; i++) {
        expect(copies[i]);
        expect_same_dumps(form, filter, copies[i]);
        form->defrag(NULL, &copies[i]);
        expect_same_dumps(form, filter, copies[i]);
        other.hash = 0;
        form->digest(&other, copies[i]);
        expect(other.hash == digest.hash);
        expect(form->memory_nbytes(copies[i]) >= 8);
        form->release(copies[i]);
    }
}

static void expect_nothing_left(void)
{
    expect(memory_taken() == taken_before);
}

/* ---- Known bytes ----------------------------------------------------------------------------- */

/* Checks that these bits of the first block are set, and no others. */
static void expect_bits(const void *filter, const unsigned *bits, unsigned n, size_t nbytes)
{
    struct text dump = dump_of(&redis_bloom, filter);
    uint8_t *wanted = calloc(nbytes, 1);
    for (unsigned i = 0; i < n; i++)
        wanted[bits[i] / 8] |= (uint8_t)(1 << bits[i] % 8);
    expect(dump.nbytes == HEAD + LINK + nbytes);
    expect(!memcmp(dump.at + HEAD + LINK, wanted, nbytes));
    free(wanted);
    free(dump.at);
}

static void add_text(const struct form *form, void *filter, const char *text, bool unless_present,
                     bool wanted)
{
    const struct perhaps_key item = { text, strlen(text) };
    bool was_present;
    size_t done;
    expect_success(form->add(filter, &item, 1, unless_present, &was_present, &done));
    expect(done == 1 && was_present == wanted);
}

TEST(test_bits_of_an_item)
{
    static const unsigned bits[] = { 269, 847, 145, 723, 21, 599, 25, 475 };
    setup();
    void *filter = make_bloom(100, .005, NOROUND | FORCE64, 2);
    expect(!has(&redis_bloom, filter, "foo"));
    add_text(&redis_bloom, filter, "foo", true, false);
    add_text(&redis_bloom, filter, "foo", true, true);
    expect_bits(filter, bits, 8, 144);
    redis_bloom.release(filter);
    expect_nothing_left();
}

/* What the documentation of BF.SCANDUMP prints: made with a capacity of 10 and the rate .1. */
TEST(test_documented_bloom_filter)
{
    static const char header[] = "\1\0\0\0\0\0\0\0\1\0\0\0\5\0\0\0\2\0\0\0\x08\0\0\0\0\0\0\0@\0\0\0"
                                 "\0\0\0\0\1\0\0\0\0\0\0\0\x9a\x99\x99\x99\x99\x99\xa9?J\xf7\xd4\x9e"
                                 "\xde\xf0\x18@\5\0\0\0\n\0\0\0\0\0\0\0";
    static const char bits[] = "\1\x08\0\x80\0\4 ";
    struct text text = { (uint8_t *)(uintptr_t)header, sizeof header };
    struct info info;
    struct layer layer;
    setup();
    void *filter = begin(&redis_bloom, &text);
    expect(filter);
    expect_success(load(&redis_bloom, filter, 9, bits, sizeof bits));
    expect(redis_bloom.is_complete(filter) && redis_bloom.items(filter) == 1);
    expect(has(&redis_bloom, filter, "item1") && !has(&redis_bloom, filter, "item2"));
    redis_bloom.info(filter, &info);
    expect(info.capacity == 10 && info.filters == 1 && info.items == 1 && info.expansion == 2);
    expect(fabs(info.fpr_asked - .1) < 1e-12 && fabs(info.fpr_now - pow(5 / 64., 5)) < 1e-12);
    expect(info.bits_per_item == 64);
    expect(redis_bloom.layer(filter, 0, &layer) && layer.bits == 64 && layer.hashes == 5);
    expect(!redis_bloom.layer(filter, 1, &layer));
    struct text dump = dump_of(&redis_bloom, filter);
    expect(dump.nbytes == sizeof header + sizeof bits && !memcmp(dump.at, header, sizeof header));
    free(dump.at);
    expect_copies(&redis_bloom, filter);
    redis_bloom.release(filter);
    expect_nothing_left();
}

/* What that of CF.SCANDUMP prints: of a version whose header ends with a pointer. */
TEST(test_documented_cuckoo_filter)
{
    static const char header[] = "\1\0\0\0\0\0\0\0\4\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0"
                                 "\2\0\x14\0\1\0" "8\x9a\xe0\xd8\xc3\x7f\0";
    static const char slots[] = "\0\0\0\0\a\0\0";
    struct text text = { (uint8_t *)(uintptr_t)header, sizeof header };
    struct info info;
    setup();
    void *filter = begin(&redis_cuckoo, &text);
    expect(filter);
    expect(has(&redis_cuckoo, filter, "item2")); /* which may be there as long as nothing came */
    expect_success(load(&redis_cuckoo, filter, 9, slots, sizeof slots));
    expect(has(&redis_cuckoo, filter, "item1") && !has(&redis_cuckoo, filter, "item2"));
    redis_cuckoo.info(filter, &info);
    expect(info.buckets == 4 && info.bucket_size == 2 && info.max_iterations == 20);
    expect(info.capacity == 8 && info.items == 1 && info.expansion == 1 && info.deleted == 0);
    expect_copies(&redis_cuckoo, filter);
    redis_cuckoo.release(filter);
    expect_nothing_left();
}

TEST(test_slot_of_an_item)
{
    setup();
    void *filter = make_cuckoo(512, 2, 20, 1);
    for (unsigned i = 0; i < 4; i++)
        add_text(&redis_cuckoo, filter, "foo", false, false);
    struct text dump = dump_of(&redis_cuckoo, filter);
    for (unsigned i = 0; i < 1024; i++)
        expect(dump.at[CUCKOO_HEAD + i] == (i / 2 == 257 || i / 2 == 76 ? 217 : 0));
    free(dump.at);
    const struct perhaps_key foo = { "foo", 3 };
    expect(redis_cuckoo.count(filter, &foo) == 4);
    expect(redis_cuckoo.remove(filter, &foo) && redis_cuckoo.count(filter, &foo) == 3);
    add_text(&redis_cuckoo, filter, "foo", true, true);
    redis_cuckoo.release(filter);
    expect_nothing_left();
}

/* ---- A model of Bloom filters ---------------------------------------------------------------- */

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
    static const unsigned choices[] = { NOROUND | FORCE64, FORCE64, 0, NOROUND | FORCE64 | NONSCALING,
                                        NONSCALING };
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

/* ---- A model of cuckoo filters ----------------------------------------------------------------- */

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
    struct text wanted = cuckoo_header(m->buckets[0], m->n, m->size, m->iterations, m->expansion);
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
        struct cuckoo_model m = { .size = 1 + run % 5, .iterations = 1 + run * run % 40,
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

/* ---- Pieces -------------------------------------------------------------------------------------- */

/* Makes a filter of three links and one of some filters. */
static void *grown(const struct form *form, unsigned n)
{
    void *filter = form == &redis_bloom ? make_bloom(50, .01, NOROUND | FORCE64, 2)
                                        : make_cuckoo(32, 2, 20, 2);
    for (uint64_t i = 0; i < n; i++) {
        const uint64_t number = mix64(i);
        const struct perhaps_key item = item_of(&number);
        bool was_present;
        size_t done;
        expect_success(form->add(filter, &item, 1, false, &was_present, &done));
    }
    return filter;
}

static void expect_grown(const struct form *form, const void *filter, unsigned n)
{
    for (uint64_t i = 0; i < n; i++) {
        const uint64_t number = mix64(i);
        const struct perhaps_key item = item_of(&number);
        bool present;
        form->contains(filter, &item, 1, 0, &present);
        expect(present);
    }
}

static const struct form *const both[] = { &redis_bloom, &redis_cuckoo };

TEST(test_parts_of_a_filter)
{
    setup();
    for (unsigned which = 0; which < 2; which++) {
        const struct form *form = both[which];
        struct info info;
        void *filter = grown(form, 300);
        form->info(filter, &info);
        expect(info.filters >= 3);
        for (unsigned pieces = 1; pieces < 6; pieces++) {
            void *part = reload(form, filter, pieces);
            scene("%s, %u pieces", form->type_name, pieces);
            expect(form->is_complete(part) == (pieces > info.filters));
            expect_grown(form, part, 300);
            expect(form->is_complete(part) || has(form, part, "never added"));
            expect_copies(form, part);
            form->release(part);
        }
        form->release(filter);
    }
    expect_nothing_left();
}

/* Whatever comes out of order, twice, too long or to a place that is none is refused. */
TEST(test_pieces_that_are_refused)
{
    uint8_t bytes[200] = { 0 };
    setup();
    for (unsigned which = 0; which < 2; which++) {
        const struct form *form = both[which];
        void *filter = grown(form, 0), *part = reload(form, filter, 1);
        struct text dump = dump_of(form, filter);
        const size_t n = dump.nbytes - (which ? CUCKOO_HEAD : HEAD + LINK);
        free(dump.at);
        expect(n > 60 && n < 200);
        expect_error(load(form, part, 21, bytes, 10), PERHAPS_ERR_ARGUMENT);
        expect_error(load(form, part, 10, bytes, 10), PERHAPS_ERR_ARGUMENT);
        expect_error(load(form, part, 5, bytes, 10), PERHAPS_ERR_ARGUMENT);
        expect_error(load(form, part, 1, bytes, 0), PERHAPS_ERR_ARGUMENT);
        expect_error(load(form, part, n + 2, bytes, n + 1), PERHAPS_ERR_ARGUMENT);
        expect_error(load(form, part, n + 2, bytes, 1), PERHAPS_ERR_ARGUMENT);
        expect_error(load(form, part, UINT64_MAX, bytes, 1), PERHAPS_ERR_ARGUMENT);
        expect_success(load(form, part, 11, bytes, 10));
        expect_success(load(form, part, 11, bytes, 10));
        expect_success(load(form, part, 6, bytes, 4));
        expect_error(load(form, part, 12, bytes, 8 + 3), PERHAPS_ERR_ARGUMENT);
        bytes[3] = 1;
        expect_error(load(form, part, 11, bytes, 10), PERHAPS_ERR_ARGUMENT);
        bytes[3] = 0;
        expect(!form->is_complete(part));
        expect_copies(form, part);
        expect_success(load(form, part, n + 1, bytes, n - 10));
        expect(form->is_complete(part));
        expect_same_dumps(form, part, filter);
        /* a piece that comes once more must not take away what was added since */
        add_text(form, part, "item", false, false);
        expect_error(load(form, part, n + 1, bytes, n), PERHAPS_ERR_ARGUMENT);
        expect(has(form, part, "item"));
        form->release(part);
        form->release(filter);
    }
    expect_nothing_left();
}

TEST(test_positions_of_a_dump)
{
    struct dump piece;
    setup();
    for (unsigned which = 0; which < 2; which++) {
        const struct form *form = both[which];
        void *filter = grown(form, 300);
        struct text dump = dump_of(form, filter);
        const size_t head = which ? CUCKOO_HEAD : HEAD + 3 * LINK, n = dump.nbytes - head;
        for (uint64_t position = 1; position <= n; position++) {
            expect_success(form->dump(filter, position, &piece));
            expect(piece.nbytes > 0 && piece.next == position + piece.nbytes && !piece.memory);
            expect(!memcmp(piece.bytes, dump.at + head + position - 1, piece.nbytes));
        }
        expect_success(form->dump(filter, n + 1, &piece));
        expect(piece.next == 0 && piece.nbytes == 0);
        expect_error(form->dump(filter, n + 2, &piece), PERHAPS_ERR_ARGUMENT);
        expect_error(form->dump(filter, UINT64_MAX, &piece), PERHAPS_ERR_ARGUMENT);
        free(dump.at);
        form->release(filter);
    }
    expect_nothing_left();
}

/* A link of more than one piece. */
TEST(test_pieces_of_a_large_link)
{
    struct dump piece;
    setup();
    void *filter = make_bloom(15000000, .005, NOROUND | FORCE64, 2);
    add_text(&redis_bloom, filter, "item", false, false);
    expect_success(redis_bloom.dump(filter, 1, &piece));
    expect(piece.nbytes == DUMP_MOST_NBYTES && piece.next == 1 + DUMP_MOST_NBYTES);
    expect_success(redis_bloom.dump(filter, piece.next, &piece));
    expect(piece.nbytes > 0 && piece.nbytes < DUMP_MOST_NBYTES);
    expect_copies(&redis_bloom, filter);
    void *part = reload(&redis_bloom, filter, 2);
    expect(!redis_bloom.is_complete(part));
    expect_copies(&redis_bloom, part);
    redis_bloom.release(part);
    redis_bloom.release(filter);
    expect_nothing_left();
}

/* ---- Older forms ----------------------------------------------------------------------------------- */

/* Writes an RDB of an older encoding: without growth, without options, without bits. */
static RedisModuleIO old_rdb(int encoding, uint64_t options, uint64_t n2, uint64_t bits)
{
    RedisModuleIO rdb = { 0 };
    const struct plan p = plan_link(100, .01, 0);
    uint8_t *zeros = calloc(p.nbytes, 1);
    server.SaveUnsigned(&rdb, 0);
    server.SaveUnsigned(&rdb, 1);
    if (encoding >= 2)
        server.SaveUnsigned(&rdb, options);
    if (encoding >= 4)
        server.SaveUnsigned(&rdb, 2);
    server.SaveUnsigned(&rdb, p.entries);
    server.SaveDouble(&rdb, p.error);
    server.SaveUnsigned(&rdb, p.hashes);
    server.SaveDouble(&rdb, p.bpe);
    if (encoding >= 1) {
        server.SaveUnsigned(&rdb, bits);
        server.SaveUnsigned(&rdb, n2);
    }
    server.SaveStringBuffer(&rdb, (const char *)zeros, p.nbytes);
    server.SaveUnsigned(&rdb, 0);
    free(zeros);
    return rdb;
}

static void expect_old(int encoding, uint64_t options, uint64_t n2, uint64_t bits, bool loads)
{
    RedisModuleIO rdb = old_rdb(encoding, options, n2, bits);
    struct info info;
    scene("encoding %d, options %u, n2 %u", encoding, (unsigned)options, (unsigned)n2);
    void *filter = redis_bloom.read(&rdb, encoding);
    expect(!filter == !loads && (rdb.logged > 0) == !loads);
    if (filter) {
        redis_bloom.info(filter, &info);
        expect(info.expansion == 2);
        add_text(&redis_bloom, filter, "item", false, false);
        expect(has(&redis_bloom, filter, "item"));
        expect_copies(&redis_bloom, filter);
        redis_bloom.release(filter);
    }
    free(rdb.bytes);
}

TEST(test_older_encodings)
{
    setup();
    expect_old(4, 0, 10, 1024, true);
    expect_old(4, FORCE64, 10, 1024, true);
    expect_old(4, FORCE64 | NOROUND, 0, 1000, true); /* bits that are not rounded */
    expect_old(3, FORCE64, 10, 1024, true);
    expect_old(2, 0, 10, 1024, true);
    expect_old(1, 0, 10, 0, true); /* 'bits' was not set */
    expect_old(0, 0, 0, 0, false);
    expect_old(5, 0, 10, 1024, false);
    expect_old(1, 0, 0, 1000, false); /* where the bits are depends on the version */
    expect_old(4, 0, 0, 1024, false);
    expect_old(4, 16, 10, 1024, false);
    expect_old(4, FORCE64, 11, 1024, false);
    expect_old(4, FORCE64, 200, 1024, false);
    expect_old(4, FORCE64, 0, 1025, false);
    expect_old(4, FORCE64, 0, 0, false);
    void *filter = make_cuckoo(4, 2, 20, 1);
    for (int encoding = 0; encoding <= 5; encoding++) {
        RedisModuleIO rdb = { 0 };
        redis_cuckoo.save(&rdb, filter);
        void *again = redis_cuckoo.read(&rdb, encoding);
        expect(!again == (encoding != 4) && rdb.logged == (encoding != 4));
        if (again)
            redis_cuckoo.release(again);
        free(rdb.bytes);
    }
    redis_cuckoo.release(filter);
    expect_nothing_left();
}

/* ---- An enemy ---------------------------------------------------------------------------------------- */

static void refuse(const struct form *form, struct text header)
{
    const char *why = NULL;
    expect(!form->begin_load((const char *)header.at, header.nbytes, &why) && why);
    free(header.at);
}

TEST(test_cuckoo_headers_that_are_refused)
{
    setup();
    refuse(&redis_cuckoo, cuckoo_header(0, 1, 2, 20, 1));
    refuse(&redis_cuckoo, cuckoo_header(3, 1, 2, 20, 1));
    refuse(&redis_cuckoo, cuckoo_header(UINT64_C(1) << 63, 1, 2, 20, 1));
    refuse(&redis_cuckoo, cuckoo_header(UINT64_C(1) << 63, 2, 2, 20, 2));
    refuse(&redis_cuckoo, cuckoo_header(UINT64_C(1) << 32, 1, 1, 20, 1));
    refuse(&redis_cuckoo, cuckoo_header(UINT64_C(1) << 31, 1, 2, 20, 1));
    refuse(&redis_cuckoo, cuckoo_header(UINT64_C(1) << 16, 17, 1, 20, 2));
    refuse(&redis_cuckoo, cuckoo_header(4, 0, 2, 20, 1));
    refuse(&redis_cuckoo, cuckoo_header(4, UINT64_C(1) << 60, 2, 20, 1));
    refuse(&redis_cuckoo, cuckoo_header(4, 65536, 2, 20, 1));
    refuse(&redis_cuckoo, cuckoo_header(4, 1 | UINT64_C(1) << 63, 2, 20, 1)); /* it has a seed */
    refuse(&redis_cuckoo, cuckoo_header(4, 2, 2, 20, 0));
    refuse(&redis_cuckoo, cuckoo_header(4, 40, 2, 20, 2));
    refuse(&redis_cuckoo, cuckoo_header(4, 1, 0, 20, 1));
    refuse(&redis_cuckoo, cuckoo_header(4, 1, 256, 20, 1));
    refuse(&redis_cuckoo, cuckoo_header(4, 1, 2, 0, 1));
    refuse(&redis_cuckoo, cuckoo_header(4, 1, 2, 20, 3));
    expect_nothing_left();
}

static void refuse_bloom(struct plan p, uint64_t items, uint32_t links, uint32_t options)
{
    struct text header = bloom_header(items, links, options, 2);
    for (uint32_t i = 0; i < links && i < 2000; i++)
        put_link(&header, &p, i ? 0 : items);
    refuse(&redis_bloom, header);
}

TEST(test_bloom_headers_that_are_refused)
{
    const struct plan good = plan_link(100, .01, NOROUND);
    struct plan p;
    setup();
#define REFUSED(change) (p = good, change, refuse_bloom(p, 0, 1, NOROUND | FORCE64))
    REFUSED(p.nbytes = 0);
    REFUSED(p.nbytes = UINT64_C(1) << 60);
    REFUSED(p.nbytes = UINT64_C(1) << 61); /* * 8 is 0 */
    REFUSED(p.error = 0);
    REFUSED(p.error = 1);
    REFUSED(p.error = -.5);
    REFUSED(p.error = NAN);
    REFUSED(p.bpe = NAN);
    REFUSED(p.bpe = INFINITY);
    REFUSED(p.bpe *= 1.001);
    REFUSED(p.hashes = 0);
    REFUSED(p.hashes = UINT32_MAX);
    REFUSED(p.entries = 0);
    REFUSED(p.n2 = 64);
    REFUSED(p.n2 = 11);
#undef REFUSED
    refuse_bloom(good, 0, 0, NOROUND | FORCE64);
    refuse_bloom(good, 0, 1000, NOROUND | FORCE64);
    refuse_bloom(good, 0, 1, NOROUND | FORCE64 | 16);
    refuse_bloom(good, 0, 1, NOROUND);
    refuse_bloom(good, UINT64_MAX, 1, NOROUND | FORCE64);
    struct text sum = bloom_header(5, 1, NOROUND | FORCE64, 2);
    put_link(&sum, &good, 4);
    refuse(&redis_bloom, sum);
    expect_nothing_left();
}

/* Uses a filter that an enemy made. */
static void use(const struct form *form, void *filter, struct rng *rng)
{
    uint64_t numbers[40];
    struct perhaps_key items[40];
    struct info info;
    struct layer layer;
    bool present[40];
    size_t done;
    for (size_t i = 0; i < 40; i++) {
        numbers[i] = rng_next(rng);
        items[i] = item_of(&numbers[i]);
    }
    if (form->is_complete(filter)) {
        form->add(filter, items, 40, false, present, &done);
        form->contains(filter, items, done, 0, present);
        for (size_t i = 0; i < done; i++)
            expect(present[i]);
    }
    form->info(filter, &info);
    if (form->layer)
        form->layer(filter, 0, &layer);
    if (form->remove) {
        form->count(filter, items);
        form->remove(filter, items);
        form->compact(filter);
    }
    expect_copies(form, filter);
}

/* Changes bytes of an RDB, or cuts it off. */
static void mutate(RedisModuleIO *rdb, struct rng *rng)
{
    static const uint8_t values[] = { 0, 1, 2, 0x7f, 0x80, 0xff };
    for (uint64_t n = 1 + rng_below(rng, 3); n > 0; n--)
        rdb->bytes[rng_below(rng, rdb->nbytes)] =
            rng_below(rng, 2) ? values[rng_below(rng, sizeof values)] : (uint8_t)rng_next(rng);
    if (rng_below(rng, 4) == 0)
        rdb->nbytes = rng_below(rng, rdb->nbytes);
}

TEST(test_damaged_rdb)
{
    struct rng rng = rng_for("rdb");
    unsigned loaded = 0;
    setup();
    for (unsigned run = 0; run < many(8000); run++) {
        const struct form *form = both[run % 2];
        const unsigned pieces = run / 2 % 2 ? 5 : (unsigned)rng_below(&rng, 5) + 1;
        void *filter = grown(form, 120), *part = reload(form, filter, pieces);
        RedisModuleIO rdb = { 0 };
        form->save(&rdb, part);
        form->release(part);
        form->release(filter);
        mutate(&rdb, &rng);
        scene("run %u", run);
        filter = form->read(&rdb, form->encoding);
        loaded += filter != NULL;
        if (filter) {
            use(form, filter, &rng);
            form->release(filter);
        }
        free(rdb.bytes);
    }
    expect(loaded > 0);
    expect_nothing_left();
}

TEST(test_damaged_headers)
{
    struct rng rng = rng_for("headers");
    setup();
    for (unsigned run = 0; run < many(8000); run++) {
        const struct form *form = both[run % 2];
        const char *why = NULL;
        void *filter = grown(form, 120);
        struct dump piece;
        expect_success(form->dump(filter, 0, &piece));
        RedisModuleIO bytes = { .bytes = piece.memory, .nbytes = piece.nbytes };
        mutate(&bytes, &rng);
        void *loaded = form->is_header(piece.bytes, bytes.nbytes)
                           ? form->begin_load(piece.bytes, bytes.nbytes, &why)
                           : NULL;
        memory_give(piece.memory);
        scene("run %u", run);
        for (uint64_t at = 1; loaded && at; at = piece.next) {
            expect_success(form->dump(filter, at, &piece));
            if (form->load(loaded, piece.next, piece.bytes, piece.nbytes, &why))
                break;
        }
        if (loaded) {
            use(form, loaded, &rng);
            form->release(loaded);
        }
        form->release(filter);
    }
    expect_nothing_left();
}

/* ---- Too little memory ------------------------------------------------------------------------------- */

/* Fails the first allocation, the second, and so on: a failed call changes nothing, and what was
 * taken is released. */
TEST(test_too_little_memory)
{
    setup();
    for (unsigned which = 0; which < 2; which++) {
        const struct form *form = both[which];
        unsigned copied = 0, read = 0, loaded = 0;
        void *filter = grown(form, 300), *before = form->copy(filter);
        for (uint64_t call = 1; copied + read + loaded < 3; call++) {
            RedisModuleIO rdb = { 0 };
            struct dump piece = { 0 };
            const char *why = NULL;
            form->save(&rdb, filter);
            fake_memory_ends = call;
            void *copy = form->copy(filter);
            fake_memory_ends = call;
            void *again = form->read(&rdb, form->encoding);
            fake_memory_ends = 0;
            expect_success(form->dump(filter, 0, &piece));
            fake_memory_ends = call;
            void *part = form->begin_load(piece.bytes, piece.nbytes, &why);
            fake_memory_ends = 0;
            memory_give(piece.memory);
            copied = copy != NULL;
            read = again != NULL;
            loaded = part != NULL;
            for (unsigned i = 0; i < 3; i++)
                if ((void *[]){ copy, again, part }[i])
                    form->release((void *[]){ copy, again, part }[i]);
            free(rdb.bytes);
        }
        for (uint64_t i = 0; i < 3000; i++) { /* until it must grow */
            const uint64_t number = mix64(i);
            const struct perhaps_key item = item_of(&number);
            bool was_present;
            size_t done;
            fake_memory_ends = 1;
            int error = form->add(filter, &item, 1, false, &was_present, &done);
            fake_memory_ends = 0;
            if (error) {
                expect(error == PERHAPS_ERR_MEMORY && done == 0);
                form->release(before);
                before = form->copy(filter);
                fake_memory_ends = 1;
                expect_error(form->add(filter, &item, 1, false, &was_present, &done),
                             PERHAPS_ERR_MEMORY);
                fake_memory_ends = 0;
                expect_same_dumps(form, filter, before);
                break;
            }
            expect(i < 2999);
        }
        form->release(before);
        form->release(filter);
    }
    expect_nothing_left();
}
