/* errors.c - errors of the library as exceptions. */
#include "errors.h"
#include <perhaps_file.h>

#include <errno.h>
#include <perhaps_cluster.h>
#include <string.h>

/* The class of each error, below the class of the row 'base' or below one of Python's. */
static struct exception {
    int error;
    const char *name, *doc;
    const char *base;  /* NULL: Error */
    PyObject **beside; /* a class of Python's that it belongs to, too */
    PyObject *class;
} exceptions[] = {
    { 0, "Error", "What the library cannot do.", NULL, NULL, NULL },
    { PERHAPS_ERR_UNSUPPORTED, "UnsupportedError", "A filter of this kind cannot do that.",
      NULL, NULL, NULL },
    { PERHAPS_ERR_SET, "SetError", "It was made to remove and to count no keys.",
      "UnsupportedError", NULL, NULL },
    { PERHAPS_ERR_FULL, "FullError", "One more key would break the promised rate.", NULL, NULL,
      NULL },
    { PERHAPS_ERR_COPIES, "CopiesError",
      "There is no room for one more copy of a key, of which 8 are the most.", "FullError",
      NULL, NULL },
    { PERHAPS_ERR_LAYERS, "LayersError", "A chain has all layers that it can have.",
      "FullError", NULL, NULL },
    { PERHAPS_ERR_NOT_FOUND, "NotFoundError", "The key is certainly not there.", NULL,
      &PyExc_KeyError, NULL },
    { PERHAPS_ERR_READ_ONLY, "ReadOnlyError", "The filter is mapped from a file to be read.",
      NULL, NULL, NULL },
    { PERHAPS_ERR_MISMATCH, "MismatchError", "Two filters differ, and cannot be joined.", NULL,
      &PyExc_ValueError, NULL },
    { PERHAPS_ERR_SECRET, "SecretError", "The secret is missing or not the filter's.", NULL,
      NULL, NULL },
    { PERHAPS_ERR_FORMAT, "FormatError", "These bytes are no filter.", NULL, NULL, NULL },
    { PERHAPS_ERR_VERSION, "VersionError", "A later version of perhaps has written that.",
      "FormatError", NULL, NULL },
    { PERHAPS_ERR_DAMAGED, "DamagedError", "Bytes are missing, or a checksum is wrong.",
      "FormatError", NULL, NULL },
    { PERHAPS_ERR_LIMIT, "LimitError", "The kind cannot reach that rate or that size.", NULL,
      &PyExc_ValueError, NULL },
    { PERHAPS_ERR_VALUES, "ValuesError", "A key came with two different values.", NULL,
      &PyExc_ValueError, NULL },
    { PERHAPS_ERR_PROTOCOL, "ClusterError", "A filter on servers cannot be reached or used.",
      NULL, NULL, NULL },
    { PERHAPS_ERR_UNREACHABLE, "UnreachableError", "A server does not answer.", "ClusterError",
      &PyExc_ConnectionError, NULL },
    { PERHAPS_ERR_TAKEN, "TakenError", "There is something of that name on the servers.",
      "ClusterError", NULL, NULL },
    { PERHAPS_ERR_MISSING, "MissingError", "There is no filter of that name on the servers.",
      "ClusterError", NULL, NULL },
    { PERHAPS_ERR_LOST, "LostError", "The servers have lost a part of the filter.",
      "ClusterError", NULL, NULL },
    { PERHAPS_ERR_DEADLINE, "DeadlineError", "The deadline of the call is over.",
      "ClusterError", &PyExc_TimeoutError, NULL },
};

enum { NEXCEPTIONS = sizeof exceptions / sizeof *exceptions };

static PyObject *class_named(const char *name)
{
    for (size_t i = 0; i < NEXCEPTIONS; i++)
        if (name && strcmp(exceptions[i].name, name) == 0)
            return exceptions[i].class;
    return exceptions[0].class;
}

/* A KeyError shows the repr() of its text, which is for keys.  Ours have a sentence. */
static PyObject *plain_text(void)
{
    PyObject *str = PyObject_GetAttrString(PyExc_Exception, "__str__");
    PyObject *members = str ? Py_BuildValue("{sO}", "__str__", str) : NULL;
    Py_XDECREF(str);
    return members;
}

static PyObject *make_class(const struct exception *e)
{
    char name[64];
    bool is_root = e == exceptions;
    PyObject *base = is_root ? PyExc_Exception : class_named(e->base);
    PyObject *bases = e->beside ? Py_BuildValue("(OO)", base, *e->beside) : NULL;
    PyObject *members = plain_text(), *class = NULL;
    PyOS_snprintf(name, sizeof name, "perhaps.%s", e->name);
    if (members && (bases || !e->beside))
        class = PyErr_NewExceptionWithDoc(name, e->doc, bases ? bases : base, members);
    Py_XDECREF(bases);
    Py_XDECREF(members);
    return class;
}

bool errors_make(PyObject *module)
{
    for (struct exception *e = exceptions; e < exceptions + NEXCEPTIONS; e++) {
        e->class = make_class(e);
        if (!e->class || PyModule_AddObjectRef(module, e->name, e->class))
            return false;
    }
    return true;
}

bool errors_import(void)
{
    PyObject *module = PyImport_ImportModule("perhaps._perhaps");
    bool done = module;
    for (size_t i = 0; i < NEXCEPTIONS && done; i++) {
        exceptions[i].class = PyObject_GetAttrString(module, exceptions[i].name);
        done = exceptions[i].class;
    }
    Py_XDECREF(module);
    return done;
}

/* Errors of servers that have no class of their own are ClusterError. */
static PyObject *class_of(int error)
{
    if (error == PERHAPS_ERR_ARGUMENT || error == PERHAPS_ERR_ADDRESS ||
        error == PERHAPS_ERR_AHEAD)
        return PyExc_ValueError;
    if (error == PERHAPS_ERR_MEMORY)
        return PyExc_MemoryError;
    if (error == PERHAPS_ERR_STOPPED)
        return PyExc_KeyboardInterrupt;
    for (size_t i = 1; i < NEXCEPTIONS; i++)
        if (exceptions[i].error == error)
            return exceptions[i].class;
    return class_named(error <= PERHAPS_ERR_ADDRESS ? "ClusterError" : "Error");
}

bool check_replaced(PyObject *path, const char *name)
{
    if (perhaps_may_replace(name))
        return true;
    PyErr_Format(PyExc_FileExistsError,
                 "%S: exists and is not a filter: give another name, or remove it before",
                 path);
    return false;
}

PyObject *raise_error(int error, PyObject *path)
{
    if (error == PERHAPS_ERR_IO)
        return path ? PyErr_SetFromErrnoWithFilenameObject(PyExc_OSError, path)
                    : PyErr_SetFromErrno(PyExc_OSError);
    if (path)
        return PyErr_Format(class_of(error), "%S: %s", path, perhaps_strerror(error));
    return raise_error_text(error, perhaps_strerror(error));
}

PyObject *raise_error_text(int error, const char *text)
{
    if (!PyErr_Occurred()) /* a signal, for which a call was stopped */
        PyErr_SetString(class_of(error), text);
    return NULL;
}

void error_done(size_t done)
{
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    PyErr_NormalizeException(&type, &value, &trace);
    PyObject *count = PyLong_FromSize_t(done);
    if (!count || !value || PyObject_SetAttrString(value, "done", count))
        PyErr_Clear();
    Py_XDECREF(count);
    PyErr_Restore(type, value, trace);
}
