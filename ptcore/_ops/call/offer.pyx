"""Offering: before an op runs, autocast casts its arguments, and __torch_function__ of their classes or the interpreter
stack may take it.

Every kind of op comes through ``offer``: by id, with its arguments in the order of its row.
"""
from cpython.object cimport Py_TYPE, PyObject, PyTypeObject
from cpython.sequence cimport PySequence_Fast_ITEMS

from ptcore._types cimport *
from ptcore._tensor cimport Tensor, TensorExtras
from ptcore._ops.call.autocast cimport cast_arguments, casts, pause, resume
from ptcore._ops.call.record cimport record_taken
from ptcore._ops.table.ids cimport FUNCTIONS, INPLACE_FUNCTIONS, info, pt_opinfo
from ptcore._interpret cimport Interpreter
from ptcore._state cimport interpreter_stack
from ptcore._errors import here

cdef extern from "Python.h":
    PyObject *_PyType_Lookup(PyTypeObject *, object) noexcept

cdef extern from "call/op_function.h":
    ctypedef struct pt_function_hooks:
        uint32_t (*flags)(object) noexcept
        object (*ask)(object, PyObject **, Py_ssize_t, PyObject *)
    pt_function_hooks pt_hooks
    object pt_overridable_new(object, int)

cdef str TORCH_FUNCTION = "__torch_function__"


cdef bint is_foreign(object x):
    """Whether an argument that is no tensor has a ``__torch_function__``, which is to be asked instead."""
    return not isinstance(x, Tensor) and _PyType_Lookup(Py_TYPE(x), TORCH_FUNCTION) != NULL


cdef uint32_t flags_of(object x):
    """The flags of a tensor, or of all in a list; PT_FOREIGN where a value asks for the call itself."""
    cdef uint32_t key = 0
    if isinstance(x, Tensor):
        return (<Tensor>x).flags
    if x is None or type(x) is int or type(x) is float or type(x) is bool or type(x) is str:
        return 0
    if isinstance(x, (list, tuple)):
        for item in x:
            if isinstance(item, Tensor):
                key |= (<Tensor>item).flags
            elif type(item) is not int and is_foreign(item):
                key |= PT_FOREIGN
        return key
    return PT_FOREIGN if is_foreign(x) else 0


cdef uint32_t flags_of_all(PyObject **args, int n):
    """The flags of all arguments and of the thread."""
    cdef uint32_t key = pt_tls.mode
    cdef int k
    for k in range(n):
        if isinstance(<object>args[k], Tensor):
            key |= (<Tensor>args[k]).flags
        else:
            key |= flags_of(<object>args[k])
    return key


cdef bint asks(uint32_t key) noexcept:
    """Whether anybody is to be asked."""
    return (key & (PT_MODE_FUNCTION | PT_INTERPOSED)) != 0 or (
        (key & PT_SUBCLASS) != 0 and not pt_tls.torch_function_off)


cdef object offer(int op, PyObject **given, int n, uint32_t key, object out, int variant):
    """Offers a call, of whose arguments and thread ``key`` has the flags, to __torch_function__ and to the interpreter
    stack.

    Returns NotImplemented when nobody takes it, and dispatch goes on.
    """
    cdef tuple args
    if key & PT_FOREIGN:                # whoever was called gives the call to it: see handed_over in op_function.cpp
        raise TypeError(f"{info(op).name.decode()}: __torch_function__ of an argument is to be asked")
    if not asks(key):
        if key & PT_LAYOUT and info(op).sparse == NULL:
            raise NotImplementedError(f"{info(op).name.decode()}: there is no kernel for tensors that are not strided")
        return NotImplemented
    args = tuple([<object>given[k] for k in range(n)])
    if not pt_tls.torch_function_off and key & (PT_SUBCLASS | PT_MODE_FUNCTION):
        if key & PT_MODE_FUNCTION:
            result = _by_mode(op, args, out, variant)
            if result is not NotImplemented:
                return result
        result = _torch_function(op, args, out, variant)
        if result is not NotImplemented:
            return result
    if key & PT_INTERPOSED:
        return _interpret(op, args, out, variant)
    return NotImplemented


cdef object before_call(runner again, int op, PyObject **args, int n, uint32_t key, object out):
    """What comes before a call whose arguments and thread have the flags ``key``: autocast casts and calls the op
    ``again``, or whoever is asked takes it, and what stand-ins have come of it is recorded.

    Returns NotImplemented where dispatch goes on with the call.
    """
    cdef tuple held
    if casts(info(op), key) and out is None:
        held = cast_arguments(op, args, n)
        if held is not None:
            pause()
            try:
                return again(op, PySequence_Fast_ITEMS(held), n, None)
            finally:
                resume()
    result = offer(op, args, n, key, out, PT_VARIANT_PLAIN)
    if result is not NotImplemented and info(op).differentiable and out is None and wants_node(result, key):
        record_taken(op, args, n, result, key)
    return result


cdef object interpret(int op, PyObject **given, int n, object out, int variant):
    """Offers a call to the interpreter stack alone."""
    return _interpret(op, tuple([<object>given[k] for k in range(n)]), out, variant)


