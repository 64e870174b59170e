/* keys.h - a Python object as a key: the bytes that the library hashes.
 *
 * str is its UTF-8; bytes, bytearray and memoryview are their bytes; an int is 8 bytes,
 * little-endian, in two's complement.  In a bitmap, whose keys are integers, an int is that
 * integer.  Nothing else is a key. */
#ifndef KEYS_H
#define KEYS_H

#include "python.h"

/* The longest integer in decimal digits with its sign, and a zero behind it. */
enum { NUMBER_NBYTES = 24 };

struct key {
    const void *bytes;
    size_t nbytes;
    char number[NUMBER_NBYTES]; /* where the bytes of an int lie */
    Py_buffer view;             /* of an object that might change while it is read */
    bool has_view;
};

/* Writes the bytes of an int to 'number', and returns how many there are; or raises an
 * exception and returns 0. */
size_t number_to_key(PyObject *number, bool integers, char *bytes);

/* What key_take() does with all but str and bytes. */
bool key_take_other(PyObject *object, bool integers, struct key *key);

/* Points to the bytes of the object, which must live until key_release(); or raises an
 * exception and returns false. */
static inline bool key_take(PyObject *object, bool integers, struct key *key)
{
    Py_ssize_t nbytes = 0;
    key->has_view = false;
    if (!Py_IS_TYPE(object, &PyUnicode_Type))
        return key_take_other(object, integers, key);
    key->bytes = PyUnicode_AsUTF8AndSize(object, &nbytes);
    key->nbytes = (size_t)nbytes;
    return key->bytes;
}

static inline void key_release(struct key *key)
{
    if (key->has_view)
        PyBuffer_Release(&key->view);
}

/* Raises TypeError for something that is no key, and returns false. */
bool key_refuse(PyObject *object);

#endif
