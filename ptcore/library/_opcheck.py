"""``opcheck``: checks that the registered parts of an op agree."""
import ptcore
from ptcore._ops import namespaces
from ptcore._tensor import Tensor
from ptcore._trees.tree import tree_leaves, tree_map
from ptcore.jit.compiled import compile
from ptcore.library import _definition
from ptcore.testing import assert_close

__all__ = ["OpCheckError", "opcheck"]


class OpCheckError(Exception):
    """Raised where an op fails a check."""


def _copied(x):
    """Copies of arguments for one run, with memory of their own."""
    return tree_map(lambda t: t.detach().clone().requires_grad_(t.requires_grad) if isinstance(t, Tensor) else t, x)


def _tensors(x):
    return [t for t in tree_leaves(x) if isinstance(t, Tensor)]


def _test_schema(op, args, kwargs, close):
    """The op writes to the arguments that its schema names, and results share the memory that it names."""
    schema = op._schema
    values = namespaces.bind(schema, *_copied((args, kwargs)))
    before = _copied(values)
    with ptcore.no_grad():
        result = op(*[x for a, x in zip(schema.arguments, values) if not a.kwarg_only],
                    **{a.name: x for a, x in zip(schema.arguments, values) if a.kwarg_only})
    for a, old, new in zip(schema.arguments, before, values):
        if not a.is_write:
            for x, y in zip(_tensors([old]), _tensors([new])):
                if not _same(x, y):
                    raise RuntimeError(f"Argument {a.name} is not defined as mutable but was mutated")
    storages = {_definition.memory_of(x): a for a, v in zip(schema.arguments, values) for x in _tensors([v])}
    results = [result] if len(schema.returns) == 1 else result or ()
    for k, (r, x) in enumerate(zip(schema.returns, results)):
        for t in _tensors([x]):
            a = storages.get(_definition.memory_of(t)) if _definition.memory_of(t) else None
            if a is not None and r.alias_info is None:
                raise RuntimeError(f"Argument {a.name} is not defined to alias output but was aliasing (output {k})")


def _same(x, y):
    """Whether values are equal, NaN to NaN."""
    return x.shape == y.shape and bool(((x == y) | ((x != x) & (y != y))).all())


def _test_autograd_registration(op, args, kwargs, close):
    """An op whose arguments require grad has a formula, or consists of ops with formulas."""
    if not any(x.requires_grad for x in _tensors((args, kwargs))):
        return
    definition = _definition.definition_of(op)
    if definition is None or definition.schema.is_mutable:
        return
    outputs = [x for x in _tensors(op(*_copied(args), **_copied(kwargs))) if x.requires_grad]
    has = definition.backward is not None or definition.autograd is not None or (
        _definition.IMPLICIT in definition.kernels)
    if outputs and not has:
        raise OpCheckError(f"{definition.qualname}: this operator is not registered to the Autograd key(s), and its "
                           "arguments require grad: use register_autograd")


def _test_faketensor(op, args, kwargs, close):
    """The fake's results have the sizes, dtypes and strides of the kernel's."""
    definition = _definition.definition_of(op)
    with ptcore.no_grad():
        real = op(*_copied(args), **_copied(kwargs))
        meta = tree_map(lambda t: t.to("meta") if isinstance(t, Tensor) else ptcore.device("meta")
                        if isinstance(t, ptcore.device) else t, (args, dict(kwargs)))
        fake = op(*meta[0], **meta[1])
    name = definition.qualname if definition is not None else op.name()
    found, expected = tree_leaves(fake), tree_leaves(real)
    if len(found) != len(expected):
        raise RuntimeError(f"{name}: the fake gives {len(found)} results, the kernel {len(expected)}")
    for k, (f, r) in enumerate(zip(found, expected)):
        if not isinstance(r, Tensor):
            continue
        for what in ("shape", "dtype"):
            if getattr(f, what) != getattr(r, what):
                raise RuntimeError(f"{name}: {what} of result {k}: the fake says {_plain(getattr(f, what))}, the "
                                   f"kernel gives {_plain(getattr(r, what))}")
        if f.numel() and f.stride() != r.stride():
            raise RuntimeError(f"{name}: strides of result {k}: the fake says {f.stride()}, the kernel gives "
                               f"{r.stride()}")


def _plain(x):
    return list(x) if isinstance(x, tuple) else x


