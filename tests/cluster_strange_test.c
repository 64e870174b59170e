/* cluster_strange_test.c - proves that a server which answers nonsense, hangs up, stays silent
 * or never ends its answer makes the client return an error with one printable line about it,
 * within its patience.  The server runs in a thread of this test.  The test fails when the
 * client crashes, hangs, or believes that there is a filter.
 *
 *     cluster_strange_test         servers that only answer nonsense
 *     cluster_strange_test PORT    servers that ask the empty server of that port, and lie about
 *                                  one command: no key that is in may be denied */
#include "support.h"

#include <arpa/inet.h>
#include <hiredis.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "perhaps_cluster.h"

/* ---- A server that answers as it was told ------------------------------------------------ */

enum { ANSWER_NBYTES = 1 << 16, CONNECTIONS_MOST = 64, PATIENCE_MS = 40 };

struct answer {
    char bytes[ANSWER_NBYTES];
    size_t nbytes;
};

/* A command as it was received. */
struct command {
    const char *bytes;
    size_t nbytes;
    char name[32]; /* in capitals */
};

/* Writes the answer to a command. */
typedef void answer_function(struct answer *answer, const struct command *command,
                             unsigned port, struct rng *rng);

struct server {
    int listening;
    unsigned port;
    pthread_t thread;
    answer_function *answering;
    bool hangs_up, dribbles; /* ends a connection after each answer; sends byte by byte */
    const char *greeting;    /* is sent as soon as a client is there; NULL: nothing is */
    const char *flood;       /* is sent again and again after an answer; NULL: nothing is */
    size_t flooded_nbytes;   /* how much of that was sent */
    struct rng rng;
};

static void put(struct answer *answer, const char *text)
{
    size_t n = strlen(text);
    memcpy(answer->bytes + answer->nbytes, text, n);
    answer->nbytes += n;
}

/* Looks for a whole command, such as "*1\r\n$4\r\nPING\r\n", at the beginning of what was
 * received, and writes its name in capitals.  Returns its number of bytes; 0: not whole yet. */
static size_t command_nbytes(const char *bytes, size_t nbytes, struct command *command)
{
    const char *at = bytes, *end = bytes + nbytes;
    long nargs = 0, arg_nbytes;
    char *after;
    if (nbytes < 4 || *at != '*')
        return 0;
    nargs = strtol(at + 1, &after, 10);
    at = after + 2;
    for (long i = 0; i < nargs; i++) {
        if (at + 4 >= end || !memchr(at, '\n', (size_t)(end - at)))
            return 0;
        arg_nbytes = strtol(at + 1, &after, 10);
        at = after + 2;
        if (at + arg_nbytes + 2 > end)
            return 0;
        if (i == 0) {
            snprintf(command->name, sizeof command->name, "%.*s",
                     (int)(arg_nbytes < 31 ? arg_nbytes : 31), at);
            for (char *c = command->name; *c; c++)
                *c = (char)(*c >= 'a' && *c <= 'z' ? *c - 32 : *c);
        }
        at += arg_nbytes + 2;
    }
    command->bytes = bytes;
    return command->nbytes = (size_t)(at - bytes);
}

/* Returns false if the connection is to end. */
static bool send_answer(const struct server *server, int connection,
                        const struct answer *answer)
{
    size_t step = server->dribbles ? 1 : answer->nbytes;
    for (size_t sent = 0; sent < answer->nbytes; sent += step)
        if (send(connection, answer->bytes + sent, step, MSG_NOSIGNAL) != (ssize_t)step)
            return false;
    return !server->hangs_up;
}

/* Sends more than any memory takes, until the client hangs up. */
static bool flood(struct server *server, int connection)
{
    static char bytes[1 << 16];
    size_t nbytes = server->flood ? strlen(server->flood) : 0, total = 0;
    if (!nbytes)
        return true;
    while (total + nbytes <= sizeof bytes) {
        memcpy(bytes + total, server->flood, nbytes);
        total += nbytes;
    }
    for (ssize_t sent; (sent = send(connection, bytes, total, MSG_NOSIGNAL)) > 0;)
        server->flooded_nbytes += (size_t)sent;
    return false;
}

