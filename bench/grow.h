/* grow.h - measures filters that grow without a plan, side by side: 'perhaps-bench grow'.
 *
 * Each filter grows from --start keys to --keys three times:
 *
 * - It is watched: its memory and its rate.
 * - It is timed in batches, beside the yardstick and beside a filter of fixed size that was
 *   planned for all the keys.
 * - It is called key by key, to see how long single calls take.
 *
 * Keys and seed are the same each time, so the filters are the same to the last bit, and the
 * three passes can be read together. */
#ifndef GROW_H
#define GROW_H

#include "report.h"
#include <perhaps_embed.h>

/* One filter that grows, and what is known of it.  grow_all() makes it and frees
 * 'piece_nbytes'; 'row' becomes part of the facts of the run. */
struct growth {
    char name[32];
    struct perhaps_options options;
    const char *fixed; /* the kind of the fixed filter that it is compared with */
    bool grows;        /* false: it forgets; a window has one size */
    bool has_layers;   /* it is a chain */
    const struct settings *settings;
    uint64_t keys; /* how many it has at the end */
    json_t *row;   /* all results */
    bool wrong;    /* it gave a wrong answer */

    /* What grow_watch() found, for the passes after it. */
    uint64_t *piece_nbytes; /* memory after the last look in each piece of keys */
    uint64_t nbytes, parts; /* at the end; parts: layers, generations, or pages of slots */
    double fpr_now, planned_bits; /* at the end; bits a key of the fixed filter at that rate */
};

/* The three passes; grow_watch() must come first.  Each adds to the row.  Returns NULL, or what
 * is wrong. */
const char *grow_watch(struct growth *growth);
const char *grow_time(struct growth *growth);
const char *grow_pause(struct growth *growth);

/* Makes the filter, still empty.  Returns NULL, or what is wrong. */
const char *grow_create(const struct growth *growth, const struct perhaps_allocator *allocator,
                        perhaps_filter **filter);

/* Shows how far the growing is; NULL wipes that out. */
void grow_progress(const struct growth *growth, const char *doing, uint64_t keys);

#endif
