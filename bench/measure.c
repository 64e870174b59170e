/* measure.c - one contender at one task.
 *
 * The work goes in rounds: each thread makes and asks (or adds) one piece of keys.  The
 * yardstick has a turn before each round.  All is repeated; of each round the best time counts,
 * and so for the yardstick. */
#include <stdlib.h>

#include "bench.h"

/* What one thread has in its hands; at least two cache lines apart from the next one's. */
struct hand {
    _Alignas(128) struct key_buffer buffer;
    uint64_t *offsets;
    struct perhaps_keys keys;
    size_t answer; /* how many were added, or found */
    uint64_t sum;  /* of what the yardstick read, so that it must be */
};

struct run {
    const struct contender *contender;
    const struct task *task;
    struct result *result;
    void *filter;
    struct yardstick yardstick;
    struct team *team;
    struct hand *hands;
    struct timing timing[CALLS][OPERATIONS];
    struct timing bare[CALLS][OPERATIONS];
    uint64_t aimed; /* offsets that were made up to now */

    /* of the round */
    enum operation operation;
    enum calls calls;
    uint64_t first; /* number of its first key */
    uint64_t count; /* no key has this number, or a higher one */
};

/* ---- A round ----------------------------------------------------------------------------- */

/* Who cannot be added to by all is added to by the first. */
static size_t hands_in(const struct run *run)
{
    return run->operation != ADD || run->contender->can_share ? run->task->nthreads : 1;
}

static size_t keys_of(const struct run *run, size_t thread)
{
    size_t piece = run->task->settings->piece;
    uint64_t at = run->first + thread * piece;
    if (thread >= hands_in(run) || at >= run->count)
        return 0;
    return run->count - at < piece ? (size_t)(run->count - at) : piece;
}

static void bare_prepare(void *context, size_t thread)
{
    struct run *run = context;
    size_t piece = run->task->settings->piece;
    yardstick_aim(&run->yardstick, run->hands[thread].offsets, run->aimed + thread * piece,
                  piece);
}

static void bare_timed(void *context, size_t thread)
{
    struct run *run = context;
    struct hand *hand = &run->hands[thread];
    hand->sum += yardstick_touch(&run->yardstick, run->operation, run->calls, hand->offsets,
                                 run->task->settings->piece);
}

static void keys_prepare(void *context, size_t thread)
{
    struct run *run = context;
    struct hand *hand = &run->hands[thread];
    uint64_t first = run->first + thread * run->task->settings->piece;
    size_t count = keys_of(run, thread);
    if (run->operation == ADD)
        hand->keys = keys_added(&hand->buffer, first, count);
    else if (run->operation == ASK_ABSENT)
        hand->keys = keys_absent(&hand->buffer, first, count);
    else
        hand->keys = keys_present(&hand->buffer, first, count, run->result->keys);
    hand->answer = 0;
}

static void keys_timed(void *context, size_t thread)
{
    struct run *run = context;
    struct hand *hand = &run->hands[thread];
    if (!hand->keys.count)
        return;
    hand->answer = run->operation == ADD
                       ? run->contender->add[run->calls](run->filter, &hand->keys)
                       : run->contender->ask[run->calls](run->filter, &hand->keys);
}

/* The yardstick touches as many lines as the round could have keys: a few lines only would find
 * them in the cache. */
static void bare_round(struct run *run, size_t lap)
{
    size_t lines = run->task->nthreads * run->task->settings->piece;
    double seconds = team_run(run->team, bare_prepare, bare_timed, run);
    timing_note(&run->bare[run->calls][run->operation], lap, seconds, lines);
    run->aimed += lines;
}

/* Returns how many keys were added or found, SIZE_MAX if there is no telling. */
static size_t round_work(struct run *run, size_t lap, bool timed)
{
    if (timed)
        bare_round(run, lap);
    double seconds = team_run(run->team, keys_prepare, keys_timed, run);
    size_t answer = 0;
    uint64_t keys = 0;
    for (size_t i = 0; i < run->task->nthreads; i++) {
        if (run->hands[i].answer == SIZE_MAX)
            return SIZE_MAX;
        answer += run->hands[i].answer;
        keys += run->hands[i].keys.count;
    }
    if (run->contender->seconds)
        seconds = run->contender->seconds(run->filter);
    if (timed)
        timing_note(&run->timing[run->calls][run->operation], lap, seconds, keys);
    return answer;
}

/* ---- Adding: from empty to full -------------------------------------------------------- */

/* Of more rounds than this so many, evenly spread, are timed in the adding; the others add as
 * fast as they can. */
enum { ROUNDS_TIMED = 256 };

static size_t keys_a_round(const struct run *run)
{
    return hands_in(run) * run->task->settings->piece;
}

