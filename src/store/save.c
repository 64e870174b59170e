/* save.c - saves filters to files.
 *
 * A filter is written to a draft beside its target, synced, and then renamed, so that at every
 * moment the old or the new file is there as a whole. */
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

#include "store.h"

/* What is saved, and how. */
struct saving {
    const struct content *content;
    bool fresh; /* fails if the target exists, instead of replacing it */
};

/* Writes the header once more, over the one that does not know all yet. */
static int write_header(const perhaps_filter *f, int fd)
{
    uint8_t bytes[HEADER_NBYTES];
    struct header h;
    container_plan(f, &h);
    container_encode(f, &h, bytes); /* such a filter has one section */
    return lseek(fd, 0, SEEK_SET) ? PERHAPS_ERR_IO
                                  : file_sink(&fd).write(&fd, bytes, sizeof bytes);
}

static int write_to(const struct saving *s, int fd)
{
    const struct perhaps_allocator *allocator = &s->content->f->allocator;
    struct header h;
    struct pieces pieces;
    container_plan(s->content->f, &h);
    int error = pieces_begin(&pieces, allocator, &fd, h.file_nbytes);
    if (error)
        return error;
    struct perhaps_sink sink = pieces_sink(&pieces);
    error = pieces_end(&pieces, allocator, content_write(s->content, &sink));
    return error || !s->content->produce ? error : write_header(s->content->f, fd);
}

/* A file in the folder of the target, on its way to the target's name. */
struct draft {
    int fd; /* negative: not open */
    char folder[PATH_MAX];
    char name[PATH_MAX]; /* "": nameless (O_TMPFILE): gone if the process dies */
};

/* Closes and removes a draft, and leaves errno alone.  Returns PERHAPS_ERR_IO. */
static int draft_failed(struct draft *draft)
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
            draft->fd = open(draft->name, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0666);
            if (draft->fd >= 0)
                return 0;
        }
        if (errno != EEXIST)
            break;
    }
    draft->name[0] = '\0'; /* a file of that name is not ours, and must not be removed */
    return PERHAPS_ERR_IO;
}

/* Opens a file without a name, or returns -1.  Such a file gets its name through /proc, which a
 * container may lack, so this fails (EOPNOTSUPP) before the filter is written. */
static int open_nameless(const char *folder)
{
    char self[PROC_PATH_NBYTES];
    int fd = open(folder, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666);
    if (fd < 0)
        return -1;
    write_proc_path(self, fd);
    if (!access(self, F_OK))
        return fd;
    close(fd);
    errno = EOPNOTSUPP;
    return -1;
}

/* Opens a draft: a nameless file, or a named one where the system has no nameless files. */
static int draft_open(struct draft *draft, const char *target)
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
    draft->fd = open_nameless(draft->folder);
    if (draft->fd >= 0)
        return 0;
    if (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL)
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

/* Gives the draft the target's name; fails with EEXIST if a file has it.  A hard link does this
 * in one step.  Some file systems have none, and there a rename that replaces nothing does. */
static int draft_publish(struct draft *draft, const char *target)
{
    char self[PROC_PATH_NBYTES];
    write_proc_path(self, draft->fd);
    bool named = *draft->name != '\0';
    const unsigned no_replace = 1; /* RENAME_NOREPLACE, which musl does not have */
    if (!linkat(AT_FDCWD, named ? draft->name : self, AT_FDCWD, target, AT_SYMLINK_FOLLOW))
        return named && unlink(draft->name) ? PERHAPS_ERR_IO : 0;
    if (named && (errno == EPERM || errno == EOPNOTSUPP || errno == ENOSYS) &&
        !syscall(SYS_renameat2, AT_FDCWD, draft->name, AT_FDCWD, target, no_replace))
        return 0;
    return PERHAPS_ERR_IO;
}

/* Waits until the new name is on the disk.  EINVAL: this file system cannot sync a folder. */
static int sync_folder(const char *folder)
{
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return PERHAPS_ERR_IO;
    int error = fsync(fd) && errno != EINVAL ? PERHAPS_ERR_IO : 0;
    close_keeping_errno(fd);
    return error;
}

/* Writes the draft, syncs it, gives it the target's name, and syncs the folder.  'old'
 * describes the file that is replaced, or is NULL. */
static int save_beside(const struct saving *s, const char *target, const struct stat *old)
{
    struct draft draft;
    if (draft_open(&draft, target))
        return draft_failed(&draft);
    if (old) {
        /* keeps the owner if that is permitted; the mode comes last: chown clears bits of it */
        if (fchown(draft.fd, old->st_uid, old->st_gid) && errno != EPERM)
            return draft_failed(&draft);
        if (fchmod(draft.fd, old->st_mode & 07777))
            return draft_failed(&draft);
    }
    int error = write_to(s, draft.fd);
    if (error) {
        draft_failed(&draft);
        return error;
    }
    if (fsync(draft.fd) ||
        (s->fresh ? draft_publish(&draft, target) : draft_replace(&draft, target)))
        return draft_failed(&draft);
    close(draft.fd);
    return sync_folder(draft.folder);
}

/* Writes to a device or pipe, which must not be replaced.  Some of them cannot be synced. */
static int save_into(const struct saving *s, const char *path)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return PERHAPS_ERR_IO;
    int error = write_to(s, fd);
    if (!error && fsync(fd) && errno != EINVAL && errno != EROFS)
        error = PERHAPS_ERR_IO;
    close_keeping_errno(fd);
    return error;
}

/* Sets 'target' to the path to which a symbolic link leads, so that the file is replaced
 * and not the link.  The link may lead to a file that does not exist yet.  Other paths
 * stay as they are. */
static int follow_links(const char *path, char target[PATH_MAX])
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

/* Finds out what is at 'path', and saves beside it or into it. */
static int save_at(const struct saving *s, const char *path)
{
    struct stat old;
    char target[PATH_MAX];
    if (stat(path, &old)) {
        if (errno != ENOENT || follow_links(path, target))
            return PERHAPS_ERR_IO;
        return save_beside(s, target, NULL);
    }
    if (s->fresh) {
        errno = EEXIST;
        return PERHAPS_ERR_IO;
    }
    if (S_ISDIR(old.st_mode)) {
        errno = EISDIR;
        return PERHAPS_ERR_IO;
    }
    if (!S_ISREG(old.st_mode))
        return s->content->is_tried ? PERHAPS_ERR_UNSUPPORTED : save_into(s, path);
    if (access(path, W_OK)) /* a rename alone would replace a file that is write-protected */
        return PERHAPS_ERR_IO;
    if (follow_links(path, target))
        return PERHAPS_ERR_IO;
    return save_beside(s, target, &old);
}

int content_save(const struct content *content, const char *path)
{
    return save_at(&(struct saving){ .content = content }, path);
}

int content_save_new(const struct content *content, const char *path)
{
    return save_at(&(struct saving){ .content = content, .fresh = true }, path);
}

int perhaps_save(const perhaps_filter *f, const char *path)
{
    return content_save(&(struct content){ .f = f }, path);
}

int perhaps_save_new(const perhaps_filter *f, const char *path)
{
    return content_save_new(&(struct content){ .f = f }, path);
}

int perhaps_save_to(const perhaps_filter *f, int fd)
{
    struct perhaps_sink sink = file_sink(&fd);
    return perhaps_write(f, &sink);
}
