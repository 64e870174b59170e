/* history.c - searches for an order of the events that explains their answers, by trying all
 * orders (Wing and Gong: Testing and Verifying Concurrent Objects, JPDC 1993).  The answer of
 * an event tells what the event changed.  So the keys that are in depend only on how many
 * events of each thread came before, and the search need not try such a state twice. */
#include "history.h"

#include <string.h>

/* How many events of each thread the order has so far. */
struct turn {
    unsigned at[HISTORY_THREADS];
};

struct search {
    const struct history *history;
    bool seen[HISTORY_OPS + 1][HISTORY_OPS + 1][HISTORY_OPS + 1]; /* states that were tried */
};

/* Returns whether a multiset that holds *copies copies of the key can give this answer.  If so,
 * changes *copies to the number after the event. */
static bool explains(const struct history_event *e, unsigned *copies)
{
    if (e->answer == REFUSED)
        return e->op == ADD || (e->op == ADD_UNLESS_PRESENT && *copies == 0);
    switch (e->op) {
    case ADD:
        ++*copies;
        return true;
    case ADD_UNLESS_PRESENT:
        if (e->answer == YES)
            return *copies > 0;
        return ++*copies == 1;
    case REMOVE:
        if (e->answer == NO)
            return *copies == 0;
        return (*copies)-- > 0;
    case CONTAINS:
        return (e->answer == YES) == (*copies > 0);
    }
    return false;
}

/* Returns whether the next event of this thread can come next in the order: no event that is
 * still missing had returned before this one was invoked. */
static bool may_be_next(const struct history *h, const struct turn *turn, unsigned thread)
{
    const struct history_event *e = &h->event[thread][turn->at[thread]];
    for (unsigned t = 0; t < HISTORY_THREADS; t++)
        if (turn->at[t] < h->count[t] && h->event[t][turn->at[t]].returned < e->invoked)
            return false;
    return true;
}

/* Returns whether the events that are missing can be put in an order that leads to 'after'. */
static bool can_end(struct search *s, const struct turn *turn, const unsigned copies[])
{
    const struct history *h = s->history;
    bool *seen = &s->seen[turn->at[0]][turn->at[1]][turn->at[2]];
    bool over = true;
    if (*seen)
        return false;
    *seen = true;
    for (unsigned t = 0; t < HISTORY_THREADS; t++) {
        if (turn->at[t] == h->count[t])
            continue;
        over = false;
        const struct history_event *e = &h->event[t][turn->at[t]];
        unsigned then[HISTORY_KEYS];
        struct turn next = *turn;
        memcpy(then, copies, sizeof then);
        next.at[t]++;
        if (may_be_next(h, turn, t) && explains(e, &then[e->key]) && can_end(s, &next, then))
            return true;
    }
    return over && !memcmp(copies, h->after, sizeof h->after);
}

bool history_is_linearizable(const struct history *history)
{
    struct search s = { .history = history };
    struct turn none = { { 0 } };
    return can_end(&s, &none, history->before);
}
