/* bloom_loops.h - the loops of classic Bloom filters.  Some instruction sets have faster
 * shifts by a variable, and none has anything else to gain. */
#include "bloom_bits.h"

static void bloom_prefetch(const struct body *b, const struct keyhash *keys, size_t n)
{
    for (size_t i = 0; i < n; i++)
        bloom_prefetch_bits(b, b->geometry.field[KEY_BITS], keys[i]);
}

/* Keys are looked up in chunks.  Most absent keys fail at one of their first bits. */
enum { CHUNK = 128 };

/* Of a chunk, the keys whose bits were all set so far. */
struct passed {
    uint64_t place[CHUNK];  /* of the last bit that was looked at */
    uint32_t number[CHUNK]; /* in the chunk */
};

/* Returns the bit at a place: 0 or 1. */
static LOOP_INLINE uint32_t bloom_bit_at(const struct body *b, uint64_t place)
{
    uint64_t bit = scale64(place, b->geometry.field[NBITS]);
    return __atomic_load_n(bloom_word_of(b, bit), __ATOMIC_RELAXED) >> bit % WORD_NBITS & 1;
}

/* Looks at the next 'bits' bits of n keys: at all of them, since without a branch to mispredict
 * the CPU overlaps the memory accesses of many keys.  Keeps the keys that pass, and returns how
 * many. */
static LOOP_INLINE size_t bloom_pass(const struct body *b, uint64_t bits,
                                     const struct keyhash *keys, struct passed *passed,
                                     size_t n, bool prefetches)
{
    size_t left = 0;
    for (size_t i = 0; i < n; i++) {
        if (prefetches && i + NEAR < n) {
            struct keyhash near = { passed->place[i + NEAR],
                                    keys[passed->number[i + NEAR]].mark };
            near.place = bloom_next_place(near.place, near.mark);
            bloom_prefetch_bits(b, bits, near);
        }
        uint32_t number = passed->number[i], all = 1;
        uint64_t place = passed->place[i];
        for (uint64_t k = 0; k < bits; k++) {
            place = bloom_next_place(place, keys[number].mark);
            all &= bloom_bit_at(b, place);
        }
        passed->place[left] = place;
        passed->number[left] = number;
        left += all;
    }
    return left;
}

/* Looks up at most CHUNK keys: at the first bit of each, then, of the keys that pass, at one
 * more, two more, four more ...; or, as soon as most pass and so are perhaps there, at all. */
static inline size_t bloom_chunk_contains(const struct body *b, const struct keyhash *keys,
                                          const struct keyhash *ahead, size_t n, bool *answer)
{
    struct passed passed;
    uint64_t bits = b->geometry.field[KEY_BITS], next;
    size_t left = 0;
    for (size_t i = 0; i < n; i++) {
        bloom_prefetch_bits(b, 1, ahead[i]);
        passed.place[left] = keys[i].place;
        passed.number[left] = (uint32_t)i;
        left += bloom_bit_at(b, keys[i].place);
    }
    for (uint64_t done = 1; done < bits; done += next) {
        next = done < bits - done ? done : bits - done;
        if (left <= n - n / 4) {
            left = bloom_pass(b, next, keys, &passed, left, false);
        } else {
            next = bits - done;
            left = bloom_pass(b, next, keys, &passed, left, true);
        }
    }
    memset(answer, 0, n);
    for (size_t i = 0; i < left; i++)
        answer[passed.number[i]] = true;
    return left;
}

static size_t bloom_contains(const struct body *b, const struct keyhash *keys,
                             const struct keyhash *ahead, size_t n, bool *answer)
{
    size_t found = 0;
    for (size_t at = 0; at < n; at += CHUNK)
        found += bloom_chunk_contains(b, keys + at, ahead + at, n - at < CHUNK ? n - at : CHUNK,
                                      answer + at);
    return found;
}

/* Stops at the first bit that is clear: nothing was prefetched, so each bit may be a cache
 * miss. */
static bool bloom_contains_one(const struct body *b, struct keyhash key)
{
    for (uint64_t i = 0; i < b->geometry.field[KEY_BITS]; i++) {
        if (!bloom_bit_at(b, key.place))
            return false;
        key.place = bloom_next_place(key.place, key.mark);
    }
    return true;
}

static LOOP_INLINE uint32_t bloom_word_add(uint32_t *word, uint32_t mask)
{
    uint32_t before = __atomic_load_n(word, __ATOMIC_RELAXED);
    __atomic_store_n(word, before | mask, __ATOMIC_RELAXED);
    return before;
}

static size_t bloom_add(const struct body *b, const struct keyhash *keys,
                        const struct keyhash *ahead, size_t n, bool *answer)
{
    return bloom_add_all(b, keys, ahead, n, answer, bloom_word_add);
}

static int bloom_add_one(const struct body *b, struct keyhash key, struct counters *counters)
{
    counters->keys += !bloom_add_key(b, key, bloom_word_add);
    return 0;
}

/* Adds a key in several threads, bit by bit under the locks of their regions.  Of threads that
 * add the same key at the same moment, each may find that it was not there, and count it
 * (filter/add.c). */
static enum shared_add bloom_add_one_shared(const struct body *b, struct keyhash key,
                                            uint64_t *count, uint64_t most)
{
    struct owners *owners = b->writers;
    bool all = true;
    uint64_t place = key.place;
    if (!has_room(count, most))
        return SHARED_NO_ROOM;
    for (uint64_t k = 0; k < b->geometry.field[KEY_BITS]; k++) {
        const uint64_t bit = scale64(place, b->geometry.field[NBITS]);
        const uint64_t region = owners_region(owners, bit / 8);
        struct found found = { .offset = bit / 8, .mark = (bit % 8) << 32 };
        bool was_set = true;
        owners_take(owners, region);
        bloom_add_found(b, &found, 1, &was_set);
        all &= was_set;
        if (!all && k == b->geometry.field[KEY_BITS] - 1)
            owners_count(owners, region, count);
        owners_release(owners, region);
        place = bloom_next_place(place, key.mark);
    }
    return all ? SHARED_PRESENT : SHARED_ADDED;
}

CONTAINS_INTEGER(bloom_contains_integer, bloom_contains_one)
ADD_INTEGER(bloom_add_integer, bloom_add_one)
ADD_NEW_ONE(bloom_add_new_one, bloom_add_one)

/* The table. */
#define BLOOM_LOOPS                                                                            \
    {                                                                                          \
        .prefetch = bloom_prefetch, .contains = bloom_contains, .add = bloom_add,              \
        .contains_one = bloom_contains_one, .contains_integer = bloom_contains_integer,        \
        .add_one = bloom_add_one, .add_integer = bloom_add_integer,                            \
        .add_new_one = bloom_add_new_one, .add_one_shared = bloom_add_one_shared,              \
    }
