/* target.c - the filter that a verb works on, in a file: opened, made, saved.
 *
 * A verb that replaces a file has its place (place.h) before it reads the file, and until it
 * has saved the new one.  A verb that changes a file in place has the lock of the library,
 * which several processes share. */
#include "target.h"

#include <errno.h>
#include <perhaps_build.h>
#include <perhaps_fast.h>
#include <perhaps_file.h>
#include <perhaps_live.h>
#include <perhaps_plan.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "../base/messages.h"
#include "../base/numbers.h"
#include "../base/stop.h"
#include "place.h"

static struct target *targets; /* the list of all that are not closed */

/* Sets what an error leaves.  The format has one %s, for the path, or none. */
static void set_outcome(struct target *target, const char *format)
{
    free(target->outcome);
    if (asprintf(&target->outcome, format, target->path) < 0) {
        target->outcome = NULL;
        fail("%s", why(PERHAPS_ERR_MEMORY));
    }
}

void target_close(struct target *target)
{
    struct target **link = &targets;
    while (*link != target)
        link = &(*link)->next;
    *link = target->next;
    perhaps_free(target->filter);
    perhaps_builder_free(target->builder);
    remote_close(target->remote);
    web_close(target->web);
    place_unlock(target);
    free(target->outcome);
    free(target->lock_path);
    free(target);
}

static void close_all(void)
{
    while (targets)
        target_close(targets);
}

struct target *target_new(const struct settings *settings, const char *path)
{
    struct target *target = allocate_zeroed(1, sizeof *target);
    if (!targets)
        atexit(close_all);
    *target = (struct target){ .settings = settings, .path = path, .next = targets };
    return targets = target;
}

/* Returns the format of the outcome while nothing is saved. */
static const char *outcome_at(const char *path)
{
    if (!path)
        return "";
    return access(path, F_OK) == 0 ? "; %s is unchanged" : "; %s was not made";
}

/* ---- Reserving a place ------------------------------------------------------------- */

struct target *target_reserve(const struct settings *settings, const char *path)
{
    struct target *target = target_new(settings, path ? path : "the filter");
    struct stat st;
    set_outcome(target, outcome_at(path));
    if (!path)
        return target;
    bool exists = stat(path, &st) == 0;
    if (exists && S_ISDIR(st.st_mode))
        fail("%s: %s", path, strerror(EISDIR));
    if (exists && !S_ISREG(st.st_mode))
        return target; /* a device or pipe is written to directly */
    place_lock(target);
    if (!exists && !target->fresh)
        set_outcome(target, outcome_at(path)); /* another process made it while we waited */
    return target;
}

struct target *target_reserve_output(const struct settings *settings)
{
    if (strcmp(settings->output, "-") != 0)
        return target_reserve(settings, settings->output);
    if (isatty(STDOUT_FILENO))
        fail("-o -: standard output is a terminal: send it into a file or pipe");
    struct target *target = target_new(settings, "standard output");
    set_outcome(target, "; what was written there is no filter");
    target->streams = true;
    return target;
}

/* An empty file holds nothing that anybody could miss. */
void target_check_replaced(const struct target *target)
{
    const char *path = target->path;
    if (!target->streams && !perhaps_may_replace(path))
        fail("%s: exists and is not a filter: give another name, or remove it first", path);
}

/* Ends the program because the place of the journal is taken. */
static _Noreturn void fail_journal(const char *path)
{
    fail("%s: cannot become live: %s.journal is there, and may belong to a file that was "
         "renamed: give another name, or move it away",
         path, path);
}

_Noreturn void target_fail_live(const struct target *target)
{
    fail("%s: is a live file, which takes keys later, and this filter cannot: give another "
         "name, or remove %s and %s.journal first",
         target->path, target->path, target->path);
}

void target_check_journal(const struct target *target)
{
    if (!perhaps_may_become_live(target->path))
        fail_journal(target->path);
}

