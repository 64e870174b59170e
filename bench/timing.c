/* timing.c - the best of several passes, piece by piece. */
#include <stdlib.h>
#include <time.h>

#include "bench.h"

double seconds_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static size_t piece_count(const struct timing *timing)
{
    return (size_t)((timing->count + PIECE - 1) / PIECE);
}

int timing_open(struct timing *timing, uint64_t count)
{
    timing->count = count;
    timing->seconds = calloc(piece_count(timing), sizeof *timing->seconds);
    return timing->seconds ? 0 : -1;
}

void timing_close(struct timing *timing)
{
    free(timing->seconds);
}

void timing_note(struct timing *timing, size_t piece, double seconds)
{
    double *best = &timing->seconds[piece];
    if (*best <= 0 || seconds < *best)
        *best = seconds;
}

double timing_ns(const struct timing *timing)
{
    double seconds = 0;
    uint64_t count = 0, left = timing->count;
    for (size_t i = 0; i < piece_count(timing); i++) {
        uint64_t in_piece = left < PIECE ? left : PIECE;
        if (timing->seconds[i] > 0)
            count += in_piece;
        seconds += timing->seconds[i];
        left -= in_piece;
    }
    return count ? 1e9 * seconds / (double)count : 0;
}
