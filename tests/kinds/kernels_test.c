/* kernels_test.c - proves that the loops for every instruction set do bit for bit what
 * doc/FORMAT.md says: random keys and bodies go through the loops and through plain code that
 * was written after the document and shares no code with the library.  Bodies end at a page
 * that cannot be read, so a read behind the end crashes.
 *
 * It fails when one instruction set gives another answer than the others, and when the format
 * changes by accident.  If PERHAPS_TEST_EVERY is set, it draws four times as many shapes,
 * bodies and keys. */
#include "support.h"

#include <string.h>
#include <sys/mman.h>

#include "kinds/cpu/cpu_loops.h"
#include "kinds/lines/bloom.h"
#include "kinds/lines/lines.h"
#include "kinds/slots/flat.h"

/* ---- As the format says, one bit after the other ----------------------------------------- */

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
    uint64_t size;  /* band_lines, nbits or nbuckets */
    unsigned parts; /* lines: how many parts, and so lines for a key */
    bool together;  /* blocked: the lines of a key lie side by side */
    unsigned bits;  /* line_bits, key_bits or fingerprint_bits */
};

/* Writes the bits of a key to bit[].  Returns how many they are. */
static unsigned blocked_bits(const struct shape *s, struct keyhash key, uint64_t bit[])
{
    static const uint32_t factors[16] = {
        0x6a09e667, 0xbb67ae85, 0x3c6ef373, 0xa54ff53b, 0x510e527f, 0x9b05688d,
        0x1f83d9ab, 0x5be0cd19, 0xcbbb9d5d, 0x629a292b, 0x9159015b, 0x152fecd9,
        0x67332667, 0x8eb44a87, 0xdb0c2e0d, 0x47b5481d,
    };
    unsigned n = 0;
    uint64_t block = scale(key.place, s->size);
    for (unsigned part = 0; part < s->parts; part++) {
        uint64_t line =
            s->together ? block * s->parts + part : part * s->size + scale(key.place, s->size);
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

/* Sets *fingerprint and the two buckets of a key. */
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

static unsigned cuckoo_copies(const struct shape *s, const uint8_t *body, struct keyhash key)
{
    uint32_t fingerprint;
    uint64_t bucket[2];
    unsigned copies = 0;
    bucket_pair(s, key, &fingerprint, bucket);
    for (unsigned i = 0; i < 8; i++)
        copies += slot_of(s, body, bucket[i / 4] * 4 + i % 4) == fingerprint;
    return copies;
}

static bool cuckoo_has(const struct shape *s, const uint8_t *body, struct keyhash key)
{
    return cuckoo_copies(s, body, key) > 0;
}

/* ---- Random shapes, bodies and keys ------------------------------------------------------ */

enum { KEYS = 32, BODY_MAX = 1 << 14 };

struct trial {
    struct shape shape;
    struct body body; /* its bytes end at a page that cannot be read */
    size_t body_nbytes;
    uint8_t noise[BODY_MAX];    /* the body before a call, in the first bytes */
    uint8_t expected[BODY_MAX]; /* what the body must be after the call */
    struct keyhash keys[KEYS];
    struct keyhash ahead[KEYS];
    size_t n;
    bool answer[KEYS];
};

/* Returns the end of at least BODY_MAX bytes, behind which lies a page without access. */
static uint8_t *room_end(void)
{
    enum { PAGE_MAX = 1 << 16 }; /* the largest page size of a CPU */
    static uint8_t *room;
    if (!room) {
        void *map = mmap(NULL, 2 * PAGE_MAX, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        expect(map != MAP_FAILED);
        room = map;
        expect(!mprotect(room + PAGE_MAX, PAGE_MAX, PROT_NONE));
    }
    return room + PAGE_MAX;
}

static void restore_body(struct trial *t)
{
    memcpy(t->body.bytes, t->noise, t->body_nbytes);
}

/* Places the body at the end of the room.  Its size is rounded up to whole cache lines, as in a
 * filter. */
static void place_body(struct trial *t, uint64_t nbytes)
{
    t->body_nbytes = (nbytes + 63) / 64 * 64;
    t->body.bytes = room_end() - t->body_nbytes;
    restore_body(t);
    memcpy(t->expected, t->noise, t->body_nbytes);
}

/* Returns a word in which one bit in 32 is set, or half of the bits, or all but one in 32. */
static uint64_t noise(struct rng *rng, unsigned density)
{
    uint64_t word = rng_next(rng);
    for (unsigned i = 0; i < 4; i++) {
        uint64_t other = rng_next(rng);
        word = density == 0 ? word & other : density == 1 ? other : word | other;
    }
    return word;
}

/* Returns a hash; sometimes its halves are all zeros or all ones, the ends of their ranges. */
static struct keyhash random_key(struct rng *rng)
{
    struct keyhash key = { rng_next(rng), rng_next(rng) };
    if (rng_below(rng, 16) == 0)
        key.place = rng_below(rng, 2) ? 0 : UINT64_MAX;
    if (rng_below(rng, 16) == 0)
        key.mark = rng_below(rng, 2) ? 0 : UINT64_MAX;
    return key;
}

static void fill_randomly(struct trial *t, struct rng *rng)
{
    unsigned density = (unsigned)rng_below(rng, 3);
    for (size_t at = 0; at < BODY_MAX; at += 8) {
        uint64_t word = noise(rng, density);
        memcpy(t->noise + at, &word, sizeof word);
    }
    t->n = (size_t)rng_below(rng, KEYS + 1);
    for (size_t i = 0; i < KEYS; i++) {
        bool repeated = i > 0 && rng_below(rng, 16) == 0;
        t->keys[i] = repeated ? t->keys[rng_below(rng, i)] : random_key(rng);
        t->ahead[i] = random_key(rng);
    }
}

/* ---- Comparison -------------------------------------------------------------------------- */

static void check_body(const struct trial *t)
{
    expect(!memcmp(t->body.bytes, t->expected, t->body_nbytes));
}

/* Returns how many answers are true. */
static size_t check_answers(const struct trial *t, const bool wanted[])
{
    size_t n = 0;
    for (size_t i = 0; i < t->n; i++) {
        expect(t->answer[i] == wanted[i]);
        n += wanted[i];
    }
    check_body(t);
    return n;
}

/* Asks for all keys at once, and for one after the other. */
static void check_contains(const struct loops *loops, struct trial *t, const bool wanted[])
{
    memset(t->answer, 0xff, sizeof t->answer);
    loops->prefetch(&t->body, t->keys, t->n);
    size_t count = loops->contains(&t->body, t->keys, t->ahead, t->n, t->answer);
    expect(check_answers(t, wanted) == count);
    for (size_t i = 0; i < t->n; i++)
        t->answer[i] = loops->contains_one(&t->body, t->keys[i]);
    check_answers(t, wanted);
}

typedef size_t adder(const struct body *b, const struct keyhash *keys,
                     const struct keyhash *ahead, size_t n, bool *answer);

/* Add all keys one after the other, and at once.  Leave the body as it was. */
static void check_add_one(const struct loops *loops, struct trial *t, const bool wanted[])
{
    for (size_t i = 0; i < t->n; i++) {
        struct counters counters = { .keys = i };
        expect(loops->add_one(&t->body, t->keys[i], &counters) == 0);
        expect(counters.keys - i <= 1 && !counters.failed_adds);
        t->answer[i] = counters.keys == i;
    }
    check_answers(t, wanted);
    restore_body(t);
    for (size_t i = 0; i < t->n; i++) {
        struct counters counters = { .keys = i };
        expect(loops->add_new_one(&t->body, t->keys[i], &counters, &t->answer[i]) == 0);
        expect(counters.keys == i + !t->answer[i]);
    }
    check_answers(t, wanted);
    restore_body(t);
}

static void check_add(adder *add, struct trial *t, const bool wanted[])
{
    memset(t->answer, 0xff, sizeof t->answer);
    add(&t->body, t->keys, t->ahead, t->n, t->answer);
    check_answers(t, wanted);
    restore_body(t);
}

typedef unsigned bits_of_key(const struct shape *s, struct keyhash key, uint64_t bit[]);

/* Checks queries and adds of a kind that sets bits, with the usual and the atomic adds. */
static void check_bloom_kind(const struct loops *loops, adder *atomic, struct trial *t,
                             bits_of_key *bits_of)
{
    uint64_t bit[128];
    bool wanted[KEYS] = { 0 };
    for (size_t i = 0; i < t->n; i++)
        wanted[i] = all_set(t->body.bytes, bit, bits_of(&t->shape, t->keys[i], bit));
    check_contains(loops, t, wanted);
    for (size_t i = 0; i < t->n; i++) {
        unsigned n = bits_of(&t->shape, t->keys[i], bit);
        wanted[i] = all_set(t->expected, bit, n);
        for (unsigned b = 0; b < n; b++)
            set_bit(t->expected, bit[b]);
    }
    check_add(loops->add, t, wanted);
    check_add_one(loops, t, wanted);
    check_add(atomic, t, wanted);
}

/* ---- Trials ------------------------------------------------------------------------------ */

/* Draws the shape of a kind of lines, with lines behind them. */
static void shape_lines(struct trial *t, bool may_lie_together, unsigned behind,
                        struct rng *rng)
{
    struct shape *s = &t->shape;
    s->parts = 1 + (unsigned)rng_below(rng, rng_below(rng, 2) ? 1 : 8);
    s->together = may_lie_together && s->parts > 1 && rng_below(rng, 2);
    s->bits = 1 + (unsigned)rng_below(rng, 16);
    s->size = 1 + rng_below(rng, (BODY_MAX / 64 - behind) / s->parts);
    const uint64_t field[] = { s->size, s->parts, s->bits, s->together };
    memcpy(t->body.geometry.field, field, sizeof field);
    t->body.table = lines_table(s->bits);
    place_body(t, (s->parts * s->size + behind) * 64);
}

static void try_blocked(enum cpu cpu, struct trial *t, struct rng *rng)
{
    shape_lines(t, true, 0, rng);
    scene("%s, blocked: %u parts of %llu lines, %u bits%s", cpu_name(cpu), t->shape.parts,
          (unsigned long long)t->shape.size, t->shape.bits,
          t->shape.together ? ", together" : "");
    const struct line_loops *lines = cpu_loops[cpu].lines;
    check_bloom_kind(t->shape.parts > 1 ? &lines->several : &lines->one, blocked_add_atomic, t,
                     blocked_bits);
}

static void try_bloom(enum cpu cpu, struct trial *t, struct rng *rng)
{
    struct shape *s = &t->shape;
    s->bits = 1 + (unsigned)rng_below(rng, 64);
    s->size = 1 + rng_below(rng, rng_below(rng, 2) ? BODY_MAX * 8 : 1000);
    scene("%s, bloom: %llu bits, %u a key", cpu_name(cpu), (unsigned long long)s->size,
          s->bits);
    const uint64_t field[] = { s->size, s->bits };
    memcpy(t->body.geometry.field, field, sizeof field);
    place_body(t, (s->size + 7) / 8);
    check_bloom_kind(cpu_loops[cpu].bloom, bloom_add_atomic, t, bloom_bits);
}

/* Stores every second key in one of its slots, since a long fingerprint hardly ever lies in
 * random bytes. */
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
            t->body.bytes[bit / 8] = (uint8_t)(t->body.bytes[bit / 8] & ~(1U << bit % 8));
            if (fingerprint >> b & 1)
                set_bit(t->body.bytes, bit);
        }
    }
    memcpy(t->noise, t->body.bytes, t->body_nbytes);
    memcpy(t->expected, t->body.bytes, t->body_nbytes);
}

