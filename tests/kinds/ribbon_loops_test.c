/* ribbon_loops_test.c - proves that the loops of ribbon filters read each slot of a key where
 * doc/FORMAT.md says, and nothing behind the body. */
#include "support.h"
#include <perhaps_build.h>

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "filter/filter.h"
#include "kinds/built/ribbon.h"
#include "kinds/kinds.h"

/* Where a key lies, as the words of doc/FORMAT.md say. */
struct where {
    uint64_t layer_at; /* in bytes */
    uint64_t slots, start;
    struct keyhash key; /* as it is in that layer */
    bool bumped;
};

static struct where where_is(const uint64_t *field, const uint8_t *body, struct keyhash key)
{
    struct where w = { .key = key };
    uint64_t all = field[LAST_SLOTS], thresholds;
    for (unsigned i = 0; i < 6; i++)
        all += field[SLOTS + i];
    thresholds = all * field[ROW_BITS] / 8;
    for (unsigned i = 0; i < 6 && field[SLOTS + i]; i++) {
        static const unsigned limits[] = { 0, 20, 44, 128 };
        w.slots = field[SLOTS + i];
        w.start = scale64(w.key.place, w.slots);
        uint64_t bucket = w.start / 128;
        if (w.start % 128 >= limits[body[thresholds + bucket / 4] >> bucket % 4 * 2 & 3])
            return w;
        w.bumped = true;
        w.key.place *= ODD_GOLDEN;
        w.layer_at += w.slots * field[ROW_BITS] / 8;
        thresholds += (w.slots / 128 + 3) / 4;
    }
    uint64_t x = w.key.place + field[SALT] * ODD_PI;
    x = ((x ^ x >> 32) * ODD_PI) ^ w.key.mark;
    x = (x ^ x >> 29) * ODD_GOLDEN;
    w.key.place = x ^ x >> 32;
    w.key.mark = (w.key.place ^ w.key.place >> 31) * ODD_PI;
    w.slots = field[LAST_SLOTS];
    w.start = scale64(w.key.place, w.slots - 63);
    return w;
}

/* Returns the number of a bit of a slot, counted from the first bit of the body. */
static uint64_t bit_at(const struct where *w, uint64_t row_bits, uint64_t slot, unsigned bit)
{
    uint64_t stripe = w->slots % 1024 == 0 ? 1024 : w->slots % 128 == 0 ? 128 : 64;
    uint64_t group = bit / 8, columns = row_bits - 8 * group < 8 ? row_bits - 8 * group : 8;
    uint64_t nbytes = w->layer_at + slot / stripe * stripe * row_bits / 8 + stripe * group +
                      slot % stripe / 64 * columns * 8 + bit % 8 * 8;
    return nbytes * 8 + slot % 64;
}

/* Returns what the slots of a key add up to. */
static uint64_t row_of(const struct where *w, uint64_t row_bits, const uint8_t *body)
{
    uint64_t row = 0;
    for (unsigned bit = 0; bit < row_bits; bit++)
        for (unsigned i = 0; i < 64; i++)
            if ((w->key.mark | 1) >> i & 1) {
                uint64_t at = bit_at(w, row_bits, w->start + i, bit);
                row ^= (uint64_t)(body[at / 8] >> at % 8 & 1) << bit;
            }
    return row;
}

/* Changes each bit of a slot that a key touches: the fingerprint is then wrong, or the
 * value. */
static void change_slots(perhaps_filter *f, const struct perhaps_keys *keys, size_t i,
                         const struct where *w)
{
    const uint64_t row_bits = f->body.geometry.field[ROW_BITS];
    const uint64_t value_bits = f->body.geometry.field[VALUE_BITS],
                   bits = row_bits - value_bits;
    unsigned touched = 63;
    while (!((w->key.mark | 1) >> touched & 1))
        touched--;
    for (unsigned bit = 0; bit < row_bits; bit++) {
        const uint64_t at = bit_at(w, row_bits, w->start + (bit % 2 ? touched : 0), bit);
        bool answer[100], wanted = bit >= bits;
        uint32_t value = 0;
        uint64_t row = row_of(w, row_bits, f->body.bytes);
        f->body.bytes[at / 8] ^= (uint8_t)(1 << at % 8);
        struct perhaps_keys some = some_keys(keys, i < 50 ? 0 : i - 50, 100);
        perhaps_contains_many(f, &some, answer);
        expect(answer[i < 50 ? i : 50] == wanted);
        expect(perhaps_contains(f, key_at(keys, i), keys->key_nbytes) == wanted);
        if (value_bits)
            expect_error(perhaps_lookup(f, key_at(keys, i), keys->key_nbytes, &value),
                         wanted ? 0 : PERHAPS_ERR_NOT_FOUND);
        expect(!wanted || value == (row ^ UINT64_C(1) << bit) >> bits);
        f->body.bytes[at / 8] ^= (uint8_t)(1 << at % 8);
    }
}

