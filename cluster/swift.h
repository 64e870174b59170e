/* swift.h - one command to each node for all keys of a batch, where servers have our module. */
#ifndef SWIFT_H
#define SWIFT_H

#include "batch.h"

/* Ask a layer for the pending keys, or add them to it, as far as servers have the module:
 * once, and without trying again.  Request i is that for the pending key i, whose partition is
 * known. Of each that is done, batch->before[i] is set, and the answer of the key, or
 * no_from[i], which is proven.  An add that may be done is BEFORE_SENT.  The others must go by
 * plain commands.
 *
 * Return 0; or an error that ends the call: plain commands would not help. */
int swift_ask(perhaps_cluster *c, unsigned layer, bool replicas);
int swift_add(perhaps_cluster *c, unsigned layer);

#endif
