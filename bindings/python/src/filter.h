/* filter.h - perhaps.Filter. */
#ifndef FILTER_H
#define FILTER_H

#include "gate.h"
#include "keys.h"
#include "source.h"

struct filter {
    PyObject_HEAD perhaps_filter *filter; /* NULL: it was closed */
    struct gate gate;
    enum key_form form;
};

extern PyTypeObject *filter_type; /* which filter_make() makes */

/* Makes an object of a filter, which it releases later; or releases it at once, and returns
 * NULL with an exception set. */
PyObject *filter_wrap(perhaps_filter *filter);

/* Returns the filter behind an object; or NULL if it is of another type. */
struct filter *filter_behind(PyObject *object);

/* Returns the filter of an object; or raises ValueError because it was closed, and returns
 * NULL. */
perhaps_filter *filter_open(const struct filter *self);

/* Returns the filter for a call that keeps the GIL, after waiting for batches that it would
 * meet; or raises ValueError because it was closed, and returns NULL. */
perhaps_filter *filter_wait(struct filter *self, enum use use);

static inline perhaps_filter *filter_now(struct filter *self, enum use use)
{
    bool ready = self->filter && !gate_is_closed(&self->gate, use);
    return ready ? self->filter : filter_wait(self, use);
}

/* The same for a call that gives the GIL away until filter_leave(). */
perhaps_filter *filter_enter(struct filter *self, enum use use);

static inline void filter_leave(struct filter *self, enum use use)
{
    gate_leave(&self->gate, use);
}

/* Makes the type and adds it to the module (type.c).  Returns whether it could. */
bool filter_make(PyObject *module);

/* Methods for one key (one.c), for many keys (batch.c), for files and bytes (files.c), and for
 * whole filters (sets.c). */
int filter_contains(PyObject *self, PyObject *key);
PyObject *filter_add(PyObject *self, PyObject *key);
PyObject *filter_add_new(PyObject *self, PyObject *key);
PyObject *filter_remove(PyObject *self, PyObject *key);
PyObject *filter_count(PyObject *self, PyObject *key);
PyObject *filter_get(PyObject *self, PyObject *args);
PyObject *filter_add_many(PyObject *self, PyObject *keys);
PyObject *filter_add_new_many(PyObject *self, PyObject *keys);
PyObject *filter_contains_many(PyObject *self, PyObject *keys);
PyObject *filter_remove_many(PyObject *self, PyObject *keys);
PyObject *filter_count_many(PyObject *self, PyObject *keys);
PyObject *filter_get_many(PyObject *self, PyObject *keys);
PyObject *filter_save(PyObject *self, PyObject *args, PyObject *kwargs);
PyObject *filter_bytes(PyObject *self, PyObject *unused);
PyObject *filter_from_bytes(PyObject *type, PyObject *args, PyObject *kwargs);
PyObject *filter_reduce(PyObject *self, PyObject *unused);
PyObject *filter_sync(PyObject *self, PyObject *unused);
PyObject *filter_verify(PyObject *self, PyObject *unused);
PyObject *filter_like(PyObject *model);
PyObject *filter_digest(PyObject *self, PyObject *unused);
PyObject *filter_copy(PyObject *self, PyObject *unused);
PyObject *filter_shrink(PyObject *self, PyObject *args, PyObject *kwargs);
PyObject *filter_unite(PyObject *self, PyObject *with);
PyObject *filter_union(PyObject *a, PyObject *b);
PyObject *filter_keep_common(PyObject *self, PyObject *with);
PyObject *filter_intersection(PyObject *a, PyObject *b);
PyObject *filter_compare(PyObject *a, PyObject *b, int operation);
PyObject *module_open(PyObject *module, PyObject *args, PyObject *kwargs);

/* perhaps.Stats and perhaps.Plan (stats.c). */
bool stats_make(PyObject *module);
PyObject *stats_of(const struct perhaps_stats *stats, unsigned abilities);
PyObject *plan_of(const struct perhaps_plan *plan);
PyObject *module_plan(PyObject *module, PyObject *args, PyObject *kwargs);

/* perhaps.Builder (build.c). */
bool builder_make(PyObject *module);

#endif
