/* tls.c - TLS over a socket, by OpenSSL.
 *
 *     session = SSL + BIO ---- our own methods ---- send(MSG_NOSIGNAL), recv() on the socket
 *
 * The BIO of OpenSSL for sockets calls write(), which kills a program by SIGPIPE if the server
 * has closed the connection.  So sessions have a BIO of our own.
 *
 * OpenSSL keeps errors in a queue of the thread, and takes the oldest one for that of the last
 * call.  So the queue is emptied before each call, and behind it. */
#include "tls.h"

#include <arpa/inet.h>
#include <errno.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>

struct tls {
    SSL_CTX *context;
    BIO_METHOD *methods;
    char *name; /* that the server's certificate must have; NULL: its host */
    bool insecure;
};

void failure_note(struct failure *failure, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(failure->text, sizeof failure->text, format, arguments);
    va_end(arguments);
    failure->closed = failure->mute = false;
}

/* ---- Errors ---------------------------------------------------------------------------- */

/* Returns what is wrong with the server's certificate, and what to do. */
static const char *certificate_problem(long result)
{
    switch (result) {
    case X509_V_ERR_CERT_HAS_EXPIRED:
        return "its certificate has expired: it needs a new one";
    case X509_V_ERR_CERT_NOT_YET_VALID:
        return "its certificate is not valid yet: are the clocks right?";
    case X509_V_ERR_HOSTNAME_MISMATCH:
    case X509_V_ERR_IP_ADDRESS_MISMATCH:
        return "its certificate is for another name: give a name that is in it by sni=";
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
        return "its certificate is by nobody who is trusted here: give the certificate of its "
               "authority by cacert=";
    default:
        return X509_verify_cert_error_string(result);
    }
}

/* Returns what an error of OpenSSL means for a client of a server, and what to do. */
static const char *reason_of(unsigned long code, long verified)
{
    static const char no_tls[] = "it does not speak TLS: write redis:// instead of rediss://",
                      wanted[] = "it wants a certificate of its clients: give cert= and key=",
                      unwanted[] = "it does not take the certificate of cert=";
    static const struct {
        int reason;
        const char *text;
    } known[] = {
        { SSL_R_WRONG_VERSION_NUMBER, no_tls },
        { SSL_R_HTTP_REQUEST, no_tls },
        { SSL_R_PACKET_LENGTH_TOO_LONG, no_tls },
        { SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED, wanted },
        { SSL_R_SSLV3_ALERT_HANDSHAKE_FAILURE,
          "it refused TLS: it may want a certificate of its clients (cert= and key=)" },
        { SSL_R_SSLV3_ALERT_BAD_CERTIFICATE, unwanted },
        { SSL_R_SSLV3_ALERT_UNSUPPORTED_CERTIFICATE, unwanted },
        { SSL_R_SSLV3_ALERT_CERTIFICATE_EXPIRED, "it says that the certificate of cert= has "
                                                 "expired" },
        { SSL_R_SSLV3_ALERT_CERTIFICATE_REVOKED, unwanted },
        { SSL_R_SSLV3_ALERT_CERTIFICATE_UNKNOWN, unwanted },
        { SSL_R_TLSV1_ALERT_UNKNOWN_CA, "it does not trust who made the certificate of cert=" },
        { SSL_R_UNSUPPORTED_PROTOCOL, "it speaks only versions of TLS before 1.2" },
        { SSL_R_TLSV1_ALERT_PROTOCOL_VERSION, "it speaks only versions of TLS before 1.2" },
    };
    int reason = ERR_GET_REASON(code);
    if (reason == SSL_R_CERTIFICATE_VERIFY_FAILED)
        return certificate_problem(verified);
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (reason == known[i].reason)
            return known[i].text;
    const char *text = ERR_reason_error_string(code);
    return text ? text : "TLS failed";
}

/* Finds out why a call of OpenSSL did nothing.  Returns 0 if it must be repeated when the
 * socket is ready; else -1. */
