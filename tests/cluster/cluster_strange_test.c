/* cluster_strange_test.c - proves that a server which answers nonsense, hangs up, stays silent
 * or never ends its answer makes the client return an error with one printable line about it,
 * within its patience.  The test fails when the client crashes, hangs, or believes that there
 * is a filter. */
#include "support.h"

#include <stdio.h>
#include <string.h>

#include "perhaps_cluster.h"
#include "strange_server.h"

enum { PATIENCE_MS = 40 };

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
    strange_run(server);
    int error = perhaps_cluster_open(c);
    expect_refused(c, error);
    perhaps_cluster_free(c);
    strange_stop(server);
    return error;
}

/* Runs the server and a client; open, create and delete must all fail. */
static void expect_all_fail(struct server *server, unsigned timeout_ms)
{
    struct perhaps_options options = { .capacity = 1000, .fpr = 0.01 };
    perhaps_cluster *c = client_of(server, timeout_ms);
    strange_run(server);
    expect_refused(c, perhaps_cluster_open(c));
    expect_refused(c, perhaps_cluster_create(c, &options, 0));
    expect_refused(c, perhaps_cluster_delete(c));
    perhaps_cluster_free(c);
    strange_stop(server);
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
    answer_put(answer, text);
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
        strange_start(&server, answer_always);
        always = strange[i];
        expect_all_fail(&server, 20);
    }
}

TEST(test_hangs_up)
{
    for (size_t i = 0; i < sizeof strange / sizeof *strange; i++) {
        struct server server;
        scene("hangs up: %.40s", strange[i]);
        strange_start(&server, answer_always);
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
    strange_start(&server, answer_always);
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
    strange_start(&server, answer_nothing);
    expect_error(expect_not_opened(&server, 50), PERHAPS_ERR_UNREACHABLE);
}

/* ---- Another protocol -------------------------------------------------------------------- */

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
        strange_start(&server, answer_nothing);
        server.greeting = others[i].greeting;
        scheme = others[i].scheme;
        perhaps_cluster *c = client_of(&server, 20000);
        strange_run(&server);
        expect_error(perhaps_cluster_open(c), PERHAPS_ERR_UNREACHABLE);
        scene("%s", perhaps_cluster_problem(c));
        expect(strstr(perhaps_cluster_problem(c), others[i].about));
        perhaps_cluster_free(c);
        strange_stop(&server);
    }
    scheme = "redis";
}

/* ---- A password -------------------------------------------------------------------------- */

/* What a caller's function for passwords says, and how often it was asked. */
struct login {
    bool known;
    unsigned calls;
};

static bool log_in(void *context, char *user, size_t user_size, char *password,
                   size_t password_size)
{
    struct login *login = context;
    snprintf(user, user_size, "me");
    snprintf(password, password_size, "secret%u", ++login->calls);
    return login->known;
}

/* Wants a password, and takes none. */
static void answer_wrongpass(struct answer *answer, const struct command *command,
                             unsigned port, struct rng *rng)
{
    (void)port;
    (void)rng;
    answer_put(answer, strcmp(command->name, "AUTH")
                           ? "-NOAUTH Authentication required.\r\n"
                           : "-WRONGPASS invalid username-password pair\r\n");
}

/* The function is asked for each connection.  What it says is sent, and never told. */
TEST(test_login)
{
    static const struct {
        bool known;
        int error;
        const char *about;
    } cases[] = {
        { true, PERHAPS_ERR_REFUSED, "WRONGPASS" },
        { false, PERHAPS_ERR_UNREACHABLE, "there is no password for it now" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct server server;
        struct login login = { .known = cases[i].known };
        char url[64];
        perhaps_cluster *c;
        strange_start(&server, answer_wrongpass);
        snprintf(url, sizeof url, "redis://127.0.0.1:%u/f", server.port);
        expect_success(perhaps_cluster_new(
            &(struct perhaps_cluster_options){
                .url = url, .login = log_in, .context = &login, .patience_ms = PATIENCE_MS },
            &c));
        strange_run(&server);
        for (unsigned k = 1; k <= 2; k++) {
            expect_error(perhaps_cluster_open(c), cases[i].error);
            scene("%s", perhaps_cluster_problem(c));
            expect(strstr(perhaps_cluster_problem(c), cases[i].about));
            expect(!strstr(perhaps_cluster_problem(c), "secret"));
            expect(login.calls >= 1 && (!login.known || login.calls == k));
        }
        perhaps_cluster_free(c);
        strange_stop(&server);
    }
}

/* ---- Too much ---------------------------------------------------------------------------- */

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
        strange_start(&server, answer_always);
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
        answer_put(answer, "-ERR This instance has cluster support disabled\r\n");
        return;
    }
    for (uint64_t n = 1 + rng_below(rng, 20); n > 0; n--)
        answer_put(answer, pieces[rng_below(rng, sizeof pieces / sizeof *pieces)]);
}

/* Random pieces as answers: the client must return an error every time. */
TEST(test_anything)
{
    struct rng rng = rng_for("anything");
    for (unsigned round = 0; round < many(200); round++) {
        struct server server;
        scene("round %u", round);
        strange_start(&server, answer_anything);
        server.rng.state = rng_next(&rng);
        server.hangs_up = rng_below(&rng, 2);
        expect_not_opened(&server, 20);
    }
}