/* Tries keys that are bumped, keys whose blocks lie in two stripes, and others. */
static void try_loops(size_t n, unsigned row_bits, unsigned value_bits)
{
    struct perhaps_options options = { .fpr = 1.01 * pow(0.5, row_bits - value_bits),
                                       .kind = "ribbon",
                                       .hashing = { .seed = test_seed() } };
    unsigned bumped = 0, leaving = 0, others = 0;
    options.ribbon.value_bits = value_bits;
    scene("%zu keys, rows of %u bits, values of %u", n, row_bits, value_bits);
    scoped_keys keys = make_keys(SEQUENTIAL_KEYS, 9, 0, n + 100);
    struct perhaps_keys added = some_keys(&keys, 0, n);
    scoped_filter *f = built_filter(&options, &added);
    expect(f->body.geometry.field[ROW_BITS] == row_bits);
    for (size_t i = 0; i < n; i++) {
        struct keyhash hash;
        expect(hasher_one(&f->hasher, key_at(&keys, i), keys.key_nbytes, &hash));
        struct where w = where_is(f->body.geometry.field, f->body.bytes, hash);
        unsigned *tried = w.bumped ? &bumped : w.start % 1024 >= 961 ? &leaving : &others;
        if ((*tried)++ >= 2)
            continue;
        uint64_t fingerprint = (w.key.mark * ODD_PI) >> (64 - (row_bits - value_bits));
        uint64_t row = row_of(&w, row_bits, f->body.bytes);
        expect((row & ((UINT64_C(1) << (row_bits - value_bits)) - 1)) == fingerprint);
        change_slots(f, &keys, i, &w);
    }
    expect(bumped >= 2 && leaving >= 2 && others >= 2);
}

/* Loops of this CPU, for one key and for many, read each slot of a key where doc/FORMAT.md
 * says, in layers of small and of large stripes. */
TEST(test_loops)
{
    for (unsigned row_bits = 1; row_bits <= 32; row_bits++)
        for (unsigned value_bits = 0; value_bits < row_bits; value_bits += 5) {
            if (value_bits <= 16)
                try_loops(3000, row_bits, value_bits);
            if (value_bits <= 16)
                try_loops(12000, row_bits, value_bits);
        }
}

/* Fills the body of a filter with noise, and asks for keys that start in the last slots. */
static void ask_at_the_end(perhaps_filter *f, perhaps_filter *scalar, struct rng *rng)
{
    enum { ASKED = 64 };
    struct keyhash keys[ASKED];
    bool answer[ASKED], wanted[ASKED];
    uint32_t value[ASKED], wanted_value[ASKED];
    for (uint64_t i = 0; i < f->body.geometry.body_nbytes; i++)
        f->body.bytes[i] = (uint8_t)rng_below(rng, 256);
    for (unsigned i = 0; i < ASKED; i++)
        keys[i] = (struct keyhash){ i % 4 ? ~(rng_next(rng) >> 8 * (i % 4 + 2)) : rng_next(rng),
                                    rng_next(rng) };
    scalar->loops->contains(&scalar->body, keys, keys, ASKED, wanted);
    f->loops->contains(&f->body, keys, keys, ASKED, answer);
    expect(!memcmp(answer, wanted, sizeof answer));
    for (unsigned i = 0; i < ASKED; i++)
        expect(f->loops->contains_one(&f->body, keys[i]) == wanted[i]);
    f->kind->builds->look_up(f, keys, ASKED, value, answer);
    scalar->kind->builds->look_up(scalar, keys, ASKED, wanted_value, wanted);
    expect(!memcmp(answer, wanted, sizeof answer));
    expect(!memcmp(value, wanted_value, sizeof value));
}

/* In a body that an enemy wrote keys may start in the last slots of a layer.  Loops give the
 * answers of the scalar ones, and read nothing behind the body. */
TEST(test_end_of_body)
{
    enum { ROOM = 1 << 18 };
    static const uint64_t layers[][7] = { /* the last one first */
                                          { 64 },          { 192, 128 },      { 64, 1024 },
                                          { 64, 2048, 0 }, { 64, 1024, 128 }, { 128, 128, 1024 }
    };
    struct rng rng = rng_for(__func__);
    uint8_t *room =
        mmap(NULL, 2 * ROOM, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    expect(room != MAP_FAILED && !mprotect(room + ROOM, ROOM, PROT_NONE));
    for (uint64_t row_bits = 1; row_bits <= 32; row_bits++)
        for (uint64_t value_bits = 0; value_bits < row_bits && value_bits <= 16;
             value_bits += 4)
            for (size_t i = 0; i < sizeof layers / sizeof *layers; i++) {
                perhaps_filter f = { .kind = &kind_ribbon, .cpu = cpu_choose() };
                f.body.geometry = (struct geometry){ .capacity = 1000, .fpr = 0.5 };
                uint64_t *field = f.body.geometry.field;
                field[ROW_BITS] = row_bits;
                field[VALUE_BITS] = value_bits;
                memcpy(field + LAST_SLOTS, layers[i], sizeof layers[i]);
                scene("rows of %ju bits, values of %ju, layers %zu", (uintmax_t)row_bits,
                      (uintmax_t)value_bits, i);
                expect_success(kind_ribbon.set_geometry(&f.body.geometry));
                expect(f.body.geometry.body_nbytes <= ROOM);
                f.body.bytes = room + ROOM - f.body.geometry.body_nbytes;
                perhaps_filter scalar = f;
                scalar.cpu = CPU_SCALAR;
                kind_ribbon.bind(&f);
                kind_ribbon.bind(&scalar);
                ask_at_the_end(&f, &scalar, &rng);
            }
    expect(!munmap(room, 2 * ROOM));
}
