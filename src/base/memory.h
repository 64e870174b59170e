/* memory.h - memory of a filter. */
#ifndef MEMORY_H
#define MEMORY_H

#include <perhaps.h>

/* The caller's allocator, or the system's: zeroed pages for what is large, on huge pages
 * where the kernel has them, since a query is one random access and a TLB miss doubles it. */
struct perhaps_allocator allocator_or_system(const struct perhaps_allocator *allocator);

/* Zeroed and aligned to 64 bytes, or NULL. */
void *allocate(const struct perhaps_allocator *allocator, uint64_t nbytes);

/* Leaves errno alone.  NULL is allowed. */
void release(const struct perhaps_allocator *allocator, void *memory, uint64_t nbytes);

/* How many bytes of this memory lie on huge pages; 0 where the system does not tell. */
uint64_t huge_nbytes(const void *memory, uint64_t nbytes);

#endif
