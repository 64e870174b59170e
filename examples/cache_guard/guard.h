/* guard.h - the filter in front: which e-mail addresses certainly nobody has.
 *
 * A guard must know every address that is in the database, at every moment: guard_add() comes
 * before database_insert() (signup.c tells why), and guard_add_all() when one is opened.
 *
 * It lies in the memory of this process; or in a file that the processes of a machine share; or
 * on a Redis server or cluster that machines share.  In memory it is for one process alone:
 * nobody else could tell it of new users. */
#ifndef GUARD_H
#define GUARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "database.h"

enum { SECRET_NBYTES = 16 };

struct guard_options {
    const char *where;     /* "memory", a path, or redis://host:port/name */
    uint64_t capacity;     /* users for whom there is room */
    bool grows;            /* on servers: takes more than that */
    double fpr;            /* share of absent addresses that pass, at most */
    const uint8_t *secret; /* 16 bytes that strangers do not know, who choose addresses; NULL:
                              none, and they may find some that pass */
};

enum guard_how {
    GUARD_MAKE,         /* an empty one, where none may be */
    GUARD_OPEN,         /* one that is there */
    GUARD_OPEN_OR_MAKE, /* also beside others who do the same */
};

struct guard;

/* Ends the program with a line (fail()) if that cannot be done. */
struct guard *guard_open(const struct guard_options *options, enum guard_how how);
void guard_close(struct guard *guard);

/* For another thread that asks, and does nothing else, beside this one. */
struct guard *guard_again(struct guard *guard);

/* Removes one that lies in a file or on servers; says so on stderr if it cannot. */
void guard_delete(const struct guard_options *options);

/* false: nobody has this address, certainly.  true: perhaps; also where the servers do not
 * answer: then the database is asked as if there were no guard. */
bool guard_perhaps(struct guard *guard, const char *email);
void guard_perhaps_many(struct guard *guard, const char *const *emails, size_t count,
                        bool *perhaps);

/* Adds an address, and tells whether perhaps somebody had it.  If it cannot be added the
 * program ends: nobody may get an address that the guard does not know. */
bool guard_add(struct guard *guard, const char *email);
void guard_add_many(struct guard *guard, const char *const *emails, size_t count);

/* Adds all users of the database. */
void guard_add_all(struct guard *guard, struct database *database);

/* How many users of the database the guard denies, which must be none; and of how many. */
uint64_t guard_count_denied(struct guard *guard, struct database *database, uint64_t *nusers);

uint64_t guard_nbytes(struct guard *guard);

/* How many questions the servers did not answer; and why, if there are any. */
uint64_t guard_unanswered(const struct guard *guard, const char **problem);

#endif
