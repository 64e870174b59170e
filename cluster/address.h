/* address.h - where a filter is:
 * redis://[[user][:password]@]host[:port]/name[?setting=value&...] */
#ifndef ADDRESS_H
#define ADDRESS_H

#include <stdbool.h>

/* The port where none is given. */
enum { REDIS_PORT = 6379 };
enum { HOST_NBYTES_MOST = 255, NAME_NBYTES_MOST = 1000, ACKNOWLEDGE_MOST = 16 };

struct address {
    char *host; /* without the brackets of IPv6 */
    unsigned port;
    char *user, *password;            /* decoded; NULL: none */
    char *name;                       /* decoded; one that the layout allows */
    bool redisson;                    /* layout=redisson */
    unsigned timeout_ms, patience_ms; /* 0: not given */
    bool replicas_given, replicas;
    bool acknowledge_given;
    unsigned acknowledge;
};

/* Reads the address.  Returns NULL; or one line that says what is wrong and what to do, or
 * no_memory, and *address is empty.  Release it with address_release(). */
const char *address_read(const char *url, struct address *address);

/* Releases its texts, and leaves it empty: all zero. */
void address_release(struct address *address);

/* What functions here return whose problem is a line of text, where memory is the problem. */
extern const char no_memory[];

#endif
