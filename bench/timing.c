/* timing.c - the best of several passes, lap by lap. */
#include <stdlib.h>
#include <time.h>

#include "bench.h"

double seconds_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

int timing_open(struct timing *timing, size_t laps)
{
    timing->count = laps;
    timing->laps = calloc(laps, sizeof *timing->laps);
    return timing->laps ? 0 : -1;
}

void timing_close(struct timing *timing)
{
    free(timing->laps);
}

void timing_note(struct timing *timing, size_t lap, double seconds, uint64_t keys)
{
    struct lap *best = &timing->laps[lap];
    if (best->seconds <= 0 || seconds < best->seconds)
        *best = (struct lap){ .seconds = seconds, .keys = keys };
}

double timing_ns(const struct timing *timing)
{
    double seconds = 0;
    uint64_t keys = 0;
    for (size_t i = 0; i < timing->count; i++) {
        seconds += timing->laps[i].seconds;
        keys += timing->laps[i].keys;
    }
    return keys ? 1e9 * seconds / (double)keys : 0;
}
