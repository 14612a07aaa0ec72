"""All functions of the op table, under the names of their rows.

Each is an OpFunction (call/op_function.h), made at import from a table that the generator writes. This module has the
entries: an entry runs a kind of row after its arguments are bound. The modules of ptcore/_names give public names to
these objects.
"""
from cpython.mem cimport PyMem_Calloc, PyMem_Malloc
from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF, Py_INCREF
from cpython.sequence cimport PySequence_Fast_ITEMS
from libc.string cimport strcmp

from ptcore._types cimport *
from ptcore._shape cimport is_symbolic_number
from ptcore._tensor cimport Tensor
from ptcore._ops.view cimport views
from ptcore._ops.view.inplace cimport run_view_inplace
from ptcore._ops.call.elementwise cimport (binary, elementwise, elementwise_inplace, inplace_binary, overwrite,
                                           shows_the_same, unary, unwritten)
from ptcore._ops.call.offer cimport (PT_VARIANT_PLAIN, as_given, ask_functions, asks_functions, before_call,
                                     flags_of_all, is_foreign, offer, refuse_foreign)
from ptcore._ops.call.run cimport call, over_first
from ptcore._ops.halves cimport in_float32
from ptcore._ops.plan.hooks cimport dry, planning, spoil
from ptcore._ops.table.ids cimport info
from ptcore._ops.writing cimport write_outs
from ptcore._ops import checked, results
from ptcore._ops import _shape_rules  # no-cython-lint: it enters the rules
from ptcore._ops.table.ids import called_as, op_id, set_functions

cdef object NOT_GIVEN = results.NOT_GIVEN
cdef int EINSUM = op_id("einsum")

cdef extern from "Python.h":
    PyObject *PyUnicode_InternFromString(const char *) except NULL
    object PyObject_Vectorcall(PyObject *, PyObject **, size_t, PyObject *)

cdef extern from "call/op_function.h":
    enum: PT_NO_SLOT, PT_REQUIRED
    enum: PT_FORM_UNARY, PT_FORM_BINARY, PT_FORM_ELEMENTWISE, PT_FORM_STRUCTURED, PT_FORM_VIEW
    enum: PT_FORM_COMPOSITE, PT_FORM_INPLACE_BINARY, PT_FORM_INPLACE_ELEMENTWISE, PT_FORM_INPLACE_OTHER, PT_FORM_NUMPY
    enum: PT_FORM_INPLACE_VIEW, PT_FORM_CUSTOM
    enum: PT_ROLE_FUNCTION, PT_ROLE_INPLACE, PT_ROLE_METHOD
    ctypedef struct pt_slot:
        uint16_t name
        uint8_t value, second
        char check
    ctypedef struct pt_function_spec:
        const char *name
        const char *qualname
        const char *module
        const char *extra
        const char *result
        const pt_slot *slots
        int16_t op
        uint8_t form, nslots, npositional, nargs, rest, spread, out, inplace, choice, absent, role, body_out, wide
    ctypedef struct pt_function:
        const pt_function_spec *spec
        object (*entry)(pt_function *, PyObject **)
        PyObject **names
        PyObject **values
        PyObject *body
        PyObject *result
    ctypedef object (*pt_entry)(pt_function *, PyObject **)
    ctypedef struct pt_function_hooks:
        pt_entry *entries
        object (*unary)(int, object)
        object (*binary)(int, object, object)
        object (*inplace_binary)(int, object, object)
        object (*plain)(pt_function *, int, object)
        int (*second)(pt_function *, PyObject **, int) except -1
        object (*describe)(pt_function *, const char *)
        object (*overridden)(object, PyObject **, Py_ssize_t, PyObject *)
        object (*older)(object, PyObject **, Py_ssize_t, PyObject *)
        PyObject *tensor
        object (*attribute)(pt_function *, object)
    pt_function_hooks pt_hooks
    object pt_function_new(const pt_function_spec *, PyObject **, PyObject **)

cdef extern from "_functions.h":
    enum: PT_N_NAMES, PT_N_VALUES, PT_N_FUNCTIONS
    ctypedef struct pt_value:
        char kind
        long long i
        double f
        const char *text
    const char **pt_names
    const pt_value *pt_values
    const pt_function_spec *pt_function_specs


# -- binding -------------------------------------------------------------------------------------

