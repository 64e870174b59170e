/* remote.c - the connections to a filter on servers, which is opened, asked and added to.
 *
 * A perhaps_cluster is for one thread at a time.  So every thread that works on a block takes a
 * handle from a list, which grows to as many as work at once. */
#include "remote.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../base/messages.h"
#include "../base/stop.h"
#include "secret.h"
#include "web.h"

/* An open filter, with its connections. */
struct handle {
    perhaps_cluster *cluster;
    bool open, impatient; /* it tries again for a moment only */
    /* A thread works with it; or it has failed, and its problem is still to be told. */
    bool busy;
    struct handle *next;
};

/* The list begins with 'first', which is also the handle for all that one thread does alone. */
struct remote {
    const struct settings *settings;
    struct perhaps_cluster_options options; /* for all handles */
    struct progress progress;
    struct handle first;
    pthread_mutex_t lock; /* of the list, of each 'busy', and of what follows */
    char problem[1024];   /* why answers were unknown first; empty: none was */
    size_t nsilent;       /* how many keys were asked since the last answer that is known */
};

/* Returns whether a path begins with a scheme and 'mark'. */
static bool has_scheme(const char *path, const char *mark)
{
    static const char *const schemes[] = {
        "redis",           "rediss",          "valkey",           "valkeys", "redis+sentinel",
        "rediss+sentinel", "valkey+sentinel", "valkeys+sentinel", "unix",    "redis+unix",
    };
    for (size_t i = 0; i < sizeof schemes / sizeof *schemes; i++) {
        size_t length = strlen(schemes[i]);
        if (strncmp(path, schemes[i], length) == 0 &&
            strncmp(path + length, mark, strlen(mark)) == 0)
            return true;
    }
    return false;
}

bool is_remote(const char *path)
{
    return has_scheme(path, "://");
}

void remote_refuse_typo(const char *path)
{
    if (is_remote(path) || is_web(path) || (!has_scheme(path, ":") && !strstr(path, "://")) ||
        access(path, F_OK) == 0)
        return;
    fail("%s: neither a file nor an address of servers: those are redis://host:port/name, "
         "or https://host/file",
         path);
}

/* ---- Making ready, closing --------------------------------------------------------- */

/* Tells the client whether to give up.  It goes on for a moment after a signal, so that dedup
 * can print what it has added; but not if a server takes long. */
static bool is_overdue(void *context)
{
    (void)context;
    return stop_overdue();
}

/* Draws the progress of long work, for the client. */
static void show_progress(void *context, uint64_t done, uint64_t total)
{
    struct remote *remote = context;
    remote->progress.total_nbytes = total;
    progress_show(&remote->progress, false, 0, done);
}

/* Prints a warning of the client. */
static void show_warning(void *context, const char *line)
{
    const struct remote *remote = context;
    if (!remote->settings->quiet)
        complain("%s: %s", remote_name(remote), line);
}

void remote_new(struct remote **remote, const struct settings *settings,
                const struct perhaps_hashing *hashing, const char *address, const char *doing)
{
    client_load();
    struct remote *r = *remote = allocate_zeroed(1, sizeof *r);
    pthread_mutex_init(&r->lock, NULL);
    r->settings = settings;
    r->options = (struct perhaps_cluster_options){ .url = address,
                                                   .password = getenv("REDISCLI_AUTH"),
                                                   .hashing = *hashing,
                                                   .without_secret = !needs_secret(settings),
                                                   .stopped = is_overdue,
                                                   .progress = show_progress,
                                                   .warn = show_warning,
                                                   .context = r };
    progress_start(&r->progress, settings, doing, 0);
    int error = client.new(&r->options, &r->first.cluster);
    if (error == PERHAPS_ERR_MEMORY)
        fail("%s", perhaps_strerror(error));
    remote_settle(r, error, "");
}

void remote_close(struct remote *remote)
{
    if (!remote)
        return;
    client.free(remote->first.cluster);
    for (struct handle *handle = remote->first.next, *next; handle; handle = next) {
        next = handle->next;
        client.free(handle->cluster);
        free(handle);
    }
    pthread_mutex_destroy(&remote->lock);
    free(remote);
}

const char *remote_name(const struct remote *remote)
{
    return client.name(remote->first.cluster);
}

perhaps_cluster *remote_handle(const struct remote *remote)
{
    return remote->first.cluster;
}

void remote_rest(const struct remote *remote)
{
    for (const struct handle *handle = &remote->first; handle; handle = handle->next)
        if (handle->open && !handle->busy)
            client.rest(handle->cluster);
}

void remote_settle(const struct remote *remote, int error, const char *outcome)
{
    progress_erase();
    if (error == PERHAPS_ERR_STOPPED)
        fail_interrupted(outcome);
    if (error == PERHAPS_ERR_SECRET)
        hashing_fail(remote->settings, remote_name(remote));
    if (error)
        fail("%s: %s%s", remote_name(remote), client.problem(remote->first.cluster), outcome);
}

void remote_settle_made(const struct remote *remote, int error)
{
    char outcome[512];
    snprintf(outcome, sizeof outcome, "; %s was not made", remote_name(remote));
    remote_settle(remote, error, error == PERHAPS_ERR_STOPPED ? outcome : "");
}

void remote_open(struct remote *remote)
{
    int error = client.open(remote->first.cluster);
    remote->first.open = !error;
    remote_settle(remote, error, "");
}

/* ---- Blocks ----------------------------------------------------------------------- */

/* Returns a handle that nobody works with, perhaps a new one; NULL if there is no memory. */
static struct handle *take_handle(struct remote *remote)
{
    pthread_mutex_lock(&remote->lock);
    struct handle *handle = &remote->first;
    while (handle && handle->busy)
        handle = handle->next;
    if (!handle && (handle = calloc(1, sizeof *handle))) {
        handle->next = remote->first.next;
        remote->first.next = handle;
    }
    if (handle)
        handle->busy = true;
    pthread_mutex_unlock(&remote->lock);
    return handle;
}

