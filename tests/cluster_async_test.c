/* cluster_async_test.c - the asynchronous client and the pool of handles, on real servers.
 *
 *     cluster_async_test PORT PID CLUSTER_PORT MASTER_PID
 *         all tests, on an empty server and on a cluster; they let that server and one master
 *         hang for a while
 *     cluster_async_test CLUSTER_PORT
 *         a crowd of calls until standard input ends, after which no added key may be denied */
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "perhaps_cluster_async.h"
#include "support.h"

static unsigned server_port, cluster_port;
static pid_t server_pid, master_pid;

/* ---- Filters ----------------------------------------------------------------------------- */

struct url {
    char text[100];
};

static struct url url_of(unsigned port, const char *name)
{
    struct url url;
    snprintf(url.text, sizeof url.text, "redis://127.0.0.1:%u/%s", port, name);
    return url;
}

/* Makes the filter anew: at this rate no test meets a false positive. */
static void make(struct url url, uint64_t capacity, enum perhaps_hash hash)
{
    struct perhaps_options options = { .capacity = capacity,
                                       .fpr = 1e-9,
                                       .hashing = { .seed = 1, .hash = hash } };
    perhaps_cluster *c;
    expect_success(
        perhaps_cluster_new(&(struct perhaps_cluster_options){ .url = url.text }, &c));
    perhaps_cluster_delete(c); /* there may be none */
    expect_success(perhaps_cluster_create(c, &options, 0));
    perhaps_cluster_free(c);
}

/* Its timeout is long unless the address has another one: on a slow machine no connection may be
 * given up, since an add that is sent again tells no more whether its key was new. */
static perhaps_cluster_async *client_of(struct url url)
{
    perhaps_cluster_async *async;
    expect_success(perhaps_cluster_async_new(
        &(struct perhaps_cluster_options){ .url = url.text, .timeout_ms = 60000 }, &async));
    return async;
}

/* Make the single server hang, and go on. */
static void hang(void)
{
    expect(!kill(server_pid, SIGSTOP));
}

static void go_on(void)
{
    expect(!kill(server_pid, SIGCONT));
}

/* ---- Calls ------------------------------------------------------------------------------- */

/* What a test knows of one call. */
struct asked {
    uint64_t id;
    unsigned nended; /* how often its callback was run */
    int error;
    size_t count, nunknown, npresent;
    char problem[300];
};

static void note(void *context, const struct perhaps_cluster_result *result)
{
    struct asked *asked = context;
    asked->nended++;
    asked->error = result->error;
    asked->count = result->count;
    asked->nunknown = asked->npresent = 0;
    for (size_t i = 0; i < result->count; i++) {
        asked->nunknown += result->answers[i] == PERHAPS_ANSWER_UNKNOWN;
        asked->npresent += result->answers[i] == PERHAPS_ANSWER_PERHAPS;
    }
    snprintf(asked->problem, sizeof asked->problem, "%s", result->problem);
    if (asked->id && asked->id != result->id)
        asked->nended += 1000;
}

typedef int submit_call(perhaps_cluster_async *async, const struct perhaps_keys *keys,
                        unsigned deadline_ms, perhaps_cluster_callback *callback, void *context,
                        uint64_t *id);
static submit_call *const add = perhaps_cluster_async_add;
static submit_call *const ask = perhaps_cluster_async_contains;

/* Submits one key, which is a number. */
static void submit(perhaps_cluster_async *async, submit_call *call, uint64_t number,
                   unsigned deadline_ms, struct asked *asked)
{
    struct perhaps_keys keys = perhaps_keys_packed(&number, sizeof number, 1);
    *asked = (struct asked){ 0 };
    expect_success(call(async, &keys, deadline_ms, note, asked, &asked->id));
    expect(asked->id);
}

/* An event loop that knows nothing but one file descriptor. */
static void loop_until_all_ended(perhaps_cluster_async *async)
{
    struct epoll_event event = { .events = EPOLLIN };
    int loop = epoll_create1(0);
    expect(loop >= 0);
    expect(!epoll_ctl(loop, EPOLL_CTL_ADD, perhaps_cluster_async_fd(async), &event));
    while (perhaps_cluster_async_step(async))
        epoll_wait(loop, &event, 1, -1);
    close(loop);
}

