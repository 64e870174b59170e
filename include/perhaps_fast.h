/* perhaps_fast.h - keys that are hashed ahead, and questions without a call.
 *
 * Six ways to add a key or to ask for it, from the plainest to the one that is for few:
 *
 *     perhaps_add()            one key: plain, and quick enough for most
 *     perhaps_add_many()       keys that come together: two to five times as fast
 *     perhaps_bulk_add()       many millions at once, to a filter much larger than the cache
 *                              (perhaps_build.h): twice as fast again, and it takes memory
 *     perhaps_add_prepared()   keys that are known some 16 keys before they are asked for
 *     perhaps_keys_hashed()    hashed once, for several filters, or by other threads
 *     perhaps_view_add_...()   integers and ready hashes, in a program that is compiled for
 *                              AVX2: half of the instructions of a call.  Cuckoo and ribbon
 *                              filters have such questions, too */
#ifndef PERHAPS_FAST_H
#define PERHAPS_FAST_H

#include <perhaps.h>
#include <string.h>

#if defined(__AVX2__)
#include <immintrin.h>
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Keys that are known a little earlier ------------------------------------------- */

/* A key that was hashed.  Its members belong to the library. */
struct perhaps_prepared {
    uint64_t place;
    uint64_t mark;
    int error;
};

/* Hashes a key, and sends for the memory where it will be looked up: a program that prepares
 * each key some 16 keys before it asks for it does not wait for memory, and is faster than any
 * single call can be.  Never fails; a key that cannot be hashed gives the answer or error of
 * the plain call later.  May be used, any number of times, with this filter and with others of
 * the same hash and seed or secret, which the memory was not sent for. */
PERHAPS_API void perhaps_prepare(const perhaps_filter *filter, const void *key,
                                 size_t key_nbytes, struct perhaps_prepared *prepared);

/* Do what perhaps_contains(), perhaps_add() and perhaps_add_unless_present() do. */
PERHAPS_API bool perhaps_contains_prepared(const perhaps_filter *filter,
                                           const struct perhaps_prepared *prepared);
PERHAPS_API int perhaps_add_prepared(perhaps_filter *filter,
                                     const struct perhaps_prepared *prepared);
PERHAPS_API int perhaps_add_unless_present_prepared(perhaps_filter *filter,
                                                    const struct perhaps_prepared *prepared,
                                                    bool *was_present);

/* ---- Keys that lie together, and keys that were hashed --------------------------------- */

/* Keys of any length that lie in one piece of memory: key i from offset[i] up to offset[i + 1],
 * where the next one begins.  So there are count + 1 offsets, and none is less than the one
 * before it.  Strings of Apache Arrow lie like this. */
static inline struct perhaps_keys perhaps_keys_offsets32(const void *bytes,
                                                         const uint32_t *offset, size_t count)
{
    struct perhaps_keys keys = { count, NULL, NULL, bytes, 0, offset, sizeof *offset };
    return keys;
}

static inline struct perhaps_keys perhaps_keys_offsets64(const void *bytes,
                                                         const uint64_t *offset, size_t count)
{
    struct perhaps_keys keys = { count, NULL, NULL, bytes, 0, offset, sizeof *offset };
    return keys;
}

/* What the hash of a filter makes of a key: the same in all filters of that hash with that seed
 * or secret. */
struct perhaps_hashed {
    uint8_t bytes[PERHAPS_HASH_NBYTES];
};

/* Keys that perhaps_hash_many() has hashed; or integers for a bitmap. */
static inline struct perhaps_keys perhaps_keys_hashed(const struct perhaps_hashed *hashed,
                                                      size_t count)
{
    struct perhaps_keys keys = { count, NULL, hashed, NULL, 0, NULL, 0 };
    return keys;
}

