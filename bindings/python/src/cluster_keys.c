/* cluster_keys.c - the methods of perhaps.Cluster that add and ask. */
#include "cluster.h"
#include "errors.h"
#include "keys.h"
#include "results.h"
#include "source.h"

/* ---- One key --------------------------------------------------------------------- */

struct asking {
    struct key key;
    int answer;
};

static int do_contains(struct cluster *self, void *context)
{
    struct asking *a = context;
    a->answer = perhaps_cluster_contains(self->cluster, a->key.bytes, a->key.nbytes);
    return a->answer;
}

static int do_add(struct cluster *self, void *context)
{
    struct asking *a = context;
    a->answer = perhaps_cluster_add(self->cluster, a->key.bytes, a->key.nbytes);
    return a->answer;
}

/* Finds the form of the keys, which the servers know. */
static int find_form(struct cluster *self, void *context)
{
    enum key_form *form = context;
    *form = key_form_of(perhaps_cluster_note(self->cluster));
    return 0;
}

/* Returns an answer, or -1 with an exception set. */
static int ask_key(PyObject *object, PyObject *item, action *do_it)
{
    struct asking asking;
    enum key_form form;
    if (!key_take(item, KEYS_PLAIN, &asking.key)) /* before a server is asked */
        return -1;
    if (!cluster_act(object, true, find_form, &form)) {
        key_release(&asking.key);
        return -1;
    }
    if (form != KEYS_PLAIN) {
        key_release(&asking.key);
        if (!key_take(item, form, &asking.key))
            return -1;
    }
    bool done = cluster_act(object, true, do_it, &asking);
    key_release(&asking.key);
    return done ? asking.answer : -1;
}

int cluster_contains(PyObject *object, PyObject *item)
{
    return ask_key(object, item, do_contains);
}

PyObject *cluster_add(PyObject *object, PyObject *item)
{
    return cluster_none_if(ask_key(object, item, do_add) >= 0);
}

PyObject *cluster_add_new(PyObject *object, PyObject *item)
{
    int answer = ask_key(object, item, do_add);
    return answer < 0 ? NULL : PyBool_FromLong(answer == PERHAPS_ANSWER_NO);
}

/* ---- Many keys ------------------------------------------------------------------- */

struct batch {
    perhaps_cluster *cluster;
    struct source *source;
    visit_function *visit;
    uint8_t *answers; /* for the keys of this array; NULL: nobody wants them */
    size_t done;
};

static int visit_contains(void *context, const struct perhaps_keys *keys, size_t first)
{
    struct batch *b = context;
    return perhaps_cluster_contains_many(b->cluster, keys, b->answers + first, NULL);
}

static int visit_add(void *context, const struct perhaps_keys *keys, size_t first)
{
    struct batch *b = context;
    size_t done = 0;
    uint8_t *answers = b->answers ? b->answers + first : NULL;
    int error = perhaps_cluster_add_many(b->cluster, keys, answers, &done);
    for (size_t i = 0; i < done && answers; i++)
        answers[i] = answers[i] == PERHAPS_ANSWER_NO;
    b->done = first + done;
    return error;
}

/* BAD_TEXT is above 0, where no error of the library is. */
static int do_batch(struct cluster *self, void *context)
{
    struct batch *b = context;
    b->cluster = self->cluster;
    b->source->form = key_form_of(perhaps_cluster_note(self->cluster));
    int error = source_each(b->source, b->visit, b);
    if (error == BAD_TEXT)
        b->visit = NULL;
    return error;
}

static bool go_through_batch(PyObject *object, PyObject *keys, visit_function *visit,
                             struct results *results)
{
    struct source *source = source_open(keys, KEYS_PLAIN);
    size_t total = 0;
    int more = source ? 1 : -1;
    while (more > 0 && (more = source->next(source)) > 0) {
        size_t count = source->array.count;
        if (results && !results_resize(results, total + count, 0)) {
            more = -1;
            break;
        }
        struct batch b = { .source = source,
                           .visit = visit,
                           .answers = results_at(results, total) };
        bool done = cluster_act(object, true, do_batch, &b);
        if (!done)
            error_done(total + b.done);
        else if (!b.visit)
            raise_bad_text();
        more = done && b.visit ? more : -1;
        total += count;
    }
    if (source)
        source_close(source);
    return more == 0;
}

PyObject *cluster_add_many(PyObject *object, PyObject *keys)
{
    return cluster_none_if(go_through_batch(object, keys, visit_add, NULL));
}

static PyObject *run_for_results(PyObject *object, PyObject *keys, visit_function *visit)
{
    struct results *results = results_new(RESULT_BOOL);
    if (results && !go_through_batch(object, keys, visit, results))
        Py_CLEAR(results);
    return (PyObject *)results;
}

PyObject *cluster_add_new_many(PyObject *object, PyObject *keys)
{
    return run_for_results(object, keys, visit_add);
}

PyObject *cluster_contains_many(PyObject *object, PyObject *keys)
{
    return run_for_results(object, keys, visit_contains);
}
