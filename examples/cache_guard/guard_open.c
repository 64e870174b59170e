/* guard_open.c - guards are made and opened: guard.h tells. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "guard_struct.h"
#include "scratch.h"

static bool is_in_memory(const struct guard_options *options)
{
    return strcmp(options->where, "memory") == 0;
}

static bool is_on_servers(const struct guard_options *options)
{
    return strncmp(options->where, "redis://", 8) == 0;
}

static struct perhaps_hashing hashing_of(const struct guard_options *options)
{
    return (struct perhaps_hashing){ .hash =
                                         options->secret ? PERHAPS_HASH_SIP : PERHAPS_HASH_XXH3,
                                     .secret = options->secret };
}

void guard_fail(const struct guard *guard, int error)
{
    const char *what = perhaps_strerror(error);
    if (guard->cluster)
        fail("guard %s: %s", perhaps_cluster_name(guard->cluster),
             perhaps_cluster_problem(guard->cluster));
    if (error == PERHAPS_ERR_FULL)
        what =
            "there is no room for more users; end all who use it and remove it: the next one "
            "makes it anew, with room for twice as many as there are";
    else if (error == PERHAPS_ERR_TAKEN)
        what = "there is a file of that name";
    else if (error == PERHAPS_ERR_MISSING || error == PERHAPS_ERR_IO)
        what = strerror(errno);
    fail("guard %s: %s", guard->options.where, what);
}

static struct perhaps_options wanted(const struct guard_options *options, unsigned needs)
{
    return (struct perhaps_options){ .capacity = options->capacity,
                                     .fpr = options->fpr,
                                     .needs = needs,
                                     .hashing = hashing_of(options) };
}

/* ---- In memory, and in a file ------------------------------------------------------------ */

static int open_file(struct guard *guard)
{
    struct perhaps_open_options options = { .mode = PERHAPS_MODE_LIVE,
                                            .hashing = hashing_of(&guard->options) };
    int error = perhaps_open(guard->options.where, &options, &guard->filter);
    return error == PERHAPS_ERR_IO && errno == ENOENT ? PERHAPS_ERR_MISSING : error;
}

/* It is written elsewhere and gets its name only if nothing has it: of several who make it at
 * once one does. */
static int save(const struct guard *guard, const perhaps_filter *filter)
{
    char *elsewhere = text_of("%s.%ld", guard->options.where, (long)getpid());
    int error = perhaps_save(filter, elsewhere);
    if (!error && link(elsewhere, guard->options.where))
        error = errno == EEXIST ? (int)PERHAPS_ERR_TAKEN : PERHAPS_ERR_IO;
    int link_errno = errno;
    unlink(elsewhere);
    free(elsewhere);
    errno = link_errno;
    return error;
}

static int make_filter(struct guard *guard)
{
    struct perhaps_options options = wanted(&guard->options, PERHAPS_CAN_SHARE);
    int error = perhaps_create(&options, &guard->filter);
    if (error || is_in_memory(&guard->options))
        return error;
    error = save(guard, guard->filter);
    perhaps_free(guard->filter);
    guard->filter = NULL;
    return error ? error : open_file(guard);
}

/* ---- On servers -------------------------------------------------------------------------- */

/* For users who wait for an answer: the database is asked then.  Those who add users cannot do
 * without the guard, and have the patience of the library. */
enum { PATIENCE_MS = 2000 };

int guard_find(struct guard *guard)
{
    int error = guard->is_open ? 0 : perhaps_cluster_open(guard->cluster);
    guard->is_open = !error;
    return error;
}

/* One that somebody is just making is waited for. */
static int open_on_servers(struct guard *guard)
{
    const struct timespec moment = { .tv_nsec = 100000000 };
    int error = guard_find(guard);
    for (int i = 0; error == PERHAPS_ERR_UNFINISHED && i < 100; i++) {
        nanosleep(&moment, NULL);
        error = guard_find(guard);
    }
    return error;
}

static int make_on_servers(struct guard *guard)
{
    struct perhaps_options options =
        wanted(&guard->options, guard->options.grows ? PERHAPS_CAN_GROW : 0);
    int error = perhaps_cluster_create(guard->cluster, &options, 0);
    guard->is_open = !error;
    return error;
}

static int know_servers(struct guard *guard, unsigned patience_ms)
{
    struct perhaps_cluster_options options = { .url = guard->options.where,
                                               .patience_ms = patience_ms,
                                               .hashing = hashing_of(&guard->options) };
    return perhaps_cluster_new(&options, &guard->cluster);
}

/* ---- Opening ----------------------------------------------------------------------------- */

static int make(struct guard *guard)
{
    return guard->cluster ? make_on_servers(guard) : make_filter(guard);
}

static int open_it(struct guard *guard)
{
    return guard->cluster ? open_on_servers(guard) : open_file(guard);
}

/* The caller's may go. */
static void keep_options(struct guard *guard, const struct guard_options *options)
{
    guard->options = *options;
    guard->options.where = text_of("%s", options->where);
    if (options->secret) {
        memcpy(guard->secret, options->secret, SECRET_NBYTES);
        guard->options.secret = guard->secret;
    }
}

struct guard *guard_open(const struct guard_options *options, enum guard_how how)
{
    struct guard *guard = memory_zeroed(sizeof *guard);
    keep_options(guard, options);
    int error = is_on_servers(options) ? know_servers(guard, 0) : 0;
    if (!error)
        error = how == GUARD_MAKE ? make(guard) : open_it(guard);
    if (error == PERHAPS_ERR_MISSING && how == GUARD_OPEN_OR_MAKE) {
        error = make(guard);
        if (error == PERHAPS_ERR_TAKEN || error == PERHAPS_ERR_UNFINISHED) /* another did */
            error = open_it(guard);
    }
    if (error)
        guard_fail(guard, error);
    return guard;
}

/* Any number of threads may ask one filter, but each needs connections of its own.  They are
 * made when the first question comes: no answer then is as good as none later. */
struct guard *guard_again(struct guard *guard)
{
    struct guard *again = memory_zeroed(sizeof *again);
    keep_options(again, &guard->options);
    again->filter = guard->filter;
    again->is_borrowed = true;
    int error = guard->cluster ? know_servers(again, PATIENCE_MS) : 0;
    if (error)
        guard_fail(again, error);
    return again;
}

void guard_close(struct guard *guard)
{
    if (!guard->is_borrowed)
        perhaps_free(guard->filter);
    perhaps_cluster_free(guard->cluster);
    free((char *)guard->options.where);
    free(guard);
}

void guard_delete(const struct guard_options *options)
{
    struct perhaps_cluster_options where = { .url = options->where,
                                             .patience_ms = PATIENCE_MS };
    perhaps_cluster *cluster = NULL;
    if (!is_on_servers(options)) {
        unlink(options->where);
        return;
    }
    if (perhaps_cluster_new(&where, &cluster) || perhaps_cluster_delete(cluster))
        fprintf(stderr, "cache_guard: guard %s is left behind: %s\n", options->where,
                perhaps_cluster_problem(cluster));
    perhaps_cluster_free(cluster);
}
