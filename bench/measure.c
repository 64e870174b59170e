/* measure.c - one contender at one task.
 *
 * Each pass is repeated; the best time of each of its pieces counts, and so for the yardstick,
 * which has a turn before each piece. */
#include <stdlib.h>

#include "bench.h"

struct run {
    const struct contender *contender;
    const struct task *task;
    struct result *result;
    void *filter;
    struct yardstick yardstick;
    struct key_buffer buffer;
    struct timing timing[CALLS][OPERATIONS];
    struct timing bare[CALLS][OPERATIONS];
};

/* Deals with the keys, piece by piece in turn with the yardstick; 'first' is the number of the
 * first piece.  Returns how many keys were added, or found. */
static size_t work(struct run *run, enum operation operation, enum calls calls,
                   const struct perhaps_keys *keys, size_t first)
{
    const struct contender *contender = run->contender;
    size_t count = 0;
    for (size_t at = 0; at < keys->count; at += PIECE) {
        size_t number = first + at / PIECE;
        struct perhaps_keys piece = keys_slice(keys, at, PIECE);
        timing_note(&run->bare[calls][operation], number,
                    yardstick_piece(&run->yardstick, operation, calls, number));
        double start = seconds_now();
        count += operation == ADD ? contender->add[calls](run->filter, &piece)
                                  : contender->ask[calls](run->filter, &piece);
        timing_note(&run->timing[calls][operation], number, seconds_now() - start);
    }
    return count;
}

/* ---- Adding: from empty to full -------------------------------------------------------- */

/* Single calls take minutes on a huge filter: from this number of keys on they add, and are
 * timed for, every SAMPLE-th stretch only. */
static const uint64_t sample_from = 1 << 28;
enum { SAMPLE = 8 };

static bool is_left_out(const struct run *run, enum calls calls, uint64_t at)
{
    return calls == SINGLE && run->contender->add[BATCHED] &&
           run->result->keys >= sample_from && at / run->buffer.room % SAMPLE != 0;
}

/* Clearing touches all memory, so that no page fault is timed. */
static bool fill(struct run *run, enum calls calls)
{
    uint64_t at = 0, count = run->result->keys;
    run->contender->clear(run->filter);
    while (at < count) {
        uint64_t n = count - at < run->buffer.room ? count - at : run->buffer.room;
        struct perhaps_keys keys = keys_added(&run->buffer, at, (size_t)n);
        size_t added = is_left_out(run, calls, at)
                           ? run->contender->add[BATCHED](run->filter, &keys)
                           : work(run, ADD, calls, &keys, (size_t)(at / PIECE));
        if (added < n)
            return false;
        at += n;
    }
    return true;
}

static const char *measure_adds(struct run *run)
{
    for (uint64_t pass = 0; pass < run->task->settings->repeat; pass++)
        for (int calls = SINGLE; calls < CALLS; calls++)
            if (run->contender->add[calls] && !fill(run, (enum calls)calls))
                return "is full before all keys are in";
    return NULL;
}

/* ---- Asking ------------------------------------------------------------------------------ */

/* Both ways; returns how many were found, or SIZE_MAX if they are of two minds. */
static size_t ask_both(struct run *run, const struct perhaps_keys *keys,
                       enum operation operation)
{
    size_t single = work(run, operation, SINGLE, keys, 0);
    if (run->contender->ask[BATCHED] && work(run, operation, BATCHED, keys, 0) != single)
        return SIZE_MAX;
    return single;
}

static const char *measure_questions(struct run *run)
{
    struct result *result = run->result;
    uint64_t false_positives = 0;
    result->wrong = true;
    for (uint64_t pass = 0; pass < run->task->settings->repeat; pass++) {
        struct perhaps_keys absent = keys_absent(&run->buffer, pass);
        size_t found = ask_both(run, &absent, ASK_ABSENT);
        if (found == SIZE_MAX)
            return "WRONG: single and batched calls differ";
        false_positives += found;
        result->queries += absent.count;
        struct perhaps_keys present = keys_present(&run->buffer, pass, result->keys);
        if (ask_both(run, &present, ASK_PRESENT) != present.count)
            return "WRONG: a key that was added is not found";
    }
    result->fpr_measured = (double)false_positives / (double)result->queries;
    result->wrong = false;
    return NULL;
}

