/* room_test.c - proves that N different keys fit into a filter for N, whoever adds them, how
 * often, and in which order: one to eight threads, three processes, by every call that adds;
 * and that the number of keys which a filter tells is true.
 *
 * It fails when a key is refused, when one is not found, and when more or fewer keys are told
 * than there are.  With PERHAPS_TEST_EVERY it tries all cases, else a sample of them that the
 * seed chooses. */
#include "support.h"
#include <perhaps_fast.h>

#include <math.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- What each thread does --------------------------------------------------------------- */

/* The calls that add. */
enum way { ONE_A_CALL, ABSENT_ONE, PREPARED, ABSENT_PREPARED, BATCHED, ABSENT_BATCHED, WAYS };

static const char *const way_names[WAYS] = { "one a call", "unless present",
                                             "prepared",   "prepared, unless present",
                                             "in batches", "in batches, unless present" };

/* Which keys a thread adds, and in which order. */
enum order {
    ITS_SHARE,     /* no other thread has these keys */
    ITS_REPEATS,   /* the same, but goes back again and again to what it has added */
    ALL_IN_ORDER,  /* all keys, as every other thread */
    ALL_BACKWARDS, /* all keys, every other thread from the end */
    LAST_ALONE,    /* the first thread all keys, the others only the first half */
    ORDERS
};

static const char *const order_names[ORDERS] = { "shares", "repeats", "all", "backwards",
                                                 "the last keys by one" };

struct adder {
    perhaps_filter *f;
    const struct perhaps_keys *keys;
    enum way way;
    enum order order;
    unsigned number, count; /* of threads */
    int error;              /* of the first add that failed */
    size_t at;              /* the key that it was */
};

/* Adds keys number first .. first+n-1. */
static int add_run(const struct adder *a, size_t first, size_t n)
{
    struct perhaps_keys run = some_keys(a->keys, first, n);
    if (a->way == BATCHED)
        return perhaps_add_many(a->f, &run, NULL);
    bool was_present[1024];
    if (a->way == ABSENT_BATCHED)
        return perhaps_add_unless_present_many(a->f, &run, was_present, NULL);
    int error = 0;
    for (size_t i = 0; i < n && !error; i++) {
        const void *key = key_at(&run, i);
        struct perhaps_prepared prepared;
        if (a->way == PREPARED || a->way == ABSENT_PREPARED)
            perhaps_prepare(a->f, key, run.key_nbytes, &prepared);
        error = a->way == ONE_A_CALL ? perhaps_add(a->f, key, run.key_nbytes)
                : a->way == ABSENT_ONE
                    ? perhaps_add_unless_present(a->f, key, run.key_nbytes, was_present)
                : a->way == PREPARED
                    ? perhaps_add_prepared(a->f, &prepared)
                    : perhaps_add_unless_present_prepared(a->f, &prepared, was_present);
    }
    return error;
}

/* Adds keys first .. end-1 in runs, from the front or from the back; if 'again', after each run
 * the ones before it once more, as far as 700 keys. */
static void add_range(struct adder *a, size_t first, size_t end, bool backwards, bool again)
{
    enum { RUN = 300, AGAIN = 700 };
    for (size_t done = 0, n; done < end - first && !a->error; done += n) {
        n = end - first - done < RUN ? end - first - done : RUN;
        size_t at = backwards ? end - done - n : first + done;
        a->error = add_run(a, at, n);
        for (size_t back = at > first + AGAIN ? at - AGAIN : first; again && back < at;
             back += n)
            a->error = a->error ? a->error : add_run(a, back, at - back < n ? at - back : n);
        a->at = at;
    }
}

static void *add_all(void *context)
{
    struct adder *a = context;
    const size_t n = a->keys->count, share = n / a->count;
    const size_t first = a->number * share;
    const size_t end = a->number + 1 == a->count ? n : first + share;
    const bool odd = a->number % 2;
    switch (a->order) {
    case ITS_SHARE:
        add_range(a, first, end, false, false);
        break;
    case ITS_REPEATS:
        add_range(a, first, end, false, true);
        break;
    case ALL_IN_ORDER:
        add_range(a, 0, n, false, false);
        break;
    case ALL_BACKWARDS:
        add_range(a, 0, n, odd, false);
        break;
    default:
        add_range(a, 0, a->number ? n / 2 : n, false, false);
        break;
    }
    return NULL;
}

