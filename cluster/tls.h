/* tls.h - TLS over a socket, by OpenSSL: the bytes of one connection, and who is at its end. */
#ifndef TLS_H
#define TLS_H

#include <openssl/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* What makes a connection safe.  The texts belong to the caller; NULL: not given. */
struct tls_settings {
    const char *cacert;     /* a file or folder of the authorities; NULL: those of the system */
    const char *cert, *key; /* files: the client's own certificate, and its key */
    const char *sni;        /* the name in the server's certificate; NULL: its host */
    bool insecure;          /* does not look at the server's certificate */
};

/* The settings as OpenSSL has read them, for all connections of a handle. */
struct tls;

/* The socket under a connection. */
struct wire {
    int fd;
    bool heard; /* a byte has come */
};

/* Why a connection has failed, in one line. */
struct failure {
    char text[240];
    bool closed; /* the server closed it: so there is a server */
    bool mute;   /* before it had sent a byte */
};

/* Reads the files.  Returns NULL if that fails. */
struct tls *tls_new(const struct tls_settings *settings, struct failure *failure);
void tls_free(struct tls *tls);

/* Makes a session over a socket, which stays at its address; nothing is sent yet.  Returns NULL
 * if that fails. */
SSL *tls_begin(struct tls *tls, struct wire *wire, const char *host, struct failure *failure);

/* Ends a session, if it is not NULL; the socket stays open. */
void tls_end(SSL *session);

/* These three do what can be done at once.  They return how much that was (tls_shake(): 1 if
 * both have agreed); 0 if nothing was, and then *wants is what poll() must wait for; or -1 if
 * the session has failed. */
int tls_shake(SSL *session, short *wants, struct failure *failure);
ssize_t tls_send(SSL *session, const void *bytes, size_t nbytes, short *wants,
                 struct failure *failure);
ssize_t tls_receive(SSL *session, void *to, size_t room, short *wants, struct failure *failure);

/* Returns whether tls_shake() has returned 1, and nothing has to be agreed on anew. */
bool tls_is_ready(const SSL *session);

/* Notes why a connection has failed. */
void failure_note(struct failure *failure, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
