/* cluster_liars_test.c - proves that no key that is in is denied and that every call ends, if a
 * server answers one command wrongly and all others as it should.  A liar hands commands on to
 * a real server, and its answers back, but for the commands of one name: these are never done,
 * and always get the same answer.
 *
 *     cluster_liars_test PORT    the real server's, which is empty */
#include "support.h"

#include <arpa/inet.h>
#include <hiredis.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "perhaps_cluster.h"
#include "strange_server.h"

enum { PATIENCE_MS = 40 };

/* ---- The liar ---------------------------------------------------------------------------- */

static unsigned real_port;
static int real; /* the connection to the real server */
static const char *lie_about, *lie;
static bool growing;   /* the filter that is asked is one that grows */
static bool tells_new; /* lies must not make a new key look like an old one */
static atomic_bool lying;
static atomic_int nhonest; /* so many commands of that name are answered truly before */

/* Asks the real server.  One command is under way at a time, so all bytes that come until the
 * answer is whole belong to it. */
static void answer_really(struct answer *answer, const struct command *command)
{
    redisReader *reader = redisReaderCreate();
    void *reply = NULL;
    size_t sent = (size_t)send(real, command->bytes, command->nbytes, MSG_NOSIGNAL);
    while (sent == command->nbytes && !reply) {
        char *to = answer->bytes + answer->nbytes;
        ssize_t got = recv(real, to, sizeof answer->bytes - answer->nbytes, 0);
        if (got <= 0 || redisReaderFeed(reader, to, (size_t)got) != REDIS_OK ||
            redisReaderGetReply(reader, &reply) != REDIS_OK)
            break;
        answer->nbytes += (size_t)got;
    }
    if (reply)
        freeReplyObject(reply);
    redisReaderFree(reader);
}

static void answer_with_lies(struct answer *answer, const struct command *command,
                             unsigned port, struct rng *rng)
{
    (void)port;
    (void)rng;
    if (lying && strcmp(command->name, lie_about) == 0 && --nhonest < 0)
        answer_put(answer, lie);
    else
        answer_really(answer, command);
}

/* Ends calls that would go on for ever. */
enum { DEADLINE_S = 30 };

static bool is_over(void *context)
{
    const time_t *begin = context;
    return time(NULL) - *begin > DEADLINE_S;
}

static perhaps_cluster *client_at(unsigned port, const char *name, time_t *begin)
{
    char url[64];
    perhaps_cluster *c;
    time(begin);
    snprintf(url, sizeof url, "redis://127.0.0.1:%u/%s", port, name);
    expect_success(
        perhaps_cluster_new(&(struct perhaps_cluster_options){ .url = url,
                                                               .timeout_ms = 1000,
                                                               .patience_ms = PATIENCE_MS,
                                                               .stopped = is_over,
                                                               .context = begin },
                            &c));
    return c;
}

/* The keys of a filter that grows: those that were in when the client of the liar opened it,
 * those that a client of the real server added then, so that there are more layers, and those
 * that the client of the liar adds. */
enum {
    FIRST_KEYS = 4,
    LATER_KEYS = 20,
    OWN_KEYS = 128, /* enough to try the module's commands */
    LIAR_KEYS = FIRST_KEYS + LATER_KEYS + OWN_KEYS
};

struct deception {
    perhaps_cluster *honest, *deceived;
    time_t begin[2];
    uint64_t key[LIAR_KEYS];
    bool is_in[LIAR_KEYS]; /* added by a call that told so */
};

/* Checks the result of a call: success, or an error with a problem; the deadline is neither. */
static void expect_ended(const perhaps_cluster *c, int error)
{
    if (error == PERHAPS_ERR_STOPPED)
        fail_msg("it goes on for ever [%s]", scene_text());
    if (error && strlen(perhaps_cluster_problem(c)) < 10)
        fail_msg("%d: '%s' [%s]", error, perhaps_cluster_problem(c), scene_text());
}

/* Asks for all keys.  None that is in may be denied. */
static int ask_all(struct deception *run, perhaps_cluster *c)
{
    struct perhaps_keys keys = perhaps_keys_packed(run->key, sizeof *run->key, LIAR_KEYS);
    uint8_t answer[LIAR_KEYS];
    int error = perhaps_cluster_contains_many(c, &keys, answer, NULL);
    expect_ended(c, error);
    for (unsigned i = 0; i < LIAR_KEYS; i++) {
        if (run->is_in[i] && answer[i] == PERHAPS_ANSWER_NO)
            fail_msg("key %u is denied, error %d [%s]", i, error, scene_text());
        expect(answer[i] < PERHAPS_ANSWER_UNKNOWN || error);
    }
    return error;
}

