/* hash_scalar.c - XXH3-64 of keys of 8 bytes, for CPUs without AVX2. */
#include "hash_loops.h"

void hash_integers_64_scalar(const uint8_t *restrict packed, size_t n, uint64_t flip,
                             struct keyhash *restrict out)
{
    hash_loop_64(packed, n, flip, out);
}