/* The same until one call has ended. */
static void loop_until(perhaps_cluster_async *async, const struct asked *asked)
{
    struct pollfd events = { perhaps_cluster_async_fd(async), POLLIN, 0 };
    while (perhaps_cluster_async_step(async) && !asked->nended)
        poll(&events, 1, -1);
}

/* Every call ended once, without an error, and this many keys were present. */
static void expect_answers(const struct asked *asked, size_t n, size_t npresent)
{
    size_t sum = 0;
    for (size_t i = 0; i < n; i++) {
        scene("call %zu: %d: %s", i, asked[i].error, asked[i].problem);
        expect(asked[i].nended == 1 && !asked[i].error && !asked[i].nunknown);
        sum += asked[i].npresent;
    }
    scene("%zu of %zu keys are present, not %zu", sum, n, npresent);
    expect(sum == npresent);
}

static void expect_ended(const struct asked *asked, int error)
{
    scene("%d: %s", asked->error, asked->problem);
    expect(asked->nended == 1);
    expect_error(asked->error, error);
    expect(!error || asked->problem[0]);
}

/* One key is added and found: the client and the server are well. */
static void expect_well(perhaps_cluster_async *async, uint64_t number)
{
    struct asked asked[2];
    submit(async, add, number, 0, &asked[0]);
    submit(async, ask, number, 0, &asked[1]);
    loop_until_all_ended(async);
    expect_answers(&asked[0], 1, 0);
    expect_answers(&asked[1], 1, 1);
}

/* ---- Many calls -------------------------------------------------------------------------- */

static void add_and_ask_many(struct url url)
{
    unsigned n = many(3000);
    struct asked *asked = calloc(n, sizeof *asked);
    perhaps_cluster_async *async = client_of(url);
    make(url, 100000, PERHAPS_HASH_XXH3);
    for (unsigned i = 0; i < n; i++)
        submit(async, add, i, 0, &asked[i]);
    loop_until_all_ended(async);
    expect_answers(asked, n, 0);
    for (unsigned i = 0; i < n; i++)
        submit(async, i % 2 ? add : ask, i, 60000, &asked[i]);
    loop_until_all_ended(async);
    expect_answers(asked, n, n);
    for (unsigned i = 0; i < n; i++)
        submit(async, ask, i + n, 0, &asked[i]);
    loop_until_all_ended(async);
    expect_answers(asked, n, 0);
    perhaps_cluster_async_free(async);
    free(asked);
}

TEST(test_many_calls_to_one_server)
{
    add_and_ask_many(url_of(server_port, "async"));
}

TEST(test_many_calls_to_a_cluster)
{
    add_and_ask_many(url_of(cluster_port, "async"));
}

/* Each question is submitted directly behind the add of its key, and before other adds. */
TEST(test_question_behind_add)
{
    unsigned n = many(10000);
    struct asked *added = calloc(n, sizeof *added), *asked = calloc(n, sizeof *asked);
    struct url url = url_of(cluster_port, "order");
    make(url, 100000, PERHAPS_HASH_XXH3);
    perhaps_cluster_async *async = client_of(url);
    for (unsigned i = 0; i < n; i++) {
        submit(async, add, i, 0, &added[i]);
        submit(async, ask, i, 0, &asked[i]);
    }
    loop_until_all_ended(async);
    expect_answers(added, n, 0);
    expect_answers(asked, n, n);
    perhaps_cluster_async_free(async);
    free(added);
    free(asked);
}

/* Of all adds of one key, submitted together, one is told that it is new. */
TEST(test_one_add_is_new)
{
    enum { ADDS = 100 };
    struct asked asked[ADDS];
    struct url url = url_of(cluster_port, "new");
    make(url, 1000, PERHAPS_HASH_XXH3);
    perhaps_cluster_async *async = client_of(url);
    for (unsigned i = 0; i < ADDS; i++)
        submit(async, add, 7, 0, &asked[i]);
    loop_until_all_ended(async);
    expect_answers(asked, ADDS, ADDS - 1);
    perhaps_cluster_async_free(async);
}

