#include "secret.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "report.h"

#define HEX_NBYTES ((size_t)2 * SECRET_NBYTES)

/* Reads up to 'room' bytes.  Returns how many, or -1. */
static ssize_t read_file(const char *path, char *buffer, size_t room)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -1;
    ssize_t got = read(fd, buffer, room);
    int saved = errno;
    close(fd);
    errno = saved;
    return got;
}

static bool read_hex(const char *text, uint8_t secret[SECRET_NBYTES])
{
    if (strspn(text, "0123456789abcdefABCDEF") != HEX_NBYTES)
        return false;
    for (size_t i = 0; i < SECRET_NBYTES; i++) {
        unsigned byte;
        sscanf(text + 2 * i, "%2x", &byte);
        secret[i] = (uint8_t)byte;
    }
    return true;
}

/* Better to know before the filter is built than after. */
static int check_place(const char *path)
{
    struct stat st;
    char *copy = strdup(path);
    int status = 0;
    if (lstat(path, &st) == 0)
        status = complain("%s: is a link to nothing: name the file itself", path);
    else if (!copy || access(dirname(copy), W_OK | X_OK) != 0)
        status = complain("%s: cannot be made: %s", path, strerror(errno));
    free(copy);
    return status;
}

int secret_read(const char *path, uint8_t secret[SECRET_NBYTES], bool *missing)
{
    char text[HEX_NBYTES + 4];
    ssize_t got = read_file(path, text, sizeof text - 1);
    if (got < 0 && errno == ENOENT && missing) {
        *missing = true;
        return check_place(path);
    }
    if (got < 0)
        return complain("%s: %s", path, strerror(errno));
    text[got] = '\0';
    if (got == SECRET_NBYTES) {
        memcpy(secret, text, SECRET_NBYTES);
        return 0;
    }
    if (got > 0 && text[got - 1] == '\n')
        text[--got] = '\0';
    if (got == (ssize_t)HEX_NBYTES && read_hex(text, secret))
        return 0;
    return complain("%s: not a key file: it must hold 16 bytes or 32 hex digits", path);
}

/* So that the name is still there after the system has died. */
static bool sync_folder(const char *path)
{
    char *copy = strdup(path);
    int fd = copy ? open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    bool ok = fd >= 0 && (fsync(fd) == 0 || errno == EINVAL);
    if (fd >= 0)
        close(fd);
    free(copy);
    return ok;
}

static bool write_file(const char *path, const char *text, size_t nbytes)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return false;
    bool ok = write(fd, text, nbytes) == (ssize_t)nbytes && fsync(fd) == 0;
    ok = close(fd) == 0 && ok && sync_folder(path);
    if (!ok)
        unlink(path);
    return ok;
}

int secret_write(const char *path, const uint8_t secret[SECRET_NBYTES])
{
    char text[HEX_NBYTES + 2];
    for (size_t i = 0; i < SECRET_NBYTES; i++)
        snprintf(text + 2 * i, 3, "%02x", secret[i]);
    text[HEX_NBYTES] = '\n';
    return write_file(path, text, HEX_NBYTES + 1) ? 0
                                                  : complain("%s: %s", path, strerror(errno));
}
