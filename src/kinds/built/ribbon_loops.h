/* ribbon_loops.h - the loops of ribbon filters, for one instruction set; each_cpu.h includes
 * it. */
#ifndef RIBBON_LOOPS_NAMES
#define RIBBON_LOOPS_NAMES
#define parities_of_4                  FOR_CPU(parities_of_4)
#define parities_of_8                  FOR_CPU(parities_of_8)
#define touched                        FOR_CPU(touched)
#define add_up_group                   FOR_CPU(add_up_group)
#define add_up                         FOR_CPU(add_up)
#define add_up_all                     FOR_CPU(add_up_all)
#define group_is_right                 FOR_CPU(group_is_right)
#define rest_is_right                  FOR_CPU(rest_is_right)
#define is_right                       FOR_CPU(is_right)
#define pass_first                     FOR_CPU(pass_first)
#define prefetch_later                 FOR_CPU(prefetch_later)
#define pass_found                     FOR_CPU(pass_found)
#define find_layer                     FOR_CPU(find_layer)
#define pass_bumped                    FOR_CPU(pass_bumped)
#define contains_layers                FOR_CPU(contains_layers)
#define contains_all                   FOR_CPU(contains_all)
#define contains_bumped                FOR_CPU(contains_bumped)
#define contains_key                   FOR_CPU(contains_key)
#define ribbon_contains_byte           FOR_CPU(ribbon_contains_byte)
#define ribbon_contains_narrow         FOR_CPU(ribbon_contains_narrow)
#define ribbon_contains_wide           FOR_CPU(ribbon_contains_wide)
#define ribbon_contains_one_byte       FOR_CPU(ribbon_contains_one_byte)
#define ribbon_contains_one_narrow     FOR_CPU(ribbon_contains_one_narrow)
#define ribbon_contains_one_wide       FOR_CPU(ribbon_contains_one_wide)
#define ribbon_contains_integer_byte   FOR_CPU(ribbon_contains_integer_byte)
#define ribbon_contains_integer_narrow FOR_CPU(ribbon_contains_integer_narrow)
#define ribbon_contains_integer_wide   FOR_CPU(ribbon_contains_integer_wide)
#define ribbon_rows                    FOR_CPU(ribbon_rows)
#endif

#if CPU_HAS_AVX2
/* Returns the parities of four words. */
static ALWAYS_INLINE uint32_t parities_of_4(__m256i words)
{
    words = _mm256_xor_si256(words, _mm256_slli_epi64(words, 32));
    words = _mm256_xor_si256(words, _mm256_slli_epi64(words, 16));
    words = _mm256_xor_si256(words, _mm256_slli_epi64(words, 8));
    words = _mm256_xor_si256(words, _mm256_slli_epi64(words, 4));
    words = _mm256_xor_si256(words, _mm256_slli_epi64(words, 2));
    words = _mm256_xor_si256(words, _mm256_slli_epi64(words, 1));
    return (uint32_t)_mm256_movemask_pd(_mm256_castsi256_pd(words));
}

/* Returns the parities of eight words, of which b are the last four. */
static ALWAYS_INLINE uint32_t parities_of_8(__m256i a, __m256i b)
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
static ALWAYS_INLINE __m256i touched(const struct spot *spot, struct words words,
                                     unsigned first)
{
    const __m256i *here = (const void *)(words.here + first);
    const __m256i *next = (const void *)(words.next + first);
    return _mm256_xor_si256(
        _mm256_and_si256(_mm256_loadu_si256(here), _mm256_set1_epi64x((long long)spot->low)),
        _mm256_and_si256(_mm256_loadu_si256(next), _mm256_set1_epi64x((long long)spot->high)));
}
#endif

/* Returns what the slots of a key add up to in a group of n columns; the bits of further
 * columns may be anything. */
