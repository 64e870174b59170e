/* ribbon_loops.h - the loops of ribbon filters. */
#include "ribbon.h"

/* gcc would put the members of a small struct together as a vector, and a load of the vector
 * waits until the stores of the members are done: HACKING.md ("Loops"). */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC push_options
#pragma GCC optimize("no-tree-slp-vectorize")
#endif

#include "ribbon_layers.h"

/* Prefetches a group of columns: all that vectors hold, which at the end of a stripe is more
 * than both blocks. */
static ALWAYS_INLINE void prefetch_group(const struct layer *layer, const struct blocks *blocks,
                                         unsigned first, enum ribbon_width width)
{
    struct words words = words_of(layer, blocks, first, width);
    unsigned columns = columns_of(layer, first, width), half = RIBBON_GROUP / 2;
    unsigned vector = columns > half ? RIBBON_GROUP : half;
    PREFETCH(words.here);
    PREFETCH(words.next + columns - 1);
    if (columns == RIBBON_GROUP || columns == 1)
        return;
    if (columns > half || !blocks->adjacent)
        PREFETCH(words.here + vector - 1);
    if (!blocks->adjacent)
        PREFETCH(words.next + columns - vector);
}

/* Prefetches what is asked first: a threshold, and the first two groups. */
static ALWAYS_INLINE void ribbon_prefetch_key(const struct body *b, const struct layer *layer,
                                              struct keyhash key, enum ribbon_width width)
{
    uint64_t start = start_of(b, layer, &key);
    struct blocks blocks = blocks_of(layer, start, width);
    if (layer->bumps)
        PREFETCH(layer->thresholds + start / RIBBON_BUCKET / 4);
    prefetch_group(layer, &blocks, 0, width);
    if (width >= RIBBON_WIDE)
        prefetch_group(layer, &blocks, RIBBON_GROUP, width);
}

static ALWAYS_INLINE void ribbon_prefetch_keys(const struct body *b, const struct keyhash *keys,
                                               size_t n, enum ribbon_width width)
{
    const struct layer layer = first_layer(b, width);
    for (size_t i = 0; i < n; i++)
        ribbon_prefetch_key(b, &layer, keys[i], width);
}

static void ribbon_prefetch_narrow(const struct body *b, const struct keyhash *keys, size_t n)
{
    ribbon_prefetch_keys(b, keys, n, RIBBON_NARROW);
}

static void ribbon_prefetch_wide(const struct body *b, const struct keyhash *keys, size_t n)
{
    ribbon_prefetch_keys(b, keys, n, RIBBON_WIDE);
}

/* How many keys ahead are prefetched. */
enum { RIBBON_AHEAD = 32 };

/* Keys of a batch that are looked at once more, by their indices. */
struct later {
    size_t nfound, nbumped;
    uint16_t found[BATCH_MOST];  /* the first two groups of a long row are right */
    uint16_t bumped[BATCH_MOST]; /* the first layer bumps them */
};

/* What a key's slots add up to in all columns, and whether that begins with its fingerprint. */
struct sum {
    uint32_t row;
    bool is_right;
};

