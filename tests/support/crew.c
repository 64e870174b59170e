/* crew.c - threads that add, remove and ask on one shared filter: see crew.h.
 *
 * held[key] is one number: the copies that are certainly in (COPIES_MASK), and above them a
 * version that each removal raises.  Only the owner of a key writes it.  A reader that finds
 * the same version before and after its query knows that no removal began meanwhile. */
#include "crew.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>

/* A writer stores up to COPIES_MOST copies of a key.  FEW, SOME and MANY limit the sizes of
 * batches; MANY is several times what the library takes at once (BATCH_MOST). */
enum { COPIES_MOST = 2, FEW = 5, SOME = 70, MANY = 2500, COPIES_MASK = 15, VERSION_ONE = 16 };

struct member {
    struct crew *crew;
    struct rng rng;
    size_t first;        /* the first key of a writer */
    size_t count;        /* how many keys it owns */
    size_t added;        /* without churn: how many of them it has tried to add */
    bool shrinking;      /* it removes more than it adds, until little is left */
    uint64_t copies;     /* of its keys that are in */
    uint64_t refused;    /* its adds that were refused */
    uint64_t operations; /* keys that it added, removed or asked for */
    pthread_t thread;
};

/* Keeps the first complaint and stops all threads.  cmocka's checks may only run in the main
 * thread, so the threads cannot use expect(). */
static void complain(struct crew *c, const char *what, size_t key, long long detail)
{
    pthread_mutex_lock(&c->lock);
    if (!*c->complaint)
        snprintf(c->complaint, sizeof c->complaint, "%s: key %zu, %lld", what, key, detail);
    pthread_mutex_unlock(&c->lock);
    atomic_store(&c->failed, true);
}

static const void *key_of(const struct crew *c, size_t key)
{
    return key_at(&c->keys, key);
}

/* ---- What is certainly in ---------------------------------------------------------------- */

unsigned crew_copies(const struct crew *c, size_t key)
{
    return atomic_load_explicit(&c->held[key], memory_order_acquire) & COPIES_MASK;
}

/* To be called after the add has returned. */
static void note_added(struct crew *c, size_t key)
{
    uint32_t held = atomic_load_explicit(&c->held[key], memory_order_relaxed);
    atomic_store_explicit(&c->held[key], held + 1, memory_order_release);
}

/* To be called before the removal.  The fence pairs with that of read_again(): a reader that
 * has seen an effect of the removal also sees the new version. */
static void note_removal(struct crew *c, size_t key)
{
    uint32_t held = atomic_load_explicit(&c->held[key], memory_order_relaxed);
    atomic_store_explicit(&c->held[key], held - 1 + VERSION_ONE, memory_order_relaxed);
    atomic_thread_fence(memory_order_seq_cst);
}

static void read_held(const struct crew *c, size_t first, size_t count, uint32_t *held)
{
    for (size_t i = 0; i < count; i++)
        held[i] = atomic_load_explicit(&c->held[first + i], memory_order_acquire);
}

/* Sets held[i] to the number of copies that were in all the time since read_held(); 0 if a
 * removal began. */
static void read_again(const struct crew *c, size_t first, size_t count, uint32_t *held)
{
    atomic_thread_fence(memory_order_seq_cst);
    for (size_t i = 0; i < count; i++) {
        uint32_t now = atomic_load_explicit(&c->held[first + i], memory_order_relaxed);
        held[i] = held[i] / VERSION_ONE == now / VERSION_ONE ? held[i] & COPIES_MASK : 0;
    }
}

/* ---- Asking ------------------------------------------------------------------------------ */

static void ask_many(struct member *m, size_t first, size_t count)
{
    struct crew *c = m->crew;
    uint32_t held[MANY];
    bool found[MANY];
    struct perhaps_keys some = some_keys(&c->keys, first, count);
    read_held(c, first, count, held);
    size_t nfound = perhaps_contains_many(c->f, &some, found);
    read_again(c, first, count, held);
    for (size_t i = 0; i < count; i++) {
        nfound -= found[i];
        if (held[i] && !found[i])
            complain(c, "not found in a batch", first + i, held[i]);
    }
    if (nfound)
        complain(c, "answers and their sum differ", first, (long long)nfound);
}

static void ask_one(struct member *m, size_t key)
{
    struct crew *c = m->crew;
    uint32_t held;
    read_held(c, key, 1, &held);
    bool found = perhaps_contains(c->f, key_of(c, key), c->keys.key_nbytes);
    read_again(c, key, 1, &held);
    if (held && !found)
        complain(c, "not found", key, held);
}

