/* keys.h - a chunk of keys, and all layers. */
#ifndef KEYS_H
#define KEYS_H

#include "handle.h"

/* The answers are the chunk's.  *done: the keys before it have been dealt with. */
int keys_ask(perhaps_cluster *c, const struct perhaps_keys *keys, size_t *done);
int keys_add(perhaps_cluster *c, const struct perhaps_keys *keys, size_t *done);

#endif