/* Answers commands of one connection until the client or the server ends it. */
static void serve(struct server *server, int connection)
{
    static char received[1 << 20];
    static struct answer answer;
    size_t have = 0, took;
    struct command command;
    if (server->greeting)
        send(connection, server->greeting, strlen(server->greeting), MSG_NOSIGNAL);
    for (;;) {
        ssize_t got = recv(connection, received + have, sizeof received - have, 0);
        if (got <= 0)
            return;
        have += (size_t)got;
        while ((took = command_nbytes(received, have, &command))) {
            answer.nbytes = 0;
            server->answering(&answer, &command, server->port, &server->rng);
            memmove(received, received + took, have -= took);
            if (!send_answer(server, connection, &answer) || !flood(server, connection))
                return;
        }
    }
}

static void *serve_all(void *context)
{
    struct server *server = context;
    int connection;
    while ((connection = accept(server->listening, NULL, NULL)) >= 0) {
        serve(server, connection);
        close(connection);
    }
    return NULL;
}

static void start(struct server *server, answer_function *answering)
{
    struct sockaddr_in address = { .sin_family = AF_INET,
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t nbytes = sizeof address;
    *server = (struct server){ .answering = answering, .rng = rng_for("server") };
    server->listening = socket(AF_INET, SOCK_STREAM, 0);
    expect(server->listening >= 0);
    expect(!bind(server->listening, (struct sockaddr *)&address, nbytes));
    expect(!listen(server->listening, CONNECTIONS_MOST));
    expect(!getsockname(server->listening, (struct sockaddr *)&address, &nbytes));
    server->port = ntohs(address.sin_port);
}

static void run(struct server *server)
{
    expect(!pthread_create(&server->thread, NULL, serve_all, server));
}

static void stop(struct server *server)
{
    shutdown(server->listening, SHUT_RDWR);
    pthread_join(server->thread, NULL);
    close(server->listening);
}

/* ---- Clients ----------------------------------------------------------------------------- */

static const char *scheme = "redis";

static struct perhaps_cluster *client_of(const struct server *server, unsigned timeout_ms)
{
    char url[64];
    perhaps_cluster *c;
    snprintf(url, sizeof url, "%s://127.0.0.1:%u/f", scheme, server->port);
    expect_success(perhaps_cluster_new(
        &(struct perhaps_cluster_options){
            .url = url, .timeout_ms = timeout_ms, .patience_ms = PATIENCE_MS },
        &c));
    return c;
}

/* Checks that this is an error and has one line of printable text. */
static void expect_refused(perhaps_cluster *c, int error)
{
    const char *problem = perhaps_cluster_problem(c);
    bool printable = true;
    for (const char *at = problem; *at; at++)
        printable &= (unsigned char)*at >= ' ' && *at != 127;
    if (error >= 0 || !printable || strlen(problem) < 10)
        fail_msg("%d: '%s' [%s]", error, problem, scene_text());
}

/* Runs the server and a client, which must not find a filter there.  Returns its error. */
static int expect_not_opened(struct server *server, unsigned timeout_ms)
{
    perhaps_cluster *c = client_of(server, timeout_ms);
    run(server);
    int error = perhaps_cluster_open(c);
    expect_refused(c, error);
    perhaps_cluster_free(c);
    stop(server);
    return error;
}

/* Runs the server and a client; open, create and delete must all fail. */
static void expect_all_fail(struct server *server, unsigned timeout_ms)
{
    struct perhaps_options options = { .capacity = 1000, .fpr = 0.01 };
    perhaps_cluster *c = client_of(server, timeout_ms);
    run(server);
    expect_refused(c, perhaps_cluster_open(c));
    expect_refused(c, perhaps_cluster_create(c, &options, 0));
    expect_refused(c, perhaps_cluster_delete(c));
    perhaps_cluster_free(c);
    stop(server);
}

/* ---- To every command the same ----------------------------------------------------------- */

static const char *always;

static void answer_always(struct answer *answer, const struct command *command, unsigned port,
                          struct rng *rng)
{
    char text[256];
    (void)command;
    (void)rng;
    snprintf(text, sizeof text, always, port); // NOLINT: a format of the list below
    put(answer, text);
}

static const char *const strange[] = {
    "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n",
    "SSH-2.0-OpenSSH_9.2\r\n",
    "\r\n\r\n\r\n",
    "+OK\r\n",
    "+QUEUED\r\n",
    ":12\r\n",
    ":99999999999999999999999999\r\n",
    "$-1\r\n",
    "$-7\r\n",
    "$5\r\nhello\r\n",
    "$999999999999999\r\n",
    "*-1\r\n",
    "*-5\r\n",
    "*0\r\n",
    "*2147483647\r\n",
    "*1000000000000\r\n",
    "*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n:1\r\n",
    "*1\r\n*3\r\n:-1\r\n:16383\r\n*2\r\n$9\r\n127.0.0.1\r\n:%u\r\n",
    "*1\r\n*3\r\n:0\r\n:16384\r\n*2\r\n$9\r\n127.0.0.1\r\n:%u\r\n",
    "*1\r\n*3\r\n:9\r\n:8\r\n*2\r\n$9\r\n127.0.0.1\r\n:%u\r\n",
    "*1\r\n*3\r\n:0\r\n:16383\r\n*2\r\n$9\r\n127.0.0.1\r\n:0\r\n",
    "*1\r\n*3\r\n:0\r\n:16383\r\n*2\r\n$9\r\n127.0.0.1\r\n:70000\r\n",
    "*1\r\n*3\r\n:0\r\n:16383\r\n*2\r\n$3\r\na\nb\r\n:7000\r\n",
    "*1\r\n*2\r\n:0\r\n:16383\r\n",
    "*1\r\n:0\r\n",
    /* right, for CLUSTER SLOTS */
    "*1\r\n*3\r\n:0\r\n:16383\r\n*2\r\n$9\r\n127.0.0.1\r\n:%u\r\n",
    "-ERR no\r\n",
    "-\r\n",
    "-LOADING Redis is loading the dataset in memory\r\n",
    "-CLUSTERDOWN The cluster is down\r\n",
    "-TRYAGAIN Multiple keys request during rehashing of slot\r\n",
    "-MOVED 3 127.0.0.1:%u\r\n",
    "-MOVED 16384 127.0.0.1:%u\r\n",
    "-MOVED 3\r\n",
    "-MOVED x y\r\n",
    "-MOVED 3 127.0.0.1:1\r\n",
    "-ASK 3 127.0.0.1:%u\r\n",
    "-ASK 3 127.0.0.1:99999\r\n",
    "-NOAUTH Authentication required.\r\n",
    "-ERR This instance has cluster support disabled\r\n",
    "-OOM command not allowed when used memory > 'maxmemory'.\r\n",
    "-READONLY You can't write against a read only replica.\r\n",
    "-ERR \x1b[2J\x07 control characters\r\n",
};

/* Each of these answers comes to every command. */
TEST(test_same_to_all)
{
    for (size_t i = 0; i < sizeof strange / sizeof *strange; i++) {
        struct server server;
        scene("%.40s", strange[i]);
        start(&server, answer_always);
        always = strange[i];
        expect_all_fail(&server, 20);
    }
}

TEST(test_hangs_up)
{
    for (size_t i = 0; i < sizeof strange / sizeof *strange; i++) {
        struct server server;
        scene("hangs up: %.40s", strange[i]);
        start(&server, answer_always);
        server.hangs_up = true;
        always = strange[i];
        expect_not_opened(&server, 20);
    }
}

/* A server that sends one byte at a time: it is never silent for the timeout, but the patience
 * ends all the same. */
TEST(test_dribbles)
{
    struct server server;
    scene("a byte at a time");
    start(&server, answer_always);
    server.dribbles = true;
    always = "-LOADING Redis is loading the dataset in memory\r\n";
    expect_all_fail(&server, 20);
}

static void answer_nothing(struct answer *answer, const struct command *command, unsigned port,
                           struct rng *rng)
{
    (void)answer;
    (void)command;
    (void)port;
    (void)rng;
}

TEST(test_says_nothing)
{
    struct server server;
    scene("says nothing");
    start(&server, answer_nothing);
    expect_error(expect_not_opened(&server, 50), PERHAPS_ERR_UNREACHABLE);
}

/* ---- Another protocol ---------------------------------------------------------------------- */

/* Servers that speak first, or answer in the language of TLS, are told from others at once. */
TEST(test_other_protocols)
{
    static const struct {
        const char *scheme, *greeting, *about;
    } others[] = {
        { "redis", "\x15\x03\x01", "it speaks TLS: write rediss://" },
        { "redis", "SSH-2.0-OpenSSH_9.2\r\n", "does not speak Redis's protocol" },
        { "rediss", "-ERR Protocol error: unbalanced quotes in request\r\n",
          "does not speak TLS: write redis://" },
        { "rediss", "HTTP/1.1 400 Bad Request\r\n\r\n", "does not speak TLS: write redis://" },
    };
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        struct server server;
        start(&server, answer_nothing);
        server.greeting = others[i].greeting;
        scheme = others[i].scheme;
        perhaps_cluster *c = client_of(&server, 20000);
        run(&server);
        expect_error(perhaps_cluster_open(c), PERHAPS_ERR_UNREACHABLE);
        scene("%s", perhaps_cluster_problem(c));
        expect(strstr(perhaps_cluster_problem(c), others[i].about));
        perhaps_cluster_free(c);
        stop(&server);
    }
    scheme = "redis";
}

