/* segments.c - the segments of an elastic filter: memory, directories and splits.
 *
 * Many threads.  A writer holds the lock of the segment that it changes, and the filter's
 * limit_lock while it splits.  Readers take no lock: they look again if the directory entry or
 * a version has changed. */
#include "segments.h"
#include "../../base/locks.h"
#include "../../base/memory.h"
#include "../../filter/counters.h"

size_t segments_writers_nbytes(const struct geometry *g)
{
    (void)g;
    return sizeof(struct segment_locks);
}

/* How many buckets a search for room looks at before the segment is split.  Longer searches
 * slow down the last adds before a split, and save little: 1024 steps take twice the time of
 * 256, and 1 % less memory (doc/THEORY.md). */
enum { SEGMENT_SEARCH = 256 };

/* ---- Sizes ----------------------------------------------------------------------------- */

uint64_t segments_body_nbytes(uint64_t segments, unsigned slot_bits)
{
    return segments_offset(segments) + segments * segment_nbytes(slot_bits) + LINE_NBYTES;
}

uint64_t segments_beyond(const perhaps_filter *f)
{
    const struct state *state = f->state;
    return counter_get(&state->nbytes);
}

/* Each block has an entry in the list, and is itself either segments or an old directory. */
uint64_t segments_state_nbytes(const perhaps_filter *f)
{
    const struct state *state = f->state;
    uint64_t each = taken_nbytes(&f->allocator, 0), nblocks = counter_get(&state->nblocks);
    return segments_beyond(f) + sizeof *state + nblocks * sizeof(struct block) +
           (1 + BASES + 2 * nblocks) * each;
}

void segments_grown(const perhaps_filter *f, struct geometry *g)
{
    const struct state *state = f->state;
    if (!state)
        return;
    g->field[SEGMENTS] = counter_get(&state->segments);
    g->body_nbytes = segments_body_nbytes(g->field[SEGMENTS], slot_bits_of(f));
}

/* ---- Memory ---------------------------------------------------------------------------- */

uint64_t segments_directory_nbytes(unsigned depth)
{
    return sizeof(struct directory) + ((uint64_t)sizeof(uint8_t *) << depth);
}

/* Returns a new directory, whose entries are not set yet; NULL if there is no memory. */
static struct directory *make_directory(perhaps_filter *f, unsigned depth)
{
    struct state *state = f->state;
    struct directory *directory = allocate(&f->allocator, segments_directory_nbytes(depth));
    if (!directory)
        return NULL;
    directory->depth = directory->room = depth;
    counter_add(f, &state->nbytes, segments_directory_nbytes(depth));
    return directory;
}

static void release_directory(perhaps_filter *f, struct directory *directory)
{
    struct state *state = f->state;
    if (!directory)
        return;
    counter_take(f, &state->nbytes, segments_directory_nbytes(directory->room));
    release(&f->allocator, directory, segments_directory_nbytes(directory->room));
}

/* Has the filter release 'memory' when it is released or cleared.  state->nbytes counts the
 * memory already.  Returns false, and does nothing, if there is no memory for the list. */
static bool keep_until_release(perhaps_filter *f, void *memory, uint64_t nbytes)
{
    struct state *state = f->state;
    struct block *block = allocate(&f->allocator, sizeof *block);
    if (!block)
        return false;
    *block = (struct block){ .next = state->blocks, .memory = memory, .nbytes = nbytes };
    state->blocks = block;
    counter_add(f, &state->nblocks, 1);
    return true;
}

static void release_blocks(perhaps_filter *f)
{
    struct state *state = f->state;
    while (state->blocks) {
        struct block *block = state->blocks;
        state->blocks = block->next;
        counter_take(f, &state->nbytes, block->nbytes);
        counter_take(f, &state->nblocks, 1);
        release(&f->allocator, block->memory, block->nbytes);
        release(&f->allocator, block, sizeof *block);
    }
}

/* New segments are allocated in blocks of a 64th of the segments that there are, so that little
 * memory lies idle; at least 16 segments, at most 1 MiB.  When a 64th is as large as a huge
 * page (2 MiB), a block is one huge page: on these a query takes half the time, but one add in
 * 700,000 waits while the system zeroes a page (0.3 ms).  PERHAPS_PREFER_FAST takes huge pages
 * from a body of 16 MiB on.  PERHAPS_PREFER_COMPACT takes none: it wants few bits and no
 * pauses. */
