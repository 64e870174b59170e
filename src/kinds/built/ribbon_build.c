/* ribbon_build.c - makes the body of a ribbon filter from a pile of keys.
 *
 * Layer after layer: the keys of a layer come from a pile, region after region, sorted.  A
 * thread enters the equations of a region and solves them; the blocks go to the body in the
 * order of the regions, and the keys that were bumped to the pile of the next layer.  No
 * equation reaches into the next region, since the last bucket of each bumps all its keys. */
#include <string.h>

#include "../../base/memory.h"
#include "../../pile/pile.h"
#include "../cpu/cpu_loops.h"
#include "built.h"
#include "ribbon.h"

/* Keys that are bumped go to the next pile so many at a time. */
enum { BUMPED_MOST = 256 };

/* A layer while it is built. */
struct layer {
    struct building *b;
    struct ribbon_keys form; /* without records */
    unsigned number;         /* from 0 on */
    uint64_t slots;
    unsigned region_bits;
    unsigned regions_each; /* how many regions a task has */
    unsigned ranges_each;  /* and how many ranges of the pile */
    const struct pile *from;
    struct pile *to;
    uint8_t *thresholds; /* 4 to a byte */
};

/* What a thread needs to solve regions. */
struct hand {
    struct taken taken;
    struct ribbon_matrix matrix;
    uint8_t *blocks; /* of a task */
    uint64_t blocks_nbytes;
    uint8_t *threshold; /* of a task, a byte for each bucket */
    uint64_t bumped[BUMPED_MOST * RECORD_WORDS_MOST];
    size_t nbumped;
};

unsigned ribbon_region_bits(uint64_t slots)
{
    const uint64_t least = 1 << 19;
    unsigned bits = 0;
    while (slots >> (bits + 1) >= least && slots % ((uint64_t)RIBBON_STRIPE << (bits + 1)) == 0)
        bits++;
    return bits;
}

/* Returns the number that gives 1 when it is multiplied by an odd one.  Each step doubles how
 * many of its bits are right. */
static uint64_t inverse(uint64_t odd)
{
    uint64_t x = odd;
    for (int bits = 3; bits < 64; bits *= 2)
        x *= 2 - odd * x;
    return x;
}

/* ---- Memory ---------------------------------------------------------------------------- */

static bool matrix_begin(struct ribbon_matrix *m, uint64_t slots, unsigned stripe,
                         const struct perhaps_allocator *allocator)
{
    m->slots = slots;
    m->stripe = stripe;
    m->coefficients = allocate_scratch(allocator, (slots + 1) * sizeof *m->coefficients);
    m->row = allocate_scratch(allocator, (slots + 1) * sizeof *m->row);
    return m->coefficients && m->row;
}

static void matrix_end(struct ribbon_matrix *m, const struct perhaps_allocator *allocator)
{
    release(allocator, m->coefficients, (m->slots + 1) * sizeof *m->coefficients);
    release(allocator, m->row, (m->slots + 1) * sizeof *m->row);
}

static uint64_t region_slots(const struct layer *layer)
{
    return layer->slots >> layer->region_bits;
}

static uint64_t task_buckets(const struct layer *layer)
{
    return layer->regions_each * region_slots(layer) / RIBBON_BUCKET;
}

static uint64_t blocks_nbytes(uint64_t slots, uint64_t row_bits)
{
    return slots / 8 * row_bits;
}

static bool hand_begin(const void *context, void *argument,
                       const struct perhaps_allocator *allocator)
{
    const struct layer *layer = context;
    struct hand *hand = argument;
    uint64_t slots = region_slots(layer);
    hand->blocks_nbytes =
        blocks_nbytes(slots * layer->regions_each, layer->b->g->field[ROW_BITS]);
    hand->blocks = allocate_scratch(allocator, hand->blocks_nbytes);
    hand->threshold = allocate(allocator, task_buckets(layer));
    bool begun = matrix_begin(&hand->matrix, slots, ribbon_stripe(layer->slots), allocator);
    return begun && hand->blocks && hand->threshold;
}

