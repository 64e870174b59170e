/* grouped.c - builds filters that are exact against others, when keys have groups.
 *
 * Only when all others are there it is known how many keys each group has on both sides.  So
 * all wait on two piles, by their own hashes, which tell the group:
 *
 *     listed, others  ->  how each group is stored        (groups.c)
 *     others          ->  those that are stored           of groups that are mostly listed
 *     listed, stored  ->  the first parts, one by one
 *     listed, others  ->  asked of the first parts        what is open then goes to a pile
 *     that pile       ->  the last part
 * */
#include "../kinds/built/against.h"

#include "../base/memory.h"
#include "../kinds/kinds.h"
#include "builder.h"

/* Begins a pile that is there beside others, with these options but so many words. */
static void begin_beside(const perhaps_builder *b, struct pile *pile, bool valued)
{
    struct pile_options options = b->pile.options;
    options.memory_nbytes = b->pile.memory_nbytes / 4;
    options.words += valued;
    options.valued = options.first_wins = valued;
    pile_begin(pile, &options);
}

void grouped_begin(perhaps_builder *b)
{
    const struct pile_options options = b->pile.options;
    pile_begin(&b->others, &options);
}

void grouped_end(perhaps_builder *b)
{
    groups_end(&b->groups, &b->allocator);
}

/* ---- A pass over a pile ------------------------------------------------------------------ */

/* What is done with some records of a pile, at most BATCH_STEP of them. */
typedef int visit_keys(void *context, const struct keyhash *keys, size_t n);

static int visit_records(const perhaps_builder *b, const struct taken *taken, visit_keys *visit,
                         void *context)
{
    const struct perhaps_build_options *how = &b->how;
    struct keyhash keys[BATCH_STEP];
    int error = how->stopped && how->stopped(how->context) ? PERHAPS_ERR_STOPPED : 0;
    for (uint64_t at = 0; at < taken->n && !error; at += BATCH_STEP) {
        const size_t n = taken->n - at < BATCH_STEP ? (size_t)(taken->n - at) : BATCH_STEP;
        for (size_t i = 0; i < n; i++) {
            const uint64_t *record = taken->records + (at + i) * 2;
            keys[i] = (struct keyhash){ .place = record[0], .mark = record[1] };
        }
        error = visit(context, keys, n);
    }
    return error;
}

/* Visits each key of a settled pile once. */
static int visit_pile(const perhaps_builder *b, const struct pile *pile, visit_keys *visit,
                      void *context)
{
    enum { EACH = 16 };
    struct taken taken = { 0 };
    int error = 0;
    for (unsigned range = 0; range < PILE_RANGES && !error; range += EACH) {
        error = pile_take(pile, range, range + EACH, &taken);
        if (!error)
            error = visit_records(b, &taken, visit, context);
    }
    taken_release(&taken, &b->allocator);
    return error;
}

/* ---- Counting ---------------------------------------------------------------------------- */

static int count_listed(void *context, const struct keyhash *keys, size_t n)
{
    perhaps_builder *b = context;
    for (size_t i = 0; i < n; i++) {
        struct group *group =
            groups_find(&b->groups, against_group(keys[i]), true, &b->allocator);
        if (!group)
            return PERHAPS_ERR_MEMORY;
        group->listed++;
    }
    b->nlisted += n;
    return 0;
}

static int count_others(perhaps_builder *b, const struct keyhash *keys, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct group *group =
            groups_find(&b->groups, against_group(keys[i]), true, &b->allocator);
        if (!group)
            return builder_note(b, PERHAPS_ERR_MEMORY);
        group->others++;
    }
    b->nothers += n;
    return 0;
}

int grouped_count_listed(perhaps_builder *b)
{
    if (b->error || b->counted)
        return builder_note(b, 0);
    b->counted = true;
    int error = pile_settle(&b->pile);
    return builder_note(b, error ? error : visit_pile(b, &b->pile, count_listed, b));
}

