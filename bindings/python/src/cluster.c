/* cluster.c - perhaps._cluster: perhaps.Cluster, a filter on servers.  A module of its own, so
 * that the package needs hiredis and OpenSSL only where it is used. */
#include <errno.h>
#include <perhaps_cluster.h>
#include <stdlib.h>
#include <string.h>

#include "args.h"
#include "cluster.h"
#include "errors.h"
#include "options.h"
#include "results.h"
#include <perhaps_file.h>
#include <perhaps_plan.h>

static PyTypeObject *cluster_type, *stats_type;

/* ---- Life ------------------------------------------------------------------------ */

/* Ctrl-C ends a call that waits for servers. */
static bool was_interrupted(void *context)
{
    PyGILState_STATE state = PyGILState_Ensure();
    bool interrupted = PyErr_CheckSignals();
    (void)context;
    PyGILState_Release(state);
    return interrupted;
}

/* 'number' is the errno of an error of the system. */
static PyObject *raise(const struct cluster *self, int error, int number)
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

/* Reads a time in seconds; NULL is the default.  Returns whether it is one. */
static bool seconds_take(PyObject *value, const char *name, unsigned *ms)
{
    double seconds = 0;
    if (value && !arg_number(value, name, 0, 1e6, "seconds from 0 to 1000000", &seconds))
        return false;
    *ms = (unsigned)(seconds * 1000 + 0.5);
    return true;
}

static bool text_take(PyObject *value, const char *name, const char **text)
{
    return !value || value == Py_None || arg_text(value, name, text);
}

/* A number of which 0 is the default. */
static bool number_take(PyObject *value, const char *name, uint64_t most, uint64_t *number)
{
    *number = 0;
    return !value || arg_whole(value, name, 0, most, number);
}

static void cluster_dealloc(PyObject *object)
{
    PyTypeObject *type = Py_TYPE(object);
    struct cluster *self = (struct cluster *)object;
    if (self->cluster) {
        PyThreadState *thread = PyEval_SaveThread();
        perhaps_cluster_free(self->cluster);
        PyEval_RestoreThread(thread);
    }
    Py_XDECREF(self->secret);
    Py_XDECREF(self->user);
    Py_XDECREF(self->password);
    PyObject_Free(object);
    Py_DECREF(type);
}

static PyObject *cluster_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = { "url",      "secret",   "user",     "password",    "timeout",
                             "patience", "deadline", "replicas", "acknowledge", NULL };
    struct perhaps_cluster_options options = { .stopped = was_interrupted };
    PyObject *url, *secret = Py_None, *user = NULL, *password = NULL, *timeout = NULL;
    PyObject *patience = NULL, *deadline = NULL, *replicas = NULL, *acknowledge = NULL;
    uint64_t needed;
    (void)type;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|$OOOOOOOO:Cluster", names, &url, &secret,
                                     &user, &password, &timeout, &patience, &deadline,
                                     &replicas, &acknowledge) ||
        !arg_text(url, "url", &options.url) || !secret_take(secret, false, &options.hashing) ||
        !text_take(user, "user", &options.user) ||
        !text_take(password, "password", &options.password) ||
        !seconds_take(timeout, "timeout", &options.timeout_ms) ||
        !seconds_take(patience, "patience", &options.patience_ms) ||
        !seconds_take(deadline, "deadline", &options.deadline_ms) ||
        (replicas && !arg_flag(replicas, "replicas", &options.replicas)) ||
        !number_take(acknowledge, "acknowledge", UINT32_MAX, &needed))
        return NULL;
    options.acknowledge = (unsigned)needed;
    struct cluster *self = PyObject_New(struct cluster, cluster_type);
    if (!self)
        return NULL;
    self->gate = (struct gate){ 0 };
    self->is_open = false;
    self->hashing = options.hashing;
    self->secret = Py_NewRef(secret);
    self->user = Py_XNewRef(user);
    self->password = Py_XNewRef(password);
    int error = perhaps_cluster_new(&options, &self->cluster);
    if (error) {
        raise(self, error, 0);
        Py_CLEAR(self);
    }
    return (PyObject *)self;
}

/* Takes the handle for this call alone.  Returns false with an exception set. */
static bool enter(struct cluster *self)
{
    gate_enter(&self->gate, USE_CHANGE);
    if (self->cluster)
        return true;
    gate_leave(&self->gate, USE_CHANGE);
    PyErr_SetString(PyExc_ValueError, "this filter was closed");
    return false;
}

static void leave(struct cluster *self)
{
    gate_leave(&self->gate, USE_CHANGE);
}

