/* parts.h - what the composite kinds share: filters under one hash,
 * asked one after the other. */
#ifndef PARTS_H
#define PARTS_H

#include "../filter/filter.h"

/* Plans a part: of this kind, for so many keys at this rate; the rest as 'options' say.
 * Returns 0 or an error of perhaps_plan_for(). */
int parts_plan(const struct filter_kind *base, uint64_t capacity, double fpr,
               const struct perhaps_options *options, struct geometry *g);

/* Adds a new, empty part: now the newest.  Returns 0 or PERHAPS_ERR_MEMORY. */
int parts_append(perhaps_filter *f, const struct filter_kind *base, const struct geometry *g,
                 const struct perhaps_options *options);

/* Makes filters that were opened or copied the parts of f.  false: one is not of this kind, or
 * there is none. */
bool parts_attach(perhaps_filter *f, const struct filter_kind *base);

void parts_prefetch(const perhaps_filter *f, const struct keyhash *keys, size_t n);

/* Asks the first 'count' parts, the newest of them first, until one has found all keys.
 * Returns how many answers are true. */
size_t parts_contain(const perhaps_filter *f, size_t count, const struct keyhash *keys,
                     const struct keyhash *ahead, size_t n, bool *answer);

/* Adds those keys to a part whose answer is not true yet, and sets the answers of those that it
 * had.  As add() of a kind. */
int parts_add_missing(perhaps_filter *part, const struct keyhash *keys, size_t n,
                      bool unless_present, bool *answer, size_t *done);

/* The rate and fill of all: a key is taken for present if one of them does. */
struct fill parts_measure(const perhaps_filter *f, uint64_t most_nbytes);

/* The chance that one of two independent filters is wrong. */
static inline double either(double a, double b)
{
    return a + b - a * b;
}

#endif
