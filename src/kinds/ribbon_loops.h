/* ribbon_loops.h - the loops of ribbon filters, for one instruction set; each_cpu.h includes
 * it. */
#ifndef RIBBON_LOOPS_NAMES
#define RIBBON_LOOPS_NAMES
#define add_up_group                   FOR_CPU(add_up_group)
#define add_up                         FOR_CPU(add_up)
#define add_up_all                     FOR_CPU(add_up_all)
#define begins_right                   FOR_CPU(begins_right)
#define is_right                       FOR_CPU(is_right)
#define pass_first                     FOR_CPU(pass_first)
#define pass_found                     FOR_CPU(pass_found)
#define find_layer                     FOR_CPU(find_layer)
#define pass_bumped                    FOR_CPU(pass_bumped)
#define contains_all                   FOR_CPU(contains_all)
#define contains_bumped                FOR_CPU(contains_bumped)
#define contains_key                   FOR_CPU(contains_key)
#define ribbon_contains_narrow         FOR_CPU(ribbon_contains_narrow)
#define ribbon_contains_wide           FOR_CPU(ribbon_contains_wide)
#define ribbon_contains_one_narrow     FOR_CPU(ribbon_contains_one_narrow)
#define ribbon_contains_one_wide       FOR_CPU(ribbon_contains_one_wide)
#define ribbon_contains_integer_narrow FOR_CPU(ribbon_contains_integer_narrow)
#define ribbon_contains_integer_wide   FOR_CPU(ribbon_contains_integer_wide)
#define ribbon_rows                    FOR_CPU(ribbon_rows)
#endif

/* Returns what the slots of a key add up to in a group of n columns; the bits of further
 * columns may be anything. */
static ALWAYS_INLINE uint32_t add_up_group(const struct spot *spot, const uint64_t *words,
                                           const uint64_t *next_block, unsigned n)
{
#if CPU_HAS_AVX2
    (void)n;
    const __m256i low = _mm256_set1_epi64x((long long)spot->low);
    const __m256i high = _mm256_set1_epi64x((long long)spot->high);
    const __m256i *here = (const void *)words, *next = (const void *)next_block;
    __m256i a = _mm256_xor_si256(_mm256_and_si256(_mm256_loadu_si256(here), low),
                                 _mm256_and_si256(_mm256_loadu_si256(next), high));
    __m256i b = _mm256_xor_si256(_mm256_and_si256(_mm256_loadu_si256(here + 1), low),
                                 _mm256_and_si256(_mm256_loadu_si256(next + 1), high));
    a = _mm256_xor_si256(a, _mm256_srli_epi64(a, 32)); /* column i is in word 2i ... */
    b = _mm256_xor_si256(b, _mm256_slli_epi64(b, 32)); /* ... and column i + 4 in word 2i+1 */
    a = _mm256_blend_epi32(a, b, 0xaa);
    a = _mm256_xor_si256(a, _mm256_slli_epi32(a, 16)); /* the parity goes to the highest bit */
    a = _mm256_xor_si256(a, _mm256_slli_epi32(a, 8));
    a = _mm256_xor_si256(a, _mm256_slli_epi32(a, 4));
    a = _mm256_xor_si256(a, _mm256_slli_epi32(a, 2));
    a = _mm256_xor_si256(a, _mm256_slli_epi32(a, 1));
    a = _mm256_permutevar8x32_epi32(a, _mm256_setr_epi32(0, 2, 4, 6, 1, 3, 5, 7));
    return (uint32_t)_mm256_movemask_ps(_mm256_castsi256_ps(a));
#else
    uint32_t sum = 0;
    for (unsigned c = 0; c < n; c++)
        sum |=
            (uint32_t)__builtin_parityll((words[c] & spot->low) ^ (next_block[c] & spot->high))
            << c;
    return sum;
#endif
}

/* Returns what the slots of a key add up to in the group of columns from 'first' on, of which
 * the first 'bits' of all columns are wanted. */
