/* postgres.c - users in a PostgreSQL database. */
#include <libpq-fe.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "database.h"
#include "scratch.h"

struct postgres {
    struct database database;
    PGconn *connection;
};

static struct postgres *postgres_of(struct database *database)
{
    return (struct postgres *)database;
}

/* The first line of what the server says, without its colour. */
static void complain(const struct postgres *p, const char *more)
{
    const char *message = PQerrorMessage(p->connection);
    const char *host = PQhost(p->connection), *name = PQdb(p->connection);
    fail("database %s on %s: %.*s%s", name ? name : "?", host ? host : "?",
         (int)strcspn(message, "\n"), message, more);
}

/* Returns a result that has the status, or does not return. */
static PGresult *expect(const struct postgres *p, PGresult *result, ExecStatusType status,
                        const char *more)
{
    if (PQresultStatus(result) != status) {
        PQclear(result);
        complain(p, more);
    }
    return result;
}

static void run(struct postgres *p, const char *sql)
{
    PQclear(expect(p, PQexec(p->connection, sql), PGRES_COMMAND_OK, ""));
}

/* That a table exists already is told as a notice. */
static void ignore_notice(void *context, const char *message)
{
    (void)context, (void)message;
}

/* Two that make it at once may both find it missing, and one fails: then it is there. */
static void create_table(struct postgres *p)
{
    PGresult *result = PQexec(p->connection, SQL_CREATE);
    if (PQresultStatus(result) != PGRES_COMMAND_OK) {
        PQclear(result);
        result = expect(p, PQexec(p->connection, SQL_CREATE), PGRES_COMMAND_OK, "");
    }
    PQclear(result);
}

/* Statements are planned when they are used; EXPLAIN plans at once, and fails where addresses
 * need not be unique. */
static void prepare(struct postgres *p)
{
    const char *more = "; in table users " SHAPE_WANTED;
    PQclear(
        expect(p, PQprepare(p->connection, "find", SQL_FIND, 1, NULL), PGRES_COMMAND_OK, more));
    PQclear(expect(p, PQprepare(p->connection, "insert", SQL_INSERT, 2, NULL), PGRES_COMMAND_OK,
                   more));
    PQclear(expect(p, PQexec(p->connection, "EXPLAIN EXECUTE insert('', '')"), PGRES_TUPLES_OK,
                   more));
}

static struct database *postgres_open(const char *where, bool create)
{
    struct postgres *p = memory_zeroed(sizeof *p);
    p->database.kind = &postgres_database;
    p->connection = PQconnectdb(where);
    if (PQstatus(p->connection) != CONNECTION_OK)
        complain(p, "");
    PQsetNoticeProcessor(p->connection, ignore_notice, NULL);
    if (create)
        create_table(p);
    prepare(p);
    return &p->database;
}

static void postgres_close(struct database *database)
{
    PQfinish(postgres_of(database)->connection);
    free(database);
}

static bool postgres_find(struct database *database, const char *email,
                          char name[NAME_NBYTES_MAX + 1])
{
    struct postgres *p = postgres_of(database);
    const char *values[] = { email };
    PGresult *result =
        expect(p, PQexecPrepared(p->connection, "find", 1, values, NULL, NULL, 0),
               PGRES_TUPLES_OK, "");
    bool found = PQntuples(result) > 0;
    if (found)
        snprintf(name, NAME_NBYTES_MAX + 1, "%s", PQgetvalue(result, 0, 0));
    PQclear(result);
    return found;
}

static bool postgres_insert(struct database *database, const char *email, const char *name)
{
    struct postgres *p = postgres_of(database);
    const char *values[] = { email, name };
    PGresult *result =
        expect(p, PQexecPrepared(p->connection, "insert", 2, values, NULL, NULL, 0),
               PGRES_COMMAND_OK, "");
    bool inserted = strcmp(PQcmdTuples(result), "1") == 0;
    PQclear(result);
    return inserted;
}

/* COPY: one insert at a time would wait for the server each time. */
static void postgres_load(struct database *database, uint64_t count)
{
    struct postgres *p = postgres_of(database);
    PQclear(expect(p, PQexec(p->connection, "COPY users (email, name) FROM STDIN"),
                   PGRES_COPY_IN, ""));
    for (uint64_t i = 0; i < count; i++) {
        struct person person;
        char line[sizeof person + 2];
        make_up(&person, i);
        int nbytes = snprintf(line, sizeof line, "%s\t%s\n", person.email, person.name);
        if (PQputCopyData(p->connection, line, nbytes) != 1)
            complain(p, "");
    }
    if (PQputCopyEnd(p->connection, NULL) != 1)
        complain(p, "");
    PQclear(expect(p, PQgetResult(p->connection), PGRES_COMMAND_OK, ""));
    while (PQgetResult(p->connection))
        ;
    run(p, "ANALYZE users");
}

/* Row by row, so that they need not all lie in memory. */
static void postgres_each(struct database *database, meet_email *meet, void *context)
{
    struct postgres *p = postgres_of(database);
    PGresult *result;
    if (!PQsendQuery(p->connection, SQL_EACH) || !PQsetSingleRowMode(p->connection))
        complain(p, "");
    while ((result = PQgetResult(p->connection)) != NULL) {
        ExecStatusType status = PQresultStatus(result);
        if (status != PGRES_SINGLE_TUPLE && status != PGRES_TUPLES_OK)
            complain(p, "");
        if (PQntuples(result) > 0 && !PQgetisnull(result, 0, 0))
            meet(context, PQgetvalue(result, 0, 0));
        PQclear(result);
    }
}

const struct database_kind postgres_database = {
    .name = "PostgreSQL",
    .open = postgres_open,
    .close = postgres_close,
    .find = postgres_find,
    .insert = postgres_insert,
    .load = postgres_load,
    .each = postgres_each,
};
