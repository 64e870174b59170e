/* sets.c - perhaps.Filter as a set: its copies, and what two filters make together. */
#include "filter.h"
#include <perhaps_embed.h>
#include <perhaps_sets.h>

#include <math.h>

#include "args.h"
#include "errors.h"

/* Filter(like=model): an empty one that can be united with the model. */
PyObject *filter_like(PyObject *model)
{
    struct filter *other = filter_behind(model);
    perhaps_filter *filter = NULL;
    if (!other) {
        arg_refuse(model, "like", "a Filter");
        return NULL;
    }
    if (!filter_enter(other, USE_WHOLE))
        return NULL;
    PyThreadState *thread = PyEval_SaveThread();
    int error = perhaps_create_like(other->filter, NULL, NULL, &filter);
    PyEval_RestoreThread(thread);
    filter_leave(other, USE_WHOLE);
    return error ? raise_error(error, NULL) : filter_wrap(filter);
}

PyObject *filter_digest(PyObject *object, PyObject *unused)
{
    struct filter *self = (struct filter *)object;
    const perhaps_filter *filter = filter_enter(self, USE_WHOLE);
    uint8_t digest[16];
    (void)unused;
    if (!filter)
        return NULL;
    PyThreadState *thread = PyEval_SaveThread();
    perhaps_digest(filter, digest);
    PyEval_RestoreThread(thread);
    filter_leave(self, USE_WHOLE);
    return PyBytes_FromStringAndSize((const char *)digest, sizeof digest);
}

PyObject *filter_copy(PyObject *object, PyObject *unused)
{
    struct filter *self = (struct filter *)object;
    const perhaps_filter *filter = filter_enter(self, USE_WHOLE);
    perhaps_filter *copy = NULL;
    (void)unused;
    if (!filter)
        return NULL;
    PyThreadState *thread = PyEval_SaveThread();
    int error = perhaps_clone(filter, &copy);
    PyEval_RestoreThread(thread);
    filter_leave(self, USE_WHOLE);
    return error ? raise_error(error, NULL) : filter_wrap(copy);
}

PyObject *filter_shrink(PyObject *object, PyObject *args, PyObject *kwargs)
{
    static char *names[] = { "fpr", NULL };
    struct filter *self = (struct filter *)object;
    perhaps_filter *small = NULL;
    PyObject *rate = NULL;
    double fpr = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O:shrink", names, &rate) ||
        (rate &&
         !arg_number(rate, "fpr", 0, nextafter(1, 0),
                     "a false-positive rate below 1, or 0 for that of the filter", &fpr)))
        return NULL;
    const perhaps_filter *filter = filter_enter(self, USE_WHOLE);
    if (!filter)
        return NULL;
    PyThreadState *thread = PyEval_SaveThread();
    int error = perhaps_shrink(filter, fpr, &small);
    PyEval_RestoreThread(thread);
    filter_leave(self, USE_WHOLE);
    return error ? raise_error(error, NULL) : filter_wrap(small);
}

/* ---- Two filters ----------------------------------------------------------------- */

/* Of two gates the one at the lower address is entered first, so that two threads that unite
 * two filters with each other do not wait for each other. */
static bool enter_both(struct filter *a, enum use use, struct filter *b)
{
    bool a_first = (uintptr_t)a < (uintptr_t)b;
    struct filter *first = a_first ? a : b, *second = a_first ? b : a;
    enum use first_use = a_first ? use : USE_WHOLE, second_use = a_first ? USE_WHOLE : use;
    if (!filter_enter(first, first_use))
        return false;
    if (filter_enter(second, second_use))
        return true;
    filter_leave(first, first_use);
    return false;
}

static void leave_both(struct filter *a, enum use use, struct filter *b)
{
    filter_leave(a, use);
    filter_leave(b, USE_WHOLE);
}

typedef int join_function(perhaps_filter *filter, const perhaps_filter *other);

/* Raises the error of a join of two filters, which differ so. */
static PyObject *raise_join(int error, const char *difference)
{
    char text[PERHAPS_DIFFERENCE_NBYTES + 128];
    if (!*difference)
        return raise_error(error, NULL);
    PyOS_snprintf(text, sizeof text,
                  "the filters differ: %s: make both with the same, or one as "
                  "Filter(like=other)",
                  difference);
    return raise_error_text(error, text);
}

/* Changes the left one. */
static PyObject *join_into(PyObject *object, PyObject *with, join_function *join)
{
    struct filter *self = filter_behind(object), *other = filter_behind(with);
    char difference[PERHAPS_DIFFERENCE_NBYTES] = "";
    if (!self || !other)
        return Py_NewRef(Py_NotImplemented);
    if (self == other)
        return filter_open(self) ? Py_NewRef(object) : NULL;
    if (!enter_both(self, USE_CHANGE, other))
        return NULL;
    PyThreadState *thread = PyEval_SaveThread();
    int error = join(self->filter, other->filter);
    if (error == PERHAPS_ERR_MISMATCH)
        perhaps_difference(self->filter, other->filter, difference);
    PyEval_RestoreThread(thread);
    leave_both(self, USE_CHANGE, other);
    return error ? raise_join(error, difference) : Py_NewRef(object);
}

static PyObject *joined(PyObject *a, PyObject *b, join_function *join)
{
    if (!filter_behind(a) || !filter_behind(b))
        return Py_NewRef(Py_NotImplemented);
    PyObject *copy = filter_copy(a, NULL);
    PyObject *whole = copy ? join_into(copy, b, join) : NULL;
    Py_XDECREF(copy);
    return whole;
}

PyObject *filter_unite(PyObject *object, PyObject *with)
{
    return join_into(object, with, perhaps_merge);
}

PyObject *filter_union(PyObject *a, PyObject *b)
{
    return joined(a, b, perhaps_merge);
}

PyObject *filter_keep_common(PyObject *object, PyObject *with)
{
    return join_into(object, with, perhaps_intersect);
}

PyObject *filter_intersection(PyObject *a, PyObject *b)
{
    return joined(a, b, perhaps_intersect);
}

PyObject *filter_compare(PyObject *a, PyObject *b, int operation)
{
    struct filter *left = filter_behind(a), *right = filter_behind(b);
    bool is_equal = left == right;
    if (!left || !right || (operation != Py_EQ && operation != Py_NE))
        return Py_NewRef(Py_NotImplemented);
    if (!is_equal) {
        if (!enter_both(left, USE_WHOLE, right))
            return NULL;
        PyThreadState *thread = PyEval_SaveThread();
        is_equal = perhaps_equal(left->filter, right->filter);
        PyEval_RestoreThread(thread);
        leave_both(left, USE_WHOLE, right);
    }
    return PyBool_FromLong(is_equal == (operation == Py_EQ));
}
