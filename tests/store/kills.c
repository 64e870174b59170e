/* kills.c - proves that a live file loses nothing that was acknowledged, whenever the process
 * that works on it is killed.
 *
 *     kills CYCLES [SEED]
 *
 * In each cycle a child works on a live file, of a random kind, and is killed with SIGKILL: at
 * a random moment, or before, in the middle of or behind a system call that changes files.  The
 * parent then opens the file, and it must be what a model becomes by some number of the child's
 * steps: at least those that perhaps_sync() acknowledged, at most those that were begun.  When
 * it is opened once more, file and journal must have the same bytes, and nothing may lie beside
 * them.  Most files go through several cycles: what was recovered is worked on and recovered
 * again.
 *
 * Where several threads add at once, their order is not known.  Then all keys that were
 * acknowledged must be found, and all that were found before; and no more keys be counted than
 * were begun, or in kinds of bits, no bit be set that none of these sets.
 *
 * CYCLES is 200 for ./dev test, and 10,000 for ./dev stress crash, which draws another seed
 * each time.  Of 1,000 cycles or more, a few are with files that are so large that they stay
 * mapped.  When something is wrong it is printed, and the files are kept. */
#include "kills.h"
#include <perhaps_live.h>

#include <dirent.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "filter/filter.h"
#include "store/journal.h"

static struct {
    uint64_t cycles, files, large, killed, ended, steps, found, drafts, renewed;
    uint64_t job[3], opening, at_calls; /* kills in each job; while it opened */
    uint64_t of_kind[32];
} tally;

static struct {
    const struct work *work;
    const struct task *task;
    uint64_t seed; /* of the whole run */
} now;

/* ---- Complaints -------------------------------------------------------------------------- */

static const char *const name_of_job[] = { "steps", "threads", "opens" };

static const char *name_of_base(const struct work *work)
{
    return work->options.base ? work->options.base : "-";
}

/* Tells what is wrong, and ends the program without removing the files. */
static _Noreturn void complain(const char *what, int64_t number)
{
    const struct work *w = now.work;
    const struct task *t = now.task;
    printf("cycle %" PRIu64 " of seed %" PRIu64 ": %s (%" PRId64 ")\n", tally.cycles, now.seed,
           what, number);
    printf("%s over %s, capacity %" PRIu64 ", fpr %g, %s, in %s\n", w->kind->name,
           name_of_base(w), w->options.capacity, w->options.fpr,
           w->options.shared ? "shared" : "not shared", w->path.text);
    if (t)
        printf("%s from %" PRIu64 ", %u threads, a journal of %" PRIu64
               " bytes, killed at call %u, %d\n",
               name_of_job[t->job], t->first, t->threads, t->journal_nbytes, t->call,
               (int)t->moment);
    fflush(stdout);
    _exit(1);
}

static void require(bool right, const char *what, int64_t number)
{
    if (!right)
        complain(what, number);
}

static perhaps_filter *open_as(const struct work *work, enum perhaps_mode mode)
{
    const struct perhaps_open_options options = {
        .mode = mode, .shared = mode == PERHAPS_MODE_JOURNAL && work->options.shared
    };
    perhaps_filter *f;
    int error = perhaps_open(work->path.text, &options, &f);
    require(!error, perhaps_strerror(error), mode);
    return f;
}

/* ---- What is there after the kill -------------------------------------------------------- */

static uint64_t keys_in(const perhaps_filter *f)
{
    return f->counters->keys;
}

static bool is_same(const perhaps_filter *a, const perhaps_filter *b)
{
    return keys_in(a) == keys_in(b) && perhaps_equal(a, b);
}

/* Takes the steps on the model until it is what was found.  A step that was not acknowledged
 * may have been taken with some of its keys. */
static bool find_state(const struct work *work, const struct task *task,
                       const struct board *board, perhaps_filter *model,
                       const perhaps_filter *found)
{
    for (uint64_t n = task->first; n < board->begun; n++) {
        bool counts = n >= board->acknowledged, goes_on = true;
        if (counts && is_same(model, found))
            return true;
        for (size_t i = 0; i < step_size(work, n) && goes_on; i++) {
            goes_on = redo_key(work, n, i, model);
            if (counts && is_same(model, found))
                return true;
        }
        tally.found++;
    }
    return is_same(model, found);
}

