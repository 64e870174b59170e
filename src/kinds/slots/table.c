/* table.c - looks for entries in a table, adds and removes them, and makes room by moving
 * others.
 *
 * An add that finds no empty slot first plans the moves that make one, breadth first and
 * without writing, and then makes them from the empty slot backwards: an add that fails has
 * changed nothing, and no entry is ever absent. */
#include "table.h"

#include "../../base/locks.h"

/* ---- Slots ----------------------------------------------------------------------------- */

/* In a strided table a 'bucket' is a cell, and its slot is 0. */
static ALWAYS_INLINE uint32_t get_slot(const struct table *t, uint64_t bucket, unsigned slot)
{
    return t->strided ? cell_get(t->body, bucket, t->width)
                      : slot_get(t->body, bucket, slot, t->width);
}

/* In a shared table other writers may change other slots in the same words, so the slot is
 * changed atomically. */
static ALWAYS_INLINE void set_slot(const struct table *t, uint64_t bucket, unsigned slot,
                                   uint32_t value)
{
    if (t->strided)
        cell_set(t->body, bucket, t->width, value);
    else if (t->versions)
        slot_flip(t->body, bucket, slot, t->width, get_slot(t, bucket, slot) ^ value);
    else
        slot_set(t->body, bucket, slot, t->width, value);
}

/* Returns the first slot of a bucket that holds 'value', or BUCKET_SLOTS if none does. */
static ALWAYS_INLINE unsigned find_value(const struct table *t, uint64_t bucket, uint32_t value,
                                         bool strided)
{
    if (strided)
        return cell_get(t->body, bucket, t->width) == value ? 0 : BUCKET_SLOTS;
    return bucket_find(t->body, bucket, t->width, value);
}

/* An entry may lie in any slot of its homes, two buckets or four cells: home i is home_of(),
 * and there its slot holds stored_value(). */
static ALWAYS_INLINE unsigned home_count(bool strided)
{
    return strided ? STRIDED_CELLS : 2;
}

static ALWAYS_INLINE uint64_t home_of(const struct entry *e, unsigned i, bool strided)
{
    return strided ? strided_cell(e, i) : i ? e->second : e->first;
}

static ALWAYS_INLINE uint32_t stored_value(const struct entry *e, unsigned i, bool strided)
{
    return strided ? strided_value(e, i) : e->fingerprint;
}

static ALWAYS_INLINE uint64_t slot_number(const struct table *t, uint64_t bucket, unsigned slot)
{
    return t->strided ? bucket : bucket * BUCKET_SLOTS + slot;
}

unsigned table_copies(const struct table *t, const struct entry *e)
{
    unsigned copies = 0;
    for (unsigned i = 0; i < STRIDED_CELLS; i++)
        if (t->strided)
            copies += cell_get(t->body, strided_cell(e, i), t->width) == strided_value(e, i);
        else {
            copies += slot_get(t->body, e->first, i, t->width) == e->fingerprint;
            copies += slot_get(t->body, e->second, i, t->width) == e->fingerprint;
        }
    return copies;
}

bool table_is_first_copy(const struct table *t, const struct entry *e, uint64_t at)
{
    for (unsigned i = 0; i < home_count(t->strided); i++) {
        uint64_t home = home_of(e, i, t->strided);
        if (slot_number(t, home, 0) >= at)
            continue;
        unsigned slot = find_value(t, home, stored_value(e, i, t->strided), t->strided);
        if (slot < BUCKET_SLOTS && slot_number(t, home, slot) < at)
            return false;
    }
    return true;
}

/* Returns whether all slots in which an entry may lie hold copies of it.  Of a strided entry
 * these may be three: the second cell of one place may be the first of the other. */
static bool is_full_of(const struct table *t, const struct entry *e)
{
    if (!t->strided)
        return table_copies(t, e) == 2 * BUCKET_SLOTS;
    for (unsigned i = 0; i < STRIDED_CELLS; i++) {
        uint32_t value = cell_get(t->body, strided_cell(e, i), t->width);
        if (value >> 1 != e->fingerprint)
            return false;
        struct entry in = strided_entry_in(strided_cell(e, i), value, t->nplaces);
        if (in.first != e->first && in.first != e->second)
            return false;
    }
    return true;
}

/* ---- Many threads ---------------------------------------------------------------------- */

void table_lock_two(uint8_t *lock, uint8_t *other)
{
    lock_take(lock < other ? lock : other);
    if (lock != other)
        lock_take(lock < other ? other : lock);
}

void table_unlock_two(uint8_t *lock, uint8_t *other)
{
    lock_release(lock);
    if (lock != other)
        lock_release(other);
}