enum {
    BLOCK_MIN = 16,
    BLOCK_SHARE = 64,
    FAST_SHARE = 8,
    SMALL_NBYTES = 1 << 20,
    HUGE_NBYTES = 2 << 20
};

/* Returns the size of the next block, for segments of 'each' bytes and 'behind' bytes after the
 * last one. */
static uint64_t block_nbytes(const perhaps_filter *f, uint64_t each, uint64_t behind)
{
    const struct state *state = f->state;
    uint64_t all = state->segments * each;
    uint64_t share = f->preference == PERHAPS_PREFER_FAST ? FAST_SHARE : BLOCK_SHARE;
    if (f->preference != PERHAPS_PREFER_COMPACT && all / share >= HUGE_NBYTES)
        return HUGE_NBYTES;
    uint64_t n = state->segments / BLOCK_SHARE, most = SMALL_NBYTES / each;
    return (n < BLOCK_MIN ? BLOCK_MIN : n > most ? most : n) * each + behind;
}

/* Allocates a block of new segments.  Returns false if there is no memory. */
static bool add_segments(perhaps_filter *f)
{
    struct state *state = f->state;
    unsigned slot_bits = slot_bits_of(f);
    /* loads of the last slots reach beyond the segment, except for slots of 16 bits */
    uint64_t behind = slot_bits == NARROW_MAX ? 0 : LINE_NBYTES;
    uint64_t each = segment_nbytes(slot_bits), nbytes = block_nbytes(f, each, behind);
    void *memory = allocate(&f->allocator, nbytes);
    if (!memory || !keep_until_release(f, memory, nbytes)) {
        release(&f->allocator, memory, nbytes);
        return false;
    }
    counter_add(f, &state->nbytes, nbytes);
    state->fresh = memory;
    state->nfresh = (nbytes - behind) / each;
    return true;
}

/* Makes sure that a split can take two segments: state->spare and a fresh one.  Returns false
 * if there is no memory. */
static bool prepare_two(perhaps_filter *f)
{
    struct state *state = f->state;
    if (!state->spare && state->nfresh) {
        state->spare = state->fresh;
        state->fresh += segment_nbytes(slot_bits_of(f));
        state->nfresh--;
    }
    if (!state->nfresh && !add_segments(f))
        return false;
    return state->spare || prepare_two(f);
}

/* Takes a fresh segment; prepare_two() has made sure that there is one. */
static uint8_t *take_fresh(perhaps_filter *f)
{
    struct state *state = f->state;
    uint8_t *segment = state->fresh;
    state->fresh += segment_nbytes(slot_bits_of(f));
    state->nfresh--;
    return segment;
}

/* ---- From a body ----------------------------------------------------------------------- */

/* Reads the depths of the segments of one base, which must cover all marks exactly once.  Sets
 * *depth to the largest depth and *count to the number of segments.  Returns false if they do
 * not cover all marks, or if there are more than 'left'. */
static bool read_depths(const uint8_t *depths, uint64_t left, unsigned *depth, uint64_t *count)
{
    uint64_t end = UINT64_C(1) << DEPTH_MAX, at = 0;
    *depth = 0;
    for (*count = 0; at < end; ++*count) {
        if (*count == left)
            return false;
        unsigned here = __atomic_load_n(&depths[*count], __ATOMIC_RELAXED);
        if (here > DEPTH_MAX || at % (end >> here))
            return false;
        at += end >> here;
        if (*depth < here)
            *depth = here;
    }
    return at == end;
}

/* A directory may have this many entries for each segment; with keys that nobody crafted it has
 * about 4.  A small one may have more: the copies of a few keys may need many splits until they
 * part.  The limits keep crafted keys and files from taking much memory. */
enum { ENTRIES_MAX = 32, ENTRIES_FEW = 1024 };

static bool directory_fits(unsigned depth, uint64_t segments)
{
    return UINT64_C(1) << depth <= ENTRIES_MAX * segments + ENTRIES_FEW;
}

