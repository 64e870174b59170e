/* disk_preload.c - a disk that fails, for programs that tests in shell run (LD_PRELOAD), by
 * what the environment says:
 *
 *     PERHAPS_TEST_NO_FALLOCATE   the file system cannot reserve room, as ext2
 *     PERHAPS_TEST_BAD_SYNC=N     fdatasync() number N and all later ones fail
 *
 * For a disk that is full, ulimit -f will do. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

int fallocate(int fd, int mode, off_t offset, off_t nbytes)
{
    if (getenv("PERHAPS_TEST_NO_FALLOCATE")) {
        errno = EOPNOTSUPP;
        return -1;
    }
    return (int)syscall(SYS_fallocate, fd, mode, offset, nbytes);
}

int fallocate64(int fd, int mode, off_t offset, off_t nbytes)
{
    return fallocate(fd, mode, offset, nbytes);
}

int fdatasync(int fd)
{
    static _Atomic int calls;
    const char *bad = getenv("PERHAPS_TEST_BAD_SYNC");
    if (bad && ++calls >= atoi(bad)) {
        errno = EIO;
        return -1;
    }
    return (int)syscall(SYS_fdatasync, fd);
}
