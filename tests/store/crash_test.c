/* crash_test.c - proves that a live file survives a crash of the system at any moment: with
 * what the disk may hold then (disk_model.h) the file opens, in every mode, as the filter was
 * behind some operation that came no earlier than the last one that was acknowledged; and it
 * can be written again.  With PERHAPS_TEST_EVERY it tries many more of these states. */
#include "disk_model.h"
#include "live_files.h"
#include "support.h"
#include <perhaps_sets.h>
#include <perhaps_window.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "store/record.h"

/* ---- Filters as they were ---------------------------------------------------------------- */

struct truth {
    uint8_t digest[16];
    uint64_t keys;
};

/* Does not ask for statistics, which take longer than all else here. */
static struct truth truth_of(const perhaps_filter *f)
{
    struct truth truth = { .keys = f->counters->keys };
    perhaps_digest(f, truth.digest);
    return truth;
}

static bool is_same(const struct truth *a, const struct truth *b)
{
    return a->keys == b->keys && !memcmp(a->digest, b->digest, sizeof a->digest);
}

/* States of disks that were tried already: a table with open addressing. */
struct tried {
    size_t count;
    struct {
        uint64_t hash; /* 0: free */
        struct truth truth;
    } at[1 << 16];
};

enum { TRUTHS_MOST = 400 };

/* A filter that goes through operations while its folder is recorded. */
struct play {
    struct perhaps_options options;
    struct perhaps_open_options how;
    struct path folder, file;
    perhaps_filter *f;
    struct truth truths[TRUTHS_MOST]; /* behind each operation */
    size_t count;
    size_t safe; /* the last one that was acknowledged */
    uint64_t now;
    struct rng rng;
    struct perhaps_keys keys;
    size_t steps, states; /* what was tried, for people */

    struct image torn[3]; /* some in which a part of the journal is cut off */
    size_t ntorn;
};

static struct tried tried;

/* ---- Operations -------------------------------------------------------------------------- */

/* 'begun' is the last one that may be on the disk. */
static void promise(const struct play *p, size_t begun)
{
    disk_promise((struct promise){ .safe = p->safe, .begun = begun });
}

/* Returns whether nothing may be on the disk that no sync was asked for. */
static bool holds(const struct play *p)
{
    return p->how.journal_records != 0;
}

/* The filter has changed, or not. */
static void note_truth(struct play *p)
{
    expect(p->count < TRUTHS_MOST);
    p->truths[p->count++] = truth_of(p->f);
}

static void acknowledge(struct play *p)
{
    p->safe = p->count - 1;
    promise(p, p->safe);
}

static void sync_by(struct play *p, int (*sync)(perhaps_filter *f))
{
    promise(p, p->count - 1);
    expect_success(sync(p->f));
    acknowledge(p);
}

static void sync_play(struct play *p)
{
    sync_by(p, perhaps_sync);
}

/* Fewer keys than the library hands over at once: all of them go into one frame. */
static struct perhaps_keys draw_keys(struct play *p)
{
    size_t n = 1 + rng_below(&p->rng, 120);
    return perhaps_keys_slice(&p->keys, rng_below(&p->rng, p->keys.count - n), n);
}

/* Windows can do that: those by time mostly because the time has come. */
static void forget(struct play *p)
{
    const uint64_t time = p->options.window.time;
    if (time && rng_below(&p->rng, 4))
        perhaps_advance(p->f, p->now += rng_below(&p->rng, time));
    else if (time && rng_below(&p->rng, 2))
        perhaps_set_back(p->f,
                         p->now -= rng_below(&p->rng, 1 + (p->now < time ? p->now : time)));
    else
        perhaps_rotate(p->f);
}

static void change(struct play *p)
{
    struct perhaps_keys some = draw_keys(p);
    uint64_t what = rng_below(&p->rng, 100);
    promise(p, holds(p) ? p->safe : p->count); /* it has begun */
    if (p->options.window.time && what < 40)
        forget(p);
    else if (what < 25) /* not every kind can, nor every chain */
        perhaps_remove_many(p->f, &some, NULL, NULL, NULL);
    else if (what < 28)
        perhaps_clear(p->f);
    else if (what < 36)
        forget(p);
    else if (what < 50)
        perhaps_add_unless_present_many(p->f, &some, NULL, NULL);
    else
        perhaps_add_many(p->f, &some, NULL); /* which may find the filter full */
    note_truth(p);
}

