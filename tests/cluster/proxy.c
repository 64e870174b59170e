/* proxy.c - the proxy of proxy.h: one thread, which moves bytes between clients and the servers
 * with poll().  Only replies are counted and broken; requests always pass.  A program that is
 * started meanwhile gets none of the sockets. */
#include "proxy.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* The pieces of a reply, and the pause behind each, in which the client reads it. */
enum { PIECE_NBYTES_MOST = 7, PIECE_PAUSE_US = 20 };

enum { LISTEN_TRIES = 10000 };

static struct sockaddr_in address_of(unsigned host, unsigned port)
{
    return (struct sockaddr_in){ .sin_family = AF_INET,
                                 .sin_addr.s_addr = htonl(0x7f000000 + host),
                                 .sin_port = htons((uint16_t)port) };
}

/* ---- Connections ------------------------------------------------------------------------- */

static void end_client(struct connection *connection)
{
    close(connection->client);
    shutdown(connection->server, SHUT_WR);
    connection->client = -1;
    connection->stalls = false;
}

static void end_server(struct connection *connection)
{
    if (connection->client >= 0)
        close(connection->client);
    close(connection->server);
    *connection = (struct connection){ -1, -1, false };
}

/* Small segments are sent at once. */
static int without_delay(int socket)
{
    setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &(int){ 1 }, sizeof(int));
    return socket;
}