/* ---- Too much ------------------------------------------------------------------------------ */

/* Answers that never end are cut off: at 17 MiB, or as soon as they announce too many elements.
 * The client may have received a few MiB more, which the sockets hold. */
TEST(test_floods)
{
    static const char *const floods[][2] = {
        { "$2000000000\r\n", "x" },        { "+", "x" },
        { "*1000000\r\n", "$1\r\nx\r\n" }, { "*100000\r\n", "*1048570\r\n" },
        { "*1048577\r\n", ":1\r\n" },
    };
    for (size_t i = 0; i < sizeof floods / sizeof *floods; i++) {
        struct server server;
        start(&server, answer_always);
        always = floods[i][0];
        server.flood = floods[i][1];
        expect_not_opened(&server, 20000);
        scene("%s: %zu bytes", floods[i][0], server.flooded_nbytes);
        expect(server.flooded_nbytes < 48U << 20);
    }
}

/* ---- Anything ---------------------------------------------------------------------------- */

/* Pieces of real answers, so that some of the nonsense is refused only after its first
 * bytes. */
static const char *const pieces[] = {
    "*",  "*1\r\n", "*2\r\n", "*3\r\n",  "*16\r\n", "*0\r\n", ":0\r\n",     ":1\r\n",
    ":8", "\r\n",   "$2\r\n", "$12\r\n", "id\r\n",  "-",      "+OK\r\n",    "-ERR ",
    "1",  "-MOVED", "-ASK ",  "$-1\r\n", "\n",      "\r",     "$0\r\n\r\n", ":16383\r\n",
};

