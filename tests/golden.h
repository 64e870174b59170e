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

/* A hundred keys, one by one, three units of time apart; then a removal that finds nothing,
 * where that is counted. */
static inline int golden_fill(perhaps_filter *f)
{
    char key[GOLDEN_KEY_NBYTES];
    int error = 0;
    for (unsigned i = 0; i < GOLDEN_KEYS && !error; i++) {
        golden_key(i, key);
        perhaps_advance(f, 3 * i);
        error = perhaps_add(f, key, GOLDEN_KEY_NBYTES - 1);
    }
    golden_key(GOLDEN_KEYS, key);
    if (!error && !perhaps_contains(f, key, GOLDEN_KEY_NBYTES - 1))
        perhaps_remove(f, key, GOLDEN_KEY_NBYTES - 1);
    return error;
}

/* One of each kind, and at last a window of chains and a blocked filter with two lines
 * together.  What grows has to; a window has been rotated twice, and has lost nothing.  Returns
 * false from the first index that is none. */
static inline bool golden_options(size_t index, struct perhaps_options *options,
                                  const char **name)
{
    const struct perhaps_kind *kind = perhaps_kind_at(index);
    bool of_chains = !kind && perhaps_kind_at(index - 1);
    bool together = !kind && !of_chains && perhaps_kind_at(index - 2);
    *options = (struct perhaps_options){ .capacity = 2 * GOLDEN_KEYS,
                                         .fpr = 0.001,
                                         .hashing = { .seed = 42 } };
    *name = options->kind = kind ? kind->name : together ? "blocked" : "window";
    if (together) {
        *name = "blocked-together";
        options->preference = PERHAPS_PREFER_COMPACT;
        options->blocked.together = true;
    } else if (of_chains) {
        *name = "window-of-chains";
        options->capacity = GOLDEN_KEYS / 5;
        options->window.time = 4 * GOLDEN_KEYS;
    } else if (kind && kind->abilities & PERHAPS_CAN_FORGET) {
        options->window.keys = GOLDEN_KEYS * 8 / 5;
    } else if (kind && kind->abilities & PERHAPS_CAN_GROW) {
        options->capacity = GOLDEN_KEYS / 5;
    }
    return kind || of_chains || together;
}

#endif
