/* Overridable: a function that is not a row, whose calls are offered to
 * __torch_function__ as a whole. Without it, __torch_function__ would be asked
 * once for each op inside the function. An Overridable offers the whole call
 * before it runs, as OpFunction does for rows. A plain call costs a look at the
 * types of its arguments and at one word.
 */
#include "op_function.h"
#include "_events.h"
#include "_state.h"
#include "ptcore/config.h"
#include <stddef.h>
#include <structmember.h>

namespace {

enum { LEVELS = 3 };            /* nesting of lists that is searched: a list may contain itself */

typedef struct overridable {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    PyObject *function;
    vectorcallfunc inner;       /* the wrapped function's vectorcall */
    PyObject *weakrefs;
    char modes_alone;           /* nonzero: arguments are not asked */
    struct overridable *next, **link;   /* list of all: a profile exchanges their vectorcalls */
} overridable;

inline PyObject *function_of(PyObject *self) { return ((overridable *)self)->function; }

/* Whether a value's class cannot override a call. */
inline bool is_plain(PyObject *x) {
    PyTypeObject *cls = Py_TYPE(x);
    return cls == (PyTypeObject *)pt_hooks.tensor || x == Py_None || cls == &PyLong_Type ||
           cls == &PyFloat_Type || cls == &PyBool_Type || cls == &PyUnicode_Type;
}

/* The flags of all values that may override the call, ORed; see flags_of in offer.pyx. */
uint32_t flags_of(PyObject *const *values, Py_ssize_t n, int levels) {
    uint32_t key = 0;
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *x = values[i];
        if (is_plain(x))
            continue;
        if (PyTuple_Check(x) || PyList_Check(x)) {
            if (levels > 0)
                key |= flags_of(PySequence_Fast_ITEMS(x), PySequence_Fast_GET_SIZE(x), levels - 1);
        } else {
            key |= pt_hooks.flags(x);
        }
    }
    return key;
}

PT_NOINLINE PyObject *call_of_others(PyObject *self, PyObject *const *args, size_t nargsf,
                                     PyObject *keywords) {
    const Py_ssize_t n = PyVectorcall_NARGS(nargsf);
    const Py_ssize_t all = n + (keywords == NULL ? 0 : PyTuple_GET_SIZE(keywords));
    const uint32_t key = flags_of(args, all, LEVELS) | (pt_tls.mode & PT_MODE_FUNCTION);
    if (key & PT_FOREIGN || (key & (PT_SUBCLASS | PT_MODE_FUNCTION) && !pt_tls.torch_function_off))
        return pt_hooks.ask(self, const_cast<PyObject **>(args), n, keywords);
    return ((overridable *)self)->inner(function_of(self), args, nargsf, keywords);
}

PyObject *call(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *keywords) {
    const Py_ssize_t n =
        PyVectorcall_NARGS(nargsf) + (keywords == NULL ? 0 : PyTuple_GET_SIZE(keywords));
    for (Py_ssize_t i = 0; i < n; i++)
        if (!is_plain(args[i]))
            return call_of_others(self, args, nargsf, keywords);
    if (pt_modes_seen & PT_MODE_FUNCTION)
        return call_of_others(self, args, nargsf, keywords);
    return ((overridable *)self)->inner(function_of(self), args, nargsf, keywords);
}

/* Functions that make tensors from numbers have no argument to ask: only modes see their calls. */
PyObject *call_seen_by_modes(PyObject *self, PyObject *const *args, size_t nargsf,
                             PyObject *keywords) {
    if (pt_modes_seen & pt_tls.mode & PT_MODE_FUNCTION && !pt_tls.torch_function_off)
        return pt_hooks.ask(self, const_cast<PyObject **>(args), PyVectorcall_NARGS(nargsf),
                            keywords);
    return ((overridable *)self)->inner(function_of(self), args, nargsf, keywords);
}

overridable *all = NULL;
bool recorded = false;

inline vectorcallfunc vectorcall_of(const overridable *f) {
    return f->modes_alone ? call_seen_by_modes : call;
}

PyObject *call_recorded(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *keywords) {
    pt_frame frame;
    pt_call_begin(&frame, self, args, PyVectorcall_NARGS(nargsf), keywords);
    PyObject *result = vectorcall_of((overridable *)self)(self, args, nargsf, keywords);
    pt_event_end(&frame);
    return result;
}

