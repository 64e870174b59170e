/* build.c - perhaps.Builder: filters of keys that are all known before the first question. */
#include <errno.h>
#include <string.h>

#include "args.h"
#include "errors.h"
#include "filter.h"
#include "options.h"
#include "results.h"

struct builder {
    PyObject_HEAD perhaps_builder *builder; /* NULL: it is finished */
    struct gate gate;                       /* one call at a time */
    enum key_form form;
    bool keeps_secret; /* its secret is one at random, which the filter alone can tell */
};

static PyTypeObject *builder_type;

static PyObject *builder_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    struct wishes wishes;
    perhaps_builder *builder;
    (void)type;
    if (!options_take(args, kwargs, ASKER_BUILDER, &wishes))
        return NULL;
    int error = perhaps_builder_create(&wishes.options, &wishes.how, &builder);
    if (error)
        return raise_error(error, NULL);
    struct builder *self = PyObject_New(struct builder, builder_type);
    if (!self) {
        perhaps_builder_free(builder);
        return NULL;
    }
    self->builder = builder;
    self->gate = (struct gate){ 0 };
    self->form = wishes.options.bitmap.high > 0 ? KEYS_INTEGERS : KEYS_PLAIN;
    self->keeps_secret =
        wishes.options.hashing.hash == PERHAPS_HASH_SIP && !wishes.options.hashing.secret;
    return (PyObject *)self;
}

static void builder_dealloc(PyObject *object)
{
    PyTypeObject *type = Py_TYPE(object);
    perhaps_builder_free(((struct builder *)object)->builder);
    PyObject_Free(object);
    Py_DECREF(type);
}

/* Takes the builder for this call alone.  Returns false with an exception set. */
static bool enter_builder(struct builder *self)
{
    gate_enter(&self->gate, USE_CHANGE);
    if (self->builder)
        return true;
    gate_leave(&self->gate, USE_CHANGE);
    PyErr_SetString(PyExc_ValueError, "this builder is finished");
    return false;
}

static void leave_builder(struct builder *self)
{
    gate_leave(&self->gate, USE_CHANGE);
}

/* ---- Keys ------------------------------------------------------------------------ */

struct giving {
    perhaps_builder *builder;
    const uint32_t *values; /* of this array's keys */
};

static int visit_keys(void *context, const struct perhaps_keys *keys, size_t first)
{
    struct giving *g = context;
    return g->values ? perhaps_builder_add_values(g->builder, keys, g->values + first)
                     : perhaps_builder_add_many(g->builder, keys);
}

static int visit_others(void *context, const struct perhaps_keys *keys, size_t first)
{
    struct giving *g = context;
    (void)first;
    return perhaps_builder_add_others(g->builder, keys);
}

/* Gives one array of keys.  Returns 1, or -1 with an exception set. */
static int give_array(struct builder *self, struct source *source, visit_function *visit,
                      const uint32_t *values)
{
    if (!enter_builder(self))
        return -1;
    struct giving giving = { self->builder, values };
    PyThreadState *thread = PyEval_SaveThread();
    int error = source_each(source, visit, &giving);
    PyEval_RestoreThread(thread);
    leave_builder(self);
    if (error == BAD_TEXT)
        raise_bad_text();
    else if (error)
        raise_error(error, NULL);
    return error ? -1 : 1;
}

/* Gives all keys of an object, with a value for each or none.  Returns whether it could. */
static bool give(struct builder *self, PyObject *keys, visit_function *visit,
                 const struct results *values)
{
    struct source *source = source_open(keys, self->form);
    const size_t nvalues = values ? (size_t)values->count : 0;
    size_t total = 0;
    int more = source ? 1 : -1;
    while (more > 0 && (more = source->next(source)) > 0) {
        const uint32_t *some = results_at(values, total);
        total += source->array.count;
        if (values && total > nvalues)
            break;
        more = give_array(self, source, visit, some);
    }
    if (source)
        source_close(source);
    if (more >= 0 && values && total != nvalues) {
        PyErr_Format(PyExc_ValueError, "there are %zu values, and another number of keys",
                     nvalues);
        more = -1;
    }
    return more == 0;
}

/* Reads values from anything that can be iterated over: they become numbers of 32 bits. */
static struct results *take_values(PyObject *values)
{
    const uint64_t most = (1 << 16) - 1;
    struct results *results = results_new(RESULT_UINT32);
    PyObject *iterator = results ? PyObject_GetIter(values) : NULL, *item;
    size_t count = 0;
    if (results && !iterator && PyErr_ExceptionMatches(PyExc_TypeError)) {
        PyErr_Clear();
        arg_refuse(values, "values", "anything iterable");
    }
    while (iterator && (item = PyIter_Next(iterator))) {
        uint64_t value = 0;
        bool taken = arg_integer(item, "an item of values", 0, most, &value);
        Py_DECREF(item);
        if (!taken || !results_resize(results, count + 1, 0))
            break;
        ((uint32_t *)results->items)[count++] = (uint32_t)value;
    }
    Py_XDECREF(iterator);
    if (PyErr_Occurred())
        Py_CLEAR(results);
    return results;
}

