/* layers.h - the description of a filter, and its layers as they are open here.
 *
 *     on servers                      struct description           c->layer[I]
 *     layer.I  as it is planned       about.layer[I].planned
 *     ready.I  all partitions made    about.layer[I].ready  ----->  open: layout, size, names
 *     keys.I   in the counts          about.layer[I].keys
 *
 * Layers become ready one after the other and never go away, as long as the ID is the same.  So
 * a handle that is behind only ever lacks the newest. */
#ifndef LAYERS_H
#define LAYERS_H

#include "handle.h"

/* Opens the filter that is described. */
int layers_open(perhaps_cluster *c);

/* Opens layers that others have made since. */
int layers_renew(perhaps_cluster *c);

/* Forgets all that is open. */
void layers_close(perhaps_cluster *c);

/* Reads the description anew.  PERHAPS_ERR_MISSING where there is none; what the handle has
 * open is left alone. */
int layers_describe(perhaps_cluster *c, struct description *about);

/* Opens the layers that are ready and not open yet.  An error if the filter is not ready, or is
 * not the one that is open. */
int layers_open_ready(perhaps_cluster *c, const struct description *about);

/* What clients ask the description beside their work: whether a layer is ready; what the ID
 * is. */
enum question { ASK_READY, ASK_ID, ASKS };
void layers_write_question(const perhaps_cluster *c, enum question question, unsigned layer,
                           struct resp *out);

/* Sets *ready to the answer to ASK_READY.  Returns an error for the ID of another filter. */
int layers_take_answer(perhaps_cluster *c, enum question question, const struct reply *reply,
                       bool *ready);

/* Writes the Redis key of the counts of a filter with that ID. */
void layers_name_counts(const perhaps_cluster *c, const char *id,
                        char counts[sizeof((perhaps_cluster *)NULL)->counts]);

/* Sets the suffix of a layer. */
void layers_name(const perhaps_cluster *c, struct layer *layer, unsigned index);

size_t layers_block_nbytes(const perhaps_layout *layout);

/* Sets size and suffix of a layer whose layout is there, and finds the slots of its partitions.
 * There may be a few fewer of these than were asked for: the blocks of a partition are rounded
 * up.  PERHAPS_ERR_LIMIT if so many cannot be. */
int layers_measure(perhaps_cluster *c, struct layer *layer, unsigned index,
                   uint64_t partitions);

#endif