/* Key 'index' of these keys, which are not hashed. */
static inline struct perhaps_key perhaps_keys_at(const struct perhaps_keys *keys, size_t index)
{
    struct perhaps_key key = { keys->packed, keys->key_nbytes };
    const uint32_t *narrow = (const uint32_t *)keys->offsets;
    const uint64_t *wide = (const uint64_t *)keys->offsets;
    uint64_t first = 0, end = 0;
    if (keys->each)
        return keys->each[index];
    if (!keys->offsets) {
        first = keys->key_nbytes * index;
    } else {
        bool is_narrow = keys->offset_nbytes == sizeof *narrow;
        first = is_narrow ? narrow[index] : wide[index];
        end = is_narrow ? narrow[index + 1] : wide[index + 1];
        key.nbytes = (size_t)(end - first);
    }
    if (first) /* C does not define NULL + 0 */
        key.bytes = (const char *)keys->packed + first;
    return key;
}

/* 'count' of these keys, from number 'first' on. */
static inline struct perhaps_keys perhaps_keys_slice(const struct perhaps_keys *keys,
                                                     size_t first, size_t count)
{
    struct perhaps_keys slice = *keys;
    slice.count = count;
    if (keys->each)
        slice.each = keys->each + first;
    else if (keys->hashed)
        slice.hashed = keys->hashed + first;
    else if (keys->offsets)
        slice.offsets = (const char *)keys->offsets + first * keys->offset_nbytes;
    else if (keys->key_nbytes)
        slice.packed = (const char *)keys->packed + first * keys->key_nbytes;
    return slice;
}

/* Hashes keys as the filter does: so that other threads can hash what one thread adds, or that
 * one hash serves for several filters.  Returns 0; PERHAPS_ERR_SECRET; or PERHAPS_ERR_ARGUMENT
 * for a key that the hash does not take, having hashed nothing. */
PERHAPS_API int perhaps_hash_many(const perhaps_filter *filter, const struct perhaps_keys *keys,
                                  struct perhaps_hashed *hashed);

/* ---- Views: without a call ------------------------------------------------------------- */

/* For programs that are compiled against the library:
 *
 *   struct perhaps_view view = perhaps_view_of(filter);
 *   if (perhaps_view_contains_integer(&view, key)) ...
 *
 * A view tells where the parts of a filter lie.  Through it the compiler puts the questions
 * into the caller's own loop, which takes half of the instructions of a call.  The view of a
 * filter that has no such way (another kind, hash or CPU, several cache lines a key, shared, a
 * file that is checked) gives the same answers by calls.  So does everything here unless it is
 * compiled for AVX2: cc -mavx2 -mbmi2, or -march=x86-64-v3.
 *
 * A view stays valid until the filter is freed or moved (perhaps_relocate()), or another one is
 * merged into it.  It may be
 * copied.  What may run at the same time is as with the calls. */

/* What the keys are. */
enum perhaps_input {
    PERHAPS_INPUT_INTEGER, /* 8 bytes, to be hashed; the hash of the filter is xxh3-64 */
    PERHAPS_INPUT_HASH64,  /* ready hashes of 8 bytes: none-64 */
    PERHAPS_INPUT_HASH128, /* ready hashes of 16 bytes: none */
    PERHAPS_INPUT_COUNT,
};

/* Which layout of struct perhaps_view this header knows.  A library that has another one fills
 * in a view that makes calls. */
#define PERHAPS_VIEW_VERSION 1

/* Its members belong to the functions below. */
struct perhaps_view {
    perhaps_filter *filter;
    uint64_t nlines[PERHAPS_INPUT_COUNT]; /* 0: keys of this input take the calls */
    uint8_t *lines;                       /* nlines of 16 words of 32 bits */
    const uint8_t *rows;                  /* 128 rows of 64 bytes, one for each walk */
    uint64_t flip;
    uint64_t *keys; /* how many there are */

    /* With so many keys or more an add is a call: *keys_until[input]. */
    const uint64_t *keys_until[PERHAPS_INPUT_COUNT];
};

/* Fills in a view that makes calls, so that it makes fewer.  Leaves it as it is if the filter
 * has no such way, or if 'version' is not the library's. */