/* Calls with no key, and with more keys than go together. */
TEST(test_calls_of_any_size)
{
    enum { CALLS = 6, MOST = 20000 };
    static const size_t size[CALLS] = { 0, 5000, MOST, 3000, 8192, 0 };
    static uint64_t number[MOST];
    struct asked asked[2 * CALLS] = { 0 };
    struct url url = url_of(server_port, "sizes");
    make(url, 100000, PERHAPS_HASH_XXH3);
    perhaps_cluster_async *async = client_of(url);
    for (size_t k = 0; k < CALLS; k++) {
        for (uint64_t i = 0; i < size[k]; i++)
            number[i] = k << 32 | i;
        struct perhaps_keys keys = perhaps_keys_packed(number, sizeof *number, size[k]);
        expect_success(add(async, &keys, 0, note, &asked[k], NULL));
        expect_success(ask(async, &keys, 0, note, &asked[CALLS + k], NULL));
    }
    loop_until_all_ended(async);
    for (size_t k = 0; k < CALLS; k++) {
        expect(asked[k].count == size[k]);
        expect_answers(&asked[k], 1, 0);
        expect_answers(&asked[CALLS + k], 1, size[k]);
    }
    perhaps_cluster_async_free(async);
}

/* ---- Many threads ------------------------------------------------------------------------ */

enum { SUBMITTERS = 8 };

struct submitter {
    perhaps_cluster_async *async;
    unsigned number, n;
    struct asked *asked;
};

static void *submit_some(void *context)
{
    struct submitter *s = context;
    for (unsigned i = 0; i < s->n; i++)
        submit(s->async, i % 2 ? ask : add, (uint64_t)s->number << 32 | i / 2, 0, &s->asked[i]);
    return NULL;
}

/* A thread steps while others submit. */
TEST(test_many_threads_submit)
{
    struct submitter s[SUBMITTERS];
    pthread_t thread[SUBMITTERS];
    struct url url = url_of(server_port, "threads");
    make(url, 100000, PERHAPS_HASH_XXH3);
    perhaps_cluster_async *async = client_of(url);
    for (unsigned t = 0; t < SUBMITTERS; t++) {
        s[t] = (struct submitter){ async, t, many(2000), NULL };
        s[t].asked = calloc(s[t].n, sizeof *s[t].asked);
        expect(!pthread_create(&thread[t], NULL, submit_some, &s[t]));
    }
    for (unsigned t = 0; t < SUBMITTERS; t++) {
        loop_until_all_ended(async);
        pthread_join(thread[t], NULL);
    }
    loop_until_all_ended(async);
    for (unsigned t = 0; t < SUBMITTERS; t++) {
        expect_answers(s[t].asked, s[t].n, s[t].n / 2);
        free(s[t].asked);
    }
    perhaps_cluster_async_free(async);
}

/* ---- Callbacks that submit ---------------------------------------------------------------- */

struct chain {
    perhaps_cluster_async *async;
    uint64_t number, last;
    unsigned nwrong;
};

static void ask_next(void *context, const struct perhaps_cluster_result *result)
{
    struct chain *chain = context;
    uint64_t number = ++chain->number;
    struct perhaps_keys keys = perhaps_keys_packed(&number, sizeof number, 1);
    chain->nwrong += result->error || result->answers[0] != PERHAPS_ANSWER_NO;
    if (number <= chain->last)
        chain->nwrong += add(chain->async, &keys, 0, ask_next, chain, NULL) != 0;
}

TEST(test_callback_submits)
{
    struct url url = url_of(server_port, "chain");
    struct chain chain = { .last = 100 };
    uint64_t first = 0;
    struct perhaps_keys keys = perhaps_keys_packed(&first, sizeof first, 1);
    make(url, 1000, PERHAPS_HASH_XXH3);
    chain.async = client_of(url);
    expect_success(add(chain.async, &keys, 0, ask_next, &chain, NULL));
    loop_until_all_ended(chain.async);
    expect(chain.number == chain.last + 1 && chain.nwrong == 0);
    perhaps_cluster_async_free(chain.async);
}

/* ---- A server that hangs ------------------------------------------------------------------ */

static void ready_then_hang(perhaps_cluster_async *async)
{
    expect_well(async, 0);
    hang();
}

