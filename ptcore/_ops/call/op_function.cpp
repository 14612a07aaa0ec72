/* OpFunction: binding of arguments, and the attributes that inspect, help,
 * pickle and doctest ask for. */
#include "op_function.h"
#include "_events.h"
#include "ptcore/config.h"
#include <stddef.h>
#include <structmember.h>
#include <string.h>

pt_function_hooks pt_hooks;

namespace {

const char *name_of(const pt_function *f) { return f->spec->name; }

/* -- binding ------------------------------------------------------------------------------ */

void too_many(const pt_function *f, Py_ssize_t n) {
    int least = 0;
    for (int k = 0; k < f->spec->npositional; k++)
        least += f->values[k] == NULL;
    const int most = f->spec->npositional;
    PyErr_Format(PyExc_TypeError, "%s() takes %s %d positional argument%s (%zd given)", name_of(f),
                 least == most ? "exactly" : "at most", most, most == 1 ? "" : "s", n);
}

PyObject *missing(const pt_function *f, int slot) {
    PyErr_Format(PyExc_TypeError, "%s() missing required argument '%U' (pos %d)", name_of(f),
                 f->names[slot], slot + 1);
    return NULL;
}

/* The index of the slot that a keyword names, or -1 with an error. */
int slot_of(const pt_function *f, PyObject *keyword) {
    const int n = f->spec->nslots;
    for (int k = 0; k < n; k++)
        if (f->names[k] == keyword)
            return k;
    for (int k = 0; k < n; k++) {
        const int same = PyObject_RichCompareBool(f->names[k], keyword, Py_EQ);
        if (same)
            return same < 0 ? -1 : k;
    }
    PyErr_Format(PyExc_TypeError, "%s() got an unexpected keyword argument '%U'", name_of(f),
                 keyword);
    return -1;
}

bool holds_tensors(PyObject *tuple) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tuple); i++)
        if (!PyObject_TypeCheck(PyTuple_GET_ITEM(tuple, i), (PyTypeObject *)pt_hooks.tensor))
            return false;
    return true;
}

/* Whether a value already has the plain form that its slot's check asks for. */
inline bool is_plain(char check, PyObject *x) {
    switch (check) {
    case 'b':
        return x == Py_True || x == Py_False;
    case 'g':
        return x == Py_None || PyFloat_CheckExact(x);
    case 'f':
        return PyFloat_CheckExact(x);
    case 's':
        if (PyFloat_CheckExact(x))
            return true;
        /* fallthrough */
    case 'i': {
        int overflow = 0;
        if (!PyLong_CheckExact(x))
            return false;
        PyLong_AsLongLongAndOverflow(x, &overflow);
        return overflow == 0;
    }
    case 'l':
        return PyTuple_CheckExact(x);
    case 'L':
        return PyTuple_CheckExact(x) && holds_tensors(x);
    case 't':
    case 'O':
        return x == Py_None;
    default:
        return false;           /* 'T', 'X': plain() returns a plain value unchanged */
    }
}

/* Fills missing slots with defaults, makes each value plain, and calls the entry. Slots are
 * borrowed references; values made here live until the call is over. */
inline PyObject *finish(pt_function *f, PyObject **slots) {
    const pt_function_spec *s = f->spec;
    PyObject *owned[PT_MAX_SLOTS];
    int kept = 0;
    PyObject *result = NULL;
    for (int k = 0; k < s->nslots; k++) {
        const char check = s->slots[k].check;
        if (slots[k] == NULL && (slots[k] = f->values[k]) == NULL) {
            missing(f, k);
            goto done;
        }
        if (check == '.' || is_plain(check, slots[k]))
            continue;
        /* copied: another thread may change the list while a kernel runs */
        PyObject *made = check == 'l' && PyList_CheckExact(slots[k])
                             ? PyList_AsTuple(slots[k])
                             : pt_hooks.plain(f, k, slots[k]);
        if (made == NULL)
            goto done;
        slots[k] = owned[kept++] = made;
    }
    result = f->entry(f, slots);
done:
    while (kept)
        Py_DECREF(owned[--kept]);
    return result;
}

