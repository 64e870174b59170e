/* entropy.c - random bytes for the tests: filters draw the same seeds in every run, so that a
 * test does not fail by chance.  The linker sends the library's calls here (--wrap, see
 * CMakeLists.txt). */
#include <stdatomic.h>
#include <string.h>

#include "support.h"

int __wrap_getentropy(void *bytes, size_t nbytes);
int __wrap_random_bytes(void *bytes, size_t nbytes); /* where getentropy() is not to be had */

int __wrap_getentropy(void *bytes, size_t nbytes)
{
    static _Atomic uint64_t calls; /* so that each call gives other bytes */
    struct rng rng = rng_for("getentropy");
    rng.state = mix64(rng.state + ++calls);
    for (size_t at = 0; at < nbytes; at += sizeof(uint64_t)) {
        uint64_t word = rng_next(&rng);
        memcpy((char *)bytes + at, &word,
               nbytes - at < sizeof word ? nbytes - at : sizeof word);
    }
    return 0;
}

int __wrap_random_bytes(void *bytes, size_t nbytes)
{
    return __wrap_getentropy(bytes, nbytes);
}