/* The first call is under way when it is cancelled, or may be; the others wait behind it. */
TEST(test_cancel)
{
    enum { CALLS = 20 };
    struct asked asked[CALLS];
    struct url url = url_of(server_port, "cancel");
    make(url, 1000, PERHAPS_HASH_XXH3);
    perhaps_cluster_async *async = client_of(url);
    expect(!perhaps_cluster_async_cancel(async, 1));
    ready_then_hang(async);
    for (unsigned i = 0; i < CALLS; i++) {
        submit(async, i % 3 ? ask : add, i + 1, 0, &asked[i]);
        usleep(i == 0 ? 20000 : 0);
    }
    for (unsigned i = 0; i < CALLS; i++) {
        expect(perhaps_cluster_async_cancel(async, asked[i].id));
        expect(!perhaps_cluster_async_cancel(async, asked[i].id));
    }
    loop_until_all_ended(async); /* the server hangs still */
    for (unsigned i = 0; i < CALLS; i++) {
        expect_ended(&asked[i], PERHAPS_ERR_STOPPED);
        expect(asked[i].nunknown == 1);
        expect(!perhaps_cluster_async_cancel(async, asked[i].id));
    }
    go_on();
    expect_well(async, 1000);
    perhaps_cluster_async_free(async);
}

/* A deadline ends a call while the server hangs; a call without one is answered later. */
TEST(test_deadline)
{
    struct asked patient, hasty[3];
    struct url url = url_of(server_port, "deadline");
    make(url, 1000, PERHAPS_HASH_XXH3);
    perhaps_cluster_async *async = client_of(url);
    ready_then_hang(async);
    submit(async, add, 1, 0, &patient);
    submit(async, ask, 2, 60, &hasty[0]);
    submit(async, ask, 3, 3600000, &hasty[1]);
    submit(async, add, 4, 30, &hasty[2]);
    loop_until(async, &hasty[0]);
    expect_ended(&hasty[0], PERHAPS_ERR_DEADLINE);
    expect_ended(&hasty[2], PERHAPS_ERR_DEADLINE);
    expect(hasty[0].nunknown == 1 && !hasty[1].nended && !patient.nended);
    go_on();
    loop_until_all_ended(async);
    expect_answers(&patient, 1, 0);
    expect_answers(&hasty[1], 1, 0);
    perhaps_cluster_async_free(async);
}

/* The same while the filter is being opened. */
TEST(test_deadline_of_opening)
{
    struct asked asked;
    struct url url = url_of(server_port, "opening");
    make(url, 1000, PERHAPS_HASH_XXH3);
    hang();
    perhaps_cluster_async *async = client_of(url);
    submit(async, ask, 1, 30, &asked);
    loop_until(async, &asked);
    expect_ended(&asked, PERHAPS_ERR_DEADLINE);
    go_on();
    for (unsigned tries = 0; tries < 1000 && asked.error; tries++) {
        submit(async, ask, 1, 0, &asked); /* the opening may have failed meanwhile */
        loop_until_all_ended(async);
    }
    expect_answers(&asked, 1, 0);
    perhaps_cluster_async_free(async);
}

/* Many deadlines, some of which come while others are cancelled. */
TEST(test_many_deadlines)
{
    enum { CALLS = 300 };
    struct asked asked[CALLS];
    bool cancelled[CALLS] = { false };
    struct rng rng = rng_for("test_many_deadlines");
    struct url url = url_of(server_port, "deadlines");
    make(url, 1000, PERHAPS_HASH_XXH3);
    perhaps_cluster_async *async = client_of(url);
    ready_then_hang(async);
    for (unsigned i = 0; i < CALLS; i++)
        submit(async, i % 2 ? add : ask, i, 1 + (unsigned)rng_below(&rng, 200), &asked[i]);
    for (unsigned i = 0; i < CALLS; i += 3) {
        cancelled[i] = perhaps_cluster_async_cancel(async, asked[i].id);
        perhaps_cluster_async_step(async);
    }
    loop_until_all_ended(async);
    for (unsigned i = 0; i < CALLS; i++)
        expect_ended(&asked[i], cancelled[i] ? PERHAPS_ERR_STOPPED : PERHAPS_ERR_DEADLINE);
    go_on();
    expect_well(async, 1000);
    perhaps_cluster_async_free(async);
}

