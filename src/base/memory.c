/* memory.c - the memory of a filter: from the system, or from the caller's allocator. */
#include "memory.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "bytes.h"

#define HUGE_PAGE_NBYTES ((size_t)2 << 20)

static void *map_zeros(size_t nbytes)
{
    void *map = mmap(NULL, nbytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return map == MAP_FAILED ? NULL : map;
}

/* From the size of a huge page on the system's allocator maps memory: the kernel zeroes a page
 * when it is first written to, so making a large filter does not take the time to zero all of
 * it.  What is smaller comes from the C library, which gives out again what was released: to
 * map and touch a page takes longer than to zero ten.
 *
 * This maps memory that begins at a multiple of that size, or returns NULL.  To reach this
 * alignment it maps one huge page more than asked, and unmaps what is too much. */
static void *allocate_huge_pages(size_t nbytes)
{
    size_t size = round_up(nbytes, HUGE_PAGE_NBYTES);
    if (size < nbytes || size + HUGE_PAGE_NBYTES < size)
        return NULL;
    uint8_t *map = map_zeros(size + HUGE_PAGE_NBYTES);
    if (!map)
        return NULL;
    size_t before = (size_t)(-(uintptr_t)map & (HUGE_PAGE_NBYTES - 1));
    if (before)
        munmap(map, before);
    if (before < HUGE_PAGE_NBYTES)
        munmap(map + before + size, HUGE_PAGE_NBYTES - before);
    madvise(map + before, size, MADV_HUGEPAGE); /* may fail: small pages work, but slower */
    return map + before;
}

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

static void *system_allocate_scratch(size_t nbytes)
{
    return nbytes >= HUGE_PAGE_NBYTES ? allocate_huge_pages(nbytes)
                                      : align(malloc(nbytes + ALIGNMENT));
}

static void *system_allocate(void *context, size_t nbytes)
{
    void *memory = system_allocate_scratch(nbytes);
    (void)context;
    if (memory && nbytes < HUGE_PAGE_NBYTES)
        memset(memory, 0, nbytes);
    return memory;
}

static void system_release(void *context, void *memory, size_t nbytes)
{
    uint8_t *bytes = memory;
    (void)context;
    if (nbytes >= HUGE_PAGE_NBYTES)
        munmap(memory, round_up(nbytes, HUGE_PAGE_NBYTES));
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

/* Returns how many bytes on huge pages a line of /proc/self/smaps tells of, such as
 * "AnonHugePages: 2048 kB"; 0 for other lines. */
static uint64_t huge_pages_in_line(const char *line)
{
    static const char *const names[] = { "AnonHugePages:", "ShmemPmdMapped:",
                                         "FilePmdMapped:" };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strncmp(line, names[i], strlen(names[i])))
            return 1024 * strtoull(line + strlen(names[i]), NULL, 10);
    return 0;
}

uint64_t huge_nbytes(const void *memory, uint64_t nbytes)
{
    uintptr_t from = (uintptr_t)memory, to = from + (uintptr_t)nbytes;
    int saved = errno;
    FILE *maps = nbytes < HUGE_PAGE_NBYTES ? NULL : fopen("/proc/self/smaps", "re");
    char line[512];
    bool inside = false;
    uint64_t sum = 0;
    while (maps && fgets(line, sizeof line, maps)) {
        char *dash, *rest;
        uintptr_t begin = (uintptr_t)strtoull(line, &dash, 16);
        if (dash > line && *dash == '-') { /* a new mapping begins: "7f00-7f40 rw-p ..." */
            uintptr_t end = (uintptr_t)strtoull(dash + 1, &rest, 16);
            inside = begin < to && from < end;
        } else if (inside) {
            sum += huge_pages_in_line(line);
        }
    }
    if (maps)
        fclose(maps);
    errno = saved;
    return sum < nbytes ? sum : nbytes; /* the kernel may join a neighbour to this mapping */
}