static void hand_end(const void *context, void *argument,
                     const struct perhaps_allocator *allocator)
{
    const struct layer *layer = context;
    struct hand *hand = argument;
    taken_release(&hand->taken, allocator);
    matrix_end(&hand->matrix, allocator);
    release(allocator, hand->blocks, hand->blocks_nbytes);
    release(allocator, hand->threshold, task_buckets(layer));
}

/* Returns how many bytes a thread takes to solve a region. */
static uint64_t hand_nbytes(const struct layer *layer)
{
    uint64_t keys = pile_largest(layer->from, layer->ranges_each);
    uint64_t records = keys * layer->form.words * sizeof(uint64_t), slots = region_slots(layer);
    return records + records / layer->ranges_each +
           slots * (sizeof(uint64_t) + sizeof(uint32_t)) +
           blocks_nbytes(slots * layer->regions_each, layer->b->g->field[ROW_BITS]);
}

/* ---- Regions ----------------------------------------------------------------------------- */

static int flush_bumped(const struct layer *layer, struct hand *hand)
{
    size_t n = hand->nbumped;
    hand->nbumped = 0;
    return pile_add(layer->to, hand->bumped, n);
}

/* Puts the keys that start below the threshold of their bucket on the next pile. */
static int bump_keys(const struct layer *layer, struct hand *hand,
                     const struct ribbon_keys *keys, uint64_t first, const uint8_t *threshold)
{
    int error = 0;
    for (uint64_t i = 0; i < keys->n && !error; i++) {
        const uint64_t *record = keys->records + i * keys->words;
        uint64_t slot = scale64(*record, layer->slots) - first;
        if (slot % RIBBON_BUCKET >= ribbon_threshold(threshold[slot / RIBBON_BUCKET]))
            continue;
        uint64_t *bumped = hand->bumped + hand->nbumped++ * keys->words;
        memcpy(bumped, record, keys->words * sizeof *bumped);
        *bumped = ribbon_bumped((struct keyhash){ .place = *record }).place;
        if (hand->nbumped == BUMPED_MOST)
            error = flush_bumped(layer, hand);
    }
    return error ? error : flush_bumped(layer, hand);
}

