/* async.c - the asynchronous client: calls that wait are sent by one thread, many at once.
 *
 *     thread:  take calls -> handle of the pool -> add_many() -> contains_many() -> ended
 *     caller:  submit, cancel                             step(): deadlines, callbacks
 *
 * The thread takes the calls that have waited longest, up to KEYS_MOST keys of each sort.  It
 * adds first and asks then.  So a question finds what was added before it, and questions and
 * adds that alternate still go together.
 *
 * The file descriptor is a timer, which is set to the soonest deadline; or to the past, so that
 * it is readable at once, while calls have ended.  Deadlines and cancellation need no thread:
 * step() ends the calls, and what is under way for them goes on, unless nobody waits for any of
 * it.  Then stopped() ends it.
 *
 * Invariant: while the timer is set to t, nothing has ended unless t is in the past, and no
 * deadline is before t. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "calls.h"

/* How many keys are added, or asked for, at once; a call with more goes alone. */
enum { KEYS_MOST = 8192, IDLE_S = 2 };

/* Times for the timer: now, and never. */
enum { AT_ONCE = 1 };
#define NEVER INT64_MAX

struct perhaps_cluster_async {
    perhaps_cluster_pool *pool;
    struct perhaps_cluster_options theirs; /* for its functions and their context */
    pthread_t thread;

    pthread_mutex_t lock; /* of the calls and the timer */
    pthread_cond_t arrived;
    struct calls calls;
    int fd;
    int64_t timer_ns;

    atomic_bool closing;
    atomic_size_t nawaited; /* calls of the thread that have not ended */

    /* Of the thread alone. */
    bool opening;
    bool rests; /* there was no call since it gave back what was reserved */
    size_t room;
    struct perhaps_key *keys;
    uint8_t *answers;
};

static int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

/* ---- The timer ------------------------------------------------------------------------- */

static void set_timer(perhaps_cluster_async *a, int64_t at_ns)
{
    struct itimerspec at = { .it_value = { 0, 0 } }; /* never */
    if (at_ns != NEVER)
        at.it_value = (struct timespec){ at_ns / 1000000000, at_ns % 1000000000 };
    timerfd_settime(a->fd, TFD_TIMER_ABSTIME, &at, NULL);
    a->timer_ns = at_ns;
}

/* Sees to it that the timer runs out at this time or before. */
static void wake_by(perhaps_cluster_async *a, int64_t at_ns)
{
    if (at_ns < a->timer_ns)
        set_timer(a, at_ns);
}

/* ---- The thread ------------------------------------------------------------------------ */

/* The functions of the options.  This one ends what the thread is waiting for.  An opening is
 * for the calls to come as well. */
static bool is_wait_ended(void *context)
{
    perhaps_cluster_async *a = context;
    return a->closing || (!a->opening && a->nawaited == 0) ||
           (a->theirs.stopped && a->theirs.stopped(a->theirs.context));
}

static bool login(void *context, char *user, size_t user_size, char *password,
                  size_t password_size)
{
    const struct perhaps_cluster_options *theirs = &((perhaps_cluster_async *)context)->theirs;
    return theirs->login(theirs->context, user, user_size, password, password_size);
}

static bool reach_by_options(void *context, const char *host, unsigned port, char *to_host,
                             size_t to_size, unsigned *to_port)
{
    const struct perhaps_cluster_options *theirs = &((perhaps_cluster_async *)context)->theirs;
    return theirs->reach(theirs->context, host, port, to_host, to_size, to_port);
}

static void warn(void *context, const char *line)
{
    const struct perhaps_cluster_options *theirs = &((perhaps_cluster_async *)context)->theirs;
    theirs->warn(theirs->context, line);
}

/* Takes the calls that have waited longest: chain[true], which is empty before, are to be
 * added, and chain[false] are questions. */
static void take_calls(perhaps_cluster_async *a, struct call *chain[2])
{
    size_t nkeys[2] = { 0, 0 }, n = 0;
    struct call **end[2] = { &chain[false], &chain[true] };
    const struct call *next;
    while ((next = a->calls.waiting.first)) {
        size_t *sum = &nkeys[next->adds];
        if (*sum && *sum + next->count > KEYS_MOST)
            break;
        struct call *call = calls_begin(&a->calls);
        *sum += call->count;
        *end[call->adds] = call;
        end[call->adds] = &call->together;
        n++;
    }
    a->nawaited = n;
}

