/* values.c - what comes from SQL, and what goes there. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "extension.h"
#include <perhaps_embed.h>
#include <perhaps_file.h>
#include <perhaps_plan.h>

SQLITE_EXTENSION_INIT1

/* ---- Errors -------------------------------------------------------------------------- */

void fail(sqlite3_context *context, const char *function, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    char *text = sqlite3_vmprintf(format, arguments);
    va_end(arguments);
    char *line = text ? sqlite3_mprintf("%s: %s", function, text) : NULL;
    if (line)
        sqlite3_result_error(context, line, -1);
    else
        sqlite3_result_error_nomem(context);
    sqlite3_free(line);
    sqlite3_free(text);
}

void fail_with(sqlite3_context *context, const char *function, const char *subject, int error)
{
    const char *why = perhaps_strerror(error);
    if (error == PERHAPS_ERR_MEMORY) {
        sqlite3_result_error_nomem(context);
        return;
    }
    if (error == PERHAPS_ERR_IO)
        why = strerror(errno);
    fail(context, function, "%s%s%s%s", subject ? subject : "", subject ? ": " : "", why,
         error == PERHAPS_ERR_SECRET ? ": tell it with perhaps_secret()" : "");
}

/* ---- Arguments ----------------------------------------------------------------------- */

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "integers are copied as they are");

enum key_form key_form_of(const perhaps_filter *filter)
{
    if (perhaps_hash_of(filter) == PERHAPS_HASH_INTEGER)
        return KEYS_DECIMAL;
    return perhaps_note_says(perhaps_note(filter), "ignore-case") ? KEYS_FOLDED : KEYS_PLAIN;
}

/* Makes the letters small, in a copy.  Returns false after it has failed the call. */
static bool fold_key(sqlite3_context *context, struct key *key)
{
    struct connection *c = connection_of(context);
    sqlite3_free(c->folded);
    c->folded = sqlite3_malloc64(key->nbytes + 1);
    if (!c->folded) {
        sqlite3_result_error_nomem(context);
        return false;
    }
    perhaps_fold_case(c->folded, key->bytes, key->nbytes);
    key->bytes = c->folded;
    return true;
}

bool take_key(sqlite3_context *context, const char *function, sqlite3_value *value,
              enum key_form form, struct key *key)
{
    sqlite3_int64 integer;
    switch (sqlite3_value_type(value)) {
    case SQLITE_TEXT:
        key->bytes = sqlite3_value_text(value);
        if (!key->bytes) {
            sqlite3_result_error_nomem(context);
            return false;
        }
        key->nbytes = (size_t)sqlite3_value_bytes(value);
        return form != KEYS_FOLDED || fold_key(context, key);
    case SQLITE_BLOB: /* its address is NULL if it has no bytes */
        key->bytes = sqlite3_value_blob(value);
        key->nbytes = (size_t)sqlite3_value_bytes(value);
        if (!key->bytes)
            key->bytes = "";
        return form != KEYS_FOLDED || fold_key(context, key);
    case SQLITE_INTEGER:
        integer = sqlite3_value_int64(value);
        key->bytes = key->own;
        key->nbytes = sizeof integer;
        memcpy(key->own, &integer, sizeof integer);
        if (form == KEYS_DECIMAL)
            key->nbytes = (size_t)snprintf(key->own, sizeof key->own, "%lld", integer);
        return true;
    default:
        fail(context, function,
             "a key is text, a BLOB or an INTEGER, and no REAL: convert it with CAST()");
        return false;
    }
}

const char *take_text(sqlite3_context *context, const char *function, const char *subject,
                      sqlite3_value *value)
{
    if (sqlite3_value_type(value) != SQLITE_TEXT) {
        fail(context, function, "%s must be text", subject);
        return NULL;
    }
    const char *text = (const char *)sqlite3_value_text(value);
    if (!text)
        sqlite3_result_error_nomem(context);
    else if (strlen(text) != (size_t)sqlite3_value_bytes(value))
        fail(context, function, "%s has a NUL in it", subject);
    else
        return text;
    return NULL;
}

/* ---- Results ------------------------------------------------------------------------- */

bool fits_blob(sqlite3_context *context, const char *function, uint64_t nbytes)
{
    int most = sqlite3_limit(sqlite3_context_db_handle(context), SQLITE_LIMIT_LENGTH, -1);
    if (nbytes <= (uint64_t)most)
        return true;
    fail(context, function,
         "the filter would have %llu bytes, and a BLOB can have %d here: build a file with the "
         "command line, and name its path",
         (unsigned long long)nbytes, most);
    sqlite3_result_error_code(context, SQLITE_TOOBIG);
    return false;
}

void result_filter(sqlite3_context *context, const char *function, const perhaps_filter *filter)
{
    uint64_t nbytes = perhaps_write_nbytes(filter);
    if (!fits_blob(context, function, nbytes))
        return;
    void *bytes = sqlite3_malloc64(nbytes);
    int error = bytes ? perhaps_to_bytes(filter, bytes, nbytes) : PERHAPS_ERR_MEMORY;
    if (error) {
        sqlite3_free(bytes);
        fail_with(context, function, NULL, error);
    } else {
        sqlite3_result_blob64(context, bytes, nbytes, sqlite3_free);
    }
}