_Noreturn void target_fail_lost(const struct target *target, const char *outcome)
{
    fail("%s: it or its journal was removed, renamed or replaced meanwhile%s", target->path,
         outcome);
}

/* ---- Making one -------------------------------------------------------------------- */

void target_create(struct target *target, struct size size)
{
    struct perhaps_options options;
    struct perhaps_plan plan;
    hashing_choose(&target->hashing, target->settings);
    request_plan(target->settings, size, target->path, &options, &plan);
    options.hashing = target->hashing.chosen;
    int error = perhaps_create(&options, &target->filter);
    if (error == PERHAPS_ERR_MEMORY)
        fail("%s: it takes %s: %s", target->path, scaled((double)plan.body_nbytes, "B").s,
             why(error));
    if (error)
        fail("%s: %s", target->path, why(error));
}

static _Noreturn void fail_busy(const char *path)
{
    fail("%s: another process is changing it: try again later, or give --wait", path);
}

/* ---- Opening one ------------------------------------------------------------------- */

/* Ends the program because the file cannot be opened. */
static _Noreturn void fail_open(const char *path, const struct settings *settings, int error)
{
    if (error == PERHAPS_ERR_IO && errno == EBUSY)
        fail_busy(path);
    if (error == PERHAPS_ERR_IO && errno == EEXIST)
        fail_journal(path);
    if (error == PERHAPS_ERR_IO && (errno == ENOLCK || errno == ENODEV))
        fail("%s: its file system has no %s, which a live file needs: keep it elsewhere", path,
             errno == ENOLCK ? "locks" : "shared maps");
    if (error == PERHAPS_ERR_IO && errno == ENOSPC)
        fail("%s: has holes, or blocks that a copy shares with it, and the disk has no room "
             "for them: make room, or use --rewrite",
             path);
    if (error == PERHAPS_ERR_UNSUPPORTED && settings->check)
        fail("%s: is being written in place, and has no checksums until that has ended: leave "
             "out --check",
             path);
    if (error == PERHAPS_ERR_SECRET)
        hashing_fail(settings, path);
    fail("%s: %s", path, why(error));
}

/* Ends the program if a secret was given for nothing. */
static void check_secret(const struct target *target)
{
    hashing_check(target->settings, target->path,
                  perhaps_hash_name(perhaps_hash_of(target->filter)));
}

/* Opens the filter at 'path' and returns 0, or the error 'taken'.  Another error ends the
 * program. */
static int open_unless(int taken, struct target *target, const char *path,
                       enum perhaps_mode mode, bool check)
{
    const struct settings *settings = target->settings;
    hashing_read(&target->hashing, settings);
    struct perhaps_open_options options = { .mode = mode,
                                            .check = check,
                                            .without_secret = !needs_secret(settings),
                                            .hashing = target->hashing.chosen };
    stop_says_lost(path);
    int error = perhaps_open(path, &options, &target->filter);
    if (error && error != taken)
        fail_open(path, settings, error);
    if (!error)
        check_secret(target);
    return error;
}

/* Opens the filter at 'path', or ends the program. */
static void open_filter(struct target *target, const char *path, enum perhaps_mode mode,
                        bool check)
{
    open_unless(0, target, path, mode, check);
}

struct target *target_on_servers(const struct settings *settings, const char *address,
                                 const char *doing)
{
    struct target *target = target_new(settings, address);
    if (settings->verb->bit == CREATE)
        hashing_choose(&target->hashing, settings);
    else
        hashing_read(&target->hashing, settings);
    remote_new(&target->remote, settings, &target->hashing.chosen, address, doing);
    target->path = remote_name(target->remote);
    return target;
}

static void open_on_web(struct target *target)
{
    struct perhaps_stats stats;
    hashing_read(&target->hashing, target->settings);
    web_open(&target->web, target->settings, &target->hashing.chosen, target->path);
    web_stats(target->web, &stats);
    hashing_check(target->settings, target->path, stats.hash);
}

