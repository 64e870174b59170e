/* stream.h - a connection to a server, as bytes: over TCP or a unix socket, plain or by TLS.
 *
 *     closed -> connecting -> shaking hands, if it is TLS -> ready
 *
 * Nothing here waits but the search for the address of a host.  A stream that is all zero is
 * closed. */
#ifndef STREAM_H
#define STREAM_H

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "slots.h"
#include "tls.h"

struct stream {
    struct wire wire;
    enum { STREAM_CLOSED, STREAM_CONNECTING, STREAM_SHAKING, STREAM_READY } state;
    const char *host;      /* belongs to the caller */
    struct tls *tls;       /* the caller's; NULL: plain */
    SSL *session;          /* NULL: plain, or not connected yet */
    struct addrinfo *list; /* the addresses of the host; NULL as soon as it is connected */
    struct addrinfo *next; /* the one to be tried when this one fails; NULL: none */
    unsigned silent; /* how many times an address was given up because it did not answer */
    short wants;     /* what the handshake waits for */
    bool more;       /* there are bytes, or an error, of which poll() does not tell */
    bool broken;     /* nothing can be sent any more; there may be something to receive */
    struct failure failure; /* why the last call failed */
};

/* Begins to connect to a server; its text stays where it is.  Port 0 is a unix socket, whose
 * path is the host.  Returns false if that fails. */
bool stream_open(struct stream *stream, const struct endpoint *at, struct tls *tls);

/* Send and receive as much as is possible at once.  Return how much that was; 0 if nothing can
 * be done now; or -1 if the connection has failed. */
ssize_t stream_send(struct stream *stream, const void *bytes, size_t nbytes);
ssize_t stream_receive(struct stream *stream, void *to, size_t room);

/* Returns what poll() must wait for.  If it says POLLOUT (an error, too), stream_send() must be
 * called, else stream_receive(). */
struct pollfd stream_wants(const struct stream *stream, bool has_to_send);

/* Returns what to say to a user if the server does not answer: "" or a text that begins with a
 * semicolon. */
const char *stream_hint(const struct stream *stream);

/* Closes the stream, if it is open. */
void stream_close(struct stream *stream);

#endif
