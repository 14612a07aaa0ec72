"""Evaluation of the texts of rows on objects other than numbers: derivative texts by ops, so that results can be
differentiated, traced or batched again; and shape rules on symbolic sizes."""
from ptcore import _ops as ops
from ptcore._dtype import get_default_dtype
from ptcore._errors import ShapeError
from ptcore._ops.table import expr
from ptcore._ops.table.ids import op_id
from ptcore._ops.table.rules import rule
from ptcore._ops.table.shapes import broadcast_shapes
from ptcore._shape import Size
from ptcore._sizes.symbolic import sym_max, sym_min, sym_sum
from ptcore._tensor import Tensor

_code = {}                              # (text, numbers) -> (compiled text, functions it calls)


def evaluated(text, numbers, scope, helpers=None):
    """The value of a text; ``numbers`` names the parameters in scope that are numbers.

    ``helpers`` is the namespace of functions that texts call besides ops.
    """
    found = _code.get((text, numbers))
    if found is None:
        written = expr.to_python(text, "jvp", numbers, "t")
        functions = {n: getattr(helpers, n, None) or ops.function(n) for n in expr.called(written)}
        code = compile(written, f"<ptcore jvp: {text}>", "eval")
        found = _code[text, numbers] = code, {"__builtins__": {}, **functions}
    return eval(found[0], found[1], scope)


# -- shape rules of symbolic sizes ------------------------------------------------------------------------------------

class Sized:
    """A tensor as shape rules see it: sizes, some of them symbolic, and a dtype."""

    __slots__ = ("device", "dtype", "shape")

    def __init__(self, shape, dtype, device=None):
        self.shape, self.dtype, self.device = Size(shape), dtype, device

    @property
    def ndim(self):
        return len(self.shape)

    def numel(self):
        return self.shape.numel()

    def is_contiguous(self):
        return True                     # the layout of results is not needed here


def _sized(x):
    """An argument as shape rules see it."""
    if isinstance(x, (tuple, list)) and not isinstance(x, Size):
        return tuple([_sized(item) for item in x])
    return Sized(x.shape, x.dtype, x.device) if isinstance(x, Tensor) else x


def symbolic_sizes(op, args):
    """The sizes of an op's result if sizes of its arguments are symbolic.

    The rules are the same as for tensors on ``meta``, applied to each tensor's symbolic sizes. A question that a rule
    asks about symbolic sizes, such as whether two sizes agree, is recorded as a guard.

    Parameters
    ----------
    op : str
        Name of a row.
    args : tuple
        The arguments in the order that interpreters get them. Tensors may be ``Sized``.

    Returns
    -------
    tuple or list of tuple
        The sizes of the result, or of each of several results. NotImplemented for an op without a rule: for a
        composite, the ops that it calls have rules.
    """
    row = ops.row(op)
    if row.kind in ("composite", "custom"):
        return NotImplemented
    args = ops.wrapped(row, tuple([_sized(a) for a in args]))
    if row.kind == "elementwise":
        given = [a for a, own in zip(args, ops.arguments(row)) if own.is_tensor]
        return broadcast_shapes(op, *[tuple(a.shape) for a in given if hasattr(a, "shape")] or [()])
    if row.kind == "view":
        return _VIEWS[op](*args)
    if row.promote == "float":
        args = tuple([Sized(a.shape, get_default_dtype()) if isinstance(a, Sized) and a.dtype.kind in "biu"
                      and own.letter == "T" else a for a, own in zip(args, ops.arguments(row))])
    specs = rule(op_id(op))(*_plain(row, args))
    return [tuple(spec[0]) for spec in specs] if isinstance(specs, list) else tuple(specs[0])


def _plain(row, args):
    """The arguments as the rule of a structured row gets them."""
    return [_numbers(a) if own.letter in "zZ" else tuple(a) if isinstance(a, list) else a
            for a, own in zip(args, ops.arguments(row))]


def symbolic_layout(op, args):
    """Strides and offset of a view op's result for a tensor of symbolic sizes, for payloads to answer ``stride()``.

    Returns
    -------
    (tuple, int) or list of such
        None if they are not known: for ``view`` or ``reshape`` of a tensor with gaps.
    """
    x, *rest = ops.wrapped(ops.row(op), args)
    return _LAYOUTS[op](x, list(x.stride()), x.storage_offset(), *rest)


def _numbers(values):
    return tuple(values) if isinstance(values, (tuple, list)) else (values,)


