/* window_ahead_test.c - proves that a time far ahead of the clock is refused, that a window
 * whose time is ahead all the same loses no key and can be brought back, and that a journal
 * does the same again whatever the clock shows: exact bounds, and random operations beside a
 * model that knows what must be remembered.  It fails when one time that is wrong makes a
 * window forget nothing for good. */
#include "live_files.h"
#include <perhaps_live.h>
#include <perhaps_window.h>

#include <string.h>
#include <unistd.h>

#include "filter/filter.h"

static const unsigned generations[] = { 2, 3, 5, 64 };
enum { CHOICES = sizeof generations / sizeof *generations };

static struct perhaps_options window_options(unsigned number, uint64_t time)
{
    return (struct perhaps_options){ .kind = "window",
                                     .base = "blocked",
                                     .capacity = 100 * (number - 1),
                                     .fpr = 1e-12,
                                     .window = { .generations = number, .time = time },
                                     .hashing = { .seed = test_seed() } };
}

static struct perhaps_window_stats window_of(const perhaps_filter *f)
{
    struct perhaps_stats stats;
    perhaps_stats_of(f, &stats);
    return stats.window;
}

/* ---- Refused ----------------------------------------------------------------------------- */

static void expect_refused(perhaps_filter *f, uint64_t now, uint64_t clock)
{
    scoped_filter *before = clone_of(f);
    expect_error(perhaps_advance_unless_ahead(f, now, clock), PERHAPS_ERR_AHEAD);
    expect(perhaps_equal(f, before) && f->counters->keys == before->counters->keys);
}

/* One unit decides, also at the ends of all numbers. */
TEST(test_refused)
{
    const uint64_t times[] = { 1, 63, 6300, UINT64_MAX / 3 };
    const uint64_t clocks[] = { 0, 1, 1795290000000, UINT64_MAX / 2 };
    for (unsigned i = 0; i < CHOICES; i++)
        for (size_t t = 0; t < sizeof times / sizeof *times; t++)
            for (size_t c = 0; c < sizeof clocks / sizeof *clocks; c++) {
                struct perhaps_options options = window_options(generations[i], times[t]);
                scoped_filter *f = make_with(&options);
                const uint64_t time = window_of(f).time, clock = clocks[c];
                scene("%u generations, window %llu, clock %llu", generations[i],
                      (unsigned long long)times[t], (unsigned long long)clock);
                expect(time >= times[t] && time - times[t] < generations[i]);
                add_number(f, 1);
                expect_refused(f, UINT64_MAX, clock);
                expect_refused(f, clock + time + 1, clock);
                expect(!window_of(f).knows_time);
                expect_success(perhaps_advance_unless_ahead(f, clock, clock));
                expect(window_of(f).knows_time && window_of(f).newest == clock);
                expect_refused(f, clock + time + 1, clock);
                expect_success(perhaps_advance_unless_ahead(f, clock + time, clock));
                expect(window_of(f).newest == clock + time && has_number(f, 1));
                expect_success(
                    perhaps_advance_unless_ahead(f, 0, clock)); /* old ones are taken */
                expect_success(perhaps_advance_unless_ahead(f, 0, UINT64_MAX));
                expect(window_of(f).newest == clock + time && has_number(f, 1));
            }
}

/* A journal of records of long ago, and simulated times, which begin at 0: the window forgets
 * as it does by the clock. */
TEST(test_times_of_long_ago)
{
    struct perhaps_options options = window_options(5, 1000);
    const uint64_t clock = 1795290000000, begins[] = { 0, 1000000000000 };
    for (size_t b = 0; b < 2; b++) {
        scoped_filter *f = make_with(&options), *same = make_with(&options);
        for (uint64_t now = 0; now < 5000; now += 10) {
            expect_success(perhaps_advance_unless_ahead(f, begins[b] + now, clock));
            expect_success(perhaps_advance(same, begins[b] + now));
            add_number(f, now);
            add_number(same, now);
            expect(has_number(f, now < 1000 ? 0 : now - 1000));
            expect(now < 1300 || !has_number(f, now - 1300));
        }
        expect(perhaps_equal(f, same));
    }
}

