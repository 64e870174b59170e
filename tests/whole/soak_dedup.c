/* soak_dedup.c - kills 'perhaps dedup --durable' again and again: see soak.c.
 *
 * It feeds an endless stream of lines to the program, with a state that grows or forgets, and
 * ends it by SIGKILL, by other signals, by the end of its input.  A model knows what each run
 * has to print, line by line.
 * - What was printed is a beginning of what the model says: nothing is missing in it, and
 *   nothing that an earlier run remembered comes again.
 * - What the state has then is a beginning of what was printed, and has all that the state had
 *   before, and all that a reader saw in it before the end.
 * - If the input rested until everything was acknowledged, all of it is remembered.
 * The next run is fed again from the first line that is not remembered, or from somewhere
 * before it.  The rate of the filters is so low that no false positive is expected.
 */
#define _GNU_SOURCE 1

#include "soak.h"
#include <perhaps_live.h>
#include <perhaps_sets.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    LINES_MOST = 4 << 20, /* of a lap, which begins with a new state */
    RATE = 6000,          /* lines a second */
    TICK_MS = 20,
    BURST = 20000,
    TEXT_MOST = 48,
    WINDOW = 20000,
    NEAR = 1000,
    PATIENCE_S = 180, /* for what should take a second */
};

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* ---- The stream ---------------------------------------------------------------------------
 * Every second line has a new key.  The others repeat a key that is remembered for certain, or
 * under a window, sometimes one that is forgotten for certain.  The origin of a line is the
 * line with the same key that was to be printed last, which may be itself. */

struct lap {
    const char *program, *name;
    struct path folder, state, printed;
    struct rng rng;
    uint64_t number, seed;
    uint64_t window;  /* 0: none */
    const char *base; /* of the chain that grows */
    uint8_t *added;   /* of each line that is its own origin: whether the state has its key */
    uint64_t from;    /* the next run is fed from this line on */
    double mean_s;    /* of a run */
};

static bool is_far(const struct lap *lap, uint64_t line)
{
    return lap->window && line % 2 && line / 2 >= 3 * lap->window &&
           mix64(lap->seed + line) % 16 == 0;
}

static uint64_t origin_of(const struct lap *lap, uint64_t line)
{
    if (line % 2 == 0 || is_far(lap, line))
        return line;
    uint64_t random = mix64(lap->seed + line) / 16;
    uint64_t most = lap->window ? lap->window / 2 : random % 4 ? NEAR : UINT64_MAX;
    return line - 1 - 2 * (random / 4 % least(most, line / 2 + 1));
}

static uint64_t key_of(const struct lap *lap, uint64_t origin)
{
    return is_far(lap, origin) ? origin / 2 - 3 * lap->window : origin / 2;
}

/* Writes a line without its newline, and returns its length. */
static size_t text_of(const struct lap *lap, uint64_t origin, char text[TEXT_MOST])
{
    uint64_t key = key_of(lap, origin);
    return (size_t)snprintf(text, TEXT_MOST, "%016" PRIx64 " %" PRIu64, mix64(lap->seed ^ key),
                            key);
}

/* ---- A run ------------------------------------------------------------------------------- */

static struct {
    uint64_t runs, kills, signals, ends, rests, laps, lines, printed, pending, drafts;
} tally;

enum ending { KILL, REST, TERMINATE, INTERRUPT, END };

struct run {
    struct lap *lap;
    pid_t pid;
    int in, out; /* out: a pipe that is copied to the file, or -1 */
    pthread_t copier;
    uint64_t next;         /* the line to be fed next */
    uint32_t *expected;    /* the lines to be printed, in order */
    uint64_t count, room;  /* of these */
    uint64_t durable;      /* acknowledged every so many lines; 0: by time */
    uint64_t printed, has; /* how many were printed; and are remembered */
    uint64_t seen;         /* records that a reader saw */
    enum ending ending;
};

static _Noreturn void complain(const struct run *run, const char *what, uint64_t number)
{
    const struct lap *lap = run->lap;
    soak_complain(
        "%s: lap %" PRIu64 " with seed %" PRIu64 ", run %" PRIu64 ", fed lines %" PRIu64
        " to %" PRIu64 ", ending %d, durable %" PRIu64 ", %" PRIu64 " of %" PRIu64
        " printed, %" PRIu64 " remembered: %s (%" PRIu64 "); see %s",
        lap->name, lap->number, lap->seed, tally.runs, lap->from, run->next, run->ending,
        run->durable, run->printed, run->count, run->has, what, number, lap->folder.text);
}

