/* plan_test.c - proves that plans refuse numbers that are out of range, choose the right kind,
 * never predict more than the asked fpr, and take no more bits than the theory needs.  Plans
 * are for filters of any size, so most of this can only be tested without making them.
 *
 * Of the sizes that are tried with every rate, some are left out, which the seed of the test
 * chooses; none if PERHAPS_TEST_EVERY is set. */
#include "support.h"

#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kinds/kinds.h"
#include "kinds/lines/lines.h"

/* Returns options with the usual ones of the kind, or with a name that may be no kind. */
static struct perhaps_options asked(const char *kind, double capacity, double fpr)
{
    scene("%s, capacity %g, fpr %g", kind ? kind : "any kind", capacity, fpr);
    const struct filter_kind *known = kind ? kind_by_name(kind) : NULL;
    if (known)
        return options_for(&known->about, (uint64_t)capacity, fpr, 1);
    return (struct perhaps_options){ .capacity = (uint64_t)capacity, .fpr = fpr, .kind = kind };
}

static struct perhaps_plan plan_of(const char *kind, double capacity, double fpr,
                                   enum perhaps_preference preference)
{
    struct perhaps_options options = asked(kind, capacity, fpr);
    struct perhaps_plan plan;
    options.preference = preference;
    expect_success(perhaps_plan_for(&options, &plan));
    return plan;
}

/* ---- What is refused --------------------------------------------------------------------- */

/* Checks that planning and creating both fail with this error. */
static void expect_refused(const struct perhaps_options *options, int wanted)
{
    struct perhaps_plan plan;
    perhaps_filter *f = (perhaps_filter *)&plan;
    memset(&plan, 1, sizeof plan);
    expect_error(perhaps_plan_for(options, &plan), wanted);
    expect_error(perhaps_create(options, &f), wanted);
    expect(!f);
}

TEST(test_out_of_range)
{
    const double rates[] = { 0, -0.0, -0.1, 1, 1.5, 1e-16, 1e-300, INFINITY, -INFINITY, NAN };
    EACH_KIND(kind, in_registry) {
        struct perhaps_options options;
        for (size_t r = 0; r < sizeof rates / sizeof *rates; r++) {
            options = asked(kind->name, 1000, rates[r]);
            expect_refused(&options, PERHAPS_ERR_ARGUMENT);
        }
        const uint64_t capacities[] = { 0, PERHAPS_CAPACITY_MAX + 1, UINT64_MAX };
        for (size_t c = 0; c < sizeof capacities / sizeof *capacities; c++) {
            options = asked(kind->name, 1, 0.01);
            options.capacity = capacities[c];
            expect_refused(&options, PERHAPS_ERR_ARGUMENT);
        }
        options = asked(kind->name, 1000, 0.01);
        options.needs = PERHAPS_CAN_THREADS * 2;
        expect_refused(&options, PERHAPS_ERR_ARGUMENT);
        options.needs = 1U << 31;
        expect_refused(&options, PERHAPS_ERR_ARGUMENT);
        options.needs = 0;
        options.preference = (enum perhaps_preference)(PERHAPS_PREFER_COMPACT + 1);
        expect_refused(&options, PERHAPS_ERR_ARGUMENT);
        options.preference = PERHAPS_PREFER_BALANCED;
        options.reserved[PERHAPS_RESERVED - 1] = 1;
        expect_refused(&options, PERHAPS_ERR_ARGUMENT);
    }
}

TEST(test_unknown_kinds)
{
    const char *const names[] = { "", "no such kind", "Blocked", " cuckoo", "bloomy" };
    for (size_t n = 0; n < sizeof names / sizeof *names; n++) {
        struct perhaps_options options = asked(names[n], 10, 0.1);
        expect_refused(&options, PERHAPS_ERR_ARGUMENT);
    }
}

/* ---- What is chosen ---------------------------------------------------------------------- */

static const struct perhaps_kind *first_with(unsigned abilities)
{
    EACH_KIND(kind, in_registry)
        if ((kind->abilities & abilities) == abilities)
            return kind;
    return NULL;
}

