"""``custom_op``: a Python function as an op, and methods that register its other parts."""
import contextlib
import inspect
import logging

import ptcore
from ptcore._ops.table.function_schema import SchemaError, parse_schema
from ptcore._tensor import Tensor
from ptcore.library import _definition
from ptcore.library._infer import infer_schema
from ptcore.library._library import Library, check_tags, key_of, parse_namespace
from ptcore.library.tag import Tag, tags_of

__all__ = ["CustomOpDef", "custom_op"]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

log = logging.getLogger(__name__)
OPDEFS = {}                         # "namespace::name" -> CustomOpDef


def custom_op(name, fn=None, /, *, mutates_args, device_types=None, schema=None, tags=None) -> "Any":
    """Makes an op of a function; without a function, returns a decorator.

    Graphs (``jit.trace``, ``compile``, ``make_fx``) keep its calls whole, so the function may use code that they cannot
    trace: NumPy, SciPy, Numba.

    Parameters
    ----------
    name : str
        ``"namespace::name"``. An op of this name that ``custom_op`` made before is replaced.
    fn : callable, optional
        Its annotations say the schema: see :func:`infer_schema`. It returns new tensors, none of its arguments.
    mutates_args : iterable of str or "unknown"
        The arguments that it writes to.
    device_types : str or sequence of str, optional
        The devices that it is for; None: all.
    schema : str, optional
        In the place of the annotations, without the name: ``"(Tensor x) -> Tensor"``.
    tags : Tag or sequence of Tag, optional

    Returns
    -------
    CustomOpDef

    Raises
    ------
    ValueError
        If the function has no or other annotations than schemas have, or ``schema`` and ``mutates_args`` contradict
        each other.

    Examples
    --------
    >>> import numpy as np
    >>> import ptcore
    >>> from ptcore import Tensor
    >>> @ptcore.library.custom_op("doc_custom::sine", mutates_args=())
    ... def sine(x: Tensor) -> Tensor:
    ...     return ptcore.from_numpy(np.sin(x.numpy()))
    >>> @sine.register_fake
    ... def _(x):
    ...     return ptcore.empty_like(x)
    >>> def setup_context(ctx, inputs, output):
    ...     ctx.save_for_backward(*inputs)
    >>> def backward(ctx, g):
    ...     return g * ctx.saved_tensors[0].cos()
    >>> sine.register_autograd(backward, setup_context=setup_context)
    >>> x = ptcore.zeros(2, requires_grad=True)
    >>> sine(x).sum().backward()
    >>> x.grad
    tensor([1., 1.])
    """
    def inner(fn):
        own = tags_of(tags)
        space, opname = parse_namespace(name)
        text = infer_schema(fn, mutates_args=mutates_args, tags=own) if schema is None else schema
        if schema is not None and mutates_args != "unknown":
            found = {a.name for a in parse_schema(opname + text).arguments if a.is_write}
            if found != set(mutates_args):
                raise ValueError(
                    f"Attempted to create a custom op with `mutates_args={mutates_args}` and `schema={schema}. The "
                    f"schema suggests that the op mutates {found or '{}'} which is different from what was provided to "
                    "us in `mutates_args`. Please make these consistent.")
        made = CustomOpDef(space, opname, text, fn, own)
        made.register_kernel(device_types)(fn)
        return made
    return inner if fn is None else inner(fn)


def register_torch_dispatch(op, torch_dispatch_class, func=None, /, *, lib=None):
    """Refused: ptcore has no ``__torch_dispatch__``.

    Raises
    ------
    NotImplementedError
    """
    raise NotImplementedError("register_torch_dispatch: ptcore has no __torch_dispatch__; __torch_function__ of a "
                              "class, or overrides.TorchFunctionMode, sees the calls of custom ops")