/* ---- Threads ----------------------------------------------------------------------------- */

struct room_case {
    const struct perhaps_kind *kind;
    bool copies; /* the filter stores copies: each key is added once */
    uint64_t capacity;
    double fpr;
    unsigned threads;
    enum way way;
    enum order order;
    uint64_t seed;
};

static perhaps_filter *filter_of_case(const struct room_case *c)
{
    struct perhaps_options options = options_for(c->kind, c->capacity, c->fpr, c->seed);
    perhaps_filter *f;
    if (!c->copies)
        options.needs &= ~(unsigned)(PERHAPS_CAN_REMOVE | PERHAPS_CAN_COUNT);
    options.shared = true;
    expect_success(perhaps_create(&options, &f));
    return f;
}

/* The error of the count that perhaps.h states, and keys that were taken for present: these are
 * not counted.  'held' is how many keys processes held that were then given back. */
static void expect_told(const perhaps_filter *f, const struct room_case *c, double held)
{
    const double keys = (double)stats_of(f).keys, n = (double)c->capacity;
    const double unseen = n * c->fpr, chance = 7 * sqrt(n);
    expect(keys <= 1.02 * n + chance);
    expect(keys >= n - unseen - chance - held);
}

static void try_case(const struct room_case *c)
{
    enum { THREADS_MOST = 8 };
    struct adder adder[THREADS_MOST] = { { 0 } };
    scoped_keys keys = make_keys(RANDOM_KEYS, c->seed, 0, c->capacity);
    scoped_filter *f = filter_of_case(c);
    scene("%s%s for %llu at %g, %u threads, %s, %s, seed %llu", c->kind->name,
          c->copies ? " with copies" : "", (unsigned long long)c->capacity, c->fpr, c->threads,
          way_names[c->way], order_names[c->order], (unsigned long long)c->seed);
    for (unsigned i = 0; i < c->threads; i++)
        adder[i] = (struct adder){ .f = f,
                                   .keys = &keys,
                                   .way = c->way,
                                   .order = c->order,
                                   .number = i,
                                   .count = c->threads };
    run_threads(c->threads, add_all, adder, sizeof *adder);
    for (unsigned i = 0; i < c->threads; i++) {
        if (adder[i].error)
            print_message("thread %u near key %zu\n", i, adder[i].at);
        expect_success(adder[i].error);
    }
    expect_all_found(f, &keys);
    expect(stats_of(f).failed_adds == 0);
    expect_told(f, c, 0);
}

static bool adds_in_threads(const struct perhaps_kind *kind)
{
    return takes_threads(kind) && !forgets(kind); /* a window turns over: window_test.c */
}

/* Of the cases of one kind, tries each, or one of 'some' that the seed chooses. */
static void try_cases(const struct perhaps_kind *kind, uint64_t capacity, double fpr,
                      uint64_t some)
{
    static const unsigned threads[] = { 1, 2, 3, 4, 8 };
    struct rng rng = rng_for(kind->name);
    for (size_t t = 0; t < sizeof threads / sizeof *threads; t++)
        for (int way = 0; way < WAYS; way++)
            for (int order = 0; order < ORDERS; order++)
                for (unsigned copies = 0; copies <= removes(kind); copies++) {
                    struct room_case c = { .kind = kind,
                                           .copies = copies,
                                           .capacity = capacity,
                                           .fpr = fpr,
                                           .threads = threads[t],
                                           .way = (enum way)way,
                                           .order = (enum order)order,
                                           .seed = rng_next(&rng) };
                    bool repeats = order != ITS_SHARE;
                    if ((copies && repeats) || (!every_case() && rng_below(&rng, some)))
                        continue;
                    try_case(&c);
                }
}

TEST_EACH(test_threads, adds_in_threads)
{
    static const double rates[] = { 0.5, 0.1, 0.01, 1e-3, 1e-6 };
    for (size_t i = 0; i < sizeof rates / sizeof *rates; i++) {
        try_cases(kind, 100, rates[i], 10);
        try_cases(kind, 3000, rates[i], 10);
        try_cases(kind, many(30000), rates[i], 30);
    }
}

/* ---- Processes --------------------------------------------------------------------------- */

struct process {
    const char *path;
    struct adder adder;
};

/* Adds in a child, to a file in place.  Returns 0 or the number of the error. */
static int add_in_place(void *context)
{
    struct process *p = context;
    p->adder.f = open_file(p->path, &in_place);
    add_all(&p->adder);
    perhaps_free(p->adder.f);
    return -p->adder.error;
}

