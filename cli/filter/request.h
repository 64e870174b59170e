/* request.h - turns the options of the command line into what the library takes: the options
 * and the plan of a filter that is to be made, and its hash.
 *
 * It stands between the verbs and perhaps_create(), and is also where the verbs ask what a kind
 * can do, since the command line names no kind but two (see request.c). */
#ifndef REQUEST_H
#define REQUEST_H

#include <perhaps.h>

#include "../base/numbers.h"
#include "../options.h"

/* For how many keys a filter is made. */
struct size {
    uint64_t capacity; /* if it grows, what it begins with */
    bool grows;
};

/* The capacity that a filter begins with if it grows and nothing tells how many keys will come:
 * this takes a few hundred KB. */
#define CAPACITY_TO_BEGIN_WITH 65536

/* Returns whether --window is given. */
bool request_window(const struct settings *settings);

/* Returns whether all keys are there at once: --static, or a kind that is built once.  A bit
 * for each integer is as small as keys come. */
bool request_is_static(const struct settings *settings);

/* Returns whether keys will be added or removed later, or counted, by what the options say.  A
 * range of integers has room for all of them. */
bool request_changes_later(const struct settings *settings);

/* Returns whether the filter stores copies of keys, in a kind of fixed size: how much room they
 * need depends on how many of each key there are. */
bool request_stores_copies(const struct settings *settings);

/* Returns whether the filter may begin small and grow: no kind is named, or one that grows. */
bool request_may_grow(const struct settings *settings);

/* Returns the options of the filter for perhaps_create(), but for its hash. */
struct perhaps_options request_options(const struct settings *settings, struct size size);

/* Fills in the options and the plan of the filter, or ends the program if there is none that
 * does what the options ask for.  'name' begins the error message. */
void request_plan(const struct settings *settings, struct size size, const char *name,
                  struct perhaps_options *options, struct perhaps_plan *plan);

/* Returns whether the kind with this name has all these abilities (PERHAPS_CAN_...) by itself,
 * not through its base. */
bool kind_can(const char *name, unsigned abilities);

/* Sets *value to the field with this name of the geometry.  Returns false, and sets *value to
 * 0, if the kind has no such field. */
bool planned_field(const struct perhaps_plan *plan, const char *name, uint64_t *value);

/* Returns whether a filter counts every key that was added.  Bloom kinds and sets do not: they
 * count only keys that were not perhaps there. */
bool counts_all(const perhaps_filter *filter);

/* Returns whether such a filter stores copies of a key if it is asked to, and else is a set. */
bool can_store_copies(const struct perhaps_plan *plan);

/* Returns how many new keys, in expectation, were taken for old ones while 'nnew' keys were
 * found to be new.  The filter counted 'before' keys when that began. */
double expected_unseen(const perhaps_filter *filter, uint64_t before, uint64_t nnew);

/* Returns ", 9.9 bits a key"; or an empty text while less than half of the filter is used,
 * since the number would then tell little. */
struct text bits_of(uint64_t capacity, uint64_t keys, uint64_t memory_nbytes);

/* Returns ", room for 39,000 keys more"; or an empty text for a filter that grows, forgets, is
 * built once or is full. */
struct text room_of(const struct perhaps_plan *plan, uint64_t keys);

/* Returns whether the filter takes hardly any key more, with so many different ones: at most
 * one for each 200. */
bool is_full(const struct perhaps_plan *plan, uint64_t keys);

/* Returns whether the filter has more keys than its rate is kept for, and a higher rate. */
bool is_over(const struct perhaps_stats *stats);
/* Returns "; the rate is now 2 %, above the 1 %"; or an empty text unless 'over'. */
struct text over_of(bool over, double fpr_now, double fpr);

#endif