class CustomOpDef:
    """An op made by :func:`custom_op` of a function, and called in the same way.

    Users do not make instances themselves.
    """

    def __init__(self, namespace, name, schema, fn, tags=()):
        self._namespace, self._name, self._schema, self._init_fn, self._tags = namespace, name, schema, fn, tags
        parsed = parse_schema(name + schema)        # what is wrong is found before an op of this name is replaced
        check_tags(parsed, tags)
        if Tag.out not in tags and any(a.kwarg_only and a.type.has_tensors() for a in parsed.arguments):
            raise NotImplementedError("custom_op with kwarg-only Tensor args. Please make your tensors not kwarg-only. "
                                      f"Got: {parsed}")
        before = OPDEFS.pop(self._qualname, None)
        if before is not None:
            before._lib._destroy()
        self._lib = Library(namespace, "FRAGMENT")
        self._definition = made = self._lib._defines(name + schema, tags, True)
        made.checks = self._check
        self._opoverload = made.function
        if made.mutates and not made.schema.returns:
            made.fake = _writes_alone
        self.__name__, self.__doc__, self.__wrapped__ = getattr(fn, "__name__", name), fn.__doc__, fn
        OPDEFS[self._qualname] = self

    @property
    def _qualname(self):
        return f"{self._namespace}::{self._name}"

    def __repr__(self):
        return f"<CustomOpDef({self._qualname})>"

    def __call__(self, *args, **kwargs):
        return self._opoverload(*args, **kwargs)

    def register_kernel(self, device_types, fn=None, /):
        """Registers a kernel for types of devices; without a function, returns a decorator.

        Parameters
        ----------
        device_types : str, sequence of str or None
            None: all that have none of their own.
        fn : callable, optional
        """
        def inner(fn):
            for device in [device_types] if device_types is None or isinstance(device_types, str) else device_types:
                key = _definition.EXPLICIT if device is None else key_of(device)[1]
                self._definition.kernels[key] = fn
            return fn
        schema = self._definition.schema
        if device_types is not None and not any(a.type.has_tensors() for a in schema.arguments) and not any(
                "Device" in str(a.type) for a in schema.arguments):
            raise ValueError("Functions without tensor inputs are required to have a `device: torch.device` argument")
        return inner if fn is None else inner(fn)

    def register_fake(self, fn, /):
        """Registers the fake, which gets arguments without values and returns results without values, with their sizes,
        dtype and device. See :func:`ptcore.library.register_fake`.

        Parameters
        ----------
        fn : callable

        Returns
        -------
        callable
            The function.
        """
        self._definition.fake = fn
        self._definition.promised.clear()
        return fn

    def register_autograd(self, backward, /, *, setup_context=None):
        """Registers the gradient formula.

        Parameters
        ----------
        backward : callable
            ``backward(ctx, *grads)`` returns the gradient of each argument, None where there is none, and a list for
            a list of tensors.
        setup_context : callable, optional
            ``setup_context(ctx, inputs, output)`` saves what ``backward`` needs. Of an op with arguments by keyword
            alone it takes ``keyword_only_inputs`` as well.

        Raises
        ------
        RuntimeError
            If the op writes to its arguments.
        """
        schema = self._definition.schema
        if Tag.out in self._tags:
            raise RuntimeError(f"Cannot register autograd formula for operator tagged with torch.Tag.out: {self}. Out "
                               "variants do not support autograd.")
        if schema.is_mutable:
            raise RuntimeError(
                f"Cannot register autograd formula for non-functional operator {self} with schema {schema}. Please "
                "create a functional operator and register an autograd formula for that.")
        self._definition.set_autograd_formula(backward, setup_context)

    def register_vmap(self, func=None):
        """Registers how a batch is run, or returns a decorator. By default samples run one after another.

        Parameters
        ----------
        func : callable, optional
            ``func(info, in_dims, *args, **kwargs)`` returns ``(output, out_dims)``; ``info`` has ``batch_size`` and
            ``randomness``.
        """
        def register(func):
            self._definition.set_vmap(func)
            return func
        return register if func is None else register(func)

    def register_autocast(self, device_type, cast_inputs):
        """Registers the dtype to which autocast casts the op's floating tensors.

        Parameters
        ----------
        device_type : str
        cast_inputs : dtype

        Raises
        ------
        ValueError
            If there is no autocast for the device.
        """
        if not isinstance(device_type, str):
            raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
        if not ptcore.amp.is_autocast_available(device_type):
            raise ValueError(f"Device type '{device_type}' does not support autocast.")
        self._definition.autocast[device_type] = cast_inputs

    def register_torch_dispatch(self, torch_dispatch_class, fn=None, /):
        """Refused: see :func:`ptcore.library.register_torch_dispatch`."""
        return register_torch_dispatch(self, torch_dispatch_class, fn)

    @contextlib.contextmanager
    def set_kernel_enabled(self, device_type, enabled=True):
        """Context in which a device's kernel is enabled, or disabled in favour of the kernel for all devices.

        Parameters
        ----------
        device_type : str
        enabled : bool, default: True
        """
        own = self._definition
        before = device_type in own.disabled
        if device_type not in own.kernels:
            log.warning("Attempted to %s kernel for %s but no kernel was registered for this device type.",
                        "enable" if enabled else "disable", device_type)
        (own.disabled.discard if enabled else own.disabled.add)(device_type)
        first = own.kernels.get(_definition.EXPLICIT)
        if first is None:
            own.kernels[_definition.EXPLICIT] = self._init_fn
        try:
            yield
        finally:
            (own.disabled.add if before else own.disabled.discard)(device_type)
            if first is None:
                del own.kernels[_definition.EXPLICIT]

    def _check(self, kernel, args, result):
        """Raises if a kernel's results or writes contradict the schema."""
        own, where = self._definition, inspect.getmodule(kernel)
        if Tag.inplace in self._tags:
            if result is not args[0]:
                raise RuntimeError(f"{self._name} (with implementation in {where}): An operator tagged with "
                                   "torch.Tag.inplace must return its first argument.")
            return
        if Tag.out in self._tags:
            wanted = [args[k] for k in own.mutates]
            given = [result] if len(wanted) == 1 else result
            if not isinstance(given, (list, tuple)) or len(given) != len(wanted) or any(
                    a is not b for a, b in zip(given, wanted)):
                raise RuntimeError(f"{self._name} (with implementation in {where}): An operator tagged with "
                                   "torch.Tag.out must return its mutable keyword-only arguments.")
            return
        _check_result(own, result)
        if own.schema._is_view_op():
            return
        known = {_definition.memory_of(x) for x in _definition.tensors_in(args)}
        for x in _definition.tensors_in(result if isinstance(result, (tuple, list)) else [result]):
            memory = _definition.memory_of(x)
            if memory and memory in known:
                raise RuntimeError(
                    f"{self._name} (with implementation in {where}): The output of this custom operator (1) must not "
                    "also be an input to this custom operator and (2) may not alias any inputs to this custom operator "
                    "or other returns. The most common way to trigger this error is if we have y = custom_op(x) and y "
                    "and x are the same Tensor. Please instead return a clone of the offending output tensor(s) (e.g. "
                    "return x.clone()) or refactor the custom operator to not return y.")
            known.add(memory)


