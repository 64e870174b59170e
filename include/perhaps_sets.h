/* perhaps_sets.h - two filters: union, intersection, estimates; and a smaller filter of the
 * same keys. */
#ifndef PERHAPS_SETS_H
#define PERHAPS_SETS_H

#include <perhaps_file.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Two filters ------------------------------------------------------------------- */

/* Adds all keys of 'other', which may not be 'filter', to 'filter'.  Returns 0;
 * PERHAPS_ERR_MISMATCH unless kind, geometry, hash, and seed or secret are the same, and both
 * store copies of keys or neither does: what a set has may be another key's, of which no copy
 * may be removed; PERHAPS_ERR_FULL or PERHAPS_ERR_COPIES if the union would break the fpr or
 * has no room; PERHAPS_ERR_MEMORY, since it makes a copy; PERHAPS_ERR_READ_ONLY; or
 * PERHAPS_ERR_DAMAGED if 'other' is mapped from a damaged file.  On failure 'filter' is
 * unchanged.  In Bloom kinds the number of keys of the union is an estimate, in which keys that
 * both held are counted once; so is that of two sets of the kind counting.
 *
 * Of two chains, layers of the same number are united, and a layer that only 'other' has is
 * copied.  Two layers of which each is more than half full rarely fit into one: chains can be
 * merged while they are small, or if they began as copies of each other.  A key that both held
 * in different layers is counted twice.
 *
 * No call makes one layer of a chain's layers: a bit or a fingerprint does not tell where its
 * key would lie there.  Build a new filter from the keys. */
PERHAPS_API int perhaps_merge(perhaps_filter *filter, const perhaps_filter *other);

#define PERHAPS_DIFFERENCE_NBYTES 512

/* Tells in what two filters differ that can be neither merged nor intersected, by the names of
 * the options and with the values of both: "seed 5 and 7", or "capacity 1000 and 2000, fpr 0.01
 * and 0.001"; of a set and a filter that stores copies "copies none and stored".  Where no
 * option tells it, names of perhaps_plan.field_name do.  Secrets are not shown.  Returns
 * whether they differ, and if so writes the text, with a NUL at its end, and otherwise an empty
 * one; 'text' may be NULL.  For perhaps_compare(), which takes some filters of different
 * capacity, too, it tells what to make the same. */
PERHAPS_API bool perhaps_difference(const perhaps_filter *a, const perhaps_filter *b,
                                    char text[PERHAPS_DIFFERENCE_NBYTES]);

/* Keeps of 'filter' only the keys that 'other', which may not be 'filter', has as well.  No key
 * that was added to both is lost.  The fpr, from the actual bits, is then at most the smaller
 * one of the two filters; of the keys that only one of them had, some may stay "perhaps".  A
 * kind that stores copies keeps of each key as many as the filter that had fewer.  Takes no
 * memory.
 *
 * The filter keeps its geometry, and the fpr that was asked of it holds for later adds as
 * before.  In Bloom kinds the number of keys of perhaps_stats_of() becomes the one that would
 * set as many bits as are left (counting: as many counts).  That is more than both had in
 * common, since bits meet by chance, and at most the smaller of the two numbers before.
 * perhaps_compare() estimates how many keys both have.
 *
 * For bitmap, blocked, bloom, counting, cuckoo and strided.  Returns 0; PERHAPS_ERR_UNSUPPORTED
 * for other kinds (in chains and windows a key may lie in another part of 'other' than of
 * 'filter'); PERHAPS_ERR_MISMATCH as perhaps_merge(); PERHAPS_ERR_ARGUMENT;
 * PERHAPS_ERR_READ_ONLY; PERHAPS_ERR_DAMAGED as perhaps_merge().  On failure 'filter' is
 * unchanged. */
PERHAPS_API int perhaps_intersect(perhaps_filter *filter, const perhaps_filter *other);

/* A number that chance decided about, and its standard error: the true number is within one
 * error of 'value' in two of three cases, and within two in 19 of 20. */
struct perhaps_estimate {
    double value;
    double error;
};

/* Two sets of keys, A and B. */
struct perhaps_comparison {
    struct perhaps_estimate a, b;    /* how many different keys each has */
    struct perhaps_estimate either;  /* how many their union has */
    struct perhaps_estimate both;    /* how many their intersection has */
    struct perhaps_estimate a_in_b;  /* which share of the keys of A is in B; 0 if A has none */
    struct perhaps_estimate b_in_a;  /* the same for B */
    struct perhaps_estimate jaccard; /* both / either, the similarity; 0 if there are no keys */
    uint64_t reserved[PERHAPS_RESERVED];
};

/* Estimates how many keys two filters have, and have in common, from their bits alone: not from
 * the counts of keys, which are estimates themselves after a merge.  Copies of a key count
 * once.  A bitmap is exact, and its errors are 0.  In other kinds the errors follow from the
 * fill: they are smallest for large, half full filters, and where the sets are nearly the same
 * or nearly without common keys.  (They are those of a normal distribution if a few hundred
 * keys and more are in.)  If all bits are set, the number is a lower bound and its error is
 * INFINITY.  All numbers are 0 or more, and 'both' is at most the smaller set.
 *
 * The filters need the same kind, geometry, hash, and seed or secret.  Blocked, bloom and
 * counting ones may differ in their number of lines: both are then read as if they had been
 * made smaller to a common number (see perhaps_shrink()); the errors grow with what is lost.
 *
 * For bitmap, blocked, bloom, counting, cuckoo and strided.  Reads both bodies, and takes no
 * memory.
 * Returns 0; PERHAPS_ERR_UNSUPPORTED for other kinds: in chains and windows, and where elastic
 * fingerprints became shorter, the same key lies differently in two filters; filters that are
 * built once do not hold their keys as bits; PERHAPS_ERR_MISMATCH, also if the common number
 * of lines is so small that all bits would be set; or PERHAPS_ERR_DAMAGED if one is mapped from
 * a damaged file.  On failure *result is unchanged. */
