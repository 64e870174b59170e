/* cache_guard.h - a table of users, and the guard in front of it.
 * A function that fails prints one line and ends the program with status 2. */
#ifndef CACHE_GUARD_H
#define CACHE_GUARD_H

#include <perhaps.h>
#include <perhaps_cluster.h>

/* ---- database.c: which e-mail addresses are taken ---------------------------------------- */

struct database;

/* Opens a database.  'where' is the path of an SQLite file; postgresql://user@host/name; or "",
 * for a table that is gone at the end.  'create' makes the table if there is none. */
struct database *database_open(const char *where, bool create);
void database_close(struct database *database);

enum query {
    FIND,    /* returns the address 'value' if a user has it */
    INSERT,  /* adds a user with the address 'value', and returns it unless it was taken */
    USERS,   /* returns all addresses */
    MAKE_UP, /* adds as many made-up users as the number 'value' says, and returns none */
    QUERIES
};

/* Runs a query, and returns how many addresses it returned.  Appends these to 'emails' (NULL is
 * allowed), each with a '\0' behind it; they stay in memory to the end. */
size_t database_query(struct database *database, enum query query, const char *value,
                      struct perhaps_keys *emails);

/* ---- guard.c: which addresses certainly no user has -------------------------------------- */

/* Invariant: the guard knows all addresses of the database.  So all of them are added when it
 * is opened, and each new one before it is inserted into the database (main.c says why). */
struct guard {
    const char *where; /* "memory"; a file that the processes of a machine share; or
                          redis://host:port/name, which machines share */
    struct perhaps_options options; /* to make a guard; its secret also to open one */

    perhaps_filter *filter;   /* the guard in memory or in a file; else NULL */
    perhaps_cluster *cluster; /* the guard on servers; else NULL */
    int64_t silent_until_s;   /* servers did not answer: they are not asked before this time */
};

/* Opens the guard.  'create' makes one if there is none. */
void guard_open(struct guard *guard, bool create);
void guard_close(struct guard *guard);

/* Sets perhaps[i] to false if certainly no user has address i.  If servers do not answer, sets
 * all to true, so that no user is ever turned away, and returns false. */
bool guard_ask(struct guard *guard, const struct perhaps_keys *emails, bool *perhaps);

/* Adds addresses.  Sets were_there[i] (NULL is allowed) to whether address i was perhaps
 * there already. */
void guard_add(struct guard *guard, const struct perhaps_keys *emails, bool *were_there);

#endif
