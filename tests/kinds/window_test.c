/* window_test.c - proves that a window remembers each key for as long as it promises, and
 * forgets it when it promises: exact bounds for windows by keys, by time and by call, and
 * random operations beside a model that knows when each key came.
 *
 * It fails when a key is forgotten a moment too early, or is remembered longer than one
 * generation more than asked. */
#include "support.h"
#include <perhaps_window.h>

#include <math.h>
#include <string.h>
#include <unistd.h>

#include "filter/filter.h"

/* How many generations the windows have: the fewest, few, the usual number, and the most. */
static const unsigned generations[] = { 2, 3, 5, 64 };
enum { CHOICES = sizeof generations / sizeof *generations };

static struct perhaps_options window_options(unsigned number, uint64_t capacity)
{
    return (struct perhaps_options){ .kind = "window",
                                     .capacity = capacity,
                                     .fpr = 1e-6,
                                     .window = { .generations = number },
                                     .hashing = { .seed = test_seed() } };
}

/* Makes a window by time, which is told the time. */
static perhaps_filter *window_by_time(struct perhaps_options options, uint64_t window,
                                      uint64_t now)
{
    options.window.time = window;
    perhaps_filter *f = make_with(&options);
    expect_success(perhaps_advance(f, now));
    return f;
}

/* Checks that the keys of all generations add up to the count of the window. */
static void expect_counts_agree(const perhaps_filter *f)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < f->parts->count; i++)
        sum += f->parts->part[i]->counters->keys;
    expect(f->counters->keys == sum);
}

/* ---- By time ---------------------------------------------------------------------------- */

/* Adds a key 'age' units after its generation began, and asks for it at every moment until it
 * must be forgotten.  A period is the time from one rotation to the next: the window divided by
 * the generations - 1, rounded up. */
static void check_one_key(unsigned number, uint64_t window, uint64_t begin, uint64_t age)
{
    uint64_t period = (window + number - 2) / (number - 1), came = begin + age;
    scoped_filter *f = window_by_time(window_options(number, 10), window, begin);
    expect_success(perhaps_advance(f, came));
    add_number(f, 1);
    for (uint64_t now = came; now <= came + number * period + 1; now++) {
        expect_success(perhaps_advance(f, now));
        bool found = has_number(f, 1);
        scene("%u generations, window %llu, came at %llu, now %llu", number,
              (unsigned long long)window, (unsigned long long)age,
              (unsigned long long)(now - begin));
        expect(found || now - came > window);
        expect(!found || now - came < number * period);
        expect(found == (now - begin < number * period)); /* exactly when its generation goes */
    }
    expect(f->counters->keys == 0);
}

TEST(test_bounds_of_time)
{
    for (unsigned i = 0; i < CHOICES; i++)
        for (uint64_t window = 1; window < 400; window = window * 3 / 2 + 1) {
            uint64_t period = (window + generations[i] - 2) / (generations[i] - 1);
            check_one_key(generations[i], window, 0, 0);
            check_one_key(generations[i], window, 1000, period - 1);
            check_one_key(generations[i], window, UINT64_MAX / 2, period / 2);
        }
}

/* A key that comes before the first perhaps_advance() counts as one that came at that
 * moment. */
TEST(test_before_the_first_moment)
{
    const uint64_t moments[] = { 1000000, 1000014, 1000015 };
    struct perhaps_options options = window_options(3, 10);
    options.window.time = 10;
    scoped_filter *f = make_with(&options);
    add_number(f, 1);
    for (unsigned i = 0; i < 3; i++) {
        expect_success(perhaps_advance(f, moments[i]));
        expect(has_number(f, 1) == (i < 2));
    }
}

/* A time that stands still or goes back changes nothing. */
TEST(test_standing_and_going_back)
{
    for (unsigned i = 0; i < CHOICES; i++) {
        scoped_filter *f = window_by_time(window_options(generations[i], 1000), 6300, 50000);
        add_number(f, 1);
        scoped_filter *before = clone_of(f);
        const uint64_t earlier[] = { 50000, 50000, 49999, 0, 1, 50000 };
        for (size_t e = 0; e < sizeof earlier / sizeof *earlier; e++) {
            expect_success(perhaps_advance(f, earlier[e]));
            expect(perhaps_equal(f, before));
        }
    }
}

