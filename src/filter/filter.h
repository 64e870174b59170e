/* filter.h - what a filter is, and what a kind must supply.
 *
 * A filter is (kind, geometry, counters, hash) and one flat little-endian array, the body.  The
 * same bytes are the filter in memory and in a file.  So allocation, save, open, clone,
 * equality and statistics are written once, over this struct.  A kind supplies the rest in one
 * 'struct filter_kind' at the end of its own file.
 *
 * Two things go beyond one flat body.  A composite has parts, which are filters under the same
 * hash.  A filter that grows in place keeps the memory that it took later in its 'state', and
 * gives the bytes of its body piece by piece: next_piece().
 *
 * Invariant: the geometry has passed the kind's set_geometry().  After that any body, with
 * whatever bytes, is safe to read and write. */
#ifndef FILTER_H
#define FILTER_H

#include "../base/hash.h"
#include "../base/memory.h"
#include "../base/overlap.h"
#include "../pile/pile.h"
#include "loops.h"
#include <perhaps.h>
#include <perhaps_embed.h>
#include <perhaps_fast.h>
#include <perhaps_layout.h>
#include <perhaps_live.h>
#include <perhaps_plan.h>

#include <sys/types.h>

/* The numbers that give the body its meaning.  A file stores capacity, fpr and fields, and
 * set_geometry() derives the others from them.  'field' belongs to the kind, in the order of
 * its field_names; fields past the last name are 0. */
struct geometry {
    uint64_t capacity;
    double fpr; /* that was asked */
    uint64_t field[PERHAPS_FIELDS_MAX];
    uint64_t body_nbytes;           /* derived: a multiple of 64 */
    uint64_t key_limit;             /* derived: how many keys are counted before adds fail */
    uint64_t cell_limit;            /* derived, counting: how many counters may be in use */
    uint64_t fpr_until;             /* derived: keys up to which fpr is kept; 0: capacity */
    uint64_t extra_nbytes;          /* by plan(): what a new filter takes beside its body */
    const struct filter_kind *base; /* derived, composites: the kind of the parts */

    /* Composites: where plan() leaves the geometry of the first part for begin(), since a plan
     * may take milliseconds; its own 'first' is for the parts of that part.  NULL: nowhere, and
     * begin() plans again.  Always NULL in a filter that is complete. */
    struct geometry *first;
};

/* What measure() finds in a body.  struct perhaps_stats has all of it, and explains it. */
struct fill {
    double load;
    double fpr;
    uint64_t segments;
    uint64_t saturated;
    uint64_t stale;
};

/* A file that the body is mapped from. */
struct mapping {
    uint8_t *file; /* NULL: nothing is mapped, the body lies in allocated memory */
    size_t file_nbytes;
    size_t pages_offset; /* where the pages begin that have checksums */
    size_t table_offset; /* where they end and the table of checksums begins */
    int fd;              /* of a file that is written in place; else one of the two below */
    pid_t process;       /* which process opened it */
    uint8_t sound; /* 1: all pages have their checksums; by atomics: threads look at once */
    const struct mapping_calls *calls;
};

struct mapping_calls {
    /* Does what filter_check() does; or if 'once', nothing where the pages were found sound. */
    int (*check)(const perhaps_filter *f, bool once);

    /* Unmaps the file, and releases all that belongs to the mapping. */
    void (*release)(perhaps_filter *f);
};

/* Numbers that stand for an 'fd': what is mapped is the file as it was saved; or what is
 * written to it stays in memory, and the file as it was saved is mapped a second time, behind
 * it. */
enum { MAPPED_AS_SAVED = -1, MAPPED_IN_MEMORY = -2 };

/* Checks bytes of the body before an answer is read from them: pages of a file that may be
 * damaged (src/store/check.c). */
struct guard {
    /* Returns whether all bytes from which the answer for a key is read are sound. */
    bool (*is_sound)(const perhaps_filter *f, const struct keyhash *key);

    /* Does what contains() of the kind does, but sets the answer to true for a key whose answer
     * would be read from damaged bytes. */
    size_t (*contains)(const perhaps_filter *f, const struct keyhash *keys,
                       const struct keyhash *ahead, size_t n, bool *answer);

