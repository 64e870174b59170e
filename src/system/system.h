/* system.h - what the library asks of an operating system: threads, files, pages of memory,
 * random bytes, limits.  No other folder of src/ includes a system's header or names its calls.
 *
 *     unix.c      what Linux has in common with macOS and the BSDs
 *     linux.c     what only Linux has; limits.c: those of its processes
 *     posix.c     what stands for that elsewhere
 *     windows.c   Windows: files and pages; windows_threads.c: the rest
 *     none.c      no system: WebAssembly, bare metal.  No threads, no files; random bytes are
 *                 the caller's
 *
 * Calls that end as 0 or PERHAPS_ERR_IO set errno with the latter, and so do those that end as
 * -1; the system's own errors are those of POSIX everywhere.  A signal ends nothing. */
#ifndef SYSTEM_H
#define SYSTEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* PERHAPS_SYSTEM_NONE or _POSIX chooses one that is not the machine's own. */
#if defined(PERHAPS_SYSTEM_NONE) || defined(__wasm__)
#define SYSTEM_NONE
#elif defined(_WIN32)
#define SYSTEM_WINDOWS
#elif defined(__linux__) && !defined(PERHAPS_SYSTEM_POSIX)
#define SYSTEM_LINUX
#else
#define SYSTEM_POSIX
#endif

/* ---- Threads ----------------------------------------------------------------------------- */

#if defined(SYSTEM_NONE)
struct mutex {
    char unused;
};
struct condition {
    char unused;
};
struct rwlock {
    char unused;
};
struct thread {
    char unused;
};
#elif defined(SYSTEM_WINDOWS)
struct mutex {
    void *own;
};
struct condition {
    void *own;
};
struct rwlock {
    void *own;
};
struct thread {
    void *own;
    void *(*work)(void *argument);
    void *argument;
};
#else
#include <pthread.h>
struct mutex {
    pthread_mutex_t own;
};
struct condition {
    pthread_cond_t own;
};
struct rwlock {
    pthread_rwlock_t own;
};
struct thread {
    pthread_t own;
};
#endif

void mutex_begin(struct mutex *mutex);
void mutex_end(struct mutex *mutex);
void mutex_take(struct mutex *mutex);
void mutex_release(struct mutex *mutex);

/* Waits until another thread wakes all that wait; the mutex is not held meanwhile. */
void condition_begin(struct condition *condition);
void condition_end(struct condition *condition);
void condition_wait(struct condition *condition, struct mutex *mutex);
void condition_wake(struct condition *condition);

/* A lock that several readers share, or one writer has. */
void rwlock_begin(struct rwlock *lock);
void rwlock_end(struct rwlock *lock);
void rwlock_take(struct rwlock *lock);
void rwlock_release(struct rwlock *lock);
void rwlock_share(struct rwlock *lock);
void rwlock_unshare(struct rwlock *lock);

/* Starts a thread, with a stack of up to 1 MiB, which no signal interrupts: those are for the
 * program's own threads.  '*thread' stays until thread_join().  Returns false if it cannot. */
bool thread_start(struct thread *thread, void *(*work)(void *argument), void *argument);
void thread_join(struct thread *thread);

/* Offers this CPU to another thread; waits a millisecond. */
void thread_yield(void);
void thread_pause(void);

/* Return a number that no other thread, or process, has at the moment. */
uintptr_t thread_self(void);
long process_self(void);

/* ---- Random bytes ------------------------------------------------------------------------ */

/* Fills in bytes that nobody can foretell, at most 256.  Returns 0 or PERHAPS_ERR_IO. */
int random_bytes(void *bytes, size_t nbytes);

/* ---- Limits ------------------------------------------------------------------------------ */

/* Returns how much memory the machine has.  What this process may take of it, and how many
 * threads it may use, tell perhaps_host_memory_nbytes() and perhaps_host_threads(). */
uint64_t ram_nbytes(void);

/* Returns a variable of the environment; NULL if there is none, or if the program has more
 * rights than who has started it. */
const char *environment(const char *name);

/* ---- Files: their bytes ------------------------------------------------------------------ */

/* Write all bytes: write_on() where the descriptor stands, write_at() from number 'at' of the
 * file on.  Return 0 or PERHAPS_ERR_IO. */
int write_on(int fd, const void *bytes, uint64_t nbytes);
int write_at(int fd, const void *bytes, uint64_t nbytes, uint64_t at);