/* The largest times and windows: no sum overflows, and no loop runs 2^64 times. */
TEST(test_far_ahead)
{
    const uint64_t times[] = { 1, 63, UINT64_MAX / 3, UINT64_MAX };
    for (unsigned i = 0; i < CHOICES; i++)
        for (size_t t = 0; t < sizeof times / sizeof *times; t++) {
            scene("%u generations, window %llu", generations[i], (unsigned long long)times[t]);
            scoped_filter *f = window_by_time(window_options(generations[i], 100), times[t], 0);
            add_number(f, 1);
            expect_success(perhaps_advance(f, UINT64_MAX));
            uint64_t period = (times[t] - 1) / (generations[i] - 1) + 1;
            expect(has_number(f, 1) == (UINT64_MAX / generations[i] < period));
            add_number(f, 2);
            expect_success(perhaps_advance(f, UINT64_MAX));
            expect_success(perhaps_advance(f, 5));
            expect(has_number(f, 2));
            expect_counts_agree(f);
        }
}

/* ---- By call ---------------------------------------------------------------------------- */

/* A key is in until the generation that took it has been rotated away. */
TEST(test_by_call)
{
    for (unsigned i = 0; i < CHOICES; i++) {
        struct perhaps_options options = window_options(generations[i], 1000);
        scoped_filter *f = make_with(&options);
        for (uint64_t now = 0; now < 3 * generations[i]; now++) {
            scene("%u generations, %u rotations", generations[i], (unsigned)now);
            add_number(f, now);
            expect(stats_of(f).parts == generations[i]);
            for (uint64_t key = 0; key <= now; key++)
                expect(has_number(f, key) == (now - key < generations[i]));
            expect_counts_agree(f);
            expect_error(perhaps_advance(f, now), PERHAPS_ERR_UNSUPPORTED);
            expect_success(perhaps_rotate(f));
        }
        expect(f->counters->keys == generations[i] - 1);
    }
}

/* Without a rotation a window takes the share of one generation: a quarter of the capacity, and
 * less than 20 % more.  If the generations are chains, it takes everything. */
TEST(test_full_generation)
{
    scoped_keys keys = make_keys(RANDOM_KEYS, test_seed(), 0, 3000);
    struct perhaps_options options = window_options(5, 1000);
    size_t done;
    perhaps_filter *f = make_with(&options);
    expect_error(perhaps_add_many(f, &keys, &done), PERHAPS_ERR_FULL);
    expect(done >= 250 && done < 300 && stats_of(f).failed_adds == 1);
    expect_success(perhaps_rotate(f));
    struct perhaps_keys more = some_keys(&keys, done, 250), first = some_keys(&keys, 0, done);
    fill(f, &more);
    expect_all_found(f, &first);
    perhaps_free(f);
    options.base = "chain";
    f = make_with(&options);
    fill(f, &keys);
    expect_all_found(f, &keys);
    perhaps_free(f);
}

/* ---- By keys ---------------------------------------------------------------------------- */

/* Adds keys in batches.  After each batch exactly the keys of the last generations are in. */
static void check_by_keys(unsigned number, uint64_t window, size_t batch)
{
    enum { KEYS = 3000 };
    struct perhaps_options options = window_options(number, window);
    scoped_keys keys = make_keys(RANDOM_KEYS, test_seed(), 0, KEYS);
    uint64_t period = (window + number - 2) / (number - 1);
    bool present[KEYS];
    options.window.keys = window;
    options.fpr = 1e-12; /* no false positives */
    scoped_filter *f = make_with(&options);
    for (size_t at = 0; at < KEYS; at += batch) {
        struct perhaps_keys some = some_keys(&keys, at, KEYS - at < batch ? KEYS - at : batch);
        fill(f, &some);
        size_t count = at + some.count;
        struct perhaps_keys all = some_keys(&keys, 0, count);
        perhaps_contains_many(f, &all, present);
        scene("%u generations, window of %u, batches of %zu, %zu keys", number,
              (unsigned)window, batch, count);
        for (size_t k = 0; k < count; k++) {
            uint64_t age = (count - 1) / period - k / period; /* of its generation */
            expect(present[k] || count - k > window);
            expect(!present[k] || count - k <= number * period);
            expect(present[k] == (age < number));
        }
        expect_counts_agree(f);
    }
}