static void require(bool right, const struct run *run, const char *what, uint64_t number)
{
    if (!right)
        complain(run, what, number);
}

static int open_new(struct path folder, const char *name)
{
    return open(path_below(folder, name).text, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0600);
}

/* Starts the program; its children end with this process. */
static pid_t start(struct path folder, char *const *words, int in, int out)
{
    int err = open_new(folder, "err");
    pid_t parent = getpid(), pid = fork();
    if (pid == 0) {
        sigset_t none;
        sigemptyset(&none);
        sigprocmask(SIG_SETMASK, &none, NULL);
        signal(SIGPIPE, SIG_DFL);
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() == parent && dup2(in, 0) >= 0 && dup2(out, 1) >= 0 && dup2(err, 2) >= 0)
            execv(words[0], words);
        _exit(127);
    }
    close(err);
    return pid;
}

static void *copy_pipe(void *context)
{
    const struct run *run = context;
    FILE *to = fopen(run->lap->printed.text, "we");
    char bytes[65536];
    ssize_t n;
    while ((n = read(run->out, bytes, sizeof bytes)) > 0 || (n < 0 && errno == EINTR))
        if (n > 0) {
            fwrite(bytes, 1, (size_t)n, to);
            fflush(to);
        }
    fclose(to);
    return NULL;
}

static void begin(struct run *run)
{
    struct lap *lap = run->lap;
    int in[2], out[2] = { -1, -1 };
    char durable[32];
    bool by_lines = rng_below(&lap->rng, 3) == 0, piped = rng_below(&lap->rng, 2);
    run->durable = by_lines ? 1 + rng_below(&lap->rng, 5000) : 0;
    snprintf(durable, sizeof durable, by_lines ? "%" PRIu64 : "%" PRIu64 "ms",
             by_lines ? run->durable : 50 + rng_below(&lap->rng, 1000));
    char *words[20] = { (char *)lap->program, "dedup",     "-q",   "--state",
                        lap->state.text,      "--durable", durable };
    size_t n = 7;
    if (access(lap->state.text, F_OK) != 0) {
        static const char *const grow[] = { "-p", "1e-12", "-n", "1000", "--grow", "--base" };
        static const char *const window[] = { "-p", "1e-12", "--window", "20000-keys" };
        for (size_t i = 0; i < (lap->window ? 4 : 6); i++)
            words[n++] = (char *)(lap->window ? window[i] : grow[i]);
        if (!lap->window)
            words[n++] = (char *)lap->base;
    }
    unlink(lap->printed.text);
    int to = open_new(lap->folder, "printed");
    if (pipe2(in, O_CLOEXEC) || (piped && pipe2(out, O_CLOEXEC)))
        complain(run, "no pipe", (uint64_t)errno);
    run->pid = start(lap->folder, words, in[0], piped ? out[1] : to);
    soak_child_is(run->pid);
    close(in[0]);
    close(to);
    if (piped)
        close(out[1]);
    run->in = in[1];
    run->out = out[0];
    fcntl(run->in, F_SETFL, O_NONBLOCK);
    if (piped && pthread_create(&run->copier, NULL, copy_pipe, run))
        complain(run, "no thread", 0);
}

static void feed_bytes(const struct run *run, const char *bytes, size_t nbytes)
{
    double end = soak_now() + (double)PATIENCE_S;
    while (nbytes) {
        struct pollfd ready = { .fd = run->in, .events = POLLOUT };
        poll(&ready, 1, 1000);
        ssize_t n = write(run->in, bytes, nbytes);
        require(n >= 0 || errno == EAGAIN || errno == EINTR, run, "it ended by itself", 0);
        require(n > 0 || soak_now() < end, run, "it reads no more", nbytes);
        bytes += n > 0 ? n : 0;
        nbytes -= n > 0 ? (size_t)n : 0;
    }
}

/* Notes what has to be printed for a line. */
static void expect_line(struct run *run, uint64_t line)
{
    uint64_t origin = origin_of(run->lap, line);
    if (run->lap->added[origin])
        return;
    require(origin == line, run, "the model has lost a line", line);
    run->lap->added[origin] = 1;
    if (run->count == run->room) {
        run->room = 2 * run->room + 1024;
        run->expected = realloc(run->expected, run->room * sizeof *run->expected);
        require(run->expected, run, "no memory", 0);
    }
    run->expected[run->count++] = (uint32_t)line;
}

