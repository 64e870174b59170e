/* race.c - runs rounds of one or more threads: calls of a contender, in turn with what memory
 * itself takes, which is accesses to random 64-byte lines and nothing else.
 *
 * Contender and yardstick go through the same run().  Each thread prepares its keys or offsets,
 * waits until all threads are ready, and then does the part that is timed.  So a thread that
 * starts late, or makes its keys slowly, costs no time that counts. */
#include <err.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "bench.h"

enum { LINE_WORDS = 64 / sizeof(uint64_t) };
#define HUGE_PAGE ((size_t)2 << 20)

/* What one thread works with.  Only this thread writes it during a round, and no two hands
 * share a pair of cache lines: some CPUs fetch lines in pairs, and threads would slow each
 * other down. */
struct hand {
    _Alignas(128) struct key_buffer buffer;
    uint64_t *offsets;         /* of lines, in words */
    struct perhaps_keys keys;  /* lie in 'buffer' */
    size_t answer;             /* what the contender's call returned */
    uint64_t sum;              /* of what was read, so that the compiler keeps the reads */
    double start, end;         /* of the timed part */
    const struct race *race;   /* the hands of a race point to it */
    const struct round *round; /* the one that runs */
    void (*prepare)(struct hand *hand), (*timed)(struct hand *hand);
    atomic_size_t *ready; /* how many threads have prepared */
    pthread_t thread;     /* of all hands but the first, which is the caller's */
};

/* ---- Times ------------------------------------------------------------------------------- */

/* Returns a lap, and makes room for it first if there is none. */
static struct lap *lap_of(struct timing *timing, size_t lap)
{
    while (lap >= timing->count) {
        size_t count = timing->count ? 2 * timing->count : 16;
        struct lap *laps = allocate_zeroed(count, sizeof *laps);
        if (timing->count)
            memcpy(laps, timing->laps, timing->count * sizeof *laps);
        free(timing->laps);
        *timing = (struct timing){ laps, count };
    }
    return &timing->laps[lap];
}

void timing_note(struct timing *timing, size_t lap, double seconds, uint64_t keys)
{
    struct lap *best = lap_of(timing, lap);
    if (best->seconds > 0 && best->seconds <= seconds)
        return;
    best->seconds = seconds;
    best->keys = keys;
}

/* The bare accesses keep a best time of their own: the best round of the contender and that of
 * the yardstick need not lie in the same pass. */
static void note_bare(struct timing *timing, size_t lap, double seconds, uint64_t lines)
{
    struct lap *best = lap_of(timing, lap);
    if (best->bare_seconds <= 0 || seconds < best->bare_seconds)
        best->bare_seconds = seconds;
    best->lines = lines;
}

struct speed timing_speed(const struct timing *timing, size_t from)
{
    double seconds = 0, bare_seconds = 0, keys = 0, lines = 0;
    for (size_t i = from; i < timing->count; i++) {
        const struct lap *lap = &timing->laps[i];
        seconds += lap->seconds;
        bare_seconds += lap->bare_seconds;
        keys += (double)lap->keys;
        lines += (double)lap->lines;
    }
    return (struct speed){ keys > 0 ? 1e9 * seconds / keys : 0,
                           lines > 0 ? 1e9 * bare_seconds / lines : 0 };
}

void timing_close(struct timing *timing)
{
    free(timing->laps);
}

/* ---- Threads ----------------------------------------------------------------------------- */

/* Waits until all threads are ready, so that they begin together what is timed.  It spins,
 * because waking up a thread takes longer than some pieces do.  With more threads than
 * processors, spinning would keep away the threads it waits for; so it lets others run after
 * PATIENCE turns. */
static void wait_for_all(const struct hand *hand)
{
    enum { PATIENCE = 1 << 14 };
    atomic_fetch_add(hand->ready, 1);
    for (unsigned turns = 0; atomic_load(hand->ready) < hand->race->nthreads; turns++)
        if (turns >= PATIENCE)
            sched_yield();
}

/* What each thread does in a round. */
static void *take_part(void *argument)
{
    struct hand *hand = argument;
    hand->prepare(hand);
    wait_for_all(hand);
    hand->start = seconds_now();
    hand->timed(hand);
    hand->end = seconds_now();
    return NULL;
}

/* Lets all threads do one round; the caller is one of them.  Returns the seconds from the start
 * of the first thread to the end of the last. */