static size_t rounds_to_fill(struct run *run)
{
    run->operation = ADD;
    size_t keys = keys_a_round(run);
    return keys ? (size_t)((run->result->keys + keys - 1) / keys) : 1;
}

/* What builds at the end has taken its time only when all of it is taken. */
static size_t round_stride(const struct run *run, size_t rounds)
{
    return run->contender->finish ? 1 : 1 + (rounds - 1) / ROUNDS_TIMED;
}

/* Which calls are timed in a round: 'calls', or CALLS for none.  In a sampled fill both are, in
 * different rounds. */
static int calls_timed(const struct run *run, size_t round, size_t stride, int calls)
{
    if (calls == CALLS || stride < 2)
        return calls;
    if (round % stride == 0)
        return SINGLE;
    return round % stride == stride / 2 && run->contender->add[BATCHED] ? BATCHED : CALLS;
}

/* Where all is built at the end, that is a lap more. */
static const char *finish(struct run *run, int calls)
{
    double start = seconds_now();
    if (run->contender->finish && !run->contender->finish(run->filter))
        return "could not be built";
    if (run->contender->finish && calls != CALLS) {
        struct timing *timing = &run->timing[calls][ADD];
        timing_note(timing, timing->count - 1, seconds_now() - start, 0);
    }
    return NULL;
}

/* Clearing touches all memory, so that no page fault is timed. */
static const char *fill(struct run *run, int calls)
{
    const struct contender *contender = run->contender;
    size_t rounds = rounds_to_fill(run), stride = round_stride(run, rounds);
    enum calls fastest = contender->add[BATCHED] ? BATCHED : SINGLE;
    contender->clear(run->filter);
    run->count = run->result->keys;
    for (size_t i = 0; i < rounds; i++) {
        int timed = calls_timed(run, i, stride, calls);
        run->first = i * keys_a_round(run);
        run->calls = timed == CALLS ? fastest : (enum calls)timed;
        uint64_t left = run->count - run->first, most = keys_a_round(run);
        if (round_work(run, i / stride, timed != CALLS) != (left < most ? left : most))
            return "did not take all keys";
        report_progress(contender->name, run->task, "add", (double)i / (double)rounds);
    }
    return finish(run, calls);
}

/* Not timed if others than the task's threads add.  A sampled fill is a long one, and times
 * both calls: two of them will do. */
static const char *measure_adds(struct run *run)
{
    const struct task *task = run->task;
    if (task->nthreads > 1 && !run->contender->can_share)
        return fill(run, CALLS);
    bool sampled = round_stride(run, rounds_to_fill(run)) > 1;
    uint64_t passes = task->settings->repeat;
    if (sampled && passes > 2)
        passes = 2;
    const char *problem = NULL;
    for (uint64_t pass = 0; pass < passes; pass++)
        for (int calls = SINGLE; calls < (sampled ? BATCHED : CALLS) && !problem; calls++)
            if (run->contender->add[calls])
                problem = fill(run, calls);
    return problem;
}

/* ---- Asking ------------------------------------------------------------------------------ */

static size_t ask(struct run *run, enum operation operation, enum calls calls, uint64_t pass)
{
    const struct settings *settings = run->task->settings;
    size_t found = 0;
    run->operation = operation;
    run->calls = calls;
    for (size_t i = 0; i < settings->rounds; i++) {
        run->first = (pass * settings->rounds + i) * keys_a_round(run);
        run->count = run->first + keys_a_round(run);
        size_t answer = round_work(run, i, true);
        if (answer == SIZE_MAX)
            return SIZE_MAX;
        found += answer;
    }
    report_progress(run->contender->name, run->task, operation_names[operation],
                    (double)pass / (double)settings->repeat);
    return found;
}

/* Both ways, the same keys; '*found' of them are found. */
static const char *ask_both(struct run *run, enum operation operation, uint64_t pass,
                            size_t *found)
{
    *found = ask(run, operation, SINGLE, pass);
    if (*found == SIZE_MAX)
        return "gave no answer";
    if (run->contender->ask[BATCHED] && ask(run, operation, BATCHED, pass) != *found) {
        run->result->wrong = true;
        return "WRONG: single and batched calls differ";
    }
    return NULL;
}

static const char *measure_questions(struct run *run)
{
    struct result *result = run->result;
    uint64_t false_positives = 0;
    for (uint64_t pass = 0; pass < run->task->settings->repeat; pass++) {
        size_t found;
        const char *problem = ask_both(run, ASK_ABSENT, pass, &found);
        if (problem)
            return problem;
        uint64_t asked = run->task->settings->rounds * keys_a_round(run);
        false_positives += found;
        result->queries += asked;
        problem = ask_both(run, ASK_PRESENT, pass, &found);
        if (problem)
            return problem;
        result->wrong = found != asked;
        if (result->wrong)
            return "WRONG: a key that was added is not found";
    }
    result->fpr_measured = (double)false_positives / (double)result->queries;
    return NULL;
}

