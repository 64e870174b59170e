/* exchange.h - requests that are tried again, elsewhere or later, until they are answered. */
#ifndef EXCHANGE_H
#define EXCHANGE_H

#include "round.h"

/* Returns 0, or an error with nodes->problem. */
int exchange_run(struct nodes *nodes, const struct exchange *exchange);

/* Reads the map from a server that answers, if it is stale.  Returns 0 or an error. */
int exchange_find_nodes(struct nodes *nodes);

#endif
