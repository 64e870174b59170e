/* perhaps_cluster.h - one filter on a Redis or Valkey server, or on a cluster of them.
 *
 *     struct perhaps_cluster_options where = { .url = "redis://127.0.0.1:7000/urls" };
 *     perhaps_cluster *seen;
 *     int error = perhaps_cluster_new(&where, &seen);
 *     if (!error)
 *         error = perhaps_cluster_open(seen);
 *     if (!error)
 *         error = perhaps_cluster_add_many(seen, &keys, answers, NULL);
 *     if (error)
 *         errx(2, "%s: %s", perhaps_cluster_name(seen), perhaps_cluster_problem(seen));
 *     perhaps_cluster_free(seen);
 *
 * The hash of a key chooses one of many partitions, each of which is a Redis string of at most
 * 16 MiB, and in it a block of 64 bytes or a few times as many.  So each key takes one command
 * to one node, whether it is added or asked, and sometimes one more (doc/CLUSTER.md).  The
 * servers need no module; where they have our module, batches are faster.
 *
 * Answers.  Once the add of a key has returned, every client gets the answer "perhaps", unless
 * the servers lose what they acknowledged: 'acknowledge' in the options tells how many replicas
 * must have the key before the add returns.  If an answer cannot be known, since a server does
 * not answer or has lost its part, the call returns an error and never "no".
 *
 * Errors are those of perhaps.h and enum perhaps_cluster_error; perhaps_cluster_problem() tells
 * in one line what is wrong, where, and what to do.  When a connection breaks, a slot moves or
 * a master fails, the client sends the commands again until 'patience_ms' have passed.  This is
 * safe, since adding a key twice changes nothing.
 *
 * Threads.  Only one thread at a time may use a handle.  Any number of handles, in any number
 * of threads, processes and machines, may use one filter at once.  perhaps_cluster_async.h has
 * a pool of handles for many threads, and calls that do not wait. */
#ifndef PERHAPS_CLUSTER_H
#define PERHAPS_CLUSTER_H

#include <perhaps.h>

