/* checksums.c - the checksums of headers, pages and small files. */
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "../base/bytes.h"
#include "fields.h"

/* ---- Headers ---------------------------------------------------------------------------- */

/* Returns the checksum of a header, computed as if the field for it were 0.  The counters of a
 * live file change all the time, so they count as 0, too. */
static uint64_t header_checksum(const uint8_t *bytes, uint64_t nbytes)
{
    uint8_t first[HEADER_NBYTES];
    XXH3_state_t state;
    memcpy(first, bytes, sizeof first);
    store64(first + CHECKSUM_OFFSET, 0);
    if (features_of(first) & FEATURE_IN_PLACE)
        memset(first + COUNTERS_OFFSET, 0, sizeof(struct counters));
    XXH3_64bits_reset(&state);
    XXH3_64bits_update(&state, first, sizeof first);
    XXH3_64bits_update(&state, bytes + sizeof first, (size_t)nbytes - sizeof first);
    return XXH3_64bits_digest(&state);
}

void header_seal(uint8_t *bytes, uint64_t nbytes)
{
    store64(bytes + CHECKSUM_OFFSET, header_checksum(bytes, nbytes));
}

bool header_intact(const uint8_t *bytes, uint64_t nbytes)
{
    return load64(bytes + CHECKSUM_OFFSET) == header_checksum(bytes, nbytes);
}

/* ---- Small files ------------------------------------------------------------------------- */

/* Each piece gives the seed for the one before it, so that no bytes need be copied to leave out
 * the field for the checksum, or to bring header and bodies together. */
static uint64_t small_checksum(const uint8_t *header, uint64_t nbytes, const uint8_t *rest,
                               uint64_t rest_nbytes)
{
    const bool in_place = features_of(header) & FEATURE_IN_PLACE;
    uint64_t sum = in_place ? 0 : XXH3_64bits(rest, (size_t)rest_nbytes);
    sum = XXH3_64bits_withSeed(header + SMALL_FIELDS_OFFSET,
                               (size_t)nbytes - SMALL_FIELDS_OFFSET, sum);
    return XXH3_64bits_withSeed(header, SMALL_CHECKSUM_OFFSET, sum);
}

void small_seal(uint8_t *header, uint64_t nbytes, const uint8_t *rest, uint64_t rest_nbytes)
{
    store64(header + SMALL_CHECKSUM_OFFSET, small_checksum(header, nbytes, rest, rest_nbytes));
}

bool small_intact(const uint8_t *file, uint64_t header_nbytes, uint64_t file_nbytes)
{
    return load64(file + SMALL_CHECKSUM_OFFSET) == small_checksum(file, header_nbytes,
                                                                  file + header_nbytes,
                                                                  file_nbytes - header_nbytes);
}

/* ---- Pages ------------------------------------------------------------------------------ */

uint64_t container_page_count(uint64_t nbytes)
{
    return nbytes / PAGE_NBYTES + (nbytes % PAGE_NBYTES != 0);
}

uint64_t container_table_nbytes(uint64_t nbytes)
{
    return (container_page_count(nbytes) + 1) * sizeof(uint64_t);
}

/* The seed is the number of the page, so that exchanged pages are found, too. */
static uint64_t page_checksum(uint64_t number, const uint8_t *page, uint64_t nbytes)
{
    return XXH3_64bits_withSeed(page, (size_t)nbytes, number);
}

void container_fill_entry(uint8_t *table, uint64_t number, const uint8_t *page, uint64_t nbytes)
{
    store64(table + number * sizeof(uint64_t), page_checksum(number, page, nbytes));
}

bool container_entry_agrees(const uint8_t *entry, uint64_t number, const uint8_t *page,
                            uint64_t nbytes)
{
    return load64(entry) == page_checksum(number, page, nbytes);
}

bool container_page_intact(const uint8_t *table, uint64_t number, const uint8_t *page,
                           uint64_t nbytes)
{
    return container_entry_agrees(table + number * sizeof(uint64_t), number, page, nbytes);
}

static uint64_t table_checksum(const uint8_t *table, uint64_t pages)
{
    return XXH3_64bits_withSeed(table, (size_t)(pages * sizeof(uint64_t)), pages);
}

void container_seal_table(uint8_t *table, uint64_t nbytes)
{
    uint64_t count = container_page_count(nbytes);
    store64(table + count * sizeof(uint64_t), table_checksum(table, count));
}

bool container_table_intact(const uint8_t *table, uint64_t nbytes)
{
    uint64_t count = container_page_count(nbytes);
    return load64(table + count * sizeof(uint64_t)) == table_checksum(table, count);
}
