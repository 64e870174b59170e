/* grow_pause.c - how long single calls take while a filter grows.
 *
 * The machine interrupts every program now and then, for longer than any call takes.  Who
 * writes a line of memory for each key, and takes as long for a call as the filter does on
 * average, sees as many interruptions, and first touches of new pages.  And the filter grows
 * alike in every run: what it does itself comes again at the same keys, what is done to it does
 * not. */
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

#include "grow.h"

/* A call that takes longer is one of the long ones. */
enum { LONG_CALL_NS = 100000, BINS = 4 * 64, GROUP_KEYS = 16 };

struct stopwatch {
    const struct growth *growth;
    struct key_buffer buffer;
    uint64_t bins[BINS];
    uint64_t calls, long_calls, longest_ns;
    uint64_t short_ns; /* all calls but the long ones */
    uint32_t *groups;  /* the longest of each GROUP_KEYS calls, where that was the least */
    uint64_t ngroups;
    uint32_t group_ns; /* of the group that is being called */
    uint64_t last;
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

/* What all in the bin are below. */
static double bin_end(unsigned bin)
{
    if (bin < 4)
        return bin + 1;
    return (double)(4 + bin % 4 + 1) * (double)(UINT64_C(1) << (bin / 4 - 1));
}

/* Below this are all but that share of the calls. */
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

/* 'pace': ns that a call takes at least. */
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

/* '*huge', whether most of the filter came to lie on huge pages. */
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

static const char *run_bare(struct stopwatch *s, bool huge, uint64_t pace)
{
    size_t nbytes = (size_t)s->growth->nbytes + 64;
    void *words =
        mmap(NULL, nbytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (words == MAP_FAILED)
        return "out of memory";
    madvise(words, nbytes, huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
    for (uint64_t first = 0; first < s->growth->keys; first += piece_at(s, first)) {
        (void)keys_added(&s->buffer, first, piece_at(s, first)); /* between pieces, the same */
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
