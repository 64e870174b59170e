/* cluster_gone_test.c - proves that no key that is in is denied, whatever a filter's partition
 * comes to while a client asks, and whenever.
 *
 *     client -- commands --> go-between -- commands --> server
 *                                 '------ steps ----->
 *
 * Between the commands of the client a go-between does the steps of somebody else: a partition
 * goes, comes back too short (as an add of a client that did not know makes it), and goes
 * again. Each order of the steps and the client's commands is tried with each way to go and
 * each way to ask.
 *
 *     cluster_gone_test PORT    the server's, which is empty */
#include <arpa/inet.h>
#include <hiredis.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "async_support.h"
#include "strange_server.h"
#include <perhaps_fast.h>

enum { KEYS = 6, STEPS = 3, COMMANDS_MOST = 14 };

static unsigned real_port;
static redisContext *passing; /* hands commands on */
static redisContext *other;   /* does the steps */
static char partition[100];

/* ---- The go-between ---------------------------------------------------------------------- */

/* A step is done before the command with this number, counted from when it was armed. */
static const char *step[STEPS];
static unsigned step_at[STEPS];
static atomic_uint ncommands;
static atomic_bool armed;

/* Of the commands of this name, from 'break_from' on, the connection of so many breaks: before
 * the server has got them, or after it has done them. */
static const char *break_at;
static unsigned break_from, nbreaks;
static bool breaks_before;
static struct server *between;

/* Is done once, before the next BITFIELD is handed on. */
static void (*meanwhile)(void);

/* Returns whether the connection breaks at this command. */
static bool breaks(const struct command *command)
{
    if (!break_at || strcmp(command->name, break_at) != 0)
        return false;
    if (break_from)
        break_from--;
    else if (nbreaks)
        return nbreaks--, true;
    return false;
}

static struct perhaps_keys numbers(size_t count)
{
    return make_keys(SEQUENTIAL_KEYS, 1, 0, count);
}

static void do_steps(unsigned number)
{
    for (unsigned i = 0; i < STEPS; i++)
        if (step[i] && step_at[i] == number)
            freeReplyObject(redisCommand(other, step[i], partition));
}

static void pass_on(struct answer *answer, const struct command *command, unsigned port,
                    struct rng *rng)
{
    redisReader *reader = redisReaderCreate();
    void *reply = NULL;
    (void)port, (void)rng;
    if (armed)
        do_steps(ncommands++);
    if (meanwhile && strcmp(command->name, "BITFIELD") == 0) {
        void (*todo)(void) = meanwhile;
        meanwhile = NULL;
        todo();
    }
    bool broken = breaks(command);
    between->hangs_up = broken;
    if (broken && breaks_before) {
        redisReaderFree(reader);
        return;
    }
    expect(send(passing->fd, command->bytes, command->nbytes, MSG_NOSIGNAL) ==
           (ssize_t)command->nbytes);
    while (!reply) {
        char *to = answer->bytes + answer->nbytes;
        ssize_t got = recv(passing->fd, to, sizeof answer->bytes - answer->nbytes, 0);
        expect(got > 0 && redisReaderFeed(reader, to, (size_t)got) == REDIS_OK);
        expect(redisReaderGetReply(reader, &reply) == REDIS_OK);
        answer->nbytes += (size_t)got;
    }
    freeReplyObject(reply);
    redisReaderFree(reader);
    answer->nbytes = broken ? 0 : answer->nbytes;
}

/* ---- Ways to go, and ways to ask --------------------------------------------------------- */

/* %s is the partition.  Only the first step is always there. */
static const struct {
    const char *name, *step[STEPS];
} ways[] = {
    { "deleted", { "DEL %s" } },
    { "deleted, made by SETBIT", { "DEL %s", "SETBIT %s 70000 1" } },
    { "deleted, made by BITFIELD", { "UNLINK %s", "BITFIELD %s SET u1 9000 1 SET u1 9 1" } },
    { "deleted, made, deleted", { "DEL %s", "BITFIELD %s SET u1 70000 1", "UNLINK %s" } },
    { "deleted, made by SETRANGE", { "DEL %s", "SETRANGE %s 500 xxxxxxxx" } },
    { "renamed, made", { "RENAME %s away", "SETBIT %s 70000 1" } },
    { "expired, made", { "PEXPIRE %s 0", "SETBIT %s 70000 1" } },
    { "emptied", { "SET %s short" } },
    { "flushed", { "FLUSHALL" } },
    { "flushed, made", { "FLUSHALL", "SETBIT %s 70000 1" } },
};

