/* perhaps_cluster_async.h - a filter on servers for many threads, and for event loops.
 *
 * A perhaps_cluster is for one thread at a time.  A pool lends each thread one of its own:
 *
 *     perhaps_cluster *handle;
 *     int error = perhaps_cluster_pool_take(pool, &handle);
 *     if (error)
 *         ... perhaps_cluster_problem(handle) ... perhaps_cluster_free(handle);
 *     else {
 *         int answer = perhaps_cluster_contains(handle, key, nbytes);
 *         perhaps_cluster_pool_give(pool, handle, answer < 0 ? answer : 0);
 *     }
 *
 * An asynchronous client never waits.  Calls are submitted, a thread of its own sends them to
 * the servers, and the answers come to a callback when the event loop (libuv, libev, epoll)
 * finds one file descriptor readable:
 *
 *     perhaps_cluster_async_contains(async, &keys, 200, when_answered, my_request, NULL);
 *     ...
 *     poll(&(struct pollfd){ perhaps_cluster_async_fd(async), POLLIN, 0 }, 1, -1);
 *     perhaps_cluster_async_step(async);  -> when_answered(my_request, &result)
 *
 * Calls that are submitted while others are under way go to the servers together, so that
 * thousands of calls with one key cost as few exchanges as one call with thousands of keys.
 *
 * Both open the filter when it is first needed, and again when it was deleted and made anew.
 * The members 'url' and 'hashing.secret' of the options are copied; what the others point to
 * must stay until the pool or the client is freed.  Their functions are called by the threads
 * that use the handles of a pool, or by the thread of the client; 'progress' is not used. */
#ifndef PERHAPS_CLUSTER_ASYNC_H
#define PERHAPS_CLUSTER_ASYNC_H

#include <perhaps_cluster.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- A pool of handles ----------------------------------------------------------------- */

typedef struct perhaps_cluster_pool perhaps_cluster_pool;

/* Makes an empty pool, which has at most 'most' handles; 0: as many as are taken at once.
 * Connects to no server yet.  Returns 0; or PERHAPS_ERR_MEMORY, and sets *pool to NULL. */
PERHAPS_API int perhaps_cluster_pool_new(const struct perhaps_cluster_options *options,
                                         unsigned most, perhaps_cluster_pool **pool);

/* Sets *handle to an open handle for the caller alone: the one that was given back last, or a
 * new one, which is opened now.  If 'most' are out, waits until one is given back.
 *
 * Returns 0; or an error of perhaps_cluster_new() or perhaps_cluster_open(), and sets *handle
 * to one that can only tell its problem and be freed with perhaps_cluster_free(); or
 * PERHAPS_ERR_MEMORY, PERHAPS_ERR_ARGUMENT (a reserved member is not zero), or while it waits
 * PERHAPS_ERR_STOPPED, and sets *handle to NULL. */
PERHAPS_API int perhaps_cluster_pool_take(perhaps_cluster_pool *pool, perhaps_cluster **handle);

/* Gives a handle back with the error of the last call on it, or 0.  It is kept, unless the
 * filter must be opened again after that error (it was deleted or made anew, or has lost a
 * part) or a server sent nonsense; then it is freed. */
PERHAPS_API void perhaps_cluster_pool_give(perhaps_cluster_pool *pool, perhaps_cluster *handle,
                                           int error);

/* Frees the pool and its handles, all of which have been given back.  NULL is allowed.  The
 * other calls of a pool may be made by any number of threads at once. */
PERHAPS_API void perhaps_cluster_pool_free(perhaps_cluster_pool *pool);

/* ---- An asynchronous client ------------------------------------------------------------ */

typedef struct perhaps_cluster_async perhaps_cluster_async;

/* How a call ended.  All of it is valid during the callback only. */
struct perhaps_cluster_result {
    uint64_t id; /* of the call */
    int error;   /* 0, or one of perhaps_cluster_add_many() or _contains_many() */
    const uint8_t
        *answers;        /* enum perhaps_answer for each key; after an error right or UNKNOWN */
    size_t count;        /* of the keys */
    const char *problem; /* the error in one line, as perhaps_cluster_problem() tells it */
};

