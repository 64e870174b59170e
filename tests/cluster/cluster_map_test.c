/* cluster_map_test.c - proves that the client reads from a server's reply which node owns which
 * slot, and writes commands as the bytes that servers expect.  A reply that cannot be right is
 * refused and leaves the map as it was; so does a lack of memory. */
#include "support.h"

#include <ctype.h>
#include <hiredis.h>
#include <stdio.h>
#include <string.h>

#include "failing_memory.h"
#include "resp.h"
#include "slots.h"

/* ---- Replies ---------------------------------------------------------------------------- */

static redisReply *new_reply(int type)
{
    redisReply *reply = calloc(1, sizeof *reply);
    expect(reply);
    reply->type = type;
    return reply;
}

static void append(redisReply *array, redisReply *reply)
{
    array->element = realloc(array->element, (array->elements + 1) * sizeof reply);
    expect(array->element);
    array->element[array->elements++] = reply;
}

/* Makes a reply from a notation of these tests: 5 is an integer, 'text' a string, ~ nil, and
 * [1 'a' [2]] an array.  Moves *notation behind what it read. */
static redisReply *parse(const char **notation)
{
    const char *at = *notation;
    redisReply *reply;
    while (*at == ' ')
        at++;
    if (*at == '[') {
        reply = new_reply(REDIS_REPLY_ARRAY);
        for (at++; *at != ']'; at += *at == ' ')
            append(reply, parse(&at));
        at++;
    } else if (*at == '\'') {
        size_t nbytes = strcspn(at + 1, "'");
        reply = new_reply(REDIS_REPLY_STRING);
        reply->str = strndup(at + 1, nbytes);
        reply->len = nbytes;
        at += nbytes + 2;
    } else if (*at == '~') {
        reply = new_reply(REDIS_REPLY_NIL);
        at++;
    } else {
        char *end;
        reply = new_reply(REDIS_REPLY_INTEGER);
        reply->integer = strtoll(at, &end, 10);
        expect(end > at);
        at = end;
    }
    *notation = at;
    return reply;
}

/* The server that was asked for the map: nodes that tell no host are there. */
static const struct endpoint asked = { "asked", 7000 };

/* Reads a map from a reply in this notation.  Returns NULL, or what is wrong. */
static const char *read_map(struct slot_map *map, const char *notation)
{
    scene("%.150s", notation);
    redisReply *reply = parse(&notation);
    const char *problem = slot_map_read(map, reply, &asked);
    freeReplyObject(reply);
    return problem;
}

/* ---- The map ---------------------------------------------------------------------------- */

#define scoped_map __attribute__((cleanup(slot_map_release))) struct slot_map

/* Three masters and four replicas.  The host 'a' has three nodes, told apart by their ports. */
static const char three_masters[] =
    "[[0 5460 ['a' 1 'id'] ['b' 1 'id'] ['c' 1 'id']]"
    " [10923 16383 ['a' 2 'id'] ['b' 2 'id']]"
    " [5461 10922 ['a' 3 'id' []] ['b' 3 'id' ['ip' '10.0.0.1']]]]";

static struct slot_map map_of(const char *notation)
{
    struct slot_map map;
    slot_map_init(&map);
    if (notation)
        expect(!read_map(&map, notation));
    return map;
}

/* Returns whether this node owns the slot. */
static bool is_at(const struct slot_map *map, unsigned slot, const char *host, unsigned port)
{
    uint16_t index = map->master[slot];
    return index != NOBODY && map->nodes[index].at.port == port &&
           strcmp(map->nodes[index].at.host, host) == 0;
}

/* Checks the invariants that slots.h tells of nodes and replicas. */
static void expect_sound(const struct slot_map *map)
{
    size_t replicas = 0, masters = 0;
    for (unsigned slot = 0; slot < SLOTS; slot++) {
        uint16_t index = map->master[slot];
        expect(index == NOBODY || (index < map->nnodes && map->nodes[index].master == index));
    }
    for (size_t i = 0; i < map->nnodes; i++) {
        const struct node *node = &map->nodes[i];
        expect(slot_map_find(map, &node->at) == i);
        masters += node->master == i;
        expect(node->master == i ? node->next == NOBODY : node->nreplicas == 0);
        for (unsigned r = 0; r < node->nreplicas; r++) {
            uint16_t replica = slot_map_replica(map, (uint16_t)i, r);
            expect(replica < map->nnodes && map->nodes[replica].master == i);
        }
        expect(slot_map_replica(map, (uint16_t)i, node->nreplicas) == NOBODY);
        replicas += node->nreplicas;
    }
    expect(masters + replicas == map->nnodes);
}

