/* arrow.c - keys from Arrow's C data interface. */
#include "arrow.h"

#include <stdlib.h>
#include <string.h>

#include "source.h"

/* An item of a view: short strings lie in it, long ones in one of the heaps. */
struct arrow_view {
    int32_t nbytes;
    union {
        char bytes[12];
        struct {
            char prefix[4];
            int32_t heap, offset;
        };
    };
};

static int make_views(const struct array *array, size_t first, size_t count,
                      struct scratch *scratch, struct perhaps_keys *made)
{
    const struct arrow_view *view = (const struct arrow_view *)array->items + first;
    count = count < CHUNK_KEYS ? count : CHUNK_KEYS;
    for (size_t i = 0; i < count; i++, view++) {
        size_t nbytes = (size_t)view->nbytes;
        bool is_short = nbytes <= sizeof view->bytes;
        scratch->each[i].nbytes = nbytes;
        scratch->each[i].bytes =
            is_short ? view->bytes : (const char *)array->heaps[view->heap] + view->offset;
    }
    *made = perhaps_keys_each(scratch->each, count);
    return 0;
}

/* Raises ValueError if an item is null, which is no key, and returns false. */
static bool has_no_nulls(const struct source *source, const struct arrow_array *a,
                         const char *format)
{
    const uint8_t *valid = a->nbuffers > 0 ? a->buffers[0] : NULL;
    int64_t at = strcmp(format, "n") ? a->length : 0;
    if (valid && a->null_count != 0)
        for (at = 0; at < a->length; at++) {
            uint64_t bit = (uint64_t)(a->offset + at);
            if (!(valid[bit / 8] >> bit % 8 & 1))
                break;
        }
    if (at == a->length)
        return true;
    PyErr_Format(PyExc_ValueError, "item %zd is null, which is no key: drop the nulls first",
                 (Py_ssize_t)at + (Py_ssize_t)source->passed);
    return false;
}

/* Where the items begin that count.  An empty array need not have memory. */
static const void *items_of(const struct arrow_array *a, size_t item_nbytes)
{
    const char *items = a->buffers[1];
    return items ? items + (size_t)a->offset * item_nbytes : NULL;
}

/* Arrow's letters of integers: small ones are signed. */
static bool take_numbers(struct source *source, const struct arrow_array *a, const char *format)
{
    static const char letters[] = "cCsSiIlL";
    const char *letter = strlen(format) == 1 ? strchr(letters, format[0]) : NULL;
    if (!letter)
        return false;
    Py_ssize_t nbytes = (Py_ssize_t)1 << (letter - letters) / 2;
    array_of_numbers(source, items_of(a, (size_t)nbytes), (size_t)a->length, nbytes, nbytes,
                     (letter - letters) % 2 == 0);
    return true;
}

/* The offsets are signed, and never below 0. */
static bool take_strings(struct source *source, const struct arrow_array *a, const char *format)
{
    const size_t count = (size_t)a->length;
    if (strcmp(format, "u") == 0 || strcmp(format, "z") == 0)
        source->array.keys =
            perhaps_keys_offsets32(a->buffers[2], items_of(a, sizeof(uint32_t)), count);
    else if (strcmp(format, "U") == 0 || strcmp(format, "Z") == 0)
        source->array.keys =
            perhaps_keys_offsets64(a->buffers[2], items_of(a, sizeof(uint64_t)), count);
    else
        return false;
    return true;
}

static bool take_views(struct source *source, const struct arrow_array *a, const char *format)
{
    if (strcmp(format, "vu") != 0 && strcmp(format, "vz") != 0)
        return false;
    source->array.items = items_of(a, sizeof(struct arrow_view));
    source->array.heaps = a->buffers + 2;
    source->array.make = make_views;
    return true;
}

/* "w:42" is 42 bytes a key, all of which count. */
static bool take_fixed(struct source *source, const struct arrow_array *a, const char *format)
{
    if (strncmp(format, "w:", 2) != 0)
        return false;
    size_t nbytes = strtoul(format + 2, NULL, 10);
    source->array.keys = perhaps_keys_packed(items_of(a, nbytes), nbytes, (size_t)a->length);
    return true;
}

static bool refuse_array(const struct arrow_schema *schema, const struct arrow_array *a)
{
    const char *format = schema->format;
    if (schema->dictionary || a->dictionary)
        PyErr_SetString(PyExc_TypeError, "this Arrow array is dictionary-encoded: decode it "
                                         "first (pyarrow: array.dictionary_decode())");
    else if (format[0] == '+')
        PyErr_Format(
            PyExc_TypeError,
            "Arrow data of the type '%s' is a table, or has other arrays in it: give one "
            "column of strings or integers",
            format);
    else
        PyErr_Format(
            PyExc_TypeError,
            "Arrow data of the type '%s' has no keys: convert it to strings, binary or "
            "integers first",
            format);
    return false;
}