#ifdef __cplusplus
extern "C" {
#endif

enum perhaps_cluster_error {
    PERHAPS_ERR_ADDRESS = -64,     /* not the address of a filter: redis://host:port/name */
    PERHAPS_ERR_UNREACHABLE = -65, /* a server did not answer within 'patience_ms' */
    PERHAPS_ERR_REFUSED = -66,     /* a server refused: password, permission, its disk, ... */
    PERHAPS_ERR_SERVER_FULL = -67, /* a server's memory is full: maxmemory */
    PERHAPS_ERR_TAKEN = -68,       /* something of that name exists already */
    PERHAPS_ERR_MISSING = -69,     /* there is no filter of that name */
    PERHAPS_ERR_UNFINISHED = -70,  /* a client is or was making or deleting it */
    PERHAPS_ERR_LOST = -71,        /* the servers have lost a part of it */
    PERHAPS_ERR_REPLICAS = -72,    /* fewer replicas than asked have what was added */
    PERHAPS_ERR_CHANGED = -73,     /* it was deleted and made anew since it was opened */
    PERHAPS_ERR_PROTOCOL = -74,    /* a server gave an answer that makes no sense */
    PERHAPS_ERR_DEADLINE = -76,    /* the deadline of the call is over */
};

/* Zero is the default in every member but 'url'. */
struct perhaps_cluster_options {
    /* redis://[[user][:password]@]host[:port]/name, where the host is a server or any node of a
     * cluster; several may stand there, with commas between them.  rediss:// is the same by
     * TLS, unix:///path/of/socket/name is a unix socket, and redis+sentinel://host[:port]/name
     * ?master=NAME asks sentinels for the server.  Special characters in the parts are written
     * as %XX.  After a '?' there may be settings, with '&' between them, which take precedence
     * over the members below: timeout=2s, patience=1m, replicas=yes, acknowledge=1, and more
     * (doc/CLUSTER.md, "Addresses").  layout=redisson is for a filter that an RBloomFilter of
     * Redisson made, and codec=string, kryo5 or json is how it writes strings before it hashes
     * them; with the wrong codec, or if the filter's string is lost, the answers are "no"
     * (doc/CLUSTER.md).  The handle keeps a copy. */
    const char *url;

    /* If the URL has none.  The handle keeps these pointers, not a copy of the texts. */
    const char *user, *password;

    /* If the URL has no password; then the two above are not used.  It is called before each
     * connection to a server, so that a password may change while the handle is open.  Writes
     * user (empty: none) and password, each with a zero byte behind it, which must fit into the
     * sizes; returns false if there is no password now, and then the connection counts as one
     * that has failed.  It must not use the handle.  The client wipes its copies. */
    bool (*login)(void *context, char *user, size_t user_size, char *password,
                  size_t password_size);

    /* Where a server is reached that others announce at host and port, where these are known
     * only to the servers: in containers, or behind a NAT.  Writes the host, with a zero byte
     * behind it, and *to_port, which is 'port' before; or returns false, and then it is reached
     * where it is announced.  It must not use the handle.  map=OLD:PORT/NEW:PORT in the URL
     * does the same, and has precedence (doc/CLUSTER.md, "Announced addresses"). */
    bool (*reach)(void *context, const char *host, unsigned port, char *to_host, size_t to_size,
                  unsigned *to_port);

    unsigned timeout_ms;  /* a server that says nothing for this time is given up; 0: 3000 */
    unsigned patience_ms; /* how long an operation is tried again after failures; 0: 30000 */
    unsigned deadline_ms; /* how long a call may take in all, whatever happens; 0: no limit */
    bool replicas;        /* asks replicas, too, which may not have the last adds yet */
    unsigned acknowledge; /* how many replicas must have an add before it returns */
    struct perhaps_hashing hashing; /* the secret or function, if it needs one */
    bool without_secret;            /* to inspect or verify only: needs none */
    bool (*stopped)(void *context); /* true ends the call; asked ten times a second */
    void (*progress)(void *context, uint64_t done, uint64_t total); /* in bytes */

    /* Tells in one line, without a newline, of what may be wrong though no call fails: that a
     * filter of Redisson has keys, and the URL names no codec.  Is called at most once for each
     * handle, by the thread that adds or asks first, and must not use the handle.  NULL: nobody
     * is told. */
    void (*warn)(void *context, const char *line);
    void *context;
    uint64_t reserved[PERHAPS_RESERVED];
};

typedef struct perhaps_cluster perhaps_cluster;

/* Makes a handle, and connects to no server yet.  Returns 0; or PERHAPS_ERR_ADDRESS, and sets
 * *cluster to a handle that can only tell its problem and be freed; or PERHAPS_ERR_MEMORY or
 * PERHAPS_ERR_ARGUMENT (a reserved member is not zero), and sets it to NULL. */
PERHAPS_API int perhaps_cluster_new(const struct perhaps_cluster_options *options,
                                    perhaps_cluster **cluster);

/* Gives back the room for keys that the process has reserved and not used, if this is its last
 * handle of the filter; closes the
 * connections and releases the handle.  NULL is allowed. */
PERHAPS_API void perhaps_cluster_free(perhaps_cluster *cluster);

/* Returns one line about the last error of this handle, which reads well after the name of the
 * filter: what is wrong, on which server, and what to do.  Never NULL; for a handle that is
 * NULL it tells that there was no memory. */
PERHAPS_API const char *perhaps_cluster_problem(const perhaps_cluster *cluster);

/* Returns the address without its password and settings, for messages. */
PERHAPS_API const char *perhaps_cluster_name(const perhaps_cluster *cluster);

/* ---- Make and delete ------------------------------------------------------------------- */

/* Makes an empty filter for 'capacity' keys at the rate 'fpr', and opens it.  With
 * PERHAPS_CAN_GROW it begins with room for this number of keys and takes more, in layers.  Of
 * the other options, hashing and preference are used.
 *
 * The filter takes all its memory at once, as 'partitions' strings or a few fewer, which are
 * spread over all nodes.  0: as many as are needed so that each takes at most 16 MiB, but at
 * least 1024 if each can then have 4 KiB.
 *
 * Returns 0; an error of perhaps_plan_for(); PERHAPS_ERR_ARGUMENT for partitions that would be
 * larger than 16 MiB or smaller than a block; PERHAPS_ERR_TAKEN, PERHAPS_ERR_SERVER_FULL and
 * others.  After an error nothing is left on the servers; if some could not be reached, an
 * unfinished filter may be left, which perhaps_cluster_delete() removes.  If several clients
 * make a filter of one name at once, one of them succeeds. */
PERHAPS_API int perhaps_cluster_create(perhaps_cluster *cluster,
                                       const struct perhaps_options *options,
                                       uint64_t partitions);

/* Opens the filter: reads its description.  Each partition is looked at when a key first needs
 * it: a partition that is lost is PERHAPS_ERR_LOST then, and no answer. */
PERHAPS_API int perhaps_cluster_open(perhaps_cluster *cluster);

/* Removes the filter, even an unfinished one, and all that belongs to it.  Clients that have it
 * open then get PERHAPS_ERR_MISSING or PERHAPS_ERR_LOST. */
PERHAPS_API int perhaps_cluster_delete(perhaps_cluster *cluster);

/* Puts a copy of a filter that has a layout (perhaps_layout_of()) on the servers, with all its
 * keys, and opens it.  Partitions and errors as for perhaps_cluster_create(). */
PERHAPS_API int perhaps_cluster_upload(perhaps_cluster *cluster, const perhaps_filter *filter,
                                       uint64_t partitions);

/* Saves the open filter as a file that perhaps_open() takes, as perhaps_save() does.  A key
 * that is added meanwhile may be in the file or not.  Returns PERHAPS_ERR_UNSUPPORTED for a
 * filter that has grown, or that Redisson made. */
PERHAPS_API int perhaps_cluster_download(perhaps_cluster *cluster, const char *path);

/* ---- Add and ask ----------------------------------------------------------------------- */

/* The answer for a key, as a byte. */
enum perhaps_answer {
    PERHAPS_ANSWER_NO = 0,      /* certainly not there; an add: it was not, and is now */
    PERHAPS_ANSWER_PERHAPS = 1, /* perhaps there; an add: perhaps it was there already */
    PERHAPS_ANSWER_UNKNOWN = 2, /* a server that is needed did not answer */
};

/* How many keys of a call are under way at once. */
enum { PERHAPS_CLUSTER_BATCH = 32768 };

/* Adds keys unless they are perhaps there, and tells in answers[] (NULL is allowed) which were:
 * enum perhaps_answer for each.  The keys of one call go to all nodes at once: with thousands
 * of keys a call is many times faster than calls with one key each.
 *
 * If several clients add one key at the same time, exactly one of them is told that it was not
 * present, whatever the order in which their commands arrive.  There is one exception: if the
 * connection breaks before the answer comes, the command is sent again; if all bits are set by
 * then, nobody knows who set them.  Such a key counts as not present, so that a client that
 * keeps new keys loses none, and is counted in 'doubtful' of the statistics.  So does one whose
 * add takes seconds while the filter grows.
 *
 * N different keys fit into a filter for N, whoever adds them, how often and in which order.
 * Near its end a call may wait for some seconds until others have used or given back what they
 * have reserved (doc/CLUSTER.md, "Room for keys").
 *
 * Returns 0; PERHAPS_ERR_FULL if 'capacity' keys are in and it does not grow; or another
 * error.  After an error the first *done keys (NULL is allowed) have been dealt with, each as
 * if alone.  The next PERHAPS_CLUSTER_BATCH may have been added or not: those whose answer is
 * not UNKNOWN are in.  None behind these was sent.  Only keys that were added, or may have
 * been, take room. */
PERHAPS_API int perhaps_cluster_add_many(perhaps_cluster *cluster,
                                         const struct perhaps_keys *keys, uint8_t *answers,
                                         size_t *done);

/* Tells in answers[i] for each key i whether it is present, and in *npresent how many perhaps
 * are; both may be NULL.  After an error each answer is right or UNKNOWN, and the problem tells
 * how many are unknown: a key whose server is well is answered whatever the others do. */
PERHAPS_API int perhaps_cluster_contains_many(perhaps_cluster *cluster,
                                              const struct perhaps_keys *keys, uint8_t *answers,
                                              size_t *npresent);

/* Do the same with one key.  Return an answer, never UNKNOWN; or an error, which is below 0. */
PERHAPS_API int perhaps_cluster_contains(perhaps_cluster *cluster, const void *key,
                                         size_t nbytes);
PERHAPS_API int perhaps_cluster_add(perhaps_cluster *cluster, const void *key, size_t nbytes);

/* Gives back the room for keys that the process has reserved for the next adds
 * (doc/CLUSTER.md), where there is any.  For a handle that stays open and adds nothing for a
 * while.  What cannot be given back now stays reserved, and nothing else is lost. */
PERHAPS_API void perhaps_cluster_rest(perhaps_cluster *cluster);

/* ---- Inspect --------------------------------------------------------------------------- */

struct perhaps_cluster_stats {
    struct perhaps_plan plan; /* of all layers together; kind "chain" for one that may grow */
    const char *layout;       /* "perhaps", "redisson" */
    const char *hash;

    uint64_t keys; /* that set a bit, and those that are reserved; redisson: an estimate */

    uint64_t layers, partitions;
    uint64_t memory_nbytes;  /* of all partitions */
    double load;             /* share of bits set in the newest layer, sampled */
    double fpr_now;          /* with this number of keys */
    uint64_t keys_different; /* with those that set no bit, in expectation */

    /* Of 'keys', those that clients have reserved, and of which nobody knows whether they were
     * added: by clients that add just now, or did not end as they should.  The latter come back
     * when room is short (doc/CLUSTER.md), or by perhaps_cluster_recount(). */
    uint64_t keys_reserved;
    uint64_t created;                         /* seconds since 1970; 0: not known */
    unsigned nodes;                           /* masters that hold slots */
    uint64_t largest_nbytes, smallest_nbytes; /* the most and the least memory on one of them */
    uint64_t commands, retries, redirections; /* of this handle */

    /* How often this handle has sent something and waited for the replies: at a distance this
     * is what takes time. */
    uint64_t trips;
    uint64_t doubtful; /* see perhaps_cluster_add_many() */
    uint64_t reserved[PERHAPS_RESERVED];
};

/* Fills in *stats of the open filter.  Asks the servers, and reads a sample of 4 MiB. */
PERHAPS_API int perhaps_cluster_stats_of(perhaps_cluster *cluster,
                                         struct perhaps_cluster_stats *stats);

/* Returns the note of the open filter, as perhaps_note() does; empty if there is none.  Valid
 * as long as the filter is open. */
PERHAPS_API const char *perhaps_cluster_note(const perhaps_cluster *cluster);

struct perhaps_cluster_verdict {
    uint64_t partitions, lost; /* checked; missing, or of a wrong length */
    uint64_t first_lost;
    uint64_t sampled_nbytes;
    double keys_estimated, keys_deviation; /* from the sample: mean, standard deviation */
    uint64_t keys;                         /* as counted: see perhaps_cluster_stats */
    bool miscounted; /* the counts are lost, or cannot be true: perhaps_cluster_recount() */
    uint64_t reserved[PERHAPS_RESERVED];
};

/* Checks the length of every partition, reads a sample of their bits, and compares it with the
 * counts of the keys.  Needs no perhaps_cluster_open(), which refuses a filter that has lost
 * partitions.  Returns 0; or PERHAPS_ERR_LOST, with the verdict, if a partition is lost or the
 * counts are wrong; or another error. */
PERHAPS_API int perhaps_cluster_verify(perhaps_cluster *cluster,
                                       struct perhaps_cluster_verdict *verdict);

/* Counts the bits of all partitions, and sets the counts of the keys by them: to what they
 * tell, and three standard deviations more, but the margin alone makes no layer full.  It is
 * for counts that somebody removed or replaced.  What living clients have reserved stays
 * reserved.  A key that is added meanwhile may be counted twice.  Needs no
 * perhaps_cluster_open().
 *
 * Returns 0, and sets *was and *now (NULL is allowed) to the counts of all layers before and
 * after it; or an error, and then the counts of some layers may be set. */
PERHAPS_API int perhaps_cluster_recount(perhaps_cluster *cluster, uint64_t *was, uint64_t *now);

#ifdef __cplusplus
}
#endif
#endif