/* Returns how many slots no node owns; sets *first to the first of them, unless it is NULL. */
static unsigned count_gaps(const struct slot_map *map, unsigned *first)
{
    unsigned gaps = 0;
    for (unsigned slot = SLOTS; slot-- > 0;)
        if (map->master[slot] == NOBODY) {
            gaps++;
            if (first)
                *first = slot;
        }
    return gaps;
}

/* A server without a cluster owns all slots. */
TEST(test_single)
{
    scoped_map map = map_of(NULL);
    unsigned first = 4711;
    expect(count_gaps(&map, &first) == SLOTS && first == 0);
    expect(slot_map_find(&map, &asked) == NOBODY);
    expect(!slot_map_single(&map, &asked) && map.nnodes == 1);
    expect(count_gaps(&map, &first) == 0 && count_gaps(&map, NULL) == 0);
    for (unsigned slot = 0; slot < SLOTS; slot++)
        expect(is_at(&map, slot, "asked", 7000));
    expect_sound(&map);
    slot_map_release(&map);
    expect(map.nnodes == 0 && count_gaps(&map, NULL) == SLOTS);
}

/* Slots at the ends of each range, and the replicas of a master. */
TEST(test_cluster)
{
    scoped_map map = map_of(three_masters);
    expect(map.nnodes == 7);
    expect_sound(&map);
    expect(count_gaps(&map, NULL) == 0);
    expect(is_at(&map, 0, "a", 1) && is_at(&map, 5460, "a", 1) && is_at(&map, 5461, "a", 3));
    expect(is_at(&map, 10922, "a", 3) && is_at(&map, 10923, "a", 2));
    expect(is_at(&map, 16383, "a", 2));
    uint16_t master = map.master[0];
    const struct endpoint b = { "b", 1 }, c = { "c", 1 };
    uint16_t r0 = slot_map_replica(&map, master, 0), r1 = slot_map_replica(&map, master, 1);
    expect(map.nodes[master].nreplicas == 2 && r0 != r1);
    expect(slot_map_find(&map, &b) == r0 || slot_map_find(&map, &b) == r1);
    expect(slot_map_find(&map, &c) == r0 || slot_map_find(&map, &c) == r1);
}

/* Slots that no node owns; nodes that tell no host, or tell it as 'ip' behind the id. */
TEST(test_odd_clusters)
{
    scoped_map map = map_of(NULL);
    unsigned first = 0;
    expect(!read_map(&map, "[]") && map.nnodes == 0 && count_gaps(&map, NULL) == SLOTS);
    expect(!read_map(&map, "[[0 0 ['a' 1]] [2 16382 ['a' 1]]]") && map.nnodes == 1);
    expect(count_gaps(&map, &first) == 2 && first == 1 && map.master[16383] == NOBODY);

    expect(!read_map(&map, "[[0 9 [~ 1 'id']] [10 19 ['' 2 'id']]]"));
    expect(is_at(&map, 0, "asked", 1) && is_at(&map, 10, "asked", 2));

    expect(!read_map(&map, "[[0 9 ['?' 1 'id' ['x' 'y' 'ip' '10.0.0.1']] ['?' 2 'id']]"
                           " [10 19 ['?' 3 'id' ['ip']]] [20 29 ['?' 4 'id' ['ip' '']]]"
                           " [30 39 ['?' 5 'id' 'ip']]]"));
    expect(is_at(&map, 0, "10.0.0.1", 1) && map.master[10] == NOBODY &&
           map.master[30] == NOBODY);
    expect(is_at(&map, 20, "asked", 4) && map.nnodes == 2);

    /* a node that is a replica in one range and a master in another is a master */
    expect(!read_map(&map, "[[0 9 ['a' 1] ['b' 1]] [10 19 ['b' 1] ['a' 1] ['c' 1] ['c' 1]]"
                           " [20 29 ['a' 1] ['c' 1]]]"));
    expect(map.nnodes == 3 && is_at(&map, 0, "a", 1) && is_at(&map, 10, "b", 1));
    expect_sound(&map);
}

static struct slot_map copy_of(const struct slot_map *map)
{
    struct slot_map copy = *map;
    copy.nodes = malloc(map->nnodes * sizeof *map->nodes);
    expect(copy.nodes);
    memcpy(copy.nodes, map->nodes, map->nnodes * sizeof *map->nodes);
    return copy;
}

