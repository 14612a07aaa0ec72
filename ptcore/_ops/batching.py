"""Batch rules: the implementations of the words of the ``batch`` column, each written once.

A batched value is ``Batched(tensor)``: a tensor with its first dim hidden from the op, which sees
one sample. ``call`` runs an op on arguments, some of them batched, and returns batched
results, by the rule that the op's row names. The result equals that of a loop over the samples,
stacked.

Invariants: all batched arguments of a call have one size; the hidden dim is the first dim of every
batched argument and result; a call that is wrong for one sample raises that sample's error: ops
with a rule that moves dims first run on ``meta`` samples, which also gives the results' shapes.
"""
import math
import sys

import ptcore._ops as ops
from ptcore._errors import here
from ptcore._exchange.convert import as_tensor
from ptcore._interpret import aside
from ptcore._ops.call.batched import Batched
from ptcore._ops.calling import run
from ptcore._ops.creation.creation import arange, empty
from ptcore._shape import is_symbolic_number
from ptcore._subclass import payload_of
from ptcore._tensor import Tensor


def call(op, args, inplace=False):
    """Runs an op, given by its id or its name, on arguments in signature order, some of them ``Batched``.

    Returns
    -------
    result : Batched, tuple of Batched, or what the op returns if nothing is batched
        NotImplemented where the row says to decompose: the caller then runs a composite's body or
        its topic's decomposition on samples.

    Raises
    ------
    NotImplementedError
        If the row refuses to be batched, with the reason.
    RuntimeError
        If batched values would be written to a tensor that is not batched.
    """
    row = ops.row(op)
    sizes = _distinct([b.tensor.shape[0] for b in _leaves(args) if isinstance(b, Batched)])
    word, _, rest = ("", "", "") if callable(row.batch) else row.batch.partition(" ")
    if not sizes and not row.random:
        return run(op, args, inplace)
    if word == "refused:":
        raise NotImplementedError(f"{row.name}: it cannot be batched: {rest}{here()}")
    if word == "decompose":
        return NotImplemented
    if any(n != sizes[0] for n in sizes[1:]):
        raise RuntimeError(f"{row.name}: batched arguments must have one batch size, got {sorted(set(sizes))}")
    if inplace and not isinstance(args[0], Batched):
        raise RuntimeError(f"{row.name}_: {row.args[0].name} is not batched, but a value that is would be "
                           f"written to it{here()}")
    size = sizes[0]
    if callable(row.batch):
        return row.batch(args, size)
    if word == "broadcast":
        return _broadcast(row, args, inplace)
    return _RULES[word](row, args, size, rest)


def _distinct(sizes):
    """The sizes without repetitions. (A set would fix the values of symbolic sizes.)"""
    found = sizes[:1]
    for n in sizes[1:]:
        if n not in found:
            found.append(n)
    return found


def _leaves(args):
    for a in args:
        if isinstance(a, (tuple, list)):
            yield from a
        else:
            yield a


def _sample(value):
    """One sample of an argument, without data."""
    if isinstance(value, (tuple, list)):
        return type(value)([_sample(v) for v in value])
    if isinstance(value, Batched):
        return empty(_hints(value.shape), dtype=value.tensor.dtype, device="meta")
    if isinstance(value, Tensor):
        if payload_of(value) is None:
            return value.to("meta")
        return empty(_hints(value.shape), dtype=value.dtype, device="meta")
    return value


def _hints(shape):
    return [getattr(n, "hint", n) for n in shape]


def _expected(row, args):
    """The result of the op for one sample, on ``meta``; raises the op's errors."""
    symbolic = sys.modules.get("ptcore._sizes.symbolic")
    if symbolic is not None and symbolic.ShapeEnv.made and any(
            is_symbolic_number(n) for x in _leaves(args) for n in (x.shape if hasattr(x, "shape") else (x,))):
        return _symbolic_result(row, args)
    with aside():                       # nothing is computed, so no interpreter needs to see the call
        return run(row.name, tuple([_sample(a) for a in args]))


def _symbolic_result(row, args):
    """``_expected`` if sizes of the sample are symbolic."""
    from ptcore._ops.table.evaluate import Sized, symbolic_sizes

    def described(x):
        if isinstance(x, (tuple, list)):
            return tuple([described(y) for y in x])
        return Sized(x.shape, x.tensor.dtype, x.tensor.device) if isinstance(x, Batched) else x
    args = described(args)
    dtype = next((x.dtype for x in _leaves(args) if isinstance(x, Sized)), None)
    sizes = symbolic_sizes(row.name, args)
    return tuple([Sized(s, dtype) for s in sizes]) if isinstance(sizes, list) else Sized(sizes, dtype)