/* A client that has the filter open. */
struct client {
    perhaps_cluster *handle;
    perhaps_cluster_pool *pool;
    perhaps_cluster_async *async;
};

struct outcome {
    int error;
    uint8_t answer[KEYS];
};

static struct perhaps_keys all_keys(void)
{
    static const uint64_t number[KEYS] = { 1, 2, 3, 4, 5, 6 };
    return perhaps_keys_packed(number, sizeof *number, KEYS);
}

static void ask_each(struct client *client, struct outcome *told)
{
    struct perhaps_keys keys = all_keys();
    for (size_t i = 0; i < KEYS; i++) {
        struct perhaps_key key = perhaps_keys_at(&keys, i);
        int answer = perhaps_cluster_contains(client->handle, key.bytes, key.nbytes);
        told->error = answer < 0 ? answer : told->error;
        told->answer[i] = answer < 0 ? PERHAPS_ANSWER_UNKNOWN : (uint8_t)answer;
    }
}

static void ask_many(struct client *client, struct outcome *told)
{
    struct perhaps_keys keys = all_keys();
    told->error = perhaps_cluster_contains_many(client->handle, &keys, told->answer, NULL);
}

static void ask_pool(struct client *client, struct outcome *told)
{
    struct perhaps_keys keys = all_keys();
    perhaps_cluster *handle;
    memset(told->answer, PERHAPS_ANSWER_UNKNOWN, KEYS);
    told->error = perhaps_cluster_pool_take(client->pool, &handle);
    if (told->error) {
        perhaps_cluster_free(handle);
        return;
    }
    told->error = perhaps_cluster_contains_many(handle, &keys, told->answer, NULL);
    perhaps_cluster_pool_give(client->pool, handle, told->error);
}

/* An add answers "no" for a key that is in only if the key was lost. */
static void add_many(struct client *client, struct outcome *told)
{
    struct perhaps_keys keys = all_keys();
    told->error = perhaps_cluster_add_many(client->handle, &keys, told->answer, NULL);
}

static void note_outcome(void *context, const struct perhaps_cluster_result *result)
{
    struct outcome *told = context;
    told->error = result->error;
    memcpy(told->answer, result->answers, KEYS);
}

static void ask_async(struct client *client, struct outcome *told)
{
    struct perhaps_keys keys = all_keys();
    uint64_t id;
    expect_success(
        perhaps_cluster_async_contains(client->async, &keys, 0, note_outcome, told, &id));
    loop_until_all_ended(client->async);
}

static const struct {
    const char *name;
    void (*ask)(struct client *client, struct outcome *told);
} faces[] = {
    { "contains", ask_each }, { "contains_many", ask_many }, { "add_many", add_many },
    { "pool", ask_pool },     { "async", ask_async },
};

static const struct perhaps_cluster_options plainly = { .url = NULL };

/* ---- One order --------------------------------------------------------------------------- */

enum { FACES = sizeof faces / sizeof *faces, WAYS = sizeof ways / sizeof *ways };

static void find_partition(void)
{
    redisReply *reply = redisCommand(other, "HGET perhaps:{gone} id");
    expect(reply && reply->type == REDIS_REPLY_STRING);
    snprintf(partition, sizeof partition, "perhaps:{gone/0}:%s", reply->str);
    freeReplyObject(reply);
}

/* Makes the filter anew by a client of the server, or of the go-between.  'how': what its
 * options have besides the address. */
static perhaps_cluster *made(unsigned port, const struct perhaps_options *options,
                             unsigned partitions, struct perhaps_cluster_options how)
{
    struct url url = url_of(port, "gone");
    perhaps_cluster *c;
    how.url = url.text;
    freeReplyObject(redisCommand(other, "FLUSHALL"));
    expect_success(perhaps_cluster_new(&how, &c));
    expect_success(perhaps_cluster_create(c, options, partitions));
    return c;
}

static void begin_filter(void)
{
    struct perhaps_options options = { .capacity = 2000, .fpr = 1e-9 };
    struct perhaps_keys keys = all_keys();
    scoped_cluster *c = made(real_port, &options, 1, plainly);
    expect_success(perhaps_cluster_add_many(c, &keys, NULL, NULL));
    find_partition();
}

static void go_between(struct server *server)
{
    strange_start(server, pass_on);
    between = server;
    strange_run(server);
}