    /* Returns for how many bytes f->checked was allocated. */
    uint64_t (*checked_nbytes)(const perhaps_filter *f);
};

/* What a guard knows. */
struct checked {
    const struct guard *guard;
    uint64_t count;  /* of pages */
    uint8_t unsure;  /* a process began to write the file in place: its checksums are void */
    uint8_t state[]; /* of each page */
};

/* What is done with a filter, as a journal records it (src/store/journal.h).  The numbers never
 * change. */
enum deed {
    DEED_ADD = 1,        /* of a hashed key, and so are the next two */
    DEED_ADD_ABSENT = 2, /* unless it is present */
    DEED_REMOVE = 3,
    DEED_CLEAR = 4,
    DEED_ROTATE = 5,
    DEED_ADVANCE = 6,  /* to a time: the place of the hash */
    DEED_BRANCH = 7,   /* none: a writer begins a branch of the journal (journal.h) */
    DEED_SET_BACK = 8, /* to a time, too */
};

/* Does what the functions of the same names do (add.c), and records it.  On an error nothing
 * was done, or as much as the error says. */
struct recorder {
    int (*add)(perhaps_filter *f, const struct keyhash *keys, const struct keyhash *ahead,
               size_t n, bool unless_present, bool *answer, size_t *done);
    int (*remove)(perhaps_filter *f, const struct keyhash *keys, const struct keyhash *ahead,
                  size_t n, bool *answer, size_t *removed);
    int (*change)(perhaps_filter *f, enum deed deed, uint64_t time);

    /* Do what perhaps_sync(), perhaps_checkpoint() and perhaps_journal_of() do. */
    int (*sync)(perhaps_filter *f);
    int (*checkpoint)(perhaps_filter *f);
    void (*tell)(const perhaps_filter *f, struct perhaps_journal *journal);

    /* Ends the recording.  To be called before anything of the filter is released. */
    void (*close)(perhaps_filter *f);
};

/* How a recorder's own data begin. */
struct recording {
    const struct recorder *recorder;
};

/* The parts of a composite, the oldest first.  filter_adopt() appends one.  Most filters have
 * none, or a few, which have their place here: a program may keep a million small filters. */
enum { PARTS_MOST = PERHAPS_LAYERS_MAX, PARTS_FEW = 2 };

struct parts {
    size_t count;          /* call parts_count() to read it: a shared chain grows meanwhile */
    perhaps_filter **part; /* 'few', or memory of its own */
    size_t room;           /* how many can lie at 'part' */
    perhaps_filter *few[PARTS_FEW];
};

/* The ranges of bytes from which the answer for a key is read. */
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

/* The calls for one key, chosen by filter_bind() for the hash and the loops of a filter. */
struct calls {
    bool (*contains)(const perhaps_filter *f, const void *key, size_t key_nbytes);
    int (*add)(perhaps_filter *f, const void *key, size_t key_nbytes);
    void (*prepare)(const perhaps_filter *f, const void *key, size_t key_nbytes,
                    struct perhaps_prepared *prepared);
};

/* How many times threads have begun and ended to hold room (counters.h).  Lies in a cache line
 * of its own before f->writers. */
enum { HOLDING_NBYTES = LINE_NBYTES };
struct holding {
    uint32_t begun;
    uint32_t ended;
};