/* Of all kinds that meet the needs, the first one of the registry is chosen. */
TEST(test_needs)
{
    for (unsigned needs = 0; needs < PERHAPS_CAN_THREADS * 2; needs++) {
        struct perhaps_options options = asked(NULL, 1000, 0.01);
        struct perhaps_plan plan;
        options.needs = needs;
        scene("needs %u", needs);
        /* PERHAPS_CAN_BUILD is a promise of the caller, and no ability of a kind */
        const struct perhaps_kind *kind = first_with(needs & ~(unsigned)PERHAPS_CAN_BUILD);
        if (!kind) {
            expect_refused(&options, PERHAPS_ERR_UNSUPPORTED);
            continue;
        }
        expect_success(perhaps_plan_for(&options, &plan));
        bool fixed_set = needs & PERHAPS_CAN_BUILD;
        expect(fixed_set || !strcmp(plan.kind, kind->name));
    }
}

TEST_EACH(test_every_field_is_told, in_registry)
{
    struct perhaps_plan plan = plan_of(kind->name, 12345, 0.01, PERHAPS_PREFER_BALANCED);
    expect(!strcmp(plan.kind, kind->name) && plan.capacity == 12345 && plan.fpr == 0.01);
    expect(plan.nfields > 0 && plan.nfields <= PERHAPS_FIELDS_MAX);
    expect(plan.field[0] > 0);
    for (unsigned f = 0; f < plan.nfields; f++)
        expect(*plan.field_name[f]);
    expect(*plan.why && strlen(plan.why) < sizeof plan.why && !strchr(plan.why, '\n'));
    expect(plan.body_nbytes > 0 && plan.body_nbytes % 64 == 0);
    expect(fabs(plan.bits_per_key - 8.0 * (double)plan.body_nbytes / 12345) < 1e-6);
}

/* perhaps_create() makes what perhaps_plan_for() has planned. */
TEST_EACH(test_plan_is_kept, in_registry)
{
    struct perhaps_plan plan = plan_of(kind->name, 5000, 1e-4, PERHAPS_PREFER_BALANCED);
    scoped_filter *f = make_filter(kind, 5000, 1e-4, 1);
    struct perhaps_plan made = stats_of(f).plan;
    expect(made.body_nbytes == plan.body_nbytes ||
           (grows_in_place(kind) && made.body_nbytes < 2 * plan.body_nbytes));
    expect(made.nfields == plan.nfields);
    expect(made.fpr_predicted == plan.fpr_predicted);
    expect(perhaps_predict_fpr(f, 5000) == plan.fpr_predicted);
    expect(!memcmp(made.field, plan.field, sizeof plan.field));
}

/* ---- The rate ---------------------------------------------------------------------------- */

/* Returns whether the kind may refuse this rate.  A fingerprint has at most 32 bits, so kinds
 * with fingerprints have a lowest rate.  Each part of a composite has a share of the rate, and
 * that must not be below PERHAPS_FPR_MIN. */
static bool may_be_out_of_reach(const struct perhaps_kind *kind, double capacity, double fpr)
{
    return (removes(kind) && fpr < 2.5e-9) ||
           (copies_most(kind) < PERHAPS_COPIES_MAX && capacity > (double)(UINT64_C(1) << 47)) ||
           (grows_in_place(kind) && (fpr < 5e-8 || capacity > (double)(UINT64_C(1) << 45))) ||
           (has_parts(kind) && fpr < PERHAPS_LAYERS_MAX * PERHAPS_FPR_MIN);
}

/* Returns whether so many keys may take longer fingerprints than this rate asks for, since few
 * copies of one fit. */
static bool may_be_wide(const struct perhaps_kind *kind, double fpr)
{
    return copies_most(kind) < PERHAPS_COPIES_MAX && fpr > 2e-4;
}

