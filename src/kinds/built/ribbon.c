/* ribbon.c - bumped ribbon filter: BuRR (Dillinger, Huebschle-Schneider, Sanders, Walzer: Fast
 * Succinct Retrieval and Approximate Membership using Ribbon, SEA 2022).
 *
 *   body = the blocks of each layer | the blocks of the last layer | thresholds | zeros
 *   block = 64 slots as columns: word c has bit c of each slot
 *
 * A key is an equation: the XOR of some of 64 adjacent slots is its fingerprint.  The slots are
 * a solution of all equations, found when all keys are known.  Where a bucket of 128 slots has
 * too many keys to be solved, those that begin below its threshold are bumped: they are in the
 * next layer, a twenty-fifth as large.  The last layer has room for all its keys.
 *
 * With each key a value can be stored: a fingerprint is then followed by it.  It takes hardly
 * more bits than the fingerprints have; to add a key all must be known again.
 * Limits: 32 bits a key; hashes of 64 bits, so an fpr above n / 2^64.
 * Invariant: the equations of all keys hold. */
#include "ribbon.h"

#include <math.h>
#include <stdio.h>

#include "../cpu/cpu_loops.h"
#include "../kinds.h"

static const char *const field_names[] = { "row_bits", "value_bits", "salt",    "last_slots",
                                           "slots",    "slots_2",    "slots_3", "slots_4",
                                           "slots_5",  "slots_6",    NULL };

/* The last layer gets no more keys than this, about. */
enum { LAST_KEYS_MOST = 2048 };

/* Loops read so many bytes behind the block that follows a key's first one. */
enum { SLACK_NBYTES = 64 };

/* No layer has more slots, so that no size overflows. */
#define SLOTS_MOST (UINT64_C(1) << 52)

/* Returns the fpr with so many keys: an absent key meets a fingerprint that is not its own, or
 * the hash of a key. */
static double rate(double fingerprint_bits, double keys)
{
    return fmin(exp2(-fingerprint_bits) + keys * 0x1p-64, 1);
}

static double ribbon_predict(const struct geometry *g, double keys)
{
    return rate((double)(g->field[ROW_BITS] - g->field[VALUE_BITS]), keys);
}

/* Chooses the slots of each layer.  A layer has 4 % fewer slots than keys; .17 % of its slots
 * stay empty, and the keys that found none are those of the next layer. */
static void plan_layers(struct geometry *g)
{
    const uint64_t large = 8 * RIBBON_STRIPE;
    uint64_t keys = g->capacity, layer = 0;
    double spread = 0; /* how many more the last layer may get */
    for (; keys > LAST_KEYS_MOST && layer < RIBBON_LAYERS_MOST; layer++) {
        uint64_t slots = keys / 26 * 25 + keys % 26 * 25 / 26;
        uint64_t unit = slots < large ? RIBBON_BUCKET : RIBBON_STRIPE;
        while (slots / 2 / unit >= 512)
            unit *= 2;
        slots = slots / unit * unit;
        g->field[SLOTS + layer] = slots;
        uint64_t lost = (keys / (slots / RIBBON_BUCKET) + 1) << ribbon_region_bits(slots);
        keys = keys - slots + slots / 600 + lost;
        spread = 12 * sqrt((double)keys);
    }
    uint64_t slots = keys + keys / 8 + (uint64_t)spread + RIBBON_WINDOW;
    g->field[LAST_SLOTS] = round_up(slots, RIBBON_WINDOW);
}

static int ribbon_plan(struct geometry *g, const struct perhaps_options *options, char *why)
{
    unsigned value_bits = options->ribbon.value_bits, bits = 1;
    if (value_bits > RIBBON_VALUE_BITS_MOST)
        return PERHAPS_ERR_ARGUMENT;
    while (bits + value_bits < RIBBON_ROW_BITS_MOST && rate(bits, (double)g->capacity) > g->fpr)
        bits++;
    if (rate(bits, (double)g->capacity) > g->fpr)
        return PERHAPS_ERR_LIMIT;
    g->field[ROW_BITS] = bits + value_bits;
    g->field[VALUE_BITS] = value_bits;
    plan_layers(g);
    snprintf(why, WHY_NBYTES,
             "built once: fewest bits of all kinds, fingerprints of %u in two lines a key",
             bits);
    return 0;
}