static void feed_lines(struct run *run, uint64_t count)
{
    static char bytes[BURST * TEXT_MOST];
    char *at = bytes;
    for (uint64_t i = 0; i < count && run->next < LINES_MOST; i++, run->next++) {
        at += text_of(run->lap, origin_of(run->lap, run->next), at);
        *at++ = '\n';
        expect_line(run, run->next);
        tally.lines++;
    }
    feed_bytes(run, bytes, (size_t)(at - bytes));
}

static void feed(struct run *run, double seconds)
{
    const uint64_t usual = RATE * TICK_MS / 1000;
    struct rng *rng = &run->lap->rng;
    double end = soak_now() + seconds;
    while (soak_now() < end && run->next < LINES_MOST && !soak_stopped()) {
        bool bursts = rng_below(rng, 500) == 0;
        feed_lines(run, bursts ? BURST : rng_below(rng, 2 * usual));
        soak_sleep(TICK_MS);
    }
}

/* ---- What it printed, and what the state has --------------------------------------------- */

/* Compares what was printed with what had to be.  A line without its newline does not count. */
static void check_printed(struct run *run)
{
    struct bytes printed = read_file(run->lap->printed.text);
    const char *at = (const char *)printed.at, *end = at + printed.nbytes, *newline;
    char text[TEXT_MOST];
    run->printed = 0;
    while (at < end && (newline = memchr(at, '\n', (size_t)(end - at)))) {
        require(run->printed < run->count, run, "printed more than all", run->printed);
        uint64_t line = run->expected[run->printed];
        size_t length = text_of(run->lap, line, text);
        if ((size_t)(newline - at) != length || strncmp(at, text, length) != 0)
            soak_complain("'%.*s' printed instead of '%s': lap seed %" PRIu64 ", run %" PRIu64
                          ", line %" PRIu64 " of the stream, fed from %" PRIu64 "; see %s",
                          (int)(newline - at), at, text, run->lap->seed, tally.runs, line,
                          run->lap->from, run->lap->folder.text);
        run->printed++;
        at = newline + 1;
    }
    free_bytes(&printed);
}

static perhaps_filter *open_state(const struct run *run, uint64_t *records)
{
    struct perhaps_journal journal = { 0 };
    perhaps_filter *f;
    int error = perhaps_open(run->lap->state.text, NULL, &f);
    if (!error)
        error = perhaps_journal_of(f, &journal);
    require(!error, run, perhaps_strerror(error), 0);
    *records = journal.last;
    return f;
}

static bool has_line(const struct run *run, const perhaps_filter *f, uint64_t line)
{
    char text[TEXT_MOST];
    return perhaps_contains(f, text, text_of(run->lap, line, text));
}

/* Sets 'has' to how many of the expected lines the state has.  A window may have forgotten the
 * first of them again. */
static void check_state(struct run *run, const perhaps_filter *f)
{
    struct lap *lap = run->lap;
    uint64_t has = run->count;
    while (has && !has_line(run, f, run->expected[has - 1]))
        has--;
    run->has = has;
    require(has <= run->printed, run, "a line is remembered that was not printed", has);
    uint64_t first = lap->window && has > lap->window / 2 ? has - lap->window / 2 : 0;
    for (uint64_t i = first; i < has; i++)
        require(has_line(run, f, run->expected[i]), run, "the state has a hole", i);
    uint64_t end = least(lap->from, has ? run->expected[has - 1] : UINT64_MAX);
    uint64_t line = lap->window && end > lap->window / 2 ? end - lap->window / 2 : 0;
    if (lap->window && first > 0)
        return; /* nothing from before need be left */
    for (; line < end; line++)
        if (origin_of(lap, line) == line && lap->added[line])
            require(has_line(run, f, line), run, "a line is forgotten", line);
}

/* How many of the lines that were printed need not be remembered when the input rests. */
static uint64_t pending_most(const struct run *run)
{
    return run->durable ? run->durable - 1 : 0;
}

