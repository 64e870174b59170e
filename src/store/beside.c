/* beside.c - where the journal of a live file lies, and who has it. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>

#include "journal.h"

int journal_is_busy(void)
{
    errno = EBUSY;
    return PERHAPS_ERR_IO;
}

static void name_journal(const char *file, char beside[BESIDE_MAX])
{
    stpcpy(stpcpy(beside, file), JOURNAL_SUFFIX);
}

int find_journal(const char *path, char file[PATH_MAX], char beside[BESIDE_MAX])
{
    if (!realpath(path, file))
        return PERHAPS_ERR_IO;
    name_journal(file, beside);
    return 0;
}

bool perhaps_is_live(const char *path)
{
    uint8_t bytes[HEADER_NBYTES];
    int saved = errno;
    glance(path, bytes);
    errno = saved;
    return container_has_magic(bytes) && container_has_journal(bytes);
}

int journal_give_up(const char *file, int *fd)
{
    char beside[BESIDE_MAX];
    *fd = -1;
    if (!perhaps_is_live(file))
        return 0;
    name_journal(file, beside);
    *fd = open(beside, O_RDWR | O_CLOEXEC | O_NONBLOCK);
    if (*fd < 0)
        return errno == ENOENT ? 0 : PERHAPS_ERR_IO;
    if (!lock_file(*fd, LOCK_EX | LOCK_NB))
        return 0;
    return errno == EWOULDBLOCK ? journal_is_busy() : PERHAPS_ERR_IO;
}

void journal_given_up(const char *file, int fd, bool replaced)
{
    char beside[BESIDE_MAX];
    if (fd < 0)
        return;
    int saved = errno;
    name_journal(file, beside);
    if (replaced)
        unlink(beside);
    close(fd);
    errno = saved;
}
