/* grow_pause.c - measures how long single calls take while a filter grows.
 *
 * The machine interrupts every program now and then, for longer than any call takes.  Two
 * things tell its pauses from those of the filter:
 *
 * - A bare loop writes a line of memory for each key, and takes as long for a call as the
 *   filter does on average.  So it sees as many interruptions and first touches of new pages,
 *   and what the filter shows beyond that is its own.
 * - The filter grows alike in every run.  What it does itself takes long at the same keys in
 *   each run; interruptions come at other keys.  So the least of all runs counts for each
 *   group of calls. */
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

#include "grow.h"

/* A call that takes longer than LONG_CALL_NS is a long one.  64 doublings of four bins each
 * hold any time.  Times are compared between runs in groups of GROUP_KEYS calls, which takes a
 * quarter of a byte for a key. */
enum { LONG_CALL_NS = 100000, BINS = 4 * 64, GROUP_KEYS = 16 };

/* The times of all calls, over all runs: one stopwatch for the filter, one for the bare loop.
 * stopwatch_open() makes it and stopwatch_close() releases it. */
struct stopwatch {
    const struct growth *growth;
    struct key_buffer buffer;
    uint64_t bins[BINS]; /* how many calls took so long */
    uint64_t calls, long_calls, longest_ns;
    uint64_t short_ns; /* all calls but the long ones together */
    uint32_t *groups;  /* the longest call of each group, in the run where that was least */
    uint64_t ngroups;
    uint32_t group_ns; /* the longest call yet of the current group */
    uint64_t last;     /* the clock after the last call */
};

static uint64_t ns_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* ---- Bins: four to each doubling --------------------------------------------------------- */

static unsigned bin_of(uint64_t ns)
{
    if (ns < 4)
        return (unsigned)ns;
    unsigned top = 63 - (unsigned)__builtin_clzll(ns);
    return 4 * (top - 1) + (unsigned)(ns >> (top - 2) & 3);
}

/* Returns what all times of the bin are below. */
static double bin_end(unsigned bin)
{
    if (bin < 4)
        return bin + 1;
    return (double)(4 + bin % 4 + 1) * (double)(UINT64_C(1) << (bin / 4 - 1));
}

/* Returns a time that all calls but the share 'beyond' stay below. */
static double quantile(const struct stopwatch *s, double beyond)
{
    uint64_t left = (uint64_t)(beyond * (double)s->calls), seen = 0;
    for (unsigned bin = BINS; bin-- > 0;) {
        seen += s->bins[bin];
        if (seen > left)
            return bin_end(bin);
    }
    return 0;
}

/* ---- Calls ------------------------------------------------------------------------------- */

/* Notes the time of the call for this key.  The clock is read once a call: the end of one call
 * is the start of the next. */
static void note(struct stopwatch *s, uint64_t key)
{
    uint64_t now = ns_now(), ns = now - s->last;
    s->last = now;
    s->bins[bin_of(ns)]++;
    s->long_calls += ns > LONG_CALL_NS;
    s->short_ns += ns > LONG_CALL_NS ? 0 : ns;
    if (ns > s->longest_ns)
        s->longest_ns = ns;
    if (key % GROUP_KEYS == 0)
        s->group_ns = 0;
    if (ns > s->group_ns)
        s->group_ns = ns < UINT32_MAX ? (uint32_t)ns : UINT32_MAX;
    uint32_t *least = &s->groups[key / GROUP_KEYS];
    if ((key + 1) % GROUP_KEYS == 0 && s->group_ns < *least)
        *least = s->group_ns;
}

/* Adds a piece of keys, one a call.  Making the keys is not timed.  Returns NULL, or what is
 * wrong. */
static const char *add_piece(struct stopwatch *s, perhaps_filter *filter, uint64_t first,
                             size_t count)
{
    struct perhaps_keys keys = keys_added(&s->buffer, first, count);
    const uint8_t *key = keys.packed;
    s->last = ns_now();
    for (size_t i = 0; i < count; i++, key += keys.key_nbytes) {
        int error = perhaps_add(filter, key, keys.key_nbytes);
        if (error)
            return perhaps_strerror(error);
        note(s, first + i);
    }
    s->calls += count;
    return NULL;
}

/* Writes a line of memory for each key; each call takes 'pace' ns at least.  The last key
 * reaches the end of as much memory as the filter has, so that new pages come at the same
 * pace. */