static void begin_client(struct client *client, unsigned face, const struct server *server)
{
    struct url url = url_of(server->port, "gone");
    struct perhaps_cluster_options options = { .url = url.text, .patience_ms = 100 };
    *client = (struct client){ 0 };
    if (faces[face].ask == ask_pool) {
        expect_success(perhaps_cluster_pool_new(&options, 1, &client->pool));
    } else if (faces[face].ask == ask_async) {
        client->async = client_of(url);
    } else {
        expect_success(perhaps_cluster_new(&options, &client->handle));
        expect_success(perhaps_cluster_open(client->handle));
    }
}

static void end_client(struct client *client)
{
    perhaps_cluster_free(client->handle);
    perhaps_cluster_pool_free(client->pool);
    perhaps_cluster_async_free(client->async);
}

/* Asks, and expects that nothing is denied.  Returns the error. */
static int question(struct client *client, unsigned face, const char *when)
{
    struct outcome told = { 0 };
    faces[face].ask(client, &told);
    for (unsigned i = 0; i < KEYS; i++) {
        if (told.answer[i] == PERHAPS_ANSWER_NO)
            fail_msg("key %u is denied %s, error %d [%s]", i, when, told.error, scene_text());
        if (told.answer[i] == PERHAPS_ANSWER_UNKNOWN && !told.error)
            fail_msg("key %u is unknown %s, without an error [%s]", i, when, scene_text());
    }
    return told.error;
}

/* The steps are done before these commands of the first question; those that it does not have,
 * after it. */
static void try_order(unsigned way, unsigned face, const unsigned at[STEPS])
{
    struct server server;
    struct client client;
    scene("%s; %s; steps before commands %u, %u, %u", ways[way].name, faces[face].name, at[0],
          at[1], at[2]);
    begin_filter();
    go_between(&server);
    begin_client(&client, face, &server);
    expect_success(question(&client, face, "before"));
    memcpy(step, ways[way].step, sizeof step);
    memcpy(step_at, at, sizeof step_at);
    ncommands = 0;
    armed = true;
    question(&client, face, "meanwhile");
    armed = false;
    for (unsigned n = ncommands; n <= COMMANDS_MOST; n++)
        do_steps(n);
    if (question(&client, face, "afterwards") >= 0)
        fail_msg("it is not noticed [%s]", scene_text());
    expect(question(&client, face, "after that") < 0);
    end_client(&client);
    strange_stop(&server);
}

/* Runs through all orders of a way's steps, a sample of which is tried. */
static void try_orders(unsigned way, unsigned face, struct rng *rng)
{
    unsigned nsteps = 0, most[STEPS];
    while (nsteps < STEPS && ways[way].step[nsteps])
        nsteps++;
    for (unsigned i = 0; i < STEPS; i++)
        most[i] = i < nsteps ? COMMANDS_MOST : 0;
    for (unsigned a = 0; a <= most[0]; a++)
        for (unsigned b = a; b <= (most[1] ? most[1] : a); b++)
            for (unsigned c = b; c <= (most[2] ? most[2] : b); c++)
                if (every_case() || rng_below(rng, nsteps == 1   ? 3
                                                   : nsteps == 2 ? 20
                                                                 : 120) == 0)
                    try_order(way, face, (unsigned[STEPS]){ a, b, c });
}

TEST(test_every_order)
{
    struct rng rng = rng_for("orders");
    for (unsigned way = 0; way < WAYS; way++)
        for (unsigned face = 0; face < FACES; face++)
            try_orders(way, face, &rng);
}

/* All at once, before the first command: as if it had happened between two questions. */
TEST(test_between_questions)
{
    for (unsigned way = 0; way < WAYS; way++)
        for (unsigned face = 0; face < FACES; face++)
            try_order(way, face, (unsigned[STEPS]){ 0, 0, 0 });
}

/* The connection breaks while room is reserved, told or given back, before the server has got
 * that or after it has done it, once or twice.  All keys find room, and each is counted
 * once. */
