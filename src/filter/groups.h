/* groups.h - operations that few kinds have: groups of kind.h. */
#ifndef GROUPS_H
#define GROUPS_H

#include "../base/memory.h"
#include "../base/overlap.h"
#include "kind.h"
#include <perhaps_layout.h>

struct perhaps_bits;
struct pile;

/* A position in the body of a filter, whose bytes may lie in many places.  Begins as { 0 }. */
struct body_cursor {
    uint64_t offset;
    uint64_t directory, index; /* for the kind's use */
    uint8_t bytes[1024];       /* for pieces that the kind puts together */
};

/* Operations of kinds that grow in place, in memory outside the body.  None may be NULL. */
struct grows {
    /* Changes g to the geometry that a new filter of its capacity and fpr begins with. */
    void (*first)(struct geometry *g);

    /* Takes the memory that a new filter begins with.  Returns 0 or PERHAPS_ERR_MEMORY. */
    int (*begin)(perhaps_filter *f, const struct perhaps_options *options);

    /* Makes f->state from the bytes of the body, which are zeros in a new filter and may be
     * mapped from a file.  Returns 0, PERHAPS_ERR_MEMORY, or PERHAPS_ERR_DAMAGED. */
    int (*attach)(perhaps_filter *f);

    /* Releases f->state. */
    void (*detach)(perhaps_filter *f);

    /* Returns the next bytes of the body: see filter_next_piece() (filter.h). */
    const uint8_t *(*next_piece)(const perhaps_filter *f, struct body_cursor *cursor,
                                 uint64_t *nbytes);

    /* Changes g, a copy of the geometry, to the one that the filter has now. */
    void (*grown)(const perhaps_filter *f, struct geometry *g);

    /* Returns how many bytes of memory the filter has taken beside its first body. */
    uint64_t (*beyond_nbytes)(const perhaps_filter *f);

    /* Returns how many bytes of its allocator these are, with f->state and all that keeps them
     * together. */
    uint64_t (*state_nbytes)(const perhaps_filter *f);

    /* Has the mover move f->state and all memory beside the first body.  That body, and
     * f->body.writers, were moved before: 'body' is where the body was. */
    void (*relocate)(perhaps_filter *f, const uint8_t *body, const struct mover *mover);
};

/* Operations of kinds that consist of filters of another kind, the base.  The body of such a
 * filter is one line of counters. */
struct composite {
    unsigned base_field; /* the number of the field that holds the base's id */
    unsigned inherits;   /* abilities that a composite has if its base has them */
    size_t begins_with;  /* how many parts a new filter has; 0: as many as later */

    /* Makes the parts of a new filter.  Returns 0 or an error of perhaps_create(). */
    int (*begin)(perhaps_filter *f, const struct perhaps_options *options);

    /* Checks the parts of a filter that was made, copied, or read from a file.  Returns 0 or
     * PERHAPS_ERR_DAMAGED. */
    int (*attach)(perhaps_filter *f);

    /* Sets *key, which is the hash of a key, to that by which part i is asked for it.  Returns
     * false if the part is never asked for this key.  NULL: all parts are, by the key's own. */
    bool (*asks_part)(const perhaps_filter *f, size_t i, struct keyhash *key);

    /* Returns what contains() answers, when says[i] is what part i answers if asks_part() has
     * it asked, else false.  NULL: true if a part says so. */
    bool (*joins)(const perhaps_filter *f, struct keyhash key, const bool *says);

    /* Returns the fpr that part i must keep if 'fpr' is asked of the whole, when each part is
     * made smaller on its own.  NULL: the parts must stay as they are. */
    double (*part_fpr)(const perhaps_filter *f, size_t i, double fpr);
};

/* Operations of kinds that forget.  None may be NULL. */
struct forgets {
    /* Begins a new part and forgets the oldest one. */
    void (*rotate)(perhaps_filter *f);

    /* Rotates as often as the time 'now' requires.  Returns 0, or PERHAPS_ERR_UNSUPPORTED for a
     * filter that does not go by time. */
    int (*advance)(perhaps_filter *f, uint64_t now);

    /* Sets the time back, for perhaps_set_back() (perhaps_window.h).  Returns 0, or
     * PERHAPS_ERR_UNSUPPORTED for a filter that does not go by time. */
    int (*set_back)(perhaps_filter *f, uint64_t now);

    /* Returns how long the filter remembers; 0 if it does not go by time. */
    uint64_t (*time)(const perhaps_filter *f);

    /* Returns whether the filter knows the time, and sets *began to when its newest part
     * began; or to 0. */
    bool (*newest)(const perhaps_filter *f, uint64_t *began);

    /* Returns how many of the oldest parts advance() would forget.  Changes nothing. */
    size_t (*gone)(const perhaps_filter *f, uint64_t now);

    /* Asks all parts but the 'gone' oldest ones, and answers like contains() (kind.h). */
    size_t (*contains_newer)(const perhaps_filter *f, size_t gone, const struct keyhash *keys,
                             const struct keyhash *ahead, size_t n, bool *answer);
};

/* Operations of kinds whose bytes can be kept elsewhere (src/layout).  None may be NULL. */
struct places {
    /* Returns whether, with this geometry, all bits of a key lie in one block of the body. */
    bool (*in_blocks)(const struct geometry *g);