static void check_prediction(const struct perhaps_kind *kind, double capacity, double fpr,
                             enum perhaps_preference preference)
{
    struct perhaps_options options = asked(kind->name, capacity, fpr);
    struct perhaps_plan plan;
    options.preference = preference;
    int error = perhaps_plan_for(&options, &plan);
    if (error && may_be_out_of_reach(kind, capacity, fpr)) {
        expect_error(error, PERHAPS_ERR_LIMIT);
        return;
    }
    expect_success(error);
    expect(plan.fpr_predicted <= fpr);
    /* The prediction is not far below the rate, either.  Exceptions: few keys; high rates, for
     * which the shortest fingerprints are too long; and filters that grow, whose first layer
     * has a small share of the rate.  'skewed': a few lines cause nearly all false
     * positives. */
    bool skewed = preference == PERHAPS_PREFER_FAST && fpr < 1e-6;
    if (gets_full(kind) && capacity >= 1e5 && !skewed && !may_be_wide(kind, fpr))
        expect(plan.fpr_predicted >= fmin(fpr, 0.01) / 8);
    /* No filter can take fewer than log2(1 / fpr) bits for a key. */
    expect(plan.bits_per_key >= 0.98 * -log2(fpr));
}

TEST(test_predictions)
{
    const double rates[] = { 0.9,  0.5,  0.25, 0.1,  0.03,  0.01,  1e-3,
                             1e-4, 1e-6, 1e-8, 3e-9, 1e-10, 1e-12, 1e-15 };
    EACH_KIND(kind, in_registry)
        for (size_t r = 0; r < sizeof rates / sizeof *rates; r++) {
            for (int power = 0; power <= 12; power++)
                if (is_tried(r + (unsigned)power, 3))
                    check_prediction(kind, pow(10, power), rates[r], PERHAPS_PREFER_BALANCED);
            check_prediction(kind, 7, rates[r], PERHAPS_PREFER_FAST);
            check_prediction(kind, 1234567, rates[r], PERHAPS_PREFER_FAST);
            check_prediction(kind, 7, rates[r], PERHAPS_PREFER_COMPACT);
            check_prediction(kind, 1234567, rates[r], PERHAPS_PREFER_COMPACT);
        }
}

TEST_EACH(test_largest, in_registry)
{
    check_prediction(kind, (double)PERHAPS_CAPACITY_MAX, 0.999, PERHAPS_PREFER_BALANCED);
    check_prediction(kind, (double)PERHAPS_CAPACITY_MAX, 0.01, PERHAPS_PREFER_BALANCED);
    check_prediction(kind, (double)PERHAPS_CAPACITY_MAX, PERHAPS_FPR_MIN,
                     PERHAPS_PREFER_BALANCED);
}

/* A line more for each key must save this factor of the memory. */
static const double line_worth = 1.125;

/* Returns how many lines a key has, where its filter has lines. */
static unsigned lines_of(const struct perhaps_plan *plan)
{
    if (plan->nfields <= BANDS || strcmp(plan->field_name[BANDS], "bands") != 0)
        return 1;
    return (unsigned)plan->field[BANDS];
}

/* Returns the bits a key, where each line counts as much as the memory it must save. */
static double weighted_bits(const char *kind, double capacity, double fpr)
{
    struct perhaps_plan plan = plan_of(kind, capacity, fpr, PERHAPS_PREFER_BALANCED);
    return plan.bits_per_key * pow(line_worth, lines_of(&plan) - 1);
}

/* A lower rate takes more bits; many keys take about as many bits each as a few do.  Where a
 * lower rate has more lines, it may take fewer bits; composites do not tell their lines. */
TEST_EACH(test_bits_are_monotone, in_registry)
{
    double last = 0;
    /* The rates begin at 1 %: above that, short fingerprints need more room for many keys. */
    for (int power = 0; power < 20; power++) {
        double fpr = 0.01 / pow(2, power);
        if (may_be_out_of_reach(kind, 1e10, fpr))
            break;
        if (may_be_wide(kind, fpr))
            continue;
        double bits = weighted_bits(kind->name, 1e6, fpr);
        double more = weighted_bits(kind->name, 1e10, fpr);
        expect(
            bits > (has_parts(kind) ? last / line_worth : last) ||
            (grows_in_place(kind) && bits >= last)); /* slots for copies have a least width */
        expect(gets_full(kind) ? more <= bits && more > bits * 0.95
                               : fabs(more / bits - 1) < 0.5);
        last = bits;
    }
}

