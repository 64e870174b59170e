/* words.h - reads the words of a command. */
#ifndef WORDS_H
#define WORDS_H

#include "server.h"
#include <perhaps.h>

/* Returns the bytes of a word as a key of a filter. */
static inline struct perhaps_key word_item(const RedisModuleString *word)
{
    struct perhaps_key item;
    item.bytes = server.StringPtrLen(word, &item.nbytes);
    return item;
}

/* Returns whether a word is this one, in letters of either case. */
bool word_is(const RedisModuleString *word, const char *text);

/* Reads a whole number.  Returns whether it is one, from 'least' to 'most'. */
bool word_number(const RedisModuleString *word, long long least, long long most,
                 long long *value);

/* Reads a number such as 0.01, 1e-3 or inf. */
bool word_real(const RedisModuleString *word, double *value);

/* Reads a duration, such as 500ms, 90s, 15m, 24h, 7d, or 90, which are seconds. */
bool word_duration(const RedisModuleString *word, uint64_t *ms);

#endif