static ALWAYS_INLINE uint32_t add_up_group(const struct spot *spot, struct words words,
                                           unsigned n)
{
#if CPU_HAS_AVX2
    __m256i a = touched(spot, words, 0);
    return n <= 4 ? parities_of_4(a) : parities_of_8(a, touched(spot, words, 4));
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
static ALWAYS_INLINE uint32_t add_up(const struct layer *layer, const struct spot *spot,
                                     unsigned first, enum width width)
{
    unsigned n = columns_of(layer, first, width);
    struct words words = words_of(layer, spot->block, first, width);
    return add_up_group(spot, words, n) & ((1U << n) - 1);
}

/* Returns the sum of all columns. */
static ALWAYS_INLINE uint32_t add_up_all(const struct layer *layer, const struct spot *spot)
{
    enum width width = layer->row_bits > RIBBON_GROUP ? WIDE : NARROW;
    uint32_t sum = 0;
    for (unsigned first = 0; first < layer->row_bits; first += RIBBON_GROUP)
        sum |= add_up(layer, spot, first, width) << first;
    return sum;
}

/* Returns whether the group from 'first' on adds up to this part of the fingerprint. */
static ALWAYS_INLINE bool group_is_right(const struct layer *layer, const struct spot *spot,
                                         unsigned first, enum width width)
{
    unsigned n = ribbon_columns(layer->fingerprint_bits, first);
    uint32_t mask = (1U << n) - 1;
    return !((add_up(layer, spot, first, width) ^ spot->row >> first) & mask);
}

/* Returns whether all groups but the first one do. */
static ALWAYS_INLINE bool rest_is_right(const struct layer *layer, const struct spot *spot)
{
    for (unsigned first = RIBBON_GROUP; first < layer->fingerprint_bits; first += RIBBON_GROUP)
        if (!group_is_right(layer, spot, first, WIDE))
            return false;
    return true;
}

static ALWAYS_INLINE bool is_right(const struct layer *layer, const struct spot *spot,
                                   enum width width)
{
    return group_is_right(layer, spot, 0, width) &&
           (width != WIDE || rest_is_right(layer, spot));
}

/* Looks up keys from 'at' to end - 1 in the first layer, as far as it does not bump them: sets
 * answer[i] by the first group, and lists those that are to be looked at later.  Prefetches for
 * as many keys 'ahead'. */
static ALWAYS_INLINE void pass_first(const struct body *b, const struct layer *first,
                                     const struct keyhash *keys, const struct keyhash *ahead,
                                     size_t at, size_t end, bool *answer, struct later *later,
                                     enum width width)
{
    const struct layer layer = *first; /* not in memory that an answer could change */
    size_t nfound = later->nfound, nbumped = later->nbumped;
    for (size_t i = at; i < end; i++) {
        uint64_t start = scale64(keys[i].place, layer.slots);
        prefetch_key(b, &layer, ahead[i - at], width);
        if (ribbon_is_bumped(layer.thresholds, start)) {
            later->bumped[nbumped++] = (uint16_t)i;
            continue;
        }
        struct spot spot = spot_of(&layer, start, keys[i].mark);
        answer[i] = group_is_right(&layer, &spot, 0, width);
        if (width == WIDE) {
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
                                         size_t bumped_before, enum width width)
{
    for (size_t i = found_before; width == WIDE && i < later->nfound; i++)
        for (unsigned g = RIBBON_GROUP; g < first->fingerprint_bits; g += RIBBON_GROUP)
            prefetch_start(first, scale64(keys[later->found[i]].place, first->slots), g, WIDE);
    for (size_t i = bumped_before; i < later->nbumped; i++)
        prefetch_key(b, second, ribbon_bumped(keys[later->bumped[i]]), width);
}

/* Looks at the other groups of the keys whose first one is right. */
static ALWAYS_INLINE void pass_found(const struct layer *layer, const struct keyhash *keys,
                                     const struct later *later, bool *answer)
{
    for (size_t i = 0; i < later->nfound; i++) {
        const struct keyhash *key = &keys[later->found[i]];
        struct spot spot = spot_of(layer, scale64(key->place, layer->slots), key->mark);
        answer[later->found[i]] = rest_is_right(layer, &spot);
    }
}

/* Finds the layer that does not bump a key: sets *layer, which is any layer at first, and the
 * key's hash there.  Returns the slot at which it begins. */
static ALWAYS_INLINE uint64_t find_layer(const struct body *b, struct layer *layer,
                                         struct keyhash *key)
{
    for (;;) {
        uint64_t start = start_of(b, layer, key);
        if (!layer->bumps || !ribbon_is_bumped(layer->thresholds, start))
            return start;
        *key = ribbon_bumped(*key);
        *layer = next_layer(b, NARROW, layer);
    }
}

/* Looks up keys that the first layer bumps.  They are few, and hardly any is bumped again. */
static ALWAYS_INLINE void pass_bumped(const struct body *b, const struct layer *second,
                                      const struct keyhash *keys, const struct later *later,
                                      bool *answer, enum width width)
{
    for (size_t i = 0; i < later->nbumped; i++) {
        struct keyhash key = ribbon_bumped(keys[later->bumped[i]]);
        struct layer layer = *second;
        uint64_t start = find_layer(b, &layer, &key);
        struct spot spot = spot_of(&layer, start, key.mark);
        answer[later->bumped[i]] = is_right(&layer, &spot, width);
    }
}

/* Looks up keys in a filter of several layers.  Of the keys ahead only the next RIBBON_AHEAD
 * are on their way: with two lines each, more would push each other out of the first cache. */
static ALWAYS_INLINE void contains_layers(const struct body *b, const struct layer *first,
                                          const struct keyhash *keys,
                                          const struct keyhash *ahead, size_t n, bool *answer,
                                          enum width width)
{
    const struct layer second = next_layer(b, width, first);
    const size_t whole = n - n % RIBBON_AHEAD;
    struct later later;
    later.nfound = later.nbumped = 0;
    for (size_t i = whole; i < n; i++) /* only at the end of a call, where nothing is ahead */
        prefetch_key(b, first, keys[i], width);
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
    if (width == WIDE)
        pass_found(first, keys, &later, answer);
    pass_bumped(b, &second, keys, &later, answer, width);
}

static ALWAYS_INLINE size_t contains_all(const struct body *b, const struct keyhash *keys,
                                         const struct keyhash *ahead, size_t n, bool *answer,
                                         enum width width)
{
    const struct layer first = first_layer(b, width);
    size_t count = 0;
    if (first.bumps)
        contains_layers(b, &first, keys, ahead, n, answer, width);
    for (size_t i = 0; !first.bumps && i < n; i++) {
        struct keyhash key = keys[i];
        uint64_t start = start_of(b, &first, &key);
        struct spot spot = spot_of(&first, start, key.mark);
        answer[i] = is_right(&first, &spot, width);
    }
    for (size_t i = 0; i < n; i++)
        count += answer[i];
    return count;
}

static void ribbon_rows(const struct body *b, const struct keyhash *keys, size_t n,
                        uint32_t *row, bool *answer)
{
    const uint64_t bits = b->field[ROW_BITS] - b->field[VALUE_BITS];
    const uint32_t fingerprint = (uint32_t)((UINT64_C(1) << bits) - 1);
    for (size_t i = 0; i < n; i++) {
        struct layer layer = first_layer(b, NARROW);
        struct keyhash key = keys[i];
        uint64_t start = find_layer(b, &layer, &key);
        struct spot spot = spot_of(&layer, start, key.mark);
        row[i] = add_up_all(&layer, &spot);
        answer[i] = (row[i] & fingerprint) == spot.row;
    }
}

/* Looks up a key in any layer. */
static NOINLINE bool contains_bumped(const struct body *b, struct keyhash key)
{
    struct layer layer = first_layer(b, NARROW);
    uint64_t start = find_layer(b, &layer, &key);
    struct spot spot = spot_of(&layer, start, key.mark);
    return is_right(&layer, &spot, width_of(b));
}

/* Looks up one key, which usually is in the first layer. */
static ALWAYS_INLINE bool contains_key(const struct body *b, struct keyhash key,
                                       enum width width)
{
    const struct layer layer = first_layer(b, width);
    uint64_t start = scale64(key.place, layer.slots);
    if (ribbon_is_bumped(layer.thresholds, start) || !layer.bumps)
        return contains_bumped(b, key);
    struct spot spot = spot_of(&layer, start, key.mark);
    return is_right(&layer, &spot, width);
}

LOOPS_OF(byte, BYTE)
LOOPS_OF(narrow, NARROW)
LOOPS_OF(wide, WIDE)
