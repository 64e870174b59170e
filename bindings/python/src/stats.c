/* stats.c - perhaps.Stats and perhaps.Plan: tuples whose items have names. */
#include "errors.h"
#include "filter.h"
#include "options.h"
#include <perhaps_plan.h>

static PyTypeObject *stats_type, *plan_type;

static PyStructSequence_Field plan_fields[] = {
    { "kind", "its name" },
    { "base", "chain, window, against: the kind of their parts; else None" },
    { "capacity", "how many keys it is for" },
    { "fpr", "the rate that was asked for" },
    { "fpr_predicted", "the rate with 'capacity' keys, in expectation" },
    { "body_nbytes", "what it takes, in memory and in a file" },
    { "bits_per_key", "at capacity" },
    { "why", "why this kind and this size, in one line" },
    { NULL, NULL },
};

static PyStructSequence_Field stats_fields[] = {
    { "kind", "its name" },
    { "base", "chain, window, against: the kind of their parts; else None" },
    { "capacity", "how many keys it is for" },
    { "keys", "how many are in: adds that found a key to be new" },
    { "keys_different", "how many were added: those that seemed to be there, too" },
    { "fpr", "the rate that was asked for" },
    { "fpr_now", "the rate from what is in it now" },
    { "load", "the share of bits or slots in use, 0 to 1" },
    { "memory_nbytes", "what it takes" },
    { "bits_per_key", "of this memory, for each key that is in" },
    { "parts", "layers of a chain, generations of a window, 2 of against; else 0" },
    { "hash", "'xxh3-64', 'sip', ..." },
    { "shared", "whether several threads can add at once" },
    { "mapped", "whether it is mapped from a file" },
    { "failed_adds", "adds that raised FullError" },
    { "unmatched_removals", "removals that raised NotFoundError" },
    { "removes",
      "whether keys can be removed; if not, a key that comes again changes nothing" },
    { "counts", "whether it tells how often a key was added" },
    { NULL, NULL },
};

static PyStructSequence_Desc plan_description = {
    .name = "perhaps.Plan",
    .doc = "What a filter would be: perhaps.plan().",
    .fields = plan_fields,
    .n_in_sequence = sizeof plan_fields / sizeof *plan_fields - 1,
};

static PyStructSequence_Desc stats_description = {
    .name = "perhaps.Stats",
    .doc = "What a filter is now: Filter.stats().",
    .fields = stats_fields,
    .n_in_sequence = sizeof stats_fields / sizeof *stats_fields - 1,
};

/* Makes the object of values, each of which is a new reference or NULL after an error. */
static PyObject *fill_tuple(PyTypeObject *type, PyObject *const values[], Py_ssize_t count)
{
    PyObject *object = PyStructSequence_New(type);
    for (Py_ssize_t i = 0; i < count; i++)
        if (object)
            PyStructSequence_SetItem(object, i, values[i] ? values[i] : Py_NewRef(Py_None));
        else
            Py_XDECREF(values[i]);
    if (PyErr_Occurred())
        Py_CLEAR(object);
    return object;
}

static PyObject *name_or_none(const char *name)
{
    return name ? PyUnicode_FromString(name) : Py_NewRef(Py_None);
}

PyObject *plan_of(const struct perhaps_plan *plan)
{
    PyObject *const values[] = {
        PyUnicode_FromString(plan->kind),
        name_or_none(plan->base),
        PyLong_FromUnsignedLongLong(plan->capacity),
        PyFloat_FromDouble(plan->fpr),
        PyFloat_FromDouble(plan->fpr_predicted),
        PyLong_FromUnsignedLongLong(plan->body_nbytes),
        PyFloat_FromDouble(plan->bits_per_key),
        PyUnicode_FromString(plan->why),
    };
    return fill_tuple(plan_type, values, sizeof values / sizeof *values);
}

PyObject *stats_of(const struct perhaps_stats *stats, unsigned abilities)
{
    PyObject *const values[] = {
        PyUnicode_FromString(stats->plan.kind),
        name_or_none(stats->plan.base),
        PyLong_FromUnsignedLongLong(stats->plan.capacity),
        PyLong_FromUnsignedLongLong(stats->keys),
        PyLong_FromUnsignedLongLong(stats->keys_different),
        PyFloat_FromDouble(stats->plan.fpr),
        PyFloat_FromDouble(stats->fpr_now),
        PyFloat_FromDouble(stats->load),
        PyLong_FromUnsignedLongLong(stats->memory_nbytes),
        PyFloat_FromDouble(stats->bits_per_key),
        PyLong_FromUnsignedLongLong(stats->parts),
        PyUnicode_FromString(stats->hash),
        PyBool_FromLong(stats->shared),
        PyBool_FromLong(stats->mapped),
        PyLong_FromUnsignedLongLong(stats->failed_adds),
        PyLong_FromUnsignedLongLong(stats->unmatched_removals),
        PyBool_FromLong(abilities & PERHAPS_CAN_REMOVE),
        PyBool_FromLong(abilities & PERHAPS_CAN_COUNT),
    };
    return fill_tuple(stats_type, values, sizeof values / sizeof *values);
}

PyObject *module_plan(PyObject *module, PyObject *args, PyObject *kwargs)
{
    struct wishes wishes;
    struct perhaps_plan plan;
    (void)module;
    if (!options_take(args, kwargs, ASKER_PLAN, &wishes))
        return NULL;
    PyThreadState *thread = PyEval_SaveThread();
    int error = perhaps_plan_for(&wishes.options, &plan);
    PyEval_RestoreThread(thread);
    return error ? raise_error(error, NULL) : plan_of(&plan);
}

bool stats_make(PyObject *module)
{
    plan_type = PyStructSequence_NewType(&plan_description);
    stats_type = PyStructSequence_NewType(&stats_description);
    return plan_type && stats_type &&
           !PyModule_AddObjectRef(module, "Plan", (PyObject *)plan_type) &&
           !PyModule_AddObjectRef(module, "Stats", (PyObject *)stats_type);
}
