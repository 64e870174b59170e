/* kind.h - what a kind of filters supplies, and nothing else.
 *
 * A kind is one table of operations, at the end of its own file.  It plans a geometry, checks
 * any geometry, tells the false-positive rate, and adds and asks; everything else is written
 * once over it.  NULL means that the kind cannot, or what the comment says.  Operations that
 * few kinds have lie together in groups.h.
 *
 * Invariant: the geometry has passed the kind's set_geometry().  After that any body, with
 * whatever bytes, is safe to read and write. */
#ifndef KIND_H
#define KIND_H

#include "../base/keyhash.h"
#include "geometry.h"
#include "loops.h"
#include <perhaps_plan.h>

/* What measure() finds in a body.  struct perhaps_stats has all of it, and explains it. */
struct fill {
    double load;
    double fpr;
    uint64_t segments;
    uint64_t saturated;
    uint64_t stale;
};

/* The ranges of bytes from which the answer for a key is read, by where they begin in the body:
 * the body may be of a file that is far away.  Begins as { 0 }, but for 'look'. */
enum { READS_MOST = 64 };

struct reads {
    size_t count;
    uint64_t at[READS_MOST];
    uint64_t nbytes[READS_MOST];

    /* Returns these bytes of the body, or NULL if they are not there yet: for kinds where some
     * bytes tell which others are read.  NULL: the whole body is in memory. */
    const uint8_t *(*look)(void *context, uint64_t at, uint64_t nbytes);
    void *context;
    bool more; /* bytes were not there: the ranges so far, and others */
};

static inline void reads_add(struct reads *reads, uint64_t at, uint64_t nbytes)
{
    reads->at[reads->count] = at;
    reads->nbytes[reads->count++] = nbytes;
}

/* Batches.  The public calls hash BATCH_STEP keys at a time into a ring, and hand them to the
 * kind BATCH_AHEAD keys later: so about that many prefetches are on their way at every moment.
 * A kind that sorts the keys of a shared filter (sorts_shared) gets BATCH_MOST at once. */
enum { BATCH_STEP = 128, BATCH_AHEAD = 128, BATCH_RING = 256, BATCH_MOST = 512 };

/* A kind: what it is called and what it does.  The operations check nothing: the public calls
 * check arguments, abilities, read-only bodies and the key limit, and count the keys.  'keys',
 * 'ahead', 'n' and 'answer' are as in loops.h, with n <= BATCH_MOST.  On a shared filter
 * prefetch, contains, count, add and remove run in several threads at once. */
struct filter_kind {
    struct perhaps_kind about;
    uint32_t id;                    /* in files: never changes, and is never used again */
    const char *const *field_names; /* ends in NULL */
    unsigned packed_fields; /* a small file has only so many of them, and is not made if another
                             * is not 0; 0: all */

    /* -- Every kind has these -- */

    /* Chooses the fields for g->capacity and g->fpr, which are in their ranges.  All other
     * members are 0, but 'base' and 'first' may be set.  Writes to why[160] one line that
     * explains the choice.  A composite plans for the base g->base, or
     * if that is NULL for its usual one.  Returns 0, PERHAPS_ERR_LIMIT, PERHAPS_ERR_ARGUMENT
     * for a bad value in the options of this kind, or PERHAPS_ERR_UNSUPPORTED if it is built
     * once and stores no values, and the options ask for these. */
    int (*plan)(struct geometry *g, const struct perhaps_options *options, char *why);

    /* Checks the fields, which may come from an enemy's file, and derives the rest of g, but
     * for what set_limits() does.  It is the only validator of fields; others call it through
     * geometry_check() or kind_set_geometry().  Returns 0 or PERHAPS_ERR_LIMIT. */
    int (*set_geometry)(struct geometry *g);

    /* Returns the fpr of a filter that holds 'keys' keys: the mean over all hash seeds. */
    double (*predict)(const struct geometry *g, double keys);

    /* Returns load, fpr and so on, computed from the actual body.  Reads about 'most_nbytes'
     * bytes: a larger body is sampled.  Exact for a body of at most a 16th of that. */
    struct fill (*measure)(const perhaps_filter *f, uint64_t most_nbytes);

    /* Prefetches what contains() will read for these keys. */
    void (*prefetch)(const perhaps_filter *f, const struct keyhash *keys, size_t n);

    /* Sets answer[i] to whether key i is perhaps there.  Returns how many answers are true. */
    size_t (*contains)(const perhaps_filter *f, const struct keyhash *keys,
                       const struct keyhash *ahead, size_t n, bool *answer);

    /* Returns whether a key of a shared filter is there, with the locks of its entry.  While
     * other threads write, contains() may see half of what they write, and find by chance what
     * is not there: a composite whose add relied on that would lose the key.  NULL: what
     * contains() finds is there, or no shared composite is made of this kind. */
    bool (*holds)(perhaps_filter *f, const struct keyhash *key);

    /* -- NULL: this kind cannot -- */

