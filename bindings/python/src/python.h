/* python.h - CPython's limited API, of which Py_LIMITED_API in CMakeLists.txt tells the
 * version. Includes of the other files begin with this one. */
#ifndef PYTHON_H
#define PYTHON_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <perhaps.h>

/* A method with keywords, as PyMethodDef wants it. */
#define WITH_KEYWORDS(function) ((PyCFunction)(void (*)(void))(function))

#endif
