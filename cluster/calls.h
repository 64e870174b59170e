/* calls.h - the calls of an asynchronous client: which of them wait, and in which order; which
 * have ended; which one a number means; and which deadline is the next.
 *
 *     submit -> waiting -> under way, in the thread -> ended -> callback
 *                  '------------'--- deadline, cancel ---^
 *
 * A call that ends early while it is under way stays in memory until the thread has left it.
 * All functions but calls_new_call() want the caller to hold a lock. */
#ifndef CALLS_H
#define CALLS_H

#include <perhaps_cluster_async.h>

struct call {
    struct call *next, *before; /* the list in which it is: of those that wait, or have ended */
    struct call *together;      /* the next one that is under way with it */
    struct call *bucket_next;
    uint64_t id;
    int64_t deadline_ns; /* of the clock that never goes back; 0: none */
    size_t place;        /* in the heap; 0: it is not there */
    bool adds;           /* else it asks */
    bool busy;           /* the thread has it */
    bool ended;
    bool delivered; /* its callback was run */
    perhaps_cluster_callback *callback;
    void *context;
    int error;
    char *problem;    /* NULL: that of perhaps_strerror() */
    uint8_t *answers; /* UNKNOWN until it ends */
    size_t count;
    struct perhaps_key keys[]; /* whose bytes stand behind the answers */
};

struct call_list {
    struct call *first, *last;
};

enum { CALL_BUCKETS = 4096 };

struct calls {
    struct call_list waiting, ended;
    size_t nleft; /* how many were submitted, and their callbacks not run */
    uint64_t last_id;
    struct call *bucket[CALL_BUCKETS]; /* those that have not ended, by id */
    struct call **heap; /* from index 1 on: those with a deadline, soonest first */
    size_t nheap, heap_room;
};

/* Copies the keys into a new call.  NULL: there is no memory. */
struct call *calls_new_call(const struct perhaps_keys *keys);
void calls_free_call(struct call *call);

/* Gives a call its id and lets it wait.  Returns 0 or PERHAPS_ERR_MEMORY. */
int calls_submit(struct calls *calls, struct call *call);

/* Returns the call with this id that has not ended, or NULL. */
struct call *calls_find(const struct calls *calls, uint64_t id);

/* Returns the call that has not ended and whose deadline is the soonest; NULL: none has one. */
struct call *calls_soonest(const struct calls *calls);

/* Takes the call that has waited longest; the thread has it then. */
struct call *calls_begin(struct calls *calls);

/* Ends a call that has not ended. */
void calls_end(struct calls *calls, struct call *call, int error);

/* The thread leaves a call, or its callback was run.  The last of both frees it. */
void calls_leave(struct call *call);
void calls_deliver(struct calls *calls, struct call *call);

void calls_release(struct calls *calls);

#endif