/* Takes the result of one call.  It may submit and cancel calls, but neither step nor free. */
typedef void perhaps_cluster_callback(void *context,
                                      const struct perhaps_cluster_result *result);

/* Makes a client and starts its thread, in which all signals are blocked.  Connects to no
 * server yet: if the filter cannot be opened, even since its address is wrong, the calls get
 * that error, and the next ones try again.  Returns 0; or PERHAPS_ERR_MEMORY or PERHAPS_ERR_IO
 * (the system gives no thread or file descriptor), and sets *async to NULL. */
PERHAPS_API int perhaps_cluster_async_new(const struct perhaps_cluster_options *options,
                                          perhaps_cluster_async **async);

/* Submit a call, and never wait.  The keys are copied.  The callback is run exactly once, by
 * perhaps_cluster_async_step() or perhaps_cluster_async_free(), in the thread that calls these;
 * if the submission fails, never.  *id (NULL is allowed) is the number of the call, which no
 * other call of this client gets; it is set before the callback can run.
 *
 * After 'deadline_ms' (0: none) the callback gets PERHAPS_ERR_DEADLINE if the call has not
 * ended otherwise; keys may be added nevertheless.  This does not depend on the servers.
 *
 * A question finds all keys whose add was submitted before it and succeeds.  Calls that are
 * under way together are otherwise done in any order: a question may also find keys whose add
 * was submitted after it.  Of all adds of one key only one is told that it was not there, as
 * perhaps_cluster_add_many() has it.
 *
 * A call gets an error only if an answer of its own is unknown.  But all calls that went to the
 * servers together wait for the slowest one, so let 'patience_ms' or 'deadline_ms' of the
 * options be shorter than their deadlines.  A problem may speak of the keys of other calls,
 * too, and PERHAPS_ERR_FULL may come to a key that is there already, if one before it found no
 * room.
 *
 * Return 0; PERHAPS_ERR_ARGUMENT for keys that are hashed already (perhaps_keys_hashed());
 * PERHAPS_ERR_MEMORY; or PERHAPS_ERR_STOPPED while the client is being freed.  Nothing limits
 * how many calls wait but the memory, and their deadlines. */
PERHAPS_API int perhaps_cluster_async_contains(perhaps_cluster_async *async,
                                               const struct perhaps_keys *keys,
                                               unsigned deadline_ms,
                                               perhaps_cluster_callback *callback,
                                               void *context, uint64_t *id);
PERHAPS_API int perhaps_cluster_async_add(perhaps_cluster_async *async,
                                          const struct perhaps_keys *keys, unsigned deadline_ms,
                                          perhaps_cluster_callback *callback, void *context,
                                          uint64_t *id);

/* Ends a call.  Returns true if it was waiting or under way: its callback then gets
 * PERHAPS_ERR_STOPPED at the next step, and its keys may be added nevertheless.  Returns false
 * if it had ended before, or there is none with this number. */
PERHAPS_API bool perhaps_cluster_async_cancel(perhaps_cluster_async *async, uint64_t id);

/* Returns a file descriptor that is readable when calls have ended or a deadline is over.  Only
 * wait for it (POLLIN, EPOLLIN): it is the client's to read and to close. */
PERHAPS_API int perhaps_cluster_async_fd(const perhaps_cluster_async *async);

/* Runs the callbacks of the calls that have ended, without waiting.  Returns how many calls are
 * left. */
PERHAPS_API size_t perhaps_cluster_async_step(perhaps_cluster_async *async);

/* Cancels all calls, runs the callbacks that are left, and frees the client.  Waits at most
 * about 'timeout_ms' of the options, and far less unless an add must be tidied up at a server
 * that does not answer.  NULL is allowed.  Any other call may be made by any number of threads
 * at once. */
PERHAPS_API void perhaps_cluster_async_free(perhaps_cluster_async *async);

#ifdef __cplusplus
}
#endif
#endif
