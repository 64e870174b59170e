/* shared_test.c - proves that many threads can add to, remove from and ask one shared filter at
 * once: no key that is in is ever denied, no bit is lost, and no copy is stored or removed too
 * many times.  Most of it is done by crews (crew.h).  Under ThreadSanitizer it also fails on a
 * data race.  If PERHAPS_TEST_EVERY is set, it tries several times as many rounds and steps. */
#include "support.h"
#include <perhaps_file.h>
#include <perhaps_live.h>
#include <perhaps_sets.h>

#include <math.h>
#include <sched.h>
#include <string.h>

#include "crew.h"

/* Returns a number of rounds or steps, or a part of it: see above. */
static unsigned rounds(unsigned number)
{
    return many(every_case() ? number : number / 3);
}

/* The statistics tell whether a filter is shared; only filters in files can be synced. */
TEST_EACH(test_told, takes_threads)
{
    scoped_filter *plain = make_filter(kind, 100, 0.01, 1);
    scoped_filter *shared = shared_filter(kind, 100, 0.01, 1);
    expect(!stats_of(plain).shared && stats_of(shared).shared && !stats_of(shared).mapped);
    expect_error(perhaps_sync(plain), PERHAPS_ERR_UNSUPPORTED);
    expect_error(perhaps_sync(shared), PERHAPS_ERR_UNSUPPORTED);
}

/* A composite is as good for threads as the base of its parts: it can neither be made nor
 * opened for threads over one that is for a single thread. */
TEST_EACH(test_base_for_one_thread, takes_threads)
{
    const char *base;
    const struct path path = temp_path("threads");
    for (size_t i = 0; base_to_test(kind, i, &base); i++) {
        struct perhaps_options options = options_for(kind, 100, 0.01, 1);
        struct perhaps_open_options shared = { .mode = PERHAPS_MODE_LOAD, .shared = true };
        perhaps_filter *f;
        const int expected = takes_threads_over(kind, base) ? 0 : PERHAPS_ERR_UNSUPPORTED;
        options.base = base;
        scoped_filter *plain = make_with(&options);
        options.shared = true;
        expect_error(perhaps_create(&options, &f), expected);
        perhaps_free(f);
        expect_success(perhaps_save(plain, path.text));
        expect_error(perhaps_open(path.text, &shared, &f), expected);
        perhaps_free(f);
    }
}

/* Used by one thread, a shared filter does what an ordinary one does. */
TEST(test_alone)
{
    enum { CAPACITY = 3000 };
    scoped_keys keys = make_keys(RANDOM_KEYS, test_seed(), 0, 3 * CAPACITY);
    EACH_KIND(kind, takes_threads) {
        scoped_filter *plain = make_filter(kind, CAPACITY, 0.01, test_seed());
        scoped_filter *shared = shared_filter(kind, CAPACITY, 0.01, test_seed());
        size_t done, shared_done;
        expect_error(perhaps_add_many(plain, &keys, &done), too_many(kind));
        expect_error(perhaps_add_many(shared, &keys, &shared_done), too_many(kind));
        expect(shared_done >= done || removes(kind)); /* entries may lie in other slots */
        expect(shared_done >= CAPACITY);
        expect(!gets_full(kind) || shared_done < CAPACITY * 12 / 10);
        struct perhaps_keys in = some_keys(&keys, 0, shared_done);
        expect_all_found(shared, &in);
        if (shared_done == done && !removes(kind)) { /* a few more may fit: the bits decide */
            expect(perhaps_equal(plain, shared));
            expect_same_counters(plain, shared);
        }
    }
}

/* ---- Crews ------------------------------------------------------------------------------ */

static void run_crew(struct crew *crew)
{
    crew->seed = mix64(crew->seed ^ test_seed());
    if (!crew_run(crew)) {
        fail_msg("%s [%s]", crew->complaint, scene_text());
        abort();
    }
}

/* A filter that many threads filled equals one that a single thread filled: no bit is lost. */
static void check_filling(const struct perhaps_kind *kind, uint64_t capacity, double fpr)
{
    scoped_keys keys = make_keys(RANDOM_KEYS, test_seed(), 0, capacity / 3 * 3);
    scoped_filter *f = shared_filter(kind, capacity, fpr, test_seed());
    struct crew crew = { .f = f, .keys = keys, .writers = 3, .readers = 2, .seed = capacity };
    scene("%s, %llu keys, fpr %g", kind->name, (unsigned long long)capacity, fpr);
    run_crew(&crew);
    expect(crew.refused == 0);
    double noise = 3 / sqrt((double)capacity);
    expect(stats_of(f).fpr_now <= fpr * (1 + noise));
    if (!removes(kind)) {
        scoped_filter *alone = full_filter(kind, capacity, fpr, &keys);
        expect(perhaps_equal(f, alone));
        double more = (double)stats_of(f).keys - (double)stats_of(alone).keys;
        /* Which new keys are perhaps there already, and not counted, depends on the order. */
        expect(fabs(more) <= 6 + 2 * fpr * (double)capacity);
    }
    crew_end(&crew);
}

