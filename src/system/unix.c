/* unix.c - what Linux has in common with macOS and the BSDs: POSIX.1-2008, and of what these
 * added to it flock(), getentropy() and anonymous maps. */
#define _DEFAULT_SOURCE  1
#define _DARWIN_C_SOURCE 1
#include "system.h"

#if defined(SYSTEM_LINUX) || defined(SYSTEM_POSIX)

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <perhaps.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#ifdef __APPLE__
#include <sys/random.h>
#endif

#include "unix.h"

/* ---- Threads ----------------------------------------------------------------------------- */

void mutex_begin(struct mutex *mutex)
{
    pthread_mutex_init(&mutex->own, NULL);
}

void mutex_end(struct mutex *mutex)
{
    pthread_mutex_destroy(&mutex->own);
}

void mutex_take(struct mutex *mutex)
{
    pthread_mutex_lock(&mutex->own);
}

void mutex_release(struct mutex *mutex)
{
    pthread_mutex_unlock(&mutex->own);
}

void condition_begin(struct condition *condition)
{
    pthread_cond_init(&condition->own, NULL);
}

void condition_end(struct condition *condition)
{
    pthread_cond_destroy(&condition->own);
}

void condition_wait(struct condition *condition, struct mutex *mutex)
{
    pthread_cond_wait(&condition->own, &mutex->own);
}

void condition_wake(struct condition *condition)
{
    pthread_cond_broadcast(&condition->own);
}

void rwlock_begin(struct rwlock *lock)
{
    pthread_rwlock_init(&lock->own, NULL);
}

void rwlock_end(struct rwlock *lock)
{
    pthread_rwlock_destroy(&lock->own);
}

void rwlock_take(struct rwlock *lock)
{
    pthread_rwlock_wrlock(&lock->own);
}

void rwlock_release(struct rwlock *lock)
{
    pthread_rwlock_unlock(&lock->own);
}

void rwlock_share(struct rwlock *lock)
{
    pthread_rwlock_rdlock(&lock->own);
}

void rwlock_unshare(struct rwlock *lock)
{
    pthread_rwlock_unlock(&lock->own);
}

/* The stack takes less of a limit of addresses (ulimit -v) than the 8 MiB that are usual, and
 * is larger than musl's. */
bool thread_start(struct thread *thread, void *(*work)(void *argument), void *argument)
{
    const size_t stack_nbytes = (size_t)1 << 20;
    pthread_attr_t how;
    sigset_t all, before;
    size_t usual_nbytes;
    if (pthread_attr_init(&how))
        return false;
    if (!pthread_attr_getstacksize(&how, &usual_nbytes) && usual_nbytes > stack_nbytes)
        (void)pthread_attr_setstacksize(&how, stack_nbytes);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const bool started = !pthread_create(&thread->own, &how, work, argument);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&how);
    return started;
}

void thread_join(struct thread *thread)
{
    pthread_join(thread->own, NULL);
}

void thread_yield(void)
{
    sched_yield();
}

void thread_pause(void)
{
    nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
}

uintptr_t thread_self(void)
{
    return (uintptr_t)pthread_self();
}

long process_self(void)
{
    return getpid();
}

int random_bytes(void *bytes, size_t nbytes)
{
    return getentropy(bytes, nbytes) ? PERHAPS_ERR_IO : 0;
}

/* ---- Files: their bytes ------------------------------------------------------------------ */

/* One system call is asked for at most this much.  Linux itself stops at 2 GiB. */
#define CHUNK_NBYTES ((size_t)1 << 30)

/* One of the four system calls; two of them know where they are. */
typedef ssize_t transfer(int fd, void *bytes, size_t nbytes, uint64_t at);

static ssize_t read_next(int fd, void *bytes, size_t nbytes, uint64_t at)
{
    (void)at;
    return read(fd, bytes, nbytes);
}

static ssize_t write_next(int fd, void *bytes, size_t nbytes, uint64_t at)
{
    (void)at;
    return write(fd, bytes, nbytes);
}

