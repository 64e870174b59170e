/* create.h - filters and their layers come and go. */
#ifndef CREATE_H
#define CREATE_H

#include "handle.h"

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

#endif
