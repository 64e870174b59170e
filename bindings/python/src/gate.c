/* gate.c - who may use a filter now. */
#include "gate.h"

#include <pthread.h>

#define BIT(use) (1U << (use))

/* What the threads part of perhaps.h allows for filters that are not shared, and for shared
 * ones. */
const unsigned gate_conflicts[2][USE_COUNT] = {
    {
        [USE_ASK] = BIT(USE_ADD) | BIT(USE_CHANGE),
        [USE_ADD] = BIT(USE_ASK) | BIT(USE_ADD) | BIT(USE_WHOLE) | BIT(USE_CHANGE),
        [USE_WHOLE] = BIT(USE_ADD) | BIT(USE_CHANGE),
        [USE_CHANGE] = BIT(USE_ASK) | BIT(USE_ADD) | BIT(USE_WHOLE) | BIT(USE_CHANGE),
    },
    {
        [USE_ASK] = BIT(USE_CHANGE),
        [USE_ADD] = BIT(USE_WHOLE) | BIT(USE_CHANGE),
        [USE_WHOLE] = BIT(USE_ADD) | BIT(USE_CHANGE),
        [USE_CHANGE] = BIT(USE_ASK) | BIT(USE_ADD) | BIT(USE_WHOLE) | BIT(USE_CHANGE),
    },
};

struct waiter {
    enum use use;
    struct waiter *next;
};

/* Waiting is rare: one condition serves all gates.  'changes' is written with the GIL and the
 * mutex held. */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static uint64_t changes;

static void wait_for_change(void)
{
    uint64_t seen = changes;
    PyThreadState *thread = PyEval_SaveThread();
    pthread_mutex_lock(&mutex);
    while (changes == seen)
        pthread_cond_wait(&changed, &mutex);
    pthread_mutex_unlock(&mutex);
    PyEval_RestoreThread(thread);
}

static void tell_change(void)
{
    pthread_mutex_lock(&mutex);
    changes++;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&mutex);
}

/* Whether the use must wait for what runs, or for one who has waited longer. */
static bool must_wait(const struct gate *gate, const struct waiter *self)
{
    unsigned conflicts = gate_conflicts[gate->shared][self->use];
    bool wait = gate->running & conflicts;
    for (const struct waiter *w = gate->first; w != self && !wait; w = w->next)
        wait = BIT(w->use) & conflicts;
    return wait;
}

static void queue_add(struct gate *gate, struct waiter *self)
{
    if (gate->last)
        gate->last->next = self;
    else
        gate->first = self;
    gate->last = self;
}

static void queue_take(struct gate *gate, const struct waiter *self)
{
    struct waiter **link = &gate->first, *before = NULL;
    while (*link != self) {
        before = *link;
        link = &before->next;
    }
    *link = self->next;
    if (gate->last == self)
        gate->last = before;
}

void gate_wait(struct gate *gate, enum use use)
{
    struct waiter self = { use, NULL };
    queue_add(gate, &self);
    while (must_wait(gate, &self))
        wait_for_change();
    queue_take(gate, &self);
    if (gate->first) /* others may have waited for this one alone */
        tell_change();
}

void gate_enter(struct gate *gate, enum use use)
{
    if (gate->first || gate_is_closed(gate, use))
        gate_wait(gate, use);
    gate->nrunning[use]++;
    gate->running |= BIT(use);
}

void gate_leave(struct gate *gate, enum use use)
{
    if (--gate->nrunning[use] == 0)
        gate->running &= ~BIT(use);
    if (gate->first)
        tell_change();
}