/* ---- All of it --------------------------------------------------------------------------- */

/* How many keys the load means: found out by filling to the capacity, where it is known. */
static const char *find_key_count(struct run *run)
{
    const struct task *task = run->task;
    run->result->keys = task->capacity;
    if (task->load <= 0)
        return NULL;
    const char *problem = fill(run, CALLS);
    if (problem)
        return problem;
    double load = run->contender->load(run->filter);
    run->result->keys = (uint64_t)((double)task->capacity * task->load / load);
    return NULL;
}

/* Makes the filter, all its memory touched, and notes what it has. */
static const char *prepare_filter(struct run *run)
{
    const struct contender *contender = run->contender;
    struct result *result = run->result;
    uint64_t huge_before = huge_nbytes_now();
    const char *problem = contender->create(contender, run->task, &run->filter);
    if (problem)
        return problem;
    contender->clear(run->filter);
    uint64_t huge = contender->huge_nbytes ? contender->huge_nbytes(run->filter) : 0;
    if (!huge)
        huge = huge_nbytes_now() - huge_before;
    result->nbytes = contender->nbytes(run->filter);
    result->huge_nbytes = huge < result->nbytes ? huge : result->nbytes;
    result->huge_known = !contender->program;
    result->cpu = contender->cpu ? contender->cpu(run->filter) : NULL;
    return NULL;
}

static int prepare_hands(struct run *run)
{
    const struct settings *settings = run->task->settings;
    size_t nbytes = run->task->nthreads * sizeof *run->hands;
    run->hands = aligned_alloc(_Alignof(struct hand), nbytes);
    if (!run->hands)
        return -1;
    int error = 0;
    for (size_t i = 0; i < run->task->nthreads; i++) {
        struct hand *hand = &run->hands[i];
        *hand = (struct hand){ .offsets = malloc(settings->piece * sizeof *hand->offsets) };
        error |= key_buffer_open(&hand->buffer, (size_t)settings->key_nbytes, settings->piece);
        error |= hand->offsets ? 0 : -1;
    }
    return error;
}

static const char *prepare_passes(struct run *run)
{
    const struct settings *settings = run->task->settings;
    run->team = team_open(run->task->nthreads);
    if (!run->team || prepare_hands(run) ||
        yardstick_open(&run->yardstick, run->result->nbytes))
        return "out of memory, or of threads";
    const char *problem = find_key_count(run);
    size_t rounds = rounds_to_fill(run), stride = round_stride(run, rounds);
    for (int calls = SINGLE; calls < CALLS; calls++)
        for (int operation = 0; operation < OPERATIONS; operation++) {
            /* and one for what finish() takes */
            size_t laps = operation == ADD ? rounds / stride + 2 : settings->rounds;
            if (timing_open(&run->timing[calls][operation], laps) ||
                timing_open(&run->bare[calls][operation], laps))
                return "out of memory";
        }
    return problem;
}

static void conclude(struct run *run)
{
    struct result *result = run->result;
    for (int calls = SINGLE; calls < CALLS; calls++)
        for (int operation = 0; operation < OPERATIONS; operation++)
            result->speed[calls][operation] =
                (struct speed){ .ns = timing_ns(&run->timing[calls][operation]),
                                .bare = timing_ns(&run->bare[calls][operation]) };
    result->nbytes = run->contender->nbytes(run->filter);
    if (run->contender->has_slots && run->contender->load)
        result->load = run->contender->load(run->filter);
}

static void clean_up(struct run *run)
{
    for (int calls = SINGLE; calls < CALLS; calls++)
        for (int operation = 0; operation < OPERATIONS; operation++) {
            timing_close(&run->timing[calls][operation]);
            timing_close(&run->bare[calls][operation]);
        }
    for (size_t i = 0; run->hands && i < run->task->nthreads; i++) {
        key_buffer_close(&run->hands[i].buffer);
        free(run->hands[i].offsets);
    }
    free(run->hands);
    team_close(run->team);
    yardstick_close(&run->yardstick);
    if (run->filter)
        run->contender->destroy(run->filter);
}

void measure(const struct contender *contender, const struct task *task, struct result *result)
{
    struct run run = { .contender = contender, .task = task, .result = result };
    *result = (struct result){ .capacity = task->capacity,
                               .fpr = task->fpr,
                               .nthreads = task->nthreads,
                               .shared = task->shared };
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
    report_progress(NULL, task, NULL, 0);
    clean_up(&run);
}
