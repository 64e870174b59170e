/* layout_test.c - proves that a layout (a filter whose bytes the caller keeps) tells exactly
 * the bits that perhaps_add() sets; that its description restores the same layout; and that a
 * description with a wrong number is refused.  A wrong bit would deny keys that are in; a
 * number that is not refused could point outside the body. */
#include "support.h"
#include <perhaps_fast.h>

#include <math.h>
#include <string.h>

static struct perhaps_plan plan_of(const perhaps_layout *layout)
{
    struct perhaps_plan plan;
    perhaps_layout_plan(layout, &plan);
    return plan;
}

/* ---- Bits ------------------------------------------------------------------------------ */

/* Returns a copy of the filter's body. */
static uint8_t *body_of(const perhaps_filter *f, size_t nbytes)
{
    uint8_t *body = malloc(nbytes);
    expect(body);
    expect_success(perhaps_body_read(f, 0, body, nbytes));
    return body;
}

/* Adds one key to an empty filter, and checks that the body has the bits that the layout tells,
 * each of them once, and no other. */
static void compare_bits(perhaps_filter *f, const perhaps_layout *layout, const void *key,
                         size_t key_nbytes)
{
    struct perhaps_keys keys = perhaps_keys_packed(key, key_nbytes, 1);
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
        expect(block[bit / 8] & mask); /* then clears it, so a bit that comes twice fails */
        block[bit / 8] = (uint8_t)(block[bit / 8] & ~mask);
    }
    for (size_t i = 0; i < nbytes; i++)
        expect(!body[i]);
    free(body);
}

/* A caller's hash function, which depends on the number behind 'context'. */
static void custom_hash(void *context, const void *key, size_t key_nbytes,
                        uint8_t hash[PERHAPS_HASH_NBYTES])
{
    uint64_t words[2] = { *(const uint64_t *)context, key_nbytes };
    for (size_t i = 0; i < key_nbytes; i++)
        words[0] = mix64(words[0] + ((const uint8_t *)key)[i]);
    words[1] += mix64(words[0]);
    memcpy(hash, words, sizeof words);
}

static const uint8_t a_secret[16] = "sixteen secrets";
static uint64_t custom_context;

enum { HASHES = 4 };

static struct perhaps_hashing hashing_number(unsigned number, struct rng *rng)
{
    const struct perhaps_hashing hashings[HASHES] = {
        { .hash = PERHAPS_HASH_XXH3, .seed = 1 + rng_next(rng) / 2 },
        { .hash = PERHAPS_HASH_SIP, .secret = a_secret },
        { .hash = PERHAPS_HASH_NONE },
        { .hash = PERHAPS_HASH_CUSTOM, .function = custom_hash, .context = &custom_context },
    };
    return hashings[number];
}

/* Returns options whose plans have one line to four for a key. */
static struct perhaps_options any_options(struct rng *rng)
{
    static const struct {
        double fpr;
        enum perhaps_preference preference;
    } rates[] = {
        { 0.3, PERHAPS_PREFER_BALANCED },   { 0.01, PERHAPS_PREFER_BALANCED },
        { 0.001, PERHAPS_PREFER_BALANCED }, { 0.01, PERHAPS_PREFER_COMPACT },
        { 1e-5, PERHAPS_PREFER_BALANCED },  { 1e-6, PERHAPS_PREFER_FAST },
        { 1e-8, PERHAPS_PREFER_BALANCED },  { 1e-7, PERHAPS_PREFER_COMPACT },
    };
    uint64_t rate = rng_below(rng, sizeof rates / sizeof *rates);
    custom_context = rng_next(rng);
    return (struct perhaps_options){ .capacity = 1 + rng_below(rng, 2000),
                                     .fpr = rates[rate].fpr,
                                     .preference = rates[rate].preference,
                                     .kind = "blocked",
                                     .blocked.together = true,
                                     .hashing = hashing_number((unsigned)rng_below(rng, HASHES),
                                                               rng) };
}

