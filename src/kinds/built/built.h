/* built.h - the threads of kinds that are built once. */
#ifndef BUILT_H
#define BUILT_H

#include "../../pile/pile.h"
#include <perhaps_embed.h>

/* What the threads have for themselves while they do tasks. */
struct built_hands {
    uint64_t hand_nbytes;  /* of the hand, which begins as zeros */
    uint64_t solve_nbytes; /* of all memory that a hand takes, about */

    /* Takes the memory of a hand.  Returns whether there was enough; if not, end() releases
     * what there is. */
    bool (*begin)(const void *context, void *hand, const struct perhaps_allocator *allocator);
    void (*end)(const void *context, void *hand, const struct perhaps_allocator *allocator);
};

/* Does tasks by 'threads' threads, or by fewer if the hands would take more than half of the
 * memory that the pile may use, or if there is no memory for so many.  'context' of the calls
 * is that of the tasks.  Returns 0, PERHAPS_ERR_MEMORY, or the error of a task. */
int built_run(const struct tasks *tasks, const struct built_hands *hands,
              const struct pile *pile, unsigned threads);

#endif
