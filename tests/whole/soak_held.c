/* soak_held.c - one process holds a live file of each kind open and changes it all the time;
 * another holds them open to read.  Neither may lose a key or grow.
 *
 * Both work in laps, in which the same is done every time.  Filters of kinds that do not grow
 * stay open from the first lap to the last: keys are added, the oldest removed, or all cleared
 * when it is full.  Those that grow are made anew for each lap.  At the end of each lap they
 * are freed, the files of the others saved, both processes compare what they have, and each
 * counts what it holds:
 * - open files and threads: as many as after the first laps;
 * - bytes that malloc() has given out: at most 256 KiB more than in any of the first laps;
 * - resident memory (VmRSS): at most 8 MiB more. */
#define _GNU_SOURCE 1

#include <dirent.h>
#include <inttypes.h>
#include <malloc.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "soak.h"
#include <perhaps_live.h>
#include <perhaps_sets.h>

enum {
    FILES_MOST = 16,
    CAPACITY = 4000,
    KEYS_OF_ONE = 3000, /* that are in at once, where keys are removed */
    ROUND_MOST = 60,    /* keys of a round */
    ROUND_MS = 20,
    ROUNDS_OF_LAP = 400, /* fewer in a short run */
    FIRST_LAPS = 3,
    JOURNAL_NBYTES = 64 << 10,
    HEAP_MORE = 256 << 10,
    RSS_MORE_KB = 8 << 10,
    PATIENCE_S = 180,
};

/* What is known of a file: its keys are numbered, and added and removed in this order. */
struct known {
    atomic_ullong begun;        /* adds, before they are made */
    atomic_ullong acknowledged; /* adds that were synced */
    atomic_ullong removed;      /* keys, before they are removed or cleared */
    uint8_t digest[16];         /* at the end of a lap */
};

struct board {
    struct known file[FILES_MOST];
    atomic_ullong ended, compared, begun; /* laps */
    atomic_ullong questions, refreshes;
    atomic_bool stops;
};

struct sample {
    uint64_t fds, threads, heap, rss_kb;
};

struct file {
    struct path path;
    const struct perhaps_kind *kind;
    perhaps_filter *f;
    uint64_t added, removed;
};

struct held {
    const char *folder, *name;
    uint64_t seed;
    struct rng rng;
    struct board *board;
    unsigned count;
    struct file file[FILES_MOST];
    uint64_t laps, rounds, ops, syncs;
    struct sample most, first, last; /* most: of the first laps */
};

static const struct perhaps_open_options to_change = { .mode = PERHAPS_MODE_JOURNAL,
                                                       .journal_nbytes = JOURNAL_NBYTES };

static void require(const struct held *h, const struct file *file, int error, const char *what)
{
    if (error)
        soak_complain("held: %s: seed %" PRIu64 ", lap %" PRIu64 ", %s: %s: %s; see %s",
                      h->name, h->seed, h->laps, file ? file->kind->name : "all", what,
                      error < 0 ? perhaps_strerror(error) : "not so", h->folder);
}

/* ---- What a process holds ---------------------------------------------------------------- */

static uint64_t count_fds(void)
{
    uint64_t count = 0;
    DIR *folder = opendir("/proc/self/fd");
    while (folder && readdir(folder))
        count++;
    if (folder)
        closedir(folder);
    return count;
}

static uint64_t of_status(const char *name)
{
    FILE *file = fopen("/proc/self/status", "re");
    char line[256];
    uint64_t value = 0;
    while (file && fgets(line, sizeof line, file))
        if (strncmp(line, name, strlen(name)) == 0)
            value = strtoull(line + strlen(name) + 1, NULL, 10);
    if (file)
        fclose(file);
    return value;
}

/* The bytes that malloc() has given out; 0 where the C library does not tell. */
static uint64_t heap_nbytes(void)
{
#ifdef __GLIBC__
    malloc_trim(0);
    struct mallinfo2 heap = mallinfo2();
    return heap.uordblks + heap.hblkhd;
#else
    return 0;
#endif
}

