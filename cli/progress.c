#include "progress.h"

#include <math.h>
#include <stdio.h>

#include "numbers.h"
#include "report.h"

#define PATIENCE_S 1.0 /* shorter work needs no bar */
#define REDRAW_S   0.2

static bool on_screen;

void progress_start(struct progress *progress, const char *doing, uint64_t total_nbytes,
                    bool wanted)
{
    *progress = (struct progress){
        .doing = doing, .total_nbytes = total_nbytes, .wanted = wanted, .started = seconds_now()
    };
}

static void draw(const struct progress *progress, uint64_t nbytes, double seconds)
{
    fprintf(stderr, "\r\033[Kperhaps: %s", progress->doing);
    if (progress->total_nbytes > 0 && nbytes > 0) {
        double share = (double)nbytes / (double)progress->total_nbytes;
        share = share < 1 ? share : 1; /* a file may have grown */
        fprintf(stderr, " %3.0f %%, %s left", share * 100,
                duration(ceil(seconds * (1 - share) / share)).s);
    }
}

/* Returns for how many seconds the work has gone on, if it is time to draw; else 0. */
static double time_to_draw(struct progress *progress)
{
    if (!progress->wanted)
        return 0;
    double now = seconds_now();
    if (now - progress->started < PATIENCE_S || now - progress->drawn < REDRAW_S)
        return 0;
    progress->drawn = now;
    on_screen = true;
    return now - progress->started;
}

void progress_show(struct progress *progress, uint64_t nkeys, uint64_t nbytes)
{
    double seconds = time_to_draw(progress);
    if (seconds <= 0)
        return;
    draw(progress, nbytes, seconds);
    fprintf(stderr, ", %s%s", counted(nkeys, "key").s, speed(nkeys, seconds, " keys/s").s);
    fflush(stderr);
}

void progress_show_bytes(struct progress *progress, uint64_t nbytes)
{
    double seconds = time_to_draw(progress);
    if (seconds <= 0)
        return;
    draw(progress, nbytes, seconds);
    fprintf(stderr, ", %s, %s", scaled((double)nbytes, "B").s,
            scaled((double)nbytes / seconds, "B/s").s);
    fflush(stderr);
}

void progress_erase(void)
{
    if (on_screen)
        fputs("\r\033[K", stderr);
    on_screen = false;
}
