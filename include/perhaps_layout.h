/* perhaps_layout.h - filters whose bytes somebody else keeps, such as servers
 * (perhaps_cluster.h): how keys are hashed, where their bits lie, what the rate will be.
 *
 * A layout is a filter of kind 'blocked' but for its bytes.  Nothing in it changes, so any
 * number of threads may use one. */
#ifndef PERHAPS_LAYOUT_H
#define PERHAPS_LAYOUT_H

#include <perhaps.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct perhaps_layout perhaps_layout;

/* What makes two layouts the same: to be written down, and restored. */
struct perhaps_description {
    const char *kind;
    uint64_t capacity;
    double fpr;
    uint64_t field[PERHAPS_FIELDS_MAX]; /* as in struct perhaps_plan */
    enum perhaps_hash hash;
    uint64_t seed;  /* xxh3 */
    uint64_t check; /* tells whether a secret or a function is that of the hash */
    uint64_t reserved[PERHAPS_RESERVED];
};

/* Plans one, 'blocked' whatever the options say, with 'together', and with one line a key where
 * that will do.  PERHAPS_CAN_GROW among the needs is the caller's to meet, with one layout a
 * layer.  Errors as perhaps_create(). */
PERHAPS_API int perhaps_layout_create(const struct perhaps_options *options,
                                      perhaps_layout **layout);

/* The layout of a description, which may come from an enemy: errors as perhaps_open(), and
 * PERHAPS_ERR_LIMIT for numbers that no filter has.  'hashing' gives secret or function; NULL
 * is allowed where none is needed. */
PERHAPS_API int perhaps_layout_restore(const struct perhaps_description *description,
                                       const struct perhaps_hashing *hashing,
                                       perhaps_layout **layout);

/* The layout of a filter, in which its bytes may be kept elsewhere.  Returns 0,
 * PERHAPS_ERR_UNSUPPORTED for kinds that have none, PERHAPS_ERR_SECRET for a filter that was
 * opened without its secret, or PERHAPS_ERR_MEMORY. */
PERHAPS_API int perhaps_layout_of(const perhaps_filter *filter, perhaps_layout **layout);

/* NULL is allowed. */
PERHAPS_API void perhaps_layout_free(perhaps_layout *layout);

PERHAPS_API void perhaps_layout_describe(const perhaps_layout *layout,
                                         struct perhaps_description *description);

/* What perhaps_plan_for() would tell: the size, the predicted rate; no 'why'. */
PERHAPS_API void perhaps_layout_plan(const perhaps_layout *layout, struct perhaps_plan *plan);

/* As perhaps_hash_many() and perhaps_predict_fpr(). */
PERHAPS_API int perhaps_layout_hash_many(const perhaps_layout *layout,
                                         const struct perhaps_keys *keys,
                                         struct perhaps_hashed *hashed);
PERHAPS_API double perhaps_layout_predict_fpr(const perhaps_layout *layout, uint64_t keys);

/* How many different keys set this share of all bits, in expectation. */
PERHAPS_API double perhaps_layout_estimate_keys(const perhaps_layout *layout, double load);

#define PERHAPS_LINE_NBYTES 64
#define PERHAPS_BITS_MAX    128 /* of a key, in all its lines */

/* Where the bits of a key lie. */
struct perhaps_bits {
    uint64_t block; /* its lines are the block's, which is its 'nlines' * 64 bytes, one behind
                       the other in the body */
    unsigned nlines, nbits;
    uint16_t bit[PERHAPS_BITS_MAX]; /* of the block, ascending by line: bit i is bit i % 8 of
                                       its byte i / 8 */
};

/* Finds the bits of a key, all different. */
PERHAPS_API void perhaps_layout_locate(const perhaps_layout *layout,
                                       const struct perhaps_hashed *key,
                                       struct perhaps_bits *bits);

/* Copies 'nbytes' bytes of the filter's body, from 'offset' on, as they are in a file of it
 * (doc/FORMAT.md), of filters that have a layout.  Returns 0, PERHAPS_ERR_UNSUPPORTED, or
 * PERHAPS_ERR_ARGUMENT for a range that reaches beyond the body.  Beside adds of other threads,
 * who may or may not be seen. */
PERHAPS_API int perhaps_body_read(const perhaps_filter *filter, uint64_t offset, void *buffer,
                                  size_t nbytes);

/* Gives 'nbytes' bytes of a body, from 'offset' on.  Returns 0, or an error that ends the
 * saving. */
typedef int perhaps_reader(void *context, uint64_t offset, void *buffer, size_t nbytes);

/* Saves as perhaps_save() a filter of that layout, which holds 'keys' keys, and the bytes of
 * which are got, in their order, piece by piece, of at most PERHAPS_PAGE_NBYTES.  Errors as
 * perhaps_save(), those of the reader, and PERHAPS_ERR_ARGUMENT for more than twice the keys
 * that it can hold; the old file is as it was. */
PERHAPS_API int perhaps_layout_save(const perhaps_layout *layout, uint64_t keys,
                                    perhaps_reader *reader, void *context, const char *path);

/* What a chain with these options makes its layer number 'index' (the oldest is 0) with:
 * capacity, and its share of the fpr.  The rest of *layer is that of *chain.  Returns 0,
 * PERHAPS_ERR_ARGUMENT, PERHAPS_ERR_LAYERS from PERHAPS_LAYERS_MAX on, or PERHAPS_ERR_LIMIT
 * where its share would be under PERHAPS_FPR_MIN: *layer stays as it was. */
PERHAPS_API int perhaps_layer_options(const struct perhaps_options *chain, unsigned index,
                                      struct perhaps_options *layer);

#ifdef __cplusplus
}
#endif
#endif
