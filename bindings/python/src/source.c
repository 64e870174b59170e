/* source.c - the keys of a batch: arrays by the buffer protocol, and iterators. */
#include "source.h"

#include "args.h"

#include <stdlib.h>
#include <string.h>

/* ---- Arrays by the buffer protocol ----------------------------------------------- */

static bool refuse_format(const char *format)
{
    const char *advice = "convert it to integers, or its items to str or bytes";
    if (strcmp(format, "?") == 0)
        advice = "True and False are no keys: convert them to integers, with .astype('u1')";
    else if (strchr(format, 'f') || strchr(format, 'd') || strchr(format, 'e') ||
             strchr(format, 'g'))
        advice = "fractions are no keys: convert them to integers, or to str or bytes";
    PyErr_Format(PyExc_TypeError, "an array of the format '%s' has no keys: %s", format,
                 advice);
    return false;
}

/* Sets the array to what the buffer has: 'count' items with 'stride' bytes from one to the
 * next. Returns false with an exception set. */
static bool take_items(struct source *source, size_t count, Py_ssize_t stride)
{
    const Py_buffer *view = &source->view;
    const char *all = view->format ? view->format : "B", *format = all;
    if (*format == '@' || *format == '=' || *format == '<') /* this machine's order */
        format++;
    else if ((*format == '>' || *format == '!') && view->itemsize > 1) {
        PyErr_Format(PyExc_ValueError,
                     "an array of the format '%s' has another byte order than this machine: "
                     "convert it, with .astype(array.dtype.newbyteorder('='))",
                     all);
        return false;
    }
    const char *letter = format;
    while (*letter >= '0' && *letter <= '9')
        letter++;
    bool one_letter = letter[0] && !letter[1];
    if (one_letter && letter == format && strchr("bBhHiIlLqQnN", *letter)) {
        array_of_numbers(source, view->buf, count, view->itemsize, stride,
                         strchr("bhilqn", *letter));
        return true;
    }
    if (one_letter && *letter == 's') {
        array_of_bytes(source, view->buf, count, view->itemsize, stride);
        return true;
    }
    if (one_letter && *letter == 'w')
        return array_of_text(source, view->buf, count, view->itemsize, stride);
    return refuse_format(all);
}

/* A row with gaps is taken as it lies; more dimensions only if they have none. */
static bool take_shape(struct source *source)
{
    const Py_buffer *view = &source->view;
    if (view->ndim == 0) {
        PyErr_SetString(PyExc_TypeError, "this is one number and no array: use the method for "
                                         "one key");
        return false;
    }
    if (PyBuffer_IsContiguous(view, 'C'))
        return take_items(source,
                          view->itemsize ? (size_t)(view->len / view->itemsize)
                                         : (size_t)view->shape[0],
                          view->itemsize);
    if (view->ndim == 1 && !view->suboffsets)
        return take_items(source, (size_t)view->shape[0], view->strides[0]);
    PyErr_SetString(PyExc_BufferError, "an array of several dimensions must be C-contiguous: "
                                       "use numpy.ascontiguousarray()");
    return false;
}

static int next_view(struct source *source)
{
    if (source->done)
        return 0;
    source->done = true;
    return 1; /* the array was set by open_view() */
}

/* Returns 1; 0 for what has no buffer, or one of Python's objects; or -1. */
static int open_view(struct source *source, PyObject *keys)
{
    if (!PyObject_CheckBuffer(keys))
        return 0;
    if (PyObject_GetBuffer(keys, &source->view, PyBUF_FULL_RO)) {
        PyErr_Clear(); /* numpy has arrays that it does not show: of dates, for example */
        return 0;
    }
    if (source->view.format && strcmp(source->view.format, "O") == 0) {
        PyBuffer_Release(&source->view);
        return 0;
    }
    source->has_view = true;
    source->next = next_view;
    return take_shape(source) ? 1 : -1;
}

/* ---- Iterators ------------------------------------------------------------------- */

/* Objects of Python, which hold the bytes of their keys as long as the batch has them. */
struct items {
    size_t count;
    PyObject *object[CHUNK_KEYS];
    char number[CHUNK_KEYS][NUMBER_NBYTES];
};

