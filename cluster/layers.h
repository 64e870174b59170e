/* layers.h - filters and their layers come and go. */
#ifndef LAYERS_H
#define LAYERS_H

#include "cluster.h"

/* Makes a filter whose first layer has the layout, which is the handle's from now on, and opens
 * it.  'fill' (or NULL) writes to its partitions before others can open it. */
int layers_make_first(perhaps_cluster *c, perhaps_layout *layout,
                      const struct perhaps_options *options, uint64_t partitions,
                      int (*fill)(perhaps_cluster *c, void *context), void *context);

/* Opens layers that others have made since. */
int layers_renew(perhaps_cluster *c);

/* Makes the next layer, unless others have. */
int layers_grow(perhaps_cluster *c);

#endif