static int settle_call(const SSL *session, int returned, short *wants, struct failure *failure)
{
    int number = errno, error = SSL_get_error(session, returned);
    unsigned long code = ERR_peek_error();
    if (error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE) {
        *wants = error == SSL_ERROR_WANT_READ ? POLLIN : POLLOUT;
        return 0;
    }
    bool is_plain_error =
        error == SSL_ERROR_SSL && ERR_GET_REASON(code) != SSL_R_UNEXPECTED_EOF_WHILE_READING;
    if (is_plain_error)
        failure_note(failure, "%s", reason_of(code, SSL_get_verify_result(session)));
    else if (error == SSL_ERROR_SYSCALL && number)
        failure_note(failure, "%s", strerror(number));
    else
        failure_note(failure, "it closed the connection");
    failure->closed = !is_plain_error;
    return -1;
}

/* ---- The socket of a session ------------------------------------------------------------- */

static bool is_passing(int number)
{
    return number == EAGAIN || number == EWOULDBLOCK || number == EINTR;
}

static int write_wire(BIO *bio, const char *bytes, int nbytes)
{
    const struct wire *wire = BIO_get_data(bio);
    BIO_clear_retry_flags(bio);
    ssize_t sent = send(wire->fd, bytes, (size_t)nbytes, MSG_NOSIGNAL);
    if (sent < 0 && is_passing(errno))
        BIO_set_retry_write(bio);
    return (int)sent;
}

static int read_wire(BIO *bio, char *to, int room)
{
    struct wire *wire = BIO_get_data(bio);
    BIO_clear_retry_flags(bio);
    ssize_t got = recv(wire->fd, to, (size_t)room, 0);
    if (got < 0 && is_passing(errno))
        BIO_set_retry_read(bio);
    else if (got == 0)
        errno = 0;
    wire->heard |= got > 0;
    return (int)got;
}

/* Nothing is buffered, so there is nothing to flush.  Of other questions a session needs no
 * answer. */
static long control_wire(BIO *bio, int command, long number, void *pointer)
{
    (void)bio, (void)number, (void)pointer;
    return command == BIO_CTRL_FLUSH;
}

static BIO_METHOD *make_methods(void)
{
    BIO_METHOD *methods = BIO_meth_new(BIO_TYPE_SOURCE_SINK, "perhaps");
    if (methods && BIO_meth_set_write(methods, write_wire) &&
        BIO_meth_set_read(methods, read_wire) && BIO_meth_set_ctrl(methods, control_wire))
        return methods;
    BIO_meth_free(methods);
    return NULL;
}

/* ---- Settings -------------------------------------------------------------------------- */

/* A library does not ask for the password of a key on the terminal, as OpenSSL would. */
static int no_password(char *to, int room, int writing, void *context)
{
    (void)to, (void)room, (void)writing, (void)context;
    return -1;
}

static bool load_authorities(SSL_CTX *context, const char *path)
{
    struct stat stat_of;
    if (!path)
        return SSL_CTX_set_default_verify_paths(context);
    return stat(path, &stat_of) == 0 && S_ISDIR(stat_of.st_mode)
               ? SSL_CTX_load_verify_dir(context, path)
               : SSL_CTX_load_verify_file(context, path);
}

/* Notes that the file of a setting could not be used, and returns false. */
static bool note_file(struct failure *failure, const char *setting, const char *path)
{
    const char *reason = ERR_reason_error_string(ERR_peek_error());
    failure_note(failure, "%s=%.120s: %.80s", setting, path ? path : "",
                 reason ? reason : "it cannot be read");
    return false;
}

/* Reads the files of the settings. */
static bool load_files(SSL_CTX *context, const struct tls_settings *s, struct failure *failure)
{
    SSL_CTX_set_default_passwd_cb(context, no_password);
    if (!s->insecure && !load_authorities(context, s->cacert))
        return note_file(failure, "cacert", s->cacert);
    if (s->cert && SSL_CTX_use_certificate_chain_file(context, s->cert) != 1)
        return note_file(failure, "cert", s->cert);
    if (s->key && SSL_CTX_use_PrivateKey_file(context, s->key, SSL_FILETYPE_PEM) != 1)
        return note_file(failure, "key", s->key);
    return true;
}

