/* cluster.h - perhaps.Cluster. */
#ifndef CLUSTER_H
#define CLUSTER_H

#include <perhaps_cluster.h>

#include "gate.h"

struct cluster {
    PyObject_HEAD perhaps_cluster *cluster; /* NULL: it was closed */
    struct gate gate;                       /* one call at a time */
    bool is_open;                           /* its description was read */
    struct perhaps_hashing hashing;
    PyObject *secret, *user, *password; /* to which the handle points */
};

/* Raises an error that the handle tells of.  'number' is the errno of one of the system. */
PyObject *cluster_raise(const struct cluster *self, int error, int number);

/* Does something with the handle of an object, without the GIL, alone, and after it was opened
 * if 'opened' says that it must be.  Returns whether the action did; otherwise an exception is
 * set.  An action returns 0 or more, or an error of the library. */
typedef int action(struct cluster *self, void *context);
bool cluster_act(PyObject *object, bool opened, action *do_it, void *context);

/* Returns None, or NULL with the exception that is set. */
PyObject *cluster_none_if(bool done);

/* The methods for one key and for many (cluster_keys.c). */
int cluster_contains(PyObject *self, PyObject *key);
PyObject *cluster_add(PyObject *self, PyObject *key);
PyObject *cluster_add_new(PyObject *self, PyObject *key);
PyObject *cluster_add_many(PyObject *self, PyObject *keys);
PyObject *cluster_add_new_many(PyObject *self, PyObject *keys);
PyObject *cluster_contains_many(PyObject *self, PyObject *keys);

#endif
