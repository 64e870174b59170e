/* cluster_cuts_test.c - proves that the client survives a fault at any byte of the servers'
 * replies: a short run (open, add, ask) goes through a proxy that cuts the connection, stalls
 * it or sends nonsense at one byte, and is repeated for each byte.  After a cut or a stall the
 * run must still succeed, with the right answers; after nonsense it must end.
 *
 *     cluster_cuts_test PORT                 all tests, on an empty server of that port
 *     cluster_cuts_test PORT cut|stall BYTE  only the proxy: prints its port, and serves until
 *                                            standard input ends */
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "perhaps_cluster.h"
#include "proxy.h"
#include "support.h"

enum { RUNS_AT_ONCE = 32, KEYS = 2 };

static unsigned server_port;

/* ---- A short run ------------------------------------------------------------------------- */

struct short_run {
    uint64_t first_key;
    unsigned timeout_ms, patience_ms;
    char trouble[400];
};

static perhaps_cluster *client_of(unsigned port, const struct short_run *run)
{
    char url[64];
    perhaps_cluster *c;
    snprintf(url, sizeof url, "redis://127.0.0.1:%u/cuts", port);
    perhaps_cluster_new(&(struct perhaps_cluster_options){ .url = url,
                                                           .timeout_ms = run->timeout_ms,
                                                           .patience_ms = run->patience_ms },
                        &c);
    return c;
}

/* Opens the filter, again and again while no server answers: the client soon gives up a server
 * that says nothing from the beginning, since its address may be wrong. */
static int open_again(perhaps_cluster *c)
{
    int error = perhaps_cluster_open(c);
    for (unsigned tries = 1; tries < 1000 && error == PERHAPS_ERR_UNREACHABLE; tries++) {
        usleep(10000);
        error = perhaps_cluster_open(c);
    }
    return error;
}

/* Adds new keys and asks for them.  Returns the error; sets run->trouble if an answer was
 * wrong. */
static int add_and_ask(perhaps_cluster *c, struct short_run *run)
{
    uint64_t key[KEYS];
    uint8_t was_present[KEYS], present[KEYS];
    struct perhaps_keys keys = perhaps_keys_packed(key, sizeof *key, KEYS);
    for (unsigned i = 0; i < KEYS; i++)
        key[i] = run->first_key + i;
    int error = run->patience_ms ? perhaps_cluster_open(c) : open_again(c);
    if (!error)
        error = perhaps_cluster_add_many(c, &keys, was_present, NULL);
    if (!error)
        error = perhaps_cluster_contains_many(c, &keys, present, NULL);
    for (unsigned i = 0; i < KEYS && !error; i++)
        if (was_present[i] || !present[i])
            snprintf(run->trouble, sizeof run->trouble, "key %u: %s before, %s after", i,
                     was_present[i] ? "there" : "new", present[i] ? "there" : "denied");
    return error;
}

static void make_filter_there(void)
{
    struct short_run any = { .timeout_ms = 0 };
    struct perhaps_options options = { .capacity = 100000,
                                       .fpr = 1e-3,
                                       .hashing = { .seed = 1 } };
    perhaps_cluster *c = client_of(server_port, &any);
    perhaps_cluster_open(c);
    perhaps_cluster_delete(c);
    expect_success(perhaps_cluster_create(c, &options, 2));

    /* some other keys, which are only counted */
    struct perhaps_keys letters = perhaps_keys_packed("abcdef", 1, 6);
    size_t nletters = 0;
    expect_success(perhaps_cluster_add_many(c, &letters, NULL, NULL));
    expect_success(perhaps_cluster_contains_many(c, &letters, NULL, &nletters));
    expect(nletters == 6);
    perhaps_cluster_free(c);
}

/* ---- The same with a fault at each byte -------------------------------------------------- */

