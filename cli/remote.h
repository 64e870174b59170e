/* remote.h - a filter that lies on servers, redis://host:port/name, and who talks to them. */
#ifndef REMOTE_H
#define REMOTE_H

#include <perhaps_cluster.h>

#include "input.h"
#include "lines.h"
#include "options.h"
#include "request.h"

/* A build without the client (PERHAPS_CLUSTER=OFF): remote_new() refuses every address, so that
 * none of these is called. */
#ifdef WITHOUT_CLUSTER
#pragma weak perhaps_cluster_add_many
#pragma weak perhaps_cluster_contains_many
#pragma weak perhaps_cluster_create
#pragma weak perhaps_cluster_delete
#pragma weak perhaps_cluster_download
#pragma weak perhaps_cluster_free
#pragma weak perhaps_cluster_name
#pragma weak perhaps_cluster_new
#pragma weak perhaps_cluster_open
#pragma weak perhaps_cluster_problem
#pragma weak perhaps_cluster_stats
#pragma weak perhaps_cluster_upload
#pragma weak perhaps_cluster_verify
enum { WITH_CLUSTER = 0 };
#else
enum { WITH_CLUSTER = 1 };
#endif

struct remote;

/* Whether it is the address of such a filter. */
bool is_remote(const char *path);

/* Makes ready, and reaches for no server yet.  'doing' ("making") stands in the progress line
 * of long work.  Returns 0, or the exit status, having complained; remote_close() is due then,
 * too. */
int remote_new(const char *address, const struct settings *settings, const char *doing,
               struct remote **remote);

/* NULL is allowed. */
void remote_close(struct remote *remote);

/* Its address without a password. */
const char *remote_name(const struct remote *remote);

/* The hash: of the filter that the verb makes, or of that which is there. */
const struct hashing *remote_hashing(const struct remote *remote);

/* For what one thread does alone. */
perhaps_cluster *remote_handle(const struct remote *remote);

/* Returns 0; or the exit status, having complained of the error that a call with this handle
 * returned, and the outcome ("; F was not made"). */
int remote_settle(const struct remote *remote, int error, const char *outcome);

int remote_open(struct remote *remote);

/* Stages' work, by any number of threads, each of which that works has a handle of its own:
 * asks an open filter about the keys of a block, or adds them.  Writes the answers, of which
 * those that are not known are false.  Returns whether all went well. */
bool remote_ask(struct remote *remote, struct block *block, size_t *npresent);
bool remote_add(struct remote *remote, struct block *block);

/* Whether the error of the block is that of a key, the one behind those that are done. */
bool remote_blames_key(const struct block *block);

/* input_complain(), for blocks that have gone through these. */
int remote_complain(const struct remote *remote, const struct input *input,
                    const struct block *last, const char *outcome);

#endif
