/* An instance dict that the first attribute makes. Cython's `cdef dict __dict__` makes one with
 * every object; a `__getattr__` instead would keep the interpreter from caching method lookups.
 *
 * Tensor's last fields are `PyObject *attributes`, NULL at first, which its `__dealloc__` clears, and that of its weak
 * references. When the type is made of its specification, the offset of the first is added to that.
 */
#ifndef PTCORE_INSTANCE_DICT_H
#define PTCORE_INSTANCE_DICT_H
#include <Python.h>
#include <structmember.h>
#include <string.h>

static Py_ssize_t pt_dict_offset;
static traverseproc pt_base_traverse;
static inquiry pt_base_clear;

static inline PyObject **pt_dict_of(PyObject *self) { return (PyObject **)((char *)self + pt_dict_offset); }

static int pt_dict_traverse(PyObject *self, visitproc visit, void *arg) {
    Py_VISIT(*pt_dict_of(self));
    return pt_base_traverse(self, visit, arg);
}

static int pt_dict_clear(PyObject *self) {
    Py_CLEAR(*pt_dict_of(self));
    return pt_base_clear(self);
}

/* PyType_FromModuleAndSpec, which makes Tensor with the offset of its dict. */
static PyObject *pt_type_of_spec(PyObject *module, PyType_Spec *spec, PyObject *bases) {
    enum { MOST_SLOTS = 96, MOST_MEMBERS = 8 };
    PyType_Slot slots[MOST_SLOTS];
    PyMemberDef members[MOST_MEMBERS];
    PyType_Spec own = *spec;
    int n, m = 0;
    if (strcmp(spec->name, "ptcore._tensor.Tensor") != 0)
        return PyType_FromModuleAndSpec(module, spec, bases);
    memset(members, 0, sizeof members);
    for (n = 0; n < MOST_SLOTS && spec->slots[n].slot; n++) {
        slots[n] = spec->slots[n];
        if (slots[n].slot == Py_tp_traverse) {
            pt_base_traverse = (traverseproc)slots[n].pfunc;
            slots[n].pfunc = (void *)pt_dict_traverse;
        } else if (slots[n].slot == Py_tp_clear) {
            pt_base_clear = (inquiry)slots[n].pfunc;
            slots[n].pfunc = (void *)pt_dict_clear;
        } else if (slots[n].slot == Py_tp_members) {
            const PyMemberDef *given = (const PyMemberDef *)slots[n].pfunc;
            for (; given->name != NULL && m < MOST_MEMBERS - 2; given++)
                members[m++] = *given;
            slots[n].pfunc = members;
            pt_dict_offset = spec->basicsize - 2 * (Py_ssize_t)sizeof(PyObject *);
        }
    }
    if (n == MOST_SLOTS || !pt_dict_offset || !pt_base_traverse || !pt_base_clear) {
        PyErr_SetString(PyExc_SystemError, "Tensor's specification is not what _instance_dict.h knows");
        return NULL;
    }
    members[m].name = "__dictoffset__";
    members[m].type = T_PYSSIZET;
    members[m].offset = pt_dict_offset;
    members[m].flags = READONLY;
    slots[n].slot = 0;
    slots[n].pfunc = NULL;
    own.slots = slots;
    return PyType_FromModuleAndSpec(module, &own, bases);
}
#define PyType_FromModuleAndSpec(module, spec, bases) pt_type_of_spec(module, spec, bases)
#endif