/* Requires that what was in the model, and what was acknowledged, was found. */
static void check_share(const struct work *work, const struct task *task,
                        const struct board *board, unsigned thread, const perhaps_filter *found)
{
    for (uint64_t i = 0; i < board->thread[thread].acknowledged; i++) {
        struct perhaps_keys key = share_key(work, task, thread, i);
        require(perhaps_contains(found, key_at(&key, 0), key.key_nbytes),
                "a key was acknowledged and is lost", (int64_t)i);
        tally.found++;
    }
}

/* Requires that no bit is set that is neither of the model nor of a key that was begun.  If the
 * model refuses one of these, in another order than that of the threads, nothing is known. */
static void check_bits(const struct work *work, const struct task *task,
                       const struct board *board, perhaps_filter *model,
                       const perhaps_filter *found)
{
    int error = 0;
    if (!merges(work->kind) || removes(work->kind) || has_parts(work->kind))
        return;
    for (unsigned t = 0; t < task->threads; t++)
        for (uint64_t i = 0; i < board->thread[t].begun && !error; i++) {
            struct perhaps_keys key = share_key(work, task, t, i);
            error = perhaps_add(model, key_at(&key, 0), key.key_nbytes);
        }
    if (error)
        return;
    perhaps_filter *both = clone_of(model);
    require(perhaps_merge(both, found) || perhaps_equal(both, model), "bits of no key", 0);
    perhaps_free(both);
}

static void check_threads(const struct work *work, const struct task *task,
                          const struct board *board, perhaps_filter *model,
                          const perhaps_filter *found)
{
    uint64_t most = keys_in(model);
    for (unsigned t = 0; t < task->threads; t++) {
        check_share(work, task, board, t, found);
        most += board->thread[t].begun;
    }
    for (size_t i = 0; i < UNIVERSE; i++) {
        const void *key = key_at(&work->keys, i);
        require(!perhaps_contains(model, key, work->keys.key_nbytes) ||
                    perhaps_contains(found, key, work->keys.key_nbytes),
                "a key of an earlier cycle is lost", (int64_t)i);
    }
    require(keys_in(found) <= most, "too many keys", (int64_t)(keys_in(found) - most));
    check_bits(work, task, board, model, found);
}

/* ---- What lies there --------------------------------------------------------------------- */

static struct path journal_path(const struct work *work)
{
    return journal_of(work->path);
}

static struct path folder_of(const struct work *work)
{
    struct path folder = work->path;
    *strrchr(folder.text, '/') = '\0';
    return folder;
}

/* Requires that nothing but the file, its journal and drafts of them lies in the folder.
 * Removes the drafts, and returns how many these are. */
static unsigned sweep(const struct work *work)
{
    struct path folder = folder_of(work);
    unsigned drafts = 0;
    DIR *dir = opendir(folder.text);
    require(dir, "no folder", 0);
    for (struct dirent *entry; (entry = readdir(dir));) {
        const char *name = entry->d_name;
        if (!strcmp(name, ".") || !strcmp(name, "..") || !strcmp(name, "live") ||
            !strcmp(name, "live" JOURNAL_SUFFIX))
            continue;
        require(!strncmp(name, ".live.", 6), "a stray file", 0);
        struct path draft = path_below(folder, name);
        require(!unlink(draft.text), "a draft cannot be removed", 0);
        drafts++;
    }
    closedir(dir);
    return drafts;
}

/* Opens the file to write it, requires that it is what was found, and closes it. */
static void reopen(const struct work *work, const perhaps_filter *found)
{
    perhaps_filter *again = open_as(work, PERHAPS_MODE_JOURNAL);
    require(is_same(found, again), "not the same when it is opened to write", 0);
    perhaps_free(again);
}