static void open_play(struct play *p)
{
    size_t i = holds(p) ? p->safe : p->count - 1;
    promise(p, i);
    p->f = open_file(p->file.text, &p->how);
    struct truth truth = truth_of(p->f);
    while (i > p->safe && !is_same(&truth, &p->truths[i]))
        i--;
    expect(is_same(&truth, &p->truths[i]));
    p->count = i + 1;
    acknowledge(p);
}

static void close_play(struct play *p)
{
    perhaps_free(p->f);
    p->f = NULL;
    if (holds(p))
        p->count = p->safe + 1; /* the rest is dropped */
    acknowledge(p);
}

/* ---- Plays ------------------------------------------------------------------------------- */

static struct play begin_play(const struct perhaps_options *options,
                              const struct perhaps_open_options *how, struct perhaps_keys keys,
                              const char *name)
{
    struct play p = { .options = *options,
                      .how = *how,
                      .folder = temp_path("folder"),
                      .rng = rng_for(name),
                      .keys = keys };
    struct image nothing = { 0 };
    mkdir(p.folder.text, 0755);
    image_write(&nothing, p.folder.text);
    p.file = path_below(p.folder, "F");
    scoped_filter *f = make_with(&p.options);
    expect_success(perhaps_save(f, p.file.text));
    p.f = f;
    note_truth(&p);
    p.f = NULL;
    disk_watch(p.folder.text);
    return p;
}

/* Writes what there is, but does not sync it, as if frames had been full; unless it is held. */
static void change_and_write(struct play *p, unsigned times)
{
    for (unsigned i = 0; i < times; i++) {
        change(p);
        if (!holds(p))
            expect_success(journal_write_frame((struct journal *)p->f->journal, true));
    }
}

/* A change that every filter takes, so that there is something to sync. */
static void add_some(struct play *p)
{
    struct perhaps_keys some = perhaps_keys_slice(&p->keys, 0, 120);
    promise(p, p->count);
    expect_success(perhaps_add_many(p->f, &some, NULL));
    note_truth(p);
}

/* Another filter is saved over the file, which was closed. */
static void replace_play(struct play *p)
{
    struct perhaps_keys some = draw_keys(p);
    p->f = make_with(&p->options);
    perhaps_add_many(p->f, &some, NULL);
    promise(p, p->count);
    expect_success(perhaps_save(p->f, p->file.text));
    note_truth(p);
    acknowledge(p);
    perhaps_free(p->f);
}

/* Adds, some of which is synced; a checkpoint; the end of the process; a clean end. */
static void play_all(struct play *p)
{
    open_play(p);
    for (int i = 0; i < 3; i++)
        change(p);
    sync_play(p);
    change(p);
    change(p);
    sync_play(p);
    change(p);
    sync_by(p, perhaps_checkpoint);
    change(p);
    sync_play(p);
    change_and_write(p, 3);
    sync_play(p);
    change_and_write(p, 4);
    die(p->f);
    open_play(p);
    change(p);
    sync_play(p);
    change(p);
    close_play(p);
    open_play(p);
    close_play(p);
    replace_play(p);
    open_play(p);
    change(p);
    sync_play(p);
    change_and_write(p, 2);
    die(p->f);
    replace_play(p);
}

/* ---- What is found ----------------------------------------------------------------------- */

static struct truth expect_opens(struct path file, const struct perhaps_open_options *how)
{
    scoped_filter *f = open_file(file.text, how);
    return truth_of(f);
}

/* Opening the file to write and closing it once more leaves the same bytes. */
static void expect_settled(struct path file)
{
    scoped_bytes snapshot = read_file(file.text), journal = read_file(journal_of(file).text);
    expect_opens(file, &to_write);
    scoped_bytes snapshot_then = read_file(file.text),
                 journal_then = read_file(journal_of(file).text);
    expect_same_bytes(&snapshot, &snapshot_then);
    expect_same_bytes(&journal, &journal_then);
}

/* The file can be written again. */
static void expect_works(const struct play *p, struct path file)
{
    perhaps_filter *f = open_file(file.text, &to_write);
    struct perhaps_keys some = perhaps_keys_slice(&p->keys, 0, 20);
    perhaps_add_many(f, &some, NULL);
    expect_success(perhaps_sync(f));
    struct truth then = truth_of(f), now = expect_opens(file, &map_it);
    expect(is_same(&then, &now));
    perhaps_free(f);
    now = expect_opens(file, &load_it);
    expect(is_same(&then, &now));
}

