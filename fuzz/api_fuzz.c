/* api_fuzz.c - fuzzes the public calls beside an exact model: the first bytes choose a kind and
 * its options, and each byte that follows is a call, with its operands behind it.
 *
 * There are two filters of the same options, each with a model (api_model.h).  Calls change the
 * first; 'swap' exchanges them, and 'clone' makes the second a copy of the first.  What is
 * proved after each call: no key that is in is denied; counts and counters are right; an error
 * is one that the header names, and has changed nothing; the calls for many keys do what those
 * for one key do; a filter that was written and read is the same; no memory is lost. */
#include "api_fuzz.h"
#include "kinds/kinds.h"
#include <perhaps_sets.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes);

/* Longer inputs are cut off, so that each takes a few milliseconds at most. */
enum { NBYTES_MOST = 512, CALLS_MOST = 100 };

/* ---- What all calls use ------------------------------------------------------------------ */

struct digest digest_of(const perhaps_filter *f)
{
    struct digest d;
    perhaps_digest(f, d.bytes);
    return d;
}

bool same_digest(struct digest a, struct digest b)
{
    return !memcmp(a.bytes, b.bytes, sizeof a.bytes);
}

perhaps_filter *copy_of(struct play *p, const perhaps_filter *f)
{
    unsigned fail_in = p->ledger.fail_in;
    perhaps_filter *copy;
    p->ledger.fail_in = 0;
    must(!perhaps_clone(f, &copy));
    p->ledger.fail_in = fail_in;
    return copy;
}

void go_on_with(struct play *p, perhaps_filter *f)
{
    struct subject *s = &p->side[0];
    must(perhaps_equal(s->f, f) && same_digest(digest_of(s->f), digest_of(f)));
    perhaps_free(s->f);
    s->f = f;
    subject_check(s, false);
}

/* ---- Options ----------------------------------------------------------------------------- */

/* The bytes that choose the options, but not the hash. */
enum { CHOICES = 5 };

/* Returns the name of a kind that takes keys as they come.  The others are built (op_build). */
static const char *kind_name(unsigned number)
{
    const struct perhaps_kind *kind, *last = NULL;
    for (;;) /* the kinds again, as often as it takes */
        for (size_t i = 0; (kind = perhaps_kind_at(i)); i++) {
            last = kind;
            if (!(last->abilities & PERHAPS_CAN_BUILD) && number-- == 0)
                return last->name;
        }
}

/* Sets the options of composites. */
static void choose_parts(struct perhaps_options *o, const uint8_t choice[CHOICES])
{
    static const uint8_t generations[4] = { 0, 2, 3, 9 }, factors[4] = { 30, 5, 1, 0 };
    static const uint16_t times[4] = { 1, 10, 300, 6300 };
    unsigned window_by = choice[4] >> 2 & 3;
    o->base = choice[1] & 7 ? kind_name(choice[1] & 7) : NULL;
    if (!kind_by_name(o->kind)->forgets) {
        o->chain.factor = factors[choice[3] >> 2 & 3];
        if (o->chain.factor < 2 && o->capacity < 50) /* else it takes a while to plan layers */
            o->chain.factor = 10;
        return;
    }
    o->window.generations = generations[choice[4] & 3];
    o->window.keys = window_by == 1 ? o->capacity : 0;
    o->window.time = window_by >= 2 ? times[choice[4] >> 4 & 3] : 0;
}

/* Asks for copies of keys, as kind or base can store them, or for a set. */
static void choose_copies(struct perhaps_options *o, const uint8_t choice[CHOICES])
{
    const struct filter_kind *storing = kind_by_name(o->base ? o->base : o->kind);
    if (!(choice[3] & 16))
        o->needs = storing->about.abilities & (PERHAPS_CAN_REMOVE | PERHAPS_CAN_COUNT);
}