TEST(test_refused_elsewhere)
{
    EACH_KIND(kind, any_kind) {
        scoped_filter *f = make_filter(kind, 1000, 0.01, test_seed());
        expect_error(perhaps_advance_unless_ahead(f, 1, 1), PERHAPS_ERR_UNSUPPORTED);
        expect_error(perhaps_advance_unless_ahead(f, UINT64_MAX, 1), PERHAPS_ERR_UNSUPPORTED);
        expect_error(perhaps_set_back(f, 1), PERHAPS_ERR_UNSUPPORTED);
        struct perhaps_window_stats none = window_of(f);
        expect(!none.time && !none.knows_time && !none.newest);
    }
    struct perhaps_options options = window_options(3, 10);
    struct path path = temp_path("read_only");
    {
        scoped_filter *f = make_with(&options);
        expect_success(perhaps_advance(f, 50));
        expect_success(perhaps_save(f, path.text));
    }
    scoped_filter *f =
        open_file(path.text, &(struct perhaps_open_options){ .mode = PERHAPS_MODE_READ });
    expect_error(perhaps_advance_unless_ahead(f, 60, 60), PERHAPS_ERR_READ_ONLY);
    expect_error(perhaps_advance_unless_ahead(f, 71, 60), PERHAPS_ERR_AHEAD);
    expect_error(perhaps_set_back(f, 20), PERHAPS_ERR_READ_ONLY);
    expect(window_of(f).newest == 50);
    expect(strstr(perhaps_strerror(PERHAPS_ERR_AHEAD), "ahead"));
}

/* ---- Brought back ------------------------------------------------------------------------ */

/* A clock that is 2^40 ahead for a moment.  What is added then and until the window is brought
 * back is remembered for the whole window from there on, and for at most a period longer. */
static void check_set_back(unsigned number, uint64_t time)
{
    struct perhaps_options options = window_options(number, time);
    scoped_filter *f = make_with(&options);
    const uint64_t whole = window_of(f).time, period = whole / (number - 1);
    const uint64_t begin = 5000, ahead = begin + (UINT64_C(1) << 40) * period;
    expect_success(perhaps_advance(f, begin));
    add_number(f, 1);
    expect_success(perhaps_advance(f, ahead));
    expect(!has_number(f, 1)); /* forgotten, and does not come back */
    add_number(f, 2);
    for (uint64_t now = begin; now < begin + 10 * whole; now += period) {
        expect_success(perhaps_advance(f, now)); /* a clock that went back loses nothing */
        add_number(f, 3);
        expect(has_number(f, 2) && window_of(f).newest == ahead);
    }
    const uint64_t back = begin + 10 * whole;
    expect_success(perhaps_set_back(f, ahead + 1));
    expect_success(perhaps_set_back(f, ahead));
    expect(window_of(f).newest == ahead);
    expect_success(perhaps_set_back(f, back));
    expect(window_of(f).newest == back && window_of(f).knows_time);
    expect_success(perhaps_set_back(f, back + 1));
    expect(window_of(f).newest == back);
    for (uint64_t now = back; now <= back + whole + period; now++) {
        expect_success(perhaps_advance_unless_ahead(f, now, now));
        bool found = now - back < whole + period;
        expect(has_number(f, 2) == found && has_number(f, 3) == found);
    }
    add_number(f, 4);
    expect(has_number(f, 4) && f->counters->keys == 1);
}

TEST(test_set_back)
{
    for (unsigned i = 0; i < CHOICES; i++)
        for (uint64_t time = 1; time < 400; time = time * 3 / 2 + 1) {
            scene("%u generations, window %llu", generations[i], (unsigned long long)time);
            check_set_back(generations[i], time);
        }
}

/* A window that knows no time yet has none to bring back. */
TEST(test_set_back_before_the_first_moment)
{
    struct perhaps_options options = window_options(3, 10);
    scoped_filter *f = make_with(&options);
    add_number(f, 1);
    expect_success(perhaps_set_back(f, 5));
    expect(!window_of(f).knows_time);
    expect_success(perhaps_advance(f, 1000));
    expect(window_of(f).newest == 1000 && has_number(f, 1));
    expect_success(perhaps_clear(f));
    expect(!window_of(f).knows_time && !window_of(f).newest);
}

/* ---- Beside a model ---------------------------------------------------------------------- */

enum { UNIVERSE = 40, STEPS = 150 };

/* What the window must remember: of each key, which generation took it last. */
struct model {
    perhaps_filter *f;
    struct rng rng;
    struct path file;
    const struct perhaps_open_options *way; /* the file is open so; NULL: it is no file */
    uint64_t period, time;
    uint64_t generation[UNIVERSE]; /* from 1 on; 0: none */
    uint64_t newest, began, count;
    bool knows_time;
    uint64_t clock;
    unsigned wrong; /* keys that are there and were forgotten */
};

static const struct perhaps_open_options to_load = { .mode = PERHAPS_MODE_LOAD };

static bool is_in(const struct model *m, size_t key)
{
    return m->generation[key] && m->newest - m->generation[key] < m->count;
}

static void check(struct model *m, const perhaps_filter *f)
{
    uint64_t began; /* perhaps_stats_of() takes longer than all the rest */
    expect(f->kind->forgets->newest(f, &began) == m->knows_time && began == m->began);
    for (size_t key = 0; key < UNIVERSE; key++) {
        bool present = has_number(f, key);
        expect(present || !is_in(m, key));
        m->wrong += present && !is_in(m, key);
    }
}