TEST_EACH(test_filling, takes_threads)
{
    for (unsigned round = 0; round < rounds(60); round++)
        check_filling(kind, 30 + 3 * round, 0.01); /* all threads write the same few lines */
    check_filling(kind, many(100 * 1000), 0.01);
    check_filling(kind, many(100 * 1000), 1e-6);
}

/* More keys come than there is room for: the accepted ones are found, and the fpr is kept. */
TEST(test_overfilling)
{
    const uint64_t capacities[] = { 10, 300, 5000 };
    EACH_KIND(kind, takes_threads)
        for (size_t c = 0; c < sizeof capacities / sizeof *capacities; c++) {
            uint64_t capacity = capacities[c];
            scoped_keys keys = make_keys(RANDOM_KEYS, test_seed(), 0, 3 * capacity);
            scoped_filter *f = shared_filter(kind, capacity, 0.01, test_seed());
            struct crew crew = {
                .f = f, .keys = keys, .writers = 3, .readers = 1, .seed = capacity
            };
            scene("%s, %llu keys for %llu", kind->name, (unsigned long long)keys.count,
                  (unsigned long long)capacity);
            run_crew(&crew);
            expect(gets_full(kind) == (crew.refused > 0) && crew.copies >= capacity);
            expect(stats_of(f).fpr_now <= 0.01 * (1 + 1e-5)); /* rounding errors */
            crew_end(&crew);
        }
}

/* Filters grow from room for 100 keys to many layers or segments while other threads ask; then
 * the same beside removals. */
TEST(test_growing)
{
    const size_t nkeys = every_case() && !SANITIZED ? 150000 : 50000;
    const double rates[] = { 0.01, 1e-5 };
    EACH_KIND(kind, takes_threads)
        for (size_t r = 0; grows(kind) && r < sizeof rates / sizeof *rates; r++) {
            scoped_keys keys = make_keys(RANDOM_KEYS, test_seed() + r, 0, nkeys);
            for (unsigned churn = 0; churn <= removes(kind); churn++) {
                scoped_filter *f = shared_filter(kind, 100, rates[r], test_seed());
                struct crew crew = { .f = f,
                                     .keys = keys,
                                     .writers = 3,
                                     .readers = 2,
                                     .churn = churn,
                                     .steps = nkeys,
                                     .seed = r };
                scene("%s, grown%s at %g", kind->name, churn ? ", churned" : "", rates[r]);
                run_crew(&crew);
                expect(stats_of(f).parts > 5 || stats_of(f).elastic.segments > 20);
                crew_end(&crew);
            }
        }
}

/* More threads than cores, so that some wait in the middle of a look: what they look at is then
 * split, and written anew for other keys.  A key that is only added unless it is present must
 * not be taken for present by chance, since then it is lost. */
TEST(test_preempted)
{
    EACH_KIND(kind, takes_threads)
        for (unsigned round = 0; grows(kind) && round < rounds(60); round++) {
            scoped_keys keys = make_keys(RANDOM_KEYS, test_seed() + round, 0, 32 * 600);
            scoped_filter *f = shared_filter(kind, 100, 0.5, test_seed());
            struct crew crew = { .f = f, .keys = keys, .writers = 32, .seed = round };
            scene("%s, grown by 32 threads, round %u", kind->name, round);
            run_crew(&crew);
            crew_end(&crew);
        }
}

/* Adds and removes every key many times.  At the end all that is left is removed, and the
 * filter must be empty, except for counters that have saturated.  With an fpr of 0.9 a filter
 * takes keys until there is no room at all, so that nearly every add moves entries. */