/* Ends calls that the thread has, with the answers from a->answers on; NULL: there are none.
 * Each gets the error only if it concerns one of its own keys. */
static void end_calls(perhaps_cluster_async *a, struct call *call, const uint8_t *answers,
                      int error, const char *problem)
{
    pthread_mutex_lock(&a->lock);
    for (struct call *next; call; call = next) {
        next = call->together;
        if (!call->ended) {
            if (answers)
                memcpy(call->answers, answers, call->count);
            bool failed =
                error && (!answers || memchr(answers, PERHAPS_ANSWER_UNKNOWN, call->count));
            call->problem = failed ? strdup(problem) : NULL;
            calls_end(&a->calls, call, failed ? error : 0);
            a->nawaited--;
        }
        answers = answers ? answers + call->count : NULL;
        calls_leave(call);
    }
    if (a->calls.ended.first)
        wake_by(a, AT_ONCE);
    pthread_mutex_unlock(&a->lock);
}

/* Puts the keys of the calls into a->keys.  Returns how many they are; SIZE_MAX: there is no
 * memory. */
static size_t gather_keys(perhaps_cluster_async *a, const struct call *chain)
{
    size_t n = 0, at = 0;
    for (const struct call *call = chain; call; call = call->together)
        n += call->count;
    if (n > a->room) {
        free(a->keys);
        free(a->answers);
        a->keys = calloc(n, sizeof *a->keys);
        a->answers = calloc(n, 1);
        a->room = a->keys && a->answers ? n : 0;
        if (!a->room)
            return SIZE_MAX;
    }
    for (const struct call *call = chain; call && n; call = call->together) {
        memcpy(a->keys + at, call->keys, call->count * sizeof *a->keys);
        at += call->count;
    }
    return n;
}

/* Adds or asks for the keys of all these calls at once; the answers are then in a->answers. */
static int exchange(perhaps_cluster_async *a, perhaps_cluster *handle, const struct call *chain)
{
    size_t n = gather_keys(a, chain);
    if (n == SIZE_MAX)
        return PERHAPS_ERR_MEMORY;
    struct perhaps_keys keys = perhaps_keys_each(a->keys, n);
    return chain->adds ? perhaps_cluster_add_many(handle, &keys, a->answers, NULL)
                       : perhaps_cluster_contains_many(handle, &keys, a->answers, NULL);
}

/* Returns whether none of the answers is known. */
static bool is_untouched(const uint8_t *answers, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (answers[i] != PERHAPS_ANSWER_UNKNOWN)
            return false;
    return true;
}

/* After PERHAPS_ERR_ARGUMENT, which one key of a length that the hash does not take has caused,
 * ends the calls that were dealt with and does the others again, each alone: keys that were
 * added may not be added again, since they would not be new.  Returns the last error. */
static int do_alone(perhaps_cluster_async *a, perhaps_cluster *handle, struct call *call)
{
    struct call *rest = NULL, **end = &rest;
    const uint8_t *answers = a->answers;
    int error = 0;
    for (struct call *next; call; call = next) {
        size_t count = call->count;
        next = call->together;
        call->together = NULL;
        if (is_untouched(answers, count)) {
            *end = call;
            end = &call->together;
        } else {
            end_calls(a, call, answers, PERHAPS_ERR_ARGUMENT, perhaps_cluster_problem(handle));
        }
        answers += count;
    }
    for (call = rest; call; call = rest) {
        rest = call->together;
        call->together = NULL;
        error = exchange(a, handle, call);
        end_calls(a, call, a->answers, error, perhaps_cluster_problem(handle));
    }
    return error;
}

/* Deals with calls of one sort, all together.  Returns the last error. */
static int do_together(perhaps_cluster_async *a, perhaps_cluster *handle, struct call *chain)
{
    if (!chain)
        return 0;
    int error = exchange(a, handle, chain);
    if (error == PERHAPS_ERR_ARGUMENT && chain->together)
        return do_alone(a, handle, chain);
    bool asked = a->room; /* else there was no memory to ask */
    end_calls(a, chain, asked ? a->answers : NULL, error,
              asked ? perhaps_cluster_problem(handle) : perhaps_strerror(error));
    return error;
}

