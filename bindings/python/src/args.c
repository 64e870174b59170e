/* args.c - arguments of a call, and how they are refused. */
#include "args.h"
#include <perhaps_plan.h>

#include <math.h>
#include <string.h>

bool arg_refuse(PyObject *value, const char *name, const char *what)
{
    PyObject *type = PyType_GetName(Py_TYPE(value));
    if (type)
        PyErr_Format(PyExc_TypeError, "%s is %s, and not %U", name, what, type);
    Py_XDECREF(type);
    return false;
}

/* Replaces an exception of this class by a TypeError of ours.  Returns false. */
static bool refuse_if(PyObject *class, PyObject *value, const char *name, const char *what)
{
    if (!PyErr_ExceptionMatches(class))
        return false;
    PyErr_Clear();
    return arg_refuse(value, name, what);
}

/* ---- Numbers --------------------------------------------------------------------- */

/* Returns an int, or NULL with an exception set. */
static PyObject *int_of(PyObject *value, const char *name, bool floats)
{
    const char *what = floats ? "a whole number" : "an int";
    if (PyFloat_Check(value) && floats) {
        double number = PyFloat_AsDouble(value);
        if (isfinite(number) && number == floor(number))
            return PyLong_FromDouble(number);
        return PyErr_Format(PyExc_ValueError, "%s is a whole number, and not %R", name, value);
    }
    PyObject *number = NULL;
    if (!PyBool_Check(value) && PyIndex_Check(value) && !PySequence_Check(value)) {
        number = PyNumber_Index(value);
        if (!number)
            refuse_if(PyExc_TypeError, value, name, what);
    } else {
        arg_refuse(value, name, what);
    }
    return number;
}

/* A number of thousands of digits has no text. */
static bool refuse_range(PyObject *number, const char *name, uint64_t least, uint64_t most)
{
    int overflow;
    PyLong_AsLongLongAndOverflow(number, &overflow);
    PyErr_Clear();
    if (overflow)
        PyErr_Format(PyExc_ValueError, "%s is from %llu to %llu", name,
                     (unsigned long long)least, (unsigned long long)most);
    else
        PyErr_Format(PyExc_ValueError, "%s is from %llu to %llu, and not %S", name,
                     (unsigned long long)least, (unsigned long long)most, number);
    return false;
}

static bool take_int(PyObject *value, const char *name, bool floats, uint64_t least,
                     uint64_t most, uint64_t *number)
{
    PyObject *object = int_of(value, name, floats);
    if (!object)
        return false;
    *number = PyLong_AsUnsignedLongLong(object);
    bool fits = !PyErr_Occurred() && *number >= least && *number <= most;
    if (!fits)
        refuse_range(object, name, least, most);
    Py_DECREF(object);
    return fits;
}

bool arg_whole(PyObject *value, const char *name, uint64_t least, uint64_t most,
               uint64_t *number)
{
    return take_int(value, name, true, least, most, number);
}

bool arg_integer(PyObject *value, const char *name, uint64_t least, uint64_t most,
                 uint64_t *number)
{
    return take_int(value, name, false, least, most, number);
}

bool arg_number(PyObject *value, const char *name, double least, double most, const char *what,
                double *number)
{
    *number = PyBool_Check(value) ? -1 : PyFloat_AsDouble(value);
    if (PyBool_Check(value))
        return arg_refuse(value, name, "a number");
    if (PyErr_Occurred() && !PyErr_ExceptionMatches(PyExc_OverflowError))
        return refuse_if(PyExc_TypeError, value, name, "a number");
    if (!PyErr_Occurred() && *number >= least && *number <= most)
        return true;
    PyErr_Clear();
    PyErr_Format(PyExc_ValueError, "%s is %s", name, what);
    return false;
}

bool arg_fpr(PyObject *value, const char *name, double *fpr)
{
    return arg_number(value, name, PERHAPS_FPR_MIN, nextafter(1, 0),
                      "a false-positive rate from 1e-15 to less than 1: 0.001", fpr);
}

bool arg_flag(PyObject *value, const char *name, bool *flag)
{
    *flag = value == Py_True;
    if (PyBool_Check(value))
        return true;
    PyObject *type = PyType_GetName(Py_TYPE(value));
    const char *text = type ? PyUnicode_AsUTF8AndSize(type, NULL) : NULL;
    bool is_bool = text && strncmp(text, "bool", 4) == 0; /* of numpy, before and after 2.0 */
    Py_XDECREF(type);
    int truth = is_bool ? PyObject_IsTrue(value) : -1;
    *flag = truth > 0;
    if (!is_bool && !PyErr_Occurred())
        arg_refuse(value, name, "True or False");
    return truth >= 0;
}

/* ---- Texts and bytes ------------------------------------------------------------- */

bool arg_text(PyObject *value, const char *name, const char **text)
{
    Py_ssize_t nbytes;
    if (!PyUnicode_Check(value))
        return arg_refuse(value, name, "a str");
    *text = PyUnicode_AsUTF8AndSize(value, &nbytes);
    if (!*text)
        return false;
    if (strlen(*text) == (size_t)nbytes)
        return true;
    PyErr_Format(PyExc_ValueError, "%s has a null character: %R", name, value);
    return false;
}

bool arg_path(PyObject *value, const char *name, PyObject **bytes)
{
    if (PyUnicode_FSConverter(value, bytes))
        return true;
    if (PyErr_ExceptionMatches(PyExc_TypeError))
        return refuse_if(PyExc_TypeError, value, name, "a str, bytes or os.PathLike");
    if (PyErr_ExceptionMatches(PyExc_ValueError) &&
        !PyErr_ExceptionMatches(PyExc_UnicodeError)) {
        PyErr_Clear();
        PyErr_Format(PyExc_ValueError, "%s has a null character: %R", name, value);
    }
    return false;
}

bool arg_buffer(PyObject *value, const char *name, Py_buffer *buffer)
{
    if (!PyObject_GetBuffer(value, buffer, PyBUF_SIMPLE))
        return true;
    return refuse_if(PyExc_TypeError, value, name, "bytes, or what has a buffer of them");
}
