/* Reads of attributes of modules.
 *
 * Module.__getattr__ looks into `_parameters`, `_buffers` and `_modules`. CPython calls it where
 * the ordinary lookup finds nothing, as it does for any class; a __getattr__ or __getattribute__
 * of a user's class is therefore asked first. That way is slow (3.11 makes and drops an error at
 * each read), so a class that overrides neither gets a slot of its own, which does the same
 * without a call. The class gets it at the first read that comes to Module.__getattr__.
 *
 * Invariant: a class with the slot has Module's __getattr__ and object's __getattribute__. CPython
 * keeps it: an assignment or deletion of either on a class or of its bases, or one of `__bases__`,
 * puts its own slot back on this class and on those below it. The next read that comes to
 * Module.__getattr__ sets the slot again, if the class still is such a one.
 */
#ifndef PTCORE_MODULE_ATTRIBUTES_H
#define PTCORE_MODULE_ATTRIBUTES_H
#include <Python.h>

#ifndef PT_MODULE_SLOT
#ifdef Py_GIL_DISABLED
#define PT_MODULE_SLOT 0        /* a class is not changed while other threads read its instances */
#else
#define PT_MODULE_SLOT 1
#endif
#endif

enum { PT_TABLES = 3 };
static PyObject *pt_table_names[PT_TABLES];
static PyObject *pt_getattr = NULL;             /* Module.__getattr__ */

/* A new reference to what a dictionary has under a key; NULL without an error: nothing. */
static inline PyObject *pt_entry_of(PyObject *dict, PyObject *key) {
#if PY_VERSION_HEX >= 0x030D0000
    PyObject *found;
    PyDict_GetItemRef(dict, key, &found);
    return found;
#else
    return Py_XNewRef(PyDict_GetItemWithError(dict, key));
#endif
}

/* The same for any mapping. */
static PyObject *pt_entry_of_mapping(PyObject *table, PyObject *key) {
    const int has = PySequence_Contains(table, key);
    return has > 0 ? PyObject_GetItem(table, key) : NULL;
}

/* The place of each table in the dict of a module, by the order in which Module.__init__ sets them.
 * A class that sets attributes before has them elsewhere: then they are looked up. */
static const Py_ssize_t pt_table_places[PT_TABLES] = {1, 2, 3};

/* A new reference to a table of a module's dict; NULL without an error: there is none. */
static inline PyObject *pt_table_of(PyObject *own, int k) {
#if PT_MODULE_SLOT
    Py_ssize_t place = pt_table_places[k];
    PyObject *key, *table;
    if (PyDict_Next(own, &place, &key, &table) && key == pt_table_names[k])
        return Py_NewRef(table);
#endif
    return pt_entry_of(own, pt_table_names[k]);
}

/* A new reference to what one of the tables has under a name; NULL without an error: none has it.
 * PyErr_Occurred is not asked without need: it costs half of a lookup. */
static inline PyObject *pt_in_tables(PyObject *own, PyObject *name) {
    for (int k = 0; k < PT_TABLES; k++) {
        PyObject *table = pt_table_of(own, k), *found = NULL;
        if (table == NULL ? PyErr_Occurred() == NULL
                          : PyDict_CheckExact(table) && PyDict_GET_SIZE(table) == 0) {
            Py_XDECREF(table);
            continue;
        }
        if (table != NULL) {
            found = PyDict_CheckExact(table) ? pt_entry_of(table, name)
                                             : pt_entry_of_mapping(table, name);
            Py_DECREF(table);
        }
        if (found != NULL || PyErr_Occurred())
            return found;
    }
    return NULL;
}

/* The registered object of a name; raises AttributeError if there is none. */
static PyObject *pt_registered(PyObject *self, PyObject *name) {
    PyObject **place = _PyObject_GetDictPtr(self), *found = NULL;
    if (place != NULL && *place != NULL) {
        PyObject *own = Py_NewRef(*place);
        found = pt_in_tables(own, name);
        Py_DECREF(own);
    }
    if (found == NULL && !PyErr_Occurred())
        PyErr_Format(PyExc_AttributeError, "'%s' object has no attribute '%U'",
                     Py_TYPE(self)->tp_name, name);
    return found;
}

#if PT_MODULE_SLOT
static PyObject *pt_word_getattr, *pt_word_getattribute, *pt_getattribute;

static PyObject *pt_module_getattro(PyObject *self, PyObject *name) {
    PyObject **place, *found;
    if (_PyType_Lookup(Py_TYPE(self), name) == NULL &&
        (place = _PyObject_GetDictPtr(self)) != NULL && *place != NULL) {
        /* what the ordinary lookup would do, without its preparations */
        PyObject *own = Py_NewRef(*place);
        found = pt_entry_of(own, name);
        if (found == NULL && !PyErr_Occurred())
            found = pt_in_tables(own, name);
        Py_DECREF(own);
        if (found != NULL)
            return found;
    } else {
        found = _PyObject_GenericGetAttrWithDict(self, name, NULL, 1);
        if (found != NULL)
            return found;
    }
    return PyErr_Occurred() ? NULL : pt_registered(self, name);
}

static inline void pt_set_slot(PyTypeObject *type) {
    if (type->tp_getattro != pt_module_getattro &&
        _PyType_Lookup(type, pt_word_getattr) == pt_getattr &&
        _PyType_Lookup(type, pt_word_getattribute) == pt_getattribute)
        type->tp_getattro = pt_module_getattro;
}
#endif

static PyObject *pt_getattr_of_module(PyObject *self, PyObject *name) {
    if (!PyUnicode_Check(name)) {
        PyErr_Format(PyExc_TypeError, "attribute name must be string, not '%.200s'",
                     Py_TYPE(name)->tp_name);
        return NULL;
    }
#if PT_MODULE_SLOT
    pt_set_slot(Py_TYPE(self));
#endif
    return pt_registered(self, name);
}

static inline int pt_has_slot(PyObject *cls) {
#if PT_MODULE_SLOT
    return ((PyTypeObject *)cls)->tp_getattro == pt_module_getattro;
#else
    return 0;
#endif
}

static PyMethodDef pt_getattr_def = {
    "__getattr__", pt_getattr_of_module, METH_O,
    "__getattr__($self, name, /)\n--\n\n"
    "The parameter, buffer or child of a name that the ordinary lookup did not find."};

/* Makes Module.__getattr__; called once. */
static PyObject *pt_make_getattr(PyObject *cls) {
    static const char *const names[PT_TABLES] = {"_parameters", "_buffers", "_modules"};
    for (int k = 0; k < PT_TABLES; k++)
        if ((pt_table_names[k] = PyUnicode_InternFromString(names[k])) == NULL)
            return NULL;
#if PT_MODULE_SLOT
    pt_word_getattr = PyUnicode_InternFromString("__getattr__");
    pt_word_getattribute = PyUnicode_InternFromString("__getattribute__");
    if (pt_word_getattr == NULL || pt_word_getattribute == NULL)
        return NULL;
    pt_getattribute = Py_XNewRef(_PyType_Lookup(&PyBaseObject_Type, pt_word_getattribute));
#endif
    pt_getattr = PyDescr_NewMethod((PyTypeObject *)cls, &pt_getattr_def);
    return Py_XNewRef(pt_getattr);
}
#endif