/* Sets the entries of a directory.  The depths may lie in a file that somebody changes after
 * read_depths() has checked them: so each is checked once more, and nothing is written beyond
 * the directory.  Returns false if they have changed. */
static bool fill_directory(struct directory *directory, const uint8_t *depths, uint64_t count,
                           uint8_t *segments, uint64_t nbytes)
{
    uint64_t at = 0, end = UINT64_C(1) << directory->depth;
    for (uint64_t i = 0; i < count; i++) {
        unsigned depth = __atomic_load_n(&depths[i], __ATOMIC_RELAXED);
        uint64_t copies = depth <= directory->depth ? end >> depth : 0;
        if (!copies || copies > end - at)
            return false;
        for (uint64_t copy = 0; copy < copies; copy++)
            directory->entry[at++] = segments + i * nbytes + depth;
    }
    return at == end;
}

/* Makes the directory of one base, whose segments begin at 'segments'.  Returns 0,
 * PERHAPS_ERR_DAMAGED or PERHAPS_ERR_MEMORY; the caller releases what was made. */
static int attach_base(perhaps_filter *f, unsigned base, const uint8_t *depths, uint64_t left,
                       uint8_t *segments)
{
    struct state *state = f->state;
    uint64_t count;
    unsigned depth;
    if (!read_depths(depths, left, &depth, &count) || !directory_fits(depth, count))
        return PERHAPS_ERR_DAMAGED;
    struct directory *directory = make_directory(f, depth);
    if (!directory)
        return PERHAPS_ERR_MEMORY;
    state->directories[base] = directory;
    state->base_segments[base] = count;
    return fill_directory(directory, depths, count, segments, segment_nbytes(slot_bits_of(f)))
               ? 0
               : PERHAPS_ERR_DAMAGED;
}

/* The depths of all bases lie one after the other.  Those of a base end where they cover all
 * marks, so their number need not be stored. */
static int attach_bases(perhaps_filter *f)
{
    struct state *state = f->state;
    uint64_t segments = f->body.geometry.field[SEGMENTS], at = 0;
    const uint8_t *depths = f->body.bytes + DEPTHS_OFFSET;
    uint8_t *first = f->body.bytes + segments_offset(segments);
    for (unsigned base = 0; base < BASES; base++) {
        int error = attach_base(f, base, depths + at, segments - at,
                                first + at * segment_nbytes(slot_bits_of(f)));
        if (error)
            return error;
        at += state->base_segments[base];
    }
    return at == segments ? 0 : PERHAPS_ERR_DAMAGED;
}

/* After an error the caller calls segments_detach(), if there is a state. */
int segments_attach(perhaps_filter *f)
{
    unsigned slot_bits = slot_bits_of(f);
    struct state *state = f->state = allocate(&f->allocator, sizeof *state);
    if (!state)
        return PERHAPS_ERR_MEMORY;
    struct segment_locks *locks = f->body.writers;
    state->segments = f->body.geometry.field[SEGMENTS];
    state->table = table_make(NULL, SEGMENT_BUCKETS, slot_bits, false);
    state->table.tail_shift = elastic_field_bits(slot_bits);
    state->table.versions = locks ? locks->version : NULL;
    state->table.search_most = SEGMENT_SEARCH;
    f->body.table = state->directories;
    return attach_bases(f);
}

void segments_detach(perhaps_filter *f)
{
    struct state *state = f->state;
    for (unsigned base = 0; base < BASES; base++)
        release_directory(f, state->directories[base]);
    release_blocks(f);
    release(&f->allocator, state, sizeof *state);
    f->state = NULL;
}

/* Returns how many segments a new filter has; or 0 if this filter, which may come from an
 * enemy's file, has no room for that many. */
static uint64_t first_segments(const perhaps_filter *f, const unsigned depth[BASES])
{
    const struct state *state = f->state;
    uint64_t n = 0;
    for (unsigned base = 0; base < BASES; base++) {
        if (depth[base] > state->directories[base]->room)
            return 0;
        n += UINT64_C(1) << depth[base];
    }
    return n <= f->body.geometry.field[SEGMENTS] ? n : 0;
}

/* Goes back to the segments in the body, and releases all others.  A filter that has too few
 * segments in its body for the depths of a new filter gets one segment a base. */
