/* stream.c - opens connections, and sends and receives their bytes.
 *
 * A host may have several addresses, of which some do not answer: they are tried one after the
 * other.  An address that refuses is followed by the next one at once.  If the caller gives up
 * one that is silent, the next stream_open() begins behind it. */
#include "stream.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* After so many seconds of silence the system asks whether the server is still there, so often,
 * and so many seconds apart. */
enum { ALIVE_AFTER_S = 60, ALIVE_EVERY_S = 10, ALIVE_TRIES = 3 };

/* ---- Connecting ------------------------------------------------------------------------ */

static void set_option(int fd, int level, int option, int value)
{
    setsockopt(fd, level, option, &value, sizeof value);
}

static void close_wire(struct stream *s)
{
    tls_end(s->session);
    s->session = NULL;
    if (s->state != STREAM_CLOSED)
        close(s->wire.fd);
    s->state = STREAM_CLOSED;
    s->wire = (struct wire){ .fd = -1 };
}

/* The connection stands: TLS begins, if it is to be.  Returns false if there is no memory. */
static bool begin_tls(struct stream *s)
{
    s->state = s->tls ? STREAM_SHAKING : STREAM_READY;
    s->wants = POLLOUT;
    if (s->list)
        freeaddrinfo(s->list);
    s->list = s->next = NULL;
    if (s->tls)
        s->session = tls_begin(s->tls, &s->wire, s->host, &s->failure);
    return !s->tls || s->session;
}

/* Begins to connect to one address.  Returns false if that fails at once. */
static bool try_address(struct stream *s, const struct sockaddr *address, socklen_t nbytes)
{
    int family = address->sa_family;
    int fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd >= 0 && family != AF_UNIX) {
        set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1);
        set_option(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
        set_option(fd, IPPROTO_TCP, TCP_KEEPIDLE, ALIVE_AFTER_S);
        set_option(fd, IPPROTO_TCP, TCP_KEEPINTVL, ALIVE_EVERY_S);
        set_option(fd, IPPROTO_TCP, TCP_KEEPCNT, ALIVE_TRIES);
    }
    if (fd < 0 || (connect(fd, address, nbytes) && errno != EINPROGRESS)) {
        failure_note(&s->failure, "%s", strerror(errno));
        if (fd >= 0)
            close(fd);
        return false;
    }
    s->wire.fd = fd;
    s->state = STREAM_CONNECTING; /* or connected already, which poll() tells at once */
    return true;
}

/* Tries the addresses that are left.  Returns false if there is none that does not fail at
 * once. */
static bool try_next(struct stream *s)
{
    while (s->next) {
        const struct addrinfo *one = s->next;
        s->next = one->ai_next;
        if (try_address(s, one->ai_addr, one->ai_addrlen))
            return true;
    }
    return false;
}

/* Returns the number of an address that is to be tried first, counted round and round. */
static struct addrinfo *first_of(struct addrinfo *list, unsigned number)
{
    unsigned count = 0;
    for (const struct addrinfo *one = list; one; one = one->ai_next)
        count++;
    for (number = count ? number % count : 0; number > 0; number--)
        list = list->ai_next;
    return list;
}

static bool find_host(struct stream *s, const struct endpoint *at)
{
    static const struct addrinfo wanted = { .ai_socktype = SOCK_STREAM,
                                            .ai_flags = AI_NUMERICSERV };
    char port[12];
    snprintf(port, sizeof port, "%u", at->port);
    int error = getaddrinfo(at->host, port, &wanted, &s->list);
    if (error) {
        failure_note(&s->failure, "%s",
                     error == EAI_SYSTEM ? strerror(errno) : gai_strerror(error));
        s->list = NULL;
        return false;
    }
    s->next = first_of(s->list, s->silent);
    return true;
}

static bool open_unix(struct stream *s, const char *path)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    if (strlen(path) >= sizeof address.sun_path) {
        failure_note(&s->failure, "%s", strerror(ENAMETOOLONG));
        return false;
    }
    memcpy(address.sun_path, path, strlen(path));
    return try_address(s, (const struct sockaddr *)&address, sizeof address);
}

bool stream_open(struct stream *s, const struct endpoint *at, struct tls *tls)
{
    stream_close(s);
    s->host = at->host;
    s->tls = tls;
    s->more = s->broken = false;
    bool opened = at->port ? find_host(s, at) && try_next(s) : open_unix(s, at->host);
    if (!opened)
        stream_close(s);
    return opened;
}

