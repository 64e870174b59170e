/* sqlite_fuzz.c - fuzzes the functions of the SQLite extension: a BLOB of any bytes is refused,
 * or is a filter that can be asked and changed; options of any text likewise.
 *
 * The first byte is a set of bits (enum input), the second one how many bytes follow that are a
 * key and a text of options; the rest is the BLOB. */
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/hostile.h"
#include <perhaps_embed.h>
#include <perhaps_sets.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes);
int sqlite3_perhapssqlite_init(sqlite3 *db, char **error_text,
                               const struct sqlite3_api_routines *api);

enum input {
    RESEAL = 1,  /* correct the checksums of the BLOB */
    BUILD = 2,   /* build a filter with the options */
    INTEGER = 4, /* the key is an integer */
    BYTES = 8,   /* the key is a BLOB */
    SECRET = 16, /* tell the connection a secret */
};

/* What is called; 'always' is what it returns unless it is refused. */
static const struct call {
    const char *sql, *always;
} calls[] = {
    { "SELECT perhaps_contains(?1, ?2) IN (0, 1)", "1" },
    { "SELECT perhaps_contains(?1, ?2) = perhaps_contains(perhaps_open(?1), ?2)", "1" },
    { "SELECT perhaps_contains(perhaps_add(?1, ?2), ?2)", "1" },
    { "SELECT perhaps_remove(perhaps_add(?1, ?2), ?2) IS NULL", "0" },
    { "SELECT perhaps_count(perhaps_add(?1, ?2), ?2) > 0", "1" },
    { "SELECT json_valid(perhaps_info(?1))", "1" },
    { "SELECT perhaps_contains(perhaps_merge(b), ?2) FROM "
      "(SELECT ?1 AS b UNION ALL SELECT perhaps_add(?1, ?2))",
      "1" },
};
static const struct call build = {
    "SELECT perhaps_contains((SELECT perhaps_build(?2, 0.01, ?3)), ?2)", "1"
};

/* What an input consists of. */
struct parts {
    unsigned bits;
    const uint8_t *key;
    size_t key_nbytes;
    uint8_t *blob;
    size_t blob_nbytes;
};

static void bind(sqlite3_stmt *s, const struct parts *parts)
{
    const int key_nbytes = (int)parts->key_nbytes;
    int64_t integer = 0;
    sqlite3_bind_blob64(s, 1, parts->blob, parts->blob_nbytes, SQLITE_STATIC);
    memcpy(&integer, parts->key, parts->key_nbytes < 8 ? parts->key_nbytes : 8);
    if (parts->bits & INTEGER)
        sqlite3_bind_int64(s, 2, integer);
    else if (parts->bits & BYTES)
        sqlite3_bind_blob(s, 2, parts->key, key_nbytes, SQLITE_STATIC);
    else
        sqlite3_bind_text(s, 2, (const char *)parts->key, key_nbytes, SQLITE_STATIC);
    sqlite3_bind_text(s, 3, (const char *)parts->key, key_nbytes, SQLITE_STATIC);
}

static void run(sqlite3 *db, const struct call *call, const struct parts *parts)
{
    sqlite3_stmt *s;
    if (sqlite3_prepare_v2(db, call->sql, -1, &s, NULL))
        abort();
    bind(s, parts);
    const char *result = NULL;
    if (sqlite3_step(s) == SQLITE_ROW)
        result = (const char *)sqlite3_column_text(s, 0);
    else if (strncmp(sqlite3_errmsg(db), "perhaps_", 8) != 0 &&
             sqlite3_errcode(db) != SQLITE_NOMEM)
        result = sqlite3_errmsg(db);
    if (result && strcmp(result, call->always) != 0) {
        fprintf(stderr, "%s: %s\n", call->sql, result);
        abort();
    }
    sqlite3_finalize(s);
}

static void run_all(const struct parts *parts)
{
    sqlite3 *db;
    if (sqlite3_open(":memory:", &db) || sqlite3_perhapssqlite_init(db, NULL, NULL))
        abort();
    sqlite3_limit(db, SQLITE_LIMIT_LENGTH, 1 << 20);
    if (parts->bits & SECRET)
        sqlite3_exec(db, "SELECT perhaps_secret(zeroblob(16))", NULL, NULL, NULL);
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        run(db, &calls[i], parts);
    if (parts->bits & BUILD)
        run(db, &build, parts);
    if (sqlite3_close(db))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes)
{
    if (nbytes < 2 || nbytes > 1 << 18)
        return 0;
    struct parts parts = { .bits = data[0], .key = data + 2, .key_nbytes = data[1] };
    if (parts.key_nbytes > nbytes - 2)
        parts.key_nbytes = nbytes - 2;
    parts.blob_nbytes = nbytes - 2 - parts.key_nbytes;
    parts.blob = malloc(parts.blob_nbytes + 1);
    if (!parts.blob)
        return 0;
    memcpy(parts.blob, parts.key + parts.key_nbytes, parts.blob_nbytes);
    if (parts.bits & RESEAL)
        reseal(parts.blob, parts.blob_nbytes);
    run_all(&parts);
    free(parts.blob);
    return 0;
}