/* Checks that two maps have the same nodes and owners. */
static void expect_same(const struct slot_map *a, const struct slot_map *b)
{
    expect(memcmp(a->master, b->master, sizeof a->master) == 0 && a->nnodes == b->nnodes);
    for (size_t i = 0; i < a->nnodes; i++) {
        expect(endpoint_equal(&a->nodes[i].at, &b->nodes[i].at));
        expect(a->nodes[i].master == b->nodes[i].master);
        expect(a->nodes[i].nreplicas == b->nodes[i].nreplicas);
    }
}

/* Each reply is refused by a line that contains the text beside it, and the map stays. */
TEST(test_hostile_replies)
{
    static const char *const bad[][2] = {
        { "5", "no list" },
        { "'text'", "no list" },
        { "~", "no list" },
        { "[5]", "list of ranges" },
        { "[[]]", "list of ranges" },
        { "[[0 1]]", "list of ranges" },
        { "[['0' 1 ['a' 1]]]", "list of ranges" },
        { "[[0 ~ ['a' 1]]]", "list of ranges" },
        { "[[0 1 ['a' 1]] []]", "list of ranges" },
        { "[[0 16384 ['a' 1]]]", "0 to 16383" },
        { "[[-1 5 ['a' 1]]]", "0 to 16383" },
        { "[[6 5 ['a' 1]]]", "0 to 16383" },
        { "[[9223372036854775807 -9223372036854775808 ['a' 1]]]", "0 to 16383" },
        { "[[0 9223372036854775807 ['a' 1]]]", "0 to 16383" },
        { "[[0 5 ['a' 1]] [5 6 ['a' 1]]]", "two ranges" },
        { "[[0 1 'a']]", "host" },
        { "[[0 1 []]]", "host" },
        { "[[0 1 ['a']]]", "host" },
        { "[[0 1 [5 1]]]", "host" },
        { "[[0 1 [['a'] 1]]]", "host" },
        { "[[0 1 ['a b' 1]]]", "host" },
        { "[[0 1 ['a\n' 1]]]", "host" },
        { "[[0 1 ['\xc3\xa4' 1]]]", "host" },
        { "[[0 1 ['?' 1 'id' ['ip' 5]]]]", "host" },
        { "[[0 1 ['a' 0]]]", "port" },
        { "[[0 1 ['a' 65536]]]", "port" },
        { "[[0 1 ['a' -1]]]", "port" },
        { "[[0 1 ['a' '1']]]", "port" },
        { "[[0 1 ['?' 0]]]", "port" },
        { "[[0 1 ['a' 1] 'b']]", "host" },
        { "[[0 1 ['a' 1] ['b' 0]]]", "port" },
    };
    scoped_map map = map_of(three_masters);
    scoped_map before = copy_of(&map);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        const char *problem = read_map(&map, bad[i][0]);
        if (!problem || !strstr(problem, bad[i][1]))
            fail_msg("%s: %s; not about: %s", bad[i][0], problem ? problem : "taken",
                     bad[i][1]);
        expect_same(&map, &before);
    }
}

/* Reads a map of n nodes, each of which owns one slot. */
static const char *read_nodes(struct slot_map *map, unsigned n)
{
    redisReply *reply = new_reply(REDIS_REPLY_ARRAY);
    for (unsigned i = 0; i < n; i++) {
        char text[64];
        const char *notation = text;
        snprintf(text, sizeof text, "[%u %u ['node' %u]]", i, i, i + 1);
        append(reply, parse(&notation));
    }
    const char *problem = slot_map_read(map, reply, &asked);
    freeReplyObject(reply);
    return problem;
}

/* NODES_MOST nodes are taken, and not one more; a known node can still get a slot. */
TEST(test_many_nodes)
{
    const struct endpoint other = { "other", 1 }, node = { "node", 7 };
    scoped_map map = map_of(NULL);
    expect(!read_nodes(&map, NODES_MOST) && map.nnodes == NODES_MOST);
    expect_sound(&map);
    scoped_map before = copy_of(&map);
    const char *problem = read_nodes(&map, NODES_MOST + 1);
    expect(problem && strstr(problem, "1024"));
    problem = slot_map_move(&map, 5000, &other);
    expect(problem && strstr(problem, "1024"));
    expect_same(&map, &before);
    expect(!slot_map_move(&map, 5000, &node) && is_at(&map, 5000, "node", 7));
}

