/* hash_loops.h - hashes integers by XXH3-64, for one instruction set; each_cpu.h includes it.
 * The compiler turns the loop into vector instructions. */
#ifndef HASH_LOOPS_NAMES
#define HASH_LOOPS_NAMES
#define hash_all FOR_CPU(hash_all)
#endif

static void hash_all(const uint8_t *restrict packed, size_t n, uint64_t flip,
                     struct keyhash *restrict out)
{
    for (size_t i = 0; i < n; i++)
        out[i] = xxh3_keyhash_64_of_8(load64(packed + i * sizeof(uint64_t)), flip);
}
