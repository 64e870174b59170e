#include "target.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "messages.h"
#include "numbers.h"
#include "request.h"
#include "stop.h"

static int set_outcome(struct target *target, const char *format)
{
    if (asprintf(&target->outcome, format, target->path) >= 0)
        return 0;
    target->outcome = NULL;
    return complain("%s", perhaps_strerror(PERHAPS_ERR_MEMORY));
}

static int init(struct target *target, const char *path, const char *format)
{
    *target = (struct target){ .path = path ? path : "the filter" };
    return set_outcome(target, format);
}

/* The file of a lock goes before the lock: nobody else has it then. */
static void unlock(struct target *target)
{
    if (target->lock <= 0)
        return;
    if (target->lock_path)
        unlink(target->lock_path);
    close(target->lock);
    target->lock = 0;
}

void target_close(struct target *target)
{
    perhaps_free(target->filter);
    remote_close(target->remote);
    free(target->outcome);
    unlock(target);
    free(target->lock_path);
}

static const char *outcome_at(const char *path)
{
    if (!path)
        return "";
    return access(path, F_OK) == 0 ? "; %s is unchanged" : "; %s was not made";
}

/* ---- Reserving a place ------------------------------------------------------------- */

/* Where the file is or will be: what a link names, also if that is nothing yet.
 * NULL: errno. */
static char *follow(const char *path)
{
    char link[PATH_MAX], *next, *place = realpath(path, NULL);
    if (place || errno != ENOENT)
        return place;
    ssize_t nbytes = readlink(path, link, sizeof link);
    if (nbytes < 0)
        return strdup(path);
    const char *slash = strrchr(path, '/');
    int folder = slash && *link != '/' ? (int)(slash + 1 - path) : 0;
    if (asprintf(&next, "%.*s%.*s", folder, path, (int)nbytes, link) < 0)
        return NULL;
    place = follow(next);
    free(next);
    return place;
}

/* perhaps_save() makes a new file in the folder.  Sets *lock_path to a name there. */
static int check_folder(const char *path, char **lock_path)
{
    char *place = follow(path), *copy = place ? strdup(place) : NULL;
    const char *folder = copy ? dirname(copy) : NULL;
    bool writable = folder && access(folder, W_OK | X_OK) == 0;
    int status = writable ? 0 : complain("%s: cannot be written: %s", path, strerror(errno));
    if (writable && asprintf(lock_path, "%s/.%.200s.lock", folder, basename(place)) < 0) {
        *lock_path = NULL;
        status = complain("%s", perhaps_strerror(PERHAPS_ERR_MEMORY));
    }
    free(copy);
    free(place);
    return status;
}

static bool same_file(int fd, const char *path)
{
    struct stat a, b;
    return fstat(fd, &a) == 0 && stat(path, &b) == 0 && a.st_dev == b.st_dev &&
           a.st_ino == b.st_ino;
}

/* Others that change the file in place have it for themselves for a moment, to begin and to
 * end: whoever only wants to share it waits for that. */
static bool try_lock(int fd, int how, uint64_t wait_ms)
{
    enum { MOMENT_MS = 10, PATIENCE_MS = 5000 };
    const struct timespec moment = { .tv_nsec = MOMENT_MS * 1000000 };
    if (how == LOCK_SH && !wait_ms)
        wait_ms = PATIENCE_MS;
    const uint64_t moments = wait_ms / MOMENT_MS;
    for (uint64_t i = 0; flock(fd, how | LOCK_NB) != 0; i++) {
        if (errno != EWOULDBLOCK || i == moments || stop_signal())
            return false;
        nanosleep(&moment, NULL);
        errno = EWOULDBLOCK;
    }
    return true;
}

static int complain_lock(struct target *target)
{
    int error = errno;
    close(target->lock); /* and leave the file to who has the lock */
    target->lock = 0;
    if (stop_signal())
        return complain_interrupted("");
    return error == EWOULDBLOCK
               ? complain("%s: another process is changing it: try again later, or give --wait",
                          target->path)
               : complain("%s: cannot be locked: %s", target->path, strerror(error));
}

/* perhaps_save() puts a new file at the path, so whoever waited for the lock of the old one
 * must look again.  'how' is LOCK_EX, or LOCK_SH beside others that have it so.  Where there
 * are no locks what is new can be made all the same. */
static int lock_file(struct target *target, const char *path, int flags, int how)
{
    do {
        if (target->lock > 0)
            close(target->lock);
        target->lock = open(path, O_RDONLY | O_CLOEXEC | flags, 0666);
        if (target->lock < 0)
            return errno == ENOENT ? 0 : complain("%s: %s", path, strerror(errno));
        if (!try_lock(target->lock, how, target->wait_ms))
            return flags && errno != EWOULDBLOCK ? 0 : complain_lock(target);
    } while (!same_file(target->lock, path));
    return 0;
}

/* Locks the file; or while there is none a file beside it, which everybody who would make it
 * locks too. */