    /* Finds block and bits of a key, for perhaps_layout_locate() (perhaps_layout.h). */
    void (*locate)(const struct geometry *g, struct keyhash key, struct perhaps_bits *bits);

    /* Returns how many keys set this share of the bits, in expectation.  0 <= load < 1. */
    double (*keys_from_load)(const struct geometry *g, double load);
};

/* What was found in the first bytes of a small body.  Begins as zeros. */
enum { TAIL_NBYTES = 64, FOLDED_BANDS_MAX = 8 };

struct folded {
    uint64_t nbytes;                /* how many bytes */
    uint64_t picked;                /* how many of their bits are set */
    double rates[FOLDED_BANDS_MAX]; /* for each band of the body, the sum of its blocks' fprs */
    _Alignas(8) uint8_t tail[TAIL_NBYTES]; /* how the body ends, if there is no more of it */
};

/* Operations of kinds whose filters can be made smaller: the body consists of units, and the
 * picks of a key lie in units floor(x * units / 2^64), where x depends on the key alone.  If
 * each 'factor' adjacent units are joined, the result is the filter that would have been there
 * with so many fewer units from the beginning (src/kinds/lines/fold.h).  None may be NULL but
 * keys and tail. */
struct folds {
    /* Returns a number of which every divisor is a factor. */
    uint64_t (*units)(const struct geometry *g);

    /* Changes the fields of g to those of a filter that is smaller by this factor. */
    void (*divide)(struct geometry *g, uint64_t factor);

    /* Returns the largest capacity for which plan() would accept the other members of g; 0 if
     * there is none. */
    uint64_t (*capacity)(const struct geometry *g);

    /* Returns about how many different keys there are.  NULL: as many as are counted, and the
     * key limit refuses others. */
    uint64_t (*keys)(const perhaps_filter *f);

    /* Writes 'nbytes' bytes of the small body, a multiple of unit_nbytes(g), and reads 'factor'
     * times as many.  g is the geometry of the small filter. */
    void (*fold)(const struct geometry *g, enum cpu cpu, const uint8_t *from, uint8_t *to,
                 uint64_t nbytes, uint64_t factor);
    uint64_t (*unit_nbytes)(const struct geometry *g);

    /* Notes what is in the next 'nbytes' bytes of the small body that fold() wrote. */
    void (*look)(const struct geometry *g, enum cpu cpu, const uint8_t *bytes, uint64_t nbytes,
                 struct folded *folded);

    /* Returns the fpr of a small body of which all was noted: what measure() would say. */
    double (*rate)(const struct geometry *g, const struct folded *folded);

    /* Changes the tail of a small body to what it is with these bytes more: the last
     * 'tail_nbytes' bytes, which fold() does not write.  It begins as zeros.  NULL: there is
     * none. */
    void (*tail)(enum cpu cpu, const uint8_t *bytes, uint64_t nbytes, uint8_t *tail);
    uint64_t tail_nbytes;
};

/* Operations of kinds of which two filters can be compared, since a key picks cells that depend
 * on the geometry and the hash alone.  None may be NULL. */
struct compares {
    /* Tells how keys pick the cells of such a filter. */
    void (*picking)(const struct geometry *g, struct picking *picking);

    /* Counts the picked cells of two filters that have the same geometry when they are made
     * smaller by these factors.  The factors of kinds without 'folds' are 1. */
    void (*count)(const perhaps_filter *a, uint64_t a_factor, const perhaps_filter *b,
                  uint64_t b_factor, struct picked *picked);
};

/* All keys of a filter that is made of them at once, and where its body goes. */
struct building {
    struct geometry *g;      /* planned for as many keys as there are, or up to a 2000th more */
    const struct pile *pile; /* the keys as records, which can be taken again and again */
    uint64_t mark_factor; /* the mark of a record is its place times this; 0: it has a mark */
    bool flips; /* the value of a record, 0 or 1, is added to its equation, and not stored */
    enum cpu cpu;
    unsigned threads; /* how many to use */

    /* Takes the next bytes of the body.  Returns 0 or an error, which ends the building. */
    int (*write)(void *context, const uint8_t *bytes, uint64_t nbytes);

    /* Is told how many keys more are dealt with.  Returns 0 or an error, as write(). */
    int (*progress)(void *context, uint64_t nkeys);
    void *context;
    uint64_t keys; /* set by build(): how many different ones there are */
};

/* Operations of kinds that are built from all keys at once, and then take no more: 'add' is
 * NULL.  All are NULL for a composite, whose parts the builder makes; else none may be NULL but
 * has_values and look_up. */
struct builds {
    /* Writes the whole body.  May change fields of the geometry of which the size of the body
     * does not depend.  Returns 0; PERHAPS_ERR_FULL if the keys, which somebody chose, need a
     * larger body; PERHAPS_ERR_VALUES; or another error. */
    int (*build)(struct building *b);

    /* Enlarges a planned geometry for such keys.  Returns 0 or PERHAPS_ERR_LIMIT. */
    int (*enlarge)(struct geometry *g);

    /* Returns whether each key of such a filter has a value.  NULL: none has. */
    bool (*has_values)(const struct geometry *g);

    /* Sets value[i] to the value of key i, and answer[i] to whether it is perhaps there. */
    void (*look_up)(const perhaps_filter *f, const struct keyhash *keys, size_t n,
                    uint32_t *value, bool *answer);
};

#endif
