/* system.c - what a system may lack: see system.h. */
#define _GNU_SOURCE 1
#include "system.h"

#include <fcntl.h>
#include <unistd.h>

/* Kernels before 3.17 have no getentropy(), and some containers refuse it. */
static int read_device(unsigned char *bytes, size_t nbytes)
{
    int fd = open("/dev/urandom", O_RDONLY | O_CLOEXEC), reason;
    if (fd < 0)
        return -1;
    ssize_t n = 1;
    for (size_t at = 0; at < nbytes && n > 0; at += n > 0 ? (size_t)n : 0)
        while ((n = read(fd, bytes + at, nbytes - at)) < 0 && errno == EINTR)
            continue;
    reason = n < 0 ? errno : EIO;
    close(fd);
    errno = reason;
    return n > 0 ? 0 : -1;
}

int draw_random(void *bytes, size_t nbytes)
{
    if (!getentropy(bytes, nbytes))
        return 0;
    return is_lacking(errno) ? read_device(bytes, nbytes) : -1;
}
