/* keys.c - keys without end that are all different, and the same in every run. */
#include <stdlib.h>
#include <string.h>

#include "bench.h"

/* The finalizer of splitmix64: a bijection, so that different numbers give different keys. */
uint64_t random64(uint64_t counter)
{
    uint64_t x = (counter + 1) * UINT64_C(0x9E3779B97F4A7C15);
    x = (x ^ x >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    x = (x ^ x >> 27) * UINT64_C(0x94D049BB133111EB);
    return x ^ x >> 31;
}

int key_buffer_open(struct key_buffer *buffer, size_t key_nbytes, size_t room)
{
    *buffer = (struct key_buffer){ .key_nbytes = key_nbytes };
    buffer->bytes = malloc(key_nbytes * room);
    return buffer->bytes ? 0 : -1;
}

void key_buffer_close(struct key_buffer *buffer)
{
    free(buffer->bytes);
}

/* The first 8 bytes alone tell keys apart; the others are as random. */
static void put_key(const struct key_buffer *buffer, size_t at, uint64_t number)
{
    uint8_t *key = buffer->bytes + at * buffer->key_nbytes;
    uint64_t word = random64(number);
    for (size_t done = 0; done < buffer->key_nbytes; done += sizeof word) {
        size_t left = buffer->key_nbytes - done;
        memcpy(key + done, &word, left < sizeof word ? left : sizeof word);
        word = random64(~word);
    }
}

struct perhaps_keys keys_slice(const struct perhaps_keys *keys, size_t at, size_t most)
{
    size_t left = keys->count - at;
    return perhaps_keys_slice(keys, at, left < most ? left : most);
}

static struct perhaps_keys all_keys(const struct key_buffer *buffer, size_t count)
{
    return perhaps_keys_packed(buffer->bytes, buffer->key_nbytes, count);
}

struct perhaps_keys keys_added(struct key_buffer *buffer, uint64_t first, size_t count)
{
    for (size_t i = 0; i < count; i++)
        put_key(buffer, i, first + i);
    return all_keys(buffer, count);
}

struct perhaps_keys keys_present(struct key_buffer *buffer, uint64_t first, size_t count,
                                 uint64_t added)
{
    for (size_t i = 0; i < count; i++)
        put_key(buffer, i, random64(first + i) % added);
    return all_keys(buffer, count);
}

/* Numbers that no capacity reaches. */
struct perhaps_keys keys_absent(struct key_buffer *buffer, uint64_t first, size_t count)
{
    return keys_added(buffer, UINT64_MAX / 2 + first, count);
}