void segments_clear(perhaps_filter *f, const unsigned depth[BASES])
{
    struct state *state = f->state;
    uint64_t nbytes = segment_nbytes(slot_bits_of(f)), kept = first_segments(f, depth);
    uint8_t *segment = f->body.bytes + segments_offset(f->body.geometry.field[SEGMENTS]);
    release_blocks(f);
    memset(tally_of(f), 0, LINE_NBYTES);
    state->segments = kept ? kept : BASES;
    memset(segment, 0, state->segments * nbytes);
    for (unsigned base = 0; base < BASES; base++) {
        struct directory *directory = state->directories[base];
        directory->depth = kept ? depth[base] : 0;
        state->base_segments[base] = UINT64_C(1) << directory->depth;
        for (uint64_t i = 0; i < state->base_segments[base]; i++, segment += nbytes)
            directory->entry[i] = segment + directory->depth;
    }
    state->spare = NULL;
    state->fresh = segment; /* the other segments of the body are free for splits */
    state->nfresh = f->body.geometry.field[SEGMENTS] - state->segments;
}

/* ---- Finding --------------------------------------------------------------------------- */

/* Returns the directory entry that a mark leads to. */
static uint8_t *find_entry(const perhaps_filter *f, unsigned base, uint64_t mark)
{
    const struct state *state = f->state;
    const struct directory *directory =
        __atomic_load_n(&state->directories[base], __ATOMIC_ACQUIRE);
    return __atomic_load_n(&directory->entry[directory_index(mark, directory->depth)],
                           __ATOMIC_ACQUIRE);
}

struct spot segments_look(const perhaps_filter *f, const struct keyhash *key)
{
    const struct state *state = f->state;
    unsigned base = elastic_base(key->place);
    uint8_t *entry = find_entry(f, base, key->mark);
    struct spot s = { .table = state->table,
                      .mark = key->mark,
                      .segment = directory_segment(entry),
                      .depth = directory_depth(entry),
                      .base = base };
    s.table.body = s.segment;
    s.table.salt = s.table.versions ? segment_salt(s.segment) : 0;
    s.entry.fingerprint = elastic_entry(*key, s.depth, s.table.width);
    s.entry.first = elastic_bucket(key->place);
    s.entry.second = table_other(&s.table, s.entry.first, s.entry.fingerprint);
    return s;
}

void segments_reads(const perhaps_filter *f, struct keyhash key, struct reads *reads)
{
    struct spot s = segments_look(f, &key);
    reads_add(reads, 0, DEPTHS_OFFSET + f->body.geometry.field[SEGMENTS]);
    reads_add(reads, (uintptr_t)s.segment - (uintptr_t)f->body.bytes,
              segment_nbytes(slot_bits_of(f))); /* also if it was taken later */
}

/* Returns whether the directory still leads from the key to the segment of the spot. */
static bool leads_there(const perhaps_filter *f, const struct spot *s)
{
    return find_entry(f, s->base, s->mark) == s->segment + s->depth;
}

uint32_t segments_version(const struct spot *s)
{
    const struct table *t = &s->table;
    if (!t->versions)
        return 0;
    return __atomic_load_n(table_version(t, s->entry.first, s->entry.second), __ATOMIC_ACQUIRE);
}

bool segments_unchanged(const perhaps_filter *f, const struct spot *s, uint32_t before)
{
    if (!s->table.versions)
        return true;
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    return segments_version(s) == before && leads_there(f, s);
}

static uint8_t *lock_of(const perhaps_filter *f, const struct spot *s)
{
    struct segment_locks *locks = f->body.writers;
    return &locks->lock[s->table.salt % SEGMENT_LOCKS];
}

/* Another thread may split the segment while this one waits for its lock: then it looks the key
 * up again. */
struct spot segments_enter(perhaps_filter *f, const struct keyhash *key)
{
    struct spot s = segments_look(f, key);
    if (!f->body.writers)
        return s;
    lock_take(lock_of(f, &s));
    while (!leads_there(f, &s)) {
        lock_release(lock_of(f, &s));
        s = segments_look(f, key);
        lock_take(lock_of(f, &s));
    }
    return s;
}

void segments_leave(perhaps_filter *f, const struct spot *s)
{
    if (f->body.writers)
        lock_release(lock_of(f, s));
}