static int ribbon_set_geometry(struct geometry *g)
{
    const uint64_t *field = g->field;
    uint64_t slots = field[LAST_SLOTS], thresholds_nbytes = 0, row_bits = field[ROW_BITS];
    bool ends = false;
    if (row_bits < 1 || row_bits > RIBBON_ROW_BITS_MOST || field[VALUE_BITS] >= row_bits ||
        field[VALUE_BITS] > RIBBON_VALUE_BITS_MOST || slots < RIBBON_WINDOW ||
        slots > SLOTS_MOST || slots % RIBBON_WINDOW)
        return PERHAPS_ERR_LIMIT;
    for (unsigned i = 0; i < RIBBON_LAYERS_MOST; i++) {
        uint64_t more = field[SLOTS + i];
        if (more > SLOTS_MOST || more % RIBBON_BUCKET || (more && ends))
            return PERHAPS_ERR_LIMIT;
        ends = !more;
        slots += more;
        thresholds_nbytes += ribbon_thresholds_nbytes(more);
    }
    g->body_nbytes = round_up(
        slots / 8 * row_bits + thresholds_nbytes + row_bits * 8 + SLACK_NBYTES, LINE_NBYTES);
    g->key_limit = g->capacity;
    return 0;
}

static double slots_of(const struct geometry *g)
{
    double slots = (double)g->field[LAST_SLOTS];
    for (unsigned i = 0; i < RIBBON_LAYERS_MOST; i++)
        slots += (double)g->field[SLOTS + i];
    return slots;
}

static struct fill ribbon_measure(const perhaps_filter *f, uint64_t most_nbytes)
{
    (void)most_nbytes;
    double keys = (double)f->counters->keys;
    return (struct fill){ .load = fmin(keys / slots_of(&f->body.geometry), 1),
                          .fpr = ribbon_predict(&f->body.geometry, keys) };
}

/* Returns the loops for a geometry. */
static const struct loops *loops_of(const struct geometry *g, enum cpu cpu)
{
    const uint64_t *field = g->field, bits = field[ROW_BITS] - field[VALUE_BITS];
    bool narrow = field[ROW_BITS] <= RIBBON_GROUP, byte = bits == RIBBON_GROUP;
    enum ribbon_width width = narrow                     ? (byte ? RIBBON_BYTE : RIBBON_NARROW)
                              : bits <= 2 * RIBBON_GROUP ? RIBBON_WIDE
                                                         : RIBBON_LONG;
    const struct ribbon_loops *ribbon = cpu_loops[cpu_that_counts(cpu)].ribbon;
    bool swift = field[SLOTS] &&
                 (narrow || (field[SLOTS] % RIBBON_STRIPE == 0 && bits <= RIBBON_SWIFT_BITS));
    return swift ? &ribbon->of[width] : &ribbon->any[width];
}

/* Returns where the thresholds begin in the body. */
static uint64_t thresholds_at(const uint64_t *field)
{
    uint64_t slots = field[LAST_SLOTS];
    for (unsigned i = 0; i < RIBBON_LAYERS_MOST; i++)
        slots += field[SLOTS + i];
    return slots / 8 * field[ROW_BITS];
}

static void ribbon_bind(perhaps_filter *f)
{
    if (f->body.bytes) /* else it is not in memory, and no loop asks it */
        f->body.table = f->body.bytes + thresholds_at(f->body.geometry.field);
    f->loops = loops_of(&f->body.geometry, f->cpu);
}

/* Where the equation of a key lies: in which layer, and where that has its blocks. */
struct found_layer {
    uint64_t blocks, slots; /* in the body; and how many slots the layer has */
    uint64_t start;
    struct keyhash key;
};

/* Goes from layer to layer until one does not bump the key, by its byte of thresholds in
 * each: see() has that byte of the body; or NULL, and then the key is not taken for bumped,
 * which it seldom is. */
typedef const uint8_t *see_threshold(const perhaps_filter *f, void *context, uint64_t at);

static struct found_layer find_layer(const perhaps_filter *f, struct keyhash key,
                                     see_threshold *see, void *context)
{
    const uint64_t *field = f->body.geometry.field;
    struct found_layer in = { .key = key };
    uint64_t thresholds = thresholds_at(field);
    for (unsigned i = 0; i < RIBBON_LAYERS_MOST && field[SLOTS + i]; i++) {
        in.blocks += in.slots / 8 * field[ROW_BITS];
        in.slots = field[SLOTS + i];
        in.start = scale64(in.key.place, in.slots);
        const uint64_t byte = in.start / RIBBON_BUCKET / 4;
        const uint8_t *threshold = see(f, context, thresholds + byte);
        const uint64_t start = in.start % (UINT64_C(4) * RIBBON_BUCKET);
        if (!threshold || !ribbon_is_bumped(threshold, start))
            return in;
        thresholds += ribbon_thresholds_nbytes(in.slots);
        in.key = ribbon_bumped(in.key);
    }
    in.blocks += in.slots / 8 * field[ROW_BITS];
    in.slots = field[LAST_SLOTS];
    in.key = ribbon_last(in.key, field[SALT]);
    in.start = ribbon_last_start(in.key, in.slots);
    return in;
}

static const uint8_t *note_threshold(const perhaps_filter *f, void *context, uint64_t at)
{
    reads_add(context, at, 1);
    return reads_look(f, context, at, 1);
}

