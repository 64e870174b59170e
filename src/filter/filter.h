/* filter.h - what a filter is, and what is written once for all kinds.
 *
 * A filter is (kind, geometry, counters, hash) and one flat little-endian array, the body.  The
 * same bytes are the filter in memory and in a file.  So allocation, save, open, clone,
 * equality and statistics are written once, over this struct.  A kind supplies the rest:
 * kind.h.
 *
 * Two things go beyond one flat body.  A composite has parts, which are filters: usually under
 * the same hash.  A filter that grows in place keeps the memory that it took later in its
 * 'state', and gives the bytes of its body piece by piece: next_piece(). */
#ifndef FILTER_H
#define FILTER_H

#include "../base/hash.h"
#include "groups.h"
#include "hooks.h"
#include <perhaps_embed.h>
#include <perhaps_fast.h>
#include <perhaps_plan.h>

/* The parts of a composite, the oldest first.  filter_adopt() appends one.  Those of a filter
 * that has none yet are no_parts, to which nobody writes. */
enum { PARTS_MOST = PERHAPS_LAYERS_MAX, PARTS_FEW = 2 };

struct parts {
    size_t count; /* call parts_count() to read it: a shared chain grows meanwhile */
    size_t room;  /* how many can lie at 'part' */
    perhaps_filter *part[];
};

extern const struct parts no_parts;

/* The calls for one key, chosen by filter_bind() for the hash and the loops of a filter. */
struct calls {
    bool (*contains)(const perhaps_filter *f, const void *key, size_t key_nbytes);
    int (*add)(perhaps_filter *f, const void *key, size_t key_nbytes);
    void (*prepare)(const perhaps_filter *f, const void *key, size_t key_nbytes,
                    struct perhaps_prepared *prepared);
};

/* How many times threads have begun and ended to hold room (counters.h).  Lies in a cache line
 * of its own before the writers of the body. */
enum { HOLDING_NBYTES = LINE_NBYTES };
struct holding {
    uint32_t begun;
    uint32_t ended;
};

struct perhaps_filter {
    struct body body; /* first, so that a call passes its address on as it is */
    struct calls calls;
    const struct loops *loops; /* of the kind, for this CPU; all NULL if it has none */
    struct hasher hasher;
    struct counters *counters; /* own_counters, or those in a mapped file */
    uint64_t room_until;       /* with fewer keys an add need not compute the fpr: see add.c */
    const struct filter_kind *kind;
    uint64_t body_nbytes; /* how many bytes of the body were allocated; 0 if it is mapped */
    struct parts *parts;
    void *state; /* of a kind that grows, from attach() to detach(); else NULL */
    struct counters own_counters;
    double fpr_predicted; /* at capacity; 0: not computed yet */
    uint64_t full_at;     /* with this many keys it is full, even below the key limit */
    struct perhaps_allocator allocator;
    struct mapping *mapping;       /* most filters have nothing_mapped */
    struct checked *checked;       /* NULL: no bytes are checked */
    const struct changer *changer; /* who adds, removes and clears; a journal begins with it */
    enum cpu cpu : 8; /* of 8 bits, since each layer of a small filter has such a struct */
    enum perhaps_preference preference : 8; /* for memory that the filter takes later */
    bool shared;           /* several threads may write; if mapped, processes, too */
    bool removes;          /* the kind can remove, and so can the base of a composite */
    bool counts : 1;       /* the same for counting */
    bool is_set : 1;       /* the kind can, but this filter does not: it stores no copies */
    bool is_part : 1;      /* of a composite */
    bool read_only : 1;    /* mapped, and not shared */
    bool asks_at_once : 1; /* by the loops for one key: neither operation nor guard does more */
    bool adds_at_once : 1; /* the same: nor does a changer stand in front of them */
    bool removes_at_once : 1; /* by the loop for one key; and so with counts_at_once */
    bool counts_at_once : 1;
    bool counts_once : 1; /* its keys are added one after the other, by a changer */
    bool keys_estimated;  /* the number of keys may be wrong (add.c); to be read by an atomic */
    uint8_t limit_lock;   /* of a shared filter: taken near the key limit, and to grow */
};