/* A slot moves to a known master, to a new node, and to a replica, which becomes a master. */
TEST(test_move)
{
    const struct endpoint fresh = { "new", 9 }, replica = { "c", 1 }, master = { "a", 2 };
    scoped_map map = map_of(three_masters);
    uint16_t old = map.master[0];
    expect(!slot_map_move(&map, 100, &master) && map.nnodes == 7 && is_at(&map, 100, "a", 2));
    expect(!slot_map_move(&map, 101, &fresh) && map.nnodes == 8 && is_at(&map, 101, "new", 9));
    expect(map.nodes[old].nreplicas == 2 && map.master[0] == old);
    expect(!slot_map_move(&map, 102, &replica) && map.nnodes == 8 && is_at(&map, 102, "c", 1));
    expect(map.nodes[old].nreplicas == 1);
    expect(slot_map_move(&map, SLOTS, &fresh));
    expect(is_at(&map, 99, "a", 1) && is_at(&map, 103, "a", 1));
    expect_sound(&map);
}

/* Random moves give the same owners as an array of ports. */
TEST(test_moves)
{
    struct rng rng = rng_for(__func__);
    unsigned port[SLOTS];
    scoped_map map = map_of(three_masters);
    for (unsigned slot = 0; slot < SLOTS; slot++)
        port[slot] = slot <= 5460 ? 1 : slot <= 10922 ? 3 : 2;
    for (unsigned i = 0; i < 5000; i++) {
        unsigned slot = (unsigned)rng_below(&rng, SLOTS),
                 to = 1 + (unsigned)rng_below(&rng, 50);
        struct endpoint at = { "a", to };
        expect(!slot_map_move(&map, slot, &at));
        port[slot] = to;
    }
    for (unsigned slot = 0; slot < SLOTS; slot++)
        expect(is_at(&map, slot, "a", port[slot]));
    expect(map.nnodes == 50 + 4); /* with four replicas */
    expect_sound(&map);
}

/* An allocation that fails leaves the map as it was, and the next call succeeds. */
TEST(test_map_memory)
{
    scoped_map map = map_of(NULL);
    fail_memory(1);
    expect(slot_map_single(&map, &asked) == no_memory && count_gaps(&map, NULL) == SLOTS);
    fail_memory(1);
    expect(slot_map_move(&map, 0, &asked) == no_memory && count_gaps(&map, NULL) == SLOTS);
    expect(!slot_map_single(&map, &asked));
    scoped_map before = copy_of(&map);
    const char *notation = three_masters;
    redisReply *reply = parse(&notation);
    fail_memory(1);
    expect(slot_map_read(&map, reply, &asked) == no_memory);
    expect_same(&map, &before);
    expect(!slot_map_read(&map, reply, &asked) && map.nnodes == 7);
    freeReplyObject(reply);
}

/* ---- Commands --------------------------------------------------------------------------- */

static void expect_bytes(const struct resp *resp, const char *bytes)
{
    expect(resp->nbytes == strlen(bytes) && memcmp(resp->bytes, bytes, resp->nbytes) == 0);
}

/* Commands as bytes that were written by hand after the protocol (RESP). */
TEST(test_commands)
{
    struct resp resp = { 0 };
    resp_command(&resp, 4, 20);
    resp_text(&resp, "GETRANGE");
    resp_bytes(&resp, "a\0b", 3);
    resp_number(&resp, 0);
    resp_number(&resp, UINT64_MAX);
    expect(resp.nbytes == 4 + 14 + 9 + 7 + 27 && resp.whole == 0);
    expect(memcmp(resp.bytes + 18, "$3\r\na\0b\r\n", 9) == 0);
    expect(memcmp(resp.bytes + 27, "$1\r\n0\r\n$20\r\n18446744073709551615\r\n", 34) == 0);
    resp_clear(&resp);
    resp_texts(&resp, (const char *const[]){ "GET", "key", NULL });
    expect_bytes(&resp, "*2\r\n$3\r\nGET\r\n$3\r\nkey\r\n");
    resp_clear(&resp);
    resp_command(&resp, 12, 0);
    resp_text(&resp, "u1");
    resp_bytes(&resp, "", 0);
    expect_bytes(&resp, "*12\r\n$2\r\nu1\r\n$0\r\n\r\n");
    static const char long_text[100000] = "long";
    resp_bytes(&resp, long_text, sizeof long_text);
    expect(resp.nbytes == 5 + 8 + 6 + 9 + sizeof long_text + 2 && resp.room >= resp.nbytes);
    resp_release(&resp);
    expect(!resp.bytes && resp.nbytes == 0 && resp.room == 0);
}