/* Read bytes: read_on() from where the descriptor stands, the others from number 'at' of the
 * file on.  *done is how many there were, which are fewer where the file ends; for read_at()
 * that is an error, EIO.  Return 0 or PERHAPS_ERR_IO. */
int read_on(int fd, void *bytes, uint64_t nbytes, uint64_t *done);
int read_some(int fd, void *bytes, uint64_t nbytes, uint64_t at, uint64_t *done);
int read_at(int fd, void *bytes, uint64_t nbytes, uint64_t at);

/* Has the descriptor stand at the first byte.  Returns 0 or PERHAPS_ERR_IO. */
int rewind_file(int fd);

/* Wait until the bytes of a file are on the disk; sync_data() not for what else is known of it.
 * Return 0, or -1: EINVAL or EROFS for what cannot be synced, such as a pipe. */
int sync_file(int fd);
int sync_data(int fd);

/* Sets the size of a file.  Returns 0 or -1. */
int cut_file(int fd, uint64_t nbytes);

/* Reserves room on the disk for bytes of a file, whose size stays.  Returns 0; PERHAPS_ERR_IO;
 * or PERHAPS_ERR_UNSUPPORTED where the system or the file system cannot do that. */
int reserve_file(int fd, uint64_t from, uint64_t nbytes);

/* Does so for all bytes of a file that will be mapped and written: also for those that share
 * their place on the disk with a copy.  Otherwise a full disk would end the process (SIGBUS).
 * Returns 0, also where that cannot be done; or PERHAPS_ERR_IO. */
int reserve_mapped(int fd, uint64_t nbytes);

/* Adds zeros to a file that has 'at' bytes and is written from its end on.  The system reserves
 * room for them and writes nothing.  Returns false, with no change, where it cannot. */
bool add_zeros(int fd, uint64_t at, size_t nbytes);

/* Returns where the first byte from 'at' on lies that is in no hole of the file; 'end', the
 * size of the file, if none does; or 'at' where the file system tells of no holes. */
uint64_t behind_hole(int fd, uint64_t at, uint64_t end);

/* Tells the system that these bytes of a file are not wanted in memory again soon. */
void forget_bytes(int fd, uint64_t at, uint64_t nbytes);

/* ---- Files: which, and whose ------------------------------------------------------------- */

/* The longest path, with the zero behind it. */
enum { PATH_NBYTES_MOST = 4096 };

enum file_type { FILE_REGULAR, FILE_FOLDER, FILE_OTHER /* a pipe, a device */ };

struct file_info {
    enum file_type type;
    uint64_t nbytes;
    uint64_t device, number; /* together no other file has them */
    unsigned mode;           /* who may do what: 07777 */
    unsigned user, group;
};

/* Look at what a path leads to, or a descriptor.  Return 0 or PERHAPS_ERR_IO. */
int look_at_path(const char *path, struct file_info *info);
int look_at_fd(int fd, struct file_info *info);

static inline bool is_same_file(const struct file_info *one, const struct file_info *other)
{
    return one->number == other->number && one->device == other->device;
}

/* Returns whether nothing has this name, not even a link that leads nowhere. */
bool is_free(const char *path);

/* Returns whether the file may be written; errno tells why it may not. */
bool may_write(const char *path);

/* Gives a file the owner and the mode of another one; another owner stays if that is not
 * permitted.  Returns 0 or PERHAPS_ERR_IO: then the mode is not what it should be. */
int give_owner(int fd, const struct file_info *like);

/* Take a lock that belongs to an open file: lock_shared() waits for one that others may share;
 * lock_alone() does not wait (EWOULDBLOCK: somebody else has one).  Return 0 or PERHAPS_ERR_IO
 * (ENOLCK: the file system has no locks).  Closing the last descriptor releases it, too. */
int lock_shared(int fd);
int lock_alone(int fd);
void unlock_file(int fd);

/* ---- Files: to open and to name ---------------------------------------------------------- */

/* All of these return a descriptor that no program gets which this one runs, or -1. */

/* Opens what is there, to read and, if 'write', to write; does not wait for the other end of a
 * pipe. */
int open_at_once(const char *path, bool write);

/* Opens a device or a pipe to write, and waits for who reads it. */
int open_to_write(const char *path);

