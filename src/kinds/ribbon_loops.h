/* ribbon_loops.h - the loops of ribbon filters, for one instruction set; each_cpu.h includes
 * it. */
#ifndef RIBBON_LOOPS_NAMES
#define RIBBON_LOOPS_NAMES
#define add_up_8                       FOR_CPU(add_up_8)
#define add_up                         FOR_CPU(add_up)
#define note_match_narrow              FOR_CPU(note_match_narrow)
#define note_match_wide                FOR_CPU(note_match_wide)
#define note_row                       FOR_CPU(note_row)
#define pass_layer                     FOR_CPU(pass_layer)
#define pass_layers                    FOR_CPU(pass_layers)
#define contains_bumped                FOR_CPU(contains_bumped)
#define contains_key                   FOR_CPU(contains_key)
#define count_matches                  FOR_CPU(count_matches)
#define ribbon_contains_narrow         FOR_CPU(ribbon_contains_narrow)
#define ribbon_contains_wide           FOR_CPU(ribbon_contains_wide)
#define ribbon_contains_one_narrow     FOR_CPU(ribbon_contains_one_narrow)
#define ribbon_contains_one_wide       FOR_CPU(ribbon_contains_one_wide)
#define ribbon_contains_integer_narrow FOR_CPU(ribbon_contains_integer_narrow)
#define ribbon_contains_integer_wide   FOR_CPU(ribbon_contains_integer_wide)
#define ribbon_rows                    FOR_CPU(ribbon_rows)
#endif

/* Returns what the slots of a key add up to in 8 columns.  'words' are those of the key's first
 * block from the first of these columns on; the bits of further columns may be anything. */
static ALWAYS_INLINE uint32_t add_up_8(const struct spot *spot, const uint64_t *words,
                                       uint64_t row_bits, unsigned n)
{
#if CPU_HAS_AVX2
    (void)n;
    const __m256i low = _mm256_set1_epi64x((long long)spot->low);
    const __m256i high = _mm256_set1_epi64x((long long)spot->high);
    const __m256i *here = (const void *)words, *next = (const void *)(words + row_bits);
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
        sum |= (uint32_t)__builtin_parityll((words[c] & spot->low) ^
                                            (words[row_bits + c] & spot->high))
               << c;
    return sum;
#endif
}

/* Returns what the slots of a key add up to in the first n columns. */
static ALWAYS_INLINE uint32_t add_up(const struct spot *spot, uint64_t row_bits, unsigned n)
{
    uint32_t sum = 0;
    for (unsigned c = 0; c < n; c += 8)
        sum |= add_up_8(spot, spot->words + c, row_bits, n - c < 8 ? n - c : 8) << c;
    return sum & (uint32_t)((UINT64_C(1) << n) - 1);
}

/* What is done with a key whose place was found: 'number' is its own among all keys. */
typedef void note(const struct body *b, const struct spot *spot, size_t number, void *out);

/* Note whether the slots of a key add up to its fingerprint.  Most absent keys differ in the
 * first 8 columns. */
static ALWAYS_INLINE void note_match_narrow(const struct body *b, const struct spot *spot,
                                            size_t number, void *out)
{
    uint64_t row_bits = b->field[ROW_BITS];
    unsigned bits = (unsigned)(row_bits - b->field[VALUE_BITS]);
    uint32_t sum = add_up_8(spot, spot->words, row_bits, bits);
    ((bool *)out)[number] = !((sum ^ spot->row) & ((1U << bits) - 1));
}

static ALWAYS_INLINE void note_match_wide(const struct body *b, const struct spot *spot,
                                          size_t number, void *out)
{
    uint64_t row_bits = b->field[ROW_BITS];
    unsigned bits = (unsigned)(row_bits - b->field[VALUE_BITS]);
    bool match = (uint8_t)add_up_8(spot, spot->words, row_bits, 8) == (uint8_t)spot->row;
    if (match)
        match = add_up(spot, row_bits, bits) == spot->row;
    ((bool *)out)[number] = match;
}

static ALWAYS_INLINE void note_row(const struct body *b, const struct spot *spot, size_t number,
                                   void *out)
{
    uint64_t row_bits = b->field[ROW_BITS];
    ((uint32_t *)out)[number] = add_up(spot, row_bits, (unsigned)row_bits);
}

/* Looks up n keys in a layer, of which key i has the number number[i].  Writes those that are
 * bumped, with their numbers, to 'rest', which may be 'keys', and returns how many. */
