/* grown.h - which keys came before, where nobody knows how many will come.
 *
 * Short hashes in tables that grow by a quarter or so at a time.  A key whose short hash came
 * before is taken for one that came: with n keys and m short hashes a new key is so with a
 * probability of n / m.  When that is half of the rate that is asked, the table is closed, and
 * a second one, with more short hashes, may use a quarter of the rate; and so on.  So the rate
 * is kept with any number of keys, and there are few tables: one for 33 million keys at 1e-6.
 *
 * With a filter that grows (elastic) dedup takes three quarters of the memory, and four times
 * the instructions. */
#ifndef GROWN_H
#define GROWN_H

#include <perhaps_fast.h>

/* The rates for which these tables are made: with others they would be closed too early, or
 * take much more memory than a filter. */
#define GROWN_FPR_LEAST 1e-6
#define GROWN_FPR_MOST  1e-4

struct grown;

/* Makes an empty one, for a rate and one of 'nshards' of all keys, a power of two up to 64.
 * Returns NULL without memory. */
struct grown *grown_new(double fpr, size_t nshards);

void grown_free(struct grown *grown);

/* Adds keys in their order, of which it looks only at the first half of the hashes, which must
 * be uniform.  Writes to was_present[] whether each was there.  Returns 0; or
 * PERHAPS_ERR_MEMORY, having added the first *done keys, and takes no more from then on. */
int grown_add(struct grown *grown, const struct perhaps_hashed *hash, size_t count,
              bool *was_present, size_t *done);

struct grown_facts {
    uint64_t keys;
    uint64_t capacity; /* for how many keys there was room at first */
    uint64_t memory_nbytes;
    double fpr_now;
    double expected_losses; /* new keys that were taken for old ones */
};

struct grown_facts grown_facts(const struct grown *grown);

#endif
