/* An instance dict that the first attribute makes. Cython's `cdef dict __dict__` makes a dict with
 * every object; a `__getattr__` would keep the interpreter from caching method lookups.
 *
 * The type has a field `PyObject *` at the offset, NULL at first, which its `__dealloc__` clears.
 */
#ifndef PTCORE_INSTANCE_DICT_H
#define PTCORE_INSTANCE_DICT_H
#include <Python.h>

static Py_ssize_t pt_dict_offset;
static traverseproc pt_base_traverse;
static inquiry pt_base_clear;

static inline PyObject **pt_dict_of(PyObject *self) {
    return (PyObject **)((char *)self + pt_dict_offset);
}

static int pt_dict_traverse(PyObject *self, visitproc visit, void *arg) {
    Py_VISIT(*pt_dict_of(self));
    return pt_base_traverse(self, visit, arg);
}

static int pt_dict_clear(PyObject *self) {
    Py_CLEAR(*pt_dict_of(self));
    return pt_base_clear(self);
}

/* Call it before the type has subclasses. */
static void pt_add_instance_dict(PyTypeObject *type, Py_ssize_t offset) {
    pt_dict_offset = type->tp_dictoffset = offset;
    pt_base_traverse = type->tp_traverse;
    pt_base_clear = type->tp_clear;
    type->tp_traverse = pt_dict_traverse;
    type->tp_clear = pt_dict_clear;
    PyType_Modified(type);
}
#endif