/* All callbacks are run before a client is freed, whatever the server does. */
TEST(test_free_with_calls_under_way)
{
    enum { CALLS = 100 };
    struct asked asked[CALLS];
    struct url url = url_of(server_port, "free?timeout=200ms");
    make(url, 1000, PERHAPS_HASH_XXH3);
    for (int hangs = 0; hangs < 2; hangs++) {
        perhaps_cluster_async *async = client_of(url);
        if (hangs)
            hang();
        for (unsigned i = 0; i < CALLS; i++)
            submit(async, i % 2 ? add : ask, i, i % 3 ? 0 : 60000, &asked[i]);
        perhaps_cluster_async_free(async);
        for (unsigned i = 0; i < CALLS; i++) {
            expect(asked[i].nended == 1);
            expect(!asked[i].error ? !hangs : asked[i].error == PERHAPS_ERR_STOPPED);
        }
    }
    go_on();
    perhaps_cluster_async_free(client_of(url));
    perhaps_cluster_async_free(NULL);
}

/* While one master hangs, the questions to the others are answered, although all went to the
 * servers together. */
TEST(test_one_master_hangs)
{
    enum { CALLS = 300 };
    static struct asked asked[CALLS];
    unsigned nfailed = 0;
    struct url url = url_of(cluster_port, "hangs?timeout=2s&patience=2s");
    make(url, 10000, PERHAPS_HASH_XXH3);
    perhaps_cluster_async *async = client_of(url);
    for (unsigned i = 0; i < CALLS; i++)
        submit(async, add, i, 0, &asked[i]);
    loop_until_all_ended(async);
    expect_answers(asked, CALLS, 0);
    expect(!kill(master_pid, SIGSTOP));
    for (unsigned i = 0; i < CALLS; i++)
        submit(async, ask, i, 0, &asked[i]);
    loop_until_all_ended(async);
    expect(!kill(master_pid, SIGCONT));
    for (unsigned i = 0; i < CALLS; i++) {
        expect_ended(&asked[i], asked[i].error ? PERHAPS_ERR_UNREACHABLE : 0);
        expect(asked[i].error ? asked[i].nunknown : asked[i].npresent);
        nfailed += asked[i].error != 0;
    }
    expect(nfailed > 0 && nfailed < CALLS);
    expect_well(async, CALLS);
    perhaps_cluster_async_free(async);
}

/* ---- Errors ------------------------------------------------------------------------------- */

static int error_of(perhaps_cluster_async *async, const char *mentions)
{
    struct asked asked;
    submit(async, ask, 1, 0, &asked);
    loop_until_all_ended(async);
    expect(asked.nended == 1);
    scene("%s", asked.problem);
    expect(strstr(asked.problem, mentions));
    return asked.error;
}

TEST(test_wrong_addresses)
{
    struct url wrong = { "redis://127.0.0.1" };
    perhaps_cluster_async *async = client_of(wrong);
    expect_error(error_of(async, "no name"), PERHAPS_ERR_ADDRESS);
    perhaps_cluster_async_free(async);
    async = client_of(url_of(1, "nobody"));
    expect_error(error_of(async, "127.0.0.1:1"), PERHAPS_ERR_UNREACHABLE);
    perhaps_cluster_async_free(async);
}

/* The functions of the options are called with the context of the options. */
static bool count_login(void *context, char *user, size_t user_size, char *password,
                        size_t password_size)
{
    ++*(atomic_uint *)context;
    *user = *password = '\0';
    return user_size && !password_size; /* there is none now */
}

TEST(test_login)
{
    atomic_uint nlogins = 0;
    struct url url = url_of(server_port, "login");
    perhaps_cluster_async *async;
    make(url, 1000, PERHAPS_HASH_XXH3);
    expect_success(perhaps_cluster_async_new(
        &(struct perhaps_cluster_options){
            .url = url.text, .login = count_login, .patience_ms = 1, .context = &nlogins },
        &async));
    expect(error_of(async, ""));
    expect(nlogins > 0);
    perhaps_cluster_async_free(async);
}

/* A filter that is not there yet, and one that was made anew: the calls tell it, and the next
 * ones open the filter again. */
