/* cluster_calls_test.c - the lists, ids and deadlines of asynchronous calls (cluster/calls.c)
 * against plain arrays, without a server. */
#include <string.h>

#include "calls.h"
#include "failing_memory.h"
#include "support.h"

enum { CALLS = 500 };

static struct call *submit(struct calls *calls, int64_t deadline_ns)
{
    struct perhaps_keys keys = perhaps_keys_packed("key", 3, 1);
    struct call *call = calls_new_call(&keys);
    call->deadline_ns = deadline_ns;
    expect(calls_submit(calls, call) == 0);
    return call;
}

/* Returns the soonest deadline of those that have not ended; 0: none. */
static int64_t soonest_of(struct call *const *call, size_t count)
{
    int64_t soonest = 0;
    for (size_t i = 0; i < count; i++)
        if (call[i] && call[i]->deadline_ns && (!soonest || call[i]->deadline_ns < soonest))
            soonest = call[i]->deadline_ns;
    return soonest;
}

/* Runs the callbacks, as it were.  Returns how many calls had ended. */
static unsigned deliver_all(struct calls *calls)
{
    unsigned n = 0;
    for (struct call *call = calls->ended.first, *next; call; call = next, n++) {
        next = call->next;
        calls_deliver(calls, call);
    }
    calls->ended = (struct call_list){ NULL, NULL };
    return n;
}

static void expect_same(const struct calls *calls, struct call *const *call)
{
    const struct call *soonest = calls_soonest(calls);
    expect((soonest ? soonest->deadline_ns : 0) == soonest_of(call, CALLS));
    for (size_t i = 0; i < CALLS; i++)
        expect(calls_find(calls, i + 1) == call[i]);
}

/* Calls end in any order: while they wait, and while the thread has them. */
TEST(test_any_order)
{
    struct rng rng = rng_for("test_any_order");
    struct calls calls = { .nleft = 0 };
    struct call *call[CALLS] = { NULL }, *busy[CALLS];
    unsigned nbusy = 0, nended = 0;
    for (size_t i = 0; i < CALLS; i++)
        call[i] = submit(&calls, (int64_t)rng_below(&rng, 200)); /* 0: no deadline */
    for (unsigned i = 0; i < CALLS / 3; i++) {
        busy[nbusy++] = calls_begin(&calls);
        expect(busy[i]->id == i + 1);
    }
    for (unsigned left = CALLS; left; left--) {
        size_t i = rng_below(&rng, CALLS);
        while (!call[i])
            i = (i + 1) % CALLS;
        calls_end(&calls, call[i], PERHAPS_ERR_STOPPED);
        call[i] = NULL;
        expect_same(&calls, call);
        if (left % 7 == 0)
            nended += deliver_all(&calls);
    }
    expect(!calls.waiting.first && !calls.waiting.last);
    for (unsigned i = 0; i < nbusy; i++)
        calls_leave(busy[i]);
    nended += deliver_all(&calls);
    expect(nended == CALLS && calls.nleft == 0);
    calls_release(&calls);
}

/* Keys of each form are copied: the caller may overwrite its own at once. */
TEST(test_keys_are_copied)
{
    char text[] = "onethree";
    struct perhaps_key each[] = { { text, 3 }, { NULL, 0 }, { text + 3, 5 } };
    struct perhaps_keys forms[] = { perhaps_keys_each(each, 3), perhaps_keys_packed(text, 4, 2),
                                    perhaps_keys_packed(NULL, 0, 2),
                                    perhaps_keys_packed(text, 4, 0) };
    struct call *call[4];
    for (int i = 0; i < 4; i++) {
        call[i] = calls_new_call(&forms[i]);
        expect(call[i]->count == forms[i].count);
        for (size_t k = 0; k < forms[i].count; k++)
            expect(call[i]->answers[k] == PERHAPS_ANSWER_UNKNOWN);
    }
    memset(text, 'x', sizeof text);
    memset(each, 0, sizeof each);
    expect(call[0]->keys[0].nbytes == 3 && !memcmp(call[0]->keys[0].bytes, "one", 3));
    expect(call[0]->keys[1].nbytes == 0);
    expect(call[0]->keys[2].nbytes == 5 && !memcmp(call[0]->keys[2].bytes, "three", 5));
    expect(call[1]->keys[1].nbytes == 4 && !memcmp(call[1]->keys[1].bytes, "hree", 4));
    expect(call[2]->keys[1].nbytes == 0);
    for (int i = 0; i < 4; i++)
        calls_free_call(call[i]);
}

/* Without memory a call is not made, or not submitted, and nothing has changed. */
TEST(test_no_memory)
{
    struct calls calls = { .nleft = 0 };
    struct perhaps_keys keys = perhaps_keys_packed("key", 3, 1);
    fail_memory(1);
    expect(!calls_new_call(&keys));
    fail_memory(0);
    struct call *call = calls_new_call(&keys);
    call->deadline_ns = 1;
    fail_memory(1);
    expect(calls_submit(&calls, call) == PERHAPS_ERR_MEMORY);
    fail_memory(0);
    expect(calls.nleft == 0 && !calls.waiting.first && !calls_soonest(&calls));
    expect(calls_submit(&calls, call) == 0 && calls_soonest(&calls) == call);
    calls_end(&calls, call, PERHAPS_ERR_DEADLINE);
    expect(deliver_all(&calls) == 1);
    calls_release(&calls);
}
