/* files.c - filters in files and as bytes. */
#include <string.h>

#include "args.h"
#include "errors.h"
#include "filter.h"
#include "options.h"
#include <perhaps_embed.h>
#include <perhaps_live.h>

PyObject *filter_save(PyObject *object, PyObject *args, PyObject *kwargs)
{
    static char *names[] = { "path", "new", NULL };
    struct filter *self = (struct filter *)object;
    PyObject *path, *bytes = NULL, *new = NULL;
    bool only_new = false;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|$O:save", names, &path, &new) ||
        (new && !arg_flag(new, "new", &only_new)) || !arg_path(path, "path", &bytes))
        return NULL;
    const char *name = PyBytes_AsString(bytes);
    const perhaps_filter *filter =
        only_new || check_replaced(path, name) ? filter_enter(self, USE_WHOLE) : NULL;
    if (!filter) {
        Py_DECREF(bytes);
        return NULL;
    }
    PyThreadState *thread = PyEval_SaveThread();
    int error = only_new ? perhaps_save_new(filter, name) : perhaps_save(filter, name);
    PyEval_RestoreThread(thread);
    filter_leave(self, USE_WHOLE);
    Py_DECREF(bytes);
    if (error == PERHAPS_ERR_DAMAGED) /* the file that it was opened from */
        path = NULL;
    return error ? raise_error(error, path) : Py_NewRef(Py_None);
}

/* "r", "w" or "in place". */
static bool mode_named(const char *name, enum perhaps_mode *mode)
{
    static const char *const names[] = { [PERHAPS_MODE_READ] = "r",
                                         [PERHAPS_MODE_LOAD] = "w",
                                         [PERHAPS_MODE_IN_PLACE] = "in place" };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(name, names[i]) == 0) {
            *mode = (enum perhaps_mode)i;
            return true;
        }
    PyErr_Format(PyExc_ValueError,
                 "mode '%s' is none of 'r' (mapped, to ask), 'w' (in memory, to change it) and "
                 "'in place' (the file itself is changed)",
                 name);
    return false;
}

PyObject *module_open(PyObject *module, PyObject *args, PyObject *kwargs)
{
    static char *names[] = { "path", "mode", "secret", "check", NULL };
    struct perhaps_open_options options = { .mode = PERHAPS_MODE_READ };
    perhaps_filter *filter = NULL;
    PyObject *path, *mode = NULL, *secret = Py_None, *check = NULL, *bytes = NULL;
    const char *way = "r";
    (void)module;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|OO$O:open", names, &path, &mode, &secret,
                                     &check) ||
        (mode && !arg_text(mode, "mode", &way)) || !mode_named(way, &options.mode) ||
        !secret_take(secret, false, &options.hashing) ||
        (check && !arg_flag(check, "check", &options.check)) || !arg_path(path, "path", &bytes))
        return NULL;
    const char *name = PyBytes_AsString(bytes);
    PyThreadState *thread = PyEval_SaveThread();
    int error = perhaps_open(name, &options, &filter);
    PyEval_RestoreThread(thread);
    Py_DECREF(bytes);
    return error ? raise_error(error, path) : filter_wrap(filter);
}

PyObject *filter_bytes(PyObject *object, PyObject *unused)
{
    struct filter *self = (struct filter *)object;
    const perhaps_filter *filter = filter_enter(self, USE_WHOLE);
    (void)unused;
    if (!filter)
        return NULL;
    uint64_t nbytes = perhaps_write_nbytes(filter);
    PyObject *bytes = nbytes <= PY_SSIZE_T_MAX
                          ? PyBytes_FromStringAndSize(NULL, (Py_ssize_t)nbytes)
                          : PyErr_NoMemory();
    int error = 0;
    if (bytes) {
        char *memory = PyBytes_AsString(bytes);
        PyThreadState *thread = PyEval_SaveThread();
        error = perhaps_to_bytes(filter, memory, (size_t)nbytes);
        PyEval_RestoreThread(thread);
    }
    filter_leave(self, USE_WHOLE);
    if (error) {
        Py_DECREF(bytes);
        return raise_error(error, NULL);
    }
    return bytes;
}

PyObject *filter_from_bytes(PyObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = { "data", "secret", NULL };
    struct perhaps_open_options options = { .mode = PERHAPS_MODE_LOAD };
    perhaps_filter *filter = NULL;
    PyObject *bytes, *secret = Py_None;
    Py_buffer data;
    (void)type;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|O:from_bytes", names, &bytes, &secret) ||
        !secret_take(secret, false, &options.hashing) || !arg_buffer(bytes, "data", &data))
        return NULL;
    PyThreadState *thread = PyEval_SaveThread();
    int error = perhaps_from_bytes(data.buf, (size_t)data.len, &options, &filter);
    PyEval_RestoreThread(thread);
    PyBuffer_Release(&data);
    return error ? raise_error(error, NULL) : filter_wrap(filter);
}

/* The bytes of a filter never hold its secret, and a pickle that could not be read without one
 * would be a trap. */
PyObject *filter_reduce(PyObject *object, PyObject *unused)
{
    struct filter *self = (struct filter *)object;
    perhaps_filter *filter = filter_now(self, USE_ASK);
    uint8_t secret[16];
    (void)unused;
    if (!filter)
        return NULL;
    if (perhaps_secret(filter, secret) != PERHAPS_ERR_UNSUPPORTED)
        return raise_error_text(
            PERHAPS_ERR_SECRET,
            "a filter with a secret cannot be pickled, since its secret "
            "would be in the pickle: send bytes(filter) and the secret apart, "
            "and use Filter.from_bytes(data, secret)");
    PyObject *make = PyObject_GetAttrString((PyObject *)Py_TYPE(object), "from_bytes");
    PyObject *bytes = make ? filter_bytes(object, NULL) : NULL;
    PyObject *result = bytes ? Py_BuildValue("(O(O))", make, bytes) : NULL;
    Py_XDECREF(make);
    Py_XDECREF(bytes);
    return result;
}

PyObject *filter_sync(PyObject *object, PyObject *unused)
{
    struct filter *self = (struct filter *)object;
    perhaps_filter *filter = filter_enter(self, USE_ASK);
    (void)unused;
    if (!filter)
        return NULL;
    PyThreadState *thread = PyEval_SaveThread();
    int error = perhaps_sync(filter);
    PyEval_RestoreThread(thread);
    filter_leave(self, USE_ASK);
    return error ? raise_error(error, NULL) : Py_NewRef(Py_None);
}

PyObject *filter_verify(PyObject *object, PyObject *unused)
{
    struct filter *self = (struct filter *)object;
    const perhaps_filter *filter = filter_enter(self, USE_WHOLE);
    struct perhaps_verdict verdict = { 0 };
    (void)unused;
    if (!filter)
        return NULL;
    PyThreadState *thread = PyEval_SaveThread();
    int error = perhaps_verify(filter, &verdict);
    PyEval_RestoreThread(thread);
    filter_leave(self, USE_WHOLE);
    if (error)
        return raise_error(error, NULL);
    return PyLong_FromUnsignedLongLong(verdict.pages);
}
