/* measure.c - one contender at one task.
 *
 * The work goes in rounds.  The yardstick has a turn before each round.  All is repeated; of
 * each round the best time counts, and so for the yardstick. */
#include "report.h"

struct run {
    const struct contender *contender;
    const struct task *task;
    struct race race;
    struct timing timing[CALLS][REMOVE];
    uint64_t keys;
    uint64_t queries, false_positives;
    bool wrong;
};

static void progress(const struct run *run, const char *doing, double share)
{
    char name[96], keys[16];
    const struct task *task = run->task;
    snprintf(name, sizeof name, "%s, %s keys, %.4g%%, %zu thread%s%s", run->contender->name,
             short_number((double)task->capacity, keys), 100 * task->fpr, task->nthreads,
             task->nthreads == 1 ? "" : "s", task->shared ? ", shared" : "");
    report_progress(doing ? name : NULL, doing, share);
}

/* ---- Adding: from empty to full ---------------------------------------------------------- */

/* Of more rounds than this so many, evenly spread, are timed in the adding; the others add as
 * fast as they can. */
enum { ROUNDS_TIMED = 256 };

static size_t rounds_to_fill(const struct run *run)
{
    size_t keys = race_keys(&run->race, ADD);
    return (size_t)((run->keys + keys - 1) / keys);
}

/* What builds at the end has taken its time only when all of it is taken. */
static size_t round_stride(const struct run *run)
{
    return run->contender->finish ? 1 : 1 + (rounds_to_fill(run) - 1) / ROUNDS_TIMED;
}

/* Where all is built at the end, that is a lap more. */
static const char *finish(struct run *run, bool timed)
{
    double start = seconds_now();
    if (!run->contender->finish)
        return NULL;
    if (!run->contender->finish(run->race.filter))
        return "could not be built";
    if (timed)
        timing_note(&run->timing[SINGLE][ADD], rounds_to_fill(run), seconds_now() - start, 0);
    return NULL;
}

/* Clearing touches all memory, so that no page fault is timed.  Single and batched calls take
 * turns, and in the next pass have each other's rounds. */
static const char *fill(struct run *run, uint64_t pass, bool timed)
{
    const struct contender *contender = run->contender;
    size_t rounds = rounds_to_fill(run), stride = round_stride(run);
    size_t ncalls = contender->add[BATCHED] ? 2 : 1, keys = race_keys(&run->race, ADD);
    contender->clear(run->race.filter);
    for (size_t i = 0; i < rounds; i++) {
        bool times = timed && i % stride == 0;
        enum calls calls = (enum calls)(times ? (i / stride + pass) % ncalls : ncalls - 1);
        struct round round = { ADD, calls, i * keys, run->keys };
        if (race_round(&run->race, &round, times ? &run->timing[calls][ADD] : NULL,
                       i / stride) != piece_of(run->keys - round.first, keys))
            return "did not take all keys";
        progress(run, "add", (double)i / (double)rounds);
    }
    return finish(run, timed);
}

/* Not timed if others than the task's threads add.  A sampled fill is a long one: one pass for
 * single calls and one for batched ones will do. */
static const char *measure_adds(struct run *run)
{
    const struct contender *contender = run->contender;
    if (run->task->nthreads > 1 && !contender->can_share)
        return fill(run, 0, false);
    uint64_t passes = (uint64_t)run->task->settings->repeat.at[0];
    if (round_stride(run) > 1)
        passes = 1;
    if (contender->add[BATCHED])
        passes *= 2;
    const char *problem = NULL;
    for (uint64_t pass = 0; pass < passes && !problem; pass++)
        problem = fill(run, pass, true);
    return problem;
}

/* ---- Asking ------------------------------------------------------------------------------ */

static size_t ask(struct run *run, enum operation operation, enum calls calls, uint64_t pass)
{
    const struct settings *settings = run->task->settings;
    size_t found = 0, keys = race_keys(&run->race, operation);
    for (size_t i = 0; i < settings->rounds; i++) {
        struct round round = { operation, calls, (pass * settings->rounds + i) * keys,
                               UINT64_MAX };
        size_t answer = race_round(&run->race, &round, &run->timing[calls][operation], i);
        if (answer == SIZE_MAX)
            return SIZE_MAX;
        found += answer;
    }
    progress(run, operation_names[operation], (double)pass / settings->repeat.at[0]);
    return found;
}

/* Both ways, the same keys; '*found' of them are found. */
static const char *ask_both(struct run *run, enum operation operation, uint64_t pass,
                            size_t *found)
{
    *found = ask(run, operation, SINGLE, pass);
    if (*found == SIZE_MAX)
        return "gave no answer";
    if (!run->contender->ask[BATCHED] || ask(run, operation, BATCHED, pass) == *found)
        return NULL;
    run->wrong = true;
    return "WRONG: single and batched calls differ";
}

