/* hash_avx2.c - XXH3-64 of keys of 8 bytes, and SipHash, by AVX2. */
#if defined(__x86_64__)
#include <immintrin.h>

#include "hash_loops.h"

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,bmi2"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,bmi2")
#endif

#define SIP_LANES 4
#include "sip_loops.h"

void hash_integers_64_avx2(const uint8_t *restrict packed, size_t n, uint64_t flip,
                           struct keyhash *restrict out)
{
    hash_loop_64(packed, n, flip, out);
}

void hash_sip_avx2(const uint8_t *secret, const struct perhaps_key *keys, size_t n,
                   struct keyhash *out)
{
    sip_run(secret, keys, n, out);
}

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
#else
typedef int not_for_this_cpu;
#endif
