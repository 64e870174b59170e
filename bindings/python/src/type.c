/* type.c - perhaps.Filter: its life, what it tells of itself, and the table of its methods. */
#include "filter.h"
#include <perhaps_embed.h>
#include <perhaps_plan.h>
#include <perhaps_window.h>

#include <time.h>

#include "args.h"
#include "errors.h"
#include "options.h"

/* ---- Life ------------------------------------------------------------------------ */

static PyObject *filter_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    struct wishes wishes;
    perhaps_filter *filter;
    PyObject *model = kwargs ? PyDict_GetItemString(kwargs, "like") : NULL;
    (void)type;
    if (model && PyDict_Size(kwargs) + PyTuple_Size(args) == 1)
        return filter_like(model);
    if (model) {
        PyErr_SetString(PyExc_TypeError,
                        "like is an argument that stands alone: all others are "
                        "those of that filter");
        return NULL;
    }
    if (!options_take(args, kwargs, ASKER_FILTER, &wishes))
        return NULL;
    PyThreadState *thread = PyEval_SaveThread();
    int error = perhaps_create(&wishes.options, &filter);
    PyEval_RestoreThread(thread);
    return error ? raise_error(error, NULL) : filter_wrap(filter);
}

/* Nobody uses a filter any more that nobody holds.  Unmapping and checksums take their time. */
static void free_filter(perhaps_filter *filter)
{
    if (!filter)
        return;
    PyThreadState *thread = PyEval_SaveThread();
    perhaps_free(filter);
    PyEval_RestoreThread(thread);
}

static void filter_dealloc(PyObject *object)
{
    PyTypeObject *type = Py_TYPE(object);
    struct filter *self = (struct filter *)object;
    perhaps_filter *filter = self->filter;
    PyObject_Free(object);
    Py_DECREF(type);
    free_filter(filter);
}

static PyObject *filter_close(PyObject *object, PyObject *unused)
{
    struct filter *self = (struct filter *)object;
    (void)unused;
    gate_enter(&self->gate, USE_CHANGE);
    perhaps_filter *filter = self->filter;
    self->filter = NULL;
    gate_leave(&self->gate, USE_CHANGE);
    free_filter(filter);
    return Py_NewRef(Py_None);
}

static PyObject *filter_begin(PyObject *object, PyObject *unused)
{
    (void)unused;
    return filter_open((struct filter *)object) ? Py_NewRef(object) : NULL;
}

static PyObject *filter_exit(PyObject *object, PyObject *unused)
{
    (void)unused;
    return filter_close(object, NULL);
}

/* ---- The whole filter ------------------------------------------------------------ */

/* Returns the statistics, or false with an exception set. */
static bool look_at_stats(PyObject *object, struct perhaps_stats *stats)
{
    const perhaps_filter *filter = filter_now((struct filter *)object, USE_ASK);
    if (filter)
        perhaps_stats_of(filter, stats);
    return filter;
}

static Py_ssize_t filter_length(PyObject *object)
{
    struct perhaps_stats stats;
    if (!look_at_stats(object, &stats))
        return -1;
    return stats.keys < PY_SSIZE_T_MAX ? (Py_ssize_t)stats.keys : PY_SSIZE_T_MAX;
}

static PyObject *filter_stats(PyObject *object, PyObject *unused)
{
    struct perhaps_stats stats;
    (void)unused;
    return look_at_stats(object, &stats)
               ? stats_of(&stats, perhaps_abilities_of(((struct filter *)object)->filter))
               : NULL;
}

static PyObject *filter_get_fpr(PyObject *object, void *unused)
{
    struct perhaps_stats stats;
    (void)unused;
    return look_at_stats(object, &stats) ? PyFloat_FromDouble(stats.plan.fpr) : NULL;
}

static PyObject *filter_get_kind(PyObject *object, void *unused)
{
    const perhaps_filter *filter = filter_now((struct filter *)object, USE_ASK);
    (void)unused;
    return filter ? PyUnicode_FromString(perhaps_kind_of(filter)->name) : NULL;
}

static PyObject *filter_get_secret(PyObject *object, void *unused)
{
    const perhaps_filter *filter = filter_now((struct filter *)object, USE_ASK);
    uint8_t secret[16];
    (void)unused;
    if (!filter)
        return NULL;
    if (perhaps_secret(filter, secret))
        return Py_NewRef(Py_None);
    return PyBytes_FromStringAndSize((const char *)secret, sizeof secret);
}

