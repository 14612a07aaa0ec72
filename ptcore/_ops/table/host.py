"""Elementwise functions that NumPy and SciPy compute on the host, as ops.

For functions that few programs call: a decorated Python function of float64 arrays becomes an op with PyTorch's
promotion, broadcasting, ``out=``, meta tensors, batching, forward mode and, where derivatives are given, gradients of
every order. It is entered in the table (``ptcore.ops``) when its file is read, which is at its first use.
"""
import functools
import inspect

import numpy as np

from ptcore._exchange.convert import from_numpy
from ptcore._ops._creation import full
from ptcore._ops.call.operands import result_type
from ptcore._ops.call.run import call_op
from ptcore._ops.table import ids as _table
from ptcore._ops.table import schema
from ptcore._ops.table.evaluate import evaluated
from ptcore._ops.table.register import register
from ptcore._ops.table.shapes import broadcast_shapes, laid_like
from ptcore._ops.view.plain import sum_to_size
from ptcore._tensor import Tensor

_NAMES = ("x", "y")


class _Helpers:
    """What texts call beside ops."""

    @staticmethod
    def lift(value, beside):
        """A number as a tensor of another's dtype."""
        return value if isinstance(value, Tensor) else full((), value, dtype=beside.dtype, device=beside.device)


def hosted(*partial, place="special", numbers=()):
    """A decorator that makes an op of a function of arrays.

    Parameters
    ----------
    *partial : str or None
        The derivative by each tensor argument, in the language of rows (``_ops/table/expr.py``): ``x`` and ``y`` are
        the tensors, ``out`` the result. None: it is not known, and asking for it raises.
    place : str
        The module that the function is public in.
    numbers : tuple of str
        Parameters that are no tensors.
    """
    def decorate(compute):
        name = compute.__name__
        signature = inspect.signature(compute)
        names = [n for n in signature.parameters if n != "out"]
        tensors = [n for n in names if n not in numbers]
        annotated = ", ".join([f"{n}: Float" if n in numbers else n for n in names])

        def scope_of(values, out):
            return {**dict(zip(_NAMES, values)), "out": out, **dict(zip(numbers, values[len(tensors):]))}

        def term(k, t, scope):
            if partial[k] is None:
                raise NotImplementedError(f"{name}: the derivative by {tensors[k]} is not implemented")
            return evaluated(f"t * ({partial[k]})", numbers, {**scope, "t": t}, _Helpers)

        def vjp(g, saved, params, needs):
            values = [saved[n] for n in tensors]
            scope = scope_of([*values, *params], saved["out"])
            return tuple([sum_to_size(term(k, g, scope), x.shape) if need else None
                          for k, (x, need) in enumerate(zip(values, needs))])

        def jvp(args, tangents, out):
            values = [x if isinstance(x, Tensor) else full((), x, dtype=out.dtype) for x in args[:len(tensors)]]
            scope = scope_of([*[x.to(out.dtype) for x in values], *args[len(tensors):]], out)
            terms = [term(k, t.to(out.dtype), scope) for k, t in enumerate(tangents[:len(tensors)]) if t is not None]
            return functools.reduce(lambda a, b: a + b, terms)

        def spec(*args):
            args = args[:len(tensors)]
            if len(args) == 1:
                return laid_like(args[0])
            return broadcast_shapes(name, *[x.shape for x in args]), args[0].dtype

        def kernel(*args, out):
            with np.errstate(all="ignore"):
                found = compute(*[x.to("float64").numpy() if isinstance(x, Tensor) else x for x in args])
            out.copy_(from_numpy(np.array(found, np.float64)))

        register(f"{name}({annotated})", spec=spec, kernels={"cpu": kernel}, types=schema.REAL, promote="float",
                 vjp=vjp, jvp=jvp, saves=(*tensors, "out"), batch="broadcast", doc=compute.__doc__)
        op = _table.op_id(name)

        @functools.wraps(compute)
        def function(*args, **kwargs):
            bound = signature.bind(*args, **kwargs)
            bound.apply_defaults()
            values = [bound.arguments[n] for n in names]
            if len(tensors) == 2:
                values[:2] = _promoted(name, tensors, *values[:2])
            return call_op(op, tuple(values), bound.arguments.get("out"))

        function.__module__ = f"ptcore.{place}"
        _table.set_functions(op, function, None)
        return function
    return decorate


def _promoted(op, names, x, y):
    """Two operands of which one may be a number, and one without dims gives way in dtype."""
    if not isinstance(x, Tensor):
        if not isinstance(y, Tensor):
            raise TypeError(f"{op}: {names[0]} or {names[1]} must be a Tensor, got {type(x).__name__} and "
                            f"{type(y).__name__}")
        if isinstance(x, (bool, int, float)):
            x = full((), x, dtype=result_type(x, y), device=y.device)
    elif type(x) is type(y) is Tensor and x.dtype is not y.dtype and (x.ndim == 0) != (y.ndim == 0):
        dtype = result_type(x, y)
        return x.to(dtype), y.to(dtype)
    return x, y
