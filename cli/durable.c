/* durable.c - dedup --durable. */
#define _GNU_SOURCE 1 /* sync_file_range() */
#include "durable.h"
#include <perhaps_live.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "messages.h"

/* If neither is given, for a state that is live. */
enum { USUAL_MS = 1000 };

/* ---- Acknowledging ----------------------------------------------------------------------- */

/* Has the system begin to write to the disk what was printed, which then takes less time. */
static void begin_to_sync(struct durable *d, const struct block *block)
{
    const uint64_t often = 8 << 20;
    d->printed_nbytes += block->output_nbytes;
    if (d->prints_to_file && d->printed_nbytes >= often) {
        d->printed_nbytes = 0;
        sync_file_range(STDOUT_FILENO, 0, 0, SYNC_FILE_RANGE_WRITE);
    }
}

/* Writes what was printed to the disk.  Returns false (errno) if that fails. */
static bool sync_printed(const struct durable *d)
{
    while (d->prints_to_file && fdatasync(STDOUT_FILENO) != 0)
        if (errno != EINTR)
            return errno == EINVAL || errno == EROFS;
    return true;
}

/* Acknowledges what was printed, which is all that the filter knows. */
static void acknowledge(struct durable *d)
{
    if (!d->error && !d->unprinted) {
        d->error = sync_printed(d) ? perhaps_sync(d->target->filter) : PERHAPS_ERR_IO;
        d->reason = errno;
        d->waiting = 0;
    }
    d->due = false;
    pthread_cond_broadcast(&d->moved);
}

/* Acknowledges at once, or when those blocks that are on their way are printed.  No other block
 * sets out before. */
static void acknowledge_soon(struct durable *d)
{
    d->due = true;
    if (!d->on_the_way)
        acknowledge(d);
}

/* Has acknowledged what was printed 'ms' ago or later, whether or not more lines come. */
static void *acknowledge_by_time(void *durable)
{
    struct durable *d = durable;
    const uint64_t ns = 1000000, second = 1000;
    struct timespec next;
    pthread_mutex_lock(&d->lock);
    clock_gettime(CLOCK_MONOTONIC, &next);
    while (!d->ends) {
        uint64_t then = (uint64_t)next.tv_nsec / ns + d->after.ms;
        next.tv_sec += (time_t)(then / second);
        next.tv_nsec = (long)(then % second * ns);
        while (!d->ends && pthread_cond_timedwait(&d->ended, &d->lock, &next) == 0)
            continue;
        if (!d->ends && (d->waiting || d->on_the_way))
            acknowledge_soon(d);
        clock_gettime(CLOCK_MONOTONIC, &next);
    }
    pthread_mutex_unlock(&d->lock);
    return NULL;
}

/* ---- A run ------------------------------------------------------------------------------- */

void durable_begin(struct durable *d, const struct settings *settings, struct target *target)
{
    struct stat st;
    pthread_condattr_t monotonic;
    sigset_t all, before;
    d->settings = settings;
    d->target = target;
    d->after = settings->durable;
    if (!d->after.lines && !d->after.ms)
        d->after.ms = USUAL_MS;
    d->prints_to_file =
        !settings->count && fstat(STDOUT_FILENO, &st) == 0 && S_ISREG(st.st_mode);
    pthread_mutex_init(&d->lock, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&d->ended, &monotonic);
    pthread_cond_init(&d->moved, NULL);
    pthread_condattr_destroy(&monotonic);
    if (!d->after.ms)
        return;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    d->has_timer = pthread_create(&d->timer, NULL, acknowledge_by_time, d) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (!d->has_timer)
        fail("--durable: no thread can be started for it");
}

static void wait_until_acknowledged(struct durable *d)
{
    while (d->due && !d->unprinted)
        pthread_cond_wait(&d->moved, &d->lock);
}

/* Without room for its records, some of the block's would be remembered before they are
 * printed. */
bool durable_enter(struct durable *d, const struct block *block)
{
    struct perhaps_journal journal;
    pthread_mutex_lock(&d->lock);
    wait_until_acknowledged(d);
    perhaps_journal_of(d->target->filter, &journal);
    if (journal.room <= block->count) {
        acknowledge_soon(d);
        wait_until_acknowledged(d);
    }
    d->on_the_way++;
    bool ok = !d->error && !d->unprinted;
    pthread_mutex_unlock(&d->lock);
    return ok;
}

bool durable_leave(struct durable *d, const struct block *block, bool printed)
{
    begin_to_sync(d, block);
    pthread_mutex_lock(&d->lock);
    d->on_the_way--;
    d->waiting += block->ndone;
    d->due |= d->after.lines && d->waiting >= d->after.lines;
    if (!printed) {
        d->unprinted = true;
        pthread_cond_broadcast(&d->moved);
    }
    if (d->due && !d->on_the_way)
        acknowledge(d);
    bool ok = !d->error && printed;
    pthread_mutex_unlock(&d->lock);
    return ok;
}

void durable_settle(struct durable *d)
{
    pthread_mutex_lock(&d->lock);
    acknowledge(d);
    d->ends = true;
    pthread_cond_signal(&d->ended);
    pthread_mutex_unlock(&d->lock);
    if (d->has_timer)
        pthread_join(d->timer, NULL);
    if (d->error == PERHAPS_ERR_JOURNAL)
        target_fail_lost(d->target, ": lines that were printed may come again");
    errno = d->reason;
    if (d->error)
        fail("%s: %s: lines that were printed since it was synced last may come again",
             d->target->path, why(d->error));
}