struct target *target_open(const struct settings *settings, const char *path)
{
    struct target *target;
    struct perhaps_stats stats;
    if (is_remote(path)) {
        target = target_on_servers(settings, path, "opening");
        remote_open(target->remote);
        if (settings->key_file) {
            target_stats(target, &stats, NULL, "");
            hashing_check(settings, target->path, stats.hash);
        }
        return target;
    }
    target = target_new(settings, path);
    if (is_web(path)) {
        open_on_web(target);
        return target;
    }
    set_outcome(target, outcome_at(path));
    open_filter(target, path, PERHAPS_MODE_READ, settings->check);
    return target;
}

struct target *target_open_damaged(const struct settings *settings, const char *path)
{
    struct target *target = target_new(settings, path);
    set_outcome(target, outcome_at(path));
    open_unless(PERHAPS_ERR_DAMAGED, target, path, PERHAPS_MODE_READ, settings->check);
    return target;
}

void target_settle_damage(const struct target *target)
{
    struct perhaps_verdict verdict;
    if (target->web)
        return; /* a key that lies on a damaged page was an error */
    int error = perhaps_checked(target->filter, &verdict);
    if (error == PERHAPS_ERR_UNSUPPORTED)
        fail("%s: was written in place meanwhile: it could not be checked", target->path);
    if (error)
        fail("%s: damaged: %s of the %s pages that were read, the first at byte %ju: keys that "
             "lie there were taken for present: restore it or build it anew",
             target->path, grouped(verdict.damaged).s, grouped(verdict.pages).s,
             (uintmax_t)verdict.first_damaged);
}

void target_load(struct target *target, const char *from)
{
    open_filter(target, from, target->in_place ? PERHAPS_MODE_IN_PLACE : PERHAPS_MODE_LOAD,
                false);
}

bool target_takes_in_place(const char *path)
{
    const struct perhaps_open_options options = { .without_secret = true };
    perhaps_filter *filter;
    if (!place_can_share(path) || perhaps_open(path, &options, &filter))
        return false;
    const struct perhaps_kind *kind = perhaps_kind_of(filter);
    perhaps_free(filter);
    return kind->abilities & PERHAPS_CAN_SHARE;
}

/* The library keeps a lock of its own, which ours would be in the way of.  So ours is given
 * back before the library opens the file, and in between another process may have put a new
 * file there. */
struct target *target_open_in_place(const struct settings *settings, const char *path)
{
    struct target *target = target_new(settings, path);
    struct stat st;
    set_outcome(target, "; some of the keys are in %s");
    target->in_place = true;
    for (;;) {
        if (stat(path, &st) == 0 && S_ISREG(st.st_mode))
            place_share(target);
        if (target->lock > 0)
            flock(target->lock, LOCK_UN);
        target_load(target, path);
        if (place_is_locked(target))
            return target;
        perhaps_free(target->filter);
        target->filter = NULL;
    }
}

void target_load_live(struct target *target, uint64_t records)
{
    enum { MOMENT_MS = 10 };
    const struct settings *settings = target->settings;
    const struct timespec moment = { .tv_nsec = MOMENT_MS * 1000000 };
    hashing_read(&target->hashing, settings);
    struct perhaps_open_options options = { .mode = PERHAPS_MODE_JOURNAL,
                                            .without_secret = !needs_secret(settings),
                                            .hashing = target->hashing.chosen,
                                            .journal_records = records };
    set_outcome(target, "; some of the keys are in %s");
    target->in_place = target->live = true;
    uint64_t moments = settings->wait_ms / MOMENT_MS;
    int error;
    stop_says_lost(target->path);
    while ((error = perhaps_open(target->path, &options, &target->filter)) == PERHAPS_ERR_IO &&
           errno == EBUSY && moments-- && !stop_signal())
        nanosleep(&moment, NULL);
    if (error == PERHAPS_ERR_IO && errno == ENOSPC)
        fail("%s: the disk has no room for its journal: make room", target->path);
    if (error)
        fail_open(target->path, settings, error);
    check_secret(target);
    place_unlock(target); /* the library has locked the journal */
}

