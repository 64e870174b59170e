/* perhaps_cluster.h - one filter on a Redis or Valkey server, or on a cluster of them.
 *
 *     struct perhaps_cluster_options where = { .url = "redis://127.0.0.1:7000/urls" };
 *     perhaps_cluster *seen;
 *     int error = perhaps_cluster_new(&where, &seen);
 *     if (!error)
 *         error = perhaps_cluster_open(seen);
 *     if (!error)
 *         error = perhaps_cluster_add_many(seen, &keys, was_present, NULL);
 *     if (error)
 *         errx(2, "%s: %s", perhaps_cluster_name(seen), perhaps_cluster_problem(seen));
 *     perhaps_cluster_free(seen);
 *
 * The key's hash chooses one of many partitions, each a Redis string of at most 16 MiB, and in
 * it a block of 64 bytes, or of a few times as many.  So in large batches an add takes one
 * command to one node, and so does a question; a call with one key takes 4 to 13 commands
 * (doc/CLUSTER.md).  Servers need no module and no script.
 *
 * Answers.  A key whose add has returned is answered "perhaps" by every client, until the
 * servers lose what they had acknowledged: 'acknowledge' of the options says how many replicas
 * must have it before the add returns.  What cannot be found out, since a server does not
 * answer or has lost its part, is an error and never a "no".
 *
 * Errors are those of perhaps.h and enum perhaps_cluster_error; perhaps_cluster_problem() says
 * in one line what is wrong, where, and what to do.  When a connection breaks, a slot moves or
 * a master fails, commands are sent again while 'patience_ms' lasts.  This is safe, since
 * adding a key twice changes nothing.
 *
 * Threads.  A handle is for one thread at a time; any number of handles, in any number of
 * threads, processes and machines, may use one filter at once. */
#ifndef PERHAPS_CLUSTER_H
#define PERHAPS_CLUSTER_H

#include <perhaps.h>

