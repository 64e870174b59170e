/* like_test.c - proves that perhaps_create_like() makes what perhaps_create() made: an empty
 * filter of the same geometry, which ends with the same bytes when it gets the same keys,
 * whatever has become of the model meanwhile. */
#include "support.h"
#include <perhaps_window.h>

#include <string.h>
#include <unistd.h>

#include "filter/filter.h"

enum { CAPACITY = 300, KEYS = 4000 };

static perhaps_filter *like(const perhaps_filter *model, const struct perhaps_hashing *hashing)
{
    perhaps_filter *f;
    expect_success(perhaps_create_like(model, hashing, NULL, &f));
    return f;
}

static void expect_same_plan(const perhaps_filter *a, const perhaps_filter *b)
{
    struct perhaps_stats one = stats_of(a), other = stats_of(b);
    expect(one.plan.kind == other.plan.kind && one.plan.base == other.plan.base);
    expect(one.plan.capacity == other.plan.capacity && one.plan.fpr == other.plan.fpr);
    expect(one.plan.fpr_predicted == other.plan.fpr_predicted);
    expect(one.plan.body_nbytes == other.plan.body_nbytes);
    expect(one.plan.bits_per_key == other.plan.bits_per_key);
    expect(one.plan.fpr_until == other.plan.fpr_until);
    expect(!memcmp(one.plan.field, other.plan.field, sizeof one.plan.field));
    expect(one.memory_nbytes == other.memory_nbytes && one.parts == other.parts);
    expect(one.shared == other.shared && one.hash == other.hash && !one.mapped);
    expect(!one.keys && !one.failed_adds && !one.unmatched_removals && !one.stale);
}

/* Adds the same keys to both, as many as they take, and removes some.  Both must go the same
 * way. */
static void expect_same_life(perhaps_filter *a, perhaps_filter *b)
{
    scoped_keys keys = make_keys(TEXT_KEYS, test_seed() + 5, 0, KEYS);
    struct perhaps_keys few = some_keys(&keys, 0, 50);
    size_t done, other_done;
    int error = perhaps_add_many(a, &keys, &done);
    expect_error(perhaps_add_many(b, &keys, &other_done), error);
    expect(done == other_done);
    error = perhaps_remove_many(a, &few, NULL, NULL, NULL);
    expect_error(perhaps_remove_many(b, &few, NULL, NULL, NULL), error);
    expect(perhaps_equal(a, b));
    expect_same_counters(a, b);
    scoped_bytes bytes = saved_bytes(a);
    expect_saves_as(b, &bytes);
}

/* Checks filters that are like 'model', which was made with the options and may have keys. */
static void check_like(const perhaps_filter *model, const struct perhaps_options *options)
{
    scoped_filter *before = clone_of(model), *fresh = make_with(options);
    scoped_filter *f = like(model, NULL), *again = like(f, &options->hashing);
    expect_same_plan(f, fresh);
    expect_same_plan(again, fresh);
    expect(perhaps_equal(f, fresh) && perhaps_equal(again, fresh));
    scoped_bytes empty = saved_bytes(fresh);
    expect_saves_as(f, &empty);
    expect_same_life(f, fresh);
    expect(perhaps_equal(model, before));
    expect_same_counters(model, before);
}

/* A model that is new, has keys, has grown, was copied, cleared, or opened from a file. */
static void check_models(const struct perhaps_options *options)
{
    struct path path = temp_path("like");
    scoped_keys keys = make_keys(RANDOM_KEYS, test_seed(), 0, KEYS);
    scoped_filter *model = make_with(options);
    check_like(model, options);
    perhaps_add_many(model, &keys, NULL);
    check_like(model, options);
    scoped_filter *copy = clone_of(model);
    check_like(copy, options);
    expect_success(perhaps_save(model, path.text));
    for (unsigned way = 0; way < 2 && !options->shared; way++) {
        scoped_filter *opened = open_file(path.text, ways_to_open[way]);
        check_like(opened, options);
    }
    expect_success(perhaps_clear(model));
    check_like(model, options);
    unlink(path.text);
}

TEST_EACH(test_every_kind, any_kind)
{
    const double rates[] = { 0.3, 0.01, 1e-6 };
    const char *base;
    for (size_t i = 0; base_to_test(kind, i, &base); i++)
        for (unsigned way = 0; way < 6; way++) {
            struct perhaps_options options =
                options_for(kind, CAPACITY, rates[way / 2], test_seed() + way);
            options.base = base;
            options.shared = way % 2 && takes_threads_over(kind, base);
            scene("%s of %s at %g", kind->name, base ? base : "nothing", options.fpr);
            check_models(&options);
        }
}

/* Windows of filters that grow, by time, and with many generations; and a bitmap. */
TEST(test_nested)
{
    const char *const bases[] = { "chain", "elastic" };
    struct perhaps_options options = { .kind = "window",
                                       .capacity = CAPACITY,
                                       .fpr = 0.01,
                                       .window = { .generations = 3, .time = 60 },
                                       .hashing.seed = test_seed() };
    for (size_t i = 0; i < sizeof bases / sizeof *bases; i++) {
        options.base = bases[i];
        scene("window of %s", options.base);
        check_models(&options);
    }
    scoped_filter *model = make_with(&options);
    expect_success(perhaps_advance(model, 1000));
    expect_success(perhaps_add(model, "key", 3));
    expect_success(perhaps_advance(model, 1031));
    check_like(model, &options);
}

