/* gate.h - who may use a filter now.
 *
 * A batch runs without the GIL, and so beside other threads.  It enters the gate of its filter
 * before it gives the GIL away, and leaves when it has it back; the gate itself is read and
 * written under the GIL alone.  A call for one key keeps the GIL all the time: it only looks
 * whether a batch is running that it would meet.  Who must wait does so without the GIL, and in
 * the order in which they came. */
#ifndef GATE_H
#define GATE_H

#include "python.h"

enum use {
    USE_ASK,    /* reads */
    USE_ADD,    /* adds and removes keys */
    USE_WHOLE,  /* reads, and needs that nobody adds: saves, copies */
    USE_CHANGE, /* needs the filter for itself */
    USE_COUNT,
};

struct waiter;

struct gate {
    bool shared;      /* the filter takes adds of several threads at once */
    unsigned running; /* set of enum use */
    unsigned nrunning[USE_COUNT];
    struct waiter *first, *last; /* who waits */
};

/* The uses that one use cannot run beside. */
extern const unsigned gate_conflicts[2][USE_COUNT];

static inline bool gate_is_closed(const struct gate *gate, enum use use)
{
    return gate->running & gate_conflicts[gate->shared][use];
}

/* Waits until a use may begin, without the GIL; what else may have changed meanwhile. */
void gate_wait(struct gate *gate, enum use use);

/* Begins a use after waiting for it, and ends it. */
void gate_enter(struct gate *gate, enum use use);
void gate_leave(struct gate *gate, enum use use);

#endif
