/* layout_test.c - layouts: where they say that a key's bits lie is where perhaps_add() sets
 * them; what they describe is what is restored, and nothing else is. */
#include "support.h"

#include <math.h>
#include <string.h>

static perhaps_layout *layout_of(const perhaps_filter *f)
{
    perhaps_layout *layout;
    expect_success(perhaps_layout_of(f, &layout));
    return layout;
}

static struct perhaps_plan plan_of(const perhaps_layout *layout)
{
    struct perhaps_plan plan;
    perhaps_layout_plan(layout, &plan);
    return plan;
}

/* ---- Bits ------------------------------------------------------------------------------ */

static uint8_t *body_of(const perhaps_filter *f, size_t nbytes)
{
    uint8_t *body = malloc(nbytes);
    expect(body);
    expect_success(perhaps_read(f, 0, body, nbytes));
    return body;
}

/* Adds one key to an empty filter, and compares its whole body with the bits that the layout
 * tells. */
static void compare_bits(perhaps_filter *f, const perhaps_layout *layout, const void *key,
                         size_t key_nbytes)
{
    struct perhaps_keys keys = { .count = 1, .packed = key, .key_nbytes = key_nbytes };
    struct perhaps_hashed hashed;
    struct perhaps_bits bits;
    size_t nbytes = plan_of(layout).body_nbytes;
    expect_success(perhaps_clear(f));
    expect_success(perhaps_add(f, key, key_nbytes));
    expect_success(perhaps_layout_hash_many(layout, &keys, &hashed));
    perhaps_layout_locate(layout, &hashed, &bits);
    uint8_t *body = body_of(f, nbytes);
    size_t block_nbytes = (size_t)bits.nlines * PERHAPS_LINE_NBYTES;
    expect(bits.nlines >= 1 && bits.nbits >= bits.nlines && bits.nbits <= PERHAPS_BITS_MAX);
    expect(bits.block < nbytes / block_nbytes);
    uint8_t *block = body + bits.block * block_nbytes;
    for (unsigned i = 0; i < bits.nbits; i++) {
        unsigned bit = bits.bit[i], mask = 1U << bit % 8;
        expect(bit < 8 * block_nbytes);
        expect(i == 0 || bit / 512 >= bits.bit[i - 1] / 512U);
        expect(block[bit / 8] & mask); /* and is taken away, so that none comes twice */
        block[bit / 8] = (uint8_t)(block[bit / 8] & ~mask);
    }
    for (size_t i = 0; i < nbytes; i++)
        expect(!body[i]);
    free(body);
}

static void custom_hash(void *context, const void *key, size_t key_nbytes,
                        uint8_t hash[PERHAPS_HASH_NBYTES])
{
    uint64_t words[2] = { *(const uint64_t *)context, key_nbytes };
    for (size_t i = 0; i < key_nbytes; i++)
        words[0] = mix64(words[0] + ((const uint8_t *)key)[i]);
    words[1] += mix64(words[0]);
    memcpy(hash, words, sizeof words);
}

static void test_bits(void **state)
{
    (void)state;
    const uint8_t secret[16] = "sixteen secrets";
    const double rates[] = { 0.3, 0.01, 0.001 };
    struct rng rng = rng_for(__func__);
    uint64_t context = rng_next(&rng);
    const struct perhaps_hashing hashings[] = {
        { .hash = PERHAPS_XXH3, .seed = rng_next(&rng) },
        { .hash = PERHAPS_SIP, .secret = secret },
        { .hash = PERHAPS_NONE },
        { .hash = PERHAPS_CUSTOM, .function = custom_hash, .context = &context },
    };
    for (size_t h = 0; h < sizeof hashings / sizeof *hashings; h++)
        for (size_t r = 0; r < sizeof rates / sizeof *rates; r++)
            for (unsigned round = 0; round < many(300); round++) {
                uint64_t capacity = 1 + rng_below(&rng, 2000);
                uint8_t key[PERHAPS_HASH_NBYTES];
                struct perhaps_options options = { .capacity = capacity,
                                                   .fpr = rates[r],
                                                   .kind = "blocked",
                                                   .together = true,
                                                   .hashing = hashings[h] };
                scene("%s, %u keys at %g", "blocked", (unsigned)capacity, rates[r]);
                for (size_t i = 0; i < sizeof key; i++)
                    key[i] = (uint8_t)rng_next(&rng);
                perhaps_filter *f = make_with(&options);
                perhaps_layout *layout = layout_of(f);
                compare_bits(f, layout, key, sizeof key);
                perhaps_layout_free(layout);
                perhaps_free(f);
            }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bits),
    };
    return run_group(tests);
}
