/* grow.h - filters that grow without a plan, side by side: 'perhaps-bench grow'.
 *
 * Each goes from --start keys to --keys three times, alike to the last bit: it is watched
 * (memory and rate), timed (in batches, beside the yardstick and beside a filter of fixed size
 * that was planned for all the keys), and called key by key, to see how long single calls
 * take. */
#ifndef GROW_H
#define GROW_H

#include "report.h"

struct growth {
    char name[32];
    struct perhaps_options options;
    const char *fixed; /* the kind of filter that it is compared with */
    bool grows;        /* or forgets: a window, which has one size */
    bool has_layers;
    const struct settings *settings;
    uint64_t keys; /* at the end */
    json_t *row;   /* all that comes out */
    bool wrong;

    /* Of the watching, for the others. */
    uint64_t *piece_nbytes; /* its memory when each piece of keys has come */
    uint64_t nbytes, parts; /* at the end; parts: layers or generations, or pages of slots */
    double fpr_now, planned_bits;
};

/* Each adds to the row, and returns NULL, or what was wrong. */
const char *grow_watch(struct growth *growth);
const char *grow_time(struct growth *growth);
const char *grow_pause(struct growth *growth);

const char *grow_create(const struct growth *growth, const struct perhaps_allocator *allocator,
                        perhaps_filter **filter);
void grow_progress(const struct growth *growth, const char *doing, uint64_t keys);

#endif