/* Feeds nothing until all was printed and acknowledged. */
static void rest(struct run *run)
{
    double end = soak_now() + (double)PATIENCE_S;
    for (bool done = run->count == 0; !done && !soak_stopped();) {
        soak_sleep(100);
        check_printed(run);
        if (run->printed == run->count && perhaps_is_live(run->lap->state.text)) {
            uint64_t records, most = pending_most(run);
            perhaps_filter *f = open_state(run, &records);
            done = run->count <= most || has_line(run, f, run->expected[run->count - most - 1]);
            perhaps_free(f);
        }
        require(done || soak_now() < end, run, "it does not acknowledge", run->printed);
    }
}

/* ---- The end of a run -------------------------------------------------------------------- */

static int wait_for(const struct run *run, pid_t pid)
{
    double end = soak_now() + (double)PATIENCE_S;
    int status;
    while (waitpid(pid, &status, WNOHANG) != pid) {
        require(soak_now() < end, run, "a process does not end", (uint64_t)pid);
        soak_sleep(5);
    }
    return status;
}

static void end_run(struct run *run)
{
    static const int signals[] = { SIGKILL, SIGKILL, SIGTERM, SIGINT, 0 };
    int number = signals[run->ending];
    if (number) {
        /* before it, or it might end by the end of its input */
        kill(run->pid, number);
    } else {
        close(run->in);
    }
    int status = wait_for(run, run->pid);
    soak_child_is(0);
    if (number)
        close(run->in);
    if (run->out >= 0) {
        pthread_join(run->copier, NULL);
        close(run->out);
    }
    if (number == SIGKILL)
        require(WIFSIGNALED(status) && WTERMSIG(status) == number, run, "it ended", 0);
    else if (number)
        require((WIFSIGNALED(status) && WTERMSIG(status) == number) ||
                    (WIFEXITED(status) && WEXITSTATUS(status) == 128 + number),
                run, "its status after a signal", (uint64_t)status);
    else
        require(status == 0, run, "its status at the end of its input", (uint64_t)status);
}

static void succeeds(const struct run *run, const char *verb)
{
    char *words[] = { (char *)run->lap->program, (char *)verb, (char *)run->lap->state.text,
                      NULL };
    int in = open("/dev/null", O_RDONLY | O_CLOEXEC), out = open_new(run->lap->folder, verb);
    int status = wait_for(run, start(run->lap->folder, words, in, out));
    close(in);
    close(out);
    require(status == 0, run, verb, (uint64_t)status);
}

/* What the next run is fed again begins at the first line that is not remembered, or up to some
 * thousand lines before. */
static void go_back(struct run *run)
{
    struct lap *lap = run->lap;
    uint64_t first = run->has < run->count ? run->expected[run->has] : run->next;
    for (uint64_t i = run->has; i < run->count; i++)
        lap->added[run->expected[i]] = 0;
    lap->from = first - rng_below(&lap->rng, least(first, 5000) + 1);
    tally.pending += run->printed - run->has;
    tally.printed += run->printed;
}

/* Removes what the program was writing when it was killed. */
static void remove_drafts(struct path folder)
{
    DIR *entries = opendir(folder.text);
    for (struct dirent *entry; entries && (entry = readdir(entries));)
        if (strncmp(entry->d_name, ".S.", 3) == 0)
            tally.drafts += unlink(path_below(folder, entry->d_name).text) == 0;
    if (entries)
        closedir(entries);
}

static void check_run(struct run *run)
{
    uint64_t records;
    check_printed(run);
    if (run->ending == END)
        require(run->printed == run->count, run, "lines are missing at the end", 0);
    if (!perhaps_is_live(run->lap->state.text) && run->lap->from == 0 && run->printed == 0)
        return; /* killed before it had made the state, or made it live */
    perhaps_filter *f = open_state(run, &records);
    check_state(run, f);
    perhaps_free(f);
    require(records >= run->seen, run, "records that a reader saw are lost", run->seen);
    if (run->ending >= TERMINATE)
        require(run->has == run->printed, run, "not all that was printed is remembered", 0);
    if (run->ending == REST)
        require(run->count - run->has <= pending_most(run), run, "acknowledged, and lost", 0);
    succeeds(run, "verify");
    if (rng_below(&run->lap->rng, 4) == 0) /* it plans again, which takes seconds */
        succeeds(run, "info");
}

/* A reader that sees some records, and when the writer has died, all that are there. */
static perhaps_filter *begin_to_read(struct run *run)
{
    if (rng_below(&run->lap->rng, 2) || !perhaps_is_live(run->lap->state.text))
        return NULL;
    return open_state(run, &run->seen);
}