/* A process that is killed may leave one draft: it has its name for the moment before it takes
 * that of the file.  Where there are no nameless files it has it all the time. */
static void check_files(const struct work *work, const perhaps_filter *found, bool killed)
{
    struct path beside = journal_path(work);
    unsigned drafts = sweep(work);
    require(drafts <= killed, "drafts are left", drafts);
    tally.drafts += drafts;
    reopen(work, found);
    scoped_bytes file = read_file(work->path.text), journal = read_file(beside.text);
    reopen(work, found);
    scoped_bytes same_file = read_file(work->path.text), same = read_file(beside.text);
    require(file.nbytes == same_file.nbytes && !memcmp(file.at, same_file.at, file.nbytes),
            "other bytes in the file after the second recovery", 0);
    require(journal.nbytes == same.nbytes && !memcmp(journal.at, same.at, same.nbytes),
            "other bytes in the journal after the second recovery", 0);
    require(!sweep(work), "drafts are left by those who closed the file", 0);
}

static void check(const struct work *work, const struct task *task, const struct board *board,
                  perhaps_filter *model, bool killed)
{
    struct perhaps_verdict verdict;
    struct perhaps_journal journal;
    perhaps_filter *found = open_as(work, PERHAPS_MODE_READ);
    require(!perhaps_verify(found, &verdict), "a page is damaged", 0);
    if (!perhaps_journal_of(found, &journal))
        require(journal.last >= board->records, "records are lost", (int64_t)journal.last);
    else
        require(!board->opened, "is not live", 0);
    if (task->job == THREADS)
        check_threads(work, task, board, model, found);
    else if (!find_state(work, task, board, model, found))
        complain("no number of steps leads to what was found", (int64_t)board->acknowledged);
    check_files(work, found, killed);
    perhaps_free(found);
}

/* ---- A cycle ----------------------------------------------------------------------------- */

/* Returns 1, 2, 4 .. or 2^most. */
static uint64_t draw_power(struct rng *rng, unsigned most)
{
    return UINT64_C(1) << rng_below(rng, most + 1);
}

static struct task draw_task(const struct work *work, uint64_t first, struct rng *rng)
{
    struct task task = { .first = first,
                         .count = 8 + draw_power(rng, 12),
                         .offset = rng_below(rng, UNIVERSE),
                         .threads = 2 + (unsigned)rng_below(rng, ADDERS_MOST - 1),
                         .sync_once_in = draw_power(rng, 5),
                         .journal_nbytes = draw_power(rng, 5) << 9,
                         .seed = rng_next(rng) };
    uint64_t die = rng_below(rng, 8);
    task.job = die == 0 && !forgets(work->kind) ? THREADS : die == 1 ? OPENS : STEPS;
    if (task.job == OPENS)
        task.count = 1 + rng_below(rng, 8);
    task.when_open = rng_below(rng, 4) > 0;
    task.waits = rng_below(rng, 2) == 0;
    if (rng_below(rng, 2)) {
        task.call = 1 + (unsigned)rng_below(rng, draw_power(rng, 9));
        task.moment = (enum moment)rng_below(rng, 3);
    }
    return task;
}

/* Waits until the child has ended, and kills it before if it does not kill itself.  Returns its
 * status. */
static int await(pid_t pid, const struct task *task, const struct board *board,
                 uint64_t wait_us)
{
    int status;
    pid_t ended = 0;
    while (!task->call && !ended && !(task->when_open ? board->opened : board->started)) {
        usleep(20);
        ended = waitpid(pid, &status, WNOHANG);
    }
    if (!task->call && !ended) {
        usleep((useconds_t)wait_us);
        kill(pid, SIGKILL);
    }
    if (!ended)
        ended = waitpid(pid, &status, 0);
    require(ended == pid, "no child", 0);
    return status;
}

static void count(const struct task *task, const struct board *board, bool killed)
{
    tally.cycles++;
    tally.killed += killed;
    tally.ended += !killed;
    tally.job[task->job] += killed;
    tally.opening += killed && (!board->opened || task->job == OPENS);
    tally.at_calls += killed && task->call;
    tally.steps += board->begun - task->first;
    tally.renewed += board->renewed;
}