def _viewed(x, shape):
    """The sizes of ``view``; the shape argument may also be a dtype, for the same bytes."""
    if not isinstance(shape, type(x.dtype)):
        return _reshaped(x, shape)
    if not x.ndim:
        return ()
    return (*x.shape[:-1], x.shape[-1] * x.dtype.itemsize // shape.itemsize)


def _reshaped(x, shape):
    sizes, numel = list(_numbers(shape)), x.numel()
    holes = [i for i, n in enumerate(sizes) if type(n) is int and n == -1]
    known = 1
    for i, n in enumerate(sizes):
        known = known * (1 if i in holes else n)
    if len(holes) > 1 or (not holes and known != numel) or (holes and (known == 0 or numel % known != 0)):
        raise ShapeError(f"reshape: shape {sizes} is invalid for input of size {numel}")
    if holes:
        sizes[holes[0]] = numel // known
    return tuple(sizes)


def _expanded(x, size):
    sizes = list(_numbers(size))
    shift = len(sizes) - x.ndim
    if shift < 0:
        raise ShapeError(f"expand: size {sizes} has fewer dims than shape {list(x.shape)}")
    for i, n in enumerate(x.shape, shift):
        if type(sizes[i]) is int and sizes[i] == -1:
            sizes[i] = n
        elif n != 1 and n != sizes[i]:
            raise ShapeError(f"expand: shape {list(x.shape)} does not expand to {sizes}")
    return tuple(sizes)


def _without(shape, dim):
    return (*shape[:dim], *shape[dim + 1:])


def _with(shape, dim, n):
    return (*shape[:dim], n, *shape[dim + 1:])


def _transposed(x, dim0, dim1):
    shape = list(x.shape)
    if shape:
        shape[dim0], shape[dim1] = shape[dim1], shape[dim0]
    return tuple(shape)


def _squeezed(x, dim):
    dims = range(x.ndim) if dim is None else [d % max(x.ndim, 1) for d in _numbers(dim)]
    return tuple([n for d, n in enumerate(x.shape) if not (d in dims and n == 1)])


def _selected(x, dim, index):
    n = x.shape[dim]
    if not -n <= index or not index < n:
        raise IndexError(f"select: index {index} is out of bounds for dimension {dim} with size {n}")
    return _without(x.shape, dim)


def _bound(value, n, low, high):
    """A bound of a slice, counted from the front and clipped."""
    if value < 0:
        value = value + n
        return low if value < low else value
    return high if value > high else value


def slice_bounds(start, end, step, n):
    """The first index and the length of a slice of a dim of size n; all of these may be symbolic."""
    if step == 0:
        raise ValueError("slice: step must not be zero")
    if step > 0:
        start = 0 if start is None else _bound(start, n, 0, n)
        end = n if end is None else _bound(end, n, 0, n)
        return start, 0 if end <= start else (end - start + step - 1) // step
    start = n - 1 if start is None else _bound(start, n, -1, n - 1)
    end = -1 if end is None else _bound(end, n, -1, n - 1)
    return start, 0 if start <= end else (start - end - step - 1) // -step


def _parts(x, sizes, dim):
    sizes = _numbers(sizes)
    if sym_sum(sizes) != x.shape[dim]:
        raise ShapeError(f"split: sections must sum to the size of dim {dim}, got {list(sizes)} for shape "
                         f"{list(x.shape)}")
    return [_with(x.shape, dim, n) for n in sizes]


def _unfolded(x, dimension, size, step):
    if not x.ndim:
        return (size,)
    n = x.shape[dimension]
    if size > n:
        raise ShapeError(f"unfold: size must be at most {n}, got {size}")
    return (*_with(x.shape, dimension, (n - size) // step + 1), size)


def _diagonal(x, offset, dim1, dim2):
    m, n = (x.shape[dim1], x.shape[dim2] - offset) if offset >= 0 else (x.shape[dim1] + offset, x.shape[dim2])
    return (*[k for d, k in enumerate(x.shape) if d not in (dim1, dim2)], sym_max(sym_min(m, n), 0))


def _paired(x):
    if not x.ndim or x.shape[-1] != 2:
        raise ShapeError("view_as_complex: input: Tensor must have a last dimension of size 2, got "
                         f"{list(x.shape)}")
    return tuple(x.shape[:-1])


_VIEWS = {
    "detach": lambda x: tuple(x.shape), "view": _viewed, "reshape": _reshaped, "expand": _expanded,
    "transpose": _transposed,
    "t": lambda x: _transposed(x, 0, x.ndim - 1),
    "permute": lambda x, dims: tuple([x.shape[d] for d in _numbers(dims)]),
    "squeeze": _squeezed, "unsqueeze": lambda x, dim: (*x.shape[:dim], 1, *x.shape[dim:]), "select": _selected,
    "unbind": lambda x, dim: [_without(x.shape, dim)] * int(x.shape[dim]),
    "slice": lambda x, dim, start, end, step: _with(x.shape, dim, slice_bounds(start, end, step, x.shape[dim])[1]),
    "as_strided_of": lambda x, size, *rest: _numbers(size), "split_evenly": _parts, "split_by_sizes": _parts,
    "split_by_slices": _parts, "split_unsafely": _parts, "split_by_sizes_unsafely": _parts, "unfold": _unfolded,
    "diagonal": _diagonal, "real": lambda x: tuple(x.shape), "imag": lambda x: tuple(x.shape),
    "view_as_real": lambda x: (*x.shape, 2), "view_as_complex": _paired,
}


# -- layouts of views: of a tensor, its strides and its offset --------------------------------------------------------

def _viewed_layout(x, strides, first, shape):
    if not isinstance(shape, type(x.dtype)):
        return _reshaped_layout(x, strides, first, shape)
    return None if shape.itemsize != x.dtype.itemsize else (tuple(strides), first)


def _reshaped_layout(x, strides, first, shape):
    step, found = 1, []
    for n, s in zip(reversed(x.shape), reversed(strides)):
        if n != 1 and s != step:
            return None
        step = step * n
    step = 1
    for n in reversed(_reshaped(x, shape)):
        found.append(step)
        step = step * n
    return tuple(reversed(found)), first


def _expanded_layout(x, strides, first, size):
    sizes = _expanded(x, size)
    shift = len(sizes) - x.ndim
    return (*[0] * shift, *[0 if type(n) is int and n == 1 and not (type(m) is int and m == 1) else s
                            for n, m, s in zip(x.shape, sizes[shift:], strides)]), first


def _swapped_layout(x, strides, first, dim0, dim1):
    if strides:
        strides[dim0], strides[dim1] = strides[dim1], strides[dim0]
    return tuple(strides), first


def _unsqueezed_layout(x, strides, first, dim):
    return (*strides[:dim], x.shape[dim] * strides[dim] if dim < x.ndim else 1, *strides[dim:]), first


def _selected_layout(x, strides, first, dim, index):
    index = index + x.shape[dim] if index < 0 else index
    return _without(tuple(strides), dim), first + index * strides[dim]


def _sliced_layout(x, strides, first, dim, start, end, step):
    start, length = slice_bounds(start, end, step, x.shape[dim])
    first = first if type(length) is int and length == 0 else first + start * strides[dim]
    return _with(tuple(strides), dim, strides[dim] * step), first


def _parts_layout(x, strides, first, sizes, dim):
    found = []
    for n in _numbers(sizes):
        found.append((tuple(strides), first))
        first = first + n * strides[dim]
    return found


def _unfolded_layout(x, strides, first, dimension, size, step):
    if not x.ndim:
        return (1,), first
    return (*_with(tuple(strides), dimension, strides[dimension] * step), strides[dimension]), first


def _diagonal_layout(x, strides, first, offset, dim1, dim2):
    kept = [s for d, s in enumerate(strides) if d not in (dim1, dim2)]
    first = first + (offset * strides[dim2] if offset >= 0 else -offset * strides[dim1])
    return (*kept, strides[dim1] + strides[dim2]), first


def _squeezed_layout(x, strides, first, dim):
    dims = range(x.ndim) if dim is None else [d % max(x.ndim, 1) for d in _numbers(dim)]
    return tuple([s for d, (n, s) in enumerate(zip(x.shape, strides)) if not (d in dims and n == 1)]), first


def _part_layout(x, strides, first, which):
    if not x.dtype.is_complex:
        return tuple(strides), first
    return tuple([2 * s for s in strides]), 2 * first + which


_LAYOUTS = {
    "detach": lambda x, strides, first: (tuple(strides), first),
    "view": _viewed_layout, "reshape": _reshaped_layout, "expand": _expanded_layout, "transpose": _swapped_layout,
    "t": lambda x, strides, first: (tuple(reversed(strides)), first),
    "permute": lambda x, strides, first, dims: (tuple([strides[d] for d in _numbers(dims)]), first),
    "squeeze": _squeezed_layout, "unsqueeze": _unsqueezed_layout, "select": _selected_layout,
    "unbind": lambda x, strides, first, dim: [(_without(tuple(strides), dim), first + k * strides[dim])
                                              for k in range(x.shape[dim])],
    "slice": _sliced_layout, "split_evenly": _parts_layout, "split_by_sizes": _parts_layout,
    "split_by_slices": _parts_layout, "split_unsafely": _parts_layout, "split_by_sizes_unsafely": _parts_layout,
    "as_strided_of": lambda x, strides, first, size, stride, offset, *rest: (
        _numbers(stride), first if offset is None else offset),
    "unfold": _unfolded_layout, "diagonal": _diagonal_layout,
    "real": lambda x, strides, first: _part_layout(x, strides, first, 0),
    "imag": lambda x, strides, first: _part_layout(x, strides, first, 1),
    "view_as_real": lambda x, strides, first: ((*[2 * s for s in strides], 1), 2 * first),
    "view_as_complex": lambda x, strides, first: (tuple([s // 2 for s in strides[:-1]]), first // 2),
}
