/* sort.c - sorts records: by digits, and what is left to do by insertion. */
#include <stdlib.h>
#include <string.h>

#include "../base/compiler.h"
#include "pile.h"

enum { DIGIT_NBITS = 11, DIGITS = 1 << DIGIT_NBITS };

/* Returns whether record a comes before record b. */
static ALWAYS_INLINE bool is_before(const uint64_t *a, const uint64_t *b, unsigned words)
{
    for (unsigned w = 0; w + 1 < words; w++)
        if (a[w] != b[w])
            return a[w] < b[w];
    return a[words - 1] < b[words - 1];
}

static ALWAYS_INLINE void copy_record(uint64_t *to, const uint64_t *from, unsigned words)
{
    for (unsigned w = 0; w < words; w++)
        to[w] = from[w];
}

/* Moves the records to 'to', sorted by one digit of their first word and otherwise in the order
 * in which they are. */
static ALWAYS_INLINE void sort_by_digit(const uint64_t *from, uint64_t *to, uint64_t n,
                                        unsigned words, unsigned shift)
{
    uint32_t next[DIGITS] = { 0 }, sum = 0;
    for (uint64_t i = 0; i < n; i++)
        next[from[i * words] >> shift & (DIGITS - 1)]++;
    for (unsigned d = 0; d < DIGITS; d++) {
        uint32_t count = next[d];
        next[d] = sum;
        sum += count;
    }
    for (uint64_t i = 0; i < n; i++)
        copy_record(to + words * (uint64_t)next[from[i * words] >> shift & (DIGITS - 1)]++,
                    from + i * words, words);
}

/* Sorts records of which few are out of place.  Returns false if it gives up, since they are
 * many: hashes that somebody chose. */
static ALWAYS_INLINE bool sort_by_insertion(uint64_t *records, uint64_t n, unsigned words)
{
    uint64_t moves_left = 16 * n + 256;
    for (uint64_t i = 1; i < n; i++) {
        uint64_t record[RECORD_WORDS_MOST], j = i;
        if (!is_before(records + i * words, records + (i - 1) * words, words))
            continue;
        copy_record(record, records + i * words, words);
        for (; j && is_before(record, records + (j - 1) * words, words); j--) {
            copy_record(records + j * words, records + (j - 1) * words, words);
            if (!moves_left--) {
                copy_record(records + (j - 1) * words, record, words);
                return false;
            }
        }
        copy_record(records + j * words, record, words);
    }
    return true;
}

static int compare(const uint64_t *a, const uint64_t *b, unsigned words)
{
    return is_before(a, b, words) ? -1 : is_before(b, a, words);
}

static int compare_1(const void *a, const void *b)
{
    return compare(a, b, 1);
}

static int compare_2(const void *a, const void *b)
{
    return compare(a, b, 2);
}

static int compare_3(const void *a, const void *b)
{
    return compare(a, b, 3);
}

/* Sorts by as many digits as leave few records out of place.  Few records are only inserted. */
static ALWAYS_INLINE bool sort(uint64_t *records, uint64_t *scratch, uint64_t n, unsigned words,
                               unsigned highest)
{
    const uint64_t few = 24, several = 2 * DIGITS, some = 1 << 20;
    if (n <= few)
        return sort_by_insertion(records, n, words);
    if (n > UINT32_MAX)
        return false;
    if (n <= several) {
        memcpy(scratch, records, n * words * sizeof *records);
        sort_by_digit(scratch, records, n, words, highest + 1 - DIGIT_NBITS);
        return sort_by_insertion(records, n, words);
    }
    unsigned digits = n <= some ? 2 : 4;
    for (unsigned d = digits; d-- > 0;) {
        sort_by_digit(records, scratch, n, words, highest + 1 - (d + 1) * DIGIT_NBITS);
        uint64_t *sorted = scratch;
        scratch = records;
        records = sorted;
    }
    return sort_by_insertion(records, n, words);
}

void records_sort(uint64_t *records, uint64_t *scratch, uint64_t n, unsigned words,
                  unsigned highest)
{
    static int (*const compare_by[])(const void *, const void *) = { compare_1, compare_2,
                                                                     compare_3 };
    bool sorted = words == 1   ? sort(records, scratch, n, 1, highest)
                  : words == 2 ? sort(records, scratch, n, 2, highest)
                               : sort(records, scratch, n, 3, highest);
    if (!sorted)
        qsort(records, n, words * sizeof *records, compare_by[words - 1]);
}

uint64_t records_unique(uint64_t *records, uint64_t n, unsigned words, bool valued, bool *clash)
{
    uint64_t kept = n > 0;
    for (uint64_t i = 1; i < n; i++) {
        const uint64_t *last = records + (kept - 1) * words, *next = records + i * words;
        unsigned same = 0;
        while (same < words && last[same] == next[same])
            same++;
        if (same >= words - valued) {
            *clash |= same < words;
            continue;
        }
        if (kept < i)
            memcpy(records + kept * words, next, words * sizeof *next);
        kept++;
    }
    return kept;
}