static ssize_t read_there(int fd, void *bytes, size_t nbytes, uint64_t at)
{
    return pread(fd, bytes, nbytes, (off_t)at);
}

static ssize_t write_there(int fd, void *bytes, size_t nbytes, uint64_t at)
{
    return pwrite(fd, bytes, nbytes, (off_t)at);
}

/* Transfers bytes until all are done, or there are no more. */
static int transfer_all(transfer *some, int fd, uint8_t *bytes, uint64_t nbytes, uint64_t at,
                        uint64_t *done)
{
    for (*done = 0; *done < nbytes;) {
        const uint64_t left = nbytes - *done;
        const size_t asked = left < CHUNK_NBYTES ? (size_t)left : CHUNK_NBYTES;
        const ssize_t n = some(fd, bytes + *done, asked, at + *done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return PERHAPS_ERR_IO;
        if (n == 0)
            break;
        *done += (uint64_t)n;
    }
    return 0;
}

/* Makes an error of a transfer that has ended too early. */
static int all_or_error(int error, uint64_t done, uint64_t nbytes)
{
    if (error || done == nbytes)
        return error;
    errno = EIO;
    return PERHAPS_ERR_IO;
}

int write_on(int fd, const void *bytes, uint64_t nbytes)
{
    uint64_t done;
    int error = transfer_all(write_next, fd, (uint8_t *)bytes, nbytes, 0, &done);
    return all_or_error(error, done, nbytes);
}

int write_at(int fd, const void *bytes, uint64_t nbytes, uint64_t at)
{
    uint64_t done;
    int error = transfer_all(write_there, fd, (uint8_t *)bytes, nbytes, at, &done);
    return all_or_error(error, done, nbytes);
}

int read_on(int fd, void *bytes, uint64_t nbytes, uint64_t *done)
{
    return transfer_all(read_next, fd, bytes, nbytes, 0, done);
}

int read_some(int fd, void *bytes, uint64_t nbytes, uint64_t at, uint64_t *done)
{
    return transfer_all(read_there, fd, bytes, nbytes, at, done);
}

int read_at(int fd, void *bytes, uint64_t nbytes, uint64_t at)
{
    uint64_t done;
    int error = read_some(fd, bytes, nbytes, at, &done);
    return all_or_error(error, done, nbytes);
}

int rewind_file(int fd)
{
    return lseek(fd, 0, SEEK_SET) ? PERHAPS_ERR_IO : 0;
}

int cut_file(int fd, uint64_t nbytes)
{
    int failed;
    while ((failed = ftruncate(fd, (off_t)nbytes)) && errno == EINTR)
        continue;
    return failed;
}

void forget_bytes(int fd, uint64_t at, uint64_t nbytes)
{
#ifdef POSIX_FADV_DONTNEED /* macOS has none */
    (void)posix_fadvise(fd, (off_t)at, (off_t)nbytes, POSIX_FADV_DONTNEED);
#else
    (void)fd, (void)at, (void)nbytes;
#endif
}

/* ---- Files: which, and whose ------------------------------------------------------------- */

static int tell(int failed, const struct stat *st, struct file_info *info)
{
    if (failed)
        return PERHAPS_ERR_IO;
    *info = (struct file_info){ .type = S_ISREG(st->st_mode)   ? FILE_REGULAR
                                        : S_ISDIR(st->st_mode) ? FILE_FOLDER
                                                               : FILE_OTHER,
                                .nbytes = (uint64_t)st->st_size,
                                .device = (uint64_t)st->st_dev,
                                .number = (uint64_t)st->st_ino,
                                .mode = st->st_mode & 07777,
                                .user = st->st_uid,
                                .group = st->st_gid };
    return 0;
}

int look_at_path(const char *path, struct file_info *info)
{
    struct stat st;
    return tell(stat(path, &st), &st, info);
}

int look_at_fd(int fd, struct file_info *info)
{
    struct stat st;
    return tell(fstat(fd, &st), &st, info);
}

bool is_free(const char *path)
{
    struct stat st;
    return lstat(path, &st) != 0;
}

bool may_write(const char *path)
{
    return !access(path, W_OK);
}

/* Returns whether a file may be read and written by no more users than this mode says. */
static bool is_as_private(int fd, unsigned mode)
{
    struct stat st;
    return !fstat(fd, &st) && !(st.st_mode & 0777 & ~mode);
}

/* The mode comes last, since chown clears bits of it. */
int give_owner(int fd, const struct file_info *like)
{
    if (fchown(fd, like->user, like->group) && !is_lacking(errno))
        return PERHAPS_ERR_IO;
    if (!fchmod(fd, (mode_t)like->mode))
        return 0;
    int reason = errno;
    bool is = is_lacking(reason) && is_as_private(fd, like->mode);
    errno = reason;
    return is ? 0 : PERHAPS_ERR_IO;
}

static int lock_file(int fd, int how)
{
    while (flock(fd, how)) {
        if (errno == EINTR)
            continue;
        if (is_lacking(errno))
            errno = ENOLCK;
        return PERHAPS_ERR_IO;
    }
    return 0;
}

int lock_shared(int fd)
{
    return lock_file(fd, LOCK_SH);
}

int lock_alone(int fd)
{
    return lock_file(fd, LOCK_EX | LOCK_NB);
}

void unlock_file(int fd)
{
    lock_file(fd, LOCK_UN);
}

/* ---- Files: to open and to name ---------------------------------------------------------- */

int open_at_once(const char *path, bool write)
{
    return open(path, (write ? O_RDWR : O_RDONLY) | O_NONBLOCK | O_CLOEXEC);
}

int open_to_write(const char *path)
{
    return open(path, O_WRONLY | O_CLOEXEC);
}

int create_file(const char *path)
{
    return open(path, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0666);
}

int open_or_create(const char *path, unsigned mode)
{
    return open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK | O_CREAT | O_NOFOLLOW, (mode_t)mode);
}