static PyObject *filter_repr(PyObject *object)
{
    struct perhaps_stats stats;
    if (!((struct filter *)object)->filter)
        return PyUnicode_FromString("<perhaps.Filter, closed>");
    if (!look_at_stats(object, &stats))
        return NULL;
    char *fpr = PyOS_double_to_string(stats.plan.fpr, 'g', 6, 0, NULL);
    PyObject *text =
        fpr ? PyUnicode_FromFormat("<perhaps.Filter %s: %llu of %llu keys, fpr %s>",
                                   stats.plan.kind, (unsigned long long)stats.keys,
                                   (unsigned long long)stats.plan.capacity, fpr)
            : NULL;
    PyMem_Free(fpr);
    return text;
}

static PyObject *filter_predict_fpr(PyObject *object, PyObject *keys)
{
    uint64_t n;
    if (!arg_whole(keys, "keys", 0, UINT64_MAX, &n))
        return NULL;
    const perhaps_filter *filter = filter_now((struct filter *)object, USE_ASK);
    return filter ? PyFloat_FromDouble(perhaps_predict_fpr(filter, n)) : NULL;
}

/* Calls change() with the filter for itself. */
static PyObject *changed_by(PyObject *object, int (*change)(perhaps_filter *filter))
{
    struct filter *self = (struct filter *)object;
    perhaps_filter *filter = filter_enter(self, USE_CHANGE);
    if (!filter)
        return NULL;
    PyThreadState *thread = PyEval_SaveThread();
    int error = change(filter);
    PyEval_RestoreThread(thread);
    filter_leave(self, USE_CHANGE);
    return error ? raise_error(error, NULL) : Py_NewRef(Py_None);
}

static PyObject *filter_clear(PyObject *object, PyObject *unused)
{
    (void)unused;
    return changed_by(object, perhaps_clear);
}

static PyObject *filter_rotate(PyObject *object, PyObject *unused)
{
    (void)unused;
    return changed_by(object, perhaps_rotate);
}

/* The milliseconds since 1970 of 'now', which is seconds or NULL. */
static bool time_ms(PyObject *now, uint64_t *ms)
{
    struct timespec clock;
    if (!now || now == Py_None) {
        clock_gettime(CLOCK_REALTIME, &clock);
        *ms = (uint64_t)clock.tv_sec * 1000 + (uint64_t)clock.tv_nsec / 1000000;
        return true;
    }
    double seconds;
    if (!arg_number(now, "now", 0, 1e15, "seconds since 1970, as of time.time()", &seconds))
        return false;
    *ms = (uint64_t)(seconds * 1000 + 0.5);
    return true;
}

static int advance_by_clock(perhaps_filter *filter, uint64_t ms)
{
    uint64_t clock_ms;
    return !time_ms(NULL, &clock_ms) ? PERHAPS_ERR_ARGUMENT
                                     : perhaps_advance_unless_ahead(filter, ms, clock_ms);
}

/* Tells a window a time by 'tell', which returns 0 or an error. */
static PyObject *tell_time(PyObject *object, PyObject *now,
                           int (*tell)(perhaps_filter *, uint64_t))
{
    struct filter *self = (struct filter *)object;
    uint64_t ms;
    if (!time_ms(now, &ms))
        return NULL;
    perhaps_filter *filter = filter_enter(self, USE_CHANGE);
    if (!filter)
        return NULL;
    PyThreadState *thread = PyEval_SaveThread();
    int error = tell(filter, ms);
    PyEval_RestoreThread(thread);
    filter_leave(self, USE_CHANGE);
    return error ? raise_error(error, NULL) : Py_NewRef(Py_None);
}

static PyObject *filter_advance(PyObject *object, PyObject *args)
{
    PyObject *now = NULL;
    return PyArg_ParseTuple(args, "|O:advance", &now) ? tell_time(object, now, advance_by_clock)
                                                      : NULL;
}

static PyObject *filter_set_back(PyObject *object, PyObject *args)
{
    PyObject *now = NULL;
    return PyArg_ParseTuple(args, "|O:set_back", &now)
               ? tell_time(object, now, perhaps_set_back)
               : NULL;
}

/* ---- The type -------------------------------------------------------------------- */

