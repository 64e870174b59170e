/* place.c - the lock on the place of a target: see place.h. */
#include "place.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "../base/messages.h"
#include "../base/stop.h"

/* Removes the lock file before it gives back the lock, since until then no other process has
 * it. */
void place_unlock(struct target *target)
{
    if (target->lock <= 0)
        return;
    if (target->lock_path)
        unlink(target->lock_path);
    close(target->lock);
    target->lock = 0;
}

/* Returns where the file is or will be: follows links, also one to a file that does not exist.
 * The caller frees it.  Returns NULL (errno) if it fails. */
static char *follow_links(const char *path)
{
    char link[PATH_MAX], *next, *place = realpath(path, NULL);
    if (place || errno != ENOENT)
        return place;
    ssize_t nbytes = readlink(path, link, sizeof link);
    if (nbytes < 0)
        return strdup(path);
    const char *slash = strrchr(path, '/');
    int folder = slash && *link != '/' ? (int)(slash + 1 - path) : 0;
    if (asprintf(&next, "%.*s%.*s", folder, path, (int)nbytes, link) < 0)
        return NULL;
    place = follow_links(next);
    free(next);
    return place;
}

/* Ends the program if no file can be made in the folder: perhaps_save() makes a new file there,
 * and the lock file has its place there, too.  Sets target->lock_path. */
static void check_folder(struct target *target)
{
    char *place = follow_links(target->path), *copy = place ? strdup(place) : NULL;
    const char *folder = copy ? dirname(copy) : NULL;
    bool writable = folder && access(folder, W_OK | X_OK) == 0;
    int reason = errno;
    bool named = !writable ||
                 asprintf(&target->lock_path, "%s/.%.200s.lock", folder, basename(place)) >= 0;
    free(copy);
    free(place);
    if (!writable)
        fail("%s: cannot be written: %s", target->path, strerror(reason));
    if (!named) {
        target->lock_path = NULL;
        fail("%s", why(PERHAPS_ERR_MEMORY));
    }
}

/* Returns whether the open file is the one at 'path'. */
static bool same_file(int fd, const char *path)
{
    struct stat a, b;
    return fstat(fd, &a) == 0 && stat(path, &b) == 0 && is_same_file(&a, &b);
}

/* Tries to lock the file for 'wait_ms'.  Returns false (errno) if it cannot.  Processes that
 * change the file in place have it alone for a moment when they begin and end, so one that
 * wants to share it waits for some seconds even without --wait. */
static bool try_lock(int fd, int how, uint64_t wait_ms)
{
    enum { MOMENT_MS = 10, PATIENCE_MS = 5000 };
    const struct timespec moment = { .tv_nsec = MOMENT_MS * 1000000 };
    if (how == LOCK_SH && !wait_ms)
        wait_ms = PATIENCE_MS;
    const uint64_t moments = wait_ms / MOMENT_MS;
    for (uint64_t i = 0; flock(fd, how | LOCK_NB) != 0; i++) {
        if (errno != EWOULDBLOCK || i == moments || stop_signal())
            return false;
        nanosleep(&moment, NULL);
        errno = EWOULDBLOCK;
    }
    return true;
}

/* Ends the program because the file cannot be locked. */
static _Noreturn void fail_lock(struct target *target)
{
    close(target->lock);
    target->lock =
        0; /* so place_unlock() leaves the lock file to the process that has the lock */
    if (stop_signal())
        fail_interrupted("");
    fail("%s: another process is changing it: try again later, or give --wait", target->path);
}

/* Locks the file at 'path', which perhaps_save() of another process may replace meanwhile.
 * 'flags' is O_CREAT to make a lock file, else 0; 'how' is LOCK_EX or LOCK_SH.  Returns
 * whether the file is there.  A file system that has no locks (FUSE, a network's) is no reason
 * to refuse what one process does alone; what several do at once needs them, and the library
 * refuses it. */
static bool lock_file(struct target *target, const char *path, int flags, int how)
{
    do {
        if (target->lock > 0)
            close(target->lock);
        target->lock = open(path, O_RDONLY | O_CLOEXEC | flags, 0666);
        if (target->lock < 0 && errno != ENOENT)
            fail("%s: %s", path, strerror(errno));
        if (target->lock < 0)
            return false;
        if (!try_lock(target->lock, how, target->settings->wait_ms)) {
            if (errno == EWOULDBLOCK || stop_signal())
                fail_lock(target);
            if (!flags && how == LOCK_EX)
                complain("%s: its file system has no locks (%s): let no other process change "
                         "it meanwhile",
                         target->path, strerror(errno));
            return true;
        }
    } while (!same_file(target->lock, path));
    return true;
}

void place_lock(struct target *target)
{
    struct stat st;
    check_folder(target);
    char *beside = target->lock_path;
    for (;;) {
        target->lock_path = NULL;
        if (lock_file(target, target->path, 0, LOCK_EX)) {
            free(beside);
            return;
        }
        target->lock_path = beside;
        lock_file(target, beside, O_CREAT, LOCK_EX);
        target->fresh = stat(target->path, &st) != 0;
        if (target->fresh)
            return;
        place_unlock(target); /* another process has made the file meanwhile */
    }
}

bool place_can_share(const char *path)
{
    int fd = open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK);
    bool can = fd >= 0 && (flock(fd, LOCK_SH | LOCK_NB) == 0 || errno == EWOULDBLOCK);
    void *map = can ? mmap(NULL, 1, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) : MAP_FAILED;
    if (map != MAP_FAILED)
        munmap(map, 1);
    if (fd >= 0)
        close(fd);
    return map != MAP_FAILED;
}

void place_share(struct target *target)
{
    lock_file(target, target->path, 0, LOCK_SH);
}

bool place_is_locked(const struct target *target)
{
    return same_file(target->lock, target->path);
}
