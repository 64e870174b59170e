/* kernels_test.c - every table of kernels against plain loops that were written after
 * doc/FORMAT.md, bit for bit. */
#include "support.h"

#include <string.h>

#include "kernels.h"

static const struct kernels *const tables[] = { &kernels_scalar };
enum { TABLES = sizeof tables / sizeof *tables };

/* ---- As the format says, one bit after the other --------------------------------------------
 */

static const uint64_t golden = 0x9e3779b97f4a7c15, pi = 0x243f6a8885a308d3;

static uint64_t scale(uint64_t x, uint64_t n)
{
    return (uint64_t)(((unsigned __int128)x * n) >> 64);
}

static bool get_bit(const uint8_t *body, uint64_t bit)
{
    return body[bit / 8] >> (bit % 8) & 1;
}

static void set_bit(uint8_t *body, uint64_t bit)
{
    body[bit / 8] = (uint8_t)(body[bit / 8] | 1U << (bit % 8));
}

struct shape {
    uint64_t size;  /* part_lines, nbits or nbuckets */
    unsigned parts; /* blocked */
    unsigned bits;  /* line_bits, key_bits or fingerprint_bits */
};

/* Writes the bits of a key to bit[]; returns how many. */
static unsigned blocked_bits(const struct shape *s, struct keyhash key, uint64_t bit[])
{
    static const uint32_t factors[16] = {
        0x6a09e667, 0xbb67ae85, 0x3c6ef373, 0xa54ff53b, 0x510e527f, 0x9b05688d,
        0x1f83d9ab, 0x5be0cd19, 0xcbbb9d5d, 0x629a292b, 0x9159015b, 0x152fecd9,
        0x67332667, 0x8eb44a87, 0xdb0c2e0d, 0x47b5481d,
    };
    unsigned n = 0;
    for (unsigned part = 0; part < s->parts; part++) {
        uint64_t line = part * s->size + scale(key.place, s->size);
        uint32_t a = (uint32_t)(key.mark >> 32);
        unsigned start = (unsigned)(key.mark >> 28) & 15;
        unsigned stride = 2 * ((unsigned)(key.mark >> 25) & 7) + 1;
        for (unsigned i = 0; i < s->bits; i++) {
            unsigned word = (start + i * stride) % 16;
            bit[n++] = line * 512 + word * 32 + (uint32_t)(a * factors[i]) / (1U << 27);
        }
        key.place *= golden;
        key.mark *= pi;
    }
    return n;
}

static unsigned bloom_bits(const struct shape *s, struct keyhash key, uint64_t bit[])
{
    for (unsigned i = 0; i < s->bits; i++) {
        bit[i] = scale(key.place, s->size);
        key.place = key.place * golden + key.mark;
    }
    return s->bits;
}

static bool all_set(const uint8_t *body, const uint64_t bit[], unsigned n)
{
    unsigned set = 0;
    for (unsigned i = 0; i < n; i++)
        set += get_bit(body, bit[i]);
    return set == n;
}

static uint32_t slot_of(const struct shape *s, const uint8_t *body, uint64_t slot)
{
    uint32_t value = 0;
    for (unsigned i = 0; i < s->bits; i++)
        value |= (uint32_t)get_bit(body, slot * s->bits + i) << i;
    return value;
}

static void bucket_pair(const struct shape *s, struct keyhash key, uint32_t *fingerprint,
                        uint64_t bucket[2])
{
    *fingerprint = (uint32_t)(1 + scale(key.mark, ((uint64_t)1 << s->bits) - 1));
    uint64_t x = *fingerprint * golden;
    x = (x ^ x >> 32) * pi;
    uint64_t c = 2 * scale(x, s->size / 2) + 1;
    bucket[0] = scale(key.place, s->size);
    bucket[1] = (c + s->size - bucket[0]) % s->size;
}

static bool cuckoo_has(const struct shape *s, const uint8_t *body, struct keyhash key)
{
    uint32_t fingerprint;
    uint64_t bucket[2];
    bool found = false;
    bucket_pair(s, key, &fingerprint, bucket);
    for (unsigned i = 0; i < 8; i++)
        found |= slot_of(s, body, bucket[i / 4] * 4 + i % 4) == fingerprint;
    return found;
}

