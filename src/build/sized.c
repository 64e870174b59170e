/* sized.c - makes filters of kinds that take keys as they come.
 *
 * If nobody knows how many keys there will be, they wait in the pile until all are there; then
 * a filter of exactly that size is planned, and gets them.  They come sorted by their hashes,
 * so that a Bloom filter is filled from its beginning to its end, and is the same in whatever
 * order the keys were given.
 *
 * If there is no file, and the pile takes too much memory, its keys go to a filter that is
 * larger than it needs to be, and so do all later keys; it is folded at the end. */
#include "builder.h"
#include <perhaps.h>

int sized_begin(perhaps_builder *b, const struct perhaps_options *options)
{
    const struct perhaps_build_options how = { .threads = b->how.threads };
    int error = perhaps_create(options, &b->filter);
    if (!error && (b->stores_copies || b->filter->loops->lines))
        error = perhaps_bulk_begin(b->filter, &how, &b->bulk);
    return error;
}

void sized_end(perhaps_builder *b)
{
    perhaps_bulk_end(b->bulk);
    perhaps_free(b->filter);
    b->bulk = NULL;
    b->filter = NULL;
}

int sized_add(perhaps_builder *b, const struct perhaps_keys *keys)
{
    return b->bulk ? perhaps_bulk_add(b->bulk, keys, NULL)
                   : perhaps_add_unless_present_many(b->filter, keys, NULL, NULL);
}

/* How the pile is taken: so many ranges at a time. */
struct taking {
    perhaps_builder *b;
    unsigned each;
};

static int take(void *context, void *hand, uint64_t task)
{
    const struct taking *taking = context;
    unsigned range = (unsigned)task * taking->each;
    return pile_take(&taking->b->pile, range, range + taking->each, hand);
}

/* Adds the records that a hand has taken. */
static int add(void *context, void *hand, uint64_t task)
{
    perhaps_builder *b = ((const struct taking *)context)->b;
    const struct taken *taken = hand;
    const unsigned words = b->pile.options.words;
    struct keyhash hash[BATCH_MOST];
    int error = 0;
    (void)task;
    for (uint64_t at = 0; at < taken->n && !error; at += BATCH_MOST) {
        size_t n = taken->n - at < BATCH_MOST ? (size_t)(taken->n - at) : BATCH_MOST;
        const uint64_t *record = taken->records + at * words;
        for (size_t i = 0; i < n; i++, record += words)
            hash[i] = words == 1 ? keyhash_from_64(record[0])
                                 : (struct keyhash){ .place = record[0], .mark = record[1] };
        struct perhaps_keys keys = perhaps_keys_hashed((const void *)hash, n);
        error = sized_add(b, &keys);
    }
    return error ? error : builder_tell(b, taken->n);
}

/* Takes the pile in pieces that are large enough to be worth a task. */
static int fill(perhaps_builder *b)
{
    enum { PIECE = 1 << 16 }; /* keys */
    struct taking taking = { .b = b, .each = PILE_RANGES };
    while (taking.each > 1 && b->pile.nrecords / (PILE_RANGES / taking.each) > PIECE)
        taking.each /= 2;
    return builder_take(b,
                        &(struct tasks){ .ntasks = PILE_RANGES / taking.each,
                                         .context = &taking,
                                         .work = take,
                                         .deliver = add },
                        pile_threads(&b->pile));
}

/* Returns the options of a filter with the kind and the hash that were chosen. */
static struct perhaps_options chosen_options(const perhaps_builder *b)
{
    struct perhaps_options options = b->options;
    const struct hasher *hasher = &b->hasher;
    options.kind = b->kind->about.name;
    options.hashing = (struct perhaps_hashing){ .hash = hasher->id,
                                                .seed = hasher->seed,
                                                .note = hasher->note };
    if (hash_row_of(hasher)->needs == HASH_NEEDS_SECRET) {
        options.hashing.secret = hasher->secret;
    } else if (hash_row_of(hasher)->needs == HASH_NEEDS_FUNCTION) {
        options.hashing.function = hasher->function;
        options.hashing.context = hasher->context;
    }
    return options;
}

/* ---- In memory only -------------------------------------------------------------------- */

/* Sets options->capacity to about the largest with which a filter takes a half of the memory:
 * the pile has the other one.  Returns false if that is not more than it has now. */
static bool plan_largest(const perhaps_builder *b, struct perhaps_options *options)
{
    enum { TRIES = 12 };
    const uint64_t memory_nbytes = b->pile.memory_nbytes;
    const double most = (double)memory_nbytes / 2, near = 0.98;
    struct perhaps_plan plan;
    options->capacity = memory_nbytes / 4;
    for (int i = 0; i < TRIES; i++) {
        if (perhaps_plan_for(options, &plan))
            return false;
        double share = (double)plan.body_nbytes / most;
        if (share <= 1 && (share >= near || i >= TRIES / 2))
            return options->capacity > b->pile.nrecords;
        options->capacity = (uint64_t)((double)options->capacity / share * (1 + near) / 2);
    }
    return false;
}

