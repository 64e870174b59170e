/* save.c - filters into files. */
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

#include "../base/memory.h"
#include "container.h"
#include "file.h"
#include "save.h"

/* What is saved: a filter; and who gives the bytes of its body, where it has none. */
struct source {
    const perhaps_filter *f;
    perhaps_reader *reader; /* or NULL */
    void *context;
    bool fresh; /* nothing is replaced */
};

/* Bytes on their way into a file, checksums of their pages on their way into the table. */
struct writer {
    int fd;
    uint64_t npage;  /* bytes of the page that is not full */
    uint64_t number; /* of that page */
    uint8_t *table;
    uint8_t *page; /* PAGE_NBYTES of them */
};

static int write_page(struct writer *w, const uint8_t *page, uint64_t nbytes)
{
    container_fill_entry(w->table, w->number, page, nbytes);
    w->number++;
    return file_write_all(w->fd, page, nbytes);
}

static int write_pages(struct writer *w, const uint8_t *bytes, uint64_t nbytes)
{
    int error = 0;
    while (nbytes && !error) {
        uint64_t n = PAGE_NBYTES - w->npage;
        if (!w->npage && nbytes >= PAGE_NBYTES) {
            error = write_page(w, bytes, n);
        } else {
            n = n < nbytes ? n : nbytes;
            memcpy(w->page + w->npage, bytes, n);
            w->npage += n;
            if (w->npage == PAGE_NBYTES) {
                w->npage = 0;
                error = write_page(w, w->page, PAGE_NBYTES);
            }
        }
        bytes += n;
        nbytes -= n;
    }
    return error;
}

/* A body that comes from elsewhere is the only one, and begins with a page. */
static int write_read(struct writer *w, const struct source *s)
{
    uint64_t nbytes = s->f->geometry.body_nbytes;
    int error = 0;
    for (uint64_t at = 0; at < nbytes && !error; at += PAGE_NBYTES) {
        uint64_t n = nbytes - at < PAGE_NBYTES ? nbytes - at : PAGE_NBYTES;
        error = s->reader(s->context, at, w->page, (size_t)n);
        if (!error)
            error = write_page(w, w->page, n);
    }
    return error;
}

/* The bodies of a filter and its parts, each beginning at a multiple of HEADER_NBYTES. */
static int write_bodies(struct writer *w, const perhaps_filter *f)
{
    static const uint8_t zeros[HEADER_NBYTES];
    uint64_t nbytes = filter_geometry(f).body_nbytes, past = w->npage % HEADER_NBYTES;
    int error = nbytes && past ? write_pages(w, zeros, HEADER_NBYTES - past) : 0;
    struct walk walk = { 0 };
    const uint8_t *piece;
    for (uint64_t n; !error && (piece = filter_next_piece(f, &walk, &n));)
        error = write_pages(w, piece, n);
    for (size_t i = 0; i < f->parts.count && !error; i++)
        error = write_bodies(w, f->parts.part[i]);
    return error;
}

static int write_all_of(const struct source *s, const struct header *h, struct writer *w)
{
    uint64_t nbytes = h->table_offset - h->nbytes;
    int error = s->reader ? write_read(w, s) : write_bodies(w, s->f);
    if (!error && w->npage)
        error = write_page(w, w->page, w->npage);
    if (error)
        return error;
    container_seal_table(w->table, nbytes);
    return file_write_all(w->fd, w->table, container_table_nbytes(nbytes));
}

static int write_source(const struct source *s, int fd)
{
    const perhaps_filter *f = s->f;
    struct header h;
    struct writer w = { .fd = fd };
    container_plan(f, &h);
    uint64_t table_nbytes = container_table_nbytes(h.table_offset - h.nbytes);
    uint64_t nbytes = h.nbytes + PAGE_NBYTES + table_nbytes;
    uint8_t *head = allocate(&f->allocator, nbytes);
    if (!head)
        return PERHAPS_ERR_MEMORY;
    w.page = head + h.nbytes;
    w.table = w.page + PAGE_NBYTES;
    container_encode(f, &h, head);
    int error = file_write_all(fd, head, h.nbytes);
    if (!error)
        error = write_all_of(s, &h, &w);
    int saved = errno;
    release(&f->allocator, head, nbytes);
    errno = saved;
    return error;
}