static struct sample take_sample(void)
{
    return (struct sample){ .fds = count_fds(),
                            .threads = of_status("Threads"),
                            .heap = heap_nbytes(),
                            .rss_kb = of_status("VmRSS") };
}

static void keep_most(struct sample *most, const struct sample *s)
{
    most->fds = s->fds > most->fds ? s->fds : most->fds;
    most->threads = s->threads > most->threads ? s->threads : most->threads;
    most->heap = s->heap > most->heap ? s->heap : most->heap;
    most->rss_kb = s->rss_kb > most->rss_kb ? s->rss_kb : most->rss_kb;
}

/* A thread that has just ended may still be counted. */
static struct sample quiet_sample(const struct sample *most)
{
    struct sample s = take_sample();
    for (unsigned i = 0; i < 500; i++, s = take_sample()) {
        if (most->fds ? s.fds <= most->fds && s.threads <= most->threads : i > 5)
            break;
        soak_sleep(20);
    }
    return s;
}

static void print_sample(const struct held *h, const char *when, const struct sample *s)
{
    printf("held %-8s %s: %" PRIu64 " open files, %" PRIu64 " threads, %" PRIu64
           " bytes of malloc, VmRSS %" PRIu64 " kB\n",
           h->name, when, s->fds, s->threads, s->heap, s->rss_kb);
}

static void judge(struct held *h)
{
    struct sample s = quiet_sample(&h->most);
    h->last = s;
    if (h->laps < FIRST_LAPS) {
        keep_most(&h->most, &s);
        h->first = s;
        return;
    }
    bool same = s.fds == h->first.fds && s.threads == h->first.threads;
    bool flat = s.heap <= h->most.heap + HEAP_MORE && s.rss_kb <= h->most.rss_kb + RSS_MORE_KB;
    if (same && (flat || SANITIZED))
        return;
    print_sample(h, "after the first laps", &h->first);
    print_sample(h, "now", &s);
    require(h, NULL, 1, "it holds more than after the first laps");
}

/* ---- The process that changes them ------------------------------------------------------- */

static uint64_t key_of(const struct held *h, unsigned i, uint64_t number)
{
    return mix64(mix64(h->seed + i) + number);
}

static void make_file(struct held *h, unsigned i)
{
    struct file *file = &h->file[i];
    struct perhaps_options options =
        options_for(file->kind, grows(file->kind) ? 100 : CAPACITY, low_rate(file->kind), 1);
    perhaps_filter *f;
    require(h, file, perhaps_create(&options, &f), "create");
    require(h, file, perhaps_save(f, file->path.text), "save");
    perhaps_free(f);
    require(h, file, perhaps_open(file->path.text, &to_change, &file->f), "open");
}

static void forget_all(struct held *h, unsigned i)
{
    struct file *file = &h->file[i];
    file->removed = file->added;
    atomic_store(&h->board->file[i].removed, file->removed);
}

/* Adds some keys, one by one or many at once. */
static void add_some(struct held *h, unsigned i)
{
    struct file *file = &h->file[i];
    uint64_t keys[ROUND_MOST], count = 1 + rng_below(&h->rng, ROUND_MOST);
    bool many = rng_below(&h->rng, 2);
    int error = 0;
    for (uint64_t n = 0; n < count; n++)
        keys[n] = key_of(h, i, file->added + n);
    atomic_store(&h->board->file[i].begun, file->added + count);
    const struct perhaps_keys packed = perhaps_keys_packed(keys, sizeof *keys, count);
    if (many)
        error = perhaps_add_many(file->f, &packed, NULL);
    for (uint64_t n = 0; !many && n < count && !error; n++)
        error = perhaps_add(file->f, &keys[n], sizeof keys[n]);
    file->added += count;
    h->ops += count;
    if (error == PERHAPS_ERR_FULL) {
        forget_all(h, i);
        error = perhaps_clear(file->f);
    }
    require(h, file, error, "add");
}