static ALWAYS_INLINE size_t pass_layer(const struct body *b, const struct layer *layer,
                                       const struct keyhash *keys, const struct keyhash *ahead,
                                       size_t n, const uint16_t *number, struct keyhash *rest,
                                       uint16_t *rest_number, note *take, void *out)
{
    size_t left = 0;
    for (size_t i = 0; i < n; i++) {
        struct keyhash key = keys[i];
        uint16_t own = number ? number[i] : (uint16_t)i;
        uint64_t start = scale64(key.place, layer->slots);
        if (ahead)
            prefetch_key(b, layer, ahead[i]);
        struct spot spot = spot_of(b, layer, start, key.mark);
        take(b, &spot, own, out);
        rest[left] = ribbon_bumped(key);
        rest_number[left] = own;
        left += ribbon_is_bumped(layer->thresholds, start);
    }
    return left;
}

/* Looks up n keys in all layers.  What a key that is bumped seemed to be is overwritten. */
static ALWAYS_INLINE void pass_layers(const struct body *b, const struct keyhash *keys,
                                      const struct keyhash *ahead, size_t n, note *take,
                                      void *out)
{
    struct keyhash rest[BATCH_MOST];
    uint16_t number[BATCH_MOST];
    struct layer layer = first_layer(b);
    size_t left = n;
    if (layer.slots)
        left = pass_layer(b, &layer, keys, ahead, n, NULL, rest, number, take, out);
    for (size_t i = 0; !layer.slots && i < n; i++) {
        rest[i] = keys[i];
        number[i] = (uint16_t)i;
    }
    while (left && layer.slots && (layer = next_layer(b, &layer)).slots) {
        for (size_t i = 0; i < left; i++)
            prefetch_key(b, &layer, rest[i]);
        left = pass_layer(b, &layer, rest, NULL, left, number, rest, number, take, out);
    }
    for (size_t i = 0; i < left; i++)
        prefetch_start(b, &layer, last_start(b, rest[i]));
    for (size_t i = 0; i < left; i++) {
        struct spot spot = spot_of(b, &layer, last_start(b, rest[i]), rest[i].mark);
        take(b, &spot, number[i], out);
    }
}

/* Returns how many of n answers are true. */
static ALWAYS_INLINE size_t count_matches(const bool *answer, size_t n)
{
    size_t found = 0;
    for (size_t i = 0; i < n; i++)
        found += answer[i];
    return found;
}

static size_t ribbon_contains_narrow(const struct body *b, const struct keyhash *keys,
                                     const struct keyhash *ahead, size_t n, bool *answer)
{
    pass_layers(b, keys, ahead, n, note_match_narrow, answer);
    return count_matches(answer, n);
}

static size_t ribbon_contains_wide(const struct body *b, const struct keyhash *keys,
                                   const struct keyhash *ahead, size_t n, bool *answer)
{
    pass_layers(b, keys, ahead, n, note_match_wide, answer);
    return count_matches(answer, n);
}

static void ribbon_rows(const struct body *b, const struct keyhash *keys, size_t n,
                        uint32_t *row)
{
    pass_layers(b, keys, NULL, n, note_row, row);
}

/* Looks up a key that is bumped from the first layer, or for which there is none. */
static NOINLINE bool contains_bumped(const struct body *b, struct keyhash key)
{
    bool answer;
    if (b->field[ROW_BITS] - b->field[VALUE_BITS] <= 8)
        pass_layers(b, &key, NULL, 1, note_match_narrow, &answer);
    else
        pass_layers(b, &key, NULL, 1, note_match_wide, &answer);
    return answer;
}

/* Looks up one key, which usually is in the first layer. */
static ALWAYS_INLINE bool contains_key(const struct body *b, struct keyhash key, note *take)
{
    const struct layer layer = first_layer(b);
    uint64_t start = scale64(key.place, layer.slots);
    bool answer;
    if (ribbon_is_bumped(layer.thresholds, start) || !layer.slots)
        return contains_bumped(b, key);
    struct spot spot = spot_of(b, &layer, start, key.mark);
    take(b, &spot, 0, &answer);
    return answer;
}

static bool ribbon_contains_one_narrow(const struct body *b, struct keyhash key)
{
    return contains_key(b, key, note_match_narrow);
}

static bool ribbon_contains_one_wide(const struct body *b, struct keyhash key)
{
    return contains_key(b, key, note_match_wide);
}

CONTAINS_INTEGER(ribbon_contains_integer_narrow, ribbon_contains_one_narrow)
CONTAINS_INTEGER(ribbon_contains_integer_wide, ribbon_contains_one_wide)
