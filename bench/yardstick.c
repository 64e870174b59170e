/* yardstick.c - what memory itself takes: random 64-byte lines and nothing else. */
#include <stdlib.h>
#include <sys/mman.h>

#include "bench.h"

enum { WORDS_PER_LINE = 64 / sizeof(uint64_t) };
/* Different pieces: enough to leave no line in a cache until its turn comes again. */
enum { PIECES = 32 };
#define HUGE_PAGE ((size_t)2 << 20)

static size_t whole_pages(size_t nbytes)
{
    return (nbytes + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
}

int yardstick_open(struct yardstick *y, uint64_t nbytes)
{
    size_t size = whole_pages((size_t)nbytes);
    *y = (struct yardstick){ .offsets = malloc(PIECES * PIECE * sizeof *y->offsets),
                             .words = aligned_alloc(HUGE_PAGE, size) };
    if (!y->offsets || !y->words)
        return -1;
    madvise(y->words, size, MADV_HUGEPAGE);
    for (size_t i = 0; i < size / sizeof *y->words; i += WORDS_PER_LINE)
        y->words[i] = i;
    uint64_t nlines = nbytes / sizeof *y->words / WORDS_PER_LINE;
    for (size_t i = 0; i < PIECES * PIECE; i++)
        y->offsets[i] = random64(i) % nlines * WORDS_PER_LINE;
    return 0;
}

void yardstick_close(struct yardstick *y)
{
    free(y->words);
    free(y->offsets);
}

static uint64_t read_plain(const uint64_t *words, const uint64_t *offsets)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < PIECE; i++)
        sum += words[offsets[i]];
    return sum;
}

static uint64_t write_plain(uint64_t *words, const uint64_t *offsets)
{
    for (size_t i = 0; i < PIECE; i++)
        words[offsets[i]] += i;
    return 0;
}

/* In the rings the first RING lines are fetched ahead, then one more for each that is dealt
 * with; the last RING need no more.  No branch depends on how far it came.
 * Inlined by force: gcc takes a function that only prefetches for one without effect. */
static inline __attribute__((always_inline)) void fill_ring(const uint64_t *words,
                                                            const uint64_t *offsets)
{
    for (size_t i = 0; i < RING; i++)
        __builtin_prefetch(&words[offsets[i]], 0, 3);
}

static uint64_t read_ring(const uint64_t *words, const uint64_t *offsets)
{
    uint64_t sum = 0;
    size_t i = 0;
    fill_ring(words, offsets);
    for (; i < PIECE - RING; i++) {
        __builtin_prefetch(&words[offsets[i + RING]], 0, 3);
        sum += words[offsets[i]];
    }
    for (; i < PIECE; i++)
        sum += words[offsets[i]];
    return sum;
}

static uint64_t write_ring(uint64_t *words, const uint64_t *offsets)
{
    size_t i = 0;
    fill_ring(words, offsets);
    for (; i < PIECE - RING; i++) {
        __builtin_prefetch(&words[offsets[i + RING]], 1, 3);
        words[offsets[i]] += i;
    }
    for (; i < PIECE; i++)
        words[offsets[i]] += i;
    return 0;
}

double yardstick_piece(struct yardstick *y, enum operation operation, enum calls calls,
                       size_t piece)
{
    const uint64_t *offsets = y->offsets + piece % PIECES * PIECE;
    double start = seconds_now();
    if (operation == ADD)
        y->sum +=
            calls == SINGLE ? write_plain(y->words, offsets) : write_ring(y->words, offsets);
    else
        y->sum +=
            calls == SINGLE ? read_plain(y->words, offsets) : read_ring(y->words, offsets);
    return seconds_now() - start;
}
