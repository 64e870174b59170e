/* discover.h - finds the servers: reads the map of a cluster. */
#ifndef DISCOVER_H
#define DISCOVER_H

#include "nodes.h"

/* Reads the map from any server that answers, unless it is known and not stale.  Returns 0 or
 * an error, and then the map is as it was. */
int discover(struct nodes *nodes);

/* Returns nodes_hide(), after some servers of the map were tried for HIDDEN_MS. */
const struct link *discover_hidden(struct nodes *nodes);

#endif