#ifdef __cplusplus
extern "C" {
#endif

enum perhaps_cluster_error {
    PERHAPS_ERR_ADDRESS = -64,     /* not the address of a filter: redis://host:port/name */
    PERHAPS_ERR_UNREACHABLE = -65, /* a server did not answer while patience lasted */
    PERHAPS_ERR_REFUSED = -66,     /* a server refused: password, permission, its disk, ... */
    PERHAPS_ERR_SERVER_FULL = -67, /* a server's memory is full: maxmemory */
    PERHAPS_ERR_TAKEN = -68,       /* there is something of that name */
    PERHAPS_ERR_MISSING = -69,     /* there is no filter of that name */
    PERHAPS_ERR_UNFINISHED = -70,  /* somebody is, or was, making or deleting it */
    PERHAPS_ERR_LOST = -71,        /* the servers have lost a part of it */
    PERHAPS_ERR_REPLICAS = -72,    /* fewer replicas than wanted have what was added */
    PERHAPS_ERR_CHANGED = -73,     /* it was deleted and made anew since it was opened */
    PERHAPS_ERR_PROTOCOL = -74,    /* a server answered what it should not */
    PERHAPS_ERR_STOPPED = -75,     /* 'stopped' said so */
};

/* Zero is the default in every member but 'url'. */
struct perhaps_cluster_options {
    /* redis://[user][:password]@host[:port]/name, or without the @, of any node; special
     * characters in its parts are written as %XX.  Behind it, after a '?' and separated by
     * '&', may stand settings that take precedence: timeout=2s, patience=1m, replicas=yes,
     * acknowledge=1, and layout=redisson for a filter that Redisson's RBloomFilter made there:
     * only with StringCodec; and if its string is lost, that reads as "no" (doc/CLUSTER.md). */
    const char *url;
    const char *user, *password; /* where the URL has none */
    unsigned timeout_ms;         /* a server that is silent for so long is given up; 0: 3000 */
    unsigned patience_ms; /* how long an operation is tried again after failures; 0: 30000 */
    bool replicas;        /* questions go to replicas too, which may not have the last adds */
    unsigned acknowledge; /* replicas that must have an add before it returns; 0: none */
    struct perhaps_hashing hashing; /* the secret or function, if it needs one */
    bool without_secret;            /* to inspect or verify only: needs none */
    bool (*stopped)(void *context); /* true ends what is going on; asked ten times a second */
    void (*progress)(void *context, uint64_t done, uint64_t total); /* bytes, of long work */
    void *context;
    uint64_t reserved[PERHAPS_RESERVED];
};

typedef struct perhaps_cluster perhaps_cluster;

/* Makes a handle, and reaches for no server yet.  Returns 0; PERHAPS_ERR_ADDRESS, and sets
 * *cluster to one that can only tell its problem and be freed; or PERHAPS_ERR_MEMORY, or
 * PERHAPS_ERR_ARGUMENT for reserved members that are not zero, and sets it to NULL. */
PERHAPS_API int perhaps_cluster_new(const struct perhaps_cluster_options *options,
                                    perhaps_cluster **cluster);

/* Closes the connections.  NULL is allowed. */
PERHAPS_API void perhaps_cluster_free(perhaps_cluster *cluster);

/* One line about the last error of this handle, to stand behind the filter's name: what, which
 * server, and what to do.  Never NULL (of a handle that is NULL: no memory). */
PERHAPS_API const char *perhaps_cluster_problem(const perhaps_cluster *cluster);

/* redis://host:port/name, without a password, for messages. */
PERHAPS_API const char *perhaps_cluster_name(const perhaps_cluster *cluster);

/* ---- Make and delete ------------------------------------------------------------------- */

/* Makes an empty filter for 'capacity' keys at the rate 'fpr', and opens it.  With
 * PERHAPS_CAN_GROW it begins with so many keys and takes more, in layers.  Hashing and
 * preference of the options are heeded.
 *
 * It takes all its memory at once, as 'partitions' strings, or a few fewer, which are spread
 * over all nodes.  0: so many that each takes at most 16 MiB, and 1024 or more if each can be
 * 4 KiB.
 *
 * Returns 0; an error of perhaps_plan_for(); PERHAPS_ERR_ARGUMENT for partitions that would be
 * larger than 16 MiB or smaller than a block; PERHAPS_ERR_TAKEN, PERHAPS_ERR_SERVER_FULL and
 * others.  After an error nothing is left; or, where servers could not be reached, a filter
 * that is unfinished, which perhaps_cluster_delete() removes.  Of several clients that make one
 * of that name at once, one succeeds. */
PERHAPS_API int perhaps_cluster_create(perhaps_cluster *cluster,
                                       const struct perhaps_options *options,
                                       uint64_t partitions);

/* Opens the filter: reads what it is, and looks whether all its partitions are there: now, on
 * servers that can be reached; on others when they are first asked. */
PERHAPS_API int perhaps_cluster_open(perhaps_cluster *cluster);

/* Removes the filter, also an unfinished one, and all that belongs to it.  Handles of any
 * client that have it open then get PERHAPS_ERR_MISSING or PERHAPS_ERR_LOST. */
PERHAPS_API int perhaps_cluster_delete(perhaps_cluster *cluster);

/* Puts a copy of a filter that has a layout (perhaps_layout_of()) there, with all its keys, and
 * opens it.  Errors as perhaps_cluster_create(). */
PERHAPS_API int perhaps_cluster_upload(perhaps_cluster *cluster, const perhaps_filter *filter,
                                       uint64_t partitions);

/* Saves the open filter as a file that perhaps_open() takes, as perhaps_save() does.  A key
 * that is added meanwhile may be in it or not.  PERHAPS_ERR_UNSUPPORTED for one that has grown,
 * or that others made. */
PERHAPS_API int perhaps_cluster_download(perhaps_cluster *cluster, const char *path);

/* ---- Add and ask ----------------------------------------------------------------------- */

/* Adds keys unless they are perhaps there, and tells in was_present[] (NULL is allowed) which
 * were.  Keys of one call go to all nodes at once: thousands in a call are many times faster
 * than one.
 *
 * Of all clients that add one key at once exactly one is told that it was not present,
 * whatever the order in which their commands arrive.  With one exception: if the connection
 * breaks before the answer comes, the command is sent again; if all bits are set then, nobody
 * knows who set them.  Such a key counts as not present, so that whoever keeps what is new
 * loses nothing, and is counted in 'doubtful' of the statistics.
 *
 * Returns 0; PERHAPS_ERR_FULL when 'capacity' keys are in and it does not grow; or another
 * error.  After an error the first *done keys (NULL is allowed) have been dealt with, each as
 * if alone; those behind them may have been added or not.  Only keys that were added, or may
 * have been, take room. */
PERHAPS_API int perhaps_cluster_add_many(perhaps_cluster *cluster,
                                         const struct perhaps_keys *keys, bool *was_present,
                                         size_t *done);

/* Sets present[i] for each key; *npresent (NULL is allowed) to how many are true.  After an
 * error no answer holds.  Only the servers that have the keys' partitions are needed. */
PERHAPS_API int perhaps_cluster_contains_many(perhaps_cluster *cluster,
                                              const struct perhaps_keys *keys, bool *present,
                                              size_t *npresent);

/* ---- Inspect --------------------------------------------------------------------------- */

struct perhaps_cluster_stats {
    struct perhaps_plan plan; /* of all layers together; kind "chain" for one that may grow */
    const char *layout;       /* "perhaps", "redisson" */
    const char *hash;
    uint64_t keys; /* that set a bit, and what clients that died had reserved; redisson:
                      estimated */
    uint64_t layers, partitions;
    uint64_t memory_nbytes;  /* of all partitions */
    double load;             /* share of bits set in the newest layer, sampled */
    double fpr_now;          /* when so many keys are in */
    uint64_t keys_estimated; /* from the fill of the samples */
    uint64_t created;        /* seconds since 1970; 0: not known */
    unsigned nodes;          /* masters that hold slots */
    uint64_t largest_nbytes, smallest_nbytes; /* on one node, of those */
    uint64_t commands, retries, redirections; /* of this handle, so far */
    uint64_t doubtful;                        /* of perhaps_cluster_add_many() */
    uint64_t reserved[PERHAPS_RESERVED];
};

/* Asks the servers about the open filter, and samples 4 MiB of it. */
PERHAPS_API int perhaps_cluster_stats_of(perhaps_cluster *cluster,
                                         struct perhaps_cluster_stats *stats);

struct perhaps_cluster_verdict {
    uint64_t partitions, lost; /* looked at; of these missing, or of another length */
    uint64_t first_lost;
    uint64_t sampled_nbytes;
    double keys_estimated, keys_deviation; /* from the samples, and how exact that is */
    uint64_t reserved[PERHAPS_RESERVED];
};

/* Looks at the length of every partition, and samples their bits.  Needs no
 * perhaps_cluster_open(), which refuses a filter that has lost partitions.  Returns 0 or
 * PERHAPS_ERR_LOST, with the verdict; or another error. */
PERHAPS_API int perhaps_cluster_verify(perhaps_cluster *cluster,
                                       struct perhaps_cluster_verdict *verdict);

#ifdef __cplusplus
}
#endif
#endif