static void release_items(struct items *items)
{
    for (size_t i = 0; i < items->count; i++)
        Py_DECREF(items->object[i]);
    items->count = 0;
}

/* Adds an item to the batch.  What may change while the batch runs without the GIL is copied.
 * Returns false with an exception set. */
static bool add_item(struct source *source, PyObject *object)
{
    struct items *items = source->batch;
    struct perhaps_key *key = &source->scratch.each[items->count];
    PyObject *held = PyByteArray_Check(object) || PyMemoryView_Check(object)
                         ? PyBytes_FromObject(object)
                         : Py_NewRef(object);
    struct key taken;
    if (!held)
        return false;
    if (!key_take(held, source->form == KEYS_FOLDED ? KEYS_PLAIN : source->form, &taken)) {
        Py_DECREF(held);
        return false;
    }
    *key = (struct perhaps_key){ taken.bytes, taken.nbytes };
    if (taken.bytes == taken.number) {
        memcpy(items->number[items->count], taken.number, taken.nbytes);
        key->bytes = items->number[items->count];
    }
    key_release(&taken); /* bytes do not move: it is an object of type bytes */
    items->object[items->count++] = held;
    return true;
}

static int next_items(struct source *source)
{
    struct items *items = source->batch;
    release_items(items);
    if (PyErr_CheckSignals())
        return -1;
    while (items->count < CHUNK_KEYS) {
        PyObject *object = PyIter_Next(source->owner);
        if (!object)
            break;
        bool added = add_item(source, object);
        Py_DECREF(object);
        if (!added)
            return -1;
    }
    if (PyErr_Occurred())
        return -1;
    source->array =
        (struct array){ .count = items->count,
                        .keys = perhaps_keys_each(source->scratch.each, items->count) };
    return items->count > 0;
}

static bool open_iterator(struct source *source, PyObject *keys)
{
    source->next = next_items;
    source->batch = PyMem_Calloc(1, sizeof *source->batch);
    if (!source->batch)
        return PyErr_NoMemory();
    source->owner = PyObject_GetIter(keys);
    if (!source->owner && PyErr_ExceptionMatches(PyExc_TypeError) &&
        !PyObject_HasAttrString(keys, "__iter__")) {
        PyErr_Clear();
        arg_refuse(keys, "keys", "an array, Arrow data or anything iterable");
    }
    return source->owner;
}

/* ---- Any of them ----------------------------------------------------------------- */

/* A text is iterable, too, but as one key is what is meant. */
static bool refuse_single(PyObject *keys)
{
    if (!PyUnicode_Check(keys) && !PyBytes_Check(keys) && !PyByteArray_Check(keys))
        return false;
    PyErr_SetString(PyExc_TypeError, "keys is one key here, and not many of them: use the "
                                     "method for one key, or put it in a list");
    return true;
}

struct source *source_open(PyObject *keys, enum key_form form)
{
    if (refuse_single(keys))
        return NULL;
    struct source *source = PyMem_Malloc(sizeof *source);
    if (!source)
        return (struct source *)PyErr_NoMemory();
    source->form = form;
    source->folding = NULL;
    source->array = (struct array){ 0 };
    source->scratch.text = NULL;
    source->done = source->has_view = false;
    source->owner = NULL;
    source->batch = NULL;
    source->stream = NULL;
    source->schema = (struct arrow_schema){ 0 };
    source->chunk = (struct arrow_array){ 0 };
    source->passed = 0;
    int opened =
        PyList_CheckExact(keys) || PyTuple_CheckExact(keys) ? 0 : arrow_open(source, keys);
    if (opened == 0)
        opened = open_view(source, keys);
    if (opened == 0)
        opened = open_iterator(source, keys) ? 1 : -1;
    if (opened < 0) {
        source_close(source);
        return NULL;
    }
    return source;
}

