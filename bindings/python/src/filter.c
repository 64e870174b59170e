/* filter.c - perhaps.Filter: its life, and the methods for one key. */
#include "filter.h"
#include <perhaps_embed.h>
#include <perhaps_plan.h>
#include <perhaps_sets.h>
#include <perhaps_window.h>

#include <math.h>
#include <string.h>
#include <time.h>

#include "args.h"
#include "errors.h"
#include "options.h"

static PyTypeObject *filter_type;

/* ---- Life ------------------------------------------------------------------------ */

PyObject *filter_wrap(perhaps_filter *filter)
{
    struct filter *self = PyObject_New(struct filter, filter_type);
    struct perhaps_stats stats;
    if (!self) {
        perhaps_free(filter);
        return NULL;
    }
    perhaps_stats_of(filter, &stats);
    self->filter = filter;
    self->gate = (struct gate){ .shared = stats.shared };
    const bool integers = strcmp(stats.hash, perhaps_hash_name(PERHAPS_HASH_INTEGER)) == 0;
    self->form = integers ? KEYS_INTEGERS : key_form_of(perhaps_note(filter));
    return (PyObject *)self;
}

struct filter *filter_behind(PyObject *object)
{
    return Py_IS_TYPE(object, filter_type) ? (struct filter *)object : NULL;
}

static perhaps_filter *open_filter(const struct filter *self)
{
    if (!self->filter)
        PyErr_SetString(PyExc_ValueError, "this filter was closed");
    return self->filter;
}

perhaps_filter *filter_wait(struct filter *self, enum use use)
{
    if (gate_is_closed(&self->gate, use))
        gate_wait(&self->gate, use);
    return open_filter(self);
}

perhaps_filter *filter_enter(struct filter *self, enum use use)
{
    gate_enter(&self->gate, use);
    if (!open_filter(self))
        gate_leave(&self->gate, use);
    return self->filter;
}

/* Filter(like=model): an empty one that can be united with the model. */
static PyObject *filter_like(PyObject *model)
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
    return open_filter((struct filter *)object) ? Py_NewRef(object) : NULL;
}

static PyObject *filter_exit(PyObject *object, PyObject *unused)
{
    (void)unused;
    return filter_close(object, NULL);
}

/* ---- The whole filter ------------------------------------------------------------ */

/* Returns the statistics, or false with an exception set. */
static bool look(PyObject *object, struct perhaps_stats *stats)
{
    const perhaps_filter *filter = filter_now((struct filter *)object, USE_ASK);
    if (filter)
        perhaps_stats_of(filter, stats);
    return filter;
}

static Py_ssize_t filter_length(PyObject *object)
{
    struct perhaps_stats stats;
    if (!look(object, &stats))
        return -1;
    return stats.keys < PY_SSIZE_T_MAX ? (Py_ssize_t)stats.keys : PY_SSIZE_T_MAX;
}

static PyObject *filter_stats(PyObject *object, PyObject *unused)
{
    struct perhaps_stats stats;
    (void)unused;
    return look(object, &stats)
               ? stats_of(&stats, perhaps_abilities_of(((struct filter *)object)->filter))
               : NULL;
}

static PyObject *filter_get_fpr(PyObject *object, void *unused)
{
    struct perhaps_stats stats;
    (void)unused;
    return look(object, &stats) ? PyFloat_FromDouble(stats.plan.fpr) : NULL;
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
    if (!look(object, &stats))
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

static PyObject *filter_digest(PyObject *object, PyObject *unused)
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

/* Returns a copy of the filter, or NULL with an exception set. */
static perhaps_filter *clone(struct filter *self)
{
    const perhaps_filter *filter = filter_enter(self, USE_WHOLE);
    perhaps_filter *copy = NULL;
    if (!filter)
        return NULL;
    PyThreadState *thread = PyEval_SaveThread();
    int error = perhaps_clone(filter, &copy);
    PyEval_RestoreThread(thread);
    filter_leave(self, USE_WHOLE);
    if (error)
        raise_error(error, NULL);
    return copy;
}

static PyObject *filter_copy(PyObject *object, PyObject *unused)
{
    (void)unused;
    perhaps_filter *copy = clone((struct filter *)object);
    return copy ? filter_wrap(copy) : NULL;
}

static PyObject *filter_shrink(PyObject *object, PyObject *args, PyObject *kwargs)
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
        return open_filter(self) ? Py_NewRef(object) : NULL;
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

static PyObject *filter_unite(PyObject *object, PyObject *with)
{
    return join_into(object, with, perhaps_merge);
}

static PyObject *filter_union(PyObject *a, PyObject *b)
{
    return joined(a, b, perhaps_merge);
}

static PyObject *filter_keep_common(PyObject *object, PyObject *with)
{
    return join_into(object, with, perhaps_intersect);
}

static PyObject *filter_intersection(PyObject *a, PyObject *b)
{
    return joined(a, b, perhaps_intersect);
}

static PyObject *filter_compare(PyObject *a, PyObject *b, int operation)
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
