/* window.h - the window in which dedup remembers lines, and how it learns the time. */
#ifndef WINDOW_H
#define WINDOW_H

#include "../input/lines.h"
#include "../options.h"

/* How the filter of dedup forgets, and the time that it was told. */
struct window {
    const struct settings *settings;
    bool by_time;                /* else by the number of keys, or not at all */
    uint64_t grain_ms;           /* times are told to the filter in steps of this size */
    uint64_t period_ms, time_ms; /* of the filter: of one generation; how long it remembers */
    uint64_t now_ms; /* the latest time that the filter was told, or when its newest began */
    bool warned;     /* it was said that the time is ahead of the clock, or of the lines */
    uint64_t nahead; /* lines whose time was refused: too far ahead of the clock */
    size_t source;   /* the input of the last block */
    uint64_t line, nlines; /* its first line; the lines of this input up to its end */
};

/* Finds out how the filter forgets, if it does.  For a filter that was at 'path' before, ends
 * the program unless it forgets as the command line says.  'path' is NULL for a filter that was
 * just made.  Brings its time back if --set-back asks for that, and warns if it is ahead. */
void window_open(struct window *window, const struct settings *settings, perhaps_filter *filter,
                 const char *path);

/* Returns whether the newest time of a window is ahead of the clock, so that it does not forget
 * when it should; if so, writes a sentence that tells it, and what to do. */
enum { WINDOW_TEXT_MAX = 320 };
bool window_is_ahead(const struct perhaps_stats *stats, char text[WINDOW_TEXT_MAX]);

/* Warns of that, but not under --json.  Returns whether it is so. */
bool window_warn(const struct settings *settings, const perhaps_filter *filter,
                 const char *path);

/* Returns whether the time of a line is in the line.  If so, the stage window_read_times() must
 * come before the one that calls window_advance(). */
bool window_reads(const struct window *window);

/* A stage, with a struct window: reads the time of each record of a block, and skips lines
 * without one. */
bool window_read_times(void *window, struct block *block);

/* Takes notice of the next block, for the numbers of its lines in messages. */
void window_enter(struct window *window, const struct block *block);

/* Tells the filter the time of record 'at'.  Returns how many records from there on may be
 * added at that time: at least 1 if there are any. */
size_t window_advance(struct window *window, perhaps_filter *filter, const struct block *block,
                      size_t at);

#endif