TEST(test_bitmap)
{
    struct perhaps_options options = { .bitmap = { .low = 5, .high = 1000 } };
    scoped_filter *model = make_with(&options), *fresh = make_with(&options);
    expect_success(perhaps_add(model, "17", 2));
    const struct perhaps_hashing default_hash = { 0 }, sip = { .hash = PERHAPS_HASH_SIP };
    scoped_filter *f = like(model, NULL), *other = like(model, &default_hash), *wrong;
    expect(perhaps_equal(f, fresh) && perhaps_equal(other, fresh));
    expect_error(perhaps_create_like(model, &sip, NULL, &wrong), PERHAPS_ERR_ARGUMENT);
    expect(!wrong);
}

/* Another seed, hash or secret, or a random one. */
TEST(test_hashes)
{
    const uint8_t secret[16] = "a secret of 16 b";
    uint8_t own[16];
    struct perhaps_options options = { .capacity = CAPACITY, .fpr = 0.01, .kind = "chain" };
    scoped_filter *model = make_with(&options), *missing;
    const struct perhaps_hashing random = { 0 },
                                 sip = { .hash = PERHAPS_HASH_SIP, .secret = secret },
                                 custom = { .hash = PERHAPS_HASH_CUSTOM },
                                 unknown = { .hash = PERHAPS_HASH_COUNT };
    scoped_filter *same = like(model, NULL), *a = like(model, &random), *s = like(model, &sip);
    expect(perhaps_equal(model, same));
    expect(!perhaps_equal(model, a) && !strcmp(stats_of(a).hash, stats_of(model).hash));
    expect_success(perhaps_secret(s, own));
    expect(!memcmp(own, secret, sizeof own));
    scoped_filter *s2 = like(s, NULL);
    expect(perhaps_equal(s, s2));
    expect_success(perhaps_secret(s2, own));
    expect(!memcmp(own, secret, sizeof own));
    expect_error(perhaps_create_like(model, &custom, NULL, &missing), PERHAPS_ERR_SECRET);
    expect_error(perhaps_create_like(model, &unknown, NULL, &missing), PERHAPS_ERR_ARGUMENT);
    expect(!missing);
    struct path path = temp_path("secret");
    expect_success(perhaps_save(s, path.text));
    scoped_filter *opened = open_file(path.text, &without_secret);
    expect_error(perhaps_create_like(opened, NULL, NULL, &missing), PERHAPS_ERR_SECRET);
    scoped_filter *fresh = like(opened, &sip);
    expect(perhaps_equal(fresh, s));
}

/* Filters that a builder makes. */
TEST_EACH(test_built, is_built)
{
    scoped_keys keys = make_keys(TEXT_KEYS, test_seed(), 0, CAPACITY);
    struct perhaps_options options = options_for(kind, CAPACITY, 0.01, test_seed());
    scoped_filter *model = built_filter(&options, &keys), *f;
    expect_error(perhaps_create_like(model, NULL, NULL, &f), PERHAPS_ERR_UNSUPPORTED);
    expect(!f);
}

/* All memory comes from the allocator that the call names.  The k-th call of it fails, then the
 * next one, until all succeed. */
TEST_EACH(test_memory, any_kind)
{
    struct ledger ledger = { 0 };
    struct perhaps_allocator allocator = ledger_allocator(&ledger);
    scoped_filter *model = make_filter(kind, CAPACITY, 0.01, test_seed());
    perhaps_filter *f = NULL;
    int error = PERHAPS_ERR_MEMORY;
    for (uint64_t k = 1; error; k++) {
        ledger.fail_at = ledger.calls + k;
        error = perhaps_create_like(model, NULL, &allocator, &f);
        expect(!error || (error == PERHAPS_ERR_MEMORY && !f && !ledger.live));
    }
    expect(perhaps_equal(f, model) && ledger.live);
    perhaps_free(f);
    expect(!ledger.live);
}

/* An elastic filter from a file that says it began with far more keys than its segments can
 * hold: nothing of that size is made. */
TEST(test_impossible_model)
{
    struct ledger ledger = { .most_nbytes = 1 << 20 };
    struct perhaps_allocator allocator = ledger_allocator(&ledger);
    struct perhaps_options options = { .kind = "elastic", .capacity = 1, .fpr = 0.01 };
    scoped_filter *model = make_with(&options), *f;
    for (uint64_t capacity = 1; capacity <= PERHAPS_CAPACITY_MAX; capacity *= 2) {
        model->body.geometry.capacity = capacity;
        int error = perhaps_create_like(model, NULL, &allocator, &f);
        expect(!error || error == PERHAPS_ERR_LIMIT || error == PERHAPS_ERR_MEMORY);
        perhaps_free(f);
        expect(!ledger.live);
    }
}
