/* What the sources use of CPython that the limited API lacks, by what it has.
 *
 * Without Py_LIMITED_API the names of CPython are meant, and those that begin with pt_ look into its structures.
 */
#ifndef PTCORE_LIMITED_API_H
#define PTCORE_LIMITED_API_H
#ifndef PY_SSIZE_T_CLEAN
#define PY_SSIZE_T_CLEAN
#endif
#include <Python.h>

#ifdef Py_LIMITED_API

#define PyTuple_GET_SIZE PyTuple_Size
#define PyTuple_GET_ITEM PyTuple_GetItem
#define PyTuple_SET_ITEM(t, i, x) ((void)PyTuple_SetItem(t, i, x))
#define PyList_GET_SIZE PyList_Size
#define PyFloat_AS_DOUBLE PyFloat_AsDouble
#define PyBytes_AS_STRING PyBytes_AsString
#define PyUnicode_GET_LENGTH PyUnicode_GetLength
#define PyUnicode_READ_CHAR PyUnicode_ReadChar
#define PyVectorcall_Function(function) PyObject_Vectorcall     /* which takes the same arguments */

/* Where the items of tuples and lists lie, which the limited API does not say: looked for, and made sure of. */
typedef struct { Py_ssize_t tuple, list; } pt_item_places;

static pt_item_places pt_find_items(void) {
    pt_item_places at = {0, (Py_ssize_t)sizeof(PyVarObject)};
    PyObject *a = PyFloat_FromDouble(1.5), *b = PyFloat_FromDouble(2.5);
    PyObject *t = PyTuple_Pack(2, a, b), *l = PySequence_List(t);
    PyObject *size = PyObject_GetAttrString((PyObject *)&PyTuple_Type, "__basicsize__"), **items;
    at.tuple = PyLong_AsSsize_t(size);
    items = (PyObject **)((char *)t + at.tuple);
    if (items[0] != a || items[1] != b) Py_FatalError("ptcore: this Python's tuples are not as it knows them");
    items = *(PyObject ***)((char *)l + at.list);
    if (items[0] != a || items[1] != b) Py_FatalError("ptcore: this Python's lists are not as it knows them");
    Py_DECREF(size);
    Py_DECREF(l);
    Py_DECREF(t);
    Py_DECREF(a);
    Py_DECREF(b);
    return at;
}

static inline PyObject **pt_items(PyObject *x) {
    static pt_item_places at;
    if (!at.tuple) at = pt_find_items();
    return PyTuple_Check(x) ? (PyObject **)((char *)x + at.tuple) : *(PyObject ***)((char *)x + at.list);
}
#undef PySequence_Fast_ITEMS
#define PySequence_Fast_ITEMS pt_items

/* A borrowed reference to an attribute that its owner keeps. NULL without an error: there is none. */
static inline PyObject *pt_kept(PyObject *owner, const char *name) {
    PyObject *found = PyObject_GetAttrString(owner, name);
    if (found == NULL) PyErr_Clear();
    else Py_DECREF(found);
    return found;
}

static inline int pt_type_has(PyTypeObject *type, PyObject *name) {
    PyObject *found = PyObject_GetAttr((PyObject *)type, name);
    if (found == NULL) PyErr_Clear();
    else Py_DECREF(found);
    return found != NULL;
}

static inline PyObject *pt_type_mro(PyTypeObject *type) { return pt_kept((PyObject *)type, "__mro__"); }

/* A borrowed reference to what a class itself has under a name, or NULL. */
static inline PyObject *pt_type_own(PyTypeObject *type, PyObject *name) {
    PyObject *names = PyObject_GetAttrString((PyObject *)type, "__dict__"), *found = NULL;
    if (names != NULL && (found = PyObject_GetItem(names, name)) != NULL) Py_DECREF(found);
    if (found == NULL) PyErr_Clear();
    Py_XDECREF(names);
    return found;
}

/* 0, as for a class that has lost its version: then its names are compared. */
static inline unsigned int pt_type_version(PyTypeObject *type) { (void)type; return 0; }

static inline PyObject *pt_function_code(PyObject *function) { return pt_kept(function, "__code__"); }
static inline PyObject *pt_function_defaults(PyObject *function) { return pt_kept(function, "__defaults__"); }

/* A new reference, or NULL without an error. */
static inline PyObject *pt_cell_contents(PyObject *cell) {
    PyObject *found = PyObject_GetAttrString(cell, "cell_contents");
    if (found == NULL) PyErr_Clear();
    return found;
}

static inline PyObject *pt_method(PyObject *function, PyObject *self) {
    static PyObject *maker;
    if (maker == NULL) {
        PyObject *types = PyImport_ImportModule("types");
        if (types == NULL) return NULL;
        maker = PyObject_GetAttrString(types, "MethodType");
        Py_DECREF(types);
        if (maker == NULL) return NULL;
    }
    return PyObject_CallFunctionObjArgs(maker, function, self, NULL);
}

#else

static inline int pt_type_has(PyTypeObject *type, PyObject *name) { return _PyType_Lookup(type, name) != NULL; }
static inline PyObject *pt_type_mro(PyTypeObject *type) { return type->tp_mro; }
static inline PyObject *pt_type_own(PyTypeObject *type, PyObject *name) {
#if PY_VERSION_HEX >= 0x030C0000
    PyObject *names = PyType_GetDict(type), *found = PyDict_GetItemWithError(names, name);
    Py_DECREF(names);
    return found;
#else
    return PyDict_GetItemWithError(type->tp_dict, name);
#endif
}
static inline unsigned int pt_type_version(PyTypeObject *type) { return type->tp_version_tag; }
static inline PyObject *pt_function_code(PyObject *function) { return PyFunction_GET_CODE(function); }
static inline PyObject *pt_function_defaults(PyObject *function) {
    PyObject *found = PyFunction_GET_DEFAULTS(function);
    return found == NULL ? Py_None : found;
}
static inline PyObject *pt_cell_contents(PyObject *cell) { return PyCell_Get(cell); }
static inline PyObject *pt_method(PyObject *function, PyObject *self) { return PyMethod_New(function, self); }

#endif
#endif
