/* perhaps_plan.h - what a filter will take, which kinds there are, and what a filter can do.
 *
 *     struct perhaps_plan plan;
 *     if (!perhaps_plan_for(&options, &plan))
 *         printf("%s: %.1f bits a key, since %s\n", plan.kind, plan.bits_per_key, plan.why);
 */
#ifndef PERHAPS_PLAN_H
#define PERHAPS_PLAN_H

#include <perhaps.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PERHAPS_CAPACITY_MAX (UINT64_C(1) << 48)
#define PERHAPS_FPR_MIN      1e-15
#define PERHAPS_COUNT_MAX    15 /* a count of 'counting' that says: so often or more */
#define PERHAPS_LAYERS_MAX   64 /* of a chain */

/* How many copies a key may have at most ('strided' holds 4), and how many of each key are as
 * good as sure to find room where a filter grows (over 'strided' 2).  Keys that look alike, by
 * the chance of the fpr, share them. */
#define PERHAPS_COPIES_MAX  8
#define PERHAPS_COPIES_SURE 4

/* ---- More of the options --------------------------------------------------------------- */

/* preference.  elastic: PERHAPS_PREFER_FAST takes huge pages early, and
 * PERHAPS_PREFER_COMPACT avoids them (with them one add in 700,000 waits a fraction of a
 * millisecond).
 *
 * base.  NULL: blocked, or cuckoo if 'needs' asks for more; for a window that goes by time, and
 * so must grow, chain.
 *
 * blocked.together.  One read fetches the cache lines of a key, and a key sets fewer bits: for
 * bodies on a disk or a server, where each read and each bit costs much.  Takes 3 % more memory
 * than one line, and 5 to 20 % more than several lines apart.
 *
 * chain.factor.  How many times the capacity of the layer before it a layer has: 1 to 32768.  A
 * smaller factor takes less memory and makes more layers, and every query asks all layers.
 * With the factor 1 the capacity doubles from the 33rd layer on.
 *
 * elastic.fpr_until.  The filter takes more keys, and perhaps_stats_of() tells what the fpr
 * becomes.
 *
 * window.  It remembers at least the last 'keys' different keys, or the keys of the last 'time'
 * units of perhaps_advance(); if both are 0, the keys since the last generations - 1 calls of
 * perhaps_rotate().  A window consists of generations, and forgets the oldest generation as a
 * whole when a new one begins: so it remembers up to 1/(generations - 1) more.
 *
 * against.others.  The bits of a key are chosen for this number of keys that
 * perhaps_builder_add_others() gives.
 *
 * against.group_nbytes.  The keys of both sides come in groups, such as certificates by issuer,
 * of which some are listed more often than others: the first so many bytes of a key (or all, if
 * it has fewer) are its group.  Then bits are chosen for each group, for the counts that came
 * ('others' does not matter); a group of which no key is listed, or each, takes none.  With an
 * fpr above 1/2 a group may be stored by the keys that are not listed, and nothing is promised
 * for keys of neither side; otherwise such keys have that fpr, and it takes more bits.  The
 * hash is PERHAPS_HASH_GROUPED then: hashing.hash must be PERHAPS_HASH_XXH3, and the lowest
 * byte of the seed becomes the number of bytes.
 *
 * bitmap.  At most 2^48 integers, from low to high (low <= high, and 1 <= high): 1.25 GB for
 * 10^10.  There is no error, so 'fpr' may be 0, and 'capacity', which may be 0, too, is taken
 * for all of the range.  If high is not 0 and the options name no kind, the kind is bitmap.
 *
 * hashing.hash.  PERHAPS_HASH_XXH3 has 128 bits; but without a seed of the caller's
 * perhaps_create() takes PERHAPS_HASH_XXH3_64, which is faster, if the largest set that the
 * filter is planned for makes no difference.  With a hash of 64 bits, n keys make n / 2^64 more
 * false positives: keys with equal hashes.  That is 5e-8 for 10^12 keys.
 *
 * PERHAPS_HASH_INTEGER hashes nothing.  A key is decimal text: digits without leading zeros,
 * before which one '+' may stand, of a number below 2^64.  Any other text, "007", " 7" or "-7",
 * is no key.  A program that has integers makes struct perhaps_hashed of them: the first 8
 * bytes are the integer, little-endian, and the others zero. */

/* "xxh3", "sip", "none", "custom", "xxh3-64", "none-64", "integer" or "xxh3-grouped"; NULL for
 * a number that is no hash. */
PERHAPS_API const char *perhaps_hash_name(enum perhaps_hash hash);

/* Returns the only length of keys that the hash takes, in bytes, or 0 if it takes any. */
PERHAPS_API size_t perhaps_hash_takes(enum perhaps_hash hash);

