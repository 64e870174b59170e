/* options.c - keyword arguments as the options of the library.
 *
 * Each argument has a row in a table, with the function that reads it.  What several of them
 * say together is looked at when all are read. */
#include "options.h"
#include <perhaps_plan.h>

#include <string.h>

#include "args.h"

bool secret_take(PyObject *secret, bool may_make, struct perhaps_hashing *hashing)
{
    enum { SECRET_NBYTES = 16 };
    if (secret == Py_None || (may_make && secret == Py_False))
        return true;
    if (may_make && secret == Py_True) {
        hashing->hash = PERHAPS_HASH_SIP;
        return true;
    }
    if (!PyBytes_Check(secret))
        return arg_refuse(secret, "secret",
                          may_make ? "True, or 16 bytes of type bytes"
                                   : "16 bytes of type bytes");
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
 * no such text, or -1 with an exception set. */
static double seconds_of_text(PyObject *text)
{
    static const struct {
        const char *unit;
        double seconds;
    } units[] = { { "ms", 0.001 }, { "s", 1 },     { "m", 60 },
                  { "h", 3600 },   { "d", 86400 }, { "w", 604800 } };
    const char *bytes;
    char *end = NULL;
    if (!arg_text(text, "window", &bytes))
        return -1;
    double number = PyOS_string_to_double(bytes, &end, NULL);
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (end && end != bytes && strcmp(end, units[i].unit) == 0)
            return number * units[i].seconds;
    PyErr_Clear();
    return 0;
}

static bool refuse_window(void)
{
    PyErr_SetString(PyExc_ValueError, "window is a number of keys, a datetime.timedelta, or a "
                                      "time such as '90s', '15m', '24h' or '7d'");
    return false;
}

/* Returns the seconds of a timedelta, or -1 with an exception set. */
static double seconds_of_timedelta(PyObject *object)
{
    PyObject *seconds = PyObject_CallMethod(object, "total_seconds", NULL);
    double number = seconds ? PyFloat_AsDouble(seconds) : -1;
    Py_XDECREF(seconds);
    if (PyErr_Occurred() && PyErr_ExceptionMatches(PyExc_AttributeError)) {
        PyErr_Clear();
        arg_refuse(object, "window", "a number of keys, a datetime.timedelta, or a str");
    }
    return number;
}

/* A window of so many keys is a number; one of time a text, or a timedelta. */
static bool take_window(PyObject *window, const char *name, struct wishes *w)
{
    const double most = 1e15;
    struct perhaps_options *options = &w->options;
    if (window == Py_None)
        return true;
    options->needs |= PERHAPS_CAN_FORGET;
    if (PyFloat_Check(window) || PyIndex_Check(window))
        return arg_whole(window, name, 1, PERHAPS_CAPACITY_MAX, &options->window.keys);
    double seconds =
        PyUnicode_Check(window) ? seconds_of_text(window) : seconds_of_timedelta(window);
    if (PyErr_Occurred())
        return false;
    if (!(seconds >= 0.001 && seconds < most))
        return refuse_window();
    options->window.time = (uint64_t)(seconds * 1000);
    return true;
}

static bool take_seed(PyObject *seed, const char *name, struct wishes *w)
{
    return seed == Py_None || arg_integer(seed, name, 1, UINT64_MAX, &w->options.hashing.seed);
}

static bool take_hash(PyObject *value, const char *name, struct wishes *w)
{
    const char *text;
    if (value == Py_None)
        return true;
    if (!arg_text(value, name, &text))
        return false;
    for (unsigned i = 0; i < PERHAPS_HASH_COUNT; i++)
        if (strcmp(perhaps_hash_name((enum perhaps_hash)i), text) == 0 &&
            i != PERHAPS_HASH_CUSTOM && i != PERHAPS_HASH_GROUPED) {
            w->options.hashing.hash = (enum perhaps_hash)i;
            w->hash = text;
            return true;
        }
    PyErr_Format(
        PyExc_ValueError,
        "hash '%s' is none of 'xxh3', 'xxh3-64', 'sip', 'none', 'none-64' and 'integer'", text);
    return false;
}

static bool take_secret(PyObject *value, const char *name, struct wishes *w)
{
    (void)name;
    w->has_secret = value != Py_None && value != Py_False;
    return secret_take(value, true, &w->options.hashing);
}

static bool take_prefer(PyObject *value, const char *name, struct wishes *w)
{
    static const char *const names[] = { [PERHAPS_PREFER_BALANCED] = "balanced",
                                         [PERHAPS_PREFER_FAST] = "fast",
                                         [PERHAPS_PREFER_COMPACT] = "compact" };
    const char *text;
    if (value == Py_None)
        return true;
    if (!arg_text(value, name, &text))
        return false;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(text, names[i]) == 0) {
            w->options.preference = (enum perhaps_preference)i;
            return true;
        }
    PyErr_Format(PyExc_ValueError, "prefer '%s' is none of 'balanced', 'fast' and 'compact'",
                 text);
    return false;
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
static bool take_integers(PyObject *range, const char *name, struct wishes *w)
{
    struct perhaps_bitmap_options *bitmap = &w->options.bitmap;
    if (range == Py_None)
        return true;
    if (!Py_IS_TYPE(range, &PyRange_Type))
        return arg_refuse(range, name, "a range");
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

/* Takes the name from the registry, where it stays. */
static bool kind_named(PyObject *value, const char *name, const char **found)
{
    const struct perhaps_kind *kind;
    const char *text;
    if (value == Py_None)
        return true;
    if (!arg_text(value, name, &text))
        return false;
    for (size_t i = 0; (kind = perhaps_kind_at(i)); i++)
        if (strcmp(kind->name, text) == 0) {
            *found = kind->name;
            return true;
        }
    PyObject *names = PyUnicode_FromString("");
    for (size_t i = 0; names && (kind = perhaps_kind_at(i)); i++) {
        PyObject *more = PyUnicode_FromFormat("%U%s'%s'", names, i ? ", " : "", kind->name);
        Py_DECREF(names);
        names = more;
    }
    if (names)
        PyErr_Format(PyExc_ValueError, "%s '%s' is none of %U", name, text, names);
    Py_XDECREF(names);
    return false;
}

/* ---- The table ------------------------------------------------------------------- */

static bool take_capacity(PyObject *value, const char *name, struct wishes *w)
{
    return arg_whole(value, name, 0, PERHAPS_CAPACITY_MAX, &w->options.capacity);
}

static bool take_fpr(PyObject *value, const char *name, struct wishes *w)
{
    if (value == Py_None)
        return true;
    w->has_fpr = true;
    return arg_fpr(value, name, &w->options.fpr);
}

static bool take_removable(PyObject *value, const char *name, struct wishes *w)
{
    return arg_flag(value, name, &w->removable);
}

static bool take_grow(PyObject *value, const char *name, struct wishes *w)
{
    return arg_flag(value, name, &w->grow);
}

static bool take_count(PyObject *value, const char *name, struct wishes *w)
{
    return arg_flag(value, name, &w->counts);
}

static bool take_shared(PyObject *value, const char *name, struct wishes *w)
{
    return arg_flag(value, name, &w->options.shared);
}

static bool take_kind(PyObject *value, const char *name, struct wishes *w)
{
    return kind_named(value, name, &w->options.kind);
}

static bool take_base(PyObject *value, const char *name, struct wishes *w)
{
    return kind_named(value, name, &w->options.base);
}

static bool take_together(PyObject *value, const char *name, struct wishes *w)
{
    return arg_flag(value, name, &w->options.blocked.together);
}

static bool take_others(PyObject *value, const char *name, struct wishes *w)
{
    return arg_whole(value, name, 0, PERHAPS_CAPACITY_MAX, &w->options.against.others);
}

static bool take_value_bits(PyObject *value, const char *name, struct wishes *w)
{
    uint64_t bits = 0;
    bool taken = arg_whole(value, name, 0, 16, &bits);
    w->options.ribbon.value_bits = (unsigned)bits;
    return taken;
}

static bool take_static(PyObject *value, const char *name, struct wishes *w)
{
    return arg_flag(value, name, &w->fixed);
}

static bool take_memory(PyObject *value, const char *name, struct wishes *w)
{
    return arg_whole(value, name, 0, INT64_MAX, &w->how.memory_nbytes);
}

static bool take_threads(PyObject *value, const char *name, struct wishes *w)
{
    uint64_t threads = 0;
    bool taken = arg_whole(value, name, 0, 1024, &threads);
    w->how.threads = (unsigned)threads;
    return taken;
}

static bool take_folder(PyObject *value, const char *name, struct wishes *w)
{
    return value == Py_None || arg_text(value, name, &w->how.folder);
}

enum { FILTERS = 1 << ASKER_FILTER, PLANS = 1 << ASKER_PLAN, BUILDERS = 1 << ASKER_BUILDER };
enum { ALL = FILTERS | PLANS | BUILDERS, POSITIONAL = 6 };

/* The first ones may be given without their names. */
static const struct argument {
    const char *name;
    unsigned askers; /* who takes it */
    bool (*take)(PyObject *value, const char *name, struct wishes *w);
} arguments[] = {
    { "capacity", ALL, take_capacity },
    { "fpr", ALL, take_fpr },
    { "removable", ALL, take_removable },
    { "grow", ALL, take_grow },
    { "window", ALL, take_window },
    { "secret", ALL, take_secret },
    { "count", ALL, take_count },
    { "shared", ALL, take_shared },
    { "kind", ALL, take_kind },
    { "base", ALL, take_base },
    { "seed", ALL, take_seed },
    { "hash", ALL, take_hash },
    { "prefer", ALL, take_prefer },
    { "integers", ALL, take_integers },
    { "together", ALL, take_together },
    { "others", PLANS | BUILDERS, take_others },
    { "value_bits", PLANS | BUILDERS, take_value_bits },
    { "static", PLANS, take_static },
    { "memory", BUILDERS, take_memory },
    { "threads", BUILDERS, take_threads },
    { "folder", BUILDERS, take_folder },
};

enum { NARGUMENTS = sizeof arguments / sizeof *arguments };

static const char *const names_of_askers[] = { "Filter", "plan", "Builder" };

/* Puts an argument into the place of its name. */
static bool place(PyObject *name, PyObject *value, enum asker asker, PyObject *values[])
{
    const char *text = PyUnicode_AsUTF8AndSize(name, NULL);
    for (size_t i = 0; text && i < NARGUMENTS; i++) {
        if (strcmp(arguments[i].name, text) != 0 || !(arguments[i].askers & 1U << asker))
            continue;
        if (!values[i]) {
            values[i] = value;
            return true;
        }
        PyErr_Format(PyExc_TypeError, "%s() got the argument '%s' twice",
                     names_of_askers[asker], text);
        return false;
    }
    if (text)
        PyErr_Format(PyExc_TypeError, "%s() has no argument '%s': see help(perhaps.%s)",
                     names_of_askers[asker], text, names_of_askers[asker]);
    return false;
}

/* Sorts the arguments by the table; those that are missing stay NULL. */
static bool sort_arguments(PyObject *args, PyObject *kwargs, enum asker asker,
                           PyObject *values[])
{
    const Py_ssize_t count = PyTuple_Size(args);
    PyObject *name, *value;
    if (count > POSITIONAL) {
        PyErr_Format(PyExc_TypeError, "%s() takes at most %d arguments without a name, not %zd",
                     names_of_askers[asker], POSITIONAL, count);
        return false;
    }
    for (Py_ssize_t i = 0; i < count; i++)
        values[i] = PyTuple_GetItem(args, i);
    for (Py_ssize_t at = 0; kwargs && PyDict_Next(kwargs, &at, &name, &value);)
        if (!place(name, value, asker, values))
            return false;
    return true;
}

/* ---- What they say together ------------------------------------------------------ */

static bool lacks(enum asker asker, const char *what)
{
    PyErr_Format(PyExc_TypeError, "%s() needs %s", names_of_askers[asker], what);
    return false;
}

/* Windows say themselves how many keys they remember; one of time begins with so many, and
 * grows. */
static bool complete_size(PyObject *capacity, enum asker asker, struct wishes *w)
{
    const uint64_t begin = 10000;
    struct perhaps_options *o = &w->options;
    if (!o->capacity)
        o->capacity = o->window.keys                                  ? o->window.keys
                      : o->window.time || o->needs & PERHAPS_CAN_GROW ? begin
                                                                      : 0;
    if (o->capacity || o->bitmap.high || asker == ASKER_BUILDER)
        return true;
    if (!capacity)
        return lacks(asker, "capacity, how many keys it is for, or grow=True");
    PyErr_SetString(PyExc_ValueError, "capacity is at least 1, or there is grow=True");
    return false;
}

/* A bitmap has no errors, and so no rate. */
static bool complete_kind(enum asker asker, struct wishes *w)
{
    struct perhaps_options *o = &w->options;
    const bool bitmap = o->kind && strcmp(o->kind, "bitmap") == 0;
    if (bitmap && !o->bitmap.high)
        return lacks(asker, "integers, a range, for the kind 'bitmap'");
    if (!w->has_fpr && !o->bitmap.high)
        return lacks(asker, "fpr, the false-positive rate not to exceed, such as fpr=0.001");
    if (w->has_secret && w->hash && strcmp(w->hash, "sip") != 0) {
        PyErr_Format(PyExc_ValueError, "hash '%s' takes no secret: leave one of them out",
                     w->hash);
        return false;
    }
    if (w->has_secret && o->bitmap.high) {
        PyErr_SetString(PyExc_ValueError, "secret is not for a filter of integers, which "
                                          "hashes none");
        return false;
    }
    if (w->hash && strcmp(w->hash, "integer") == 0 && !o->bitmap.high) {
        PyErr_SetString(PyExc_ValueError,
                        "hash 'integer' is for filters of integers=range(...)");
        return false;
    }
    if (w->hash && strcmp(w->hash, "integer") != 0 && o->bitmap.high && (!o->kind || bitmap)) {
        PyErr_Format(PyExc_ValueError,
                     "hash '%s' is not for a filter of integers, which hashes none", w->hash);
        return false;
    }
    return true;
}

bool options_take(PyObject *args, PyObject *kwargs, enum asker asker, struct wishes *w)
{
    PyObject *values[NARGUMENTS] = { NULL };
    struct perhaps_options *o = &w->options;
    memset(w, 0, sizeof *w);
    if (!sort_arguments(args, kwargs, asker, values))
        return false;
    for (size_t i = 0; i < NARGUMENTS; i++)
        if (values[i] && !arguments[i].take(values[i], arguments[i].name, w))
            return false;
    o->needs |= (w->removable ? PERHAPS_CAN_REMOVE : 0U) |
                (w->grow && !o->window.time ? PERHAPS_CAN_GROW : 0U) |
                (w->fixed || asker == ASKER_BUILDER ? PERHAPS_CAN_BUILD : 0U);
    if (w->counts)
        count_by(o);
    return complete_size(values[0], asker, w) && complete_kind(asker, w);
}