struct perhaps_filter {
    struct body body; /* first, so that a call passes its address on as it is */
    struct calls calls;
    struct loops loops; /* the kind's for this CPU; NULL where an operation does more */
    struct hasher hasher;
    struct counters *counters; /* own_counters, or those in a mapped file */
    uint64_t room_until;       /* with fewer keys an add need not compute the fpr: see add.c */
    const struct filter_kind *kind;
    uint64_t body_nbytes; /* how many bytes of the body were allocated; 0 if it is mapped */
    struct parts parts;
    void *state; /* of a kind that grows, from attach() to detach(); else NULL */
    struct geometry geometry;
    struct counters own_counters;
    double fpr_predicted; /* at capacity; 0: not computed yet */
    uint64_t full_at;     /* with this many keys it is full, even below the key limit */
    struct perhaps_allocator allocator;
    struct mapping mapping;
    struct checked *checked;     /* NULL: no bytes are checked */
    struct recording *recording; /* NULL: what is done with the filter is not recorded */
    enum cpu cpu : 8; /* of 8 bits, since each layer of a small filter has such a struct */
    enum perhaps_preference preference : 8; /* for memory that the filter takes later */
    bool shared;          /* several threads may write; if mapped, processes, too */
    bool removes;         /* the kind can remove, and so can the base of a composite */
    bool counts : 1;      /* the same for counting */
    bool is_set : 1;      /* the kind can, but this filter does not: it stores no copies */
    bool is_part : 1;     /* of a composite */
    bool read_only : 1;   /* mapped, and not shared */
    bool counts_once : 1; /* its keys are added one after the other, by a recorder */
    bool keys_estimated;  /* the number of keys may be wrong (add.c); to be read by an atomic */
    uint8_t limit_lock;   /* of a shared filter: taken near the key limit, and to grow */

    /* What writers of a shared filter use to keep out of each other's way: writers_nbytes()
     * bytes of locks or queues.  NULL for other filters. */
    void *writers;
};

/* A position in the body of a filter, whose bytes may lie in many places.  Begins as { 0 }. */
struct body_cursor {
    uint64_t offset;
    uint64_t directory, index; /* for the kind's use */
    uint8_t bytes[1024];       /* for pieces that the kind puts together */
};

/* ---- What a kind supplies ------------------------------------------------------------- */

/* Operations of kinds that grow in place, in memory outside the body.  None may be NULL. */
struct grows {
    /* Changes g to the geometry that a new filter of its capacity and fpr begins with. */
    void (*first)(struct geometry *g);

    /* Takes the memory that a new filter begins with.  Returns 0 or PERHAPS_ERR_MEMORY. */
    int (*begin)(perhaps_filter *f, const struct perhaps_options *options);

    /* Makes f->state from the bytes of the body, which are zeros in a new filter and may be
     * mapped from a file.  Returns 0, PERHAPS_ERR_MEMORY, or PERHAPS_ERR_DAMAGED. */
    int (*attach)(perhaps_filter *f);

    /* Releases f->state. */
    void (*detach)(perhaps_filter *f);

    /* Returns the next bytes of the body, as filter_next_piece() does. */
    const uint8_t *(*next_piece)(const perhaps_filter *f, struct body_cursor *cursor,
                                 uint64_t *nbytes);

    /* Changes g, a copy of f->geometry, to the geometry that the filter has now. */
    void (*grown)(const perhaps_filter *f, struct geometry *g);

    /* Returns how many bytes of memory the filter has taken beside its first body. */
    uint64_t (*beyond_nbytes)(const perhaps_filter *f);

    /* Returns how many bytes of its allocator these are, with f->state and all that keeps them
     * together. */
    uint64_t (*state_nbytes)(const perhaps_filter *f);

    /* Has the mover move f->state and all memory beside the first body.  That body, and
     * f->writers, were moved before: 'body' is where the body was. */
    void (*relocate)(perhaps_filter *f, const uint8_t *body, const struct mover *mover);
};

/* Operations of kinds that consist of filters of another kind, the base.  The body of such a
 * filter is one line of counters. */
struct composite {
    unsigned base_field; /* the number of the field that holds the base's id */
    unsigned inherits;   /* abilities that a composite has if its base has them */
    size_t begins_with;  /* how many parts a new filter has; 0: as many as later */

    /* Makes the parts of a new filter.  Returns 0 or an error of perhaps_create(). */
    int (*begin)(perhaps_filter *f, const struct perhaps_options *options);

    /* Checks the parts of a filter that was made, copied, or read from a file.  Returns 0 or
     * PERHAPS_ERR_DAMAGED. */
    int (*attach)(perhaps_filter *f);

    /* Returns the hash by which part i is asked for a key.  NULL: the key's own. */
    struct keyhash (*hash_for_part)(struct keyhash key, size_t i);

    /* Returns the fpr that part i must keep if 'fpr' is asked of the whole, when each part is
     * made smaller on its own.  NULL: the parts must stay as they are. */
    double (*part_fpr)(const perhaps_filter *f, size_t i, double fpr);
};