TEST(test_by_keys)
{
    const size_t batches[] = { 37, 100, 999 };
    for (unsigned i = 0; i < CHOICES; i++)
        for (unsigned b = 0; b < sizeof batches / sizeof *batches; b++) {
            check_by_keys(generations[i], 1, batches[b]);
            check_by_keys(generations[i], 63, batches[b]);
            check_by_keys(generations[i], 640, batches[b]);
        }
}

/* With a high fpr many new keys are perhaps there already and are not counted.  So a generation
 * can be full before it has counted its keys; the window must then rotate, and not refuse keys
 * (as it once did). */
TEST(test_lax_rate)
{
    scoped_keys keys = make_keys(RANDOM_KEYS, test_seed(), 0, 100 * 1000);
    struct perhaps_options options = window_options(5, 7249);
    options.window.keys = options.capacity;
    for (unsigned rate = 1; rate < 10; rate++) {
        options.fpr = rate / 10.0;
        scene("fpr %g", options.fpr);
        scoped_filter *f = make_with(&options);
        fill(f, &keys);
        struct perhaps_keys last = some_keys(&keys, keys.count - 7249, 7249);
        expect_all_found(f, &last);
        expect_counts_agree(f);
    }
}

/* Adds four times as many keys as a window remembers, and asks for the last of them. */
static void turn_over(const char *base, unsigned number, double fpr, bool unless_present)
{
    enum { KEYS = 600 };
    bool present[4 * KEYS] = { false }; /* those were not added */
    struct perhaps_options options = window_options(number, KEYS);
    perhaps_filter *f;
    options.base = base;
    options.fpr = fpr;
    options.window.keys = KEYS;
    int error = perhaps_create(&options, &f);
    if (error == PERHAPS_ERR_LIMIT) /* the base cannot have that rate */
        return;
    expect_success(error);
    scene("%s, %u generations, fpr %g", base, number, fpr);
    for (uint64_t i = 0; i < 4 * KEYS; i++)
        expect_success(unless_present ? perhaps_add_unless_present(f, &i, sizeof i, &present[i])
                                      : perhaps_add(f, &i, sizeof i));
    for (uint64_t i = 3 * KEYS; i < 4 * KEYS; i++)
        expect(present[i] || has_number(f, i));
    expect_counts_agree(f);
    perhaps_free(f);
}

/* A generation may have no room before it has counted its keys: the window goes on all the
 * same. */
TEST(test_turns_over)
{
    static const double rates[] = { 0.5, 0.3, 0.1, 0.05, 1e-2, 1e-4, 1e-9 };
    const struct perhaps_kind *kind;
    for (size_t i = 0; (kind = perhaps_kind_at(i)); i++)
        for (unsigned number = 2; number <= 16; number += 1 + number / 3)
            for (size_t rate = 0; rate < sizeof rates / sizeof *rates; rate++)
                if (!is_built(kind) && !forgets(kind) && strcmp(kind->name, "bitmap") != 0) {
                    turn_over(kind->name, number, rates[rate], false);
                    turn_over(kind->name, number, rates[rate], true);
                }
}

/* One key that comes over and over counts as one key, also if the generations can store
 * copies. */
TEST(test_repeated_key)
{
    const struct perhaps_kind *base;
    for (size_t i = 0; (base = perhaps_kind_at(i)); i++) {
        struct perhaps_options options = window_options(5, 100);
        if (forgets(base) || is_built(base) || !takes_any_key(base))
            continue;
        options.base = base->name;
        options.fpr = 1e-5;
        options.window.keys = 100;
        scene("window of %s", base->name);
        scoped_filter *f = make_with(&options);
        for (unsigned n = 0; n < 1000; n++) {
            add_number(f, 1);
            expect(f->counters->keys == 1);
        }
    }
}

/* ---- As of a time ------------------------------------------------------------------------ */

/* Asks the window as of a time, and a copy that was told this time.  Their answers must be the
 * same, in one batch and for single keys, and the window must stay as it is. */