static PyMethodDef filter_methods[] = {
    { "add", filter_add, METH_O,
      "add($self, key, /)\n--\n\nAdds a key: a str, bytes or int.  Raises FullError if one "
      "more "
      "would\nbreak the promised rate; then nothing has changed." },
    { "add_new", filter_add_new, METH_O,
      "add_new($self, key, /)\n--\n\n"
      "Adds a key unless it is perhaps there.  Returns True if it was\n"
      "certainly not there, and is now.\n\n"
      ">>> import perhaps\n"
      ">>> seen = perhaps.Filter(1000, 0.001)\n"
      ">>> [word for word in 'to be or not to be'.split() if seen.add_new(word)]\n"
      "['to', 'be', 'or', 'not']\n" },
    { "remove", filter_remove, METH_O,
      "remove($self, key, /)\n--\n\nRemoves one copy of a key that was added.  Raises "
      "NotFoundError, a KeyError,\nif it is certainly not there.  Remove only what was "
      "added." },
    { "count", filter_count, METH_O,
      "count($self, key, /)\n--\n\nReturns how many copies are perhaps stored: never fewer "
      "than "
      "were added." },
    { "get", filter_get, METH_VARARGS,
      "get($self, key, default=None, /)\n--\n\n"
      "Returns the value that build(values=...) stored with a key; or the\n"
      "default for a key that is certainly not there." },
    { "add_many", filter_add_many, METH_O,
      "add_many($self, keys, /)\n--\n\n"
      "Adds all keys of an array, of Arrow data, or of anything iterable.\n"
      "On an error the exception's 'done' tells how many were added.\n\n"
      ">>> import array, perhaps\n"
      ">>> f = perhaps.Filter(1000, 0.001)\n"
      ">>> f.add_many(array.array('i', [1, 2, 3]))\n"
      ">>> 2 in f, len(f)\n"
      "(True, 3)\n" },
    { "update", filter_add_many, METH_O,
      "update($self, keys, /)\n--\n\nThe same as add_many(), by the name that sets have." },
    { "add_new_many", filter_add_new_many, METH_O,
      "add_new_many($self, keys, /)\n--\n\n"
      "Adds keys unless they are perhaps there.  Returns an Array: True for\n"
      "each that was certainly not there." },
    { "contains_many", filter_contains_many, METH_O,
      "contains_many($self, keys, /)\n--\n\nReturns an Array: for each key, whether it is "
      "perhaps "
      "there." },
    { "remove_many", filter_remove_many, METH_O,
      "remove_many($self, keys, /)\n--\n\nRemoves keys.  Returns an Array: for each, whether "
      "it was "
      "found." },
    { "count_many", filter_count_many, METH_O,
      "count_many($self, keys, /)\n--\n\nReturns an Array: for each key, its count()." },
    { "get_many", filter_get_many, METH_O,
      "get_many($self, keys, /)\n--\n\nReturns an Array: for each key its value, or 0 if it is "
      "not "
      "there." },
    { "stats", filter_stats, METH_NOARGS,
      "stats($self, /)\n--\n\nReturns Stats: kind, capacity, keys, fpr_now, memory_nbytes, "
      "..." },
    { "predict_fpr", filter_predict_fpr, METH_O,
      "predict_fpr($self, keys, /)\n--\n\nReturns the rate that the filter has with so many "
      "keys." },
    { "digest", filter_digest, METH_NOARGS,
      "digest($self, /)\n--\n\nReturns 16 bytes, the same for filters that are equal." },
    { "copy", filter_copy, METH_NOARGS,
      "copy($self, /)\n--\n\nReturns a copy in memory, which can be changed." },
    { "__copy__", filter_copy, METH_NOARGS, NULL },
    { "__deepcopy__", filter_copy, METH_O, NULL },
    { "shrink", WITH_KEYWORDS(filter_shrink), METH_VARARGS | METH_KEYWORDS,
      "shrink($self, fpr=0)\n--\n\n"
      "Returns a smaller filter of the same keys, for one that was planned too\n"
      "large.  Raises LimitError if nothing becomes smaller." },
    { "clear", filter_clear, METH_NOARGS, "clear($self, /)\n--\n\nForgets all keys." },
    { "advance", filter_advance, METH_VARARGS,
      "advance($self, now=None, /)\n--\n\n"
      "Tells a window of time what time it is, in seconds since 1970: it forgets\n"
      "what is older than the window.  Without an argument it takes the clock's.\n"
      "A time further ahead of the clock than the window is long is refused." },
    { "set_back", filter_set_back, METH_VARARGS,
      "set_back($self, now=None, /)\n--\n\n"
      "Brings the time of a window back that lies ahead, since a clock was wrong." },
    { "rotate", filter_rotate, METH_NOARGS,
      "rotate($self, /)\n--\n\nBegins a new generation of a window, and forgets the oldest." },
    { "save", WITH_KEYWORDS(filter_save), METH_VARARGS | METH_KEYWORDS,
      "save($self, path, *, new=False)\n--\n\n"
      "Saves the filter: at every moment the old or the new file is there as a\n"
      "whole.  With new=True raises FileExistsError if there is one." },
    { "__bytes__", filter_bytes, METH_NOARGS,
      "__bytes__($self, /)\n--\n\nReturns what save() writes." },
    { "from_bytes", WITH_KEYWORDS(filter_from_bytes), METH_VARARGS | METH_KEYWORDS | METH_CLASS,
      "from_bytes($type, data, secret=None)\n--\n\nMakes a filter of the bytes of one." },
    { "__reduce__", filter_reduce, METH_NOARGS, NULL },
    { "sync", filter_sync, METH_NOARGS,
      "sync($self, /)\n--\n\nMakes sure that all keys are on the disk: for mode='in place'." },
    { "verify", filter_verify, METH_NOARGS,
      "verify($self, /)\n--\n\n"
      "Compares all pages of a mapped file with their checksums, and returns how\n"
      "many there are.  Raises DamagedError." },
    { "close", filter_close, METH_NOARGS,
      "close($self, /)\n--\n\nReleases the filter, and its file.  Also the end of a with." },
    { "__enter__", filter_begin, METH_NOARGS, NULL },
    { "__exit__", filter_exit, METH_VARARGS, NULL },
    { NULL, NULL, 0, NULL },
};

