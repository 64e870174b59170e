/* cluster_act.c - what all methods of perhaps.Cluster share: they use the handle one after the
 * other, and raise what it says. */
#include <errno.h>

#include "cluster.h"
#include "errors.h"

PyObject *cluster_raise(const struct cluster *self, int error, int number)
{
    char text[512];
    if (error == PERHAPS_ERR_MEMORY)
        return PyErr_NoMemory();
    PyOS_snprintf(text, sizeof text, "%s: %s", perhaps_cluster_name(self->cluster),
                  perhaps_cluster_problem(self->cluster));
    PyObject *both = error == PERHAPS_ERR_IO ? Py_BuildValue("(is)", number, text) : NULL;
    if (!both)
        return raise_error_text(error, text);
    PyErr_SetObject(PyExc_OSError, both);
    Py_DECREF(both);
    return NULL;
}

bool cluster_act(PyObject *object, bool opened, action *do_it, void *context)
{
    struct cluster *self = (struct cluster *)object;
    int error = 0;
    gate_enter(&self->gate, USE_CHANGE);
    if (!self->cluster) {
        gate_leave(&self->gate, USE_CHANGE);
        PyErr_SetString(PyExc_ValueError, "this filter was closed");
        return false;
    }
    PyThreadState *thread = PyEval_SaveThread();
    if (opened && !self->is_open)
        error = perhaps_cluster_open(self->cluster);
    if (!error && opened)
        self->is_open = true;
    if (!error)
        error = do_it(self, context);
    const int number = errno;
    PyEval_RestoreThread(thread);
    gate_leave(&self->gate, USE_CHANGE);
    if (error < 0)
        cluster_raise(self, error, number);
    return error >= 0;
}

PyObject *cluster_none_if(bool done)
{
    return done ? Py_NewRef(Py_None) : NULL;
}