/* Adds all keys one after the other, and at once, and compares both with the long way, which
 * goes slot by slot; if 'absent', as to a set.  Goes on after keys for which there is no
 * room. */
static void check_cuckoo_add(const struct slot_loops *loops, struct trial *t, bool absent)
{
    struct table table = table_make(t->expected, t->shape.size, t->shape.bits, false);
    struct counters counters = { 0 }, wanted = { 0 };
    bool was_present[KEYS], answer[KEYS] = { 0 };
    memcpy(t->expected, t->noise, t->body_nbytes);
    restore_body(t);
    for (size_t i = 0; i < t->n; i++) {
        struct entry e = cuckoo_entry(t->keys[i], t->shape.size, t->shape.bits);
        int error = table_insert(&table, &e, absent, &was_present[i]);
        wanted.keys += !error && !was_present[i];
        wanted.failed_adds += error != 0;
        int added =
            (absent ? &loops->of_set : &loops->loops)->add_one(&t->body, t->keys[i], &counters);
        expect(added == error);
        expect(!memcmp(&counters, &wanted, sizeof counters));
        expect(error || cuckoo_has(&t->shape, t->body.bytes, t->keys[i]));
    }
    check_body(t);
    restore_body(t);
    size_t done, failed = 0;
    for (size_t at = 0; at < t->n; at += done) {
        if (loops->add(&t->body, t->keys + at, t->ahead + at, t->n - at, absent, answer + at,
                       &done)) {
            done++;
            failed++;
        }
    }
    expect(failed == wanted.failed_adds);
    expect(!absent || !memcmp(answer, was_present, t->n * sizeof *answer));
    check_body(t);
}

