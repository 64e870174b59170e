/* ribbon.h - bumped ribbon filters: where the equation of a key lies, and their loops. */
#ifndef RIBBON_H
#define RIBBON_H

#include "../base/bytes.h"
#include "../filter/filter.h"

/* The fields.  SLOTS is the first of RIBBON_LAYERS_MOST fields: the slots of each layer, and 0
 * behind the last one.  LAST_SLOTS are those of the layer that bumps no key. */
enum { ROW_BITS, VALUE_BITS, SALT, LAST_SLOTS, SLOTS };

/* What is derived, for the loops alone: where in the body the thresholds of the first layer
 * begin. */
enum { THRESHOLDS_AT = PERHAPS_FIELDS_MAX - 1 };

enum {
    RIBBON_LAYERS_MOST = 6,
    RIBBON_ROW_BITS_MOST = 32,
    RIBBON_VALUE_BITS_MOST = 16,
    RIBBON_WINDOW = 64,  /* slots that an equation touches, and slots of a block */
    RIBBON_BUCKET = 128, /* slots that share a threshold */
};

/* The thresholds of a bucket, by their number: keys that begin at a lower slot of the bucket
 * are bumped.  A byte each. */
#define RIBBON_THRESHOLDS UINT32_C(0x802C1400)

static ALWAYS_INLINE unsigned ribbon_threshold(unsigned number)
{
    return RIBBON_THRESHOLDS >> 8 * number & 0xff;
}

/* Returns how many bytes the thresholds of a layer take, 4 of them each. */
static inline uint64_t ribbon_thresholds_nbytes(uint64_t slots)
{
    return (slots / RIBBON_BUCKET + 3) / 4;
}

/* Returns whether a key that begins at this slot of a layer is bumped. */
static ALWAYS_INLINE bool ribbon_is_bumped(const uint8_t *thresholds, uint64_t start)
{
    uint64_t bucket = start / RIBBON_BUCKET;
    unsigned number = thresholds[bucket / 4] >> bucket % 4 * 2 & 3;
    return start % RIBBON_BUCKET < ribbon_threshold(number);
}

/* Returns the hash with which a key that was bumped goes to the next layer. */
static ALWAYS_INLINE struct keyhash ribbon_bumped(struct keyhash key)
{
    key.place *= ODD_GOLDEN;
    return key;
}

/* Returns where a key begins in the layer that bumps none. */
static inline uint64_t ribbon_last_start(struct keyhash key, uint64_t salt, uint64_t slots)
{
    uint64_t x = key.place + salt * ODD_PI;
    x = (x ^ x >> 32) * ODD_PI;
    x = (x ^ x >> 29) * ODD_GOLDEN;
    return scale64(x ^ x >> 32, slots - RIBBON_WINDOW + 1);
}

/* A key's equation: the XOR of those slots, from its start on, whose bit is set in
 * 'coefficients' is 'row'. */
struct equation {
    uint64_t coefficients; /* the lowest bit, which belongs to the start, is always set */
    uint32_t row;          /* the fingerprint */
};

static ALWAYS_INLINE struct equation ribbon_equation(uint64_t mark, unsigned fingerprint_bits)
{
    uint64_t fingerprint = (mark * ODD_PI) >> (64 - fingerprint_bits);
    return (struct equation){ mark | 1, (uint32_t)fingerprint };
}

/* ---- ribbon_loops.c ---------------------------------------------------------------------- */

/* The first are for fingerprints of up to 8 bits. */
extern const struct loops ribbon_loops_narrow[CPU_COUNT], ribbon_loops_wide[CPU_COUNT];

/* Looks up n keys in all layers and sets row[i] to what the slots of key i add up to: of a key
 * that was given to the builder its fingerprint and its value. */
typedef void ribbon_look_up(const struct body *b, const struct keyhash *keys, size_t n,
                            uint32_t *row);
extern ribbon_look_up *const ribbon_look_ups[CPU_COUNT];

/* ---- ribbon_solve.c ---------------------------------------------------------------------- */

/* The equations of a region, reduced so that no two begin at the same slot; and the bytes of
 * its slots, when they are solved. */
struct ribbon_matrix {
    uint64_t *coefficients; /* of each slot; 0: no equation begins there */
    uint32_t *row;
    uint64_t slots;
};

/* The keys of a layer, as they lie in the records of a pile. */
struct ribbon_keys {
    const uint64_t *records; /* sorted */
    uint64_t n;
    unsigned words;       /* of a record */
    uint64_t mark_factor; /* the mark is the place times this; 0: it is in the record */
    unsigned value_bits;  /* of the value, which then is the last word */
    unsigned fingerprint_bits;
};

/* Returns the equation of key i. */
static ALWAYS_INLINE struct equation ribbon_equation_of(const struct ribbon_keys *keys,
                                                        uint64_t i)
{
    const uint64_t *record = keys->records + i * keys->words;
    uint64_t mark = keys->mark_factor ? *record * keys->mark_factor : record[1];
    struct equation e = ribbon_equation(mark, keys->fingerprint_bits);
    if (keys->value_bits)
        e.row |= (uint32_t)record[keys->words - 1] << keys->fingerprint_bits;
    return e;
}

/* Solves systems of equations, by the instructions of one CPU. */
struct ribbon_solver {
    /* Enters the equations of a region, whose first slot is number 'first' of 'slots' in the
     * layer, bucket after bucket, and writes the number of each bucket's threshold.  The matrix
     * is empty. */
    void (*enter)(const struct ribbon_matrix *matrix, const struct ribbon_keys *keys,
                  uint64_t first, uint64_t slots, uint8_t *threshold);

    /* Enters an equation that begins at a slot.  Returns whether the others do not contradict
     * it. */
    bool (*enter_one)(const struct ribbon_matrix *matrix, uint64_t slot, struct equation e);

    /* Writes the blocks of slots that solve the equations: 'row_bits' words each. */
    void (*solve)(const struct ribbon_matrix *matrix, unsigned row_bits, uint8_t *blocks);
};
extern const struct ribbon_solver ribbon_solvers[CPU_COUNT];

/* ---- ribbon_build.c ---------------------------------------------------------------------- */

/* Returns of how many bits the number of a region of this layer is: a region is what is solved
 * at once.  This is no part of the file format, except that the last bucket of each region
 * bumps all its keys. */
unsigned ribbon_region_bits(uint64_t slots);

/* The operation build() of the kind. */
int ribbon_build(struct building *b);

#endif