/* Operations of kinds that forget.  None may be NULL. */
struct forgets {
    /* Begins a new part and forgets the oldest one. */
    void (*rotate)(perhaps_filter *f);

    /* Rotates as often as the time 'now' requires.  Returns 0, or PERHAPS_ERR_UNSUPPORTED for a
     * filter that does not go by time. */
    int (*advance)(perhaps_filter *f, uint64_t now);

    /* Does what perhaps_set_back() does.  Returns what advance() does. */
    int (*set_back)(perhaps_filter *f, uint64_t now);

    /* Returns how long the filter remembers; 0 if it does not go by time. */
    uint64_t (*time)(const perhaps_filter *f);

    /* Returns whether the filter knows the time, and sets *began to when its newest part
     * began; or to 0. */
    bool (*newest)(const perhaps_filter *f, uint64_t *began);

    /* Returns how many of the oldest parts advance() would forget.  Changes nothing. */
    size_t (*gone)(const perhaps_filter *f, uint64_t now);

    /* Does what contains() does, but asks none of the 'gone' oldest parts. */
    size_t (*contains_newer)(const perhaps_filter *f, size_t gone, const struct keyhash *keys,
                             const struct keyhash *ahead, size_t n, bool *answer);
};

/* Operations of kinds whose bytes can be kept elsewhere (src/layout).  None may be NULL. */
struct places {
    /* Returns whether, with this geometry, all bits of a key lie in one block of the body. */
    bool (*in_blocks)(const struct geometry *g);

    /* Finds the bits of a key, with such a geometry, as perhaps_layout_locate() does. */
    void (*locate)(const struct geometry *g, struct keyhash key, struct perhaps_bits *bits);

    /* Returns how many keys set this share of the bits, in expectation.  0 <= load < 1. */
    double (*keys_from_load)(const struct geometry *g, double load);
};

/* What was found in the first bytes of a small body.  Begins as zeros. */
enum { TAIL_NBYTES = 64, FOLDED_PARTS_MAX = 8 };

struct folded {
    uint64_t nbytes;                /* how many bytes */
    uint64_t marked;                /* how many of their bits are set */
    double rates[FOLDED_PARTS_MAX]; /* for each part of the body, the sum of its blocks' fprs */
    _Alignas(8) uint8_t tail[TAIL_NBYTES]; /* how the body ends, if there is no more of it */
};

/* Operations of kinds whose filters can be made smaller: the body consists of units, and the
 * marks of a key lie in units floor(x * units / 2^64), where x depends on the key alone.  If
 * each 'factor' adjacent units are joined, the result is the filter that would have been there
 * with so many fewer units from the beginning (src/kinds/lines/fold.h).  None may be NULL but
 * keys and tail. */
struct folds {
    /* Returns a number of which every divisor is a factor. */
    uint64_t (*units)(const struct geometry *g);

    /* Changes the fields of g to those of a filter that is smaller by this factor. */
    void (*divide)(struct geometry *g, uint64_t factor);

    /* Returns the largest capacity for which plan() would accept the other members of g; 0 if
     * there is none. */
    uint64_t (*capacity)(const struct geometry *g);

    /* Returns about how many different keys there are.  NULL: as many as are counted, and the
     * key limit refuses others. */
    uint64_t (*keys)(const perhaps_filter *f);

    /* Writes 'nbytes' bytes of the small body, a multiple of unit_nbytes(g), and reads 'factor'
     * times as many.  g is the geometry of the small filter. */
    void (*fold)(const struct geometry *g, enum cpu cpu, const uint8_t *from, uint8_t *to,
                 uint64_t nbytes, uint64_t factor);
    uint64_t (*unit_nbytes)(const struct geometry *g);

    /* Notes what is in the next 'nbytes' bytes of the small body that fold() wrote. */
    void (*look)(const struct geometry *g, enum cpu cpu, const uint8_t *bytes, uint64_t nbytes,
                 struct folded *folded);

    /* Returns the fpr of a small body of which all was noted: what measure() would say. */
    double (*rate)(const struct geometry *g, const struct folded *folded);