PERHAPS_API void perhaps_view_fill(perhaps_filter *filter, unsigned version,
                                   struct perhaps_view *view);

/* Returns the view of a filter. */
static inline struct perhaps_view perhaps_view_of(perhaps_filter *filter)
{
    static uint64_t never;
    struct perhaps_view view = {
        filter, { 0, 0, 0 }, NULL, NULL, 0, &never, { &never, &never, &never }
    };
    perhaps_view_fill(filter, PERHAPS_VIEW_VERSION, &view);
    return view;
}

/* ---- What is inlined --------------------------------------------------------------- */

/* Returns the hash of an integer by XXH3-64.  The steps are those for 4 to 8 bytes:
 * https://github.com/Cyan4973/xxHash, doc/xxhash_spec.md. */
static inline uint64_t perhaps_view_hash(uint64_t key, uint64_t flip)
{
    const uint64_t prime = UINT64_C(0x9FB21C651E98DF25);
    uint64_t h = (key << 32 | key >> 32) ^ flip;
    h = (h ^ (h << 49 | h >> 15) ^ (h << 24 | h >> 40)) * prime;
    h = (h ^ ((h >> 35) + 8)) * prime;
    return h ^ h >> 28;
}

/* Returns the second half of a hash that has only 64 bits.  The number is an odd one without
 * structure: the first digits of e. */
static inline uint64_t perhaps_view_mark(uint64_t hash)
{
    return hash * UINT64_C(0xB7E151628AED2A6B);
}

#if defined(__AVX2__)

/* Where a key lies: its line, and its row, which has for each word of the line a constant that
 * gives the key's bit.  The lowest bit of a constant tells whether the key has a bit in that
 * word. */
struct perhaps_view_place {
    uint64_t line, row;  /* how many bytes behind the first line and the first row they begin */
    __m256i shift, more; /* by how many bits the bits in the two halves are shifted */
};

/* From here on the compiler takes a number or pointer for changed.  So it reads again what lies
 * there, as an operand, which takes fewer instructions than to keep it in a register. */
#define PERHAPS_VIEW_AGAIN(where) __asm__("" : "+r"(where))

/* Returns half a line or half a row. */
static inline __m256i perhaps_view_half(const uint8_t *half)
{
    return *(const __m256i *)(const void *)half;
}

/* Returns a one in each lane; they stand behind the rows. */
static inline __m256i perhaps_view_ones(const struct perhaps_view *view)
{
    return perhaps_view_half(view->rows + 128 * 64);
}

static inline struct perhaps_view_place perhaps_view_find(const struct perhaps_view *view,
                                                          enum perhaps_input input,
                                                          uint64_t place, uint64_t mark)
{
    __extension__ typedef unsigned __int128 product;
    struct perhaps_view_place p;
    uint32_t walk = (uint32_t)mark;
    __m256i factor = _mm256_permutevar8x32_epi32(
        _mm256_castsi128_si256(_mm_cvtsi64_si128((long long)mark)), perhaps_view_ones(view));
    p.line = (uint64_t)((product)place * view->nlines[input] >> 64) * 64;
    p.row = (walk >> 19 | walk << 13) & 127 * 64; /* the highest 7 bits, times 64 */
    p.shift = _mm256_mullo_epi32(perhaps_view_half(view->rows + p.row), factor);
    p.more = _mm256_mullo_epi32(perhaps_view_half(view->rows + p.row + 32), factor);
    p.shift = _mm256_srli_epi32(p.shift, 27);
    p.more = _mm256_srli_epi32(p.more, 27);
    PERHAPS_VIEW_AGAIN(p.row);
    return p;
}

static inline bool perhaps_view_has(const struct perhaps_view *view, enum perhaps_input input,
                                    uint64_t place, uint64_t mark)
{
    struct perhaps_view_place p = perhaps_view_find(view, input, place, mark);
    __m256i low = _mm256_srlv_epi32(perhaps_view_half(view->lines + p.line), p.shift);
    __m256i high = _mm256_srlv_epi32(perhaps_view_half(view->lines + p.line + 32), p.more);
    low = _mm256_andnot_si256(low, perhaps_view_half(view->rows + p.row));
    high = _mm256_andnot_si256(high, perhaps_view_half(view->rows + p.row + 32));
    return _mm256_testz_si256(_mm256_or_si256(low, high), perhaps_view_ones(view));
}