static void random_key(struct rng *rng, uint8_t key[PERHAPS_HASH_NBYTES])
{
    for (size_t i = 0; i < PERHAPS_HASH_NBYTES; i++)
        key[i] = (uint8_t)rng_next(rng);
}

/* The last loop checks that each number of lines from 1 to 4 was tried.  The few rounds under
 * sanitizers may miss one. */
TEST(test_bits)
{
    struct rng rng = rng_for(__func__);
    unsigned with_lines[8 + 1] = { 0 };
    const unsigned rounds = many(500);
    for (unsigned round = 0; round < rounds; round++) {
        uint8_t key[PERHAPS_HASH_NBYTES];
        struct perhaps_options options = any_options(&rng);
        scene("round %u: %llu keys at %g, hash %d", round, (unsigned long long)options.capacity,
              options.fpr, (int)options.hashing.hash);
        scoped_filter *f = make_with(&options);
        scoped_layout *layout = layout_of(f);
        for (unsigned i = 0; i < 5; i++) {
            random_key(&rng, key);
            compare_bits(f, layout, key, sizeof key);
        }
        with_lines[plan_of(layout).field[1]]++;
    }
    for (unsigned lines = 1; lines <= 4; lines++)
        expect(with_lines[lines] > 0 || rounds < 500);
}

/* ---- Which filters have one ------------------------------------------------------------ */

/* Checks that the filter has no layout; one of an unsupported kind does not give its bytes,
 * either. */
static void expect_no_layout(const perhaps_filter *f, int error)
{
    uint8_t byte;
    perhaps_layout *layout = (perhaps_layout *)&byte;
    expect_error(perhaps_layout_of(f, &layout), error);
    expect(!layout);
    if (error == PERHAPS_ERR_UNSUPPORTED)
        expect_error(perhaps_body_read(f, 0, &byte, 1), PERHAPS_ERR_UNSUPPORTED);
}

/* Only blocked filters have a layout, and only if the lines of a key lie side by side or a key
 * has one line. */
TEST_EACH(test_unsupported, any_kind)
{
    for (unsigned preference = 0; preference <= PERHAPS_PREFER_COMPACT; preference++) {
        struct perhaps_options options = options_for(kind, 100, 1e-5, 1);
        options.preference = (enum perhaps_preference)preference;
        scene("%s, preference %u", kind->name, preference);
        scoped_filter *f = make_with(&options);
        struct perhaps_plan plan = stats_of(f).plan;
        if (!strcmp(kind->name, "blocked") && (options.blocked.together || plan.field[1] == 1))
            perhaps_layout_free(layout_of(f));
        else
            expect_no_layout(f, PERHAPS_ERR_UNSUPPORTED);
    }
}

/* A filter that was opened without its secret cannot hash keys, and so has no layout. */
TEST(test_without_secret)
{
    struct path path = temp_path("sip");
    struct perhaps_options options = { .capacity = 10,
                                       .fpr = 0.01,
                                       .hashing = { .hash = PERHAPS_HASH_SIP } };
    uint8_t byte;
    scoped_filter *f = make_with(&options);
    expect_success(perhaps_save(f, path.text));
    scoped_filter *blind = open_file(path.text, &without_secret);
    expect_no_layout(blind, PERHAPS_ERR_SECRET);
    expect_success(perhaps_body_read(blind, 0, &byte, 1)); /* the bytes are no secret */
}

/* ---- Descriptions ---------------------------------------------------------------------- */

static perhaps_layout *create(const struct perhaps_options *options)
{
    perhaps_layout *layout;
    expect_success(perhaps_layout_create(options, &layout));
    return layout;
}

static struct perhaps_description description_of(const struct perhaps_options *options)
{
    struct perhaps_description d;
    scoped_layout *layout = create(options);
    perhaps_layout_describe(layout, &d);
    return d;
}

