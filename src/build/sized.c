/* sized.c - makes filters of kinds that take keys as they come.
 *
 * If nobody knows how many keys there will be, they wait in the pile until all are there; then
 * a filter of exactly that size is planned, and gets them.  They come sorted by their hashes,
 * so that a Bloom filter is filled from its beginning to its end, and is the same in whatever
 * order the keys were given. */
#include "builder.h"

int sized_begin(perhaps_builder *b, const struct perhaps_options *options)
{
    const struct perhaps_build_options how = { .threads = b->how.threads };
    int error = perhaps_create(options, &b->filter);
    if (!error && (b->stores_copies || b->filter->loops.lines))
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

/* How the pile is taken: so many parts at a time. */
struct taking {
    perhaps_builder *b;
    unsigned each;
};

static int take(void *context, void *hand, uint64_t task)
{
    const struct taking *taking = context;
    unsigned part = (unsigned)task * taking->each;
    return pile_take(&taking->b->pile, part, part + taking->each, hand);
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
    struct taking taking = { .b = b, .each = PILE_PARTS };
    while (taking.each > 1 && b->pile.nrecords / (PILE_PARTS / taking.each) > PIECE)
        taking.each /= 2;
    return builder_take(b, &(struct tasks){ .ntasks = PILE_PARTS / taking.each,
                                            .context = &taking,
                                            .work = take,
                                            .deliver = add });
}

/* Makes the filter of these options in place of the last one, and adds the pile to it. */
static int make(perhaps_builder *b, const struct perhaps_options *options)
{
    sized_end(b);
    int error = sized_begin(b, options);
    return error ? error : fill(b);
}

/* Copies of few keys crowd the slots of a cuckoo filter, which then needs to be larger. */
int sized_finish(perhaps_builder *b)
{
    enum { TRIES = 10 };
    struct perhaps_options options = b->options;
    const struct hasher *hasher = &b->hasher;
    int error = pile_settle(&b->pile);
    if (!error)
        error = builder_count(b, &b->pile, &options.capacity);
    b->total = options.capacity;
    if (b->how.leaves_room)
        options.capacity += options.capacity / 4 + 1000;
    if (!options.capacity)
        options.capacity = 1;
    options.kind = b->kind->about.name;
    options.hashing = (struct perhaps_hashing){ .hash = hasher->id,
                                                .seed = hasher->seed,
                                                .secret = hasher->secret,
                                                .function = hasher->function,
                                                .context = hasher->context };
    if (!error)
        error = make(b, &options);
    for (int i = 1; error == PERHAPS_ERR_FULL && i < TRIES; i++) {
        options.capacity += options.capacity / 8 + 1;
        error = make(b, &options);
    }
    return error;
}
