/* pipeline.c - threads that move blocks through stages.
 *
 * A thread that is free takes the block that is worth most, moves it through its next stage,
 * and looks again.  No thread waits while it holds a block: a block whose turn has not come is
 * left to a thread that is free when it comes.
 *
 * A stage in order is worth most, since the other threads may have to wait for it.  Among
 * stages of the same sort the later one is worth more; reading is worth least.  So a line that
 * somebody types is answered before the next line is waited for, and one thread alone needs
 * only one block.
 *
 * Invariant, while the lock is free: turn[s] is the number of blocks that have left stage s, if
 * that is in order; so it is also the ticket of the next block that may enter it. */
#include "input.h"

#include <pthread.h>
#include <stdlib.h>

#include "../base/stop.h"

/* One run.  Lives on the stack of pipeline_run(), which joins all helpers before it returns. */
struct pipeline {
    const struct stage *stages;
    size_t nstages;
    struct block *blocks;
    size_t nblocks;

    size_t nthreads;
    pthread_t *helper; /* threads beside the one that called; there are nhelpers */

    pthread_mutex_t lock;   /* of all below, and of what is the pipeline's in the blocks */
    pthread_cond_t changed; /* there may be something to do, or all is done */
    size_t nhelpers, nwaiting, nbusy;
    bool reading;              /* a thread is in the first stage */
    uint64_t turn[STAGES_MAX]; /* the ticket whose turn it is at each stage in order */
    uint64_t last;             /* blocks with a later ticket are not wanted */
};

static void *work_on_blocks(void *pipeline);

/* ---- What to do next --------------------------------------------------------------- */

/* Returns whether a thread may move this block through its next stage now. */
static bool can_go_on(const struct pipeline *p, const struct block *block)
{
    return block->state == READY && block->ticket <= p->last &&
           (!p->stages[block->stage].in_order || p->turn[block->stage] == block->ticket);
}

/* Returns how urgent the next stage of the block is. */
static size_t worth(const struct pipeline *p, const struct block *block)
{
    return block->stage + (p->stages[block->stage].in_order ? p->nstages : 0);
}

/* Returns the block that is worth most, or else an empty block to read into; NULL if there is
 * nothing to do at the moment. */
static struct block *choose_block(const struct pipeline *p)
{
    bool may_read = !p->reading && p->turn[0] <= p->last;
    struct block *best = NULL, *empty = NULL;
    for (size_t i = 0; i < p->nblocks; i++) {
        struct block *block = &p->blocks[i];
        if (can_go_on(p, block) && (!best || worth(p, block) > worth(p, best)))
            best = block;
        if (block->state == IDLE && may_read && !empty)
            empty = block;
    }
    return best ? best : empty;
}

/* Starts a thread.  Its stack is larger than the stages need, but takes less of a limit of
 * addresses (ulimit -v) than the 8 MiB that are usual.  Returns false if it cannot. */
static bool start_helper(struct pipeline *p, pthread_t *helper)
{
    const size_t stack_nbytes = (size_t)1 << 20;
    pthread_attr_t how;
    if (pthread_attr_init(&how) != 0)
        return false;
    (void)pthread_attr_setstacksize(&how, stack_nbytes);
    bool started = pthread_create(helper, &how, work_on_blocks, p) == 0;
    pthread_attr_destroy(&how);
    return started;
}

/* If there is more to do, wakes a thread that waits or starts a new one.  So a short input
 * starts no threads, whatever -j says.  If a thread cannot be started, the work only takes
 * longer. */
static void call_another(struct pipeline *p)
{
    if (!choose_block(p))
        return;
    if (p->nwaiting)
        pthread_cond_signal(&p->changed);
    else if (p->nhelpers + 1 < p->nthreads && start_helper(p, &p->helper[p->nhelpers]))
        p->nhelpers++;
}

/* Takes the block for this thread.  An empty block gets the next ticket. */
static void claim_block(struct pipeline *p, struct block *block)
{
    if (block->state == IDLE) {
        block->stage = 0;
        block->ticket = p->turn[0];
        p->reading = true;
    }
    block->state = BUSY;
    p->nbusy++;
    call_another(p);
}

/* Waits for something to do, and takes it.  Returns NULL if nothing will come any more, since
 * no thread has a block that could make work for others. */
static struct block *take_next(struct pipeline *p)
{
    struct block *block;
    while (!(block = choose_block(p)) && p->nbusy) {
        p->nwaiting++;
        pthread_cond_wait(&p->changed, &p->lock);
        p->nwaiting--;
    }
    if (block)
        claim_block(p, block);
    else
        pthread_cond_broadcast(&p->changed);
    return block;
}

/* ---- Doing it ---------------------------------------------------------------------- */

/* Moves the block through its next stage.  If that needs no order, moves it also through the
 * stages behind it that need none, because the block is now in the cache of this core.  Returns
 * false if one of them did. */
static bool pass_block(const struct pipeline *p, struct block *block)
{
    const struct stage *stage = &p->stages[block->stage], *end = p->stages + p->nstages;
    bool more = stage->run(stage->context, block);
    if (!stage->in_order)
        for (; stage + 1 < end && !stage[1].in_order; stage++)
            more = stage[1].run(stage[1].context, block) && more;
    block->stage = (size_t)(stage + 1 - p->stages);
    return more;
}

/* Gives the block back after the stages from 'began_at' on, and lets the next block enter that
 * stage.  If a stage returned false (not 'more'), blocks behind this one are not wanted any
 * more. */
static void put_back(struct pipeline *p, struct block *block, size_t began_at, bool more)
{
    p->nbusy--;
    if (p->stages[began_at].in_order)
        p->turn[began_at]++;
    if (began_at == 0)
        p->reading = false;
    block->state = block->stage < p->nstages ? READY : IDLE;
    if (more || block->ticket > p->last)
        return;
    p->last = block->ticket;
    if (p->reading)
        stop_waiting(); /* wakes a thread that waits for input, which may never come */
}

/* What each thread does: takes blocks until none will come any more.  Holds the lock except
 * while it is in a stage. */
static void *work_on_blocks(void *pipeline)
{
    struct pipeline *p = pipeline;
    struct block *block;
    pthread_mutex_lock(&p->lock);
    while ((block = take_next(p))) {
        size_t began_at = block->stage;
        pthread_mutex_unlock(&p->lock);
        bool more = pass_block(p, block);
        pthread_mutex_lock(&p->lock);
        put_back(p, block, began_at, more);
    }
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

struct block *pipeline_run(const struct stage *stages, size_t nstages, struct block *blocks,
                           size_t nblocks, size_t nthreads)
{
    struct pipeline p = { .stages = stages,
                          .nstages = nstages,
                          .blocks = blocks,
                          .nblocks = nblocks,
                          .helper = calloc(nthreads, sizeof(pthread_t)),
                          .last = UINT64_MAX };
    p.nthreads = p.helper ? nthreads : 1;
    pthread_mutex_init(&p.lock, NULL);
    pthread_cond_init(&p.changed, NULL);
    for (size_t i = 0; i < nblocks; i++) {
        blocks[i].state = IDLE;
        blocks[i].ticket = UINT64_MAX;
    }
    work_on_blocks(&p);
    while (p.nhelpers > 0)
        pthread_join(p.helper[--p.nhelpers], NULL);
    pthread_cond_destroy(&p.changed);
    pthread_mutex_destroy(&p.lock);
    free(p.helper);
    struct block *block = blocks;
    while (block->ticket != p.last)
        block++;
    return block;
}
