/* module_load_test.c - proves that BF.LOAD of the module takes the dumps of valkey-bloom, and
 * whatever an enemy makes of them: bytes are refused or make a filter that works, and nothing
 * stays behind when the memory ends.
 *
 * It fails when a dump makes another filter than the one that it was made of, when a part of
 * one is taken, and when changed bytes make a filter that breaks. */
#include "support.h"

#include <string.h>

#include "../../module/memory.h"
#include "../../module/valkeybloom.h"
#include "fake_server.h"
#include "foreign.h"
#include "hostile.h"

enum { ITEMS = 200, BATCH = 40 };

/* Makes a filter of several layers. */
static void *grown(void)
{
    void *filter = make_valkey(30, .02, 2);
    for (uint64_t i = 0; i < ITEMS; i++) {
        const uint64_t number = mix64(i);
        const struct perhaps_key item = item_of(&number);
        bool was_present;
        size_t done;
        expect_success(valkey_bloom.add(filter, &item, 1, false, &was_present, &done));
    }
    return filter;
}

/* Returns what valkey-bloom would write of a filter, from the pieces that SCANDUMP gives. */
static struct text load_dump_of(const void *filter)
{
    struct text text = { 0 }, pieces = dump_of(&valkey_bloom, filter);
    const uint64_t layers = get_number(pieces.at + 16, 4);
    const uint8_t *layer = pieces.at + VALKEY_HEAD, *block = layer + layers * VALKEY_LINK;
    put(&text, 1, 1);                             /* the version */
    put(&text, get_number(pieces.at + 12, 4), 4); /* expansion */
    put(&text, get_number(pieces.at + 20, 8), 8); /* fpr */
    put(&text, get_number(pieces.at + 28, 8), 8); /* tightening */
    put(&text, 1, 1);                             /* the seed was drawn */
    put(&text, layers, 8);
    for (uint64_t i = 0; i < layers; i++, layer += VALKEY_LINK) {
        const uint64_t nbytes = get_number(layer, 8);
        put(&text, nbytes, 8);
        for (uint64_t at = 0; at < nbytes; at++)
            put(&text, *block++, 1);
        put(&text, get_number(layer + 16, 8), 8); /* items */
        put(&text, get_number(layer + 8, 8), 8);  /* capacity */
    }
    free(pieces.at);
    return text;
}

/* The bytes lie alone, so that AddressSanitizer finds who reads behind them. */
static void *decode(const uint8_t *bytes, size_t nbytes)
{
    const char *why = NULL;
    char *alone = malloc(nbytes ? nbytes : 1);
    expect(alone);
    memcpy(alone, bytes, nbytes);
    void *filter = valkeybloom_decode(alone, nbytes, &why);
    expect(!filter == !!why);
    free(alone);
    return filter;
}

TEST(test_whole_dumps_only)
{
    setup();
    void *filter = grown();
    struct text dump = load_dump_of(filter);
    void *loaded = decode(dump.at, dump.nbytes);
    expect(loaded);
    expect_same_dumps(&valkey_bloom, filter, loaded);
    expect_copies(&valkey_bloom, loaded);
    valkey_bloom.release(loaded);
    for (size_t n = 0; n < dump.nbytes; n++)
        expect(!decode(dump.at, n));
    put(&dump, 0, 1);
    expect(!decode(dump.at, dump.nbytes));
    free(dump.at);
    valkey_bloom.release(filter);
    expect_nothing_left();
}

/* Adds items to a filter that an enemy made, and finds them. */
static void use(void *filter, struct rng *rng)
{
    uint64_t numbers[BATCH];
    struct perhaps_key items[BATCH];
    struct info info;
    bool present[BATCH];
    size_t done;
    for (size_t i = 0; i < BATCH; i++) {
        numbers[i] = rng_next(rng);
        items[i] = item_of(&numbers[i]);
    }
    valkey_bloom.add(filter, items, BATCH, false, present, &done);
    valkey_bloom.contains(filter, items, done, 0, present);
    for (size_t i = 0; i < done; i++)
        expect(present[i]);
    valkey_bloom.info(filter, &info);
    expect(info.fpr_now >= 0 && info.fpr_now <= 1);
    expect_copies(&valkey_bloom, filter);
}

TEST(test_changed_dumps)
{
    static const uint64_t numbers[] = { 0, 1, 45, 46, UINT32_MAX, INT64_MAX, UINT64_MAX };
    struct rng rng = rng_for("load");
    unsigned loaded = 0;
    setup();
    void *filter = grown();
    struct text whole = load_dump_of(filter);
    for (unsigned run = 0; run < many(6000); run++) {
        struct text dump = { malloc(whole.nbytes), whole.nbytes };
        expect(dump.at);
        memcpy(dump.at, whole.at, whole.nbytes);
        for (uint64_t n = 1 + rng_below(&rng, 2); n > 0; n--) {
            uint8_t *at = dump.at + 1 + rng_below(&rng, dump.nbytes - 9);
            if (rng_below(&rng, 2))
                *at ^= (uint8_t)(1 << rng_below(&rng, 8));
            else
                put64(at, numbers[rng_below(&rng, sizeof numbers / sizeof *numbers)]);
        }
        scene("run %u", run);
        void *changed = decode(dump.at, dump.nbytes);
        loaded += changed != NULL;
        if (changed) {
            use(changed, &rng);
            valkey_bloom.release(changed);
        }
        free(dump.at);
    }
    expect(loaded > 0);
    free(whole.at);
    valkey_bloom.release(filter);
    expect_nothing_left();
}

/* Fails the first allocation, the second, and so on. */
TEST(test_load_with_too_little_memory)
{
    setup();
    void *filter = grown(), *loaded = NULL;
    struct text dump = load_dump_of(filter);
    for (uint64_t call = 1; !loaded; call++) {
        fake_memory_ends = call;
        loaded = decode(dump.at, dump.nbytes);
        fake_memory_ends = 0;
        expect(!loaded || call > 3);
    }
    expect_same_dumps(&valkey_bloom, filter, loaded);
    valkey_bloom.release(loaded);
    free(dump.at);
    valkey_bloom.release(filter);
    expect_nothing_left();
}