/* Adds keys, which are new, and notes those of which it is told that they are in. */
static int add_new(struct deception *run, perhaps_cluster *c, unsigned first, unsigned count)
{
    struct perhaps_keys keys = perhaps_keys_packed(run->key + first, sizeof *run->key, count);
    uint8_t answer[LIAR_KEYS];
    int error = perhaps_cluster_add_many(c, &keys, answer, NULL);
    expect_ended(c, error);
    for (unsigned i = 0; i < count; i++) {
        if (tells_new && answer[i] == PERHAPS_ANSWER_PERHAPS)
            fail_msg("key %u is new, and told to be there [%s]", first + i, scene_text());
        run->is_in[first + i] |= answer[i] != PERHAPS_ANSWER_UNKNOWN;
        expect(answer[i] < PERHAPS_ANSWER_UNKNOWN || error);
    }
    return error;
}

/* Makes a filter with the first keys.  If it grows, it has only one layer yet. */
static void begin_run(struct deception *run, const struct server *server)
{
    struct perhaps_options options = { .capacity = growing ? 8 : 1000,
                                       .fpr = 1e-6,
                                       .needs = growing ? PERHAPS_CAN_GROW : 0,
                                       .hashing = { .seed = 1 } };
    *run = (struct deception){ 0 };
    run->honest = client_at(real_port, "liar", &run->begin[0]);
    run->deceived = client_at(server->port, "liar", &run->begin[1]);
    for (unsigned i = 0; i < LIAR_KEYS; i++)
        run->key[i] = i;
    perhaps_cluster_delete(run->honest); /* what a test left that failed */
    expect_success(perhaps_cluster_create(run->honest, &options, 0));
    expect_success(add_new(run, run->honest, 0, FIRST_KEYS));
}

/* All keys that are in must be found by an honest client, whatever a liar was asked to do. */
static void end_run(struct deception *run)
{
    perhaps_cluster_free(run->deceived);
    expect_success(perhaps_cluster_open(run->honest));
    expect_success(ask_all(run, run->honest));
    expect_success(perhaps_cluster_delete(run->honest));
    perhaps_cluster_free(run->honest);
}

/* Asks and adds; the filter has grown since the deceived client opened it. */
static void ask_and_add(struct deception *run)
{
    perhaps_cluster *c = run->deceived;
    struct perhaps_cluster_stats stats;
    struct perhaps_cluster_verdict verdict;
    ask_all(run, c);
    add_new(run, c, FIRST_KEYS + LATER_KEYS, OWN_KEYS);
    ask_all(run, c);
    expect_ended(c, perhaps_cluster_stats_of(c, &stats));
    expect_ended(c, perhaps_cluster_verify(c, &verdict));
}

/* Makes another filter through the liar, and deletes it.  One that was made must be there. */
static void make_and_delete(const struct server *server)
{
    struct perhaps_options options = { .capacity = 100, .fpr = 1e-3 };
    time_t begin[2];
    perhaps_cluster *deceived = client_at(server->port, "another", &begin[0]);
    perhaps_cluster *honest = client_at(real_port, "another", &begin[1]);
    int error = perhaps_cluster_create(deceived, &options, 2);
    expect_ended(deceived, error);
    if (!error)
        expect_success(perhaps_cluster_open(honest));
    expect_ended(deceived, perhaps_cluster_delete(deceived));
    perhaps_cluster_free(deceived);
    error = perhaps_cluster_delete(honest);
    expect(!error || error == PERHAPS_ERR_MISSING);
    perhaps_cluster_free(honest);
}

/* When a liar lies, and so what is done with it. */
enum when { OPENING = 1, ASKING = 2, MAKING = 4 };

/* Opens, asks and adds.  It lies from the beginning, or only after the filter was opened. */
static void deceive_reader(const struct server *server, bool from_the_beginning)
{
    struct deception trial;
    begin_run(&trial, server);
    lying = from_the_beginning;
    expect_ended(trial.deceived, perhaps_cluster_open(trial.deceived));
    expect_success(add_new(&trial, trial.honest, FIRST_KEYS, LATER_KEYS));
    lying = true;
    ask_and_add(&trial);
    end_run(&trial);
}

static void deceive(unsigned when)
{
    struct server server;
    strange_start(&server, answer_with_lies);
    strange_run(&server);
    if (when & OPENING)
        deceive_reader(&server, true);
    if (when & ASKING)
        deceive_reader(&server, false);
    lying = true;
    if (when & MAKING)
        make_and_delete(&server);
    lying = false;
    strange_stop(&server);
}

/* A command, the type of its answer (the first character; 0: no answer of this list is right),
 * and when it is sent. */
static const struct {
    const char *command;
    char type;
    unsigned when;
} commands[] = {
    { "BITFIELD", '*', ASKING },
    { "EVAL", '*', ASKING | MAKING },
    { "GETRANGE", '$', ASKING },
    { "HEXISTS", ':', ASKING },
    { "HGETALL", '*', OPENING | ASKING | MAKING },
    { "INFO", '$', MAKING },
    { "PERHAPS.SET", 0, ASKING },
    { "PERHAPS.TEST", 0, ASKING },
    { "SETRANGE", ':', ASKING | MAKING },
    { "STRLEN", ':', OPENING | ASKING | MAKING },
    { "UNLINK", ':', ASKING | MAKING },
};