/* Deals with the calls that the thread has taken. */
static void do_calls(perhaps_cluster_async *a, struct call *chain[2])
{
    perhaps_cluster *handle;
    a->opening = true;
    int error = perhaps_cluster_pool_take(a->pool, &handle);
    a->opening = false;
    if (error) {
        const char *problem =
            handle ? perhaps_cluster_problem(handle) : perhaps_strerror(error);
        end_calls(a, chain[true], NULL, error, problem);
        end_calls(a, chain[false], NULL, error, problem);
        perhaps_cluster_free(handle);
        return;
    }
    int added = do_together(a, handle, chain[true]);
    int asked = do_together(a, handle, chain[false]);
    perhaps_cluster_pool_give(a->pool, handle, asked ? asked : added);
}

/* Waits for calls.  When none has come for IDLE_S seconds, gives back what is reserved. */
static void await_calls(perhaps_cluster_async *a)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += IDLE_S;
    if (a->rests) {
        pthread_cond_wait(&a->arrived, &a->lock);
        return;
    }
    if (pthread_cond_timedwait(&a->arrived, &a->lock, &until) != ETIMEDOUT)
        return;
    a->rests = true;
    pthread_mutex_unlock(&a->lock);
    perhaps_cluster *handle;
    if (perhaps_cluster_pool_take(a->pool, &handle)) {
        perhaps_cluster_free(handle); /* there was none that was open */
    } else {
        perhaps_cluster_rest(handle);
        perhaps_cluster_pool_give(a->pool, handle, 0);
    }
    pthread_mutex_lock(&a->lock);
}

static void *work_on_calls(void *context)
{
    perhaps_cluster_async *a = context;
    pthread_mutex_lock(&a->lock);
    a->rests = true;
    while (!a->closing) {
        struct call *chain[2] = { NULL, NULL };
        if (!a->calls.waiting.first) {
            await_calls(a);
            continue;
        }
        a->rests = false;
        take_calls(a, chain);
        pthread_mutex_unlock(&a->lock);
        do_calls(a, chain);
        pthread_mutex_lock(&a->lock);
    }
    pthread_mutex_unlock(&a->lock);
    return NULL;
}

/* ---- The life of a client -------------------------------------------------------------- */

/* Signals are for the threads of the caller. */
static int start_thread(perhaps_cluster_async *a)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(&a->thread, NULL, work_on_calls, a);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error ? PERHAPS_ERR_IO : 0;
}

/* Frees a client whose thread does not run. */
static void release_client(perhaps_cluster_async *a)
{
    if (a->fd >= 0)
        close(a->fd);
    perhaps_cluster_pool_free(a->pool);
    calls_release(&a->calls);
    pthread_cond_destroy(&a->arrived);
    pthread_mutex_destroy(&a->lock);
    free(a->keys);
    free(a->answers);
    free(a);
}

int perhaps_cluster_async_new(const struct perhaps_cluster_options *options,
                              perhaps_cluster_async **async)
{
    perhaps_cluster_async *a = *async = calloc(1, sizeof *a);
    if (!a)
        return PERHAPS_ERR_MEMORY;
    struct perhaps_cluster_options ours = *options;
    ours.stopped = is_wait_ended;
    ours.login = options->login ? login : NULL;
    ours.warn = options->warn ? warn : NULL;
    ours.reach = options->reach ? reach_by_options : NULL;
    ours.context = a;
    a->theirs = *options;
    a->timer_ns = NEVER;
    pthread_mutex_init(&a->lock, NULL);
    pthread_cond_init(&a->arrived, NULL);
    a->fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    int error = a->fd < 0 ? PERHAPS_ERR_IO : perhaps_cluster_pool_new(&ours, 1, &a->pool);
    if (!error)
        error = start_thread(a);
    if (error) {
        release_client(a);
        *async = NULL;
    }
    return error;
}