static void count_one(struct member *m, size_t key)
{
    struct crew *c = m->crew;
    uint32_t held;
    uint64_t count;
    read_held(c, key, 1, &held);
    int error = perhaps_count(c->f, key_of(c, key), c->keys.key_nbytes, &count);
    read_again(c, key, 1, &held);
    if (!error && count < held)
        complain(c, "counted too low", key, (long long)count);
}

static void inspect(struct member *m)
{
    struct crew *c = m->crew;
    struct perhaps_stats stats = stats_of(c->f);
    if (!stats.shared || stats.load < 0 || stats.load > 1 || stats.fpr_now < 0 ||
        stats.fpr_now > 1)
        complain(c, "odd stats", 0, (long long)stats.keys);
}

/* Returns a batch size: mostly small, and sometimes more than the library takes at once. */
static size_t batch_size(struct member *m, size_t most)
{
    uint64_t die = rng_below(&m->rng, 64);
    size_t count = 1 + rng_below(&m->rng, die < 1 ? MANY : die < 32 ? SOME : FEW);
    return count < most ? count : most;
}

/* Asks for keys of any writer. */
static void ask(struct member *m)
{
    size_t first = rng_below(&m->rng, m->crew->keys.count);
    size_t count = batch_size(m, m->crew->keys.count - first);
    uint64_t die = rng_below(&m->rng, 64);
    m->operations += die < 16 ? count : 1;
    if (die < 16)
        ask_many(m, first, count);
    else if (die < 24)
        count_one(m, first);
    else
        ask_one(m, first);
    if (rng_below(&m->rng, 4096) == 0) /* rarely, since it takes long */
        inspect(m);
}

/* ---- Writing ----------------------------------------------------------------------------- */

static bool is_refused(int error)
{
    return error == PERHAPS_ERR_FULL || error == PERHAPS_ERR_COPIES;
}

/* Notes the keys that an add has put in.  Complains about an error other than a refusal, and
 * about a 'done' that does not fit the error. */
static void count_added(struct member *m, size_t first, size_t done, size_t count, int error)
{
    struct crew *c = m->crew;
    if (error ? !is_refused(error) || done >= count : done != count)
        complain(c, "strange end of an add", first + done, error);
    for (size_t i = 0; i < done; i++)
        note_added(c, first + i);
    m->copies += done;
    m->refused += error != 0;
    m->operations += done;
}

/* Adds keys in one of four ways: one key or a batch, unless present or not.  A filter that
 * churns stores copies, so there "unless present" is not used. */
static bool add_some(struct member *m, size_t first, size_t count)
{
    struct crew *c = m->crew;
    struct perhaps_keys some = some_keys(&c->keys, first, count);
    bool present[MANY], unless_present = !c->churn && rng_below(&m->rng, 2);
    size_t done;
    int error;
    if (count > 1) {
        error = unless_present ? perhaps_add_unless_present_many(c->f, &some, present, &done)
                               : perhaps_add_many(c->f, &some, &done);
    } else {
        const void *key = key_of(c, first);
        error = unless_present
                    ? perhaps_add_unless_present(c->f, key, c->keys.key_nbytes, present)
                    : perhaps_add(c->f, key, c->keys.key_nbytes);
        done = !error;
    }
    count_added(m, first, done, count, error);
    return !error;
}

static void remove_some(struct member *m, size_t first, size_t count)
{
    struct crew *c = m->crew;
    struct perhaps_keys some = some_keys(&c->keys, first, count);
    size_t nremoved = 0;
    int error;
    for (size_t i = 0; i < count; i++)
        note_removal(c, first + i);
    if (count > 1)
        error = perhaps_remove_many(c->f, &some, NULL, &nremoved, NULL);
    else
        error = perhaps_remove(c->f, key_of(c, first), c->keys.key_nbytes);
    if (error || (count > 1 && nremoved != count))
        complain(c, "not removed", first, count > 1 ? (long long)nremoved : error);
    m->copies -= count;
    m->operations += count;
}

/* Returns how many keys, from this one on, can be added (or removed) once more. */
static size_t run_of(const struct member *m, size_t first, size_t most, bool removal)
{
    size_t n = 0;
    for (; n < most; n++) {
        unsigned copies = crew_copies(m->crew, first + n);
        if (removal ? copies == 0 : copies >= COPIES_MOST)
            break;
    }
    return n;
}

/* Does one step of adding and removing.  A writer mostly adds until an add is refused or as
 * many copies are in as it has keys.  Then it mostly removes, for about 64 steps or until a
 * quarter is left: so the filter is crowded most of the time. */
