/* database.c - databases with the extension. */
#include "database.h"

#include <stdio.h>
#include <string.h>

sqlite3 *open_database(const char *path)
{
    sqlite3 *db;
    char *problem = NULL;
    expect(!sqlite3_open(path ? path : ":memory:", &db));
    sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 1, NULL);
    sqlite3_load_extension(db, EXTENSION, NULL, &problem);
    scene("%s", problem ? problem : "");
    expect(!problem);
    sqlite3_busy_timeout(db, 10000);
    return db;
}

void close_database(sqlite3 **db)
{
    expect(!sqlite3_close(*db));
}

/* Copies what a statement has returned. */
static const char *result_of(sqlite3 *db, sqlite3_stmt *statement, int status)
{
    static _Thread_local char result[4096];
    const unsigned char *text = status == SQLITE_ROW ? sqlite3_column_text(statement, 0) : NULL;
    if (status == SQLITE_ROW)
        snprintf(result, sizeof result, "%s", text ? (const char *)text : "NULL");
    else if (status != SQLITE_DONE)
        snprintf(result, sizeof result, "error: %s", sqlite3_errmsg(db));
    else
        *result = '\0';
    return result;
}

const char *sql(sqlite3 *db, const char *format, ...)
{
    char text[8192];
    const char *at = text, *result = "";
    va_list arguments;
    va_start(arguments, format);
    expect((size_t)vsnprintf(text, sizeof text, format, arguments) < sizeof text);
    va_end(arguments);
    while (*at) {
        sqlite3_stmt *statement;
        int status = sqlite3_prepare_v2(db, at, -1, &statement, &at);
        if (!status && !statement)
            break;
        if (!status)
            status = sqlite3_step(statement);
        result = result_of(db, statement, status);
        while (status == SQLITE_ROW)
            status = sqlite3_step(statement);
        if (status != SQLITE_DONE)
            result = result_of(db, statement, status);
        sqlite3_finalize(statement);
        if (status != SQLITE_DONE)
            break;
    }
    return result;
}

void expect_result(const char *wanted, const char *result, int line)
{
    scene("line %d: '%s', not '%s'", line, result, wanted);
    expect(!strcmp(result, wanted));
}

void expect_part(const char *part, const char *result, int line)
{
    scene("line %d: '%s' has no '%s'", line, result, part);
    expect(!strncmp(result, "error: ", 7) && strstr(result, part));
    expect(!strchr(result, '\n'));
}

const char *sql_with(sqlite3 *db, const char *statement, const struct bytes *blob)
{
    sqlite3_stmt *s;
    expect(!sqlite3_prepare_v2(db, statement, -1, &s, NULL));
    expect(!sqlite3_bind_blob64(s, 1, blob->nbytes ? (void *)blob->at : "", blob->nbytes,
                                SQLITE_STATIC));
    const char *result = result_of(db, s, sqlite3_step(s));
    sqlite3_finalize(s);
    return result;
}

struct bytes blob_of(sqlite3 *db, const char *statement)
{
    sqlite3_stmt *s;
    struct bytes bytes = { 0 };
    expect(!sqlite3_prepare_v2(db, statement, -1, &s, NULL));
    int status = sqlite3_step(s);
    scene("%s", sqlite3_errmsg(db));
    expect(status == SQLITE_ROW && sqlite3_column_type(s, 0) == SQLITE_BLOB);
    struct bytes here = { (uint8_t *)sqlite3_column_blob(s, 0),
                          (size_t)sqlite3_column_bytes(s, 0) };
    bytes = copy_bytes(&here);
    sqlite3_finalize(s);
    return bytes;
}

void make_table(sqlite3 *db, unsigned rows)
{
    expect_sql(db, "",
               "CREATE TABLE t(id INTEGER PRIMARY KEY, name TEXT);"
               "INSERT INTO t WITH RECURSIVE s(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM s "
               "WHERE i < %u) SELECT i, 'key' || i FROM s;",
               rows);
}