static void write_piece(struct stopwatch *s, volatile uint64_t *words, uint64_t first,
                        size_t count, uint64_t pace)
{
    const double lines_a_key = (double)s->growth->nbytes / 64 / (double)s->growth->keys;
    s->last = ns_now();
    for (size_t i = 0; i < count; i++) {
        uint64_t line = (uint64_t)((double)(first + i) * lines_a_key);
        words[line * (64 / sizeof *words)] = i;
        while (ns_now() - s->last < pace)
            continue;
        note(s, first + i);
    }
    s->calls += count;
}

/* ---- Runs -------------------------------------------------------------------------------- */

static size_t piece_at(const struct stopwatch *s, uint64_t first)
{
    return piece_of(s->growth->keys - first, s->growth->settings->piece);
}

/* Lets a new filter grow once, and sets *huge to whether most of it lies on huge pages in the
 * end.  Returns NULL, or what is wrong. */
static const char *run_filter(struct stopwatch *s, bool *huge)
{
    perhaps_filter *filter;
    const char *problem = grow_create(s->growth, NULL, &filter);
    if (problem)
        return problem;
    for (uint64_t first = 0; first < s->growth->keys && !problem; first += piece_at(s, first)) {
        problem = add_piece(s, filter, first, piece_at(s, first));
        grow_progress(s->growth, "called", first);
    }
    *huge = 2 * perhaps_huge_nbytes(filter) > perhaps_memory_nbytes(filter);
    perhaps_free(filter);
    return problem;
}

/* Lets the bare loop run once, in new memory on pages like those of the filter: a first touch
 * of a huge page takes longer.  Returns NULL, or what is wrong. */
static const char *run_bare(struct stopwatch *s, bool huge, uint64_t pace)
{
    size_t nbytes = (size_t)s->growth->nbytes + 64;
    void *words =
        mmap(NULL, nbytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (words == MAP_FAILED)
        return "out of memory";
    madvise(words, nbytes, huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
    for (uint64_t first = 0; first < s->growth->keys; first += piece_at(s, first)) {
        /* As in add_piece(), keys are made between pieces, so that the cache is left alike. */
        (void)keys_added(&s->buffer, first, piece_at(s, first));
        write_piece(s, words, first, piece_at(s, first), pace);
    }
    munmap(words, nbytes);
    return NULL;
}

static json_t *json_pauses(const struct stopwatch *s)
{
    uint64_t again_ns = 0, again_at = 0;
    json_t *pauses =
        json_pack("{s:f, s:f, s:f, s:I, s:I, s:I}", "median_ns", quantile(s, 0.5),
                  "all_but_1e-4_ns", quantile(s, 1e-4), "all_but_1e-5_ns", quantile(s, 1e-5),
                  "longest_ns", (json_int_t)s->longest_ns, "calls", (json_int_t)s->calls,
                  "long_calls", (json_int_t)s->long_calls);
    for (uint64_t i = 0; i < s->ngroups; i++)
        if (s->groups[i] != UINT32_MAX && s->groups[i] > again_ns) {
            again_ns = s->groups[i];
            again_at = i * GROUP_KEYS;
        }
    if (s->growth->settings->repeat.at[0] < 2) /* nothing came again */
        return pauses;
    json_object_set_new(pauses, "again_ns", json_integer((json_int_t)again_ns));
    json_object_set_new(pauses, "again_at_key", json_integer((json_int_t)again_at));
    return pauses;
}

/* No group was timed yet: UINT32_MAX, which any time is below. */
static void stopwatch_open(struct stopwatch *s, const struct growth *growth)
{
    *s = (struct stopwatch){ .growth = growth, .ngroups = growth->keys / GROUP_KEYS };
    s->groups = allocate_zeroed(s->ngroups + 1, sizeof *s->groups);
    s->buffer =
        key_buffer_open((size_t)growth->settings->key_nbytes.at[0], growth->settings->piece);
    for (uint64_t i = 0; i <= s->ngroups; i++)
        s->groups[i] = UINT32_MAX;
}

static void stopwatch_close(struct stopwatch *s)
{
    key_buffer_close(&s->buffer);
    free(s->groups);
}

/* Filter and bare loop take turns, so that both see the same machine. */
const char *grow_pause(struct growth *growth)
{
    struct stopwatch own, bare;
    bool huge = false;
    const char *problem = NULL;
    stopwatch_open(&own, growth);
    stopwatch_open(&bare, growth);
    for (uint64_t run = 0; run < (uint64_t)growth->settings->repeat.at[0] && !problem; run++) {
        problem = run_filter(&own, &huge);
        if (!problem)
            problem = run_bare(&bare, huge, own.short_ns / own.calls);
    }
    json_object_set_new(growth->row, "pauses", json_pauses(&own));
    json_object_set_new(growth->row, "bare_pauses", json_pauses(&bare));
    stopwatch_close(&own);
    stopwatch_close(&bare);
    return problem;
}
