/* crash_test.c - proves that a live file survives a crash of the system at any moment: with
 * what the disk may hold then (disk_model.h) the file opens, in every mode, as the filter was
 * behind some operation that came no earlier than the last one that was acknowledged; and it
 * can be written again.  With PERHAPS_TEST_EVERY it tries many more of these states. */
#include "disk_model.h"
#include "live_files.h"
#include "support.h"
#include <perhaps_window.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

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
static struct {
    size_t count;
    struct {
        uint64_t hash; /* 0: free */
        struct truth truth;
    } at[1 << 16];
} tried;

enum { TRUTHS_MOST = 400, TORN_MOST = 3 };

/* Some images in which a part of the journal is cut off. */
struct torn {
    struct image at[TORN_MOST];
    size_t count;
};

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
    char name[80];
    struct torn torn;
};

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

/* Returns keys for a bitmap. */
static struct perhaps_keys numbers(void)
{
    static char text[4 * 1000 + 1];
    for (unsigned i = 0; i < 1000; i++)
        snprintf(text + 4 * i, 5, "%u", 2000 + 7 * i);
    return perhaps_keys_packed(text, 4, 1000);
}

static struct play begin_play(const struct perhaps_options *options,
                              const struct perhaps_open_options *how, const char *name)
{
    struct play p = { .options = *options,
                      .how = *how,
                      .folder = temp_path("folder"),
                      .rng = rng_for(name),
                      .keys = options->kind ? make_keys(RANDOM_KEYS, test_seed(), 0, 3000)
                                            : numbers() };
    snprintf(p.name, sizeof p.name, "%s %s", options->kind ? options->kind : "bitmap",
             options->base ? options->base : "");
    image_write(&(struct image){ 0 }, p.folder.text);
    p.file = path_below(p.folder, "F");
    scoped_filter *f = make_with(&p.options);
    expect_success(perhaps_save(f, p.file.text));
    p.truths[p.count++] = truth_of(f);
    disk_watch(p.folder.text);
    return p;
}

