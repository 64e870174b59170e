/* yardstick.c - what memory itself takes: random 64-byte lines and nothing else. */
#include <stdlib.h>
#include <sys/mman.h>

#include "bench.h"

enum { WORDS_PER_LINE = 64 / sizeof(uint64_t) };
#define HUGE_PAGE ((size_t)2 << 20)

static size_t whole_pages(size_t nbytes)
{
    return (nbytes + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
}

int yardstick_open(struct yardstick *y, uint64_t nbytes)
{
    size_t size = whole_pages((size_t)nbytes);
    *y = (struct yardstick){ .words = aligned_alloc(HUGE_PAGE, size),
                             .nlines = (nbytes + 63) / 64 };
    if (!y->words)
        return -1;
    madvise(y->words, size, MADV_HUGEPAGE);
    for (size_t i = 0; i < size / sizeof *y->words; i += WORDS_PER_LINE)
        y->words[i] = i;
    return 0;
}

void yardstick_close(struct yardstick *y)
{
    free(y->words);
}

/* By multiplication, which unlike the remainder takes no time: 'nlines' is below 2^32, that is
 * 256 GiB. */
void yardstick_aim(const struct yardstick *y, uint64_t *offsets, uint64_t first, size_t count)
{
    for (size_t i = 0; i < count; i++)
        offsets[i] =
            (random64(first + i) >> 32) * y->nlines / (UINT64_C(1) << 32) * WORDS_PER_LINE;
}

/* Plain moves for the CPU; to the compiler, what threads may do to the same word. */
static uint64_t get(const uint64_t *word)
{
    return __atomic_load_n(word, __ATOMIC_RELAXED);
}

static void change(uint64_t *word, uint64_t by)
{
    __atomic_store_n(word, get(word) + by, __ATOMIC_RELAXED);
}

static uint64_t read_plain(const uint64_t *words, const uint64_t *offsets, size_t count)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += get(&words[offsets[i]]);
    return sum;
}

static uint64_t write_plain(uint64_t *words, const uint64_t *offsets, size_t count)
{
    for (size_t i = 0; i < count; i++)
        change(&words[offsets[i]], i);
    return 0;
}

/* In the rings the first RING lines are fetched ahead, then one more for each that is dealt
 * with; the last RING need no more.  No branch depends on how far it came.
 * Inlined by force: gcc takes a function that only prefetches for one without effect. */
static inline __attribute__((always_inline)) size_t
fill_ring(const uint64_t *words, const uint64_t *offsets, size_t count)
{
    size_t ahead = count < RING ? count : RING;
    for (size_t i = 0; i < ahead; i++)
        __builtin_prefetch(&words[offsets[i]], 0, 3);
    return ahead;
}

static uint64_t read_ring(const uint64_t *words, const uint64_t *offsets, size_t count)
{
    size_t i = 0, ahead = fill_ring(words, offsets, count);
    uint64_t sum = 0;
    for (; i < count - ahead; i++) {
        __builtin_prefetch(&words[offsets[i + RING]], 0, 3);
        sum += get(&words[offsets[i]]);
    }
    return sum + read_plain(words, offsets + i, count - i);
}

static uint64_t write_ring(uint64_t *words, const uint64_t *offsets, size_t count)
{
    size_t i = 0, ahead = fill_ring(words, offsets, count);
    for (; i < count - ahead; i++) {
        __builtin_prefetch(&words[offsets[i + RING]], 1, 3);
        change(&words[offsets[i]], i);
    }
    return write_plain(words, offsets + i, count - i);
}

uint64_t yardstick_touch(const struct yardstick *y, enum operation operation, enum calls calls,
                         const uint64_t *offsets, size_t count)
{
    if (operation == ADD)
        return (calls == SINGLE ? write_plain : write_ring)(y->words, offsets, count);
    return (calls == SINGLE ? read_plain : read_ring)(y->words, offsets, count);
}
