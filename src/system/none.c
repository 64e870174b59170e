/* none.c - no system: WebAssembly, bare metal.  There is one thread, and no files: what needs
 * them ends with PERHAPS_ERR_IO (ENOSYS), and a pile stays in memory.  Memory comes from
 * malloc().  Random bytes come from perhaps_entropy(), if the program has it. */
#include "system.h"

#ifdef SYSTEM_NONE

#include <errno.h>
#include <perhaps_build.h>
#include <perhaps_embed.h>

/* ---- Threads ----------------------------------------------------------------------------- */

void mutex_begin(struct mutex *mutex)
{
    (void)mutex;
}

void mutex_end(struct mutex *mutex)
{
    (void)mutex;
}

void mutex_take(struct mutex *mutex)
{
    (void)mutex;
}

void mutex_release(struct mutex *mutex)
{
    (void)mutex;
}

void condition_begin(struct condition *condition)
{
    (void)condition;
}

void condition_end(struct condition *condition)
{
    (void)condition;
}

void condition_wake(struct condition *condition)
{
    (void)condition;
}

void rwlock_begin(struct rwlock *lock)
{
    (void)lock;
}

void rwlock_end(struct rwlock *lock)
{
    (void)lock;
}

void rwlock_take(struct rwlock *lock)
{
    (void)lock;
}

void rwlock_release(struct rwlock *lock)
{
    (void)lock;
}

void rwlock_share(struct rwlock *lock)
{
    (void)lock;
}

void rwlock_unshare(struct rwlock *lock)
{
    (void)lock;
}

void condition_wait(struct condition *condition, struct mutex *mutex)
{
    (void)condition, (void)mutex;
}

bool thread_start(struct thread *thread, void *(*work)(void *argument), void *argument)
{
    (void)thread, (void)work, (void)argument;
    return false;
}

void thread_join(struct thread *thread)
{
    (void)thread;
}

void thread_yield(void)
{
}

void thread_pause(void)
{
}

uintptr_t thread_self(void)
{
    return 1;
}

long process_self(void)
{
    return 1;
}

/* ---- Random bytes, and limits ------------------------------------------------------------ */

__attribute__((weak)) int perhaps_entropy(void *bytes, size_t nbytes)
{
    (void)bytes, (void)nbytes;
    return -1;
}

int random_bytes(void *bytes, size_t nbytes)
{
    if (!perhaps_entropy(bytes, nbytes))
        return 0;
    errno = ENOSYS;
    return PERHAPS_ERR_IO;
}

/* What there is, and how much of it is left, is not known. */
uint64_t ram_nbytes(void)
{
    return UINT64_C(1) << 30;
}

uint64_t perhaps_host_memory_nbytes(void)
{
    return ram_nbytes();
}

unsigned perhaps_host_threads(void)
{
    return 1;
}

const char *environment(const char *name)
{
    (void)name;
    return NULL;
}

/* ---- Files: none ------------------------------------------------------------------------- */

static int no_files(void)
{
    errno = ENOSYS;
    return PERHAPS_ERR_IO;
}

int write_on(int fd, const void *bytes, uint64_t nbytes)
{
    (void)fd, (void)bytes, (void)nbytes;
    return no_files();
}

int write_at(int fd, const void *bytes, uint64_t nbytes, uint64_t at)
{
    (void)fd, (void)bytes, (void)nbytes, (void)at;
    return no_files();
}

int read_on(int fd, void *bytes, uint64_t nbytes, uint64_t *done)
{
    (void)fd, (void)bytes, (void)nbytes, (void)done;
    return no_files();
}

int read_some(int fd, void *bytes, uint64_t nbytes, uint64_t at, uint64_t *done)
{
    (void)fd, (void)bytes, (void)nbytes, (void)at, (void)done;
    return no_files();
}

int read_at(int fd, void *bytes, uint64_t nbytes, uint64_t at)
{
    (void)fd, (void)bytes, (void)nbytes, (void)at;
    return no_files();
}

int rewind_file(int fd)
{
    (void)fd;
    return no_files();
}

int sync_file(int fd)
{
    (void)fd;
    return no_files();
}

int sync_data(int fd)
{
    (void)fd;
    return no_files();
}

int cut_file(int fd, uint64_t nbytes)
{
    (void)fd, (void)nbytes;
    return no_files();
}

int reserve_file(int fd, uint64_t from, uint64_t nbytes)
{
    (void)fd, (void)from, (void)nbytes;
    return no_files();
}