def _run(function, args, kwargs):
    """Results of a call, and the gradients of the sum of those that have a history."""
    args, kwargs = _copied((args, kwargs))
    result = function(*args, **kwargs)
    outputs = [x for x in _tensors(result) if x.requires_grad]
    leaves = [x for x in _tensors((args, kwargs)) if x.requires_grad]
    grads = ptcore.autograd.grad([x.sum() for x in outputs], leaves, allow_unused=True) if outputs and leaves else ()
    return [x.detach() for x in _tensors(result)], list(grads), [x.detach() for x in _tensors((args, kwargs))]


def _test_aot_dispatch(op, args, kwargs, close, dynamic=False):
    """Compiled, the op gives the same results and gradients."""
    def program(*args, **kwargs):
        return op(*args, **kwargs)
    expected = _run(program, args, kwargs)
    compiled = compile(program, fullgraph=True, dynamic=dynamic)
    for what, found, known in zip(("results", "gradients", "arguments"), _run(compiled, args, kwargs), expected):
        for x, y in zip(found, known, strict=True):
            if (x is None) != (y is None):
                raise AssertionError(f"{what}: one is None compiled, or as it is")
            if x is not None:
                close(x, y)


def _test_aot_dispatch_static(op, args, kwargs, close):
    """The compiled op with the sizes of the arguments."""
    _test_aot_dispatch(op, args, kwargs, close)


def _test_aot_dispatch_dynamic(op, args, kwargs, close):
    """The compiled op with symbolic sizes."""
    _test_aot_dispatch(op, args, kwargs, close, True)


_TESTS = {f.__name__[1:]: f for f in (_test_schema, _test_autograd_registration, _test_faketensor,
                                      _test_aot_dispatch_static, _test_aot_dispatch_dynamic)}
_DEFAULT = ("test_schema", "test_autograd_registration", "test_faketensor", "test_aot_dispatch_dynamic")


def opcheck(op, args, kwargs=None, *, test_utils=_DEFAULT, raise_exception=True, atol=None, rtol=None):
    """Checks on some arguments that the registered parts of an op agree.

    Gradients are compared with those of the compiled op. Use ``autograd.gradcheck`` to compare them with numerical
    ones.

    Parameters
    ----------
    op : CustomOpDef, or an op of ``ptcore.ops``
    args : tuple
    kwargs : dict, optional
    test_utils : str or sequence of str
        "test_schema" (writes and shared memory), "test_autograd_registration", "test_faketensor" (the fake against the
        kernel), "test_aot_dispatch_static", "test_aot_dispatch_dynamic" (compiled against eager); "ALL" for all.
    raise_exception : bool, default: True
        Raise at the first failure; else it is in the result.
    atol, rtol : float, optional
        Both, or none.

    Returns
    -------
    dict
        Of each test "SUCCESS", or the error.

    Raises
    ------
    OpCheckError
    ValueError
        For another op or test.

    Examples
    --------
    >>> import ptcore
    >>> from ptcore import Tensor, library
    >>> @library.custom_op("doc_opcheck::thrice", mutates_args=())
    ... def thrice(x: Tensor) -> Tensor:
    ...     return x * 3
    >>> _ = thrice.register_fake(lambda x: ptcore.empty_like(x))
    >>> library.opcheck(thrice, (ptcore.ones(2),))["test_faketensor"]
    'SUCCESS'
    """
    if (rtol is None) != (atol is None):
        raise ValueError("opcheck(op, ...): if you specify one of rtol/atol, you must specify both")
    op = getattr(op, "_opoverload", op)
    if isinstance(op, namespaces.Packet):
        names = op.overloads()
        if len(names) != 1:
            raise RuntimeError(f"opcheck can only test operators without overloads. Got the following overloads for "
                               f"{op._qualified_op_name}: {names}")
        op = getattr(op, names[0])
    if type(op) is not namespaces.OpFunction:
        raise ValueError("opcheck(op, ...): op must be instance of torch._ops.OpOverload, e.g. "
                         f"torch.ops.aten.sin.default, got {type(op)}")
    tests = tuple(_TESTS) if test_utils == "ALL" else test_utils
    tests = (tests,) if isinstance(tests, str) else tuple(tests)
    unknown = set(tests) - set(_TESTS)
    if unknown:
        raise ValueError(f"opcheck(op, ..., test_utils={test_utils}), expected test_utils to be subset of "
                         f"{tuple(_TESTS)} but it was not")

    def close(x, y):
        assert_close(x, y, rtol=rtol, atol=atol, equal_nan=True)
    found = {}
    for name in tests:
        try:
            _TESTS[name](op, args, kwargs or {}, close)
            found[name] = "SUCCESS"
        except Exception as error:
            if raise_exception:
                raise OpCheckError(f"opcheck(op, ...): {name} failed with {error} (scroll up for stack "
                                   "trace)") from error
            found[name] = error
    return found
