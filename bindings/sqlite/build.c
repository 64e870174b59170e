/* build.c - perhaps_build(key, fpr [, options]), an aggregate.
 *
 * The library is given many keys at a time: they are collected in one piece of memory, since
 * SQLite keeps the value of a row only for the row. */
#include <string.h>

#include "extension.h"
#include <perhaps_build.h>
#include <perhaps_embed.h>
#include <perhaps_fast.h>
#include <perhaps_plan.h>

static const char build_name[] = "perhaps_build";

enum { BATCH_KEYS = 4096, BATCH_NBYTES = 256 << 10 };

/* The library may use so much, if the process may take four times as much: of keys that wait
 * for the end, 8 bytes of each, a quarter of it holds 16 million.  What is more goes to a
 * temporary file.  (With twice as much aggregating 10 million rows takes a tenth longer: larger
 * pieces are sorted, and later.) */
#define MEMORY_NBYTES (UINT64_C(512) << 20)

static uint64_t memory_nbytes(void)
{
    const uint64_t most = perhaps_host_memory_nbytes() / 4;
    return MEMORY_NBYTES < most ? MEMORY_NBYTES : most;
}

/* What is returned if there is no row, since SQLite then tells nothing of the arguments. */
static const struct perhaps_options of_no_row = { .capacity = 1000,
                                                  .fpr = 1e-9,
                                                  .needs = PERHAPS_CAN_MERGE };

struct building {
    perhaps_builder *builder;
    bool failed;
    double fpr;
    char *options; /* as they were given; NULL: none */
    size_t nkeys;
    uint32_t offset[BATCH_KEYS + 1];
    char bytes[BATCH_NBYTES];
};

static void release(struct building *b)
{
    perhaps_builder_free(b->builder);
    sqlite3_free(b->options);
    sqlite3_free(b);
}

/* ---- Begin --------------------------------------------------------------------------- */

/* Reads the fpr.  Returns false after it has failed the call. */
static bool take_fpr(sqlite3_context *context, sqlite3_value *value, double *fpr)
{
    int type = sqlite3_value_numeric_type(value);
    *fpr = sqlite3_value_double(value);
    if ((type == SQLITE_FLOAT || type == SQLITE_INTEGER) && *fpr >= PERHAPS_FPR_MIN && *fpr < 1)
        return true;
    fail(context, build_name, "the fpr must be a number from 1e-15 to less than 1, as 0.001");
    return false;
}

/* Reads the options, and keeps their text.  Returns false after it has failed the call. */
static bool take_options(sqlite3_context *context, struct building *b, sqlite3_value *value,
                         struct choices *choices)
{
    const char *text = "";
    if (value && sqlite3_value_type(value) != SQLITE_NULL)
        text = take_text(context, build_name, "the options", value);
    if (!text || !read_choices(context, build_name, text, choices))
        return false;
    b->options = sqlite3_mprintf("%s", text);
    if (!b->options)
        sqlite3_result_error_nomem(context);
    return b->options;
}

/* Completes the options.  A filter whose size is told is refused before it is made if a BLOB
 * cannot have that size. */
static bool complete(sqlite3_context *context, struct choices *choices)
{
    const struct connection *c = connection_of(context);
    struct perhaps_options *o = &choices->options;
    struct perhaps_plan plan;
    if (choices->secret) {
        if (!c->nsecrets) {
            fail(context, build_name, "tell the secret first: SELECT perhaps_secret(...)");
            return false;
        }
        o->hashing.hash = PERHAPS_HASH_SIP;
        o->hashing.secret = c->secret[0];
    }
    if (!o->capacity || o->needs & PERHAPS_CAN_BUILD || perhaps_plan_for(o, &plan))
        return true;
    return fits_blob(context, build_name, plan.body_nbytes);
}

