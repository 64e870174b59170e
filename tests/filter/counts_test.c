/* counts_test.c - proves that what a filter tells of its keys is true, whatever it was made
 * of: the number of different keys within the error that perhaps.h states, the room, since so
 * many new keys fit, and the rate, which stays below the one that was asked.
 *
 * The cases are drawn at random: kind, base, capacity, rate, how full it is, and what was done
 * to it.  It fails when a number differs from the exact one by more than its error, when a key
 * is refused that was promised room, and when the rate is more than was asked. */
#include <math.h>
#include <stdio.h>

#include "filter/filter.h"
#include "perhaps.h"
#include "perhaps_live.h"
#include "support.h"

/* A filter, and what is true of it. */
struct told {
    perhaps_filter *f;
    const struct perhaps_keys *keys; /* from the first to the end are in it */
    size_t first, end;
    size_t extra;   /* so many keys more may seem to be there */
    bool crowded;   /* its capacity is what it has, and other keys need not fit */
    bool from_bits; /* the number of keys comes from the bits, and not from counting them */
};

/* The error that perhaps.h states: seven deviations, and a key. */
static double error_of(const struct perhaps_stats *stats, double keys, bool from_bits)
{
    const double rate = fmin(stats->fpr_now, 0.99);
    const double deviation = sqrt(keys * rate + 1) / (1 - rate);
    return 1 + 7 * (deviation + (from_bits ? sqrt(keys) / 2 : 0));
}

static bool stores_copies(const perhaps_filter *f)
{
    return perhaps_abilities_of(f) & (PERHAPS_CAN_REMOVE | PERHAPS_CAN_COUNT);
}

static void expect_true(const struct told *t)
{
    const struct perhaps_stats stats = stats_of(t->f);
    const struct perhaps_keys present = some_keys(t->keys, t->first, t->end - t->first);
    const double keys = (double)present.count,
                 error = error_of(&stats, keys, t->from_bits || stats.keys_estimated);
    const double told = (double)stats.keys_different, most = keys + (double)t->extra;
    if (told < keys - error || told > most + error)
        print_message("told %.0f of %.0f to %.0f, error %.0f\n", told, keys, most, error);
    expect(told >= keys - error && told <= most + error);
    expect((double)stats.keys <= told + 1);
    expect(!stores_copies(t->f) || t->extra || stats.keys == present.count);
    expect(t->f->kind->measure(t->f, UINT64_MAX).fpr <= stats.plan.fpr * (1 + 1e-9));
    expect_all_found(t->f, &present);
}

/* Adds n keys more. */
static void add_more(perhaps_filter *f, struct told *t, size_t n)
{
    const size_t left = t->keys->count - t->end;
    const struct perhaps_keys more = some_keys(t->keys, t->end, n < left ? n : left);
    size_t done;
    const int error = perhaps_add_many(f, &more, &done);
    if (error)
        print_message("refused at %zu of %zu\n", done, more.count);
    expect_success(error);
    t->end += more.count;
}

/* Returns how many keys there is room for in f, which is t->f or like it, by what is told. */
static size_t room_of(const perhaps_filter *f, const struct told *t)
{
    const struct perhaps_stats stats = stats_of(f);
    return stats.keys_different < stats.plan.capacity && !t->crowded
               ? (size_t)(stats.plan.capacity - stats.keys_different)
               : 0;
}

static void expect_room(struct told *t)
{
    if (!gets_full(perhaps_kind_of(t->f)))
        return;
    add_more(t->f, t, room_of(t->f, t));
    expect_true(t);
}

/* ---- What is done to a filter ----------------------------------------------------------- */

struct count_case {
    struct perhaps_options options;
    struct rng *rng;
    size_t nkeys;
};

/* Each takes the place of t->f by what it made.  Returns false if that cannot be made. */
typedef bool change_filter(struct told *t, const struct count_case *c);

static bool take(struct told *t, perhaps_filter *f)
{
    perhaps_free(t->f);
    t->f = f;
    return true;
}