cdef object plain(pt_function *f, int slot, object value):
    """The converted value of an argument that is not of its parameter's plain type; raises if there is none."""
    cdef char check = f.spec.slots[slot].check
    cdef str op, name
    if isinstance(value, Tensor):
        if check == c'X' or check == c'T' or check == c'O':
            return value
    elif is_symbolic_number(value) and check in b"sifT":
        return checked.symbolic(value)
    elif is_foreign(value):
        raise TypeError(f"{info(f.spec.op).name.decode()}: __torch_function__ of {type(value).__name__} is to be asked")
    op, name = info(f.spec.op).name.decode(), <str><object>f.names[slot]
    if f.spec.role == PT_ROLE_INPLACE:
        op += "_"
    if check == c'X':
        return checked.tensor(op, name, value)
    if check == c'O':
        return checked.optional_tensor(op, name, value)
    if check == c'T':
        return checked.operand(op, name, value)
    if check == c'l' or check == c'L':
        return checked.tensors(op, name, value)
    if check == c's':
        return checked.number(op, name, value)
    if check == c'i':
        return checked.integer(op, name, value)
    if check == c'b':
        return checked.flag(op, name, value)
    if check == c't':
        return checked.dtype(op, name, value)
    return checked.real(op, name, value)


cdef object overridden(object function, PyObject **args, Py_ssize_t n, PyObject *keywords):
    """The result of a call by ``__torch_function__`` of an argument that is not a tensor, or NotImplemented."""
    given, named = as_given(args, n, keywords)
    if not any_foreign((*given, *named.values())):
        return NotImplemented
    if (len(given) == 2 and (<pt_function *><PyObject *>function).spec.op == EINSUM
            and isinstance(given[1], (list, tuple))):
        given = (given[0], *given[1])           # operands one by one, as PyTorch hands them over
    from ptcore._overrides import ask
    return ask(function, given, named)


cdef object older(object function, PyObject **args, Py_ssize_t n, PyObject *keywords):
    """The result of a call that binding refused but an older signature accepts, or NotImplemented."""
    given, named = as_given(args, n, keywords)
    from ptcore._ops.older_signatures import rearranged
    found = rearranged(function.__name__, given, named)
    return NotImplemented if found is None else function(*found[0], **found[1])


cdef bint any_foreign(object values, int depth=0) except -1:
    """Whether a value, or one in its lists, has a ``__torch_function__`` (to a small depth: a list may hold itself)."""
    for x in values:
        if isinstance(x, (list, tuple)):
            if depth < 3 and any_foreign(x, depth + 1):
                return True
        elif is_foreign(x):
            return True
    return False


cdef int second(pt_function *f, PyObject **slots, int slot) except -1:
    """Raises if an argument with two names was given by both."""
    cdef int first = f.spec.slots[slot].second
    default = <object>f.values[first] if f.values[first] != NULL else None
    results.second_spelling(info(f.spec.op).name.decode(), <object>f.names[first], <object>slots[first],
                            <object>f.names[slot], <object>slots[slot], default)
    return 0


cdef tuple packed(pt_function *f, PyObject **slots):
    """The op's own arguments as a tuple."""
    return tuple([<object>slots[k] for k in range(f.spec.nargs)])


cdef inline object out_of(pt_function *f, PyObject **slots):
    return <object>slots[f.spec.out] if f.spec.out != PT_NO_SLOT else None


cdef object offered_whole(pt_function *f, PyObject **slots, uint32_t key):
    """Offers a call that runs as another op, or as several, to modes and classes: they see the function that the user
    called. ``key`` has the flags of the arguments and of the thread. NotImplemented: the call goes on."""
    cdef const pt_function_spec *s = f.spec
    cdef dict named
    cdef int k
    refuse_foreign(s.op, key)
    if not asks_functions(key):
        return NotImplemented
    named = {<object>f.names[k]: <object>slots[k] for k in range(s.npositional, s.nslots)
             if k != s.out and slots[k] != f.values[k]}
    args = tuple([<object>slots[k] for k in range(s.npositional)])
    return ask_functions(<object><PyObject *>f, info(s.op).name, args, named, out_of(f, slots), key)


# -- entries -------------------------------------------------------------------------------------

