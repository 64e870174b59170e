/* clock_preload.c - a clock that is wrong, for programs that tests run (LD_PRELOAD, beside
 * entropy_preload.c).  The file that PERHAPS_TEST_CLOCK names holds by how many seconds it is
 * ahead; it is read at every call, so the clock may change while a program runs. */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

/* Returns 0 where there is no such file. */
static long seconds_ahead(void)
{
    char text[32] = "";
    const char *path = getenv("PERHAPS_TEST_CLOCK");
    int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (fd < 0 || read(fd, text, sizeof text - 1) < 0)
        *text = '\0';
    if (fd >= 0)
        close(fd);
    return strtol(text, NULL, 10);
}

int clock_gettime(clockid_t id, struct timespec *now)
{
    int error = (int)syscall(SYS_clock_gettime, id, now);
    if (!error && id == CLOCK_REALTIME)
        now->tv_sec += seconds_ahead();
    return error;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone)
{
    struct timespec precise;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &precise);
    *now = (struct timeval){ precise.tv_sec, precise.tv_nsec / 1000 };
    return 0;
}