static inline int perhaps_view_set(const struct perhaps_view *view, enum perhaps_input input,
                                   uint64_t place, uint64_t mark)
{
    struct perhaps_view_place p = perhaps_view_find(view, input, place, mark);
    const __m256i ones = perhaps_view_ones(view);
    __m256i *line = (__m256i *)(void *)(view->lines + p.line);
    __m256i low = _mm256_and_si256(perhaps_view_half(view->rows + p.row), ones);
    __m256i high = _mm256_and_si256(perhaps_view_half(view->rows + p.row + 32), ones);
    low = _mm256_or_si256(_mm256_sllv_epi32(low, p.shift), line[0]);
    high = _mm256_or_si256(_mm256_sllv_epi32(high, p.more), line[1]);
    PERHAPS_VIEW_AGAIN(line);
    __m256i news =
        _mm256_or_si256(_mm256_xor_si256(low, line[0]), _mm256_xor_si256(high, line[1]));
    line[0] = low;
    line[1] = high;
    /* "no news" comes as a carry, which takes one instruction to count */
    *view->keys += !_mm256_testc_si256(_mm256_setzero_si256(), news);
    return 0;
}

#else

/* Are never called. */
static inline bool perhaps_view_has(const struct perhaps_view *view, enum perhaps_input input,
                                    uint64_t place, uint64_t mark)
{
    (void)view, (void)input, (void)place, (void)mark;
    return true;
}

static inline int perhaps_view_set(const struct perhaps_view *view, enum perhaps_input input,
                                   uint64_t place, uint64_t mark)
{
    (void)view, (void)input, (void)place, (void)mark;
    return PERHAPS_ERR_UNSUPPORTED;
}

#endif

/* Ask and add by a call for a key of 8 or 16 bytes.  They are cold and take the key by value,
 * so that it can stay in registers where no call is made.  They are 'inline' only so that a
 * program that does not use them does not contain them. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wattributes"
static inline __attribute__((noinline, cold)) bool
perhaps_view_ask_slowly(const perhaps_filter *filter, uint64_t first, uint64_t last,
                        size_t nbytes)
{
    const uint64_t key[2] = { first, last };
    return perhaps_contains(filter, key, nbytes);
}

static inline __attribute__((noinline, cold)) int
perhaps_view_add_slowly(perhaps_filter *filter, uint64_t first, uint64_t last, size_t nbytes)
{
    const uint64_t key[2] = { first, last };
    return perhaps_add(filter, key, nbytes);
}
#pragma GCC diagnostic pop

#if defined(__AVX2__)
#define PERHAPS_VIEW_CAN_ASK(input) __builtin_expect(view->nlines[input] != 0, 1)
#define PERHAPS_VIEW_CAN_ADD(input) __builtin_expect(*view->keys < *view->keys_until[input], 1)
#else
#define PERHAPS_VIEW_CAN_ASK(input) 0
#define PERHAPS_VIEW_CAN_ADD(input) 0
#endif

/* ---- Ask and add ------------------------------------------------------------------- */

/* Do what perhaps_contains() and perhaps_add() do for a key of 8 bytes, which is an integer of
 * this machine. */
static inline bool perhaps_view_contains_integer(const struct perhaps_view *view, uint64_t key)
{
    if (!PERHAPS_VIEW_CAN_ASK(PERHAPS_INPUT_INTEGER))
        return perhaps_view_ask_slowly(view->filter, key, 0, 8);
    uint64_t hash = perhaps_view_hash(key, view->flip);
    return perhaps_view_has(view, PERHAPS_INPUT_INTEGER, hash, perhaps_view_mark(hash));
}