static ALWAYS_INLINE uint32_t add_up(const struct body *b, const struct layer *layer,
                                     const struct spot *spot, unsigned first, unsigned bits,
                                     bool wide)
{
    unsigned n = bits - first < RIBBON_GROUP ? bits - first : RIBBON_GROUP;
    uint32_t sum = add_up_group(spot, words_of(b, layer, spot->block, first, wide),
                                next_words(b, layer, spot->block, first, wide), n);
    return sum & ((1U << n) - 1);
}

/* Returns the sum of the first 'bits' columns. */
static ALWAYS_INLINE uint32_t add_up_all(const struct body *b, const struct layer *layer,
                                         const struct spot *spot, unsigned bits)
{
    bool wide = b->field[ROW_BITS] > RIBBON_GROUP;
    uint32_t sum = 0;
    for (unsigned first = 0; first < bits; first += RIBBON_GROUP)
        sum |= add_up(b, layer, spot, first, bits, wide) << first;
    return sum;
}

/* Returns whether the first group of a key adds up to its fingerprint. */
static ALWAYS_INLINE bool begins_right(const struct body *b, const struct layer *layer,
                                       const struct spot *spot, bool wide)
{
    unsigned bits = fingerprint_bits(b), n = bits < RIBBON_GROUP ? bits : RIBBON_GROUP;
    return add_up(b, layer, spot, 0, bits, wide) == (spot->row & ((1U << n) - 1));
}

static ALWAYS_INLINE bool is_right(const struct body *b, const struct layer *layer,
                                   const struct spot *spot, bool wide)
{
    unsigned bits = fingerprint_bits(b);
    return begins_right(b, layer, spot, wide) &&
           (!wide || bits <= RIBBON_GROUP || add_up_all(b, layer, spot, bits) == spot->row);
}

/* Looks up n keys in the first layer, as far as it does not bump them: sets answer[i], and
 * lists those that may be in it, and those that it bumps.  Returns how many it bumps. */
static ALWAYS_INLINE size_t pass_first(const struct body *b, const struct layer *layer,
                                       const struct keyhash *keys, const struct keyhash *ahead,
                                       size_t n, bool *answer, uint16_t *found, size_t *nfound,
                                       uint16_t *bumped, bool wide)
{
    size_t nbumped = 0;
    *nfound = 0;
    for (size_t i = 0; i < n; i++) {
        uint64_t start = scale64(keys[i].place, layer->slots);
        prefetch_key(b, layer, ahead[i], wide);
        if (ribbon_is_bumped(layer->thresholds, start)) {
            bumped[nbumped++] = (uint16_t)i;
            continue;
        }
        struct spot spot = spot_of(b, start, keys[i].mark);
        answer[i] = begins_right(b, layer, &spot, wide);
        found[*nfound] = (uint16_t)i;
        *nfound += answer[i];
    }
    return nbumped;
}

/* Looks at the other groups of the keys whose first one is right. */
static ALWAYS_INLINE void pass_found(const struct body *b, const struct layer *layer,
                                     const struct keyhash *keys, const uint16_t *found,
                                     size_t nfound, bool *answer)
{
    unsigned bits = fingerprint_bits(b);
    for (size_t i = 0; i < nfound; i++)
        for (unsigned first = RIBBON_GROUP; first < bits; first += RIBBON_GROUP)
            prefetch_start(b, layer, scale64(keys[found[i]].place, layer->slots), first, true);
    for (size_t i = 0; i < nfound; i++) {
        const struct keyhash *key = &keys[found[i]];
        struct spot spot = spot_of(b, scale64(key->place, layer->slots), key->mark);
        answer[found[i]] = add_up_all(b, layer, &spot, bits) == spot.row;
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
        *layer = next_layer(b, layer);
    }
}

