/* service.h - the verbs signup and check: one database and one guard, which others use, too. */
#ifndef SERVICE_H
#define SERVICE_H

#include <stdint.h>

struct service {
    const char *database;
    const char *guard; /* NULL: a file beside the SQLite file */
    const char *key_file;
    double fpr;        /* of a guard that is made */
    uint64_t capacity; /* of a guard that is made in a file; 0: twice the users */
};

/* Return the exit status: 0, or 1 if the guard denies a user. */
int serve_signups(const struct service *service);
int check_guard(const struct service *service);

#endif