/* Has a child work on the file and be killed, and checks what is there then.  Returns the
 * number of the first step that was not begun. */
static uint64_t run_cycle(const struct work *work, uint64_t first, struct rng *rng,
                          struct board *board)
{
    const struct task task = draw_task(work, first, rng);
    perhaps_filter *model = open_as(work, PERHAPS_MODE_LOAD);
    now.task = &task;
    memset(board, 0, sizeof *board);
    board->begun = board->acknowledged = first;
    pid_t pid = fork();
    require(pid >= 0, "no fork", 0);
    if (!pid)
        be_child(work, &task, board);
    int status = await(pid, &task, board, UINT64_C(16) * draw_power(rng, 12));
    bool killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
    require(killed || status == 0, perhaps_strerror(board->error), status);
    if (!killed)
        board->acknowledged = (uint64_t)board->begun;
    count(&task, board, killed);
    check(work, &task, board, model, killed);
    now.task = NULL;
    perhaps_free(model);
    return board->begun;
}

/* ---- A file ------------------------------------------------------------------------------ */

/* Returns a kind that takes keys as they come; also bitmap, which other tests leave out. */
static const struct perhaps_kind *draw_kind(struct rng *rng, size_t *index)
{
    for (;;) {
        *index = rng_below(rng, 32);
        const struct perhaps_kind *kind = NULL;
        for (size_t i = 0; i <= *index && (kind = kind_to_test(i)); i++)
            continue;
        if (kind && !is_built(kind))
            return kind;
    }
}

/* Small filters, many of which become full, at a rate at which hardly any key is found by
 * chance, or at one at which many are. */
static struct perhaps_options draw_options(const struct perhaps_kind *kind, struct rng *rng)
{
    uint64_t capacity = 1 + rng_below(rng, rng_below(rng, 2) ? 3000 : 60);
    double fpr = rng_below(rng, 2) ? low_rate(kind) : 0.01;
    struct perhaps_options options = options_for(kind, capacity, fpr, 1 + rng_next(rng) / 2);
    const char *base;
    for (uint64_t i = rng_below(rng, 8); has_parts(kind) && base_to_test(kind, i, &base); i = 8)
        options.base = base;
    if (forgets(kind) && rng_below(rng, 3) == 0) {
        options.window.keys = 0;
        options.window.time = 1 + rng_below(rng, 500);
        options.base = NULL;
    }
    options.shared = takes_threads_over(kind, options.base) && rng_below(rng, 2);
    ask_for_copies(&options, rng_below(rng, 2));
    if (!takes_any_key(kind))
        options = (struct perhaps_options){
            .bitmap = { .low = 100000, .high = 100000 + UNIVERSE - 1 }, .shared = options.shared
        };
    return options;
}

/* Makes the filter take 64 to 200 MB, if its kind has its size from the beginning. */
static void enlarge(struct perhaps_options *options, struct rng *rng)
{
    struct perhaps_plan plan;
    uint64_t nbytes = (UINT64_C(64) + rng_below(rng, 137)) << 20;
    options->capacity = 1000000;
    options->fpr = 0.01;
    if (!perhaps_plan_for(options, &plan))
        options->capacity = (uint64_t)((double)nbytes / (double)plan.body_nbytes * 1e6);
}

/* The integers of the range of a bitmap, as text. */
static struct perhaps_keys make_numbers(void)
{
    enum { DIGITS = 6 };
    char *packed = malloc(UNIVERSE * DIGITS + 1);
    require(packed, "no memory", 0);
    for (unsigned i = 0; i < UNIVERSE; i++)
        snprintf(packed + i * DIGITS, DIGITS + 1, "%u", 100000 + i);
    return perhaps_keys_packed(packed, DIGITS, UNIVERSE);
}

/* Makes a filter and saves it.  Returns false if there is none of such options. */
static bool save_new(const struct work *work)
{
    perhaps_filter *f;
    int error = perhaps_create(&work->options, &f);
    if (!error)
        require(!perhaps_save(f, work->path.text), "cannot be saved", 0);
    perhaps_free(f);
    return !error;
}

