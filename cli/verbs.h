/* verbs.h - what the program can be told to do.  Each verb is a file; main.c has the table. */
#ifndef VERBS_H
#define VERBS_H

#include <stdbool.h>
#include <stddef.h>

struct settings;

/* Sets of verbs, by which the options say where they belong. */
enum verb_bit {
    BUILD = 1,
    ADD = 2,
    REMOVE = 4,
    QUERY = 8,
    DEDUP = 16,
    INFO = 32,
    PLAN = 64,
    MERGE = 128,
    VERIFY = 256,
    COUNT = 512,
    CREATE = 1024,
    DELETE = 2048,
    CONVERT = 4096,
};

struct verb {
    unsigned bit;
    bool takes_filter; /* the first operand is a filter */
    bool takes_inputs; /* further operands are allowed */
    const char *name;
    int (*run)(const struct settings *settings); /* returns the exit status */
    const char *usage;                           /* what follows the name */
    const char *summary;
    const char *notes; /* more for 'perhaps help VERB', or NULL */
};

/* From 0 on; NULL: there are fewer. */
const struct verb *verb_at(size_t number);

int verb_create(const struct settings *settings);
int verb_build(const struct settings *settings);
int verb_add(const struct settings *settings);
int verb_remove(const struct settings *settings);
int verb_query(const struct settings *settings);
int verb_count(const struct settings *settings);
int verb_dedup(const struct settings *settings);
int verb_info(const struct settings *settings);
int verb_plan(const struct settings *settings);
int verb_merge(const struct settings *settings);
int verb_verify(const struct settings *settings);
int verb_convert(const struct settings *settings);
int verb_delete(const struct settings *settings);

#endif
