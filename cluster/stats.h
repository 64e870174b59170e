/* stats.h - what is to be known of a filter on servers. */
#ifndef STATS_H
#define STATS_H

#include "handle.h"

int stats_collect(perhaps_cluster *c, struct perhaps_cluster_stats *stats);
int stats_verify(perhaps_cluster *c, struct perhaps_cluster_verdict *verdict);

#endif
