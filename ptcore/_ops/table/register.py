"""Ops registered at run time by other packages.

A run-time op is a structured row with its kernel, shape rule and derivative as Python callables
or C addresses. It has an id above the built-in ones and takes part in autograd, meta tensors,
interposition and the ``ops`` mapping like a built-in op.
"""
from ptcore._device import column_of
from ptcore._ops import _by_id, functions
from ptcore._ops import _rows as _known
from ptcore._ops.table import ids as _table
from ptcore._ops.table import schema
from ptcore._ops.table import signature as _signature
from ptcore._ops.table.scalar import kernel_of

_PROMOTE = {"default": 0, "float": 1, "none": 2, "where": 3, "first": 4, "dtype": 5}


def register(signature, *, spec, kernels, types=schema.ALL, promote="default", vjp=None, jvp=None,
             saves=(), fields=None, batch=None, autocast=None, sample=None, reference=None, doc=None):
    """Registers an op and returns the function that calls it.

    Parameters
    ----------
    signature : str
        As in a row: ``"scaled_sum(input, scale=1.0)"`` (see ``_ops/table/schema.py``).
    spec : callable
        Takes the arguments, returns ``(shape, dtype)`` or a list of them; raises for shapes that
        do not fit.
    kernels : dict
        Device type to a ``pt_kernel`` (``ptcore/kernel.h`` in ``ptcore.get_include()``) as an
        address, capsule named ``PT_KERNEL_SIGNATURE``, ctypes function or SciPy
        LowLevelCallable; to a LowLevelCallable of one to three doubles that returns one, which is called for each
        element; or to a Python callable ``(*args, out)`` that writes its result into
        ``out`` (a tuple for several outputs). The meta device needs none.
    types : tuple of str
        Dtypes that the op takes.
    promote : {"default", "float", "none"}
    vjp : callable, optional
        ``vjp(g, saved, params, needs)`` returns a gradient or None for each tensor argument.
        ``g`` is the output's gradient (a tuple for several), ``saved`` maps the names in
        ``saves`` to their values, ``params`` are the other arguments, ``needs`` says which
        gradients are asked for. For a list of tensors, gradient, saved value and need are tuples.
        Written in ops, it is differentiable again.
    saves : tuple of str
        Names of tensor arguments, ``"out"``, or ``"name.shape"`` to keep no data: the value then has
        ``shape``, ``dtype`` and ``device``.
    fields : tuple of str, optional
        Names of several outputs.
    jvp : callable, str or list of str, optional
        ``jvp(args, tangents, out)`` returns the tangent of ``out`` (a tuple for several) from
        those of the arguments (None: zero); or the column as a row has it. Without one
        forward mode raises.
    batch : callable or str, optional
        ``batch(args, size)`` runs the op on arguments of which some are
        ``ptcore._ops.batching.Batched`` and returns such; or the column as a row has it, such as
        ``"shift"``. Without one batching raises.
    autocast, sample, reference, doc : optional
        Columns of the row: its autocast rule, sampling domain and independent reference for
        tests, and the function's docstring.

    Returns
    -------
    function : callable
        Takes positional and keyword arguments as the signature says, and ``out=``.

    Raises
    ------
    ValueError
        If the name is taken, or a column contradicts another.
    TypeError
        If a kernel is none of the above.
    RuntimeError
        If a capsule's name says that it was compiled against another version of ``kernel.h``.

    Examples
    --------
    >>> import ptcore
    >>> def spec(input):
    ...     return input.shape, input.dtype
    >>> def kernel(input, out):
    ...     out.copy_(input * 3)
    >>> triple = ptcore.ops.register("doc_triple(input)", spec=spec, kernels={"cpu": kernel},
    ...                              vjp=lambda g, saved, params, needs: (g * 3,))
    >>> triple(ptcore.tensor([1., 2.]))
    tensor([3., 6.])
    """
    row = schema.Row("structured" if vjp else "nondifferentiable", signature, types=types,
                      promote=promote, out="spec", fields=fields, autocast=autocast,
                      jvp=jvp, batch=batch or "refused: it was registered without one",
                      sample=sample, reference=reference, doc=doc, internal=True)
    row.family = "registered"
    unknown = [name for name in saves if name != "out" and name.partition(".")[0] not in
               [a.name for a in row.args]]
    if unknown:
        raise ValueError(f"register: {row.name} saves {unknown[0]!r}, which is no argument")
    if len(_signature.parameters(row)) > 20:
        raise ValueError(f"register: {row.name!r} must have at most 19 parameters, got {len(row.args)}")
    if len(fields or ()) > 8:
        raise ValueError(f"register: {row.name!r} must have at most 8 outputs, got {len(fields)}")
    names = [a.name for a in row.args]
    tensors = row.tensors
    mask = (1 << len(tensors)) - 1
    saved = []
    for name in saves:
        argument, _, metadata = name.partition(".")
        if name == "out":
            saved.append((128, mask))
        else:
            saved.append((names.index(argument) + (64 if metadata else 0), mask))
    grad_mask = sum(1 << i for i, a in enumerate(tensors) if a.letter in "TOL") if vjp else 0
    for device, kernel in kernels.items():
        column_of(device)
        _table.check_kernel(row.name, kernel_of(row.name, kernel))
    op = _table.register_row(
        row.name, row.letters, ",".join(names), "registered",
        sum(not a.keyword_only for a in row.args), len(fields or ("out",)),
        sum(1 << schema.DTYPES.index(t) for t in types), _PROMOTE[promote], grad_mask, saved,
        [schema.AUTOCAST.index(row.autocast_on(device)) for device in ("cpu", "cuda")])
    _table.set_spec(op, spec)
    for device, kernel in kernels.items():
        register_kernel(row.name, device, kernel)
    if vjp:
        _table.set_vjp(op, _adapter(row, vjp, tuple(saves)))
    function = functions.registered(row, op)
    _known[row.name] = _by_id[op] = row     # under its id the row stays even if its name is removed
    return function


