/* slots.h - the slot of a Redis key, and the nodes of a cluster whose slots are shared
 * evenly. */
#ifndef SLOTS_H
#define SLOTS_H

#include <stddef.h>
#include <stdint.h>

enum { SLOTS = 16384 };

/* CRC16 (XMODEM), of what stands between the first { and the next } if that is something. */
unsigned name_slot(const char *key, size_t nbytes);

/* The same of a key without braces. */
unsigned plain_name_slot(const char *key, size_t nbytes);

#endif