/* Looks up keys that the first layer bumps.  They are few, and hardly any is bumped again. */
static ALWAYS_INLINE void pass_bumped(const struct body *b, const struct layer *second,
                                      const struct keyhash *keys, const uint16_t *bumped,
                                      size_t nbumped, bool *answer, bool wide)
{
    for (size_t i = 0; i < nbumped; i++)
        prefetch_key(b, second, ribbon_bumped(keys[bumped[i]]), wide);
    for (size_t i = 0; i < nbumped; i++) {
        struct keyhash key = ribbon_bumped(keys[bumped[i]]);
        struct layer layer = *second;
        uint64_t start = find_layer(b, &layer, &key);
        struct spot spot = spot_of(b, start, key.mark);
        answer[bumped[i]] = is_right(b, &layer, &spot, wide);
    }
}

static ALWAYS_INLINE size_t contains_all(const struct body *b, const struct keyhash *keys,
                                         const struct keyhash *ahead, size_t n, bool *answer,
                                         bool wide)
{
    uint16_t found[BATCH_MOST], bumped[BATCH_MOST];
    const struct layer first = first_layer(b);
    size_t nfound, nbumped, count = 0;
    if (first.bumps) {
        nbumped = pass_first(b, &first, keys, ahead, n, answer, found, &nfound, bumped, wide);
        if (wide)
            pass_found(b, &first, keys, found, nfound, answer);
        const struct layer second = next_layer(b, &first);
        pass_bumped(b, &second, keys, bumped, nbumped, answer, wide);
    }
    for (size_t i = 0; !first.bumps && i < n; i++) {
        struct keyhash key = keys[i];
        uint64_t start = start_of(b, &first, &key);
        struct spot spot = spot_of(b, start, key.mark);
        answer[i] = is_right(b, &first, &spot, wide);
    }
    for (size_t i = 0; i < n; i++)
        count += answer[i];
    return count;
}

static size_t ribbon_contains_narrow(const struct body *b, const struct keyhash *keys,
                                     const struct keyhash *ahead, size_t n, bool *answer)
{
    return contains_all(b, keys, ahead, n, answer, false);
}

static size_t ribbon_contains_wide(const struct body *b, const struct keyhash *keys,
                                   const struct keyhash *ahead, size_t n, bool *answer)
{
    return contains_all(b, keys, ahead, n, answer, true);
}

static void ribbon_rows(const struct body *b, const struct keyhash *keys, size_t n,
                        uint32_t *row, bool *answer)
{
    const uint32_t fingerprint = (uint32_t)((UINT64_C(1) << fingerprint_bits(b)) - 1);
    for (size_t i = 0; i < n; i++) {
        struct layer layer = first_layer(b);
        struct keyhash key = keys[i];
        uint64_t start = find_layer(b, &layer, &key);
        struct spot spot = spot_of(b, start, key.mark);
        row[i] = add_up_all(b, &layer, &spot, (unsigned)b->field[ROW_BITS]);
        answer[i] = (row[i] & fingerprint) == spot.row;
    }
}

/* Looks up a key in any layer. */
static NOINLINE bool contains_bumped(const struct body *b, struct keyhash key)
{
    struct layer layer = first_layer(b);
    uint64_t start = find_layer(b, &layer, &key);
    struct spot spot = spot_of(b, start, key.mark);
    return is_right(b, &layer, &spot, b->field[ROW_BITS] > RIBBON_GROUP);
}

/* Looks up one key, which usually is in the first layer. */
static ALWAYS_INLINE bool contains_key(const struct body *b, struct keyhash key, bool wide)
{
    const struct layer layer = first_layer(b);
    uint64_t start = scale64(key.place, layer.slots);
    if (ribbon_is_bumped(layer.thresholds, start) || !layer.bumps)
        return contains_bumped(b, key);
    struct spot spot = spot_of(b, start, key.mark);
    return is_right(b, &layer, &spot, wide);
}

static bool ribbon_contains_one_narrow(const struct body *b, struct keyhash key)
{
    return contains_key(b, key, false);
}

static bool ribbon_contains_one_wide(const struct body *b, struct keyhash key)
{
    return contains_key(b, key, true);
}

CONTAINS_INTEGER(ribbon_contains_integer_narrow, ribbon_contains_one_narrow)
CONTAINS_INTEGER(ribbon_contains_integer_wide, ribbon_contains_one_wide)
