/* kills_child.c - what is done to a live file: see kills.h. */
#include "kills.h"
#include <perhaps_live.h>
#include <perhaps_window.h>

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

/* ---- Death at a system call -------------------------------------------------------------- */

static atomic_uint calls_left; /* the call at which this becomes 0 is the last one */
static enum moment moment;
static bool waits;

static bool is_last_call(void)
{
    unsigned left = atomic_load(&calls_left);
    while (left && !atomic_compare_exchange_weak(&calls_left, &left, left - 1))
        continue;
    return left == 1;
}

/* As a power cut would end it: nothing is closed or flushed. */
static void die(void)
{
    kill(getpid(), SIGKILL);
    for (;;)
        pause();
}

/* Defines the function that the linker puts in place of a call. */
#define WRAP(type, name, parameters, half, arguments)                                          \
    type __real_##name parameters;                                                             \
    type __wrap_##name parameters;                                                             \
    type __wrap_##name parameters                                                              \
    {                                                                                          \
        if (!is_last_call())                                                                   \
            return __real_##name arguments;                                                    \
        if (moment != BEFORE) {                                                                \
            type result = moment == HALFWAY ? __real_##name half : __real_##name arguments;    \
            (void)result;                                                                      \
        }                                                                                      \
        die();                                                                                 \
        return 0;                                                                              \
    }

/* The same of a call that waits for the disk.  A process that is killed loses nothing without
 * it, so the disk is a pretended one: other threads work meanwhile, on any machine. */
#define WRAP_SYNC(name)                                                                        \
    int __wrap_##name(int fd);                                                                 \
    int __wrap_##name(int fd)                                                                  \
    {                                                                                          \
        (void)fd;                                                                              \
        if (is_last_call())                                                                    \
            die();                                                                             \
        return waits ? usleep(300) : 0;                                                        \
    }

WRAP(ssize_t, write, (int fd, const void *bytes, size_t n), (fd, bytes, n / 2), (fd, bytes, n))
WRAP(ssize_t, pwrite, (int fd, const void *bytes, size_t n, off_t at), (fd, bytes, n / 2, at),
     (fd, bytes, n, at))
WRAP_SYNC(fsync)
WRAP_SYNC(fdatasync)
WRAP(int, ftruncate, (int fd, off_t nbytes), (fd, nbytes), (fd, nbytes))
WRAP(int, fallocate, (int fd, int mode, off_t at, off_t nbytes), (fd, mode, at, nbytes),
     (fd, mode, at, nbytes))
WRAP(int, rename, (const char *from, const char *to), (from, to), (from, to))
WRAP(int, linkat, (int from_fd, const char *from, int to_fd, const char *to, int flags),
     (from_fd, from, to_fd, to, flags), (from_fd, from, to_fd, to, flags))

/* ---- Steps ------------------------------------------------------------------------------- */

enum what { ADD, ADD_UNLESS_PRESENT, REMOVE, CLEAR, ROTATE, ADVANCE };

struct step {
    enum what what;
    struct perhaps_keys keys;
};

static enum what draw_what(const struct work *work, struct rng *rng)
{
    uint64_t die = rng_below(rng, 256);
    if (die == 0)
        return CLEAR;
    if (die < 8 && forgets(work->kind))
        return work->options.window.time && die < 6 ? ADVANCE : ROTATE;
    if (die < 70 && is_able(work->kind, PERHAPS_CAN_REMOVE))
        return REMOVE;
    return die % 2 ? ADD : ADD_UNLESS_PRESENT;
}

/* Half of all steps have one key, and few have more than the library takes at once.  A removal
 * takes the keys of a step that was shortly before, which mostly were added. */
static struct step step_of(const struct work *work, uint64_t number)
{
    struct rng rng = { mix64(work->seed + number) };
    enum what what = draw_what(work, &rng);
    if (what == REMOVE && number > 0) {
        uint64_t back = 1 + rng_below(&rng, number < 20 ? number : 20);
        rng.state = mix64(work->seed + number - back);
        draw_what(work, &rng);
    }
    uint64_t size = rng_below(&rng, 64);
    size_t most = size < 32 ? 1 : size < 62 ? 40 : 300;
    size_t count = 1 + rng_below(&rng, most);
    size_t first = rng_below(&rng, UNIVERSE - count);
    bool takes_keys = what <= REMOVE;
    return (struct step){ what, some_keys(&work->keys, first, takes_keys ? count : 1) };
}

size_t step_size(const struct work *work, uint64_t number)
{
    return step_of(work, number).keys.count;
}

/* Returns 0 or an error: some are no failures of the child, see is_right(). */
static int do_step(perhaps_filter *f, const struct step *step, uint64_t number)
{
    const struct perhaps_keys *keys = &step->keys;
    const void *key = key_at(keys, 0);
    bool one = keys->count == 1;
    switch (step->what) {
    case ADD:
        return one ? perhaps_add(f, key, keys->key_nbytes) : perhaps_add_many(f, keys, NULL);
    case ADD_UNLESS_PRESENT:
        return one ? perhaps_add_unless_present(f, key, keys->key_nbytes, NULL)
                   : perhaps_add_unless_present_many(f, keys, NULL, NULL);
    case REMOVE:
        return one ? perhaps_remove(f, key, keys->key_nbytes)
                   : perhaps_remove_many(f, keys, NULL, NULL, NULL);
    case CLEAR:
        return perhaps_clear(f);
    case ROTATE:
        return perhaps_rotate(f);
    case ADVANCE:
        return perhaps_advance(f, number);
    }
    return PERHAPS_ERR_ARGUMENT;
}

