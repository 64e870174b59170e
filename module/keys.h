/* keys.h - keys of the server that hold filters. */
#ifndef KEYS_H
#define KEYS_H

#include "form.h"

enum found { KEY_MISSING, KEY_OTHER, KEY_INCOMPLETE, KEY_FOUND }; /* OTHER: of another type */

struct opened {
    RedisModuleKey *key;     /* to be closed by key_close() */
    RedisModuleString *name; /* of the key */
    struct form *form;       /* NULL unless there is a filter */
    void *filter;
    enum found found;
};

/* Opens a key in MODE_READ or MODE_WRITE and looks for a filter of this family. */
struct opened key_open(RedisModuleCtx *ctx, RedisModuleString *name, int mode,
                       enum family family);
void key_close(const struct opened *o);

/* Replies with an error for a key that is not KEY_FOUND; 'missing' is that for a missing one.
 * Returns whether it replied. */
bool key_refused(RedisModuleCtx *ctx, const struct opened *o, const char *missing);

/* Puts a filter that was made into a key, and counts it (types.c). */
void key_set(struct opened *o, struct form *form, void *filter);

/* Tells the server that a command has changed a key, which matters to WATCH and to clients that
 * keep copies, and those who listen to the keyspace: event "bf.add". */
void key_changed(RedisModuleCtx *ctx, const struct opened *o, const char *event);

/* What happened, for INFO. */
struct tally {
    unsigned long long filters, adds, questions, positives, refusals;
};
extern struct tally tally;

#endif