static inline int perhaps_view_add_integer(const struct perhaps_view *view, uint64_t key)
{
    if (!PERHAPS_VIEW_CAN_ADD(PERHAPS_INPUT_INTEGER))
        return perhaps_view_add_slowly(view->filter, key, 0, 8);
    uint64_t hash = perhaps_view_hash(key, view->flip);
    return perhaps_view_set(view, PERHAPS_INPUT_INTEGER, hash, perhaps_view_mark(hash));
}

/* The same for a ready hash of 8 bytes, in a filter of the hash none-64. */
static inline bool perhaps_view_contains_hash64(const struct perhaps_view *view, uint64_t hash)
{
    if (!PERHAPS_VIEW_CAN_ASK(PERHAPS_INPUT_HASH64))
        return perhaps_view_ask_slowly(view->filter, hash, 0, 8);
    return perhaps_view_has(view, PERHAPS_INPUT_HASH64, hash, perhaps_view_mark(hash));
}

static inline int perhaps_view_add_hash64(const struct perhaps_view *view, uint64_t hash)
{
    if (!PERHAPS_VIEW_CAN_ADD(PERHAPS_INPUT_HASH64))
        return perhaps_view_add_slowly(view->filter, hash, 0, 8);
    return perhaps_view_set(view, PERHAPS_INPUT_HASH64, hash, perhaps_view_mark(hash));
}

/* The same for a ready hash of 16 bytes, in a filter of the hash none: its first 8 bytes and
 * its last. */
static inline bool perhaps_view_contains_hash128(const struct perhaps_view *view,
                                                 uint64_t first, uint64_t last)
{
    if (!PERHAPS_VIEW_CAN_ASK(PERHAPS_INPUT_HASH128))
        return perhaps_view_ask_slowly(view->filter, first, last, 16);
    return perhaps_view_has(view, PERHAPS_INPUT_HASH128, first, last);
}

static inline int perhaps_view_add_hash128(const struct perhaps_view *view, uint64_t first,
                                           uint64_t last)
{
    if (!PERHAPS_VIEW_CAN_ADD(PERHAPS_INPUT_HASH128))
        return perhaps_view_add_slowly(view->filter, first, last, 16);
    return perhaps_view_set(view, PERHAPS_INPUT_HASH128, first, last);
}

/* ---- Views of cuckoo and ribbon filters: questions ------------------------------------- */

/* The same for filters of these kinds, for questions only:
 *
 *   struct perhaps_cuckoo_view view = perhaps_cuckoo_view_of(filter);
 *   if (perhaps_cuckoo_view_contains_integer(&view, key)) ...
 *
 * All that is said of views above holds for these.  Two things differ.  The questions to a
 * cuckoo filter are inlined whatever the program is compiled for; those to a ribbon filter for
 * AVX2.  And a cuckoo filter makes calls if its fingerprints have more than 16 bits, a ribbon
 * filter unless these have 5 to 8 bits (fprs of some 0.4 to 3 %) and there are no values.  Keys
 * may be added and removed by calls meanwhile, by this thread. */

struct perhaps_cuckoo_view {
    const perhaps_filter *filter;
    uint64_t nbuckets[PERHAPS_INPUT_COUNT]; /* 0: keys of this input take the calls */
    const uint8_t *buckets;                 /* nbuckets of 4 fingerprints, bit after bit */
    uint64_t flip;
    uint64_t fingerprints; /* how many there are: they begin with 1 */
    uint64_t pairs;        /* half of the buckets */
    uint64_t ones, tops;   /* the lowest and the highest bits of 4 fingerprints */
    uint64_t bucket_nbits;
};

struct perhaps_ribbon_view {
    const perhaps_filter *filter;
    uint64_t nslots[PERHAPS_INPUT_COUNT]; /* of the first layer; 0: as above */
    const uint8_t *blocks;                /* of 64 slots: a word for each column */
    const uint8_t *thresholds;            /* of 128 slots: 2 bits each */
    uint64_t flip;
    uint64_t block_nbytes;
    uint64_t last_words; /* where the last 4 words of a block begin */
    unsigned shift;      /* 64 less the number of columns */
};

