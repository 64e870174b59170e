/* perhaps_web.c - the library as a module of WebAssembly, for core.mjs beside it.
 *
 * A function that can fail returns 0 or a negative enum perhaps_error, and what it made stands
 * on the desk: memory that both sides know.  Numbers of 64 bits lie there, too, since
 * JavaScript has other numbers.  Keys come in batches: 'count' of them, each of 'key_nbytes'
 * bytes, or between 'offsets' if that is not NULL. */
#include <perhaps_build.h>
#include <perhaps_embed.h>
#include <perhaps_fast.h>
#include <perhaps_plan.h>
#include <perhaps_remote.h>
#include <perhaps_sets.h>
#include <perhaps_window.h>

#include <stdlib.h>
#include <string.h>

#include "told.h"

#define EXPORT(name) __attribute__((export_name(#name)))
#define IMPORT(name) __attribute__((import_module("perhaps"), import_name(#name)))

/* What core.mjs supplies.  They return 0, or a negative error if they cannot. */
IMPORT(entropy) int web_entropy(void *bytes, size_t nbytes);
IMPORT(take) int web_take(void *bytes, size_t nbytes);       /* the next bytes of a file */
IMPORT(give) int web_give(const void *bytes, size_t nbytes); /* takes them */

/* The library's only source of randomness here. */
int perhaps_entropy(void *bytes, size_t nbytes);
int perhaps_entropy(void *bytes, size_t nbytes)
{
    return web_entropy(bytes, nbytes);
}

/* ---- The desk ------------------------------------------------------------------------ */

/* Options in their order; core.mjs has the same list. */
enum option {
    CAPACITY,
    FPR,
    NEEDS,
    PREFERENCE,
    KIND, /* its number in the registry and 1; 0: none */
    BASE,
    HASH,
    SEED,
    HAS_SECRET, /* the first 16 bytes for a key are it */
    HAS_NOTE,   /* the text is it */
    TOGETHER,
    WINDOW_KEYS,
    WINDOW_TIME,
    LOW,
    HIGH,
    OTHERS,
    VALUE_BITS,
    MEMORY,
    NOPTIONS,
};

enum { KEYS_MOST = 8192, BATCH_NBYTES = 1 << 18, KEY_NBYTES = 4096, TEXT_NBYTES = 4096 };

union slot {
    uint64_t whole;
    double number;
};

/* core.mjs knows the order of these members, and their sizes. */
static struct desk {
    union slot option[32];
    uint8_t key[KEY_NBYTES];
    uint32_t offset[KEYS_MOST + 32];
    uint32_t answer[KEYS_MOST]; /* or bytes that are 0 or 1 */
    uint8_t batch[BATCH_NBYTES];
    char text[TEXT_NBYTES];
    void *made;    /* the filter or builder of the last call */
    uint32_t done; /* how many keys the last call dealt with */
} desk __attribute__((aligned(64)));

_Static_assert(NOPTIONS <= 32, "there is a slot for each");
_Static_assert(offsetof(struct desk, batch) == 70016 && offsetof(struct desk, made) == 336256,
               "core.mjs knows where they lie");

/* Where counts of 64 bits lie before they are made small. */
static uint64_t counts[KEYS_MOST];

EXPORT(desk) struct desk *web_desk(void)
{
    return &desk;
}

EXPORT(allocate) void *web_allocate(size_t nbytes)
{
    return malloc(nbytes);
}

EXPORT(release) void web_release(void *memory)
{
    free(memory);
}

/* Puts what was made on the desk. */
static int put(int error, void *made)
{
    desk.made = error ? NULL : made;
    return error;
}

static const char *kind_name(enum option which)
{
    const uint64_t number = desk.option[which].whole;
    const struct perhaps_kind *kind = number ? perhaps_kind_at((size_t)number - 1) : NULL;
    return kind ? kind->name : NULL;
}

