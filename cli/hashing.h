/* hashing.h - the hash of a filter as the command line asks for it, and its secret. */
#ifndef HASHING_H
#define HASHING_H

#include <perhaps.h>

#include "options.h"
#include "secret.h"

/* It points into itself, so it must stay where it is. */
struct hashing {
    struct perhaps_hashing chosen; /* as the library takes it */
    uint8_t secret[SECRET_NBYTES];
    bool made; /* the secret is new */
};

/* All below return 0, or the exit status, having complained. */

/* That of a filter that is to be made.  A secret is made if there is no file of it yet. */
int hashing_choose(struct hashing *hashing, const struct settings *settings);

/* That of a filter that is there: the secret, if one is given. */
int hashing_read(struct hashing *hashing, const struct settings *settings);

/* Writes a secret that was made to its file; then tells so, unless it shall be quiet; or takes
 * the file away again. */
int hashing_keep(const struct hashing *hashing, const struct settings *settings);
void hashing_tell(const struct hashing *hashing, const struct settings *settings);
void hashing_drop(const struct hashing *hashing, const struct settings *settings);

/* Says of the filter 'name' that it cannot be opened with the secret that is given, or without
 * one. */
int hashing_complain(const struct settings *settings, const char *name);

#endif