    /* Changes the tail of a small body to what it is with these bytes more: the last
     * 'tail_nbytes' bytes, which fold() does not write.  It begins as zeros.  NULL: there is
     * none. */
    void (*tail)(enum cpu cpu, const uint8_t *bytes, uint64_t nbytes, uint8_t *tail);
    uint64_t tail_nbytes;
};

/* Operations of kinds of which two filters can be compared, since a key marks cells that depend
 * on the geometry and the hash alone.  None may be NULL. */
struct compares {
    /* Tells how keys mark the cells of such a filter. */
    void (*marking)(const struct geometry *g, struct marking *marking);

    /* Counts the marked cells of two filters that have the same geometry when they are made
     * smaller by these factors.  The factors of kinds without 'folds' are 1. */
    void (*count)(const perhaps_filter *a, uint64_t a_factor, const perhaps_filter *b,
                  uint64_t b_factor, struct marked *marked);
};

/* All keys of a filter that is made of them at once, and where its body goes. */
struct building {
    struct geometry *g;      /* planned for as many keys as there are, or up to a 2000th more */
    const struct pile *pile; /* the keys as records, which can be taken again and again */
    uint64_t mark_factor; /* the mark of a record is its place times this; 0: it has a mark */
    bool flips; /* the value of a record, 0 or 1, is added to its equation, and not stored */
    enum cpu cpu;
    unsigned threads; /* how many to use */

    /* Takes the next bytes of the body.  Returns 0 or an error, which ends the building. */
    int (*write)(void *context, const uint8_t *bytes, uint64_t nbytes);

    /* Is told how many keys more are dealt with.  Returns 0 or an error, as write(). */
    int (*progress)(void *context, uint64_t nkeys);
    void *context;
    uint64_t keys; /* set by build(): how many different ones there are */
};

/* Operations of kinds that are built from all keys at once, and then take no more: 'add' is
 * NULL.  All are NULL for a composite, whose parts the builder makes; else none may be NULL but
 * has_values and look_up. */
struct builds {
    /* Writes the whole body.  May change fields of the geometry of which the size of the body
     * does not depend.  Returns 0; PERHAPS_ERR_FULL if the keys, which somebody chose, need a
     * larger body; PERHAPS_ERR_VALUES; or another error. */
    int (*build)(struct building *b);

    /* Enlarges a planned geometry for such keys.  Returns 0 or PERHAPS_ERR_LIMIT. */
    int (*enlarge)(struct geometry *g);

    /* Returns whether each key of such a filter has a value.  NULL: none has. */
    bool (*has_values)(const struct geometry *g);

    /* Sets value[i] to the value of key i, and answer[i] to whether it is perhaps there. */
    void (*look_up)(const perhaps_filter *f, const struct keyhash *keys, size_t n,
                    uint32_t *value, bool *answer);
};

/* A kind: what it is called and what it does.  The operations check nothing: the public calls
 * check arguments, abilities, read-only bodies and the key limit, and count the keys.  'keys',
 * 'ahead', 'n' and 'answer' are as in loops.h, with n <= BATCH_MOST.  On a shared filter
 * prefetch, contains, count, add and remove run in several threads at once. */
struct filter_kind {
    struct perhaps_kind about;
    uint32_t id;                    /* in files: never changes, and is never used again */
    const char *const *field_names; /* ends in NULL */

    /* -- Every kind has these -- */

    /* Chooses the fields for g->capacity and g->fpr, which are in their ranges (all other
     * members are 0, but 'base' and 'first' may be set), and writes to
     * why[160] one line that explains the choice.  A composite plans for the base g->base, or
     * if that is NULL for its usual one.  Returns 0, PERHAPS_ERR_LIMIT, PERHAPS_ERR_ARGUMENT
     * for a bad value in the options of this kind, or PERHAPS_ERR_UNSUPPORTED if it is built
     * once and stores no values, and the options ask for these. */
    int (*plan)(struct geometry *g, const struct perhaps_options *options, char *why);

    /* Checks the fields, which may come from an enemy's file, and derives the rest of g.  It is
     * the only validator of fields; others call it through geometry_check().  Returns 0 or
     * PERHAPS_ERR_LIMIT. */
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

