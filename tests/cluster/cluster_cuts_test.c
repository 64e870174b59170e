/* cluster_cuts_test.c - proves that clients survive a fault at any byte of the servers'
 * replies.  All that they do with a filter (cut_verbs.h) goes through a proxy that cuts the
 * connection, stalls it or sends nonsense at one byte, and is repeated with the fault at
 * another byte.  After a cut or a stall it must still succeed, with the right answers.  If
 * patience is too short for that, it may fail; but nothing that is acknowledged may be lost,
 * and what is left can be removed.  After nonsense it must end.
 *
 *     cluster_cuts_test PORT PORT1 PORT2 PORT3 [PROGRAM]
 *
 * PORT is an empty server, and the others are the masters of an empty cluster that tells no
 * addresses (proxy.h).  PROGRAM is the command line.  Of most replies the fault is put at some
 * bytes only, which the seed chooses; at each if PERHAPS_TEST_EVERY is set. */
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "cut_verbs.h"
#include "proxy.h"
#include "support.h"

enum { RUNS_AT_ONCE = 32, BYTES_MOST = 1 << 16, PATIENCE_MS = 60000, TIMEOUT_MS = 3000 };

static struct place places[] = { { .name = "server", .nservers = 1 },
                                 { .name = "cluster", .nservers = 3 } };
enum { PLACES = sizeof places / sizeof *places };
static const char *program;

/* ---- The same with faults at many bytes -------------------------------------------------- */

struct trial {
    enum fault fault;
    const char *last_words;
    bool in_pieces;
    unsigned timeout_ms, patience_ms;
    bool must_succeed;
    unsigned nsamples; /* at how many bytes the fault is; 0: at each */

    const struct verb *verb;
    const struct place *place;
    uint64_t *byte; /* those at which the fault is */
    size_t nbytes;
    atomic_size_t next;    /* the next one to try */
    atomic_uint workers;   /* how many threads have begun */
    atomic_uint nhappened; /* in how many runs the fault has happened */
    pthread_mutex_t lock;
    char trouble[700];
};

/* Runs once with a fault behind byte 'at', as worker number 'worker'.  Sets *proxy to the
 * proxy, which tells how many bytes went through. */
static void run_with_fault(struct trial *trial, unsigned worker, uint64_t at,
                           struct proxy *proxy)
{
    struct attempt a = { .verb = trial->verb,
                         .place = trial->place,
                         .host = 2 + worker,
                         .timeout_ms = trial->timeout_ms,
                         .patience_ms = trial->patience_ms,
                         .must_succeed = trial->must_succeed,
                         .lied_to = trial->last_words };
    *proxy = (struct proxy){ .at = at,
                             .fault = trial->fault,
                             .last_words = trial->last_words,
                             .in_pieces = trial->in_pieces,
                             .rng.state = mix64(test_seed() + at) };
    snprintf(a.name, sizeof a.name, "cuts%02u", worker);
    a.file = temp_path(a.name);
    if (trial->verb->shares) {
        snprintf(a.name, sizeof a.name, "shared");
        a.first_key = (at + 1) * KEYS_MOST;
    }
    attempt_run(&a, proxy);
    pthread_mutex_lock(&trial->lock);
    if (a.trouble[0] && !trial->trouble[0])
        snprintf(trial->trouble, sizeof trial->trouble, "at byte %u: %s", (unsigned)at,
                 a.trouble);
    pthread_mutex_unlock(&trial->lock);
}

static void *run_some(void *context)
{
    struct trial *trial = context;
    struct proxy proxy;
    unsigned worker = trial->workers++;
    for (size_t i; (i = trial->next++) < trial->nbytes;) {
        run_with_fault(trial, worker, trial->byte[i], &proxy);
        trial->nhappened += proxy.fault == FAULT_NONE;
    }
    return NULL;
}

/* Returns how many bytes of replies a run without a fault gets.  Each server must have told
 * some of them. */
static uint64_t measure(const struct trial *trial)
{
    struct proxy proxy;
    struct trial whole = { .verb = trial->verb,
                           .place = trial->place,
                           .timeout_ms = TIMEOUT_MS,
                           .patience_ms = PATIENCE_MS,
                           .must_succeed = true };
    pthread_mutex_init(&whole.lock, NULL);
    run_with_fault(&whole, RUNS_AT_ONCE, BYTES_MOST, &proxy);
    if (whole.trouble[0])
        fail_msg("%s, without a fault: %s", scene_text(), whole.trouble);
    expect(proxy.nreplied > 100 && proxy.nreplied < BYTES_MOST);
    for (unsigned s = 0; s < trial->place->nservers; s++)
        expect(proxy.nreplied_by[s] > 0);
    return proxy.nreplied;
}