static PyGetSetDef filter_members[] = {
    { "fpr", filter_get_fpr, NULL, "The false-positive rate that was asked for.", NULL },
    { "kind", filter_get_kind, NULL, "The name of the kind: 'blocked', 'cuckoo', ...", NULL },
    { "secret", filter_get_secret, NULL, "The 16 bytes of the secret, or None.", NULL },
    { NULL, NULL, NULL, NULL, NULL },
};

static const char filter_doc[] =
    "Filter(capacity=None, fpr=None, removable=False, grow=False, window=None, secret=None, "
    "*,\n"
    "       count=False, shared=False, kind=None, base=None, seed=None, hash=None,\n"
    "       prefer='balanced', integers=None, together=False, like=None)\n"
    "--\n\n"
    "A set of keys that answers \"certainly not\" (False) or \"perhaps\" (True).\n\n"
    ">>> import perhaps\n"
    ">>> f = perhaps.Filter(10_000, 0.001)\n"
    ">>> f.add('apple')\n"
    ">>> 'apple' in f\n"
    "True\n\n"
    "capacity   how many keys it is for\n"
    "fpr        how often a key that was not added is answered \"perhaps\", at most\n"
    "removable  keys can be removed\n"
    "grow       takes more keys than that\n"
    "window     remembers so many keys, or for so long: a timedelta, or '24h'\n"
    "secret     16 bytes, or True for some at random: where strangers choose keys\n"
    "count      tells how often a key was added\n"
    "shared     any number of threads can add at once\n"
    "kind, base names of kinds; doc/KINDS.md\n"
    "seed       filters of one seed, size and rate can be united\n"
    "hash       'xxh3', 'xxh3-64', 'sip', 'none', 'none-64'\n"
    "prefer     'balanced', 'fast' or 'compact'\n"
    "integers   a range: a filter of these integers that makes no errors\n"
    "together   a key has its bits side by side: for Cluster.upload()\n"
    "like       a filter: an empty one that can be united with it; stands alone\n\n"
    "a | b has the keys of both, a & b those that both have.\n";

static PyType_Slot filter_slots[] = {
    { Py_tp_doc, (void *)filter_doc },
    { Py_tp_new, filter_new },
    { Py_tp_dealloc, filter_dealloc },
    { Py_tp_repr, filter_repr },
    { Py_tp_hash, PyObject_HashNotImplemented },
    { Py_tp_richcompare, filter_compare },
    { Py_tp_methods, filter_methods },
    { Py_tp_getset, filter_members },
    { Py_sq_contains, filter_contains },
    { Py_sq_length, filter_length },
    { Py_nb_or, filter_union },
    { Py_nb_inplace_or, filter_unite },
    { Py_nb_and, filter_intersection },
    { Py_nb_inplace_and, filter_keep_common },
    { 0, NULL },
};

static PyType_Spec filter_spec = {
    .name = "perhaps.Filter",
    .basicsize = sizeof(struct filter),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = filter_slots,
};

bool filter_make(PyObject *module)
{
    filter_type = (PyTypeObject *)PyType_FromSpec(&filter_spec);
    return filter_type && !PyModule_AddObjectRef(module, "Filter", (PyObject *)filter_type);
}
