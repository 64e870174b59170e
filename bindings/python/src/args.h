/* args.h - arguments of a call.
 *
 * Each of these reads the argument of this name, and returns whether it could.  Otherwise an
 * exception is set that tells the name: a TypeError for a thing of another type, a ValueError
 * for a value that is none. */
#ifndef ARGS_H
#define ARGS_H

#include "python.h"

/* A whole number; a float that is one is as good: 1e6. */
bool arg_whole(PyObject *value, const char *name, uint64_t least, uint64_t most,
               uint64_t *number);

/* The same without floats, which do not tell numbers above 2^53 apart. */
bool arg_integer(PyObject *value, const char *name, uint64_t least, uint64_t most,
                 uint64_t *number);

/* A number from 'least' to 'most'; 'what' tells which it is. */
bool arg_number(PyObject *value, const char *name, double least, double most, const char *what,
                double *number);

/* A false-positive rate. */
bool arg_fpr(PyObject *value, const char *name, double *fpr);

/* True or False, also those of numpy. */
bool arg_flag(PyObject *value, const char *name, bool *flag);

/* A text without null bytes, which lives as long as the object. */
bool arg_text(PyObject *value, const char *name, const char **text);

/* A str, bytes or os.PathLike, to bytes that the caller owns. */
bool arg_path(PyObject *value, const char *name, PyObject **bytes);

/* Bytes, to be released by PyBuffer_Release(). */
bool arg_buffer(PyObject *value, const char *name, Py_buffer *buffer);

/* Raises a TypeError: it is not 'what'.  Returns false. */
bool arg_refuse(PyObject *value, const char *name, const char *what);

#endif