/* Sets only what concerns the kind, so that few patterns are needed. */
static struct perhaps_options choose_options(const uint8_t choice[CHOICES])
{
    static const uint16_t capacities[8] = { 1, 2, 7, 20, 50, 100, 200, 500 };
    static const double fprs[8] = { 0.9, 0.5, 0.1, 0.01, 1e-3, 1e-5, 1e-7, 1e-9 };
    struct perhaps_options o = { .kind = kind_name(choice[0]) };
    const struct filter_kind *kind = kind_by_name(o.kind);
    if (kind->about.abilities & PERHAPS_CAN_THREADS)
        o.shared = choice[3] & 1;
    if (kind->exact) {
        o.bitmap = (struct perhaps_bitmap_options){ RANGE_LOW, RANGE_HIGH };
        return o;
    }
    o.capacity = capacities[choice[2] & 7];
    o.fpr = fprs[choice[2] >> 3 & 7];
    o.preference = (enum perhaps_preference)((choice[2] >> 6) % 3);
    if (kind->composite)
        choose_parts(&o, choice);
    else
        o.blocked.together = kind->places && choice[3] & 2;
    choose_copies(&o, choice);
    return o;
}

/* ---- Hashes ------------------------------------------------------------------------------ */

/* A hash that an enemy would choose: few places, or few marks, or both. */
static void crafted_hash(void *context, const void *key, size_t key_nbytes,
                         uint8_t hash[PERHAPS_HASH_NBYTES])
{
    const uint8_t *few = context, *bytes = key;
    uint64_t place = key_nbytes, mark;
    for (size_t i = 0; i < key_nbytes; i++)
        place = (place ^ bytes[i]) * UINT64_C(0x9E3779B97F4A7C15);
    place ^= place >> 29;
    mark = place * UINT64_C(0xB7E151628AED2A6B);
    if (*few & 1)
        place = (place >> 60) % 3 * (UINT64_MAX / 3);
    if (*few & 2)
        mark = (mark >> 60) % 3 * (UINT64_MAX / 3);
    memcpy(hash, &place, sizeof place);
    memcpy(hash + sizeof place, &mark, sizeof mark);
}

static const uint8_t secret[16] = "an open secret..";

/* Each byte that chooses a hash chooses a seed, too, so that chance has few tries. */
static struct perhaps_hashing choose_hash(unsigned byte, bool exact)
{
    static uint8_t few[4] = { 0, 1, 2, 3 };
    static const enum perhaps_hash hashes[8] = { PERHAPS_HASH_XXH3,    PERHAPS_HASH_XXH3_64,
                                                 PERHAPS_HASH_NONE,    PERHAPS_HASH_NONE_64,
                                                 PERHAPS_HASH_SIP,     PERHAPS_HASH_CUSTOM,
                                                 PERHAPS_HASH_XXH3_64, PERHAPS_HASH_CUSTOM };
    return (struct perhaps_hashing){ .hash = exact ? PERHAPS_HASH_INTEGER : hashes[byte & 7],
                                     .seed = 1 + (byte >> 3),
                                     .secret = secret,
                                     .function = crafted_hash,
                                     .context = &few[byte >> 3 & 3] };
}

/* ---- Filters ----------------------------------------------------------------------------- */

/* An empty filter of which others are made, since planning one takes milliseconds. */
struct pattern {
    bool is_made;
    uint8_t options[sizeof(struct perhaps_options)];
    perhaps_filter *f; /* NULL: no filter can have these options */
};

static perhaps_filter *make_pattern(struct perhaps_options options)
{
    perhaps_filter *f;
    options.hashing = choose_hash(0, kind_by_name(options.kind)->exact);
    int error = perhaps_create(&options, &f);
    must(!error == !!f);
    must(!error || error == PERHAPS_ERR_ARGUMENT || error == PERHAPS_ERR_UNSUPPORTED ||
         error == PERHAPS_ERR_LIMIT);
    return f;
}

