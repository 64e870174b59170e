/* operations.h - what can be done with a filter of our own layout.  All return 0, or an error
 * whose problem the handle tells. */
#ifndef OPERATIONS_H
#define OPERATIONS_H

#include "handle.h"

/* create.c */
int create_empty(perhaps_cluster *c, const struct perhaps_options *options,
                 uint64_t partitions);
int delete_filter(perhaps_cluster *c);

/* Makes a filter whose first layer has the layout, which is the handle's from now on, and opens
 * it.  'fill' (or NULL) writes to its partitions before others can open it. */
int create_from(perhaps_cluster *c, perhaps_layout *layout,
                const struct perhaps_options *options, uint64_t partitions,
                int (*fill)(perhaps_cluster *c, void *context), void *context);

/* Makes the next layer, unless others have. */
int create_layer(perhaps_cluster *c);

/* keys.c: a batch of keys, and all layers. */
int keys_ask(perhaps_cluster *c, const struct perhaps_keys *keys, size_t *done);
int keys_add(perhaps_cluster *c, const struct perhaps_keys *keys, size_t *done);

/* stats.c */
int stats_collect(perhaps_cluster *c, struct perhaps_cluster_stats *stats);
int stats_verify(perhaps_cluster *c, struct perhaps_cluster_verdict *verdict);

/* transfer.c: from a filter in memory, and to a file. */
int transfer_up(perhaps_cluster *c, const perhaps_filter *filter, uint64_t partitions);
int transfer_down(perhaps_cluster *c, const char *path);

#endif
