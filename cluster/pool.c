/* pool.c - a pool of open handles, each of which is lent to one thread at a time.
 *
 *     idle[]  | ... | given back last |      a stack: its connections are the freshest
 *
 * Invariant: idle[] has room for all handles, so that none fails to be given back. */
#include <perhaps_cluster_async.h>

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* How often a thread that waits for a handle calls stopped(). */
enum { ASK_MS = 100 };

struct perhaps_cluster_pool {
    struct perhaps_cluster_options options; /* for all handles */
    char *url;
    uint8_t secret[16];
    pthread_mutex_t lock;
    pthread_cond_t returned; /* a handle was given back, or one less is out */
    size_t most;             /* 0: no limit */
    size_t nout, nidle, room;
    perhaps_cluster **idle;
};

/* A condition that goes by the clock that never goes back. */
static void init_condition(pthread_cond_t *condition)
{
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(condition, &attributes);
    pthread_condattr_destroy(&attributes);
}

int perhaps_cluster_pool_new(const struct perhaps_cluster_options *options, unsigned most,
                             perhaps_cluster_pool **pool)
{
    perhaps_cluster_pool *p = *pool = calloc(1, sizeof *p);
    char *url = strdup(options->url);
    if (!p || !url) {
        free(url);
        free(p);
        *pool = NULL;
        return PERHAPS_ERR_MEMORY;
    }
    p->options = *options;
    p->options.url = p->url = url;
    p->options.progress = NULL;
    if (options->hashing.secret) {
        memcpy(p->secret, options->hashing.secret, sizeof p->secret);
        p->options.hashing.secret = p->secret;
    }
    p->most = most;
    pthread_mutex_init(&p->lock, NULL);
    init_condition(&p->returned);
    return 0;
}

/* Waits for a moment, or until something is given back. */
static void wait_a_moment(perhaps_cluster_pool *p)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += ASK_MS * 1000000L;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_cond_timedwait(&p->returned, &p->lock, &until);
}

/* Makes room in idle[] for one handle more. */
static int make_room_for_handle(perhaps_cluster_pool *p)
{
    size_t room = 2 * p->room + 8;
    if (p->nout + p->nidle < p->room)
        return 0;
    perhaps_cluster **idle = realloc(p->idle, room * sizeof(perhaps_cluster *));
    if (!idle)
        return PERHAPS_ERR_MEMORY;
    p->idle = idle;
    p->room = room;
    return 0;
}

/* Takes an idle handle, or the right to make one, and then leaves *handle as it is. */
static int take_idle(perhaps_cluster_pool *p, perhaps_cluster **handle)
{
    int error = 0;
    pthread_mutex_lock(&p->lock);
    while (!error && p->most && p->nout == p->most) {
        if (p->options.stopped && p->options.stopped(p->options.context))
            error = PERHAPS_ERR_STOPPED;
        else
            wait_a_moment(p);
    }
    if (!error && p->nidle)
        *handle = p->idle[--p->nidle];
    else if (!error)
        error = make_room_for_handle(p);
    p->nout += !error;
    pthread_mutex_unlock(&p->lock);
    return error;
}

/* Takes a handle back, or only the right to have one. */
static void put_back(perhaps_cluster_pool *p, perhaps_cluster *handle)
{
    pthread_mutex_lock(&p->lock);
    if (handle)
        p->idle[p->nidle++] = handle;
    p->nout--;
    pthread_cond_signal(&p->returned);
    pthread_mutex_unlock(&p->lock);
}

int perhaps_cluster_pool_take(perhaps_cluster_pool *p, perhaps_cluster **handle)
{
    *handle = NULL;
    int error = take_idle(p, handle);
    if (error || *handle)
        return error;
    error = perhaps_cluster_new(&p->options, handle);
    if (!error)
        error = perhaps_cluster_open(*handle);
    if (error)
        put_back(p, NULL);
    return error;
}

/* After other errors a handle goes on as it is: it connects again where it must. */
static bool must_open_again(int error)
{
    return error == PERHAPS_ERR_MISSING || error == PERHAPS_ERR_UNFINISHED ||
           error == PERHAPS_ERR_LOST || error == PERHAPS_ERR_CHANGED ||
           error == PERHAPS_ERR_PROTOCOL;
}

void perhaps_cluster_pool_give(perhaps_cluster_pool *p, perhaps_cluster *handle, int error)
{
    if (must_open_again(error)) {
        perhaps_cluster_free(handle);
        handle = NULL;
    }
    put_back(p, handle);
}

void perhaps_cluster_pool_free(perhaps_cluster_pool *p)
{
    if (!p)
        return;
    while (p->nidle)
        perhaps_cluster_free(p->idle[--p->nidle]);
    pthread_cond_destroy(&p->returned);
    pthread_mutex_destroy(&p->lock);
    explicit_bzero(p->secret, sizeof p->secret);
    free(p->idle);
    free(p->url);
    free(p);
}