PERHAPS_API int perhaps_compare(const perhaps_filter *a, const perhaps_filter *b,
                                struct perhaps_comparison *result);

/* Returns whether both have the same kind, geometry and hash, and the same bytes in their
 * bodies.  Cuckoo filters of the same keys differ if the keys came in another order. */
PERHAPS_API bool perhaps_equal(const perhaps_filter *a, const perhaps_filter *b);

/* Writes 16 bytes that are the same for filters that are perhaps_equal(), and otherwise differ
 * (with a probability of 1 - 2^-128, for filters that nobody crafted): XXH3 over kind,
 * geometry, hash and bodies, but not over counts of keys and of failures.  Reads the whole
 * body.  Later versions of the library write the same bytes. */
PERHAPS_API void perhaps_digest(const perhaps_filter *filter, uint8_t digest[16]);

/* ---- A smaller filter -------------------------------------------------------------- */

/* Makes a filter of the same keys that takes less memory: for one that was planned for more
 * keys than it got.  blocked, bloom, counting, and chains of these, each layer on its own.
 *
 * The new filter is the one that would have been there if it had been planned smaller: its
 * body is 1/2, 1/3, ... of the old one, the smallest with which its fpr, planned for these
 * keys and computed from all its bits, is at most 'fpr'; 0 stands for the fpr of the filter.
 * This is the fpr that the new filter then keeps.  (If many more bits are set than by so many
 * keys, as crafted keys can do, not all sizes are tried.)  It has room for as many keys more
 * as its size allows, by perhaps_stats; or is full, and its capacity is the number of its keys
 * then (other keys in their place may not all fit).  Only divisors of the number of lines
 * (bloom: of whole lines of bits) can be used; plans choose numbers with many divisors.
 *
 * Returns 0; or sets *small to NULL and returns PERHAPS_ERR_LIMIT if nothing becomes smaller,
 * or if not all layers of a chain can keep their shares of this fpr; PERHAPS_ERR_UNSUPPORTED
 * for other kinds (generations of a window get keys again); PERHAPS_ERR_ARGUMENT;
 * PERHAPS_ERR_MEMORY. */
PERHAPS_API int perhaps_shrink(const perhaps_filter *filter, double fpr,
                               perhaps_filter **small);

/* How a filter is made smaller and saved.  Zero is the default in every member. */
struct perhaps_shrink_options {
    double fpr; /* that the small filter shall keep; 0: that of the filter */

    /* Are called often meanwhile. */
    bool (*stopped)(void *context); /* true ends the call with PERHAPS_ERR_STOPPED */
    void (*progress)(void *context, uint64_t done_nbytes, uint64_t total_nbytes); /* read */
    void *context;
    uint64_t reserved[PERHAPS_RESERVED];
};

/* Do what perhaps_shrink() does, and then with the small filter what perhaps_save(),
 * perhaps_save_new() and perhaps_write() do.  'options' may be NULL.  Meanwhile the small
 * filter, at most half of this one, lies in memory.  If the filter is mapped from a file
 * (PERHAPS_MODE_READ), every page is compared with its checksum before anything is written;
 * 'path' may be that of this file, which is replaced.
 *
 * Return 0, or an error of perhaps_shrink(), perhaps_save() or the sink; PERHAPS_ERR_DAMAGED;
 * PERHAPS_ERR_STOPPED; or PERHAPS_ERR_IO (errno), also for pages that the disk does not give,
 * and with EBUSY for a file that was opened to be read while somebody writes it in place.  On
 * failure there is no new file, and the old one is as it was; a sink takes nothing before all
 * pages were found to be sound. */
PERHAPS_API int perhaps_shrink_save(const perhaps_filter *filter,
                                    const struct perhaps_shrink_options *options,
                                    const char *path);
PERHAPS_API int perhaps_shrink_save_new(const perhaps_filter *filter,
                                        const struct perhaps_shrink_options *options,
                                        const char *path);
PERHAPS_API int perhaps_shrink_write(const perhaps_filter *filter,
                                     const struct perhaps_shrink_options *options,
                                     const struct perhaps_sink *sink);

/* Sets *fpr to the least one with which perhaps_shrink() makes the filter smaller, computed
 * from all its bits; 0 if it becomes smaller with none.  It is the fpr of half the filter, or
 * of the next smaller one that there is, for which it takes memory.  Reads the whole filter.
 * 'fpr' of the options is not used.  Returns 0; an error of perhaps_shrink_save(); or
 * PERHAPS_ERR_UNSUPPORTED for chains, too. */
PERHAPS_API int perhaps_shrink_least_fpr(const perhaps_filter *filter,
                                         const struct perhaps_shrink_options *options,
                                         double *fpr);

#ifdef __cplusplus
}
#endif
#endif
