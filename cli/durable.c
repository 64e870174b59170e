/* durable.c - dedup --durable. */
#include "durable.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "messages.h"

/* If neither is given, for a state that is live. */
enum { USUAL_MS = 1000 };

/* ---- Acknowledging ----------------------------------------------------------------------- */

/* Writes what was printed to the disk.  Returns false (errno) if that fails. */
static bool sync_printed(const struct durable *d)
{
    while (d->prints_to_file && fdatasync(STDOUT_FILENO) != 0)
        if (errno != EINTR)
            return errno == EINVAL || errno == EROFS;
    return true;
}

/* Acknowledges what was printed.  Returns false if that fails or failed before. */
static bool acknowledge(struct durable *d)
{
    if (d->error || d->unprinted)
        return false;
    d->error = sync_printed(d) ? perhaps_sync(d->target->filter) : PERHAPS_ERR_IO;
    d->reason = errno;
    d->waiting = 0;
    return !d->error;
}

/* Acknowledges, while nobody prints, what was printed 'ms' ago or later. */
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
        if (!d->ends && d->waiting)
            acknowledge(d);
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

/* Without room for its records, some of the block's would be remembered before they are
 * printed. */
bool durable_enter(struct durable *d, const struct block *block)
{
    struct perhaps_journal journal;
    pthread_mutex_lock(&d->lock);
    perhaps_journal_of(d->target->filter, &journal);
    return journal.room > block->count ? !d->error : acknowledge(d);
}

bool durable_leave(struct durable *d, const struct block *block, bool printed)
{
    d->unprinted |= !printed;
    d->waiting += block->ndone;
    if (d->after.lines && d->waiting >= d->after.lines)
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
    errno = d->reason;
    if (d->error)
        fail("%s: %s: lines that were printed since it was synced last may come again",
             d->target->path, why(d->error));
}