static struct perhaps_options options_on_desk(void)
{
    const union slot *o = desk.option;
    struct perhaps_options options = {
        .capacity = o[CAPACITY].whole,
        .fpr = o[FPR].number,
        .needs = (unsigned)o[NEEDS].whole,
        .preference = (enum perhaps_preference)o[PREFERENCE].whole,
        .kind = kind_name(KIND),
        .base = kind_name(BASE),
        .hashing = { .hash = (enum perhaps_hash)o[HASH].whole,
                     .seed = o[SEED].whole,
                     .secret = o[HAS_SECRET].whole ? desk.key : NULL,
                     .note = o[HAS_NOTE].whole ? desk.text : NULL },
        .blocked.together = o[TOGETHER].whole,
        .window = { .keys = o[WINDOW_KEYS].whole, .time = o[WINDOW_TIME].whole },
        .against.others = o[OTHERS].whole,
        .ribbon.value_bits = (unsigned)o[VALUE_BITS].whole,
        .bitmap = { o[LOW].whole, o[HIGH].whole },
    };
    return options;
}

/* ---- What there is ------------------------------------------------------------------- */

EXPORT(version) const char *web_version(void)
{
    return perhaps_version();
}

EXPORT(strerror) const char *web_strerror(int error)
{
    return perhaps_strerror(error);
}

EXPORT(hash_name) const char *web_hash_name(unsigned hash)
{
    return perhaps_hash_name((enum perhaps_hash)hash);
}

/* These tell in JSON, on the desk. */
EXPORT(kind) bool web_kind(size_t index)
{
    const struct perhaps_kind *kind = perhaps_kind_at(index);
    if (kind)
        told_kind(kind, desk.text, sizeof desk.text);
    return kind;
}

EXPORT(plan) int web_plan(void)
{
    const struct perhaps_options options = options_on_desk();
    struct perhaps_plan plan;
    int error = perhaps_plan_for(&options, &plan);
    if (!error)
        told_plan(&plan, desk.text, sizeof desk.text);
    return error;
}

EXPORT(stats) void web_stats(const perhaps_filter *f)
{
    struct perhaps_stats stats;
    perhaps_stats_of(f, &stats);
    told_stats(&stats, perhaps_abilities_of(f), desk.text, sizeof desk.text);
}

/* The same of one part, the newest being 0; returns whether there is such a part. */
EXPORT(part) bool web_part(const perhaps_filter *f, size_t index)
{
    struct perhaps_stats stats;
    const bool there = perhaps_part(f, index, &stats);
    if (there)
        told_stats(&stats, perhaps_abilities_of(f), desk.text, sizeof desk.text);
    return there;
}

EXPORT(keys) double web_keys(const perhaps_filter *f)
{
    struct perhaps_stats stats;
    perhaps_stats_of(f, &stats);
    return (double)stats.keys;
}

/* How keys become bytes: FORM of core.mjs. */
EXPORT(form) int web_form(const perhaps_filter *f)
{
    if (perhaps_hash_of(f) == PERHAPS_HASH_INTEGER)
        return 1;
    return perhaps_note_says(perhaps_note(f), "ignore-case") ? 2 : 0;
}

EXPORT(note) const char *web_note(const perhaps_filter *f)
{
    return perhaps_note(f);
}

EXPORT(predict_fpr) double web_predict_fpr(const perhaps_filter *f, double keys)
{
    return perhaps_predict_fpr(f, (uint64_t)keys);
}

/* ---- Make and end -------------------------------------------------------------------- */

EXPORT(create) int web_create(void)
{
    const struct perhaps_options options = options_on_desk();
    perhaps_filter *f;
    return put(perhaps_create(&options, &f), f);
}

EXPORT(create_like) int web_create_like(const perhaps_filter *model)
{
    perhaps_filter *f;
    return put(perhaps_create_like(model, NULL, NULL, &f), f);
}

EXPORT(clone) int web_clone(const perhaps_filter *of)
{
    perhaps_filter *f;
    return put(perhaps_clone(of, &f), f);
}

EXPORT(shrink) int web_shrink(const perhaps_filter *of, double fpr)
{
    perhaps_filter *f;
    return put(perhaps_shrink(of, fpr, &f), f);
}