/* Makes the builder.  Returns false after it has failed the call. */
static bool begin(sqlite3_context *context, struct building *b, int nargs, sqlite3_value **args)
{
    struct choices choices = { 0 };
    const struct perhaps_build_options how = { .memory_nbytes = memory_nbytes(),
                                               .leaves_room = true };
    if (!take_fpr(context, args[1], &b->fpr) ||
        !take_options(context, b, nargs > 2 ? args[2] : NULL, &choices))
        return false;
    choices.options.fpr = b->fpr;
    if (!complete(context, &choices))
        return false;
    int error = perhaps_builder_create(&choices.options, &how, &b->builder);
    if (error)
        fail_with(context, build_name, NULL, error);
    return !error;
}

/* ---- Rows ---------------------------------------------------------------------------- */

static int flush(struct building *b)
{
    const struct perhaps_keys keys = perhaps_keys_offsets32(b->bytes, b->offset, b->nkeys);
    int error = b->nkeys ? perhaps_builder_add_many(b->builder, &keys) : 0;
    b->nkeys = 0;
    return error;
}

static int add(struct building *b, const struct key *key)
{
    const struct perhaps_key large = { key->bytes, key->nbytes };
    const struct perhaps_keys one = perhaps_keys_each(&large, 1);
    int error = 0;
    if (b->nkeys == BATCH_KEYS || key->nbytes > BATCH_NBYTES - b->offset[b->nkeys])
        error = flush(b);
    if (error)
        return error;
    if (key->nbytes > BATCH_NBYTES)
        return perhaps_builder_add_many(b->builder, &one);
    memcpy(b->bytes + b->offset[b->nkeys], key->bytes, key->nbytes);
    b->offset[b->nkeys + 1] = b->offset[b->nkeys] + (uint32_t)key->nbytes;
    b->nkeys++;
    return 0;
}

/* Returns whether fpr and options are those of the first row. */
static bool are_same(const struct building *b, int nargs, sqlite3_value **args)
{
    if (sqlite3_value_double(args[1]) != b->fpr)
        return false;
    if (nargs < 3)
        return true;
    const unsigned char *text = sqlite3_value_text(args[2]);
    return !strcmp(text ? (const char *)text : "", b->options);
}

/* Takes a row.  Returns false after it has failed the call. */
static bool take_row(sqlite3_context *context, struct building *b, int nargs,
                     sqlite3_value **args)
{
    struct key key;
    if (!b->builder && !begin(context, b, nargs, args))
        return false;
    if (!are_same(b, nargs, args)) {
        fail(context, build_name, "the fpr and the options must be the same for all rows");
        return false;
    }
    if (sqlite3_value_type(args[0]) == SQLITE_NULL)
        return true;
    if (!take_key(context, build_name, args[0], KEYS_PLAIN, &key))
        return false;
    int error = add(b, &key);
    if (error)
        fail_with(context, build_name, NULL, error);
    return !error;
}

void build_step(sqlite3_context *context, int nargs, sqlite3_value **args)
{
    struct building **slot = sqlite3_aggregate_context(context, sizeof(struct building *));
    if (slot && !*slot && (*slot = sqlite3_malloc64(sizeof **slot))) {
        (*slot)->builder = NULL;
        (*slot)->failed = false;
        (*slot)->options = NULL;
        (*slot)->nkeys = 0;
        (*slot)->offset[0] = 0;
    }
    if (!slot || !*slot)
        sqlite3_result_error_nomem(context);
    else if (!(*slot)->failed)
        (*slot)->failed = !take_row(context, *slot, nargs, args);
}

void build_final(sqlite3_context *context)
{
    struct building **slot = sqlite3_aggregate_context(context, 0);
    struct building *b = slot ? *slot : NULL;
    perhaps_filter *filter = NULL;
    int error = b ? 0 : perhaps_create(&of_no_row, &filter);
    if (b && !b->failed)
        error = flush(b);
    if (b && !b->failed && !error)
        error = perhaps_builder_finish(b->builder, &filter);
    if (error)
        fail_with(context, build_name, NULL, error);
    else if (filter)
        result_filter(context, build_name, filter);
    perhaps_free(filter);
    if (b)
        release(b);
}