/* Fill in a view that makes calls, as perhaps_view_fill() does. */
PERHAPS_API void perhaps_cuckoo_view_fill(const perhaps_filter *filter, unsigned version,
                                          struct perhaps_cuckoo_view *view);
PERHAPS_API void perhaps_ribbon_view_fill(const perhaps_filter *filter, unsigned version,
                                          struct perhaps_ribbon_view *view);

/* Return the view of a filter. */
static inline struct perhaps_cuckoo_view perhaps_cuckoo_view_of(const perhaps_filter *filter)
{
    struct perhaps_cuckoo_view view = { filter, { 0, 0, 0 }, NULL, 0, 0, 0, 0, 0, 0 };
    perhaps_cuckoo_view_fill(filter, PERHAPS_VIEW_VERSION, &view);
    return view;
}

static inline struct perhaps_ribbon_view perhaps_ribbon_view_of(const perhaps_filter *filter)
{
    struct perhaps_ribbon_view view = { filter, { 0, 0, 0 }, NULL, NULL, 0, 0, 0, 0 };
    perhaps_ribbon_view_fill(filter, PERHAPS_VIEW_VERSION, &view);
    return view;
}

/* Returns the upper half of a product: for a random x a number below n. */
static inline uint64_t perhaps_view_scale(uint64_t x, uint64_t n)
{
    __extension__ typedef unsigned __int128 product;
    return (uint64_t)((product)x * n >> 64);
}

/* Returns the four fingerprints of a bucket in the low bits; those above may be anything. */
static inline uint64_t perhaps_view_bucket(const struct perhaps_cuckoo_view *view,
                                           uint64_t bucket)
{
    uint64_t bits, at = bucket * view->bucket_nbits;
    memcpy(&bits, view->buckets + (at >> 3), sizeof bits);
    return bits >> (at & 7);
}

/* The same for fingerprints of 16 bits. */
static inline uint64_t perhaps_view_bucket16(const struct perhaps_cuckoo_view *view,
                                             uint64_t bucket)
{
    uint64_t bits;
    memcpy(&bits, view->buckets + 8 * bucket, sizeof bits);
    return bits;
}

/* Returns whether one of the fingerprints of two buckets is this one.  A lane that is becomes
 * 0, and the subtraction turns over its highest bit. */
static inline bool perhaps_view_match(const struct perhaps_cuckoo_view *view, uint64_t a,
                                      uint64_t b, uint64_t fingerprint)
{
    a ^= fingerprint * view->ones;
    b ^= fingerprint * view->ones;
    return ((((a - view->ones) & ~a) | ((b - view->ones) & ~b)) & view->tops) != 0;
}

static inline bool perhaps_view_match16(const struct perhaps_cuckoo_view *view, uint64_t a,
                                        uint64_t b, uint64_t fingerprint)
{
#if defined(__AVX2__)
    __m128i both = _mm_set_epi64x((long long)b, (long long)a);
    (void)view;
    both = _mm_cmpeq_epi16(both, _mm_set1_epi16((short)fingerprint));
    return !_mm_testz_si128(both, both);
#else
    return perhaps_view_match(view, a, b, fingerprint);
#endif
}

/* Returns whether a key's fingerprint is in one of its two buckets: doc/FORMAT.md. */
static inline bool perhaps_cuckoo_view_has(const struct perhaps_cuckoo_view *view,
                                           enum perhaps_input input, uint64_t place,
                                           uint64_t mark)
{
    const uint64_t nbuckets = view->nbuckets[input];
    const uint64_t fingerprint = 1 + perhaps_view_scale(mark, view->fingerprints);
    const uint64_t first = perhaps_view_scale(place, nbuckets);
    uint64_t mixed = fingerprint * UINT64_C(0x9E3779B97F4A7C15);
    mixed = (mixed ^ mixed >> 32) * UINT64_C(0x243F6A8885A308D3);
    uint64_t second = 2 * perhaps_view_scale(mixed, view->pairs) + 1 - first;
    second += second >> 63 ? nbuckets : 0;
    if (__builtin_expect(view->bucket_nbits == 64, 1)) /* a usual width */
        return perhaps_view_match16(view, perhaps_view_bucket16(view, first),
                                    perhaps_view_bucket16(view, second), fingerprint);
    return perhaps_view_match(view, perhaps_view_bucket(view, first),
                              perhaps_view_bucket(view, second), fingerprint);
}

