/* one.c - the methods of a filter for one key.  They keep the GIL, which costs less than to
 * give it away, and look only whether a batch is running that they would meet. */
#include "errors.h"
#include "filter.h"
#include <perhaps_build.h>

int filter_contains(PyObject *object, PyObject *item)
{
    struct filter *self = (struct filter *)object;
    struct key key;
    if (!key_take(item, self->form, &key))
        return -1;
    const perhaps_filter *filter = filter_now(self, USE_ASK);
    int answer = filter ? perhaps_contains(filter, key.bytes, key.nbytes) : -1;
    key_release(&key);
    return answer;
}

PyObject *filter_add(PyObject *object, PyObject *item)
{
    struct filter *self = (struct filter *)object;
    struct key key;
    if (!key_take(item, self->form, &key))
        return NULL;
    perhaps_filter *filter = filter_now(self, USE_ADD);
    int error = filter ? perhaps_add(filter, key.bytes, key.nbytes) : 0;
    key_release(&key);
    if (error)
        return raise_error(error, NULL);
    return filter ? Py_NewRef(Py_None) : NULL;
}

PyObject *filter_add_new(PyObject *object, PyObject *item)
{
    struct filter *self = (struct filter *)object;
    struct key key;
    bool was_present = false;
    if (!key_take(item, self->form, &key))
        return NULL;
    perhaps_filter *filter = filter_now(self, USE_ADD);
    int error =
        filter ? perhaps_add_unless_present(filter, key.bytes, key.nbytes, &was_present) : 0;
    key_release(&key);
    if (error)
        return raise_error(error, NULL);
    return filter ? PyBool_FromLong(!was_present) : NULL;
}

PyObject *filter_remove(PyObject *object, PyObject *item)
{
    struct filter *self = (struct filter *)object;
    struct key key;
    if (!key_take(item, self->form, &key))
        return NULL;
    perhaps_filter *filter = filter_now(self, USE_ADD);
    int error = filter ? perhaps_remove(filter, key.bytes, key.nbytes) : 0;
    key_release(&key);
    if (error)
        return raise_error(error, NULL);
    return filter ? Py_NewRef(Py_None) : NULL;
}

PyObject *filter_count(PyObject *object, PyObject *item)
{
    struct filter *self = (struct filter *)object;
    struct key key;
    uint64_t count = 0;
    if (!key_take(item, self->form, &key))
        return NULL;
    const perhaps_filter *filter = filter_now(self, USE_ASK);
    int error = filter ? perhaps_count(filter, key.bytes, key.nbytes, &count) : 0;
    key_release(&key);
    if (error)
        return raise_error(error, NULL);
    return filter ? PyLong_FromUnsignedLongLong(count) : NULL;
}

/* As a dict's get(): with a second argument for a key that is not there. */
PyObject *filter_get(PyObject *object, PyObject *args)
{
    struct filter *self = (struct filter *)object;
    PyObject *item, *other = Py_None;
    struct key key;
    uint32_t value = 0;
    if (!PyArg_ParseTuple(args, "O|O:get", &item, &other) || !key_take(item, self->form, &key))
        return NULL;
    const perhaps_filter *filter = filter_now(self, USE_ASK);
    int error = filter ? perhaps_lookup(filter, key.bytes, key.nbytes, &value) : 0;
    key_release(&key);
    if (error == PERHAPS_ERR_NOT_FOUND)
        return Py_NewRef(other);
    if (error)
        return raise_error(error, NULL);
    return filter ? PyLong_FromUnsignedLong(value) : NULL;
}