static const char *measure_questions(struct run *run)
{
    const struct settings *settings = run->task->settings;
    uint64_t asked = settings->rounds * race_keys(&run->race, ASK_ABSENT);
    for (uint64_t pass = 0; pass < (uint64_t)settings->repeat.at[0]; pass++) {
        size_t absent, present;
        const char *problem = ask_both(run, ASK_ABSENT, pass, &absent);
        if (!problem)
            problem = ask_both(run, ASK_PRESENT, pass, &present);
        if (problem)
            return problem;
        run->false_positives += absent;
        run->queries += asked;
        run->wrong = present != asked;
        if (run->wrong)
            return "WRONG: a key that was added is not found";
    }
    return NULL;
}

/* ---- All of it --------------------------------------------------------------------------- */

static struct facts facts_of(const struct run *run)
{
    struct facts facts = { 0 };
    run->contender->tell(run->race.filter, &facts);
    return facts;
}

/* How many keys the load means: found out by filling to the capacity, where it is known. */
static const char *find_key_count(struct run *run)
{
    const struct task *task = run->task;
    run->race.added = run->keys = task->capacity;
    const char *problem = task->load > 0 ? fill(run, 0, false) : NULL;
    if (task->load > 0 && !problem)
        run->keys = (uint64_t)((double)task->capacity * task->load / facts_of(run).load);
    run->race.added = run->keys;
    return problem;
}

static json_t *json_speeds(const struct run *run, int calls)
{
    json_t *all = json_object();
    for (int operation = ADD; operation < REMOVE; operation++) {
        json_t *speed = json_speed(timing_speed(&run->timing[calls][operation], 0));
        if (speed)
            json_object_set_new(all, operation_names[operation], speed);
    }
    return all;
}

static void conclude(const struct run *run, json_t *row)
{
    struct facts facts = facts_of(run);
    json_object_update_new(
        row, json_pack("{s:I, s:I, s:f, s:f, s:I}", "keys", (json_int_t)run->keys, "body_bytes",
                       (json_int_t)facts.nbytes, "bits_per_key",
                       8 * (double)facts.nbytes / (double)run->keys, "fpr_measured",
                       (double)run->false_positives / (double)run->queries, "fpr_queries",
                       (json_int_t)run->queries));
    if (facts.huge_known) {
        json_object_set_new(row, "huge_bytes", json_integer((json_int_t)facts.huge_nbytes));
        json_object_set_new(row, "huge",
                            json_real((double)facts.huge_nbytes / (double)facts.nbytes));
    }
    if (facts.cpu)
        json_object_set_new(row, "kernels", json_string(facts.cpu));
    if (facts.load > 0)
        json_object_set_new(row, "load", json_real(facts.load));
    for (int calls = SINGLE; calls < CALLS; calls++)
        if (run->contender->ask[calls])
            json_object_set_new(row, call_names[calls], json_speeds(run, calls));
}

static const char *measure_all(struct run *run)
{
    const struct task *task = run->task;
    run->contender->clear(run->race.filter);
    race_open(&run->race, task->nthreads, task->settings, facts_of(run).nbytes);
    const char *problem = find_key_count(run);
    if (!problem)
        problem = measure_adds(run);
    if (!problem)
        problem = measure_questions(run);
    progress(run, NULL, 0);
    race_close(&run->race);
    return problem;
}

json_t *measure(const struct contender *contender, const struct task *task, bool *wrong)
{
    struct run run = { .contender = contender, .task = task, .race.contender = contender };
    json_t *row =
        json_pack("{s:s, s:b, s:I, s:f, s:I, s:b}", "filter", contender->name, "peer",
                  contender->is_peer, "capacity", (json_int_t)task->capacity, "fpr", task->fpr,
                  "threads", (json_int_t)task->nthreads, "shared", task->shared);
    const char *problem = NULL;
    if (!task->capacity)
        problem = "no capacity gives a body of that size, or none is known";
    else if (contender->is_peer && task->settings->hashed)
        problem = "takes no keys that are hashed already";
    else
        problem = contender->create(contender, task, &run.race.filter);
    if (!problem)
        problem = measure_all(&run);
    if (problem)
        json_object_set_new(row, "problem", json_string(problem));
    else
        conclude(&run, row);
    for (int calls = SINGLE; calls < CALLS; calls++)
        for (int operation = ADD; operation < REMOVE; operation++)
            timing_close(&run.timing[calls][operation]);
    if (run.race.filter)
        contender->destroy(run.race.filter);
    *wrong |= run.wrong;
    return row;
}