static double run(struct race *race, const struct round *round,
                  void (*prepare)(struct hand *hand), void (*timed)(struct hand *hand))
{
    atomic_size_t ready = 0;
    struct hand *first = race->hands;
    for (struct hand *hand = first; hand < first + race->nthreads; hand++) {
        hand->round = round;
        hand->prepare = prepare;
        hand->timed = timed;
        hand->ready = &ready;
        if (hand > first && pthread_create(&hand->thread, NULL, take_part, hand))
            errx(2, "no thread can be made");
    }
    take_part(first);
    double start = first->start, end = first->end;
    for (struct hand *hand = first + 1; hand < first + race->nthreads; hand++) {
        pthread_join(hand->thread, NULL);
        start = hand->start < start ? hand->start : start;
        end = hand->end > end ? hand->end : end;
    }
    return end - start;
}

/* ---- The yardstick ----------------------------------------------------------------------- */

static size_t number_of(const struct hand *hand)
{
    return (size_t)(hand - hand->race->hands);
}

/* Chooses random lines.  It maps 32 random bits to a line by a multiplication, which is faster
 * than a remainder and right for fewer than 2^32 lines (256 GiB). */
static void bare_prepare(struct hand *hand)
{
    const struct race *race = hand->race;
    uint64_t nlines = race->bare_nbytes / 64 + 1;
    uint64_t first = race->aimed + number_of(hand) * race->piece;
    for (size_t i = 0; i < race->piece; i++)
        hand->offsets[i] = ((random64(first + i) >> 32) * nlines >> 32) * LINE_WORDS;
}

/* Reads a word, or reads and writes it.  For the CPU these are plain moves.  The compiler must
 * know them as atomic, since several threads may touch the same word. */
static inline uint64_t touch(uint64_t *word, bool writes, uint64_t by)
{
    uint64_t is = __atomic_load_n(word, __ATOMIC_RELAXED);
    if (writes)
        __atomic_store_n(word, is + by, __ATOMIC_RELAXED);
    return writes ? 0 : is;
}

/* Touches all lines: reads them, or reads and writes them.  Without 'ring' it is a plain loop,
 * whose accesses the CPU overlaps as far as it can.  With 'ring' it first prefetches RING
 * lines, then one more for each that it touches; the last RING lines need no prefetch.  So no
 * branch in the loop depends on how far it came.  It is inlined by force, so that there is a
 * loop for each of the four cases.  Returns a sum over what was read. */
static inline __attribute__((always_inline)) uint64_t
touch_all(uint64_t *words, const uint64_t *offsets, size_t count, bool writes, bool ring)
{
    size_t i = 0, ahead = !ring ? 0 : count < RING ? count : RING;
    uint64_t sum = 0;
    for (; i < ahead; i++)
        __builtin_prefetch(&words[offsets[i]], 0, 3);
    for (i = 0; ring && i < count - ahead; i++) {
        if (writes) /* not as an argument: clang wants a constant there */
            __builtin_prefetch(&words[offsets[i + RING]], 1, 3);
        else
            __builtin_prefetch(&words[offsets[i + RING]], 0, 3);
        sum += touch(&words[offsets[i]], writes, i);
    }
    for (; i < count; i++)
        sum += touch(&words[offsets[i]], writes, i);
    return sum;
}

/* Touches lines as a filter could at best: in a ring beside batched calls, else in a plain
 * loop. */
static void bare_timed(struct hand *hand)
{
    const struct round *round = hand->round;
    const bool writes = round->operation == ADD || round->operation == REMOVE;
    const bool ring = round->calls == BATCHED;
    uint64_t *words = hand->race->words;
    const uint64_t *offsets = hand->offsets;
    const size_t count = hand->race->piece;
    hand->sum += writes ? ring ? touch_all(words, offsets, count, true, true)
                               : touch_all(words, offsets, count, true, false)
                 : ring ? touch_all(words, offsets, count, false, true)
                        : touch_all(words, offsets, count, false, false);
}

/* ---- The keys ---------------------------------------------------------------------------- */

/* Returns how many threads have keys in a round.  Where several threads cannot add, only the
 * first one adds. */
static size_t hands_in(const struct race *race, enum operation operation)
{
    return operation != ADD || race->contender->can_share ? race->nthreads : 1;
}

