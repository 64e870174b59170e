/* async_support.h - what the tests of perhaps_cluster_async.h share: filters, and calls. */
#ifndef ASYNC_SUPPORT_H
#define ASYNC_SUPPORT_H

#include "perhaps_cluster_async.h"
#include "support.h"

/* ---- Filters ----------------------------------------------------------------------------- */

struct url {
    char text[100];
};

struct url url_of(unsigned port, const char *name);

/* Are freed at the end of their block. */
#define scoped_cluster __attribute__((cleanup(free_cluster))) perhaps_cluster
#define scoped_async   __attribute__((cleanup(free_async))) perhaps_cluster_async

void free_cluster(perhaps_cluster **c);
void free_async(perhaps_cluster_async **async);

/* Returns a handle that knows the address and has asked nothing yet. */
perhaps_cluster *handle_of(struct url url);

/* Makes the filter anew: at its rate no test meets a false positive. */
void make(struct url url, uint64_t capacity, enum perhaps_hash hash);

/* Its timeout is long unless the address has another one: on a slow machine no connection may
 * be given up, since an add that is sent again tells no more whether its key was new. */
perhaps_cluster_async *client_of(struct url url);

/* Makes a filter anew, with the usual hash, and returns a client of it. */
perhaps_cluster_async *client_of_new(unsigned port, const char *name, uint64_t capacity);

/* ---- Calls ------------------------------------------------------------------------------- */

typedef int submit_call(perhaps_cluster_async *async, const struct perhaps_keys *keys,
                        unsigned deadline_ms, perhaps_cluster_callback *callback, void *context,
                        uint64_t *id);
static submit_call *const add = perhaps_cluster_async_add;
static submit_call *const ask = perhaps_cluster_async_contains;

/* What a test knows of one call. */
struct asked {
    uint64_t id;
    unsigned nended; /* how often its callback was run */
    int error;
    size_t count, nunknown, npresent;
    char problem[300];
};

/* The callback that fills a struct asked, which is its context. */
void note(void *context, const struct perhaps_cluster_result *result);

/* Submits one key, which is a number. */
void submit(perhaps_cluster_async *async, submit_call *call, uint64_t number,
            unsigned deadline_ms, struct asked *asked);

/* An event loop that knows nothing but one file descriptor. */
void loop_until_all_ended(perhaps_cluster_async *async);

/* The same until one call has ended. */
void loop_until(perhaps_cluster_async *async, const struct asked *asked);

/* Every call ended once, without an error, and this many keys were present. */
void expect_answers(const struct asked *asked, size_t n, size_t npresent);

/* The call ended once, with this error, which has a text; or without one if it is 0. */
void expect_ended(const struct asked *asked, int error);

#endif
