/* address.h - reads the address of a filter on servers (doc/CLUSTER.md, "Addresses"):
 *
 *     redis://[[user][:password]@]host[:port][,host[:port]...]/name[?setting=value&...]
 *     rediss://...                     by TLS
 *     redis+sentinel://host[:port]...  the hosts are sentinels
 *     unix://[[user][:password]@]/path/name
 */
#ifndef ADDRESS_H
#define ADDRESS_H

#include <stdbool.h>

/* The ports of an address that has none. */
enum { REDIS_PORT = 6379, SENTINEL_PORT = 26379 };
enum { HOST_NBYTES_MOST = 255, NAME_NBYTES_MOST = 1000, ACKNOWLEDGE_MOST = 16 };

/* The longest path that a unix socket may have on Linux. */
enum { PATH_NBYTES_MOST = 107, SERVERS_MOST = 64 };

/* Where a server listens. */
struct endpoint {
    char host[HOST_NBYTES_MOST + 1]; /* without the brackets of IPv6 */
    unsigned port;                   /* 0: a unix socket, whose path is the host */
};

/* map=OLD/NEW: who is announced at 'from' is reached at 'to'.  Port 0: all ports, which
 * stay. */
struct address_map {
    struct endpoint from, to;
};

/* codec=: how the keys of a filter of Redisson are written before they are hashed. */
enum codec { CODEC_NOT_GIVEN, CODEC_STRING, CODEC_KRYO5, CODEC_JSON };

/* What an address says.  It owns its texts; NULL and 0: not given. */
struct address {
    const char *scheme; /* as it was given, with "://"; a constant */
    bool secure;        /* by TLS */
    bool sentinel;      /* the servers are sentinels */
    struct endpoint *servers;
    unsigned nservers;
    struct address_map *maps; /* map=, in the order of the address */
    unsigned nmaps;
    char *user, *password; /* decoded, as all texts are */
    char *name;            /* allowed in this layout */
    bool redisson;         /* layout=redisson */
    bool plain;            /* module=no */
    enum codec codec;
    unsigned timeout_ms, patience_ms, deadline_ms;
    bool replicas_given, replicas;
    bool acknowledge_given;
    unsigned acknowledge;
    char *cacert, *cert, *key, *sni;
    bool insecure;
    unsigned database;
    char *client;        /* the name of this client: printable, no blanks */
    char *password_file; /* whose first line is the password */
    char *master;        /* the name by which sentinels know the master */
    char *sentinel_password_file;
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
