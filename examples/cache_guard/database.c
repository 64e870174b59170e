/* database.c - a table of users, in an SQLite file or a PostgreSQL database. */
#include <err.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#include "cache_guard.h"

#ifdef WITH_POSTGRES
#include <libpq-fe.h>
#endif

/* SQL that both databases understand; the queries in the order of enum query. */
static const char create_table[] = "CREATE TABLE IF NOT EXISTS users (email TEXT PRIMARY KEY)";
static const char *const queries[QUERIES] = {
    [FIND] = "SELECT email FROM users WHERE email = $1",
    [INSERT] =
        "INSERT INTO users (email) VALUES ($1) ON CONFLICT (email) DO NOTHING RETURNING email",
    [USERS] = "SELECT email FROM users WHERE email IS NOT NULL",
    [MAKE_UP] = "INSERT INTO users (email) WITH RECURSIVE number(i) AS "
                "(SELECT 1 UNION ALL SELECT i + 1 FROM number WHERE i < CAST($1 AS integer)) "
                "SELECT 'user.' || i || '@mail.example' FROM number",
};

struct database {
    const char *where;
    sqlite3 *sqlite;
    sqlite3_stmt *statement[QUERIES];
#ifdef WITH_POSTGRES
    PGconn *postgres; /* NULL: it is SQLite */
#endif
};

/* Appends a copy of an address to 'emails', which may be NULL.  The array always has room for a
 * power of two of addresses. */
static void keep(struct perhaps_keys *emails, const char *email)
{
    if (!emails)
        return;
    size_t n = emails->count++;
    struct perhaps_key *each = (struct perhaps_key *)emails->each;
    if ((n & (n - 1)) == 0)
        emails->each = each = realloc(each, (n ? 2 * n : 1) * sizeof *each);
    char *copy = strdup(email);
    if (!each || !copy)
        err(2, "users");
    each[n] = (struct perhaps_key){ copy, strlen(copy) };
}

static void sqlite_fail(const struct database *d)
{
    errx(2, "database %s: %s", d->where, sqlite3_errmsg(d->sqlite));
}

/* Sets the journal mode "wal", in which readers do not wait for writers, when it makes the
 * table.  If two processes set it at once, one may fail, but then the other has set it.  A
 * table that is there already keeps its mode. */
static void sqlite_open(struct database *d, bool create)
{
    int flags = SQLITE_OPEN_READWRITE | (create ? SQLITE_OPEN_CREATE : 0);
    if (sqlite3_open_v2(d->where, &d->sqlite, flags, NULL))
        sqlite_fail(d);
    sqlite3_busy_timeout(d->sqlite, 30000); /* milliseconds, while another process writes */
    if (create && sqlite3_exec(d->sqlite, "SELECT 1 FROM users LIMIT 0", NULL, NULL, NULL)) {
        sqlite3_exec(d->sqlite, "PRAGMA journal_mode = wal", NULL, NULL, NULL);
        if (sqlite3_exec(d->sqlite, create_table, NULL, NULL, NULL))
            sqlite_fail(d);
    }
    sqlite3_exec(d->sqlite, "PRAGMA synchronous = normal; PRAGMA cache_size = -65536", NULL,
                 NULL, NULL);
    for (int i = 0; i < QUERIES; i++) /* INSERT fails here unless addresses are UNIQUE */
        if (sqlite3_prepare_v2(d->sqlite, queries[i], -1, &d->statement[i], NULL))
            sqlite_fail(d);
}

static size_t sqlite_query(struct database *d, enum query query, const char *value,
                           struct perhaps_keys *emails)
{
    sqlite3_stmt *statement = d->statement[query];
    size_t count = 0;
    int result;
    sqlite3_bind_text(statement, 1, value, -1, SQLITE_STATIC);
    for (; (result = sqlite3_step(statement)) == SQLITE_ROW; count++)
        keep(emails, (const char *)sqlite3_column_text(statement, 0));
    if (result != SQLITE_DONE)
        sqlite_fail(d);
    sqlite3_reset(statement);
    return count;
}

#ifdef WITH_POSTGRES
/* Prints the first line of the server's message, but not the URL, which may hold a password. */
static void postgres_fail(const struct database *d)
{
    const char *message = PQerrorMessage(d->postgres);
    errx(2, "database postgresql: %.*s", (int)strcspn(message, "\n"), message);
}

static size_t postgres_query(struct database *d, const char *sql, const char *value,
                             struct perhaps_keys *emails)
{
    PGresult *rows = PQexecParams(d->postgres, sql, value ? 1 : 0, NULL, &value, NULL, NULL, 0);
    ExecStatusType status = PQresultStatus(rows);
    int count = PQntuples(rows);
    if (status != PGRES_TUPLES_OK && status != PGRES_COMMAND_OK)
        postgres_fail(d);
    for (int i = 0; i < count; i++)
        keep(emails, PQgetvalue(rows, i, 0));
    PQclear(rows);
    return (size_t)count;
}

/* If two processes create the table at once, one may fail.  It is there then, so the second
 * attempt succeeds. */
static void postgres_open(struct database *d, bool create)
{
    d->postgres = PQconnectdb(d->where);
    if (PQstatus(d->postgres) != CONNECTION_OK)
        postgres_fail(d);
    postgres_query(d, "SET client_min_messages = error", NULL, NULL);
    if (create) {
        PQclear(PQexec(d->postgres, create_table));
        postgres_query(d, create_table, NULL, NULL);
    }
}
#endif

struct database *database_open(const char *where, bool create)
{
    struct database *d = calloc(1, sizeof *d);
    if (!d)
        err(2, "database");
    d->where = where;
    if (strncmp(where, "postgresql://", 13) != 0)
        sqlite_open(d, create);
    else
#ifdef WITH_POSTGRES
        postgres_open(d, create);
#else
        errx(2, "this program was built without PostgreSQL: it needs libpq-dev");
#endif
    return d;
}

size_t database_query(struct database *d, enum query query, const char *value,
                      struct perhaps_keys *emails)
{
#ifdef WITH_POSTGRES
    if (d->postgres)
        return postgres_query(d, queries[query], value, emails);
#endif
    return sqlite_query(d, query, value, emails);
}

void database_close(struct database *d)
{
#ifdef WITH_POSTGRES
    PQfinish(d->postgres);
#endif
    for (int i = 0; i < QUERIES; i++)
        sqlite3_finalize(d->statement[i]);
    sqlite3_close(d->sqlite);
    free(d);
}