/* The positional arguments from `from` on: a tuple, or a lone argument if it may stand for all. */
PyObject *collected(const pt_function *f, PyObject *const *args, Py_ssize_t n) {
    const Py_ssize_t from = f->spec->rest, more = n - from;
    if (more == 1 && f->spec->spread)
        return Py_NewRef(args[from]);
    PyObject *rest = PyTuple_New(more);
    if (rest != NULL)
        for (Py_ssize_t i = 0; i < more; i++)
            PyTuple_SET_ITEM(rest, i, Py_NewRef(args[from + i]));
    return rest;
}

/* Puts the keyword arguments into their slots; -1 with an error. */
int bind_keywords(pt_function *f, PyObject *const *values, PyObject *keywords, PyObject **slots) {
    const pt_function_spec *s = f->spec;
    int seconds[PT_MAX_SLOTS];
    int nseconds = 0;
    const Py_ssize_t n = PyTuple_GET_SIZE(keywords);
    for (Py_ssize_t i = 0; i < n; i++) {
        const int k = slot_of(f, PyTuple_GET_ITEM(keywords, i));
        if (k < 0)
            return -1;
        if (slots[k] != NULL) {
            PyErr_Format(PyExc_TypeError, "%s() got multiple values for keyword argument '%U'",
                         name_of(f), f->names[k]);
            return -1;
        }
        slots[k] = values[i];
        if (s->slots[k].second != PT_NO_SLOT && values[i] != Py_None)
            seconds[nseconds++] = k;
    }
    for (int i = 0; i < nseconds; i++) {
        const int k = seconds[i], first = s->slots[k].second;
        if (slots[first] != NULL && pt_hooks.second(f, slots, k) < 0)
            return -1;
        slots[first] = slots[k];
    }
    return 0;
}

typedef PyObject *(*pt_second_try)(PyObject *function, PyObject **args, Py_ssize_t n,
                                   PyObject *keywords);

/* After a failed call: the result of `way`, or the original error if it gives NotImplemented. */
PT_NOINLINE PyObject *tried_again(pt_second_try way, PyObject *self, PyObject *const *args,
                                  Py_ssize_t n, PyObject *keywords) {
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    PyObject *result = way(self, const_cast<PyObject **>(args), n, keywords);
    if (result == Py_NotImplemented) {
        Py_DECREF(result);
        PyErr_Restore(type, value, trace);
        return NULL;
    }
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(trace);
    return result;
}

/* A call that failed is passed, as it was made, to the __torch_function__ of an argument that is
 * not a tensor. (To look for one first would slow down every call. Nothing has run on such an
 * argument before: binding, or offer.pyx, refuses it.) */
PyObject *handed_over(PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *keywords) {
    return tried_again(pt_hooks.overridden, self, args, n, keywords);
}

PyObject *call(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *keywords) {
    pt_function *f = (pt_function *)self;
    const pt_function_spec *s = f->spec;
    const Py_ssize_t n = PyVectorcall_NARGS(nargsf);
    Py_ssize_t positional = n;
    PyObject *slots[PT_MAX_SLOTS];
    PyObject *rest = NULL, *result = NULL;
    memset(slots, 0, sizeof(PyObject *) * s->nslots);
    if (s->rest != PT_NO_SLOT && n > s->rest) {
        rest = slots[s->rest] = collected(f, args, n);
        if (rest == NULL)
            return NULL;
        positional = s->rest;
    } else if (n > s->npositional) {
        too_many(f, n);
        return tried_again(pt_hooks.older, self, args, n, keywords);
    }
    for (Py_ssize_t i = 0; i < positional; i++)
        slots[i] = args[i];
    if (keywords == NULL || bind_keywords(f, args + n, keywords, slots) == 0)
        result = finish(f, slots);
    else
        result = tried_again(pt_hooks.older, self, args, n, keywords);
    Py_XDECREF(rest);
    return result != NULL ? result : handed_over(self, args, n, keywords);
}

