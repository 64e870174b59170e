/* filter.h - what a filter is, and what a kind must supply.
 *
 * A filter is (kind, geometry, counters, hash) and one flat little-endian array, the body.
 * The same bytes are the filter in memory and in a file.  Allocation, save, open, clone,
 * equality and accounting are written once, over this struct; a kind supplies the rest in
 * one 'struct filter_kind' at the end of its own file.
 *
 * Two things go beyond that.  A composite has parts, which are filters under the same hash.  A
 * filter that grows in place keeps what it grew by in its 'state', and tells where the bytes of
 * its body lie by piece(). */
#ifndef FILTER_H
#define FILTER_H

#include "../base/hash.h"
#include "loops.h"
#include <perhaps.h>
#include <perhaps_layout.h>

#include <sys/types.h>

/* The numbers that give the body its meaning.  'field' is the kind's own, in the order of its
 * field_names; those past the last name are 0. */
struct geometry {
    uint64_t capacity;
    double fpr;
    uint64_t field[PERHAPS_FIELDS_MAX];
    uint64_t body_nbytes;           /* derived by set_geometry(), a multiple of 64 */
    uint64_t key_limit;             /* derived: adds beyond it are refused */
    uint64_t cell_limit;            /* derived, counting: how many counters may be in use */
    uint64_t fpr_until;             /* derived: keys up to which fpr is kept; 0: capacity */
    uint64_t extra_nbytes;          /* what plan() says that a new one takes beside its body */
    const struct filter_kind *base; /* derived, composites: the kind of the parts */
};

struct fill {
    double load;
    double fpr;
    uint64_t segments;
    uint64_t saturated;
    uint64_t stale;
};

struct counters {
    uint64_t keys;
    uint64_t failed_adds;
    uint64_t unmatched_removals;
};

struct mapping {
    uint8_t *file; /* NULL: the body is memory of our own */
    size_t file_nbytes;
    size_t pages_offset; /* what the checksums cover */
    size_t table_offset; /* the checksums */
    int fd;              /* of a file that is written in place, or -1 */
    pid_t process;       /* that opened it */

    /* Unmaps the file, and releases what belongs to the mapping. */
    void (*release)(perhaps_filter *f);
};

/* Looks at what answers are read from, before they are: pages of a file that may be damaged. */
struct guard {
    /* Whether all that the answer for a key is read from is sound. */
    bool (*is_sound)(const perhaps_filter *f, const struct keyhash *key);

    /* As contains() of the kind; keys whose answers are read from what is not are there. */
    size_t (*contains)(const perhaps_filter *f, const struct keyhash *keys,
                       const struct keyhash *ahead, size_t n, bool *answer);
};

/* What a composite is made of, in the order in which its keys came. */
enum { PARTS_MOST = PERHAPS_LAYERS_MAX };

struct parts {
    size_t count; /* of a shared filter: read by parts_count(), since it grows */
    perhaps_filter *part[PARTS_MOST];
};

/* Where the answer for a key is read from. */
enum { READS_MOST = 64 };

struct reads {
    size_t count;
    const uint8_t *at[READS_MOST];
    uint64_t nbytes[READS_MOST];
};

static inline void reads_add(struct reads *reads, const uint8_t *at, uint64_t nbytes)
{
    reads->at[reads->count] = at;
    reads->nbytes[reads->count++] = nbytes;
}