/* Counts and removes each key, most of which were planted, and compares with the long way. */
static void check_cuckoo_remove(const struct loops *loops, struct trial *t)
{
    struct table table = table_make(t->expected, t->shape.size, t->shape.bits, false);
    struct counters counters = { .keys = KEYS / 4 }, wanted = counters;
    memcpy(t->expected, t->noise, t->body_nbytes);
    restore_body(t);
    for (size_t i = 0; i < t->n; i++) {
        struct entry e = cuckoo_entry(t->keys[i], t->shape.size, t->shape.bits);
        unsigned copies = cuckoo_copies(&t->shape, t->expected, t->keys[i]);
        expect(loops->count_one(&t->body, t->keys[i]) == copies);
        expect(table_remove(&table, &e) == (copies > 0));
        wanted.keys -= copies && wanted.keys; /* a wrong one may come from a file */
        wanted.unmatched_removals += !copies;
        expect_error(loops->remove_one(&t->body, t->keys[i], &counters),
                     copies ? 0 : PERHAPS_ERR_NOT_FOUND);
        expect(!memcmp(&counters, &wanted, sizeof counters));
    }
    check_body(t);
    restore_body(t);
}

static void try_cuckoo(enum cpu cpu, struct trial *t, struct rng *rng)
{
    struct shape *s = &t->shape;
    bool wanted[KEYS] = { 0 };
    s->bits = 4 + (unsigned)rng_below(rng, 29);
    const struct slot_loops *loops = slot_loops_of(cpu, false, s->bits);
    s->size = 2 + 2 * rng_below(rng, rng_below(rng, 2) ? (BODY_MAX - 8) / s->bits - 1 : 8);
    scene("%s, cuckoo: %llu buckets, %u bits", cpu_name(cpu), (unsigned long long)s->size,
          s->bits);
    const uint64_t field[] = { s->size, s->bits };
    memcpy(t->body.geometry.field, field, sizeof field);
    place_body(t, s->size / 2 * s->bits + 8);
    plant(t, rng);
    for (size_t i = 0; i < t->n; i++)
        wanted[i] = cuckoo_has(s, t->body.bytes, t->keys[i]);
    check_contains(&loops->loops, t, wanted);
    check_cuckoo_add(loops, t, false);
    check_cuckoo_add(loops, t, true);
    check_cuckoo_remove(&loops->loops, t);
}

