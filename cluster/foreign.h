/* foreign.h - filters that Redisson made. */
#ifndef FOREIGN_H
#define FOREIGN_H

#include "handle.h"

int foreign_open(perhaps_cluster *c);
int foreign_ask(perhaps_cluster *c, const struct perhaps_keys *keys, size_t *done);
int foreign_add(perhaps_cluster *c, const struct perhaps_keys *keys, size_t *done);
int foreign_stats(perhaps_cluster *c, struct perhaps_cluster_stats *stats);

#endif