struct perhaps_filter {
    const struct filter_kind *kind;
    uint8_t *body;
    uint64_t body_nbytes; /* that are allocated; body_nbytes of 'geometry' grows */
    struct parts parts;
    void *state;        /* the kind's, from attach() to detach(); or NULL */
    struct loops loops; /* the kind's for this CPU; NULLs where its operations do more */
    struct hasher hasher;
    struct geometry geometry;
    struct counters *counters; /* its own, or in a file that is written in place */
    struct counters own_counters;
    bool is_part;         /* of a composite */
    uint64_t room_until;  /* up to so many keys adds need no look at the rate: see add.c */
    double fpr_predicted; /* at capacity; 0: not computed yet */
    uint64_t full_at;     /* with so many keys it is full, whatever the key limit */
    enum cpu cpu;
    struct perhaps_allocator allocator;
    struct mapping mapping;
    const struct guard *guard;
    struct checked *checked; /* the guard's */
    bool shared;             /* several threads may write; if it is mapped, processes, too */
    bool read_only;          /* mapped, and not shared */
    bool is_fixed;           /* no key can be added: read-only, or its kind cannot */
    bool removes;            /* its kind does, and where that is a composite its base */
    bool counts;
    enum perhaps_preference preference; /* for memory that it takes later */
    uint8_t limit_lock;                 /* of a shared filter that is nearly full, or grows */

    /* What the writers of a shared filter in memory need to agree, of writers_nbytes() bytes;
     * or NULL. */
    void *writers;
};

/* On its way through the body of a filter, wherever its bytes lie. */
struct body_cursor {
    uint64_t offset;
    uint64_t directory, index; /* the kind's */
    uint8_t bytes[1024];       /* for pieces that are made on the way */
};

/* ---- What a kind supplies ------------------------------------------------------------- */

/* Kinds that grow in place, in memory that is not the body.  None may be NULL. */
struct grows {
    /* Takes the memory that a new filter begins with.  Returns 0 or PERHAPS_ERR_MEMORY. */
    int (*begin)(perhaps_filter *f, const struct perhaps_options *options);

    /* Makes f->state from the bytes of the body, which may be a file's, mapped, and are zeros
     * if it is new.  detach() releases the state.  Returns 0, PERHAPS_ERR_MEMORY, or
     * PERHAPS_ERR_DAMAGED. */
    int (*attach)(perhaps_filter *f);
    void (*detach)(perhaps_filter *f);

    /* The next bytes of the body, as filter_next_piece(). */
    const uint8_t *(*next_piece)(const perhaps_filter *f, struct body_cursor *cursor,
                                 uint64_t *nbytes);

    /* Brings g, a copy of f->geometry, to what it is now. */
    void (*grown)(const perhaps_filter *f, struct geometry *g);

    /* Memory that it takes beyond the body that it was made with. */
    uint64_t (*beyond_nbytes)(const perhaps_filter *f);
};

/* Kinds that are made of filters of another kind, the base; the body is a line that counts. */
struct composite {
    unsigned base_field; /* the number of the field that holds the base's id */
    unsigned inherits;   /* abilities that a composite has if its base has */

    /* Makes the parts of a new filter.  Returns 0 or an error of perhaps_create(). */
    int (*begin)(perhaps_filter *f, const struct perhaps_options *options);

    /* Checks the parts of one that was copied, or comes from a file.  Returns 0 or
     * PERHAPS_ERR_DAMAGED. */
    int (*attach)(perhaps_filter *f);
};

/* Kinds that forget.  None may be NULL. */
struct forgets {
    /* Begins a new part and forgets the oldest. */
    void (*rotate)(perhaps_filter *f);

    /* Rotates as often as 'now' asks.  Returns 0, or PERHAPS_ERR_UNSUPPORTED for a filter that
     * does not go by time. */
    int (*advance)(perhaps_filter *f, uint64_t now);
};

/* Kinds whose bytes can be kept elsewhere (src/layout).  None may be NULL. */
struct places {
    /* Whether, with this geometry, all bits of a key lie in one block of the body. */
    bool (*in_blocks)(const struct geometry *g);

    /* Where, with such a geometry: as perhaps_layout_locate(). */
    void (*locate)(const struct geometry *g, struct keyhash key, struct perhaps_bits *bits);

    /* How many keys set this share of the bits, in expectation; 0 <= load < 1. */
    double (*keys_from_load)(const struct geometry *g, double load);
};

/* The operations check nothing: the public calls have checked arguments, abilities, read-only
 * bodies and the key limit, and count the keys.  'keys', 'ahead', 'n' and 'answer' are as in
 * struct loops; n <= BATCH_MOST.  On a shared filter prefetch, contains, count, add and remove
 * run in several threads at once. */