int grouped_add_others(perhaps_builder *b, const struct keyhash *keys, size_t n)
{
    uint64_t records[BATCH_STEP * 2];
    for (size_t i = 0; i < n; i++) {
        records[2 * i] = keys[i].place;
        records[2 * i + 1] = keys[i].mark;
    }
    mutex_take(&b->lock);
    int error = count_others(b, keys, n);
    mutex_release(&b->lock);
    if (!error)
        error = pile_add(&b->others, records, n);
    return !error && pile_is_over(&b->others) ? PERHAPS_ERR_FULL : error;
}

/* ---- The first parts --------------------------------------------------------------------- */

/* Chooses keys by the codes of their groups, and puts them on a pile. */
struct choosing {
    const perhaps_filter *f;
    struct pile *to;
    unsigned first, last; /* codes from one to the other */
    unsigned step;        /* of the same remainder */
    bool mixes;           /* for a part, by the hash for it */
};

static int choose_keys(void *context, const struct keyhash *keys, size_t n)
{
    const struct choosing *c = context;
    uint64_t records[BATCH_STEP * 2];
    size_t count = 0;
    for (size_t i = 0; i < n; i++) {
        const unsigned code = against_code(c->f, against_group(keys[i]));
        const struct keyhash key = c->mixes ? against_mixed(keys[i]) : keys[i];
        records[2 * count] = key.place;
        records[2 * count + 1] = key.mark;
        count += code >= c->first && code <= c->last && (code - c->first) % c->step == 0;
    }
    int error = pile_add(c->to, records, count);
    return !error && pile_is_over(c->to) ? PERHAPS_ERR_FULL : error;
}

/* Puts the others that are stored on a pile. */
static int store_others(const perhaps_builder *b, const perhaps_filter *f, struct pile *stored)
{
    struct choosing all = { f, stored, GROUP_PARTS + 1, UINT8_MAX, 2, false };
    int error = visit_pile(b, &b->others, choose_keys, &all);
    return error ? error : pile_settle(stored);
}

/* Builds a first part, and gives it to the filter. */
static int build_first(perhaps_builder *b, perhaps_filter *f, const struct pile *stored,
                       unsigned number)
{
    const unsigned code = GROUP_PARTS + 2 * number;
    struct pile keys;
    struct choosing listed = { f, &keys, code, code, 1, true };
    struct choosing others = { f, &keys, code + 1, code + 1, 1, true };
    perhaps_filter *part = NULL;
    uint64_t count;
    begin_beside(b, &keys, false);
    int error = visit_pile(b, &b->pile, choose_keys, &listed);
    if (!error)
        error = visit_pile(b, stored, choose_keys, &others);
    if (!error)
        error = pile_settle(&keys);
    if (!error)
        error = builder_count(b, &keys, &count);
    if (!error)
        error = builder_make_part(b, &keys, count, b->groups.bits[number], false, &part);
    pile_end(&keys);
    return error ? error : builder_adopt(f, part);
}

/* ---- The last part ----------------------------------------------------------------------- */

/* Puts keys of one side on the pile of the last part: those about which the first parts leave
 * it open. */
struct opening {
    const perhaps_filter *f;
    struct pile *to;
    bool others;
};

static int open_keys(void *context, const struct keyhash *keys, size_t n)
{
    const struct opening *o = context;
    struct against_asked asked;
    uint64_t records[BATCH_STEP * 3];
    size_t count = 0;
    against_ask_first(o->f, o->f->parts->count, keys, n, &asked);
    for (size_t i = 0; i < n; i++) {
        const struct keyhash key = against_second(asked.mixed[i]);
        records[3 * count] = key.place;
        records[3 * count + 1] = key.mark;
        records[3 * count + 2] = o->others;
        count += asked.open[i];
    }
    int error = pile_add(o->to, records, count);
    return !error && pile_is_over(o->to) ? PERHAPS_ERR_FULL : error;
}

/* Builds the last part.  (The others of a group that is stored by them are all in its first
 * part, which leaves each of them open.) */
