/* memory.c - the memory of a filter: from the system, or from the caller's allocator. */
#include "memory.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../system/system.h"
#include "bytes.h"

/* A caller's allocator may return any address and any bytes.  So the library asks it for
 * ALIGNMENT bytes more, skips 1 to ALIGNMENT bytes up to an aligned address, and writes into
 * the byte before that address how many it skipped.  It does so with malloc(), too: of glibc's
 * aligned_alloc() a small filter takes a sixth more memory and, with free(), 100 ns. */
enum { ALIGNMENT = 64 };

static size_t shift_of(const uint8_t *block)
{
    return ALIGNMENT - (uintptr_t)block % ALIGNMENT;
}

static void *align(uint8_t *block)
{
    if (!block)
        return NULL;
    size_t shift = shift_of(block);
    block[shift - 1] = (uint8_t)shift;
    return block + shift;
}

/* Large blocks are pages of the system: making a large filter does not take the time to zero
 * all of it.  What is smaller comes from the C library, which gives out again what was
 * released: to map and touch a page takes longer than to zero ten. */
static void *system_allocate_scratch(size_t nbytes)
{
    return nbytes >= PAGES_NBYTES_LEAST ? map_pages(nbytes) : align(malloc(nbytes + ALIGNMENT));
}

static void *system_allocate(void *context, size_t nbytes)
{
    void *memory = system_allocate_scratch(nbytes);
    (void)context;
    if (memory && nbytes < PAGES_NBYTES_LEAST)
        memset(memory, 0, nbytes);
    return memory;
}

static void system_release(void *context, void *memory, size_t nbytes)
{
    uint8_t *bytes = memory;
    (void)context;
    if (nbytes >= PAGES_NBYTES_LEAST)
        unmap_pages(memory, nbytes);
    else
        free(bytes - bytes[-1]);
}

struct perhaps_allocator allocator_or_system(const struct perhaps_allocator *allocator)
{
    if (allocator)
        return *allocator;
    return (struct perhaps_allocator){ .allocate = system_allocate, .release = system_release };
}

static bool is_system(const struct perhaps_allocator *allocator)
{
    return allocator->allocate == system_allocate;
}

void *allocate_scratch(const struct perhaps_allocator *allocator, uint64_t nbytes)
{
    if (nbytes > SIZE_MAX - ALIGNMENT)
        return NULL;
    if (is_system(allocator))
        return system_allocate_scratch((size_t)nbytes);
    return align(allocator->allocate(allocator->context, (size_t)nbytes + ALIGNMENT));
}

void *allocate(const struct perhaps_allocator *allocator, uint64_t nbytes)
{
    if (is_system(allocator) && nbytes <= SIZE_MAX - ALIGNMENT)
        return system_allocate(NULL, (size_t)nbytes);
    void *memory = allocate_scratch(allocator, nbytes);
    if (memory && !allocator->zeroes)
        memset(memory, 0, (size_t)nbytes);
    return memory;
}

static void release_block(const struct perhaps_allocator *allocator, uint8_t *memory,
                          size_t nbytes)
{
    if (is_system(allocator))
        system_release(NULL, memory, nbytes);
    else
        allocator->release(allocator->context, memory - memory[-1], nbytes + ALIGNMENT);
}

void release(const struct perhaps_allocator *allocator, void *memory, uint64_t nbytes)
{
    int saved = errno;
    if (memory)
        release_block(allocator, memory, (size_t)nbytes);
    errno = saved;
}

uint64_t taken_nbytes(const struct perhaps_allocator *allocator, uint64_t nbytes)
{
    return is_system(allocator) ? nbytes : nbytes + ALIGNMENT;
}

/* The mover copies the bytes of a block as they are.  If the new block lies otherwise between
 * two multiples of ALIGNMENT, the content is shifted until it is aligned again. */
void *relocate(const struct perhaps_allocator *allocator, const struct mover *mover,
               void *memory, uint64_t nbytes)
{
    if (!memory || is_system(allocator))
        return memory;
    size_t before = ((const uint8_t *)memory)[-1];
    uint8_t *block =
        mover->move(mover->context, (uint8_t *)memory - before, (size_t)nbytes + ALIGNMENT);
    if (!block)
        return memory;
    if (shift_of(block) != before)
        memmove(block + shift_of(block), block + before, (size_t)nbytes);
    return align(block);
}
