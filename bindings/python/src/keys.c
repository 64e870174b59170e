/* keys.c - a Python object as a key. */
#include "keys.h"

#include <stdio.h>
#include <string.h>

bool key_refuse(PyObject *object)
{
    PyObject *name = PyType_GetName(Py_TYPE(object));
    if (name)
        PyErr_Format(PyExc_TypeError,
                     "a key is str, bytes or int, and not %U: make one of these of it first",
                     name);
    Py_XDECREF(name);
    return false;
}

/* Sets *bits to the number in two's complement, and tells whether it is below 0. */
static bool number_bits(PyObject *number, uint64_t *bits, bool *is_negative)
{
    int overflow;
    long long value = PyLong_AsLongLongAndOverflow(number, &overflow);
    *is_negative = value < 0;
    *bits = (uint64_t)value;
    if (overflow > 0) {
        *is_negative = false;
        *bits = PyLong_AsUnsignedLongLong(number);
    }
    if (overflow < 0 || (PyErr_Occurred() && PyErr_ExceptionMatches(PyExc_OverflowError)))
        PyErr_SetString(PyExc_OverflowError, "an int as a key has 64 bits, from -2**63 to "
                                             "2**64 - 1: use its str() for larger ones");
    return !PyErr_Occurred();
}

size_t number_to_key(PyObject *number, enum key_form form, char *bytes)
{
    uint64_t bits;
    bool is_negative;
    if (!number_bits(number, &bits, &is_negative))
        return 0;
    if (form != KEYS_INTEGERS) {
        memcpy(bytes, &bits, sizeof bits);
        return sizeof bits;
    }
    return (size_t)(is_negative
                        ? snprintf(bytes, NUMBER_NBYTES, "%lld", (long long)bits)
                        : snprintf(bytes, NUMBER_NBYTES, "%llu", (unsigned long long)bits));
}

static bool take_number(PyObject *object, enum key_form form, struct key *key)
{
    PyObject *number = PyNumber_Index(object);
    key->bytes = key->number;
    key->nbytes = number ? number_to_key(number, form, key->number) : 0;
    Py_XDECREF(number);
    return key->nbytes;
}

static bool take_buffer(PyObject *object, struct key *key)
{
    if (PyObject_GetBuffer(object, &key->view, PyBUF_SIMPLE))
        return false;
    key->has_view = true;
    key->bytes = key->view.buf;
    key->nbytes = (size_t)key->view.len;
    return true;
}

static bool take_bytes(PyObject *object, struct key *key)
{
    char *bytes;
    Py_ssize_t nbytes;
    if (PyBytes_AsStringAndSize(object, &bytes, &nbytes))
        return false;
    key->bytes = bytes;
    key->nbytes = (size_t)nbytes;
    return true;
}

/* Whether it is a number of another library, such as numpy.int32: it has an index, which an
 * array of one element has, too, and numpy's bool. */
static bool is_number(PyObject *object)
{
    if (!PyIndex_Check(object) || PySequence_Check(object))
        return false;
    PyObject *name = PyType_GetName(Py_TYPE(object));
    const char *text = name ? PyUnicode_AsUTF8AndSize(name, NULL) : NULL;
    bool is = text && strncmp(text, "bool", 4) != 0;
    Py_XDECREF(name);
    return is;
}

/* Makes the letters of a key small, in a copy. */
static bool fold_held(struct key *key)
{
    if (key->bytes == key->number)
        return true;
    key->folded = PyMem_Malloc(key->nbytes + 1);
    if (!key->folded) {
        key_release(key);
        return PyErr_NoMemory();
    }
    perhaps_fold_case(key->folded, key->bytes, key->nbytes);
    key->bytes = key->folded;
    return true;
}

void key_release_held(struct key *key)
{
    if (key->has_view)
        PyBuffer_Release(&key->view);
    PyMem_Free(key->folded);
}

/* A bool is an int for Python, but hardly ever meant as a key. */
static bool take_object(PyObject *object, enum key_form form, struct key *key)
{
    if (Py_IS_TYPE(object, &PyLong_Type))
        return take_number(object, form, key);
    if (PyBytes_Check(object))
        return take_bytes(object, key);
    if (PyByteArray_Check(object) || PyMemoryView_Check(object))
        return take_buffer(object, key);
    if (PyBool_Check(object))
        return key_refuse(object);
    if (PyUnicode_Check(object)) {
        Py_ssize_t nbytes = 0;
        key->bytes = PyUnicode_AsUTF8AndSize(object, &nbytes);
        key->nbytes = (size_t)nbytes;
        return key->bytes;
    }
    if (PyLong_Check(object) || is_number(object))
        return take_number(object, form, key);
    return key_refuse(object);
}

bool key_take_other(PyObject *object, enum key_form form, struct key *key)
{
    return take_object(object, form, key) && (form != KEYS_FOLDED || fold_held(key));
}