void stream_close(struct stream *s)
{
    s->silent += s->state == STREAM_CONNECTING;
    close_wire(s);
    if (s->list)
        freeaddrinfo(s->list);
    s->list = s->next = NULL;
}

/* Looks whether the connection stands by now.  Returns 1 if it does, 0 if that is not known
 * yet, or -1 after a failure. */
static int connect_more(struct stream *s)
{
    struct pollfd event = { .fd = s->wire.fd, .events = POLLOUT };
    int error = 0;
    socklen_t nbytes = sizeof error;
    if (poll(&event, 1, 0) <= 0)
        return 0;
    if (getsockopt(s->wire.fd, SOL_SOCKET, SO_ERROR, &error, &nbytes))
        error = errno;
    if (!error)
        return begin_tls(s) ? 1 : -1;
    failure_note(&s->failure, "%s", strerror(error));
    close_wire(s);
    return try_next(s) ? 0 : -1;
}

/* Goes on until the stream is ready.  Returns 1 if it is, 0 if it waits for the server, or -1
 * after a failure. */
static int get_ready(struct stream *s)
{
    int done = 1;
    if (s->state == STREAM_CLOSED)
        return -1;
    if (s->state == STREAM_CONNECTING)
        done = connect_more(s);
    if (done > 0 && s->session && !tls_is_ready(s->session))
        done = tls_shake(s->session, &s->wants, &s->failure);
    if (done > 0)
        s->state = STREAM_READY;
    return done;
}

/* ---- Bytes ----------------------------------------------------------------------------- */

static bool is_passing(int error)
{
    return error == EAGAIN || error == EWOULDBLOCK || error == EINTR;
}

/* A server that closes a connection may have said why.  So if nothing can be sent any more, it
 * is stream_receive() that fails, behind the last byte. */
ssize_t stream_send(struct stream *s, const void *bytes, size_t nbytes)
{
    int ready = get_ready(s);
    if (ready <= 0 || s->broken || !nbytes)
        return ready < 0 ? -1 : 0;
    ssize_t sent = s->session ? tls_send(s->session, bytes, nbytes, &s->wants, &s->failure)
                              : send(s->wire.fd, bytes, nbytes, MSG_NOSIGNAL);
    if (sent >= 0 || (!s->session && is_passing(errno)))
        return sent > 0 ? sent : 0;
    s->broken = true;
    s->more = true;
    return 0;
}

static ssize_t receive_plain(struct stream *s, void *to, size_t room)
{
    ssize_t got = recv(s->wire.fd, to, room, 0);
    if (got > 0)
        s->wire.heard = true;
    if (got > 0 || (got < 0 && is_passing(errno)))
        return got > 0 ? got : 0;
    failure_note(&s->failure, "%s", got ? strerror(errno) : "it closed the connection");
    s->failure.mute = !s->wire.heard;
    s->failure.closed = true;
    return -1;
}

/* Takes all that OpenSSL has.  If it has more than there is room for, or fails behind some
 * bytes, poll() does not tell. */
static ssize_t receive_tls(struct stream *s, char *to, size_t room)
{
    size_t total = 0;
    ssize_t got = 1;
    while (total < room && got > 0) {
        got = tls_receive(s->session, to + total, room - total, &s->wants, &s->failure);
        if (got > 0)
            total += (size_t)got;
    }
    s->more = got != 0;
    return total ? (ssize_t)total : got;
}

ssize_t stream_receive(struct stream *s, void *to, size_t room)
{
    int ready = get_ready(s);
    if (ready <= 0)
        return ready;
    s->more = false;
    return s->session ? receive_tls(s, to, room) : receive_plain(s, to, room);
}

/* While hands are shaken, and if they are shaken anew, the direction is that of OpenSSL. */
struct pollfd stream_wants(const struct stream *s, bool has_to_send)
{
    short events = (short)(POLLIN | (has_to_send && !s->broken ? POLLOUT : 0));
    if (s->state == STREAM_CONNECTING)
        events = POLLOUT;
    else if (s->session && !tls_is_ready(s->session))
        events = s->wants;
    return (struct pollfd){ .fd = s->wire.fd, .events = events };
}

const char *stream_hint(const struct stream *s)
{
    return s->state == STREAM_SHAKING && !s->wire.heard
               ? "; if it does not speak TLS, write redis:// instead of rediss://"
               : "";
}
