/* perhaps_layout.h - layouts: for filters whose bytes lie elsewhere, such as on servers
 * (perhaps_cluster.h).
 *
 * A layout is a filter of kind 'blocked' without its bytes.  It hashes keys, and tells where
 * the bits of a key lie and what the fpr will be; its user sets and reads the bits.  A layout
 * never changes, so any number of threads may use it at once. */
#ifndef PERHAPS_LAYOUT_H
#define PERHAPS_LAYOUT_H

#include <perhaps.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct perhaps_layout perhaps_layout;

/* The numbers that define a layout: write them down to restore the layout later. */
struct perhaps_description {
    const char *kind;
    uint64_t capacity;
    double fpr;
    uint64_t field[PERHAPS_FIELDS_MAX]; /* as in struct perhaps_plan */
    enum perhaps_hash hash;
    uint64_t seed;  /* xxh3 */
    uint64_t check; /* tells whether a secret or a function belongs to the hash */
    char note[PERHAPS_NOTE_MAX + 1]; /* as perhaps_note() */
    uint64_t reserved[PERHAPS_RESERVED];
};

/* Plans a layout and makes it.  The kind is always 'blocked' and 'together' is always set,
 * whatever the options say, but a bitmap, for which it would be no substitute, is refused with
 * PERHAPS_ERR_UNSUPPORTED; a key has one line where one line reaches the fpr.  The call
 * ignores PERHAPS_CAN_GROW in the needs: to grow, the caller makes one layout for each layer
 * (perhaps_layer_options()).  Returns 0 and sets *layout, to be released with
 * perhaps_layout_free(); or sets it to NULL and returns an error of perhaps_create(). */
PERHAPS_API int perhaps_layout_create(const struct perhaps_options *options,
                                      perhaps_layout **layout);

/* Makes the layout of a description.  Trusts nothing in the description, which may come from an
 * enemy.  'hashing' gives the secret or the function; it may be NULL where the hash needs
 * neither.  Returns 0 and sets *layout; or sets it to NULL and returns an error of
 * perhaps_open(); PERHAPS_ERR_LIMIT for numbers that no filter has; or PERHAPS_ERR_ARGUMENT for
 * a description without a kind, or with reserved members that are not zero. */
PERHAPS_API int perhaps_layout_restore(const struct perhaps_description *description,
                                       const struct perhaps_hashing *hashing,
                                       perhaps_layout **layout);

/* Makes the layout of a filter, so that the filter's bytes can be kept elsewhere.  Returns 0
 * and sets *layout; or sets it to NULL and returns PERHAPS_ERR_UNSUPPORTED for a filter that
 * has no layout, PERHAPS_ERR_SECRET for one that was opened without its secret, or
 * PERHAPS_ERR_MEMORY. */
PERHAPS_API int perhaps_layout_of(const perhaps_filter *filter, perhaps_layout **layout);

/* Releases the layout.  NULL is allowed. */
PERHAPS_API void perhaps_layout_free(perhaps_layout *layout);

/* Fills in *description, from which perhaps_layout_restore() makes the same layout again. */
PERHAPS_API void perhaps_layout_describe(const perhaps_layout *layout,
                                         struct perhaps_description *description);

/* Fills in *plan as perhaps_plan_for() would, but without 'why'. */
PERHAPS_API void perhaps_layout_plan(const perhaps_layout *layout, struct perhaps_plan *plan);

/* Hashes keys as perhaps_hash_many() does. */
PERHAPS_API int perhaps_layout_hash_many(const perhaps_layout *layout,
                                         const struct perhaps_keys *keys,
                                         struct perhaps_hashed *hashed);

/* Returns the fpr with 'keys' keys, as perhaps_predict_fpr() does. */
PERHAPS_API double perhaps_layout_predict_fpr(const perhaps_layout *layout, uint64_t keys);

/* Returns how many keys that set a bit a filter of this layout takes.  They are fewer than its
 * capacity, since of so many different keys some find all their bits set. */
PERHAPS_API uint64_t perhaps_layout_key_limit(const perhaps_layout *layout);

/* Returns how many different keys set the share 'load' of all bits, in expectation.  The result
 * is finite for any load: 0 for a load of 0 or less; a load of 1 counts as if half a bit were
 * clear. */
PERHAPS_API double perhaps_layout_estimate_keys(const perhaps_layout *layout, double load);

#define PERHAPS_LINE_NBYTES 64
#define PERHAPS_BITS_MAX    128 /* of one key, in all its lines */

/* Where the bits of a key lie: all in one block of the body. */
struct perhaps_bits {
    /* The number of the block.  A block is the 'nlines' lines of its keys, one after the other,
     * so it begins at byte block * nlines * PERHAPS_LINE_NBYTES of the body. */
    uint64_t block;
    unsigned nlines, nbits;

    /* The 'nbits' bits, line by line: number i is bit i % 8 of byte i / 8 of the block. */
    uint16_t bit[PERHAPS_BITS_MAX];
};

/* Fills in *bits with the bits of a key, which are all different. */
PERHAPS_API void perhaps_layout_locate(const perhaps_layout *layout,
                                       const struct perhaps_hashed *key,
                                       struct perhaps_bits *bits);

/* Copies 'nbytes' bytes of the filter's body to 'buffer', from byte 'offset' on.  They are the
 * bytes of its file (doc/FORMAT.md).  Other threads may add meanwhile; the copy may contain
 * their keys or not.  Returns 0; PERHAPS_ERR_UNSUPPORTED for a filter that has no layout;
 * PERHAPS_ERR_ARGUMENT for a range that reaches beyond the body; or PERHAPS_ERR_DAMAGED for a
 * damaged file that is mapped. */
PERHAPS_API int perhaps_body_read(const perhaps_filter *filter, uint64_t offset, void *buffer,
                                  size_t nbytes);

/* Writes 'nbytes' bytes of a body to 'buffer', from byte 'offset' of the body on.  Returns 0,
 * or an error, which ends the saving. */
typedef int perhaps_reader(void *context, uint64_t offset, void *buffer, size_t nbytes);

/* Saves a filter of this layout as perhaps_save() does.  The filter holds 'keys' keys; 'reader'
 * gives the bytes of its body in order, at most PERHAPS_PAGE_NBYTES a call.  Returns 0; or an
 * error of perhaps_save(), an error of the reader, or PERHAPS_ERR_ARGUMENT if 'keys' is more
 * than twice what the filter can hold, and leaves the old file as it was. */
PERHAPS_API int perhaps_layout_save(const perhaps_layout *layout, uint64_t keys,
                                    perhaps_reader *reader, void *context, const char *path);

/* Sets *layer to the options with which a chain of the options *chain makes its layer number
 * 'index'; the oldest layer is 0.  Only the capacity and the fpr differ from *chain.  Returns
 * 0; or leaves *layer as it was and returns PERHAPS_ERR_ARGUMENT for options that no chain has,
 * PERHAPS_ERR_LAYERS for an index from PERHAPS_LAYERS_MAX on, or PERHAPS_ERR_LIMIT if the fpr
 * of the layer would be less than PERHAPS_FPR_MIN. */
PERHAPS_API int perhaps_layer_options(const struct perhaps_options *chain, unsigned index,
                                      struct perhaps_options *layer);

#ifdef __cplusplus
}
#endif
#endif
