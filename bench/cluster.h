/* cluster.h - what the files of perhaps-bench-cluster share.
 *
 * It measures filters that lie on several servers, beside other clients.  In batches: pipelined
 * GETs, the yardstick; and a Bloom filter that sends a command for each bit, the naive layout.
 * All three keep every server busy from one thread and get the same number of keys a call.
 * With one key a call: a client that sends a GET, and waits for its value.  All clients take
 * turns every fraction of a second, so that a noisy machine is equally noisy for each. */
#ifndef CLUSTER_H
#define CLUSTER_H

#include <hiredis/hiredis.h>
#include <perhaps_cluster.h>

#include "report.h"
#include <perhaps_fast.h>

/* What the options ask for, and what follows from them. */
struct setup {
    const char *servers; /* redis://host:port,...: any node of a cluster, or a single server */
    const char *json;
    const char *module; /* a file that the servers have loaded, and clients use, too; or NULL */
    struct list keys, fpr; /* keys: one number, the capacity */
    bool quick;
    size_t batch;    /* keys in a call */
    size_t piece;    /* keys in a turn; a multiple of 'batch' */
    size_t rounds;   /* how many turns each work has */
    uint64_t absent; /* how many absent keys to ask for to measure the rate */
    size_t samples;  /* how many calls to time; their median is the latency */
    size_t calls;    /* with one key, in a turn */
    size_t turns;    /* of these calls, for each work */
    double turn_s;   /* of several processes at once */
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
    redisContext *control; /* for single commands: replies as hiredis makes them */
    char *out;             /* the commands of this run */
    size_t out_nbytes, out_sent, out_room;
    uint32_t *tags; /* of these commands, in their order */
    size_t ntags, tag_room, answered;
};

/* All masters of a cluster, or one server.  Nodes point to it, so it stays where it is. */
struct fleet {
    const char *url; /* belongs to the caller */
    struct node nodes[NODES_MAX];
    size_t count;
    uint8_t node_of[SLOTS]; /* which node owns the slot */
    fleet_taker *take;      /* of the commands that are written now; NULL: nobody wants them */
    void *context;          /* given to 'take' */
};

/* Connects to the servers, or ends the program and says what is wrong. */
void fleet_open(struct fleet *fleet, const char *url);
void fleet_close(struct fleet *fleet);

/* Gives a process that was made by fork() connections of its own for single commands.  It must
 * not use the others. */
void fleet_reconnect(struct fleet *fleet);

/* Returns the index of the node on which a Redis key of this hash tag lies. */
size_t fleet_find(const struct fleet *fleet, const char *tag);

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

/* Does the same for the commands of each node alone.  Neither counts INFO, the bench's own. */
void fleet_count_commands(struct fleet *fleet, double factor, double commands[NODES_MAX]);

/* The yardstick: values of 64 bytes, as many bytes as a query for a key brings back.  All of
 * them together take about as much memory as a filter for ten million keys.  FEW_VALUES of them
 * stay in the caches, and show what a server can do at the very best. */
enum { VALUE_NBYTES = 64, VALUES = 1 << 18, FEW_VALUES = 1 << 10 };

/* Writes the values to the servers. */
struct strings values_open(struct fleet *fleet);

/* Gets 'count' values, chosen at random from the first 'values'; another 'first' chooses
 * others. */
void values_get(const struct strings *strings, uint64_t values, uint64_t first, size_t count);

/* Gets one value, chosen in the same way, as a plain client does that knows the slots: sends
 * the command to the master that has it, and waits for the reply. */
void values_get_one(const struct strings *values, uint64_t first);

/* Does the same as a client that was just started: connects to a node and asks it for the
 * slots, connects to the master unless it is this node, and closes the connections. */
void values_get_afresh(const struct strings *values, uint64_t first);

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

/* ---- A filter, and its batches: cluster_measure.c ---------------------------------------- */

/* A filter that is being measured.  There is one at a time, since all have the same name. */
#define FILTER_NAME "perhaps-bench"
struct filter {
    perhaps_cluster *cluster;
    struct perhaps_cluster_stats stats; /* of the empty filter */
    struct key_buffer buffer;           /* for the keys of a turn, or of a batch */
    uint64_t added;                     /* how many keys are in: those from number 0 on */
    uint64_t turns;                     /* counted so that each turn has other keys */
};

/* What is measured, in the order of the turns; the naive layout and GETs in batches only.
 * NAIVE_ADDING comes before NAIVE_ASKING, which asks for keys that were added to the naive
 * layout. */
enum work {
    ASKING_ABSENT,
    ASKING_PRESENT,
    ADDING_NEW,
    ADDING_AGAIN,
    OWN_WORKS,
    NAIVE_ADDING = OWN_WORKS,
    NAIVE_ASKING,
    GETTING_FEW, /* GETs of FEW_VALUES */
    WORKS
};
extern const char *const work_names[WORKS];

/* Makes a new filter on the servers, and room for the keys of a turn.  The program ends if
 * there is one of that name already, so that no filter in use is overwritten. */
struct filter filter_make(const struct fleet *fleet, const struct setup *setup,
                          const struct perhaps_options *options, uint64_t partitions);

/* Removes it from the servers, and releases it. */
void filter_delete(struct filter *filter);

/* Writes the address of the filter on these servers, for a client that uses plain commands. */
void filter_url(const struct fleet *fleet, char url[256]);

/* Adds keys until there are 'until' of them, 'batch' a call.  Returns the seconds that the
 * adding took. */
double filter_fill(struct filter *filter, uint64_t until, size_t batch);

/* Makes the keys of the next turn.  'added' is the number of keys that are in, and grows if the
 * work adds new ones.  Sets *sure to whether all of them were added before. */
struct perhaps_keys filter_keys(struct filter *filter, enum work work, size_t count,
                                uint64_t *added, bool *sure);

/* Ends the program with the problem of the handle if there is an error: a number below 0. */
void stop_on(const perhaps_cluster *cluster, int error);

/* Notes a time if it is the best so far. */
void note_best(double *best, double seconds);

/* Measures one filter on the servers: fills it almost, takes the turns, fills it up and
 * measures its rate.  Returns the results. */
json_t *measure_rate(const struct strings *values, const struct setup *setup, double fpr);

/* Measures how long calls with some keys take.  Returns a row for each number of keys. */
json_t *measure_latency(const struct strings *values, const struct setup *setup);

/* ---- Calls with one key: cluster_calls.c ------------------------------------------------- */

/* The filters that are asked and added to.  THOUSANDS has 900,000 partitions; nothing is
 * measured but how long it takes to open it. */
enum shape { LARGE, SMALL, GROWING, THOUSANDS, SHAPES };

/* Measures calls with one key on a filter of this shape, and how long the first answer takes;
 * on a large one also several processes that ask at once.  Returns the results. */
json_t *measure_calls(const struct strings *values, const struct setup *setup,
                      enum shape shape);

#endif
