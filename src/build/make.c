/* make.c - a pile of keys to a filter: how many different keys there are, and their body. */
#include "builder.h"

#include <string.h>

#include "../kinds/kinds.h"

/* ---- Keys to records -------------------------------------------------------------------- */

void builder_begin_pile(perhaps_builder *b)
{
    bool values = b->kind->builds && b->options.ribbon.value_bits > 0 && !b->kind->composite;
    unsigned words = hash_row_of(&b->hasher)->bits == 64 ? 1 : 2;
    pile_begin(&b->pile, &(struct pile_options){ .words = words + values,
                                                 .valued = values,
                                                 .repeats = b->stores_copies && is_sized(b),
                                                 .memory_nbytes = b->how.memory_nbytes,
                                                 .in_memory = b->how.in_memory,
                                                 .threads = b->how.threads,
                                                 .folder = b->folder,
                                                 .allocator = b->allocator });
}

int builder_pile_keys(perhaps_builder *b, struct pile *pile, const struct perhaps_keys *keys,
                      const uint32_t *value)
{
    const unsigned words = pile->options.words;
    struct keyhash hash[BATCH_STEP];
    uint64_t records[BATCH_STEP * RECORD_WORDS_MOST];
    int error = 0;
    if (hasher_accepts(&b->hasher, keys) < keys->count)
        return PERHAPS_ERR_ARGUMENT;
    for (size_t at = 0; at < keys->count && !error; at += BATCH_STEP) {
        size_t n = keys->count - at < BATCH_STEP ? keys->count - at : BATCH_STEP;
        hasher_run(&b->hasher, keys, at, n, hash);
        for (size_t i = 0; i < n; i++) {
            uint64_t *record = records + i * words;
            record[0] = hash[i].place;
            if (words - pile->options.valued > 1)
                record[1] = hash[i].mark;
            if (pile->options.valued)
                record[words - 1] = value ? value[at + i] : 0;
        }
        error = pile_add(pile, records, n);
    }
    return error;
}

/* ---- How many different keys ----------------------------------------------------------- */

/* Counts the different keys of some ranges of the pile: task i takes 'ranges' of them, from
 * number i * 'each' on. */
struct counting {
    const struct pile *pile;
    unsigned each, ranges;
    uint64_t keys, unique;
};

static int take_ranges(void *context, void *hand, uint64_t task)
{
    const struct counting *counting = context;
    unsigned range = (unsigned)task * counting->each;
    return pile_take(counting->pile, range, range + counting->ranges, hand);
}

static int count_ranges(void *context, void *hand, uint64_t task)
{
    struct counting *counting = context;
    const struct taken *taken = hand;
    unsigned range = (unsigned)task * counting->each;
    counting->unique += taken->n;
    counting->keys += pile_size(counting->pile, range, range + counting->ranges);
    return 0;
}

int builder_take(perhaps_builder *b, const struct tasks *tasks, unsigned threads)
{
    struct taken taken[THREADS_MOST] = { 0 };
    void *hands[THREADS_MOST] = { NULL };
    const unsigned most = tasks->ntasks < THREADS_MOST ? (unsigned)tasks->ntasks : THREADS_MOST;
    const unsigned nhands = threads < most ? threads : most;
    for (unsigned i = 0; i < nhands; i++)
        hands[i] = &taken[i];
    int error = tasks_run(tasks, hands, nhands);
    for (unsigned i = 0; i < nhands; i++)
        taken_release(&taken[i], &b->allocator);
    return error;
}

static int count(perhaps_builder *b, struct counting *counting)
{
    return builder_take(b,
                        &(struct tasks){ .ntasks = PILE_RANGES / counting->each,
                                         .context = counting,
                                         .work = take_ranges,
                                         .deliver = count_ranges },
                        pile_threads(counting->pile));
}

/* Counts them where they are few; of many it looks at a 64th, and takes all for different if
 * less than a 2000th of these is repeated. */
int builder_count(perhaps_builder *b, const struct pile *pile, uint64_t *keys)
{
    const uint64_t few = 1 << 20, task = 1 << 16; /* keys */
    struct counting sample = { .pile = pile, .each = 64, .ranges = 1 };
    struct counting all = { .pile = pile, .each = PILE_RANGES };
    if (pile->options.repeats) {
        *keys = pile->nrecords;
        return 0;
    }
    while (all.each > 1 && pile->nrecords / (PILE_RANGES / all.each) > task)
        all.each /= 2;
    all.ranges = all.each;
    int error = pile->nrecords > few ? count(b, &sample) : 0;
    bool differ = sample.keys && (sample.keys - sample.unique) * 2000 < sample.keys;
    if (!error && !differ)
        error = count(b, &all);
    *keys = differ ? pile->nrecords : all.unique;
    return error;
}

