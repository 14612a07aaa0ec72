/* OpFunction: the one type of all public functions and methods of ops.
 *
 * What a call needs is data: a pt_function_spec, which the generator writes for each function of
 * each row, and an entry, the C function that runs a kind of row on bound arguments. Binding puts
 * every argument, positional, by keyword or by default, into a slot; the op's own arguments come
 * first, in the order of the row.
 */
#ifndef PTCORE_OP_FUNCTION_H
#define PTCORE_OP_FUNCTION_H
#include <Python.h>
#include <stdint.h>

enum { PT_NO_SLOT = 255, PT_REQUIRED = 255, PT_MAX_SLOTS = 64 };

/* What runs a function. */
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
    PT_FORM_NUMPY,
    PT_FORM_CUSTOM,
    PT_N_FORMS
};

enum pt_role { PT_ROLE_FUNCTION, PT_ROLE_INPLACE, PT_ROLE_METHOD };

typedef struct pt_slot {
    uint16_t name;          /* in the pool of names */
    uint8_t value;          /* the default, in the pool of values; PT_REQUIRED: none */
    uint8_t second;         /* the slot that this is a second name of, or PT_NO_SLOT */
    char check; /* how a value is made plain (plain_of in functions.pyx); '.': not at all */
} pt_slot;

typedef struct pt_function_spec {
    const char *name;       /* __name__ */
    const char *qualname;   /* its place in `module` */
    const char *module;
    const char
        *extra; /* what the form needs beside: a body, the target of a choice; NULL: nothing */
    const char *result;     /* the class of several results; NULL: none */
    const pt_slot *slots;
    int16_t op;
    uint8_t form;
    uint8_t nslots;
    uint8_t npositional;
    uint8_t nargs;          /* the op's own arguments: the first slots */
    uint8_t rest; /* the slot that takes all further positional arguments, or PT_NO_SLOT */
    uint8_t spread;         /* of a method: one argument in their place may be a sequence of them */
    uint8_t out, inplace, choice, absent; /* slots with a meaning of their own, or PT_NO_SLOT */
    uint8_t role;           /* pt_role */
    uint8_t body_out; /* the body of a composite takes out= itself; has a form that ends in "_" */
} pt_function_spec;

struct pt_function;
typedef PyObject *(*pt_entry)(struct pt_function *, PyObject **slots);

typedef struct pt_function {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    const pt_function_spec *spec;
    pt_entry entry;
    PyObject **names;       /* of each slot: interned */
    PyObject **values;      /* of each slot: the default, NULL: required */
    PyObject *body;         /* what the entry has looked up; NULL: not yet */
    PyObject *result;       /* the same for the class of several results */
    PyObject *weakrefs;
    struct pt_function *next, **link;   /* all of them: a profile exchanges their vectorcalls */
} pt_function;

/* What the Cython side gives to the type. */
typedef struct pt_function_hooks {
    pt_entry entries[PT_N_FORMS];
    PyObject *(*unary)(int op, PyObject *);
    PyObject *(*binary)(int op, PyObject *, PyObject *);
    PyObject *(*inplace_binary)(int op, PyObject *, PyObject *);
    /* a new reference to what a value stands for that is not plain yet */
    PyObject *(*plain)(pt_function *, int slot, PyObject *);
    int (*second)(pt_function *, PyObject **slots, int slot);       /* -1: error */
    PyObject *(*describe)(pt_function *, const char *what);         /* "signature", "doc" */
    /* what __torch_function__ of an argument that is no tensor gives for a call; NotImplemented:
     * there is none */
    PyObject *(*overridden)(PyObject *function, PyObject **args, Py_ssize_t n, PyObject *keywords);
    /* what a call gives that is of a signature of earlier releases of PyTorch; NotImplemented: it
     * is of none */
    PyObject *(*older)(PyObject *function, PyObject **args, Py_ssize_t n, PyObject *keywords);
    PyObject *tensor;       /* the class */
    /* what an attribute is that the type has not: what ops.namespace.name says of an op, such as
     * its schema */
    PyObject *(*attribute)(pt_function *, PyObject *name);
    /* of an Overridable: the flags of a value, and what those who are asked make of a call */
    uint32_t (*flags)(PyObject *);
    PyObject *(*ask)(PyObject *function, PyObject **args, Py_ssize_t n, PyObject *keywords);
} pt_function_hooks;

#ifdef __cplusplus
extern "C" {
#endif
extern pt_function_hooks pt_hooks;
/* The type, made at the first call. */
PyTypeObject *pt_function_type(void);
/* A function from its spec; names and values hold nslots objects each, which it keeps for good. */
PyObject *pt_function_new(const pt_function_spec *spec, PyObject **names, PyObject **values);
/* A function that is no row, offered to __torch_function__ as a whole: see overridable.cpp. */
PyObject *pt_overridable_new(PyObject *function, int modes_alone);
/* Exchange the vectorcalls of all of them for ones that record events, or put them back. */
void pt_functions_record(int on);
void pt_overridables_record(int on);
#ifdef __cplusplus
}
#endif
#endif