static bool leave(struct told *t, const struct count_case *c)
{
    (void)t;
    (void)c;
    return true;
}

static bool copy(struct told *t, const struct count_case *c)
{
    (void)c;
    return take(t, clone_of(t->f));
}

static bool save_and_open(struct told *t, const struct count_case *c)
{
    (void)c;
    const struct path path = temp_path("counts");
    expect_success(perhaps_save(t->f, path.text));
    return take(t, open_file(path.text, &load_it));
}

/* A live file that takes half of the room, is saved in between, and opened again. */
static bool journal(struct told *t, const struct count_case *c)
{
    static const struct perhaps_open_options live = { .mode = PERHAPS_MODE_JOURNAL };
    const struct path path = temp_path("counts");
    perhaps_filter *f;
    (void)c;
    expect_success(perhaps_save(t->f, path.text));
    if (perhaps_open(path.text, &live, &f))
        return false;
    add_more(f, t, room_of(f, t) / 3);
    expect_success(perhaps_checkpoint(f));
    add_more(f, t, room_of(f, t) / 4);
    expect_success(perhaps_sync(f));
    perhaps_free(f);
    return take(t, open_file(path.text, &load_it));
}

/* Takes a filter that was made smaller. */
static bool take_small(struct told *t, perhaps_filter *small)
{
    const struct perhaps_stats stats = stats_of(small);
    t->crowded |= stats.keys_different + 1 >= stats.plan.capacity;
    return take(t, small);
}

/* Returns the rate to shrink to: the usual one, or another. */
static double rate_to_shrink(const struct count_case *c)
{
    static const double factors[] = { 1.5, 3, 0.5 };
    const double rate = c->options.fpr * factors[rng_below(c->rng, 3)];
    return rng_below(c->rng, 2) ? 0 : fmin(rate, 0.9);
}

static bool shrink(struct told *t, const struct count_case *c)
{
    perhaps_filter *small;
    if (perhaps_shrink(t->f, rate_to_shrink(c), &small))
        return false;
    return take_small(t, small);
}

static bool shrink_to_file(struct told *t, const struct count_case *c)
{
    const struct path path = temp_path("counts");
    const struct perhaps_shrink_options how = { .fpr = rate_to_shrink(c) };
    if (perhaps_shrink_save(t->f, &how, path.text))
        return false;
    return take_small(t, open_file(path.text, &load_it));
}

/* Returns a filter of the same shape with these keys. */
static perhaps_filter *other_of(const struct told *t, size_t first, size_t end)
{
    const struct perhaps_keys keys = some_keys(t->keys, first, end - first);
    perhaps_filter *other;
    expect_success(perhaps_create_like(t->f, NULL, NULL, &other));
    fill(other, &keys);
    return other;
}

/* Returns where the keys of another filter begin, and sets *end to where they end: half of the
 * keys of t are among them, where a key in both counts once. */
static size_t others(const struct told *t, bool common, size_t *end)
{
    const size_t half = (t->end - t->first) / 2, room = room_of(t->f, t);
    *end = t->end + (room < half ? room : half);
    return common ? t->first + half : t->end;
}

static bool unite(struct told *t, const struct count_case *c)
{
    const bool common = !stores_copies(t->f) && t->f->parts->count < 2;
    size_t end, first = others(t, common, &end);
    const struct perhaps_kind *kind = perhaps_kind_of(t->f);
    (void)c;
    if (!merges(kind))
        return false;
    perhaps_filter *other = other_of(t, first, end);
    const int error = perhaps_merge(t->f, other);
    perhaps_free(other);
    expect(!error || removes(kind) || grows(kind));
    if (error)
        return false;
    t->end = end;
    t->from_bits = true;
    return true;
}

static bool intersect(struct told *t, const struct count_case *c)
{
    size_t end, first = others(t, true, &end);
    (void)c;
    if (!t->f->kind->intersect)
        return false;
    perhaps_filter *other = other_of(t, first, end);
    const int error = perhaps_intersect(t->f, other);
    perhaps_free(other);
    expect_success(error);
    t->extra += first - t->first;
    t->first = first;
    t->from_bits = true;
    return true;
}