cdef object elementwise_entry(pt_function *f, PyObject **slots):
    cdef const pt_function_spec *s = f.spec
    cdef object out
    if s.inplace != PT_NO_SLOT and slots[s.inplace] != <PyObject *>False and <object>slots[s.inplace]:
        result = offered_whole(f, slots, flags_of_all(slots, s.nargs))
        return elementwise_inplace(s.op, slots, s.nargs) if result is NotImplemented else result
    if s.choice != PT_NO_SLOT and slots[s.choice] != f.values[s.choice]:
        result = chosen(f, slots, False)
        if result is not NotImplemented:
            return result
    out = out_of(f, slots)
    if s.absent != PT_NO_SLOT and out is None and all_none(slots, s.absent, s.nargs):
        result = offered_whole(f, slots, flags_of_all(slots, s.nargs))
        return helper(f)(<object>slots[0]) if result is NotImplemented else result
    if out is None and s.form == PT_FORM_UNARY:
        return unary(s.op, <object>slots[0])
    if out is None and s.form == PT_FORM_BINARY:
        return binary(s.op, <object>slots[0], <object>slots[1])
    return elementwise(s.op, slots, s.nargs, out)


cdef object inplace_elementwise_entry(pt_function *f, PyObject **slots):
    cdef const pt_function_spec *s = f.spec
    if s.choice != PT_NO_SLOT and slots[s.choice] != f.values[s.choice]:
        result = chosen(f, slots, True)
        if result is not NotImplemented:
            return result
    if s.form == PT_FORM_INPLACE_BINARY:
        return inplace_binary(s.op, <object>slots[0], <object>slots[1])
    return elementwise_inplace(s.op, slots, s.nargs)


cdef bint all_none(PyObject **slots, int first, int end) noexcept:
    cdef int k
    for k in range(first, end):
        if slots[k] != <PyObject *>None:
            return False
    return True


# {name: function}: some arguments of an op, such as a rounding mode, ask for another function. The row names it in
# `extra`, and it runs in place of the op. methods.pyx fills this.
instead = {}


cdef object helper(pt_function *f):
    """The function that `extra` names."""
    if f.body == NULL:
        found = instead[f.spec.extra.decode().rpartition(".")[2]]
        Py_INCREF(found)
        f.body = <PyObject *>found
    return <object>f.body


cdef object chosen(pt_function *f, PyObject **slots, bint inplace):
    """The result of the op that a non-default value chooses; NotImplemented if the value equals the default."""
    cdef const pt_function_spec *s = f.spec
    cdef object value = <object>slots[s.choice], default = <object>f.values[s.choice]
    cdef str extra = s.extra.decode(), name = None
    cdef tuple args = packed(f, slots)
    cdef PyObject **given
    cdef int n
    if type(value) is type(default) and value == default:
        return NotImplemented
    result = offered_whole(f, slots, flags_of_all(slots, s.nargs))
    if result is not NotImplemented:
        return result
    if "=" in extra:
        choices = dict([item.split("=") for item in extra.split(",")])
        name = choices.get(value) if isinstance(value, str) else None
        if name is None:
            from ptcore._ops.checked import word
            word(info(s.op).name.decode(), <object>f.names[s.choice], value, (default, *choices))
    elif "." in extra:
        if inplace:
            return helper(f)(*args, value, inplace=True)
        return helper(f)(*args, value) if s.out == PT_NO_SLOT else helper(f)(*args, value, out=out_of(f, slots))
    else:
        name, args = extra, (*args, value)
    given, n = PySequence_Fast_ITEMS(args), <int>len(args)
    if inplace:
        return elementwise_inplace(op_id(name), given, n)
    return elementwise(op_id(name), given, n, out_of(f, slots))


cdef object structured_entry(pt_function *f, PyObject **slots):
    cdef const pt_function_spec *s = f.spec
    if s.choice != PT_NO_SLOT and slots[s.choice] != f.values[s.choice]:
        return chosen(f, slots, False)
    result = call(s.op, slots, s.nargs, out_of(f, slots))
    if s.result != NULL and type(result) is tuple:
        if f.result == NULL:
            found = getattr(results, s.result.decode())
            Py_INCREF(found)
            f.result = <PyObject *>found
        return (<object>f.result)(result)
    return result


cdef object view_entry(pt_function *f, PyObject **slots):
    return views.run_view(f.spec.op, slots, f.spec.nargs)