struct target *target_open_live(const struct settings *settings, const char *path,
                                uint64_t records)
{
    struct target *target = target_new(settings, path);
    target_load_live(target, records);
    return target;
}

/* Makes the file that was saved a live one.  If that fails, an empty one that was not there
 * before is removed; keys that were added are worth keeping. */
static void make_file_live(struct target *target)
{
    const struct perhaps_open_options options = { .mode = PERHAPS_MODE_JOURNAL,
                                                  .without_secret = true };
    perhaps_filter *filter;
    int error = perhaps_open(target->path, &options, &filter), reason = errno;
    perhaps_free(filter);
    if (!error)
        return;
    const bool empty = target->fresh && target->settings->verb->bit != BUILD;
    const bool no_locks = error == PERHAPS_ERR_IO && reason == ENOLCK;
    if (empty && unlink(target->path) == 0)
        hashing_drop(&target->hashing);
    errno = reason;
    if (empty && error == PERHAPS_ERR_IO && errno == EEXIST)
        fail_journal(target->path);
    fail("%s: %s: %s", target->path, empty ? "was not made" : "was made, but is no live file",
         no_locks ? "its file system has no locks" : why(error));
}

/* Returns whether the new file is at the path although perhaps_save() failed: only syncing the
 * folder failed then. */
static bool is_there(const struct target *target, int reason)
{
    if (target->lock <= 0 || reason == EEXIST)
        return false;
    return target->fresh ? access(target->path, F_OK) == 0 : !place_is_locked(target);
}

void target_open_saved(struct target *target)
{
    const struct perhaps_open_options options = { .without_secret = true };
    const int error = perhaps_open(target->path, &options, &target->filter);
    if (!error)
        return;
    const int reason = errno;
    progress_erase();
    errno = reason;
    fail("%s: is saved, but cannot be opened to tell about it: %s", target->path, why(error));
}

/* Builds the filter and saves it, and opens it, for the statistics. */
static int build_and_save(struct target *target)
{
    int error;
    progress_start(&target->progress, target->settings, "building", 0);
    if (target->streams) {
        error = perhaps_builder_finish(target->builder, &target->filter);
        if (!error)
            error = perhaps_save_to(target->filter, STDOUT_FILENO);
    } else {
        error = target->fresh ? perhaps_builder_save_new(target->builder, target->path)
                              : perhaps_builder_save(target->builder, target->path);
        if (!error)
            target_open_saved(target);
    }
    int reason = errno;
    progress_erase();
    errno = reason;
    return error;
}

void target_look_last(const struct target *target)
{
    if (stop_signal())
        fail_interrupted(target->outcome);
}

/* The secret is written first: a filter without its secret would be lost. */
void target_save(struct target *target)
{
    hashing_keep(&target->hashing);
    target_settle_save(target, target->builder ? build_and_save(target)
                               : target->streams
                                   ? perhaps_save_to(target->filter, STDOUT_FILENO)
                               : target->fresh ? perhaps_save_new(target->filter, target->path)
                                               : perhaps_save(target->filter, target->path));
    if (target->settings->live)
        make_file_live(target);
    hashing_tell(&target->hashing);
}