/* The version changes first: a reader that misses the entry must see that it has changed. */
static ALWAYS_INLINE void clear_slot(const struct table *t, uint64_t bucket, unsigned slot,
                                     uint64_t other)
{
    if (t->versions)
        __atomic_fetch_add(table_version(t, bucket, other), 1, __ATOMIC_ACQ_REL);
    set_slot(t, bucket, slot, 0);
}

void table_clear(const struct table *t, uint64_t at)
{
    struct entry e = table_entry(t, at);
    if (t->strided)
        clear_slot(t, at, 0, 0);
    else
        clear_slot(t, e.first, at % BUCKET_SLOTS, e.second);
}

/* ---- Making room ----------------------------------------------------------------------- */

/* A breadth-first search for an empty slot.  Step i of it looks at bucket[i].  The first steps
 * are the buckets of the new entry; then each step has led to branch_count() more, the other
 * buckets of the entries in its slots.  (A bucket of four slots leads to one for each slot.  A
 * cell leads to three: both of the other place, and the other one of its own.)  So the array is
 * the queue of the search and its tree at once. */
struct search {
    uint64_t bucket[SEARCH_MOST];
    unsigned end;       /* the step whose bucket has an empty slot */
    unsigned free_slot; /* that slot */
};

enum { OWN_CELL = 2 }; /* the last branch of a cell */

static ALWAYS_INLINE unsigned branch_count(bool strided)
{
    return strided ? OWN_CELL + 1 : BUCKET_SLOTS;
}

/* Return the step that led to step 'at' (which is not one of the first), and by which
 * branch. */
static ALWAYS_INLINE unsigned parent_of(unsigned at, bool strided)
{
    return (at - home_count(strided)) / branch_count(strided);
}

static ALWAYS_INLINE unsigned branch_of(unsigned at, bool strided)
{
    return (at - home_count(strided)) % branch_count(strided);
}

/* Returns the cell to which a branch of a cell leads, whose place comes first in 'in'. */
static ALWAYS_INLINE uint64_t branch_cell(const struct entry *in, uint32_t value,
                                          unsigned branch)
{
    return strided_cell(in, branch == OWN_CELL ? !(value & 1) : 2 + branch);
}

/* Returns whether the bucket of a step has an empty slot, and makes it the end of the
 * search. */
static ALWAYS_INLINE bool ends_at(const struct table *t, struct search *s, unsigned at,
                                  bool strided)
{
    unsigned slot = find_value(t, s->bucket[at], 0, strided);
    if (slot == BUCKET_SLOTS)
        return false;
    s->end = at;
    s->free_slot = slot;
    return true;
}

/* Append the steps that step 'at' leads to, as far as there is room.  Return how many steps
 * there are then. */
static unsigned branch_buckets(const struct table *t, struct search *s, unsigned at,
                               unsigned count)
{
    uint32_t entry[BUCKET_SLOTS];
    bucket_get(t->body, s->bucket[at], t->width, entry);
    for (unsigned slot = 0; slot < BUCKET_SLOTS && count < t->search_most; slot++) {
        uint64_t other = table_other(t, s->bucket[at], entry[slot]);
        table_prefetch(t, other);
        s->bucket[count++] = other;
    }
    return count;
}

static unsigned branch_cells(const struct table *t, struct search *s, unsigned at,
                             unsigned count)
{
    uint32_t value = cell_get(t->body, s->bucket[at], t->width);
    struct entry e = strided_entry_in(s->bucket[at], value, t->nplaces);
    __builtin_prefetch(t->body + (e.second * t->width >> 3), 1, 3);
    for (unsigned i = 0; i <= OWN_CELL; i++)
        s->bucket[count++] = branch_cell(&e, value, i);
    return count;
}

/* Looks for the nearest bucket with an empty slot, breadth first.  A bucket is prefetched when
 * it is queued, and comes into the cache while the search looks at 'ahead' others; three of
 * four are never followed.  The last cell that a cell leads to is in the cache already.
 * Returns false if no bucket within t->search_most steps has an empty slot.  The bound is
 * needed, since crafted keys can make all paths lead back to the same buckets. */
static ALWAYS_INLINE bool find_path(const struct table *t, struct search *s, bool strided)
{
    const unsigned ahead = strided ? 16 : 8;
    unsigned count = home_count(strided), looked = 0;
    for (unsigned at = 0; at < count; at++) {
        for (; looked <= at || looked + ahead < count; looked++)
            if (ends_at(t, s, looked, strided))
                return true;
        if (!strided)
            count = branch_buckets(t, s, at, count);
        else if (count + branch_count(true) <= t->search_most) {
            count = branch_cells(t, s, at, count);
            if (ends_at(t, s, count - 1, strided))
                return true;
        }
    }
    return false;
}