/* -- attributes: those of the function ---------------------------------------------------- */

PyObject *get_of_function(PyObject *self, void *name) {
    return PyObject_GetAttrString(function_of(self), (const char *)name);
}

PyObject *get_function(PyObject *self, void *) { return Py_NewRef(function_of(self)); }

PyObject *getattro(PyObject *self, PyObject *name) {
    PyObject *found = PyObject_GenericGetAttr(self, name);
    if (found != NULL || !PyErr_ExceptionMatches(PyExc_AttributeError))
        return found;
    PyErr_Clear();
    return PyObject_GetAttr(function_of(self), name);
}

int setattro(PyObject *self, PyObject *name, PyObject *value) {
    return PyObject_SetAttr(function_of(self), name, value);
}

PyObject *descr_get(PyObject *self, PyObject *instance, PyObject *) {
    if (instance == NULL || instance == Py_None)
        return Py_NewRef(self);
    return PyMethod_New(self, instance);
}

PyObject *repr(PyObject *self) { return PyObject_Repr(function_of(self)); }

/* pickle and copy look a function up by its name. */
PyObject *reduce(PyObject *self, PyObject *) {
    return get_of_function(self, (void *)"__qualname__");
}

void dealloc(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    if (((overridable *)self)->weakrefs != NULL)
        PyObject_ClearWeakRefs(self);
    Py_DECREF(function_of(self));
    *((overridable *)self)->link = ((overridable *)self)->next;
    if (((overridable *)self)->next != NULL)
        ((overridable *)self)->next->link = ((overridable *)self)->link;
    PyObject_Free(self);
    Py_DECREF(type);
}

PyGetSetDef attributes[] = {
    {"__name__", get_of_function, NULL, NULL, (void *)"__name__"},
    {"__qualname__", get_of_function, NULL, NULL, (void *)"__qualname__"},
    {"__module__", get_of_function, NULL, NULL, (void *)"__module__"},
    {"__doc__", get_of_function, NULL, NULL, (void *)"__doc__"},
    {"__wrapped__", get_function, NULL, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

PyMethodDef methods[] = {
    {"__reduce__", reduce, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

PyMemberDef members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(overridable, vectorcall), READONLY, NULL},
    {"modes_alone", T_BOOL, offsetof(overridable, modes_alone), READONLY, NULL},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(overridable, weakrefs), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

PyType_Slot type_slots[] = {
    {Py_tp_call, (void *)PyVectorcall_Call},
    {Py_tp_getattro, (void *)getattro},
    {Py_tp_setattro, (void *)setattro},
    {Py_tp_descr_get, (void *)descr_get},
    {Py_tp_dealloc, (void *)dealloc},
    {Py_tp_repr, (void *)repr},
    {Py_tp_getset, attributes},
    {Py_tp_methods, methods},
    {Py_tp_members, members},
    {0, NULL},
};

PyType_Spec type_spec = {
    "ptcore._ops.functions.Overridable",
    sizeof(overridable),
    0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_METHOD_DESCRIPTOR |
        Py_TPFLAGS_IMMUTABLETYPE | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    type_slots,
};

PyTypeObject *type = NULL;

}  // namespace

PyObject *pt_overridable_new(PyObject *function, int modes_alone) {
    if (type == NULL)
        type = (PyTypeObject *)PyType_FromSpec(&type_spec);
    if (type == NULL)
        return NULL;
    const vectorcallfunc inner = PyVectorcall_Function(function);
    overridable *made = PyObject_New(overridable, type);
    if (made == NULL)
        return NULL;
    made->function = Py_NewRef(function);
    made->inner = inner != NULL ? inner : PyObject_Vectorcall;
    made->weakrefs = NULL;
    made->modes_alone = modes_alone != 0;
    made->vectorcall = recorded ? call_recorded : vectorcall_of(made);
    made->next = all;
    made->link = &all;
    if (all != NULL)
        all->link = &made->next;
    all = made;
    return (PyObject *)made;
}

void pt_overridables_record(int on) {
    recorded = on != 0;
    for (overridable *f = all; f != NULL; f = f->next)
        f->vectorcall = on ? call_recorded : vectorcall_of(f);
}
