/* ask.c - the functions that ask or change one filter, or tell the connection something. */
#include <string.h>

#include "extension.h"
#include <perhaps_embed.h>
#include <perhaps_file.h>

static const char contains_name[] = "perhaps_contains", count_name[] = "perhaps_count";
static const char add_name[] = "perhaps_add", remove_name[] = "perhaps_remove";
static const char save_name[] = "perhaps_save", open_name[] = "perhaps_open";
static const char allow_name[] = "perhaps_allow", secret_name[] = "perhaps_secret";

/* ---- Ask ----------------------------------------------------------------------------- */

/* Takes filter and key of a question.  Returns NULL after it has set the result: to NULL for a
 * key that is NULL, or to an error. */
static struct held *take_question(sqlite3_context *context, const char *function,
                                  sqlite3_value **args, struct key *key)
{
    struct held *held = connection_filter(context, function, args[0]);
    if (!held || sqlite3_value_type(args[1]) == SQLITE_NULL ||
        !take_key(context, function, args[1], held->form, key))
        return NULL;
    if (held->takes == 0 || held->takes == key->nbytes)
        return held;
    fail(context, function, "this filter takes keys of %d bytes, which are hashes",
         (int)held->takes);
    return NULL;
}

void contains_function(sqlite3_context *context, int nargs, sqlite3_value **args)
{
    struct key key;
    const struct held *held = take_question(context, contains_name, args, &key);
    (void)nargs;
    if (held)
        sqlite3_result_int(context, perhaps_contains(held->filter, key.bytes, key.nbytes));
}

void count_function(sqlite3_context *context, int nargs, sqlite3_value **args)
{
    struct key key;
    uint64_t count;
    const struct held *held = take_question(context, count_name, args, &key);
    (void)nargs;
    if (!held)
        return;
    int error = perhaps_count(held->filter, key.bytes, key.nbytes, &count);
    if (error)
        fail_with(context, count_name, NULL, error);
    else
        sqlite3_result_int64(context, (sqlite3_int64)count);
}

void open_function(sqlite3_context *context, int nargs, sqlite3_value **args)
{
    struct held *held = connection_filter(context, open_name, args[0]);
    (void)nargs;
    if (!held)
        return;
    while (!held->handle)
        sqlite3_randomness(sizeof held->handle, &held->handle);
    sqlite3_result_int64(context, held->handle);
}

/* ---- Change -------------------------------------------------------------------------- */

/* Returns the filter of a BLOB, to be changed; or NULL after it has failed the call. */
static perhaps_filter *take_filter(sqlite3_context *context, const char *function,
                                   sqlite3_value *value)
{
    perhaps_filter *filter;
    if (sqlite3_value_type(value) != SQLITE_BLOB) {
        fail(context, function, "a filter is a BLOB here");
        return NULL;
    }
    const void *bytes = sqlite3_value_blob(value);
    size_t nbytes = (size_t)sqlite3_value_bytes(value);
    int error = connection_load(connection_of(context), bytes, nbytes, &filter);
    if (error)
        fail_with(context, function, "the BLOB", error);
    return filter;
}

/* Changes the filter by all keys; those that are NULL are left out. */
static void change(sqlite3_context *context, const char *function, int nargs,
                   sqlite3_value **args,
                   int (*by)(perhaps_filter *filter, const void *key, size_t key_nbytes))
{
    perhaps_filter *filter = take_filter(context, function, args[0]);
    bool done = filter;
    const enum key_form form = filter ? key_form_of(filter) : KEYS_PLAIN;
    struct key key;
    for (int i = 1; i < nargs && done; i++) {
        if (sqlite3_value_type(args[i]) == SQLITE_NULL)
            continue;
        done = take_key(context, function, args[i], form, &key);
        int error = done ? by(filter, key.bytes, key.nbytes) : 0;
        if (error) {
            fail_with(context, function, NULL, error);
            done = false;
        }
    }
    if (done)
        result_filter(context, function, filter);
    perhaps_free(filter);
}

void add_function(sqlite3_context *context, int nargs, sqlite3_value **args)
{
    if (nargs < 2)
        fail(context, add_name, "it takes a filter and one key or more");
    else
        change(context, add_name, nargs, args, perhaps_add);
}

void remove_function(sqlite3_context *context, int nargs, sqlite3_value **args)
{
    change(context, remove_name, nargs, args, perhaps_remove);
}

/* ---- What only the program may do, and no schema ------------------------------------- */

void save_function(sqlite3_context *context, int nargs, sqlite3_value **args)
{
    const struct perhaps_open_options options = { .mode = PERHAPS_MODE_LOAD,
                                                  .without_secret = true };
    perhaps_filter *filter;
    (void)nargs;
    if (sqlite3_value_type(args[0]) != SQLITE_BLOB) {
        fail(context, save_name, "a filter is a BLOB here");
        return;
    }
    const char *path = take_text(context, save_name, "the path", args[1]);
    if (!path)
        return;
    const void *bytes = sqlite3_value_blob(args[0]);
    size_t nbytes = (size_t)sqlite3_value_bytes(args[0]);
    int error = perhaps_from_bytes(bytes, nbytes, &options, &filter);
    if (error) {
        fail_with(context, save_name, "the BLOB", error);
        return;
    }
    error = perhaps_may_replace(path) ? perhaps_save(filter, path) : PERHAPS_ERR_FORMAT;
    if (error)
        fail_with(context, save_name, path, error);
    else
        sqlite3_result_int64(context, (sqlite3_int64)perhaps_write_nbytes(filter));
    perhaps_free(filter);
}

void allow_function(sqlite3_context *context, int nargs, sqlite3_value **args)
{
    const char *path = take_text(context, allow_name, "the path of a filter", args[0]);
    (void)nargs;
    if (path && connection_allow(context, allow_name, path))
        sqlite3_result_value(context, args[0]);
}

void secret_function(sqlite3_context *context, int nargs, sqlite3_value **args)
{
    (void)nargs;
    if (sqlite3_value_type(args[0]) != SQLITE_BLOB ||
        sqlite3_value_bytes(args[0]) != SECRET_NBYTES) {
        fail(context, secret_name, "a secret is a BLOB of %d bytes", SECRET_NBYTES);
        return;
    }
    connection_add_secret(connection_of(context), sqlite3_value_blob(args[0]));
}

void version_function(sqlite3_context *context, int nargs, sqlite3_value **args)
{
    (void)nargs;
    (void)args;
    sqlite3_result_text(context, perhaps_version(), -1, SQLITE_STATIC);
}