void perhaps_cluster_async_free(perhaps_cluster_async *a)
{
    if (!a)
        return;
    pthread_mutex_lock(&a->lock);
    a->closing = true;
    pthread_cond_signal(&a->arrived);
    pthread_mutex_unlock(&a->lock);
    pthread_join(a->thread, NULL);
    while (a->calls.waiting.first)
        calls_end(&a->calls, a->calls.waiting.first, PERHAPS_ERR_STOPPED);
    perhaps_cluster_async_step(a);
    release_client(a);
}

/* ---- Calls ----------------------------------------------------------------------------- */

static int submit(perhaps_cluster_async *a, bool adds, const struct perhaps_keys *keys,
                  unsigned deadline_ms, perhaps_cluster_callback *callback, void *context,
                  uint64_t *id)
{
    struct call *call = keys->hashed ? NULL : calls_new_call(keys);
    if (!call)
        return keys->hashed ? PERHAPS_ERR_ARGUMENT : PERHAPS_ERR_MEMORY;
    call->adds = adds;
    call->callback = callback;
    call->context = context;
    call->deadline_ns = deadline_ms ? now_ns() + deadline_ms * INT64_C(1000000) : 0;
    pthread_mutex_lock(&a->lock);
    int error = a->closing ? PERHAPS_ERR_STOPPED : calls_submit(&a->calls, call);
    if (!error) {
        if (id)
            *id = call->id;
        if (deadline_ms)
            wake_by(a, call->deadline_ns);
        pthread_cond_signal(&a->arrived);
    }
    pthread_mutex_unlock(&a->lock);
    if (error)
        calls_free_call(call);
    return error;
}

int perhaps_cluster_async_contains(perhaps_cluster_async *a, const struct perhaps_keys *keys,
                                   unsigned deadline_ms, perhaps_cluster_callback *callback,
                                   void *context, uint64_t *id)
{
    return submit(a, false, keys, deadline_ms, callback, context, id);
}

int perhaps_cluster_async_add(perhaps_cluster_async *a, const struct perhaps_keys *keys,
                              unsigned deadline_ms, perhaps_cluster_callback *callback,
                              void *context, uint64_t *id)
{
    return submit(a, true, keys, deadline_ms, callback, context, id);
}

/* Ends a call before the thread does. */
static void end_early(perhaps_cluster_async *a, struct call *call, int error)
{
    if (call->busy)
        a->nawaited--;
    calls_end(&a->calls, call, error);
}

bool perhaps_cluster_async_cancel(perhaps_cluster_async *a, uint64_t id)
{
    pthread_mutex_lock(&a->lock);
    struct call *call = calls_find(&a->calls, id);
    if (call) {
        end_early(a, call, PERHAPS_ERR_STOPPED);
        wake_by(a, AT_ONCE);
    }
    pthread_mutex_unlock(&a->lock);
    return call;
}

int perhaps_cluster_async_fd(const perhaps_cluster_async *a)
{
    return a->fd;
}

/* Takes the calls that have ended, or whose deadline is over, and sets the timer anew. */
static struct call *take_ended(perhaps_cluster_async *a)
{
    struct call *call;
    int64_t now = now_ns();
    while ((call = calls_soonest(&a->calls)) && call->deadline_ns <= now)
        end_early(a, call, PERHAPS_ERR_DEADLINE);
    struct call *ended = a->calls.ended.first;
    a->calls.ended = (struct call_list){ NULL, NULL };
    set_timer(a, call ? call->deadline_ns : NEVER);
    return ended;
}

static void tell_caller(const struct call *call)
{
    const char *problem = call->problem ? call->problem : perhaps_strerror(call->error);
    struct perhaps_cluster_result result = { .id = call->id,
                                             .error = call->error,
                                             .answers = call->answers,
                                             .count = call->count,
                                             .problem = problem };
    call->callback(call->context, &result);
}

size_t perhaps_cluster_async_step(perhaps_cluster_async *a)
{
    pthread_mutex_lock(&a->lock);
    struct call *ended = take_ended(a);
    pthread_mutex_unlock(&a->lock);
    for (const struct call *call = ended; call; call = call->next)
        tell_caller(call);
    pthread_mutex_lock(&a->lock);
    for (struct call *next; ended; ended = next) {
        next = ended->next;
        calls_deliver(&a->calls, ended);
    }
    size_t nleft = a->calls.nleft;
    pthread_mutex_unlock(&a->lock);
    return nleft;
}
