/* same.h - compares the key of a line with that of another one, which lies in the texts. */
#ifndef SAME_H
#define SAME_H

#include "../input/texts.h"

/* For one thread at a time. */
struct same {
    const struct texts *texts;
    const struct key_form *form;
    struct room room; /* for a key that is not a piece of its line */
    bool starved;     /* there was no memory for that: what was answered is worth nothing */
};

/* Returns whether the line at the place has this key.  'same' is a struct same. */
bool same_key(void *same, uint64_t place, const struct perhaps_key *key);

/* Returns what has gone wrong while lines were compared: an enum perhaps_error, or 0.  If a
 * file was cut off, it is PERHAPS_ERR_IO. */
int same_error(const struct same *same);

#endif