static void answer_anything(struct answer *answer, const struct command *command, unsigned port,
                            struct rng *rng)
{
    (void)port;
    if (!strcmp(command->name, "CLUSTER") && rng_below(rng, 4)) {
        put(answer, "-ERR This instance has cluster support disabled\r\n");
        return;
    }
    for (uint64_t n = 1 + rng_below(rng, 20); n > 0; n--)
        put(answer, pieces[rng_below(rng, sizeof pieces / sizeof *pieces)]);
}

/* Random pieces as answers: the client must return an error every time. */
TEST(test_anything)
{
    struct rng rng = rng_for("anything");
    for (unsigned round = 0; round < many(200); round++) {
        struct server server;
        scene("round %u", round);
        start(&server, answer_anything);
        server.rng.state = rng_next(&rng);
        server.hangs_up = rng_below(&rng, 2);
        expect_not_opened(&server, 20);
    }
}

/* ---- Liars ------------------------------------------------------------------------------- */

/* A liar hands commands on to a real server, and its answers back, but for the commands of one
 * name: these are never done, and always get the same answer. */
static unsigned real_port; /* 0: there is no real server */
static int real;           /* the connection to it */
static const char *lie_about, *lie;
static bool growing; /* the filter that is asked is one that grows */
static atomic_bool lying;

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
    if (lying && strcmp(command->name, lie_about) == 0)
        put(answer, lie);
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
    OWN_KEYS = 8,
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
    start(&server, answer_with_lies);
    run(&server);
    if (when & OPENING)
        deceive_reader(&server, true);
    if (when & ASKING)
        deceive_reader(&server, false);
    lying = true;
    if (when & MAKING)
        make_and_delete(&server);
    lying = false;
    stop(&server);
}