static void churn(struct member *m)
{
    size_t offset = rng_below(&m->rng, m->count), first = m->first + offset;
    bool removal = rng_below(&m->rng, 8) < (m->shrinking ? 5 : 3);
    size_t count = run_of(m, first, batch_size(m, m->count - offset), removal);
    uint64_t before = m->refused;
    if (!count)
        return;
    if (removal)
        remove_some(m, first, count);
    else
        add_some(m, first, count);
    if (m->refused > before || m->copies >= m->count)
        m->shrinking = true;
    else if (m->copies < m->count / 4 || rng_below(&m->rng, 64) == 0)
        m->shrinking = false;
}

/* Adds the next keys of a writer that does not churn.  A key that is refused stays out. */
static void advance(struct member *m)
{
    size_t count = batch_size(m, m->count - m->added);
    uint64_t before = m->copies;
    bool all = add_some(m, m->first + m->added, count);
    m->added += all ? count : (size_t)(m->copies - before) + 1;
}

static bool has_work(const struct member *m, uint64_t step)
{
    return m->crew->churn ? step < m->crew->steps : m->added < m->count;
}

static void *write_filter(void *context)
{
    struct member *m = context;
    struct crew *c = m->crew;
    for (uint64_t step = 0; has_work(m, step) && !atomic_load(&c->failed); step++) {
        if (c->churn)
            churn(m);
        else
            advance(m);
        if (rng_below(&m->rng, 4) == 0)
            ask(m);
        if (m->added)
            ask_one(m, m->first + m->added - 1);
        if (rng_below(&m->rng, 256) == 0)
            sched_yield();
    }
    atomic_fetch_sub(&c->working, 1);
    return NULL;
}

static void *read_filter(void *context)
{
    struct member *m = context;
    struct crew *c = m->crew;
    while (atomic_load(&c->working) && !atomic_load(&c->failed))
        ask(m);
    return NULL;
}

/* ---- The run ----------------------------------------------------------------------------- */

/* Checks the filter after all threads have ended: every key that must be in is found, and the
 * statistics agree with what the threads did. */
static void check_end(struct crew *c)
{
    struct perhaps_stats stats = stats_of(c->f);
    for (size_t key = 0; key < c->keys.count; key++)
        if (crew_copies(c, key) && !perhaps_contains(c->f, key_of(c, key), c->keys.key_nbytes))
            complain(c, "lost", key, crew_copies(c, key));
    bool stores_copies = perhaps_count(c->f, key_of(c, 0), c->keys.key_nbytes,
                                       &(uint64_t){ 0 }) != PERHAPS_ERR_UNSUPPORTED;
    if (stores_copies && c->churn ? stats.keys != c->copies : stats.keys > c->copies)
        complain(c, "stats.keys is wrong", (size_t)c->copies, (long long)stats.keys);
    if (stats.failed_adds != c->refused)
        complain(c, "stats.failed_adds is wrong", (size_t)c->refused,
                 (long long)stats.failed_adds);
    if (stats.unmatched_removals)
        complain(c, "stats.unmatched_removals is wrong", 0,
                 (long long)stats.unmatched_removals);
}

static void start(struct member *m, struct crew *c, unsigned number)
{
    size_t share = c->keys.count / c->writers;
    *m = (struct member){ .crew = c, .rng = { mix64(c->seed + number) } };
    if (number < c->writers) {
        m->first = number * share;
        m->count = share;
    }
    if (pthread_create(&m->thread, NULL, number < c->writers ? write_filter : read_filter, m))
        abort();
}

bool crew_run(struct crew *c)
{
    enum { MEMBERS_MAX = 32 };
    struct member members[MEMBERS_MAX];
    unsigned n = c->writers + c->readers;
    c->held = calloc(c->keys.count, sizeof *c->held);
    if (!c->held || n > MEMBERS_MAX || pthread_mutex_init(&c->lock, NULL))
        abort();
    atomic_init(&c->working, c->writers);
    atomic_init(&c->failed, false);
    for (unsigned i = 0; i < n; i++)
        start(&members[i], c, i);
    for (unsigned i = 0; i < n; i++) {
        pthread_join(members[i].thread, NULL);
        c->copies += members[i].copies;
        c->refused += members[i].refused;
        c->operations += members[i].operations;
    }
    check_end(c);
    return !*c->complaint;
}

void crew_end(struct crew *c)
{
    free(c->held);
    c->held = NULL;
    pthread_mutex_destroy(&c->lock);
}
