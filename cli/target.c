#include "target.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "hashing.h"
#include "numbers.h"
#include "report.h"
#include "stop.h"

static int init(struct target *target, const char *path, const char *format)
{
    *target = (struct target){ .path = path ? path : "the filter", .lock = -1 };
    if (asprintf(&target->outcome, format, path) >= 0)
        return 0;
    target->outcome = NULL;
    return complain("%s", perhaps_strerror(PERHAPS_ERR_MEMORY));
}

void target_close(struct target *target)
{
    perhaps_free(target->filter);
    remote_close(target->remote);
    free(target->outcome);
    if (target->lock >= 0)
        close(target->lock);
}

static const char *outcome_at(const char *path)
{
    if (!path)
        return "";
    return access(path, F_OK) == 0 ? "; %s is unchanged" : "; %s was not made";
}

/* ---- Reserving a place ------------------------------------------------------------- */

/* perhaps_save() makes a new file in the folder. */
static int check_folder(const char *path, bool exists)
{
    char *real = exists ? realpath(path, NULL) : strdup(path);
    bool writable = real && access(dirname(real), W_OK | X_OK) == 0;
    int status = writable ? 0 : complain("%s: cannot be written: %s", path, strerror(errno));
    free(real);
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
static bool try_lock(int fd, int how)
{
    const struct timespec moment = { .tv_nsec = 10000000 };
    const int moments = how == LOCK_SH ? 500 : 0;
    for (int i = 0; flock(fd, how | LOCK_NB) != 0; i++) {
        if (errno != EWOULDBLOCK || i == moments || stop_signal())
            return false;
        nanosleep(&moment, NULL);
        errno = EWOULDBLOCK;
    }
    return true;
}

/* perhaps_save() puts a new file at the path, so whoever waited for the lock of the old one
 * must look again.  'how' is LOCK_EX, or LOCK_SH beside others that have it so. */
static int lock(struct target *target, int how)
{
    const char *path = target->path;
    do {
        if (target->lock >= 0)
            close(target->lock);
        target->lock = open(path, O_RDONLY | O_CLOEXEC);
        if (target->lock < 0)
            return errno == ENOENT ? 0 : complain("%s: %s", path, strerror(errno));
        if (try_lock(target->lock, how))
            continue;
        if (stop_signal())
            return complain_interrupted("");
        return errno == EWOULDBLOCK
                   ? complain("%s: another process is changing it: try again later", path)
                   : complain("%s: cannot be locked: %s", path, strerror(errno));
    } while (!same_file(target->lock, path));
    return 0;
}

int target_reserve(struct target *target, const char *path)
{
    struct stat st;
    int status = init(target, path, outcome_at(path));
    if (status || !path)
        return status;
    bool exists = stat(path, &st) == 0;
    if (exists && S_ISDIR(st.st_mode))
        return complain("%s: %s", path, strerror(EISDIR));
    if (exists && !S_ISREG(st.st_mode))
        return 0; /* a device or pipe is written to */
    status = check_folder(path, exists);
    return status ? status : lock(target, LOCK_EX);
}

/* ---- Making one -------------------------------------------------------------------- */

int target_create(struct target *target, const struct settings *settings, struct size size)
{
    struct hashing hashing;
    struct perhaps_options options;
    struct perhaps_plan plan;
    int status = hashing_choose(&hashing, settings);
    if (!status)
        status = request_plan(settings, size, target->path, &options, &plan);
    if (status)
        return status;
    options.hashing = hashing.chosen;
    int error = perhaps_create(&options, &target->filter);
    if (error == PERHAPS_ERR_MEMORY)
        return complain("%s: %s: it takes %s", target->path, why(error),
                        scaled((double)plan.body_nbytes, "B").s);
    if (error)
        return complain("%s: %s", target->path, why(error));
    status = hashing_keep(&hashing, settings);
    if (!status)
        hashing_tell(&hashing, settings);
    return status;
}

/* ---- Opening one ------------------------------------------------------------------- */

static int complain_open(const char *path, const struct settings *settings, int error)
{
    if (error == PERHAPS_ERR_UNSUPPORTED && settings->in_place)
        return complain("%s: its kind cannot be changed in place: leave out --in-place", path);
    if (error == PERHAPS_ERR_KEY)
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

static int open_remote(struct target *target, const char *address,
                       const struct settings *settings)
{
    *target = (struct target)TARGET_NONE;
    int status = remote_new(address, settings, "opening", &target->remote);
    if (!status)
        target->path = remote_name(target->remote);
    return status ? status : remote_open(target->remote);
}

int target_open(struct target *target, const char *path, const struct settings *settings,
                enum secrecy secrecy)
{
    if (is_remote(path))
        return open_remote(target, path, settings);
    struct perhaps_open_options options = { .without_secret = secrecy == WITHOUT_SECRET };
    int status = init(target, path, outcome_at(path));
    return status ? status : open_file(target, path, settings, options);
}

int target_load(struct target *target, const char *from, const struct settings *settings,
                enum secrecy secrecy)
{
    return open_file(
        target, from, settings,
        (struct perhaps_open_options){ .writable = true,
                                       .shared = target->in_place,
                                       .without_secret = secrecy == WITHOUT_SECRET });
}

bool target_takes_in_place(const char *path)
{
    const struct perhaps_open_options options = { .without_secret = true };
    struct perhaps_stats stats;
    perhaps_filter *filter;
    if (access(path, W_OK) != 0 || perhaps_open(path, &options, &filter))
        return false;
    perhaps_stats(filter, &stats);
    perhaps_free(filter);
    return kind_can(stats.plan.kind, PERHAPS_SHARE);
}

/* The library keeps its own lock, which ours would be in the way of; between the two another
 * process may have put a new file in the place. */
int target_open_in_place(struct target *target, const char *path,
                         const struct settings *settings)
{
    struct stat st;
    int status = init(target, path, "; some of the keys are in %s");
    target->in_place = true;
    while (!status) {
        if (stat(path, &st) == 0 && S_ISREG(st.st_mode))
            status = lock(target, LOCK_SH);
        if (target->lock >= 0)
            flock(target->lock, LOCK_UN);
        if (!status)
            status = target_load(target, path, settings, WITH_SECRET);
        if (status || same_file(target->lock, path))
            break;
        perhaps_free(target->filter);
        target->filter = NULL;
    }
    return status;
}

int target_save(const struct target *target)
{
    int error = perhaps_save(target->filter, target->path);
    return error ? complain("%s: %s%s", target->path, why(error), target->outcome) : 0;
}

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

int target_stats(const struct target *target, struct perhaps_stats *stats)
{
    struct perhaps_cluster_stats all;
    if (target->filter) {
        perhaps_stats(target->filter, stats);
        return 0;
    }
    int error = perhaps_cluster_stats(remote_handle(target->remote), &all);
    if (!error)
        translate(&all, stats);
    return remote_settle(target->remote, error, "");
}

int target_sync(const struct target *target, int status)
{
    int error = perhaps_sync(target->filter);
    if (!error || status)
        return status;
    return complain("%s: %s%s", target->path, why(error), target->outcome);
}