static void check_churn(const struct perhaps_kind *kind, uint64_t capacity, double fpr,
                        unsigned writers, uint64_t steps)
{
    scoped_keys keys = make_keys(RANDOM_KEYS, test_seed(), 0, 2 * capacity + writers);
    scoped_filter *f = shared_filter(kind, capacity, fpr, test_seed());
    struct crew crew = { .f = f,
                         .keys = keys,
                         .writers = writers,
                         .readers = 2,
                         .churn = true,
                         .steps = steps,
                         .seed = capacity };
    scene("%s, %llu keys, fpr %g, churned by %u", kind->name, (unsigned long long)capacity, fpr,
          writers);
    run_crew(&crew);
    size_t nremoved = 0, left = 0;
    for (size_t key = 0; key < keys.count; key++)
        for (unsigned n = crew_copies(&crew, key); n > 0; n--, left++)
            nremoved += !perhaps_remove(f, key_at(&keys, key), keys.key_nbytes);
    expect(nremoved == left && left == crew.copies);
    expect(stats_of(f).keys == 0);
    perhaps_filter *empty = shared_filter(kind, capacity, fpr, test_seed());
    if (!stats_of(f).counting.saturated) {
        expect(perhaps_contains_many(f, &keys, NULL) == 0);
        expect(grows(kind) ? stats_of(f).load == 0
                           : perhaps_equal(f, empty)); /* no entry is left */
    }
    perhaps_free(empty);
    crew_end(&crew);
}

TEST(test_churn)
{
    EACH_KIND(kind, takes_threads) {
        if (!removes(kind))
            continue;
        check_churn(kind, 1000, 0.01, 3, rounds(20 * 1000));
        check_churn(kind, many(200 * 1000), 1e-6, 4, rounds(20 * 1000));
    }
}

TEST(test_crowded)
{
    const double fpr[] = { 0.9, 0.01 }; /* at high rates counters saturate */
    const uint64_t capacities[] = { 1, 8, 40, 200, 1000, 12345 };
    EACH_KIND(kind, takes_threads)
        for (size_t c = 0; removes(kind) && c < sizeof capacities / sizeof *capacities; c++)
            check_churn(kind, capacities[c], fpr[saturates(kind)], 3, rounds(20 * 1000));
}

/* ---- The same keys ---------------------------------------------------------------------- */

enum { THREADS = 4 };

/* Where threads wait for each other, so that all begin a round at nearly the same moment. */
struct gate {
    atomic_uint arrived;
};

static void pass_gate(struct gate *gate, unsigned round)
{
    atomic_fetch_add(&gate->arrived, 1);
    while (atomic_load(&gate->arrived) < THREADS * (round + 1))
        sched_yield();
}

struct rival {
    perhaps_filter *f;
    const struct perhaps_keys *keys;
    struct gate *gate;
    bool *was_present;  /* one for each key */
    unsigned succeeded; /* how many of its calls succeeded */
    unsigned refused;   /* how many were refused for the expected reason */
    int error;
    bool many, removes;
};

enum { BLOCK = 50 };

/* Adds block by block, and waits for the other threads before each block: so all threads add
 * the same keys at the same time. */
static void *add_unless_present(void *context)
{
    struct rival *r = context;
    size_t nbytes = r->keys->key_nbytes;
    for (size_t at = 0; at < r->keys->count; at += BLOCK) {
        struct perhaps_keys some = some_keys(r->keys, at, BLOCK);
        pass_gate(r->gate, (unsigned)(at / BLOCK));
        if (r->many)
            r->error |= perhaps_add_unless_present_many(r->f, &some, r->was_present + at, NULL);
        else
            for (size_t i = 0; i < BLOCK; i++)
                r->error |= perhaps_add_unless_present(r->f, key_at(&some, i), nbytes,
                                                       &r->was_present[at + i]);
    }
    return NULL;
}

/* Returns whether the filter takes another key for this one; this key may then be new to no
 * thread.  'once' holds each key once. */
static bool has_twin(const perhaps_filter *once, const struct perhaps_keys *keys, size_t key)
{
    uint64_t count;
    return !perhaps_count(once, key_at(keys, key), keys->key_nbytes, &count) && count > 1;
}

/* All threads add the same keys unless present.  Of each key exactly one thread is told that it
 * was new, in kinds that store copies; in other kinds at least one, and the key may be counted
 * for each of them. */