EXPORT(clear) int web_clear(perhaps_filter *f)
{
    return perhaps_clear(f);
}

EXPORT(free) void web_free(perhaps_filter *f)
{
    perhaps_free(f);
}

/* ---- One key ------------------------------------------------------------------------- */

EXPORT(add) int web_add(perhaps_filter *f, const void *key, size_t nbytes)
{
    return perhaps_add(f, key, nbytes);
}

/* Returns 1 if the key was new. */
EXPORT(add_new) int web_add_new(perhaps_filter *f, const void *key, size_t nbytes)
{
    bool was_present;
    int error = perhaps_add_unless_present(f, key, nbytes, &was_present);
    return error ? error : !was_present;
}

EXPORT(has) int web_has(const perhaps_filter *f, const void *key, size_t nbytes)
{
    return perhaps_contains(f, key, nbytes);
}

EXPORT(remove) int web_remove(perhaps_filter *f, const void *key, size_t nbytes)
{
    return perhaps_remove(f, key, nbytes);
}

EXPORT(count) int web_count(const perhaps_filter *f, const void *key, size_t nbytes)
{
    uint64_t count;
    int error = perhaps_count(f, key, nbytes, &count);
    return error ? error : (int)count;
}

/* Writes the 16 bytes that the filter knows the key by to where the key's own may lie. */
EXPORT(hash) int web_hash(const perhaps_filter *f, const void *key, size_t nbytes)
{
    const struct perhaps_keys keys = perhaps_keys_packed(key, nbytes, 1);
    struct perhaps_hashed hashed;
    int error = perhaps_hash_many(f, &keys, &hashed);
    if (!error)
        memcpy(desk.key, hashed.bytes, sizeof hashed.bytes);
    return error;
}

/* Returns the value, of up to 16 bits. */
EXPORT(get) int web_get(const perhaps_filter *f, const void *key, size_t nbytes)
{
    uint32_t value;
    int error = perhaps_lookup(f, key, nbytes, &value);
    return error ? error : (int)value;
}

/* ---- Many keys ----------------------------------------------------------------------- */

#define BATCH const void *bytes, size_t key_nbytes, const uint32_t *offsets, size_t count

static struct perhaps_keys keys_of(BATCH)
{
    return offsets ? perhaps_keys_offsets32(bytes, offsets, count)
                   : perhaps_keys_packed(bytes, key_nbytes, count);
}

/* A bool is a byte that is 0 or 1. */
static bool *answers(void)
{
    return (bool *)(void *)desk.answer;
}

static int note_done(int error, size_t done)
{
    desk.done = (uint32_t)done;
    return error;
}

EXPORT(add_many) int web_add_many(perhaps_filter *f, BATCH)
{
    const struct perhaps_keys keys = keys_of(bytes, key_nbytes, offsets, count);
    size_t done = 0;
    int error = perhaps_add_many(f, &keys, &done);
    return note_done(error, done);
}

EXPORT(add_new_many) int web_add_new_many(perhaps_filter *f, BATCH)
{
    const struct perhaps_keys keys = keys_of(bytes, key_nbytes, offsets, count);
    size_t done = 0;
    int error = perhaps_add_unless_present_many(f, &keys, answers(), &done);
    for (size_t i = 0; i < count; i++)
        answers()[i] = !answers()[i];
    return note_done(error, done);
}

EXPORT(has_many) int web_has_many(const perhaps_filter *f, BATCH)
{
    const struct perhaps_keys keys = keys_of(bytes, key_nbytes, offsets, count);
    perhaps_contains_many(f, &keys, answers());
    return 0;
}

EXPORT(remove_many) int web_remove_many(perhaps_filter *f, BATCH)
{
    const struct perhaps_keys keys = keys_of(bytes, key_nbytes, offsets, count);
    size_t done = 0;
    int error = perhaps_remove_many(f, &keys, answers(), NULL, &done);
    return note_done(error, done);
}