cdef bint is_of_top(Tensor x):
    """Whether a stand-in is one of the innermost interpreter, where its history is recorded; others hand it down."""
    cdef list stack = interpreter_stack()
    if not stack:
        return True
    owner = (<TensorExtras>x.extras).payload.owner
    return owner is None or owner is stack[len(stack) - 1]


cdef bint wants_node(object result, uint32_t key) except -1:
    """Whether what an interpreter gave for a call, of whose arguments ``key`` has the flags, gets a history of its own.

    A stand-in's history is apart from that of the value it stands for: it is the one that a transformation inside
    sees. What an interpreter made of smaller ops has its history from them, and no stand-in has none of its own.
    """
    cdef bint found = False
    if not pt_tls.grad_enabled or not key & (PT_REQUIRES_GRAD | PT_VIEW):
        return False
    for x in result if isinstance(result, tuple) else (result,):
        if not isinstance(x, Tensor) or (<Tensor>x).node is not None:
            return False
        found = found or (<Tensor>x).flags & PT_INTERPOSED != 0
    return found


cdef object _interpret(int op, tuple args, object out, int variant):
    """Hands the call to the innermost interpreter, which runs with itself taken off.

    Where it returns NotImplemented the op goes on with the interpreter in its place: a composite
    is then offered as the ops that it calls."""
    cdef list stack = interpreter_stack()
    if not stack:
        raise RuntimeError(f"{info(op).name.decode()}: an argument belongs to a transformation that "
                           "has ended or does not see this call; its value is not known here" + here())
    cdef Interpreter top = <Interpreter>stack.pop()
    if not stack:
        pt_tls.mode &= ~<uint32_t>PT_INTERPOSED
    try:
        return top.interpret(op, args, out, variant)
    finally:
        stack.append(top)
        pt_tls.mode |= PT_INTERPOSED


cdef object _by_mode(int op, tuple args, object out, int variant):
    """What the innermost TorchFunctionMode makes of a call, which runs with that mode taken off."""
    func = INPLACE_FUNCTIONS[op] if variant == PT_VARIANT_INPLACE else FUNCTIONS[op]
    if func is None:
        return NotImplemented
    cdef pt_opinfo *o = info(op)
    names = o.argnames.decode().split(",")
    kwargs = {names[k]: args[k] for k in range(o.npositional, len(args))}
    if out is not None:
        kwargs["out"] = out
    from ptcore._overrides import ask_mode
    return ask_mode(func, args[:o.npositional], kwargs)


cdef object _torch_function(int op, tuple args, object out, int variant):
    cdef pt_opinfo *o = info(op)
    cdef list types = [], owners = []
    cdef list flat = []
    for x in args:
        if isinstance(x, (list, tuple)):
            flat.extend(x)
        else:
            flat.append(x)
    for x in flat:
        if isinstance(x, Tensor) and (<Tensor>x).flags & PT_SUBCLASS and type(x) not in types:
            # subclasses come before their bases
            for i, t in enumerate(types):
                if issubclass(type(x), t):
                    types.insert(i, type(x))
                    owners.insert(i, x)
                    break
            else:
                types.append(type(x))
                owners.append(x)
    func = INPLACE_FUNCTIONS[op] if variant == PT_VARIANT_INPLACE else FUNCTIONS[op]
    if func is None:
        return NotImplemented
    names = o.argnames.decode().split(",")
    kwargs = {names[k]: args[k] for k in range(o.npositional, len(args))}
    if out is not None:
        kwargs["out"] = out
    for owner in owners:
        result = type(owner).__torch_function__(func, tuple(types), args[:o.npositional], kwargs)
        if result is not NotImplemented:
            return result
    if owners:
        raise TypeError(f"{o.name.decode()}: no implementation found for types "
                        f"{[t.__name__ for t in types]}")
    return NotImplemented


# -- functions that are no rows -------------------------------------------------------------------

cdef tuple as_given(PyObject **args, Py_ssize_t n, PyObject *keywords):
    """The arguments of a call as a tuple and a dictionary."""
    cdef Py_ssize_t k
    named = {} if keywords == NULL else {name: <object>args[n + k] for k, name in enumerate(<tuple><object>keywords)}
    return tuple([<object>args[k] for k in range(n)]), named


cdef uint32_t flags_seen(object x) noexcept:
    return flags_of(x)


cdef object ask_about(object function, PyObject **args, Py_ssize_t n, PyObject *keywords):
    from ptcore._overrides import ask
    given, named = as_given(args, n, keywords)
    return ask(function, given, named)


Overridable = type(pt_overridable_new(len, 0))       # of the public functions that are no rows


def overridable(function):
    """Decorator of a public function that is no row: modes, and arguments that have a ``__torch_function__``, get its
    calls as a whole, as they get those of rows."""
    return pt_overridable_new(function, 0)


def seen_by_modes(function):
    """Decorator of a public function that makes tensors of what is none: modes get its calls as a whole."""
    return pt_overridable_new(function, 1)


pt_hooks.flags = flags_seen
pt_hooks.ask = ask_about