/* ---- Counters ---------------------------------------------------------------------------- */

/* Writes the numbers of a key's counters and returns how many they are.  A byte holds two
 * counters, the first one in its low half. */
static unsigned counters_of(const struct shape *s, struct keyhash key, uint64_t number[])
{
    unsigned n = blocked_bits(s, key, number);
    for (unsigned i = 0; i < n; i++)
        number[i] /= 4;
    return n;
}

static unsigned get_counter(const uint8_t *body, uint64_t number)
{
    return body[number / 2] >> (number % 2 * 4) & 15;
}

static void set_counter(uint8_t *body, uint64_t number, unsigned value)
{
    unsigned others = body[number / 2] & (number % 2 ? 0x0f : 0xf0);
    body[number / 2] = (uint8_t)(others | value << (number % 2 * 4));
}

static bool all_counted(const uint8_t *body, const uint64_t number[], unsigned n)
{
    unsigned zeros = 0;
    for (unsigned i = 0; i < n; i++)
        zeros += get_counter(body, number[i]) == 0;
    return !zeros;
}

/* Changes each counter by one, up or down, unless it is 15: there it stays for good.  Counts in
 * *tally how many turned from or to 0 and how many reached 15. */
static void count_counters(uint8_t *body, const uint64_t number[], unsigned n, bool up,
                           struct count_tally *tally)
{
    for (unsigned i = 0; i < n; i++) {
        unsigned value = get_counter(body, number[i]);
        if (value == 15)
            continue;
        tally->turned += value == (up ? 0 : 1);
        tally->filled += up && value == 14;
        set_counter(body, number[i], up ? value + 1 : value - 1);
    }
}

