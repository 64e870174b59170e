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
    bool *is_refused;  /* for each item */
    size_t done;       /* how many were tried; the first refused one may be the last */
    size_t changed;    /* how many have changed something */
    int error;         /* that the last refused one met; 0: none was refused */
    struct perhaps_key *items;
    RedisModuleString **changing; /* the words that changed something */
    void *memory;                 /* where these lie */
    char room[1024];              /* the same for few items */
};

/* Prepares to add these words; add_end() must follow.  Returns false, having replied with an
 * error, if there is too little memory. */
bool add_begin(RedisModuleCtx *ctx, struct adding *a, RedisModuleString **words, size_t n);

/* How to add. */
struct manner {
    bool unless_present;
    bool goes_on;      /* after a refused item, with the next; else that ends it */
    const char *event; /* that tells listeners of the keyspace */
};

/* Adds the items to an open filter.  A window is moved on to the present first, and that is
 * replicated; a command that is replayed does not: its time has been replicated before it. */
void add_run(RedisModuleCtx *ctx, struct opened *o, struct adding *a, const struct manner *m);

/* Does all of that, and what add_replicate() does, for a command that adds this one item to a
 * filter which is there and is no window.  Returns the error that refused it, or 0. */
int add_single(RedisModuleCtx *ctx, const struct opened *o, const RedisModuleString *word,
               const struct manner *m, bool *was_present);

/* Replicates what changed something, and tells listeners.  'insert': the command is an INSERT,
 * and takes items behind its options.  'created': the filter was made by this command. */
void add_replicate(RedisModuleCtx *ctx, const struct opened *o, const struct adding *a,
                   RedisModuleString **argv, bool insert, bool created, const struct manner *m);
void add_end(struct adding *a);

/* Answers for each word whether it is perhaps there; of a missing key, or one of another type,
 * no.  'many' replies with an array. */
int ask(RedisModuleCtx *ctx, RedisModuleString **argv, int argc, enum family family, bool many);

#endif