/* A program may keep a million small filters, and each has such a struct.  (On Windows, where a
 * long has 4 bytes, bits of different types share no byte.) */
_Static_assert(sizeof(struct perhaps_filter) <= (sizeof(long) == sizeof(void *) ? 440 : 480),
               "filters are small");

/* ---- life.c ---------------------------------------------------------------------------- */

/* Makes a filter of this kind with a geometry that was checked.  'with_body' gives it an empty
 * body and binds it; otherwise it gets one later, from a mapped file, and the caller calls
 * filter_bind().  When body and parts are there, the caller completes it by filter_attach().
 * Returns 0; or sets *filter to NULL and returns PERHAPS_ERR_MEMORY. */
int filter_make(const struct filter_kind *kind, const struct geometry *g,
                const struct hasher *hasher, const struct perhaps_allocator *allocator,
                bool with_body, bool shared, perhaps_filter **filter);

/* Turns a complete filter into a set: to add a key that is there changes nothing, and none
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
    return f->mapping->calls ? f->mapping->calls->check(f, false) : 0;
}

/* The same for what leaves in pieces: all is compared before the first. */
static inline int filter_check_once(const perhaps_filter *f)
{
    return f->mapping->calls ? f->mapping->calls->check(f, true) : 0;
}

/* Has the system read what keys first .. first+n-1 need of a file, if that is not in memory.
 * Returns how many keys may be asked for until this is called again. */
static inline size_t filter_fetch(const perhaps_filter *f, const struct perhaps_keys *keys,
                                  size_t first, size_t n)
{
    return f->mapping->large ? f->mapping->calls->fetch(f, keys, first, n, NULL) : n;
}

/* Tells the mapping of keys that are asked for one by one.  Returns whether it wants to be told
 * of others. */
