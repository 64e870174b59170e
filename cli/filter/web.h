/* web.h - a filter file on a web server, of which only some ranges are read: https://host/F. */
#ifndef WEB_H
#define WEB_H

#include "../input/lines.h"
#include "../options.h"
#include <perhaps_remote.h>

struct web;

/* Returns whether 'path' is the address of a file on a web server. */
bool is_web(const char *path);

/* Opens the file at an address, or ends the program.  *web is set as soon as there is something
 * to close. */
void web_open(struct web **web, const struct settings *settings,
              const struct perhaps_hashing *hashing, const char *address);

/* Closes all connections.  NULL is allowed. */
void web_close(struct web *web);

/* A stage: asks about the keys of a block, and writes the answers.  Any number of threads may
 * do so at once; they wait for each other.  Returns false, and notes the error in the block, if
 * it fails. */
bool web_ask(struct web *web, struct block *block, size_t *npresent);

/* Tells what the header of the file tells. */
void web_stats(const struct web *web, struct perhaps_stats *stats);
const char *web_note(const struct web *web);
uint64_t web_nbytes(const struct web *web);

#endif
