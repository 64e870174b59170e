/* hash_loops.h - hashes integers by XXH3-64.  hash_scalar.c, hash_avx2.c and hash_avx512.c
 * include it, each for its instruction set; the compiler turns the loop into vector
 * instructions. */
#include "hash.h"

static ALWAYS_INLINE void hash_loop_64(const uint8_t *restrict packed, size_t n, uint64_t flip,
                                       struct keyhash *restrict out)
{
    for (size_t i = 0; i < n; i++)
        out[i] = xxh3_keyhash_64_of_8(load64(packed + i * sizeof(uint64_t)), flip);
}
