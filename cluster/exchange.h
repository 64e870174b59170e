/* exchange.h - sends requests again, elsewhere or later, until they are answered. */
#ifndef EXCHANGE_H
#define EXCHANGE_H

#include "round.h"

/* Runs the exchange to its end.  Returns 0 when all its requests were answered, and as many
 * replicas have acknowledged as must; or an error, with nodes->problem, and then some of the
 * requests may have been done. */
int exchange_run(struct nodes *nodes, const struct exchange *exchange);

#endif
