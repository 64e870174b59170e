/* items.h - items on their way into filters, and questions. */
#ifndef ITEMS_H
#define ITEMS_H

#include "keys.h"

/* Items on their way into a filter, and what became of them. */
struct adding {
    RedisModuleString **words;
    size_t n;
    bool *was_present; /* for each item: see add() of struct form */
    bool *is_change;   /* for each item: it has changed the filter */
    size_t done;       /* so many were added, or were there */
    size_t changed;    /* so many changed something */
    int error;         /* that the next one met; 0: none */
    struct perhaps_key *items;
    RedisModuleString **changing; /* the words that changed something */
    void *memory;                 /* where these lie */
    char room[1024];              /* the same for few items */
};

/* Prepares to add these words; add_end() must follow.  Returns false, having replied with an error,
 * if there is too little memory. */
bool add_begin(RedisModuleCtx *ctx, struct adding *a, RedisModuleString **words, size_t n);

/* Adds the items to an open filter.  A window is moved on to the present first, and that is
 * replicated; a command that is replayed does not: its time has been replicated before it. */
void add_run(RedisModuleCtx *ctx, struct opened *o, struct adding *a, bool unless_present);

/* Replicates what changed something as "argv[0] key [word] items", and tells listeners.  'word'
 * may be NULL: "NOCREATE" makes INSERT take only items.  'created': the filter was made by this
 * command. */
void add_replicate(RedisModuleCtx *ctx, const struct opened *o, const struct adding *a,
                   RedisModuleString **argv, const char *insert, bool created,
                   const char *event);
void add_end(struct adding *a);

/* Answers for each word whether it is perhaps there; of a missing key, or one of another type, no.
 * 'many' replies with an array. */
int ask(RedisModuleCtx *ctx, RedisModuleString **argv, int argc, enum family family, bool many);

#endif
