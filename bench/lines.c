/* perhaps-lines N - prints N lines of 20 bytes, each line twice, in random order: the same
 * ones in every run. */
#include <err.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { LINE_NBYTES = 20 };

/* The finalizer of splitmix64: a bijection, so that different numbers give different lines. */
static uint64_t mix(uint64_t x)
{
    x = (x ^ x >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    x = (x ^ x >> 27) * UINT64_C(0x94D049BB133111EB);
    return x ^ x >> 31;
}

/* A permutation of the numbers below 'count': one of the next power of two, walked until it
 * comes back below. */
static uint64_t shuffle(uint64_t i, uint64_t count)
{
    unsigned bits = 1;
    while (UINT64_C(1) << bits < count)
        bits++;
    uint64_t mask = (UINT64_C(1) << bits) - 1;
    do {
        for (int round = 0; round < 3; round++) {
            i = (i * UINT64_C(0xBF58476D1CE4E5B9) + 1) & mask;
            i ^= i >> (bits + 1) / 2;
        }
    } while (i >= count);
    return i;
}

static void put_line(uint64_t number, FILE *to)
{
    char line[LINE_NBYTES + 1];
    uint64_t digits = mix(number + 1);
    for (int i = 0; i < LINE_NBYTES; i++) {
        line[i] = "0123456789abcdef"[digits & 15];
        digits = digits >> 4 | digits << 60; /* the last four are the first again */
    }
    line[LINE_NBYTES] = '\n';
    fwrite(line, 1, sizeof line, to);
}

int main(int argc, char **argv)
{
    char *end = NULL;
    uint64_t count = argc == 2 ? strtoull(argv[1], &end, 10) : 0;
    if (!count || *end || count >> 60)
        errx(2, "usage: perhaps-lines N");
    uint64_t different = (count + 1) / 2;
    for (uint64_t i = 0; i < count; i++)
        put_line(shuffle(i, count) % different, stdout);
    if (fclose(stdout))
        err(2, "standard output");
    return 0;
}