bool cluster_act(PyObject *object, bool opened, action *do_it, void *context)
{
    struct cluster *self = (struct cluster *)object;
    int error = 0;
    if (!enter(self))
        return false;
    PyThreadState *thread = PyEval_SaveThread();
    if (opened && !self->is_open)
        error = perhaps_cluster_open(self->cluster);
    if (!error && opened)
        self->is_open = true;
    if (!error)
        error = do_it(self, context);
    const int number = errno;
    PyEval_RestoreThread(thread);
    leave(self);
    if (error < 0)
        raise(self, error, number);
    return error >= 0;
}

PyObject *cluster_none_if(bool done)
{
    return done ? Py_NewRef(Py_None) : NULL;
}

static PyObject *cluster_close(PyObject *object, PyObject *unused)
{
    struct cluster *self = (struct cluster *)object;
    (void)unused;
    gate_enter(&self->gate, USE_CHANGE);
    PyThreadState *thread = PyEval_SaveThread();
    perhaps_cluster_free(self->cluster);
    PyEval_RestoreThread(thread);
    self->cluster = NULL;
    leave(self);
    return Py_NewRef(Py_None);
}

static PyObject *cluster_begin(PyObject *object, PyObject *unused)
{
    (void)unused;
    return Py_NewRef(object);
}

/* ---- Make and delete ------------------------------------------------------------- */

struct making {
    struct perhaps_options options;
    uint64_t partitions;
};

static int do_create(struct cluster *self, void *context)
{
    const struct making *m = context;
    int error = perhaps_cluster_create(self->cluster, &m->options, m->partitions);
    self->is_open = !error;
    return error;
}

static PyObject *cluster_create(PyObject *object, PyObject *args, PyObject *kwargs)
{
    static char *names[] = { "capacity", "fpr", "grow", "partitions", NULL };
    PyObject *capacity, *fpr, *grow = NULL, *partitions = NULL;
    struct making making = { { .hashing = ((struct cluster *)object)->hashing }, 0 };
    bool grows = false;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO|O$O:create", names, &capacity, &fpr,
                                     &grow, &partitions) ||
        !arg_whole(capacity, "capacity", 1, PERHAPS_CAPACITY_MAX, &making.options.capacity) ||
        !arg_fpr(fpr, "fpr", &making.options.fpr) ||
        (grow && !arg_flag(grow, "grow", &grows)) ||
        !number_take(partitions, "partitions", INT64_MAX, &making.partitions))
        return NULL;
    making.options.needs = grows ? PERHAPS_CAN_GROW : 0;
    return cluster_act(object, false, do_create, &making) ? Py_NewRef(object) : NULL;
}

static int do_delete(struct cluster *self, void *context)
{
    (void)context;
    self->is_open = false;
    return perhaps_cluster_delete(self->cluster);
}

static PyObject *cluster_delete(PyObject *object, PyObject *unused)
{
    (void)unused;
    return cluster_none_if(cluster_act(object, false, do_delete, NULL));
}

struct copying {
    const char *path;
    Py_buffer bytes;
    uint64_t partitions;
    bool is_no_filter; /* the error is about the bytes, not the servers */
};

static int do_save(struct cluster *self, void *context)
{
    return perhaps_cluster_download(self->cluster, ((struct copying *)context)->path);
}

static PyObject *cluster_save(PyObject *object, PyObject *path)
{
    PyObject *bytes;
    if (!arg_path(path, "path", &bytes))
        return NULL;
    struct copying copying = { .path = PyBytes_AsString(bytes) };
    bool done =
        check_replaced(path, copying.path) && cluster_act(object, true, do_save, &copying);
    Py_DECREF(bytes);
    return cluster_none_if(done);
}

static int do_upload(struct cluster *self, void *context)
{
    struct copying *c = context;
    const struct perhaps_open_options options = { .mode = PERHAPS_MODE_LOAD,
                                                  .hashing = self->hashing };
    perhaps_filter *filter;
    int error = perhaps_from_bytes(c->bytes.buf, (size_t)c->bytes.len, &options, &filter);
    c->is_no_filter = error;
    if (!error)
        error = perhaps_cluster_upload(self->cluster, filter, c->partitions);
    self->is_open = !error;
    perhaps_free(filter);
    return c->is_no_filter ? 0 : error;
}

/* Returns the bytes of a filter of the other module, or of bytes of one. */
static PyObject *bytes_of(PyObject *filter)
{
    if (PyObject_HasAttrString(filter, "__bytes__") || PyObject_CheckBuffer(filter))
        return PyObject_Bytes(filter);
    arg_refuse(filter, "filter", "a Filter, or the bytes of one");
    return NULL;
}

