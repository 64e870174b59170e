/* options.c - keyword arguments as the options of the library. */
#include "options.h"

#include <string.h>

bool secret_take(PyObject *secret, bool may_make, struct perhaps_hashing *hashing)
{
    enum { SECRET_NBYTES = 16 };
    if (secret == Py_None || (may_make && secret == Py_False))
        return true;
    if (may_make && secret == Py_True) {
        hashing->hash = PERHAPS_HASH_SIP;
        return true;
    }
    if (!PyBytes_Check(secret)) {
        PyErr_SetString(PyExc_TypeError, may_make ? "secret is True, or 16 bytes of type bytes"
                                                  : "secret is 16 bytes of type bytes");
        return false;
    }
    if (PyBytes_Size(secret) != SECRET_NBYTES) {
        PyErr_Format(PyExc_ValueError, "secret has %zd bytes, and needs 16",
                     PyBytes_Size(secret));
        return false;
    }
    hashing->hash = PERHAPS_HASH_SIP;
    hashing->secret = (const uint8_t *)PyBytes_AsString(secret);
    return true;
}

/* Reads "24h" and the like, a number with a unit as on the command line.  Returns 0 for what is
 * no such text. */
static double seconds_of_text(PyObject *text)
{
    static const struct {
        const char *unit;
        double seconds;
    } units[] = { { "ms", 0.001 }, { "s", 1 },     { "m", 60 },
                  { "h", 3600 },   { "d", 86400 }, { "w", 604800 } };
    const char *bytes = PyUnicode_AsUTF8AndSize(text, NULL);
    char *end = NULL;
    double number = bytes ? PyOS_string_to_double(bytes, &end, NULL) : -1;
    for (size_t i = 0; i < sizeof units / sizeof *units && bytes; i++)
        if (end && end != bytes && strcmp(end, units[i].unit) == 0)
            return number * units[i].seconds;
    PyErr_Clear();
    return 0;
}

static double seconds_of_timedelta(PyObject *object)
{
    PyObject *seconds = PyObject_CallMethod(object, "total_seconds", NULL);
    double number = seconds ? PyFloat_AsDouble(seconds) : 0;
    Py_XDECREF(seconds);
    PyErr_Clear();
    return number;
}

/* A window of so many keys is an int; one of time a text, or a timedelta. */
static bool window_take(PyObject *window, struct perhaps_options *options)
{
    const double most = 1e15;
    if (window == Py_None)
        return true;
    options->needs |= PERHAPS_CAN_FORGET;
    if (PyLong_Check(window) && !PyBool_Check(window)) {
        options->window.keys = PyLong_AsUnsignedLongLong(window);
        if (options->window.keys > 0 && !PyErr_Occurred())
            return true;
        PyErr_SetString(PyExc_ValueError, "window: the number of keys is at least 1");
        return false;
    }
    double seconds =
        PyUnicode_Check(window) ? seconds_of_text(window) : seconds_of_timedelta(window);
    if (!(seconds >= 0.001 && seconds < most)) {
        PyErr_SetString(PyExc_ValueError,
                        "window is a number of keys, a datetime.timedelta, or a "
                        "time such as '90s', '15m', '24h' or '7d'");
        return false;
    }
    options->window.time = (uint64_t)(seconds * 1000);
    return true;
}

static bool seed_take(PyObject *seed, struct perhaps_hashing *hashing)
{
    if (seed == Py_None)
        return true;
    hashing->seed = PyLong_AsUnsignedLongLong(seed);
    if (PyErr_Occurred())
        return false;
    if (hashing->seed)
        return true;
    PyErr_SetString(PyExc_ValueError, "seed is at least 1; without it there is one at random");
    return false;
}

static bool hash_take(const char *name, struct perhaps_hashing *hashing)
{
    if (!name)
        return true;
    for (unsigned i = 0; i < PERHAPS_HASH_COUNT; i++)
        if (strcmp(perhaps_hash_name((enum perhaps_hash)i), name) == 0 &&
            i != PERHAPS_HASH_CUSTOM) {
            hashing->hash = (enum perhaps_hash)i;
            return true;
        }
    PyErr_Format(
        PyExc_ValueError,
        "hash '%s' is none of 'xxh3', 'xxh3-64', 'sip', 'none', 'none-64' and 'integer'", name);
    return false;
}

static bool prefer_take(const char *name, enum perhaps_preference *preference)
{
    static const char *const names[] = { [PERHAPS_PREFER_BALANCED] = "balanced",
                                         [PERHAPS_PREFER_FAST] = "fast",
                                         [PERHAPS_PREFER_COMPACT] = "compact" };
    for (size_t i = 0; i < sizeof names / sizeof *names && name; i++)
        if (strcmp(name, names[i]) == 0) {
            *preference = (enum perhaps_preference)i;
            return true;
        }
    if (name)
        PyErr_Format(PyExc_ValueError,
                     "prefer '%s' is none of 'balanced', 'fast' and 'compact'", name);
    return !name;
}