void target_settle_save(struct target *target, int error)
{
    int reason = errno;
    if (!error)
        return;
    if (!is_there(target, reason))
        hashing_drop(&target->hashing);
    if (error == PERHAPS_ERR_STOPPED)
        fail_interrupted(target->outcome);
    errno = reason;
    if (error == PERHAPS_ERR_IO && reason == EBUSY)
        fail_busy(target->path);
    if (error == PERHAPS_ERR_IO && reason == EEXIST)
        fail("%s: another process has made it meanwhile: it stays as it is, and has nothing of "
             "this run",
             target->path);
    if (error == PERHAPS_ERR_IO && target->builder &&
        perhaps_builder_disk_nbytes(target->builder, perhaps_builder_keys(target->builder)))
        fail("%s: %s, for it or for the temporary file in %s: see --tmp and --memory%s",
             target->path, why(error), perhaps_builder_folder(target->builder),
             target->outcome);
    if (perhaps_is_live(target->path) && error == PERHAPS_ERR_UNSUPPORTED)
        target_fail_live(target);
    if (perhaps_is_live(target->path) && error == PERHAPS_ERR_JOURNAL)
        fail("%s: is a live file without its journal, and stays as it is: remove it first",
             target->path);
    fail("%s: %s%s", target->path, why(error), target->outcome);
}

/* ---- In a file or on servers ------------------------------------------------------- */

/* Fills in the members that both kinds of statistics have. */
static void translate(const struct perhaps_cluster_stats *from, struct perhaps_stats *to)
{
    *to = (struct perhaps_stats){ .plan = from->plan,
                                  .hash = from->hash,
                                  .keys = from->keys,
                                  .keys_different = from->keys_different,
                                  .load = from->load,
                                  .memory_nbytes = from->memory_nbytes,
                                  .fpr_now = from->fpr_now };
    if (to->keys)
        to->bits_per_key = 8.0 * (double)to->memory_nbytes / (double)to->keys;
}

void target_stats(const struct target *target, struct perhaps_stats *stats,
                  struct perhaps_cluster_stats *servers, const char *outcome)
{
    struct perhaps_cluster_stats all = { 0 };
    if (target->filter) {
        perhaps_stats_of(target->filter, stats);
    } else if (target->web) {
        web_stats(target->web, stats);
    } else {
        remote_rest(target->remote);
        remote_settle(target->remote, client.stats_of(remote_handle(target->remote), &all),
                      outcome);
        translate(&all, stats);
    }
    if (servers)
        *servers = all;
}

bool target_ask(const struct target *target, struct block *block, size_t *npresent)
{
    struct perhaps_keys keys = perhaps_keys_each(block->key, block->count);
    if (target->remote)
        return remote_ask(target->remote, block, npresent);
    if (target->web)
        return web_ask(target->web, block, npresent);
    *npresent = perhaps_contains_many(target->filter, &keys, block_bools(block));
    return true;
}

/* Finds out by a key that is no hash: statistics would take a look at the whole filter. */
void target_expect_keys(const struct target *target, struct input *input)
{
    const struct perhaps_key empty = { "", 0 };
    const struct perhaps_keys keys = perhaps_keys_each(&empty, 1);
    struct perhaps_hashed hashed;
    if (target->filter &&
        strcmp(perhaps_kind_of(target->filter)->name, KIND_OF_INTEGERS) != 0 &&
        perhaps_hash_many(target->filter, &keys, &hashed) == PERHAPS_ERR_ARGUMENT)
        input_expect_hashes(input);
}

void target_limit_keys(const struct target *target, struct input *input)
{
    struct perhaps_stats stats;
    uint64_t low, high;
    if (!target->filter)
        return;
    target_expect_keys(target, input);
    if (strcmp(perhaps_kind_of(target->filter)->name, KIND_OF_INTEGERS) != 0)
        return;
    perhaps_stats_of(target->filter, &stats);
    if (planned_field(&stats.plan, "low", &low) && planned_field(&stats.plan, "high", &high))
        input_expect_integers(input, low, high);
}

void target_settle(const struct target *target, const struct input *input,
                   const struct block *last, const char *outcome)
{
    if ((!target->remote && !target->web) || !last->error || remote_blames_key(last)) {
        input_settle(input, last, outcome);
        return;
    }
    if (last->error == PERHAPS_ERR_STOPPED)
        fail_interrupted(outcome);
    fail("%s: %s%s", target->path, last->problem ? last->problem : why(last->error), outcome);
}