/* Asks by a call for a key that is hashed. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wattributes"
static inline __attribute__((noinline, cold)) bool
perhaps_view_ask_hashed(const perhaps_filter *filter, uint64_t place, uint64_t mark)
{
    const struct perhaps_prepared key = { place, mark, 0 };
    return perhaps_contains_prepared(filter, &key);
}
#pragma GCC diagnostic pop

#if defined(__AVX2__)
/* Returns four words of two neighbouring blocks, as far as a key touches their slots. */
static inline __m256i perhaps_view_touched(const struct perhaps_ribbon_view *view,
                                           const uint8_t *words, __m256i low, __m256i high)
{
    __m256i here = _mm256_loadu_si256((const __m256i *)(const void *)words);
    __m256i next =
        _mm256_loadu_si256((const __m256i *)(const void *)(words + view->block_nbytes));
    return _mm256_xor_si256(_mm256_and_si256(here, low), _mm256_and_si256(next, high));
}

/* Returns whether the slots that a key touches add up to its fingerprint, a bit from each
 * column: doc/FORMAT.md.  Asks by a call for a key that the first layer does not have. */
static inline bool perhaps_ribbon_view_has(const struct perhaps_ribbon_view *view,
                                           enum perhaps_input input, uint64_t place,
                                           uint64_t mark)
{
    const uint64_t bumped = UINT64_C(0xFF582800FF582800); /* what thresholds stand for, twice */
    const uint64_t start = perhaps_view_scale(place, view->nslots[input]);
    const unsigned threshold = view->thresholds[start / 512] >> (start / 64 & 6);
    if (__builtin_expect((uint8_t)(start * 2) < (uint8_t)(bumped >> (threshold * 8 & 63)), 0))
        return perhaps_view_ask_hashed(view->filter, place, mark);
    const uint8_t *words = view->blocks + start / 64 * view->block_nbytes;
    const __m256i slot = _mm256_set1_epi64x((long long)(start & 63));
    const __m256i marks = _mm256_set1_epi64x((long long)(mark | 1));
    const __m256i low = _mm256_sllv_epi64(marks, slot);
    const __m256i high =
        _mm256_srlv_epi64(marks, _mm256_sub_epi64(_mm256_set1_epi64x(64), slot));
    const __m256i a = perhaps_view_touched(view, words, low, high);
    const __m256i b = perhaps_view_touched(view, words + view->last_words, low, high);
    const __m256 x = _mm256_castsi256_ps(a), y = _mm256_castsi256_ps(b);
    __m256i sum = _mm256_castps_si256(
        _mm256_xor_ps(_mm256_shuffle_ps(x, y, 0x88), _mm256_shuffle_ps(x, y, 0xdd)));
    sum = _mm256_xor_si256(sum, _mm256_slli_epi32(sum, 16)); /* parities: the highest bits */
    sum = _mm256_xor_si256(sum, _mm256_slli_epi32(sum, 8));
    sum = _mm256_xor_si256(sum, _mm256_slli_epi32(sum, 4));
    sum = _mm256_xor_si256(sum, _mm256_slli_epi32(sum, 2));
    sum = _mm256_xor_si256(sum, _mm256_slli_epi32(sum, 1));
    sum = _mm256_permute4x64_epi64(sum, 0xd8);
    const unsigned bits = (unsigned)_mm256_movemask_ps(_mm256_castsi256_ps(sum));
    const uint64_t row = mark * UINT64_C(0x243F6A8885A308D3); /* its highest bits */
    return bits == ((row >> 56 & 0xf0) | (row >> view->shift & 0xf));
}
#define PERHAPS_VIEW_CAN_SUM(input) __builtin_expect(view->nslots[input] != 0, 1)
#else
/* Is never called. */
static inline bool perhaps_ribbon_view_has(const struct perhaps_ribbon_view *view,
                                           enum perhaps_input input, uint64_t place,
                                           uint64_t mark)
{
    (void)input;
    return perhaps_view_ask_hashed(view->filter, place, mark);
}
#define PERHAPS_VIEW_CAN_SUM(input) 0
#endif
#define PERHAPS_VIEW_CAN_LOOK(input) __builtin_expect(view->nbuckets[input] != 0, 1)