EXPORT(count_many) int web_count_many(const perhaps_filter *f, BATCH)
{
    const struct perhaps_keys keys = keys_of(bytes, key_nbytes, offsets, count);
    int error = perhaps_count_many(f, &keys, counts);
    for (size_t i = 0; i < count; i++)
        desk.answer[i] = (uint32_t)counts[i];
    return error;
}

/* Of a key that is certainly not there the value is -1. */
EXPORT(get_many) int web_get_many(const perhaps_filter *f, BATCH)
{
    const struct perhaps_keys keys = keys_of(bytes, key_nbytes, offsets, count);
    bool *present = (bool *)(void *)counts;
    int error = perhaps_lookup_many(f, &keys, desk.answer, present);
    for (size_t i = 0; i < count; i++)
        desk.answer[i] = present[i] ? desk.answer[i] : UINT32_MAX;
    return error;
}

/* ---- Two filters --------------------------------------------------------------------- */

EXPORT(merge) int web_merge(perhaps_filter *f, const perhaps_filter *other)
{
    return perhaps_merge(f, other);
}

EXPORT(intersect) int web_intersect(perhaps_filter *f, const perhaps_filter *other)
{
    return perhaps_intersect(f, other);
}

EXPORT(equal) bool web_equal(const perhaps_filter *a, const perhaps_filter *b)
{
    return perhaps_equal(a, b);
}

/* Writes the text to the desk. */
EXPORT(difference) bool web_difference(const perhaps_filter *a, const perhaps_filter *b)
{
    _Static_assert(PERHAPS_DIFFERENCE_NBYTES <= TEXT_NBYTES, "it has room");
    return perhaps_difference(a, b, desk.text);
}

EXPORT(digest) void web_digest(const perhaps_filter *f)
{
    perhaps_digest(f, desk.key);
}

/* ---- Windows ------------------------------------------------------------------------- */

EXPORT(advance) int web_advance(perhaps_filter *f, double now)
{
    return perhaps_advance(f, (uint64_t)now);
}

EXPORT(set_back) int web_set_back(perhaps_filter *f, double now)
{
    return perhaps_set_back(f, (uint64_t)now);
}

EXPORT(rotate) int web_rotate(perhaps_filter *f)
{
    return perhaps_rotate(f);
}

/* ---- Bytes --------------------------------------------------------------------------- */

/* A source that tells how many bytes have been read. */
static int take(void *context, void *bytes, size_t nbytes)
{
    uint64_t *left = context;
    if (nbytes > *left)
        return PERHAPS_ERR_DAMAGED;
    *left -= nbytes;
    return web_take(bytes, nbytes);
}

/* As perhaps_from_bytes(), but the bytes are copied once, to where they will lie. */
EXPORT(read) int web_read(double nbytes, bool has_secret)
{
    const struct perhaps_open_options options = { .mode = PERHAPS_MODE_LOAD,
                                                  .hashing.secret =
                                                      has_secret ? desk.key : NULL };
    uint64_t left = (uint64_t)nbytes;
    const struct perhaps_source source = { take, &left, left };
    perhaps_filter *f;
    if (!left)
        return PERHAPS_ERR_FORMAT;
    int error = perhaps_read(&source, &options, &f);
    if (!error && left) {
        perhaps_free(f);
        error = PERHAPS_ERR_DAMAGED;
    }
    return put(error, f);
}

EXPORT(write_nbytes) double web_write_nbytes(const perhaps_filter *f)
{
    return (double)perhaps_write_nbytes(f);
}

static int give(void *context, const void *bytes, size_t nbytes)
{
    (void)context;
    return web_give(bytes, nbytes);
}

EXPORT(write) int web_write(const perhaps_filter *f)
{
    const struct perhaps_sink sink = { give, NULL };
    return perhaps_write(f, &sink);
}

/* ---- Files that are far away --------------------------------------------------------- */

EXPORT(remote_new) int web_remote_new(bool check, bool has_secret)
{
    const struct perhaps_remote_options options = { .check = check,
                                                    .hashing.secret =
                                                        has_secret ? desk.key : NULL };
    perhaps_remote *r;
    return put(perhaps_remote_new(&options, &r), r);
}

