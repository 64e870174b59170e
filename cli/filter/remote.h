/* remote.h - the connections to a filter on servers: redis://host:port/name. */
#ifndef REMOTE_H
#define REMOTE_H

#include "../input/lines.h"
#include "../options.h"
#include "client.h"

struct remote;

/* Returns whether 'path' is the address of a filter on servers. */
bool is_remote(const char *path);

/* Ends the program if 'path' was meant as such an address, but is neither one nor a file. */
void remote_refuse_typo(const char *path);

/* Makes the connections, and connects to no server yet.  'hashing' is for the client, 'doing' a
 * word for the progress line of long work ("making").  Ends the program if the address is
 * wrong; *remote is set by then, so that it can be closed. */
void remote_new(struct remote **remote, const struct settings *settings,
                const struct perhaps_hashing *hashing, const char *address, const char *doing);

/* Closes all connections.  'remote' may be NULL. */
void remote_close(struct remote *remote);

/* Connects to the servers and opens the filter, or ends the program. */
void remote_open(struct remote *remote);

/* Returns the address without a password; it lives as long as 'remote'. */
const char *remote_name(const struct remote *remote);

/* Returns the handle for calls that one thread makes alone. */
perhaps_cluster *remote_handle(const struct remote *remote);

/* Lets all handles give back what they have reserved, so that statistics are exact. */
void remote_rest(const struct remote *remote);

/* Ends the program if a call with this handle returned an error (0: none).  'outcome' ("; F was
 * not made") ends the message. */
void remote_settle(const struct remote *remote, int error, const char *outcome);

/* Ends the program if a call returned an error that makes a filter, and leaves nothing there if
 * it fails. */
void remote_settle_made(const struct remote *remote, int error);

/* These are for stages: any number of threads may call them, and each gets a handle of its own.
 * They ask an open filter about the keys of a block, or add the keys to it, and write the
 * answers.  If they fail they return false and note the error in the block.
 *
 * While some servers fail, remote_ask() does not: block->nunknown of the answers are then
 * unknown, and remote_problem() tells why.  It waits for the servers as long as it may once,
 * and then only for a moment.  It fails if many keys one after the other are unknown, if the
 * filter can no longer be opened, or for another reason. */
bool remote_ask(struct remote *remote, struct block *block, size_t *npresent);
bool remote_add(struct remote *remote, struct block *block);

/* Returns why answers were unknown first; an empty text if none was. */
const char *remote_problem(const struct remote *remote);

/* Returns whether the error of the block says that the filter is gone, or a part of it. */
bool remote_has_lost(const struct block *block);

/* Returns whether the error of the block is about a key: the first one that is not done. */
bool remote_blames_key(const struct block *block);

#endif
