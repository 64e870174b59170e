/* cluster_trips_test.c - counts how often a call goes to the servers and back.
 *
 *     client -- commands --> proxy -- commands --> server
 *            <-- replies, when the client has been silent for a while
 *
 * The proxy holds back what the server replies until the client sends nothing more: it waits
 * for replies.  Each time that the proxy lets go is one trip, which at a distance takes its
 * time.
 *
 *     cluster_trips_test PORT    the server's, which is empty */
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "perhaps_cluster.h"
#include "support.h"

enum { HELD_NBYTES = 8 << 20 };

static unsigned real_port, proxy_port;
static atomic_uint ntrips;
static atomic_int silent_ms = 300; /* longer than a client takes between two pieces */

static int connect_to_server(void)
{
    struct sockaddr_in at = { .sin_family = AF_INET,
                              .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
                              .sin_port = htons((uint16_t)real_port) };
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    expect(fd >= 0 && !connect(fd, (struct sockaddr *)&at, sizeof at));
    return fd;
}

/* Hands on what has come from 'from'.  Returns false at its end. */
static bool hand_on(int from, int to)
{
    static char bytes[HELD_NBYTES];
    ssize_t got = recv(from, bytes, sizeof bytes, 0);
    return got > 0 && send(to, bytes, (size_t)got, MSG_NOSIGNAL) == got;
}

/* Serves one client until it hangs up. */
static void serve(int client, int server)
{
    static char held[HELD_NBYTES];
    size_t nheld = 0;
    for (;;) {
        struct pollfd events[] = { { .fd = client, .events = POLLIN },
                                   { .fd = server, .events = POLLIN } };
        int n = poll(events, 2, nheld ? silent_ms : -1);
        if (n == 0) {
            ntrips++;
            if (send(client, held, nheld, MSG_NOSIGNAL) != (ssize_t)nheld)
                return;
            nheld = 0;
        }
        if (events[0].revents && !hand_on(client, server))
            return;
        if (!events[1].revents)
            continue;
        ssize_t got = recv(server, held + nheld, sizeof held - nheld, 0);
        if (got <= 0)
            return;
        nheld += (size_t)got;
    }
}

static void *serve_all(void *context)
{
    int listening = *(int *)context, client;
    while ((client = accept(listening, NULL, NULL)) >= 0) {
        int server = connect_to_server();
        setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &(int){ 1 }, sizeof(int));
        setsockopt(server, IPPROTO_TCP, TCP_NODELAY, &(int){ 1 }, sizeof(int));
        serve(client, server);
        shutdown(server, SHUT_WR); /* the server does all that was sent, and hangs up then */
        while (hand_on(server, client))
            ;
        close(client);
        close(server);
    }
    return NULL;
}

static perhaps_cluster *handle(void)
{
    perhaps_cluster *c;
    char url[64];
    snprintf(url, sizeof url, "redis://127.0.0.1:%u/far", proxy_port);
    expect_success(perhaps_cluster_new(&(struct perhaps_cluster_options){ .url = url }, &c));
    return c;
}

/* Since the last call there were at most so many trips. */
static void expect_trips(unsigned most, const char *what)
{
    unsigned n = atomic_exchange(&ntrips, 0);
    if (n == 0 || n > most)
        fail_msg("%s: %u ways to the server and back, and %u were to be enough", what, n, most);
}

static void add_one(perhaps_cluster *c, const char *key)
{
    expect(perhaps_cluster_add(c, key, strlen(key)) == PERHAPS_ANSWER_NO);
}

/* Each by a process that is new, and by one that is not. */
TEST(test_trips)
{
    struct perhaps_options options = { .capacity = 100000, .fpr = 1e-9 };
    struct perhaps_cluster_stats before, after;
    perhaps_cluster *c = handle();
    expect_success(perhaps_cluster_create(c, &options, 0));
    expect_trips(4, "create");
    perhaps_cluster_free(c);
    c = handle();
    expect_success(perhaps_cluster_open(c));
    expect(perhaps_cluster_contains(c, "a", 1) == PERHAPS_ANSWER_NO);
    expect_trips(2, "open and ask");
    expect(perhaps_cluster_contains(c, "a", 1) == PERHAPS_ANSWER_NO);
    expect_trips(1, "ask again");
    perhaps_cluster_free(c);
    c = handle();
    expect_success(perhaps_cluster_open(c));
    add_one(c, "a");
    expect_trips(3, "open and add");
    perhaps_cluster_free(c);
    c = handle();
    expect_success(perhaps_cluster_open(c));
    expect_trips(1, "open");
    expect_success(perhaps_cluster_stats_of(c, &before));
    expect_trips(2, "statistics");
    add_one(c, "b");
    add_one(c, "c");
    add_one(c, "d");
    add_one(c, "e");
    expect(before.keys == 1);
    unsigned counted = ntrips;
    expect_trips(7, "four adds");
    expect_success(perhaps_cluster_stats_of(c, &after));
    expect(after.trips - before.trips >= counted);
    expect(after.trips - before.trips <= counted + 3);
    perhaps_cluster_free(c);
}

/* A call with many keys asks for room once, and does not wait when the handle is freed. */
TEST(test_trips_of_batches)
{
    enum { NKEYS = 3 * PERHAPS_CLUSTER_BATCH };
    static uint64_t key[NKEYS];
    struct perhaps_options options = { .capacity = 1000000, .fpr = 1e-2 };
    perhaps_cluster *c = handle();
    perhaps_cluster_delete(c);
    expect_success(perhaps_cluster_create(c, &options, 0));
    perhaps_cluster_free(c);
    for (size_t i = 0; i < NKEYS; i++)
        key[i] = i;
    struct perhaps_keys keys = perhaps_keys_packed(key, sizeof *key, NKEYS);
    c = handle();
    expect_success(perhaps_cluster_open(c));
    ntrips = 0;
    silent_ms = 1000;
    expect_success(perhaps_cluster_add_many(c, &keys, NULL, NULL));
    expect_trips(1 + 3 + 1, "three batches: room, each, and what was used");
    perhaps_cluster_free(c);
    expect(ntrips == 0);
}

int main(int argc, char **argv)
{
    struct sockaddr_in at = { .sin_family = AF_INET,
                              .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t nbytes = sizeof at;
    pthread_t thread;
    int listening = socket(AF_INET, SOCK_STREAM, 0);
    real_port = argc == 2 ? (unsigned)strtoul(argv[1], NULL, 10) : 0;
    if (listening < 0 || bind(listening, (struct sockaddr *)&at, nbytes) ||
        listen(listening, 16) || getsockname(listening, (struct sockaddr *)&at, &nbytes) ||
        pthread_create(&thread, NULL, serve_all, &listening)) {
        perror("cluster_trips_test");
        return 2;
    }
    proxy_port = ntohs(at.sin_port);
    return run_all_tests();
}
