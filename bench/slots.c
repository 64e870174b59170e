/* slots.c - a client of its own: not the code of the library that is measured. */
#include "slots.h"

#include <string.h>

/* A byte's worth of the polynomial x^16 + x^12 + x^5 + 1. */
static uint16_t table[256];

__attribute__((constructor)) static void make_table(void)
{
    for (unsigned byte = 0; byte < 256; byte++) {
        unsigned crc = byte << 8;
        for (int bit = 0; bit < 8; bit++)
            crc = crc << 1 ^ (crc & 0x8000 ? 0x1021 : 0);
        table[byte] = (uint16_t)crc;
    }
}

unsigned plain_name_slot(const char *key, size_t nbytes)
{
    uint16_t crc = 0;
    for (size_t i = 0; i < nbytes; i++)
        crc = (uint16_t)(crc << 8 ^ table[crc >> 8 ^ (uint8_t)key[i]]);
    return crc % SLOTS;
}

unsigned name_slot(const char *key, size_t nbytes)
{
    const char *open = memchr(key, '{', nbytes);
    const char *close = open ? memchr(open, '}', nbytes - (size_t)(open - key)) : NULL;
    if (!close || close == open + 1)
        return plain_name_slot(key, nbytes);
    return plain_name_slot(open + 1, (size_t)(close - open - 1));
}