/* Keeps some images in which opening cuts off a part of the journal. */
static void keep_torn(struct play *p, const struct image *image, struct path file)
{
    struct stat st;
    size_t nbytes = 0;
    expect(!stat(journal_of(file).text, &st));
    for (size_t i = 0; i < image->count; i++)
        if (!strcmp(image->files[i].name, "F" JOURNAL_SUFFIX))
            nbytes = image->files[i].nbytes;
    const size_t room = sizeof p->torn / sizeof *p->torn;
    if (nbytes <= (size_t)st.st_size || (p->ntorn == room && rng_below(&p->rng, 10)))
        return;
    size_t at = p->ntorn < room ? p->ntorn++ : rng_below(&p->rng, room);
    image_free(&p->torn[at]);
    p->torn[at] = image_copy(image);
}

/* Opens what a crash left.  To save time the rest is tried with every third state. */
static struct truth try_image(struct play *p, const struct image *image)
{
    struct path folder = temp_path("crashed"), file = path_below(folder, "F");
    mkdir(folder.text, 0755);
    image_write(image, folder.text);
    struct truth loaded = expect_opens(file, &load_it), written = expect_opens(file, &to_write);
    expect(is_same(&loaded, &written));
    keep_torn(p, image, file);
    if (every_case() || p->states % 3 == 0) {
        expect_settled(file);
        struct truth mapped = expect_opens(file, &map_it);
        expect(is_same(&loaded, &mapped));
        expect_works(p, file);
    }
    return loaded;
}

/* Returns what is found in such a folder, which is tried unless it was before. */
static const struct truth *find_truth(struct play *p, const struct image *image)
{
    const size_t room = sizeof tried.at / sizeof *tried.at;
    uint64_t hash = image_hash(image);
    size_t i = (size_t)(hash % room);
    hash += !hash;
    while (tried.at[i].hash && tried.at[i].hash != hash)
        i = (i + 1) % room;
    if (!tried.at[i].hash) {
        expect(++tried.count < room);
        tried.at[i].truth = try_image(p, image);
        tried.at[i].hash = hash;
        p->states++;
    }
    return &tried.at[i].truth;
}

static void expect_promise_kept(struct play *p, size_t step, struct chooser *chooser)
{
    struct promise promised = disk_promised(step, 0);
    struct image image = disk_image(step, chooser);
    const struct truth *found = find_truth(p, &image);
    size_t i = promised.safe;
    while (i <= promised.begun && i < p->count && !is_same(found, &p->truths[i]))
        i++;
    expect(i <= promised.begun && i < p->count);
    image_free(&image);
}

/* ---- Crashes ----------------------------------------------------------------------------- */

/* Tries what may be on the disk behind a step: each combination, if these are few; and some at
 * random. */
static void crash_behind(struct play *p, size_t step, unsigned samples)
{
    const size_t few = every_case() ? 12 : 4;
    const unsigned units[] = { 512, 4096 };
    for (enum choice how = CHOOSE_ALL; how <= CHOOSE_SYNCED; how++) {
        struct chooser c = { .how = how, .sector_nbytes = 512 };
        expect_promise_kept(p, step, &c);
    }
    struct chooser each = { .how = CHOOSE_EACH, .sector_nbytes = 512 };
    size_t sectors = disk_open_sectors(step, 512);
    for (bool more = sectors <= few; more; more = chooser_next(&each))
        expect_promise_kept(p, step, &each);
    for (unsigned i = 0; i < samples; i++) {
        uint64_t bits = rng_next(&p->rng);
        struct chooser random = { .how = CHOOSE_RANDOM,
                                  .sector_nbytes = units[bits % 2],
                                  .garbage = bits / 2 % 4 == 0,
                                  .density = 1 + (unsigned)(bits / 8 % 15),
                                  .rng = { .state = bits } };
        expect_promise_kept(p, step, &random);
    }
}

static void forget_torn(struct play *p)
{
    for (size_t i = 0; i < p->ntorn; i++)
        image_free(&p->torn[i]);
    p->ntorn = 0;
}

static void crash_everywhere(struct play *p, unsigned samples)
{
    disk_rest();
    forget_torn(p);
    memset(&tried, 0, sizeof tried);
    for (size_t step = 0; step <= disk_steps(); step++, p->steps++) {
        scene("%s %s, behind step %zu", p->options.kind ? p->options.kind : "bitmap",
              p->options.base ? p->options.base : "", step);
        crash_behind(p, step, every_case() ? 20 * samples : samples);
    }
}

static void report(struct play *p)
{
    printf("%s %s: %zu steps, %zu states\n", p->options.kind ? p->options.kind : "bitmap",
           p->options.base ? p->options.base : "", p->steps, p->states);
    forget_torn(p);
}