/* Writes what there is, but does not sync it, as if frames had been full; unless it is held. */
static void change_and_write(struct play *p)
{
    change(p);
    if (!holds(p))
        expect_success(journal_write_frame(recording_of(p->f), true));
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

static void sync_play(struct play *p)
{
    sync_by(p, perhaps_sync);
}

static void checkpoint_play(struct play *p)
{
    sync_by(p, perhaps_checkpoint);
}

static void end_play(struct play *p)
{
    die(p->f);
}

/* Does operations, a letter each. */
static void act(struct play *p, const char *letters)
{
    static void (*const acts[256])(struct play *) = {
        ['o'] = open_play, ['c'] = change,     ['w'] = change_and_write,
        ['a'] = add_some,  ['s'] = sync_play,  ['k'] = checkpoint_play,
        ['d'] = end_play,  ['q'] = close_play, ['r'] = replace_play,
    };
    for (; *letters; letters++)
        if (*letters != ' ')
            acts[(uint8_t)*letters](p);
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
    struct torn *torn = &p->torn;
    if (nbytes <= (size_t)st.st_size || (torn->count == TORN_MOST && rng_below(&p->rng, 10)))
        return;
    size_t at = torn->count < TORN_MOST ? torn->count++ : rng_below(&p->rng, TORN_MOST);
    image_free(&torn->at[at]);
    torn->at[at] = image_copy(image);
}

/* Opens what a crash left.  To save time the rest is tried with every third state. */
static struct truth try_image(struct play *p, const struct image *image)
{
    struct path folder = temp_path("crashed"), file = path_below(folder, "F");
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
    for (enum choice how = CHOOSE_ALL; how <= CHOOSE_SYNCED; how++) {
        struct chooser c = { .how = how, .sector_nbytes = 512 };
        expect_promise_kept(p, step, &c);
    }
    struct chooser each = { .how = CHOOSE_EACH, .sector_nbytes = 512 };
    bool few = disk_open_sectors(step, 512) <= (every_case() ? 12 : 4);
    for (bool more = few; more; more = chooser_next(&each))
        expect_promise_kept(p, step, &each);
    for (unsigned i = 0; i < samples; i++) {
        uint64_t bits = rng_next(&p->rng);
        struct chooser random = { .how = CHOOSE_RANDOM,
                                  .sector_nbytes = bits % 2 ? 4096 : 512,
                                  .garbage = bits / 2 % 4 == 0,
                                  .density = 1 + (unsigned)(bits / 8 % 15),
                                  .rng = { .state = bits } };
        expect_promise_kept(p, step, &random);
    }
}

static void forget_torn(struct play *p)
{
    while (p->torn.count)
        image_free(&p->torn.at[--p->torn.count]);
}

static void crash_everywhere(struct play *p, unsigned samples)
{
    disk_rest();
    forget_torn(p);
    memset(&tried, 0, sizeof tried);
    for (size_t step = 0; step <= disk_steps(); step++, p->steps++) {
        scene("%s, behind step %zu", p->name, step);
        crash_behind(p, step, every_case() ? 20 * samples : samples);
    }
}

static void end(struct play *p)
{
    printf("%s: %zu steps, %zu states\n", p->name, p->steps, p->states);
    forget_torn(p);
    if (p->options.kind)
        free_keys(&p->keys);
}

/* Begins with what a crash left, which is opened, and crashes again. */
static void crash_again(struct play *p)
{
    struct torn torn = p->torn;
    p->torn = (struct torn){ 0 };
    for (size_t i = 0; i < torn.count; i++) {
        image_write(&torn.at[i], p->folder.text);
        p->truths[0] = expect_opens(p->file, &load_it);
        p->count = 1;
        p->safe = 0;
        disk_watch(p->folder.text);
        act(p, "o ww s c q");
        crash_everywhere(p, 2);
        image_free(&torn.at[i]);
    }
}

static void play_and_crash(const struct perhaps_options *options,
                           const struct perhaps_open_options *how)
{
    struct play p = begin_play(options, how, "crashes");
    act(&p, "o ccc s cc s c k c s www s wwww d"); /* adds, a checkpoint, the process ends */
    act(&p, "o c s c q o q r o c s ww d r");      /* a clean end, and another filter */
    crash_everywhere(&p, 2);
    crash_again(&p);
    end(&p);
}

/* To save time, of chains and windows only those over a few kinds are tried. */
TEST_EACH(test_crashes, any_kind)
{
    struct perhaps_options options = options_for(kind, 1000, 0.01, test_seed());
    for (size_t i = 0; base_to_test(kind, i, &options.base); i++)
        if (every_case() || i < (forgets(kind) ? 2 : 3))
            play_and_crash(&options, &to_write);
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
    const struct perhaps_options options = options_for(kind, 1000, 0.01, test_seed());
    const struct perhaps_open_options how = to_hold();
    play_and_crash(&options, &how);
}

TEST_EACH(test_by_time, forgets)
{
    struct perhaps_options options = options_for(kind, 1000, 0.01, test_seed());
    const struct perhaps_open_options how = to_hold();
    options.window.keys = 0;
    options.window.time = 100;
    play_and_crash(&options, &to_write);
    play_and_crash(&options, &how);
}

TEST(test_bitmap)
{
    play_and_crash(&(struct perhaps_options){ .bitmap = { .low = 1000, .high = 9999 } },
                   &to_write);
}

/* The file is saved anew in the background while keys are added, some of which are synced.  A
 * sync takes a while, so that much happens meanwhile. */
static void play_in_background(const struct perhaps_kind *kind, struct perhaps_open_options how)
{
    struct perhaps_options options = options_for(kind, 1000, 0.01, test_seed());
    how.journal_nbytes = 8192;
    struct play p = begin_play(&options, &how, "background");
    disk_be_slow(true);
    act(&p, "o");
    for (unsigned i = 0; i < 40; i++) {
        act(&p, "c");
        act(&p, rng_below(&p.rng, 4) ? "" : "s");
    }
    act(&p, "q");
    crash_everywhere(&p, 1);
    end(&p);
}

TEST_EACH(test_background, any_kind)
{
    play_in_background(kind, to_write);
    play_in_background(kind, to_hold());
}

/* ---- Syncs that fail --------------------------------------------------------------------- */

/* A sync fails, and so does all that comes later.  The filter is opened again, which finds in
 * the memory of the system what may never come to the disk, and must not take it for safe.
 * 'end_it': how the first filter ends. */
static void fail_sync(void end_it(perhaps_filter *f))
{
    struct perhaps_options options = options_for(perhaps_kind_at(0), 1000, 0.01, test_seed());
    struct play p = begin_play(&options, &to_write, "failed sync");
    act(&p, "o c s ww a");
    disk_fail_sync();
    for (unsigned i = 0; i < 4; i++) { /* the later ones even if the system's succeed */
        errno = 0;
        expect_error(perhaps_sync(p.f), PERHAPS_ERR_IO);
        expect(errno == EIO);
        expect_error(perhaps_checkpoint(p.f), PERHAPS_ERR_IO);
        change(&p);
        expect(is_same(&p.truths[p.count - 2], &p.truths[p.count - 1]));
    }
    end_it(p.f);
    act(&p, "o c s c q");
    crash_everywhere(&p, 4);
    end(&p);
}

TEST(test_failed_sync)
{
    fail_sync(perhaps_free);
    fail_sync(die); /* as at the end of the process */
}

/* ---- Threads ----------------------------------------------------------------------------- */

enum { THREADS = 4, ROUNDS = 12, ROUND_KEYS = 25 };

struct adder {
    unsigned number;
    const struct play *play;
};

static struct perhaps_keys keys_of(const struct play *p, unsigned thread, size_t n)
{
    return perhaps_keys_slice(&p->keys, (size_t)thread * ROUNDS * ROUND_KEYS, n);
}

static void *add_and_sync(void *element)
{
    const struct adder *adder = element;
    perhaps_filter *f = adder->play->f;
    struct promise promise = { .thread = adder->number };
    struct perhaps_keys own = keys_of(adder->play, adder->number, ROUNDS * ROUND_KEYS);
    for (unsigned i = 0; i < ROUNDS; i++) {
        struct perhaps_keys some = perhaps_keys_slice(&own, i * ROUND_KEYS, ROUND_KEYS);
        promise.begun += ROUND_KEYS;
        disk_promise(promise);
        expect_success(perhaps_add_many(f, &some, NULL));
        if ((i + adder->number) % 2)
            continue;
        expect_success(perhaps_sync(f));
        promise.safe = promise.begun;
        disk_promise(promise);
    }
    return NULL;
}

/* All that a thread was promised is there, and no more keys than it has begun to add. */
static void expect_threads_kept(const struct play *p, size_t step, struct chooser *chooser)
{
    struct path folder = temp_path("crashed"), file = path_below(folder, "F");
    struct image image = disk_image(step, chooser);
    uint64_t begun = 0;
    image_write(&image, folder.text);
    image_free(&image);
    scoped_filter *f = open_file(file.text, &to_write);
    for (unsigned i = 0; i < THREADS; i++) {
        struct promise promised = disk_promised(step, i);
        struct perhaps_keys own = keys_of(p, i, promised.safe);
        begun += promised.begun;
        expect_all_found(f, &own);
    }
    expect(stats_of(f).keys <= begun);
}

/* Threads add and sync at once, while the file is saved in the background.  The kinds that
 * count their keys exactly tell that nothing was done twice. */
TEST_EACH(test_threads, in_registry)
{
    struct perhaps_options options = options_for(kind, 4000, 0.0001, test_seed());
    struct play p = begin_play(&options, &to_write, "threads");
    struct adder adders[THREADS];
    p.how.journal_nbytes = 8192;
    disk_be_slow(true);
    p.f = open_file(p.file.text, &p.how);
    for (unsigned i = 0; i < THREADS; i++)
        adders[i] = (struct adder){ i, &p };
    run_threads(THREADS, add_and_sync, adders, sizeof *adders);
    perhaps_free(p.f);
    disk_rest();
    for (size_t step = 0; step <= disk_steps(); step += every_case() ? 1 : 3)
        for (enum choice how = CHOOSE_ALL; how <= CHOOSE_RANDOM; how++) {
            struct chooser c = { .how = how, .sector_nbytes = 512, .density = 8, .rng = p.rng };
            scene("%s, threads, behind step %zu, choice %u", kind->name, step, how);
            expect_threads_kept(&p, step, &c);
        }
    free_keys(&p.keys);
}