TEST(test_opens_again)
{
    struct url url = url_of(server_port, "again");
    perhaps_cluster_async *async = client_of(url);
    expect_error(error_of(async, "no filter"), PERHAPS_ERR_MISSING);
    make(url, 1000, PERHAPS_HASH_XXH3);
    expect_well(async, 1);
    make(url, 1000, PERHAPS_HASH_XXH3);
    expect(error_of(async, ""));
    expect_well(async, 1);
    perhaps_cluster_async_free(async);
}

/* A filter that is full: each add succeeds or is told so, and what succeeded is found. */
TEST(test_full)
{
    enum { CALLS = 1500 };
    static struct asked asked[CALLS];
    struct asked later;
    unsigned nfull = 0;
    struct url url = url_of(server_port, "full");
    make(url, 1000, PERHAPS_HASH_XXH3);
    perhaps_cluster_async *async = client_of(url);
    for (unsigned i = 0; i < CALLS; i++)
        submit(async, add, i, 0, &asked[i]);
    loop_until_all_ended(async);
    for (unsigned i = 0; i < CALLS; i++) {
        expect_ended(&asked[i], asked[i].error ? PERHAPS_ERR_FULL : 0);
        nfull += asked[i].error != 0;
        if (asked[i].error)
            continue;
        submit(async, ask, i, 0, &later);
        loop_until_all_ended(async);
        expect_answers(&later, 1, 1);
    }
    expect(nfull >= CALLS - 1000 && nfull < CALLS);
    perhaps_cluster_async_free(async);
}

/* Keys of a length that the hash does not take are errors of their own calls only, and no other
 * key is added twice. */
TEST(test_wrong_key_among_others)
{
    enum { CALLS = 40 };
    struct asked asked[CALLS] = { 0 };
    uint8_t bytes[CALLS][PERHAPS_HASH_NBYTES] = { { 0 } };
    struct url url = url_of(server_port, "lengths");
    make(url, 1000, PERHAPS_HASH_NONE);
    perhaps_cluster_async *async = client_of(url);
    hang(); /* so that they go together */
    for (unsigned i = 0; i < CALLS; i++) {
        uint64_t number[2] = { mix64(i), mix64(~(uint64_t)i) };
        memcpy(bytes[i], number, sizeof number);
        struct perhaps_key key[] = { { bytes[i], sizeof bytes[i] }, { "short", 5 } };
        struct perhaps_keys keys = perhaps_keys_each(key + (i % 8 == 4), i % 8 == 6 ? 2 : 1);
        expect_success(add(async, &keys, 0, note, &asked[i], NULL));
    }
    go_on();
    loop_until_all_ended(async);
    for (unsigned i = 0; i < CALLS; i++) {
        bool is_wrong = i % 8 == 4 || i % 8 == 6;
        expect_ended(&asked[i], is_wrong ? PERHAPS_ERR_ARGUMENT : 0);
        expect(asked[i].npresent == 0 && (asked[i].nunknown > 0) == is_wrong);
    }
    struct perhaps_hashed hashed = { { 1 } };
    struct perhaps_keys keys = perhaps_keys_hashed(&hashed, 1);
    expect_error(ask(async, &keys, 0, note, asked, NULL), PERHAPS_ERR_ARGUMENT);
    perhaps_cluster_async_free(async);
}

/* ---- The pool ---------------------------------------------------------------------------- */

enum { USERS = 8, MOST = 3 };

struct user {
    perhaps_cluster_pool *pool;
    unsigned number, n, nwrong;
    atomic_uint *nout, *nmost;
};

static void *use_pool(void *context)
{
    struct user *user = context;
    for (unsigned i = 0; i < user->n; i++) {
        uint64_t number = (uint64_t)user->number << 32 | i;
        perhaps_cluster *handle;
        int error = perhaps_cluster_pool_take(user->pool, &handle);
        if (error) {
            user->nwrong += 1000;
            perhaps_cluster_free(handle);
            continue;
        }
        unsigned nout = ++*user->nout;
        if (nout > *user->nmost)
            *user->nmost = nout;
        user->nwrong += perhaps_cluster_add(handle, &number, sizeof number) != 0;
        user->nwrong += perhaps_cluster_contains(handle, &number, sizeof number) != 1;
        --*user->nout;
        perhaps_cluster_pool_give(user->pool, handle, 0);
    }
    return NULL;
}

