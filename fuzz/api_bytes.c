/* api_bytes.c - the calls of api_fuzz.c that make bytes of a filter and a filter of bytes,
 * smaller filters, and filters by a builder. */
#include "api_fuzz.h"
#include "filter/counted.h"
#include "kinds/kinds.h"
#include <perhaps_build.h>
#include <perhaps_live.h>
#include <perhaps_window.h>

/* ---- Bytes ------------------------------------------------------------------------------- */

struct bytes {
    uint8_t
        *at; /* aligned, and of just this size, so that AddressSanitizer sees reads behind */
    size_t nbytes;
};

static struct bytes bytes_of_size(size_t nbytes)
{
    void *at;
    must(!posix_memalign(&at, PERHAPS_ALIGNMENT, nbytes));
    return (struct bytes){ at, nbytes };
}

/* Returns the bytes of the filter, or none if an allocation fails. */
static struct bytes bytes_of(struct play *p, const perhaps_filter *f)
{
    struct bytes b = bytes_of_size((size_t)perhaps_write_nbytes(f));
    int error = perhaps_to_bytes(f, b.at, b.nbytes);
    must_work(&p->side[0], error);
    if (!error)
        return b;
    free(b.at);
    return (struct bytes){ NULL, 0 };
}

static int read_bytes(struct play *p, struct bytes b, enum perhaps_mode mode,
                      perhaps_filter **f)
{
    const struct perhaps_allocator allocator = ledger_of(&p->ledger);
    const struct perhaps_open_options options = { .mode = mode,
                                                  .hashing = p->hashing,
                                                  .allocator = &allocator };
    int error = perhaps_from_bytes(b.at, b.nbytes, &options, f);
    must(!error == !!*f);
    return error;
}

/* Goes on with the filter that its bytes give. */
void op_load(struct play *p)
{
    perhaps_filter *f;
    struct bytes b = bytes_of(p, p->side[0].f);
    if (!b.at)
        return;
    int error = read_bytes(p, b, PERHAPS_MODE_LOAD, &f);
    must_work(&p->side[0], error);
    free(b.at);
    if (!error)
        go_on_with(p, f);
}

/* What changes a filter must refuse one that lies in bytes. */
static void check_read_only(struct play *p, perhaps_filter *f)
{
    const struct perhaps_key *key = &p->side[0].universe->key[0];
    int refused = PERHAPS_ERR_READ_ONLY;
    must(perhaps_add(f, key->bytes, key->nbytes) == refused);
    must(perhaps_remove(f, key->bytes, key->nbytes) == (f->removes ? refused : unable(f)));
    must(perhaps_clear(f) == refused);
    must(perhaps_merge(f, p->side[1].f) == refused);
    must(perhaps_intersect(f, p->side[1].f) == refused);
    must(perhaps_rotate(f) == (f->kind->forgets ? refused : PERHAPS_ERR_UNSUPPORTED));
    must(perhaps_sync(f) == PERHAPS_ERR_UNSUPPORTED);
}

/* Uses the filter where its bytes lie, and goes on with a copy of that. */
void op_map(struct play *p)
{
    static struct subject mapped;
    struct perhaps_verdict verdict;
    perhaps_filter *f;
    struct bytes b = bytes_of(p, p->side[0].f);
    if (!b.at)
        return;
    int error = read_bytes(p, b, PERHAPS_MODE_READ, &f);
    must_work(&p->side[0], error);
    if (!error) {
        subject_take(&mapped, &p->side[0], f);
        subject_check(&mapped, false);
        check_read_only(p, f);
        must(!perhaps_verify(f, &verdict) && verdict.pages && !verdict.damaged);
        go_on_with(p, copy_of(p, f));
    }
    perhaps_free(f);
    free(b.at);
}

/* ---- Sinks and sources ------------------------------------------------------------------- */

/* Bytes that a sink compares with those that were wanted, or that a source gives. */
struct stream {
    struct bytes wanted;
    size_t at;
};

static int compare_bytes(void *context, const void *bytes, size_t nbytes)
{
    struct stream *stream = context;
    must(nbytes <= stream->wanted.nbytes - stream->at);
    must(!memcmp(stream->wanted.at + stream->at, bytes, nbytes));
    stream->at += nbytes;
    return 0;
}

static int give_bytes(void *context, void *bytes, size_t nbytes)
{
    struct stream *stream = context;
    must(nbytes <= stream->wanted.nbytes - stream->at); /* never behind the last byte */
    memcpy(bytes, stream->wanted.at + stream->at, nbytes);
    stream->at += nbytes;
    return 0;
}

/* Writes pieces of the filter, which must be pieces of its bytes. */
void op_range(struct play *p)
{
    const perhaps_filter *f = p->side[0].f;
    struct stream stream = { .wanted = bytes_of(p, f) };
    const struct perhaps_sink sink = { compare_bytes, &stream };
    uint64_t share = stream.wanted.nbytes / 255, first = take(p) * share, n = take(p) * share;
    if (!stream.wanted.at)
        return;
    uint64_t left = stream.wanted.nbytes - first;
    stream.at = (size_t)first;
    int error = perhaps_write_range(f, first, n + 1, &sink);
    must_work(&p->side[0], error);
    must(error || stream.at == first + (n + 1 < left ? n + 1 : left));
    must(!perhaps_write_range(f, stream.wanted.nbytes, 1, &sink));
    free(stream.wanted.at);
}