/* More keys never lower the predicted fpr; up to the capacity it stays below the asked one. */
TEST(test_prediction_is_monotone)
{
    const double rates[] = { 0.3, 0.01, 1e-4, 1e-7 };
    EACH_KIND(kind, in_registry)
        for (size_t r = 0; r < sizeof rates / sizeof *rates; r++) {
            scoped_filter *f = make_filter(kind, 1000, rates[r], 1);
            double last = 0;
            expect(perhaps_predict_fpr(f, 0) == 0);
            for (uint64_t keys = 10; keys < 10000; keys += keys / (every_case() ? 4 : 2)) {
                double fpr = perhaps_predict_fpr(f, keys);
                scene("%s for %g, %d keys: %g after %g", kind->name, rates[r], (int)keys, fpr,
                      last);
                expect(fpr > last * (1 - 1e-9) && fpr <= 1);
                expect(fpr <= rates[r] || (keys > 1000 && gets_full(kind)));
                last = fpr;
            }
            bool for_ever = stats_of(f).plan.fpr_until == UINT64_MAX || forgets(kind);
            double last_fpr = perhaps_predict_fpr(f, UINT64_MAX);
            expect(for_ever ? last_fpr <= rates[r] : last_fpr > (gets_full(kind) ? 0.9 : last));
        }
}

/* ---- Memory ------------------------------------------------------------------------------ */

/* A key has one line more exactly as long as its filter would take over an eighth more memory
 * without that line. */
static void check_lines(const char *kind, double capacity, double fpr)
{
    struct perhaps_plan usual = plan_of(kind, capacity, fpr, PERHAPS_PREFER_BALANCED);
    struct perhaps_plan fewest = plan_of(kind, capacity, fpr, PERHAPS_PREFER_FAST);
    struct perhaps_plan more = plan_of(kind, capacity, fpr, PERHAPS_PREFER_COMPACT);
    unsigned lines = lines_of(&usual);
    scene("%s, capacity %g, fpr %g: %u lines", kind, capacity, fpr, lines);
    expect(lines_of(&more) == lines + 1);
    expect(usual.bits_per_key <= line_worth * more.bits_per_key + 1e-9);
    if (lines == lines_of(&fewest))
        expect(usual.body_nbytes == fewest.body_nbytes);
    else
        expect(fewest.bits_per_key > usual.bits_per_key * pow(line_worth, lines - 1));
}

TEST(test_lines_are_worth_it)
{
    const double capacities[] = { 1000, 30000, 1e5, 1e6, 1e9, 1e12 };
    const double rates[] = { 9e-4, 5e-4, 2e-4, 1e-4, 7e-5, 6e-5, 5e-5,
                             2e-5, 1e-5, 9e-6, 1e-6, 1e-8, 1e-9, 1e-10 };
    for (size_t c = 0; c < sizeof capacities / sizeof *capacities; c++)
        for (size_t r = 0; r < sizeof rates / sizeof *rates; r++) {
            if (is_tried(c + r, 2))
                check_lines("blocked", capacities[c], rates[r]);
            if (is_tried(c + r + 1, 2))
                check_lines("counting", capacities[c], rates[r]);
        }
    for (uint64_t capacity = 1000000; capacity < UINT64_C(10000000000000); capacity *= 10) {
        struct perhaps_plan usual =
            plan_of("blocked", (double)capacity, 1e-4, PERHAPS_PREFER_BALANCED);
        expect(lines_of(&usual) == 1);
    }
}

/* Just above the rate where a second line is worth it, a stricter one takes fewer bits; far
 * above it none does.  What is said is what a plan gives. */