/* ---- All of it -----------------------------------------------------------------------------
 */

/* How many keys the load means: found out by filling to the capacity, where it is known. */
static const char *find_key_count(struct run *run)
{
    const struct task *task = run->task;
    run->result->keys = task->capacity;
    if (task->load <= 0)
        return NULL;
    for (uint64_t at = 0; at < task->capacity; at += PIECE) {
        uint64_t left = task->capacity - at;
        struct perhaps_keys keys =
            keys_added(&run->buffer, at, left < PIECE ? (size_t)left : PIECE);
        if (run->contender->add[BATCHED](run->filter, &keys) < keys.count)
            return "is full before its capacity";
    }
    double load = run->contender->load(run->filter);
    run->result->keys = (uint64_t)((double)task->capacity * task->load / load);
    return NULL;
}

/* Makes the filter, all its memory touched, and notes what it has. */
static const char *prepare_filter(struct run *run)
{
    struct result *result = run->result;
    uint64_t huge_before = huge_nbytes_now();
    const char *problem = run->contender->create(run->contender, run->task, &run->filter);
    if (problem)
        return problem;
    run->contender->clear(run->filter);
    uint64_t huge = huge_nbytes_now() - huge_before;
    result->nbytes = run->contender->nbytes(run->filter);
    result->huge_nbytes = huge < result->nbytes ? huge : result->nbytes;
    return NULL;
}

static const char *prepare_passes(struct run *run)
{
    const struct settings *settings = run->task->settings;
    size_t room = (size_t)settings->stretch;
    if (yardstick_open(&run->yardstick, run->result->nbytes) ||
        key_buffer_open(&run->buffer, (size_t)settings->key_nbytes, room))
        return "out of memory";
    const char *problem = find_key_count(run);
    for (int calls = SINGLE; calls < CALLS; calls++)
        for (int operation = 0; operation < OPERATIONS; operation++) {
            uint64_t count = operation == ADD ? run->result->keys : room;
            if (timing_open(&run->timing[calls][operation], count) ||
                timing_open(&run->bare[calls][operation], count))
                return "out of memory";
        }
    return problem;
}

static void conclude(struct run *run)
{
    for (int calls = SINGLE; calls < CALLS; calls++)
        for (int operation = 0; operation < OPERATIONS; operation++)
            run->result->speed[calls][operation] =
                (struct speed){ .ns = timing_ns(&run->timing[calls][operation]),
                                .bare = timing_ns(&run->bare[calls][operation]) };
    if (run->contender->has_slots)
        run->result->load = run->contender->load(run->filter);
}

static void clean_up(struct run *run)
{
    for (int calls = SINGLE; calls < CALLS; calls++)
        for (int operation = 0; operation < OPERATIONS; operation++) {
            timing_close(&run->timing[calls][operation]);
            timing_close(&run->bare[calls][operation]);
        }
    key_buffer_close(&run->buffer);
    yardstick_close(&run->yardstick);
    if (run->filter)
        run->contender->destroy(run->filter);
}

void measure(const struct contender *contender, const struct task *task, struct result *result)
{
    struct run run = { .contender = contender, .task = task, .result = result };
    *result = (struct result){ .capacity = task->capacity, .fpr = task->fpr };
    const char *problem = prepare_filter(&run);
    if (!problem)
        problem = prepare_passes(&run);
    if (!problem)
        problem = measure_adds(&run);
    if (!problem)
        problem = measure_questions(&run);
    if (!problem)
        conclude(&run);
    result->problem = problem;
    clean_up(&run);
}