static int lock(struct target *target)
{
    struct stat st;
    char *beside = target->lock_path;
    for (;;) {
        target->lock_path = NULL;
        int status = lock_file(target, target->path, 0, LOCK_EX);
        if (status || target->lock > 0) {
            free(beside);
            return status;
        }
        target->lock_path = beside;
        status = lock_file(target, beside, O_CREAT, LOCK_EX);
        target->fresh = stat(target->path, &st) != 0;
        if (status || target->fresh)
            return status;
        unlock(target); /* somebody has made it meanwhile */
    }
}

int target_reserve(struct target *target, const char *path, const struct settings *settings)
{
    struct stat st;
    int status = init(target, path, outcome_at(path));
    if (status || !path)
        return status;
    target->wait_ms = settings->wait_ms;
    bool exists = stat(path, &st) == 0;
    if (exists && S_ISDIR(st.st_mode))
        return complain("%s: %s", path, strerror(EISDIR));
    if (exists && !S_ISREG(st.st_mode))
        return 0; /* a device or pipe is written to */
    status = check_folder(path, &target->lock_path);
    if (!status)
        status = lock(target);
    if (status || exists || target->fresh)
        return status;
    free(target->outcome); /* while we waited somebody has made it */
    return set_outcome(target, outcome_at(path));
}

int target_reserve_output(struct target *target, const struct settings *settings)
{
    if (strcmp(settings->output, "-") != 0)
        return target_reserve(target, settings->output, settings);
    if (isatty(STDOUT_FILENO))
        return complain("-o -: standard output is a terminal: send it into a file or pipe");
    int status = init(target, "standard output", "; what was written there is no filter");
    target->streams = true;
    return status;
}

/* An empty file holds nothing that could be missed. */
int target_check_replaced(const struct target *target, const struct settings *settings)
{
    const char *path = target->path;
    const struct perhaps_open_options options = { .without_secret = true };
    struct stat st;
    perhaps_filter *filter;
    if (target->streams || settings->force || stat(path, &st) != 0 || !S_ISREG(st.st_mode) ||
        st.st_size == 0)
        return 0;
    int error = perhaps_open(path, &options, &filter);
    perhaps_free(filter);
    return error == PERHAPS_ERR_FORMAT
               ? complain("%s: is there and no filter: give another name, or --force to "
                          "replace it",
                          path)
               : 0;
}

/* ---- Making one -------------------------------------------------------------------- */

int target_create(struct target *target, const struct settings *settings, struct size size)
{
    struct perhaps_options options;
    struct perhaps_plan plan;
    int status = hashing_choose(&target->hashing, settings);
    if (!status)
        status = request_plan(settings, size, target->path, &options, &plan);
    if (status)
        return status;
    options.hashing = target->hashing.chosen;
    int error = perhaps_create(&options, &target->filter);
    if (error == PERHAPS_ERR_MEMORY)
        return complain("%s: %s: it takes %s", target->path, why(error),
                        scaled((double)plan.body_nbytes, "B").s);
    return error ? complain("%s: %s", target->path, why(error)) : 0;
}

/* ---- Opening one ------------------------------------------------------------------- */

/* Verbs that only look at a filter, or put two together, hash no key. */
bool needs_secret(const struct settings *settings)
{
    return !(settings->verb->bit & (INFO | VERIFY | MERGE));
}

static int complain_open(const char *path, const struct settings *settings, int error)
{
    if (error == PERHAPS_ERR_UNSUPPORTED && settings->in_place)
        return complain("%s: its kind cannot be changed in place: leave out --in-place", path);
    if (error == PERHAPS_ERR_IO && errno == ENOSPC)
        return complain(
            "%s: has holes, or blocks that a copy shares with it, and the disk has no "
            "room for them: make room, or use --rewrite",
            path);
    if (error == PERHAPS_ERR_UNSUPPORTED && settings->check)
        return complain("%s: is being written in place, and has no checksums until that has "
                        "ended: leave out --check",
                        path);
    if (error == PERHAPS_ERR_SECRET)
        return hashing_complain(settings, path);
    return complain("%s: %s", path, why(error));
}

static int open_file(struct target *target, const char *path, const struct settings *settings,
                     struct perhaps_open_options options)
{
    struct hashing hashing;
    int status = hashing_read(&hashing, settings);
    if (status)
        return status;
    options.hashing = hashing.chosen;
    target->error = perhaps_open(path, &options, &target->filter);
    return target->error ? complain_open(path, settings, target->error) : 0;
}

int target_open(struct target *target, const char *path, const struct settings *settings)
{
    if (is_remote(path)) {
        *target = (struct target){ 0 };
        int ready = remote_new(target, path, settings, "opening");
        return ready ? ready : remote_open(target);
    }
    struct perhaps_open_options options = { .check = settings->check,
                                            .without_secret = !needs_secret(settings) };
    int status = init(target, path, outcome_at(path));
    return status ? status : open_file(target, path, settings, options);
}

int target_complain_damage(const struct target *target)
{
    struct perhaps_verdict verdict;
    int error = perhaps_checked(target->filter, &verdict);
    if (error == PERHAPS_ERR_UNSUPPORTED)
        return complain("%s: was written in place meanwhile: it could not be checked",
                        target->path);
    if (!error)
        return 0;
    return complain(
        "%s: damaged: %s of the %s pages that were read, the first at byte %ju: keys "
        "that lie there were taken for present: restore it or build it anew",
        target->path, grouped(verdict.damaged).s, grouped(verdict.pages).s,
        (uintmax_t)verdict.first_damaged);
}

