/* geometry.h - the numbers that give a body its meaning, and what counts as one. */
#ifndef GEOMETRY_H
#define GEOMETRY_H

#include <perhaps_plan.h>

struct filter_kind;

/* The numbers that give the body its meaning.  A file stores capacity, fpr and fields, and
 * set_geometry() derives the others from them, and set_limits() the limits, which are 0 in a
 * filter that is only read.  'field' belongs to the kind, in the order of its field_names;
 * fields past the last name are 0. */
struct geometry {
    uint64_t capacity;
    double fpr; /* that was asked */
    uint64_t field[PERHAPS_FIELDS_MAX];
    uint64_t body_nbytes;           /* derived: a multiple of 64 */
    uint64_t key_limit;             /* a limit: how many keys are counted before adds fail */
    uint64_t cell_limit;            /* a limit, counting: how many counters may be in use */
    uint64_t fpr_until;             /* derived: keys up to which fpr is kept; 0: capacity */
    uint64_t extra_nbytes;          /* by plan(): what a new filter takes beside its body */
    const struct filter_kind *base; /* derived, composites: the kind of the parts */

    /* Composites: where plan() leaves the geometry of the first part for begin(), since a plan
     * may take milliseconds; its own 'first' is for the parts of that part.  NULL: nowhere, and
     * begin() plans again.  Always NULL in a filter that is complete. */
    struct geometry *first;
};

enum { WHY_NBYTES = sizeof((struct perhaps_plan *)0)->why };

/* Returns whether a filter with limits may hold this number of keys.  Twice the key limit is
 * allowed: it is computed in floating point, and another version or machine may get a slightly
 * larger one. */
static inline bool geometry_may_hold(const struct geometry *g, uint64_t keys)
{
    return keys / 2 <= g->key_limit;
}

/* Checks and completes g by set_geometry() and set_limits() of the kind, and also refuses a
 * filter that could not take a single key.  Returns 0 or PERHAPS_ERR_LIMIT. */
int geometry_check(const struct filter_kind *kind, struct geometry *g);

/* Derives the limits of a geometry that has passed set_geometry(), if it has none yet.  Returns
 * 0; or PERHAPS_ERR_LIMIT for a filter that could not take a single key. */
int geometry_limit(const struct filter_kind *kind, struct geometry *g);

/* Returns whether a filter of this kind may have this capacity and fpr. */
bool geometry_in_range(const struct filter_kind *kind, uint64_t capacity, double fpr);

/* Plans a filter of this kind for g->capacity, g->fpr and, if it is a composite, g->base.
 * Returns 0 or an error of plan() or set_geometry(). */
int geometry_plan(const struct filter_kind *kind, const struct perhaps_options *options,
                  struct geometry *g, char *why);

/* Fills in *plan from a geometry and the fpr that is predicted for it; leaves 'why' empty. */
void geometry_describe(const struct filter_kind *kind, const struct geometry *g,
                       double predicted, struct perhaps_plan *plan);

/* Return how many fields the geometry of this kind has, and how many of these a small file
 * has. */
unsigned kind_field_count(const struct filter_kind *kind);
unsigned kind_packed_count(const struct filter_kind *kind);

#endif
