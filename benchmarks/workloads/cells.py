"""Cells of cliffs.py: a public call in the sizes, dtypes, layouts and forms in which programs write it.

A cell varies one or two things about the plain call of an op, which is the entry of ``table``:

========  ================================================================================================
size      about 100, 10,000 or 1,000,000 elements
dtype     of tensors with numbers of floating point, or of all tensors of the op's main dtype
shape     even, thin (a last dim of 4), flat (a first dim of 1)
layout    contiguous, transposed, stepped (every second of the last dim), expanded (the first dim repeats one row),
          channels_last
second    of elementwise ops: a tensor, a number, a tensor of no dims, a row
dim       of reductions and ops along a dim: none, first, middle, last
mode      forward, or forward and backward
========  ================================================================================================
"""
import math
import re

import numpy as np

from .arguments import REDUCING
from .calls import Call, Data, Unfit

SIZES = (100, 10_000, 1_000_000)
FLOATS = ("float32", "float64", "bfloat16", "float16")
DTYPES = (*FLOATS, "int64", "int32", "int8", "uint8", "bool", "complex64")
LAYOUTS = ("contiguous", "transposed", "stepped", "expanded", "channels_last")
SHAPES = {"even": lambda n: _even(n, 2), "cube": lambda n: _even(n, 3), "thin": lambda n: (n // 4, 4),
          "flat": lambda n: (1, n), "images": lambda n: _images(n)}
SECONDS = ("tensor", "number", "0-d", "row")
DIMS = ("none", "first", "middle", "last")
FIELDS = ("size", "dtype", "shape", "layout", "second", "dim", "mode")
PLAIN = {"size": SIZES[1], "dtype": "", "shape": "even", "layout": "contiguous", "second": "tensor", "dim": "",
         "mode": "forward"}


def _even(n, ndim):
    side = max(round(n ** (1 / ndim)), 1)
    return (*(side,) * (ndim - 1), max(round(n / side ** (ndim - 1)), 1))


def _images(n):
    side = max(math.isqrt(n // 32), 1)
    return (2, 16, side, max(n // (32 * side), 1))


class Laid(Data):
    """An array that becomes a tensor of a dtype, in a layout."""

    def __init__(self, array, grad, dtype, layout):
        super().__init__(array, False)
        self.dtype, self.layout = dtype, layout
        self.grad = grad and dtype in (*FLOATS, "complex64")

    def realized(self, xp, leaves, grad):
        x, n = self.array, self.array.ndim
        if self.layout == "channels_last" and n == 4:
            made, back = np.moveaxis(x, 1, 3), lambda t: t.permute(0, 3, 1, 2)
        elif self.layout == "transposed" and n > 1:
            made, back = x.T, lambda t: t.permute(tuple(range(n))[::-1])
        elif self.layout == "stepped" and n:
            made, back = np.repeat(x, 2, -1), lambda t: t[..., ::2]
        elif self.layout == "expanded" and n:
            made, back = x[:1], lambda t: t.expand(x.shape)
        else:
            made, back = x, lambda t: t
        t = xp.from_numpy(np.array(made, order="C")).to(getattr(xp, self.dtype))
        needed = grad and self.grad
        if needed:
            leaves.append(t.requires_grad_())
        return back(t)


def drawn(rng, shape, dtype, low, high):
    """Numbers between two of a dtype."""
    if dtype == "bool":
        return rng.random(shape) < 0.5
    if dtype in ("int64", "int32", "int8", "uint8"):
        low, high = (max(math.ceil(low), -100), min(math.floor(high), 100))
        if dtype == "uint8":
            low = max(low, 0)
        return rng.integers(low, max(high, low + 1), shape, endpoint=True).astype(dtype)
    if dtype == "complex64":
        return (rng.uniform(low, high, shape) + 1j * rng.uniform(low, high, shape)).astype(dtype)
    return rng.uniform(low, high, shape).astype("float64" if dtype == "float64" else "float32")


def ends(array):
    """The least and the greatest number of an array, as floats."""
    real = array.real if array.dtype.kind == "c" else array
    return (float(real.min()), float(real.max())) if array.size and array.dtype.kind != "b" else (0.0, 1.0)


def name_of(dtype):
    return {"bool_": "bool"}.get(np.dtype(dtype).name, np.dtype(dtype).name)


def grid(kind, call):
    """The settings of the cells of a call: each a dict of FIELDS."""
    own = [d.array for d in call.data()]
    if not own:
        return
    main = name_of(own[0].dtype)
    dtypes = DTYPES if main in DTYPES else (main,)
    two = len(own) > 1 and kind == "elementwise"
    dims = [d for d in DIMS if kind == "reducing"] or [""]

    def cell(**changed):
        return {**PLAIN, "dtype": main, "dim": dims[0], **changed}

    found = []
    for size in SIZES:
        for dtype in dtypes:
            found += [cell(size=size, dtype=dtype, mode=mode) for mode in ("forward", "backward")]
        if kind is None:
            found += [cell(size=size, layout=layout, mode=mode) for layout in LAYOUTS[1:]
                      for mode in ("forward", "backward")]
            continue
        for dtype in (main, "bfloat16", "int64"):
            for layout in LAYOUTS[1:]:
                shape = "images" if layout == "channels_last" else "even"
                found += [cell(size=size, dtype=dtype, layout=layout, shape=shape, mode=mode)
                          for mode in ("forward", "backward")]
        for shape in ("thin", "flat", "cube"):
            for dim in dims:
                for dtype in (main, "float64", "bfloat16", "int64") if dim else (main,):
                    found += [cell(size=size, dtype=dtype, shape=shape, dim=dim, mode=mode)
                              for mode in ("forward", "backward")]
        if two:
            for second in SECONDS[1:]:
                for dtype in dtypes:
                    found += [cell(size=size, dtype=dtype, second=second, mode=mode)
                              for mode in ("forward", "backward")]
    seen = set()
    for c in found:
        key = tuple(c.values())
        if c["dtype"] in dtypes and key not in seen and not (
                c["mode"] == "backward" and c["dtype"] not in (*FLOATS, "complex64")):
            seen.add(key)
            yield c


def made(kind, call, cell, rng):
    """The call of a cell; Unfit where there is none."""
    if kind == "elementwise":
        return elementwise(call, cell, rng)
    if kind == "reducing":
        return reducing(call, cell, rng)
    return scaled(call, cell, rng)


def _kept(array, cell, main):
    """The dtype that a tensor of the plain call has in a cell: the cell's, if it has the main dtype of the call."""
    return cell["dtype"] if array.dtype == main else name_of(array.dtype)


def elementwise(call, cell, rng):
    main, shape = call.data()[0].array.dtype, SHAPES[cell["shape"]](cell["size"])
    place = iter(range(100))

    def large(value):
        if isinstance(value, (list, tuple)):
            return type(value)(map(large, value))
        if not isinstance(value, Data):
            return value
        k, low_high = next(place), ends(value.array)
        dtype, second = _kept(value.array, cell, main), cell["second"] if k == 1 else "tensor"
        if k and value.array.ndim == 0:
            return Laid(value.array, value.grad, dtype, "contiguous")
        if second == "number":
            return drawn(rng, (), dtype, *low_high).item()
        sizes = {"tensor": shape, "0-d": (), "row": shape[-1:]}[second]
        layout = cell["layout"] if k == 0 else "contiguous"
        return Laid(np.asarray(drawn(rng, sizes, dtype, *low_high)), value.grad, dtype, layout)

    return Call(call.path, map(large, call.args), {k: large(v) for k, v in call.kwargs.items()})


def reducing(call, cell, rng):
    x = call.data()[0]
    shape = SHAPES[cell["shape"]](cell["size"])
    low_high = (0.999, 1.001) if call.path in ("prod", "Tensor.prod") else ends(x.array)
    data = Laid(drawn(rng, shape, cell["dtype"], *low_high), x.grad, cell["dtype"], cell["layout"])
    dim = {"none": None, "first": 0, "middle": len(shape) // 2, "last": -1}[cell["dim"]]
    if cell["dim"] == "middle" and len(shape) < 3:
        raise Unfit("no middle dim")
    extra = REDUCING.get(call.path, [])
    return Call(call.path, [data, *extra], {} if dim is None else {"dim": dim})


def scaled(call, cell, rng):
    """One size of the call's tensors, wherever it stands, becomes so large that the first tensor has the elements."""
    first = call.data()[0].array
    if not first.ndim or not first.size:
        raise Unfit("no size to enlarge")
    if cell["size"] <= first.size:
        factor, old = 1, None
    else:
        old = first.shape[cell.get("at", 0) % first.ndim]
        factor = (cell["size"] / first.size) ** (1 / first.shape.count(old))
    main = first.dtype

    def large(value):
        if isinstance(value, (list, tuple)) and any(isinstance(v, Data) for v in value):
            return type(value)(map(large, value))
        if not isinstance(value, Data):
            return value
        shape = [max(round(n * factor), 1) if n == old else n for n in value.array.shape]
        array = value.array
        for axis, n in enumerate(shape):
            if n != array.shape[axis]:
                array = np.take(array, rng.integers(0, array.shape[axis], n), axis)
        dtype = _kept(value.array, cell, main)
        if name_of(array.dtype) != dtype:
            array = drawn(rng, array.shape, dtype, *ends(array))
        layout = cell["layout"] if value.array is first else "contiguous"
        return Laid(array, value.grad, dtype, layout)

    return Call(call.path, map(large, call.args), {k: large(v) for k, v in call.kwargs.items()})


def label(name, cell):
    """``name | size=..., dtype=...``: of a cell; read by ``parsed``."""
    return f"{name} | " + " ".join(f"{k}={cell[k]}" for k in FIELDS if cell.get(k) not in ("", None))


def parsed(text):
    name, _, rest = text.partition(" | ")
    cell = {**PLAIN, **dict(re.findall(r"(\w+)=(\S+)", rest))}
    return name, {**cell, "size": int(cell["size"])}