/* A live file that perhaps_save() replaces is a plain one, beside a journal of another file. */
static void save_over(const struct work *work)
{
    perhaps_filter *f = open_as(work, PERHAPS_MODE_LOAD);
    require(!perhaps_save(f, work->path.text), "cannot be saved", 1);
    perhaps_free(f);
}

static void show(uint64_t cycles)
{
    if (isatty(STDERR_FILENO))
        fprintf(stderr, "\r%" PRIu64 " of %" PRIu64 " cycles\033[K", tally.cycles, cycles);
    else if (cycles > 1000 && tally.cycles % 1000 == 0)
        fprintf(stderr, "%" PRIu64 " of %" PRIu64 " cycles\n", tally.cycles, cycles);
}

/* Makes a file, and runs some cycles on it. */
static void run_file(struct rng *rng, uint64_t cycles, struct board *board)
{
    size_t index;
    struct work work = { .kind = draw_kind(rng, &index), .seed = rng_next(rng) };
    struct path folder = temp_path("files");
    const bool is_large = cycles >= 1000 && rng_below(rng, 300) == 0;
    now.work = &work;
    mkdir(folder.text, 0700);
    work.path = path_below(folder, "live");
    work.options = draw_options(work.kind, rng);
    if (is_large && work.options.capacity)
        enlarge(&work.options, rng);
    work.keys = takes_any_key(work.kind) ? make_keys(RANDOM_KEYS, work.seed, 0, UNIVERSE)
                                         : make_numbers();
    if (save_new(&work)) {
        uint64_t first = 0, end = tally.cycles + draw_power(rng, 4);
        tally.files++;
        tally.large += is_large && work.options.capacity;
        if (rng_below(rng, 2))
            perhaps_free(open_as(&work, PERHAPS_MODE_JOURNAL));
        while (tally.cycles < end && tally.cycles < cycles) {
            if (rng_below(rng, 16) == 0)
                save_over(&work);
            first = run_cycle(&work, first, rng, board);
            tally.of_kind[index]++;
            show(cycles);
        }
    }
    struct path beside = journal_path(&work);
    unlink(work.path.text);
    unlink(beside.text);
    free_keys(&work.keys);
}

static void print_tally(void)
{
    printf("%" PRIu64 " cycles with %" PRIu64 " files (%" PRIu64 " large): %" PRIu64
           " children killed (%" PRIu64 " while they opened, %" PRIu64
           " at system calls, %" PRIu64 " with threads), %" PRIu64 " ended by themselves\n",
           tally.cycles, tally.files, tally.large, tally.killed, tally.opening, tally.at_calls,
           tally.job[THREADS], tally.ended);
    printf("%" PRIu64 " steps begun, %" PRIu64 " steps and keys checked, %" PRIu64
           " new journals seen, %" PRIu64 " drafts left by killed children\n",
           tally.steps, tally.found, tally.renewed, tally.drafts);
    for (size_t i = 0; i < sizeof tally.of_kind / sizeof *tally.of_kind; i++)
        if (tally.of_kind[i])
            printf("  %-8s %6" PRIu64 "\n", kind_to_test(i)->name, tally.of_kind[i]);
}

int main(int argc, char **argv)
{
    uint64_t cycles = argc > 1 ? strtoull(argv[1], NULL, 10) : 0;
    if (cycles == 0) {
        fprintf(stderr, "usage: kills CYCLES [SEED]\n");
        return 2;
    }
    if (argc > 2)
        setenv("PERHAPS_TEST_SEED", argv[2], true);
    struct rng rng = rng_for("kills");
    now.seed = test_seed();
    struct board *board =
        mmap(NULL, sizeof *board, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (board == MAP_FAILED)
        return 1;
    while (tally.cycles < cycles)
        run_file(&rng, cycles, board);
    if (isatty(STDERR_FILENO))
        fprintf(stderr, "\r\033[K");
    print_tally();
    return 0;
}