static void check_rivalry(const struct perhaps_kind *kind, size_t nkeys, double fpr)
{
    scoped_keys keys = make_keys(RANDOM_KEYS, test_seed(), 0, nkeys);
    scoped_filter *f = shared_filter(kind, THREADS * nkeys, fpr, test_seed());
    scoped_filter *once = clone_of(f);
    struct gate gate = { 0 };
    struct rival rivals[THREADS];
    bool *was_present = calloc(THREADS * nkeys, sizeof *was_present);
    expect(was_present);
    for (unsigned t = 0; t < THREADS; t++)
        rivals[t] = (struct rival){ .f = f,
                                    .keys = &keys,
                                    .gate = &gate,
                                    .many = t % 2,
                                    .was_present = was_present + t * nkeys };
    run_threads(THREADS, add_unless_present, rivals, sizeof *rivals);
    fill(once, &keys);
    uint64_t told_new = 0, twins = 0;
    for (size_t key = 0; key < nkeys; key++) {
        unsigned new_to = 0;
        for (unsigned t = 0; t < THREADS; t++)
            new_to += !was_present[t * nkeys + key];
        scene("%s, key %zu of %zu: new to %u", kind->name, key, nkeys, new_to);
        bool twin = has_twin(once, &keys, key);
        expect(removes(kind) && !twin ? new_to == 1 : new_to + twin >= 1);
        twins += twin;
        told_new += new_to;
    }
    for (unsigned t = 0; t < THREADS; t++)
        expect_success(rivals[t].error);
    expect_all_found(f, &keys);
    expect(stats_of(f).keys <= told_new && stats_of(f).keys >= nkeys - twins);
    free(was_present);
}

/* low_rate() keeps false positives rare.  Many rounds with few keys have many beginnings. */
TEST_EACH(test_rivals, takes_threads)
{
    double fpr = low_rate(kind);
    for (unsigned round = 0; round < rounds(30); round++)
        check_rivalry(kind, BLOCK, fpr);
    check_rivalry(kind, many(20 * 1000), fpr);
}

/* ---- Company ---------------------------------------------------------------------------- */

struct adder {
    perhaps_filter *f;
    struct gate *gate;
    struct perhaps_keys keys;
    size_t before; /* how many keys it adds before it waits for the others, two at a time */
    size_t step;   /* how many it adds in a call afterwards */
    int error;
};

static void *add_in_steps(void *context)
{
    struct adder *a = context;
    size_t at = 0, n;
    for (; at < a->keys.count; at += n) {
        if (at == a->before)
            pass_gate(a->gate, 0);
        n = at < a->before ? 2 : a->step;
        n = n < a->keys.count - at ? n : a->keys.count - at;
        struct perhaps_keys some = some_keys(&a->keys, at, n);
        a->error |= n == 1 ? perhaps_add(a->f, key_at(&some, 0), some.key_nbytes)
                           : perhaps_add_many(a->f, &some, NULL);
    }
    return NULL;
}

/* A thread that has been the only one for a while goes on adding, in one long call, when others
 * begin.  The filter is so small that they often write the same lines. */
static void check_company(const struct perhaps_kind *kind, size_t nkeys)
{
    const size_t steps[THREADS] = { nkeys, 1, 2, BLOCK };
    scoped_keys keys = make_keys(RANDOM_KEYS, test_seed(), nkeys, THREADS * nkeys);
    scoped_filter *f = shared_filter(kind, keys.count, 0.01, test_seed());
    struct adder adders[THREADS];
    struct gate gate = { 0 };
    for (unsigned t = 0; t < THREADS; t++)
        adders[t] = (struct adder){ .f = f,
                                    .gate = &gate,
                                    .keys = some_keys(&keys, t * nkeys, nkeys),
                                    .before = t == 0 ? 100 : 0,
                                    .step = steps[t] };
    run_threads(THREADS, add_in_steps, adders, sizeof *adders);
    for (unsigned t = 0; t < THREADS; t++)
        expect_success(adders[t].error);
    expect_all_found(f, &keys);
    if (!removes(kind)) {
        scoped_filter *alone = full_filter(kind, keys.count, 0.01, &keys);
        expect(perhaps_equal(f, alone));
    }
}

TEST_EACH(test_company, takes_threads)
{
    for (unsigned round = 0; round < rounds(50); round++) {
        scene("%s, round %u", kind->name, round);
        check_company(kind, 500 + 40 * round);
    }
}

/* ---- The last places -------------------------------------------------------------------- */

struct repeater {
    perhaps_filter *f;
    struct perhaps_keys keys;
    atomic_bool stop;
    int error;
    bool was_absent;
    pthread_t thread;
};

