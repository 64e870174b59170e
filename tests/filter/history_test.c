/* history_test.c - proves that shared filters from which keys can be removed are linearizable:
 * threads that work at once get answers that they could also have got one after the other.
 *
 * Three threads do up to four operations each, on a filter that is so full that entries are
 * moved all the time.  What they did and were told is a history, and history.c searches an
 * order that explains it.  The test fails if there is none: if a moved entry was missed, say.
 * The checker itself is tested first, with histories that were written by hand. */
#include "history.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "support.h"

/* ---- The checker itself ------------------------------------------------------------------ */

/* An event of a history that is written by hand. */
struct told {
    unsigned thread;
    struct history_event event;
};

static struct history history_of(const struct told told[], size_t count)
{
    struct history h = { .count = { 0 } };
    for (size_t i = 0; i < count; i++) {
        unsigned t = told[i].thread;
        h.event[t][h.count[t]++] = told[i].event;
    }
    return h;
}

/* Checks whether the events can be explained, with any number of copies of key 0 at the end. */
#define check_history(wanted, ...)                                                             \
    do {                                                                                       \
        const struct told told_[] = { __VA_ARGS__ };                                           \
        struct history h_ = history_of(told_, sizeof told_ / sizeof *told_);                   \
        bool explained_ = false;                                                               \
        for (unsigned after_ = 0; after_ < 3; after_++) {                                      \
            h_.after[0] = after_;                                                              \
            explained_ |= history_is_linearizable(&h_);                                        \
        }                                                                                      \
        expect(explained_ == (wanted));                                                        \
    } while (0)

/* The numbers behind the answers are the moments of call and return. */
TEST(test_explained)
{
    scene("one after the other");
    check_history(true, { 0, { ADD, 0, YES, 1, 2 } }, { 1, { CONTAINS, 0, YES, 3, 4 } },
                  { 2, { REMOVE, 0, YES, 5, 6 } }, { 0, { CONTAINS, 0, NO, 7, 8 } });
    scene("both may see an add that goes on, or not");
    check_history(true, { 0, { ADD, 0, YES, 1, 8 } }, { 1, { CONTAINS, 0, NO, 2, 3 } },
                  { 2, { CONTAINS, 0, YES, 4, 5 } });
    scene("a removal that waits for an add");
    check_history(true, { 0, { REMOVE, 0, YES, 1, 6 } }, { 1, { ADD, 0, YES, 2, 5 } });
    scene("one of two adds unless present");
    check_history(true, { 0, { ADD_UNLESS_PRESENT, 0, NO, 1, 4 } },
                  { 1, { ADD_UNLESS_PRESENT, 0, YES, 2, 3 } });
    scene("refused, and nothing changed");
    check_history(true, { 0, { ADD, 0, REFUSED, 1, 2 } }, { 1, { CONTAINS, 0, NO, 3, 4 } });
}

TEST(test_not_explained)
{
    scene("denied after it was added");
    check_history(false, { 0, { ADD, 0, YES, 1, 2 } }, { 1, { CONTAINS, 0, NO, 3, 4 } });
    scene("found, then denied, while it is added");
    check_history(false, { 0, { ADD, 0, YES, 1, 8 } }, { 1, { CONTAINS, 0, YES, 2, 3 } },
                  { 2, { CONTAINS, 0, NO, 4, 5 } });
    scene("found before it is added");
    check_history(false, { 0, { CONTAINS, 0, YES, 1, 2 } }, { 1, { ADD, 0, YES, 3, 4 } });
    scene("one copy is removed twice");
    check_history(false, { 0, { ADD, 0, YES, 1, 2 } }, { 1, { REMOVE, 0, YES, 3, 6 } },
                  { 2, { REMOVE, 0, YES, 4, 5 } });
    scene("new to two");
    check_history(false, { 0, { ADD_UNLESS_PRESENT, 0, NO, 1, 4 } },
                  { 1, { ADD_UNLESS_PRESENT, 0, NO, 2, 3 } });
    scene("new to none");
    check_history(false, { 0, { ADD_UNLESS_PRESENT, 0, YES, 1, 4 } },
                  { 1, { ADD_UNLESS_PRESENT, 0, YES, 2, 3 } });
    scene("not there to be removed");
    check_history(false, { 0, { ADD, 0, YES, 1, 2 } }, { 1, { REMOVE, 0, NO, 3, 4 } });
    scene("found after it was removed");
    check_history(false, { 0, { ADD, 0, YES, 1, 2 } }, { 1, { REMOVE, 0, YES, 3, 4 } },
                  { 2, { CONTAINS, 0, YES, 5, 6 } });
    scene("refused, and there all the same");
    check_history(false, { 0, { ADD, 0, REFUSED, 1, 2 } }, { 1, { CONTAINS, 0, YES, 3, 4 } });
    scene("each denies what the other has added");
    check_history(false, { 0, { ADD, 0, YES, 1, 2 } }, { 0, { CONTAINS, 1, NO, 5, 6 } },
                  { 1, { ADD, 1, YES, 3, 4 } }, { 1, { CONTAINS, 0, NO, 7, 8 } });
}

