/* facts.h - what info and plan tell of a filter, in the same words. */
#ifndef FACTS_H
#define FACTS_H

#include <jansson.h>
#include <perhaps.h>

#include "numbers.h"
#include "options.h"

/* The geometry as an object, the kind of its parts by name; for people in words, and without
 * what it has not. */
json_t *fact_geometry(const struct settings *settings, const struct perhaps_plan *plan);

/* Up to how many keys the rate is kept: null under --json if there is no end. */
json_t *fact_until(const struct settings *settings, const struct perhaps_plan *plan);

/* Whether the number of keys of such a filter is that of the keys added: those of Bloom kinds
 * count only what set a bit. */
bool counts_all(const struct perhaps_plan *plan);

/* How many keys, in expectation, were taken for old while 'nnew' were found to be new, after
 * 'before' of them. */
double expected_unseen(const perhaps_filter *filter, uint64_t before, uint64_t nnew);

/* ", 9.9 bits a key"; nothing as long as most of a filter is empty. */
struct text bits_of(uint64_t capacity, uint64_t keys, uint64_t memory_nbytes);

/* ", room for 39,000 keys more"; nothing for those that grow or are full. */
struct text room_of(const struct perhaps_plan *plan, uint64_t keys);

#endif
