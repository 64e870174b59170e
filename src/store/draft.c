/* draft.c - files that are written beside their target, and then take its name. */
#define _GNU_SOURCE 1
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../base/system.h"
#include "store.h"

int draft_failed(struct draft *draft)
{
    int saved = errno;
    if (draft->fd >= 0)
        close(draft->fd);
    if (*draft->name)
        unlink(draft->name);
    errno = saved;
    return PERHAPS_ERR_IO;
}

/* Makes up a name beside the target.  It is random, so hardly any file has it already. */
static int draft_invent_name(struct draft *draft, const char *target)
{
    uint32_t random;
    const char *base = strrchr(target, '/');
    base = base ? base + 1 : target;
    if (getentropy(&random, sizeof random))
        return PERHAPS_ERR_IO;
    /* a name may have 255 bytes, so a long one is cut to leave room for the suffix */
    int n = snprintf(draft->name, sizeof draft->name, "%s/.%.200s.%08x", draft->folder, base,
                     (unsigned)random);
    if (n >= 0 && (size_t)n < sizeof draft->name)
        return 0;
    errno = ENAMETOOLONG;
    return PERHAPS_ERR_IO;
}

enum { PROC_PATH_NBYTES = 64 };

/* Writes the path by which /proc names an open file, with or without a name. */
static void write_proc_path(char path[PROC_PATH_NBYTES], int fd)
{
    snprintf(path, PROC_PATH_NBYTES, "/proc/self/fd/%d", fd);
}

/* Gives a draft a name beside the target: links the nameless file to it, or creates a file if
 * none is open yet. */
static int draft_take_name(struct draft *draft, const char *target)
{
    char self[PROC_PATH_NBYTES];
    write_proc_path(self, draft->fd);
    for (int tries = 0; tries < 100; tries++) {
        if (draft_invent_name(draft, target))
            break;
        if (draft->fd >= 0) {
            if (!linkat(AT_FDCWD, self, AT_FDCWD, draft->name, AT_SYMLINK_FOLLOW))
                return 0;
        } else {
            draft->fd = open(draft->name, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0666);
            if (draft->fd >= 0)
                return 0;
        }
        if (errno != EEXIST)
            break;
    }
    draft->name[0] = '\0'; /* a file of that name is not ours, and must not be removed */
    return PERHAPS_ERR_IO;
}

/* Returns whether a nameless file can get a name: through /proc, which a container may lack,
 * and by a hard link, which it may refuse.  No link is made where there is a folder. */
static bool can_be_named(const char *self, const char *folder)
{
    char there[PATH_MAX + 2];
    snprintf(there, sizeof there, "%s/.", folder);
    return !access(self, F_OK) && linkat(AT_FDCWD, self, AT_FDCWD, there, AT_SYMLINK_FOLLOW) &&
           !is_lacking(errno);
}

/* Opens a file without a name, or returns -1; EOPNOTSUPP where it could not get one later. */
static int open_linkable(const char *folder)
{
    char self[PROC_PATH_NBYTES];
    int fd = open_nameless(folder, 0, 0666);
    if (fd < 0)
        return -1;
    write_proc_path(self, fd);
    if (can_be_named(self, folder))
        return fd;
    close(fd);
    errno = EOPNOTSUPP;
    return -1;
}

int draft_open(struct draft *draft, const char *target)
{
    *draft = (struct draft){ .fd = -1 };
    const char *slash = strrchr(target, '/');
    size_t length = slash ? (size_t)(slash - target) : 0;
    if (length >= sizeof draft->folder) {
        errno = ENAMETOOLONG;
        return PERHAPS_ERR_IO;
    }
    memcpy(draft->folder, slash ? target : ".", slash ? length : 1);
    if (slash && length == 0)
        draft->folder[0] = '/';
    draft->fd = open_linkable(draft->folder);
    if (draft->fd >= 0)
        return 0;
    if (!has_no_nameless(errno))
        return PERHAPS_ERR_IO;
    return draft_take_name(draft, target); /* this file system has no nameless files */
}

