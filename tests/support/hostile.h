/* hostile.h - filter files as an enemy makes them, for the tests and the fuzzers.  Written
 * after doc/FORMAT.md and apart from src/store/container.c, so that each checks the other. */
#ifndef HOSTILE_H
#define HOSTILE_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "perhaps.h"
#include "perhaps_file.h"

/* For the fuzzers, which have no expect(). */
#define must(condition)                                                                        \
    do {                                                                                       \
        if (!(condition)) {                                                                    \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);            \
            abort();                                                                           \
        }                                                                                      \
    } while (0)

/* The offsets of the fields of the header (doc/FORMAT.md). */
enum {
    AT_MAGIC = 0,
    AT_VERSION = 8,
    AT_HEADER_NBYTES = 12,
    AT_FEATURES = 16,
    AT_FILE_NBYTES = 24,
    AT_CHECKSUM = 32,
    AT_SECTIONS = 40,
    AT_HASH = 44,
    AT_SEED = 48,
    AT_CHECK = 56,
    AT_PAGES_OFFSET = 64,
    AT_TABLE_OFFSET = 72,
    AT_RESERVED = 80,
    AT_KIND = 120,
    AT_PARENT = 124,
    AT_CAPACITY = 128,
    AT_FPR = 136,
    AT_KEYS = 144,
    AT_FAILED_ADDS = 152,
    AT_UNMATCHED_REMOVALS = 160,
    AT_BODY_OFFSET = 168,
    AT_BODY_NBYTES = 176,
    AT_FIELDS = 184,
    FIELDS_END = 280,
    BODY_OFFSET = 4096, /* of the first body, if the file has few sections */
};

/* Offsets from AT_KIND to FIELDS_END are those of the first section; each further section lies
 * SECTION_NBYTES behind the one before it. */
enum { SECTION_NBYTES = 160 };

static inline size_t at_section(size_t at, size_t number)
{
    return at + number * SECTION_NBYTES;
}

/* Reads and writes a little-endian number of up to eight bytes. */
static inline uint64_t get_number(const uint8_t *at, size_t nbytes)
{
    uint64_t value = 0;
    memcpy(&value, at, nbytes);
    return value;
}

static inline void put_number(uint8_t *at, uint64_t value, size_t nbytes)
{
    memcpy(at, &value, nbytes);
}

static inline uint64_t get64(const uint8_t *at)
{
    return get_number(at, 8);
}

static inline void put64(uint8_t *at, uint64_t value)
{
    put_number(at, value, 8);
}

/* The same of small files, whose other fields are packed. */
enum {
    SMALL_AT_HEADER_NBYTES = 12,
    SMALL_AT_FILE_NBYTES = 14,
    SMALL_AT_CHECKSUM = 24,
    SMALL_AT_FIELDS = 32,
    SMALL_UNIT_NBYTES = 64,
    COUNTERS_NBYTES = 24,
    FEATURE_SMALL_FILE = 16,
};

/* A packed header as numbers: SMALL_AT_FIELDS up to its zeros. */
enum { NUMBERS_MAX = 600 };

struct numbers {
    size_t count;
    uint64_t value[NUMBERS_MAX];
    bool raw[NUMBERS_MAX];          /* of 8 bytes */
    const char *what[NUMBERS_MAX];  /* constants: "capacity", "kind" and others */
    uint64_t sections, body_nbytes; /* of all bodies */
};

/* Returns whether this is a small file by its features, and has a whole header. */
bool is_small_file(const uint8_t *file, size_t nbytes);

/* Reads a packed header, and derives what all its bodies take.  Returns false if there is no
 * such kind or no such body, or if the header is not whole. */
bool read_numbers(const uint8_t *file, size_t nbytes, struct numbers *numbers);

/* Writes these numbers, zeros, the bytes that lay behind the header, as many as belong there,
 * and all sizes and checksums.  Returns the size of the file; 0 if it would be no small one. */
size_t write_numbers(const struct numbers *numbers, const uint8_t *old, size_t old_nbytes,
                     uint8_t file[65536]);

/* Returns the size of the header as the file tells it; or the smallest possible one if the file
 * tells an impossible size. */
size_t header_size(const uint8_t *file, size_t nbytes);

/* Computes the checksum of a changed header, which is not that of a small file, and stores it
 * there. */
void reseal_header(uint8_t *file, size_t nbytes);

/* Computes and stores all checksums of a changed file, as far as its header tells where they
 * stand. */
void reseal(uint8_t *file, size_t nbytes);

/* Opens a file that holds these bytes, with the results of perhaps_open(). */
int open_bytes(const void *bytes, size_t nbytes, const struct perhaps_open_options *options,
               perhaps_filter **filter);

/* Calls every operation on copies of a filter, whatever its bytes are, and aborts if an answer
 * is wrong: if a key that was added is not found, for example.  'filter' stays as it was. */
void exercise(const perhaps_filter *filter, uint64_t seed);

#endif
