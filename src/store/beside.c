/* beside.c - where the journal of a live file lies, and who has it. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "journal.h"

int journal_is_busy(void)
{
    errno = EBUSY;
    return PERHAPS_ERR_IO;
}

static void name_journal(const char *file, char beside[BESIDE_MAX])
{
    snprintf(beside, BESIDE_MAX, "%s%s", file, JOURNAL_SUFFIX);
}

int find_journal(const char *path, char file[PATH_NBYTES_MOST], char beside[BESIDE_MAX])
{
    if (real_path(path, file))
        return PERHAPS_ERR_IO;
    name_journal(file, beside);
    return 0;
}

int find_place(const char *path, char file[PATH_NBYTES_MOST], char beside[BESIDE_MAX])
{
    if (strlen(path) >= PATH_NBYTES_MOST) {
        errno = ENAMETOOLONG;
        return PERHAPS_ERR_IO;
    }
    if (follow_links(path, file))
        return PERHAPS_ERR_IO;
    name_journal(file, beside);
    return 0;
}

/* Returns whether there is nothing at a path: other reasons not to find it tell nothing. */
static bool is_gone(void)
{
    return errno == ENOENT || errno == ENOTDIR || errno == ELOOP;
}

static bool is_same(const struct journal_point *a, const struct journal_point *b)
{
    return a->branch == b->branch && a->sequence == b->sequence;
}

bool file_has_point(const char *file, const struct journal_point *one,
                    const struct journal_point *other)
{
    uint8_t bytes[HEADER_NBYTES] = { 0 };
    uint64_t done;
    const int fd = open_at_once(file, false);
    if (fd < 0)
        return !is_gone();
    const int error = read_some(fd, bytes, sizeof bytes, 0, &done);
    close_file(fd);
    if (error && errno != ESPIPE && errno != EISDIR) /* which tell that it is another one */
        return true;
    const struct journal_point point = container_journal(bytes);
    return container_has_magic(bytes) && container_has_journal(bytes) &&
           (is_same(&point, one) || is_same(&point, other));
}

bool journal_is_beside(const char *file, const char *beside, int fd,
                       const struct journal_point *one, const struct journal_point *other)
{
    struct file_info here, there;
    const int saved = errno;
    bool is = !look_at_fd(fd, &here) && !look_at_path(beside, &there)
                  ? is_same_file(&here, &there)
                  : !is_gone();
    is = is && file_has_point(file, one, other);
    errno = saved;
    return is;
}