struct trial {
    enum fault fault;
    const char *last_words;
    unsigned timeout_ms, patience_ms;
    bool must_succeed; /* else a run may end with any error */
    uint64_t nbytes;   /* how many bytes of replies a run without a fault gets */
    atomic_uint next;  /* the next byte to try */
    pthread_mutex_t lock;
    char trouble[500];
};

/* Runs once with a fault behind byte 'at'.  Returns how many bytes of replies went through. */
static uint64_t run_with_fault(struct trial *trial, uint64_t at)
{
    struct proxy proxy = { .at = at, .fault = trial->fault, .last_words = trial->last_words };
    struct short_run run = { .first_key = at * KEYS,
                             .timeout_ms = trial->timeout_ms,
                             .patience_ms = trial->patience_ms };
    proxy_start(&proxy, server_port);
    perhaps_cluster *c = client_of(proxy.port, &run);
    int error = add_and_ask(c, &run);
    if (error)
        snprintf(run.trouble, sizeof run.trouble, "%.399s", perhaps_cluster_problem(c));
    pthread_mutex_lock(&trial->lock);
    if (trial->must_succeed && run.trouble[0])
        snprintf(trial->trouble, sizeof trial->trouble, "at byte %u: %s", (unsigned)at,
                 run.trouble);
    pthread_mutex_unlock(&trial->lock);
    perhaps_cluster_free(c);
    proxy_stop(&proxy);
    return proxy.nreplied;
}

static void *run_some(void *context)
{
    struct trial *trial = context;
    for (uint64_t at; (at = trial->next++) < trial->nbytes;)
        run_with_fault(trial, at);
    return NULL;
}

/* Finds out how long the replies are, and then puts the fault at each byte, in several
 * threads. */
static void run_at_each_byte(struct trial *trial)
{
    pthread_t thread[RUNS_AT_ONCE];
    struct trial whole = { .must_succeed = true };
    pthread_mutex_init(&whole.lock, NULL);
    pthread_mutex_init(&trial->lock, NULL);
    make_filter_there();
    trial->nbytes = run_with_fault(&whole, 1 << 20);
    expect(trial->nbytes > 500);
    make_filter_there();
    for (unsigned i = 0; i < RUNS_AT_ONCE; i++)
        expect(!pthread_create(&thread[i], NULL, run_some, trial));
    for (unsigned i = 0; i < RUNS_AT_ONCE; i++)
        pthread_join(thread[i], NULL);
    if (trial->trouble[0])
        fail_msg("%s", trial->trouble);
}

TEST(test_cut)
{
    run_at_each_byte(&(struct trial){ .fault = FAULT_CUT, .must_succeed = true });
}

TEST(test_stall)
{
    run_at_each_byte(
        &(struct trial){ .fault = FAULT_STALL, .must_succeed = true, .timeout_ms = 100 });
}

/* Arrays and strings that claim a huge size, an array of another length, and types of a later
 * protocol: a run only has to end. */
TEST(test_lies)
{
    static const char *const lies[] = { "*2147483647\r\n", "*7\r\n:0\r\n", "$2147483647\r\n",
                                        "#t\r\n,1.5\r\n" };
    for (size_t i = 0; i < sizeof lies / sizeof *lies; i++) {
        run_at_each_byte(&(struct trial){ .fault = i % 2 ? FAULT_CUT : FAULT_STALL,
                                          .last_words = lies[i],
                                          .timeout_ms = 20,
                                          .patience_ms = 1 });
    }
}

static int only_proxy(const char *kind, const char *at)
{
    struct proxy proxy = { .at = strtoull(at, NULL, 10),
                           .fault = strcmp(kind, "cut") == 0 ? FAULT_CUT : FAULT_STALL };
    proxy_start(&proxy, server_port);
    printf("%u\n", proxy.port);
    fflush(stdout);
    while (getchar() != EOF)
        ;
    proxy_stop(&proxy);
    return 0;
}

int main(int argc, char **argv)
{
    server_port = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 0;
    return argc == 4 ? only_proxy(argv[2], argv[3]) : run_all_tests();
}