/* Three processes at once; then one more, alone and with the file in its memory, adds them all
 * again, and finds that they are there. */
static void try_processes(const struct perhaps_kind *kind, const struct room_case *c)
{
    enum { PROCESSES = 3 };
    struct path path = temp_path("room");
    scoped_keys keys = make_keys(RANDOM_KEYS, c->seed, 0, c->capacity);
    perhaps_filter *f = make_filter(kind, c->capacity, c->fpr, c->seed);
    pid_t pid[PROCESSES];
    expect_success(perhaps_save(f, path.text));
    perhaps_free(f);
    scene("%s in place for %llu at %g, %s, %s, seed %llu", kind->name,
          (unsigned long long)c->capacity, c->fpr, way_names[c->way], order_names[c->order],
          (unsigned long long)c->seed);
    for (unsigned i = 0; i < PROCESSES; i++) {
        struct process p = {
            path.text,
            { .keys = &keys, .way = c->way, .order = c->order, .number = i, .count = PROCESSES }
        };
        pid[i] = fork();
        expect(pid[i] >= 0);
        if (!pid[i])
            _exit(add_in_place(&p));
    }
    for (unsigned i = 0; i < PROCESSES; i++) {
        int status;
        expect(waitpid(pid[i], &status, 0) == pid[i]);
        expect_error(WIFEXITED(status) ? -WEXITSTATUS(status) : 1, 0);
    }
    f = open_file(path.text, &load_it);
    expect_all_found(f, &keys);
    expect_success(perhaps_add_many(f, &keys, NULL));
    expect(stats_of(f).failed_adds == 0);
    expect_told(f, c, PROCESSES * 512);
    perhaps_free(f);
}

TEST_EACH(test_processes, shares)
{
    static const double rates[] = { 0.5, 0.01, 1e-6 };
    struct rng rng = rng_for(kind->name);
    for (size_t i = 0; i < sizeof rates / sizeof *rates; i++)
        for (int order = 0; order < ORDERS; order++)
            for (int way = 0; way < WAYS; way++) {
                const struct room_case c = { .capacity = many(20000),
                                             .fpr = rates[i],
                                             .way = (enum way)way,
                                             .order = (enum order)order,
                                             .seed = rng_next(&rng) };
                if (every_case() || !rng_below(&rng, 5))
                    try_processes(kind, &c);
            }
}

/* ---- What came of several writers -------------------------------------------------------- */

/* Half of the keys come from eight threads at once, all of them by each; the filter is saved,
 * or copied, and the other half comes from one thread, to a filter that is not shared. */
TEST_EACH(test_afterwards, adds_in_threads)
{
    static const double rates[] = { 0.3, 0.01, 1e-6 };
    for (size_t i = 0; i < 3 * sizeof rates / sizeof *rates; i++) {
        const struct room_case c = {
            .kind = kind, .capacity = many(20000), .fpr = rates[i / 3], .seed = test_seed() + i
        };
        struct adder adder[8] = { { 0 } };
        scoped_keys keys = make_keys(RANDOM_KEYS, c.seed, 0, c.capacity);
        struct perhaps_keys half = some_keys(&keys, 0, c.capacity / 2);
        struct perhaps_keys rest =
            some_keys(&keys, c.capacity / 2, c.capacity - c.capacity / 2);
        scoped_filter *f = filter_of_case(&c);
        struct path path = temp_path("afterwards");
        scene("%s for %llu at %g, then one thread", kind->name, (unsigned long long)c.capacity,
              c.fpr);
        for (unsigned t = 0; t < 8; t++)
            adder[t] = (struct adder){ .f = f,
                                       .keys = &half,
                                       .way = i % 3 ? BATCHED : PREPARED,
                                       .order = i % 3 == 1 ? ALL_BACKWARDS : ALL_IN_ORDER,
                                       .number = t,
                                       .count = 8 };
        run_threads(8, add_all, adder, sizeof *adder);
        expect_success(perhaps_save(f, path.text));
        scoped_filter *alone = open_file(path.text, &load_it);
        expect_success(perhaps_add_many(alone, &rest, NULL));
        expect_all_found(alone, &keys);
        expect_told(alone, &c, 0);
    }
}

int main(void)
{
    return run_all_tests();
}