/* Checks that restoring fails with this error and leaves no layout. */
static void expect_not_restored(const struct perhaps_description *d,
                                const struct perhaps_hashing *hashing, int error)
{
    perhaps_layout *layout = (perhaps_layout *)&d;
    expect_error(perhaps_layout_restore(d, hashing, &layout), error);
    expect(!layout);
}

static const struct perhaps_options with_secret = {
    .capacity = 1000, .fpr = 0.01, .hashing = { .hash = PERHAPS_HASH_SIP, .secret = a_secret }
};

/* Checks that two layouts tell the same bits for a random key. */
static void expect_same_bits(const perhaps_layout *a, const perhaps_layout *b, struct rng *rng)
{
    uint8_t key[PERHAPS_HASH_NBYTES];
    random_key(rng, key);
    struct perhaps_keys keys = perhaps_keys_packed(key, sizeof key, 1);
    struct perhaps_hashed hashed[2];
    struct perhaps_bits bits[2];
    memset(bits, 0, sizeof bits);
    expect_success(perhaps_layout_hash_many(a, &keys, &hashed[0]));
    expect_success(perhaps_layout_hash_many(b, &keys, &hashed[1]));
    perhaps_layout_locate(a, &hashed[0], &bits[0]);
    perhaps_layout_locate(b, &hashed[1], &bits[1]);
    expect(!memcmp(&bits[0], &bits[1], sizeof *bits));
}

/* A layout that was restored from a description has the same description and the same bits. */
TEST(test_restored)
{
    struct rng rng = rng_for(__func__);
    for (unsigned round = 0; round < many(300); round++) {
        struct perhaps_options options = any_options(&rng);
        struct perhaps_description d, again;
        scoped_layout *made = create(&options), *restored;
        perhaps_layout_describe(made, &d);
        scene("round %u: %llu keys at %g, hash %d", round, (unsigned long long)d.capacity,
              d.fpr, (int)d.hash);
        expect(d.capacity == options.capacity && d.fpr == options.fpr);
        expect_success(perhaps_layout_restore(&d, &options.hashing, &restored));
        perhaps_layout_describe(restored, &again);
        expect(!strcmp(d.kind, again.kind) && d.capacity == again.capacity &&
               d.fpr == again.fpr && d.hash == again.hash && d.seed == again.seed &&
               d.check == again.check && !memcmp(d.field, again.field, sizeof d.field));
        expect_same_bits(made, restored, &rng);
    }
}

/* A description with one number changed, and the error that it must give. */
struct hostile {
    const char *what;
    size_t offset;
    uint64_t value;
    int error;
};

#define IN_FIELD(n) (offsetof(struct perhaps_description, field) + (n) * sizeof(uint64_t))