EXPORT(remote_free) void web_remote_free(perhaps_remote *r)
{
    perhaps_remote_free(r);
}

EXPORT(remote_size) int web_remote_size(perhaps_remote *r, double nbytes)
{
    return perhaps_remote_size(r, (uint64_t)nbytes);
}

EXPORT(remote_needs) size_t web_remote_needs(const perhaps_remote *r)
{
    size_t count;
    perhaps_remote_needs(r, &count);
    return count;
}

/* Puts where a range begins, and how many bytes it has, where options are. */
EXPORT(remote_range) void web_remote_range(const perhaps_remote *r, size_t number)
{
    size_t count;
    const struct perhaps_range *range = perhaps_remote_needs(r, &count) + number;
    desk.option[0].number = (double)range->at;
    desk.option[1].number = (double)range->nbytes;
}

EXPORT(remote_take)
int web_remote_take(perhaps_remote *r, size_t number, const void *bytes, size_t nbytes)
{
    return perhaps_remote_take(r, number, bytes, nbytes);
}

EXPORT(remote_next) int web_remote_next(perhaps_remote *r)
{
    return perhaps_remote_next(r);
}

/* Asks for the keys of a batch from 'first' on, as many as it can at once. */
EXPORT(remote_ask) int web_remote_ask(perhaps_remote *r, BATCH, size_t first)
{
    const struct perhaps_keys keys = keys_of(bytes, key_nbytes, offsets, count);
    size_t done = 0;
    int error = perhaps_remote_ask(r, &keys, first, count - first, &done);
    return note_done(error, done);
}

EXPORT(remote_answers) int web_remote_answers(const perhaps_remote *r)
{
    return perhaps_remote_answers(r, answers());
}

/* Nothing can be removed there, or counted. */
EXPORT(remote_stats) int web_remote_stats(const perhaps_remote *r)
{
    struct perhaps_stats stats;
    int error = perhaps_remote_stats_of(r, &stats);
    if (!error)
        told_stats(&stats, 0, desk.text, sizeof desk.text);
    return error;
}

EXPORT(remote_note) const char *web_remote_note(const perhaps_remote *r)
{
    return perhaps_remote_note(r);
}

EXPORT(remote_form) int web_remote_form(const perhaps_remote *r)
{
    struct perhaps_stats stats;
    if (!perhaps_remote_stats_of(r, &stats) &&
        !strcmp(stats.hash, perhaps_hash_name(PERHAPS_HASH_INTEGER)))
        return 1;
    return perhaps_note_says(perhaps_remote_note(r), "ignore-case") ? 2 : 0;
}

/* ---- Builders ------------------------------------------------------------------------ */

EXPORT(builder_create) int web_builder_create(void)
{
    const struct perhaps_options options = options_on_desk();
    const struct perhaps_build_options how = { .memory_nbytes = desk.option[MEMORY].whole,
                                               .threads = 1,
                                               .in_memory = true };
    perhaps_builder *b;
    return put(perhaps_builder_create(&options, &how, &b), b);
}

/* The values lie where answers do. */
EXPORT(builder_add) int web_builder_add(perhaps_builder *b, BATCH, bool valued)
{
    const struct perhaps_keys keys = keys_of(bytes, key_nbytes, offsets, count);
    return valued ? perhaps_builder_add_values(b, &keys, desk.answer)
                  : perhaps_builder_add_many(b, &keys);
}

EXPORT(builder_add_others) int web_builder_add_others(perhaps_builder *b, BATCH)
{
    const struct perhaps_keys keys = keys_of(bytes, key_nbytes, offsets, count);
    return perhaps_builder_add_others(b, &keys);
}

EXPORT(builder_keys) double web_builder_keys(const perhaps_builder *b)
{
    return (double)perhaps_builder_keys(b);
}

EXPORT(builder_finish) int web_builder_finish(perhaps_builder *b)
{
    perhaps_filter *f;
    return put(perhaps_builder_finish(b, &f), f);
}

EXPORT(builder_free) void web_builder_free(perhaps_builder *b)
{
    perhaps_builder_free(b);
}
