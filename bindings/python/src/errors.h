/* errors.h - errors of the library as exceptions: a tree below perhaps.Error. */
#ifndef ERRORS_H
#define ERRORS_H

#include "python.h"

/* Makes the exceptions and adds them to the module.  Returns whether it could. */
bool errors_make(PyObject *module);

/* Takes them from the module 'perhaps._perhaps', which has made them. */
bool errors_import(void);

/* Raises FileExistsError if a file that is no filter would be replaced.  Returns whether it may
 * be. */
bool check_replaced(PyObject *path, const char *name);

/* Raises the exception for an error of the library, whose errno still stands, and returns NULL.
 * 'path' is the file's name or NULL. */
PyObject *raise_error(int error, PyObject *path);

/* The same with a text of its own: an error of servers. */
PyObject *raise_error_text(int error, const char *text);

/* Says in the 'done' of the exception that is set how many keys were dealt with before. */
void error_done(size_t done);

#endif