int duplicate(int fd)
{
    return fcntl(fd, F_DUPFD_CLOEXEC, 0);
}

void close_file(int fd)
{
    int saved = errno;
    close(fd);
    errno = saved;
}

int rename_file(const char *from, const char *to)
{
    return rename(from, to) ? PERHAPS_ERR_IO : 0;
}

void remove_file(const char *path)
{
    int saved = errno;
    unlink(path);
    errno = saved;
}

/* Gives a file a name in two steps: only one of several processes can make an empty file of
 * that name, and then replaces it.  A crash in between leaves the empty file. */
static int claim(const char *from, const char *to)
{
    int fd = create_file(to);
    if (fd < 0)
        return PERHAPS_ERR_IO;
    close_file(fd);
    if (!rename(from, to))
        return 0;
    remove_file(to);
    return PERHAPS_ERR_IO;
}

/* A hard link gives a name in one step.  Some file systems have none, and there a rename that
 * replaces nothing does; or they do not have that either, as exFAT. */
int rename_new(const char *from, const char *to)
{
    if (!linkat(AT_FDCWD, from, AT_FDCWD, to, AT_SYMLINK_FOLLOW))
        return unlink(from) ? PERHAPS_ERR_IO : 0;
    if (!is_lacking(errno))
        return PERHAPS_ERR_IO;
    if (!rename_replacing_nothing(from, to))
        return 0;
    return is_lacking(errno) ? claim(from, to) : PERHAPS_ERR_IO;
}

int sync_folder(const char *folder)
{
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return PERHAPS_ERR_IO;
    int error = sync_file(fd) && !is_lacking(errno) ? PERHAPS_ERR_IO : 0;
    close_file(fd);
    return error;
}

int real_path(const char *path, char real[PATH_NBYTES_MOST])
{
    _Static_assert(PATH_NBYTES_MOST >= PATH_MAX, "what realpath() writes");
    return realpath(path, real) ? 0 : PERHAPS_ERR_IO;
}

long read_link(const char *path, char *to, size_t room)
{
    return readlink(path, to, room);
}

