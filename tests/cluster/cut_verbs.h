/* cut_verbs.h - what clients do with a filter on servers, for tests in which a proxy breaks the
 * servers' replies: each verb can be prepared, done once through the proxy, and checked.
 *
 *     verb       after success                     after an error
 *     add, grow  all keys are in                   keys whose answer is not UNKNOWN are in;
 *                                                  *done has none that is UNKNOWN
 *     create     an empty filter with the options  -
 *                that were asked for
 *     upload     the same, with all keys           -
 *     delete     no Redis key of it is left        -
 *     download   a file without damage, with the   the file is as it was before
 *                keys that were in
 *     dedup      each new line was printed; more   dedup once more prints each new line that
 *                than once, or an old one, only    was not printed
 *                as often as it says ("doubtful")
 *
 * At any time no key that was acknowledged is denied, and no new key is taken for an old one.
 * After an error there is a problem of one line; what is left can be deleted, with nothing left
 * of it, and be made anew.
 *
 * Attempts run in several threads at once, each with a filter of its own.  So what is wrong is
 * noted in the attempt, and does not end the test. */
#ifndef CUT_VERBS_H
#define CUT_VERBS_H

#include "perhaps_cluster.h"
#include "proxy.h"
#include "support.h"

/* The servers of one filter: a single one, or the masters of a cluster. */
struct place {
    const char *name;
    unsigned nservers, port[SERVERS_MOST];
};

enum { OLD_KEYS = 2, NEW_KEYS_MOST = 12, KEYS_MOST = OLD_KEYS + NEW_KEYS_MOST };

/* One run of a verb.  The caller sets the first part. */
struct attempt {
    const struct verb *verb;
    const struct place *place;
    unsigned host;    /* the proxy is 127.0.0.HOST */
    char name[16];    /* of the filter */
    struct path file; /* that this attempt may write, and others whose names begin so */
    uint64_t first_key;
    unsigned timeout_ms, patience_ms;
    bool must_succeed; /* else the verb may fail, with a problem that tells why */
    bool lied_to;      /* what it does and answers may be wrong: it only has to end */

    uint64_t key[KEYS_MOST]; /* those that are in before, and new ones */
    bool is_in[KEYS_MOST];   /* an add of it has returned */
    char problem[900];       /* why the verb failed */
    char trouble[600];       /* what must not be; empty: all is well */
};

struct verb {
    const char *name;
    unsigned nnew; /* how many new keys it adds */
    bool shares;   /* all attempts use one filter, which is large: see verbs_begin() */
    bool spawns;   /* it is the program that does it */
    void (*prepare)(struct attempt *a);                /* without the proxy */
    int (*run)(struct attempt *a, perhaps_cluster *c); /* through it; returns an error */
    void (*check)(struct attempt *a, int error);       /* without it */
};

extern const struct verb verbs[];
extern const size_t nverbs;

/* Makes what all attempts at a place share.  'program' is the command line; NULL: there is
 * none, and verbs that need it must not be run. */
void verbs_begin(const struct place *place, const char *program);
void verbs_end(const struct place *place);

/* Prepares and runs the verb, with this proxy before the servers, and checks what it has done.
 * After an error what it left must be removable, and a filter of that name can be made anew. */
void attempt_run(struct attempt *a, struct proxy *proxy);

#endif