/* Makes a file that is not there (EEXIST), to read and write, for those whom the process's mask
 * allows; or opens one that may be there, no link (ELOOP) and with this mode. */
int create_file(const char *path);
int open_or_create(const char *path, unsigned mode);

/* Makes a file that has no name in a folder, and can get one by name_nameless().  errno is such
 * that has_no_nameless() where the system or the file system has none. */
int create_nameless(const char *folder);
bool has_no_nameless(int error);

/* Gives such a file a name that is not there (EEXIST).  Returns 0 or PERHAPS_ERR_IO. */
int name_nameless(int fd, const char *name);

/* Opens a file for this process alone, which is gone when it is closed. */
int open_temporary(const char *folder);

/* Returns a second descriptor, which shares the lock. */
int duplicate(int fd);

/* Closes, and leaves errno alone. */
void close_file(int fd);

/* Give a file another name: rename_file() in place of a file that may have it; rename_new()
 * only if none has (EEXIST).  Return 0 or PERHAPS_ERR_IO. */
int rename_file(const char *from, const char *to);
int rename_new(const char *from, const char *to);

/* Removes a name.  Leaves errno alone. */
void remove_file(const char *path);

/* Waits until the names in a folder are on the disk.  Returns 0, also where that cannot be
 * done; or PERHAPS_ERR_IO. */
int sync_folder(const char *folder);

/* Writes the path without links on its way.  Returns 0 or PERHAPS_ERR_IO. */
int real_path(const char *path, char real[PATH_NBYTES_MOST]);

/* Reads where a link leads.  Returns how many bytes that has, without a zero behind them; or
 * -1: EINVAL, it is no link. */
long read_link(const char *path, char *to, size_t room);

/* Returns the name behind the folders of a path. */
const char *name_in(const char *path);

/* Returns the folder for temporary files, if the caller names none. */
const char *temporary_folder(void);

/* ---- Pages of memory --------------------------------------------------------------------- */

/* From this size on memory is taken from the system as pages. */
#ifdef SYSTEM_NONE
#define PAGES_NBYTES_LEAST SIZE_MAX
#else
#define PAGES_NBYTES_LEAST ((size_t)2 << 20)
#endif

/* Returns zeroed memory that begins at a multiple of 2 MiB (64 KiB on Windows), on huge pages
 * if there are any, and takes no time before it is used; or NULL. */
void *map_pages(size_t nbytes);
void unmap_pages(void *memory, size_t nbytes);

/* Returns how many bytes of this memory lie on huge pages; 0 if the system does not tell.
 * Takes milliseconds in a large process. */
uint64_t huge_nbytes(const void *memory, uint64_t nbytes);

/* Return the bytes of a file in memory: map_file() as they are, and to be written if 'write';
 * map_twice() what is written stays in memory, and the file as it is lies 'behind' bytes behind
 * it, a multiple of 2 MiB.  NULL: it cannot be done (ENOMEM: for want of memory). */
uint8_t *map_file(int fd, size_t nbytes, bool write);
uint8_t *map_twice(int fd, size_t nbytes, size_t behind);

/* Releases what one of these has returned; 'behind' is 0 for map_file(). */
void unmap(uint8_t *map, size_t nbytes, size_t behind);

/* Has what map_twice() has returned lie in memory altogether, on huge pages if there are any.
 * If that cannot be done all stays as it is. */
void map_to_pages(uint8_t *map, size_t nbytes);

/* Waits until what was written to the map of a file is on the disk.  Returns 0 or
 * PERHAPS_ERR_IO. */
int sync_map(int fd, uint8_t *map, size_t nbytes);

/* In which order bytes of a file that is mapped are read. */
enum map_order { MAP_AS_USUAL, MAP_IN_ORDER, MAP_AT_RANDOM };
void map_advise(uint8_t *map, size_t nbytes, enum map_order order);

/* Has the system begin to read bytes of a map.  Returns whether it does. */
bool map_fetch(uint8_t *map, uint64_t at, uint64_t nbytes);

/* Reads bytes of a map now, so that no use of them is an exception.  Returns 0, also where the
 * system does not do that; or PERHAPS_ERR_IO: to use them would end the process (SIGBUS). */
int map_read(uint8_t *map, uint64_t at, uint64_t nbytes);

/* Returns for how many uses of a page, by this thread if the system tells, a disk was read. */
long disk_faults(void);

#endif