struct filter_kind {
    struct perhaps_kind about;
    uint32_t id;                    /* in files: never changed, never used again */
    const char *const *field_names; /* ends in NULL */

    /* -- Every kind has these -- */

    /* Chooses the fields for g->capacity and g->fpr, both valid, and writes one line to
     * why[160].  Composites: for the base g->base, or if that is NULL the usual one.  Returns
     * 0, PERHAPS_ERR_LIMIT, or PERHAPS_ERR_ARGUMENT for options that are this kind's alone. */
    int (*plan)(struct geometry *g, const struct perhaps_options *options, char *why);

    /* Checks the fields, which may come from an enemy's file, and derives the rest of g: the
     * only validator there is, for geometry_check().  Returns 0 or PERHAPS_ERR_LIMIT. */
    int (*set_geometry)(struct geometry *g);

    /* The fpr when 'keys' keys are in, the mean over all hash seeds. */
    double (*predict)(const struct geometry *g, double keys);

    /* Load and fpr from the actual fill; reads about 'most_nbytes' of the body, which is
     * sampled if it is larger.  Exact for one of at most a 16th of that. */
    struct fill (*measure)(const perhaps_filter *f, uint64_t most_nbytes);

    void (*prefetch)(const perhaps_filter *f, const struct keyhash *keys, size_t n);

    /* Returns how many answers are true. */
    size_t (*contains)(const perhaps_filter *f, const struct keyhash *keys,
                       const struct keyhash *ahead, size_t n, bool *answer);

    /* -- NULL: this kind cannot -- */

    /* Adds and sets answer[i] where the key was there before and is not stored, for all keys or
     * those up to *done.  'unless_present': such a key is not added again (in kinds that store
     * no copies this makes no difference).  Returns 0, or PERHAPS_ERR_FULL or _COPIES for
     * keys[*done], which then changed nothing. */
    int (*add)(perhaps_filter *f, const struct keyhash *keys, const struct keyhash *ahead,
               size_t n, bool unless_present, bool *answer, size_t *done);

    /* Removes one copy of each; answer[i] tells whether there was one.  Returns how many were
     * removed. */
    size_t (*remove)(perhaps_filter *f, const struct keyhash *keys, const struct keyhash *ahead,
                     size_t n, bool *answer);

    uint64_t (*count)(const perhaps_filter *f, const struct keyhash *key);

    /* Makes 'f' the union with 'other', of the same geometry and hash.  On failure (_FULL,
     * _MEMORY) 'f' is unchanged. */
    int (*merge)(perhaps_filter *f, const perhaps_filter *other);

    /* -- NULL: what is said here is done instead -- */

    /* Chooses f->loops for f->cpu, for a filter that is shared or not.  NULL: none. */
    void (*bind)(perhaps_filter *f);

    /* The bytes of the body that contains() and count() read for a key, READS_MOST ranges at
     * most.  NULL, of composites: those of their parts. */
    void (*reads)(const perhaps_filter *f, struct keyhash key, struct reads *reads);

    /* Writes a better line to why[160], which takes longer to find.  NULL: plan()'s stays. */
    void (*explain)(const struct geometry *g, char *why);

    /* The fpr that a small filter would have with one key more: exactly, or where it is far
     * from the asked one a bound.  NULL: the key limit alone keeps the rate. */
    double (*rate_with)(const perhaps_filter *f, const struct keyhash *key);

    /* Forgets all keys.  NULL: the body is zeroed. */
    void (*clear)(perhaps_filter *f);

    /* The size of f->writers, which is zeroed: locks, or queues.  NULL: none is needed. */
    size_t (*writers_nbytes)(const struct geometry *g);

    /* Whether add() takes BATCH_MOST keys of a shared filter at once, to sort them. */
    bool sorts_shared;

    /* -- What few kinds have; else NULL -- */

    const struct grows *grows;
    const struct composite *composite;
    const struct forgets *forgets;
    const struct places *places;
};

