/* module.c - perhaps._perhaps: what 'import perhaps' loads. */
#include "errors.h"
#include "filter.h"
#include "results.h"

static PyMethodDef functions[] = {
    { "open", WITH_KEYWORDS(module_open), METH_VARARGS | METH_KEYWORDS,
      "open(path, mode='r', secret=None, *, check=False)\n--\n\n"
      "Opens a saved filter.\n\n"
      "mode   'r': mapped, to be asked; opens at once, however large it is\n"
      "       'w': read into memory, to be changed there; save() it again\n"
      "       'in place': the file itself is changed, by any number of processes at once\n"
      "check  'r': compares each page with its checksum before it is first used\n" },
    { "plan", WITH_KEYWORDS(module_plan), METH_VARARGS | METH_KEYWORDS,
      "plan(capacity=None, fpr=None, removable=False, grow=False, window=None, secret=None, "
      "*,\n"
      "     count=False, shared=False, kind=None, base=None, seed=None, hash=None,\n"
      "     prefer='balanced', integers=None, together=False, others=0, value_bits=0,\n"
      "     static=False)\n--\n\n"
      "Returns what Filter(...) would be, and what it would take; with static=True\n"
      "what build() would make of so many keys.\n\n"
      ">>> import perhaps\n"
      ">>> perhaps.plan(1_000_000, 0.001).bits_per_key < 16\n"
      "True\n" },
    { NULL, NULL, 0, NULL },
};

/* One for the whole process: types and exceptions are kept in static variables. */
static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "perhaps._perhaps",
    .m_size = -1,
    .m_methods = functions,
};

PyMODINIT_FUNC PyInit__perhaps(void);

PyMODINIT_FUNC PyInit__perhaps(void)
{
    PyObject *module = PyModule_Create(&definition);
    if (module && errors_make(module) && results_make(module) && stats_make(module) &&
        filter_make(module) && builder_make(module) &&
        !PyModule_AddStringConstant(module, "version", perhaps_version()))
        return module;
    Py_XDECREF(module);
    return NULL;
}
