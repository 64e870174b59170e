/* history.c - exhaustive search for an explanation (Wing and Gong: Testing and Verifying
 * Concurrent Objects, JPDC 1993).  Answers tell what each event changes, so what is in depends
 * only on how many events of each thread have had their turn: that is all to remember. */
#include "history.h"

#include <string.h>

/* How many events of each thread have had their turn. */
struct turn {
    unsigned at[HISTORY_THREADS];
};

struct search {
    const struct history *history;
    bool seen[HISTORY_OPS + 1][HISTORY_OPS + 1][HISTORY_OPS + 1];
};

/* Whether a multiset with so many copies of the key can answer like this; if so, makes *copies
 * what it has then. */
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

/* An event may be next unless another that has not had its turn had ended before it began. */
static bool may_be_next(const struct history *h, const struct turn *turn, unsigned thread)
{
    const struct history_event *e = &h->event[thread][turn->at[thread]];
    for (unsigned t = 0; t < HISTORY_THREADS; t++)
        if (turn->at[t] < h->count[t] && h->event[t][turn->at[t]].returned < e->invoked)
            return false;
    return true;
}

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