static PyObject *builder_add_many(PyObject *object, PyObject *args, PyObject *kwargs)
{
    static char *names[] = { "keys", "values", NULL };
    PyObject *keys, *values = Py_None;
    struct results *taken = NULL;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|O:add_many", names, &keys, &values))
        return NULL;
    if (values != Py_None && !(taken = take_values(values)))
        return NULL;
    bool done = give((struct builder *)object, keys, visit_keys, taken);
    Py_XDECREF((PyObject *)taken);
    return done ? Py_NewRef(Py_None) : NULL;
}

static PyObject *builder_add_others(PyObject *object, PyObject *keys)
{
    bool done = give((struct builder *)object, keys, visit_others, NULL);
    return done ? Py_NewRef(Py_None) : NULL;
}

/* ---- The end --------------------------------------------------------------------- */

static PyObject *builder_finish(PyObject *object, PyObject *unused)
{
    struct builder *self = (struct builder *)object;
    perhaps_filter *filter;
    (void)unused;
    if (!enter_builder(self))
        return NULL;
    PyThreadState *thread = PyEval_SaveThread();
    int error = perhaps_builder_finish(self->builder, &filter);
    const int number = errno;
    perhaps_builder_free(self->builder);
    PyEval_RestoreThread(thread);
    self->builder = NULL;
    leave_builder(self);
    errno = number;
    return error ? raise_error(error, NULL) : filter_wrap(filter);
}

static PyObject *builder_save(PyObject *object, PyObject *path)
{
    struct builder *self = (struct builder *)object;
    PyObject *bytes;
    if (self->keeps_secret) {
        PyErr_SetString(PyExc_ValueError, "nobody would know the secret of this file: give 16 "
                                          "bytes for it, and not True");
        return NULL;
    }
    if (!arg_path(path, "path", &bytes))
        return NULL;
    const char *name = PyBytes_AsString(bytes);
    if (!check_replaced(path, name) || !enter_builder(self)) {
        Py_DECREF(bytes);
        return NULL;
    }
    PyThreadState *thread = PyEval_SaveThread();
    int error = perhaps_builder_save(self->builder, name);
    const int number = errno;
    perhaps_builder_free(self->builder);
    PyEval_RestoreThread(thread);
    self->builder = NULL;
    leave_builder(self);
    Py_DECREF(bytes);
    errno = number;
    return error ? raise_error(error, path) : Py_NewRef(Py_None);
}

static Py_ssize_t builder_length(PyObject *object)
{
    struct builder *self = (struct builder *)object;
    if (!enter_builder(self))
        return -1;
    uint64_t keys = perhaps_builder_keys(self->builder);
    leave_builder(self);
    return (Py_ssize_t)keys;
}

static PyMethodDef builder_methods[] = {
    { "add_many", WITH_KEYWORDS(builder_add_many), METH_VARARGS | METH_KEYWORDS,
      "add_many($self, keys, values=None)\n--\n\nGives keys, and a value for each." },
    { "add_others", builder_add_others, METH_O,
      "add_others($self, keys, /)\n--\n\n"
      "Gives keys that are not listed, for kind='against', after all that are." },
    { "finish", builder_finish, METH_NOARGS,
      "finish($self, /)\n--\n\nReturns the filter of all keys; the builder has none any "
      "more." },
    { "save", builder_save, METH_O,
      "save($self, path, /)\n--\n\nWrites the filter of all keys to a file." },
    { NULL, NULL, 0, NULL },
};

static const char builder_doc[] =
    "Builder(capacity=0, fpr=None, removable=False, grow=False, window=None, secret=None, *,\n"
    "        count=False, shared=False, kind=None, base=None, seed=None, hash=None,\n"
    "        prefer='balanced', integers=None, together=False, others=0, value_bits=0,\n"
    "        memory=0, threads=0, folder=None)\n"
    "--\n\n"
    "Takes all keys of a filter, in as many calls as one likes, and makes it at\n"
    "the end.  build() is the short form of it.  The options are those of Filter,\n"
    "and: others (about how many there will be), value_bits, memory (in bytes;\n"
    "0: a quarter of what the process can take, by its limits and those of its\n"
    "control group), threads (0: as many as it gets CPUs), folder (of the\n"
    "temporary file).\n\n"
    ">>> import perhaps\n"
    ">>> b = perhaps.Builder(fpr=0.001)\n"
    ">>> b.add_many(['apple', 'pear'])\n"
    ">>> b.add_many(['plum'])\n"
    ">>> 'pear' in b.finish()\n"
    "True\n";

static PyType_Slot builder_slots[] = {
    { Py_tp_doc, (void *)builder_doc }, { Py_tp_new, builder_new },
    { Py_tp_dealloc, builder_dealloc }, { Py_tp_methods, builder_methods },
    { Py_sq_length, builder_length },   { 0, NULL },
};

static PyType_Spec builder_spec = {
    .name = "perhaps.Builder",
    .basicsize = sizeof(struct builder),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = builder_slots,
};

bool builder_make(PyObject *module)
{
    builder_type = (PyTypeObject *)PyType_FromSpec(&builder_spec);
    return builder_type && !PyModule_AddObjectRef(module, "Builder", (PyObject *)builder_type);
}
