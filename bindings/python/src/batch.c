/* batch.c - the methods of a filter for many keys: without the GIL, and without a copy of the
 * keys where they lie as the library takes them. */
#include <string.h>

#include "errors.h"
#include "filter.h"
#include "results.h"
#include <perhaps_build.h>

struct batch {
    perhaps_filter *filter;
    void *items; /* of the results for this array, or NULL */
    size_t item_nbytes;
    size_t done; /* how many keys of this array were dealt with */
};

static void *result_at(const struct batch *b, size_t index)
{
    return (char *)b->items + index * b->item_nbytes;
}

static int visit_add(void *context, const struct perhaps_keys *keys, size_t first)
{
    struct batch *b = context;
    size_t done = 0;
    int error = perhaps_add_many(b->filter, keys, &done);
    b->done = first + done;
    return error;
}

static int visit_add_new(void *context, const struct perhaps_keys *keys, size_t first)
{
    struct batch *b = context;
    bool *is_new = result_at(b, first);
    size_t done = 0;
    int error = perhaps_add_unless_present_many(b->filter, keys, is_new, &done);
    for (size_t i = 0; i < done; i++)
        is_new[i] = !is_new[i];
    b->done = first + done;
    return error;
}

static int visit_contains(void *context, const struct perhaps_keys *keys, size_t first)
{
    struct batch *b = context;
    perhaps_contains_many(b->filter, keys, result_at(b, first));
    return 0;
}

static int visit_remove(void *context, const struct perhaps_keys *keys, size_t first)
{
    struct batch *b = context;
    size_t done = 0;
    int error = perhaps_remove_many(b->filter, keys, result_at(b, first), NULL, &done);
    b->done = first + done;
    return error;
}

static int visit_count(void *context, const struct perhaps_keys *keys, size_t first)
{
    struct batch *b = context;
    return perhaps_count_many(b->filter, keys, result_at(b, first));
}

/* What is not there has the value 0. */
static int visit_get(void *context, const struct perhaps_keys *keys, size_t first)
{
    struct batch *b = context;
    bool present[CHUNK_KEYS];
    int error = 0;
    for (size_t at = 0; at < keys->count && !error; at += CHUNK_KEYS) {
        size_t left = keys->count - at, count = left < CHUNK_KEYS ? left : CHUNK_KEYS;
        const struct perhaps_keys some = perhaps_keys_slice(keys, at, count);
        error = perhaps_lookup_many(b->filter, &some, result_at(b, first + at), present);
    }
    return error;
}

/* Does it with one array of the source.  Returns 0 or an error. */
static int run_array(struct filter *self, struct source *source, struct batch *b, enum use use,
                     visit_function *visit)
{
    b->filter = filter_enter(self, use);
    if (!b->filter)
        return PERHAPS_ERR_STOPPED; /* with an exception set */
    PyThreadState *thread = PyEval_SaveThread();
    int error = source_each(source, visit, b);
    PyEval_RestoreThread(thread);
    filter_leave(self, use);
    return error;
}

/* Raises an error that was met after so many keys. */
static void fail(int error, size_t done)
{
    char text[256];
    if (error == BAD_TEXT)
        raise_bad_text();
    else if (error == PERHAPS_ERR_IO)
        raise_error(error, NULL);
    else {
        PyOS_snprintf(text, sizeof text, "%s (%zu keys came before)", perhaps_strerror(error),
                      done);
        raise_error_text(error, text);
    }
    error_done(done);
}

/* Goes through all keys.  Sets the results, if there are to be any.  Returns whether it
 * could. */
static bool run(struct filter *self, PyObject *keys, enum use use, visit_function *visit,
                struct results *results)
{
    struct source *source = source_open(keys, self->form);
    size_t hint = source && results ? source_hint(source, keys) : 0, total = 0;
    int more = source ? 1 : -1;
    while (more > 0 && (more = source->next(source)) > 0) {
        size_t count = source->array.count;
        if (results && !results_resize(results, total + count, hint)) {
            more = -1;
            break;
        }
        struct batch b = { .items = results_at(results, total),
                           .item_nbytes = results ? (size_t)results->item_nbytes : 0 };
        int error = run_array(self, source, &b, use, visit);
        if (error && !PyErr_Occurred())
            fail(error, total + b.done);
        more = error ? -1 : more;
        total += count;
    }
    if (source)
        source_close(source);
    return more == 0;
}

static PyObject *run_for_none(PyObject *self, PyObject *keys, enum use use,
                              visit_function *visit)
{
    bool done = run((struct filter *)self, keys, use, visit, NULL);
    return done ? Py_NewRef(Py_None) : NULL;
}

static PyObject *run_for_results(PyObject *self, PyObject *keys, enum use use,
                                 visit_function *visit, enum result_type type)
{
    struct results *results = results_new(type);
    if (results && !run((struct filter *)self, keys, use, visit, results))
        Py_CLEAR(results);
    return (PyObject *)results;
}

PyObject *filter_add_many(PyObject *self, PyObject *keys)
{
    return run_for_none(self, keys, USE_ADD, visit_add);
}

PyObject *filter_add_new_many(PyObject *self, PyObject *keys)
{
    return run_for_results(self, keys, USE_ADD, visit_add_new, RESULT_BOOL);
}

PyObject *filter_contains_many(PyObject *self, PyObject *keys)
{
    return run_for_results(self, keys, USE_ASK, visit_contains, RESULT_BOOL);
}

PyObject *filter_remove_many(PyObject *self, PyObject *keys)
{
    return run_for_results(self, keys, USE_ADD, visit_remove, RESULT_BOOL);
}

PyObject *filter_count_many(PyObject *self, PyObject *keys)
{
    return run_for_results(self, keys, USE_ASK, visit_count, RESULT_UINT64);
}

PyObject *filter_get_many(PyObject *self, PyObject *keys)
{
    return run_for_results(self, keys, USE_ASK, visit_get, RESULT_UINT32);
}
