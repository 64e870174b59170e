/* against.c - builds filters that are exact where the other side is known.
 *
 * When the first of the others comes, all listed keys are there, and the first part is built
 * from them.  It is asked for each of the others; those that it takes for listed go to a pile.
 * At the end the second part is built from that pile and the listed keys. */
#include "../kinds/built/against.h"

#include "../base/memory.h"
#include "../kinds/kinds.h"
#include "builder.h"

void against_begin(perhaps_builder *b)
{
    struct pile_options options = b->pile.options;
    mutex_begin(&b->lock);
    if (has_groups(b)) {
        grouped_begin(b);
        return;
    }
    options.words++;
    options.valued = options.first_wins = true;
    pile_begin(&b->others, &options);
}

void against_end(perhaps_builder *b)
{
    perhaps_free(b->first);
    grouped_end(b);
    pile_end(&b->others);
    mutex_end(&b->lock);
}

/* Returns of how many bits a row of the first part is. */
static unsigned first_bits(const perhaps_builder *b, uint64_t listed)
{
    return against_row_bits(listed ? listed : 1, b->options.against.others, b->options.fpr);
}

uint64_t against_disk_nbytes(const perhaps_builder *b, uint64_t listed)
{
    const uint64_t others = b->options.against.others;
    uint64_t wrong = others >> first_bits(b, listed);
    return pile_disk_nbytes(&b->others, has_groups(b) ? others : listed + wrong);
}

/* Builds the first part, if it is not there yet.  Under the lock. */
static int need_first(perhaps_builder *b)
{
    uint64_t listed;
    if (b->error || b->first)
        return builder_note(b, 0);
    int error = pile_settle(&b->pile);
    if (!error)
        error = builder_count(b, &b->pile, &listed);
    if (!error)
        error = builder_make_part(b, &b->pile, listed, first_bits(b, listed), false, &b->first);
    return builder_note(b, error);
}

/* Puts hashed keys that the first part has on the pile. */
static int pile_wrong(perhaps_builder *b, const struct keyhash *hash, size_t n)
{
    const unsigned words = b->others.options.words;
    const perhaps_filter *first = b->first;
    uint64_t records[BATCH_STEP * RECORD_WORDS_MOST];
    bool listed[BATCH_STEP];
    size_t nwrong = 0;
    first->kind->prefetch(first, hash, n);
    first->kind->contains(first, hash, hash, n, listed);
    for (size_t i = 0; i < n; i++) {
        uint64_t *record = records + nwrong * words;
        struct keyhash key = against_second(hash[i]);
        record[0] = key.place;
        if (words > 2)
            record[1] = key.mark;
        record[words - 1] = 1;
        nwrong += listed[i];
    }
    int error = pile_add(&b->others, records, nwrong);
    return !error && pile_is_over(&b->others) ? PERHAPS_ERR_FULL : error;
}

int perhaps_builder_add_others(perhaps_builder *b, const struct perhaps_keys *keys)
{
    struct keyhash hash[BATCH_STEP];
    if (!has_others(b))
        return PERHAPS_ERR_UNSUPPORTED;
    if (b->finished || hasher_accepts(&b->hasher, keys) < keys->count)
        return PERHAPS_ERR_ARGUMENT;
    const bool groups = has_groups(b);
    mutex_take(&b->lock);
    int error = groups ? grouped_count_listed(b) : need_first(b);
    b->nothers += groups ? 0 : keys->count;
    mutex_release(&b->lock);
    for (size_t at = 0; at < keys->count && !error; at += BATCH_STEP) {
        size_t n = keys->count - at < BATCH_STEP ? keys->count - at : BATCH_STEP;
        hasher_run(&b->hasher, keys, at, n, hash);
        error = groups ? grouped_add_others(b, hash, n) : pile_wrong(b, hash, n);
    }
    return error;
}

/* Puts the listed keys beside the others, with the value 0.  A key of both lists is listed. */
static int pile_listed(perhaps_builder *b)
{
    enum { EACH = 16 };
    const unsigned words = b->pile.options.words;
    struct taken taken = { 0 };
    int error = 0;
    for (unsigned range = 0; range < PILE_RANGES && !error; range += EACH) {
        error = pile_take(&b->pile, range, range + EACH, &taken);
        for (uint64_t i = 0; i < taken.n && !error; i++) {
            const uint64_t *from = taken.records + i * words;
            struct keyhash key = against_second((struct keyhash){ *from, from[words - 1] });
            uint64_t record[RECORD_WORDS_MOST] = { key.place, key.mark };
            record[words] = 0;
            error = pile_add(&b->others, record, 1);
        }
    }
    taken_release(&taken, &b->allocator);
    return error ? error : pile_settle(&b->others);
}

/* Gives both parts to the filter, which is empty.  Returns 0 or PERHAPS_ERR_MEMORY. */
static int adopt_both(perhaps_builder *b, perhaps_filter *f, perhaps_filter *second)
{
    f->counters->keys = b->first->counters->keys;
    int error = builder_adopt(f, b->first);
    b->first = NULL;
    if (error)
        perhaps_free(second);
    return error ? error : builder_adopt(f, second);
}

int against_finish(perhaps_builder *b, perhaps_filter **filter)
{
    struct geometry g = { .fpr = b->options.fpr, .base = kind_by_name("ribbon") };
    perhaps_filter *second = NULL;
    uint64_t keys;
    char why[WHY_NBYTES];
    *filter = NULL;
    if (has_groups(b))
        return grouped_finish(b, filter);
    int error = need_first(b);
    if (!error)
        error = pile_listed(b);
    if (!error)
        error = builder_count(b, &b->others, &keys);
    if (!error)
        error = builder_make_part(b, &b->others, keys, 1, true, &second);
    if (error)
        return error;
    g.capacity = b->first->body.geometry.capacity;
    error = geometry_plan(b->kind, &b->options, &g, why);
    g.field[AGAINST_OTHERS] = b->nothers;
    g.field[AGAINST_ROW_BITS] = b->first->body.geometry.field[0];
    if (!error)
        error = filter_make(b->kind, &g, &b->hasher, &b->allocator, true, false, filter);
    if (error) {
        perhaps_free(second);
        return error;
    }
    error = adopt_both(b, *filter, second);
    if (!error)
        error = filter_attach(*filter);
    if (error) {
        perhaps_free(*filter);
        *filter = NULL;
    }
    return error;
}