/* Checks one way to change counters: the body, the answers, and what was counted. */
static void check_change(enum cpu cpu, struct trial *t, enum count_change how)
{
    uint64_t number[128];
    bool wanted[KEYS] = { 0 };
    struct count_tally tally = { 7, 9 }, expected = tally;
    restore_body(t);
    memcpy(t->expected, t->body.bytes, t->body_nbytes);
    for (size_t i = 0; i < t->n; i++) {
        unsigned n = counters_of(&t->shape, t->keys[i], number);
        bool there = all_counted(t->expected, number, n);
        wanted[i] = how != COUNT_UP && there;
        if (how == COUNT_UP || there == (how == COUNT_DOWN))
            count_counters(t->expected, number, n, how != COUNT_DOWN, &expected);
    }
    memset(t->answer, 0xff, sizeof t->answer);
    size_t count =
        cpu_loops[cpu].lines->change(&t->body, t->keys, t->ahead, t->n, how, t->answer, &tally);
    expect(check_answers(t, wanted) == count);
    expect(tally.turned == expected.turned && tally.filled == expected.filled);
}

/* Does the same key by key: with room for few counters, or none, or for all.  A key that needs
 * more than there is room for changes nothing. */
static void check_changes_of_one(const struct line_loops *lines, struct trial *t,
                                 enum count_change how, struct rng *rng)
{
    uint64_t number[128], line = t->body_nbytes - 64, totals[2], least;
    struct counters counters = { .keys = KEYS / 4 }, wanted = counters;
    restore_body(t);
    memcpy(totals, t->noise + line, sizeof totals);
    totals[0] = rng_below(rng, 4) ? rng_below(rng, 200) : totals[0];
    t->body.geometry.cell_limit = rng_below(rng, 200);
    if (rng_below(rng, 4) == 0)
        t->body.geometry.cell_limit = UINT64_MAX;
    memcpy(t->body.bytes + line, totals, sizeof totals);
    memcpy(t->expected, t->body.bytes, t->body_nbytes);
    const uint64_t limit = t->body.geometry.cell_limit;
    for (size_t i = 0; i < t->n; i++) {
        struct count_tally tally = { 0 };
        unsigned zeros = 0, n = counters_of(&t->shape, t->keys[i], number);
        bool there = all_counted(t->expected, number, n), was = !there;
        least = 15;
        for (unsigned c = 0; c < n; c++) {
            unsigned value = get_counter(t->expected, number[c]);
            zeros += value == 0;
            least = value < least ? value : least;
        }
        expect(lines->counting.count_one(&t->body, t->keys[i]) == least);
        expect(lines->zeros(&t->body, t->keys[i]) == zeros);
        bool up = how == COUNT_UP || (how == COUNT_UP_ABSENT && !there);
        bool room = !zeros || (zeros <= limit && totals[0] <= limit - zeros);
        if (how == COUNT_DOWN ? there : up && room)
            count_counters(t->expected, number, n, up, &tally);
        if (how == COUNT_DOWN) {
            totals[0] -= tally.turned < totals[0] ? tally.turned : totals[0];
            wanted.keys -= there && wanted.keys;
            wanted.unmatched_removals += !there;
            expect_error(lines->counting.remove_one(&t->body, t->keys[i], &counters),
                         there ? 0 : PERHAPS_ERR_NOT_FOUND);
        } else {
            int error = up && !room ? PERHAPS_ERR_FULL : 0;
            totals[0] += tally.turned;
            totals[1] += tally.filled;
            wanted.keys += up && room;
            wanted.failed_adds += error != 0;
            if (how == COUNT_UP)
                expect_error(lines->counting.add_one(&t->body, t->keys[i], &counters), error);
            else if (i % 2)
                expect_error(lines->counting_set.add_one(&t->body, t->keys[i], &counters),
                             error);
            else {
                expect_error(lines->counting.add_new_one(&t->body, t->keys[i], &counters, &was),
                             error);
                expect(was == there);
            }
        }
        memcpy(t->expected + line, totals, sizeof totals);
        expect(!memcmp(&counters, &wanted, sizeof counters));
        check_body(t);
    }
}