const char *name_in(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

const char *temporary_folder(void)
{
    const char *folder = getenv("TMPDIR");
    return folder && *folder ? folder : "/tmp";
}

/* ---- Pages of memory --------------------------------------------------------------------- */

#ifndef MAP_NORESERVE /* FreeBSD reserves nothing anyway */
#define MAP_NORESERVE 0
#endif

enum { HUGE_NBYTES = 2 << 20, IN_MEMORY = MAP_PRIVATE | MAP_NORESERVE };

static void *map_or_null(void *at, size_t nbytes, int protection, int flags, int fd)
{
    void *map = mmap(at, nbytes, protection, flags, fd, 0);
    return map == MAP_FAILED ? NULL : map;
}

static size_t to_page_end(size_t nbytes)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    return (nbytes + page - 1) / page * page;
}

/* Returns zeroed memory that begins at a multiple of a huge page; or NULL.  To reach this
 * alignment it maps one huge page more than asked, and unmaps what is too much. */
static uint8_t *map_aligned(size_t nbytes, int flags)
{
    const size_t size = to_page_end(nbytes), room = size + HUGE_NBYTES;
    if (room < nbytes)
        return NULL;
    uint8_t *all = map_or_null(NULL, room, PROT_READ | PROT_WRITE,
                               flags | MAP_PRIVATE | MAP_ANONYMOUS, -1);
    if (!all)
        return NULL;
    const size_t before = -(uintptr_t)all % HUGE_NBYTES;
    if (before)
        munmap(all, before);
    if (before < HUGE_NBYTES)
        munmap(all + before + size, HUGE_NBYTES - before);
    return all + before;
}

static size_t whole_pages(size_t nbytes)
{
    return (nbytes + HUGE_NBYTES - 1) / HUGE_NBYTES * HUGE_NBYTES;
}

/* The kernel zeroes a page when it is first written to. */
void *map_pages(size_t nbytes)
{
    const size_t size = whole_pages(nbytes);
    uint8_t *memory = size < nbytes ? NULL : map_aligned(size, 0);
    if (memory)
        want_huge_pages(memory, size);
    return memory;
}

void unmap_pages(void *memory, size_t nbytes)
{
    munmap(memory, whole_pages(nbytes));
}

/* Maps a file as mmap() does, shared.  Some file systems (FUSE) have no shared maps; to be
 * read, a private one is as good. */
static void *map_shared(void *at, size_t nbytes, int protection, int flags, int fd)
{
    void *map = map_or_null(at, nbytes, protection, MAP_SHARED | flags, fd);
    return !map && protection == PROT_READ && (errno == ENODEV || is_lacking(errno))
               ? map_or_null(at, nbytes, protection, MAP_PRIVATE | flags, fd)
               : map;
}

uint8_t *map_file(int fd, size_t nbytes, bool write)
{
    return map_shared(NULL, nbytes, write ? PROT_READ | PROT_WRITE : PROT_READ, 0, fd);
}

uint8_t *map_twice(int fd, size_t nbytes, size_t behind)
{
    uint8_t *map = map_aligned(behind + nbytes, MAP_NORESERVE);
    if (!map)
        return NULL;
    if (map_or_null(map, nbytes, PROT_READ | PROT_WRITE, IN_MEMORY | MAP_FIXED, fd) &&
        map_shared(map + behind, nbytes, PROT_READ, MAP_FIXED, fd))
        return map;
    const int reason = errno;
    munmap(map, behind + nbytes);
    errno = reason;
    return NULL;
}

void map_to_pages(uint8_t *map, size_t nbytes)
{
    const int saved = errno;
    uint8_t *memory = map_aligned(nbytes, MAP_NORESERVE);
    if (memory) {
        want_huge_pages(memory, nbytes);
        memcpy(memory, map, nbytes);
        if (!move_pages(memory, map, nbytes))
            munmap(memory, nbytes);
    }
    errno = saved;
}

void unmap(uint8_t *map, size_t nbytes, size_t behind)
{
    munmap(map, behind + nbytes);
}

int sync_map(int fd, uint8_t *map, size_t nbytes)
{
    (void)fd;
    return msync(map, nbytes, MS_SYNC) ? PERHAPS_ERR_IO : 0;
}

#endif
