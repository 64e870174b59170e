/* hash_sip_test.c - proves that vectors hash keys under a secret as libsodium does: keys of
 * every length and of any mixture of lengths, in each form in which keys are given; and that
 * they read no byte beyond a key, and write nothing behind the last hash. */
#include "support.h"
#include <perhaps_fast.h>

#include <sodium/crypto_shorthash_siphash24.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/hash.h"

/* More than are sorted at once, and longer than those that are. */
enum { KEYS = 300, LENGTH = 1100 };

static struct keyhash right_hash(const uint8_t *secret, struct perhaps_key key)
{
    struct keyhash h;
    crypto_shorthash_siphashx24((uint8_t *)&h, key.bytes, key.nbytes, secret);
    return h;
}

static struct hasher hasher_for(struct rng *rng, unsigned cpu)
{
    struct hasher hasher = { .id = PERHAPS_HASH_SIP, .cpu = (enum cpu)cpu, .ready = true };
    for (unsigned i = 0; i < sizeof hasher.secret; i++)
        hasher.secret[i] = (uint8_t)rng_next(rng);
    return hasher;
}

static void expect_hashes(const struct hasher *hasher, const struct perhaps_keys *keys,
                          size_t first, size_t n)
{
    struct keyhash out[KEYS + 1] = { 0 };
    hasher_run(hasher, keys, first, n, out);
    for (size_t i = 0; i < n; i++) {
        struct keyhash right = right_hash(hasher->secret, perhaps_keys_at(keys, first + i));
        expect(out[i].place == right.place && out[i].mark == right.mark);
    }
    expect(out[n].place == 0 && out[n].mark == 0);
}

static void fill_randomly(struct rng *rng, uint8_t *bytes, size_t nbytes)
{
    for (size_t i = 0; i < nbytes; i++)
        bytes[i] = (uint8_t)rng_next(rng);
}

/* ---- Keys of one length ------------------------------------------------------------------ */

/* The keys fill a block of the heap, so that a sanitizer sees what is read behind the last. */
static void try_length(struct rng *rng, unsigned cpu, size_t nbytes)
{
    const struct hasher hasher = hasher_for(rng, cpu);
    const size_t count = 1 + (size_t)rng_below(rng, KEYS);
    const size_t first = (size_t)rng_below(rng, count);
    scoped_memory *bytes = nbytes ? malloc(count * nbytes) : NULL;
    const struct perhaps_keys keys = perhaps_keys_packed(bytes, nbytes, count);
    scene("%s, keys %zu to %zu of %zu bytes", cpu_name((enum cpu)cpu), first, count, nbytes);
    expect(bytes || !nbytes);
    fill_randomly(rng, bytes, count * nbytes);
    expect_hashes(&hasher, &keys, first, count - first);
}

TEST(test_every_length)
{
    struct rng rng = rng_for(__func__);
    for (unsigned cpu = 0; cpu < CPU_COUNT; cpu++)
        for (size_t nbytes = 0; cpu_has((enum cpu)cpu) && nbytes <= LENGTH; nbytes++)
            try_length(&rng, cpu, nbytes);
}

/* ---- Keys of differing lengths ----------------------------------------------------------- */

/* Makes each key a block of the heap, or no memory at all if it is empty.  Their lengths lie
 * close together, or far apart. */
static void make_each(struct rng *rng, struct perhaps_key *key, size_t n)
{
    const size_t least = (size_t)rng_below(rng, 40);
    const size_t span = (size_t)1 << rng_below(rng, 11);
    for (size_t i = 0; i < n; i++) {
        const size_t nbytes = least + (size_t)rng_below(rng, span);
        uint8_t *bytes = nbytes ? malloc(nbytes) : NULL;
        expect(bytes || !nbytes);
        fill_randomly(rng, bytes, nbytes);
        key[i] = (struct perhaps_key){ bytes, nbytes };
    }
    scene("%zu keys of %zu to %zu bytes", n, least, least + span - 1);
}

/* Expects the right hashes of the same keys between offsets of 4 bytes. */
static void expect_between(const struct hasher *hasher, const struct perhaps_key *key, size_t n,
                           size_t first)
{
    uint32_t offsets[KEYS + 1] = { 0 };
    for (size_t i = 0; i < n; i++)
        offsets[i + 1] = offsets[i] + (uint32_t)key[i].nbytes;
    scoped_memory *bytes = malloc(offsets[n] + 1);
    expect(bytes);
    for (size_t i = 0; i < n; i++)
        if (key[i].nbytes)
            memcpy(bytes + offsets[i], key[i].bytes, key[i].nbytes);
    const struct perhaps_keys keys = {
        .count = n, .packed = bytes, .offsets = offsets, .offset_nbytes = sizeof *offsets
    };
    expect_hashes(hasher, &keys, first, n - first);
}

TEST(test_mixed_lengths)
{
    enum { TRIALS = 300 };
    struct rng rng = rng_for(__func__);
    for (unsigned trial = 0; trial < TRIALS; trial++) {
        struct perhaps_key key[KEYS];
        const size_t n = 1 + (size_t)rng_below(&rng, KEYS), first = (size_t)rng_below(&rng, n);
        const struct perhaps_keys each = perhaps_keys_each(key, n);
        make_each(&rng, key, n);
        for (unsigned cpu = 0; cpu < CPU_COUNT; cpu++) {
            const struct hasher hasher = hasher_for(&rng, cpu);
            if (!cpu_has((enum cpu)cpu))
                continue;
            expect_hashes(&hasher, &each, first, n - first);
            expect_between(&hasher, key, n, first);
        }
        for (size_t i = 0; i < n; i++)
            free((void *)key[i].bytes);
    }
}

/* ---- Keys at the ends of memory ---------------------------------------------------------- */

/* Returns the first of PAGE bytes, before and behind which lie pages without access. */
enum { PAGE = 1 << 16 }; /* the largest page of a CPU */
static uint8_t *room_between(void)
{
    uint8_t *map = mmap(NULL, (size_t)3 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    expect(map != MAP_FAILED && !mprotect(map + PAGE, PAGE, PROT_READ | PROT_WRITE));
    return map + PAGE;
}

/* Each key begins or ends where the memory does. */
TEST(test_ends_of_memory)
{
    enum { TRIALS = 300 };
    struct rng rng = rng_for(__func__);
    uint8_t *room = room_between();
    fill_randomly(&rng, room, PAGE);
    for (unsigned trial = 0; trial < TRIALS * CPU_COUNT; trial++) {
        const unsigned cpu = trial % CPU_COUNT;
        const struct hasher hasher = hasher_for(&rng, cpu);
        const uint64_t span = (uint64_t)1 << rng_below(&rng, 11);
        const size_t n = 1 + (size_t)rng_below(&rng, KEYS);
        struct perhaps_key key[KEYS];
        for (size_t i = 0; i < n; i++) {
            key[i].nbytes = (size_t)rng_below(&rng, span);
            key[i].bytes = rng_below(&rng, 2) ? room : room + PAGE - key[i].nbytes;
        }
        scene("%s, %zu keys", cpu_name((enum cpu)cpu), n);
        const struct perhaps_keys each = perhaps_keys_each(key, n);
        if (cpu_has((enum cpu)cpu))
            expect_hashes(&hasher, &each, 0, n);
        const struct perhaps_keys packed =
            perhaps_keys_packed(room + PAGE - n * key[0].nbytes, key[0].nbytes, n);
        if (cpu_has((enum cpu)cpu) && n * key[0].nbytes <= PAGE)
            expect_hashes(&hasher, &packed, 0, n);
    }
    munmap(room - PAGE, (size_t)3 * PAGE);
}