TEST(test_pool_of_many_threads)
{
    struct user user[USERS];
    struct url url = url_of(server_port, "pool");
    perhaps_cluster_pool *pool;
    atomic_uint nout = 0, nmost = 0;
    make(url, 100000, PERHAPS_HASH_XXH3);
    expect_success(perhaps_cluster_pool_new(
        &(struct perhaps_cluster_options){ .url = url.text }, MOST, &pool));
    for (unsigned i = 0; i < USERS; i++)
        user[i] = (struct user){ pool, i, many(200), 0, &nout, &nmost };
    run_threads(USERS, use_pool, user, sizeof *user);
    for (unsigned i = 0; i < USERS; i++)
        expect(user[i].nwrong == 0);
    expect(nmost > 0 && nmost <= MOST);
    perhaps_cluster_pool_free(pool);
}

/* The handle that was given back last is taken first, and a broken one is not kept. */
TEST(test_pool_keeps_handles)
{
    struct url url = url_of(server_port, "pool");
    perhaps_cluster_pool *pool;
    perhaps_cluster *handle[3], *other;
    make(url, 1000, PERHAPS_HASH_XXH3);
    expect_success(perhaps_cluster_pool_new(
        &(struct perhaps_cluster_options){ .url = url.text }, 0, &pool));
    for (int i = 0; i < 3; i++)
        expect_success(perhaps_cluster_pool_take(pool, &handle[i]));
    for (int i = 0; i < 3; i++)
        perhaps_cluster_pool_give(pool, handle[i], i ? PERHAPS_ERR_FULL : 0);
    for (int i = 2; i >= 0; i--) {
        expect_success(perhaps_cluster_pool_take(pool, &other));
        expect(other == handle[i]);
    }
    make(url, 1000, PERHAPS_HASH_XXH3);
    int error = perhaps_cluster_contains(handle[0], "key", 3);
    expect(error < 0);
    for (int i = 0; i < 3; i++)
        perhaps_cluster_pool_give(pool, handle[i], error);
    expect_success(perhaps_cluster_pool_take(pool, &other));
    expect(perhaps_cluster_contains(other, "key", 3) == 0);
    perhaps_cluster_pool_give(pool, other, 0);
    perhaps_cluster_pool_free(pool);
    perhaps_cluster_pool_free(NULL);
}

static bool is_set(void *context)
{
    return *(const bool *)context;
}

/* What cannot be opened tells why, and does not count as taken; a wait can be stopped. */
TEST(test_pool_that_gives_none)
{
    struct url missing = url_of(server_port, "none"), url = url_of(server_port, "pool");
    struct perhaps_cluster_options options = { .url = missing.text };
    perhaps_cluster_pool *pool;
    perhaps_cluster *handle, *second;
    bool stop = false;
    expect_success(perhaps_cluster_pool_new(&options, 1, &pool));
    for (int i = 0; i < 3; i++) {
        expect_error(perhaps_cluster_pool_take(pool, &handle), PERHAPS_ERR_MISSING);
        expect(strstr(perhaps_cluster_problem(handle), "no filter"));
        perhaps_cluster_free(handle);
    }
    perhaps_cluster_pool_free(pool);

    make(url, 1000, PERHAPS_HASH_XXH3);
    options = (struct perhaps_cluster_options){ .url = url.text,
                                                .stopped = is_set,
                                                .context = &stop };
    expect_success(perhaps_cluster_pool_new(&options, 1, &pool));
    expect_success(perhaps_cluster_pool_take(pool, &handle));
    stop = true;
    expect_error(perhaps_cluster_pool_take(pool, &second), PERHAPS_ERR_STOPPED);
    expect(!second);
    perhaps_cluster_pool_give(pool, handle, 0);
    perhaps_cluster_pool_free(pool);
}

/* ---- A master is killed meanwhile --------------------------------------------------------- */

enum { CROWD = 300, NUMBERS = 1 << 22 };

struct member {
    struct crowd *crowd;
    uint64_t number; /* the key of its call */
    bool adds;
};

