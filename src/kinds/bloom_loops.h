/* bloom_loops.h - the loops of classic Bloom filters, for one instruction set; each_cpu.h
 * includes it.  The text is the same for all instruction sets, but some of them have faster
 * shifts by a variable. */
#ifndef BLOOM_LOOPS_NAMES
#define BLOOM_LOOPS_NAMES
#define bits_set               FOR_CPU(bits_set)
#define chunk_contains         FOR_CPU(chunk_contains)
#define bloom_contains         FOR_CPU(bloom_contains)
#define bloom_contains_one     FOR_CPU(bloom_contains_one)
#define bloom_add              FOR_CPU(bloom_add)
#define bloom_add_one          FOR_CPU(bloom_add_one)
#define bloom_contains_integer FOR_CPU(bloom_contains_integer)
#define bloom_add_integer      FOR_CPU(bloom_add_integer)
#endif

/* Returns whether the next 'bits' bits of a key are all set, and moves *key behind them.  Looks
 * at all of them, so that there is no branch to mispredict. */
static ALWAYS_INLINE bool bits_set(const uint8_t *body, uint64_t nbits, uint64_t bits,
                                   struct keyhash *key)
{
    unsigned all = 1;
    for (uint64_t b = 0; b < bits; b++) {
        uint64_t bit = scale64(key->place, nbits);
        all &= (unsigned)__atomic_load_n(&body[bit >> 3], __ATOMIC_RELAXED) >> (bit & 7);
        key->place = bloom_next_place(key->place, key->mark);
    }
    return all;
}

/* Looks up at most CHUNK keys: first bits of all keys, then the others of those that pass. */
static inline size_t chunk_contains(const uint8_t *body, uint64_t nbits, uint64_t bits,
                                    const struct keyhash *keys, const struct keyhash *ahead,
                                    size_t n, bool *answer)
{
    uint64_t first = bits < FIRST_BITS ? bits : FIRST_BITS;
    struct keyhash passed[CHUNK];
    size_t number[CHUNK], npassed = 0, found = 0;
    for (size_t i = 0; i < n; i++) {
        prefetch_bits(body, nbits, first, ahead[i]);
        struct keyhash key = keys[i];
        answer[i] = bits_set(body, nbits, first, &key);
        passed[npassed] = key;
        number[npassed] = i;
        npassed += answer[i];
    }
    for (size_t i = 0; i < npassed; i++)
        prefetch_bits(body, nbits, bits - first, passed[i]);
    for (size_t i = 0; i < npassed; i++) {
        bool all = bits_set(body, nbits, bits - first, &passed[i]);
        answer[number[i]] = all;
        found += all;
    }
    return found;
}

static size_t bloom_contains(const struct body *b, const struct keyhash *keys,
                             const struct keyhash *ahead, size_t n, bool *answer)
{
    size_t found = 0;
    for (size_t at = 0; at < n; at += CHUNK)
        found += chunk_contains(b->bytes, b->field[NBITS], b->field[KEY_BITS], keys + at,
                                ahead + at, n - at < CHUNK ? n - at : CHUNK, answer + at);
    return found;
}

/* Stops at the first bit that is clear: nothing was prefetched, so each bit may be a cache
 * miss. */
static bool bloom_contains_one(const struct body *b, struct keyhash key)
{
    for (uint64_t i = 0; i < b->field[KEY_BITS]; i++) {
        uint64_t bit = scale64(key.place, b->field[NBITS]);
        if (!(__atomic_load_n(&b->bytes[bit >> 3], __ATOMIC_RELAXED) >> (bit & 7) & 1))
            return false;
        key.place = bloom_next_place(key.place, key.mark);
    }
    return true;
}

static size_t bloom_add(const struct body *b, const struct keyhash *keys,
                        const struct keyhash *ahead, size_t n, bool *answer)
{
    return add_all(b, keys, ahead, n, answer, byte_add);
}

static int bloom_add_one(const struct body *b, struct keyhash key, struct counters *counters)
{
    counters->keys += !add_key(b, key, byte_add);
    return 0;
}

CONTAINS_INTEGER(bloom_contains_integer, bloom_contains_one)
ADD_INTEGER(bloom_add_integer, bloom_add_one)