void segments_count_stale(perhaps_filter *f)
{
    counter_add(f, &tally_of(f)->stale, 1);
}

/* ---- Splitting ------------------------------------------------------------------------- */

/* Doubles the number of entries of a base's directory; the segments stay.  In a shared filter
 * readers may still use the old directory, so it is kept until the filter is released.  Returns
 * 0; or changes nothing and returns PERHAPS_ERR_FULL or PERHAPS_ERR_MEMORY. */
static int double_directory(perhaps_filter *f, unsigned base)
{
    struct state *state = f->state;
    struct directory *old = state->directories[base];
    unsigned depth = old->depth + 1;
    if (depth > DEPTH_MAX || !directory_fits(depth, state->base_segments[base] + 1))
        return PERHAPS_ERR_FULL;
    struct directory *new = make_directory(f, depth);
    if (!new)
        return PERHAPS_ERR_MEMORY;
    if (f->shared && !keep_until_release(f, old, segments_directory_nbytes(old->room))) {
        release_directory(f, new);
        return PERHAPS_ERR_MEMORY;
    }
    for (uint64_t i = 0; i < UINT64_C(1) << old->depth; i++)
        new->entry[2 * i] = new->entry[2 * i + 1] = old->entry[i];
    __atomic_store_n(&state->directories[base], new, __ATOMIC_RELEASE);
    if (!f->shared)
        release_directory(f, old);
    return 0;
}

/* A segment with fewer entries is not full: with different keys that nobody crafted, the search
 * finds room up to a load of .95 or more.  Copies crowd it earlier: with four copies of each
 * key, three of a pair of buckets do not fit, and the segments of a filter of such keys are
 * split at loads from .25 on. */
enum { FULL_SLOTS = SEGMENT_SLOTS * 4 / 5 };

/* Segments that are not full are split as long as the filter has at most so many slots for
 * each of its entries, beside the segments with which it began and a few.  So crafted keys
 * cannot take much memory: about 16 bytes each.  For a key with more than PERHAPS_COPIES_SURE
 * copies, or keys that look alike, it is worth fewer. */
enum { SPARSE_SLOTS = 8, SPARSE_SLOTS_COPIES = 5, SPARSE_SEGMENTS = 16 };

/* The two halves of a segment, which are made before other threads see them.  They begin as
 * zeros. */
struct halves {
    _Alignas(LINE_NBYTES) uint8_t of[2][SEGMENT_SLOTS * SLOT_MAX / 8 + LINE_NBYTES];
    uint64_t duplicates;
};

/* Sets *zero and *one to what becomes of an entry in each half: the entry without its top head
 * bit, or 0.  An entry without head bits goes to both, and counts as a duplicate. */
static ALWAYS_INLINE void share_entry(uint32_t entry, unsigned width, uint32_t *zero,
                                      uint32_t *one, struct halves *h)
{
    unsigned field_bits = elastic_field_bits(width);
    uint32_t mask = (UINT32_C(1) << field_bits) - 1;
    uint32_t deeper = (entry & ~mask) | (entry << 1 & mask);
    bool top = entry >> (field_bits - 1) & 1, spent = entry && elastic_is_spent(entry, width);
    *zero = spent ? entry : top ? 0 : deeper;
    *one = spent ? entry : top ? deeper : 0;
    h->duplicates += spent;
}

static ALWAYS_INLINE void share_buckets(const struct table *t, struct halves *h, unsigned width)
{
    uint32_t entry[BUCKET_SLOTS], zeros[BUCKET_SLOTS], ones[BUCKET_SLOTS];
    for (uint64_t bucket = 0; bucket < SEGMENT_BUCKETS; bucket++) {
        bucket_get(t->body, bucket, width, entry);
        for (unsigned slot = 0; slot < BUCKET_SLOTS; slot++)
            share_entry(entry[slot], width, &zeros[slot], &ones[slot], h);
        bucket_fill(h->of[0], bucket, width, zeros);
        bucket_fill(h->of[1], bucket, width, ones);
    }
}

/* Fills both halves from a segment. */
static void share_out(const struct table *t, struct halves *h)
{
    if (t->width == NARROW_MAX)
        share_buckets(t, h, NARROW_MAX);
    else
        share_buckets(t, h, t->width);
}