cdef object _OUT = ("out",)


cdef object body_of(pt_function *f, str suffix=""):
    """The function of a composite; its module is imported at the first call."""
    if f.body == NULL:
        import importlib
        module, _, name = f.spec.extra.decode().partition(":")
        found = getattr(importlib.import_module(module), name + suffix)
        Py_INCREF(found)
        f.body = <PyObject *>found
    return <object>f.body


cdef object composite_entry(pt_function *f, PyObject **slots):
    return composite(f, slots, out_of(f, slots))


cdef object composite_again(int op, PyObject **args, int n, object out):
    return composite(<pt_function *><PyObject *>_functions[op], args, out)


cdef object composite(pt_function *f, PyObject **args, object out):
    """Runs the body of a composite on the op's own arguments."""
    cdef const pt_function_spec *s = f.spec
    cdef (PyObject *)[32] given
    cdef object result
    cdef int k
    cdef uint32_t key = flags_of_all(args, s.nargs)
    if key & PT_SLOW:
        result = before_call(composite_again, s.op, args, s.nargs, key, out)
        if result is not NotImplemented:
            return result
    body_of(f)
    try:
        if s.wide:
            result = in_float32(<object>f.body, args, s.nargs)
            if result is not NotImplemented:
                return result if out is None else write_outs(s.op, out, result)
        if out is None:
            return PyObject_Vectorcall(f.body, args, s.nargs, NULL)
        if not s.body_out:
            return write_outs(s.op, out, PyObject_Vectorcall(f.body, args, s.nargs, NULL))
        for k in range(s.nargs):
            given[k] = args[k]
        given[s.nargs] = <PyObject *>out if isinstance(out, Tensor) else <PyObject *>None
        result = PyObject_Vectorcall(f.body, given, s.nargs, <PyObject *>_OUT)
        return out if result is out else write_outs(s.op, out, result)
    except Exception as e:
        called_as(e, info(s.op).name.decode())
        raise


cdef object custom_entry(pt_function *f, PyObject **slots):
    """An op of ``ptcore.library``: the call is offered, else its definition runs."""
    cdef const pt_function_spec *s = f.spec
    cdef uint32_t key = flags_of_all(slots, s.nargs)
    if key & PT_SLOW:
        result = offer(s.op, slots, s.nargs, key, None, PT_VARIANT_PLAIN)
        if result is not NotImplemented:
            return result
    if not planning():
        return PyObject_Vectorcall(f.body, slots, s.nargs, NULL)
    if dry():
        raise RuntimeError(f"{info(s.op).name.decode()}: it looks at values, and there are none")
    result = PyObject_Vectorcall(f.body, slots, s.nargs, NULL)
    if planning():
        spoil(b"it is a function of Python")
    return result


# Ops in place that PyTorch refuses where a dense argument shows elements of the dense tensor that is written to.
cdef frozenset ALONE = frozenset((b"index_add", b"index_copy", b"index_fill", b"index_put", b"index_reduce", b"put",
                                  b"scatter", b"scatter_add", b"scatter_reduce"))


cdef object inplace_other_entry(pt_function *f, PyObject **slots):
    """``x.op_()`` of a row with an op that makes a new result: a kernel overwrites x, or the result is copied to x."""
    cdef const pt_function_spec *s = f.spec
    cdef pt_function *base = <pt_function *>(<PyObject *>_functions[s.op])
    cdef (PyObject *)[32] given
    cdef object x = <object>slots[0], before, result
    cdef uint32_t key = flags_of_all(slots, s.nargs)
    cdef int k
    if not isinstance(x, Tensor):
        raise TypeError(f"{info(s.op).name.decode()}_: {<object>f.names[0]} must be a Tensor, got {type(x).__name__}")
    result = offered_whole(f, slots, key)
    if result is not NotImplemented:
        return result
    for k in range(1, s.nargs):
        if (isinstance(<object>slots[k], Tensor) and (<Tensor>slots[k]).storage == (<Tensor>x).storage
                and info(s.op).name in ALONE and shows_the_same(<Tensor>x, <Tensor>slots[k])
                and not (k == 3 and info(s.op).name == b"index_fill")
                and not (info(s.op).name == b"index_put" and isinstance(<object>slots[1], Tensor))):
            raise RuntimeError(f"{info(s.op).name.decode()}_: unsupported operation: some elements of the input tensor "
                               "and the written-to tensor refer to a single memory location. Please clone() the tensor "
                               "before performing the operation.")
    if s.body_out:                      # an interpreter gets the ops of the body
        body_of(f, "_")
        try:
            result = PyObject_Vectorcall(f.body, slots, s.nargs, NULL)
        except Exception as e:
            called_as(e, info(s.op).name.decode() + "_")
            raise
        if result is not None:
            return result
    args = packed(f, slots)
    if info(s.op).updates and over_first(s.op, slots, s.nargs):
        return x
    before = unwritten(x, args)
    for k in range(base.spec.nslots):
        given[k] = slots[k] if k < s.nargs else base.values[k]
    given[0] = <PyObject *>before
    return overwrite(<Tensor>x, base.entry(base, given), info(s.op).name)