static void remove_some(struct held *h, unsigned i)
{
    struct file *file = &h->file[i];
    while (file->added - file->removed > KEYS_OF_ONE) {
        uint64_t key = key_of(h, i, file->removed);
        atomic_store(&h->board->file[i].removed, ++file->removed);
        require(h, file, perhaps_remove(file->f, &key, sizeof key), "remove");
        h->ops++;
    }
}

static void do_round(struct held *h)
{
    for (unsigned i = 0; i < h->count; i++) {
        struct file *file = &h->file[i];
        add_some(h, i);
        if (removes(file->kind) && !grows(file->kind))
            remove_some(h, i);
        if (rng_below(&h->rng, 2)) {
            require(h, file, perhaps_sync(file->f), "sync");
            atomic_store(&h->board->file[i].acknowledged, file->added);
            h->syncs++;
        }
    }
}

/* Both have the same, and then those that grow are freed. */
static void end_lap(struct held *h)
{
    for (unsigned i = 0; i < h->count; i++) {
        struct file *file = &h->file[i];
        require(h, file, perhaps_checkpoint(file->f), "checkpoint");
        atomic_store(&h->board->file[i].acknowledged, file->added);
        perhaps_digest(file->f, h->board->file[i].digest);
    }
    atomic_store(&h->board->ended, h->laps + 1);
    double end = soak_now() + (double)PATIENCE_S;
    while (atomic_load(&h->board->compared) <= h->laps && !soak_stopped()) {
        soak_sleep(2);
        require(h, NULL, soak_now() > end, "the reader hangs");
    }
    for (unsigned i = 0; i < h->count; i++)
        if (grows(h->file[i].kind)) {
            perhaps_free(h->file[i].f);
            h->file[i].f = NULL;
            unlink(h->file[i].path.text);
            unlink(journal_of(h->file[i].path).text);
        }
    judge(h);
}

static void begin_lap(struct held *h)
{
    for (unsigned i = 0; i < h->count; i++)
        if (!h->file[i].f) {
            forget_all(h, i);
            make_file(h, i);
        }
    atomic_store(&h->board->begun, h->laps + 1);
}

static void hold(struct held *h, double seconds, pid_t reader)
{
    double end = soak_now() + seconds;
    while (soak_now() < end && !soak_stopped()) {
        begin_lap(h);
        for (uint64_t i = 0; i < h->rounds && !soak_stopped(); i++) {
            do_round(h);
            soak_sleep(ROUND_MS);
            if (waitpid(reader, NULL, WNOHANG) != 0)
                _exit(1); /* it has told why */
        }
        if (soak_stopped())
            return;
        end_lap(h);
        h->laps++;
        soak_tell(h->folder, h->name,
                  "%" PRIu64 " laps, %" PRIu64 " changes, %" PRIu64 " questions, %" PRIu64
                  " open files, VmRSS %" PRIu64 " kB",
                  h->laps, h->ops, (uint64_t)h->board->questions, h->last.fds, h->last.rss_kb);
    }
}

/* ---- The process that reads them --------------------------------------------------------- */

static void refresh(struct held *h, unsigned i)
{
    struct file *file = &h->file[i];
    int error = file->f ? perhaps_refresh(&file->f, file->path.text, NULL)
                        : perhaps_open(file->path.text, NULL, &file->f);
    require(h, file, error, "refresh");
    atomic_fetch_add(&h->board->refreshes, 1);
}

/* A key that was acknowledged before the refresh must be found, unless it was removed since. */
static void ask(struct held *h, unsigned i, uint64_t acknowledged, unsigned questions)
{
    struct file *file = &h->file[i];
    struct known *known = &h->board->file[i];
    uint64_t first = atomic_load(&known->removed);
    for (unsigned n = 0; n < questions && first < acknowledged; n++) {
        uint64_t number = first + rng_below(&h->rng, acknowledged - first);
        uint64_t key = key_of(h, i, number);
        atomic_fetch_add(&h->board->questions, 1);
        if (perhaps_contains(file->f, &key, sizeof key))
            continue;
        first = atomic_load(&known->removed);
        uint64_t window = forgets(file->kind) ? CAPACITY : UINT64_MAX / 2;
        bool gone = number < first || number + window < atomic_load(&known->begun);
        if (!gone)
            soak_complain("held: seed %" PRIu64 ", lap %" PRIu64 ", %s: key %" PRIu64
                          " of %" PRIu64 " acknowledged ones, %" PRIu64
                          " removed, is not found",
                          h->seed, h->laps, file->kind->name, number, acknowledged, first);
    }
}

