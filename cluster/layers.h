/* layers.h - the description of a filter, and its layers as they are open here. */
#ifndef LAYERS_H
#define LAYERS_H

#include "handle.h"

/* Opens the filter that is described. */
int layers_open(perhaps_cluster *c);

/* Opens layers that others have made since. */
int layers_renew(perhaps_cluster *c);

/* Forgets what is open. */
void layers_close(perhaps_cluster *c);

/* Reads the description anew.  PERHAPS_ERR_MISSING where there is none; what the handle has
 * open is left alone. */
int layers_describe(perhaps_cluster *c, struct description *about);

/* Opens the layers that are ready and not open yet. */
int layers_open_ready(perhaps_cluster *c, const struct description *about);

/* What clients ask the description beside their work: is that layer ready; the id. */
enum question { ASK_READY, ASK_ID, ASKS };
void layers_write_question(const perhaps_cluster *c, enum question question, unsigned layer,
                           struct resp *out);

/* Sets *ready to the answer to ASK_READY.  An error for the id of another filter. */
int layers_take_answer(perhaps_cluster *c, enum question question, const struct reply *reply,
                       bool *ready);

/* The key of the counts of a filter with that id. */
void layers_name_counts(const perhaps_cluster *c, const char *id,
                        char counts[sizeof((perhaps_cluster *)NULL)->counts]);

/* The suffix of a layer. */
void layers_name(const perhaps_cluster *c, struct layer *layer, unsigned index);

size_t layers_block_nbytes(const perhaps_layout *layout);

/* The size and the suffix of a layer whose layout is there. */
int layers_measure(perhaps_cluster *c, struct layer *layer, unsigned index,
                   uint64_t partitions);

#endif