/* Copies a half to a segment.  In a shared filter the segment may be an old one that a reader
 * has not left yet: so its words are written atomically, and a reader that does not find its
 * key sees afterwards that the directory has changed.  One that finds it may do so by
 * chance. */
static void write_segment(const perhaps_filter *f, uint8_t *segment, const uint8_t *half)
{
    uint64_t *to = (uint64_t *)(void *)segment, nbytes = segment_nbytes(slot_bits_of(f));
    if (!f->shared) {
        memcpy(segment, half, nbytes);
        return;
    }
    for (uint64_t i = 0; i < nbytes / sizeof *to; i++)
        __atomic_store_n(&to[i], load64(half + i * sizeof *to), __ATOMIC_RELAXED);
}

/* Makes the directory entries that led to the old segment lead to its two halves. */
static void publish(struct directory *directory, const struct spot *s, uint8_t *const half[2])
{
    unsigned depth = s->depth + 1;
    uint64_t each = UINT64_C(1) << (directory->depth - depth);
    uint64_t at = directory_index(s->mark, s->depth) * 2 * each;
    for (unsigned side = 0; side < 2; side++)
        for (uint64_t i = 0; i < each; i++)
            __atomic_store_n(&directory->entry[at++], half[side] + depth, __ATOMIC_RELEASE);
}

/* Puts the two halves in place of a segment, which becomes the spare one for the next split.
 * Returns 0; or an error of segments_split(), and then the filter holds the same entries as
 * before. */
static int split(perhaps_filter *f, const struct spot *s, const struct halves *h)
{
    struct state *state = f->state;
    int error = 0;
    if (s->depth == state->directories[s->base]->depth)
        error = double_directory(f, s->base);
    if (!error && !prepare_two(f))
        error = PERHAPS_ERR_MEMORY;
    if (error)
        return error;
    uint8_t *const half[] = { state->spare, take_fresh(f) };
    write_segment(f, half[0], h->of[0]);
    write_segment(f, half[1], h->of[1]);
    publish(state->directories[s->base], s, half);
    state->spare = s->segment;
    state->base_segments[s->base]++;
    counter_add(f, &state->segments, 1);
    counter_add(f, &tally_of(f)->duplicates, h->duplicates);
    return 0;
}

/* Returns whether the table of a segment has FULL_SLOTS entries or more. */
static bool is_full_segment(const struct table *t)
{
    unsigned n = 0;
    for (unsigned bucket = 0; bucket < SEGMENT_BUCKETS; bucket++) {
        uint32_t entry[BUCKET_SLOTS];
        bucket_get(t->body, bucket, t->width, entry);
        for (unsigned slot = 0; slot < BUCKET_SLOTS; slot++)
            n += entry[slot] != 0;
    }
    return n >= FULL_SLOTS;
}

/* Returns whether a segment that is not full may be split. */
static bool may_be_sparse(const perhaps_filter *f, unsigned copies)
{
    const struct state *state = f->state;
    const uint64_t slots = copies < PERHAPS_COPIES_SURE ? SPARSE_SLOTS : SPARSE_SLOTS_COPIES;
    const uint64_t keys = counter_get(&f->counters->keys);
    return counter_get(&state->segments) <
           f->body.geometry.field[SEGMENTS] + SPARSE_SEGMENTS + keys * slots / SEGMENT_SLOTS;
}

/* Makes the halves before it takes the lock of the filter: no other thread changes this
 * segment, and other splits need not wait for that. */
int segments_split(perhaps_filter *f, const struct spot *s, unsigned copies)
{
    const bool full = is_full_segment(&s->table);
    if (!full && !may_be_sparse(f, copies))
        return PERHAPS_ERR_COPIES;
    struct halves *h = allocate(&f->allocator, sizeof *h);
    if (!h)
        return PERHAPS_ERR_MEMORY;
    share_out(&s->table, h);
    if (f->shared)
        lock_take(&f->limit_lock);
    int error = split(f, s, h);
    if (f->shared)
        lock_release(&f->limit_lock);
    release(&f->allocator, h, sizeof *h);
    return error == PERHAPS_ERR_FULL && !full ? PERHAPS_ERR_COPIES : error;
}