/* Chooses the bytes: each, or one at random out of each of 'nsamples' equal parts. */
static void choose_bytes(struct trial *trial, uint64_t total)
{
    struct rng rng = rng_for("bytes");
    bool each = !trial->nsamples || every_case();
    trial->nbytes = each || trial->nsamples > total ? total : trial->nsamples;
    trial->byte = malloc(trial->nbytes * sizeof *trial->byte);
    expect(trial->byte);
    for (size_t i = 0; i < trial->nbytes; i++) {
        uint64_t begin = total * i / trial->nbytes, end = total * (i + 1) / trial->nbytes;
        trial->byte[i] = begin + rng_below(&rng, end - begin);
    }
}

/* Runs one verb at one place with the fault at each of the chosen bytes, in several threads.
 * Replies are not equally long in all runs, so in a few of them the fault may not happen; also
 * if a verb failed before it. */
static void run_trial(struct trial *trial)
{
    pthread_t thread[RUNS_AT_ONCE];
    pthread_mutex_init(&trial->lock, NULL);
    choose_bytes(trial, measure(trial));
    for (unsigned i = 0; i < RUNS_AT_ONCE; i++)
        expect(!pthread_create(&thread[i], NULL, run_some, trial));
    for (unsigned i = 0; i < RUNS_AT_ONCE; i++)
        pthread_join(thread[i], NULL);
    free(trial->byte);
    if (trial->trouble[0])
        fail_msg("%s: %s", scene_text(), trial->trouble);
    expect(!trial->must_succeed || trial->nhappened + trial->nbytes / 10 + 1 >= trial->nbytes);
}

/* Runs all verbs at all places with such a fault. */
static void run_everywhere(const char *what, const struct trial *like)
{
    for (unsigned p = 0; p < PLACES; p++) {
        verbs_begin(&places[p], program);
        for (size_t v = 0; v < nverbs; v++) {
            if (verbs[v].spawns && !program)
                continue;
            struct trial trial;
            memcpy(&trial, like, sizeof trial);
            trial.verb = &verbs[v];
            trial.place = &places[p];
            scene("%s, %s, %s", what, places[p].name, verbs[v].name);
            run_trial(&trial);
        }
        verbs_end(&places[p]);
    }
}

/* ---- The tests --------------------------------------------------------------------------- */

TEST(test_cut)
{
    run_everywhere("cut", &(struct trial){ .fault = FAULT_CUT,
                                           .timeout_ms = TIMEOUT_MS,
                                           .patience_ms = PATIENCE_MS,
                                           .must_succeed = true,
                                           .nsamples = many(20) });
}

TEST(test_stall)
{
    run_everywhere("stall", &(struct trial){ .fault = FAULT_STALL,
                                             .timeout_ms = 100,
                                             .patience_ms = PATIENCE_MS,
                                             .must_succeed = true,
                                             .nsamples = many(20) });
}

/* A client that has no patience gives up after one fault. */
TEST(test_cut_without_patience)
{
    run_everywhere("cut, no patience", &(struct trial){ .fault = FAULT_CUT,
                                                        .timeout_ms = TIMEOUT_MS,
                                                        .patience_ms = 1,
                                                        .nsamples = many(20) });
}

TEST(test_stall_without_patience)
{
    run_everywhere("stall, no patience", &(struct trial){ .fault = FAULT_STALL,
                                                          .timeout_ms = 50,
                                                          .patience_ms = 1,
                                                          .nsamples = many(20) });
}

/* Networks end segments anywhere. */
TEST(test_pieces)
{
    run_everywhere("pieces", &(struct trial){ .in_pieces = true,
                                              .timeout_ms = TIMEOUT_MS,
                                              .patience_ms = PATIENCE_MS,
                                              .must_succeed = true,
                                              .nsamples = 1 + many(10) });
}

/* Arrays and strings that claim a huge size, an array of another length, and types of a later
 * protocol.  They may also end a reply, and so change what it says. */
TEST(test_lies)
{
    static const char *const lies[] = { "*2147483647\r\n", "*7\r\n:0\r\n", "$2147483647\r\n",
                                        "#t\r\n,1.5\r\n" };
    for (size_t i = 0; i < sizeof lies / sizeof *lies; i++)
        run_everywhere("lies", &(struct trial){ .fault = i % 2 ? FAULT_CUT : FAULT_STALL,
                                                .last_words = lies[i],
                                                .timeout_ms = 20,
                                                .patience_ms = 1,
                                                .nsamples = many(20) });
}

static unsigned port_of(const char *text)
{
    return (unsigned)strtoul(text, NULL, 10);
}

int main(int argc, char **argv)
{
    if (argc != 5 && argc != 6) {
        fprintf(stderr, "usage: cluster_cuts_test PORT PORT1 PORT2 PORT3 [PROGRAM]\n");
        return 2;
    }
    places[0].port[0] = port_of(argv[1]);
    for (unsigned s = 0; s < 3; s++)
        places[1].port[s] = port_of(argv[2 + s]);
    program = argv[5];
    return run_all_tests();
}
