/* entropy_preload.c - getentropy() for programs that tests in shell run (LD_PRELOAD).  The
 * bytes depend only on the arguments of the program, PERHAPS_TEST_SEED and the number of the
 * call, so every run of a test meets the same false positives.  With PERHAPS_TEST_SAME_SEED the
 * arguments do not matter: what differs between two commands then is what they do. */
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

/* The same as mix64() of support.c, which a preloaded library cannot use. */
static uint64_t mix(uint64_t x)
{
    x = (x ^ x >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    x = (x ^ x >> 27) * UINT64_C(0x94D049BB133111EB);
    return x ^ x >> 31;
}

int getentropy(void *bytes, size_t nbytes)
{
    static _Atomic uint64_t calls;
    unsigned char arguments[4096];
    const char *seed = getenv("PERHAPS_TEST_SEED");
    uint64_t state = mix((seed ? strtoull(seed, NULL, 0) : 1) + (++calls << 32));
    int fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
    ssize_t n = read(fd, arguments, sizeof arguments);
    close(fd);
    ssize_t i = 0;
    while (i < n && arguments[i]) /* skips the path of the program */
        i++;
    for (; i < n && !getenv("PERHAPS_TEST_SAME_SEED"); i++)
        state = mix(state + arguments[i]);
    for (size_t at = 0; at < nbytes; at++)
        ((unsigned char *)bytes)[at] = (unsigned char)(state = mix(state + at + 1));
    return 0;
}
