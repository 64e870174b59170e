/* flat.h - what cuckoo and strided filters share: their body is one table of slots. */
#ifndef FLAT_H
#define FLAT_H

#include "../cpu/cpu_loops.h"
#include "table.h"

enum { SIZE, WIDTH }; /* the fields: how many buckets or cells, and bits a slot */

/* In what the two kinds differ: the table of their bodies (struct body). */
struct flat_shape {
    bool strided;
    unsigned slots;       /* of a bucket */
    unsigned copies;      /* of a key, for which there is room */
    uint64_t behind;      /* cells where no place begins */
    uint64_t size_most;   /* buckets or cells */
    unsigned width_min;   /* bits a slot, */
    unsigned width_small; /* and in plans for few keys */
    unsigned width_other; /* bits of a slot that are not of the fingerprint */
    double load;          /* up to which adds are fast, and sure to find room */
    double load_compact;  /* up to which they are sure to find room */
};

/* ---- The loops --------------------------------------------------------------------------- */

/* The loops for one width. */
struct slot_loops {
    struct loops loops; /* no 'add', since an add may fail */
    struct loops of_set;

    /* While other threads write; b->writers begins with the TABLE_VERSIONS versions that they
     * count up.  For cuckoo filters.  Single keys go through contains(). */
    struct loops beside;

    /* As add() of the kind, if no other thread writes; without 'unless_present' it sets no
     * answers, since all are false. */
    int (*add)(const struct body *b, const struct keyhash *keys, const struct keyhash *ahead,
               size_t n, bool unless_present, bool *answer, size_t *done);
};

/* The loops for each width, for one instruction set (../cpu/cpu_loops.h). */
struct flat_loops {
    const struct slot_loops *(*at)(bool strided, unsigned width);
};

static inline const struct slot_loops *slot_loops_of(enum cpu cpu, bool strided, unsigned width)
{
    return cpu_loops[cpu].flat->at(strided, width);
}

/* Returns how many places there are: an even number, so that the two of a key differ. */
static ALWAYS_INLINE uint64_t flat_places(const struct body *b, bool strided)
{
    return b->geometry.field[SIZE] - (strided ? STRIDE_MOST : 0);
}

/* Returns the table of a body, for one thread. */
static inline struct table flat_table_alone(const struct body *b, bool strided)
{
    return table_make(b->bytes, flat_places(b, strided), (unsigned)b->geometry.field[WIDTH],
                      strided);
}

/* Returns what a key stores in a table with slots of this width. */
static ALWAYS_INLINE struct entry flat_entry(struct keyhash key, uint64_t nplaces,
                                             unsigned width, bool strided)
{
    return cuckoo_entry(key, nplaces, strided ? width - 1 : width);
}

/* ---- Operations of both kinds: see struct filter_kind ------------------------------------ */

int flat_plan(const struct flat_shape *shape, struct geometry *g,
              const struct perhaps_options *options, char *why);
int flat_set_geometry(const struct flat_shape *shape, struct geometry *g);
double flat_predict(const struct flat_shape *shape, const struct geometry *g, double keys);
void flat_picking(const struct flat_shape *shape, const struct geometry *g, struct picking *m);

/* Returns how many entries keep the fpr even if all of them differ. */
double flat_distinct_limit(const struct flat_shape *shape, const struct geometry *g);

void flat_bind(perhaps_filter *f, const struct flat_shape *shape);
struct fill flat_measure(const perhaps_filter *f, uint64_t most_nbytes);
void flat_reads(const perhaps_filter *f, struct keyhash key, struct reads *r);
bool flat_answer(const perhaps_filter *f, struct keyhash key, const uint8_t *const *bytes);
int flat_add(perhaps_filter *f, const struct keyhash *keys, const struct keyhash *ahead,
             size_t n, bool unless_present, bool *answer, size_t *done);
size_t flat_remove(perhaps_filter *f, const struct keyhash *keys, const struct keyhash *ahead,
                   size_t n, bool *answer);
int flat_merge(perhaps_filter *f, const perhaps_filter *other);
void flat_intersect(perhaps_filter *f, const perhaps_filter *other);
void flat_count_picked(const perhaps_filter *a, uint64_t a_factor, const perhaps_filter *b,
                       uint64_t b_factor, struct picked *picked);

/* Returns the size of what the threads of a shared filter need. */
size_t flat_writers_nbytes(const struct geometry *g);

/* Return the table of a filter, with what its threads need, and the entry of a key there. */
struct table flat_table(const perhaps_filter *f);

static ALWAYS_INLINE struct entry flat_table_entry(const struct table *t,
                                                   const struct keyhash *key)
{
    return flat_entry(*key, t->nplaces, t->width, t->strided);
}

#endif
