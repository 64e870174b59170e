/* database.h - databases with the extension, and statements with what they should return. */
#ifndef DATABASE_H
#define DATABASE_H

#include <sqlite3.h>

#include "support.h"

#define scoped_database __attribute__((cleanup(close_database))) sqlite3

/* Opens a database and loads the extension.  NULL: one in memory. */
sqlite3 *open_database(const char *path);
void close_database(sqlite3 **db); /* fails the test if something is still in use */

/* Runs statements.  Returns the first column of the first row as text, "NULL", or what is wrong
 * as "error: ..."; good until the next call in this thread. */
const char *sql(sqlite3 *db, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Fails the test unless the statements return this. */
#define expect_sql(db, wanted, ...) expect_result(wanted, sql(db, __VA_ARGS__), __LINE__)
void expect_result(const char *wanted, const char *result, int line);

/* Fails the test unless there is an error with this text in it. */
#define expect_refusal(db, part, ...) expect_part(part, sql(db, __VA_ARGS__), __LINE__)
void expect_part(const char *part, const char *result, int line);

/* Runs a statement with a BLOB in place of ?1 and perhaps a key in place of ?2. */
const char *sql_with(sqlite3 *db, const char *statement, const struct bytes *blob);

/* Returns the BLOB that a statement returns: release with free_bytes(). */
struct bytes blob_of(sqlite3 *db, const char *statement);

/* Makes the table t(id, name) with so many rows: names are 'key1', 'key2', ... */
void make_table(sqlite3 *db, unsigned rows);

#endif