/* Returns an item of a range, or 0 with an exception set. */
static uint64_t item_of(PyObject *range, Py_ssize_t index)
{
    PyObject *item = PySequence_GetItem(range, index);
    uint64_t number = item ? PyLong_AsUnsignedLongLong(item) : 0;
    Py_XDECREF(item);
    return number;
}

/* The range of a bitmap: range(low, behind_high), with steps of 1. */
static bool integers_take(PyObject *range, struct perhaps_bitmap_options *bitmap)
{
    if (range == Py_None)
        return true;
    PyObject *step = PyObject_GetAttrString(range, "step");
    bool is_plain = step && PyLong_AsLong(step) == 1;
    bitmap->low = is_plain ? item_of(range, 0) : 0;
    bitmap->high = is_plain && !PyErr_Occurred() ? item_of(range, -1) : 0;
    Py_XDECREF(step);
    if (!PyErr_Occurred() && bitmap->high > 0)
        return true;
    PyErr_SetString(PyExc_ValueError, "integers is a range of numbers from 0 on, such as "
                                      "range(13_000_000_000, 20_000_000_000)");
    return false;
}

/* The kind that takes any number of copies of a key, where no kind is named. */
static void count_by(struct perhaps_options *options)
{
    static const char counting[] = "counting";
    options->needs |= PERHAPS_CAN_COUNT;
    if (options->base || (options->kind && strcmp(options->kind, "chain") != 0))
        return;
    if (options->needs & (PERHAPS_CAN_FORGET | PERHAPS_CAN_GROW)) {
        options->base = counting;
        if (!(options->needs & PERHAPS_CAN_FORGET))
            options->kind = "chain";
    } else {
        options->kind = counting;
    }
}

/* Windows say themselves how many keys they remember; one of time begins with so many, and
 * grows. */
static bool size_take(Py_ssize_t n, enum asker asker, struct perhaps_options *options)
{
    const uint64_t begin = 10000;
    if (n < 0) {
        PyErr_SetString(PyExc_ValueError, "n, the number of keys, is not below 0");
        return false;
    }
    options->capacity = (uint64_t)n;
    if (n == 0)
        options->capacity = options->window.keys ? options->window.keys
                            : options->window.time || options->needs & PERHAPS_CAN_GROW ? begin
                                                                                        : 0;
    if (options->capacity || options->bitmap.high || asker == ASKER_BUILDER)
        return true;
    PyErr_SetString(PyExc_ValueError,
                    "n, how many keys the filter is for, is missing: give it, "
                    "or grow=True");
    return false;
}

#define COMMON                                                                                 \
    "n", "fpr", "removable", "grow", "window", "secret", "count", "shared", "kind", "base",    \
        "seed", "hash", "prefer", "integers", "together"
#define FOR_PLANS COMMON, "others", "value_bits", "static"

bool options_take(PyObject *args, PyObject *kwargs, enum asker asker, struct wishes *w)
{
    /* Each of them takes what the one before it takes, and more. */
    static char *filter_names[] = { COMMON, NULL };
    static char *plan_names[] = { FOR_PLANS, NULL };
    static char *builder_names[] = { FOR_PLANS, "memory", "threads", "folder", NULL };
    static char *const *const names[] = { filter_names, plan_names, builder_names };
    static const char *const formats[] = { "|ndppOO$ppzzOzzOp:Filter",
                                           "|ndppOO$ppzzOzzOpnIp:plan",
                                           "|ndppOO$ppzzOzzOpnIpnIz:Builder" };
    Py_ssize_t n = 0, others = 0, memory = 0;
    int removable = 0, grow = 0, count = 0, shared = 0, together = 0, fixed = 0;
    PyObject *window = Py_None, *secret = Py_None, *seed = Py_None, *integers = Py_None;
    const char *hash = NULL, *prefer = NULL;
    struct perhaps_options *o = &w->options;
    memset(w, 0, sizeof *w);
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, formats[asker], (char **)names[asker], &n,
                                     &o->fpr, &removable, &grow, &window, &secret, &count,
                                     &shared, &o->kind, &o->base, &seed, &hash, &prefer,
                                     &integers, &together, &others, &o->ribbon.value_bits,
                                     &fixed, &memory, &w->how.threads, &w->how.folder))
        return false;
    o->shared = shared;
    o->blocked.together = together;
    o->needs = (removable ? PERHAPS_CAN_REMOVE : 0U) | (grow ? PERHAPS_CAN_GROW : 0U) |
               (fixed || asker == ASKER_BUILDER ? PERHAPS_CAN_BUILD : 0U);
    o->against.others = others > 0 ? (uint64_t)others : 0;
    w->how.memory_nbytes = memory > 0 ? (uint64_t)memory : 0;
    if (!window_take(window, o) || !seed_take(seed, &o->hashing) ||
        !hash_take(hash, &o->hashing) || !secret_take(secret, true, &o->hashing) ||
        !prefer_take(prefer, &o->preference) || !integers_take(integers, &o->bitmap))
        return false;
    if (o->window.time)
        o->needs &= ~(unsigned)PERHAPS_CAN_GROW; /* its generations grow by themselves */
    if (count)
        count_by(o);
    return size_take(n, asker, o);
}