/* Returns how many of n sorted records have a place in the regions up to this one. */
static uint64_t records_until(const struct layer *layer, const uint64_t *records, uint64_t n,
                              uint64_t region)
{
    uint64_t low = 0, high = n, end = (region + 1) * region_slots(layer);
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        if (scale64(records[middle * layer->form.words], layer->slots) < end)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* A task: the regions of some ranges of the pile. */
static int solve_regions(void *context, void *argument, uint64_t task)
{
    const struct layer *layer = context;
    struct hand *hand = argument;
    const struct ribbon_solver *solver = cpu_loops[layer->b->cpu].solver;
    struct ribbon_matrix *matrix = &hand->matrix;
    unsigned range = (unsigned)task * layer->ranges_each;
    uint64_t done = 0, row_bits = layer->b->g->field[ROW_BITS];
    int error = pile_take(layer->from, range, range + layer->ranges_each, &hand->taken);
    for (unsigned i = 0; i < layer->regions_each && !error; i++) {
        uint64_t region = task * layer->regions_each + i, first = region * matrix->slots;
        uint8_t *threshold = hand->threshold + i * (matrix->slots / RIBBON_BUCKET);
        struct ribbon_keys keys = layer->form;
        keys.records = hand->taken.records + done * keys.words;
        keys.n = records_until(layer, keys.records, hand->taken.n - done, region);
        memset(matrix->coefficients, 0, matrix->slots * sizeof *matrix->coefficients);
        solver->enter(matrix, &keys, first, layer->slots, threshold);
        solver->solve(matrix, (unsigned)row_bits,
                      hand->blocks + i * blocks_nbytes(matrix->slots, row_bits));
        error = bump_keys(layer, hand, &keys, first, threshold);
        done += keys.n;
    }
    return error;
}

/* Writes the blocks of a task to the body, and keeps its thresholds. */
static int deliver_regions(void *context, void *argument, uint64_t task)
{
    const struct layer *layer = context;
    const struct hand *hand = argument;
    struct building *b = layer->b;
    uint64_t buckets = task_buckets(layer), first = task * buckets;
    for (uint64_t i = 0; i < buckets; i++)
        layer->thresholds[(first + i) / 4] |=
            (uint8_t)(hand->threshold[i] << (first + i) % 4 * 2);
    if (!layer->number)
        b->keys += hand->taken.n;
    int error = b->write(b->context, hand->blocks, hand->blocks_nbytes);
    pile_forget(layer->from, (unsigned)(task + 1) * layer->ranges_each);
    return error ? error : b->progress(b->context, hand->taken.n);
}

/* Solves all regions of a layer, with as many threads as the memory allows. */
static int build_layer(struct layer *layer)
{
    const struct tasks tasks = { .ntasks = PILE_RANGES / layer->ranges_each,
                                 .context = layer,
                                 .work = solve_regions,
                                 .deliver = deliver_regions };
    const struct built_hands hands = { .hand_nbytes = sizeof(struct hand),
                                       .solve_nbytes = hand_nbytes(layer),
                                       .begin = hand_begin,
                                       .end = hand_end };
    return built_run(&tasks, &hands, layer->from, layer->b->threads);
}

/* ---- The last layer ---------------------------------------------------------------------- */

/* Enters all keys.  Returns whether none contradicts the others. */
static bool enter_last(const struct building *b, const struct ribbon_matrix *m,
                       const struct ribbon_keys *keys, uint64_t salt)
{
    const struct ribbon_solver *solver = cpu_loops[b->cpu].solver;
    memset(m->coefficients, 0, m->slots * sizeof *m->coefficients);
    for (uint64_t i = 0; i < keys->n; i++) {
        struct keyhash key = ribbon_last(ribbon_hash_of(keys, i), salt);
        uint64_t slot = ribbon_last_start(key, m->slots);
        if (!solver->enter_one(m, slot, ribbon_equation_of(keys, i, key.mark)))
            return false;
    }
    return true;
}

/* Solves the layer that bumps no key, with the first salt for which that is possible.  If there
 * is none returns PERHAPS_ERR_FULL, and sets the field to the slots that will do. */
static int build_last(struct building *b, struct ribbon_keys *keys)
{
    enum { SALTS = 64 };
    const struct perhaps_allocator *allocator = &b->pile->options.allocator;
    uint64_t salt = 0, *field = b->g->field;
    uint64_t nbytes = blocks_nbytes(field[LAST_SLOTS], field[ROW_BITS]);
    struct ribbon_matrix m;
    uint8_t *blocks = allocate_scratch(allocator, nbytes);
    bool begun =
        matrix_begin(&m, field[LAST_SLOTS], ribbon_stripe(field[LAST_SLOTS]), allocator);
    int error = begun && blocks ? 0 : PERHAPS_ERR_MEMORY;
    if (!error && keys->n > m.slots)
        error = PERHAPS_ERR_FULL;
    while (!error && !enter_last(b, &m, keys, salt))
        if (++salt == SALTS)
            error = PERHAPS_ERR_FULL;
    if (error == PERHAPS_ERR_FULL && keys->n + keys->n / 8 > m.slots)
        field[LAST_SLOTS] = round_up(keys->n + keys->n / 8, RIBBON_WINDOW);
    if (!error) {
        field[SALT] = salt;
        cpu_loops[b->cpu].solver->solve(&m, (unsigned)field[ROW_BITS], blocks);
        error = b->write(b->context, blocks, nbytes);
    }
    matrix_end(&m, allocator);
    release(allocator, blocks, nbytes);
    return error;
}

/* ---- All layers -------------------------------------------------------------------------- */

/* The body while it is built. */
struct ribbon {
    struct building *b;
    struct ribbon_keys form;
    struct pile bumped[2]; /* from one layer to the next: those of two layers in turn */
    struct pile_options small;
    uint8_t *thresholds; /* of all layers */
    uint64_t thresholds_nbytes;
};

/* Builds the layers that bump keys, and sets *rest to the pile of those that are left. */
static int build_layers(struct ribbon *r, const struct pile **rest)
{
    struct building *b = r->b;
    uint8_t *thresholds = r->thresholds;
    unsigned number = 0;
    int error = 0;
    *rest = b->pile;
    for (; number < RIBBON_LAYERS_MOST && b->g->field[SLOTS + number] && !error; number++) {
        struct layer layer = { .b = b,
                               .form = r->form,
                               .number = number,
                               .slots = b->g->field[SLOTS + number],
                               .from = *rest,
                               .to = &r->bumped[number % 2],
                               .thresholds = thresholds };
        layer.region_bits = ribbon_region_bits(layer.slots);
        unsigned bits = layer.region_bits < PILE_BITS ? layer.region_bits : PILE_BITS;
        layer.regions_each = 1U << (layer.region_bits - bits);
        layer.ranges_each = 1U << (PILE_BITS - bits);
        thresholds += ribbon_thresholds_nbytes(layer.slots);
        pile_end(layer.to);
        pile_begin(layer.to, &r->small);
        error = build_layer(&layer);
        if (!error)
            error = pile_settle(layer.to);
        if (r->form.mark_factor)
            r->form.mark_factor *= inverse(ODD_GOLDEN);
        *rest = layer.to;
    }
    return error;
}

/* Writes what lies behind the blocks: the thresholds, and zeros up to the end of the body,
 * which a loop may read behind the last block. */
static int write_rest(const struct ribbon *r, uint64_t written)
{
    static uint8_t zeros[1024]; /* not const: takes no room in the library */
    struct building *b = r->b;
    int error = b->write(b->context, r->thresholds, r->thresholds_nbytes);
    return error ? error
                 : b->write(b->context, zeros,
                            b->g->body_nbytes - written - r->thresholds_nbytes);
}

int ribbon_build(struct building *b)
{
    const struct perhaps_allocator *allocator = &b->pile->options.allocator;
    uint64_t *field = b->g->field, slots = field[LAST_SLOTS];
    struct ribbon r = { .b = b,
                        .form = { .words = b->pile->options.words,
                                  .flips = b->flips,
                                  .mark_factor = b->mark_factor,
                                  .value_bits = (unsigned)field[VALUE_BITS],
                                  .fingerprint_bits =
                                      (unsigned)(field[ROW_BITS] - field[VALUE_BITS]) } };
    struct taken taken = { 0 };
    const struct pile *rest;
    r.small = b->pile->options;
    r.small.memory_nbytes = b->pile->memory_nbytes / 4;
    r.small.threads = b->pile->threads;
    for (int i = 0; i < RIBBON_LAYERS_MOST; i++) {
        slots += field[SLOTS + i];
        r.thresholds_nbytes += ribbon_thresholds_nbytes(field[SLOTS + i]);
    }
    pile_begin(&r.bumped[0], &r.small);
    pile_begin(&r.bumped[1], &r.small);
    r.thresholds = allocate(allocator, r.thresholds_nbytes + 1);
    int error = r.thresholds ? build_layers(&r, &rest) : PERHAPS_ERR_MEMORY;
    if (!error)
        error = pile_take(rest, 0, PILE_RANGES, &taken);
    if (!error) {
        if (rest == b->pile)
            b->keys = taken.n;
        r.form.records = taken.records;
        r.form.n = taken.n;
        error = build_last(b, &r.form);
    }
    if (!error)
        error = write_rest(&r, blocks_nbytes(slots, field[ROW_BITS]));
    taken_release(&taken, allocator);
    release(allocator, r.thresholds, r.thresholds_nbytes + 1);
    pile_end(&r.bumped[0]);
    pile_end(&r.bumped[1]);
    return error;
}