def spread(value, size):
    """The tensor of an argument with the hidden dim; without a hidden dim it is expanded."""
    if isinstance(value, Batched):
        return value.tensor
    return value.unsqueeze(0).expand((size, *value.shape))


def _aligned(value, ndim):
    """The tensor of an argument, with ``ndim`` dims after the hidden one."""
    if not isinstance(value, Batched):
        return value
    if value.ndim == ndim:
        return value.tensor
    return value.tensor.reshape((value.tensor.shape[0], *[1] * (ndim - value.ndim), *value.shape))


# -- rules: (row, args, batch size, what the column says behind the word) -------------------------

def _broadcast(row, args, inplace):
    """Aligns dims from the right, with the hidden dim in front of all."""
    args = list(args)
    places = [k for k, a in enumerate(ops.arguments(row)) if a.is_tensor]
    for k in places:
        if isinstance(args[k], (list, tuple)) or (
                not isinstance(args[k], Tensor) and hasattr(args[k], "__array_interface__")):
            args[k] = as_tensor(args[k], device="cpu")
    tensors = [args[k] for k in places if isinstance(args[k], (Tensor, Batched))]
    ndim = max(t.ndim for t in tensors)
    # A 0-d sample gives way in promotion; with the hidden dim it would not.
    promoting = [k for k in places if isinstance(args[k], (Tensor, Batched)) and row.promote != "first"
                 and row.args[k].letter == "T" and not (row.promote == "where" and k == 0)]
    if len(promoting) > 1 and any(isinstance(args[k], Batched) and not args[k].ndim for k in promoting):
        with aside():
            dtype = sum([_sample(args[k]) for k in promoting[1:]], _sample(args[promoting[0]])).dtype
        for k in promoting[1:] if inplace else promoting:
            if isinstance(args[k], Batched) and not args[k].ndim and args[k].tensor.dtype is not dtype:
                args[k] = Batched(args[k].tensor.to(dtype))
    moved = [_aligned(a, ndim) for a in args]
    result = run(row.name, tuple(moved), inplace)
    return Batched(result)


def _packed(results, expected):
    """Gives batched results the samples' shapes."""
    if not isinstance(expected, tuple):
        return _shaped(results, expected)
    return tuple([_shaped(r, e) for r, e in zip(results, expected)])


def _shaped(result, expected):
    if result.ndim == expected.ndim + 1 and result.shape[1:] == expected.shape:
        return Batched(result)
    size = result.shape[0] if result.ndim else 0
    return Batched(result.reshape((size, *expected.shape)))


def _shift(row, args, size, only):
    """Moves each dim that a parameter names by one.

    ``only`` names the tensors that may be batched; if another tensor is batched, the op decomposes.
    """
    only = only.split()
    spec = ops.arguments(row)
    if only and any(isinstance(v, Batched) and a.name not in only for a, v in zip(spec, args)):
        return NotImplemented
    expected = _expected(row, args)
    args = ops.wrapped(row, args)
    lead = next(v[0] if a.letter == "L" else v for a, v in zip(spec, args) if a.is_tensor)
    names_dims = any(a.letter in "deD" for a in spec)
    lifted = names_dims and lead.ndim == 0          # these ops take a 0-d tensor as a vector of one element
    moved = []
    for a, value in zip(spec, args):
        if a.letter == "L":
            kept = [v for v in value if v.shape != (0,)] or list(value)   # cat skips empty vectors
            value = tuple([spread(v, size) for v in kept])
        elif a.is_tensor and value is not None and (not only or a.name in only):
            value = spread(value, size)
            if lifted and value.ndim == 1:
                value = value.unsqueeze(1)
            elif a.letter == "T" and value.ndim > 1 and any(
                    p.letter == "e" and v is None for p, v in zip(spec, args)):
                value = value.reshape((size, -1))
        elif a.letter == "e":
            value = 1 if value is None else value + 1
        elif a.letter in "dn":
            value = value + 1
        elif a.letter in "DR":
            value = (1,) if lifted else tuple([d + 1 for d in value])
        moved.append(value)
    return _packed(run(row.name, tuple(moved)), expected)


def _whole(row, args, size, rest):
    """For an op that depends on no dim."""
    return Batched(run(row.name, (args[0].tensor, *args[1:])))


