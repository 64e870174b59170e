/* replace.c - saves filters where there may be a live file, which stays one. */
#include <errno.h>

#include "record.h"

/* Saves in place of a live file, beside its journal: whoever writes it has that locked. */
static int replace_live(const struct content *content, const char *path)
{
    const struct perhaps_open_options options = { .without_secret = true,
                                                  .allocator = &content->f->allocator };
    perhaps_filter *old;
    if (!content->f->kind->add)
        return PERHAPS_ERR_UNSUPPORTED;
    int error = journal_open(path, &options, &old);
    if (error)
        return error;
    error = checkpoint_other(recording_of(old), content);
    int reason = errno;
    perhaps_free(old);
    errno = reason;
    return error;
}

int content_save(const struct content *content, const char *path)
{
    return perhaps_is_live(path) ? replace_live(content, path) : content_put(content, path);
}

bool perhaps_may_replace(const char *path)
{
    struct file_info file;
    uint8_t bytes[HEADER_NBYTES];
    int saved = errno;
    bool may = look_at_path(path, &file) || file.type != FILE_REGULAR || !file.nbytes;
    if (!may) {
        glance(path, bytes);
        may = container_has_magic(bytes);
    }
    errno = saved;
    return may;
}

int perhaps_save(const perhaps_filter *f, const char *path)
{
    return content_save(&(struct content){ .f = f }, path);
}

int perhaps_save_new(const perhaps_filter *f, const char *path)
{
    return content_save_new(&(struct content){ .f = f }, path);
}