static const char *const answers[] = {
    "$-1\r\n",          "*-1\r\n",
    "+OK\r\n",          ":0\r\n",
    ":1\r\n",           "$0\r\n\r\n",
    "$1\r\n1\r\n",      "*0\r\n",
    "*1\r\n:1\r\n",     "*2\r\n$1\r\n1\r\n$1\r\n1\r\n",
    "-ERR strange\r\n",
};

/* Tells some of the lies, which the seed chooses; all if PERHAPS_TEST_EVERY is set. */
static void deceive_some(size_t i, struct rng *rng)
{
    for (size_t k = 0; k < sizeof answers / sizeof *answers; k++) {
        bool chosen = rng_below(rng, 3) == 0 || every_case();
        if (!chosen || commands[i].type == *answers[k])
            continue;
        lie_about = commands[i].command;
        lie = answers[k];
        scene("%s is answered %s", lie_about, lie);
        deceive(commands[i].when);
    }
}

/* An answer of another type than the command has, to one command after the other. */
TEST(test_types)
{
    struct rng rng = rng_for("liar");
    growing = true;
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        deceive_some(i, &rng);
}

/* Numbers at the ends of what an integer can be, for each of those that a script tells. */
TEST(test_numbers)
{
    enum { NUMBERS = 6 };
    static const char *const numbers[] = {
        "9223372036854775807",
        "9223372036854775800",
        "9223372036854775808",
        "-9223372036854775808",
        "-9223372036854775809",
        "4611686018427387904",
        "-1",
    };
    const size_t n = sizeof numbers / sizeof *numbers;
    struct rng rng = rng_for("numbers");
    char answer[256];
    for (size_t i = 0; i < n * (NUMBERS + 1); i++) {
        if (rng_below(&rng, 4) != 0 && !every_case())
            continue;
        size_t nbytes = (size_t)snprintf(answer, sizeof answer, "*%d\r\n", NUMBERS);
        for (size_t k = 0; k < NUMBERS; k++)
            nbytes +=
                (size_t)snprintf(answer + nbytes, sizeof answer - nbytes, ":%s\r\n",
                                 k == i / n || (k && i / n == NUMBERS) ? numbers[i % n] : "0");
        growing = i % 2;
        lie_about = "EVAL";
        lie = answer;
        scene("%s is answered %s, grows: %d", lie_about, lie, growing);
        deceive(ASKING);
    }
}

/* There seems to be a newer layer, however often the description is read. */
TEST(test_says_there_is_a_newer_layer)
{
    lie_about = "HEXISTS";
    lie = ":1\r\n";
    tells_new = true;
    for (int i = 0; i < 2; i++) {
        growing = i;
        scene("%s is answered %s, grows: %d", lie_about, lie, i);
        deceive(ASKING);
    }
    tells_new = false;
}

static void answer_for_ever(struct answer *answer, const struct command *command, unsigned port,
                            struct rng *rng)
{
    (void)command, (void)port, (void)rng;
    answer_put(answer, "*2\r\n$1000000\r\n");
}

/* A server that sends a byte now and then is never silent for the timeout.  The deadline ends
 * the call all the same. */
TEST(test_drips)
{
    struct server server;
    char url[80];
    perhaps_cluster *c;
    strange_start(&server, answer_for_ever);
    server.flood = "x";
    server.drips = true;
    strange_run(&server);
    snprintf(url, sizeof url, "redis://127.0.0.1:%u/f?deadline=200ms", server.port);
    expect_success(perhaps_cluster_new(&(struct perhaps_cluster_options){ .url = url }, &c));
    expect_error(perhaps_cluster_open(c), PERHAPS_ERR_DEADLINE);
    expect(strstr(perhaps_cluster_problem(c), "200 ms"));
    perhaps_cluster_free(c);
    strange_stop(&server);
}

/* A filter that is not made before the deadline is removed all the same. */
TEST(test_deadline_of_create)
{
    struct perhaps_options options = { .capacity = 1000, .fpr = 1e-3 };
    struct server server;
    time_t begin[2];
    lie_about = "SETRANGE";
    lie = "";    /* it never answers */
    nhonest = 1; /* whether the user may do it is tried before anything is made */
    strange_start(&server, answer_with_lies);
    strange_run(&server);
    perhaps_cluster *honest = client_at(real_port, "late", &begin[0]);
    perhaps_cluster *deceived =
        client_at(server.port, "late?deadline=300ms&timeout=20s", &begin[1]);
    lying = true;
    expect_error(perhaps_cluster_create(deceived, &options, 2), PERHAPS_ERR_DEADLINE);
    lying = false;
    expect_error(perhaps_cluster_open(honest), PERHAPS_ERR_MISSING);
    perhaps_cluster_free(deceived);
    perhaps_cluster_free(honest);
    strange_stop(&server);
}

int main(int argc, char **argv)
{
    struct sockaddr_in address = { .sin_family = AF_INET,
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    real_port = argc == 2 ? (unsigned)strtoul(argv[1], NULL, 10) : 0;
    address.sin_port = htons((uint16_t)real_port);
    real = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(real, (struct sockaddr *)&address, sizeof address)) {
        perror("cluster_liars_test: the real server");
        return 2;
    }
    return run_all_tests();
}
