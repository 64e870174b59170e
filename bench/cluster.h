/* cluster.h - perhaps-bench-cluster: one filter over servers, beside pipelined GETs and beside
 * a layout that sends a command for each bit.
 *
 * All three clients keep every server busy from one thread, get the same number of keys a call,
 * and take turns every fraction of a second, so that a noisy machine is as noisy for each. */
#ifndef CLUSTER_H
#define CLUSTER_H

#include <hiredis/hiredis.h>

#include "report.h"

struct setup {
    const char *servers; /* redis://host:port of a cluster, or of a server that is none */
    const char *json;
    struct list keys, fpr; /* keys: one number, the capacity */
    bool quick;
    size_t batch;    /* keys a call */
    size_t piece;    /* keys between two turns: so many batches */
    size_t rounds;   /* of turns */
    uint64_t absent; /* keys to ask to know the rate */
    size_t samples;  /* calls, of which the median is a latency */
};

/* ---- The servers and the rivals: fleet.c ------------------------------------------------- */

enum { NODES_MAX = 64, SLOTS = 16384 };

/* What a server answered to the command with this tag: an integer, or bytes.  Errors end the
 * program before. */
typedef void fleet_taker(void *context, uint32_t tag, long long number, const char *bytes,
                         size_t nbytes);

/* A connection: commands are written into a buffer, sent while more are written, and answered
 * in their order.  By hiredis, as in the library that is measured, but without a call of
 * malloc() for a reply. */
struct node {
    struct fleet *fleet;
    char at[64];
    redisContext *context;
    redisContext *control; /* for INFO and the like */
    char *out;
    size_t out_nbytes, out_sent, out_room;
    uint32_t *tags; /* of the commands, in their order */
    size_t ntags, tag_room, answered;
};

struct fleet {
    struct node nodes[NODES_MAX];
    size_t count;
    uint8_t node_of[SLOTS];
    fleet_taker *take; /* NULL: the answers do not matter */
    void *context;
};

/* Connects to the servers, or ends the program with what is wrong. */
void fleet_open(struct fleet *fleet, const char *url);
void fleet_close(struct fleet *fleet);

/* Strings on the servers whose names end in a number of six digits. */
struct strings {
    struct fleet *fleet;
    const char *prefix; /* 14 characters */
    uint64_t count;
    uint8_t *node_of;
};
void strings_close(struct strings *strings); /* and removes them from the servers */

/* Adds what the masters say that they did up to now, all together, times 'factor'.  Of CPU
 * time: microseconds; that of the client is not theirs to say. */
enum cost { COMMANDS, BYTES_TO, BYTES_FROM, SERVER_US, CLIENT_US, COSTS };
void fleet_count(struct fleet *fleet, double factor, double cost[COSTS]);

/* The yardstick: values of 64 bytes, as many bytes as a query for a key brings back; so many
 * that they are about the bytes of a filter for ten million keys.  Few of them stay in the
 * caches, and are what a server can do at the very best. */
enum { VALUE_NBYTES = 64, VALUES = 1 << 18, FEW_VALUES = 1 << 10 };

struct strings values_open(struct fleet *fleet);
/* Gets 'count' random ones of the first 'values', others from each 'first' on. */
void values_get(const struct strings *strings, uint64_t values, uint64_t first, size_t count);

/* The naive layout: the bits of a classic Bloom filter, all in one row that is cut into
 * strings, of powers of two bits, about as many as the other filter has partitions; a GETBIT or
 * SETBIT for each of the k bits of a key, and all of a batch on their way at once. */
struct bits {
    struct strings strings;
    perhaps_filter *hash; /* a small filter: it hashes */
    unsigned k;
    uint64_t nbits;
    unsigned string_shift; /* a string has 2^string_shift bits */
    struct perhaps_hashed *hashed;
    bool *all; /* bits of a key that were asked for, or set now, were set before */
};

/* For as many keys and that rate; k and size are those of the textbook. */
void bits_open(struct bits *bits, struct fleet *fleet, const struct setup *setup, double fpr,
               uint64_t nstrings);
void bits_close(struct bits *bits);

/* Returns how many keys had all their bits set. */
size_t bits_add(struct bits *bits, const struct perhaps_keys *keys);
size_t bits_ask(struct bits *bits, const struct perhaps_keys *keys);

/* ---- Measuring: cluster_measure.c -------------------------------------------------------- */

/* One filter on the servers: almost filled, then the turns, then its rate when it is full. */
json_t *measure_rate(const struct strings *values, const struct setup *setup, double fpr);

/* Of calls with few keys: a row for each number of keys. */
json_t *measure_latency(const struct strings *values, const struct setup *setup);

#endif