/* ---- Random shapes, bodies and keys
 * ----------------------------------------------------------- */

enum { KEYS = 32, BODY_MAX = 1 << 14 };

struct trial {
    struct shape shape;
    uint8_t body[BODY_MAX];
    uint8_t expected[BODY_MAX];
    struct keyhash keys[KEYS];
    struct keyhash ahead[KEYS];
    size_t n;
    bool answer[KEYS + 1];
};

/* A word of which one bit in 32 is set, or half of them, or all but one in 32. */
static uint64_t noise(struct rng *rng, unsigned density)
{
    uint64_t word = rng_next(rng);
    for (unsigned i = 0; i < 4; i++) {
        uint64_t other = rng_next(rng);
        word = density == 0 ? word & other : density == 1 ? other : word | other;
    }
    return word;
}

static void fill_randomly(struct trial *t, struct rng *rng)
{
    unsigned density = (unsigned)rng_below(rng, 3);
    for (size_t at = 0; at < BODY_MAX; at += 8) {
        uint64_t word = noise(rng, density);
        memcpy(t->body + at, &word, sizeof word);
    }
    memcpy(t->expected, t->body, BODY_MAX);
    t->n = (size_t)rng_below(rng, KEYS + 1);
    for (size_t i = 0; i < KEYS; i++) {
        t->keys[i] = (struct keyhash){ rng_next(rng), rng_next(rng) };
        t->ahead[i] = (struct keyhash){ rng_next(rng), rng_next(rng) };
        if (rng_below(rng, 16) == 0)
            t->keys[i].place = rng_below(rng, 2) ? 0 : UINT64_MAX;
        if (rng_below(rng, 16) == 0)
            t->keys[i].mark = rng_below(rng, 2) ? 0 : UINT64_MAX;
    }
}

/* 'wanted' counts the answers that are true, or those that are not. */
static void check_answers(const struct trial *t, const bool wanted[], size_t count, bool truth)
{
    size_t n = 0;
    for (size_t i = 0; i < t->n; i++) {
        expect(t->answer[i] == wanted[i]);
        n += wanted[i] == truth;
    }
    expect(count == n);
    expect(!memcmp(t->body, t->expected, BODY_MAX));
}

typedef unsigned bits_of_key(const struct shape *s, struct keyhash key, uint64_t bit[]);

static void expect_contains(const struct trial *t, bits_of_key *bits_of, bool wanted[])
{
    uint64_t bit[128];
    for (size_t i = 0; i < t->n; i++)
        wanted[i] = all_set(t->body, bit, bits_of(&t->shape, t->keys[i], bit));
}

static void expect_add(struct trial *t, bits_of_key *bits_of, bool wanted[])
{
    uint64_t bit[128];
    for (size_t i = 0; i < t->n; i++) {
        unsigned n = bits_of(&t->shape, t->keys[i], bit);
        wanted[i] = all_set(t->expected, bit, n);
        for (unsigned b = 0; b < n; b++)
            set_bit(t->expected, bit[b]);
    }
}

static void try_blocked(const struct kernels *k, struct trial *t, struct rng *rng)
{
    const struct shape *s = &t->shape;
    bool wanted[KEYS] = { 0 };
    t->shape.parts = 1 + (unsigned)rng_below(rng, rng_below(rng, 2) ? 1 : 8);
    t->shape.bits = 1 + (unsigned)rng_below(rng, 16);
    t->shape.size = 1 + rng_below(rng, BODY_MAX / 64 / s->parts);
    scene("%s, blocked: %u parts, %u bits", k->name, s->parts, s->bits);
    k->blocked_prefetch(t->body, s->size, s->parts, t->keys, t->n);
    expect_contains(t, blocked_bits, wanted);
    size_t count = k->blocked_contains(t->body, s->size, s->parts, s->bits, t->keys, t->ahead,
                                       t->n, t->answer);
    check_answers(t, wanted, count, true);
    expect_add(t, blocked_bits, wanted);
    count =
        k->blocked_add(t->body, s->size, s->parts, s->bits, t->keys, t->ahead, t->n, t->answer);
    check_answers(t, wanted, count, false);
}

