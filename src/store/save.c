/* save.c - saves filters to files.
 *
 * A filter is written to a draft beside its target, synced, and then renamed (draft.c), so that
 * at every moment the old or the new file is there as a whole. */
#include <errno.h>

#include "store.h"

/* What is saved, and how. */
struct saving {
    const struct content *content;
    bool fresh; /* fails if the target exists, instead of replacing it */
};

/* Writes the header once more, over the one that does not know all yet. */
static int write_header(const perhaps_filter *f, const struct header *h, int fd)
{
    uint8_t bytes[HEADER_NBYTES];
    container_encode(f, h, bytes); /* such a filter has one section */
    return rewind_file(fd) ? PERHAPS_ERR_IO : write_on(fd, bytes, sizeof bytes);
}

static int write_to(const struct saving *s, int fd)
{
    const struct perhaps_allocator *allocator = &s->content->f->allocator;
    struct header h;
    struct pieces pieces;
    content_plan(s->content, &h);
    int error = pieces_begin(&pieces, allocator, &fd, h.file_nbytes);
    if (error)
        return error;
    struct perhaps_sink sink = pieces_sink(&pieces);
    error = pieces_end(&pieces, allocator, content_write(s->content, &sink));
    return error || !s->content->produce || h.small ? error
                                                    : write_header(s->content->f, &h, fd);
}

/* Writes the draft, syncs it, gives it the target's name, and syncs the folder.  'old'
 * describes the file that is replaced, or is NULL. */
static int save_beside(const struct saving *s, const char *target, const struct file_info *old)
{
    struct draft draft;
    if (draft_open(&draft, target))
        return draft_failed(&draft);
    if (old && give_owner(draft.fd, old))
        return draft_failed(&draft);
    int error = write_to(s, draft.fd);
    if (error) {
        draft_failed(&draft);
        return error;
    }
    if (draft_finish(&draft, target, s->fresh))
        return draft_failed(&draft);
    close_file(draft.fd);
    return sync_folder(draft.folder);
}

/* Writes to a device or pipe, which must not be replaced.  Some of them cannot be synced. */
static int save_into(const struct saving *s, const char *path)
{
    int fd = open_to_write(path);
    if (fd < 0)
        return PERHAPS_ERR_IO;
    int error = write_to(s, fd);
    if (!error && sync_file(fd) && errno != EINVAL && errno != EROFS)
        error = PERHAPS_ERR_IO;
    close_file(fd);
    return error;
}

/* Finds out what is at 'path', and saves beside it or into it. */
static int save_at(const struct saving *s, const char *path)
{
    struct file_info old;
    char target[PATH_NBYTES_MOST];
    if (look_at_path(path, &old)) {
        if (errno != ENOENT || follow_links(path, target))
            return PERHAPS_ERR_IO;
        return save_beside(s, target, NULL);
    }
    if (s->fresh) {
        errno = EEXIST;
        return PERHAPS_ERR_IO;
    }
    if (old.type == FILE_FOLDER) {
        errno = EISDIR;
        return PERHAPS_ERR_IO;
    }
    if (old.type != FILE_REGULAR)
        return save_into(s, path);
    if (!may_write(path)) /* a rename alone would replace a file that is write-protected */
        return PERHAPS_ERR_IO;
    if (follow_links(path, target))
        return PERHAPS_ERR_IO;
    return save_beside(s, target, &old);
}

int content_put(const struct content *content, const char *path)
{
    return save_at(&(struct saving){ .content = content }, path);
}

int content_save_new(const struct content *content, const char *path)
{
    return save_at(&(struct saving){ .content = content, .fresh = true }, path);
}

int perhaps_save_to(const perhaps_filter *f, int fd)
{
    struct perhaps_sink sink = file_sink(&fd);
    return perhaps_write(f, &sink);
}