/* A random walk to an empty cell, for a strided table that is so full that a search would have
 * to look at very many cells.  cell[0] is one of the new entry's, and the entry in cell[i] can
 * move to cell[i + 1], by branch[i + 1]. */
struct walk {
    uint64_t cell[WALK_CELLS];
    uint8_t branch[WALK_CELLS];
    unsigned count;
};

/* Returns the next one of 64 random bits, of which the upper ones are good (Steele, Vigna:
 * Computationally Easy, Spectrally Good Multipliers for Congruential Pseudorandom Number
 * Generators, 2021). */
static ALWAYS_INLINE uint64_t walk_random(uint64_t *state)
{
    return *state = *state * UINT64_C(0xd1342543de82ef95) + 1;
}

/* Goes on to this cell.  If the walk was there before, the loop is left out: nothing has been
 * moved yet, and a cell can give away its entry once.  Returns false if the walk is too
 * long. */
static ALWAYS_INLINE bool walk_to(struct walk *w, uint64_t cell, unsigned branch)
{
    for (unsigned i = 0; i < w->count; i++)
        if (w->cell[i] == cell) {
            w->count = i + 1;
            return true;
        }
    if (w->count == WALK_CELLS)
        return false;
    w->cell[w->count] = cell;
    w->branch[w->count++] = (uint8_t)branch;
    return true;
}

/* Returns the branch of a cell, with this value and entry, that leads to an empty cell; or
 * OWN_CELL + 1 if none does. */
static ALWAYS_INLINE unsigned empty_branch(const struct table *t, const struct entry *in,
                                           uint32_t value)
{
    unsigned branch = 0;
    while (branch <= OWN_CELL && cell_get(t->body, branch_cell(in, value, branch), t->width))
        branch++;
    return branch;
}

/* Walks up to WALK_STEPS steps from a cell of the new entry.  Returns whether the last cell of
 * the walk is empty then. */
static bool walk_from(const struct table *t, struct walk *w, uint64_t cell, uint64_t *random)
{
    w->count = 0;
    unsigned branch = 0;
    for (unsigned step = 0; step < WALK_STEPS && walk_to(w, cell, branch); step++) {
        const uint32_t value = cell_get(t->body, cell, t->width);
        if (!value)
            return true;
        const struct entry in = strided_entry_in(cell, value, t->nplaces);
        branch = empty_branch(t, &in, value);
        if (branch > OWN_CELL)
            branch = (unsigned)scale64(walk_random(random), OWN_CELL + 1);
        cell = branch_cell(&in, value, branch);
    }
    return false;
}

/* Looks for an empty cell by some walks.  One alone could be caught among full cells whose
 * entries lead nowhere else.  Returns false if none has found one: the bound is needed as in
 * find_path(). */
static bool find_walk(const struct table *t, struct walk *w, const struct entry *e)
{
    uint64_t random = e->first + e->fingerprint;
    for (unsigned i = 0; i < WALK_TRIES; i++)
        if (walk_from(t, w, strided_cell(e, (unsigned)(walk_random(&random) >> 62)), &random))
            return true;
    return false;
}

/* Moves the entry in slot 'slot' of a bucket to an empty slot of another one of its buckets, to
 * which a branch led.  Returns false, and changes nothing, if another thread has meanwhile
 * moved the entry or taken the empty slot. */
static bool move_entry(const struct table *t, uint64_t from, unsigned branch, uint64_t to,
                       unsigned free_slot)
{
    const unsigned slot = t->strided ? 0 : branch;
    table_lock(t, from, to);
    uint32_t entry = get_slot(t, from, slot);
    bool as_planned = !t->locks || (entry && get_slot(t, to, free_slot) == 0 &&
                                    table_other(t, from, entry) == to);
    if (as_planned) {
        if (t->strided) /* the lowest bit is which cell of a place it is */
            entry = branch == OWN_CELL ? entry ^ 1 : (entry & ~1U) | branch;
        set_slot(t, to, free_slot, entry);
        clear_slot(t, from, slot, to);
    }
    table_unlock(t, from, to);
    return as_planned;
}

/* Prefetches all locks and versions of a path at once: most of them lie in the caches of the
 * threads that wrote them last. */