TEST(test_end_not_explained)
{
    struct history h = { .count = { 1 }, .event = { { { ADD, 0, YES, 1, 2 } } } };
    expect(!history_is_linearizable(&h));
    h.after[0] = 2;
    expect(!history_is_linearizable(&h));
    h.after[0] = 1;
    expect(history_is_linearizable(&h));
    h.before[0] = 1;
    expect(!history_is_linearizable(&h));
}

/* ---- Recording --------------------------------------------------------------------------- */

enum { KEY_NBYTES = 8, ROUNDS_PER_FILTER = 100, CROWD_MAX = 100 };

struct scene_of_threads {
    perhaps_filter *f;
    struct history history;
    struct perhaps_keys keys;  /* HISTORY_KEYS keys without false positives; then the crowd */
    bool crowd[CROWD_MAX + 1]; /* which keys of the crowd are in; it keeps the filter full */
    size_t crowd_count;
    bool saturates;      /* the kind's counters do */
    atomic_ullong clock; /* gives each call and return its moment */
    atomic_uint arrived; /* threads at the beginning of a round, summed over all rounds */
    atomic_uint left;    /* threads at its end */
    unsigned round;      /* from 1 on; 0: the threads are to end */
    uint64_t seed;
    _Atomic(const char *) wrong; /* what a thread complains about; NULL: nothing */
};

struct actor {
    struct scene_of_threads *scene;
    unsigned number;
    pthread_t thread;
};

static const void *crowd_key(const struct scene_of_threads *s, size_t index)
{
    return key_at(&s->keys, HISTORY_KEYS + index);
}

/* Adds a key of this thread's share of the crowd, or removes it and adds it again.  This moves
 * entries of other keys. */
static void stir(struct scene_of_threads *s, unsigned thread, struct rng *rng)
{
    size_t index = rng_below(rng, s->crowd_count / HISTORY_THREADS) * HISTORY_THREADS + thread;
    const void *key = crowd_key(s, index);
    if (!s->crowd[index]) {
        s->crowd[index] = !perhaps_add(s->f, key, KEY_NBYTES);
        return;
    }
    if (!perhaps_contains(s->f, key, KEY_NBYTES))
        s->wrong = "one of the crowd is denied";
    if (perhaps_remove(s->f, key, KEY_NBYTES))
        s->wrong = "one of the crowd is not removed";
    s->crowd[index] = !perhaps_add(s->f, key, KEY_NBYTES);
}

static enum history_answer perform(perhaps_filter *f, enum history_op op, const void *key)
{
    bool was_present;
    switch (op) {
    case ADD:
        return perhaps_add(f, key, KEY_NBYTES) ? REFUSED : YES;
    case ADD_UNLESS_PRESENT:
        if (perhaps_add_unless_present(f, key, KEY_NBYTES, &was_present))
            return REFUSED;
        return was_present ? YES : NO;
    case REMOVE:
        return perhaps_remove(f, key, KEY_NBYTES) ? NO : YES;
    case CONTAINS:
        return perhaps_contains(f, key, KEY_NBYTES) ? YES : NO;
    }
    return NO;
}

/* Does the operations of one thread in a round.  Every third round has one key only, since
 * operations on the same key disturb each other most. */
static void act(struct scene_of_threads *s, unsigned thread, struct rng *rng)
{
    static const enum history_op ops[] = {
        ADD,    ADD_UNLESS_PRESENT, ADD_UNLESS_PRESENT, REMOVE,
        REMOVE, CONTAINS,           CONTAINS,           CONTAINS
    };
    struct history *h = &s->history;
    unsigned nkeys = (unsigned)(s->round % HISTORY_KEYS) + 1;
    for (unsigned i = 0; i < h->count[thread]; i++) {
        struct history_event *e = &h->event[thread][i];
        e->op = ops[rng_below(rng, sizeof ops / sizeof *ops)];
        e->key = (unsigned)rng_below(rng, nkeys);
        const void *key = key_at(&s->keys, e->key);
        if (rng_below(rng, 2))
            stir(s, thread, rng);
        e->invoked = atomic_fetch_add(&s->clock, 1);
        e->answer = perform(s->f, e->op, key);
        e->returned = atomic_fetch_add(&s->clock, 1);
    }
}