static SSL_CTX *make_context(const struct tls_settings *s, struct failure *failure)
{
    SSL_CTX *context = SSL_CTX_new(TLS_client_method());
    if (!context || !SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION)) {
        failure_note(failure, "no memory");
        SSL_CTX_free(context);
        return NULL;
    }
    SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION);
    SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
    /* what is to be sent lies in a buffer that grows, and so moves */
    SSL_CTX_set_mode(context,
                     SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    SSL_CTX_set_read_ahead(context, 1); /* many records by one recv() */
    SSL_CTX_set_verify(context, s->insecure ? SSL_VERIFY_NONE : SSL_VERIFY_PEER, NULL);
    if (load_files(context, s, failure))
        return context;
    SSL_CTX_free(context);
    return NULL;
}

struct tls *tls_new(const struct tls_settings *settings, struct failure *failure)
{
    struct tls *tls = calloc(1, sizeof *tls);
    failure_note(failure, "no memory");
    if (!tls)
        return NULL;
    ERR_clear_error();
    tls->insecure = settings->insecure;
    tls->name = settings->sni ? strdup(settings->sni) : NULL;
    tls->methods = make_methods();
    if (tls->methods && (tls->name || !settings->sni))
        tls->context = make_context(settings, failure);
    ERR_clear_error();
    if (tls->context)
        return tls;
    tls_free(tls);
    return NULL;
}

void tls_free(struct tls *tls)
{
    if (!tls)
        return;
    SSL_CTX_free(tls->context);
    BIO_meth_free(tls->methods);
    free(tls->name);
    free(tls);
}

/* ---- Sessions -------------------------------------------------------------------------- */

/* Sets the name that is asked for and that the certificate must have.  An IP address is not
 * asked for, since TLS has no way to, and the certificate must have it as an address. */
static bool set_name(SSL *session, const char *name)
{
    unsigned char bytes[sizeof(struct in6_addr)];
    if (inet_pton(AF_INET, name, bytes) == 1 || inet_pton(AF_INET6, name, bytes) == 1)
        return X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(session), name) == 1;
    SSL_set_hostflags(session, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    return SSL_set1_host(session, name) == 1 && SSL_set_tlsext_host_name(session, name) == 1;
}

/* The session owns its BIO. */
SSL *tls_begin(struct tls *tls, struct wire *wire, const char *host, struct failure *failure)
{
    ERR_clear_error();
    SSL *session = SSL_new(tls->context);
    BIO *bio = session ? BIO_new(tls->methods) : NULL;
    if (bio) {
        BIO_set_data(bio, wire);
        BIO_set_init(bio, 1);
        SSL_set_bio(session, bio, bio);
        SSL_set_connect_state(session);
    }
    bool made = bio && set_name(session, tls->name ? tls->name : host);
    ERR_clear_error();
    if (made)
        return session;
    failure_note(failure, "no memory");
    SSL_free(session);
    return NULL;
}

/* Says farewell, without waiting for an answer. */
void tls_end(SSL *session)
{
    if (!session)
        return;
    ERR_clear_error();
    if (SSL_is_init_finished(session))
        SSL_shutdown(session);
    ERR_clear_error();
    SSL_free(session);
}

bool tls_is_ready(const SSL *session)
{
    return SSL_is_init_finished(session);
}

int tls_shake(SSL *session, short *wants, struct failure *failure)
{
    ERR_clear_error();
    errno = 0;
    int returned = SSL_do_handshake(session);
    int result = returned == 1 ? 1 : settle_call(session, returned, wants, failure);
    ERR_clear_error();
    return result;
}

ssize_t tls_send(SSL *session, const void *bytes, size_t nbytes, short *wants,
                 struct failure *failure)
{
    size_t sent;
    ERR_clear_error();
    errno = 0;
    int returned = SSL_write_ex(session, bytes, nbytes, &sent);
    ssize_t result = returned ? (ssize_t)sent : settle_call(session, returned, wants, failure);
    ERR_clear_error();
    return result;
}

ssize_t tls_receive(SSL *session, void *to, size_t room, short *wants, struct failure *failure)
{
    size_t got;
    ERR_clear_error();
    errno = 0;
    int returned = SSL_read_ex(session, to, room, &got);
    ssize_t result = returned ? (ssize_t)got : settle_call(session, returned, wants, failure);
    ERR_clear_error();
    return result;
}