TEST(test_cheaper)
{
    struct perhaps_options options = asked("blocked", 1e9, 1e-4);
    struct perhaps_plan plan, cheaper, again;
    expect_success(perhaps_plan_for(&options, &plan));
    expect(perhaps_plan_cheaper(&options, &cheaper));
    expect(cheaper.fpr < 1e-4 && cheaper.bits_per_key < 0.99 * plan.bits_per_key);
    expect(lines_of(&cheaper) == 2 && cheaper.capacity == plan.capacity);
    char text[16];
    snprintf(text, sizeof text, "%.2g", cheaper.fpr);
    again = plan_of("blocked", 1e9, strtod(text, NULL), PERHAPS_PREFER_BALANCED);
    expect(again.body_nbytes == cheaper.body_nbytes);
    options.fpr = 0.01;
    expect_success(perhaps_plan_for(&options, &plan));
    expect(!perhaps_plan_cheaper(&options, &cheaper));
    expect(cheaper.fpr == 0.01 && cheaper.body_nbytes == plan.body_nbytes);
    options.fpr = 1;
    expect(!perhaps_plan_cheaper(&options, &cheaper) && !cheaper.kind);
}

/* 'bits' is the fewest bits for a key in theory.  It was computed apart from this program, with
 * the Poisson distribution of the loads of lines and the best number of bits.  A plan may
 * differ by 2 %. */
TEST(test_bits_per_key)
{
    static const struct {
        const char *kind;
        double fpr;
        double bits;
        enum perhaps_preference preference;
    } best[] = {
        { "blocked", 0.1, 4.84, PERHAPS_PREFER_BALANCED },
        { "blocked", 0.01, 9.94, PERHAPS_PREFER_BALANCED },
        { "blocked", 0.001, 15.6, PERHAPS_PREFER_BALANCED },
        { "blocked", 1e-4, 22.11, PERHAPS_PREFER_BALANCED },
        { "blocked", 1e-4, 19.88, PERHAPS_PREFER_COMPACT },
        { "bloom", 0.1, 4.81, PERHAPS_PREFER_BALANCED },
        { "bloom", 0.01, 9.59, PERHAPS_PREFER_BALANCED },
        { "bloom", 0.001, 14.38, PERHAPS_PREFER_BALANCED },
        { "bloom", 1e-4, 19.17, PERHAPS_PREFER_BALANCED },
        { "bloom", 1e-6, 28.76, PERHAPS_PREFER_BALANCED },
        { "cuckoo", 0.001, 13.83, PERHAPS_PREFER_BALANCED },
        { "cuckoo", 2e-9, 34.05, PERHAPS_PREFER_BALANCED },
    };
    for (size_t b = 0; b < sizeof best / sizeof *best; b++) {
        double bits = plan_of(best[b].kind, 1e9, best[b].fpr, best[b].preference).bits_per_key;
        scene("%s at %g: %g bits a key", best[b].kind, best[b].fpr, bits);
        expect(fabs(bits / best[b].bits - 1) < 0.02);
    }
}

/* The text of a plan does not depend on the locale of the program. */
TEST(test_decimal_comma)
{
    struct perhaps_plan plain = plan_of("chain", 1000, 0.01, PERHAPS_PREFER_BALANCED), comma;
    use_decimal_comma();
    comma = plan_of("chain", 1000, 0.01, PERHAPS_PREFER_BALANCED);
    setlocale(LC_ALL, "C");
    expect(strchr(plain.why, '.') && strcmp(plain.why, comma.why) == 0);
}

/* ---- Bitmaps ----------------------------------------------------------------------------- */

static struct perhaps_options range_of(uint64_t low, uint64_t high)
{
    return (struct perhaps_options){ .bitmap = { .low = low, .high = high } };
}

static int plan_range(struct perhaps_options options)
{
    struct perhaps_plan plan;
    return perhaps_plan_for(&options, &plan);
}

