/* OpFunction: the one type of all public functions and methods of ops.
 *
 * The data of a call is a pt_function_spec, which the generator writes for each function of each
 * row, and an entry, the C function that runs a kind of row on bound arguments. Binding puts
 * every argument, positional, by keyword or by default, into a slot; the op's own arguments come
 * first, in the order of the row.
 */
#ifndef PTCORE_OP_FUNCTION_H
#define PTCORE_OP_FUNCTION_H
#include <Python.h>
#include <stdint.h>

enum { PT_NO_SLOT = 255, PT_REQUIRED = 255, PT_MAX_SLOTS = 64 };

/* The kinds of functions; each kind has one entry. */
enum pt_form {
    PT_FORM_UNARY,
    PT_FORM_BINARY,
    PT_FORM_ELEMENTWISE,
    PT_FORM_STRUCTURED,
    PT_FORM_VIEW,
    PT_FORM_COMPOSITE,
    PT_FORM_INPLACE_BINARY,
    PT_FORM_INPLACE_ELEMENTWISE,
    PT_FORM_INPLACE_OTHER,
    PT_FORM_INPLACE_VIEW,
    PT_FORM_NUMPY,
    PT_FORM_CUSTOM,
    PT_N_FORMS
};

enum pt_role { PT_ROLE_FUNCTION, PT_ROLE_INPLACE, PT_ROLE_METHOD };

typedef struct pt_slot {
    uint16_t name;          /* in the pool of names */
    uint8_t value;          /* the default, in the pool of values; PT_REQUIRED: none */
    uint8_t second;         /* the slot that this one is an alias of, or PT_NO_SLOT */
    char check;             /* the plain form (plain_of in functions.pyx); '.': any value */
} pt_slot;

typedef struct pt_function_spec {
    const char *name;       /* __name__ */
    const char *qualname;   /* its qualified name in `module` */
    const char *module;
    const char *extra;      /* what else the form needs: a body, the target of a choice, or NULL */
    const char *result;     /* the class of a result of several tensors; NULL: none */
    const pt_slot *slots;
    int16_t op;
    uint8_t form;
    uint8_t nslots;
    uint8_t npositional;
    uint8_t nargs;          /* the op's own arguments: the first slots */
    uint8_t rest;           /* the slot of all further positional arguments, or PT_NO_SLOT */
    uint8_t spread;         /* methods: one argument there may be a sequence of all the rest */
    uint8_t out, inplace, choice, absent; /* slots with a special meaning, or PT_NO_SLOT */
    uint8_t role;           /* pt_role */
    uint8_t body_out; /* the composite's body handles out= (for "_" functions: in place) itself */
    uint8_t wide;           /* the composite's body computes half types in float32 */
} pt_function_spec;

struct pt_function;
typedef PyObject *(*pt_entry)(struct pt_function *, PyObject **slots);

typedef struct pt_function {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    const pt_function_spec *spec;
    pt_entry entry;
    PyObject **names;       /* the name of each slot, interned */
    PyObject **values;      /* the default of each slot; NULL: required */
    PyObject *body;         /* cached by the entry after its first lookup; NULL: not yet */
    PyObject *result;       /* likewise: the class of a result of several tensors */
    PyObject *weakrefs;
    PyObject *dict;         /* of attributes; NULL: none was set */
    struct pt_function *next, **link;   /* list of all: a profile exchanges their vectorcalls */
} pt_function;

/* Functions and objects that the Cython code provides. */
typedef struct pt_function_hooks {
    pt_entry entries[PT_N_FORMS];
    PyObject *(*unary)(int op, PyObject *);
    PyObject *(*binary)(int op, PyObject *, PyObject *);
    PyObject *(*inplace_binary)(int op, PyObject *, PyObject *);
    /* the plain form of a value that is not plain, as a new reference */
    PyObject *(*plain)(pt_function *, int slot, PyObject *);
    int (*second)(pt_function *, PyObject **slots, int slot);       /* -1: error */
    PyObject *(*describe)(pt_function *, const char *what);         /* "signature", "doc" */
    /* the result of __torch_function__ of an argument that is not a tensor;
     * NotImplemented: no argument has one */
    PyObject *(*overridden)(PyObject *function, PyObject **args, Py_ssize_t n, PyObject *keywords);
    /* the result of a call in a signature of earlier PyTorch releases; NotImplemented: the
     * call fits no such signature */
    PyObject *(*older)(PyObject *function, PyObject **args, Py_ssize_t n, PyObject *keywords);
    PyObject *tensor;       /* the class Tensor */
    /* an attribute that the type lacks: looked up in ops.namespace.name of the op,
     * which has its schema and more */
    PyObject *(*attribute)(pt_function *, PyObject *name);
    /* for Overridables: the flags of a value; the result of a call offered to __torch_function__ */
    uint32_t (*flags)(PyObject *);
    PyObject *(*ask)(PyObject *function, PyObject **args, Py_ssize_t n, PyObject *keywords);
} pt_function_hooks;

#ifdef __cplusplus
extern "C" {
#endif
extern pt_function_hooks pt_hooks;
/* The type OpFunction, made at the first call. */
PyTypeObject *pt_function_type(void);
/* A function from its spec. It keeps `names` and `values`, arrays of nslots objects, for good. */
PyObject *pt_function_new(const pt_function_spec *spec, PyObject **names, PyObject **values);
/* A function that is not a row, offered to __torch_function__ as a whole: see overridable.cpp. */
PyObject *pt_overridable_new(PyObject *function, int modes_alone);
/* Exchange the vectorcalls of all functions for ones that record events, or restore them. */
void pt_functions_record(int on);
void pt_overridables_record(int on);
#ifdef __cplusplus
}
#endif
#endif