static void expect_same_at(const perhaps_filter *f, uint64_t now,
                           const struct perhaps_keys *keys)
{
    scoped_filter *told = clone_of(f), *before = clone_of(f);
    bool wanted[1000], present[1000];
    int error = perhaps_advance(told, now);
    expect(!error || error == PERHAPS_ERR_UNSUPPORTED);
    size_t found = perhaps_contains_many(told, keys, wanted);
    expect(perhaps_contains_many_at(f, keys, now, present) == found);
    expect(perhaps_contains_many_at(f, keys, now, NULL) == found);
    expect(!memcmp(present, wanted, keys->count));
    for (size_t i = 0; i < keys->count; i += 97) {
        struct perhaps_keys one = some_keys(keys, i, 1);
        expect(perhaps_contains_many_at(f, &one, now, NULL) == wanted[i]);
    }
    expect(perhaps_equal(f, before));
}

/* A random history: keys come, time passes, and now and then all moments are tried at which an
 * answer can change. */
static void check_history(struct perhaps_options *options, struct rng *rng)
{
    const struct perhaps_window_options *w = &options->window;
    scoped_keys keys = make_keys(RANDOM_KEYS, test_seed() + 3, 0, 1000);
    scoped_filter *f = make_with(options);
    uint64_t now = rng_below(rng, 3) ? rng_below(rng, 100) : UINT64_MAX / 2, begin = now;
    for (unsigned step = 0; step < 15; step++) {
        struct perhaps_keys some = some_keys(&keys, (size_t)rng_below(rng, 950), 50);
        if (step > 5)
            perhaps_advance(f, now);
        fill(f, &some);
        if (!w->time && !w->keys)
            expect_success(perhaps_rotate(f));
        for (uint64_t later = 0; later < 2 * w->time + 3; later += 1 + w->time / 7)
            expect_same_at(f, now + later, &keys);
        expect_same_at(f, 0, &keys);
        expect_same_at(f, begin, &keys);
        expect_same_at(f, UINT64_MAX, &keys);
        now += rng_below(rng, 1 + w->time / 2);
    }
}

TEST(test_as_of_a_time)
{
    struct rng rng = rng_for(__func__);
    const char *const bases[] = { "blocked", "chain", "elastic", "cuckoo" };
    for (unsigned i = 0; i < CHOICES; i++)
        for (unsigned way = 0; way < 6; way++) {
            struct perhaps_options options = window_options(generations[i], 70000);
            options.base = bases[way % 4];
            options.fpr = 0.001;
            options.window.time = way < 4 ? 100 : 0;
            options.window.keys = way == 4 ? 200 : 0;
            scene("%u generations of %s, way %u", generations[i], options.base, way);
            check_history(&options, &rng);
        }
}

/* Other kinds are asked as always; so is a window without its secret, which answers "perhaps";
 * and a key that the hash does not take is not there. */
TEST(test_as_of_a_time_elsewhere)
{
    scoped_keys keys = make_keys(HASH_KEYS, test_seed(), 0, 200);
    EACH_KIND(kind, any_kind) {
        scoped_filter *f = make_filter(kind, 1000, 0.01, test_seed());
        struct perhaps_keys half = some_keys(&keys, 0, 100);
        fill(f, &half);
        expect_same_at(f, 12345, &keys);
    }
    struct perhaps_options options = window_options(3, 1000);
    const uint8_t secret[16] = "a secret of 16 b";
    struct path path = temp_path("as_of");
    options.hashing = (struct perhaps_hashing){ .hash = PERHAPS_HASH_SIP, .secret = secret };
    scoped_filter *f = window_by_time(options, 10, 0);
    expect(perhaps_contains_many_at(f, &keys, 100, NULL) == 0);
    expect_success(perhaps_save(f, path.text));
    scoped_filter *blind = open_file(path.text, &without_secret);
    expect(perhaps_contains_many_at(blind, &keys, 100, NULL) == keys.count);

    options.hashing = (struct perhaps_hashing){ .hash = PERHAPS_HASH_NONE };
    scoped_filter *plain = window_by_time(options, 10, 0);
    expect_success(perhaps_add(plain, key_at(&keys, 0), 16));
    expect_success(perhaps_advance(plain, 9));
    expect_success(perhaps_add(plain, key_at(&keys, 1), 16));
    struct perhaps_key each[] = { { key_at(&keys, 0), 16 },
                                  { key_at(&keys, 1), 16 },
                                  { key_at(&keys, 1), 15 } };
    struct perhaps_keys mixed = perhaps_keys_each(each, 3);
    const struct {
        uint64_t now;
        bool present[3];
    } cases[] = { { 14, { true, true, false } },
                  { 15, { false, true, false } },
                  { 20, { false, false, false } } };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bool present[3];
        perhaps_contains_many_at(plain, &mixed, cases[i].now, present);
        expect(!memcmp(present, cases[i].present, sizeof present));
    }
}