static uint64_t bits_of(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* One row puts a number just outside its range, or far outside.  Fields that this version does
 * not know must be 0, so that a description of a later version is not misread. */
TEST(test_hostile_numbers)
{
    const size_t capacity = offsetof(struct perhaps_description, capacity);
    const size_t fpr = offsetof(struct perhaps_description, fpr);
    const struct hostile cases[] = {
        { "no keys", capacity, 0, PERHAPS_ERR_LIMIT },
        { "too many keys", capacity, PERHAPS_CAPACITY_MAX + 1, PERHAPS_ERR_LIMIT },
        { "fpr 0", fpr, bits_of(0), PERHAPS_ERR_LIMIT },
        { "fpr 1", fpr, bits_of(1), PERHAPS_ERR_LIMIT },
        { "fpr NaN", fpr, bits_of(NAN), PERHAPS_ERR_LIMIT },
        { "no lines", IN_FIELD(0), 0, PERHAPS_ERR_LIMIT },
        { "2^64 lines", IN_FIELD(0), UINT64_MAX, PERHAPS_ERR_LIMIT },
        { "no parts", IN_FIELD(1), 0, PERHAPS_ERR_LIMIT },
        { "one part, together", IN_FIELD(1), 1, PERHAPS_ERR_LIMIT },
        { "9 parts", IN_FIELD(1), 9, PERHAPS_ERR_LIMIT },
        { "2^32 + 2 parts", IN_FIELD(1), (UINT64_C(1) << 32) + 2, PERHAPS_ERR_LIMIT },
        { "no bits", IN_FIELD(2), 0, PERHAPS_ERR_LIMIT },
        { "17 bits", IN_FIELD(2), 17, PERHAPS_ERR_LIMIT },
        { "apart", IN_FIELD(3), 0, PERHAPS_ERR_UNSUPPORTED },
        { "together twice", IN_FIELD(3), 2, PERHAPS_ERR_LIMIT },
        { "together 2^64 times", IN_FIELD(3), UINT64_MAX, PERHAPS_ERR_LIMIT },
        { "an unknown field", IN_FIELD(4), 1, PERHAPS_ERR_VERSION },
        { "the last field", IN_FIELD(PERHAPS_FIELDS_MAX - 1), 1, PERHAPS_ERR_VERSION },
        { "check", offsetof(struct perhaps_description, check), 1, PERHAPS_ERR_SECRET },
        { "seed", offsetof(struct perhaps_description, seed), ~test_seed(),
          PERHAPS_ERR_SECRET },
    };
    struct perhaps_options options = { .capacity = 1000,
                                       .fpr = 1e-5,
                                       .hashing = { .seed = test_seed() } };
    struct perhaps_description sound = description_of(&options);
    scoped_layout *layout;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        scene("%s", cases[i].what);
        struct perhaps_description d = sound;
        memcpy((char *)&d + cases[i].offset, &cases[i].value, sizeof cases[i].value);
        expect_not_restored(&d, NULL, cases[i].error);
    }
    expect_success(perhaps_layout_restore(&sound, NULL, &layout));
}

/* Names and hashes that are unknown, of another kind, or that do not fit the check value. */
TEST(test_hostile_names)
{
    const struct {
        const char *kind;
        unsigned hash;
        int error;
    } cases[] = {
        { NULL, 0, PERHAPS_ERR_ARGUMENT },
        { "", 0, PERHAPS_ERR_VERSION },
        { "Blocked", 0, PERHAPS_ERR_VERSION },
        { "cuckoo", 0, PERHAPS_ERR_UNSUPPORTED },
        { "chain", 0, PERHAPS_ERR_UNSUPPORTED },
        { "blocked", PERHAPS_HASH_COUNT, PERHAPS_ERR_VERSION },
        { "blocked", ~0U, PERHAPS_ERR_VERSION },
        { "blocked", PERHAPS_HASH_NONE, PERHAPS_ERR_SECRET }, /* the check value is xxh3's */
    };
    struct perhaps_options options = { .capacity = 1000, .fpr = 0.01 };
    struct perhaps_description d = description_of(&options);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        scene("kind %s, hash %u", cases[i].kind ? cases[i].kind : "NULL", cases[i].hash);
        d.kind = cases[i].kind;
        d.hash = (enum perhaps_hash)cases[i].hash;
        expect_not_restored(&d, NULL, cases[i].error);
    }
}

TEST(test_wrong_secret)
{
    const uint8_t other_secret[16] = "another secret.";
    struct perhaps_description d = description_of(&with_secret);
    scoped_layout *layout;
    expect_not_restored(&d, &(struct perhaps_hashing){ .secret = other_secret },
                        PERHAPS_ERR_SECRET);
    expect_not_restored(&d, &(struct perhaps_hashing){ 0 }, PERHAPS_ERR_SECRET);
    expect_success(perhaps_layout_restore(&d, &with_secret.hashing, &layout));
}

