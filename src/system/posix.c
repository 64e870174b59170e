/* posix.c - what stands for linux.c on other systems with POSIX.1-2008.
 *
 * All of it but what only macOS has is built and tested on Linux, too (-DPERHAPS_SYSTEM=posix).
 * The lines for macOS (F_FULLFSYNC, F_PREALLOCATE, renamex_np()) are written from its manual
 * pages, and have never run. */
#define _DEFAULT_SOURCE  1
#define _DARWIN_C_SOURCE 1
#include "system.h"

#ifdef SYSTEM_POSIX

#include <errno.h>
#include <fcntl.h>
#include <perhaps_build.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "unix.h"

const char *environment(const char *name)
{
    return getuid() == geteuid() && getgid() == getegid() ? getenv(name) : NULL;
}

/* ---- Files: their bytes ------------------------------------------------------------------ */

#ifdef __APPLE__ /* where fsync() ends when the disk has the bytes in its cache */
#define SYNC(fd)      (fcntl(fd, F_FULLFSYNC) == -1 ? fsync(fd) : 0)
#define fdatasync(fd) SYNC(fd)
#else
#define SYNC(fd) fsync(fd)
#endif

int sync_file(int fd)
{
    int failed;
    while ((failed = SYNC(fd)) && errno == EINTR)
        continue;
    return failed;
}

int sync_data(int fd)
{
    int failed;
    while ((failed = fdatasync(fd)) && errno == EINTR)
        continue;
    return failed;
}

/* posix_fallocate() would change the size of the file. */
int reserve_file(int fd, uint64_t from, uint64_t nbytes)
{
#ifdef F_PREALLOCATE
    fstore_t store = { .fst_flags = F_ALLOCATEALL,
                       .fst_posmode = F_PEOFPOSMODE,
                       .fst_length = (off_t)nbytes };
    (void)from;
    if (fcntl(fd, F_PREALLOCATE, &store) != -1)
        return 0;
    return errno == ENOSPC ? PERHAPS_ERR_IO : PERHAPS_ERR_UNSUPPORTED;
#else
    (void)fd, (void)from, (void)nbytes;
    return PERHAPS_ERR_UNSUPPORTED;
#endif
}

/* Has the disk have room for bytes of a file, which are zeros if they were not there.  Returns
 * 0 or an errno. */
static int allocate_room(int fd, uint64_t at, uint64_t nbytes)
{
#ifdef __APPLE__ /* which does not have it */
    (void)fd, (void)at, (void)nbytes;
    return ENOTSUP;
#else
    return posix_fallocate(fd, (off_t)at, (off_t)nbytes);
#endif
}

int reserve_mapped(int fd, uint64_t nbytes)
{
    int error;
    while ((error = allocate_room(fd, 0, nbytes)) == EINTR)
        continue;
    if (!error || is_lacking(error))
        return 0;
    errno = error;
    return PERHAPS_ERR_IO;
}

bool add_zeros(int fd, uint64_t at, size_t nbytes)
{
    struct stat st;
    const int saved = errno;
    const bool ok = !fstat(fd, &st) && S_ISREG(st.st_mode) && (uint64_t)st.st_size == at &&
                    lseek(fd, 0, SEEK_CUR) == (off_t)at && !allocate_room(fd, at, nbytes) &&
                    lseek(fd, (off_t)nbytes, SEEK_CUR) >= 0;
    errno = saved;
    return ok;
}

uint64_t behind_hole(int fd, uint64_t at, uint64_t end)
{
#ifdef SEEK_DATA
    const off_t data = lseek(fd, (off_t)at, SEEK_DATA);
    if (data >= 0)
        return (uint64_t)data;
    return errno == ENXIO && at < end ? end : at;
#else
    (void)fd, (void)end;
    return at;
#endif
}

/* ---- Files without a name ---------------------------------------------------------------- */

bool has_no_nameless(int error)
{
    return error == ENOTSUP;
}

int create_nameless(const char *folder)
{
    (void)folder;
    errno = ENOTSUP;
    return -1;
}