static void try_bloom(const struct kernels *k, struct trial *t, struct rng *rng)
{
    const struct shape *s = &t->shape;
    bool wanted[KEYS] = { 0 };
    t->shape.bits = 1 + (unsigned)rng_below(rng, 64);
    t->shape.size = 1 + rng_below(rng, BODY_MAX * 8);
    scene("%s, bloom: %llu bits, %u a key", k->name, (unsigned long long)s->size, s->bits);
    k->bloom_prefetch(t->body, s->size, s->bits, t->keys, t->n);
    expect_contains(t, bloom_bits, wanted);
    size_t count =
        k->bloom_contains(t->body, s->size, s->bits, t->keys, t->ahead, t->n, t->answer);
    check_answers(t, wanted, count, true);
    expect_add(t, bloom_bits, wanted);
    count = k->bloom_add(t->body, s->size, s->bits, t->keys, t->ahead, t->n, t->answer);
    check_answers(t, wanted, count, false);
}

/* Plants some of the keys, since in noise hardly any long fingerprint would be found. */
static void plant(struct trial *t, struct rng *rng)
{
    const struct shape *s = &t->shape;
    for (size_t i = 0; i < t->n; i += 2) {
        uint32_t fingerprint;
        uint64_t bucket[2];
        bucket_pair(s, t->keys[i], &fingerprint, bucket);
        uint64_t slot = bucket[rng_below(rng, 2)] * 4 + rng_below(rng, 4);
        for (unsigned b = 0; b < s->bits; b++) {
            uint64_t bit = slot * s->bits + b;
            t->body[bit / 8] = (uint8_t)(t->body[bit / 8] & ~(1U << bit % 8));
            if (fingerprint >> b & 1)
                set_bit(t->body, bit);
        }
    }
    memcpy(t->expected, t->body, BODY_MAX);
}

static void try_cuckoo(const struct kernels *k, struct trial *t, struct rng *rng)
{
    const struct shape *s = &t->shape;
    bool wanted[KEYS] = { 0 };
    t->shape.bits = 4 + (unsigned)rng_below(rng, 29);
    t->shape.size = 2 + 2 * rng_below(rng, (BODY_MAX - 8) / s->bits - 1);
    scene("%s, cuckoo: %llu buckets, %u bits", k->name, (unsigned long long)s->size, s->bits);
    plant(t, rng);
    k->cuckoo_prefetch(t->body, s->size, s->bits, t->keys, t->n);
    for (size_t i = 0; i < t->n; i++)
        wanted[i] = cuckoo_has(s, t->body, t->keys[i]);
    size_t count =
        k->cuckoo_contains(t->body, s->size, s->bits, t->keys, t->ahead, t->n, t->answer);
    check_answers(t, wanted, count, true);
}

static void run(void (*try)(const struct kernels *, struct trial *, struct rng *),
                const char *name)
{
    enum { TRIALS = SANITIZED ? 2000 : 10000 };
    static struct trial trial;
    struct rng rng = rng_for(name);
    for (size_t table = 0; table < TABLES; table++)
        for (unsigned i = 0; i < TRIALS; i++) {
            fill_randomly(&trial, &rng);
            try(tables[table], &trial, &rng);
        }
}

static void test_blocked(void **state)
{
    (void)state;
    run(try_blocked, __func__);
}

static void test_bloom(void **state)
{
    (void)state;
    run(try_bloom, __func__);
}

static void test_cuckoo(void **state)
{
    (void)state;
    run(try_cuckoo, __func__);
}

static void test_choice(void **state)
{
    (void)state;
    bool known = false;
    for (size_t table = 0; table < TABLES; table++)
        known |= tables[table] == kernels_choose();
    expect(known && *kernels_choose()->name);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_blocked),
        cmocka_unit_test(test_bloom),
        cmocka_unit_test(test_cuckoo),
        cmocka_unit_test(test_choice),
    };
    return run_group(tests);
}
