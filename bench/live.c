/* live.c - perhaps-bench-live [--keys N] [--repeat R] [--folder DIR]: what a journal costs.
 *
 * For each kind, in turns: adds to a filter in memory, and to a live file whose journal another
 * thread syncs every 10 ms (group commit) and once at the end; both times all keys lie in
 * memory and go in batches.  Then how long it takes to open a live file whose journal has all
 * keys, and how long perhaps_sync() of one key takes beside a bare pwrite() and fdatasync() of
 * as many bytes, which is the least that can be done.  Prints the best of R (5) runs, and
 * medians of the syncs. */
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "bench.h"
#include <perhaps_live.h>

enum { BATCH = 4096, INTERVAL_NS = 10000000, SYNCS = 300, SECTOR = 512 };

struct live_bench {
    uint64_t nkeys;
    unsigned repeat;
    uint64_t *keys;
    char folder[4096], file[4200], journal[4300], bare[4200];
};

static _Noreturn void die(const char *what, int error)
{
    fprintf(stderr, "perhaps-bench-live: %s: %s\n", what, perhaps_strerror(error));
    exit(2);
}

static void must(const char *what, int error)
{
    if (error)
        die(what, error);
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static perhaps_filter *new_filter(const struct live_bench *b, const char *kind)
{
    const struct perhaps_options options = { .capacity = b->nkeys, .fpr = 0.01, .kind = kind };
    perhaps_filter *f;
    must(kind, perhaps_create(&options, &f));
    return f;
}

static void add_all(const struct live_bench *b, perhaps_filter *f)
{
    for (uint64_t at = 0; at < b->nkeys; at += BATCH) {
        size_t n = b->nkeys - at < BATCH ? (size_t)(b->nkeys - at) : BATCH;
        struct perhaps_keys keys = perhaps_keys_packed(b->keys + at, sizeof *b->keys, n);
        must("add", perhaps_add_many(f, &keys, NULL));
    }
}

/* ---- Adds -------------------------------------------------------------------------------- */

struct committer {
    perhaps_filter *f;
    atomic_bool ends;
    unsigned commits;
};

static void *commit(void *committer)
{
    struct committer *c = committer;
    const struct timespec interval = { .tv_nsec = INTERVAL_NS };
    while (!c->ends) {
        nanosleep(&interval, NULL);
        must("sync", perhaps_sync(c->f));
        c->commits++;
    }
    return NULL;
}

static double plain_adds(const struct live_bench *b, const char *kind)
{
    perhaps_filter *f = new_filter(b, kind);
    double began = now();
    add_all(b, f);
    double seconds = now() - began;
    perhaps_free(f);
    return seconds;
}

/* Makes a new live file, and opens it to be written. */
static perhaps_filter *new_live(const struct live_bench *b, const char *kind)
{
    const struct perhaps_open_options options = { .mode = PERHAPS_MODE_JOURNAL,
                                                  .journal_nbytes = UINT64_MAX };
    perhaps_filter *f = new_filter(b, kind);
    unlink(b->file);
    unlink(b->journal);
    must(b->file, perhaps_save(f, b->file));
    perhaps_free(f);
    must(b->file, perhaps_open(b->file, &options, &f));
    return f;
}

static double live_adds(const struct live_bench *b, const char *kind, unsigned *commits)
{
    struct committer c = { .f = new_live(b, kind) };
    pthread_t thread;
    double began = now();
    if (pthread_create(&thread, NULL, commit, &c))
        die("thread", PERHAPS_ERR_MEMORY);
    add_all(b, c.f);
    must("sync", perhaps_sync(c.f));
    double seconds = now() - began;
    c.ends = true;
    pthread_join(thread, NULL);
    *commits = c.commits;
    perhaps_free(c.f);
    return seconds;
}

/* Returns how long it takes to open the file, with all keys in its journal. */
static double recovery(const struct live_bench *b, enum perhaps_mode mode)
{
    const struct perhaps_open_options options = { .mode = mode };
    perhaps_filter *f;
    double began = now();
    must(b->file, perhaps_open(b->file, &options, &f));
    double seconds = now() - began;
    struct perhaps_journal journal;
    must("journal", perhaps_journal_of(f, &journal));
    perhaps_free(f);
    return seconds;
}

static void measure_kind(const struct live_bench *b, const char *kind)
{
    double plain = 1e9, live = 1e9, reading = 1e9, writing = 1e9;
    unsigned commits = 0;
    for (unsigned i = 0; i < b->repeat; i++) {
        double seconds = plain_adds(b, kind);
        plain = seconds < plain ? seconds : plain;
        seconds = live_adds(b, kind, &commits);
        live = seconds < live ? seconds : live;
        seconds = recovery(b, PERHAPS_MODE_READ);
        reading = seconds < reading ? seconds : reading;
        seconds = recovery(b, PERHAPS_MODE_JOURNAL);
        writing = seconds < writing ? seconds : writing;
    }
    const double millions = (double)b->nkeys * 1e-6;
    printf("| %s | %.1f | %.1f | %.2f | %u | %.2f | %.2f |\n", kind, millions / plain,
           millions / live, plain / live, commits, reading, writing);
    fflush(stdout);
}

/* ---- Syncs ------------------------------------------------------------------------------- */

static int by_size(const void *a, const void *b)
{
    const double *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

static double median(double *at, size_t n)
{
    qsort(at, n, sizeof *at, by_size);
    return at[n / 2];
}

/* In turns, since the disk has moods. */
static void measure_syncs(const struct live_bench *b)
{
    static double ours[SYNCS], bare[SYNCS];
    static const uint8_t sector[SECTOR];
    perhaps_filter *f = new_live(b, "blocked");
    int fd = open(b->bare, O_RDWR | O_CREAT | O_TRUNC, 0666);
    if (fd < 0 || fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, SYNCS * SECTOR))
        die(b->bare, PERHAPS_ERR_IO);
    for (size_t i = 0; i < SYNCS; i++) {
        double began = now();
        must("add", perhaps_add(f, &b->keys[i], sizeof *b->keys));
        must("sync", perhaps_sync(f));
        double between = now();
        if (pwrite(fd, sector, SECTOR, (off_t)(i * SECTOR)) != SECTOR || fdatasync(fd))
            die(b->bare, PERHAPS_ERR_IO);
        ours[i] = between - began;
        bare[i] = now() - between;
    }
    close(fd);
    perhaps_free(f);
    double a = median(ours, SYNCS), c = median(bare, SYNCS);
    printf("\nsync of one key: %.0f us; bare pwrite and fdatasync of %d bytes: %.0f us; ratio "
           "%.2f (medians of %d, in turns)\n",
           1e6 * a, SECTOR, 1e6 * c, a / c, SYNCS);
}

/* ---- All --------------------------------------------------------------------------------- */

static void read_options(struct live_bench *b, int argc, char **argv)
{
    const char *folder = getenv("TMPDIR");
    *b = (struct live_bench){ .nkeys = 10000000, .repeat = 5 };
    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--keys") == 0)
            b->nkeys = strtoull(argv[i + 1], NULL, 10);
        else if (strcmp(argv[i], "--repeat") == 0)
            b->repeat = (unsigned)strtoul(argv[i + 1], NULL, 10);
        else if (strcmp(argv[i], "--folder") == 0)
            folder = argv[i + 1];
        else
            argc = 0;
    }
    if (argc % 2 == 0 || b->nkeys < SYNCS || !b->repeat) {
        fprintf(stderr, "usage: perhaps-bench-live [--keys N] [--repeat R] [--folder DIR]\n");
        exit(2);
    }
    snprintf(b->folder, sizeof b->folder, "%s/perhaps-live-XXXXXX", folder ? folder : "/tmp");
    if (!mkdtemp(b->folder))
        die(b->folder, PERHAPS_ERR_IO);
    snprintf(b->file, sizeof b->file, "%s/F", b->folder);
    snprintf(b->journal, sizeof b->journal, "%s.journal", b->file);
    snprintf(b->bare, sizeof b->bare, "%s/bare", b->folder);
    b->keys = malloc(b->nkeys * sizeof *b->keys);
    if (!b->keys)
        die("keys", PERHAPS_ERR_MEMORY);
    for (uint64_t i = 0; i < b->nkeys; i++)
        b->keys[i] = random64(i);
}

int main(int argc, char **argv)
{
    static const char *const kinds[] = { "blocked", "bloom",    "cuckoo",
                                         "strided", "counting", "elastic" };
    struct live_bench b;
    read_options(&b, argc, argv);
    printf(
        "%llu keys of 8 bytes at 1 %%, one thread adds, one syncs every 10 ms; best of %u\n\n"
        "| kind | plain, M keys/s | live | live / plain | syncs | opened to read, s | to "
        "write, s |\n|---|---|---|---|---|---|---|\n",
        (unsigned long long)b.nkeys, b.repeat);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        measure_kind(&b, kinds[i]);
    measure_syncs(&b);
    unlink(b.file);
    unlink(b.journal);
    unlink(b.bare);
    rmdir(b.folder);
    free(b.keys);
    return 0;
}