/* A key that lies on a damaged page of a window which is checked while it is read: "perhaps",
 * at every time. */
TEST(test_as_of_a_time_checked)
{
    scoped_keys keys = make_keys(RANDOM_KEYS, test_seed(), 0, 200);
    struct path path = temp_path("as_of_checked");
    scoped_filter *f = window_by_time(window_options(3, 1000), 10, 0);
    fill(f, &keys);
    scoped_bytes bytes = large_bytes(f);
    write_file(path.text, bytes.at, bytes.nbytes);
    {
        scoped_filter *sound = open_file(path.text, &checking);
        expect(perhaps_contains_many_at(sound, &keys, 14, NULL) == keys.count);
        expect(perhaps_contains_many_at(sound, &keys, 100, NULL) == 0);
    }
    for (size_t i = 4096; i < 8192; i += 64)
        bytes.at[i] ^= 1;
    write_file(path.text, bytes.at, bytes.nbytes);
    scoped_filter *damaged = open_file(path.text, &checking);
    expect(perhaps_contains_many_at(damaged, &keys, 100, NULL) == keys.count);
}

/* ---- Beside a model ---------------------------------------------------------------------- */

enum { UNIVERSE = 4000 };

struct model {
    struct perhaps_options options;
    struct ledger ledger;
    perhaps_filter *f;
    struct rng rng;
    struct perhaps_keys keys;
    uint64_t generation[UNIVERSE]; /* the one that took each key last, from 1 on; 0: none */
    uint64_t newest;               /* the number of the newest generation */
    uint64_t now, began;           /* windows by time: now, and when the newest began */
    uint64_t asked, taken;         /* queries of forgotten keys, and false positives of them */
};

static bool is_in(const struct model *m, size_t key)
{
    return m->generation[key] && m->newest - m->generation[key] < m->f->parts->count;
}

static void check_answers(struct model *m)
{
    bool present[UNIVERSE];
    perhaps_contains_many(m->f, &m->keys, present);
    for (size_t key = 0; key < UNIVERSE; key++) {
        expect(present[key] || !is_in(m, key));
        m->asked += !is_in(m, key);
        m->taken += present[key] && !is_in(m, key);
    }
    expect_counts_agree(m->f);
}

/* Adds a key in one of two ways.  In a window by keys, the next add begins a new generation if
 * the newest one has counted all its keys. */
static void do_add(struct model *m, size_t key)
{
    const perhaps_filter *newest = m->f->parts->part[m->f->parts->count - 1];
    bool unless_present = rng_below(&m->rng, 2), was_present = false;
    uint64_t period = m->f->body.geometry.field[2];
    bool full = period && newest->counters->keys >= period;
    const void *bytes = key_at(&m->keys, key);
    bool had = perhaps_contains(m->f, bytes, m->keys.key_nbytes);
    expect_success(unless_present ? perhaps_add_unless_present(m->f, bytes, m->keys.key_nbytes,
                                                               &was_present)
                                  : perhaps_add(m->f, bytes, m->keys.key_nbytes));
    m->newest += full;
    expect(m->f->parts->part[m->f->parts->count - 1]->counters->keys <=
           (period ? period : -1UL));
    expect(had || !was_present);
    if (!was_present) /* else nothing was stored: it may be a false positive */
        m->generation[key] = m->newest;
}

