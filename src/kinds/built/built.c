/* built.c - runs the threads of kinds that are built once. */
#include "built.h"

#include "../../base/memory.h"
#include "../../pile/pile.h"

/* Returns how many hands to take: at least one, even if it takes more than its share.  (A small
 * pile has one task, and does not know its memory.) */
static unsigned hands_for(const struct tasks *tasks, const struct built_hands *hands,
                          const struct pile *pile, unsigned threads)
{
    uint64_t allowed = pile->memory_nbytes / 2 / (hands->solve_nbytes + 1);
    uint64_t n = threads < allowed ? threads : allowed;
    n = n < tasks->ntasks ? n : tasks->ntasks;
    return n < 1 ? 1 : n < THREADS_MOST ? (unsigned)n : THREADS_MOST;
}

static void end_hand(const struct tasks *tasks, const struct built_hands *hands,
                     const struct perhaps_allocator *allocator, void *hand)
{
    hands->end(tasks->context, hand, allocator);
    release(allocator, hand, hands->hand_nbytes);
}

/* Returns a hand with its memory, or NULL if there is not enough. */
static void *begin_hand(const struct tasks *tasks, const struct built_hands *hands,
                        const struct perhaps_allocator *allocator)
{
    void *hand = allocate(allocator, hands->hand_nbytes);
    if (!hand || hands->begin(tasks->context, hand, allocator))
        return hand;
    end_hand(tasks, hands, allocator, hand);
    return NULL;
}

/* Where there is no memory for all hands, fewer do the work. */
int built_run(const struct tasks *tasks, const struct built_hands *hands,
              const struct pile *pile, unsigned threads)
{
    const struct perhaps_allocator *allocator = &pile->options.allocator;
    unsigned count = 0, wanted = hands_for(tasks, hands, pile, threads);
    void *hand[THREADS_MOST];
    while (count < wanted && (hand[count] = begin_hand(tasks, hands, allocator)))
        count++;
    int error = count ? tasks_run(tasks, hand, count) : PERHAPS_ERR_MEMORY;
    while (count--)
        end_hand(tasks, hands, allocator, hand[count]);
    return error;
}