/* Functions of one or two tensors alone: a plain call skips the binding. */
PyObject *call_unary(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *keywords) {
    if (PyVectorcall_NARGS(nargsf) != 1 || keywords != NULL)
        return call(self, args, nargsf, keywords);
    PyObject *result = pt_hooks.unary(((pt_function *)self)->spec->op, args[0]);
    return result != NULL ? result : handed_over(self, args, 1, NULL);
}

PyObject *call_binary(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *keywords) {
    if (PyVectorcall_NARGS(nargsf) != 2 || keywords != NULL)
        return call(self, args, nargsf, keywords);
    PyObject *result = pt_hooks.binary(((pt_function *)self)->spec->op, args[0], args[1]);
    return result != NULL ? result : handed_over(self, args, 2, NULL);
}

PyObject *call_inplace_binary(PyObject *self, PyObject *const *args, size_t nargsf,
                              PyObject *keywords) {
    if (PyVectorcall_NARGS(nargsf) != 2 || keywords != NULL)
        return call(self, args, nargsf, keywords);
    PyObject *result = pt_hooks.inplace_binary(((pt_function *)self)->spec->op, args[0], args[1]);
    return result != NULL ? result : handed_over(self, args, 2, NULL);
}

/* -- a profile ----------------------------------------------------------------------------- */

pt_function *all = NULL;
bool recorded = false;

vectorcallfunc vectorcall_of(const pt_function_spec *spec) {
    return spec->form == PT_FORM_UNARY    ? call_unary
           : spec->form == PT_FORM_BINARY ? call_binary
           : spec->form == PT_FORM_INPLACE_BINARY && spec->choice == PT_NO_SLOT
               ? call_inplace_binary
               : call;
}

PyObject *call_recorded(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *keywords) {
    pt_frame frame;
    pt_call_begin(&frame, self, args, PyVectorcall_NARGS(nargsf), keywords);
    PyObject *result = vectorcall_of(((pt_function *)self)->spec)(self, args, nargsf, keywords);
    pt_event_end(&frame);
    return result;
}

/* -- attributes --------------------------------------------------------------------------- */

PyObject *get_name(PyObject *self, void *) {
    return PyUnicode_FromString(name_of((pt_function *)self));
}

PyObject *get_qualname(PyObject *self, void *) {
    return PyUnicode_FromString(((pt_function *)self)->spec->qualname);
}

PyObject *get_module(PyObject *self, void *) {
    return PyUnicode_FromString(((pt_function *)self)->spec->module);
}

PyObject *get_described(PyObject *self, void *what) {
    return pt_hooks.describe((pt_function *)self, (const char *)what);
}

PyObject *get_op(PyObject *self, void *) {
    return PyLong_FromLong(((pt_function *)self)->spec->op);
}

PyObject *getattro(PyObject *self, PyObject *name) {
    PyObject *found = PyObject_GenericGetAttr(self, name);
    if (found != NULL || !PyErr_ExceptionMatches(PyExc_AttributeError) ||
        PyUnicode_GET_LENGTH(name) < 2 ||
        (PyUnicode_READ_CHAR(name, 0) == '_' && PyUnicode_READ_CHAR(name, 1) == '_'))
        return found;
    PyErr_Clear();
    return pt_hooks.attribute((pt_function *)self, name);
}

/* Invariant: a function that has a dict is tracked by the garbage collector, since its attributes
 * may refer to it. The first attribute makes the dict. */
inline void track(PyObject *self) {
    if (((pt_function *)self)->dict != NULL && !PyObject_GC_IsTracked(self))
        PyObject_GC_Track(self);
}

int setattro(PyObject *self, PyObject *name, PyObject *value) {
    const int failed = PyObject_GenericSetAttr(self, name, value);
    track(self);
    return failed;
}

PyObject *get_dict(PyObject *self, void *) {
    PyObject *found = PyObject_GenericGetDict(self, NULL);
    track(self);
    return found;
}

int set_dict(PyObject *self, PyObject *value, void *) {
    const int failed = PyObject_GenericSetDict(self, value, NULL);
    track(self);
    return failed;
}

int traverse(PyObject *self, visitproc visit, void *arg) {
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(((pt_function *)self)->dict);
    Py_VISIT(((pt_function *)self)->body);
    Py_VISIT(((pt_function *)self)->result);
    return 0;
}

