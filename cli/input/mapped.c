/* mapped.c - files in memory, and what happens if one of them is cut off. */
#include "mapped.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../base/pages.h"

/* The addresses that are reserved are zeros, over which files are mapped.  Only the main thread
 * writes these, before there are others. */
static char *begin, *used, *end;
static uintptr_t page_nbytes = 4096;
static _Atomic(const char *) torn;

static struct sigaction others; /* what SIGBUS does where no file of ours lies */

/* Puts zeros in the place of all that follows the address: what was read there is not used any
 * more, and so there are few mappings, of which a process may have only some thousands.  Says
 * so before it does so, so that another thread cannot read zeros and find that all is well. */
static void on_bus_error(int number, siginfo_t *info, void *context)
{
    (void)context;
    int saved = errno;
    char *at = info->si_addr;
    const char *none = NULL;
    if (at >= begin && at < end) {
        char *page = at - (uintptr_t)at % page_nbytes;
        atomic_compare_exchange_strong(&torn, &none, at);
        if (mmap(page, (size_t)(end - page), PROT_READ,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) == page) {
            errno = saved;
            return;
        }
    }
    sigaction(number, &others, NULL); /* the access is tried again */
}

static uint64_t whole_pages(uint64_t nbytes)
{
    return (nbytes + page_nbytes - 1) / page_nbytes * page_nbytes;
}

bool mapped_reserve(uint64_t nbytes, size_t nfiles)
{
    struct sigaction action = { .sa_sigaction = on_bus_error, .sa_flags = SA_SIGINFO };
    page_nbytes = (uintptr_t)sysconf(_SC_PAGESIZE);
    /* A file may begin and end within a page, and has a page of zeros behind it. */
    uint64_t room = whole_pages(nbytes) + (nfiles + 1) * (3 * page_nbytes + HUGE_NBYTES);
    char *reserved =
        mmap(NULL, room, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (reserved == MAP_FAILED)
        return false;
    begin = used = reserved;
    end = reserved + room;
    sigemptyset(&action.sa_mask);
    return sigaction(SIGBUS, &action, &others) == 0;
}

/* Large pages can be used where addresses and offsets are multiples of HUGE_NBYTES at the same
 * bytes, if the system has the file in such pages. */
const char *mapped_add(int fd, off_t at, uint64_t nbytes)
{
    uint64_t before = (uint64_t)at % page_nbytes, length = before + nbytes;
    if (nbytes >= HUGE_NBYTES)
        used += ((uint64_t)at - before - (uintptr_t)used) % HUGE_NBYTES;
    char *place = used;
    if (nbytes == 0)
        return place;
    if (mmap(place, length, PROT_READ, MAP_PRIVATE | MAP_FIXED, fd, at - (off_t)before) !=
        place) {
        /* A failed call may have removed what was reserved there. */
        int saved = errno;
        (void)!mmap(place, whole_pages(length), PROT_READ,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
        errno = saved;
        return NULL;
    }
    used += whole_pages(length) + page_nbytes;
    return place + before;
}

const char *mapped_begin(void)
{
    return begin;
}

const char *mapped_end(void)
{
    return used;
}

const char *mapped_torn(void)
{
    return atomic_load(&torn);
}
