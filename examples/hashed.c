/* hashed.c - two ways for a program to hash the keys itself.
 * PERHAPS_HASH_NONE: the keys are hashes that the program has already, such as those of blocks
 * in a backup.
 * PERHAPS_HASH_CUSTOM: the filter calls the program's own function, here one that ignores case.
 * Run: build/examples/hashed   (returns 0 if all answers are as they must be) */
#include <ctype.h>
#include <perhaps.h>
#include <stdio.h>
#include <string.h>

enum { BLOCKS = 100000, ALLOWED = 150 }; /* 100 false positives are expected at most */

/* Adds a byte to two sums of 64 bits each.  A program that has SHA-256 would take 16 bytes of
 * that instead. */
static void hash_byte(uint64_t half[2], int byte)
{
    half[0] = (half[0] + (unsigned)byte + 1) * UINT64_C(0xBF58476D1CE4E5B9);
    half[1] = (half[1] ^ half[0] >> 31) * UINT64_C(0x94D049BB133111EB);
    half[0] ^= half[1] >> 29;
}

/* Hashes a key without regard to case.  PERHAPS_HASH_CUSTOM calls it. */
static void hash_caseless(void *context, const void *key, size_t key_nbytes, uint8_t hash[16])
{
    (void)context; /* could be anything that the function needs */
    uint64_t half[2] = { 0 };
    for (size_t i = 0; i < key_nbytes; i++)
        hash_byte(half, tolower(((const uint8_t *)key)[i]));
    hash_byte(half, 0);
    memcpy(hash, half, sizeof half);
}

/* Returns the hash of a block of a file; the block is a text such as "block 4711" here. */
static const uint8_t *hash_of_block(unsigned number)
{
    static uint8_t hash[16];
    char block[32];
    int nbytes = snprintf(block, sizeof block, "block %u", number);
    hash_caseless(NULL, block, (size_t)nbytes, hash);
    return hash;
}

static bool try_hashes(void)
{
    struct perhaps_options options = { .capacity = BLOCKS, .fpr = 0.001 };
    perhaps_filter *stored;
    unsigned found = 0, wrong = 0;
    options.hashing.hash = PERHAPS_HASH_NONE;
    int error = perhaps_create(&options, &stored);
    for (unsigned i = 0; i < BLOCKS && !error; i++)
        error = perhaps_add(stored, hash_of_block(i), 16);
    if (error)
        return false;
    for (unsigned i = 0; i < BLOCKS; i++) {
        found += perhaps_contains(stored, hash_of_block(i), 16);
        wrong += perhaps_contains(stored, hash_of_block(BLOCKS + i), 16);
    }
    perhaps_free(stored);
    printf("hashes: %u of %d found, and %u of %d others\n", found, BLOCKS, wrong, BLOCKS);
    return found == BLOCKS && wrong < ALLOWED;
}

static bool try_own_function(void)
{
    struct perhaps_options options = { .capacity = 1000, .fpr = 0.001 };
    perhaps_filter *names;
    options.hashing.hash = PERHAPS_HASH_CUSTOM;
    options.hashing.function = hash_caseless;
    if (perhaps_create(&options, &names) || perhaps_add(names, "README.md", 9))
        return false;
    bool same = perhaps_contains(names, "readme.MD", 9);
    bool other = perhaps_contains(names, "readme.txt", 10);
    printf("readme.MD: %d; readme.txt: %d\n", same, other);
    perhaps_free(names);
    return same && !other;
}

int main(void)
{
    return !try_hashes() || !try_own_function();
}
