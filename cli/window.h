/* window.h - the window in which dedup remembers lines, and its time. */
#ifndef WINDOW_H
#define WINDOW_H

#include "lines.h"
#include "options.h"

struct window {
    const struct settings *settings;
    bool by_time;
    uint64_t grain_ms; /* times are told in steps of it */
    uint64_t now_ms;   /* the latest that was told */
};

/* Learns how the filter forgets, if it does; for a filter at 'path' that was there before, ends
 * the program unless it does so as the command line says (NULL: it was made so). */
void window_open(struct window *window, const struct settings *settings,
                 const perhaps_filter *filter, const char *path);

/* Whether lines have their time with them:
 * a stage must then read it before window_advance(). */
bool window_reads(const struct window *window);

/* A stage, with the window as its context: reads the times of a block. */
bool window_read_times(void *window, struct block *block);

/* Tells the filter the time of record 'at' of the block.  Returns how many from there on may be
 * added at that time. */
size_t window_advance(struct window *window, perhaps_filter *filter, const struct block *block,
                      size_t at);

#endif