/* Accepts a client and connects it to the server; if that fails, the client is hung up. */
static void begin_connection(struct proxy *proxy, unsigned server)
{
    struct sockaddr_in to = address_of(1, proxy->server_port[server]);
    struct connection *connection = proxy->connection[server];
    struct connection *end = connection + CONNECTIONS_MOST;
    int client = without_delay(accept4(proxy->listening[server], NULL, NULL, SOCK_CLOEXEC));
    while (connection < end && connection->server >= 0)
        connection++;
    if (client < 0 || connection == end) {
        close(client);
        return;
    }
    connection->client = client;
    connection->server = without_delay(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (connect(connection->server, (struct sockaddr *)&to, sizeof to))
        end_server(connection);
}

/* Sends all these bytes.  Returns false if the other side is gone. */
static bool pass(int to, const char *bytes, size_t nbytes)
{
    while (nbytes) {
        ssize_t sent = send(to, bytes, nbytes, MSG_NOSIGNAL);
        if (sent <= 0)
            return false;
        bytes += sent;
        nbytes -= (size_t)sent;
    }
    return true;
}

static bool pass_in_pieces(struct proxy *proxy, int to, const char *bytes, size_t nbytes)
{
    for (size_t at = 0, piece; at < nbytes; at += piece) {
        piece = 1 + (size_t)rng_below(&proxy->rng, PIECE_NBYTES_MOST);
        if (piece > nbytes - at)
            piece = nbytes - at;
        if (!pass(to, bytes + at, piece))
            return false;
        usleep(PIECE_PAUSE_US);
    }
    return true;
}

/* Sends a reply to the client, or only its bytes up to the fault.  Returns false if the caller
 * has to hang up the client.  The fault happens once: it is FAULT_NONE from then on. */
static bool pass_reply(struct proxy *proxy, struct connection *connection, const char *bytes,
                       size_t nbytes)
{
    uint64_t left = proxy->at - proxy->nreplied;
    if (proxy->fault == FAULT_NONE || nbytes <= left) {
        proxy->nreplied += nbytes;
        return proxy->in_pieces ? pass_in_pieces(proxy, connection->client, bytes, nbytes)
                                : pass(connection->client, bytes, nbytes);
    }
    pass(connection->client, bytes, left);
    if (proxy->last_words)
        pass(connection->client, proxy->last_words, strlen(proxy->last_words));
    connection->stalls = proxy->fault == FAULT_STALL;
    proxy->fault = FAULT_NONE;
    return connection->stalls;
}

/* Reads once from the server, and hands it on unless the client is gone. */
static void serve_reply(struct proxy *proxy, unsigned server, struct connection *connection)
{
    char bytes[16 << 10];
    ssize_t got = recv(connection->server, bytes, sizeof bytes, 0);
    if (got <= 0) {
        end_server(connection);
        return;
    }
    proxy->nreplied_by[server] += (uint64_t)got;
    if (connection->client >= 0 && !pass_reply(proxy, connection, bytes, (size_t)got))
        end_client(connection);
}

static void serve_request(struct connection *connection)
{
    char bytes[16 << 10];
    ssize_t got = recv(connection->client, bytes, sizeof bytes, 0);
    if (got <= 0 || !pass(connection->server, bytes, (size_t)got))
        end_client(connection);
}

/* ---- The thread -------------------------------------------------------------------------- */

/* What is waited for: the end; and for each server a new client, and bytes of each side of each
 * connection. */
struct events {
    struct pollfd stopping;
    struct pollfd listening[SERVERS_MOST];
    struct pollfd client[SERVERS_MOST][CONNECTIONS_MOST];
    struct pollfd server[SERVERS_MOST][CONNECTIONS_MOST];
};

/* poll() ignores sockets of -1: free places, and connections that stall. */
static void list_events(const struct proxy *proxy, struct events *events)
{
    events->stopping = (struct pollfd){ proxy->stopping[0], POLLIN, 0 };
    for (unsigned s = 0; s < SERVERS_MOST; s++) {
        events->listening[s] = (struct pollfd){ proxy->listening[s], POLLIN, 0 };
        for (size_t i = 0; i < CONNECTIONS_MOST; i++) {
            const struct connection *c = &proxy->connection[s][i];
            events->client[s][i] = (struct pollfd){ c->stalls ? -1 : c->client, POLLIN, 0 };
            events->server[s][i] = (struct pollfd){ c->stalls ? -1 : c->server, POLLIN, 0 };
        }
    }
}

/* Serves until a byte or the end comes from the pipe 'stopping'. */
static void *serve_all(void *context)
{
    struct proxy *proxy = context;
    struct events events;
    do {
        list_events(proxy, &events);
        poll((struct pollfd *)&events, sizeof events / sizeof(struct pollfd), -1);
        for (unsigned s = 0; s < proxy->nservers; s++) {
            for (size_t i = 0; i < CONNECTIONS_MOST; i++) {
                struct connection *connection = &proxy->connection[s][i];
                if (events.client[s][i].revents)
                    serve_request(connection);
                if (events.server[s][i].revents)
                    serve_reply(proxy, s, connection);
            }
            if (events.listening[s].revents)
                begin_connection(proxy, s);
        }
    } while (!events.stopping.revents);
    return NULL;
}

/* The address may still be that of connections which ended a moment ago.  Or a program that is
 * being started may still have the socket of the proxy before, until it runs: this is tried for
 * at most LISTEN_TRIES milliseconds. */
static int listen_at(unsigned host, unsigned port)
{
    struct sockaddr_in address = address_of(host, port);
    unsigned tries = LISTEN_TRIES;
    int listening = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    setsockopt(listening, SOL_SOCKET, SO_REUSEADDR, &(int){ 1 }, sizeof(int));
    while (bind(listening, (struct sockaddr *)&address, sizeof address) && --tries)
        usleep(1000);
    if (tries && !listen(listening, CONNECTIONS_MOST))
        return listening;
    close(listening);
    return -1;
}

bool proxy_start(struct proxy *proxy, unsigned host, const unsigned *server_port,
                 unsigned nservers)
{
    bool listens = true;
    proxy->nservers = nservers;
    for (unsigned s = 0; s < SERVERS_MOST; s++) {
        proxy->listening[s] = s < nservers ? listen_at(host, server_port[s]) : -1;
        proxy->server_port[s] = s < nservers ? server_port[s] : 0;
        listens &= s >= nservers || proxy->listening[s] >= 0;
        for (size_t i = 0; i < CONNECTIONS_MOST; i++)
            proxy->connection[s][i] = (struct connection){ -1, -1, false };
    }
    return listens && !pipe2(proxy->stopping, O_CLOEXEC) &&
           !pthread_create(&proxy->thread, NULL, serve_all, proxy);
}

/* Hangs up, and waits until the server does: it first does all that it was sent. */
static void finish_connection(struct connection *connection)
{
    char bytes[16 << 10];
    if (connection->client >= 0)
        end_client(connection);
    while (recv(connection->server, bytes, sizeof bytes, 0) > 0)
        ;
    end_server(connection);
}

void proxy_stop(struct proxy *proxy)
{
    close(proxy->stopping[1]);
    pthread_join(proxy->thread, NULL);
    close(proxy->stopping[0]);
    for (unsigned s = 0; s < proxy->nservers; s++) {
        close(proxy->listening[s]);
        for (size_t i = 0; i < CONNECTIONS_MOST; i++)
            if (proxy->connection[s][i].server >= 0)
                finish_connection(&proxy->connection[s][i]);
    }
}
