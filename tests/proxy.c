/* proxy.c - the proxy of proxy.h: one thread, which moves bytes between clients and the server
 * with poll().  Only replies are counted and broken; requests always pass. */
#include "proxy.h"

#include <arpa/inet.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "support.h"

static struct sockaddr_in address_of(unsigned port)
{
    return (struct sockaddr_in){ .sin_family = AF_INET,
                                 .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
                                 .sin_port = htons((uint16_t)port) };
}

/* ---- Connections ------------------------------------------------------------------------- */

static void end_connection(struct connection *connection)
{
    close(connection->client);
    close(connection->server);
    *connection = (struct connection){ -1, -1, false };
}

/* Accepts a client and connects it to the server; if that fails, the client is hung up. */
static void begin_connection(struct proxy *proxy)
{
    struct sockaddr_in to = address_of(proxy->server_port);
    struct connection *connection = proxy->connection;
    while (connection->client >= 0)
        connection++;
    expect(connection < proxy->connection + CONNECTIONS_MOST);
    connection->client = accept(proxy->listening, NULL, NULL);
    connection->server = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(connection->server, (struct sockaddr *)&to, sizeof to))
        end_connection(connection);
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

/* Sends a reply to the client, or only its bytes up to the fault.  Returns false if the caller
 * has to end the connection.  The fault happens once: it is FAULT_NONE from then on. */
static bool pass_reply(struct proxy *proxy, struct connection *connection, const char *bytes,
                       size_t nbytes)
{
    uint64_t left = proxy->at - proxy->nreplied;
    if (proxy->fault == FAULT_NONE || nbytes <= left) {
        proxy->nreplied += nbytes;
        return pass(connection->client, bytes, nbytes);
    }
    pass(connection->client, bytes, left);
    if (proxy->last_words)
        pass(connection->client, proxy->last_words, strlen(proxy->last_words));
    connection->stalls = proxy->fault == FAULT_STALL;
    proxy->fault = FAULT_NONE;
    return connection->stalls;
}

/* Reads once from one side of a connection and sends the bytes to the other side. */
static void serve(struct proxy *proxy, struct connection *connection, bool replies)
{
    char bytes[16 << 10];
    ssize_t got =
        recv(replies ? connection->server : connection->client, bytes, sizeof bytes, 0);
    bool passed = got > 0 && (replies ? pass_reply(proxy, connection, bytes, (size_t)got)
                                      : pass(connection->server, bytes, (size_t)got));
    if (!passed)
        end_connection(connection);
}

/* ---- The thread -------------------------------------------------------------------------- */

/* Serves until a byte or the end comes from the pipe 'stopping'.  poll() ignores sockets of -1:
 * free places, and connections that stall. */
static void *serve_all(void *context)
{
    struct proxy *proxy = context;
    for (;;) {
        struct pollfd events[2 + 2 * CONNECTIONS_MOST];
        events[0] = (struct pollfd){ proxy->stopping[0], POLLIN, 0 };
        events[1] = (struct pollfd){ proxy->listening, POLLIN, 0 };
        for (size_t i = 0; i < CONNECTIONS_MOST; i++) {
            const struct connection *c = &proxy->connection[i];
            events[2 + 2 * i] = (struct pollfd){ c->stalls ? -1 : c->client, POLLIN, 0 };
            events[3 + 2 * i] = (struct pollfd){ c->stalls ? -1 : c->server, POLLIN, 0 };
        }
        poll(events, sizeof events / sizeof *events, -1);
        for (size_t i = 0; i < 2 * CONNECTIONS_MOST; i++)
            if (events[2 + i].revents && proxy->connection[i / 2].client >= 0)
                serve(proxy, &proxy->connection[i / 2], i % 2);
        if (events[1].revents)
            begin_connection(proxy);
        if (events[0].revents)
            return NULL;
    }
}

void proxy_start(struct proxy *proxy, unsigned server_port)
{
    struct sockaddr_in address = address_of(0);
    socklen_t nbytes = sizeof address;
    proxy->server_port = server_port;
    proxy->listening = socket(AF_INET, SOCK_STREAM, 0);
    expect(!bind(proxy->listening, (struct sockaddr *)&address, nbytes));
    expect(!listen(proxy->listening, CONNECTIONS_MOST));
    expect(!getsockname(proxy->listening, (struct sockaddr *)&address, &nbytes));
    proxy->port = ntohs(address.sin_port);
    for (size_t i = 0; i < CONNECTIONS_MOST; i++)
        proxy->connection[i] = (struct connection){ -1, -1, false };
    expect(!pipe(proxy->stopping));
    expect(!pthread_create(&proxy->thread, NULL, serve_all, proxy));
}

void proxy_stop(struct proxy *proxy)
{
    close(proxy->stopping[1]);
    pthread_join(proxy->thread, NULL);
    close(proxy->stopping[0]);
    close(proxy->listening);
    for (size_t i = 0; i < CONNECTIONS_MOST; i++)
        if (proxy->connection[i].client >= 0)
            end_connection(&proxy->connection[i]);
}