cdef object inplace_view_entry(pt_function *f, PyObject **slots):
    return run_view_inplace(f.spec.op, slots, f.spec.nargs)


cdef object numpy_entry(pt_function *f, PyObject **slots):
    """A method that also answers NumPy's function of its name: ``np.max(x, axis=0)`` gives only values.

    NumPy's functions call it with ``axis`` and an explicit ``out``, which no method of PyTorch takes.
    """
    cdef const pt_function_spec *s = f.spec
    cdef pt_function *base = <pt_function *>(<PyObject *>_functions[s.op])
    cdef dict names
    cdef object out, axis
    if slots[s.out] == <PyObject *>NOT_GIVEN:
        slots[s.out] = <PyObject *>None
        return base.entry(base, slots)
    names = {<object>f.names[k]: <object>slots[k] for k in range(s.nslots)}
    out, axis = names["out"], names["axis"]
    if (axis is not None or names["keepdims"] and names["dim"] is None):
        return globals()[s.extra.decode()](<object>slots[0], () if axis is None else axis, bool(names["keepdims"]),
                                           out=out)
    return base.entry(base, slots)


# -- the functions -------------------------------------------------------------------------------

cdef object describe(pt_function *f, const char *what):
    from ptcore import _ops
    from ptcore._ops.table import signature as _signature
    row = _ops.row(info(f.spec.op).row.decode())
    form = (_signature.FUNCTION, _signature.INPLACE, _signature.METHOD)[f.spec.role]
    return _signature.docstring(row, form) if strcmp(what, b"doc") == 0 else _signature.signature(row, form)


cdef object attribute(pt_function *f, object name):
    """An attribute of an op beyond those of functions: an op is also one overload of a name of ``ptcore.ops``."""
    from ptcore._ops.namespaces import attribute_of
    return attribute_of(<object><PyObject *>f, name)


cdef list _functions = []           # by op id; in-place forms and methods find their op's function here


cdef PyObject *value_of(const pt_value *v) except NULL:
    cdef object x
    if v.kind == c'N':
        x = None
    elif v.kind == c'T':
        x = True
    elif v.kind == c'F':
        x = False
    elif v.kind == c'i':
        x = v.i
    elif v.kind == c'f':
        x = v.f
    elif v.kind == c's':
        return PyUnicode_InternFromString(v.text)
    elif v.kind == c't':
        x = tuple([int(i) for i in v.text.decode().split(",")]) if v.i else ()
    else:
        x = NOT_GIVEN
    Py_INCREF(x)
    return <PyObject *>x


cdef int fill() except -1:
    cdef (PyObject *)[PT_N_NAMES] names
    cdef (PyObject *)[PT_N_VALUES] values
    cdef const pt_function_spec *s
    cdef PyObject **room
    cdef int i, k
    cdef object function
    for i in range(PT_N_NAMES):
        names[i] = PyUnicode_InternFromString(pt_names[i])
    for i in range(PT_N_VALUES):
        values[i] = value_of(&pt_values[i])
    for i in range(PT_N_FUNCTIONS):
        s = &pt_function_specs[i]
        room = <PyObject **>PyMem_Malloc(2 * s.nslots * sizeof(PyObject *) + 1)
        if room == NULL:
            raise MemoryError()
        for k in range(s.nslots):
            room[k] = names[s.slots[k].name]
            room[s.nslots + k] = NULL
            if s.slots[k].value != PT_REQUIRED:
                room[s.nslots + k] = values[s.slots[k].value]
        function = pt_function_new(s, room, room + s.nslots)
        name = info(s.op).row.decode() + ("_" if s.role == PT_ROLE_INPLACE else "")
        if s.role == PT_ROLE_FUNCTION:
            while len(_functions) <= s.op:
                _functions.append(None)
            _functions[s.op] = function
            set_functions(s.op, function, None)
        elif s.role == PT_ROLE_INPLACE:
            set_functions(s.op, _functions[s.op], function)
        else:
            name = f"_method_{name}"
        globals()[name] = function
    return 0