/* Batches: the public calls hash BATCH_STEP keys at a time into a ring and hand them to the
 * kind BATCH_AHEAD keys later, so that about that many prefetches are outstanding.  A kind that
 * sorts the keys of a shared filter by owner gets BATCH_MOST at once. */
enum { BATCH_STEP = 128, BATCH_AHEAD = 128, BATCH_RING = 256, BATCH_MOST = 512 };

/* ---- geometry.c ------------------------------------------------------------------------ */

enum { WHY_NBYTES = sizeof((struct perhaps_plan *)0)->why };

/* As set_geometry() of the kind; a filter that could take no key is none, either. */
int geometry_check(const struct filter_kind *kind, struct geometry *g);

/* Plans a filter of this kind for g->capacity, g->fpr and, of a composite, g->base.  Returns 0
 * or an error of plan() or set_geometry(). */
int geometry_plan(const struct filter_kind *kind, const struct perhaps_options *options,
                  struct geometry *g, char *why);

/* What the public struct says of a geometry, but for 'why'. */
void geometry_describe(const struct filter_kind *kind, const struct geometry *g,
                       double predicted, struct perhaps_plan *plan);

unsigned kind_field_count(const struct filter_kind *kind);

/* ---- life.c ---------------------------------------------------------------------------- */

/* A filter of this kind with g's fields checked and an empty body (or none yet, for a body that
 * will be mapped), to be completed by filter_attach() when its body and parts are there.
 * Returns 0 or PERHAPS_ERR_MEMORY. */
int filter_make(const struct filter_kind *kind, const struct geometry *g,
                const struct hasher *hasher, const struct perhaps_allocator *allocator,
                bool with_body, bool shared, perhaps_filter **filter);

/* Calls the kind's attach(), if it has one. */
int filter_attach(perhaps_filter *f);

/* Makes a new, empty filter: make, begin and attach. */
int filter_new(const struct filter_kind *kind, const struct geometry *g,
               const struct hasher *hasher, const struct perhaps_options *options,
               perhaps_filter **filter);

/* The geometry as it is now. */
struct geometry filter_geometry(const perhaps_filter *f);

/* The next bytes of the body in its order, and how many; NULL behind the last.  The walk begins
 * as { 0 }. */
const uint8_t *filter_next_piece(const perhaps_filter *f, struct body_cursor *cursor,
                                 uint64_t *nbytes);

/* ---- add.c ----------------------------------------------------------------------------- */

/* Whether one key more, which sets a bit, may be counted and added. */
bool filter_has_room(perhaps_filter *f, const struct keyhash *key);

/* For a filter whose keys were changed otherwise than by adds. */
void filter_reset_room(perhaps_filter *f);

/* Adds n hashed keys, never beyond the key limit, and counts them.  As add() of the kind. */
int filter_add_hashed(perhaps_filter *f, const struct keyhash *keys,
                      const struct keyhash *ahead, size_t n, bool unless_present, bool *answer,
                      size_t *done);

/* Removes n hashed keys, and counts them.  As remove() of the kind. */
size_t filter_remove_hashed(perhaps_filter *f, const struct keyhash *keys,
                            const struct keyhash *ahead, size_t n, bool *answer);

/* The operations of kinds whose loops do it all. */
void loops_prefetch(const perhaps_filter *f, const struct keyhash *keys, size_t n);
size_t loops_contain(const perhaps_filter *f, const struct keyhash *keys,
                     const struct keyhash *ahead, size_t n, bool *answer);
int loops_add(perhaps_filter *f, const struct keyhash *keys, const struct keyhash *ahead,
              size_t n, bool unless_present, bool *answer, size_t *done);

/* ---- Parts ----------------------------------------------------------------------------- */

/* A shared chain gets parts while others look at those that it has. */
static inline size_t parts_count(const perhaps_filter *f)
{
    return __atomic_load_n(&f->parts.count, __ATOMIC_ACQUIRE);
}

#endif
