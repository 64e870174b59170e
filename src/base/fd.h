/* fd.h - open files: every byte is read and written, and a signal ends nothing.
 *
 * A system call may do less than was asked for, or nothing when a signal comes (EINTR).  All of
 * these go on then, so that no caller has to. */
#ifndef FD_H
#define FD_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <unistd.h>

/* Write all bytes: write_on() where the descriptor stands, write_at() from number 'at' of the
 * file on.  Return 0 or PERHAPS_ERR_IO (errno). */
int write_on(int fd, const void *bytes, uint64_t nbytes);
int write_at(int fd, const void *bytes, uint64_t nbytes, uint64_t at);

/* Read bytes: read_on() from where the descriptor stands, the others from number 'at' of the
 * file on.  *done is how many there were, which are fewer where the file ends; for read_at()
 * that is an error, EIO.  Return 0 or PERHAPS_ERR_IO (errno). */
int read_on(int fd, void *bytes, uint64_t nbytes, uint64_t *done);
int read_some(int fd, void *bytes, uint64_t nbytes, uint64_t at, uint64_t *done);
int read_at(int fd, void *bytes, uint64_t nbytes, uint64_t at);

/* Do what fsync(), fdatasync() and ftruncate() do.  Return 0, or -1 (errno). */
int sync_file(int fd);
int sync_data(int fd);
int cut_file(int fd, uint64_t nbytes);

/* Takes or releases a lock as flock() does.  Returns 0 or PERHAPS_ERR_IO (errno; ENOLCK: the
 * file system has no locks). */
int lock_file(int fd, int how);

/* Opens what is there, and does not wait for the writer of a pipe.  No other program gets the
 * descriptor.  Returns it, or -1 (errno). */
int open_at_once(const char *path, int flags);

/* Opens a file that has no name, in a folder, to read and write.  'flags' may have O_EXCL: it
 * never gets a name.  Returns the descriptor, or -1 (errno; has_no_nameless() tells more). */
int open_nameless(const char *folder, int flags, mode_t mode);

/* Returns whether open_nameless() failed with this errno since the file system has no such
 * files. */
bool has_no_nameless(int error);

/* Opens a file for this process alone, which is gone when it is closed: a nameless one, or
 * where there are none, one that loses its name at once.  Returns the descriptor, or -1
 * (errno). */
int open_temporary(const char *folder);

static inline void close_keeping_errno(int fd)
{
    int saved = errno;
    close(fd);
    errno = saved;
}

static inline bool is_same_file(const struct stat *one, const struct stat *other)
{
    return one->st_ino == other->st_ino && one->st_dev == other->st_dev;
}

#endif