/* Moves the keys of the pile to a filter as large as the memory allows; alone. */
static int move(perhaps_builder *b)
{
    struct perhaps_options options = chosen_options(b);
    if (!is_sized(b) || !b->kind->folds || b->stores_copies || !plan_largest(b, &options))
        return PERHAPS_ERR_FULL;
    int error = pile_settle(&b->pile);
    if (!error)
        error = sized_begin(b, &options);
    if (!error)
        error = fill(b);
    if (error)
        return error;
    b->moved = b->pile.nrecords;
    pile_end(&b->pile);
    builder_begin_pile(b);
    return 0;
}

/* Adds keys to the filter in place of the pile.  Hashes them before it needs the lock. */
static int add_moved(perhaps_builder *b, const struct perhaps_keys *keys)
{
    enum { STEP = 4 * BATCH_STEP };
    struct keyhash hash[STEP];
    int error = 0;
    for (size_t at = 0, n; at < keys->count && !error; at += n) {
        n = keys->count - at < STEP ? keys->count - at : STEP;
        for (size_t i = 0; i < n; i += BATCH_STEP)
            hasher_run(&b->hasher, keys, at + i, n - i < BATCH_STEP ? n - i : BATCH_STEP,
                       hash + i);
        const struct perhaps_keys hashed = perhaps_keys_hashed((const void *)hash, n);
        rwlock_take(&b->moving);
        error = builder_note(b, b->error ? 0 : sized_add(b, &hashed));
        b->moved += n;
        rwlock_release(&b->moving);
    }
    return error;
}

/* Makes room for keys that come later. */
static int make_room(perhaps_builder *b)
{
    rwlock_take(&b->moving);
    int error = builder_note(b, !b->error && pile_is_over(&b->pile) ? move(b) : 0);
    rwlock_release(&b->moving);
    return error;
}

int sized_pile_keys(perhaps_builder *b, const struct perhaps_keys *keys, const uint32_t *value)
{
    if (hasher_accepts(&b->hasher, keys) < keys->count)
        return PERHAPS_ERR_ARGUMENT;
    rwlock_share(&b->moving);
    const bool moved = b->moved > 0;
    int error = builder_note(b, 0);
    if (!error && !moved)
        error = builder_pile_keys(b, &b->pile, keys, value);
    rwlock_unshare(&b->moving);
    if (error)
        return error;
    return moved ? add_moved(b, keys) : pile_is_over(&b->pile) ? make_room(b) : 0;
}

/* Folds the filter that has all keys, as far as it goes. */
static int finish_moved(perhaps_builder *b)
{
    perhaps_filter *small;
    perhaps_bulk_end(b->bulk);
    b->bulk = NULL;
    int error = perhaps_shrink(b->filter, 0, &small);
    b->folded = 1;
    if (error)
        return error == PERHAPS_ERR_LIMIT ? 0 : error;
    uint64_t from = b->filter->body.geometry.body_nbytes, to = small->body.geometry.body_nbytes;
    b->folded = (from + to / 2) / to; /* a body may have a tail, which is not folded */
    perhaps_free(b->filter);
    b->filter = small;
    return 0;
}

/* ---- All keys ---------------------------------------------------------------------------- */

/* Makes the filter of these options in place of the last one, and adds the pile to it. */
static int make(perhaps_builder *b, const struct perhaps_options *options)
{
    sized_end(b);
    int error = sized_begin(b, options);
    return error ? error : fill(b);
}

/* Copies crowd the slots of a cuckoo filter: with two of each key it needs a little more room,
 * with four three times as much.  If none suffices, a key has more than the kind holds. */
int sized_finish(perhaps_builder *b)
{
    enum { TRIES = 10 };
    struct perhaps_options options = chosen_options(b);
    if (b->moved)
        return finish_moved(b);
    int error = pile_settle(&b->pile);
    if (!error)
        error = builder_count(b, &b->pile, &options.capacity);
    b->total = options.capacity;
    if (b->how.leaves_room)
        options.capacity += options.capacity / 4 + 1000;
    if (!options.capacity)
        options.capacity = 1;
    if (!error)
        error = make(b, &options);
    for (int i = 1; error == PERHAPS_ERR_FULL && i < TRIES; i++) {
        options.capacity += options.capacity / 4 + 1;
        error = make(b, &options);
    }
    return error == PERHAPS_ERR_FULL && b->stores_copies ? PERHAPS_ERR_COPIES : error;
}
