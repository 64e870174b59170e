/* ribbon.h - bumped ribbon filters: where the equation of a key lies, and their loops. */
#ifndef RIBBON_H
#define RIBBON_H

#include "../../base/bytes.h"
#include "../../filter/filter.h"

/* The fields.  SLOTS is the first of RIBBON_LAYERS_MOST fields: the slots of each layer, and 0
 * behind the last one.  LAST_SLOTS are those of the layer that bumps no key.
 *
 * The table of the body, for the loops, are the thresholds of the first layer: they lie in the
 * body, behind the blocks of all layers. */
enum { ROW_BITS, VALUE_BITS, SALT, LAST_SLOTS, SLOTS };

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

/* The same times 2, or the most that a byte holds. */
#define RIBBON_THRESHOLDS_DOUBLED UINT64_C(0xFF582800)

static ALWAYS_INLINE unsigned ribbon_threshold(unsigned number)
{
    return RIBBON_THRESHOLDS >> 8 * number & 0xff;
}

/* A row of more than 8 bits is divided into groups of 8 columns, since a vector holds no more,
 * and a key that is absent is usually known from the first ones.  In a stripe of slots the
 * words of the first group lie together, then those of the second one, and so on. */
enum { RIBBON_GROUP = 8, RIBBON_STRIPE_BITS = 10, RIBBON_STRIPE = 1 << RIBBON_STRIPE_BITS };

/* Returns of how many slots, as a power of 2, a stripe of a layer is. */
static inline unsigned ribbon_stripe(uint64_t slots)
{
    return slots % RIBBON_STRIPE == 0 ? RIBBON_STRIPE_BITS : slots % RIBBON_BUCKET == 0 ? 7 : 6;
}

/* Returns how many columns are in the group that begins with column 'first'. */
static ALWAYS_INLINE unsigned ribbon_columns(unsigned row_bits, unsigned first)
{
    return row_bits < first + RIBBON_GROUP ? row_bits - first : RIBBON_GROUP;
}

/* Returns where in a layer a block has the words of the group of columns from 'first' on, in
 * bytes. */
static ALWAYS_INLINE uint64_t ribbon_group_at(uint64_t block, unsigned first, unsigned stripe,
                                              uint64_t row_bits, uint64_t columns)
{
    uint64_t slot = block * RIBBON_WINDOW, within = slot & ((UINT64_C(1) << stripe) - 1);
    return (((slot >> stripe) * row_bits + first) << (stripe - 3)) + within / 8 * columns;
}

static ALWAYS_INLINE uint64_t ribbon_words_at(uint64_t block, unsigned first, unsigned stripe,
                                              unsigned row_bits)
{
    return ribbon_group_at(block, first, stripe, row_bits, ribbon_columns(row_bits, first));
}

/* Returns how many bytes the thresholds of a layer take, 4 of them each. */
static inline uint64_t ribbon_thresholds_nbytes(uint64_t slots)
{
    return (slots / RIBBON_BUCKET + 3) / 4;
}

/* Returns whether a key that begins at this slot of a layer is bumped.  Both are
 * compared twice as large, so that a slot's number in its bucket is a byte; and the thresholds
 * come twice, so that the bit above a bucket's number does not matter. */
static ALWAYS_INLINE bool ribbon_is_bumped(const uint8_t *thresholds, uint64_t start)
{
    const uint64_t doubled = RIBBON_THRESHOLDS_DOUBLED << 32 | RIBBON_THRESHOLDS_DOUBLED;
    unsigned number =
        thresholds[start / RIBBON_BUCKET / 4] >> (start / (RIBBON_BUCKET / 2) & 6);
    return (uint8_t)(start * 2) < (uint8_t)(doubled >> number % 8 * 8);
}

/* Returns the hash with which a key that was bumped goes to the next layer. */
static ALWAYS_INLINE struct keyhash ribbon_bumped(struct keyhash key)
{
    key.place *= ODD_GOLDEN;
    return key;
}

/* Returns the hash with which a key goes to the layer that bumps none.  Even keys whose hashes
 * somebody chose get independent equations there, with one salt or another. */
static inline struct keyhash ribbon_last(struct keyhash key, uint64_t salt)
{
    uint64_t x = key.place + salt * ODD_PI;
    x = (x ^ x >> 32) * ODD_PI ^ key.mark;
    x = (x ^ x >> 29) * ODD_GOLDEN;
    x ^= x >> 32;
    return (struct keyhash){ .place = x, .mark = (x ^ x >> 31) * ODD_PI };
}

/* Returns the slot of that layer at which a key with such a hash begins. */
static inline uint64_t ribbon_last_start(struct keyhash key, uint64_t slots)
{
    return scale64(key.place, slots - RIBBON_WINDOW + 1);
}

