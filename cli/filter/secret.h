/* secret.h - the hash of a filter that is made or opened, and the file with its secret
 * (--hash, --seed, --key-file). */
#ifndef SECRET_H
#define SECRET_H

#include <perhaps.h>

#include "../options.h"

#define SECRET_NBYTES 16

/* The hash of a filter, as the library takes it.  'chosen' points to 'secret' and 'note', so a
 * struct hashing must stay where it is.  The target has it. */
struct hashing {
    const struct settings *settings;
    struct perhaps_hashing chosen;
    uint8_t secret[SECRET_NBYTES];
    char note[PERHAPS_NOTE_MAX + 1]; /* how lines become keys; of a new filter */
    bool made;                       /* the secret is new, and must be written to its file */
};

/* Returns whether the verb must know the secret of a filter that has one. */
bool needs_secret(const struct settings *settings);

/* Chooses the hash of a filter that is to be made.  Makes a secret if one is asked for and its
 * file does not exist.  Writes nothing yet.  Ends the program if the options do not fit
 * together. */
void hashing_choose(struct hashing *hashing, const struct settings *settings);

/* Reads the secret of a filter that exists, if --key-file is given.  Ends the program if it
 * cannot. */
void hashing_read(struct hashing *hashing, const struct settings *settings);

/* These do nothing unless the secret was made.  hashing_keep() writes it to its file, or ends
 * the program.  When the filter is saved too, hashing_tell() says so, except under --quiet and
 * --json; if the filter could not be saved, hashing_drop() removes the file. */
void hashing_keep(const struct hashing *hashing);
void hashing_tell(const struct hashing *hashing);
void hashing_drop(const struct hashing *hashing);

/* Ends the program if --key-file is given, and the filter 'name', whose hash is given, has no
 * secret. */
void hashing_check(const struct settings *settings, const char *name, const char *hash);

/* Ends the program because the filter 'name' cannot be opened with the secret that was given,
 * or without one. */
_Noreturn void hashing_fail(const struct settings *settings, const char *name);

#endif
