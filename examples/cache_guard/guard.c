/* guard.c - the filter in front: in memory, in a file that processes share, or on servers. */
#include <err.h>
#include <errno.h>
#include <string.h>
#include <time.h>

#include "cache_guard.h"
#include <perhaps_file.h>

/* How long a look-up waits for servers, and for how long after that they are not asked. */
enum { PATIENCE_MS = 2000, SILENCE_S = 1 };

/* Says what is wrong, and ends the program. */
static void fail(const struct guard *guard, int error)
{
    if (guard->cluster)
        errx(2, "guard %s: %s", perhaps_cluster_name(guard->cluster),
             perhaps_cluster_problem(guard->cluster));
    if (error == PERHAPS_ERR_IO)
        err(2, "guard %s", guard->where);
    errx(2, "guard %s: %s", guard->where, perhaps_strerror(error));
}

/* Opens the file to write it in place, together with other processes.  If several
 * processes find that it does not exist, each makes one, and perhaps_save_new() decides
 * which one stays. */
static int open_file(struct guard *guard, bool create)
{
    struct perhaps_open_options live = { .mode = PERHAPS_MODE_IN_PLACE,
                                         .hashing = guard->options.hashing };
    perhaps_filter *empty;
    int error = perhaps_open(guard->where, &live, &guard->filter);
    if (error != PERHAPS_ERR_IO || errno != ENOENT || !create)
        return error;
    guard->options.needs = PERHAPS_CAN_SHARE;
    error = perhaps_create(&guard->options, &empty);
    if (!error)
        error = perhaps_save_new(empty, guard->where);
    perhaps_free(empty);
    if (error && !(error == PERHAPS_ERR_IO && errno == EEXIST)) /* another process made it */
        return error;
    return perhaps_open(guard->where, &live, &guard->filter);
}

/* Opens the filter on the servers.  If another process is just making it, waits for that for up
 * to ten seconds. */
static int open_on_servers(struct guard *guard, bool create)
{
    const struct timespec moment = { .tv_nsec = 100000000 };
    struct perhaps_cluster_options where = { .url = guard->where,
                                             .patience_ms = PATIENCE_MS,
                                             .hashing = guard->options.hashing };
    int error = perhaps_cluster_new(&where, &guard->cluster);
    if (!error)
        error = perhaps_cluster_open(guard->cluster);
    guard->options.needs = PERHAPS_CAN_GROW;
    if (error == PERHAPS_ERR_MISSING && create)
        error = perhaps_cluster_create(guard->cluster, &guard->options, 0);
    for (int i = 0; i < 100; i++) {
        if (error != PERHAPS_ERR_TAKEN && error != PERHAPS_ERR_UNFINISHED)
            break;
        nanosleep(&moment, NULL); /* another process is making it */
        error = perhaps_cluster_open(guard->cluster);
    }
    return error;
}

void guard_open(struct guard *guard, bool create)
{
    int error;
    if (strcmp(guard->where, "memory") == 0)
        error = perhaps_create(&guard->options, &guard->filter);
    else if (strncmp(guard->where, "redis://", 8) == 0)
        error = open_on_servers(guard, create);
    else
        error = open_file(guard, create);
    if (error)
        fail(guard, error);
}

void guard_close(struct guard *guard)
{
    perhaps_free(guard->filter);
    perhaps_cluster_free(guard->cluster);
}

bool guard_ask(struct guard *guard, const struct perhaps_keys *emails, bool *perhaps)
{
    if (guard->filter) {
        perhaps_contains_many(guard->filter, emails, perhaps);
        return true;
    }
    if (time(NULL) >= guard->silent_until_s) {
        if (!perhaps_cluster_contains_many(guard->cluster, emails, (uint8_t *)perhaps, NULL))
            return true;
        guard->silent_until_s = time(NULL) + SILENCE_S;
    }
    memset(perhaps, true, emails->count);
    return false;
}

/* If an address cannot be added the program ends: no user may get an address that the guard
 * does not know. */
void guard_add(struct guard *guard, const struct perhaps_keys *emails, bool *were_there)
{
    int error =
        guard->filter
            ? perhaps_add_unless_present_many(guard->filter, emails, were_there, NULL)
            : perhaps_cluster_add_many(guard->cluster, emails, (uint8_t *)were_there, NULL);
    if (error)
        fail(guard, error);
}
