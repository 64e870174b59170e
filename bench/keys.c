/* keys.c - makes keys: as many as are wanted, all different, and the same in every run.
 *
 * A key is a function of its number.  So no keys are stored, a filter can have more of them
 * than memory holds, and keys that are in and keys that are not in are told by their number. */
#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench.h"

double seconds_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

void *allocate_zeroed(size_t count, size_t nbytes)
{
    void *memory = calloc(count, nbytes);
    if (!memory)
        errx(2, "out of memory");
    return memory;
}

/* The finalizer of splitmix64: a bijection, so that different numbers give different keys. */
uint64_t random64(uint64_t counter)
{
    uint64_t x = (counter + 1) * UINT64_C(0x9E3779B97F4A7C15);
    x = (x ^ x >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    x = (x ^ x >> 27) * UINT64_C(0x94D049BB133111EB);
    return x ^ x >> 31;
}

struct key_buffer key_buffer_open(size_t key_nbytes, size_t room)
{
    return (struct key_buffer){ .bytes = allocate_zeroed(room, key_nbytes),
                                .key_nbytes = key_nbytes };
}

struct key_buffer key_buffer_of_integers(uint64_t nintegers, size_t room)
{
    struct key_buffer buffer = key_buffer_open(INTEGER_NBYTES, room);
    buffer.nintegers = nintegers;
    return buffer;
}

void key_buffer_close(struct key_buffer *buffer)
{
    free(buffer->bytes);
}

/* Maps the numbers below 'count' to themselves in another order, each to a different one.  It
 * permutes the numbers below the next power of two, again and again until the result is below
 * 'count'.  So it needs no memory, however many numbers there are. */
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

/* The numbers of keys that are never added: they begin where no capacity reaches. */
#define ABSENT (UINT64_MAX / 2)

static void put_integer(const struct key_buffer *buffer, uint8_t *key, uint64_t number)
{
    uint64_t half = buffer->nintegers / 2, absent = number >= ABSENT;
    uint64_t integer =
        INTEGER_LOW + absent + 2 * shuffle((absent ? number - ABSENT : number) % half, half);
    for (size_t i = INTEGER_NBYTES; i-- > 0; integer /= 10)
        key[i] = (uint8_t)('0' + integer % 10);
}

/* The first 8 bytes alone make each key different; the others are random, too, so that a hash
 * function has no easy keys. */
static void put_key(const struct key_buffer *buffer, size_t at, uint64_t number)
{
    uint8_t *key = buffer->bytes + at * buffer->key_nbytes;
    if (buffer->nintegers) {
        put_integer(buffer, key, number);
        return;
    }
    uint64_t word = random64(number);
    for (size_t done = 0; done < buffer->key_nbytes; done += sizeof word) {
        size_t left = buffer->key_nbytes - done;
        memcpy(key + done, &word, left < sizeof word ? left : sizeof word);
        word = random64(~word);
    }
}

struct perhaps_keys keys_added(struct key_buffer *buffer, uint64_t first, size_t count)
{
    for (size_t i = 0; i < count; i++)
        put_key(buffer, i, first + i);
    return perhaps_keys_packed(buffer->bytes, buffer->key_nbytes, count);
}

struct perhaps_keys keys_present(struct key_buffer *buffer, uint64_t first, size_t count,
                                 uint64_t added)
{
    for (size_t i = 0; i < count; i++)
        put_key(buffer, i, random64(first + i) % added);
    return perhaps_keys_packed(buffer->bytes, buffer->key_nbytes, count);
}

struct perhaps_keys keys_absent(struct key_buffer *buffer, uint64_t first, size_t count)
{
    return keys_added(buffer, ABSENT + first, count);
}

/* ---- Lines ------------------------------------------------------------------------------- */

/* A line is 16 hexadecimal digits and the first four of them again: 20 bytes. */
void lines_print(uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        uint64_t digits = random64(shuffle(i, count) % ((count + 1) / 2));
        char line[32];
        snprintf(line, sizeof line, "%016llx", (unsigned long long)digits);
        memcpy(line + 16, line, 4);
        line[20] = '\n';
        fwrite(line, 1, 21, stdout);
    }
    if (fclose(stdout))
        err(2, "standard output");
}
