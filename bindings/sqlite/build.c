/* build.c - perhaps_build(key, fpr [, options]), an aggregate.
 *
 * The library is given many keys at a time: they are collected in memory, since SQLite keeps
 * the value of a row only for the row.  This memory begins small and grows, since an aggregate
 * may have thousands of groups, each of a few keys. */
#include <string.h>

#include "extension.h"
#include <perhaps_build.h>
#include <perhaps_embed.h>
#include <perhaps_fast.h>
#include <perhaps_plan.h>

static const char build_name[] = "perhaps_build";

/* How many keys, and bytes of them, are collected at most, and at first; and by what factor
 * either grows. */
enum { BATCH_KEYS = 4096, BATCH_NBYTES = 256 << 10 };
enum { FIRST_KEYS = 64, FIRST_NBYTES = 1 << 10, BATCH_GROWS = 4 };

/* Filters of fewer keys than this take at most 64 MB, at any rate. */
enum { SMALL_CAPACITY = 1000000 };

/* The library may use so much, if the process may take four times as much: of keys that wait
 * for the end, 8 bytes of each, a quarter of it holds 16 million.  What is more goes to a
 * temporary file.  (With twice as much aggregating 10 million rows takes a tenth longer: larger
 * pieces are sorted, and later.) */
#define MEMORY_NBYTES (UINT64_C(512) << 20)

/* The host is asked once: to ask takes as long as to build a filter of thousands of keys. */
static uint64_t builder_memory_nbytes(struct connection *c)
{
    if (!c->builder_nbytes) {
        const uint64_t most = perhaps_host_memory_nbytes() / 4;
        c->builder_nbytes = MEMORY_NBYTES < most ? MEMORY_NBYTES : most;
    }
    return c->builder_nbytes;
}

/* What is returned if there is no row, since SQLite then tells nothing of the arguments. */
static const struct perhaps_options of_no_row = { .capacity = 1000,
                                                  .fpr = 1e-9,
                                                  .needs = PERHAPS_CAN_MERGE };

/* Belongs to SQLite, which begins it with zeros. */
struct building {
    perhaps_builder *builder;
    bool failed;
    double fpr;
    char *options; /* as they were given; NULL: none */

    /* Keys for the builder. */
    size_t nkeys, keys_room, bytes_room;
    uint32_t *offset; /* keys_room + 1 */
    char *bytes;
};

static void release_building(struct building *b)
{
    perhaps_builder_free(b->builder);
    sqlite3_free(b->options);
    sqlite3_free(b->offset);
    sqlite3_free(b->bytes);
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
static bool complete_options(sqlite3_context *context, struct choices *choices)
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
    if (o->capacity < SMALL_CAPACITY || o->needs & PERHAPS_CAN_BUILD ||
        perhaps_plan_for(o, &plan))
        return true;
    return fits_blob(context, build_name, plan.body_nbytes);
}

/* Makes the builder.  Returns false after it has failed the call. */
static bool begin_building(sqlite3_context *context, struct building *b, int nargs,
                           sqlite3_value **args)
{
    struct choices choices = { 0 };
    const struct perhaps_build_options how = {
        .memory_nbytes = builder_memory_nbytes(connection_of(context)), .leaves_room = true
    };
    if (!take_fpr(context, args[1], &b->fpr) ||
        !take_options(context, b, nargs > 2 ? args[2] : NULL, &choices))
        return false;
    choices.options.fpr = b->fpr;
    if (!complete_options(context, &choices))
        return false;
    int error = perhaps_builder_create(&choices.options, &how, &b->builder);
    if (error)
        fail_with(context, build_name, NULL, error);
    return !error;
}

/* ---- Rows ---------------------------------------------------------------------------- */

static int flush_keys(struct building *b)
{
    const struct perhaps_keys keys = perhaps_keys_offsets32(b->bytes, b->offset, b->nkeys);
    int error = b->nkeys ? perhaps_builder_add_many(b->builder, &keys) : 0;
    b->nkeys = 0;
    return error;
}

/* Returns the room for so many: what there is, grown until it suffices, but at most 'most'. */
static size_t room_for(size_t needed, size_t room, size_t first, size_t most)
{
    if (!room)
        room = first;
    while (room < needed && room < most)
        room *= BATCH_GROWS;
    return room < most ? room : most;
}

/* Makes room for one more key, which the largest batch has room for. */
static int need_room(struct building *b, size_t key_nbytes)
{
    const size_t nbytes = (b->nkeys ? b->offset[b->nkeys] : 0) + key_nbytes;
    const size_t keys_room = room_for(b->nkeys + 1, b->keys_room, FIRST_KEYS, BATCH_KEYS);
    const size_t bytes_room = room_for(nbytes, b->bytes_room, FIRST_NBYTES, BATCH_NBYTES);
    if (keys_room > b->keys_room) {
        uint32_t *offset = sqlite3_realloc64(b->offset, (keys_room + 1) * sizeof *offset);
        if (!offset)
            return PERHAPS_ERR_MEMORY;
        offset[0] = 0;
        b->offset = offset;
        b->keys_room = keys_room;
    }
    if (bytes_room > b->bytes_room) {
        char *bytes = sqlite3_realloc64(b->bytes, bytes_room);
        if (!bytes)
            return PERHAPS_ERR_MEMORY;
        b->bytes = bytes;
        b->bytes_room = bytes_room;
    }
    return 0;
}

static int gather_key(struct building *b, const struct key *key)
{
    const struct perhaps_key large = { key->bytes, key->nbytes };
    const struct perhaps_keys one = perhaps_keys_each(&large, 1);
    int error = 0;
    if (b->nkeys &&
        (b->nkeys == BATCH_KEYS || key->nbytes > BATCH_NBYTES - b->offset[b->nkeys]))
        error = flush_keys(b);
    if (error)
        return error;
    if (key->nbytes > BATCH_NBYTES)
        return perhaps_builder_add_many(b->builder, &one);
    error = need_room(b, key->nbytes);
    if (error)
        return error;
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
    if (!b->builder && !begin_building(context, b, nargs, args))
        return false;
    if (!are_same(b, nargs, args)) {
        fail(context, build_name, "the fpr and the options must be the same for all rows");
        return false;
    }
    if (sqlite3_value_type(args[0]) == SQLITE_NULL)
        return true;
    if (!take_key(context, build_name, args[0], KEYS_PLAIN, &key))
        return false;
    int error = gather_key(b, &key);
    if (error)
        fail_with(context, build_name, NULL, error);
    return !error;
}

void build_step(sqlite3_context *context, int nargs, sqlite3_value **args)
{
    struct building *b = sqlite3_aggregate_context(context, sizeof *b);
    if (!b)
        sqlite3_result_error_nomem(context);
    else if (!b->failed)
        b->failed = !take_row(context, b, nargs, args);
}

void build_final(sqlite3_context *context)
{
    struct building *b = sqlite3_aggregate_context(context, 0);
    perhaps_filter *filter = NULL;
    int error = b ? 0 : perhaps_create(&of_no_row, &filter);
    if (b && !b->failed)
        error = flush_keys(b);
    if (b && !b->failed && !error)
        error = perhaps_builder_finish(b->builder, &filter);
    if (error)
        fail_with(context, build_name, NULL, error);
    else if (filter)
        result_filter(context, build_name, filter);
    perhaps_free(filter);
    if (b)
        release_building(b);
}
