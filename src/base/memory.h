/* memory.h - the memory of a filter: from the system, or from the caller's allocator. */
#ifndef MEMORY_H
#define MEMORY_H

#include <perhaps.h>
#include <perhaps_embed.h>

/* Returns the caller's allocator, or if that is NULL the system's.  The latter maps large
 * blocks as zeroed pages, and asks the kernel for huge ones: a query is one random memory
 * access, and a TLB miss doubles its time. */
struct perhaps_allocator allocator_or_system(const struct perhaps_allocator *allocator);

/* Returns 'nbytes' bytes, zeroed and aligned to 64 bytes (a cache line); or NULL if there is
 * not enough memory. */
void *allocate(const struct perhaps_allocator *allocator, uint64_t nbytes);

/* Returns the same, but of bytes that may have any value: for work that writes them first. */
void *allocate_scratch(const struct perhaps_allocator *allocator, uint64_t nbytes);

/* Releases what allocate() returned for 'nbytes' bytes.  NULL is allowed.  Leaves errno alone,
 * since it often runs on the way out of a function that failed. */
void release(const struct perhaps_allocator *allocator, void *memory, uint64_t nbytes);

/* Returns how many bytes allocate() asks the caller's allocator for: 'nbytes' and what it takes
 * to align them.  The system's allocator is asked for 'nbytes'. */
uint64_t taken_nbytes(const struct perhaps_allocator *allocator, uint64_t nbytes);

/* What a caller gives to perhaps_relocate(). */
struct mover {
    void *(*move)(void *context, void *memory, size_t nbytes);
    void *context;
};

/* Has the mover move what allocate() returned for 'nbytes' bytes.  Returns where it lies now:
 * where it was, if the mover left it there; always so for NULL and for memory of the system's
 * allocator. */
void *relocate(const struct perhaps_allocator *allocator, const struct mover *mover,
               void *memory, uint64_t nbytes);

#endif