int clear(PyObject *self) {
    Py_CLEAR(((pt_function *)self)->dict);
    return 0;
}

/* As for Python functions: bound when looked up on an instance, unchanged when on a class. */
PyObject *descr_get(PyObject *self, PyObject *instance, PyObject *) {
    if (instance == NULL || instance == Py_None)
        return Py_NewRef(self);
    return PyMethod_New(self, instance);
}

PyObject *repr(PyObject *self) {
    const pt_function_spec *s = ((pt_function *)self)->spec;
    return PyUnicode_FromFormat("<function %s.%s>", s->module, s->qualname);
}

/* pickle and copy look a function up by its name. */
PyObject *reduce(PyObject *self, PyObject *) { return get_qualname(self, NULL); }

void dealloc(PyObject *self) {
    pt_function *f = (pt_function *)self;
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    if (f->weakrefs != NULL)
        PyObject_ClearWeakRefs(self);
    Py_XDECREF(f->dict);
    Py_XDECREF(f->body);
    Py_XDECREF(f->result);
    *f->link = f->next;
    if (f->next != NULL)
        f->next->link = f->link;
    PyObject_GC_Del(self);
    Py_DECREF(type);
}

PyGetSetDef attributes[] = {
    {"__name__", get_name, NULL, NULL, NULL},
    {"__qualname__", get_qualname, NULL, NULL, NULL},
    {"__module__", get_module, NULL, NULL, NULL},
    {"__doc__", get_described, NULL, NULL, (void *)"doc"},
    {"__signature__", get_described, NULL, NULL, (void *)"signature"},
    {"__dict__", get_dict, set_dict, NULL, NULL},
    {"op", get_op, NULL, "The id of the op in the table.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

PyMethodDef methods[] = {
    {"__reduce__", reduce, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

PyMemberDef members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(pt_function, vectorcall), READONLY, NULL},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(pt_function, weakrefs), READONLY, NULL},
    {"__dictoffset__", T_PYSSIZET, offsetof(pt_function, dict), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

PyType_Slot type_slots[] = {
    {Py_tp_call, (void *)PyVectorcall_Call},
    {Py_tp_descr_get, (void *)descr_get},
    {Py_tp_dealloc, (void *)dealloc},
    {Py_tp_repr, (void *)repr},
    {Py_tp_getattro, (void *)getattro},
    {Py_tp_setattro, (void *)setattro},
    {Py_tp_traverse, (void *)traverse},
    {Py_tp_clear, (void *)clear},
    {Py_tp_getset, attributes},
    {Py_tp_methods, methods},
    {Py_tp_members, members},
    {0, NULL},
};

PyType_Spec type_spec = {
    "ptcore._ops.functions.OpFunction",
    sizeof(pt_function),
    0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL |
        Py_TPFLAGS_METHOD_DESCRIPTOR |
        Py_TPFLAGS_IMMUTABLETYPE | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    type_slots,
};

PyTypeObject *type = NULL;

}  // namespace

PyTypeObject *pt_function_type(void) {
    if (type == NULL)
        type = (PyTypeObject *)PyType_FromSpec(&type_spec);
    return type;
}

PyObject *pt_function_new(const pt_function_spec *spec, PyObject **names, PyObject **values) {
    PyTypeObject *cls = pt_function_type();
    if (cls == NULL)
        return NULL;
    pt_function *f = PyObject_GC_New(pt_function, cls);
    if (f == NULL)
        return NULL;
    f->vectorcall = recorded ? call_recorded : vectorcall_of(spec);
    f->spec = spec;
    f->entry = pt_hooks.entries[spec->form];
    f->names = names;
    f->values = values;
    f->body = f->result = f->weakrefs = f->dict = NULL;
    f->next = all;
    f->link = &all;
    if (all != NULL)
        all->link = &f->next;
    all = f;
    return (PyObject *)f;
}

void pt_functions_record(int on) {
    recorded = on != 0;
    for (pt_function *f = all; f != NULL; f = f->next)
        f->vectorcall = on ? call_recorded : vectorcall_of(f->spec);
}