def _sizes(row, args, size, rest):
    """view, reshape and expand: puts the hidden dim in front of the new shape."""
    x, shape = args
    expected = _expected(row, args)
    if not isinstance(shape, (tuple, list, int)):                   # view(dtype)
        return Batched(run(row.name, (x.tensor, shape)))
    moved = _aligned(x, expected.ndim) if row.name == "expand" else x.tensor
    return Batched(run(row.name, (moved, (size, *expected.shape))))


def _reach(dims, sign):
    """The distance of the farthest element after (1) or before (-1) the first one."""
    return sum([(n - 1) * s for n, s in dims if sign * s > 0])


def _strided(row, args, size, rest):
    """as_strided_of(input, size, stride, offset, ...): each sample has the window of the first one."""
    x, shape, stride, offset = args[:4]
    stack = x.tensor
    first, own = stack.storage_offset(), tuple(zip(stack.shape[1:], stack.stride()[1:]))
    low, high = (offset + _reach(zip(shape, stride), sign) for sign in (-1, 1))
    if 0 not in shape and (low < first + _reach(own, -1) or high > first + _reach(own, 1)):
        raise RuntimeError(f"as_strided: size {list(shape)}, stride {list(stride)} and offset {offset} reach out of "
                           "the memory of one sample")
    return Batched(run(row.name, (stack, (size, *shape), (stack.stride(0), *stride), offset, *args[4:])))


def _permute(row, args, size, rest):
    x, dims = args
    _expected(row, args)
    return Batched(run(row.name, (x.tensor, (0, *[d % x.ndim + 1 for d in dims]))))


def _squeeze(row, args, size, rest):
    """Squeezes dims of the samples; a hidden dim of size 1 stays."""
    x, dim = args
    _expected(row, args)
    dims = range(x.ndim) if dim is None else dim if isinstance(dim, (tuple, list)) else (dim,)
    dims = tuple([d % x.ndim + 1 for d in dims]) if x.ndim else ()
    return Batched(run(row.name, (x.tensor, dims)) if dims else x.tensor.view(x.tensor.shape))


def _product(row, args, size, equation):
    """A sum of products, as one matrix product for all samples."""
    x, y = args
    left, right = equation.partition("->")[0].split(",")
    if ((x.ndim, y.ndim) != (len(left), len(right)) or x.shape[-1] != y.shape[right.index("k")]
            or x.shape[:-2] != y.shape[:-2] or _dtype(x) is not _dtype(y)):
        _expected(row, args)
    return Batched(_PRODUCTS[row.name](x, y, size))


def _dtype(x):
    return x.tensor.dtype if isinstance(x, Batched) else x.dtype


def _rows_of(x):
    """A stack of matrices as one matrix with all their rows."""
    return run("reshape", (x, (x.shape[0] * x.shape[1], *x.shape[2:])))


def _mm(x, y, size):
    if not isinstance(y, Batched):
        n = x.shape[0]
        return run("mm", (_rows_of(x.tensor), y)).view((size, n, y.shape[1]))
    return run("bmm", (spread(x, size), y.tensor))


def _bmm(x, y, size):
    n = x.shape[0]
    product = run("bmm", (_rows_of(spread(x, size)), _rows_of(spread(y, size))))
    return product.view((size, n, *product.shape[1:]))


def _mv(x, y, size):
    if not isinstance(y, Batched):
        return run("mv", (_rows_of(x.tensor), y)).view((size, x.shape[0]))
    if not isinstance(x, Batched):
        return run("mm", (y.tensor, x.t()))
    return run("bmm", (x.tensor, y.tensor.unsqueeze(2))).squeeze(2)


def _dot(x, y, size):
    if not isinstance(y, Batched):
        return run("mv", (x.tensor, y))
    if not isinstance(x, Batched):
        return run("mv", (y.tensor, x))
    return run("bmm", (x.tensor.unsqueeze(1), y.tensor.unsqueeze(2))).view((size,))


_PRODUCTS = {"mm": _mm, "bmm": _bmm, "mv": _mv, "dot": _dot}


