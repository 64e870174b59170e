/* seen.h - the lines that dedup has seen: a state that is kept from run to run, or filters for
 * this run only. */
#ifndef SEEN_H
#define SEEN_H

#include "pipeline.h"
#include "target.h"
#include "window.h"

#define SEEN_PARTS_MAX  8
#define SEEN_STAGES_MAX (SEEN_PARTS_MAX + 2)

struct seen {
    struct target target; /* the state, or one filter that forgets or whose hash was asked */
    struct window window;
    uint64_t nkeys_before; /* that it held at the start; not of one on servers */
    uint64_t nunsure;      /* lines of which servers that failed did not tell: taken for new */

    /* Else: each part is told the keys whose hash says so, all in order, in a stage of its own;
     * so several threads add at once. */
    size_t nparts;
    struct seen_part {
        size_t index;
        struct target target;
    } part[SEEN_PARTS_MAX];
    uint64_t seed;
};

/* A value that seen_close() may be called on. */
#define SEEN_NONE                                                                              \
    {                                                                                          \
        .target = TARGET_NONE                                                                  \
    }

/* Opens the state, or makes filters.  Returns 0 or the exit status, having complained. */
int seen_open(struct seen *seen, const struct settings *settings);

/* Writes the stages that find out, for each record of a batch, whether it was seen before.
 * Returns how many. */
size_t seen_stages(struct seen *seen, struct stage stages[SEEN_STAGES_MAX]);

/* What all filters together are, and what they did. */
struct seen_facts {
    uint64_t keys, capacity, memory_nbytes;
    double fpr_now, fpr;
    bool over;              /* more keys came than the asked rate was to be kept for */
    double expected_losses; /* lines that were taken for old though they were new */
    uint64_t doubtful;      /* that were taken for new and may have been old: see
                               perhaps_cluster_add_many() */
};

/* When 'nnew' lines were found to be new.  Returns 0 or the exit status, having complained. */
int seen_facts(const struct seen *seen, uint64_t nnew, struct seen_facts *facts);

void seen_close(struct seen *seen);

#endif