/* ---- The body -------------------------------------------------------------------------- */

int builder_tell(perhaps_builder *b, uint64_t nkeys)
{
    const struct perhaps_build_options *how = &b->how;
    b->done += nkeys;
    if (how->progress && b->finished)
        how->progress(how->context, b->done < b->total ? b->done : b->total, b->total);
    return how->stopped && how->stopped(how->context) ? PERHAPS_ERR_STOPPED : 0;
}

/* Where the bytes of a body go, behind those that are there. */
struct output {
    perhaps_builder *b;
    perhaps_filter *f;
    const struct perhaps_sink *sink; /* NULL: to the body of the filter */
    uint64_t nbytes;
};

static int output_write(void *context, const uint8_t *bytes, uint64_t nbytes)
{
    struct output *output = context;
    uint64_t at = output->nbytes;
    output->nbytes += nbytes;
    if (output->sink)
        return output->sink->write(output->sink->context, bytes, (size_t)nbytes);
    memcpy(output->f->body.bytes + at, bytes, nbytes);
    return 0;
}

static int output_progress(void *context, uint64_t nkeys)
{
    return builder_tell(((struct output *)context)->b, nkeys);
}

int builder_build_body(perhaps_builder *b, perhaps_filter *f, const struct plan *plan,
                       const struct perhaps_sink *sink)
{
    struct output output = { .b = b, .f = f, .sink = sink };
    bool by_64 = plan->pile->options.words - plan->pile->options.valued == 1;
    struct building building = { .g = &f->body.geometry,
                                 .pile = plan->pile,
                                 .flips = plan->flips,
                                 .mark_factor = by_64 ? keyhash_from_64(1).mark : 0,
                                 .cpu = f->cpu,
                                 .threads = pile_threads(plan->pile),
                                 .write = output_write,
                                 .progress = output_progress,
                                 .context = &output };
    b->done = 0;
    b->total = plan->g.capacity;
    int error = plan->kind->builds->build(&building);
    f->counters->keys = building.keys;
    filter_bind(f);
    return error;
}

int builder_make(perhaps_builder *b, struct plan *plan, bool with_body,
                 int (*put)(void *context, perhaps_filter *f, struct plan *plan), void *context,
                 perhaps_filter **filter)
{
    enum { TRIES = 10 };
    int error = 0;
    for (int i = 0; !error && i < TRIES; i++) {
        error = filter_make(plan->kind, &plan->g, &b->hasher, &b->allocator, with_body, false,
                            filter);
        if (!error)
            error = put(context, *filter, plan);
        if (!error)
            return 0;
        if (*filter)
            plan->g = (*filter)->body.geometry;
        perhaps_free(*filter);
        *filter = NULL;
        if (error == PERHAPS_ERR_FULL)
            error = plan->kind->builds->enlarge(&plan->g);
    }
    return error ? error : PERHAPS_ERR_FULL;
}

int builder_put_in_memory(void *context, perhaps_filter *f, struct plan *plan)
{
    return builder_build_body(context, f, plan, NULL);
}

/* ---- Parts ----------------------------------------------------------------------------- */

int builder_make_part(perhaps_builder *b, const struct pile *pile, uint64_t keys, unsigned bits,
                      bool flips, perhaps_filter **part)
{
    const double slack = 1.25; /* for equal hashes, which the rate of a part counts, too */
    struct perhaps_options options = b->options;
    struct plan plan = { .kind = kind_by_name("ribbon"), .pile = pile, .flips = flips };
    char why[WHY_NBYTES];
    plan.g.capacity = keys ? keys : 1;
    plan.g.fpr = slack / (double)(UINT64_C(1) << bits);
    options.ribbon.value_bits = 0;
    int error = geometry_plan(plan.kind, &options, &plan.g, why);
    return error ? error : builder_make(b, &plan, true, builder_put_in_memory, b, part);
}

int builder_adopt(perhaps_filter *f, perhaps_filter *part)
{
    int error = filter_adopt(f, part);
    if (error)
        perhaps_free(part);
    return error;
}