/* Goes on with the filter that was written to a sink and read from a source. */
void op_stream(struct play *p)
{
    struct stream stream = { .wanted = bytes_of(p, p->side[0].f) };
    const struct perhaps_sink sink = { compare_bytes, &stream };
    const struct perhaps_allocator allocator = ledger_of(&p->ledger);
    const struct perhaps_source source = { give_bytes, &stream,
                                           take(p) % 2 ? stream.wanted.nbytes : 0 };
    const struct perhaps_open_options options = { .mode = PERHAPS_MODE_LOAD,
                                                  .hashing = p->hashing,
                                                  .allocator = &allocator };
    perhaps_filter *f = NULL;
    int error = stream.wanted.at ? perhaps_write(p->side[0].f, &sink) : PERHAPS_ERR_MEMORY;
    must(error || stream.at == stream.wanted.nbytes);
    stream.at = 0;
    error = error ? error : perhaps_read(&source, &options, &f);
    must_work(&p->side[0], error);
    must(!error == !!f);
    if (!error)
        go_on_with(p, f);
    free(stream.wanted.at);
}

/* Loading checks every byte. */
void op_damage(struct play *p)
{
    perhaps_filter *f;
    struct bytes b = bytes_of(p, p->side[0].f);
    size_t where = (take(p) << 8 | take(p)) * b.nbytes >> 16;
    unsigned byte = take(p), mask = byte ? byte : 1U;
    if (!b.at)
        return;
    b.at[where] = (uint8_t)(b.at[where] ^ mask);
    must(read_bytes(p, b, PERHAPS_MODE_LOAD, &f));
    b.at[where] = (uint8_t)(b.at[where] ^ mask);
    must(read_bytes(p, (struct bytes){ b.at, where }, PERHAPS_MODE_LOAD, &f));
    free(b.at);
}

/* ---- Smaller filters --------------------------------------------------------------------- */

/* What is written of a filter that is made smaller must be what is made of it in memory. */
static void check_written_small(struct play *p, double fpr, const perhaps_filter *small)
{
    const struct perhaps_shrink_options options = { .fpr = fpr };
    struct stream stream = { .wanted = bytes_of(p, small) };
    const struct perhaps_sink sink = { compare_bytes, &stream };
    must(!perhaps_shrink_write(p->side[0].f, &options, &sink));
    must(stream.at == stream.wanted.nbytes);
    free(stream.wanted.at);
}

/* Returns an fpr to keep: that of the filter, a larger one, or the least that there is. */
static double take_small_fpr(struct play *p, double *least)
{
    const perhaps_filter *f = p->side[0].f;
    static const double fprs[] = { 0, 0.9, 0.5, 0.1, 0.01, 1e-4, 1e-9, 0 };
    double fpr = fprs[take(p) % 8];
    int error = perhaps_shrink_least_fpr(f, NULL, least);
    must(error != PERHAPS_ERR_UNSUPPORTED || !f->kind->folds);
    must(!error || error == PERHAPS_ERR_UNSUPPORTED || error == PERHAPS_ERR_MEMORY);
    *least = error ? 0 : *least;
    must(*least >= 0 && *least <= 1);
    return *least > 0 && take(p) % 2 ? *least : fpr;
}

void op_shrink(struct play *p)
{
    struct subject *s = &p->side[0];
    perhaps_filter *small;
    double least, fpr = take_small_fpr(p, &least);
    int error = perhaps_shrink(s->f, fpr, &small);
    p->ledger.fail_in = 0;
    must(!error == !!small);
    must(error != PERHAPS_ERR_MEMORY || p->ledger.failed);
    must(!error || error == PERHAPS_ERR_LIMIT || error == PERHAPS_ERR_MEMORY ||
         error == PERHAPS_ERR_UNSUPPORTED);
    must(error != PERHAPS_ERR_LIMIT || fpr < least || least <= 0);
    must(!s->f->kind->folds || error != PERHAPS_ERR_UNSUPPORTED);
    if (error)
        return;
    check_written_small(p, fpr, small);
    must(perhaps_memory_nbytes(small) < perhaps_memory_nbytes(s->f));
    must(small->counters->keys == s->f->counters->keys || filter_counts_bits(small) ||
         filter_is_estimated(small));
    perhaps_free(s->f);
    s->f = small;
    s->is_foreign = s->is_loose = true;
    s->is_estimate |= filter_counts_bits(small);
    subject_check(s, false);
}

/* ---- Builders ---------------------------------------------------------------------------- */

/* Gives the builder the keys that are in, with their numbers as values if it stores any; and
 * the others, if the kind tells them apart. */
