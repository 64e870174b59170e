/* strange_server.c - the server of strange_server.h: one thread, which serves one connection
 * after the other. */
#include "strange_server.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { CONNECTIONS_MOST = 64 };

void answer_put(struct answer *answer, const char *text)
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

/* Sends more than any memory takes, or more than anybody waits for, until the client hangs
 * up. */
static bool flood(struct server *server, int connection)
{
    static char bytes[1 << 16];
    size_t nbytes = server->flood ? strlen(server->flood) : 0, total = 0;
    if (!nbytes)
        return true;
    while (server->drips && send(connection, server->flood, 1, MSG_NOSIGNAL) == 1)
        usleep(10000);
    if (server->drips)
        return false;
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
        setsockopt(connection, IPPROTO_TCP, TCP_NODELAY, &(int){ 1 }, sizeof(int));
        serve(server, connection);
        close(connection);
    }
    return NULL;
}

void strange_start(struct server *server, answer_function *answering)
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

void strange_run(struct server *server)
{
    expect(!pthread_create(&server->thread, NULL, serve_all, server));
}

void strange_stop(struct server *server)
{
    shutdown(server->listening, SHUT_RDWR);
    pthread_join(server->thread, NULL);
    close(server->listening);
}
