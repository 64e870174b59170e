/* cache.h - names by e-mail address, in Redis.
 *
 * A cache is a connection, for one thread at a time.  All entries of this program, and no
 * others, have a prefix of their own; and they expire. */
#ifndef CACHE_H
#define CACHE_H

#include <stdbool.h>
#include <stdint.h>

#include "people.h"

struct cache;

/* 'url' is redis://[:password@]host[:port]; 'prefix' that of the entries.  What cannot be done,
 * here and below, ends the program with a line (fail()). */
struct cache *cache_open(const char *url, const char *prefix);
void cache_close(struct cache *cache);

/* Whether the address is in the cache; and then whether somebody has it, and who. */
bool cache_get(struct cache *cache, const char *email, bool *exists,
               char name[NAME_NBYTES_MAX + 1]);

/* 'name' NULL: nobody has it.  Does not wait for the answer, which is looked at before the next
 * question. */
void cache_put(struct cache *cache, const char *email, const char *name);

/* Removes all entries with the prefix; returns how many there were. */
uint64_t cache_clear(struct cache *cache);

/* All memory of the server that is in use, for whatever. */
uint64_t cache_server_nbytes(struct cache *cache);

#endif