static void do_pass_time(struct model *m)
{
    uint64_t period = m->f->body.geometry.field[3];
    if (!period) {
        if (!m->options.window.keys && rng_below(&m->rng, 3) == 0) {
            expect_success(perhaps_rotate(m->f));
            m->newest++;
        }
        return;
    }
    m->now += rng_below(&m->rng, rng_below(&m->rng, 8) ? 3 : 3 * period);
    expect_success(perhaps_advance(m->f, m->now));
    uint64_t periods = (m->now - m->began) / period;
    m->newest += periods;
    m->began += periods * period;
}

/* Replaces the filter by what was saved and opened again. */
static void do_save(struct model *m)
{
    struct path path = temp_path("window");
    const struct perhaps_open_options *how = ways_to_open[rng_below(&m->rng, 2)];
    expect_success(perhaps_save(m->f, path.text));
    perhaps_filter *opened = open_file(path.text, how);
    expect(perhaps_equal(opened, m->f));
    if (how->mode == PERHAPS_MODE_READ) {
        expect_error(perhaps_rotate(opened), PERHAPS_ERR_READ_ONLY);
        perhaps_filter *copy = clone_of(opened);
        perhaps_free(opened);
        opened = copy;
    }
    perhaps_free(m->f);
    m->f = opened;
    unlink(path.text);
    check_answers(m);
}

static void do_clear(struct model *m)
{
    expect_success(perhaps_clear(m->f));
    for (size_t key = 0; key < UNIVERSE; key++)
        m->generation[key] = 0;
    if (m->options.window.time) /* clearing also forgets the time */
        expect_success(perhaps_advance(m->f, m->began = m->now));
}

/* Does a random operation.  Adds are most frequent; saving, which takes long, is rare. */
static void step(struct model *m)
{
    uint64_t die = rng_below(&m->rng, 20000);
    if (die < 2)
        do_save(m);
    else if (die < 3)
        do_clear(m);
    else if (die < 60)
        do_pass_time(m);
    else if (die < 14000)
        do_add(m, (size_t)rng_below(&m->rng, UNIVERSE));
    else if (die < 14010)
        check_answers(m);
    else {
        size_t key = (size_t)rng_below(&m->rng, UNIVERSE);
        expect(perhaps_contains(m->f, key_at(&m->keys, key), m->keys.key_nbytes) ||
               !is_in(m, key));
    }
}

static void run_model(struct perhaps_options *options, struct rng rng)
{
    static struct model m;
    const unsigned steps = many(100 * 1000);
    m = (struct model){ .options = *options, .rng = rng, .newest = 1 };
    m.options.hashing.seed = 1 + rng_next(&rng);
    m.options.fpr = 0.001;
    m.keys = make_keys(RANDOM_KEYS, m.options.hashing.seed, 0, UNIVERSE);
    m.f = make_with(&m.options);
    if (options->window.time)
        expect_success(perhaps_advance(m.f, 0));
    for (unsigned number = 0; number < steps; number++) {
        scene("window of %s, %u generations, %u keys, %u time, step %u", options->base,
              options->window.generations, (unsigned)options->window.keys,
              (unsigned)options->window.time, number);
        step(&m);
    }
    check_answers(&m);
    double expected = 0.001 * (double)m.asked;
    scene("of %g forgotten keys %g found", (double)m.asked, (double)m.taken);
    /* The fpr is checked only roughly here: fpr_test.c measures it. */
    expect(m.asked > 1000 && (double)m.taken < 3 * expected + 100);
    expect(m.newest > 3 * m.f->parts->count || steps < 100 * 1000);
    perhaps_free(m.f);
    free_keys(&m.keys);
}

/* Windows by keys, by call and by time, with generations of two kinds. */
TEST(test_model)
{
    struct rng rng = rng_for(__func__);
    const char *const bases[] = { "blocked", "chain" };
    for (unsigned i = 0; i < 3; i++)
        for (unsigned way = 0; way < 4; way++) {
            struct perhaps_options options = window_options(generations[i], 2000);
            options.base = bases[way % 2];
            if (way < 2)
                options.window.keys = 1000;
            else if (way == 2)
                options.capacity = 100 * UNIVERSE; /* each generation takes all keys */
            else
                options.window.time = 100;
            rng_next(&rng);
            run_model(&options, rng);
        }
}