_CUSTOM_LETTERS = {"Tensor": "T", "Tensor?": "O", "Tensor[]": "L", "int": "i", "SymInt": "i", "float": "f", "bool": "b",
                   "Scalar": "s", "int?": "j", "SymInt?": "j", "float?": "g"}


def register_custom(qualname, function_schema, definition):
    """Registers an op of ``ptcore.library``: a row that runs a Python function and that graphs keep whole.

    Parameters
    ----------
    qualname : str
        ``"namespace::name"``, or ``"namespace::name.overload"``.
    function_schema : FunctionSchema
    definition : object
        Called with positional arguments; see ``library._definition.Definition``.

    Returns
    -------
    OpFunction
    """
    args = [schema.Arg(a.name, _CUSTOM_LETTERS.get(str(a.type), "o"), a.default_value, not a.has_default_value(),
                       a.kwarg_only) for a in function_schema.arguments]
    if len(args) > 64:
        raise ValueError(f"register: {qualname!r} must have at most 64 parameters, got {len(args)}")
    space, _, name = qualname.partition("::")
    row = schema.Row("custom", str(function_schema), parsed=(qualname, args), internal=True, called=qualname,
                     mutates=function_schema.mutates, definition=definition,
                     qualname=f"{space}.{name}" + ("" if "." in name else ".default"))
    row.family = "registered"
    op = _table.register_row(qualname, row.letters, ",".join([a.name for a in args]), "registered",
                             sum([not a.keyword_only for a in args]), max(len(function_schema.returns), 1),
                             (1 << len(schema.DTYPES)) - 1, _PROMOTE["none"], 0, [], custom=True)
    _known[qualname] = _by_id[op] = row
    return functions.registered(row, op, definition)


def forget(name):
    """Removes a registered op from the table. Holders of its function can still call it."""
    _table.forget(name)
    del _known[name]


def register_kernel(name, device, kernel):
    """Registers a kernel of an op, built-in or registered, for a device type.

    Parameters
    ----------
    name : str
        The op's name in the table.
    device : str
        ``"cpu"``, ``"cuda"`` or a type that ``register_backend`` added.
    kernel : int, capsule, ctypes function, LowLevelCallable or callable
        See ``register``.

    Raises
    ------
    KeyError
        If there is no such op.
    """
    _table.register_kernel(name, column_of(device), kernel_of(name, kernel))


def _adapter(row, vjp, saves):
    """The derivative rule in the form that the engine calls: with one gradient for each edge."""
    lists = [a.letter == "L" for a in row.tensors]
    several = sum(lists)

    def rule(node, g, needs):
        lengths = iter(node.params[len(node.params) - several:])
        wanted, start = [], 0
        for is_list in lists:
            n = next(lengths) if is_list else 1
            bits = tuple([bool(needs >> min(i, 15) & 1) for i in range(start, start + n)])
            wanted.append(bits if is_list else bits[0])
            start += n
        values = {saved: node.saved(k) for k, saved in enumerate(saves)}
        grads = vjp(g, values, node.params[:len(node.params) - several], tuple(wanted))
        check(grads, len(lists), "gradients")
        result = []
        for gradient, bits in zip(grads, wanted):
            if type(bits) is not tuple:
                result.append(gradient)
            elif gradient is None:
                result.extend([None] * len(bits))
            else:
                check(gradient, len(bits), "gradients for the tensors of a list")
                result.extend(gradient)
        return tuple(result)

    def check(grads, count, what):
        if not isinstance(grads, (tuple, list)) or len(grads) != count:
            got = f"{len(grads)} of them" if isinstance(grads, (tuple, list)) else type(grads).__name__
            raise RuntimeError(f"{row.name}: vjp must return a tuple of {count} {what}, got {got}")
    return rule
