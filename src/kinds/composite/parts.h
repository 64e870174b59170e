/* parts.h - what composite kinds share.  The parts of a chain or window are filters of one kind
 * with the same hash, which are asked one after the other. */
#ifndef PARTS_H
#define PARTS_H

#include "../../filter/filter.h"

/* Plans a part: sets *g to the geometry of a filter of kind 'base' for 'capacity' keys and this
 * fpr, with 'options' for the rest.  Keeps g->first.  Returns 0 or an error of
 * perhaps_plan_for(). */
int parts_plan(const struct filter_kind *base, uint64_t capacity, double fpr,
               const struct perhaps_options *options, struct geometry *g);

/* Appends a new, empty part, which is then the newest.  Returns 0; or changes nothing and
 * returns PERHAPS_ERR_MEMORY. */
int parts_append(perhaps_filter *f, const struct filter_kind *base, const struct geometry *g,
                 const struct perhaps_options *options);

/* Append a new, empty part that is like 'model', or a copy of one of another filter with the
 * same hash.  They return 0; or change nothing and return an error of perhaps_create_like(), or
 * PERHAPS_ERR_FULL if the part does not keep its fpr. */
int parts_append_like(perhaps_filter *f, const perhaps_filter *model);
int parts_append_copy(perhaps_filter *f, const perhaps_filter *from);

/* Adds to part 'number' all keys of a filter of the same geometry and hash, with the errors of
 * filter_unite() (filter.h); after one the part is half merged. */
int parts_unite(perhaps_filter *f, size_t number, const perhaps_filter *other);

/* Completes the parts of a filter that was opened or copied.  Returns false if there are none,
 * or if one is not of kind 'base'. */
bool parts_attach(perhaps_filter *f, const struct filter_kind *base);

/* Prefetches what all parts need for these keys. */
void parts_prefetch(const perhaps_filter *f, const struct keyhash *keys, size_t n);

/* Asks the parts from number 'first' on that come before number 'end', the newest of them
 * first, until all keys are found.  Sets answer[i] to whether one of them has key i.  Returns
 * how many answers are true. */
size_t parts_contain(const perhaps_filter *f, size_t first, size_t end,
                     const struct keyhash *keys, const struct keyhash *ahead, size_t n,
                     bool *answer);

/* Adds to a part the keys whose answer is still false, and sets their answers to whether the
 * part had them.  Otherwise works as add() of a kind. */
int parts_add_missing(perhaps_filter *part, const struct keyhash *keys, size_t n,
                      bool unless_present, bool *answer, size_t *done);

/* Returns fill and fpr of all parts together: a key is "perhaps there" if it is in any part. */
struct fill parts_measure(const perhaps_filter *f, uint64_t most_nbytes);

/* Returns the chance that at least one of two independent filters gives a false positive. */
static inline double either(double a, double b)
{
    return a + b - a * b;
}

#endif