/* Sets the array of the source to this one.  Returns false with an exception set. */
static bool take_array(struct source *source, const struct arrow_schema *schema,
                       const struct arrow_array *a)
{
    const char *format = schema->format;
    source->array = (struct array){ .count = (size_t)a->length };
    if (schema->dictionary || a->dictionary || format[0] == '+')
        return refuse_array(schema, a);
    if (!has_no_nulls(source, a, format))
        return false;
    if (a->length == 0 && !strcmp(format, "n"))
        return true;
    return take_numbers(source, a, format) || take_strings(source, a, format) ||
           take_views(source, a, format) || take_fixed(source, a, format) ||
           refuse_array(schema, a);
}

/* ---- One array ------------------------------------------------------------------- */

static int next_array(struct source *source)
{
    if (source->done)
        return 0;
    source->done = true;
    PyObject *schema = PyTuple_GetItem(source->owner, 0);
    PyObject *array = PyTuple_GetItem(source->owner, 1);
    const struct arrow_schema *s = schema ? PyCapsule_GetPointer(schema, "arrow_schema") : NULL;
    const struct arrow_array *a =
        s && array ? PyCapsule_GetPointer(array, "arrow_array") : NULL;
    if (!a)
        return -1;
    if (!s->release || !a->release) {
        PyErr_SetString(PyExc_ValueError, "this Arrow array was released already");
        return -1;
    }
    return take_array(source, s, a) ? 1 : -1;
}

/* ---- A stream of arrays ---------------------------------------------------------- */

static void release_chunk(struct source *source)
{
    if (source->chunk.release)
        source->chunk.release(&source->chunk);
    source->chunk = (struct arrow_array){ 0 };
}

static int fail_stream(struct source *source, int error)
{
    const char *text = source->stream->get_last_error(source->stream);
    if (!PyErr_Occurred())
        PyErr_Format(PyExc_OSError, "the Arrow stream failed: %s",
                     text ? text : strerror(error));
    return -1;
}

/* A stream may do anything in its calls, also wait for the GIL in other threads. */
static int next_of_stream(struct source *source)
{
    source->passed += source->array.count;
    release_chunk(source);
    PyThreadState *thread = PyEval_SaveThread();
    int error = source->stream->get_next(source->stream, &source->chunk);
    PyEval_RestoreThread(thread);
    if (error)
        return fail_stream(source, error);
    if (!source->chunk.release)
        return 0;
    return take_array(source, &source->schema, &source->chunk) ? 1 : -1;
}

static int open_stream(struct source *source)
{
    source->stream = PyCapsule_GetPointer(source->owner, "arrow_array_stream");
    if (!source->stream)
        return -1;
    if (!source->stream->release) {
        PyErr_SetString(PyExc_ValueError, "this Arrow stream was read already");
        return -1;
    }
    PyThreadState *thread = PyEval_SaveThread();
    int error = source->stream->get_schema(source->stream, &source->schema);
    PyEval_RestoreThread(thread);
    source->next = next_of_stream;
    return error ? fail_stream(source, error) : 1;
}

/* Calls the method of this name, if there is one.  Returns 1, 0 or -1 as arrow_open() does. */
static int call(struct source *source, PyObject *keys, PyObject *name)
{
    PyObject *method = name ? PyObject_GetAttr(keys, name) : NULL;
    if (!method) {
        bool has_none = name && PyErr_ExceptionMatches(PyExc_AttributeError);
        if (has_none)
            PyErr_Clear();
        return has_none ? 0 : -1;
    }
    source->owner = PyObject_CallNoArgs(method);
    Py_DECREF(method);
    return source->owner ? 1 : -1;
}

int arrow_open(struct source *source, PyObject *keys)
{
    static PyObject *of_array, *of_stream; /* Python caches what it finds by the same object */
    if (!of_array)
        of_array = PyUnicode_InternFromString("__arrow_c_array__");
    if (!of_stream)
        of_stream = PyUnicode_InternFromString("__arrow_c_stream__");
    int found = call(source, keys, of_array);
    if (found == 0) {
        found = call(source, keys, of_stream);
        return found > 0 ? open_stream(source) : found;
    }
    if (found < 0)
        return -1;
    source->next = next_array;
    if (PyTuple_Check(source->owner) && PyTuple_Size(source->owner) == 2)
        return 1;
    PyErr_SetString(PyExc_TypeError, "__arrow_c_array__() gave no pair of capsules");
    return -1;
}

void arrow_close(struct source *source)
{
    release_chunk(source);
    if (source->schema.release)
        source->schema.release(&source->schema);
}
