/* A thread that is free takes the batch that is worth most, has it go through its next stage,
 * and looks again.  It never waits with a batch in its hands: a batch whose turn has not come
 * is left to whoever is free when it does.
 *
 * What is in order comes first, since that is what the others may have to wait for; then what
 * is nearest to its end; reading last.  So a line that somebody types is answered before the
 * next one is waited for, and one thread alone needs but one batch. */
#include "pipeline.h"

#include <pthread.h>
#include <stdlib.h>

#include "stop.h"

struct pipeline {
    const struct stage *stages;
    size_t nstages;
    struct batch *batches;
    size_t nbatches;

    size_t nthreads;
    pthread_t *helper; /* beside the thread that called; nhelpers of them */

    pthread_mutex_t lock; /* of all below, and of the pipeline's own in the batches */
    pthread_cond_t changed;
    size_t nhelpers, nwaiting, nbusy;
    bool reading;
    uint64_t turn[STAGES_MAX]; /* the ticket whose turn it is at each stage in order */
    uint64_t last;             /* no later ticket is wanted */
};

static void *work(void *pipeline);

/* ---- What to do next --------------------------------------------------------------- */

static bool can_go_on(const struct pipeline *p, const struct batch *batch)
{
    return batch->state == READY && batch->ticket <= p->last &&
           (!p->stages[batch->stage].in_order || p->turn[batch->stage] == batch->ticket);
}

static size_t worth(const struct pipeline *p, const struct batch *batch)
{
    return batch->stage + (p->stages[batch->stage].in_order ? p->nstages : 0);
}

/* Returns NULL if there is nothing to do at the moment. */
static struct batch *choose(const struct pipeline *p)
{
    bool may_read = !p->reading && p->turn[0] <= p->last;
    struct batch *best = NULL, *empty = NULL;
    for (size_t i = 0; i < p->nbatches; i++) {
        struct batch *batch = &p->batches[i];
        if (can_go_on(p, batch) && (!best || worth(p, batch) > worth(p, best)))
            best = batch;
        if (batch->state == IDLE && may_read && !empty)
            empty = batch;
    }
    return best ? best : empty;
}

/* If there is more to do: wakes somebody, or takes on one more.  So a short input takes no
 * helpers, whatever -j says; and with fewer than were asked it is only slower. */
static void call_another(struct pipeline *p)
{
    if (!choose(p))
        return;
    if (p->nwaiting)
        pthread_cond_signal(&p->changed);
    else if (p->nhelpers + 1 < p->nthreads &&
             pthread_create(&p->helper[p->nhelpers], NULL, work, p) == 0)
        p->nhelpers++;
}

static void take(struct pipeline *p, struct batch *batch)
{
    if (batch->state == IDLE) {
        batch->stage = 0;
        batch->ticket = p->turn[0];
        p->reading = true;
    }
    batch->state = BUSY;
    p->nbusy++;
    call_another(p);
}

/* Waits for something to do.  Returns NULL if nothing will come any more. */
static struct batch *take_next(struct pipeline *p)
{
    struct batch *batch;
    while (!(batch = choose(p)) && p->nbusy) {
        p->nwaiting++;
        pthread_cond_wait(&p->changed, &p->lock);
        p->nwaiting--;
    }
    if (batch)
        take(p, batch);
    else
        pthread_cond_broadcast(&p->changed);
    return batch;
}

/* ---- Doing it ---------------------------------------------------------------------- */

/* Has the batch go through its next stage and, since it is in this core's cache, through those
 * behind it that need not wait for their turn.  Returns false if a stage did. */
static bool go_on(const struct pipeline *p, struct batch *batch)
{
    const struct stage *stage = &p->stages[batch->stage], *end = p->stages + p->nstages;
    bool more = stage->run(stage->context, batch);
    if (!stage->in_order)
        for (; stage + 1 < end && !stage[1].in_order; stage++)
            more = stage[1].run(stage[1].context, batch) && more;
    batch->stage = (size_t)(stage + 1 - p->stages);
    return more;
}

static void put_back(struct pipeline *p, struct batch *batch, size_t began_at, bool more)
{
    p->nbusy--;
    if (p->stages[began_at].in_order)
        p->turn[began_at]++;
    if (began_at == 0)
        p->reading = false;
    batch->state = batch->stage < p->nstages ? READY : IDLE;
    if (more || batch->ticket > p->last)
        return;
    p->last = batch->ticket;
    if (p->reading)
        stop_waiting(); /* for input that is not wanted and may never come */
}

static void *work(void *pipeline)
{
    struct pipeline *p = pipeline;
    struct batch *batch;
    pthread_mutex_lock(&p->lock);
    while ((batch = take_next(p))) {
        size_t began_at = batch->stage;
        pthread_mutex_unlock(&p->lock);
        bool more = go_on(p, batch);
        pthread_mutex_lock(&p->lock);
        put_back(p, batch, began_at, more);
    }
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

struct batch *pipeline_run(const struct stage *stages, size_t nstages, struct batch *batches,
                           size_t nbatches, size_t nthreads)
{
    struct pipeline p = { .stages = stages,
                          .nstages = nstages,
                          .batches = batches,
                          .nbatches = nbatches,
                          .helper = calloc(nthreads, sizeof(pthread_t)),
                          .last = UINT64_MAX };
    p.nthreads = p.helper ? nthreads : 1;
    pthread_mutex_init(&p.lock, NULL);
    pthread_cond_init(&p.changed, NULL);
    for (size_t i = 0; i < nbatches; i++) {
        batches[i].state = IDLE;
        batches[i].ticket = UINT64_MAX;
    }
    work(&p);
    while (p.nhelpers > 0)
        pthread_join(p.helper[--p.nhelpers], NULL);
    pthread_cond_destroy(&p.changed);
    pthread_mutex_destroy(&p.lock);
    free(p.helper);
    struct batch *batch = batches;
    while (batch->ticket != p.last)
        batch++;
    return batch;
}