/* A filter may be full, have too many copies, or lack what is removed; and sets and some
 * bases of chains have no removals. */
static bool is_right(const struct step *step, int error)
{
    if (step->what == REMOVE)
        return !error || error == PERHAPS_ERR_NOT_FOUND || error == PERHAPS_ERR_UNSUPPORTED ||
               error == PERHAPS_ERR_SET;
    return !error || (step->what <= ADD_UNLESS_PRESENT &&
                      (error == PERHAPS_ERR_FULL || error == PERHAPS_ERR_COPIES));
}

bool redo_key(const struct work *work, uint64_t number, size_t i, perhaps_filter *f)
{
    struct step step = step_of(work, number);
    step.keys = some_keys(&step.keys, i, 1);
    int error = do_step(f, &step, number);
    return !error || error == PERHAPS_ERR_NOT_FOUND;
}

/* ---- The child --------------------------------------------------------------------------- */

static _Noreturn void give_up(struct board *board, int error)
{
    atomic_store(&board->error, error ? error : 1);
    _exit(1);
}

static perhaps_filter *open_live(const struct work *work, const struct task *task,
                                 struct board *board)
{
    const struct perhaps_open_options options = { .mode = PERHAPS_MODE_JOURNAL,
                                                  .shared = work->options.shared,
                                                  .journal_nbytes = task->journal_nbytes };
    perhaps_filter *f;
    int error = perhaps_open(work->path.text, &options, &f);
    if (error)
        give_up(board, error);
    if (!atomic_exchange(&board->opened, true) && task->when_open)
        atomic_store(&calls_left, task->call);
    return f;
}

static void acknowledge(perhaps_filter *f, struct board *board, uint64_t steps)
{
    static uint64_t nbytes;
    struct perhaps_journal journal;
    perhaps_journal_of(f, &journal);
    if (journal.nbytes < nbytes)
        atomic_fetch_add(&board->renewed, 1);
    nbytes = journal.nbytes;
    atomic_store(&board->records, journal.synced);
    atomic_store(&board->acknowledged, steps);
}

static void do_steps(const struct work *work, const struct task *task, struct board *board)
{
    struct rng rng = { task->seed };
    perhaps_filter *f = open_live(work, task, board);
    for (uint64_t n = task->first; n < task->first + task->count; n++) {
        const struct step step = step_of(work, n);
        atomic_store(&board->begun, n + 1);
        int error = do_step(f, &step, n);
        if (!is_right(&step, error))
            give_up(board, error);
        bool saves = rng_below(&rng, 200) == 0;
        if (!saves && rng_below(&rng, task->sync_once_in))
            continue;
        error = saves ? perhaps_checkpoint(f) : perhaps_sync(f);
        if (error)
            give_up(board, error);
        acknowledge(f, board, n + 1);
    }
    perhaps_free(f);
}

struct adder {
    const struct work *work;
    const struct task *task;
    struct board *board;
    perhaps_filter *f;
    unsigned number;
};

struct perhaps_keys share_key(const struct work *work, const struct task *task, unsigned thread,
                              uint64_t i)
{
    return some_keys(&work->keys, (task->offset + thread * SHARE + i) % UNIVERSE, 1);
}

/* Syncs, or saves the file anew, and tells how many keys of the share that acknowledges. */
static void acknowledge_share(const struct adder *a, uint64_t added, bool saves)
{
    int error = saves ? perhaps_checkpoint(a->f) : perhaps_sync(a->f);
    if (error)
        give_up(a->board, error);
    atomic_store(&a->board->thread[a->number].acknowledged, added);
}

/* Adds the keys of a share until one is refused, and syncs at random. */
static void *add_share(void *context)
{
    const struct adder *a = context;
    struct rng rng = { mix64(a->task->seed + a->number) };
    uint64_t added = 0;
    int error = 0;
    while (added < SHARE) {
        struct perhaps_keys key = share_key(a->work, a->task, a->number, added);
        atomic_store(&a->board->thread[a->number].begun, added + 1);
        error = perhaps_add(a->f, key_at(&key, 0), key.key_nbytes);
        if (error)
            break;
        added++;
        bool saves = rng_below(&rng, 500) == 0;
        if (saves || !rng_below(&rng, a->task->sync_once_in))
            acknowledge_share(a, added, saves);
    }
    if (error && error != PERHAPS_ERR_FULL && error != PERHAPS_ERR_COPIES)
        give_up(a->board, error);
    acknowledge_share(a, added, false);
    return NULL;
}

static void add_shares(const struct work *work, const struct task *task, struct board *board)
{
    struct adder adders[ADDERS_MOST];
    perhaps_filter *f = open_live(work, task, board);
    for (unsigned t = 0; t < task->threads; t++)
        adders[t] = (struct adder){ work, task, board, f, t };
    run_threads(task->threads, add_share, adders, sizeof *adders);
    perhaps_free(f);
}

void be_child(const struct work *work, const struct task *task, struct board *board)
{
    moment = task->moment;
    waits = task->waits;
    atomic_store(&calls_left, task->when_open ? 0 : task->call);
    atomic_store(&board->started, true);
    switch (task->job) {
    case STEPS:
        do_steps(work, task, board);
        break;
    case THREADS:
        add_shares(work, task, board);
        break;
    case OPENS:
        for (uint64_t i = 0; i < task->count; i++)
            perhaps_free(open_live(work, task, board));
        break;
    }
    _exit(0);
}