/* Renames the draft to the target, which may exist. */
static int draft_replace(struct draft *draft, const char *target)
{
    if (!*draft->name && draft_take_name(draft, target))
        return PERHAPS_ERR_IO;
    return rename(draft->name, target) ? PERHAPS_ERR_IO : 0;
}

/* Gives the draft the target's name in two steps: only one of several processes can make an
 * empty file of that name, and then replaces it.  A crash in between leaves the empty file. */
static int draft_claim(const struct draft *draft, const char *target)
{
    int fd = open(target, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0666);
    if (fd < 0)
        return PERHAPS_ERR_IO;
    close(fd);
    if (!rename(draft->name, target))
        return 0;
    int reason = errno;
    unlink(target);
    errno = reason;
    return PERHAPS_ERR_IO;
}

/* Gives the draft the target's name; fails with EEXIST if a file has it.  A hard link does this
 * in one step.  Some file systems have none, and there a rename that replaces nothing does; or
 * they do not have that either, as exFAT. */
static int draft_publish(struct draft *draft, const char *target)
{
    char self[PROC_PATH_NBYTES];
    write_proc_path(self, draft->fd);
    bool named = *draft->name != '\0';
    const unsigned no_replace = 1; /* RENAME_NOREPLACE, which musl does not have */
    if (!linkat(AT_FDCWD, named ? draft->name : self, AT_FDCWD, target, AT_SYMLINK_FOLLOW))
        return named && unlink(draft->name) ? PERHAPS_ERR_IO : 0;
    if (!named || !is_lacking(errno))
        return PERHAPS_ERR_IO;
    if (!syscall(SYS_renameat2, AT_FDCWD, draft->name, AT_FDCWD, target, no_replace))
        return 0;
    return is_lacking(errno) ? draft_claim(draft, target) : PERHAPS_ERR_IO;
}

int draft_finish(struct draft *draft, const char *target, bool fresh)
{
    if (sync_file(draft->fd))
        return PERHAPS_ERR_IO;
    return fresh ? draft_publish(draft, target) : draft_replace(draft, target);
}

/* Returns whether a file may be read and written by no more users than this mode says. */
static bool is_as_private(int fd, mode_t mode)
{
    struct stat st;
    return !fstat(fd, &st) && !(st.st_mode & 0777 & ~mode);
}

/* Keeps the owner if that is permitted.  The mode comes last, since chown clears bits of it. */
int draft_keep_owner(const struct draft *draft, const struct stat *old)
{
    if (fchown(draft->fd, old->st_uid, old->st_gid) && !is_lacking(errno))
        return PERHAPS_ERR_IO;
    if (!fchmod(draft->fd, old->st_mode & 07777))
        return 0;
    int reason = errno;
    bool is = is_lacking(reason) && is_as_private(draft->fd, old->st_mode);
    errno = reason;
    return is ? 0 : PERHAPS_ERR_IO;
}

/* ---- Folders and links ------------------------------------------------------------------- */

int sync_folder(const char *folder)
{
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return PERHAPS_ERR_IO;
    int error = sync_file(fd) && !is_lacking(errno) ? PERHAPS_ERR_IO : 0;
    close_keeping_errno(fd);
    return error;
}

int follow_links(const char *path, char target[PATH_MAX])
{
    enum { LINKS_MAX = 40 }; /* as Linux itself */
    char link[PATH_MAX];
    memcpy(target, path, strlen(path) + 1); /* fits: stat() did not refuse it as too long */
    for (int i = 0; i < LINKS_MAX; i++) {
        ssize_t nbytes = readlink(target, link, sizeof link);
        if (nbytes < 0)
            return errno == EINVAL || errno == ENOENT ? 0 : PERHAPS_ERR_IO;
        const char *slash = strrchr(target, '/');
        size_t folder = slash && *link != '/' ? (size_t)(slash + 1 - target) : 0;
        if (folder + (size_t)nbytes >= PATH_MAX) {
            errno = ENAMETOOLONG;
            return PERHAPS_ERR_IO;
        }
        memcpy(target + folder, link, (size_t)nbytes);
        target[folder + (size_t)nbytes] = '\0';
    }
    errno = ELOOP;
    return PERHAPS_ERR_IO;
}