void source_close(struct source *source)
{
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace); /* what is released may call Python */
    if (source->has_view)
        PyBuffer_Release(&source->view);
    if (source->batch)
        release_items(source->batch);
    arrow_close(source);
    PyMem_Free(source->batch);
    PyMem_Free(source->scratch.text);
    free(source->folding);
    Py_XDECREF(source->owner);
    PyMem_Free(source);
    PyErr_Restore(type, value, trace);
}

size_t source_hint(const struct source *source, PyObject *keys)
{
    const Py_ssize_t most = 1 << 20; /* an object may say anything of its length */
    if (source->has_view)
        return source->array.count;
    Py_ssize_t length = PyObject_Size(keys);
    if (length < 0)
        PyErr_Clear();
    return length <= 0 ? 0 : (size_t)(length < most ? length : most);
}

/* Who gets the keys when their letters are small. */
struct folded_visit {
    struct folding *folding;
    const struct items *items; /* NULL: of an array */
    visit_function *visit;
    void *context;
};

/* Returns whether the key was an int, which has no letters. */
static bool is_number(const struct items *items, const struct perhaps_key *key)
{
    const char *bytes = key->bytes;
    return items && bytes >= items->number[0] && bytes < items->number[CHUNK_KEYS];
}

/* Copies as many texts as have room, from number 'at' on, with small letters.  Returns how
 * many. */
static size_t fold_some(const struct folded_visit *v, const struct perhaps_keys *keys,
                        size_t at)
{
    struct folding *folding = v->folding;
    size_t n = 0, used = 0;
    for (; n < CHUNK_KEYS && at + n < keys->count; n++) {
        const struct perhaps_key key = perhaps_keys_at(keys, at + n);
        if (key.nbytes > sizeof folding->text - used)
            break;
        folding->each[n] = key;
        if (is_number(v->items, &key))
            continue;
        perhaps_fold_case(folding->text + used, key.bytes, key.nbytes);
        folding->each[n].bytes = folding->text + used;
        used += key.nbytes;
    }
    return n;
}

/* Visits one text for which there is no room. */
static int visit_long(const struct folded_visit *v, const struct perhaps_keys *keys, size_t at,
                      size_t first)
{
    const struct perhaps_key key = perhaps_keys_at(keys, at);
    char *text = malloc(key.nbytes);
    if (!text)
        return PERHAPS_ERR_MEMORY;
    perhaps_fold_case(text, key.bytes, key.nbytes);
    const struct perhaps_key folded = { text, key.nbytes };
    const struct perhaps_keys one = perhaps_keys_each(&folded, 1);
    int error = v->visit(v->context, &one, first + at);
    free(text);
    return error;
}

static int visit_folded(void *context, const struct perhaps_keys *keys, size_t first)
{
    const struct folded_visit *v = context;
    int error = 0;
    for (size_t at = 0, n; at < keys->count && !error; at += n) {
        n = fold_some(v, keys, at);
        const struct perhaps_keys some = perhaps_keys_each(v->folding->each, n);
        error = n ? v->visit(v->context, &some, first + at) : visit_long(v, keys, at, first);
        n += !n;
    }
    return error;
}

static int each(struct source *source, visit_function *visit, void *context)
{
    const struct array *array = &source->array;
    int error = 0;
    if (!array->make)
        return array->count ? visit(context, &array->keys, 0) : 0;
    for (size_t first = 0; first < array->count && !error;) {
        struct perhaps_keys made;
        error = array->make(array, first, array->count - first, &source->scratch, &made);
        if (error)
            break;
        error = visit(context, &made, first);
        first += made.count;
    }
    return error;
}

int source_each(struct source *source, visit_function *visit, void *context)
{
    if (source->form != KEYS_FOLDED || source->array.is_numbers)
        return each(source, visit, context);
    if (!source->folding)
        source->folding = malloc(sizeof *source->folding);
    struct folded_visit folded = { source->folding, source->batch, visit, context };
    return folded.folding ? each(source, visit_folded, &folded) : PERHAPS_ERR_MEMORY;
}

void raise_bad_text(void)
{
    PyErr_SetString(PyExc_ValueError,
                    "an item of the array is no Unicode (half a surrogate pair), "
                    "and has no UTF-8");
}