/* The densities of noise() make counters of 0, 1, 14 and 15 frequent. */
static void try_counting(enum cpu cpu, struct trial *t, struct rng *rng)
{
    shape_lines(t, false, 1, rng);
    scene("%s, counting: %u parts of %llu lines, %u counters", cpu_name(cpu), t->shape.parts,
          (unsigned long long)t->shape.size, t->shape.bits);
    uint64_t number[128];
    bool wanted[KEYS] = { 0 };
    for (size_t i = 0; i < t->n; i++)
        wanted[i] =
            all_counted(t->body.bytes, number, counters_of(&t->shape, t->keys[i], number));
    check_contains(&cpu_loops[cpu].lines->counting, t, wanted);
    check_change(cpu, t, COUNT_UP);
    check_change(cpu, t, COUNT_UP_ABSENT);
    check_change(cpu, t, COUNT_DOWN);
    for (enum count_change how = COUNT_UP; how <= COUNT_DOWN; how++)
        check_changes_of_one(cpu_loops[cpu].lines, t, how, rng);
}

/* ---- The run ----------------------------------------------------------------------------- */

/* Runs random trials with each instruction set that this CPU has. */
static void run(void (*try)(enum cpu, struct trial *, struct rng *), const char *name)
{
    const unsigned trials = every_case() ? 10000 : SANITIZED ? 1000 : 2500;
    static struct trial trial;
    struct rng rng = rng_for(name);
    for (unsigned cpu = 0; cpu < CPU_COUNT; cpu++)
        for (unsigned i = 0; cpu_has((enum cpu)cpu) && i < trials; i++) {
            fill_randomly(&trial, &rng);
            try((enum cpu)cpu, &trial, &rng);
        }
}

TEST(test_blocked)
{
    run(try_blocked, __func__);
}

TEST(test_bloom)
{
    run(try_bloom, __func__);
}

TEST(test_counting)
{
    run(try_counting, __func__);
}

TEST(test_cuckoo)
{
    run(try_cuckoo, __func__);
}

/* ---- Choice ------------------------------------------------------------------------------ */

static void expect_cpu(const char *wanted, const char *name)
{
    scene("%s is taken for %s", wanted ? wanted : "nothing", cpu_name(cpu_named(wanted)));
    expect(!strcmp(cpu_name(cpu_named(wanted)), name));
}

/* PERHAPS_CPU, which is not the same in all runs of this test, chooses the instruction set; a
 * name that is unknown is ignored. */
TEST(test_choice)
{
    const char *best = NULL;
    expect(cpu_has(CPU_SCALAR) && !strcmp(cpu_name(CPU_SCALAR), "scalar"));
    for (unsigned cpu = 0; cpu < CPU_COUNT; cpu++) {
        if (!cpu_has((enum cpu)cpu))
            continue;
        best = cpu_name((enum cpu)cpu);
        expect_cpu(best, best);
    }
    const char *const unknown[] = { "", "sca", "scalar2", "mmx" };
    for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++)
        expect_cpu(unknown[i], best);
    expect_cpu(NULL, best);
    scoped_filter *f = make_filter(perhaps_kind_at(0), 10, 0.01, 1);
    expect(!strcmp(stats_of(f).cpu, cpu_name(cpu_named(getenv("PERHAPS_CPU")))));
}
