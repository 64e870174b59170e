/* foreign.h - filters of RedisBloom and valkey-bloom, for the tests: their headers, and what
 * must hold for each. */
#ifndef FOREIGN_H
#define FOREIGN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../../module/form.h"

/* Options of Bloom filters, and lengths of headers. */
enum {
    NOROUND = 1,
    FORCE64 = 4,
    NONSCALING = 8,
    HEAD = 20,
    LINK = 53,
    CUCKOO_HEAD = 38,
    VALKEY_HEAD = 68,
    VALKEY_LINK = 24
};

struct text {
    uint8_t *at;
    size_t nbytes;
};

/* The numbers of a link, by the formulas of RedisBloom. */
struct plan {
    uint64_t nbytes, entries;
    double error, bpe;
    uint32_t hashes;
    uint8_t n2;
};

/* Appends a number, little-endian. */
void put(struct text *text, uint64_t value, size_t nbytes);

/* Returns the numbers of a link, by the formulas of RedisBloom. */
struct plan plan_link(uint64_t entries, double error, unsigned options);
void put_link(struct text *text, const struct plan *p, uint64_t items);

/* Returns a header without its links; and that of a cuckoo filter without items. */
struct text bloom_header(uint64_t items, uint32_t links, uint32_t options, uint32_t growth);
struct text cuckoo_header(uint64_t buckets, uint64_t filters, unsigned bucket_size,
                          unsigned iterations, unsigned expansion);

/* Every test begins with this. */
void setup(void);
void *begin(const struct form *form, const struct text *header);
int load(const struct form *form, void *filter, uint64_t position, const void *bytes,
         size_t nbytes);

/* Makes a filter without items. */
void *make_bloom(uint64_t entries, double error, unsigned options, unsigned growth);
void *make_valkey(uint64_t capacity, double fpr, uint32_t expansion);
void *make_cuckoo(uint64_t buckets, unsigned size, unsigned iterations, unsigned expansion);

/* Returns an item of 1 to 8 bytes. */
struct perhaps_key item_of(const uint64_t *number);
bool has(const struct form *form, const void *filter, const char *text);

/* Returns all pieces of a dump, the header first. */
struct text dump_of(const struct form *form, const void *filter);
void expect_same_dumps(const struct form *form, const void *a, const void *b);

/* Loads the dump of a filter into a new one.  Stops before the piece of number 'most'. */
void *reload(const struct form *form, const void *filter, unsigned most);

/* Checks all ways from one filter to another that is the same. */
void expect_copies(const struct form *form, const void *filter);

/* Checks that all memory was released that was taken since setup(). */
void expect_nothing_left(void);

/* Adds an item; 'wanted' tells whether it is there already. */
void add_text(const struct form *form, void *filter, const char *text, bool unless_present,
              bool wanted);

#endif