static PyObject *cluster_upload(PyObject *object, PyObject *args, PyObject *kwargs)
{
    static char *names[] = { "filter", "partitions", NULL };
    struct copying copying = { 0 };
    PyObject *filter, *partitions = NULL, *bytes;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|$O:upload", names, &filter,
                                     &partitions) ||
        !number_take(partitions, "partitions", INT64_MAX, &copying.partitions) ||
        !(bytes = bytes_of(filter)))
        return NULL;
    bool done = !PyObject_GetBuffer(bytes, &copying.bytes, PyBUF_SIMPLE);
    if (done) {
        done = cluster_act(object, false, do_upload, &copying);
        PyBuffer_Release(&copying.bytes);
    }
    Py_DECREF(bytes);
    if (done && copying.is_no_filter)
        return raise_error_text(PERHAPS_ERR_FORMAT,
                                "these bytes are no filter that can be read "
                                "with this secret");
    return done ? Py_NewRef(object) : NULL;
}

/* ---- Inspect --------------------------------------------------------------------- */

static PyStructSequence_Field stats_fields[] = {
    { "kind", "'chain' for one that may grow" },
    { "capacity", "how many keys it is for" },
    { "keys", "how many are in" },
    { "fpr", "the rate that was asked for" },
    { "fpr_now", "the rate with this number of keys" },
    { "load", "the share of bits set in the newest layer, sampled" },
    { "memory_nbytes", "what all partitions take" },
    { "layers", "how many layers it has" },
    { "partitions", "how many strings on the servers" },
    { "nodes", "how many masters hold it" },
    { "hash", "'xxh3', 'sip', ..." },
    { NULL, NULL },
};

static PyStructSequence_Desc stats_description = {
    .name = "perhaps.ClusterStats",
    .doc = "What a filter on servers is now: Cluster.stats().",
    .fields = stats_fields,
    .n_in_sequence = sizeof stats_fields / sizeof *stats_fields - 1,
};

static int do_stats(struct cluster *self, void *context)
{
    return perhaps_cluster_stats_of(self->cluster, context);
}

static PyObject *cluster_stats(PyObject *object, PyObject *unused)
{
    struct perhaps_cluster_stats s;
    (void)unused;
    if (!cluster_act(object, true, do_stats, &s))
        return NULL;
    PyObject *stats = PyStructSequence_New(stats_type);
    PyObject *values[] = {
        PyUnicode_FromString(s.plan.kind),
        PyLong_FromUnsignedLongLong(s.plan.capacity),
        PyLong_FromUnsignedLongLong(s.keys),
        PyFloat_FromDouble(s.plan.fpr),
        PyFloat_FromDouble(s.fpr_now),
        PyFloat_FromDouble(s.load),
        PyLong_FromUnsignedLongLong(s.memory_nbytes),
        PyLong_FromUnsignedLongLong(s.layers),
        PyLong_FromUnsignedLongLong(s.partitions),
        PyLong_FromUnsignedLong(s.nodes),
        PyUnicode_FromString(s.hash),
    };
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        if (stats)
            PyStructSequence_SetItem(stats, (Py_ssize_t)i, values[i]);
        else
            Py_XDECREF(values[i]);
    if (PyErr_Occurred())
        Py_CLEAR(stats);
    return stats;
}

static Py_ssize_t cluster_length(PyObject *object)
{
    struct perhaps_cluster_stats stats;
    return cluster_act(object, true, do_stats, &stats) ? (Py_ssize_t)stats.keys : -1;
}

/* bool() of a filter asks no server. */
static int cluster_bool(PyObject *object)
{
    (void)object;
    return 1;
}

static PyObject *cluster_get_fpr(PyObject *object, void *unused)
{
    struct perhaps_cluster_stats stats;
    (void)unused;
    return cluster_act(object, true, do_stats, &stats) ? PyFloat_FromDouble(stats.plan.fpr)
                                                       : NULL;
}

static PyObject *cluster_repr(PyObject *object)
{
    const struct cluster *self = (struct cluster *)object;
    if (!self->cluster)
        return PyUnicode_FromString("<perhaps.Cluster, closed>");
    return PyUnicode_FromFormat("<perhaps.Cluster %s>", perhaps_cluster_name(self->cluster));
}

/* ---- The module ------------------------------------------------------------------ */