/* Do what perhaps_contains() does for a key of 8 bytes, which is an integer of this machine. */
static inline bool perhaps_cuckoo_view_contains_integer(const struct perhaps_cuckoo_view *view,
                                                        uint64_t key)
{
    if (!PERHAPS_VIEW_CAN_LOOK(PERHAPS_INPUT_INTEGER))
        return perhaps_view_ask_slowly(view->filter, key, 0, 8);
    uint64_t hash = perhaps_view_hash(key, view->flip);
    return perhaps_cuckoo_view_has(view, PERHAPS_INPUT_INTEGER, hash, perhaps_view_mark(hash));
}

static inline bool perhaps_ribbon_view_contains_integer(const struct perhaps_ribbon_view *view,
                                                        uint64_t key)
{
    if (!PERHAPS_VIEW_CAN_SUM(PERHAPS_INPUT_INTEGER))
        return perhaps_view_ask_slowly(view->filter, key, 0, 8);
    uint64_t hash = perhaps_view_hash(key, view->flip);
    return perhaps_ribbon_view_has(view, PERHAPS_INPUT_INTEGER, hash, perhaps_view_mark(hash));
}

/* The same for a ready hash of 8 bytes, in a filter of the hash none-64. */
static inline bool perhaps_cuckoo_view_contains_hash64(const struct perhaps_cuckoo_view *view,
                                                       uint64_t hash)
{
    if (!PERHAPS_VIEW_CAN_LOOK(PERHAPS_INPUT_HASH64))
        return perhaps_view_ask_slowly(view->filter, hash, 0, 8);
    return perhaps_cuckoo_view_has(view, PERHAPS_INPUT_HASH64, hash, perhaps_view_mark(hash));
}

static inline bool perhaps_ribbon_view_contains_hash64(const struct perhaps_ribbon_view *view,
                                                       uint64_t hash)
{
    if (!PERHAPS_VIEW_CAN_SUM(PERHAPS_INPUT_HASH64))
        return perhaps_view_ask_slowly(view->filter, hash, 0, 8);
    return perhaps_ribbon_view_has(view, PERHAPS_INPUT_HASH64, hash, perhaps_view_mark(hash));
}

/* The same for a ready hash of 16 bytes, in a filter of the hash none: its first 8 bytes and
 * its last. */
static inline bool perhaps_cuckoo_view_contains_hash128(const struct perhaps_cuckoo_view *view,
                                                        uint64_t first, uint64_t last)
{
    if (!PERHAPS_VIEW_CAN_LOOK(PERHAPS_INPUT_HASH128))
        return perhaps_view_ask_slowly(view->filter, first, last, 16);
    return perhaps_cuckoo_view_has(view, PERHAPS_INPUT_HASH128, first, last);
}

static inline bool perhaps_ribbon_view_contains_hash128(const struct perhaps_ribbon_view *view,
                                                        uint64_t first, uint64_t last)
{
    if (!PERHAPS_VIEW_CAN_SUM(PERHAPS_INPUT_HASH128))
        return perhaps_view_ask_slowly(view->filter, first, last, 16);
    return perhaps_ribbon_view_has(view, PERHAPS_INPUT_HASH128, first, last);
}

#ifdef __cplusplus
}
#endif
#endif