static inline bool filter_count_singles(const perhaps_filter *f, uint32_t n)
{
    if (!__atomic_load_n(&f->mapping->singles_left, __ATOMIC_RELAXED))
        return false;
    f->mapping->calls->count_singles(f, n);
    return true;
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

/* Adds n hashed keys in order, never beyond the key limit, and counts them.  Sets *done to how
 * many succeeded, and answer[i] to whether key i was there before: see add() of kind.h, whose
 * errors it returns. */
int filter_add_hashed(perhaps_filter *f, const struct keyhash *keys,
                      const struct keyhash *ahead, size_t n, bool unless_present, bool *answer,
                      size_t *done);

/* filter_add_hashed() for a public call: counts a failed add, too. */
int filter_add_keys(perhaps_filter *f, const struct keyhash *keys, const struct keyhash *ahead,
                    size_t n, bool unless_present, bool *answer, size_t *done);

/* Removes one copy of each of n hashed keys, and subtracts them from the count.  Sets answer[i]
 * to whether there was one.  Returns how many copies it removed. */
size_t filter_remove_hashed(perhaps_filter *f, const struct keyhash *keys,
                            const struct keyhash *ahead, size_t n, bool *answer);

/* filter_remove_hashed() for a public call: counts those that were not found, too. */
size_t filter_remove_keys(perhaps_filter *f, const struct keyhash *keys,
                          const struct keyhash *ahead, size_t n, bool *answer);

/* Returns whether the fpr of the actual body is at most the asked one. */
bool filter_keeps_rate(const perhaps_filter *f);

/* Adds all keys of another filter of the same geometry and hash.  Returns 0; or leaves 'f' half
 * merged and returns an error of merge() of the kind, or PERHAPS_ERR_FULL if the union would
 * break the fpr. */
int filter_unite(perhaps_filter *f, const perhaps_filter *other);

/* Returns whether filters of this kind may have this hash: integers belong to exact kinds, and
 * no other hash does; one with groups is for a kind that has a second list.  True for a number
 * that is no hash, which others refuse. */
static inline bool kind_takes_hash(const struct filter_kind *kind, uint32_t hash)
{
    return hash >= PERHAPS_HASH_COUNT ||
           (hash_rows[hash].integers == kind->exact &&
            (!hash_rows[hash].grouped || (kind->builds && kind->composite)));
}

/* ---- change.c -------------------------------------------------------------------------- */

/* Does with a filter what is done with no keys: clears it; or rotates, advances or sets back a
 * window.  Returns 0 or PERHAPS_ERR_UNSUPPORTED. */
int filter_change(perhaps_filter *f, enum deed deed, uint64_t time);

/* Does once more what was recorded, n times, to a filter that is as it was before.  It was done
 * then, so neither key limit nor fpr is looked at: whether they allow a key may depend on when
 * they were looked at before.  Returns 0; PERHAPS_ERR_MEMORY; or PERHAPS_ERR_DAMAGED for what
 * cannot have been done. */
int filter_redo(perhaps_filter *f, enum deed deed, const struct keyhash *keys, size_t n);

/* ---- one.c ----------------------------------------------------------------------------- */

/* Chooses the loops and the calls for one key, from all that the filter is: to be called
 * when its body has its place, and again when that was moved, or when the filter has become
 * read-only or got a guard. */
void filter_bind(perhaps_filter *f);

/* Returns whether parts and state of the filter may be looked at before a call that adds or
 * removes.  Other threads may be changing a filter that has a journal, under its lock: so only
 * if it is shared. */
static inline bool filter_may_look(const perhaps_filter *f)
{
    return f->shared || !f->changer->locked;
}

/* Return 0 if keys may be added, removed or counted, or the error of a call that tries. */
int filter_may_add(const perhaps_filter *f);
int filter_may_remove(const perhaps_filter *f);
int filter_may_count(const perhaps_filter *f);

/* Counts one hashed key of a filter that may.  Returns 0; or PERHAPS_ERR_DAMAGED if the key
 * lies on a damaged page: unlike "perhaps", no number would be a safe answer. */
int filter_count_hashed(const perhaps_filter *f, const struct keyhash *key, uint64_t *count);

/* Returns whether a program that knows this version of views may ask by itself: it has the
 * hash, and the loop for one key is all that answers.  Sets *input to what its keys are. */
bool filter_has_view(const perhaps_filter *f, unsigned version, enum perhaps_input *input);

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

/* Returns range i that reads() listed, of a filter whose body is in memory; not always in the
 * body, since a filter that grows takes other memory, too. */
static inline const uint8_t *reads_range(const perhaps_filter *f, const struct reads *reads,
                                         size_t i)
{
    return f->body.bytes + (ptrdiff_t)reads->at[i];
}

/* Returns bytes of the body for reads() of the kind; or sets reads->more, and returns NULL. */
static inline const uint8_t *reads_look(const perhaps_filter *f, struct reads *reads,
                                        uint64_t at, uint64_t nbytes)
{
    if (!reads->look)
        return f->body.bytes + at;
    const uint8_t *bytes = reads->look(reads->context, at, nbytes);
    reads->more |= !bytes;
    return bytes;
}

/* ---- Operations in which the loops of a kind do all the work ---------------------------- */

/* The operations prefetch(), contains() and count() of kinds in which the loops do all of
 * it. */
void loops_prefetch(const perhaps_filter *f, const struct keyhash *keys, size_t n);
size_t loops_contain(const perhaps_filter *f, const struct keyhash *keys,
                     const struct keyhash *ahead, size_t n, bool *answer);

uint64_t loops_count(const perhaps_filter *f, const struct keyhash *key);

/* Adds keys by the loop, as if nobody else could, and prefetches them itself.  Returns how many
 * were there before. */
size_t loops_add_in_steps(const perhaps_filter *f, const struct keyhash *keys, size_t n,
                          bool *answer);

/* ---- Parts ----------------------------------------------------------------------------- */

/* Returns how many parts there are.  A shared chain appends parts while readers use the ones
 * before: a reader that sees the new count also sees the new part. */
static inline size_t parts_count(const perhaps_filter *f)
{
    return __atomic_load_n(&f->parts->count, __ATOMIC_ACQUIRE);
}

#endif