/* Without the secret the plan can be read, but no key can be hashed. */
TEST(test_inspected_without_secret)
{
    struct perhaps_keys keys = perhaps_keys_packed("apple", 5, 1);
    struct perhaps_hashed hashed;
    struct perhaps_description d = description_of(&with_secret);
    scoped_layout *layout = create(&with_secret), *blind;
    expect_success(perhaps_layout_restore(&d, NULL, &blind));
    expect(plan_of(layout).body_nbytes == plan_of(blind).body_nbytes);
    expect_error(perhaps_layout_hash_many(blind, &keys, &hashed), PERHAPS_ERR_SECRET);
}

/* A description of random numbers is refused, or it is safe: every bit that it tells lies in
 * the body.  The first two keys have the smallest and the largest hash. */
TEST(test_any_numbers)
{
    struct rng rng = rng_for(__func__);
    unsigned accepted = 0;
    const unsigned rounds = many(500);
    struct perhaps_options options = { .capacity = 1, .fpr = 0.5, .hashing = { .seed = 1 } };
    struct perhaps_description sound = description_of(&options);
    for (unsigned round = 0; round < rounds; round++) {
        struct perhaps_description d = { .kind = "blocked",
                                         .capacity = rng_next(&rng) >> rng_below(&rng, 64),
                                         .fpr = exp2(-(double)rng_below(&rng, 60)),
                                         .hash = PERHAPS_HASH_XXH3,
                                         .seed = sound.seed,
                                         .check = sound.check };
        for (unsigned i = 0; i < 4; i++)
            d.field[i] = rng_next(&rng) >> (rng_below(&rng, 2) ? 60 : rng_below(&rng, 64));
        d.field[3] %= 3;
        scoped_layout *layout;
        scene("round %u: %llu lines, %llu parts, %llu bits, together %llu", round,
              (unsigned long long)d.field[0], (unsigned long long)d.field[1],
              (unsigned long long)d.field[2], (unsigned long long)d.field[3]);
        if (perhaps_layout_restore(&d, NULL, &layout)) {
            expect(!layout);
            continue;
        }
        accepted++;
        for (unsigned i = 0; i < 100; i++) {
            struct perhaps_hashed key;
            struct perhaps_bits bits;
            random_key(&rng, key.bytes);
            if (i < 2)
                memset(key.bytes, i ? 0xff : 0, sizeof key.bytes);
            perhaps_layout_locate(layout, &key, &bits);
            expect(bits.nlines == d.field[1] && bits.block < d.field[0]);
            expect(bits.nbits == d.field[1] * d.field[2] && bits.nbits <= PERHAPS_BITS_MAX);
            for (unsigned b = 0; b < bits.nbits; b++)
                expect(bits.bit[b] / (8 * PERHAPS_LINE_NBYTES) == b / d.field[2]);
        }
    }
    expect(accepted > 0 || rounds < 500);
}

/* ---- Plans ----------------------------------------------------------------------------- */

/* A layout has the plan of a blocked filter with its lines together, whatever kind the options
 * name: that is the only kind with layouts. */
TEST(test_create)
{
    const double rates[] = { 0.3, 0.01, 0.001, 1e-4, 1e-6, 1e-9, 1e-12 };
    for (size_t r = 0; r < sizeof rates / sizeof *rates; r++) {
        struct perhaps_options options = { .capacity = 12345,
                                           .fpr = rates[r],
                                           .needs = PERHAPS_CAN_GROW,
                                           .kind = "chain",
                                           .base = "cuckoo" };
        scene("fpr %g", rates[r]);
        scoped_layout *layout = create(&options);
        struct perhaps_plan plan = plan_of(layout), wanted;
        struct perhaps_options blocked = {
            .capacity = 12345, .fpr = rates[r], .kind = "blocked", .blocked.together = true
        };
        expect_success(perhaps_plan_for(&blocked, &wanted));
        expect(!strcmp(plan.kind, "blocked") && plan.body_nbytes == wanted.body_nbytes);
        expect(!memcmp(plan.field, wanted.field, sizeof plan.field) && !*plan.why);
        expect(plan.fpr_predicted == wanted.fpr_predicted && plan.fpr_predicted <= rates[r]);
        expect(perhaps_layout_predict_fpr(layout, 12345) == plan.fpr_predicted);
        expect(plan.field[3] == (plan.field[1] > 1)); /* side by side */
    }
}

