/* history.h - records what threads did to a multiset and what they were told, and checks
 * whether that is linearizable: whether the same answers could have come if the calls had been
 * made one after the other, in some order that agrees with the times of the calls. */
#ifndef HISTORY_H
#define HISTORY_H

#include <stdbool.h>
#include <stdint.h>

/* Small numbers, since the search tries all orders of the events. */
enum { HISTORY_THREADS = 3, HISTORY_OPS = 4, HISTORY_KEYS = 3 };

enum history_op { ADD, ADD_UNLESS_PRESENT, REMOVE, CONTAINS };

enum history_answer {
    NO,  /* removal: not found; contains: absent; unless present: it was absent, and added */
    YES, /* removed; found; unless present: it was there; add: done */
    REFUSED, /* an add of either sort, for which there was no room: changes nothing */
};

struct history_event {
    enum history_op op;
    unsigned key;
    enum history_answer answer;
    uint64_t invoked;  /* when the call began; all moments are different numbers */
    uint64_t returned; /* when it returned */
};

struct history {
    unsigned count[HISTORY_THREADS];                          /* events of each thread */
    struct history_event event[HISTORY_THREADS][HISTORY_OPS]; /* of each thread, in order */
    unsigned before[HISTORY_KEYS];                            /* copies at the beginning */
    unsigned after[HISTORY_KEYS];                             /* copies at the end */
};

/* Returns whether there is an order of all events in which each event takes effect between its
 * invocation and its return and gets the answer of a multiset, and which leads from 'before' to
 * 'after'. */
bool history_is_linearizable(const struct history *history);

#endif
