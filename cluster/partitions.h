/* partitions.h - the Redis strings that hold the blocks of a filter.
 *
 *     perhaps:{NAME/P}:ID     | block | block | ...         | block | footer |
 *                             <-- partition_nbytes() --------------->
 *
 * The hash tag {NAME/P} gives the slot, so partition P of all layers lies in the same slot.  A
 * string has its whole length from the beginning, and nothing makes it shorter.  So a partition
 * whose length is not what it should be has been lost. */
#ifndef PARTITIONS_H
#define PARTITIONS_H

#include "handle.h"

/* The footer says in plain text which partition a string is, for people who look at servers. */
enum { FOOTER_NBYTES = 64, PARTITIONS_MOST = 1 << 24 };

/* How much of a server's memory a partition may take: its blocks; and beside them the footer,
 * and up to 16 bytes that Redis itself keeps in each string. */
enum { PARTITION_NBYTES_MOST = 16 << 20, PARTITION_NBYTES_BESIDE = FOOTER_NBYTES + 16 };

/* Returns the length of a partition without its footer. */
size_t partition_nbytes(const struct layer *layer, uint64_t partition);

/* Begins a command to a partition.  Its Redis key is the first of 'nargs' arguments; the caller
 * writes the others, which have about 'nbytes' bytes together. */
void partition_command(const perhaps_cluster *c, const struct layer *layer, uint64_t partition,
                       const char *command, unsigned nargs, size_t nbytes, struct resp *out);

/* Writes a GETRANGE of 'nbytes' bytes of a partition. */
void partition_getrange(const perhaps_cluster *c, const struct layer *layer, uint64_t partition,
                        size_t offset, size_t nbytes, struct resp *out);

/* Returns whether a reply to STRLEN is the length that the partition should have. */
bool partition_is_whole(const struct layer *layer, uint64_t partition,
                        const struct reply *reply);

/* Writes the last three arguments of a BITFIELD, which ask for the first byte of the footer;
 * and returns whether the number in the reply is that byte.  A partition that was lost has
 * none. */
void partition_put_proof(const struct layer *layer, uint64_t partition, struct resp *out);
bool partition_is_proven(long long number);

/* Makes room to note the slots of the first 'partitions' partitions, and, unless 'layer' is
 * NULL, what was seen of those of the layer.  Returns 0 or PERHAPS_ERR_MEMORY, without a
 * problem. */
int partitions_make_room(perhaps_cluster *c, struct layer *layer, uint64_t partitions);

/* Returns the slot of a partition, for which there is room.  It is computed once. */
unsigned partition_slot(perhaps_cluster *c, uint64_t partition);

/* Fills in how many bytes of all layers each node of the map holds, or shall hold. */
void partitions_share_out(perhaps_cluster *c, uint64_t held[NODES_MOST]);

/* Makes all partitions of a layer, with all bits zero; leaves those that are there already as
 * they are. */
int partitions_make(perhaps_cluster *c, const struct layer *layer);

/* Removes all partitions of a layer, as many as there are. */
int partitions_remove(perhaps_cluster *c, const struct layer *layer);

/* What a look at partitions has found. */
struct census {
    uint64_t looked_at, lost, first_lost; /* how many, how many of these; the lowest of them */
    unsigned first_layer;                 /* the layer of that one */
};

/* Compares the lengths of all partitions of all layers with what they should be, and fills in
 * *census.  Returns PERHAPS_ERR_LOST if any differs. */
int partitions_check(perhaps_cluster *c, struct census *census);

/* Compares the lengths of n partitions of a layer with what they should be.  Sets sight[i] to
 * what was seen of partition[i], also after an error, and notes in layer->seen over which
 * connection.  Returns PERHAPS_ERR_LOST if any differs. */
enum sight { SEEN_NOT, SEEN_WHOLE, SEEN_LOST };
int partitions_look(perhaps_cluster *c, struct layer *layer, const uint32_t *partition,
                    size_t n, uint8_t *sight);

/* Removes those of n partitions that were seen to be lost.  What is there of them was made by
 * adding keys after they had gone, and would answer "no" for all keys before. */
int partitions_remove_lost(perhaps_cluster *c, const struct layer *layer,
                           const uint32_t *partition, size_t n, const uint8_t *sight);

/* Sorts a list of partitions, and drops repeated ones.  Returns how many are left. */
size_t partitions_sort(uint32_t *partition, size_t count);

/* Notes which partition is lost and on which server.  Returns PERHAPS_ERR_LOST. */
int partitions_fail_lost(perhaps_cluster *c, const struct layer *layer, uint64_t partition);

#endif
