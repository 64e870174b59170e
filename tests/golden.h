/* golden.h - the filters that are frozen in tests/golden/: how each is made.  A file there is
 * replaced only together with the format version; or where a kind may choose a place for an
 * entry and chooses better than before, which changes bytes, but not what they mean. */
#ifndef GOLDEN_H
#define GOLDEN_H

#include <stdio.h>

#include "perhaps.h"

enum { GOLDEN_KEYS = 100, GOLDEN_KEY_NBYTES = 20 };

/* Writes "golden key 00000042", with the zero behind it. */
static inline void golden_key(unsigned number, char key[GOLDEN_KEY_NBYTES])
{
    snprintf(key, GOLDEN_KEY_NBYTES, "golden key %08u", number);
}

/* A hundred keys, one by one; then a removal that finds nothing, where that is counted. */
static inline int golden_fill(perhaps_filter *f)
{
    char key[GOLDEN_KEY_NBYTES];
    int error = 0;
    for (unsigned i = 0; i < GOLDEN_KEYS && !error; i++) {
        golden_key(i, key);
        error = perhaps_add(f, key, GOLDEN_KEY_NBYTES - 1);
    }
    golden_key(GOLDEN_KEYS, key);
    if (!error && !perhaps_contains(f, key, GOLDEN_KEY_NBYTES - 1))
        perhaps_remove(f, key, GOLDEN_KEY_NBYTES - 1);
    return error;
}

/* Returns what perhaps_create() or perhaps_add() do. */
static inline int golden_make(const struct perhaps_kind *kind, perhaps_filter **filter)
{
    struct perhaps_options options = {
        .capacity = 2 * GOLDEN_KEYS, .fpr = 0.001, .kind = kind->name, .hashing = { .seed = 42 }
    };
    int error = perhaps_create(&options, filter);
    return error ? error : golden_fill(*filter);
}

#endif