TEST(test_range)
{
    struct perhaps_options options = range_of(13000000000, 19999999999);
    struct perhaps_plan plan;
    expect_success(perhaps_plan_for(&options, &plan));
    expect(!strcmp(plan.kind, "bitmap") && plan.body_nbytes == 875000000);
    expect(plan.capacity == 7000000000 && plan.fpr == 0 && plan.bits_per_key == 1);
    options.capacity = 5000000000;
    options.fpr = 0.01;
    options.needs = PERHAPS_CAN_REMOVE | PERHAPS_CAN_MERGE | PERHAPS_CAN_SHARE |
                    PERHAPS_CAN_THREADS | PERHAPS_CAN_BUILD;
    expect_success(perhaps_plan_for(&options, &plan));
    expect(!strcmp(plan.kind, "bitmap") && plan.body_nbytes == 875000000);
    expect(plan.capacity == 7000000000 && plan.fpr == 0.01 && plan.fpr_predicted == 0);
    expect(!strstr(plan.why, "sorted") && !perhaps_plan_cheaper(&options, &plan));
    options.capacity = 1000;
    expect_success(perhaps_plan_for(&options, &plan));
    expect(strstr(plan.why, "sorted"));
}

/* What a kind, or a chain over some base, reaches by its name is found without a name. */
TEST(test_found)
{
    static const unsigned all[] = { PERHAPS_CAN_GROW, PERHAPS_CAN_GROW | PERHAPS_CAN_REMOVE,
                                    PERHAPS_CAN_GROW | PERHAPS_CAN_REMOVE | PERHAPS_CAN_COUNT,
                                    PERHAPS_CAN_REMOVE,
                                    PERHAPS_CAN_REMOVE | PERHAPS_CAN_COUNT };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        for (int power = 1; power < 46; power += 3)
            for (uint64_t capacity = 10; capacity <= 10000000; capacity *= 1000) {
                const double fpr = exp2(-power);
                struct perhaps_options options = asked(NULL, (double)capacity, fpr);
                struct perhaps_plan plan;
                options.needs = all[i];
                scene("needs %u, %llu keys, fpr %g", all[i], (unsigned long long)capacity, fpr);
                int error = perhaps_plan_for(&options, &plan);
                EACH_KIND(kind, in_registry) {
                    options.kind = kind->name;
                    expect(!error || perhaps_plan_for(&options, &plan));
                }
            }
}

TEST(test_ranges_refused)
{
    const uint64_t most = PERHAPS_CAPACITY_MAX;
    struct perhaps_options o = range_of(1, 0);
    expect_error(plan_range(o), PERHAPS_ERR_ARGUMENT); /* no capacity */
    o.kind = "bitmap";
    expect_error(plan_range(o), PERHAPS_ERR_ARGUMENT);
    expect_error(plan_range(range_of(8, 7)), PERHAPS_ERR_ARGUMENT);
    expect_success(plan_range(range_of(1, most)));
    expect_error(plan_range(range_of(0, most)), PERHAPS_ERR_LIMIT);
    expect_error(plan_range(range_of(0, UINT64_MAX)), PERHAPS_ERR_LIMIT);
    o = range_of(1, 10);
    o.capacity = 10;
    expect_success(plan_range(o));
    o.capacity = 11;
    expect_error(plan_range(o), PERHAPS_ERR_LIMIT);
    o = range_of(1, 10);
    o.fpr = 1;
    expect_error(plan_range(o), PERHAPS_ERR_ARGUMENT);
    o.fpr = -0.1;
    expect_error(plan_range(o), PERHAPS_ERR_ARGUMENT);
    for (unsigned need = PERHAPS_CAN_COUNT; need <= PERHAPS_CAN_FORGET; need *= 2) {
        const unsigned can = PERHAPS_CAN_BUILD | PERHAPS_CAN_MERGE | PERHAPS_CAN_SHARE;
        o = range_of(1, 10);
        o.needs = need;
        expect_error(plan_range(o), need & can ? 0 : PERHAPS_ERR_UNSUPPORTED);
    }
    o = range_of(1, 10); /* options of another kind are ignored */
    o.kind = "blocked";
    expect_error(plan_range(o), PERHAPS_ERR_ARGUMENT);
    o.capacity = 5;
    expect_error(plan_range(o), PERHAPS_ERR_ARGUMENT);
    o.fpr = 0.1;
    expect_success(plan_range(o));
}
