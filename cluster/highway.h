/* highway.h - HighwayHash-128. */
#ifndef HIGHWAY_H
#define HIGHWAY_H

#include <stddef.h>
#include <stdint.h>

void highway128(const uint64_t key[4], const void *bytes, size_t nbytes, uint64_t hash[2]);

#endif