static void ask_all(struct held *h)
{
    for (unsigned i = 0; i < h->count; i++) {
        uint64_t acknowledged = atomic_load(&h->board->file[i].acknowledged);
        refresh(h, i);
        ask(h, i, acknowledged, 200);
    }
}

static void compare_all(struct held *h)
{
    for (unsigned i = 0; i < h->count; i++) {
        struct file *file = &h->file[i];
        uint8_t digest[16];
        refresh(h, i);
        perhaps_digest(file->f, digest);
        for (unsigned b = 0; b < sizeof digest; b++)
            require(h, file, digest[b] != h->board->file[i].digest[b], "the same digest");
        struct perhaps_verdict verdict;
        require(h, file, perhaps_verify(file->f, &verdict), "verify");
        if (grows(file->kind)) {
            perhaps_free(file->f);
            file->f = NULL;
        }
    }
    judge(h);
}

static _Noreturn void read_all(struct held *h)
{
    h->name = "reader";
    while (!atomic_load(&h->board->stops) && !soak_stopped()) {
        bool begun = atomic_load(&h->board->begun) > h->laps;
        if (begun && atomic_load(&h->board->ended) > h->laps) {
            compare_all(h);
            atomic_store(&h->board->compared, ++h->laps);
        } else if (begun) {
            ask_all(h);
        }
        soak_sleep(begun ? 50 : 2);
    }
    for (unsigned i = 0; i < h->count; i++)
        perhaps_free(h->file[i].f);
    print_sample(h, "after the first laps", &h->first);
    print_sample(h, "at the end", &h->last);
    fflush(stdout);
    _exit(0);
}

/* ---- Both -------------------------------------------------------------------------------- */

static pid_t start_reader(struct held *h)
{
    pid_t parent = getpid(), pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() == parent)
            read_all(h);
        _exit(1);
    }
    soak_child_is(pid);
    return pid;
}

int soak_held(const char *folder, uint64_t seed, double seconds)
{
    static struct held h;
    h = (struct held){ .folder = folder, .name = "held", .seed = seed, .rng = { mix64(seed) } };
    h.rounds = seconds < 80 ? (uint64_t)(seconds * 5) + 5 : ROUNDS_OF_LAP;
    h.board =
        mmap(NULL, sizeof *h.board, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (h.board == MAP_FAILED)
        return 2;
    EACH_KIND(kind, in_registry) {
        struct file *file = &h.file[h.count++];
        file->kind = kind;
        snprintf(file->path.text, sizeof file->path.text, "%s/held.%s", folder, kind->name);
    }
    fflush(stdout);
    pid_t reader = start_reader(&h);
    hold(&h, seconds, reader);
    atomic_store(&h.board->stops, true);
    int status = 0;
    waitpid(reader, &status, 0);
    for (unsigned i = 0; i < h.count; i++)
        perhaps_free(h.file[i].f);
    printf("held         %" PRIu64 " laps of %" PRIu64 " rounds on %u live files: %" PRIu64
           " changes, %" PRIu64 " syncs; %" PRIu64 " refreshes, %" PRIu64
           " questions, 0 denied\n",
           h.laps, h.rounds, h.count, h.ops, h.syncs, (uint64_t)h.board->refreshes,
           (uint64_t)h.board->questions);
    print_sample(&h, "after the first laps", &h.first);
    print_sample(&h, "at the end", &h.last);
    return status ? 1 : 0;
}
