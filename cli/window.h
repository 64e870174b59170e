/* window.h - the window in which dedup remembers lines, and how it learns the time. */
#ifndef WINDOW_H
#define WINDOW_H

#include "lines.h"
#include "options.h"

/* How the filter of dedup forgets, and the time that it was told. */
struct window {
    const struct settings *settings;
    bool by_time;      /* else by the number of keys, or not at all */
    uint64_t grain_ms; /* times are told to the filter in steps of this size */
    uint64_t now_ms;   /* the latest time that the filter was told */
};

/* Finds out how the filter forgets, if it does.  For a filter that was at 'path' before, ends
 * the program unless it forgets as the command line says.  'path' is NULL for a filter that was
 * just made. */
void window_open(struct window *window, const struct settings *settings,
                 const perhaps_filter *filter, const char *path);

/* Returns whether the time of a line is in the line.  If so, the stage window_read_times() must
 * come before the one that calls window_advance(). */
bool window_reads(const struct window *window);

/* A stage, with a struct window: reads the time of each record of a block, and skips lines
 * without one. */
bool window_read_times(void *window, struct block *block);

/* Tells the filter the time of record 'at'.  Returns how many records from there on may be
 * added at that time: at least 1 if there are any. */
size_t window_advance(struct window *window, perhaps_filter *filter, const struct block *block,
                      size_t at);

#endif