/* A command, the type of its answer (the first character), and when it is sent. */
static const struct {
    const char *command;
    char type;
    unsigned when;
} commands[] = {
    { "BITFIELD", '*', ASKING },
    { "GETRANGE", '$', ASKING },
    { "HEXISTS", ':', ASKING },
    { "HGET", '$', ASKING },
    { "HGETALL", '*', OPENING | ASKING | MAKING },
    { "HINCRBY", ':', ASKING },
    { "HSET", ':', ASKING | MAKING },
    { "HSETNX", ':', ASKING },
    { "INFO", '$', MAKING },
    { "RENAMENX", ':', MAKING },
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

static void skip_without_server(void)
{
    struct sockaddr_in address = { .sin_family = AF_INET,
                                   .sin_port = htons((uint16_t)real_port),
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    if (!real_port)
        skip();
    if (real)
        return;
    real = socket(AF_INET, SOCK_STREAM, 0);
    expect(!connect(real, (struct sockaddr *)&address, sizeof address));
}

/* Tells some of the lies, which the seed chooses; all if PERHAPS_TEST_EVERY is set. */
static void deceive_some(size_t i, struct rng *rng)
{
    for (size_t k = 0; k < sizeof answers / sizeof *answers; k++) {
        bool chosen = rng_below(rng, 3) == 0 || getenv("PERHAPS_TEST_EVERY");
        if (!chosen || commands[i].type == *answers[k])
            continue;
        lie_about = commands[i].command;
        lie = answers[k];
        scene("%s is answered %s", lie_about, lie);
        deceive(commands[i].when);
    }
}

/* An answer of another type than the command has, to one command after the other. */
TEST(test_liar_types)
{
    struct rng rng = rng_for("liar");
    skip_without_server();
    growing = true;
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        deceive_some(i, &rng);
}

/* Numbers at the ends of what an integer can be. */
TEST(test_liar_numbers)
{
    static const char *const numbers[] = {
        ":9223372036854775807\r\n",
        ":9223372036854775800\r\n",
        ":9223372036854775808\r\n",
        ":-9223372036854775809\r\n",
        ":-1\r\n",
    };
    skip_without_server();
    growing = false;
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        lie_about = "HINCRBY";
        lie = numbers[i];
        scene("%s is answered %s", lie_about, lie);
        deceive(ASKING);
    }
}

/* There seems to be a newer layer, however often the description is read. */
TEST(test_liar_says_there_is_a_newer_layer)
{
    skip_without_server();
    lie_about = "HEXISTS";
    lie = ":1\r\n";
    for (int i = 0; i < 2; i++) {
        growing = i;
        scene("%s is answered %s, grows: %d", lie_about, lie, i);
        deceive(ASKING);
    }
}

int main(int argc, char **argv)
{
    real_port = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 0;
    return run_all_tests();
}
