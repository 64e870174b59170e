/* cluster.h - perhaps-bench-cluster: one filter over servers, beside pipelined GETs and beside
 * a layout that sends a command for each bit.
 *
 * All three clients keep every server busy from one thread, get the same number of keys a call,
 * and take turns every fraction of a second, so that a noisy machine is as noisy for each. */
#ifndef CLUSTER_H
#define CLUSTER_H

#include <jansson.h>
#include <perhaps_cluster.h>

#include "bench.h"
#include "fleet.h"

/* ---- What is measured: cluster_options.c ------------------------------------------------- */

struct plan {
    const char *servers; /* redis://host:port of a cluster */
    const char *single;  /* of a server that is none; NULL: left out */
    const char *json;
    uint64_t keys; /* capacity */
    double fpr[LIST_MAX];
    size_t nfpr;
    size_t key_nbytes[LIST_MAX];
    size_t nkey_nbytes;
    size_t batch;     /* keys a call */
    size_t piece;     /* keys between two turns: so many batches */
    unsigned rounds;  /* of turns */
    uint64_t absent;  /* keys to ask to know the rate */
    unsigned samples; /* calls, of which the median is a latency */
    bool quick;
};

void plan_read(int argc, char **argv, struct plan *plan);

/* ---- Rivals: cluster_rivals.c ------------------------------------------------------------ */

/* The yardstick: values of 64 bytes, as many bytes as a query for a key brings back; so many
 * that they are about the bytes of a filter for ten million keys.  Few of them stay in the
 * caches, and are what a server can do at the very best. */
enum { VALUE_NBYTES = 64, VALUES = 1 << 18, FEW_VALUES = 1 << 10 };

void values_set(struct fleet *fleet);
void values_drop(struct fleet *fleet);
/* Gets 'count' random ones of the first 'values', others from each 'first' on. */
void values_get(struct fleet *fleet, uint64_t values, uint64_t first, size_t count);

/* The naive layout: the bits of a classic Bloom filter, all in one row that is cut into
 * strings, of powers of two bits, about as many as the other filter has partitions; a GETBIT or
 * SETBIT for each of the k bits of a key, and all of a batch on their way at once. */
struct bits {
    struct fleet *fleet;
    perhaps_filter *hash; /* a small filter: it hashes */
    unsigned k;
    uint64_t nbits, nstrings;
    unsigned string_shift; /* a string has 2^string_shift bits */
    uint8_t *node_of;      /* the strings */
    struct perhaps_hashed *hashed;
    bool *all; /* bits of a key that were asked for are set */
};

/* For as many keys and that rate; k and size are those of the textbook. */
void bits_open(struct bits *bits, struct fleet *fleet, const struct plan *plan, double fpr,
               uint64_t nstrings);
void bits_close(struct bits *bits); /* and removes them from the servers */

/* Set or ask; answers (in bits->all): whether all bits of a key were set before. */
void bits_add(struct bits *bits, const struct perhaps_keys *keys);
void bits_ask(struct bits *bits, const struct perhaps_keys *keys);

/* ---- Measuring: cluster_measure.c -------------------------------------------------------- */

/* In the order of the turns: the naive layout is asked for what was added to it. */
enum work {
    ASKING_ABSENT,
    ASKING_PRESENT,
    ADDING_NEW,
    ADDING_AGAIN,
    NAIVE_ADDING,
    NAIVE_ASKING,
    GETTING_FEW, /* values, as the yardstick does */
    WORKS
};
extern const char *const work_names[WORKS];

/* Of a key. */
struct cost {
    double commands, in_nbytes, out_nbytes; /* in: to the servers */
    double server_seconds, client_seconds;  /* of CPU time; all servers together */
};

struct measured {
    double seconds, get_seconds; /* a key, and a GET beside it: the best of all rounds */
    double ratio;                /* GET's seconds to the key's: the median of the rounds */
    struct cost cost, get_cost;
};

struct row {
    const char *servers; /* "cluster", "single" */
    double fpr;
    size_t key_nbytes;
    struct perhaps_cluster_stats stats;
    unsigned naive_k;
    double fill_seconds; /* for the keys that came before the rounds */
    uint64_t filled;
    uint64_t asked, false_positives; /* when it was full */
    struct measured works[WORKS];
};

enum { LATENCIES = 4 };
extern const size_t latency_batch[LATENCIES];

struct latency {
    double get, ask, add; /* seconds a call, medians */
};

/* One filter on the servers: almost filled, then the turns, then its rate when it is full. */
void measure_row(struct fleet *fleet, const struct plan *plan, const char *url,
                 struct row *row);

/* Of calls with few keys. */
void measure_latency(struct fleet *fleet, const struct plan *plan, const char *url,
                     struct latency latency[LATENCIES]);

/* ---- Results: cluster_report.c ----------------------------------------------------------- */

void cluster_report_header(FILE *to, const struct plan *plan, const struct fleet *fleet);
void cluster_report_row(FILE *to, const struct row *row);
void cluster_report_latency(FILE *to, const struct latency latency[LATENCIES]);

json_t *cluster_json(const struct plan *plan, const struct fleet *fleet);
json_t *cluster_json_row(const struct row *row);
json_t *cluster_json_latency(const struct latency latency[LATENCIES]);

#endif
