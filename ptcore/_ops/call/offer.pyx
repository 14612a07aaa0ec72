"""Offering: before an op runs, autocast casts its arguments, and ``__torch_function__`` of their classes or the
interpreter stack may take the call.

Every kind of op comes through ``offer``: by id, with its arguments in the order of its row.
"""
from cpython.object cimport Py_TYPE, PyObject, PyTypeObject
from cpython.sequence cimport PySequence_Fast_ITEMS

from ptcore._types cimport *
from ptcore._tensor cimport Tensor, TensorExtras
from ptcore._ops.call.autocast cimport cast_arguments, casts, pause, resume
from ptcore._ops.call.read cimport as_tensor_like
from ptcore._ops.call.record cimport record_taken
from ptcore._ops.table.ids cimport FUNCTIONS, INPLACE_FUNCTIONS, PT_ELEMENTWISE, info
from ptcore._interpret cimport Interpreter
from ptcore._state cimport interpreter_stack
from ptcore._subclass cimport let_go
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
    """Whether an argument is not a tensor but has a ``__torch_function__``, which must be asked instead."""
    return not isinstance(x, Tensor) and _PyType_Lookup(Py_TYPE(x), TORCH_FUNCTION) != NULL


cdef uint32_t flags_of(object x):
    """The flags of a tensor, or of all tensors in a list; PT_FOREIGN if a value has its own ``__torch_function__``."""
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
    """Whether ``__torch_function__`` or an interpreter must be asked."""
    return (key & (PT_MODE_FUNCTION | PT_INTERPOSED)) != 0 or (
        (key & PT_SUBCLASS) != 0 and not pt_tls.torch_function_off)


cdef object offer(int op, PyObject **given, int n, uint32_t key, object out, int variant):
    """Offers a call to __torch_function__ and to the interpreter stack; ``key`` has the flags of its arguments and of
    the thread.

    Returns NotImplemented if nothing takes the call; dispatch then goes on.
    """
    cdef tuple args
    refuse_foreign(op, key)
    if not asks(key):
        if key & PT_LAYOUT and info(op).sparse == NULL:
            raise NotImplementedError(f"{info(op).name.decode()}: there is no kernel for tensors that are not strided")
        return NotImplemented
    args = tuple([<object>given[k] for k in range(n)])
    if asks_functions(key):
        func = INPLACE_FUNCTIONS[op] if variant == PT_VARIANT_INPLACE else FUNCTIONS[op]
        if func is not None:
            names = info(op).argnames.decode().split(",")
            npositional = info(op).npositional
            result = ask_functions(func, info(op).name, args[:npositional],
                                   {names[k]: args[k] for k in range(npositional, n)}, out, key)
            if result is not NotImplemented:
                return result
    if key & PT_INTERPOSED:
        return _interpret(op, args, out, variant)
    return NotImplemented


cdef object before_call(runner again, int op, PyObject **args, int n, uint32_t key, object out):
    """The steps before a call with arguments and a thread of flags ``key``: autocast casts and calls the op with
    ``again``, or the call is offered and a result of stand-ins is recorded.

    Returns NotImplemented if dispatch goes on with the call.
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
    """Whether a stand-in belongs to the innermost interpreter, which records its history; others pass it on."""
    cdef list stack = interpreter_stack()
    if not stack:
        return True
    owner = (<TensorExtras>x.extras).payload.owner
    return owner is None or owner is stack[len(stack) - 1]


cdef bint wants_node(object result, uint32_t key) except -1:
    """Whether an interpreter's result gets a node. ``key`` has the flags of the call's arguments.

    The history of a stand-in is separate from the history of its value: the transformation inside sees it. No node is
    made if the result has a history already, from smaller ops, or if it contains no stand-in.
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

    Where it returns NotImplemented the op goes on with the interpreter on the stack again: the ops that
    a composite calls are then offered."""
    cdef list stack = interpreter_stack()
    if info(op).kind == PT_ELEMENTWISE:
        args = without_arrays(args)
    if not stack:
        ended = let_go((args, out))
        if ended is not None:
            return (<Interpreter>ended).interpret(op, args, out, variant)       # of plain tensors now
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


cdef tuple without_arrays(tuple args):
    """NumPy arrays among the operands as tensors: interpreters know tensors and numbers."""
    for x in args:
        if not isinstance(x, (Tensor, float, int, complex, str)) and x is not None and hasattr(x, "__array__"):
            return tuple([as_tensor_like(y, None) if not isinstance(y, Tensor) and getattr(y, "ndim", 0)
                          and hasattr(y, "__array__") else y for y in args])
    return args


cdef int refuse_foreign(int op, uint32_t key) except -1:
    """Raises if an argument is no tensor and has a ``__torch_function__``: the caller hands the call to it (see
    ``handed_over`` in op_function.cpp)."""
    if key & PT_FOREIGN:
        raise TypeError(f"{info(op).name.decode()}: __torch_function__ of an argument is to be asked")
    return 0


cdef bint asks_functions(uint32_t key) noexcept:
    """Whether ``__torch_function__`` of a mode or of a class must be asked."""
    return key & (PT_SUBCLASS | PT_MODE_FUNCTION) != 0 and not pt_tls.torch_function_off


cdef object ask_functions(object func, const char *name, tuple args, dict kwargs, object out, uint32_t key):
    """What ``__torch_function__`` of the innermost mode, then of the classes of arguments, answers to a call. A mode
    runs with itself taken off.

    Returns NotImplemented if a mode alone was asked and leaves the call to dispatch.
    """
    cdef list types = [], owners = []
    cdef list flat = []
    for x in (*args, *kwargs.values()):
        if isinstance(x, (list, tuple)):
            flat.extend(x)
        else:
            flat.append(x)
    if out is not None:
        kwargs["out"] = out
    if key & PT_MODE_FUNCTION:
        from ptcore._overrides import ask_mode
        result = ask_mode(func, args, kwargs)
        if result is not NotImplemented:
            return result
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
    for owner in owners:
        result = type(owner).__torch_function__(func, tuple(types), args, kwargs)
        if result is not NotImplemented:
            return result
    if owners:
        raise TypeError(f"{name.decode()}: no implementation found for types {[t.__name__ for t in types]}")
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


Overridable = type(pt_overridable_new(len, 0))       # for the public functions that are no rows


def overridable(function):
    """Decorator of a public function that is no row: modes, and arguments with a ``__torch_function__``, get its calls
    as a whole, as for rows."""
    return pt_overridable_new(function, 0)


def seen_by_modes(function):
    """Decorator of a public function that makes tensors from other data: modes get its calls as a whole."""
    return pt_overridable_new(function, 1)


pt_hooks.flags = flags_seen
pt_hooks.ask = ask_about