/* ---- Cases ------------------------------------------------------------------------------ */

static const struct change {
    const char *name;
    change_filter *change;
} changes[] = { { "left", leave },          { "copied", copy },
                { "saved", save_and_open }, { "live", journal },
                { "shrunk", shrink },       { "shrunk to a file", shrink_to_file },
                { "merged", unite },        { "intersected", intersect } };

enum { CHANGES = sizeof changes / sizeof *changes };

/* Returns a number from 1 to 'most', whose logarithm has any value alike. */
static size_t drawn(struct rng *rng, double most)
{
    return (size_t)round(pow(most, (double)rng_below(rng, 1001) / 1000));
}

/* Returns a copy of the scene, which scene() may be given. */
static struct path scene_of(void)
{
    struct path copy;
    snprintf(copy.text, sizeof copy.text, "%s", scene_text());
    return copy;
}

/* Makes a filter, does two things to it, and looks at it after each; then fills it. */
static void try_case(const struct count_case *c, const struct perhaps_keys *keys)
{
    struct told t = { .keys = keys };
    expect_success(perhaps_create(&c->options, &t.f));
    add_more(t.f, &t, c->nkeys);
    expect_true(&t);
    for (int i = 0; i < 2; i++) {
        const struct change *change = &changes[rng_below(c->rng, CHANGES)];
        if (!change->change(&t, c))
            continue;
        const struct path before = scene_of();
        scene("%s, %s", before.text, change->name);
        expect_true(&t);
    }
    expect_room(&t);
    perhaps_free(t.f);
}

/* Returns false if there is no such filter. */
static bool draw_case(struct count_case *c, const struct perhaps_kind *kind)
{
    static const double rates[] = { 0.9, 0.5, 0.3, 0.1, 0.01, 1e-4, 1e-6 };
    const double rate = rates[rng_below(c->rng, sizeof rates / sizeof *rates)];
    const uint64_t capacity = 10 * drawn(c->rng, (double)many(20000));
    struct perhaps_plan plan;
    c->options = options_for(kind, capacity, rate, rng_next(c->rng) / 2);
    base_to_test(kind, has_parts(kind) ? rng_below(c->rng, 4) : 0, &c->options.base);
    ask_for_copies(&c->options, rng_below(c->rng, 2));
    c->nkeys = (size_t)capacity * (1 + rng_below(c->rng, 100)) / 100;
    if (grows(kind))
        c->nkeys *= 1 + rng_below(c->rng, 3);
    scene("%s%s%s for %llu at %g%s, %zu keys", kind->name, c->options.base ? " of " : "",
          c->options.base ? c->options.base : "", (unsigned long long)capacity, rate,
          c->options.needs ? " with copies" : "", c->nkeys);
    return !perhaps_plan_for(&c->options, &plan);
}

static bool tells(const struct perhaps_kind *kind)
{
    return any_kind(kind) && !forgets(kind);
}

TEST_EACH(test_drawn, tells)
{
    struct rng rng = rng_for(kind->name);
    struct count_case c = { .rng = &rng };
    const unsigned cases = every_case() ? 2000 : many(60);
    for (unsigned i = 0; i < cases; i++) {
        if (!draw_case(&c, kind))
            continue;
        scoped_keys keys =
            make_keys(RANDOM_KEYS, rng_next(&rng), 0, 3 * c.nkeys + 2 * c.options.capacity);
        try_case(&c, &keys);
    }
}

/* ---- What was wrong once ----------------------------------------------------------------- */