static void note_time(struct model *m, uint64_t now)
{
    if (!m->knows_time)
        m->began = now;
    m->knows_time = true;
    uint64_t periods = now > m->began ? (now - m->began) / m->period : 0;
    m->newest += periods < m->count ? periods : m->count;
    m->began += periods * m->period;
}

/* Draws a time: near the clock, a window or two around it, long ago, or far ahead. */
static uint64_t draw_time(struct model *m)
{
    const uint64_t time = m->time, clock = m->clock;
    switch (rng_below(&m->rng, 6)) {
    case 0:
        return clock + rng_below(&m->rng, 2 * time + 3);
    case 1:
        return clock - rng_below(&m->rng, 2 * time + 3);
    case 2:
        return rng_below(&m->rng, clock);
    case 3:
        return clock + (UINT64_C(1) << (40 + rng_below(&m->rng, 23)));
    default:
        return clock;
    }
}

/* The clock goes on; sometimes it steps back, or is ahead for a while. */
static void move_clock(struct model *m)
{
    const uint64_t middle = UINT64_C(1) << 30;
    m->clock += rng_below(&m->rng, m->period + 1);
    if (rng_below(&m->rng, 10) == 0)
        m->clock = middle + rng_below(&m->rng, 8 * m->time);
    if (rng_below(&m->rng, 40) == 0)
        m->clock += UINT64_C(1) << 50;
}

static void tell_time(struct model *m)
{
    const uint64_t now = draw_time(m);
    const bool ahead = now > m->clock && now - m->clock > m->time;
    if (rng_below(&m->rng, 8) == 0) {
        expect_success(perhaps_advance(m->f, now));
        note_time(m, now);
        return;
    }
    expect_error(perhaps_advance_unless_ahead(m->f, now, m->clock),
                 ahead ? PERHAPS_ERR_AHEAD : 0);
    if (!ahead)
        note_time(m, now);
}

static void bring_back(struct model *m)
{
    const uint64_t now = draw_time(m);
    expect_success(perhaps_set_back(m->f, now));
    if (m->knows_time && now < m->began)
        m->began = now;
}

/* Opens the file anew; a live one after its process has ended without a word.  Its journal is
 * done again at another time of the clock. */
static void reopen(struct model *m)
{
    scoped_filter *before = clone_of(m->f);
    if (m->way == &to_write) {
        expect_success(perhaps_sync(m->f));
        die(m->f);
        const struct perhaps_open_options *const ways[] = { NULL, &to_load };
        for (int i = 0; i < 2; i++) {
            scoped_filter *again = open_file(m->file.text, ways[i]);
            expect(perhaps_equal(again, before));
            check(m, again);
        }
    } else {
        expect_success(perhaps_save(m->f, m->file.text));
        perhaps_free(m->f);
    }
    m->f = open_file(m->file.text, m->way);
    expect(perhaps_equal(m->f, before));
}

static void step(struct model *m)
{
    const size_t key = rng_below(&m->rng, UNIVERSE);
    const uint64_t what = rng_below(&m->rng, 300);
    move_clock(m);
    if (what < 2) {
        reopen(m);
    } else if (what < 4) {
        expect_success(perhaps_rotate(m->f));
        m->newest++;
    } else if (what < 5) {
        expect_success(perhaps_clear(m->f));
        memset(m->generation, 0, sizeof m->generation);
        m->knows_time = false;
        m->began = 0;
    } else if (what < 30) {
        bring_back(m);
    } else if (what < 120) {
        tell_time(m);
    } else {
        add_number(m->f, key);
        m->generation[key] = m->newest;
    }
}

static void run_model(unsigned number, bool live, struct rng rng)
{
    static struct model m;
    struct perhaps_options options = window_options(number, 1 + rng_below(&rng, 1000));
    m = (struct model){ .rng = rng,
                        .file = temp_path("window"),
                        .way = live ? &to_write : &to_load,
                        .newest = 1,
                        .count = number,
                        .clock = UINT64_C(1) << 30 };
    m.f = make_with(&options);
    m.time = window_of(m.f).time;
    m.period = m.time / (number - 1);
    expect_success(perhaps_save(m.f, m.file.text));
    perhaps_free(m.f);
    m.f = open_file(m.file.text, m.way);
    for (unsigned i = 0; i < STEPS; i++) {
        step(&m);
        check(&m, m.f);
    }
    reopen(&m);
    perhaps_free(m.f);
    unlink(m.file.text);
    unlink(journal_of(m.file).text);
    expect(m.wrong <= 3);
}

TEST(test_model)
{
    struct rng rng = rng_for(__func__);
    const unsigned seeds = every_case() ? 20000 : many(120);
    for (unsigned i = 0; i < seeds; i++) {
        const unsigned number = generations[i % CHOICES];
        scene("run %u, %u generations", i, number);
        rng_next(&rng);
        run_model(number, i / CHOICES % 2, rng);
    }
}