/* How long a handle tries again that is opened after servers were waited for, unless the
 * address says how long. */
enum { IMPATIENCE_MS = 1000 };

/* Connects a new handle.  Returns 0 or an error of the client. */
static int open_handle(struct remote *remote, struct handle *handle)
{
    struct perhaps_cluster_options options = remote->options;
    if (handle->open)
        return 0;
    options.progress = NULL; /* only the first one draws, and warns */
    options.warn = NULL;
    pthread_mutex_lock(&remote->lock);
    handle->impatient = remote->problem[0] != '\0';
    pthread_mutex_unlock(&remote->lock);
    if (handle->impatient)
        options.patience_ms = IMPATIENCE_MS;
    int error = client.new(&options, &handle->cluster);
    if (!error)
        error = client.open(handle->cluster);
    handle->open = !error;
    return error;
}

/* Gives the handle back.  After an error it stays busy, since the text of its problem, which
 * the block now has, must not change.  Returns whether there was no error. */
static bool give_back_handle(struct remote *remote, struct handle *handle, struct block *block,
                             int error)
{
    if (error) { /* a handle is opened when the filter was there, in the first one */
        const bool deleted = error == PERHAPS_ERR_MISSING && !handle->open;
        block->problem =
            deleted ? "was deleted since it was opened" : client.problem(handle->cluster);
        return block_met(block, error);
    }
    pthread_mutex_lock(&remote->lock);
    handle->busy = false;
    pthread_mutex_unlock(&remote->lock);
    return true;
}

/* Takes a handle for a block, and sets all answers to unknown.  Returns NULL if the block has
 * no keys, or an error, which is then noted in it. */
static struct handle *begin_block(struct remote *remote, struct block *block)
{
    if (block->count)
        memset(block->answer, PERHAPS_ANSWER_UNKNOWN, block->count);
    if (block->count == 0 || block->error)
        return NULL;
    struct handle *handle = take_handle(remote);
    int error = handle ? open_handle(remote, handle) : PERHAPS_ERR_MEMORY;
    if (!error)
        return handle;
    block->ndone = 0;
    if (handle)
        give_back_handle(remote, handle, block, error);
    block_met(block, error);
    return NULL;
}

/* With so many keys one after the other that are unknown, all servers are taken for dead. */
enum { SILENT_MOST = 32 };

/* Notes why answers of a block are unknown.  Returns whether to go on with other blocks.  A
 * handle that waited for the servers as long as it could is not used again, so that the next
 * one, which waits only for a moment, takes its place. */
static bool go_on_asking(struct remote *remote, struct handle *handle,
                         const struct block *block)
{
    pthread_mutex_lock(&remote->lock);
    remote->nsilent = block->nunknown < block->count ? 0 : remote->nsilent + block->count;
    bool more = remote->nsilent < SILENT_MOST;
    if (more)
        handle->busy = !handle->impatient;
    if (!remote->problem[0])
        snprintf(remote->problem, sizeof remote->problem, "%s",
                 client.problem(handle->cluster));
    pthread_mutex_unlock(&remote->lock);
    return more;
}

const char *remote_problem(const struct remote *remote)
{
    return remote->problem;
}

/* Counts the answers of a block that are this one. */
static size_t count_answers(const struct block *block, enum perhaps_answer answer)
{
    size_t n = 0;
    for (size_t i = 0; i < block->count; i++)
        n += block->answer[i] == answer;
    return n;
}

/* Returns how many answers stand before the first that is unknown. */
static size_t count_first(const struct block *block)
{
    const uint8_t *unknown = memchr(block->answer, PERHAPS_ANSWER_UNKNOWN, block->count);
    return unknown ? (size_t)(unknown - block->answer) : block->count;
}

bool remote_ask(struct remote *remote, struct block *block, size_t *npresent)
{
    struct perhaps_keys keys = block_keys(block, 0, block->count);
    struct handle *handle = begin_block(remote, block);
    *npresent = 0;
    if (!handle) {
        block->nunknown = block->error ? block->count : 0;
        return !block->error;
    }
    int error = client.contains_many(handle->cluster, &keys, block->answer, npresent);
    if (!error)
        return give_back_handle(remote, handle, block, 0);
    *npresent = count_answers(block, PERHAPS_ANSWER_PERHAPS);
    block->nunknown = count_answers(block, PERHAPS_ANSWER_UNKNOWN);
    if (error != PERHAPS_ERR_STOPPED && error != PERHAPS_ERR_MEMORY &&
        error != PERHAPS_ERR_ARGUMENT && go_on_asking(remote, handle, block))
        return true;
    block->ndone = count_first(block);
    return give_back_handle(remote, handle, block, error);
}

/* A key whose answer is not known counts as new: dedup prints it. */
bool remote_add(struct remote *remote, struct block *block)
{
    struct perhaps_keys keys = block_keys(block, 0, block->count);
    struct handle *handle = begin_block(remote, block);
    if (!handle)
        return !block->error;
    int error = client.add_many(handle->cluster, &keys, block->answer, &block->ndone);
    return give_back_handle(remote, handle, block, error);
}

bool remote_has_lost(const struct block *block)
{
    return block->error == PERHAPS_ERR_MISSING || block->error == PERHAPS_ERR_CHANGED ||
           block->error == PERHAPS_ERR_UNFINISHED || block->error == PERHAPS_ERR_LOST;
}

bool remote_blames_key(const struct block *block)
{
    return block->error == PERHAPS_ERR_FULL || block->error == PERHAPS_ERR_ARGUMENT;
}