/* Adds keys that are there already, which takes no room. */
static void *repeat(void *context)
{
    struct repeater *r = context;
    while (!atomic_load(&r->stop) && !r->error) {
        bool was_present[BLOCK];
        r->error = perhaps_add_unless_present_many(r->f, &r->keys, was_present, NULL);
        for (size_t i = 0; i < BLOCK && !r->error; i++)
            r->was_absent |= !was_present[i];
    }
    return NULL;
}

/* Threads that add known keys must not make a new key be refused while there is room for it:
 * they count their keys for a moment before they see that these are there. */
static void check_last_places(const struct perhaps_kind *kind, uint64_t capacity)
{
    enum { LAST = 5 };
    scoped_keys keys = make_keys(RANDOM_KEYS, test_seed(), 0, capacity);
    struct perhaps_keys first = some_keys(&keys, 0, capacity - LAST);
    scoped_filter *f = shared_filter(kind, capacity, low_rate(kind), test_seed());
    struct repeater r = { .f = f, .keys = some_keys(&keys, 0, BLOCK) };
    fill(f, &first);
    expect(!pthread_create(&r.thread, NULL, repeat, &r));
    int error = 0;
    for (size_t i = capacity - LAST; i < capacity && !error; i++) {
        sched_yield();
        error = perhaps_add(f, key_at(&keys, i), keys.key_nbytes);
    }
    atomic_store(&r.stop, true);
    expect(!pthread_join(r.thread, NULL));
    expect_success(error);
    expect_success(r.error);
    expect(!r.was_absent && stats_of(f).keys == capacity);
}

TEST_EACH(test_last_places, takes_threads)
{
    for (unsigned round = 0; gets_full(kind) && round < rounds(100); round++) {
        scene("%s, round %u", kind->name, round);
        check_last_places(kind, BLOCK + 50 + round);
    }
}

/* ---- Copies of one key ------------------------------------------------------------------ */

/* Adds (or removes) one key as often as it can have copies, in step with the other threads. */
static void *change_copies(void *context)
{
    struct rival *r = context;
    int refusal = r->removes ? PERHAPS_ERR_NOT_FOUND : PERHAPS_ERR_COPIES;
    for (unsigned i = 0; i < PERHAPS_COPIES_MAX; i++) {
        pass_gate(r->gate, i);
        int error = (r->removes ? perhaps_remove : perhaps_add)(r->f, key_at(r->keys, 0),
                                                                r->keys->key_nbytes);
        r->succeeded += !error;
        r->refused += error == refusal;
        r->error |= error && error != refusal;
    }
    return NULL;
}

static void check_copies(perhaps_filter *f, const struct perhaps_keys *keys, bool removes,
                         unsigned wanted)
{
    struct rival rivals[THREADS];
    struct gate gate = { 0 };
    unsigned succeeded = 0, refused = 0;
    for (unsigned t = 0; t < THREADS; t++)
        rivals[t] = (struct rival){ .f = f, .keys = keys, .gate = &gate, .removes = removes };
    run_threads(THREADS, change_copies, rivals, sizeof *rivals);
    for (unsigned t = 0; t < THREADS; t++) {
        expect(!rivals[t].error);
        succeeded += rivals[t].succeeded;
        refused += rivals[t].refused;
    }
    expect(succeeded == wanted);
    expect(refused == THREADS * PERHAPS_COPIES_MAX - wanted);
}

/* Four threads add more copies of one key than it can have, and then remove more than there
 * are: exactly the possible number of calls succeeds. */
TEST_EACH(test_copies, takes_threads)
{
    for (unsigned round = 0; removes(kind) && round < rounds(300); round++) {
        const unsigned tries = THREADS * PERHAPS_COPIES_MAX;
        unsigned taken = saturates(kind) ? tries : PERHAPS_COPIES_MAX;
        scoped_keys keys = make_keys(RANDOM_KEYS, test_seed(), round, 1);
        scoped_filter *f = shared_filter(kind, 1000, 0.01, test_seed());
        scene("%s, round %u", kind->name, round);
        check_copies(f, &keys, false, taken);
        expect(count_of(f, key_at(&keys, 0), keys.key_nbytes) ==
               (saturates(kind) ? PERHAPS_COUNT_MAX : PERHAPS_COPIES_MAX));
        expect(stats_of(f).keys == taken);
        check_copies(f, &keys, true, taken);
        expect(saturates(kind) == perhaps_contains(f, key_at(&keys, 0), keys.key_nbytes));
        struct perhaps_stats stats = stats_of(f);
        uint64_t too_many = tries - taken;
        expect(stats.keys == 0 && stats.failed_adds == too_many &&
               stats.unmatched_removals == too_many);
    }
}
