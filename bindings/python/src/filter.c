/* filter.c - what all methods of perhaps.Filter share: the object of a filter, and who may use
 * it now. */
#include "filter.h"
#include <perhaps_plan.h>

#include <string.h>

PyTypeObject *filter_type;

PyObject *filter_wrap(perhaps_filter *filter)
{
    struct filter *self = PyObject_New(struct filter, filter_type);
    struct perhaps_stats stats;
    if (!self) {
        perhaps_free(filter);
        return NULL;
    }
    perhaps_stats_of(filter, &stats);
    self->filter = filter;
    self->gate = (struct gate){ .shared = stats.shared };
    const bool integers = strcmp(stats.hash, perhaps_hash_name(PERHAPS_HASH_INTEGER)) == 0;
    self->form = integers ? KEYS_INTEGERS : key_form_of(perhaps_note(filter));
    return (PyObject *)self;
}

struct filter *filter_behind(PyObject *object)
{
    return Py_IS_TYPE(object, filter_type) ? (struct filter *)object : NULL;
}

perhaps_filter *filter_open(const struct filter *self)
{
    if (!self->filter)
        PyErr_SetString(PyExc_ValueError, "this filter was closed");
    return self->filter;
}

perhaps_filter *filter_wait(struct filter *self, enum use use)
{
    if (gate_is_closed(&self->gate, use))
        gate_wait(&self->gate, use);
    return filter_open(self);
}

perhaps_filter *filter_enter(struct filter *self, enum use use)
{
    gate_enter(&self->gate, use);
    if (!filter_open(self))
        gate_leave(&self->gate, use);
    return self->filter;
}
