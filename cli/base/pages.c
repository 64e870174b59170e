/* pages.c - large memory. */
#include "pages.h"

#include <stddef.h>
#include <sys/mman.h>

uint64_t pages_nbytes(uint64_t nbytes)
{
    const uint64_t page = nbytes < HUGE_NBYTES ? 4096 : HUGE_NBYTES;
    return (nbytes + page - 1) / page * page;
}

void *pages_new(uint64_t nbytes)
{
    void *pages =
        mmap(NULL, nbytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED)
        return NULL;
    madvise(pages, nbytes, MADV_HUGEPAGE);
    return pages;
}

void pages_free(void *pages, uint64_t nbytes)
{
    if (pages)
        munmap(pages, nbytes);
}

char *pages_drop(char *begin, char *end)
{
    end -= (uintptr_t)end % HUGE_NBYTES;
    if (end <= begin)
        return begin;
    madvise(begin, (size_t)(end - begin), MADV_DONTNEED);
    return end;
}