/* A key's equation: the XOR of those slots, from its start on, whose bit is set in
 * 'coefficients' is 'row'. */
struct equation {
    uint64_t coefficients; /* the lowest bit, which belongs to the start, is always set */
    uint32_t row;          /* the fingerprint */
};

static ALWAYS_INLINE struct equation ribbon_equation(uint64_t mark, unsigned fingerprint_bits)
{
    uint64_t fingerprint = (mark * ODD_PI) >> (-fingerprint_bits % 64);
    return (struct equation){ mark | 1, (uint32_t)fingerprint };
}

/* ---- The loops --------------------------------------------------------------------------- */

/* How long the rows are: a byte without a value, another group, two groups or so few bits of
 * fingerprint, more.  Loops are made for each. */
enum ribbon_width { RIBBON_BYTE, RIBBON_NARROW, RIBBON_WIDE, RIBBON_LONG, RIBBON_WIDTHS };

/* Looks up n keys in all layers.  Sets row[i] to what the slots of key i add up to, and
 * answer[i] to whether that begins with the key's fingerprint. */
typedef void ribbon_look_up(const struct body *b, const struct keyhash *keys, size_t n,
                            uint32_t *row, bool *answer);

/* The loops, for one instruction set (../cpu/cpu_loops.h). */
struct ribbon_loops {
    struct loops of[RIBBON_WIDTHS];
    struct loops any[RIBBON_WIDTHS]; /* those for one key take nothing for granted */

    ribbon_look_up *look_up;
};

/* The loops for one key of wide and of long rows take for granted that the first layer has the
 * largest stripes, and that fingerprints have no more bits than this. */
enum { RIBBON_SWIFT_BITS = 3 * RIBBON_GROUP };

/* ---- Equations --------------------------------------------------------------------------- */

/* The equations of a region, reduced so that no two begin at the same slot; and the bytes of
 * its slots, when they are solved.  Behind the last slot is one more, of no use. */
struct ribbon_matrix {
    uint64_t *coefficients; /* of each slot; 0: no equation begins there */
    uint32_t *row;
    uint64_t slots;
    unsigned stripe;
};

/* The keys of a layer, as they lie in the records of a pile. */
struct ribbon_keys {
    const uint64_t *records; /* sorted */
    uint64_t n;
    unsigned words;       /* of a record */
    uint64_t mark_factor; /* the mark is the place times this; 0: it is in the record */
    unsigned value_bits;  /* of the value, which then is the last word */
    unsigned fingerprint_bits;
    bool flips; /* the last word, 0 or 1, is added to the fingerprint */
};

/* Returns the hash of key i. */
static ALWAYS_INLINE struct keyhash ribbon_hash_of(const struct ribbon_keys *keys, uint64_t i)
{
    const uint64_t *record = keys->records + i * keys->words;
    uint64_t mark = keys->mark_factor ? *record * keys->mark_factor : record[1];
    return (struct keyhash){ .place = *record, .mark = mark };
}

/* Returns the equation of key i, whose mark is this. */
static ALWAYS_INLINE struct equation ribbon_equation_of(const struct ribbon_keys *keys,
                                                        uint64_t i, uint64_t mark)
{
    struct equation e = ribbon_equation(mark, keys->fingerprint_bits);
    uint32_t value = (uint32_t)keys->records[(i + 1) * keys->words - 1];
    if (keys->value_bits)
        e.row |= value << keys->fingerprint_bits;
    if (keys->flips)
        e.row ^= value;
    return e;
}

/* Solves systems of equations, by one instruction set (../cpu/cpu_loops.h). */
struct ribbon_solver {
    /* Enters the equations of a region, whose first slot is number 'first' of 'slots' in the
     * layer, bucket after bucket, and writes the number of each bucket's threshold.  The matrix
     * is empty. */
    void (*enter)(const struct ribbon_matrix *matrix, const struct ribbon_keys *keys,
                  uint64_t first, uint64_t slots, uint8_t *threshold);

    /* Enters an equation that begins at a slot.  Returns whether the others do not contradict
     * it. */
    bool (*enter_one)(const struct ribbon_matrix *matrix, uint64_t slot, struct equation e);

    /* Writes the slots that solve the equations. */
    void (*solve)(const struct ribbon_matrix *matrix, unsigned row_bits, uint8_t *blocks);
};

/* ---- ribbon_build.c ---------------------------------------------------------------------- */

/* Returns of how many bits the number of a region of this layer is: a region is what is solved
 * at once.  This is no part of the file format, except that the last bucket of each region
 * bumps all its keys. */
unsigned ribbon_region_bits(uint64_t slots);

/* The operation build() of the kind. */
int ribbon_build(struct building *b);

#endif