int name_nameless(int fd, const char *name)
{
    (void)fd, (void)name;
    errno = ENOTSUP;
    return PERHAPS_ERR_IO;
}

int open_temporary(const char *folder)
{
    char path[PATH_NBYTES_MOST];
    int n = snprintf(path, sizeof path, "%s/perhaps.XXXXXX", folder);
    if (n < 0 || (size_t)n >= sizeof path) {
        errno = ENAMETOOLONG;
        return -1;
    }
    int fd = mkstemp(path);
    if (fd < 0)
        return fd;
    if (!unlink(path) && fcntl(fd, F_SETFD, FD_CLOEXEC) != -1)
        return fd;
    const int reason = errno;
    close(fd);
    errno = reason;
    return -1;
}

int rename_replacing_nothing(const char *from, const char *to)
{
#ifdef RENAME_EXCL
    return renamex_np(from, to, RENAME_EXCL);
#else
    (void)from, (void)to;
    errno = ENOTSUP;
    return -1;
#endif
}

/* ---- Pages of memory --------------------------------------------------------------------- */

void want_huge_pages(void *memory, size_t nbytes)
{
    (void)memory, (void)nbytes;
}

bool move_pages(void *from, void *to, size_t nbytes)
{
    (void)from, (void)to, (void)nbytes;
    return false;
}

static bool advise(uint8_t *map, uint64_t at, uint64_t nbytes, int advice)
{
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), begin = at & ~(page - 1);
    return !posix_madvise(map + begin, (size_t)(at + nbytes - begin), advice);
}

void map_advise(uint8_t *map, size_t nbytes, enum map_order order)
{
    static const int advice[] = { [MAP_AS_USUAL] = POSIX_MADV_NORMAL,
                                  [MAP_IN_ORDER] = POSIX_MADV_SEQUENTIAL,
                                  [MAP_AT_RANDOM] = POSIX_MADV_RANDOM };
    advise(map, 0, nbytes, advice[order]);
}

bool map_fetch(uint8_t *map, uint64_t at, uint64_t nbytes)
{
    return advise(map, at, nbytes, POSIX_MADV_WILLNEED);
}

int map_read(uint8_t *map, uint64_t at, uint64_t nbytes)
{
    advise(map, at, nbytes, POSIX_MADV_WILLNEED);
    return 0;
}

/* Those of all threads: POSIX has none of a thread. */
long disk_faults(void)
{
    struct rusage usage;
    const int saved = errno;
    const int failed = getrusage(RUSAGE_SELF, &usage);
    errno = saved;
    return failed ? 0 : usage.ru_majflt;
}

uint64_t huge_nbytes(const void *memory, uint64_t nbytes)
{
    (void)memory, (void)nbytes;
    return 0;
}

/* ---- Limits ------------------------------------------------------------------------------ */

uint64_t ram_nbytes(void)
{
    const uint64_t unknown_nbytes = UINT64_C(4) << 30;
#ifdef _SC_PHYS_PAGES
    const long pages = sysconf(_SC_PHYS_PAGES), page_nbytes = sysconf(_SC_PAGESIZE);
    if (pages > 0 && page_nbytes > 0)
        return (uint64_t)pages * (uint64_t)page_nbytes;
#endif
    return unknown_nbytes;
}

static uint64_t limited(int resource, uint64_t most)
{
    struct rlimit limit;
    return getrlimit(resource, &limit) || limit.rlim_cur == RLIM_INFINITY ||
                   limit.rlim_cur > most
               ? most
               : limit.rlim_cur;
}

/* How much of it others use is not known: half of it is taken for free. */
uint64_t perhaps_host_memory_nbytes(void)
{
    const int saved = errno;
    const uint64_t half = ram_nbytes() / 2, nbytes = limited(RLIMIT_DATA, half);
#ifdef RLIMIT_AS
    const uint64_t addresses = limited(RLIMIT_AS, nbytes);
#else
    const uint64_t addresses = nbytes;
#endif
    errno = saved;
    return addresses;
}

unsigned perhaps_host_threads(void)
{
    const long online = sysconf(_SC_NPROCESSORS_ONLN);
    return online > 0 ? (unsigned)online : 1;
}

#endif
