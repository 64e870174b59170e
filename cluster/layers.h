/* layers.h - reads the description of a filter from the servers, and opens its layers.
 *
 *     on servers                      struct description           c->layer[I]
 *     layer.I  as it is planned       about.layer[I].planned
 *     ready.I  all partitions made    about.layer[I].ready  ----->  open: layout, size, names
 *     keys.I   in the counts          about.layer[I].count
 *
 * Layers become ready one after the other, and none goes away as long as the filter has the
 * same ID.  So a handle that is out of date only lacks the newest layers.
 *
 * Functions that return an int return 0, or an error with nodes.problem. */
#ifndef LAYERS_H
#define LAYERS_H

#include "handle.h"

/* Reads the description and opens the filter; closes what was open before.  On failure nothing
 * is open. */
int layers_open(perhaps_cluster *c);

/* Reads the description again, and opens the layers that other clients have made meanwhile. */
int layers_renew(perhaps_cluster *c);

/* Closes all layers, and the filter. */
void layers_close(perhaps_cluster *c);

/* Reads description and counts into *about, and changes nothing in the handle.  Returns
 * PERHAPS_ERR_MISSING if there is no filter. */
int layers_describe(perhaps_cluster *c, struct description *about);

/* Returns an error if the counts of the filter that is open were lost when they were last
 * read. */
int layers_check_counts(perhaps_cluster *c);

/* Opens the layers that are ready and not open yet.  Returns an error if the filter is not
 * ready, or if it is another one than that which is open. */
int layers_open_ready(perhaps_cluster *c, const struct description *about);

/* What a client asks the description beside its work: whether a layer is ready; what the ID is.
 * So it learns soon that the filter has grown, or that it was deleted. */
enum question { ASK_READY, ASK_ID, ASKS };
void layers_write_question(const perhaps_cluster *c, enum question question, unsigned layer,
                           struct resp *out);

/* Takes the answer: sets *ready by that to ASK_READY; returns an error if that to ASK_ID is not
 * the ID of the filter that is open. */
int layers_take_answer(perhaps_cluster *c, enum question question, const struct reply *reply,
                       bool *ready);

/* Writes the Redis key of the counts of the filter with this ID. */
void layers_name_counts(const perhaps_cluster *c, const char *id,
                        char counts[sizeof((perhaps_cluster *)NULL)->counts]);

/* Sets the suffix of a layer, from its index and the ID of the filter. */
void layers_name(const perhaps_cluster *c, struct layer *layer, unsigned index);

/* Returns the size of a block: of all lines of a key, which lie together. */
size_t layers_block_nbytes(const perhaps_layout *layout);

/* Sets size and suffix of a layer that has its layout, and finds the slots of its partitions.
 * It may have a few partitions fewer than were asked for, since the number of blocks in each is
 * rounded up.  Returns PERHAPS_ERR_LIMIT if there cannot be so many or so few, or
 * PERHAPS_ERR_MEMORY; both without a problem. */
int layers_measure(perhaps_cluster *c, struct layer *layer, unsigned index,
                   uint64_t partitions);

#endif