def _check_result(own, result):
    """Raises if the results of a kernel do not have the types of the schema."""
    returns = own.schema.returns
    if not returns:
        if result is not None and result != ():
            raise RuntimeError(f"{own.qualname}: the kernel must return None, as the schema says, got "
                               f"{type(result).__name__}")
        return
    values = [result] if len(returns) == 1 and not isinstance(result, tuple) else result
    if not isinstance(values, (tuple, list)) or len(values) != len(returns):
        got = f"{len(values)} values" if isinstance(values, (tuple, list)) else type(values).__name__
        raise RuntimeError(f"{own.qualname}: the kernel must return {len(returns)} values, as the schema says, got "
                           f"{got}")
    for r, x in zip(returns, values):
        word = str(r.type)
        if not _is_of(own, r, word, x):
            raise RuntimeError(f"{own.qualname}: Unable to cast {type(x).__name__} to {word}: the kernel returned a "
                               "value of another type than the schema says")


def _is_of(own, r, word, x):
    """Whether a value may be the result ``r`` of a schema; numbers as they may be arguments."""
    wanted = {"Tensor": Tensor, "Tensor[]": (list, tuple)}.get(word)
    if wanted is not None:
        return isinstance(x, wanted)
    try:
        r.convert(own.qualname, x)
    except SchemaError:
        return False
    return True


def _writes_alone(*args, **kwargs):
    """The fake of an op that only writes to its arguments."""