def registered(row, int op, body=None):
    """The function of an op that was registered at run time; see ``fill`` for those of the table.

    ``body`` is the function that a custom op calls: see ``set_body``.
    """
    from ptcore._ops.table import signature as _signature
    cdef list found = _signature.parameters(row)
    cdef int k, n = len(found)
    cdef pt_function_spec *s = <pt_function_spec *>PyMem_Calloc(1, sizeof(pt_function_spec))
    cdef pt_slot *slots = <pt_slot *>PyMem_Calloc(n + 1, sizeof(pt_slot))
    cdef PyObject **room = <PyObject **>PyMem_Calloc(2 * n + 1, sizeof(PyObject *))
    if s == NULL or slots == NULL or room == NULL:
        raise MemoryError()
    texts = [row.called.encode(), b"ptcore.ops", row.qualname.encode()]
    kept = [p.name for p in found]
    for k in range(n):
        p = found[k]
        _kept.append((p.name, p.default))
        room[k] = PyUnicode_InternFromString(p.name.encode())
        default = p.default
        if default is not _signature.REQUIRED:
            room[n + k] = <PyObject *>default
        slots[k].second = kept.index(p.second) if p.second else PT_NO_SLOT
        slots[k].check = c'.'
    _kept.append(texts)
    s.name, s.module, s.qualname = texts
    s.slots = slots
    s.op, s.nslots = op, n
    s.form = PT_FORM_STRUCTURED if body is None else PT_FORM_CUSTOM
    s.npositional = sum([p.kind == _signature.POSITIONAL for p in found])
    s.nargs = len(row.args)
    s.rest = s.inplace = s.choice = s.absent = PT_NO_SLOT
    s.out = kept.index("out") if body is None else PT_NO_SLOT
    function = pt_function_new(s, room, room + n)
    if body is not None:
        set_body(function, body)
    set_functions(op, function, None)
    return function


def set_body(function, body):
    """Sets the function that a custom op calls, with its arguments by position."""
    cdef pt_function *f = <pt_function *><PyObject *>function
    cdef PyObject *before = f.body
    Py_INCREF(body)
    f.body = <PyObject *>body
    if before != NULL:
        Py_DECREF(<object>before)


cdef list _kept = []                # keeps the objects that specs of registered functions point to


pt_hooks.entries[PT_FORM_UNARY] = elementwise_entry
pt_hooks.entries[PT_FORM_BINARY] = elementwise_entry
pt_hooks.entries[PT_FORM_ELEMENTWISE] = elementwise_entry
pt_hooks.entries[PT_FORM_STRUCTURED] = structured_entry
pt_hooks.entries[PT_FORM_VIEW] = view_entry
pt_hooks.entries[PT_FORM_COMPOSITE] = composite_entry
pt_hooks.entries[PT_FORM_INPLACE_BINARY] = inplace_elementwise_entry
pt_hooks.entries[PT_FORM_INPLACE_ELEMENTWISE] = inplace_elementwise_entry
pt_hooks.entries[PT_FORM_INPLACE_OTHER] = inplace_other_entry
pt_hooks.entries[PT_FORM_INPLACE_VIEW] = inplace_view_entry
pt_hooks.entries[PT_FORM_NUMPY] = numpy_entry
pt_hooks.entries[PT_FORM_CUSTOM] = custom_entry
pt_hooks.unary = unary
pt_hooks.binary = binary
pt_hooks.inplace_binary = inplace_binary
pt_hooks.plain = plain
pt_hooks.second = second
pt_hooks.describe = describe
pt_hooks.overridden = overridden
pt_hooks.older = older
pt_hooks.tensor = <PyObject *>Tensor
pt_hooks.attribute = attribute
fill()
