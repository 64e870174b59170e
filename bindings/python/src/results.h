/* results.h - perhaps.Array: a result for each key, in memory that others can use by the buffer
 * protocol. */
#ifndef RESULTS_H
#define RESULTS_H

#include "python.h"

enum result_type { RESULT_BOOL, RESULT_UINT64, RESULT_UINT32 };

struct results {
    PyObject_HEAD void *items;
    Py_ssize_t count, room;
    Py_ssize_t item_nbytes;
    enum result_type type;
};

/* Makes the type and adds it to the module.  Returns whether it could. */
bool results_make(PyObject *module);

/* The same, of what the module 'perhaps._perhaps' has made. */
bool results_import(void);

/* Makes an array without results.  Returns NULL with an exception set. */
struct results *results_new(enum result_type type);

/* Makes it have 'count' results, at least 'room' of which fit without a copy.  Nobody else may
 * have it yet. */
bool results_resize(struct results *results, size_t count, size_t room);

/* Returns where a result lies, or NULL if there is no memory yet, or no array at all. */
static inline void *results_at(const struct results *results, size_t index)
{
    char *items = results ? (char *)results->items : NULL;
    return items ? items + index * (size_t)results->item_nbytes : NULL;
}

#endif