def _index(row, args, size, rest):
    """index_get(x, indices, dims, shape); index_write and index_accumulate(x, values, indices, ...).

    The hidden dim gets its own index 0, 1, ... The dims of the index are at the first indexed dim if the
    indexed dims are adjacent; with an index for the hidden dim they come first and are moved.
    """
    x, *others = args
    writing = row.name != "index_get"
    values = others.pop(0) if writing else None
    indices, dims, last = others
    first = dims[0] if all(d == dims[0] + k for k, d in enumerate(dims)) else 0
    depth = indices[0].ndim
    x = spread(x, size)
    tensors = [spread(i, size) for i in indices]
    shape = tensors[0].shape[1:]
    number = arange(size, device=x.device).reshape((size, *[1] * depth)).expand((size, *shape))
    tensors, dims = (number, *tensors), (0, *[d + 1 for d in dims])
    ndim = x.ndim - len(dims) + depth + 1       # of the indexed result, hidden dim included
    inner = list(range(1, ndim))
    # from (index, before, after), the order of the result, to (before, index, after), the order of one sample
    order = [0, *inner[depth:depth + first], *inner[:depth], *inner[depth + first:]]
    if not writing:
        rest = [n for d, n in enumerate(x.shape) if d not in dims]
        found = run(row.name, (x, tensors, dims, (size, *shape, *rest)))
        return Batched(found.permute(order))
    values = spread(values, size).permute([order.index(d) for d in range(ndim)])
    return Batched(run(row.name, (x, values, tensors, dims, last)))


def _rows(row, args, size, rest):
    """places_among(sorted_sequence, input, right): a vector serves all values of a sample; else rows correspond."""
    x, values, right = args
    expected = _expected(row, args)
    if x.ndim > 1:
        return Batched(run(row.name, (spread(x, size), spread(values, size), right)))
    values = spread(values, size)
    if isinstance(x, Batched):
        x = x.tensor
        values = values.reshape((size, math.prod(expected.shape)))
    return Batched(run(row.name, (x, values, right)).reshape((size, *expected.shape)))


def _merge(row, args, size, rest):
    """Merges the hidden dim into the first dim, which all tensors share."""
    expected = _expected(row, args)
    moved = []
    for a, value in zip(ops.arguments(row), args):
        if a.is_tensor:
            n = value.shape[0]
            value = spread(value, size)
            value = value.reshape((size * n, *value.shape[2:]))
        moved.append(value)
    return _unmerged(run(row.name, tuple(moved)), expected, size)


def _stack(row, args, size, rest):
    """For an op whose leading dims are a batch: the hidden dim becomes the first of them."""
    expected = _expected(row, args)
    moved = [spread(v, size) if a.is_tensor else v for a, v in zip(ops.arguments(row), args)]
    return _packed(run(row.name, tuple(moved)), expected)


def _unmerged(result, expected, size):
    if isinstance(result, tuple):
        return tuple([_unmerged(r, e, size) for r, e in zip(result, expected)])
    return Batched(result.reshape((size, *expected.shape)))


def _convolution(row, args, size, rest):
    """With a batched input the batch grows; with batched weights each sample becomes a group of channels."""
    x, other, *settings = args
    weights = settings.pop(0) if row.name != "convolve_weight" else None
    if row.name != "convolve_weight" and not isinstance(other, Batched) and not isinstance(weights, Batched):
        expected = _expected(row, args)
        n = x.shape[0]
        merged = x.tensor.reshape((size * n, *x.shape[1:]))
        return _unmerged(run(row.name, (merged, *args[1:])), expected, size)
    expected = _expected(row, args)

    def beside(value):                  # (N, size * C, ...)
        value = spread(value, size)
        n, c = value.shape[1:3]
        return value.transpose(0, 1).reshape((n, size * c, *value.shape[3:]))

    def stacked(value):                 # (size * C, ...)
        if value is None:
            return None
        value = spread(value, size)
        return value.reshape((size * value.shape[1], *value.shape[2:]))

    *settings, groups, out = settings
    settings = (*settings, groups * size, out)
    if row.name == "convolve_weight":
        return _unmerged(run(row.name, (beside(x), beside(other), *settings)), expected, size)
    result = run(row.name, (beside(x), stacked(other), stacked(weights), *settings))
    n, c = expected.shape[:2]
    return Batched(result.reshape((n, size, c, *expected.shape[2:])).transpose(0, 1))


def _each(row, args, size, rest):
    """Runs one sample after another, for ops that draw from a state of each sample, for example."""
    if not size:
        expected = _expected(row, args)
        device = next(a.tensor.device for a in args if isinstance(a, Batched))
        return Batched(empty((0, *expected.shape), dtype=expected.dtype, device=device))
    from ptcore._ops.functions import stack
    return Batched(stack([run(row.name, tuple([a.tensor[k] if isinstance(a, Batched) else a for a in args]))
                          for k in range(size)]))


_RULES = {"shift": _shift, "merge": _merge, "convolution": _convolution, "whole": _whole, "sizes": _sizes,
          "permute": _permute, "stack": _stack, "strided": _strided,
          "squeeze": _squeeze, "product": _product, "index": _index, "rows": _rows, "each": _each}
