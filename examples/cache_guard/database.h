/* database.h - the table of users: who has which e-mail address.
 *
 * A database is a connection, for one thread at a time.  What it cannot do ends the program
 * with a line (fail()), so that a function which returns has done it. */
#ifndef DATABASE_H
#define DATABASE_H

#include <stdbool.h>
#include <stdint.h>

#include "people.h"

struct database;

/* 'where' is postgresql://user@host/name, or else the path of an SQLite file.  'create': the
 * table is made if there is none, and so is the file. */
struct database *database_open(const char *where, bool create);
void database_close(struct database *database);
const char *database_name(const struct database *database); /* "SQLite", "PostgreSQL" */

/* Whether somebody has this address, and who. */
bool database_find(struct database *database, const char *email,
                   char name[NAME_NBYTES_MAX + 1]);

/* Gives the address to this person.  false: somebody has it, or was quicker.  The constraint
 * UNIQUE decides, whoever else is about to do the same. */
bool database_insert(struct database *database, const char *email, const char *name);

/* Inserts made-up persons 0 .. count-1, of whom nobody may be there, in one go. */
void database_load(struct database *database, uint64_t count);

/* Calls meet() with the address of each user. */
typedef void meet_email(void *context, const char *email);
void database_each(struct database *database, meet_email *meet, void *context);

/* ---- For the kinds of databases themselves ----------------------------------------------- */

struct database_kind {
    const char *name;
    struct database *(*open)(const char *where, bool create);
    void (*close)(struct database *database);
    bool (*find)(struct database *database, const char *email, char name[NAME_NBYTES_MAX + 1]);
    bool (*insert)(struct database *database, const char *email, const char *name);
    void (*load)(struct database *database, uint64_t count);
    void (*each)(struct database *database, meet_email *meet, void *context);
};

/* The first member of each kind's own. */
struct database {
    const struct database_kind *kind;
};

extern const struct database_kind sqlite_database, postgres_database;

/* The same words in all of them. */
#define SQL_CREATE                                                                             \
    "CREATE TABLE IF NOT EXISTS users (email TEXT PRIMARY KEY, name TEXT NOT NULL)"
#define SQL_FIND "SELECT name FROM users WHERE email = $1"
#define SQL_INSERT                                                                             \
    "INSERT INTO users (email, name) VALUES ($1, $2) ON CONFLICT (email) DO NOTHING"
#define SQL_EACH     "SELECT email FROM users"
#define SHAPE_WANTED "wanted is users (email UNIQUE, name)"

#endif