TEST(test_broken_reservations)
{
    enum { ALL = 300, AT_ONCE = 100 };
    struct perhaps_options options = { .capacity = ALL, .fpr = 1e-11 };
    struct perhaps_cluster_stats stats;
    scoped_keys keys = numbers(ALL);
    for (unsigned i = 0; i < 5 * 2 * 2 * 2; i++) {
        const size_t some = i & 4 ? 1 : AT_ONCE;
        struct server server;
        scene("breaks at reservation %u, %u times, %s, %zu keys a call", i / 8, 1 + (i & 1),
              i & 2 ? "before" : "after", some);
        go_between(&server);
        perhaps_cluster *c = made(server.port, &options, 1, plainly);
        break_from = i / 8;
        nbreaks = 1 + (i & 1);
        breaks_before = i & 2;
        break_at = "EVAL";
        for (size_t k = 0; k < ALL; k += some) {
            struct perhaps_keys few = some_keys(&keys, k, some);
            int error = perhaps_cluster_add_many(c, &few, NULL, NULL);
            if (error)
                fail_msg("key %zu: %s [%s]", k, perhaps_cluster_problem(c), scene_text());
        }
        perhaps_cluster_rest(c);
        break_at = NULL;
        expect_success(perhaps_cluster_stats_of(c, &stats));
        if (stats.keys != ALL || stats.keys_reserved)
            fail_msg("%ju keys, %ju reserved [%s]", (uintmax_t)stats.keys,
                     (uintmax_t)stats.keys_reserved, scene_text());
        perhaps_cluster_free(c);
        strange_stop(&server);
    }
}

/* All keys are in, and the servers cannot be told how many of them used their room: that is no
 * error. */
TEST(test_nobody_to_tell)
{
    enum { ALL = 300 };
    struct perhaps_options options = { .capacity = ALL, .fpr = 1e-11 };
    scoped_keys keys = numbers(ALL);
    struct server server;
    size_t done;
    go_between(&server);
    perhaps_cluster *c =
        made(server.port, &options, 1, (struct perhaps_cluster_options){ .patience_ms = 300 });
    break_from = 1; /* the first one reserves room */
    nbreaks = 1000;
    breaks_before = true;
    break_at = "EVAL";
    expect_success(perhaps_cluster_add_many(c, &keys, NULL, &done));
    expect(done == ALL && nbreaks < 1000);
    break_at = NULL;
    perhaps_cluster_free(c);
    strange_stop(&server);
}

/* A client has died, and the clock of the server was set back since.  What the client had
 * reserved comes back all the same. */
TEST(test_clock_was_set_back)
{
    enum { ALL = 300, HELD = 50 };
    struct perhaps_options options = { .capacity = ALL, .fpr = 1e-11, .hashing.seed = 1 };
    scoped_keys keys = numbers(ALL);
    scoped_cluster *c = made(real_port, &options, 1, plainly);
    redisReply *id = redisCommand(other, "HGET perhaps:{gone} id");
    freeReplyObject(redisCommand(other, "HSET perhaps:{gone}:%s keys.0 %d held.0.dead %b",
                                 id->str, HELD, "1 50 9999999999999", (size_t)18));
    freeReplyObject(id);
    expect_success(perhaps_cluster_add_many(c, &keys, NULL, NULL));
}

static void add_new(perhaps_cluster *c, uint64_t from, uint64_t to)
{
    for (uint64_t key = from; key < to; key++)
        expect(perhaps_cluster_add(c, &key, sizeof key) == PERHAPS_ANSWER_NO);
}

static struct perhaps_cluster_stats rested(perhaps_cluster *c)
{
    struct perhaps_cluster_stats stats;
    perhaps_cluster_rest(c);
    expect_success(perhaps_cluster_stats_of(c, &stats));
    return stats;
}

enum { FIRST = 200, LATE_KEY = 1000000 };

static void grow_and_add(void)
{
    perhaps_cluster *c = handle_of(url_of(real_port, "gone"));
    expect_success(perhaps_cluster_open(c));
    add_new(c, 0, 2 * FIRST);
    add_new(c, LATE_KEY, LATE_KEY + 1);
    perhaps_cluster_free(c);
    usleep(2100000);
}

/* The add of a client is under way while the filter grows, and so long that another one may
 * have found it there and added the key to the newer layer all the same.  So the key counts as
 * new: else neither might keep it. */
TEST(test_late_add)
{
    struct perhaps_options options = { .capacity = FIRST,
                                       .fpr = 1e-11,
                                       .needs = PERHAPS_CAN_GROW };
    const uint64_t key = LATE_KEY;
    struct perhaps_cluster_stats stats;
    struct server server;
    go_between(&server);
    perhaps_cluster *c =
        made(server.port, &options, 1, (struct perhaps_cluster_options){ .timeout_ms = 60000 });
    meanwhile = grow_and_add;
    expect(perhaps_cluster_add(c, &key, sizeof key) == PERHAPS_ANSWER_NO);
    expect(!meanwhile);
    expect_success(perhaps_cluster_stats_of(c, &stats));
    expect(stats.doubtful == 1 && stats.layers > 1);
    expect(perhaps_cluster_add(c, &key, sizeof key) == PERHAPS_ANSWER_PERHAPS);
    perhaps_cluster_free(c);
    strange_stop(&server);
}