int reserve_mapped(int fd, uint64_t nbytes)
{
    (void)fd, (void)nbytes;
    return no_files();
}

int look_at_path(const char *path, struct file_info *info)
{
    (void)path, (void)info;
    return no_files();
}

int look_at_fd(int fd, struct file_info *info)
{
    (void)fd, (void)info;
    return no_files();
}

int give_owner(int fd, const struct file_info *like)
{
    (void)fd, (void)like;
    return no_files();
}

int lock_shared(int fd)
{
    (void)fd;
    return no_files();
}

int lock_alone(int fd)
{
    (void)fd;
    return no_files();
}

int name_nameless(int fd, const char *name)
{
    (void)fd, (void)name;
    return no_files();
}

int rename_file(const char *from, const char *to)
{
    (void)from, (void)to;
    return no_files();
}

int rename_new(const char *from, const char *to)
{
    (void)from, (void)to;
    return no_files();
}

int sync_folder(const char *folder)
{
    (void)folder;
    return no_files();
}

int real_path(const char *path, char real[PATH_NBYTES_MOST])
{
    (void)path, (void)real;
    return no_files();
}

int sync_map(int fd, uint8_t *map, size_t nbytes)
{
    (void)fd, (void)map, (void)nbytes;
    return no_files();
}

int map_read(uint8_t *map, uint64_t at, uint64_t nbytes)
{
    (void)map, (void)at, (void)nbytes;
    return no_files();
}

int open_at_once(const char *path, bool write)
{
    (void)path, (void)write;
    return no_files();
}

int open_to_write(const char *path)
{
    (void)path;
    return no_files();
}

int create_file(const char *path)
{
    (void)path;
    return no_files();
}

int open_or_create(const char *path, unsigned mode)
{
    (void)path, (void)mode;
    return no_files();
}

int create_nameless(const char *folder)
{
    (void)folder;
    return no_files();
}

int open_temporary(const char *folder)
{
    (void)folder;
    return no_files();
}

int duplicate(int fd)
{
    (void)fd;
    return no_files();
}

bool add_zeros(int fd, uint64_t at, size_t nbytes)
{
    (void)fd, (void)at, (void)nbytes;
    return false;
}

uint64_t behind_hole(int fd, uint64_t at, uint64_t end)
{
    (void)fd, (void)end;
    return at;
}

void forget_bytes(int fd, uint64_t at, uint64_t nbytes)
{
    (void)fd, (void)at, (void)nbytes;
}

bool is_free(const char *path)
{
    (void)path;
    return true;
}

bool may_write(const char *path)
{
    (void)path;
    return !no_files();
}

void unlock_file(int fd)
{
    (void)fd;
}

void close_file(int fd)
{
    (void)fd;
}

void remove_file(const char *path)
{
    (void)path;
}

bool has_no_nameless(int error)
{
    (void)error;
    return false;
}

long read_link(const char *path, char *to, size_t room)
{
    (void)path, (void)to, (void)room;
    return no_files();
}

const char *name_in(const char *path)
{
    return path;
}

const char *temporary_folder(void)
{
    return "/tmp";
}

/* ---- Pages of memory: none --------------------------------------------------------------- */

void *map_pages(size_t nbytes)
{
    (void)nbytes;
    return NULL;
}

void unmap_pages(void *memory, size_t nbytes)
{
    (void)memory, (void)nbytes;
}

uint64_t huge_nbytes(const void *memory, uint64_t nbytes)
{
    (void)memory, (void)nbytes;
    return 0;
}

static uint8_t *no_map(void)
{
    errno = ENOSYS;
    return NULL;
}

uint8_t *map_file(int fd, size_t nbytes, bool write)
{
    (void)fd, (void)nbytes, (void)write;
    return no_map();
}

uint8_t *map_twice(int fd, size_t nbytes, size_t behind)
{
    (void)fd, (void)nbytes, (void)behind;
    return no_map();
}

void unmap(uint8_t *map, size_t nbytes, size_t behind)
{
    (void)map, (void)nbytes, (void)behind;
}

void map_to_pages(uint8_t *map, size_t nbytes)
{
    (void)map, (void)nbytes;
}

void map_advise(uint8_t *map, size_t nbytes, enum map_order order)
{
    (void)map, (void)nbytes, (void)order;
}

bool map_fetch(uint8_t *map, uint64_t at, uint64_t nbytes)
{
    (void)map, (void)at, (void)nbytes;
    return false;
}

long disk_faults(void)
{
    return 0;
}

#endif
