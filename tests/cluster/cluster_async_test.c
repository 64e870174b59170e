/* cluster_async_test.c - the asynchronous client, on real servers.
 *
 *     cluster_async_test PORT PID CLUSTER_PORT MASTER_PID
 *
 * runs all tests, on an empty server and on a cluster; they let that server and one master hang
 * for a while. */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "async_support.h"
#include <perhaps_fast.h>

static unsigned server_port, cluster_port;
static pid_t server_pid, master_pid;

/* Make the single server hang, and go on. */
static void hang(void)
{
    expect(!kill(server_pid, SIGSTOP));
}

static void go_on(void)
{
    expect(!kill(server_pid, SIGCONT));
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
    scoped_async *async = client_of(url);
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
    scoped_async *async = client_of_new(cluster_port, "order", 100000);
    for (unsigned i = 0; i < n; i++) {
        submit(async, add, i, 0, &added[i]);
        submit(async, ask, i, 0, &asked[i]);
    }
    loop_until_all_ended(async);
    expect_answers(added, n, 0);
    expect_answers(asked, n, n);
    free(added);
    free(asked);
}

/* Of all adds of one key, submitted together, one is told that it is new. */
TEST(test_one_add_is_new)
{
    enum { ADDS = 100 };
    struct asked asked[ADDS];
    scoped_async *async = client_of_new(cluster_port, "new", 1000);
    for (unsigned i = 0; i < ADDS; i++)
        submit(async, add, 7, 0, &asked[i]);
    loop_until_all_ended(async);
    expect_answers(asked, ADDS, ADDS - 1);
}

/* Calls with no key, and with more keys than go together. */
TEST(test_calls_of_any_size)
{
    enum { CALLS = 6, MOST = 20000 };
    static const size_t size[CALLS] = { 0, 5000, MOST, 3000, 8192, 0 };
    static uint64_t number[MOST];
    struct asked asked[2 * CALLS] = { 0 };
    scoped_async *async = client_of_new(server_port, "sizes", 100000);
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
    scoped_async *async = client_of_new(server_port, "threads", 100000);
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
}

/* ---- Callbacks that submit --------------------------------------------------------------- */

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

/* ---- A server that hangs ----------------------------------------------------------------- */

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
    scoped_async *async = client_of_new(server_port, "cancel", 1000);
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
}

/* A deadline ends a call while the server hangs; a call without one is answered later. */
TEST(test_deadline)
{
    struct asked patient, hasty[3];
    scoped_async *async = client_of_new(server_port, "deadline", 1000);
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
}

/* The same while the filter is being opened. */
TEST(test_deadline_of_opening)
{
    struct asked asked;
    struct url url = url_of(server_port, "opening");
    make(url, 1000, PERHAPS_HASH_XXH3);
    hang();
    scoped_async *async = client_of(url);
    submit(async, ask, 1, 30, &asked);
    loop_until(async, &asked);
    expect_ended(&asked, PERHAPS_ERR_DEADLINE);
    go_on();
    for (unsigned tries = 0; tries < 1000 && asked.error; tries++) {
        submit(async, ask, 1, 0, &asked); /* the opening may have failed meanwhile */
        loop_until_all_ended(async);
    }
    expect_answers(&asked, 1, 0);
}

/* Many deadlines, some of which come while others are cancelled. */
TEST(test_many_deadlines)
{
    enum { CALLS = 300 };
    struct asked asked[CALLS];
    bool cancelled[CALLS] = { false };
    struct rng rng = rng_for("test_many_deadlines");
    scoped_async *async = client_of_new(server_port, "deadlines", 1000);
    ready_then_hang(async);
    for (unsigned i = 0; i < CALLS; i++)
        submit(async, i % 2 ? add : ask, i, 1 + (unsigned)rng_below(&rng, 200), &asked[i]);
    for (unsigned i = 0; i < CALLS; i += 3) {
        cancelled[i] = perhaps_cluster_async_cancel(async, asked[i].id);
        perhaps_cluster_async_step(async);
    }
    loop_until_all_ended(async);
    for (unsigned i = 0; i < CALLS; i++)
        expect_ended(&asked[i], cancelled[i] ? (int)PERHAPS_ERR_STOPPED : PERHAPS_ERR_DEADLINE);
    go_on();
    expect_well(async, 1000);
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
    scoped_async *async = client_of_new(cluster_port, "hangs?timeout=2s&patience=2s", 10000);
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
}

/* ---- Errors ------------------------------------------------------------------------------ */

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
    scoped_async *wrong = client_of((struct url){ "redis://127.0.0.1" }),
                 *nobody = client_of(url_of(1, "nobody"));
    expect_error(error_of(wrong, "no name"), PERHAPS_ERR_ADDRESS);
    expect_error(error_of(nobody, "127.0.0.1:1"), PERHAPS_ERR_UNREACHABLE);
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
    scoped_async *async = client_of(url);
    expect_error(error_of(async, "no filter"), PERHAPS_ERR_MISSING);
    make(url, 1000, PERHAPS_HASH_XXH3);
    expect_well(async, 1);
    make(url, 1000, PERHAPS_HASH_XXH3);
    expect(error_of(async, ""));
    expect_well(async, 1);
}

/* When nothing has come for a while the thread gives back what it has reserved. */
enum { IDLE_MS = 3000, POLL_MS = 50, POLLS_MOST = 1200 };

static uint64_t count_at(struct url url)
{
    struct perhaps_cluster_stats stats;
    scoped_cluster *c = handle_of(url);
    expect_success(perhaps_cluster_open(c));
    expect_success(perhaps_cluster_stats_of(c, &stats));
    return stats.keys;
}

TEST(test_idle)
{
    enum { KEYS = 50 };
    struct url url = url_of(server_port, "idle");
    scoped_async *async = client_of(url);
    unsigned polls = 0;
    make(url, 100000, PERHAPS_HASH_XXH3);
    for (unsigned i = 0; i < KEYS; i++) {
        struct asked asked;
        submit(async, add, i, 0, &asked);
        loop_until_all_ended(async);
        expect_ended(&asked, 0);
    }
    while (count_at(url) != KEYS && polls++ < POLLS_MOST)
        usleep(POLL_MS * 1000);
    expect(count_at(url) == KEYS);
    expect_well(async, KEYS);
}

/* The same if there is no handle that could have reserved any. */
TEST(test_idle_after_an_error)
{
    struct url url = url_of(server_port, "later");
    scoped_async *async = client_of(url);
    expect_error(error_of(async, "no filter"), PERHAPS_ERR_MISSING);
    usleep(IDLE_MS * 1000);
    make(url, 1000, PERHAPS_HASH_XXH3);
    expect_well(async, 1);
}

/* A filter that is full: each add succeeds or is told so, and what succeeded is found. */
TEST(test_full)
{
    enum { CALLS = 1500 };
    static struct asked asked[CALLS];
    struct asked later;
    unsigned nfull = 0;
    scoped_async *async = client_of_new(server_port, "full", 1000);
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
    scoped_async *async = client_of(url);
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
}

int main(int argc, char **argv)
{
    if (argc != 5)
        return 2;
    server_port = (unsigned)strtoul(argv[1], NULL, 10);
    server_pid = (pid_t)strtol(argv[2], NULL, 10);
    cluster_port = (unsigned)strtoul(argv[3], NULL, 10);
    master_pid = (pid_t)strtol(argv[4], NULL, 10);
    return run_all_tests();
}
