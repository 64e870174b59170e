/* address.h - reads the address of a filter on servers:
 * redis://[[user][:password]@]host[:port]/name[?setting=value&...] */
#ifndef ADDRESS_H
#define ADDRESS_H

#include <stdbool.h>

/* The port of an address that has none. */
enum { REDIS_PORT = 6379 };
enum { HOST_NBYTES_MOST = 255, NAME_NBYTES_MOST = 1000, ACKNOWLEDGE_MOST = 16 };

/* codec=: how the keys of a filter of Redisson are written before they are hashed. */
enum codec { CODEC_NOT_GIVEN, CODEC_STRING, CODEC_KRYO5, CODEC_JSON };

/* What an address says.  It owns its texts. */
struct address {
    char *host; /* without the brackets of IPv6 */
    unsigned port;
    char *user, *password;            /* decoded; NULL: not given */
    char *name;                       /* decoded, and allowed in this layout */
    bool redisson;                    /* layout=redisson */
    enum codec codec;                 /* only with layout=redisson */
    unsigned timeout_ms, patience_ms; /* 0: not given */
    bool replicas_given, replicas;
    bool acknowledge_given;
    unsigned acknowledge;
};

/* Reads an address.  Returns NULL, and address_release() releases it later.  On failure returns
 * no_memory, or one line that says what is wrong and what to do, and *address is empty. */
const char *address_read(const char *url, struct address *address);

/* Releases the texts and leaves the address empty: all zero. */
void address_release(struct address *address);

/* The problem "out of memory".  Functions of the client that return a problem as text return
 * this very pointer, so that callers can tell it from others. */
extern const char no_memory[];

#endif