/* The count of a large body means something else in a small one. */
TEST(test_shrunk)
{
    static const double rates[][2] = { { 0.1, 0 }, { 0.5, 0 }, { 0.3, 0.9 }, { 0.01, 0 } };
    scoped_keys keys = make_keys(RANDOM_KEYS, test_seed(), 0, 60000);
    for (size_t i = 0; i < 20 * sizeof rates / sizeof *rates; i++) {
        const double *rate = rates[i % 4];
        const char *kind = i % 8 < 4 ? "blocked" : "bloom";
        const struct perhaps_options options = {
            .capacity = 200000, .fpr = rate[0], .kind = kind, .hashing = { .seed = 1 + i }
        };
        struct told t = { .keys = &keys };
        perhaps_filter *small;
        scene("%s at %g, shrunk, seed %zu", kind, rate[0], 1 + i);
        t.f = make_with(&options);
        add_more(t.f, &t, 20000);
        expect_success(perhaps_shrink(t.f, rate[1], &small));
        take(&t, small);
        expect_true(&t);
        expect_room(&t);
        perhaps_free(t.f);
    }
}

/* A count of a file may be anything, and numbers that follow from it are numbers. */
TEST_EACH(test_forged, tells)
{
    static const uint64_t counts[] = { 1, 1000, 1000000, UINT64_MAX / 4, UINT64_MAX };
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        struct perhaps_options options = options_for(kind, 1000, 0.5, 1);
        options.needs = 0;
        scoped_filter *f = make_with(&options);
        expect_success(perhaps_add(f, "a", 1));
        f->counters->keys = counts[i];
        for (size_t part = 0; part < f->parts->count; part++)
            f->parts->part[part]->counters->keys = counts[i];
        expect(stats_of(f).keys == counts[i]);
        expect(stats_of(f).keys_different > 0);
    }
}

int main(void)
{
    return run_all_tests();
}

/* ---- One by one, to a shared filter ------------------------------------------------------ */

enum { FEW_KEYS = 100 };

/* Returns a shared filter to which so few keys came, one by one, that some of them are counted
 * apart; nobody has asked for their number. */
static perhaps_filter *shared_from(const struct perhaps_kind *kind, uint64_t first)
{
    perhaps_filter *f = shared_filter(kind, 100000, low_rate(kind), 1);
    for (uint64_t i = 0; i < FEW_KEYS; i++)
        add_number(f, first + i);
    return f;
}

static perhaps_filter *shared_with_few(const struct perhaps_kind *kind)
{
    return shared_from(kind, 0);
}

/* Whatever is done first with the filter knows all of its keys, and counts none of them
 * later. */
TEST_EACH(test_few_of_a_shared_filter, takes_threads)
{
    scoped_filter *told = shared_with_few(kind), *saved = shared_with_few(kind);
    scoped_filter *cloned = shared_with_few(kind), *cleared = shared_with_few(kind);
    scoped_filter *one = shared_with_few(kind), *other = shared_with_few(kind);
    expect(stats_of(told).keys == FEW_KEYS && stats_of(told).keys == FEW_KEYS);

    struct path path = temp_path("few");
    expect_success(perhaps_save(saved, path.text));
    scoped_filter *opened = open_file(path.text, &load_it);
    expect(stats_of(opened).keys == FEW_KEYS && stats_of(saved).keys == FEW_KEYS);

    scoped_filter *copy = clone_of(cloned);
    expect(stats_of(copy).keys == FEW_KEYS && stats_of(cloned).keys == FEW_KEYS);

    expect_success(perhaps_clear(cleared));
    expect(!stats_of(cleared).keys);
    add_number(cleared, 1);
    expect(stats_of(cleared).keys == 1);

    if (!told->kind
             ->settle) /* others count keys in the union, and in what is common, otherwise */
        return;
    expect_success(perhaps_merge(one, other));
    expect(stats_of(one).keys == FEW_KEYS && stats_of(other).keys == FEW_KEYS);
    scoped_filter *all = shared_with_few(kind), *half = shared_from(kind, FEW_KEYS / 2);
    expect_success(perhaps_intersect(all, half));
    const uint64_t both = stats_of(all).keys; /* which the bits tell, */
    expect(both >= FEW_KEYS / 4 && both <= 3 * FEW_KEYS / 4);
    expect(all->counters->keys == both); /* and by which room is kept */
    expect(stats_of(half).keys == FEW_KEYS);
}
