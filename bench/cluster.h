/* cluster.h - what the files of perhaps-bench-cluster share.
 *
 * It measures one filter that lies on several servers, beside two other clients: pipelined
 * GETs, the yardstick; and a Bloom filter that sends a command for each bit, the naive layout.
 * All three keep every server busy from one thread and get the same number of keys a call.
 * They take turns every fraction of a second, so that a noisy machine is equally noisy for
 * each. */
#ifndef CLUSTER_H
#define CLUSTER_H

#include <hiredis/hiredis.h>

#include "report.h"

/* What the options ask for, and what follows from them. */
struct setup {
    const char *servers; /* redis://host:port: any node of a cluster, or a single server */
    const char *json;
    struct list keys, fpr; /* keys: one number, the capacity */
    bool quick;
    size_t batch;    /* keys in a call */
    size_t piece;    /* keys in a turn; a multiple of 'batch' */
    size_t rounds;   /* how many turns each work has */
    uint64_t absent; /* how many absent keys to ask for to measure the rate */
    size_t samples;  /* how many calls to time; their median is the latency */
};

/* ---- The servers and the rivals: fleet.c ------------------------------------------------- */

enum { NODES_MAX = 64, SLOTS = 16384 };

/* Takes the answer to the command with this tag: an integer, or bytes.  Answers that are errors
 * end the program before. */
typedef void fleet_taker(void *context, uint32_t tag, long long number, const char *bytes,
                         size_t nbytes);

/* A server and two connections to it.  Commands are written into a buffer and sent while more
 * are written; the server answers them in their order.  This goes by hiredis, as in the library
 * that is measured, but parses replies without a call of malloc() for each.  It belongs to its
 * fleet. */
struct node {
    struct fleet *fleet;
    char at[64];           /* host:port */
    redisContext *context; /* for the commands that are timed: replies go to 'take' */
    redisContext *control; /* for INFO and the like: replies as hiredis makes them */
    char *out;             /* the commands of this run */
    size_t out_nbytes, out_sent, out_room;
    uint32_t *tags; /* of these commands, in their order */
    size_t ntags, tag_room, answered;
};

/* All masters of a cluster, or one server.  Nodes point to it, so it stays where it is. */
struct fleet {
    struct node nodes[NODES_MAX];
    size_t count;
    uint8_t node_of[SLOTS]; /* which node owns the slot */
    fleet_taker *take;      /* of the commands that are written now; NULL: nobody wants them */
    void *context;          /* given to 'take' */
};

/* Connects to the servers, or ends the program and says what is wrong. */
void fleet_open(struct fleet *fleet, const char *url);
void fleet_close(struct fleet *fleet);

/* Redis strings on the servers; their names end in a number of six digits. */
struct strings {
    struct fleet *fleet;
    const char *prefix; /* 14 characters */
    uint64_t count;
    uint8_t *node_of; /* the node of each string: slots are computed once */
};

/* Releases the struct, and removes the strings from the servers. */
void strings_close(struct strings *strings);

/* Adds to 'cost' what all masters together say that they have done so far, times 'factor': -1
 * before the work and 1 after it give the work's own cost.  CPU times are in microseconds.  The
 * servers know nothing of CLIENT_US. */
enum cost { COMMANDS, BYTES_TO, BYTES_FROM, SERVER_US, CLIENT_US, COSTS };
void fleet_count(struct fleet *fleet, double factor, double cost[COSTS]);

/* The yardstick: values of 64 bytes, as many bytes as a query for a key brings back.  All of
 * them together take about as much memory as a filter for ten million keys.  FEW_VALUES of them
 * stay in the caches, and show what a server can do at the very best. */
enum { VALUE_NBYTES = 64, VALUES = 1 << 18, FEW_VALUES = 1 << 10 };

/* Writes the values to the servers. */
struct strings values_open(struct fleet *fleet);

/* Gets 'count' values, chosen at random from the first 'values'; another 'first' chooses
 * others. */
void values_get(const struct strings *strings, uint64_t values, uint64_t first, size_t count);

/* The naive layout.  The bits of a classic Bloom filter lie in one row, which is cut into
 * strings of 2^string_shift bits: about as many strings as the other filter has partitions.  A
 * GETBIT or SETBIT goes to the servers for each of the k bits of a key, and those of a whole
 * batch are on their way at once. */
struct bits {
    struct strings strings;
    perhaps_filter *hash; /* a small filter, which only hashes the keys */
    unsigned k;
    uint64_t nbits;
    unsigned string_shift;
    struct perhaps_hashed *hashed; /* the keys of a batch */
    bool *all; /* for each key of a batch: all its bits so far were set before */
};

/* Makes the strings, for the capacity of 'setup' and this rate; k and size are those of the
 * textbook. */
void bits_open(struct bits *bits, struct fleet *fleet, const struct setup *setup, double fpr,
               uint64_t nstrings);
void bits_close(struct bits *bits);

/* Return how many of the keys had all their bits set before. */
size_t bits_add(struct bits *bits, const struct perhaps_keys *keys);
size_t bits_ask(struct bits *bits, const struct perhaps_keys *keys);

/* ---- Measuring: cluster_measure.c -------------------------------------------------------- */

/* Measures one filter on the servers: fills it almost, takes the turns, fills it up and
 * measures its rate.  Returns the results. */
json_t *measure_rate(const struct strings *values, const struct setup *setup, double fpr);

/* Measures how long calls with few keys take.  Returns a row for each number of keys. */
json_t *measure_latency(const struct strings *values, const struct setup *setup);

#endif