/* Wrong options give the errors of perhaps_create(); all memory is released. */
TEST(test_create_refused)
{
    struct ledger ledger = { .failing = true };
    struct perhaps_allocator allocator = ledger_allocator(&ledger);
    const struct {
        struct perhaps_options options;
        int error;
    } cases[] = {
        { { .capacity = 0, .fpr = 0.01 }, PERHAPS_ERR_ARGUMENT },
        { { .capacity = 1, .fpr = 1 }, PERHAPS_ERR_ARGUMENT },
        { { .capacity = 1, .fpr = 0.1, .needs = PERHAPS_CAN_REMOVE }, PERHAPS_ERR_UNSUPPORTED },
        { { .capacity = 1, .fpr = 0.1, .hashing.hash = PERHAPS_HASH_CUSTOM },
          PERHAPS_ERR_SECRET },
        { { .capacity = 1, .fpr = 0.1, .allocator = &allocator }, PERHAPS_ERR_MEMORY },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        perhaps_layout *layout = (perhaps_layout *)&ledger;
        scene("case %zu", i);
        expect_error(perhaps_layout_create(&cases[i].options, &layout), cases[i].error);
        expect(!layout);
    }
    ledger.failing = false;
    perhaps_layout_free(create(&cases[4].options));
    expect(ledger.calls == 2 && !ledger.live && !ledger.live_nbytes);
    perhaps_layout_free(NULL);
}

/* ---- How many keys --------------------------------------------------------------------- */

/* The number of keys, estimated from the share of bits that are set, is right within 2 %, and
 * sound numbers come for a share of 0, 1 and NaN. */
TEST(test_estimate)
{
    struct rng rng = rng_for(__func__);
    const double rates[] = { 0.1, 0.001, 1e-5, 1e-8 };
    scoped_keys keys = make_keys(TEXT_KEYS, rng_next(&rng), 0, 40000);
    for (size_t r = 0; r < sizeof rates / sizeof *rates; r++)
        for (size_t count = keys.count / 8; count <= keys.count; count *= 2) {
            struct perhaps_options options = { .capacity = keys.count,
                                               .fpr = rates[r],
                                               .blocked.together = true };
            scoped_filter *f = make_with(&options);
            scoped_layout *layout = layout_of(f);
            struct perhaps_keys some = some_keys(&keys, 0, count);
            fill(f, &some);
            double keys_in = perhaps_layout_estimate_keys(layout, stats_of(f).load);
            scene("%zu keys at %g: estimated %g", count, rates[r], keys_in);
            expect(fabs(keys_in / (double)count - 1) < 0.02);
            expect(perhaps_layout_predict_fpr(layout, count) == perhaps_predict_fpr(f, count));
            expect(perhaps_layout_estimate_keys(layout, 0) == 0);
            expect(perhaps_layout_estimate_keys(layout, NAN) == 0);
            expect(isfinite(perhaps_layout_estimate_keys(layout, 1)));
            expect(perhaps_layout_estimate_keys(layout, 1) > keys_in);
        }
}

/* ---- Layers ---------------------------------------------------------------------------- */

/* The rates of all layers add up to the rate that was asked, and less than 1 % of it is unused.
 * The layers are those of a chain, whose newest part comes first. */
