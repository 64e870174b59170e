/* request.h - the filter that the command line asks for, and what the library knows of it. */
#ifndef REQUEST_H
#define REQUEST_H

#include <perhaps.h>

#include "options.h"

/* How many keys it must hold. */
struct size {
    uint64_t capacity; /* or begins with, if it grows */
    bool grows;
};

/* Where nothing is known: a few hundred KB. */
#define CAPACITY_TO_BEGIN_WITH 65536

bool request_window(const struct settings *settings);

/* Whether it can begin small: no kind is named, or one that grows. */
bool request_may_grow(const struct settings *settings);

/* What the options say of its size, for which no input need be read: 0 keys if nothing. */
struct size request_size(const struct settings *settings);

/* The options for it, but for its hash. */
struct perhaps_options request_options(const struct settings *settings, struct size size);

/* The same, and its plan.  An option that the kind would not heed
 * (--factor where there are no layers) is an error; with no --kind it chooses one that heeds
 * it.  Returns 0, or the exit status, having complained about 'name'. */
int request_plan(const struct settings *settings, struct size size, const char *name,
                 struct perhaps_options *options, struct perhaps_plan *plan);

/* Whether the kind of that name has the abilities by itself. */
bool kind_can(const char *name, unsigned abilities);

/* false, setting *value to 0, if the kind has no such field in its geometry. */
bool planned_field(const struct perhaps_plan *plan, const char *name, uint64_t *value);

#endif
