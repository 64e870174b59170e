/* A mask has a bit for each byte of a group that is a delimiter: going over its bits costs the
 * same for every record, where a call of memchr() for each costs several times that on short
 * lines. */
#include "scan.h"

#include <stdint.h>
#include <string.h>

#if defined(__SSE2__)

#include <emmintrin.h>

/* A bit for each of 64 bytes. */
enum { GROUP_NBYTES = 64, BITS_A_BYTE = 1 };

static inline uint64_t mask16(const char *text, char delimiter)
{
    __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)text);
    return (uint64_t)_mm_movemask_epi8(_mm_cmpeq_epi8(bytes, _mm_set1_epi8(delimiter)));
}

static inline uint64_t mask_of(const char *text, char delimiter)
{
    return mask16(text, delimiter) | mask16(text + 16, delimiter) << 16 |
           mask16(text + 32, delimiter) << 32 | mask16(text + 48, delimiter) << 48;
}

#else

/* The highest bit of each of 8 bytes, which little-endian machines load first byte lowest. */
enum { GROUP_NBYTES = 8, BITS_A_BYTE = 8 };

static inline uint64_t mask_of(const char *text, char delimiter)
{
    const uint64_t ones = UINT64_C(0x0101010101010101), low = ones * 0x7f;
    uint64_t bytes;
    memcpy(&bytes, text, sizeof bytes);
    bytes ^= ones * (uint8_t)delimiter; /* 0 where the delimiter is */
    return ~(((bytes & low) + low) | bytes | low);
}

#endif

/* Goes by chunks whose count fits a byte: compilers then compare and add many at a time. */
size_t scan_count(const char *text, size_t nbytes, char delimiter)
{
    enum { CHUNK = 128 };
    size_t count = 0, i = 0;
    for (; i + CHUNK <= nbytes; i += CHUNK) {
        uint8_t some = 0;
        for (size_t k = i; k < i + CHUNK; k++)
            some = (uint8_t)(some + (text[k] == delimiter));
        count += some;
    }
    for (; i < nbytes; i++)
        count += text[i] == delimiter;
    return count;
}

void scan_records(const char *text, size_t nbytes, char delimiter, struct perhaps_key *record)
{
    const char *begin = text, *end = text + nbytes;
    for (; end - text >= GROUP_NBYTES; text += GROUP_NBYTES)
        for (uint64_t mask = mask_of(text, delimiter); mask; mask &= mask - 1) {
            const char *stop = text + __builtin_ctzll(mask) / BITS_A_BYTE;
            *record++ = (struct perhaps_key){ begin, (size_t)(stop - begin) };
            begin = stop + 1;
        }
    for (; text < end; text++)
        if (*text == delimiter) {
            *record++ = (struct perhaps_key){ begin, (size_t)(text - begin) };
            begin = text + 1;
        }
}
