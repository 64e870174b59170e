/* valkeybloom.h - Bloom filters of valkey-bloom: how its commands make them here; and what the
 * two files of their form share. */
#ifndef VALKEYBLOOM_H
#define VALKEYBLOOM_H

#include "blocks.h"

enum { VALKEYBLOOM_SEED_NBYTES = 32, VALKEYBLOOM_ENCODING = 1 };

struct valkeybloom_wish {
    uint64_t capacity;
    double fpr;         /* of its first layer */
    double tightening;  /* of each further one, to the one before: 0 < tightening < 1 */
    uint32_t expansion; /* 0: does not grow */
    const char *seed;   /* 32 bytes */
};

/* Makes an empty filter.  Returns NULL and sets *why if there is too little memory, or there
 * are no such filters. */
void *valkeybloom_create(const struct valkeybloom_wish *wish, const char **why);

/* Makes the filter that BF.LOAD gets as one string.  Returns NULL and sets *why if an enemy
 * wrote it, or there is too little memory. */
void *valkeybloom_decode(const char *bytes, size_t nbytes, const char **why);

/* ---- Inside ------------------------------------------------------------------------------ */

struct valkeybloom_layer {
    uint64_t bits, capacity, items;
    uint32_t hashes;
};

struct valkeybloom {
    struct body body; /* with a block for each layer */
    struct valkeybloom_layer *layers;
    size_t room; /* of the array */
    uint64_t items;
    double fpr, tightening;
    uint32_t expansion;
    uint8_t seed[VALKEYBLOOM_SEED_NBYTES];
};

/* Returns whether there are such filters at all. */
bool valkeybloom_is_sound(const struct valkeybloom *bloom);

/* Returns whether the seed is that which valkey-bloom has built in. */
bool valkeybloom_has_public_seed(const struct valkeybloom *bloom);

/* Makes room for one more layer.  Returns 0 or PERHAPS_ERR_MEMORY. */
int valkeybloom_make_room(struct valkeybloom *bloom);

/* Completes the layer that comes next from its capacity, its items and the length of its block.
 * Returns whether the other module makes such layers. */
bool valkeybloom_complete_layer(const struct valkeybloom *bloom,
                                struct valkeybloom_layer *layer, uint64_t block_nbytes);

/* Appends a layer whose bytes will come, and counts its items; the last one must be full.
 * Returns 0, PERHAPS_ERR_DAMAGED or PERHAPS_ERR_MEMORY. */
int valkeybloom_expect_layer(struct valkeybloom *bloom, struct valkeybloom_layer layer,
                             uint64_t block_nbytes);

/* Writes the header of a block that has all its bytes. */
void valkeybloom_write_header(const struct valkeybloom *bloom, size_t i);

/* Returns whether a block has the header that it should have; the first one says the seed. */
bool valkeybloom_has_header(struct valkeybloom *bloom, size_t i);

/* Members of the form (form.h): of valkeybloom.c */
int valkeybloom_add(void *filter, const struct perhaps_key *items, size_t n,
                    bool unless_present, bool *was_present, size_t *done);
void valkeybloom_contains(const void *filter, const struct perhaps_key *items, size_t n,
                          uint64_t now_ms, bool *present);
void valkeybloom_info(const void *filter, struct info *info);
bool valkeybloom_layer(const void *filter, size_t index, struct layer *layer);
uint64_t valkeybloom_items(const void *filter);
bool valkeybloom_is_complete(const void *filter);
size_t valkeybloom_memory_nbytes(const void *filter);
void valkeybloom_release(void *filter);
void *valkeybloom_copy(const void *filter);
void valkeybloom_defrag(RedisModuleDefragCtx *ctx, void **filter);

#endif
