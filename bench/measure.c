/* measure.c - measures one contender at one task.
 *
 * The filter is filled from empty to full, several times, and then asked for absent and for
 * present keys, several times.  All of this goes in rounds, and the yardstick has its turn
 * before each.  Every pass repeats the same rounds.  The best time of each round counts, both
 * of the contender and of the yardstick.
 *
 * The answers are checked on the way: every added key must be found, and all ways to ask must
 * answer alike.  A filter that fails this is 'wrong', and the program's exit status
 * says so. */
#include "report.h"

/* One contender at one task.  measure() makes it and releases all that it owns: the filter (in
 * 'race') and the times. */
struct run {
    const struct contender *contender;
    const struct task *task;
    struct race race;
    struct timing timing[CALLS][REMOVE]; /* of adding and of both questions */
    uint64_t keys;                       /* how many the filter is filled with */
    uint64_t queries, false_positives;   /* absent keys: asked for, and found */
    bool wrong;
};

/* Shows what is being done; NULL wipes it out. */
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

/* If it takes more rounds than this to fill a filter, only about so many of them are timed,
 * evenly spread.  The others have no turn of the yardstick and use batched calls, which saves
 * most of the time that a large filter would take.  Such a fill is too long to be repeated
 * often enough.  So the best of a few neighbouring rounds counts, which find about the same
 * load. */
enum { ROUNDS_TIMED = 256, NEIGHBOURS = 8 };

/* Returns how many rounds it takes to fill the filter; the last one may be shorter. */
static size_t rounds_to_fill(const struct run *run)
{
    size_t keys = race_keys(&run->race, ADD);
    return (size_t)((run->keys + keys - 1) / keys);
}

/* Returns the distance between rounds that are timed.  A filter that is built at the end needs
 * the time of all rounds: the build belongs to all keys, not to a sample of them. */
static size_t round_stride(const struct run *run)
{
    return run->contender->finish ? 1 : 1 + (rounds_to_fill(run) - 1) / ROUNDS_TIMED;
}

/* Builds a filter that is built at the end.  This is one lap more, with no keys of its own: its
 * time is spread over the keys of all laps.  Returns NULL, or what is wrong. */
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

/* Returns how many of the first ways to call the filter can add. */
static size_t ways_to_add(const struct contender *contender)
{
    size_t ways = 0;
    while (ways < CALLS && contender->add[ways])
        ways++;
    return ways;
}

/* Fills the filter once.  Clearing it first touches all memory, so that no page fault is timed.
 * The ways to call take turns.  In the next pass each has rounds that another had before,
 * so that after a few passes all were timed at every load.  Returns NULL, or what is wrong. */
static const char *fill(struct run *run, uint64_t pass, bool timed)
{
    const struct contender *contender = run->contender;
    size_t rounds = rounds_to_fill(run), stride = round_stride(run);
    size_t ncalls = ways_to_add(contender), keys = race_keys(&run->race, ADD);
    enum calls fastest = contender->add[BATCHED] ? BATCHED : SINGLE;
    size_t neighbours = stride > 1 ? NEIGHBOURS : 1;
    contender->clear(run->race.filter);
    for (size_t i = 0; i < rounds; i++) {
        bool times = timed && i % stride == 0;
        enum calls calls = times ? (enum calls)((i / stride + pass) % ncalls) : fastest;
        struct round round = { ADD, calls, i * keys, run->keys };
        if (race_round(&run->race, &round, times ? &run->timing[calls][ADD] : NULL,
                       i / stride / neighbours) != piece_of(run->keys - round.first, keys))
            return "did not take all keys";
        progress(run, "add", (double)i / (double)rounds);
    }
    return finish(run, timed);
}

/* Fills the filter in all passes.  If several threads cannot add, one thread fills it once and
 * is not timed, since the row is about several.  If rounds are only sampled, the fill is a long
 * one, and one pass is enough.  Returns NULL, or what is wrong. */
static const char *measure_adds(struct run *run)
{
    const struct contender *contender = run->contender;
    if (run->task->nthreads > 1 && !contender->can_share)
        return fill(run, 0, false);
    uint64_t passes = (uint64_t)run->task->settings->repeat.at[0];
    if (round_stride(run) > 1)
        passes = 1;
    else
        passes *= ways_to_add(contender);
    const char *problem = NULL;
    for (uint64_t pass = 0; pass < passes && !problem; pass++)
        problem = fill(run, pass, true);
    return problem;
}

/* ---- Asking ------------------------------------------------------------------------------ */

/* Asks one kind of question in one pass.  Each pass has other keys, so that the measured rate
 * rests on all of them.  Returns how many were found, or SIZE_MAX. */
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

/* Asks in all ways, with the same keys, and sets *found to how many were found.  Returns NULL,
 * or what is wrong. */
static const char *ask_all(struct run *run, enum operation operation, uint64_t pass,
                           size_t *found)
{
    *found = ask(run, operation, SINGLE, pass);
    if (*found == SIZE_MAX)
        return "gave no answer";
    for (int calls = SINGLE + 1; calls < CALLS; calls++)
        if (run->contender->ask[calls] &&
            ask(run, operation, (enum calls)calls, pass) != *found) {
            run->wrong = true;
            return "WRONG: one way to ask has other answers than single calls";
        }
    return NULL;
}

/* Asks for absent and present keys in all passes, and counts false positives.  Returns NULL, or
 * what is wrong. */
static const char *measure_questions(struct run *run)
{
    const struct settings *settings = run->task->settings;
    uint64_t asked = settings->rounds * race_keys(&run->race, ASK_ABSENT);
    for (uint64_t pass = 0; pass < (uint64_t)settings->repeat.at[0]; pass++) {
        size_t absent, present;
        const char *problem = ask_all(run, ASK_ABSENT, pass, &absent);
        if (!problem)
            problem = ask_all(run, ASK_PRESENT, pass, &present);
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

/* Finds out how many keys the filter is to get.  For a load it fills the filter to its capacity
 * once, where the load is known, and scales from there.  Returns NULL, or what is wrong. */
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

/* An operation that was not timed is left out. */
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

/* Adds all results to the row. */
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

/* Fills and asks the filter that was made.  It is cleared first, which touches its memory
 * before the yardstick takes any.  Returns NULL, or what is wrong. */
static const char *measure_all(struct run *run)
{
    const struct task *task = run->task;
    run->contender->clear(run->race.filter);
    run->race.nintegers = run->contender->of_integers ? integers_for(task->capacity) : 0;
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

/* A contender that cannot do the task gets a row that says why; the table goes on. */
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
    else if ((contender->is_peer || contender->of_integers) && task->settings->hashed)
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
