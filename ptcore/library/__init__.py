"""Custom ops: functions of Python or NumPy as ops that autograd, tracing, batching and compile support.

``custom_op`` makes an op of a function. ``define`` and ``impl``, or a ``Library``, make one in parts from a schema.
Both kinds are called by ``ptcore.ops.namespace.name``.
"""
import ptcore
from ptcore._ops import namespaces
from ptcore.library import _definition
from ptcore.library._custom_op import OPDEFS, CustomOpDef, custom_op, register_torch_dispatch
from ptcore.library._infer import infer_schema
from ptcore.library._library import (
    Library,
    _put,
    _scoped_library,
    define,
    fallthrough_kernel,
    impl,
    key_of,
    library_for,
    parse_namespace,
    when_defined,
)
from ptcore.library._opcheck import OpCheckError, opcheck

__all__ = ["CustomOpDef", "Library", "OpCheckError", "custom_op", "define", "fallthrough_kernel", "get_ctx",
           "get_kernel", "impl", "impl_abstract", "infer_schema", "opcheck", "register_autocast", "register_autograd",
           "register_fake", "register_kernel", "register_torch_dispatch", "register_vmap", "triton_op", "wrap_triton"]


def _of(op, api):
    """(name, CustomOpDef or None) of an op that a caller names."""
    if isinstance(op, CustomOpDef):
        return op._qualname, op
    name = op if isinstance(op, str) else getattr(op, "_name", None)
    if isinstance(op, namespaces.Packet):
        name = op._qualified_op_name
    if not isinstance(name, str):
        raise ValueError(f"{api}({op}): got unexpected type for op: {type(op)}")
    parse_namespace(name)
    return name, OPDEFS.get(name)


def register_kernel(op, device_types, func=None, /, *, lib=None):
    """Registers the kernel of an op for types of devices; without a function, returns a decorator.

    Parameters
    ----------
    op : str, OpFunction or CustomOpDef
    device_types : str, sequence of str or None
        None: all.
    func : callable, optional
    lib : Library, optional
        The function is registered as long as it lives; without one, for good.
    """
    name, own = _of(op, "register_kernel")
    if own is not None:
        return own.register_kernel(device_types, func) if func is not None else own.register_kernel(device_types)
    return impl(name, "default" if device_types is None else device_types, func, lib=lib)


def register_fake(op, func=None, /, *, lib=None, _stacklevel=1, allow_override=True):
    """Registers the fake of an op, which gives results without values; without a function, returns a decorator.

    The fake is called with tensors on the meta device, and in graphs with symbolic sizes. It returns tensors without
    values, with the sizes, dtype and device of the op's results.

    Parameters
    ----------
    op : str, OpFunction or CustomOpDef
    func : callable, optional
    lib : Library, optional
    allow_override : bool, default: True

    Examples
    --------
    >>> import ptcore
    >>> from ptcore import library
    >>> library.define("doc_fake::pairs", "(Tensor x) -> Tensor")
    >>> @library.register_fake("doc_fake::pairs")
    ... def _(x):
    ...     return x.new_empty(x.shape[0] // 2, 2)
    >>> ptcore.ops.doc_fake.pairs(ptcore.empty(6, device="meta")).shape
    ptcore.Size([3, 2])
    """
    name, own = _of(op, "register_fake")

    def register(func):
        if own is not None:
            return own.register_fake(func)
        library_for(parse_namespace(name)[0], lib)._register_fake(name, func, allow_override=allow_override)
        return func
    return register if func is None else register(func)


def impl_abstract(qualname, func=None, *, lib=None, _stacklevel=1):
    """The older name of :func:`register_fake`; warns."""
    import warnings
    warnings.warn("`torch.library.impl_abstract` was renamed to `torch.library.register_fake`. Please use that "
                  "instead; we will remove `torch.library.impl_abstract` in a future version of PyTorch.",
                  FutureWarning, stacklevel=2)
    return register_fake(qualname, func, lib=lib)


def register_autograd(op, backward, /, *, setup_context=None, lib=None):
    """Registers an op's gradient formula: see :meth:`CustomOpDef.register_autograd`.

    Parameters
    ----------
    op : str, OpFunction or CustomOpDef
    backward : callable
    setup_context : callable, optional
    lib : Library, optional

    Raises
    ------
    RuntimeError
        If the op writes to its arguments.
    """
    name, own = _of(op, "register_autograd")
    if own is not None:
        own.register_autograd(backward, setup_context=setup_context)
        return
    library = library_for(parse_namespace(name)[0], lib)

    def register(definition):
        if definition.schema.is_mutable:
            raise RuntimeError(f"Cannot register autograd formula for non-functional operator {name} with schema "
                               f"{definition.schema}. Please create a functional operator and register an autograd "
                               "formula for that.")
        definition.set_autograd_formula(backward, setup_context)
        library._undo.append(lambda: definition.backward is backward and definition.set_autograd_formula(None, None))
    when_defined(name, register)