    /* Chooses f->loops for f->cpu, and for whether f is shared.  NULL: there are no loops. */
    void (*bind)(perhaps_filter *f);

    /* Lists the bytes of the body that contains() and count() read for a key, in at most
     * READS_MOST ranges.  NULL, for composites: only bytes of the parts are read. */
    void (*reads)(const perhaps_filter *f, struct keyhash key, struct reads *reads);

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

    /* Returns the size of f->writers, which is zeroed.  NULL: writers need nothing. */
    size_t (*writers_nbytes)(const struct geometry *g);

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

/* Batches.  The public calls hash BATCH_STEP keys at a time into a ring, and hand them to the
 * kind BATCH_AHEAD keys later: so about that many prefetches are on their way at every moment.
 * A kind that sorts the keys of a shared filter (sorts_shared) gets BATCH_MOST at once. */
enum { BATCH_STEP = 128, BATCH_AHEAD = 128, BATCH_RING = 256, BATCH_MOST = 512 };

/* ---- geometry.c ------------------------------------------------------------------------ */

enum { WHY_NBYTES = sizeof((struct perhaps_plan *)0)->why };

/* Returns whether a filter may hold this number of keys.  Twice the key limit is allowed: it is
 * computed in floating point, and another version or machine may get a slightly larger one. */
static inline bool geometry_may_hold(const struct geometry *g, uint64_t keys)
{
    return keys / 2 <= g->key_limit;
}

/* Checks and completes g by set_geometry() of the kind, and also refuses a filter that could
 * not take a single key.  Returns 0 or PERHAPS_ERR_LIMIT. */
int geometry_check(const struct filter_kind *kind, struct geometry *g);

/* Returns whether a filter of this kind may have this capacity and fpr. */
bool geometry_in_range(const struct filter_kind *kind, uint64_t capacity, double fpr);

/* Plans a filter of this kind for g->capacity, g->fpr and, if it is a composite, g->base.
 * Returns 0 or an error of plan() or set_geometry(). */
int geometry_plan(const struct filter_kind *kind, const struct perhaps_options *options,
                  struct geometry *g, char *why);

/* Fills in *plan from a geometry and the fpr that is predicted for it; leaves 'why' empty. */
void geometry_describe(const struct filter_kind *kind, const struct geometry *g,
                       double predicted, struct perhaps_plan *plan);

/* Returns how many fields the geometry of this kind has. */
unsigned kind_field_count(const struct filter_kind *kind);

/* ---- life.c ---------------------------------------------------------------------------- */

/* Makes a filter of this kind with a geometry that was checked.  'with_body' gives it an empty
 * body; otherwise it gets one later, from a mapped file.  When body and parts are there, the
 * caller completes it by filter_attach().  Returns 0; or sets *filter to NULL and returns
 * PERHAPS_ERR_MEMORY. */
int filter_make(const struct filter_kind *kind, const struct geometry *g,
                const struct hasher *hasher, const struct perhaps_allocator *allocator,
                bool with_body, bool shared, perhaps_filter **filter);

/* Makes a filter that is complete a set: to add a key that is there changes nothing, and none
 * can be removed.  For those who asked neither for removal nor for counts.  Changes nothing in
 * kinds that store no copies anyway. */
void filter_become_set(perhaps_filter *f);

/* Gives a complete filter that was made of 'model' what that is beside its geometry and its
 * bytes: counters and preference, and whether it is a set and its count an estimate. */
void filter_be_like(perhaps_filter *f, const perhaps_filter *model);

/* Notes that the number of keys of a filter, and of its parts, is an estimate: where it comes
 * to the key limit, the bits decide (add.c).  Changes nothing in kinds that always count
 * exactly. */
void filter_become_estimated(perhaps_filter *f);

/* Notes that no two threads add to a filter, or to its parts, at the same moment. */
void filter_count_once(perhaps_filter *f);

/* Completes a filter by attach() of its kind, if it has one.  Returns 0 or its error. */
int filter_attach(perhaps_filter *f);

/* Gives a composite, which has fewer than PARTS_MOST parts, one more, and owns it from then on.
 * Returns 0; or PERHAPS_ERR_MEMORY, and the caller keeps the part.  If the filter is shared,
 * others may ask it meanwhile, and it never fails. */
int filter_adopt(perhaps_filter *f, perhaps_filter *part);

/* Exchanges the parts of two filters with the same allocator. */
void filter_exchange_parts(perhaps_filter *f, perhaps_filter *other);

/* Makes a new, empty filter: filter_make(), begin() of the kind and filter_attach().  If
 * g->first is not NULL, plan() has set *g->first.  Returns 0; or an error of one of these, and
 * sets *filter to NULL. */
int filter_new(const struct filter_kind *kind, const struct geometry *g,
               const struct hasher *hasher, const struct perhaps_options *options,
               perhaps_filter **filter);

/* Makes a new, empty filter of the kind and the geometry with which 'model' began, without
 * planning anything.  Returns 0; or sets *filter to NULL and returns PERHAPS_ERR_MEMORY, or
 * PERHAPS_ERR_LIMIT for a model from a file that no plan made. */
int filter_new_like(const perhaps_filter *model, const struct hasher *hasher,
                    const struct perhaps_allocator *allocator, bool shared,
                    perhaps_filter **filter);

/* Compares all pages of a mapped file with their checksums: what leaves a filter gets new ones,
 * which must not hide damage.  Returns 0, also where there are no checksums; or
 * PERHAPS_ERR_DAMAGED. */
static inline int filter_check(const perhaps_filter *f)
{
    return f->mapping.calls ? f->mapping.calls->check(f, false) : 0;
}

/* The same for what leaves in pieces: all is compared before the first. */
static inline int filter_check_once(const perhaps_filter *f)
{
    return f->mapping.calls ? f->mapping.calls->check(f, true) : 0;
}

/* Makes a copy in memory with this hash, which gives the same hashes as that of the filter, and
 * does not check what it copies.  Returns 0; or sets *copy to NULL and returns
 * PERHAPS_ERR_MEMORY. */
int filter_copy(const perhaps_filter *filter, const struct hasher *hasher,
                const struct perhaps_allocator *allocator, bool shared, perhaps_filter **copy);

/* Returns the geometry as it is now: that of a filter that grows in place changes. */
struct geometry filter_geometry(const perhaps_filter *f);

/* Returns the next bytes of the body, in the order of the file format, and sets *nbytes to how
 * many they are; returns NULL after the last.  *cursor is { 0 } before the first call. */
const uint8_t *filter_next_piece(const perhaps_filter *f, struct body_cursor *cursor,
                                 uint64_t *nbytes);

/* Forgets all keys, and sets all counts to 0. */
void filter_clear(perhaps_filter *f);

/* ---- add.c ----------------------------------------------------------------------------- */

/* Returns whether this key, which is not there yet, may be counted and added: neither the key
 * limit nor the fpr is exceeded. */
bool filter_has_room(perhaps_filter *f, const struct keyhash *key);

/* Returns whether several writers may each count a key that they add at the same moment: where
 * no lock is held for all of its bits, or by several processes. */
bool filter_counts_twice(const perhaps_filter *f);

/* Forgets what earlier adds found out about the room in the filter.  To be called when its keys
 * were changed otherwise: clear, merge. */
void filter_reset_room(perhaps_filter *f);

/* Adds n hashed keys, never beyond the key limit, and counts them.  Its contract is that of
 * add() of the kind. */
int filter_add_hashed(perhaps_filter *f, const struct keyhash *keys,
                      const struct keyhash *ahead, size_t n, bool unless_present, bool *answer,
                      size_t *done);

/* Does the same for a public call: counts a failed add, too. */
int filter_add_keys(perhaps_filter *f, const struct keyhash *keys, const struct keyhash *ahead,
                    size_t n, bool unless_present, bool *answer, size_t *done);

/* Does that by the recorder, if there is one. */
int filter_add_recorded(perhaps_filter *f, const struct keyhash *keys,
                        const struct keyhash *ahead, size_t n, bool unless_present,
                        bool *answer, size_t *done);

/* Removes n hashed keys and subtracts them from the count.  Contract as
 * remove() of the kind. */
size_t filter_remove_hashed(perhaps_filter *f, const struct keyhash *keys,
                            const struct keyhash *ahead, size_t n, bool *answer);

/* Does the same for a public call: counts those that were not found, too. */
size_t filter_remove_keys(perhaps_filter *f, const struct keyhash *keys,
                          const struct keyhash *ahead, size_t n, bool *answer);

/* Returns whether the fpr of the actual body is at most the asked one. */
bool filter_keeps_rate(const perhaps_filter *f);

/* Adds all keys of another filter of the same geometry and hash.  Returns 0; or leaves 'f' half
 * merged and returns an error of merge() of the kind, or PERHAPS_ERR_FULL if the union would
 * break the fpr. */
int filter_unite(perhaps_filter *f, const perhaps_filter *other);

/* ---- redo.c ---------------------------------------------------------------------------- */

/* Does with a filter what is done with no keys: clears it; or rotates, advances or sets back a
 * window.
 * Returns 0 or PERHAPS_ERR_UNSUPPORTED. */
int filter_change(perhaps_filter *f, enum deed deed, uint64_t time);

/* Does once more what was recorded, n times, to a filter that is as it was before.  It was done
 * then, so neither key limit nor fpr is looked at: whether they allow a key may depend on when
 * they were looked at before.  Returns 0; PERHAPS_ERR_MEMORY; or PERHAPS_ERR_DAMAGED for what
 * cannot have been done. */
int filter_redo(perhaps_filter *f, enum deed deed, const struct keyhash *keys, size_t n);

/* ---- one.c ----------------------------------------------------------------------------- */

/* Chooses the loops and the calls for one key, from all that the filter is: to be called again
 * when it has become read-only or got a guard. */
void filter_bind(perhaps_filter *f);

/* Returns whether parts and state of the filter may be looked at before a call that adds or
 * removes.  Other threads may be changing a filter that has a journal, under its lock: so only
 * if it is shared. */
static inline bool filter_may_look(const perhaps_filter *f)
{
    return f->shared || !f->recording || !f->recording->recorder->add;
}

/* Return 0 if keys may be added, or if they may be changed otherwise, or the error of a call
 * that tries. */
int filter_may_add(const perhaps_filter *f);
int filter_may_change(const perhaps_filter *f);

/* Returns how many keys there are before the first one that has no hash.  Of an exact kind
 * every key has one: the kind itself refuses what is no integer, so no key is read twice. */
size_t filter_count_hashable(const perhaps_filter *f, const struct perhaps_keys *keys);

/* Asks the kind, through the guard if pages must be checked first. */
static inline size_t filter_contains_hashed(const perhaps_filter *f, const struct keyhash *keys,
                                            const struct keyhash *ahead, size_t n, bool *answer)
{
    if (f->checked)
        return f->checked->guard->contains(f, keys, ahead, n, answer);
    return f->kind->contains(f, keys, ahead, n, answer);
}

/* ---- Operations in which the loops of a kind do all the work ---------------------------- */

/* The operations prefetch(), contains() and add() of kinds in which the loops do all of it. */
void loops_prefetch(const perhaps_filter *f, const struct keyhash *keys, size_t n);
size_t loops_contain(const perhaps_filter *f, const struct keyhash *keys,
                     const struct keyhash *ahead, size_t n, bool *answer);
int loops_add(perhaps_filter *f, const struct keyhash *keys, const struct keyhash *ahead,
              size_t n, bool unless_present, bool *answer, size_t *done);

/* Adds keys by the loop, as if nobody else could, and prefetches them itself.  Returns how many
 * were there before. */
size_t loops_add_in_steps(const perhaps_filter *f, const struct keyhash *keys, size_t n,
                          bool *answer);

/* ---- Parts ----------------------------------------------------------------------------- */

/* Returns how many parts there are.  A shared chain appends parts while readers use the ones
 * before: a reader that sees the new count also sees the new part. */
static inline size_t parts_count(const perhaps_filter *f)
{
    return __atomic_load_n(&f->parts.count, __ATOMIC_ACQUIRE);
}

#endif