/* A file that does not have its name yet. */
struct draft {
    int fd;
    char folder[PATH_MAX];
    char name[PATH_MAX]; /* "": nameless (O_TMPFILE), gone if we die */
};

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

/* Writes a name beside the target that hardly anything has. */
static int draft_invent_name(struct draft *draft, const char *target)
{
    uint32_t random;
    const char *base = strrchr(target, '/');
    base = base ? base + 1 : target;
    if (getentropy(&random, sizeof random))
        return PERHAPS_ERR_IO;
    /* a name may have 255 bytes: a long one keeps room for the suffix */
    int n = snprintf(draft->name, sizeof draft->name, "%s/.%.200s.%08x", draft->folder, base,
                     (unsigned)random);
    if (n >= 0 && (size_t)n < sizeof draft->name)
        return 0;
    errno = ENAMETOOLONG;
    return PERHAPS_ERR_IO;
}

enum { PROC_PATH_NBYTES = 64 };

static void write_proc_path(char path[PROC_PATH_NBYTES], int fd)
{
    snprintf(path, PROC_PATH_NBYTES, "/proc/self/fd/%d", fd);
}

/* Links a nameless draft to a name, or creates a file of that name. */
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
    draft->name[0] = '\0'; /* not ours to remove */
    return PERHAPS_ERR_IO;
}

/* A file without a name gets one through /proc, which a container may lack: better to know
 * before the filter is written. */
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
    return draft_take_name(draft, target); /* there are no nameless files here */
}

static int draft_replace(struct draft *draft, const char *target)
{
    if (!*draft->name && draft_take_name(draft, target))
        return PERHAPS_ERR_IO;
    return rename(draft->name, target) ? PERHAPS_ERR_IO : 0;
}

/* Fails if there is a file of that name.  Some file systems have no hard links. */
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

static int sync_folder(const char *folder)
{
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return PERHAPS_ERR_IO;
    int error = fsync(fd) && errno != EINVAL ? PERHAPS_ERR_IO : 0;
    close_keeping_errno(fd);
    return error;
}

/* Writes, syncs, gives it its name, syncs the folder.  'old' is what is replaced, or NULL. */
static int save_beside(const struct source *s, const char *target, const struct stat *old)
{
    struct draft draft;
    if (draft_open(&draft, target))
        return draft_failed(&draft);
    if (old) {
        /* the owner is kept where we may; the mode last, since chown clears bits of it */
        if (fchown(draft.fd, old->st_uid, old->st_gid) && errno != EPERM)
            return draft_failed(&draft);
        if (fchmod(draft.fd, old->st_mode & 07777))
            return draft_failed(&draft);
    }
    int error = write_source(s, draft.fd);
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

/* Devices and pipes are written to, never replaced. */
static int save_into(const struct source *s, const char *path)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return PERHAPS_ERR_IO;
    int error = write_source(s, fd);
    if (!error && fsync(fd) && errno != EINVAL && errno != EROFS)
        error = PERHAPS_ERR_IO;
    close_keeping_errno(fd);
    return error;
}

/* What a symbolic link names, not the link: also where that is nothing yet. */
static int follow_links(const char *path, char target[PATH_MAX])
{
    enum { LINKS_MAX = 40 }; /* as Linux itself */
    char link[PATH_MAX];
    memcpy(target, path, strlen(path) + 1); /* fits: stat() has taken it */
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

static int save(const struct source *s, const char *path)
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
        return save_into(s, path);
    if (access(path, W_OK)) /* a rename would need the folder's permission only */
        return PERHAPS_ERR_IO;
    if (follow_links(path, target))
        return PERHAPS_ERR_IO;
    return save_beside(s, target, &old);
}

int perhaps_save(const perhaps_filter *f, const char *path)
{
    return save(&(struct source){ .f = f }, path);
}

int perhaps_save_new(const perhaps_filter *f, const char *path)
{
    return save(&(struct source){ .f = f, .fresh = true }, path);
}

int perhaps_save_to(const perhaps_filter *f, int fd)
{
    return write_source(&(struct source){ .f = f }, fd);
}

int filter_save_read(const perhaps_filter *f, perhaps_reader *reader, void *context,
                     const char *path)
{
    return save(&(struct source){ .f = f, .reader = reader, .context = context }, path);
}