TEST(test_layers)
{
    scoped_keys keys = make_keys(RANDOM_KEYS, test_seed(), 0, 10000);
    const unsigned factors[] = { 0, 1, 2, 3, 4, 8, 9, 1000, 32768 };
    for (size_t n = 0; n < sizeof factors / sizeof *factors; n++) {
        unsigned factor = factors[n];
        struct perhaps_options options = {
            .capacity = 300, .fpr = 0.01, .kind = "chain", .chain.factor = factor
        };
        struct perhaps_options layer;
        scoped_filter *f = make_with(&options);
        fill(f, &keys);
        uint64_t parts = stats_of(f).parts;
        double sum = 0;
        for (unsigned i = 0; i < PERHAPS_LAYERS_MAX; i++) {
            struct perhaps_stats part;
            scene("factor %u, layer %u", factor, i);
            expect_success(perhaps_layer_options(&options, i, &layer));
            sum += layer.fpr;
            if (i >= parts)
                continue;
            expect(perhaps_part(f, parts - 1 - i, &part));
            expect(part.plan.capacity == layer.capacity && part.plan.fpr == layer.fpr);
        }
        expect(sum <= options.fpr && sum > 0.99 * options.fpr && parts > 1);
        expect(factor > 8 || parts > 2);
        expect_error(perhaps_layer_options(&options, PERHAPS_LAYERS_MAX, &layer),
                     PERHAPS_ERR_LAYERS);
    }
}

/* With the factor 1 layers have one size, and double from layer 32 on: 64 of them hold far more
 * than 64 times the first.  With any other factor each layer has 'factor' times the capacity of
 * the one before. */
TEST(test_sizes_of_layers)
{
    const unsigned factors[] = { 1, 2, 3, 7, 32768 };
    for (size_t n = 0; n < sizeof factors / sizeof *factors; n++) {
        struct perhaps_options options = { .capacity = 5,
                                           .fpr = 0.01,
                                           .chain.factor = factors[n] };
        struct perhaps_options layer;
        uint64_t wanted = options.capacity;
        for (unsigned i = 0; i < PERHAPS_LAYERS_MAX; i++) {
            scene("factor %u, layer %u", factors[n], i);
            expect_success(perhaps_layer_options(&options, i, &layer));
            expect(layer.capacity == wanted);
            wanted *= factors[n] == 1 && i >= 31 ? 2 : factors[n];
            wanted = wanted < PERHAPS_CAPACITY_MAX ? wanted : PERHAPS_CAPACITY_MAX;
        }
        expect(layer.capacity > UINT64_C(1) << 32);
    }
}

/* Options out of range, and a rate of which a layer's share would be below PERHAPS_FPR_MIN.  On
 * an error *layer stays as it was: 77.  The capacity of a layer stops growing at
 * PERHAPS_CAPACITY_MAX. */
TEST(test_layers_refused)
{
    const struct {
        struct perhaps_options options;
        unsigned index;
        int error;
    } cases[] = {
        { { .capacity = 300, .fpr = 0.01 }, 0, 0 },
        { { .capacity = 300, .fpr = 0.01, .chain.factor = 32769 }, 0, PERHAPS_ERR_ARGUMENT },
        { { .capacity = 0, .fpr = 0.01 }, 0, PERHAPS_ERR_ARGUMENT },
        { { .capacity = 300, .fpr = NAN }, 0, PERHAPS_ERR_ARGUMENT },
        { { .capacity = 300, .fpr = 2 * PERHAPS_FPR_MIN }, 0, PERHAPS_ERR_LIMIT },
        { { .capacity = 300, .fpr = 0.01 }, UINT_MAX, PERHAPS_ERR_LAYERS },
    };
    struct perhaps_options options = cases[0].options, layer;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        scene("case %zu", i);
        layer.capacity = 77;
        expect_error(perhaps_layer_options(&cases[i].options, cases[i].index, &layer),
                     cases[i].error);
        expect(layer.capacity == (cases[i].error ? 77 : 300));
    }
    options.capacity = PERHAPS_CAPACITY_MAX;
    expect_success(perhaps_layer_options(&options, 63, &layer));
    expect(layer.capacity == PERHAPS_CAPACITY_MAX);
}