static void end_reading(const struct run *run, perhaps_filter *reader)
{
    struct perhaps_journal journal = { 0 };
    uint64_t records;
    if (!reader)
        return;
    int error = perhaps_refresh(&reader, run->lap->state.text, NULL);
    require(!error, run, perhaps_strerror(error), 1);
    perhaps_filter *f = open_state(run, &records);
    perhaps_journal_of(reader, &journal);
    require(journal.last == records, run, "a reader has other records", journal.last);
    require(perhaps_equal(reader, f), run, "a reader has another filter", records);
    perhaps_free(f);
    perhaps_free(reader);
}

static enum ending draw_ending(struct rng *rng)
{
    uint64_t die = rng_below(rng, 20);
    return die < 12   ? KILL
           : die < 15 ? REST
           : die < 17 ? TERMINATE
           : die < 19 ? INTERRUPT
                      : END;
}

static void do_run(struct lap *lap, double seconds_left)
{
    struct run run = { .lap = lap, .next = lap->from, .ending = draw_ending(&lap->rng) };
    double share = (double)rng_below(&lap->rng, 1000) / 1000;
    begin(&run);
    double seconds = 3 * lap->mean_s * share * share;
    feed(&run, seconds < seconds_left ? seconds : seconds_left);
    if (soak_stopped() || lap->from == LINES_MOST)
        run.ending = KILL;
    if (run.ending == REST)
        rest(&run);
    if (run.ending == REST && soak_stopped())
        run.ending = KILL;
    perhaps_filter *reader = begin_to_read(&run);
    if (reader)
        soak_sleep((unsigned)rng_below(&lap->rng, 100));
    end_run(&run);
    tally.runs++;
    tally.kills += run.ending <= REST;
    tally.rests += run.ending == REST;
    tally.signals += run.ending == TERMINATE || run.ending == INTERRUPT;
    tally.ends += run.ending == END;
    check_run(&run);
    end_reading(&run, reader);
    go_back(&run);
    remove_drafts(lap->folder);
    free(run.expected);
}

/* ---- Laps -------------------------------------------------------------------------------- */

static void new_lap(struct lap *lap)
{
    static const char *const bases[] = { "blocked", "bloom" };
    unlink(lap->state.text);
    unlink(journal_of(lap->state).text);
    memset(lap->added, 0, LINES_MOST);
    lap->seed = rng_next(&lap->rng);
    lap->base = bases[rng_below(&lap->rng, 2)];
    lap->number++;
    lap->from = 0;
    tally.laps++;
}

static void summarize(const struct lap *lap)
{
    printf("dedup %-7s %" PRIu64 " runs: %" PRIu64 " killed (%" PRIu64 " at rest), %" PRIu64
           " by other signals, %" PRIu64 " to the end of input; %" PRIu64 " states\n",
           lap->name, tally.runs, tally.kills, tally.rests, tally.signals, tally.ends,
           tally.laps);
    printf("              %" PRIu64 " lines fed, %" PRIu64 " printed, %" PRIu64
           " of them not yet remembered when it ended, %" PRIu64 " drafts left;\n"
           "              0 lost, 0 of those that were remembered came again\n",
           tally.lines, tally.printed, tally.pending, tally.drafts);
}

int soak_dedup(const char *name, const char *program, const char *folder, uint64_t seed,
               double seconds)
{
    struct lap lap = { .program = program, .name = name };
    double end = soak_now() + seconds;
    lap.rng.state = mix64(seed + (uint64_t)name[0]);
    lap.window = strcmp(name, "window") == 0 ? WINDOW : 0;
    snprintf(lap.folder.text, sizeof lap.folder.text, "%s/%s", folder, name);
    mkdir(lap.folder.text, 0700);
    lap.state = path_below(lap.folder, "S");
    lap.printed = path_below(lap.folder, "printed");
    lap.added = calloc(LINES_MOST, 1);
    lap.mean_s = seconds < 150 ? seconds / 20 : 7;
    if (!lap.added)
        return 2;
    new_lap(&lap);
    while (soak_now() < end && !soak_stopped()) {
        do_run(&lap, end - soak_now());
        if (lap.from > LINES_MOST - 10000)
            new_lap(&lap);
        soak_tell(folder, name, "%" PRIu64 " runs, %" PRIu64 " kills, %" PRIu64 " lines",
                  tally.runs, tally.kills, tally.lines);
    }
    free(lap.added);
    summarize(&lap);
    return 0;
}
