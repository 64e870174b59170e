/* options.h - keyword arguments as the options of the library. */
#ifndef OPTIONS_H
#define OPTIONS_H

#include <perhaps_build.h>

#include "python.h"

/* What the arguments say.  Pointers in 'options' point to the arguments, and to 'secret'. */
struct wishes {
    struct perhaps_options options;
    struct perhaps_build_options how;
    bool removable, grow, counts, fixed; /* needs, before they are put together */
    bool has_fpr, has_secret;
    const char *hash; /* as it was named; NULL: it was not */
};

/* Who asks: not all take all arguments. */
enum asker { ASKER_FILTER, ASKER_PLAN, ASKER_BUILDER };

/* Reads the arguments.  Returns whether they are right; otherwise an exception is set. */
bool options_take(PyObject *args, PyObject *kwargs, enum asker asker, struct wishes *wishes);

/* Reads a secret: None, or 16 bytes, or True for one at random if 'may_make' says so.
 * Points to the object's bytes.  Returns whether it is one of these. */
bool secret_take(PyObject *secret, bool may_make, struct perhaps_hashing *hashing);

#endif
