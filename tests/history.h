/* history.h - what threads did to a multiset and were told, and whether that can be explained:
 * by some order, one after the other, that no thread could tell from what it saw. */
#ifndef HISTORY_H
#define HISTORY_H

#include <stdbool.h>
#include <stdint.h>

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
    uint64_t invoked; /* moments, all different */
    uint64_t returned;
};

struct history {
    unsigned count[HISTORY_THREADS];
    struct history_event event[HISTORY_THREADS][HISTORY_OPS]; /* of a thread, in order */
    unsigned before[HISTORY_KEYS];                            /* copies at the beginning */
    unsigned after[HISTORY_KEYS];                             /* and at the end */
};

/* Whether there is an order of all events, in which each comes between its invocation and its
 * return and is answered as a multiset answers, and which leads from 'before' to 'after'. */
bool history_is_linearizable(const struct history *history);

#endif