    /* Adds keys in order, and sets *done to how many succeeded: all, or those before the first
     * one that failed.  answer[i] tells whether key i was there before and so was not stored.
     * A kind that stores copies stores a key again, with the answer false, except with
     * 'unless_present'; in other kinds this makes no difference.  Returns 0; or
     * PERHAPS_ERR_FULL, _COPIES or another error, and then keys[*done] has changed nothing. */
    int (*add)(perhaps_filter *f, const struct keyhash *keys, const struct keyhash *ahead,
               size_t n, bool unless_present, bool *answer, size_t *done);

    /* Removes one copy of each key, and sets answer[i] to whether there was one.  Returns how
     * many copies it removed. */
    size_t (*remove)(perhaps_filter *f, const struct keyhash *keys, const struct keyhash *ahead,
                     size_t n, bool *answer);

    /* Returns how many copies of the key are perhaps stored. */
    uint64_t (*count)(const perhaps_filter *f, const struct keyhash *key);

    /* Adds to 'f' all keys of 'other', which has the same geometry and hash; the parts of a
     * composite may differ in number.  Returns 0, PERHAPS_ERR_FULL, _COPIES, _MISMATCH or
     * _MEMORY.  The caller passes a copy as 'f', so that a failure may leave it half merged.
     * The caller looks whether the union keeps the fpr; of its parts a composite does so. */
    int (*merge)(perhaps_filter *f, const perhaps_filter *other);

    /* Keeps in 'f' only what 'other', of the same geometry and hash, has as well; and counts
     * the keys of f anew, so that the fpr is kept when others are added. */
    void (*intersect)(perhaps_filter *f, const perhaps_filter *other);

    /* -- NULL: the comment says what happens instead -- */

    /* Derives the limits of a checked geometry from rates, which takes up to a millisecond: so
     * a filter that is only read has none.  NULL: set_geometry() derives them, too. */
    void (*set_limits)(struct geometry *g);

    /* Chooses f->loops for f->cpu, and for whether f is shared.  May clear f->asks_at_once or
     * f->adds_at_once, which are set before.  NULL: there are no loops. */
    void (*bind)(perhaps_filter *f);

    /* Lists the bytes of the body that contains() and count() read for a key, in at most
     * READS_MOST ranges, none of them empty.  It sees bytes by reads_look() alone; where that
     * has none, it sets reads->more, and lists what it knows and what it expects.  NULL, for
     * composites: only bytes of the parts are read. */
    void (*reads)(const perhaps_filter *f, struct keyhash key, struct reads *reads);

    /* Returns what contains() answers, of a filter whose body is not in memory.  bytes[i] are
     * those of range i that reads() listed last, without 'more'; they are not aligned.  NULL:
     * such a filter cannot be asked, or, for composites, the parts answer. */
    bool (*answer)(const perhaps_filter *f, struct keyhash key, const uint8_t *const *bytes);

    /* Returns whether to choose this kind, with this plan, for a user who names none.  NULL:
     * wherever it meets the needs. */
    bool (*pays)(const struct geometry *g);

    /* Writes to why[160] a better line than plan() did, one that takes longer to find.  NULL:
     * the line of plan() stays. */
    void (*explain)(const struct geometry *g, char *why);

    /* Returns the fpr that a small filter would have with this key more, or an upper bound if
     * that is far below the asked fpr.  NULL: the key limit alone keeps the fpr. */
    double (*rate_with)(const perhaps_filter *f, const struct keyhash *key);

    /* Returns how many of 'keys' different keys set a bit when they are added, and so are
     * counted, in expectation.  NULL: each key that is stored is counted, or none is shared. */
    double (*counted)(const struct geometry *g, double keys);

    /* Forgets all keys.  NULL: the caller sets the body to zero. */
    void (*clear)(perhaps_filter *f);

    /* Returns the size of the writers of a body, which are zeroed.  NULL: they need nothing. */
    size_t (*writers_nbytes)(const struct geometry *g);

    /* Counts in f->counters the keys that threads have counted apart, in the writers of the
     * body.  NULL: they count none so.  Other threads may add meanwhile. */
    void (*settle)(const perhaps_filter *f);

    /* Whether each key is an integer with a bit of its own: the hash is PERHAPS_HASH_INTEGER,
     * and the fpr may be 0.  contains() is also asked about hashes that are no integer (they
     * have a mark), and add() ends before them with PERHAPS_ERR_ARGUMENT. */
    bool exact;

    /* How many copies of a key it holds before it refuses one by PERHAPS_ERR_COPIES.  0: it
     * stores none, or refuses none. */
    unsigned copies_most;

    /* Whether add() sorts the keys of a shared filter, and so takes BATCH_MOST at once. */
    bool sorts_shared;

    /* -- Groups of operations that few kinds have; else NULL -- */

    const struct grows *grows;
    const struct composite *composite;
    const struct forgets *forgets;
    const struct places *places;
    const struct folds *folds;
    const struct compares *compares;
    const struct builds *builds;
};

#endif