/* Numbers around each power of ten and of two are written as printf() writes them. */
TEST(test_digits)
{
    struct resp resp = { 0 };
    uint64_t ten = 1;
    for (unsigned i = 0; i < 64; i++, ten *= 10)
        for (uint64_t n = 0; n < 6; n++) {
            uint64_t number = (n < 3 ? ten : UINT64_C(1) << i) + n % 3 - 1;
            char digits[32], wanted[64];
            int ndigits = sprintf(digits, "%llu", (unsigned long long)number);
            sprintf(wanted, "*1\r\n$%d\r\n%s\r\n", ndigits, digits);
            scene("%s", digits);
            resp_clear(&resp);
            resp_command(&resp, 1, 0);
            resp_number(&resp, number);
            expect_bytes(&resp, wanted);
        }
    resp_release(&resp);
}

/* Writes a command of 'nargs' arguments, which depend on 'seed' only. */
static void write_any(struct resp *resp, unsigned nargs, uint64_t seed)
{
    static char long_text[300];
    resp_command(resp, nargs, seed % 3 ? 0 : 100);
    for (unsigned i = 0; i < nargs; i++) {
        uint64_t x = mix64(seed + i);
        memset(long_text, (int)(x >> 8 & 0xff), sizeof long_text);
        if (x & 1)
            resp_number(resp, x >> (x >> 1 & 63));
        else
            resp_bytes(resp, long_text, x % 300);
    }
}

/* Checks that a command is the one that write_any() wrote. */
static void expect_command(redisReply *command, unsigned nargs, uint64_t seed)
{
    expect(command->type == REDIS_REPLY_ARRAY && command->elements == nargs);
    for (unsigned i = 0; i < nargs; i++) {
        const redisReply *argument = command->element[i];
        uint64_t x = mix64(seed + i);
        expect(argument->type == REDIS_REPLY_STRING);
        if (x & 1)
            expect(strtoull(argument->str, NULL, 10) == x >> (x >> 1 & 63) &&
                   isdigit((unsigned char)*argument->str));
        else {
            expect(argument->len == x % 300);
            for (size_t b = 0; b < argument->len; b++)
                expect((unsigned char)argument->str[b] == (x >> 8 & 0xff));
        }
    }
}

/* Commands of any length come back from hiredis's reader, since a command is written like a
 * reply that is an array.  The reader gets them in pieces of any length. */
TEST(test_any_commands)
{
    struct rng rng = rng_for(__func__);
    struct resp resp = { 0 };
    redisReader *reader = redisReaderCreate();
    uint64_t written = 0, read = 0;
    size_t sent = 0;
    expect(reader);
    for (unsigned round = 0; round < many(300); round++) {
        for (uint64_t n = rng_below(&rng, 20); n > 0; n--, written++)
            write_any(&resp, 1 + (unsigned)(written % 40), written << 8);
        size_t left = resp.nbytes - sent;
        size_t n = round % 8 == 7 ? left : (size_t)rng_below(&rng, left + 1);
        if (n)
            expect(redisReaderFeed(reader, resp.bytes + sent, n) == REDIS_OK);
        sent += n;
        if (sent == resp.nbytes) {
            resp_clear(&resp);
            sent = 0;
        }
        void *command = NULL;
        while (redisReaderGetReply(reader, &command) == REDIS_OK && command) {
            expect_command(command, 1 + (unsigned)(read % 40), read << 8);
            freeReplyObject(command);
            read++;
        }
        if (round % 8 == 7)
            expect(read == written);
    }
    expect(!resp.failed && read > 0);
    redisReaderFree(reader);
    resp_release(&resp);
}

/* When memory ends, the commands that were whole stay, and no part of another one is left: the
 * server would read what follows as its arguments. */
TEST(test_command_memory)
{
    struct resp resp = { 0 };
    fail_memory(1);
    write_any(&resp, 3, 1);
    expect(resp.failed && resp.nbytes == 0);
    resp_clear(&resp);
    size_t n = 0, whole = 0;
    for (; !resp.failed && n < 1000000; n++) {
        whole = resp.nbytes;
        fail_memory(resp.room > 1000000);
        write_any(&resp, 30, n);
    }
    fail_memory(0);
    expect(resp.failed && resp.nbytes == whole && whole > 500000);
    write_any(&resp, 3, 1);
    expect(resp.failed && resp.nbytes == whole);
    resp_clear(&resp);
    write_any(&resp, 3, 1);
    expect(!resp.failed && resp.nbytes > 0);
    resp_release(&resp);
}