size_t race_keys(const struct race *race, enum operation operation)
{
    return hands_in(race, operation) * race->piece;
}

/* Returns how many keys this thread has, when 'first' is the number of its first key. */
static size_t count_keys(const struct hand *hand, uint64_t first)
{
    const struct round *round = hand->round;
    size_t piece = hand->race->piece;
    if (number_of(hand) >= hands_in(hand->race, round->operation) || first >= round->end)
        return 0;
    return piece_of(round->end - first, piece);
}

/* Makes the keys of this thread: the threads of a round have consecutive numbers. */
static void keys_prepare(struct hand *hand)
{
    const struct race *race = hand->race;
    uint64_t first = hand->round->first + number_of(hand) * race->piece;
    size_t count = count_keys(hand, first);
    if (hand->round->operation == ASK_ABSENT)
        hand->keys = keys_absent(&hand->buffer, first, count);
    else if (hand->round->operation == ASK_PRESENT)
        hand->keys = keys_present(&hand->buffer, first, count, race->added);
    else
        hand->keys = keys_added(&hand->buffer, first, count);
}

static void keys_timed(struct hand *hand)
{
    const struct contender *contender = hand->race->contender;
    const struct round *round = hand->round;
    contender_call *call = round->operation == ADD      ? contender->add[round->calls]
                           : round->operation == REMOVE ? contender->remove
                                                        : contender->ask[round->calls];
    hand->answer = hand->keys.count ? call(hand->race->filter, &hand->keys) : 0;
}

/* The yardstick touches as many lines as the round could have keys, even if the round has
 * fewer: if it touched only a few, it would find them in the cache. */
size_t race_round(struct race *race, const struct round *round, struct timing *timing,
                  size_t lap)
{
    size_t answer = 0, lines = race->nthreads * race->piece;
    uint64_t keys = 0;
    if (timing && race->bare_nbytes) {
        note_bare(timing, lap, run(race, round, bare_prepare, bare_timed), lines);
        race->aimed += lines;
    }
    double seconds = run(race, round, keys_prepare, keys_timed);
    for (size_t i = 0; i < race->nthreads; i++) {
        if (race->hands[i].answer == SIZE_MAX)
            return SIZE_MAX;
        answer += race->hands[i].answer;
        keys += race->hands[i].keys.count;
    }
    if (race->contender->seconds)
        seconds = race->contender->seconds(race->filter);
    if (timing)
        timing_note(timing, lap, seconds, keys);
    return answer;
}

/* ---- All of it --------------------------------------------------------------------------- */

/* Makes the memory of the yardstick.  It lies on huge pages if the system has any, so that few
 * accesses miss the TLB.  Every line is touched, so that no page fault is timed. */
static uint64_t *make_lines(uint64_t nbytes)
{
    size_t size = ((size_t)nbytes / HUGE_PAGE + 1) * HUGE_PAGE;
    uint64_t *words = aligned_alloc(HUGE_PAGE, size);
    if (!words)
        errx(2, "no memory for the bare accesses");
    madvise(words, size, MADV_HUGEPAGE);
    for (size_t i = 0; i < size / sizeof *words; i += LINE_WORDS)
        words[i] = i;
    return words;
}

void race_open(struct race *race, size_t nthreads, const struct settings *settings,
               uint64_t bare_nbytes)
{
    race->nthreads = nthreads;
    race->piece = settings->piece;
    race->bare_nbytes = bare_nbytes;
    race->words = make_lines(bare_nbytes);
    race->hands = aligned_alloc(_Alignof(struct hand), nthreads * sizeof *race->hands);
    if (!race->hands)
        errx(2, "out of memory");
    for (struct hand *hand = race->hands; hand < race->hands + nthreads; hand++)
        *hand = (struct hand){
            .buffer = race->nintegers
                          ? key_buffer_of_integers(race->nintegers, race->piece)
                          : key_buffer_open((size_t)settings->key_nbytes.at[0], race->piece),
            .offsets = allocate_zeroed(race->piece, sizeof *hand->offsets),
            .race = race,
        };
}

void race_close(struct race *race)
{
    for (size_t i = 0; i < race->nthreads; i++) {
        key_buffer_close(&race->hands[i].buffer);
        free(race->hands[i].offsets);
    }
    free(race->hands);
    free(race->words);
}
