/* held.h - how many keys so many lines hold at a rate: what a plan looks up. */
#ifndef HELD_H
#define HELD_H

#include <stdint.h>

/* What a plan has decided before it counts lines.  Lines together (lines.h) are not among what
 * is looked up. */
struct design {
    double fpr;
    unsigned cells; /* of a word */
    unsigned bands;
};

/* What a number of lines a band holds. */
struct held {
    double keys;    /* with so many different keys in, the fpr is kept: by_load_keeps() */
    unsigned picks; /* of a key in a line, with which most keys are held; 0: no key is */
};

/* Returns how many keys 'band_lines' lines in each band hold; or a little fewer, by some tenths
 * of a per cent, if these lines lie between two numbers for which it was computed.  It is the
 * same in each call, and grows with the lines. */
struct held held_by(const struct design *d, uint64_t band_lines);

/* How many keys are to be held. */
struct needed {
    double about;

    /* Returns how many exactly, which may be fewer with more lines. */
    double (*keys)(void *context, uint64_t band_lines, unsigned picks);
    void *context;
};

/* Returns the fewest lines in a band, 'most' at most, that hold the needed keys, and sets
 * *picks; or returns 0. */
uint64_t held_fewest_lines(const struct design *d, const struct needed *needed, uint64_t most,
                           unsigned *picks);

#endif