/* While keys are new one after the other, they are added to the newest layer and asked for in
 * the others at once.  Keys of these take room once at most, and if such a layer is lost nobody
 * knows whether a key is new. */
TEST(test_all_layers_at_once)
{
    enum { IN = 1200, SOME = 80, MORE = 600 };
    struct perhaps_options options = { .capacity = FIRST,
                                       .fpr = 1e-11,
                                       .needs = PERHAPS_CAN_GROW };
    scoped_cluster *c = made(real_port, &options, 1, plainly);
    uint8_t answer;
    add_new(c, 0, IN);
    usleep(3100000); /* older layers get no more keys */
    struct perhaps_cluster_stats before = rested(c);
    expect(before.keys == IN && before.layers == 3);
    add_new(c, IN, IN + SOME);
    struct perhaps_cluster_stats after = rested(c);
    if (after.trips - before.trips >= 2 * SOME) /* one after the other */
        fail_msg("%ju trips", (uintmax_t)(after.trips - before.trips));
    for (uint64_t key = 0; key < IN; key++)
        expect(perhaps_cluster_add(c, &key, sizeof key) == PERHAPS_ANSWER_PERHAPS);
    expect(rested(c).keys - after.keys == 1);
    add_new(c, IN + SOME, IN + SOME + MORE);
    usleep(3100000);
    find_partition();
    freeReplyObject(redisCommand(other, "DEL %s", partition));
    freeReplyObject(redisCommand(other, "SETBIT %s 300 1", partition)); /* too short */
    const uint64_t key = UINT64_MAX;
    struct perhaps_keys keys = perhaps_keys_packed(&key, sizeof key, 1);
    expect(perhaps_cluster_add_many(c, &keys, &answer, NULL) == PERHAPS_ERR_LOST);
    expect(answer == PERHAPS_ANSWER_UNKNOWN);
}

/* A client has died when only some partitions had got its keys.  Who looks for room finds out
 * how many of them are there, though the bits of the others are clear. */
TEST(test_part_of_a_batch)
{
    enum { ALL = 20000, PARTITIONS = 16, EMPTY = 12 };
    struct perhaps_options options = { .capacity = ALL, .fpr = 1e-6, .hashing.seed = 1 };
    struct perhaps_cluster_stats stats;
    redisReply *empty[EMPTY];
    scoped_keys keys = numbers(ALL);
    scoped_cluster *c = made(real_port, &options, PARTITIONS, plainly);
    redisReply *id = redisCommand(other, "HGET perhaps:{gone} id");
    for (int i = 0; i < EMPTY; i++)
        empty[i] = redisCommand(other, "DUMP perhaps:{gone/%d}:%s", i, id->str);
    expect_success(perhaps_cluster_add_many(c, &keys, NULL, NULL));
    perhaps_cluster_rest(c);
    for (int i = 0; i < EMPTY; i++) {
        freeReplyObject(redisCommand(other, "RESTORE perhaps:{gone/%d}:%s 0 %b REPLACE", i,
                                     id->str, empty[i]->str, empty[i]->len));
        freeReplyObject(empty[i]);
    }
    freeReplyObject(redisCommand(other, "HSET perhaps:{gone}:%s keys.0 %d abandoned.0 %d",
                                 id->str, ALL, ALL));
    expect_success(perhaps_cluster_add_many(c, &keys, NULL, NULL));
    expect_success(perhaps_cluster_stats_of(c, &stats));
    if (stats.keys < ALL - ALL / 100 || stats.keys > ALL)
        fail_msg("%ju keys", (uintmax_t)stats.keys);
    freeReplyObject(id);
}

int main(int argc, char **argv)
{
    real_port = argc == 2 ? (unsigned)strtoul(argv[1], NULL, 10) : 0;
    passing = redisConnect("127.0.0.1", (int)real_port);
    other = redisConnect("127.0.0.1", (int)real_port);
    if (!passing || passing->err || !other || other->err) {
        fprintf(stderr, "cluster_gone_test: no server at port %u\n", real_port);
        return 2;
    }
    return run_all_tests();
}
