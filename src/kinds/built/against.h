/* against.h - filters that are exact where the other side is known. */
#ifndef AGAINST_H
#define AGAINST_H

#include "../../filter/filter.h"

/* The fields.  The last two are 0 where keys have no groups. */
enum {
    AGAINST_BASE,
    AGAINST_OTHERS,
    AGAINST_ROW_BITS,
    AGAINST_GROUPS,      /* how many groups the table has */
    AGAINST_OTHER_GROUPS /* the code of all other groups */
};

/* What the code of a group says.  From GROUP_PARTS on, it names a first part by its number,
 * twice: the even code is for listed keys in it, the odd one for those that are not listed. */
enum {
    GROUP_NONE = 1,  /* no key is listed */
    GROUP_ALL = 2,   /* each one is */
    GROUP_EXACT = 3, /* the last part alone tells */
    GROUP_PARTS = 4
};

/* Returns the hash with which a key goes to the second part.  With the same hash both parts
 * would have nearly the same equations, and what the first one takes for listed the second one
 * would take for listed, too.  The mark stays the same multiple of the place, if it is one. */
static inline struct keyhash against_second(struct keyhash key)
{
    return (struct keyhash){ .place = key.place * ODD_PI, .mark = key.mark * ODD_PI };
}

/* Returns the group of a key, by its own hash. */
static inline uint32_t against_group(struct keyhash key)
{
    return (uint32_t)key.mark;
}

/* Returns the hash with which a key of a group goes to a first part: in its own the mark of all
 * keys of a group ends alike. */
static inline struct keyhash against_mixed(struct keyhash key)
{
    uint64_t x = key.place * ODD_GOLDEN ^ key.mark;
    x = (x ^ x >> 32) * ODD_PI;
    return (struct keyhash){ .place = key.place, .mark = x ^ x >> 29 };
}

/* Returns how many bits a key has in the first part, so that both parts take the fewest. */
unsigned against_row_bits(uint64_t listed, uint64_t others, double fpr);

/* Returns where in the body the table of groups has the number of a group, and its code. */
static inline uint64_t against_number_at(uint64_t i)
{
    return LINE_NBYTES + i * sizeof(uint32_t);
}

static inline uint64_t against_code_at(const struct geometry *g, uint64_t i)
{
    return against_number_at(g->field[AGAINST_GROUPS]) + i;
}

/* Returns the code of a group. */
unsigned against_code(const perhaps_filter *f, uint32_t group);

/* What the first parts of a filter with groups say to keys. */
struct against_asked {
    struct keyhash mixed[BATCH_STEP]; /* the hash by which a part was asked */
    bool answer[BATCH_STEP];          /* whether the key is listed, if not 'open' */
    bool open[BATCH_STEP];            /* the last part tells whether it is */
};

/* Asks the first parts, of which there are 'nfirst', for n keys, at most BATCH_STEP. */
void against_ask_first(const perhaps_filter *f, size_t nfirst, const struct keyhash *keys,
                       size_t n, struct against_asked *asked);

#endif