def register_vmap(op, func=None, /, *, lib=None):
    """Registers how an op runs on a batch, or returns a decorator. See :meth:`CustomOpDef.register_vmap`.

    Parameters
    ----------
    op : str, OpFunction or CustomOpDef
    func : callable, optional
    lib : Library, optional
    """
    name, own = _of(op, "register_vmap")

    def register(func):
        if own is not None:
            own.register_vmap(func)
            return func
        library = library_for(parse_namespace(name)[0], lib)

        def enter(definition):
            definition.set_vmap(func)
            library._undo.append(lambda: definition.vmap is func and definition.set_vmap(None))
        when_defined(name, enter)
        return func
    return register if func is None else register(func)


def register_autocast(op, device_type, cast_inputs, /, *, lib=None):
    """Registers the dtype to which autocast casts an op's floating tensors.

    Parameters
    ----------
    op : str, OpFunction or CustomOpDef
    device_type : str
    cast_inputs : dtype
    lib : Library, optional

    Raises
    ------
    ValueError
        If there is no autocast for the device.
    """
    name, own = _of(op, "register_autocast")
    if device_type not in ("cpu", "cuda"):
        raise ValueError(f"Unknown device type: {device_type}")
    if own is not None:
        own.register_autocast(device_type, cast_inputs)
        return
    library = library_for(parse_namespace(name)[0], lib)

    def register(definition):
        library._undo.append(_put(definition.autocast, device_type, cast_inputs, True, definition))
    when_defined(name, register)


class _FakeContext:
    """The result of :func:`get_ctx` inside a fake implementation."""

    def new_dynamic_size(self, *, min=0, max=None):
        """A size that depends on values, which a fake cannot know.

        Raises
        ------
        NotImplementedError
        """
        raise NotImplementedError("get_ctx().new_dynamic_size: a graph needs the sizes of all results; an op whose "
                                  "sizes depend on values is called between graphs")

    create_unbacked_symint = new_dynamic_size


def get_ctx():
    """The context of a fake implementation."""
    return _FakeContext()


class _Kernel:
    """A kernel of an op, called with the op's arguments."""

    def __init__(self, definition, kernel):
        self._definition, self._kernel = definition, kernel

    def __call__(self, *args, **kwargs):
        return self._kernel(*args, **kwargs)

    def call_boxed(self, keyset, *args, **kwargs):
        """Calls the kernel; the keys have no effect."""
        return self._kernel(*args, **kwargs)


def get_kernel(op, dispatch_key):
    """The function that runs an op for a dispatch key.

    Parameters
    ----------
    op : str or OpFunction
    dispatch_key : str

    Returns
    -------
    callable
        It has ``call_boxed(keyset, *args)`` as well.

    Raises
    ------
    RuntimeError
        If there is no such op or function.
    ValueError
        If the op is given in another way, or there is no such key.
    """
    if not isinstance(op, str) and (isinstance(op, CustomOpDef) or not hasattr(op, "_name")):
        raise ValueError(f"get_kernel({op}): got unexpected type for op: {type(op)}")
    if not isinstance(dispatch_key, str):
        raise TypeError(f"get_kernel: dispatch_key must be str, got {type(dispatch_key).__name__}")
    name = op if isinstance(op, str) else op._name
    try:
        what, key = key_of(dispatch_key)
    except NotImplementedError:
        raise ValueError(f"Invalid dispatch key: {dispatch_key}") from None
    definition = _definition.find(name)
    if definition is None:
        packet = namespaces.packet(name.partition(".")[0])
        if packet is None:
            raise RuntimeError(f"get_kernel: could not find an operator {name}")
        return _Kernel(None, packet)
    kernels = definition.kernels
    found = definition.autograd if what == "autograd" else definition.autocast.get(key) if what == "autocast" else (
        definition.fake if key == "meta" else kernels.get(key))
    if found is None and what == "kernel":
        found = kernels.get(_definition.EXPLICIT) or kernels.get(_definition.IMPLICIT)
    if found is None:
        raise RuntimeError(f"get_kernel: {name} has no kernel for {dispatch_key}")
    return _Kernel(definition, found)


def triton_op(name, fn=None, /, *, mutates_args, schema=None):
    """Refused: ptcore does not run Triton; ``ops.register_kernel`` takes CUDA kernels.

    Raises
    ------
    NotImplementedError
    """
    raise NotImplementedError(f"triton_op({name!r}): ptcore does not run Triton kernels; custom_op takes any function")


def wrap_triton(triton_kernel, /):
    """Refused: see :func:`triton_op`.

    Raises
    ------
    NotImplementedError
    """
    raise NotImplementedError("wrap_triton: ptcore does not run Triton kernels")


capture_triton = wrap_triton


def register_fake_class(qualname, fake_class=None):
    """Refused: classes of C++ programs are not among a schema's types here.

    Raises
    ------
    NotImplementedError
    """
    raise NotImplementedError(f"register_fake_class({qualname!r}): ptcore has no classes of C++ programs")
