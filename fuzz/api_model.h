/* api_model.h - a filter beside an exact multiset of the keys that are in it, for api_fuzz.c.
 * The calls that change keys one by one are here; each checks what the call promises. */
#ifndef API_MODEL_H
#define API_MODEL_H

#include "filter/filter.h"
#include "perhaps_embed.h"
#include "support/hostile.h" /* must() */

/* ---- Keys -------------------------------------------------------------------------------- */

enum { MODEL_KEYS = 256, CROWD_MOST = 40 * 1024 };

/* The range of a bitmap; the keys of its universe begin below it and end above. */
enum { RANGE_LOW = 1000, RANGE_HIGH = 1220 };

/* All keys that a history uses, of which a hash may refuse some. */
struct universe {
    struct perhaps_key key[MODEL_KEYS];
    bool is_key[MODEL_KEYS];  /* the hash takes it */
    bool can_add[MODEL_KEYS]; /* and it is in the range of a bitmap */
};

/* Returns the universe for filters of this hash, which is made at the first call. */
const struct universe *universe_for(enum perhaps_hash hash);

/* Returns 'count' keys of 8 bytes, from number 'first' on: a crowd of keys that come and leave
 * in their order, so that a filter grows.  None is in a universe. */
struct perhaps_keys crowd_keys(size_t first, size_t count);

/* ---- An allocator that counts and fails -------------------------------------------------- */

struct ledger {
    uint64_t live_nbytes; /* of blocks that were not released yet */
    unsigned fail_in;     /* the allocation that fails, counted from now on; 0: none */
    bool failed;          /* one did, since this was last set to false */
    bool zeroes;          /* blocks are zeros, as the filter was told */
};

struct perhaps_allocator ledger_of(struct ledger *ledger);

/* A move() for perhaps_relocate(): moves all blocks, with a struct ledger as its context. */
void *ledger_move(void *context, void *memory, size_t nbytes);

/* ---- A filter and its model -------------------------------------------------------------- */

struct subject {
    perhaps_filter *f;
    struct ledger *ledger;
    const struct universe *universe;
    uint32_t copies[MODEL_KEYS];   /* how many copies of each key are in; of a set 1 */
    uint32_t epoch_of[MODEL_KEYS]; /* windows: when the key was last added */
    uint32_t epoch;                /* windows: how many generations have begun */
    uint64_t came;                 /* windows: keys added to the newest generation */
    uint64_t began;                /* windows by time: when the newest generation began */
    bool knows_time;               /* it was told the time */
    size_t crowd_from, crowd_to;   /* the crowd that is in */
    uint64_t stored, failed_adds, unmatched; /* the counters that the filter must have */
    bool is_estimate; /* the number of keys is one: intersected, or made smaller */
    bool is_loose;    /* keys may be refused below capacity: copies or crafted keys crowd it */
    bool is_crafted;  /* the hash puts many keys in the same place */
    bool is_foreign;  /* made smaller: its geometry is not that of the plan */
    bool is_new;      /* nothing was added since it was made or cleared */
};

enum add_way { ADD_PLAIN, ADD_PREPARED, ADD_UNLESS, ADD_UNLESS_PREPARED, ADD_WAYS };

/* Returns whether the key must be found. */
bool is_in(const struct subject *s, unsigned key);

bool says_perhaps(const struct subject *s, unsigned key);

/* Returns whether the filter stores a copy for every add. */
bool stores_copies(const perhaps_filter *f);

/* Returns the error of a filter that cannot remove or count. */
int unable(const perhaps_filter *f);

/* Returns whether the key can be removed: it is in, or certainly not there.  Otherwise it may
 * share the entry of another key. */
bool may_remove(const struct subject *s, unsigned key);

/* Add, remove and ask for one key, and check what the call promises; but whether one that fails
 * changes nothing the caller checks. */
int subject_add(struct subject *s, enum add_way way, unsigned key, bool *was_present);
int subject_remove(struct subject *s, unsigned key);
void subject_ask(const struct subject *s, unsigned key);

/* Notes that the filter forgot all keys. */
void subject_empty(struct subject *s);

/* Notes that a generation of a window has begun. */
void subject_rotated(struct subject *s, uint64_t times);

/* Checks that the filter has all keys of the model, and the counters; of a crowd the first and
 * the last keys only, unless 'fully'. */
void subject_check(const struct subject *s, bool fully);

/* Aborts unless the error is 0, or PERHAPS_ERR_MEMORY and an allocation did fail. */
void must_work(const struct subject *s, int error);

/* Makes 'to' the filter 'f' with the model of 'from', of which f was made. */
void subject_take(struct subject *to, const struct subject *from, perhaps_filter *f);

#endif