static int build_last(perhaps_builder *b, perhaps_filter *f)
{
    struct pile keys;
    struct opening listed = { .f = f, .to = &keys };
    struct opening others = { .f = f, .to = &keys, .others = true };
    perhaps_filter *part = NULL;
    uint64_t count;
    begin_beside(b, &keys, true);
    int error = visit_pile(b, &b->pile, open_keys, &listed);
    if (!error)
        error = visit_pile(b, &b->others, open_keys, &others);
    if (!error)
        error = pile_settle(&keys);
    if (!error)
        error = builder_count(b, &keys, &count);
    if (!error)
        error = builder_make_part(b, &keys, count, 1, true, &part);
    pile_end(&keys);
    return error ? error : builder_adopt(f, part);
}

/* ---- The filter -------------------------------------------------------------------------- */

/* Returns of how many bits the rows of a key have at least that is stored because it is listed:
 * they tell the rate of keys of neither side. */
static unsigned least_bits(const struct groups *groups)
{
    unsigned least = GROUPS_PARTS_MOST;
    for (uint64_t i = 0; i <= groups->room; i++) {
        const unsigned code = i < groups->room ? groups->at[i].code : groups->rest.code;
        const unsigned part = (code - GROUP_PARTS) / 2;
        const unsigned bits = code >= GROUP_PARTS   ? groups->bits[part]
                              : code == GROUP_EXACT ? 0
                                                    : GROUPS_PARTS_MOST;
        least = bits < least ? bits : least;
    }
    return least;
}

/* Writes the table of groups to the body. */
static int write_table(const perhaps_builder *b, perhaps_filter *f)
{
    const uint64_t n = f->body.geometry.field[AGAINST_GROUPS];
    struct group *sorted = allocate(&b->allocator, (n + 1) * sizeof *sorted);
    if (!sorted)
        return PERHAPS_ERR_MEMORY;
    groups_sort(&b->groups, sorted);
    for (uint64_t i = 0; i < n; i++) {
        store32(f->body.bytes + against_number_at(i), sorted[i].number);
        f->body.bytes[against_code_at(&f->body.geometry, i)] = sorted[i].code;
    }
    release(&b->allocator, sorted, (n + 1) * sizeof *sorted);
    return 0;
}

/* Makes the filter, which has its table and no parts. */
static int make_filter(perhaps_builder *b, perhaps_filter **filter)
{
    struct geometry g = { .capacity = b->nlisted ? b->nlisted : 1, .fpr = b->options.fpr };
    g.base = kind_by_name("ribbon");
    char why[WHY_NBYTES];
    int error = b->kind->plan(&g, &b->options, why);
    g.field[AGAINST_OTHERS] = b->nothers;
    g.field[AGAINST_ROW_BITS] = least_bits(&b->groups);
    g.field[AGAINST_GROUPS] = groups_told(&b->groups);
    g.field[AGAINST_OTHER_GROUPS] = b->groups.rest.code;
    g.extra_nbytes = 0;
    if (!error)
        error = geometry_check(b->kind, &g);
    if (!error)
        error = filter_make(b->kind, &g, &b->hasher, &b->allocator, true, false, filter);
    if (!error)
        error = write_table(b, *filter);
    if (!error)
        (*filter)->counters->keys = b->nlisted;
    return error;
}

static int build_parts(perhaps_builder *b, perhaps_filter *f)
{
    struct pile stored;
    begin_beside(b, &stored, false);
    int error = store_others(b, f, &stored);
    for (unsigned number = 0; number < b->groups.nparts && !error; number++)
        error = build_first(b, f, &stored, number);
    pile_end(&stored);
    return error ? error : build_last(b, f);
}

int grouped_finish(perhaps_builder *b, perhaps_filter **filter)
{
    *filter = NULL;
    int error = grouped_count_listed(b);
    if (!error)
        error = pile_settle(&b->others);
    if (!error) {
        groups_choose(&b->groups, b->options.fpr);
        error = make_filter(b, filter);
    }
    if (!error)
        error = build_parts(b, *filter);
    if (!error)
        error = filter_attach(*filter);
    if (error) {
        perhaps_free(*filter);
        *filter = NULL;
    }
    return error;
}