/* Waits in a loop, so that all threads go on at the same moment; gives way to other threads
 * only after a while. */
static void wait_for(atomic_uint *count, unsigned wanted)
{
    for (unsigned tries = 0; atomic_load(count) < wanted; tries++)
        if (tries > 200)
            sched_yield();
}

static void *play(void *context)
{
    struct actor *a = context;
    struct scene_of_threads *s = a->scene;
    struct rng rng = { mix64(s->seed + a->number) };
    for (unsigned round = 1;; round++) {
        atomic_fetch_add(&s->arrived, 1);
        wait_for(&s->arrived, round * (HISTORY_THREADS + 1));
        if (!s->round)
            return NULL;
        act(s, a->number, &rng);
        atomic_fetch_add(&s->left, 1);
        wait_for(&s->left, round * (HISTORY_THREADS + 1));
    }
}

/* ---- Setting ----------------------------------------------------------------------------- */

static perhaps_filter *filter_like(const struct perhaps_kind *kind, uint64_t capacity,
                                   uint64_t seed)
{
    /* With an fpr of 0.9 a filter takes keys until it has no room.  Where keys share counters,
     * the rate is so low that no key is taken for another. */
    double fpr = saturates(kind) ? 1e-9 : 0.9;
    return shared_filter(kind, capacity, fpr, seed);
}

/* Returns whether the filter takes this key for another one: the checker would then see an
 * answer that no order explains. */
static bool has_twin(perhaps_filter *empty, const struct perhaps_keys *keys, size_t key)
{
    bool twin = false;
    for (size_t other = 0; other < keys->count && !twin; other++) {
        if (other == key)
            continue;
        expect_success(perhaps_add(empty, key_at(keys, other), KEY_NBYTES));
        twin = perhaps_contains(empty, key_at(keys, key), KEY_NBYTES);
        expect_success(perhaps_clear(empty));
    }
    return twin;
}

static bool have_twins(const struct perhaps_kind *kind, uint64_t capacity,
                       const struct scene_of_threads *s)
{
    perhaps_filter *empty = filter_like(kind, capacity, s->seed);
    bool twins = false;
    for (size_t key = 0; key < HISTORY_KEYS; key++)
        twins |= has_twin(empty, &s->keys, key);
    perhaps_free(empty);
    return twins;
}

/* Makes a filter that is so full that it refuses keys.  The keys of the histories are drawn
 * until none of them is taken for another key. */
static void set_scene(struct scene_of_threads *s, const struct perhaps_kind *kind,
                      struct rng *rng)
{
    uint64_t capacity;
    memset(s, 0, sizeof *s);
    do {
        capacity = (saturates(kind) ? HISTORY_THREADS : 1) + rng_below(rng, 24);
        s->seed = 1 + rng_next(rng) / 2;
        free_keys(&s->keys);
        s->keys = make_keys(RANDOM_KEYS, rng_next(rng), 0, HISTORY_KEYS + CROWD_MAX);
    } while (have_twins(kind, capacity, s));
    s->f = filter_like(kind, capacity, s->seed);
    s->saturates = saturates(kind);
    while (s->crowd_count < CROWD_MAX &&
           !perhaps_add(s->f, crowd_key(s, s->crowd_count), KEY_NBYTES))
        s->crowd[s->crowd_count++] = true;
    expect(s->crowd_count >= HISTORY_THREADS);
    s->crowd_count -= s->crowd_count % HISTORY_THREADS; /* an equal share for each thread */
}

/* Removes copies until each key has so few that its counters cannot saturate in a round. */
static void drop_copies(struct scene_of_threads *s)
{
    enum { COPIES_LEFT = 2 };
    for (size_t key = 0; key < HISTORY_KEYS; key++)
        while (count_of(s->f, key_at(&s->keys, key), KEY_NBYTES) > COPIES_LEFT)
            expect_success(perhaps_remove(s->f, key_at(&s->keys, key), KEY_NBYTES));
}

/* Removes up to three keys of the crowd, so that some adds succeed. */
static void make_room(struct scene_of_threads *s, struct rng *rng)
{
    for (unsigned i = 0; i < 3; i++) {
        size_t index = rng_below(rng, s->crowd_count);
        if (s->crowd[index])
            expect_success(perhaps_remove(s->f, crowd_key(s, index), KEY_NBYTES));
        s->crowd[index] = false;
    }
}

static void count_copies(const struct scene_of_threads *s, unsigned copies[])
{
    for (size_t key = 0; key < HISTORY_KEYS; key++)
        copies[key] = (unsigned)count_of(s->f, key_at(&s->keys, key), KEY_NBYTES);
}

