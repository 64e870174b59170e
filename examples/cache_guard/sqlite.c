/* sqlite.c - users in an SQLite file. */
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>

#include "database.h"
#include "scratch.h"

enum { BUSY_MS = 30000 }; /* how long to wait while another process writes */

struct sqlite {
    struct database database;
    sqlite3 *connection;
    sqlite3_stmt *find, *insert;
    char *path;
};

static struct sqlite *sqlite_of(struct database *database)
{
    return (struct sqlite *)database;
}

static void complain(const struct sqlite *s)
{
    fail("database %s: %s", s->path, sqlite3_errmsg(s->connection));
}

static void run(struct sqlite *s, const char *sql)
{
    if (sqlite3_exec(s->connection, sql, NULL, NULL, NULL))
        complain(s);
}

static sqlite3_stmt *prepare(struct sqlite *s, const char *sql)
{
    sqlite3_stmt *statement;
    if (sqlite3_prepare_v2(s->connection, sql, -1, &statement, NULL))
        fail("database %s, table users: %s; " SHAPE_WANTED, s->path,
             sqlite3_errmsg(s->connection));
    return statement;
}

/* In the mode "wal" of a file readers do not wait for writers; a file that has users already
 * keeps the mode that it is in. */
static void create_table(struct sqlite *s)
{
    if (sqlite3_table_column_metadata(s->connection, NULL, "users", NULL, NULL, NULL, NULL,
                                      NULL, NULL) == SQLITE_OK)
        return;
    sqlite3_exec(s->connection, "PRAGMA journal_mode = wal", NULL, NULL, NULL);
    run(s, SQL_CREATE);
}

static struct database *sqlite_open(const char *where, bool create)
{
    struct sqlite *s = memory_zeroed(sizeof *s);
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | (create ? SQLITE_OPEN_CREATE : 0);
    s->database.kind = &sqlite_database;
    s->path = text_of("%s", where);
    if (sqlite3_open_v2(where, &s->connection, flags, NULL))
        complain(s);
    sqlite3_busy_timeout(s->connection, BUSY_MS);
    if (create)
        create_table(s);
    s->find = prepare(s, SQL_FIND);
    s->insert = prepare(s, SQL_INSERT); /* fails where addresses need not be unique */
    run(s, "PRAGMA synchronous = normal");
    return &s->database;
}

static void sqlite_close(struct database *database)
{
    struct sqlite *s = sqlite_of(database);
    sqlite3_finalize(s->find);
    sqlite3_finalize(s->insert);
    sqlite3_close(s->connection);
    free(s->path);
    free(s);
}

/* Whether there is a row. */
static bool step(struct sqlite *s, sqlite3_stmt *statement)
{
    int result = sqlite3_step(statement);
    if (result != SQLITE_ROW && result != SQLITE_DONE)
        complain(s);
    return result == SQLITE_ROW;
}

static bool sqlite_find(struct database *database, const char *email,
                        char name[NAME_NBYTES_MAX + 1])
{
    struct sqlite *s = sqlite_of(database);
    sqlite3_bind_text(s->find, 1, email, -1, SQLITE_STATIC);
    bool found = step(s, s->find);
    const unsigned char *text = found ? sqlite3_column_text(s->find, 0) : NULL;
    if (found)
        snprintf(name, NAME_NBYTES_MAX + 1, "%s", text ? (const char *)text : "");
    sqlite3_reset(s->find);
    return found;
}

static bool sqlite_insert(struct database *database, const char *email, const char *name)
{
    struct sqlite *s = sqlite_of(database);
    sqlite3_bind_text(s->insert, 1, email, -1, SQLITE_STATIC);
    sqlite3_bind_text(s->insert, 2, name, -1, SQLITE_STATIC);
    step(s, s->insert);
    sqlite3_reset(s->insert);
    return sqlite3_changes(s->connection) > 0;
}

static void sqlite_load(struct database *database, uint64_t count)
{
    struct sqlite *s = sqlite_of(database);
    run(s, "PRAGMA cache_size = -131072"); /* KiB: addresses come in no order */
    run(s, "BEGIN IMMEDIATE");
    for (uint64_t i = 0; i < count; i++) {
        struct person person;
        make_up(&person, i);
        if (!sqlite_insert(database, person.email, person.name))
            fail("database %s: %s is there already", s->path, person.email);
    }
    run(s, "COMMIT");
}

static void sqlite_each(struct database *database, meet_email *meet, void *context)
{
    struct sqlite *s = sqlite_of(database);
    sqlite3_stmt *each = prepare(s, SQL_EACH);
    while (step(s, each)) {
        const char *email = (const char *)sqlite3_column_text(each, 0);
        if (email)
            meet(context, email);
    }
    sqlite3_finalize(each);
}

const struct database_kind sqlite_database = {
    .name = "SQLite",
    .open = sqlite_open,
    .close = sqlite_close,
    .find = sqlite_find,
    .insert = sqlite_insert,
    .load = sqlite_load,
    .each = sqlite_each,
};