/* Begins with what a crash left, which is opened, and crashes again. */
static void crash_again(struct play *p)
{
    struct image torn[3];
    size_t ntorn = p->ntorn;
    memcpy(torn, p->torn, sizeof torn);
    memset(p->torn, 0, sizeof p->torn);
    p->ntorn = 0;
    for (size_t i = 0; i < ntorn; i++) {
        image_write(&torn[i], p->folder.text);
        p->truths[0] = expect_opens(p->file, &load_it);
        p->count = 1;
        p->safe = 0;
        disk_watch(p->folder.text);
        open_play(p);
        change_and_write(p, 2);
        sync_play(p);
        change(p);
        close_play(p);
        crash_everywhere(p, 2);
        image_free(&torn[i]);
    }
}

static void play_and_crash(const struct perhaps_options *options,
                           const struct perhaps_open_options *how, struct perhaps_keys keys)
{
    struct play p = begin_play(options, how, keys, "crashes");
    play_all(&p);
    crash_everywhere(&p, 2);
    crash_again(&p);
    report(&p);
}

/* To save time, of chains and windows only those over a few kinds are tried. */
TEST_EACH(test_crashes, any_kind)
{
    scoped_keys keys = make_keys(RANDOM_KEYS, test_seed(), 0, 3000);
    struct perhaps_options options = options_for(kind, 1000, 0.01, test_seed());
    for (size_t i = 0; base_to_test(kind, i, &options.base); i++)
        if (every_case() || i < (forgets(kind) ? 2 : 3))
            play_and_crash(&options, &to_write, keys);
}

/* to_write, but what is added is not remembered before perhaps_sync(). */
static struct perhaps_open_options to_hold(void)
{
    struct perhaps_open_options how = to_write;
    how.journal_records = 1 << 13; /* more than there are between two syncs */
    return how;
}

TEST_EACH(test_held, any_kind)
{
    scoped_keys keys = make_keys(RANDOM_KEYS, test_seed(), 0, 3000);
    const struct perhaps_options options = options_for(kind, 1000, 0.01, test_seed());
    const struct perhaps_open_options how = to_hold();
    play_and_crash(&options, &how, keys);
}

TEST_EACH(test_by_time, forgets)
{
    scoped_keys keys = make_keys(RANDOM_KEYS, test_seed(), 0, 3000);
    struct perhaps_options options = options_for(kind, 1000, 0.01, test_seed());
    const struct perhaps_open_options how = to_hold();
    options.window.keys = 0;
    options.window.time = 100;
    play_and_crash(&options, &to_write, keys);
    play_and_crash(&options, &how, keys);
}

TEST(test_bitmap)
{
    char text[1000][4];
    for (unsigned i = 0; i < 1000; i++) {
        char number[8];
        snprintf(number, sizeof number, "%u", 2000 + 7 * i);
        memcpy(text[i], number, sizeof text[i]);
    }
    const struct perhaps_options options = { .bitmap = { .low = 1000, .high = 9999 } };
    play_and_crash(&options, &to_write, perhaps_keys_packed(text, sizeof *text, 1000));
}

/* The file is saved anew in the background while keys are added, some of which are synced.  A
 * sync takes a while, so that much happens meanwhile. */
static void play_in_background(const struct perhaps_kind *kind, struct perhaps_open_options how)
{
    scoped_keys keys = make_keys(RANDOM_KEYS, test_seed(), 0, 3000);
    struct perhaps_options options = options_for(kind, 1000, 0.01, test_seed());
    how.journal_nbytes = 8192;
    struct play p = begin_play(&options, &how, keys, "background");
    disk_be_slow(true);
    open_play(&p);
    for (unsigned i = 0; i < 40; i++) {
        change(&p);
        if (rng_below(&p.rng, 4) == 0)
            sync_play(&p);
    }
    close_play(&p);
    crash_everywhere(&p, 1);
    report(&p);
}

TEST_EACH(test_background, any_kind)
{
    play_in_background(kind, to_write);
    play_in_background(kind, to_hold());
}

/* ---- Syncs that fail --------------------------------------------------------------------- */

/* A sync fails, and so does all that comes later.  The filter is opened again, which finds in
 * the memory of the system what may never come to the disk, and must not take it for safe.
 * 'die_first': the end of the process instead of perhaps_free(). */