int target_load(struct target *target, const char *from, const struct settings *settings)
{
    return open_file(target, from, settings,
                     (struct perhaps_open_options){
                         .mode = target->in_place ? PERHAPS_MODE_LIVE : PERHAPS_MODE_LOAD,
                         .without_secret = !needs_secret(settings) });
}

bool target_takes_in_place(const char *path)
{
    const struct perhaps_open_options options = { .without_secret = true };
    struct perhaps_stats stats;
    perhaps_filter *filter;
    if (access(path, W_OK) != 0 || perhaps_open(path, &options, &filter))
        return false;
    perhaps_stats_of(filter, &stats);
    perhaps_free(filter);
    return kind_can(stats.plan.kind, PERHAPS_CAN_SHARE);
}

/* The library keeps its own lock, which ours would be in the way of; between the two another
 * process may have put a new file in the place. */
int target_open_in_place(struct target *target, const char *path,
                         const struct settings *settings)
{
    struct stat st;
    int status = init(target, path, "; some of the keys are in %s");
    target->in_place = true;
    target->wait_ms = settings->wait_ms;
    while (!status) {
        if (stat(path, &st) == 0 && S_ISREG(st.st_mode))
            status = lock_file(target, path, 0, LOCK_SH);
        if (target->lock > 0)
            flock(target->lock, LOCK_UN);
        if (!status)
            status = target_load(target, path, settings);
        if (status || same_file(target->lock, path))
            break;
        perhaps_free(target->filter);
        target->filter = NULL;
    }
    return status;
}

/* Of a save that failed: whether all was done but syncing the folder. */
static bool is_there(const struct target *target, int reason)
{
    if (target->lock <= 0 || reason == EEXIST)
        return false;
    return target->fresh ? access(target->path, F_OK) == 0
                         : !same_file(target->lock, target->path);
}

/* The secret first: a filter without it would be lost. */
int target_save(const struct target *target, const struct settings *settings)
{
    int status = hashing_keep(&target->hashing, settings);
    if (status)
        return status;
    int error = target->streams ? perhaps_save_to(target->filter, STDOUT_FILENO)
                : target->fresh ? perhaps_save_new(target->filter, target->path)
                                : perhaps_save(target->filter, target->path);
    if (!error) {
        hashing_tell(&target->hashing, settings);
        return 0;
    }
    int reason = errno;
    if (!is_there(target, reason))
        hashing_drop(&target->hashing, settings);
    errno = reason;
    if (error == PERHAPS_ERR_IO && reason == EEXIST)
        return complain("%s: another process has made it meanwhile: it stays as it is, and has "
                        "nothing of this run",
                        target->path);
    return complain("%s: %s%s", target->path, why(error), target->outcome);
}

/* ---- In a file or on servers ------------------------------------------------------- */

/* Of one on servers, in the words of one in memory. */
static void translate(const struct perhaps_cluster_stats *from, struct perhaps_stats *to)
{
    *to = (struct perhaps_stats){ .plan = from->plan,
                                  .hash = from->hash,
                                  .keys = from->keys,
                                  .load = from->load,
                                  .memory_nbytes = from->memory_nbytes,
                                  .fpr_now = from->fpr_now };
    if (to->keys)
        to->bits_per_key = 8.0 * (double)to->memory_nbytes / (double)to->keys;
}

int target_stats(const struct target *target, struct perhaps_stats *stats,
                 struct perhaps_cluster_stats *servers, const char *outcome)
{
    struct perhaps_cluster_stats all = { 0 };
    int error = 0;
    if (target->filter) {
        perhaps_stats_of(target->filter, stats);
    } else {
        error = perhaps_cluster_stats_of(remote_handle(target), &all);
        translate(&all, stats);
    }
    if (servers)
        *servers = all;
    return target->remote ? remote_settle(target, error, outcome) : 0;
}

bool target_ask(const struct target *target, struct block *block, size_t *npresent)
{
    struct perhaps_keys keys = perhaps_keys_each(block->key, block->count);
    if (target->remote)
        return remote_ask(target->remote, block, npresent);
    *npresent = perhaps_contains_many(target->filter, &keys, block->answer);
    return true;
}

int target_complain(const struct target *target, const struct input *input,
                    const struct block *last, const char *outcome)
{
    if (!target->remote || !last->error || remote_blames_key(last))
        return input_complain(input, last, outcome);
    if (last->error == PERHAPS_ERR_STOPPED)
        return complain_interrupted(outcome);
    return complain("%s: %s%s", target->path, last->problem ? last->problem : why(last->error),
                    outcome);
}

int target_keep(const struct target *target, const struct settings *settings, int status)
{
    if (target->remote)
        return status;
    if (!target->in_place)
        return status ? status : target_save(target, settings);
    int error = perhaps_sync(target->filter);
    if (!error || status)
        return status;
    return complain("%s: %s%s", target->path, why(error), target->outcome);
}