static void check_crowd(const struct scene_of_threads *s)
{
    expect(!s->wrong);
    for (size_t i = 0; i < s->crowd_count; i++)
        expect(!s->crowd[i] || perhaps_contains(s->f, crowd_key(s, i), KEY_NBYTES));
}

static const char *text_of(const struct history *h)
{
    static const char *const op[] = { "add", "add unless present", "remove", "contains" };
    static const char *const answer[] = { "no", "yes", "refused" };
    static char text[2000];
    size_t at = 0;
    for (unsigned t = 0; t < HISTORY_THREADS; t++)
        for (unsigned i = 0; i < h->count[t]; i++) {
            const struct history_event *e = &h->event[t][i];
            at += (size_t)snprintf(
                text + at, sizeof text - at, "thread %u, %llu-%llu: %s %u: %s\n", t,
                (unsigned long long)e->invoked, (unsigned long long)e->returned, op[e->op],
                e->key, answer[e->answer]);
        }
    for (unsigned k = 0; k < HISTORY_KEYS; k++)
        at += (size_t)snprintf(text + at, sizeof text - at, "key %u: %u copies, then %u\n", k,
                               h->before[k], h->after[k]);
    return text;
}

/* Returns how many events overlapped with one of another thread.  If none did, nothing was
 * tested. */
static unsigned overlaps(const struct history *h)
{
    unsigned n = 0;
    for (unsigned t = 0; t < HISTORY_THREADS; t++)
        for (unsigned i = 0; i < h->count[t]; i++) {
            bool overlaps = false;
            for (unsigned u = 0; u < HISTORY_THREADS; u++)
                for (unsigned j = 0; j < h->count[u] && u != t; j++)
                    overlaps |= h->event[t][i].invoked < h->event[u][j].returned &&
                                h->event[u][j].invoked < h->event[t][i].returned;
            n += overlaps;
        }
    return n;
}

/* Lets the threads play one round and checks its history.  Returns overlaps(). */
static unsigned play_round(struct scene_of_threads *s, unsigned round, struct rng *rng)
{
    struct history *h = &s->history;
    make_room(s, rng);
    if (s->saturates)
        drop_copies(s);
    for (unsigned t = 0; t < HISTORY_THREADS; t++)
        h->count[t] = HISTORY_OPS - (unsigned)rng_below(rng, 2);
    count_copies(s, h->before);
    s->round = round;
    atomic_fetch_add(&s->arrived, 1);
    wait_for(&s->arrived, round * (HISTORY_THREADS + 1));
    atomic_fetch_add(&s->left, 1);
    wait_for(&s->left, round * (HISTORY_THREADS + 1));
    count_copies(s, h->after);
    if (!history_is_linearizable(h)) {
        fail_msg("no order explains [%s]\n%s", scene_text(), text_of(h));
        abort();
    }
    check_crowd(s);
    return overlaps(h);
}

static unsigned play_scene(const struct perhaps_kind *kind, struct rng *rng)
{
    static struct scene_of_threads s;
    struct actor actors[HISTORY_THREADS];
    unsigned overlapping = 0;
    set_scene(&s, kind, rng);
    for (unsigned t = 0; t < HISTORY_THREADS; t++) {
        actors[t] = (struct actor){ .scene = &s, .number = t };
        expect(!pthread_create(&actors[t].thread, NULL, play, &actors[t]));
    }
    for (unsigned round = 1; round <= ROUNDS_PER_FILTER; round++)
        overlapping += play_round(&s, round, rng);
    s.round = 0;
    atomic_fetch_add(&s.arrived, 1);
    for (unsigned t = 0; t < HISTORY_THREADS; t++)
        expect(!pthread_join(actors[t].thread, NULL));
    perhaps_free(s.f);
    free_keys(&s.keys);
    return overlapping;
}

TEST(test_histories)
{
    enum { SCENES = SANITIZED ? 30 : 500 };
    struct rng rng = rng_for(__func__);
    unsigned kinds = 0, kinds_at_once = 0;
    EACH_KIND(kind, removes) {
        if (!takes_threads(kind))
            continue;
        unsigned overlapping = 0;
        for (unsigned number = 0; number < SCENES; number++) {
            scene("%s, scene %u", kind->name, number);
            overlapping += play_scene(kind, &rng);
        }
        print_message("%s: %u histories, %u operations at once with another\n", kind->name,
                      SCENES * ROUNDS_PER_FILTER, overlapping);
        kinds_at_once += overlapping > 0;
        kinds++;
    }
    if (kinds_at_once < kinds) /* on a busy machine no two threads may have run at once */
        skip();
}