static void fail_sync(const struct perhaps_options *options, struct perhaps_keys keys,
                      bool die_first)
{
    struct play p = begin_play(options, &to_write, keys, "failed sync");
    open_play(&p);
    change(&p);
    sync_play(&p);
    change_and_write(&p, 2);
    add_some(&p);
    disk_fail_sync();
    expect_error(perhaps_sync(p.f), PERHAPS_ERR_IO);
    expect(errno == EIO);
    for (unsigned i = 0; i < 3; i++) { /* even those of the system that succeed */
        errno = 0;
        expect_error(perhaps_sync(p.f), PERHAPS_ERR_IO);
        expect(errno == EIO);
        expect_error(perhaps_checkpoint(p.f), PERHAPS_ERR_IO);
        change(&p);
        expect(is_same(&p.truths[p.count - 2], &p.truths[p.count - 1]));
    }
    if (die_first)
        die(p.f);
    else
        perhaps_free(p.f);
    open_play(&p);
    change(&p);
    sync_play(&p);
    change(&p);
    close_play(&p);
    crash_everywhere(&p, 4);
    report(&p);
}

TEST(test_failed_sync)
{
    scoped_keys keys = make_keys(RANDOM_KEYS, test_seed(), 0, 3000);
    struct perhaps_options options = options_for(perhaps_kind_at(0), 1000, 0.01, test_seed());
    fail_sync(&options, keys, false);
    fail_sync(&options, keys, true);
}

/* ---- Threads ----------------------------------------------------------------------------- */

enum { THREADS = 4, ROUNDS = 12, ROUND_KEYS = 25 };

struct adder {
    unsigned number;
    perhaps_filter *f;
    const struct perhaps_keys *keys;
};

static struct perhaps_keys keys_of(const struct perhaps_keys *keys, unsigned thread, size_t n)
{
    return perhaps_keys_slice(keys, (size_t)thread * ROUNDS * ROUND_KEYS, n);
}

static void *add_and_sync(void *element)
{
    const struct adder *adder = element;
    struct promise promise = { .thread = adder->number };
    struct perhaps_keys own = keys_of(adder->keys, adder->number, ROUNDS * ROUND_KEYS);
    for (unsigned i = 0; i < ROUNDS; i++) {
        struct perhaps_keys some = perhaps_keys_slice(&own, i * ROUND_KEYS, ROUND_KEYS);
        promise.begun += ROUND_KEYS;
        disk_promise(promise);
        expect_success(perhaps_add_many(adder->f, &some, NULL));
        if ((i + adder->number) % 2)
            continue;
        expect_success(perhaps_sync(adder->f));
        promise.safe = promise.begun;
        disk_promise(promise);
    }
    return NULL;
}

/* All that a thread was promised is there, and no more keys than it has begun to add. */
static void expect_threads_kept(const struct perhaps_keys *keys, size_t step,
                                struct chooser *chooser)
{
    struct path folder = temp_path("crashed"), file = path_below(folder, "F");
    struct image image = disk_image(step, chooser);
    uint64_t begun = 0;
    mkdir(folder.text, 0755);
    image_write(&image, folder.text);
    image_free(&image);
    scoped_filter *f = open_file(file.text, &to_write);
    for (unsigned i = 0; i < THREADS; i++) {
        struct promise promised = disk_promised(step, i);
        struct perhaps_keys own = keys_of(keys, i, promised.safe);
        begun += promised.begun;
        expect_all_found(f, &own);
    }
    expect(stats_of(f).keys <= begun);
}

/* Threads add and sync at once, while the file is saved in the background.  The kinds that
 * count their keys exactly tell that nothing was done twice. */
TEST_EACH(test_threads, in_registry)
{
    scoped_keys keys = make_keys(RANDOM_KEYS, test_seed(), 0, THREADS * ROUNDS * ROUND_KEYS);
    struct perhaps_options options = options_for(kind, 4000, 0.0001, test_seed());
    struct play p = begin_play(&options, &to_write, keys, "threads");
    struct adder adders[THREADS];
    p.how.journal_nbytes = 8192;
    disk_be_slow(true);
    p.f = open_file(p.file.text, &p.how);
    for (unsigned i = 0; i < THREADS; i++)
        adders[i] = (struct adder){ i, p.f, &keys };
    run_threads(THREADS, add_and_sync, adders, sizeof *adders);
    perhaps_free(p.f);
    disk_rest();
    for (size_t step = 0; step <= disk_steps(); step += every_case() ? 1 : 3)
        for (enum choice how = CHOOSE_ALL; how <= CHOOSE_RANDOM; how++) {
            struct chooser c = { .how = how, .sector_nbytes = 512, .density = 8 };
            c.rng = p.rng;
            scene("%s, threads, behind step %zu, choice %u", kind->name, step, how);
            expect_threads_kept(&keys, step, &c);
        }
}