static PyMethodDef cluster_methods[] = {
    { "create", WITH_KEYWORDS(cluster_create), METH_VARARGS | METH_KEYWORDS,
      "create($self, capacity, fpr, grow=False, *, partitions=0)\n--\n\n"
      "Makes the filter on the servers, and returns it.  Raises TakenError if\n"
      "there is something of that name." },
    { "delete", cluster_delete, METH_NOARGS,
      "delete($self, /)\n--\n\nRemoves the filter from the servers." },
    { "upload", WITH_KEYWORDS(cluster_upload), METH_VARARGS | METH_KEYWORDS,
      "upload($self, filter, *, partitions=0)\n--\n\n"
      "Makes it a copy of a Filter(..., kind='blocked', together=True), with all\n"
      "its keys." },
    { "save", cluster_save, METH_O,
      "save($self, path, /)\n--\n\nSaves a copy as a file that perhaps.open() takes." },
    { "add", cluster_add, METH_O, "add($self, key, /)\n--\n\nAdds a key." },
    { "add_new", cluster_add_new, METH_O,
      "add_new($self, key, /)\n--\n\nAdds a key.  Returns True if it was certainly not there: "
      "to "
      "one of all clients." },
    { "add_many", cluster_add_many, METH_O,
      "add_many($self, keys, /)\n--\n\nAdds all keys: many times faster than one after the "
      "other." },
    { "update", cluster_add_many, METH_O,
      "update($self, keys, /)\n--\n\nThe same as add_many(), by the name that sets have." },
    { "add_new_many", cluster_add_new_many, METH_O,
      "add_new_many($self, keys, /)\n--\n\nAdds keys.  Returns an Array: True for each that "
      "was "
      "certainly not there." },
    { "contains_many", cluster_contains_many, METH_O,
      "contains_many($self, keys, /)\n--\n\nReturns an Array: for each key, whether it is "
      "perhaps "
      "there." },
    { "stats", cluster_stats, METH_NOARGS,
      "stats($self, /)\n--\n\nReturns ClusterStats: keys, memory_nbytes, partitions, ..." },
    { "close", cluster_close, METH_NOARGS,
      "close($self, /)\n--\n\nCloses the connections.  Also the end of a with." },
    { "__enter__", cluster_begin, METH_NOARGS, NULL },
    { "__exit__", cluster_close, METH_VARARGS, NULL },
    { NULL, NULL, 0, NULL },
};

static PyGetSetDef cluster_members[] = {
    { "fpr", cluster_get_fpr, NULL, "The false-positive rate that was asked for.", NULL },
    { NULL, NULL, NULL, NULL, NULL },
};

static const char cluster_doc[] =
    "Cluster(url, *, secret=None, user=None, password=None, timeout=0, patience=0,\n"
    "        deadline=0, replicas=False, acknowledge=0)\n"
    "--\n\n"
    "One filter on a Redis or Valkey server, or on a cluster of them:\n"
    "redis://host:port/name.  Any number of clients share it.  It connects when it is\n"
    "first used.  If a server does not answer there is an exception, and never a False.\n"
    "One call at a time: other threads wait.\n\n"
    "timeout      a server that says nothing for so many seconds is given up; 0: 3\n"
    "patience     how long a call is tried again after failures; 0: 30\n"
    "deadline     how long a call may take in all; 0: no limit\n"
    "replicas     asks replicas, too\n"
    "acknowledge  how many replicas must have an add before it returns\n\n"
    "    with perhaps.Cluster('redis://localhost/seen').create(1_000_000, 0.001) as seen:\n"
    "        seen.add('apple')\n"
    "        'apple' in seen\n";

static PyType_Slot cluster_slots[] = {
    { Py_tp_doc, (void *)cluster_doc },   { Py_tp_new, cluster_new },
    { Py_tp_dealloc, cluster_dealloc },   { Py_tp_repr, cluster_repr },
    { Py_tp_methods, cluster_methods },   { Py_tp_getset, cluster_members },
    { Py_sq_contains, cluster_contains }, { Py_sq_length, cluster_length },
    { Py_nb_bool, cluster_bool },         { 0, NULL },
};

static PyType_Spec cluster_spec = {
    .name = "perhaps.Cluster",
    .basicsize = sizeof(struct cluster),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = cluster_slots,
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "perhaps._cluster",
    .m_size = -1,
};

PyMODINIT_FUNC PyInit__cluster(void);

PyMODINIT_FUNC PyInit__cluster(void)
{
    PyObject *module = PyModule_Create(&definition);
    cluster_type = (PyTypeObject *)PyType_FromSpec(&cluster_spec);
    stats_type = PyStructSequence_NewType(&stats_description);
    if (module && cluster_type && stats_type && errors_import() && results_import() &&
        !PyModule_AddObjectRef(module, "Cluster", (PyObject *)cluster_type) &&
        !PyModule_AddObjectRef(module, "ClusterStats", (PyObject *)stats_type))
        return module;
    Py_XDECREF(module);
    return NULL;
}