static int give_keys(const struct play *p, perhaps_builder *builder, unsigned value_bits,
                     bool gives_others)
{
    static struct perhaps_key in[MODEL_KEYS], out[MODEL_KEYS];
    static uint32_t value[MODEL_KEYS];
    const struct subject *s = &p->side[0];
    size_t nin = 0, nout = 0;
    for (unsigned i = 0; i < MODEL_KEYS; i++) {
        if (!s->universe->can_add[i])
            continue;
        value[nin] = i & ((1U << value_bits) - 1);
        if (is_in(s, i))
            in[nin++] = s->universe->key[i];
        else
            out[nout++] = s->universe->key[i];
    }
    struct perhaps_keys keys = perhaps_keys_each(in, nin);
    struct perhaps_keys others = perhaps_keys_each(out, nout);
    struct perhaps_keys crowd = crowd_keys(s->crowd_from, s->crowd_to - s->crowd_from);
    int error = value_bits ? perhaps_builder_add_values(builder, &keys, value)
                           : perhaps_builder_add_many(builder, &keys);
    error = error ? error : perhaps_builder_add_many(builder, &crowd); /* their value is 0 */
    must(error || perhaps_builder_keys(builder) == nin + crowd.count);
    return error || !gives_others ? error : perhaps_builder_add_others(builder, &others);
}

static void check_value(const perhaps_filter *f, const struct perhaps_key *key, uint32_t value)
{
    uint32_t found;
    must(!perhaps_lookup(f, key->bytes, key->nbytes, &found));
    must(found == value);
}

/* Checks a filter that was built of the keys that are in. */
static void check_built(const struct play *p, const perhaps_filter *f, unsigned value_bits,
                        bool knows_others)
{
    const struct subject *s = &p->side[0];
    struct perhaps_keys crowd = crowd_keys(s->crowd_from, s->crowd_to - s->crowd_from);
    must(perhaps_contains_many(f, &crowd, NULL) == crowd.count);
    for (unsigned i = 0; i < MODEL_KEYS; i++) {
        const struct perhaps_key *key = &s->universe->key[i];
        bool perhaps = perhaps_contains(f, key->bytes, key->nbytes);
        must(perhaps || !is_in(s, i));
        must(!perhaps || is_in(s, i) || !(knows_others || f->kind->exact));
        if (is_in(s, i) && value_bits)
            check_value(f, key, i & ((1U << value_bits) - 1));
    }
}

/* Writes and reads a filter that was built. */
static void check_built_bytes(struct play *p, const perhaps_filter *f)
{
    perhaps_filter *again;
    p->ledger.fail_in = 0;
    struct bytes b = bytes_of(p, f);
    must(!read_bytes(p, b, PERHAPS_MODE_READ, &again));
    must(perhaps_equal(f, again));
    perhaps_free(again);
    free(b.at);
    perhaps_filter *copy = copy_of(p, f);
    must(perhaps_equal(f, copy));
    perhaps_free(copy);
}

/* Gives the keys to a builder, and checks the filter that it makes. */
static int build(struct play *p, perhaps_builder *builder, unsigned value_bits, bool others)
{
    perhaps_filter *f, *again;
    int error = give_keys(p, builder, value_bits, others);
    if (error)
        return error;
    error = perhaps_builder_finish(builder, &f);
    must(!error == !!f);
    if (error)
        return error;
    must(perhaps_builder_finish(builder, &again) == PERHAPS_ERR_ARGUMENT && !again);
    check_built(p, f, value_bits, others && !p->side[0].is_crafted);
    check_built_bytes(p, f);
    perhaps_free(f);
    return 0;
}

/* Builds a filter of any kind of the keys that are in; not often, since it takes a while. */
void op_build(struct play *p)
{
    const struct perhaps_allocator allocator = ledger_of(&p->ledger);
    const struct perhaps_build_options how = { .memory_nbytes = 1 << 16,
                                               .threads = 1,
                                               .in_memory = true };
    const unsigned number = take(p);
    const struct filter_kind *kind = kind_by_index(number % 16); /* NULL: the library chooses */
    bool has_values = kind && kind->builds && kind->builds->has_values;
    unsigned value_bits = has_values ? take(p) % 17 : 0;
    bool others = kind && kind->builds && kind->composite; /* is told of other keys */
    const struct perhaps_options options = { .fpr = p->options.fpr,
                                             .kind = kind ? kind->about.name : NULL,
                                             .needs = PERHAPS_CAN_BUILD,
                                             .hashing = p->hashing,
                                             .allocator = &allocator,
                                             .ribbon.value_bits = value_bits,
                                             .against.others = MODEL_KEYS,
                                             .against.group_nbytes = number / 16 % 4,
                                             .bitmap = p->options.bitmap };
    perhaps_builder *builder;
    if (p->has_built || number >= 64)
        return;
    p->has_built = true;
    int error = perhaps_builder_create(&options, &how, &builder);
    must(!error == !!builder);
    if (!error)
        error = build(p, builder, value_bits, others);
    must(error != PERHAPS_ERR_MEMORY || p->ledger.failed);
    must(error != PERHAPS_ERR_VALUES || p->side[0].is_crafted);
    perhaps_builder_free(builder);
}