/* Each member has one call under way: it adds a key, asks for it, adds the next one, ... */
struct crowd {
    perhaps_cluster_async *async;
    struct member member[CROWD];
    bool is_in[NUMBERS]; /* whose add succeeded */
    uint64_t nasked, nerrors, ndenied;
    bool ending;
};

static perhaps_cluster_callback go_on_as_member;

static void submit_as_member(struct member *m)
{
    struct perhaps_keys keys = perhaps_keys_packed(&m->number, sizeof m->number, 1);
    expect_success((m->adds ? add : ask)(m->crowd->async, &keys, 0, go_on_as_member, m, NULL));
}

/* An add may fail, since after a failover the new master has no replica.  A question must be
 * answered, and rightly if the add before it succeeded. */
static void go_on_as_member(void *context, const struct perhaps_cluster_result *result)
{
    struct member *m = context;
    struct crowd *crowd = m->crowd;
    bool *is_in = &crowd->is_in[m->number];
    if (m->adds) {
        *is_in = !result->error;
    } else {
        crowd->nasked++;
        crowd->nerrors += result->error != 0;
        if (result->error && crowd->nerrors == 1)
            fprintf(stderr, "%s\n", result->problem);
        crowd->ndenied += *is_in && result->answers[0] == PERHAPS_ANSWER_NO;
        m->number += CROWD;
    }
    m->adds = !m->adds;
    if (!m->adds || (!crowd->ending && m->number < NUMBERS))
        submit_as_member(m);
}

/* Asks for all keys whose add succeeded, in one call. */
static void ask_for_all(struct crowd *crowd, struct asked *asked, size_t *n)
{
    uint64_t *number = calloc(NUMBERS, sizeof *number);
    *n = 0;
    for (uint64_t i = 0; i < NUMBERS; i++)
        if (crowd->is_in[i])
            number[(*n)++] = i;
    struct perhaps_keys keys = perhaps_keys_packed(number, sizeof *number, *n);
    expect_success(ask(crowd->async, &keys, 0, note, asked, NULL));
    free(number);
    loop_until_all_ended(crowd->async);
}

static int run_crowd(void)
{
    static struct crowd crowd;
    struct asked all = { 0 };
    struct url url = url_of(cluster_port, "crowd?acknowledge=1&patience=60s");
    struct pollfd events[2] = { { .events = POLLIN }, { STDIN_FILENO, POLLIN, 0 } };
    bool told = false;
    size_t n;
    make(url, NUMBERS, PERHAPS_HASH_XXH3);
    crowd.async = client_of(url);
    events[0].fd = perhaps_cluster_async_fd(crowd.async);
    for (uint64_t i = 0; i < CROWD; i++) {
        crowd.member[i] = (struct member){ .crowd = &crowd, .number = i, .adds = true };
        submit_as_member(&crowd.member[i]);
    }
    while (perhaps_cluster_async_step(crowd.async)) {
        poll(events, crowd.ending ? 1 : 2, -1);
        crowd.ending |= events[1].revents != 0;
        if (!told && crowd.nasked > CROWD)
            told = printf("ready\n") && fflush(stdout) == 0;
    }
    ask_for_all(&crowd, &all, &n);
    if (all.error)
        fprintf(stderr, "%s\n", all.problem);
    perhaps_cluster_async_free(crowd.async);
    fprintf(stderr,
            "%zu added, %zu of them found; asked %" PRIu64 " times: %" PRIu64
            " errors, %" PRIu64 " denied\n",
            n, all.npresent, crowd.nasked, crowd.nerrors, crowd.ndenied);
    return crowd.ndenied || crowd.nerrors || n < CROWD || all.error || all.npresent != n;
}

int main(int argc, char **argv)
{
    cluster_port = argc > 1 ? (unsigned)strtoul(argv[argc > 3 ? 3 : 1], NULL, 10) : 0;
    if (argc == 2)
        return run_crowd();
    if (argc != 5)
        return 2;
    server_port = (unsigned)strtoul(argv[1], NULL, 10);
    server_pid = (pid_t)strtol(argv[2], NULL, 10);
    master_pid = (pid_t)strtol(argv[4], NULL, 10);
    return run_all_tests();
}