/* Returns the empty filter for these options.  Keeps some, each in a place that follows from
 * its options. */
static const perhaps_filter *pattern_for(const struct perhaps_options *options)
{
    enum { PATTERNS = 2048 };
    static struct pattern patterns[PATTERNS];
    const uint8_t *bytes = (const uint8_t *)options;
    uint64_t number = 0;
    for (size_t i = 0; i < sizeof *options; i++)
        number = (number ^ bytes[i]) * UINT64_C(0x100000001B3);
    struct pattern *pattern = &patterns[number >> 32 & (PATTERNS - 1)];
    if (pattern->is_made && !memcmp(pattern->options, bytes, sizeof *options))
        return pattern->f;
    perhaps_free(pattern->f);
    pattern->f = make_pattern(*options);
    pattern->is_made = true;
    memcpy(pattern->options, bytes, sizeof *options);
    return pattern->f;
}

/* Makes one of the two filters, and its model, which is empty. */
static void make_side(struct play *p, struct subject *s, const perhaps_filter *pattern)
{
    const struct perhaps_allocator allocator = ledger_of(&p->ledger);
    s->ledger = &p->ledger;
    s->universe = universe_for(p->hashing.hash);
    s->is_crafted = p->hashing.hash == PERHAPS_HASH_CUSTOM;
    must(!perhaps_create_like(pattern, &p->hashing, &allocator, &s->f));
    subject_empty(s);
    subject_check(s, false);
}

/* Makes both filters.  Returns false if there are none of these options. */
static bool begin(struct play *p)
{
    uint8_t choice[CHOICES];
    for (unsigned i = 0; i < CHOICES; i++)
        choice[i] = (uint8_t)take(p);
    p->ledger.zeroes = choice[3] & 0x80;
    p->options = choose_options(choice);
    p->hashing = choose_hash(take(p), kind_by_name(p->options.kind)->exact);
    const perhaps_filter *pattern = pattern_for(&p->options);
    if (!pattern)
        return false;
    make_side(p, &p->side[0], pattern);
    make_side(p, &p->side[1], pattern);
    return true;
}

/* ---- Calls ------------------------------------------------------------------------------- */

/* Lets an allocation of the next call fail. */
static void op_fail(struct play *p)
{
    p->fail_next = 1 + take(p) % 16;
}

/* Calls that an input needs often stand here several times. */
static operation *const operations[] = {
    op_add,     op_add,    op_add,     op_add_many, op_add_many, op_add_many,    op_crowd,
    op_crowd,   op_leave,  op_ask,     op_ask_many, op_remove,   op_remove_many, op_remove_many,
    op_clear,   op_clone,  op_swap,    op_relocate, op_stats,    op_merge,       op_intersect,
    op_compare, op_rotate, op_advance, op_load,     op_map,      op_range,       op_damage,
    op_stream,  op_shrink, op_build,   op_fail,     op_set_back,
};

/* Makes a call, in which an allocation may fail, and checks that no memory is lost. */
static void call(struct play *p, operation *op)
{
    p->ledger.fail_in = p->fail_next;
    p->ledger.failed = false;
    p->fail_next = 0;
    op(p);
    p->ledger.fail_in = 0;
    must(p->ledger.live_nbytes ==
         perhaps_memory_nbytes(p->side[0].f) + perhaps_memory_nbytes(p->side[1].f));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes)
{
    static struct play p;
    p = (struct play){ .at = data, .left = nbytes < NBYTES_MOST ? nbytes : NBYTES_MOST };
    if (!begin(&p))
        return 0;
    for (unsigned calls = 0; p.left && calls < CALLS_MOST; calls++)
        call(&p, operations[take(&p) % (sizeof operations / sizeof *operations)]);
    for (int i = 0; i < 2; i++) {
        subject_check(&p.side[i], true);
        perhaps_free(p.side[i].f);
    }
    must(p.ledger.live_nbytes == 0);
    return 0;
}