static ALWAYS_INLINE void prefetch_path(const struct table *t, const struct search *s)
{
    for (unsigned at = s->end; t->locks && at >= home_count(false); at = parent_of(at, false)) {
        uint64_t to = s->bucket[at], from = s->bucket[parent_of(at, false)];
        __builtin_prefetch(table_lock_of(t, to), 1, 3);
        __builtin_prefetch(table_lock_of(t, from), 1, 3);
        __builtin_prefetch(table_version(t, from, to), 1, 3);
    }
}

/* Moves the entries along a path towards the empty slot at its end, the last one first, so that
 * no entry is ever absent.  Then a home of the new entry has an empty slot, unless another
 * thread has taken it; the caller tries again.  No bucket is twice on a path: the search would
 * have gone on from its first occurrence, which is the shorter way. */
static ALWAYS_INLINE bool move_by_search(const struct table *t, const struct entry *e,
                                         bool strided)
{
    struct search s; /* too large to be set to zero */
    for (unsigned i = 0; i < home_count(strided); i++)
        s.bucket[i] = home_of(e, i, strided);
    if (!find_path(t, &s, strided))
        return false;
    if (!strided)
        prefetch_path(t, &s);
    for (unsigned at = s.end; at >= home_count(strided); at = parent_of(at, strided)) {
        uint64_t from = s.bucket[parent_of(at, strided)];
        if (!move_entry(t, from, branch_of(at, strided), s.bucket[at], s.free_slot))
            break;
        s.free_slot = strided ? 0 : branch_of(at, strided);
    }
    return true;
}

static NOINLINE bool move_by_walk(const struct table *t, const struct entry *e)
{
    struct walk w;
    if (!find_walk(t, &w, e))
        return false;
    for (unsigned at = w.count - 1; at > 0; at--)
        move_entry(t, w.cell[at - 1], w.branch[at], w.cell[at], 0);
    return true;
}

static NOINLINE bool make_room_in_cells(const struct table *t, const struct entry *e)
{
    return move_by_search(t, e, true) || move_by_walk(t, e);
}

static NOINLINE bool make_room_in_buckets(const struct table *t, const struct entry *e)
{
    return move_by_search(t, e, false);
}

/* Moves entries, so that this one gets an empty slot; another thread may then take that.
 * Returns 0; or PERHAPS_ERR_COPIES or PERHAPS_ERR_FULL, and has changed nothing. */
static int make_room_for(const struct table *t, const struct entry *e)
{
    if (is_full_of(t, e)) /* a search would meet nothing else */
        return PERHAPS_ERR_COPIES;
    bool made = t->strided ? make_room_in_cells(t, e) : make_room_in_buckets(t, e);
    return made ? 0 : PERHAPS_ERR_FULL;
}

/* ---- Adding and removing ----------------------------------------------------------------- */

bool table_put(const struct table *t, const struct entry *e)
{
    if (t->strided)
        return strided_put(t->body, t->width, e);
    if (!t->versions)
        return t->width <= NARROW_MAX ? narrow_put(t->body, t->width, *e)
                                      : wide_put(t->body, t->width, *e);
    unsigned in_first = find_value(t, e->first, 0, false);
    unsigned in_second = find_value(t, e->second, 0, false);
    if (in_first + in_second == 2 * BUCKET_SLOTS)
        return false;
    bool to_first = in_first <= in_second;
    set_slot(t, to_first ? e->first : e->second, to_first ? in_first : in_second,
             e->fingerprint);
    return true;
}

static ALWAYS_INLINE bool remove_from(const struct table *t, const struct entry *e,
                                      bool strided)
{
    for (unsigned i = 0; i < home_count(strided); i++) {
        uint64_t home = home_of(e, i, strided);
        unsigned slot = find_value(t, home, stored_value(e, i, strided), strided);
        if (slot < BUCKET_SLOTS) {
            clear_slot(t, home, slot, home == e->first ? e->second : e->first);
            return true;
        }
    }
    return false;
}

bool table_remove(const struct table *t, const struct entry *e)
{
    return t->strided ? remove_from(t, e, true) : remove_from(t, e, false);
}

int table_put_by_moves(const struct table *t, const struct entry *e)
{
    int error = make_room_for(t, e);
    if (!error)
        table_put(t, e);
    return error;
}

/* Tries again if other threads take the room that it has made. */
int table_insert(const struct table *t, const struct entry *e, bool unless_present,
                 bool *was_present)
{
    for (;;) {
        table_lock(t, e->first, e->second);
        *was_present = unless_present && table_copies(t, e) > 0;
        bool done = *was_present || table_put(t, e);
        table_unlock(t, e->first, e->second);
        int error = done ? 0 : make_room_for(t, e);
        if (done || error)
            return error;
    }
}
