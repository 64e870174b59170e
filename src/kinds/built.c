/* built.c - runs the threads of kinds that are built once. */
#include "built.h"

#include "../base/memory.h"

/* Returns how many hands to take: at least one, even if it takes more than its share. */
static unsigned hands_for(const struct tasks *tasks, const struct built_hands *hands,
                          const struct pile *pile, unsigned threads)
{
    uint64_t allowed = pile->options.memory_nbytes / 2 / (hands->solve_nbytes + 1);
    uint64_t n = threads < allowed ? threads : allowed;
    n = n < tasks->ntasks ? n : tasks->ntasks;
    return n < 1 ? 1 : n < THREADS_MOST ? (unsigned)n : THREADS_MOST;
}

int built_run(const struct tasks *tasks, const struct built_hands *hands,
              const struct pile *pile, unsigned threads)
{
    const struct perhaps_allocator *allocator = &pile->options.allocator;
    unsigned count = 0, wanted = hands_for(tasks, hands, pile, threads);
    void *hand[THREADS_MOST];
    int error = 0;
    while (count < wanted && !error) {
        void *one = hand[count] = allocate(allocator, hands->hand_nbytes);
        count += one != NULL;
        error = one && hands->begin(tasks->context, one, allocator) ? 0 : PERHAPS_ERR_MEMORY;
    }
    if (!error)
        error = tasks_run(tasks, hand, count);
    while (count--) {
        hands->end(tasks->context, hand[count], allocator);
        release(allocator, hand[count], hands->hand_nbytes);
    }
    return error;
}