/* Defines the loops for rows of one width. */
#define RIBBON_LOOPS_OF(name, width)                                                           \
    static size_t ribbon_contains_##name(const struct body *b, const struct keyhash *keys,     \
                                         const struct keyhash *ahead, size_t n, bool *answer)  \
    {                                                                                          \
        return ribbon_contains_all(b, keys, ahead, n, answer, width);                          \
    }                                                                                          \
    static bool ribbon_contains_one_##name(const struct body *b, struct keyhash key)           \
    {                                                                                          \
        return ribbon_contains_key(b, key, width);                                             \
    }                                                                                          \
    CONTAINS_INTEGER(ribbon_contains_integer_##name, ribbon_contains_one_##name)

/* What a group adds up to; and the sum of two groups. */
#if CPU_HAS_AVX512
typedef __mmask8 group_sum;
static LOOP_INLINE uint32_t joined(group_sum first, group_sum second)
{
    return _mm512_kunpackb(second, first);
}
#else
typedef uint32_t group_sum;
static LOOP_INLINE uint32_t joined(group_sum first, group_sum second)
{
    return first | second << RIBBON_GROUP;
}
#endif

/* Which slots of two blocks a key touches, and what they should add up to.  Vectors compute
 * the slots, too: the CPU looks the farther ahead the fewer instructions a question takes. */
struct ribbon_spot {
#if CPU_HAS_AVX512
    __m512i low, high; /* of the block in which it starts, and of the next one */
    __m512i one;
#elif CPU_HAS_AVX2
    __m256i low, high;
#else
    uint64_t low, high;
#endif
    uint32_t row;
};

static LOOP_INLINE struct ribbon_spot spot_of(const struct layer *layer, uint64_t start,
                                              uint64_t mark)
{
    struct equation e = ribbon_equation(mark, layer->fingerprint_bits);
#if CPU_HAS_AVX512
    __m512i one = _mm512_set1_epi64(1), last = _mm512_set1_epi64(RIBBON_WINDOW - 1);
    __m512i slot = _mm512_set1_epi64((long long)start);
    __m512i marks = _mm512_or_si512(_mm512_set1_epi64((long long)mark), one);
    return (struct ribbon_spot){ .low = _mm512_sllv_epi64(marks, _mm512_and_si512(slot, last)),
                                 .high = _mm512_srlv_epi64(_mm512_srli_epi64(marks, 1),
                                                           _mm512_andnot_si512(slot, last)),
                                 .one = one,
                                 .row = e.row };
#elif CPU_HAS_AVX2
    __m256i slot =
        _mm256_and_si256(_mm256_set1_epi64x((long long)start), _mm256_set1_epi64x(63));
    __m256i marks = _mm256_or_si256(_mm256_set1_epi64x((long long)mark), _mm256_set1_epi64x(1));
    return (struct ribbon_spot){ .low = _mm256_sllv_epi64(marks, slot),
                                 .high = _mm256_srlv_epi64(
                                     marks, _mm256_sub_epi64(_mm256_set1_epi64x(64), slot)),
                                 .row = e.row };
#else
    return (struct ribbon_spot){ .low = e.coefficients << start % RIBBON_WINDOW,
                                 .high = e.coefficients >> 1 >> ~start % RIBBON_WINDOW,
                                 .row = e.row };
#endif
}

#if CPU_HAS_AVX512
/* Returns the parities of those slots of eight words of two blocks that a key touches. */
static LOOP_INLINE group_sum parities_of_8(const struct ribbon_spot *spot, __m512i here,
                                           __m512i next)
{
    here = _mm512_and_si512(here, spot->low);
    here = _mm512_ternarylogic_epi64(here, next, spot->high, 0x78); /* here ^ (next & high) */
    return _mm512_test_epi64_mask(_mm512_popcnt_epi64(here), spot->one);
}

static LOOP_INLINE __m512i load_4(const uint64_t *words)
{
    return _mm512_castsi256_si512(_mm256_loadu_si256((const void *)words));
}

static LOOP_INLINE __m512i load_1(const uint64_t *words)
{
    return _mm512_castsi128_si512(_mm_loadl_epi64((const void *)words));
}
#elif CPU_HAS_AVX2
/* Returns the parities of eight words, of which b are the last four. */
static LOOP_INLINE uint32_t parities_of_8(__m256i a, __m256i b)
{
    __m256 x = _mm256_castsi256_ps(a), y = _mm256_castsi256_ps(b); /* halves of the words */
    a = _mm256_castps_si256(
        _mm256_xor_ps(_mm256_shuffle_ps(x, y, 0x88), _mm256_shuffle_ps(x, y, 0xdd)));
    a = _mm256_xor_si256(a, _mm256_slli_epi32(a, 16)); /* the parity goes to the highest bit */
    a = _mm256_xor_si256(a, _mm256_slli_epi32(a, 8));
    a = _mm256_xor_si256(a, _mm256_slli_epi32(a, 4));
    a = _mm256_xor_si256(a, _mm256_slli_epi32(a, 2));
    a = _mm256_xor_si256(a, _mm256_slli_epi32(a, 1));
    a = _mm256_permute4x64_epi64(a, 0xd8); /* they were in the order 0 1 4 5 2 3 6 7 */
    return (uint32_t)_mm256_movemask_ps(_mm256_castsi256_ps(a));
}

/* Returns the words from number 'first' to first + 3 of those slots that a key touches. */
static LOOP_INLINE __m256i touched(const struct ribbon_spot *spot, struct words words,
                                   unsigned first)
{
    __m256i here = _mm256_loadu_si256((const void *)(words.here + first));
    __m256i next = _mm256_loadu_si256((const void *)(words.next + first));
    return _mm256_xor_si256(_mm256_and_si256(here, spot->low),
                            _mm256_and_si256(next, spot->high));
}
#endif

/* Returns what the slots of a key add up to in a group of n columns; the bits of further
 * columns may be anything.  Vectors hold no words but those of the two blocks, if these are
 * adjacent: others may be in a line that nobody has prefetched.  So they begin with the first
 * block, or end with the second one. */
static LOOP_INLINE group_sum add_up_group(const struct ribbon_spot *spot, struct words words,
                                          unsigned n)
{
#if CPU_HAS_AVX512
    if (n == RIBBON_GROUP)
        return parities_of_8(spot, _mm512_loadu_si512(words.here),
                             _mm512_loadu_si512(words.next));
    if (n == 1)
        return parities_of_8(spot, load_1(words.here), load_1(words.next));
    __m512i order = _mm512_sub_epi64(_mm512_setr_epi64(0, 1, 2, 3, 4, 5, 6, 7),
                                     _mm512_set1_epi64(n)); /* modulo 8, or 4 */
    if (n > 4)
        return parities_of_8(
            spot, _mm512_loadu_si512(words.here),
            _mm512_permutexvar_epi64(order, _mm512_loadu_si512(words.next + n - 8)));
    return parities_of_8(spot, load_4(words.here),
                         _mm512_castsi256_si512(_mm256_permutexvar_epi64(
                             _mm512_castsi512_si256(order),
                             _mm256_loadu_si256((const void *)(words.next + n - 4)))));
#elif CPU_HAS_AVX2
    if (n > 4) {
        uint32_t sum = parities_of_8(touched(spot, words, 0), touched(spot, words, n - 4));
        return n == RIBBON_GROUP ? sum : (sum & 0xf) | sum >> 4 << (n - 4);
    }
    __m256i here, next;
    if (n > 1) {
        here = _mm256_loadu_si256((const void *)words.here);
        next = _mm256_loadu_si256((const void *)(words.next + n - 4));
    } else {
        here = _mm256_castsi128_si256(_mm_loadl_epi64((const void *)words.here));
        next = _mm256_set1_epi64x((long long)*words.next);
    }
    uint32_t sum =
        parities_of_8(_mm256_and_si256(here, spot->low), _mm256_and_si256(next, spot->high));
    return sum ^ sum >> (8 - n);
#else
    uint32_t sum = 0;
    for (unsigned c = 0; c < n; c++)
        sum |= (uint32_t)__builtin_parityll((words.here[c] & spot->low) ^
                                            (words.next[c] & spot->high))
               << c;
    return sum;
#endif
}

/* Returns what the slots of a key add up to in the group of columns from 'first' on. */
static LOOP_INLINE group_sum add_up(const struct layer *layer, const struct ribbon_spot *spot,
                                    const struct blocks *blocks, unsigned first,
                                    enum ribbon_width width)
{
    return add_up_group(spot, words_of(layer, blocks, first, width),
                        columns_of(layer, first, width));
}

/* Returns whether the lowest bits of a sum are those of the fingerprint. */
static LOOP_INLINE bool agrees(const struct ribbon_spot *spot, uint32_t sum, unsigned bits)
{
    return !((sum ^ spot->row) << (-bits % 32));
}

/* Returns the sum of the first two groups.  A branch between them would be mispredicted where
 * some keys are there and others are not.  Without vectors, though, a group takes longer than
 * that, and one that disagrees is the sum. */
static LOOP_INLINE uint32_t add_up_begin(const struct layer *layer,
                                         const struct ribbon_spot *spot,
                                         const struct blocks *blocks, enum ribbon_width width)
{
    group_sum first = add_up(layer, spot, blocks, 0, width);
    if (width < RIBBON_WIDE)
        return first;
    if (!CPU_HAS_AVX2) {
        unsigned bits = layer->fingerprint_bits;
        if (!agrees(spot, first, bits < RIBBON_GROUP ? bits : RIBBON_GROUP))
            return first;
    }
    return joined(first, add_up(layer, spot, blocks, RIBBON_GROUP, width));
}

/* Returns whether the first two groups add up to this part of the fingerprint. */
static LOOP_INLINE bool begin_is_right(const struct layer *layer,
                                       const struct ribbon_spot *spot,
                                       const struct blocks *blocks, enum ribbon_width width)
{
    unsigned bits = width == RIBBON_LONG ? 2 * RIBBON_GROUP : layer->fingerprint_bits;
    return agrees(spot, add_up_begin(layer, spot, blocks, width), bits);
}

/* Returns whether the other groups do. */
static LOOP_INLINE bool rest_is_right(const struct layer *layer, const struct ribbon_spot *spot,
                                      const struct blocks *blocks)
{
    uint32_t sum = spot->row & 0xffff;
    for (unsigned first = 2 * RIBBON_GROUP; first < layer->fingerprint_bits;
         first += RIBBON_GROUP)
        sum |= (uint32_t)add_up(layer, spot, blocks, first, RIBBON_LONG) << first;
    return agrees(spot, sum, layer->fingerprint_bits);
}

/* Looks up keys from 'at' to end - 1 in the first layer, as far as it does not bump them: sets
 * answer[i] by the first two groups, and lists those that are to be looked at later.
 * Prefetches for as many keys 'ahead'. */
static LOOP_INLINE void pass_first(const struct body *b, const struct layer *first,
                                   const struct keyhash *keys, const struct keyhash *ahead,
                                   size_t at, size_t end, bool *answer, struct later *later,
                                   enum ribbon_width width)
{
    const struct layer layer = *first; /* not in memory that an answer could change */
    size_t nfound = later->nfound, nbumped = later->nbumped;
    for (size_t i = at; i < end; i++) {
        uint64_t start = scale64(keys[i].place, layer.slots);
        const struct keyhash *next = ahead + (i - at);
        if (width == RIBBON_BYTE) /* others gain nothing */
            next = apart(next);
        ribbon_prefetch_key(b, &layer, *next, width);
        if (ribbon_is_bumped(layer.thresholds, start)) {
            later->bumped[nbumped++] = (uint16_t)i;
            continue;
        }
        struct ribbon_spot spot = spot_of(&layer, start, keys[i].mark);
        struct blocks blocks = blocks_of(&layer, start, width);
        answer[i] = begin_is_right(&layer, &spot, &blocks, width);
        if (width == RIBBON_LONG) {
            later->found[nfound] = (uint16_t)i;
            nfound += answer[i];
        }
    }
    later->nfound = nfound;
    later->nbumped = nbumped;
}

/* Prefetches for the keys that were listed since 'before'. */
static ALWAYS_INLINE void prefetch_later(const struct body *b, const struct layer *first,
                                         const struct layer *second, const struct keyhash *keys,
                                         const struct later *later, size_t found_before,
                                         size_t bumped_before, enum ribbon_width width)
{
    for (size_t i = found_before; width == RIBBON_LONG && i < later->nfound; i++) {
        uint64_t start = scale64(keys[later->found[i]].place, first->slots);
        struct blocks blocks = blocks_of(first, start, RIBBON_LONG);
        for (unsigned g = 2 * RIBBON_GROUP; g < first->fingerprint_bits; g += RIBBON_GROUP)
            prefetch_group(first, &blocks, g, RIBBON_LONG);
    }
    for (size_t i = bumped_before; i < later->nbumped; i++)
        ribbon_prefetch_key(b, second, ribbon_bumped(keys[later->bumped[i]]), width);
}

/* Looks at the other groups of the keys whose first ones are right. */
static LOOP_INLINE void pass_found(const struct layer *layer, const struct keyhash *keys,
                                   const struct later *later, bool *answer)
{
    for (size_t i = 0; i < later->nfound; i++) {
        const struct keyhash *key = &keys[later->found[i]];
        uint64_t start = scale64(key->place, layer->slots);
        struct ribbon_spot spot = spot_of(layer, start, key->mark);
        struct blocks blocks = blocks_of(layer, start, RIBBON_LONG);
        answer[later->found[i]] = rest_is_right(layer, &spot, &blocks);
    }
}

/* Finds the layer that does not bump a key: sets *layer, which is any layer at first, and the
 * key's hash there.  Returns the slot at which it begins. */
static LOOP_INLINE uint64_t find_layer(const struct body *b, struct layer *layer,
                                       struct keyhash *key, enum ribbon_width width)
{
    for (;;) {
        uint64_t start = start_of(b, layer, key);
        if (!layer->bumps || !ribbon_is_bumped(layer->thresholds, start))
            return start;
        *key = ribbon_bumped(*key);
        *layer = next_layer(b, width, layer);
    }
}

static LOOP_INLINE struct sum find_in_layers(const struct body *b, struct keyhash key,
                                             enum ribbon_width width)
{
    struct layer layer = first_layer(b, width);
    uint64_t start = find_layer(b, &layer, &key, width);
    struct ribbon_spot spot = spot_of(&layer, start, key.mark);
    struct blocks blocks = blocks_of(&layer, start, width);
    uint32_t row = 0;
    for (unsigned first = 0; first < layer.row_bits; first += RIBBON_GROUP)
        row |= (uint32_t)add_up(&layer, &spot, &blocks, first, width) << first;
    return (struct sum){ row, agrees(&spot, row, layer.fingerprint_bits) };
}

/* Finds a key in any layer of any filter. */
static NOINLINE struct sum find_any(const struct body *b, struct keyhash key)
{
    return find_in_layers(
        b, key, b->geometry.field[ROW_BITS] <= RIBBON_GROUP ? RIBBON_NARROW : RIBBON_WIDE);
}

static NOINLINE bool ribbon_contains_one_any(const struct body *b, struct keyhash key)
{
    return find_any(b, key).is_right;
}

/* Looks up keys in a filter of several layers.  Of the keys ahead only the next RIBBON_AHEAD
 * are on their way: with several lines each, more would push each other out of the first
 * cache. */
static LOOP_INLINE void ribbon_contains_layers(const struct body *b, const struct layer *first,
                                               const struct keyhash *keys,
                                               const struct keyhash *ahead, size_t n,
                                               bool *answer, enum ribbon_width width)
{
    const struct layer second = next_layer(b, width, first);
    const size_t whole = n - n % RIBBON_AHEAD;
    struct later later;
    later.nfound = later.nbumped = 0;
    for (size_t i = whole; i < n; i++) /* only at the end of a call, where nothing is ahead */
        ribbon_prefetch_key(b, first, keys[i], width);
    for (size_t at = 0, end; at < n; at = end) {
        size_t nfound = later.nfound, nbumped = later.nbumped;
        end = at < whole ? at + RIBBON_AHEAD : n;
        pass_first(b, first, keys,
                   end < whole  ? keys + end
                   : whole == n ? ahead
                                : keys,
                   at, end, answer, &later, width);
        prefetch_later(b, first, &second, keys, &later, nfound, nbumped, width);
    }
    if (width == RIBBON_LONG)
        pass_found(first, keys, &later, answer);
    for (size_t i = 0; i < later.nbumped; i++) /* they are few */
        answer[later.bumped[i]] = ribbon_contains_one_any(b, keys[later.bumped[i]]);
}

static LOOP_INLINE size_t ribbon_contains_all(const struct body *b, const struct keyhash *keys,
                                              const struct keyhash *ahead, size_t n,
                                              bool *answer, enum ribbon_width width)
{
    const struct layer first = first_layer(b, width);
    size_t count = 0;
    if (first.bumps)
        ribbon_contains_layers(b, &first, keys, ahead, n, answer, width);
    for (size_t i = 0; !first.bumps && i < n; i++)
        answer[i] = ribbon_contains_one_any(b, keys[i]);
    for (size_t i = 0; i < n; i++)
        count += answer[i];
    return count;
}

static void ribbon_rows(const struct body *b, const struct keyhash *keys, size_t n,
                        uint32_t *row, bool *answer)
{
    const uint32_t all = (uint32_t)((UINT64_C(1) << b->geometry.field[ROW_BITS]) - 1);
    for (size_t i = 0; i < n; i++) {
        struct sum found = find_any(b, keys[i]);
        row[i] = found.row & all;
        answer[i] = found.is_right;
    }
}

/* Looks up one key, which usually is in the first layer, with both blocks in one stripe. */
static LOOP_INLINE bool ribbon_contains_key(const struct body *b, struct keyhash key,
                                            enum ribbon_width width)
{
    const struct layer layer = swift_layer(b, width);
    uint64_t start = scale64(key.place, layer.slots);
    if (ribbon_is_bumped(layer.thresholds, start))
        return ribbon_contains_one_any(b, key);
    struct blocks blocks = adjacent_blocks(&layer, start, width);
    if (width >= RIBBON_WIDE && blocks.here_slot == RIBBON_STRIPE - RIBBON_WINDOW)
        return ribbon_contains_one_any(b, key);
    struct ribbon_spot spot = spot_of(&layer, start, key.mark);
    uint32_t sum = add_up_begin(&layer, &spot, &blocks, width);
    if (width == RIBBON_LONG) {
        if (!agrees(&spot, sum, 2 * RIBBON_GROUP))
            return false;
        sum |= (uint32_t)add_up(&layer, &spot, &blocks, 2 * RIBBON_GROUP, RIBBON_LONG)
               << 2 * RIBBON_GROUP;
    }
    return agrees(&spot, sum, layer.fingerprint_bits);
}

RIBBON_LOOPS_OF(byte, RIBBON_BYTE)
RIBBON_LOOPS_OF(narrow, RIBBON_NARROW)
RIBBON_LOOPS_OF(wide, RIBBON_WIDE)
RIBBON_LOOPS_OF(long, RIBBON_LONG)
CONTAINS_INTEGER(ribbon_contains_integer_any, ribbon_contains_one_any)

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC pop_options
#endif

/* The table. */
#define RIBBON_ROW(width, prefetches, ones)                                                    \
    {                                                                                          \
        .prefetch = ribbon_prefetch_##prefetches, .contains = ribbon_contains_##width,         \
        .contains_one = ribbon_contains_one_##ones,                                            \
        .contains_integer = ribbon_contains_integer_##ones,                                    \
    }
#define RIBBON_LOOPS                                                                           \
    {                                                                                          \
        .of = { [RIBBON_BYTE] = RIBBON_ROW(byte, narrow, byte),                                \
                [RIBBON_NARROW] = RIBBON_ROW(narrow, narrow, narrow),                          \
                [RIBBON_WIDE] = RIBBON_ROW(wide, wide, wide),                                  \
                [RIBBON_LONG] = RIBBON_ROW(long, wide, long) },                                \
        .any = { [RIBBON_BYTE] = RIBBON_ROW(byte, narrow, any),                                \
                 [RIBBON_NARROW] = RIBBON_ROW(narrow, narrow, any),                            \
                 [RIBBON_WIDE] = RIBBON_ROW(wide, wide, any),                                  \
                 [RIBBON_LONG] = RIBBON_ROW(long, wide, any) },                                \
        .look_up = ribbon_rows,                                                                \
    }
