/* cache_guard.h - a table of users, and the guard in front of it.
 * What a function cannot do ends the program with one line and status 2. */
#ifndef CACHE_GUARD_H
#define CACHE_GUARD_H

#include <perhaps.h>
#include <perhaps_cluster.h>

/* ---- database.c: which e-mail addresses are taken ---------------------------------------- */

struct database;

/* 'where' is the path of an SQLite file; postgresql://user@host/name; or "", for a table that
 * is gone at the end.  'create': makes the table if there is none. */
struct database *database_open(const char *where, bool create);
void database_close(struct database *database);

enum query {
    FIND,    /* the address 'value', if somebody has it */
    INSERT,  /* the address 'value', unless somebody has it or was quicker */
    USERS,   /* all addresses */
    MAKE_UP, /* none: inserts so many made-up users */
    QUERIES
};

/* Returns how many addresses the answer has.  'emails' (NULL is allowed) gets them, each with a
 * '\0' behind it; they stay in memory. */
size_t database_query(struct database *database, enum query query, const char *value,
                      struct perhaps_keys *emails);

/* ---- guard.c: which addresses certainly nobody has --------------------------------------- */

/* At every moment a guard must know all addresses of the database: all are added when it is
 * opened, and each new one before it is inserted (main.c says why). */
struct guard {
    const char *where; /* "memory"; a file that the processes of a machine share; or
                          redis://host:port/name, which machines share */
    struct perhaps_options options; /* of one that is made; the secret of any */

    perhaps_filter *filter;   /* in memory or in a file, or else */
    perhaps_cluster *cluster; /* on servers; */
    int64_t silent_until_s;   /* they did not answer, and are not asked before */
};

/* 'create': makes the guard if there is none. */
void guard_open(struct guard *guard, bool create);
void guard_close(struct guard *guard);

/* Sets perhaps[i] to false where nobody has address i, certainly.  Returns false, and sets all
 * to true, if servers do not answer: nobody who exists is ever turned away. */
bool guard_ask(struct guard *guard, const struct perhaps_keys *emails, bool *perhaps);

/* Adds addresses.  were_there[i] (NULL is allowed): perhaps address i was there already. */
void guard_add(struct guard *guard, const struct perhaps_keys *emails, bool *were_there);

#endif
