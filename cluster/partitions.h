/* partitions.h - the Redis strings that hold the blocks of a filter.
 *
 *     perhaps:{NAME/P}:ID     | block | block | ...         | block | footer |
 *                             <-- partition_nbytes() --------------->
 *
 * The tag {NAME/P} gives the slot, so partition P of all layers lies in one.  A string has its
 * whole length from the beginning, and nothing makes it shorter: one that has another length
 * than it should have is lost. */
#ifndef PARTITIONS_H
#define PARTITIONS_H

#include "handle.h"

enum { FOOTER_NBYTES = 64, PARTITIONS_MOST = 1 << 24 };

/* What a partition may take of a server's memory: its blocks; and beside them its footer, and
 * up to 16 bytes that Redis has in each string. */
enum { PARTITION_NBYTES_MOST = 16 << 20, PARTITION_NBYTES_BESIDE = FOOTER_NBYTES + 16 };

/* The length of a partition without its footer. */
size_t partition_nbytes(const struct layer *layer, uint64_t partition);

/* Begins a command to a partition, whose name is the first of 'nargs' arguments; the others are
 * to follow, about 'nbytes' bytes of them. */
void partition_command(const perhaps_cluster *c, const struct layer *layer, uint64_t partition,
                       const char *command, unsigned nargs, size_t nbytes, struct resp *out);

/* Writes GETRANGE of some bytes of a partition. */
void partition_getrange(const perhaps_cluster *c, const struct layer *layer, uint64_t partition,
                        size_t offset, size_t nbytes, struct resp *out);

/* Whether the answer to STRLEN is what it should be. */
bool partition_is_whole(const struct layer *layer, uint64_t partition,
                        const struct reply *reply);

/* Makes sure that partition_slot[] has the slots of so many partitions. */
int partitions_find_slots(perhaps_cluster *c, uint64_t partitions);

/* Makes all partitions of a layer, all bits zero; those that are there are left as they are. */
int partitions_make(perhaps_cluster *c, const struct layer *layer);

/* Removes them; those that are not there do no harm. */
int partitions_remove(perhaps_cluster *c, const struct layer *layer);

/* Compares the lengths of all partitions of all layers with what they should be.
 * PERHAPS_ERR_LOST: 'census' tells how many have another. */
struct census {
    uint64_t looked_at, lost, first_lost;
    unsigned first_layer;
};
int partitions_check(perhaps_cluster *c, struct census *census);

/* The same for the partitions on servers that can be reached at once. */
int partitions_check_reachable(perhaps_cluster *c);

/* The same for the partitions on servers that answered in the last exchange over a connection
 * that was made since they were last looked at.  A server that has restarted without its data
 * has broken off all connections, and so has one whose place another took: where a connection
 * has not broken, the data are still there. */
int partitions_check_new(perhaps_cluster *c);

/* The same for n partitions of a layer.  'remove': those that are lost are removed, since what
 * is there was made by adding to what was not there any more. */
int partitions_look(perhaps_cluster *c, const struct layer *layer, const uint32_t *partition,
                    size_t n, bool remove);

/* Returns PERHAPS_ERR_LOST, and says which partition it is. */
int partitions_fail_lost(perhaps_cluster *c, const struct layer *layer, uint64_t partition);

#endif
