/* database.c - which kind of database it is. */
#include "database.h"

#include <string.h>

#include "scratch.h"

static bool is_postgres(const char *where)
{
    return strncmp(where, "postgresql://", 13) == 0 || strncmp(where, "postgres://", 11) == 0;
}

struct database *database_open(const char *where, bool create)
{
    if (!is_postgres(where))
        return sqlite_database.open(where, create);
#ifdef WITH_POSTGRES
    return postgres_database.open(where, create);
#else
    fail(
        "--database %s: this program was built without PostgreSQL; install libpq-dev and build "
        "it again",
        where);
#endif
}

void database_close(struct database *database)
{
    database->kind->close(database);
}

const char *database_name(const struct database *database)
{
    return database->kind->name;
}

bool database_find(struct database *database, const char *email, char name[NAME_NBYTES_MAX + 1])
{
    return database->kind->find(database, email, name);
}

bool database_insert(struct database *database, const char *email, const char *name)
{
    return database->kind->insert(database, email, name);
}

void database_load(struct database *database, uint64_t count)
{
    database->kind->load(database, count);
}

void database_each(struct database *database, meet_email *meet, void *context)
{
    database->kind->each(database, meet, context);
}
