/* groups.h - the groups of keys of a filter that is exact against others, and how each of them
 * is stored. */
#ifndef GROUPS_BUILD_H
#define GROUPS_BUILD_H

#include <perhaps_embed.h>
#include <stdbool.h>
#include <stdint.h>

enum { GROUPS_PARTS_MOST = 31 }; /* first parts: of 1 to 31 bits */

/* How a group is stored; or how much of it there is to store. */
struct group {
    uint64_t listed, others; /* keys; one that came again counts again */
    uint32_t number;
    uint8_t code; /* of the kind (GROUP_NONE, ...); 0: this is no group */
};

/* All groups, in a hash table.  So that an enemy's keys do not fill the memory, there are at
 * most GROUPS_MOST; keys of further ones are counted in 'rest'. */
struct groups {
    struct group *at;
    uint64_t n, room; /* a power of 2, or 0 */
    struct group rest;
    unsigned bits[GROUPS_PARTS_MOST]; /* of the first parts */
    unsigned nparts;
};

/* Returns the group of this number, or the rest.  With 'adds' it is made if it is not there;
 * NULL: there is no memory for it. */
struct group *groups_find(struct groups *all, uint32_t number, bool adds,
                          const struct perhaps_allocator *allocator);

/* Chooses the parts and the code of each group so that all takes the fewest bits, keys of
 * neither list having the fpr if that is at most 1/2. */
void groups_choose(struct groups *all, double fpr);

/* Returns how many groups have another code than the rest. */
uint64_t groups_told(const struct groups *all);

/* Writes these groups, sorted by number, to 'sorted'. */
void groups_sort(const struct groups *all, struct group *sorted);

void groups_end(struct groups *all, const struct perhaps_allocator *allocator);

#endif
