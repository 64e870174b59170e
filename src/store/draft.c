/* draft.c - files that are written beside their target, and then take its name. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "store.h"

int draft_failed(struct draft *draft)
{
    if (draft->fd >= 0)
        close_file(draft->fd);
    if (*draft->name)
        remove_file(draft->name);
    return PERHAPS_ERR_IO;
}

/* Makes up a name beside the target.  It is random, so hardly any file has it already. */
static int draft_invent_name(struct draft *draft, const char *target)
{
    uint32_t random;
    if (random_bytes(&random, sizeof random))
        return PERHAPS_ERR_IO;
    /* a name may have 255 bytes, so a long one is cut to leave room for the suffix */
    int n = snprintf(draft->name, sizeof draft->name, "%s/.%.200s.%08x", draft->folder,
                     name_in(target), (unsigned)random);
    if (n >= 0 && (size_t)n < sizeof draft->name)
        return 0;
    errno = ENAMETOOLONG;
    return PERHAPS_ERR_IO;
}

/* Gives a draft a name beside the target: links the nameless file to it, or creates a file if
 * none is open yet. */
static int draft_take_name(struct draft *draft, const char *target)
{
    for (int tries = 0; tries < 100; tries++) {
        if (draft_invent_name(draft, target))
            break;
        if (draft->fd >= 0) {
            if (!name_nameless(draft->fd, draft->name))
                return 0;
        } else {
            draft->fd = create_file(draft->name);
            if (draft->fd >= 0)
                return 0;
        }
        if (errno != EEXIST)
            break;
    }
    draft->name[0] = '\0'; /* a file of that name is not ours, and must not be removed */
    return PERHAPS_ERR_IO;
}

int draft_open(struct draft *draft, const char *target)
{
    *draft = (struct draft){ .fd = -1 };
    const size_t length = (size_t)(name_in(target) - target);
    if (length >= sizeof draft->folder) {
        errno = ENAMETOOLONG;
        return PERHAPS_ERR_IO;
    }
    memcpy(draft->folder, length ? target : ".", length ? length : 1);
    if (length > 1) /* without the slash at the end */
        draft->folder[length - 1] = '\0';
    draft->fd = create_nameless(draft->folder);
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
    return rename_file(draft->name, target);
}

/* Gives the draft the target's name; fails with EEXIST if a file has it. */
static int draft_publish(struct draft *draft, const char *target)
{
    return *draft->name ? rename_new(draft->name, target) : name_nameless(draft->fd, target);
}

int draft_finish(struct draft *draft, const char *target, bool fresh)
{
    if (sync_file(draft->fd))
        return PERHAPS_ERR_IO;
    return fresh ? draft_publish(draft, target) : draft_replace(draft, target);
}

/* ---- Links ------------------------------------------------------------------------------- */

int follow_links(const char *path, char target[PATH_NBYTES_MOST])
{
    enum { LINKS_MAX = 40 }; /* as Linux itself */
    char link[PATH_NBYTES_MOST];
    memcpy(target, path, strlen(path) + 1); /* fits: stat() did not refuse it as too long */
    for (int i = 0; i < LINKS_MAX; i++) {
        const long nbytes = read_link(target, link, sizeof link);
        if (nbytes < 0)
            return errno == EINVAL || errno == ENOENT ? 0 : PERHAPS_ERR_IO;
        size_t folder = *link != '/' ? (size_t)(name_in(target) - target) : 0;
        if (folder + (size_t)nbytes >= PATH_NBYTES_MOST) {
            errno = ENAMETOOLONG;
            return PERHAPS_ERR_IO;
        }
        memcpy(target + folder, link, (size_t)nbytes);
        target[folder + (size_t)nbytes] = '\0';
    }
    errno = ELOOP;
    return PERHAPS_ERR_IO;
}