/* Returns the hash of a filter. */
PERHAPS_API enum perhaps_hash perhaps_hash_of(const perhaps_filter *filter);

/* ---- Plan ------------------------------------------------------------------------------ */

/* Chooses kind and geometry, and allocates nothing.  Returns 0; PERHAPS_ERR_ARGUMENT for a
 * number out of range or an unknown kind; PERHAPS_ERR_UNSUPPORTED if no kind, or not the named
 * one, meets the needs; PERHAPS_ERR_LIMIT for an fpr or size that the kind cannot reach. */
PERHAPS_API int perhaps_plan_for(const struct perhaps_options *options,
                                 struct perhaps_plan *plan);

/* Looks for a stricter fpr that takes fewer bits than that of the options: there may be one
 * just below an fpr where a kind changes its geometry, for example from one cache line a key to
 * two.  Returns whether one takes at least a hundredth less, and sets *plan to the plan with
 * the fewest bits; otherwise *plan is that of perhaps_plan_for().  As slow as 20 plans. */
PERHAPS_API bool perhaps_plan_cheaper(const struct perhaps_options *options,
                                      struct perhaps_plan *plan);

struct perhaps_kind {
    const char *name;
    const char *summary; /* one line: what it is for */
    unsigned abilities;  /* set of enum perhaps_ability */
};

/* Returns the kind of this index, from 0 on, in order of preference; NULL behind the last. */
PERHAPS_API const struct perhaps_kind *perhaps_kind_at(size_t index);

/* ---- What a filter is and can do ------------------------------------------------------- */

/* Returns the kind of a filter.  A chain or window may be able to do what its base can, too. */
PERHAPS_API const struct perhaps_kind *perhaps_kind_of(const perhaps_filter *filter);

/* Returns what this filter can do, a set of enum perhaps_ability: what its kind can; a chain
 * what its base can, too; and one that was made without the needs PERHAPS_CAN_REMOVE and
 * PERHAPS_CAN_COUNT can neither, whatever the kind (PERHAPS_ERR_SET). */
PERHAPS_API unsigned perhaps_abilities_of(const perhaps_filter *filter);

/* How exact the numbers of perhaps_stats_of() are.  'keys' is a count.  Filters that store
 * copies, and what a builder made, count each key.  All others count a key if it was not
 * "perhaps there" when it was added: so of n different keys about as many are missing as the
 * mean fpr says, and 'keys' is the number of adds that found a key to be new.  'keys_different'
 * has the missing ones, too, in expectation.  (Of a window it is 'keys', since nobody knows
 * what it has forgotten.)
 *
 * How far off.  With s = sqrt(keys_different * fpr_now + 1) / (1 - fpr_now), 'keys_different'
 * is within 7 s + 1 of the true number, for all seeds but one in 10^9; as the filter was
 * filled, and also after it was copied, saved and opened.  After perhaps_merge() of sets, and
 * where 'keys_estimated' says so, the number comes from the bits, and is within 7 (s +
 * sqrt(keys_different) / 2) + 1; after perhaps_intersect(), too, but it may be more by the
 * keys that one of the two alone had, up to those of the smaller one.  Merged filters that
 * store copies, cleared ones, and removals are exact.  A chain is as exact as its layers are.
 *
 * Blocked and Bloom filters that several threads filled (other than blocked ones with one line
 * a key), that several processes wrote in place, or that were merged, intersected or made
 * smaller have 'keys_estimated'.  A key that several writers add at the same moment may be
 * counted by each: so the number may be above the truth by 6.5 standard deviations of what the
 * bits tell, and one percent more for bodies above 1 MiB, of which a sample is read.  (In
 * place each process may count 512 keys too few.)  Such a filter is full when its bits say so:
 * no key is refused because others were counted twice.  For that, the last adds read all of
 * the body a few times (measured: 1.3 s each for 750 MB).
 *
 * In all of them, capacity - keys_different different keys more fit into a filter that does not
 * grow.
 *
 * perhaps_stats_of() reads about 1 MiB of the body; the first call on a chain or window may
 * take some milliseconds more, since it plans a part again.  Measured for large bodies:
 * 'fpr_now' is true to 1 % at an fpr of 1 %, and to 4 % at 1e-6. */

/* Fills in *stats for one part of a filter: a layer of a chain, a generation of a window, one
 * of the two of against; the newest is 0.  Returns false, and leaves *stats alone, if there is
 * no such part. */
PERHAPS_API bool perhaps_part(const perhaps_filter *filter, size_t index,
                              struct perhaps_stats *stats);

/* Returns the fpr that the filter has, in expectation, when it holds 'keys' keys. */
PERHAPS_API double perhaps_predict_fpr(const perhaps_filter *filter, uint64_t keys);

#ifdef __cplusplus
}
#endif
#endif
