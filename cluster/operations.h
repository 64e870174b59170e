/* operations.h - what can be done with a filter of our own layout.  All functions return 0, or
 * an error, and then nodes.problem of the handle says what is wrong. */
#ifndef OPERATIONS_H
#define OPERATIONS_H

#include "handle.h"
#include <perhaps_layout.h>

/* checks.c.  Writes the description and the counts of the filter whose first layer is planned;
 * or sets *taken if there is one of that name, and changes nothing.  Returns an error if a
 * server cannot hold the filter, or would throw parts of it away; or if the user lacks a right
 * that making it or adding to it needs.  After an error the description may have been
 * written. */
int checks_and_claim(perhaps_cluster *c, bool *taken);

/* create.c.  perhaps_cluster_create() and perhaps_cluster_delete() do what these do. */
int create_empty(perhaps_cluster *c, const struct perhaps_options *options,
                 uint64_t partitions);
int delete_filter(perhaps_cluster *c);

/* Makes a filter whose first layer has this layout, and opens it.  The layout belongs to the
 * handle from now on, also on failure.  'fill' (or NULL) writes to its partitions before others
 * can open it. */
int create_from(perhaps_cluster *c, perhaps_layout *layout,
                const struct perhaps_options *options, uint64_t partitions,
                int (*fill)(perhaps_cluster *c, void *context), void *context);

/* Makes the next layer, unless another client has made it, and opens it. */
int create_layer(perhaps_cluster *c);

/* keys.c.  Ask for, or add, a batch of keys, at most BATCH_KEYS; their answers are then in
 * c->batch.  After an error the answers that are not UNKNOWN are right; *done keys at the
 * beginning of an add have answers. */
int keys_ask(perhaps_cluster *c, const struct perhaps_keys *keys, size_t *done);
int keys_add(perhaps_cluster *c, const struct perhaps_keys *keys, size_t *done);

/* Ends a call that has added batches. */
int keys_settle(perhaps_cluster *c);

/* stats.c: perhaps_cluster_stats_of() and perhaps_cluster_verify() of a filter of ours. */
int stats_collect(perhaps_cluster *c, struct perhaps_cluster_stats *stats);
int stats_verify(perhaps_cluster *c, struct perhaps_cluster_verdict *verdict);

/* recount.c: perhaps_cluster_recount() of a filter of ours; *was and *now are 0 before. */
int recount(perhaps_cluster *c, uint64_t *was, uint64_t *now);

/* transfer.c.  Copies a filter from memory to the servers, and from there to a file. */
int transfer_up(perhaps_cluster *c, const perhaps_filter *filter, uint64_t partitions);
int transfer_down(perhaps_cluster *c, const char *path);

#endif
