/* results.c - perhaps.Array. */
#include "results.h"

#include <string.h>

static PyTypeObject *array_type;

static const struct {
    const char *format;
    Py_ssize_t nbytes;
} types[] = {
    [RESULT_BOOL] = { "?", sizeof(bool) },
    [RESULT_UINT64] = { "Q", sizeof(uint64_t) },
    [RESULT_UINT32] = { "I", sizeof(uint32_t) },
};

struct results *results_new(enum result_type type)
{
    struct results *results = PyObject_New(struct results, array_type);
    if (!results)
        return NULL;
    results->items = NULL;
    results->count = results->room = 0;
    results->item_nbytes = types[type].nbytes;
    results->type = type;
    return results;
}

bool results_resize(struct results *results, size_t count, size_t room)
{
    size_t wanted = room > count ? room : count;
    if (wanted > (size_t)results->room) {
        size_t more = (size_t)results->room + (size_t)results->room / 2;
        wanted = wanted > more ? wanted : more;
        if (wanted > PY_SSIZE_T_MAX / sizeof(uint64_t))
            return PyErr_NoMemory();
        void *items = PyMem_Realloc(results->items, wanted * (size_t)results->item_nbytes);
        if (!items)
            return PyErr_NoMemory();
        results->items = items;
        results->room = (Py_ssize_t)wanted;
    }
    results->count = (Py_ssize_t)count;
    return true;
}

static void array_free(PyObject *object)
{
    PyTypeObject *type = Py_TYPE(object);
    PyMem_Free(((struct results *)object)->items);
    PyObject_Free(object);
    Py_DECREF(type);
}

static Py_ssize_t array_length(PyObject *object)
{
    return ((struct results *)object)->count;
}

static PyObject *array_item(PyObject *object, Py_ssize_t index)
{
    const struct results *results = (struct results *)object;
    if (index < 0 || index >= results->count)
        return PyErr_Format(PyExc_IndexError, "there are %zd results", results->count);
    if (results->type == RESULT_BOOL)
        return PyBool_FromLong(((const bool *)results->items)[index]);
    if (results->type == RESULT_UINT32)
        return PyLong_FromUnsignedLong(((const uint32_t *)results->items)[index]);
    return PyLong_FromUnsignedLongLong(((const uint64_t *)results->items)[index]);
}

/* The memory is the caller's to write: nobody but them has it. */
static int array_buffer(PyObject *object, Py_buffer *view, int flags)
{
    static char nothing;
    struct results *results = (struct results *)object;
    view->buf = results->items ? results->items : &nothing;
    view->obj = Py_NewRef(object);
    view->len = results->count * results->item_nbytes;
    view->readonly = 0;
    view->itemsize = results->item_nbytes;
    view->format = flags & PyBUF_FORMAT ? (char *)types[results->type].format : NULL;
    view->ndim = 1;
    view->shape = flags & PyBUF_ND ? &results->count : NULL;
    view->strides = (flags & PyBUF_STRIDES) == PyBUF_STRIDES ? &results->item_nbytes : NULL;
    view->suboffsets = NULL;
    view->internal = NULL;
    return 0;
}

/* Returns results 'first' to 'end' as a list. */
static PyObject *as_list(PyObject *object, Py_ssize_t first, Py_ssize_t end)
{
    PyObject *list = PyList_New(end - first);
    for (Py_ssize_t i = first; i < end && list; i++) {
        PyObject *item = array_item(object, i);
        if (!item)
            Py_CLEAR(list);
        else
            PyList_SetItem(list, i - first, item);
    }
    return list;
}

static PyObject *array_tolist(PyObject *object, PyObject *unused)
{
    (void)unused;
    return as_list(object, 0, array_length(object));
}

static PyObject *array_count(PyObject *object, PyObject *value)
{
    const struct results *results = (struct results *)object;
    Py_ssize_t count = 0;
    if (results->type == RESULT_BOOL && PyBool_Check(value)) {
        bool wanted = value == Py_True;
        for (Py_ssize_t i = 0; i < results->count; i++)
            count += ((const bool *)results->items)[i] == wanted;
        return PyLong_FromSsize_t(count);
    }
    PyObject *list = array_tolist(object, NULL);
    PyObject *found = list ? PyObject_CallMethod(list, "count", "O", value) : NULL;
    Py_XDECREF(list);
    return found;
}

static PyObject *array_repr(PyObject *object)
{
    const Py_ssize_t shown = 10;
    Py_ssize_t length = array_length(object);
    if (length <= shown) {
        PyObject *list = as_list(object, 0, length);
        PyObject *text = list ? PyUnicode_FromFormat("perhaps.Array(%R)", list) : NULL;
        Py_XDECREF(list);
        return text;
    }
    PyObject *list = as_list(object, 0, shown);
    PyObject *text =
        list ? PyUnicode_FromFormat("perhaps.Array(%R and %zd more)", list, length - shown)
             : NULL;
    Py_XDECREF(list);
    return text;
}

/* Compares as lists do. */
static PyObject *array_compare(PyObject *a, PyObject *b, int operation)
{
    PyObject *left = array_tolist(a, NULL),
             *right = PySequence_Check(b) ? PySequence_List(b) : NULL;
    PyObject *result = NULL;
    if (left && right)
        result = PyObject_RichCompare(left, right, operation);
    else if (left && !PyErr_Occurred())
        result = Py_NewRef(Py_NotImplemented);
    Py_XDECREF(left);
    Py_XDECREF(right);
    return result;
}

static PyMethodDef array_methods[] = {
    { "tolist", array_tolist, METH_NOARGS,
      "tolist($self, /)\n--\n\nReturns the results as a list." },
    { "count", array_count, METH_O,
      "count($self, value, /)\n--\n\nReturns how many results are the value: count(True)." },
    { NULL, NULL, 0, NULL },
};

static PyType_Slot array_slots[] = {
    { Py_tp_doc, "A result for each key of a batch.\n\n"
                 "Has len(), indices and iteration, and the buffer protocol:\n"
                 "numpy.asarray(results) and memoryview(results) copy nothing.\n\n"
                 ">>> import perhaps\n"
                 ">>> f = perhaps.Filter(100, 1e-9)\n"
                 ">>> f.add(1)\n"
                 ">>> f.contains_many([1, 2])\n"
                 "perhaps.Array([True, False])\n" },
    { Py_tp_dealloc, array_free },
    { Py_tp_methods, array_methods },
    { Py_tp_repr, array_repr },
    { Py_tp_richcompare, array_compare },
    { Py_tp_hash, PyObject_HashNotImplemented },
    { Py_sq_length, array_length },
    { Py_sq_item, array_item },
    { Py_bf_getbuffer, array_buffer },
    { 0, NULL },
};

static PyType_Spec array_spec = {
    .name = "perhaps.Array",
    .basicsize = sizeof(struct results),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = array_slots,
};

bool results_make(PyObject *module)
{
    array_type = (PyTypeObject *)PyType_FromSpec(&array_spec);
    return array_type && !PyModule_AddObjectRef(module, "Array", (PyObject *)array_type);
}

bool results_import(void)
{
    PyObject *module = PyImport_ImportModule("perhaps._perhaps");
    array_type = module ? (PyTypeObject *)PyObject_GetAttrString(module, "Array") : NULL;
    Py_XDECREF(module);
    return array_type;
}
