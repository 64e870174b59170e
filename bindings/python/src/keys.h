/* keys.h - a Python object as a key: the bytes that the library hashes.
 *
 * str is its UTF-8; bytes, bytearray and memoryview are their bytes; an int is 8 bytes,
 * little-endian, in two's complement.  In a bitmap, whose keys are integers, an int is that
 * integer.  Nothing else is a key.  If the note of the filter says that case was ignored, the
 * letters A to Z of all but ints are made small. */
#ifndef KEYS_H
#define KEYS_H

#include "python.h"
#include <perhaps_file.h>

/* The longest integer in decimal digits with its sign, and a zero behind it. */
enum { NUMBER_NBYTES = 24 };

/* What the keys of a filter are. */
enum key_form { KEYS_PLAIN, KEYS_INTEGERS, KEYS_FOLDED };

/* Returns the form of the keys of a filter by its note. */
static inline enum key_form key_form_of(const char *note)
{
    return perhaps_note_says(note, "ignore-case") ? KEYS_FOLDED : KEYS_PLAIN;
}

struct key {
    const void *bytes;
    size_t nbytes;
    char number[NUMBER_NBYTES]; /* where the bytes of an int lie */
    Py_buffer view;             /* of an object that might change while it is read */
    bool has_view;
    char *folded; /* a copy with small letters, or NULL */
};

/* Writes the bytes of an int to 'number', and returns how many there are; or raises an
 * exception and returns 0. */
size_t number_to_key(PyObject *number, enum key_form form, char *bytes);

/* What key_take() does with all but str, or if case is ignored. */
bool key_take_other(PyObject *object, enum key_form form, struct key *key);

/* What key_release() does if something is held. */
void key_release_held(struct key *key);

/* Points to the bytes of the object, which must live until key_release(); or raises an
 * exception and returns false. */
static inline bool key_take(PyObject *object, enum key_form form, struct key *key)
{
    Py_ssize_t nbytes = 0;
    key->has_view = false;
    key->folded = NULL;
    if (!Py_IS_TYPE(object, &PyUnicode_Type) || form == KEYS_FOLDED)
        return key_take_other(object, form, key);
    key->bytes = PyUnicode_AsUTF8AndSize(object, &nbytes);
    key->nbytes = (size_t)nbytes;
    return key->bytes;
}

static inline void key_release(struct key *key)
{
    if (key->has_view || key->folded)
        key_release_held(key);
}

/* Raises TypeError for something that is no key, and returns false. */
bool key_refuse(PyObject *object);

#endif