static void ribbon_reads(const perhaps_filter *f, struct keyhash key, struct reads *r)
{
    const uint64_t row_bits = f->body.geometry.field[ROW_BITS];
    const struct found_layer in = find_layer(f, key, note_threshold, r);
    uint64_t block = in.start / RIBBON_WINDOW,
             next = block + (in.start + RIBBON_WINDOW < in.slots);
    for (unsigned first = 0; first < row_bits; first += RIBBON_GROUP)
        for (unsigned i = 0; i < 2; i++)
            reads_add(r,
                      in.blocks + ribbon_words_at(i ? next : block, first,
                                                  ribbon_stripe(in.slots), (unsigned)row_bits),
                      RIBBON_GROUP * sizeof(uint64_t));
}

static const uint8_t *take_threshold(const perhaps_filter *f, void *context, uint64_t at)
{
    const uint8_t *const **bytes = context; /* those behind are the words */
    (void)f;
    (void)at;
    return *(*bytes)++;
}

/* Adds up the words of both blocks, in each group of columns: the loops do the same. */
static bool ribbon_answer(const perhaps_filter *f, struct keyhash key,
                          const uint8_t *const *bytes)
{
    const uint64_t *field = f->body.geometry.field;
    const unsigned bits = (unsigned)(field[ROW_BITS] - field[VALUE_BITS]);
    const struct found_layer in = find_layer(f, key, take_threshold, &bytes);
    const struct equation e = ribbon_equation(in.key.mark, bits);
    const uint64_t low = e.coefficients << in.start % RIBBON_WINDOW;
    const uint64_t high = e.coefficients >> 1 >> ~in.start % RIBBON_WINDOW;
    uint32_t sum = 0;
    for (unsigned c = 0; c < bits; c++) {
        const unsigned group = c / RIBBON_GROUP, at = c % RIBBON_GROUP * sizeof(uint64_t);
        const uint64_t word = (load64(bytes[2UL * group] + at) & low) ^
                              (load64(bytes[2UL * group + 1] + at) & high);
        sum |= (uint32_t)__builtin_parityll(word) << c;
    }
    return !((sum ^ e.row) << (-bits % 32));
}

/* Rows of 5 to 8 columns, which two vectors of four words hold. */
void perhaps_ribbon_view_fill(const perhaps_filter *f, unsigned version,
                              struct perhaps_ribbon_view *view)
{
    const uint64_t *field = f->body.geometry.field;
    enum perhaps_input input;
    if (f->kind != &kind_ribbon || field[ROW_BITS] <= RIBBON_GROUP / 2 ||
        field[ROW_BITS] > RIBBON_GROUP || field[VALUE_BITS] || !field[SLOTS] ||
        !filter_has_view(f, version, &input))
        return;
    view->nslots[input] = field[SLOTS];
    view->blocks = f->body.bytes;
    view->thresholds = f->body.table;
    view->flip = f->body.flip;
    view->block_nbytes = field[ROW_BITS] * sizeof(uint64_t);
    view->last_words = (field[ROW_BITS] - RIBBON_GROUP / 2) * sizeof(uint64_t);
    view->shift = 64 - (unsigned)field[ROW_BITS];
}

/* The layer that gets more keys than planned is the last one. */
static int enlarge(struct geometry *g)
{
    uint64_t *slots = &g->field[LAST_SLOTS];
    *slots += *slots / 2 / RIBBON_WINDOW * RIBBON_WINDOW + RIBBON_WINDOW;
    return ribbon_set_geometry(g);
}

/* A row is a fingerprint and, above it, a value. */
static void look_up(const perhaps_filter *f, const struct keyhash *keys, size_t n,
                    uint32_t *value, bool *answer)
{
    unsigned bits =
        (unsigned)(f->body.geometry.field[ROW_BITS] - f->body.geometry.field[VALUE_BITS]);
    cpu_loops[cpu_that_counts(f->cpu)].ribbon->look_up(&f->body, keys, n, value, answer);
    for (size_t i = 0; i < n; i++)
        value[i] = (uint32_t)((uint64_t)value[i] >> bits);
}

static bool has_values(const struct geometry *g)
{
    return g->field[VALUE_BITS] > 0;
}

static const struct builds builds = {
    .build = ribbon_build, .has_values = has_values, .enlarge = enlarge, .look_up = look_up
};

const struct filter_kind kind_ribbon = {
    .about = { .name = "ribbon",
               .summary = "built once from all keys: fewest bits, two neighbouring lines a key",
               .abilities = PERHAPS_CAN_BUILD },
    .id = 8,
    .field_names = field_names,
    .plan = ribbon_plan,
    .set_geometry = ribbon_set_geometry,
    .predict = ribbon_predict,
    .measure = ribbon_measure,
    .bind = ribbon_bind,
    .prefetch = loops_prefetch,
    .contains = loops_contain,
    .reads = ribbon_reads,
    .answer = ribbon_answer,
    .builds = &builds,
};
