"""Bodies: joins, repeats, diagonals, triangles, turns: copies in another shape."""
import itertools
from builtins import slice as builtin_slice

from cython.cimports.ptcore._ops._common import divided_dim, wrap_dim
from cython.cimports.ptcore._tensor import same_shape

from ptcore._device import checked_device
from ptcore._errors import DTypeError, OutOfRangeError, ShapeError
from ptcore._interpret import aside
from ptcore._ops import checked, results
from ptcore._ops.call.operands import promoted
from ptcore._ops.creation.creation import arange, empty, full, zeros
from ptcore._ops.functions import (
    amax,
    amin,
    cat,
    clone,
    complex_pair,
    counted,
    cumsum,
    diagonal,
    expand,
    flip,
    index_select,
    maximum,
    overwritten,
    reshape,
    row_major,
    scatter_amax,
    scatter_src,
    slice,
    split_by_sizes,
    transpose,
    triangle_places,
    unsqueeze,
    where,
)
from ptcore._ops.functions import sum as sum_of
from ptcore._ops.history import ValueCheck, has_values
from ptcore._ops.table.shapes import FLOAT32, INT64, broadcast_shapes
from ptcore._shape import is_symbolic_number, overlaps
from ptcore._tensor import Tensor


def stack(tensors, dim, out=None):
    tensors = checked.tensors("stack", "tensors", tensors)
    if not tensors:
        raise ShapeError("stack: tensors must not be empty")
    first = tensors[0]
    for t in tensors:
        if not same_shape(t, first):
            raise ShapeError(f"stack: all tensors must have one shape, got "
                             f"{list(first.shape)} and {list(t.shape)}")
    at: object = wrap_dim("stack", dim, first.ndim + 1)
    rows = [unsqueeze(t, at) for t in tensors]
    return _joined(rows, at, out)


def _joined(tensors, dim, out):
    """``cat``, written to out= if it fits."""
    if out is not None:
        size = list(tensors[0].shape)
        size[dim] = 0
        for t in tensors:
            size[dim] += t.shape[dim]
        out = results.fitting(out, size)
    return cat(tensors, dim) if out is None else cat(tensors, dim, out=out)


def _all_tensors(op, tensors):
    """A tuple of Tensors from ``f(a, b)`` or ``f([a, b])``."""
    if len(tensors) == 1 and isinstance(tensors[0], (tuple, list)):
        tensors = tensors[0]
    return checked.tensors(op, "tensors", tensors)


def _several(op, tensors):
    tensors = checked.tensors(op, "tensors", tensors)
    if not tensors:
        raise ShapeError(f"{op}: tensors must not be empty")
    return tensors


# -- repeats ------------------------------------------------------------------------------------
def _repeated(op, input, repeats):
    for n in repeats:
        if n < 0:
            name = "repeats" if op == "repeat" else "dims"
            raise ShapeError(f"{op}: {name} must not be negative, got {list(repeats)}")
    if not repeats:
        return clone(input)
    shape = (*[1] * (len(repeats) - input.ndim), *input.shape)
    final = [n * size for n, size in zip(repeats, shape)]
    if 0 in final:
        return reshape(slice(reshape(input, (-1,)), 0, 0, 0, 1), final)
    # A repeated dim becomes two dims. If there are many, other dims are joined: at most 58 of size 2 or more remain.
    spread, wide, many = [], [], len(repeats) > 32
    for n, size in zip(repeats, shape):
        if n > 1:
            spread.append(1)
            wide.append(n)
        if size > 1 and many and n == 1 and spread and spread[-1] == wide[-1]:
            spread[-1] = wide[-1] = wide[-1] * size
        elif size > 1 or not many:
            spread.append(size)
            wide.append(size)
    return reshape(expand(reshape(input, spread), wide), final)


def _own(out, input):
    """out with memory of its own, by rows: copied if reshape gave a view."""
    base = input if input._base is None else input._base
    return row_major(out) if out is input or out._base is base else out


def repeat(input, repeats):
    repeats = checked.integers("repeat", "repeats", repeats)
    if len(repeats) < input.ndim:
        raise ShapeError(f"repeat: repeats must have a number for each of {input.ndim} dims, got {repeats}")
    return _own(_repeated("repeat", input, repeats), input)


def tile(input, dims):
    dims = checked.integers("tile", "dims", dims)
    dims = [1] * (input.ndim - len(dims)) + dims
    return _own(_repeated("tile", input, dims), input)


def repeat_interleave(input, repeats, dim, output_size):
    op = "repeat_interleave"
    if repeats is None:                 # positions, from the number of repeats of each
        if input.ndim != 1 or input.dtype.kind not in "iu":
            raise ShapeError(f"{op}: repeats must be an integer vector, got {input.dtype.name} of shape "
                             f"{list(input.shape)}")
        return _interleaved(op, input.numel(), input, output_size, input.device)
    if dim is None:
        input, dim = reshape(input, (-1,)), 0
    elif not input.ndim:
        input = reshape(input, (1,))
    dim = wrap_dim(op, dim, input.ndim)
    n = input.shape[dim]
    if not isinstance(repeats, Tensor):
        if isinstance(repeats, (tuple, list)):
            from ptcore._exchange.convert import tensor
            repeats = tensor(checked.integers(op, "repeats", repeats), dtype=INT64, device=input.device)
        else:
            repeats = checked.integer(op, "repeats", repeats)
            if repeats < 0:
                raise RuntimeError(f"{op}: repeats must not be negative, got {repeats}")
            _check_output(op, output_size, n * repeats)
            shape = [*input.shape[:dim + 1], repeats, *input.shape[dim + 1:]]
            final = [*input.shape[:dim], n * repeats, *input.shape[dim + 1:]]
            return _own(reshape(expand(unsqueeze(input, dim + 1), shape), final), input)
    if repeats.dtype.kind not in "iu":
        raise DTypeError(f"{op}: repeats must be integers, got {repeats.dtype.name}")
    if repeats.ndim > 1 or repeats.numel() not in (1, n):
        raise ShapeError(f"{op}: repeats must be a number or a vector of the size {n} of dim {dim}, got shape "
                         f"{list(repeats.shape)}")
    repeats = expand(reshape(repeats, (-1,)), (n,))
    return index_select(input, dim, _interleaved(op, n, repeats, output_size, input.device))


def _check_output(op, output_size, n):
    if output_size is not None and checked.integer(op, "output_size", output_size) != n:
        raise RuntimeError(f"{op}: output_size must be the sum of repeats, {n}, got {output_size}")


def _interleaved(op, n, repeats, output_size, device):
    """The first n integers, each as often as repeats says."""
    ends = cumsum(repeats.to(INT64), 0)
    if output_size is not None and not has_values(repeats):         # output_size cannot be compared with the sum
        total = checked.integer(op, "output_size", output_size)
        return (unsqueeze(arange(total, device=device), 1) >= ends).sum(1)
    if n and int(amin(repeats)) < 0:
        raise RuntimeError(f"{op}: repeats must not be negative, got {int(amin(repeats))}")
    total = int(ends[-1]) if n else 0
    _check_output(op, output_size, total)
    return cumsum(counted(ends, None, total + 1)[:total], 0)            # an integer ends where the next one begins


def roll(input, shifts, dims):
    shifts = checked.integers("roll", "shifts", shifts)
    dims = [] if dims is None else checked.integers("roll", "dims", dims)
    if not shifts:
        raise RuntimeError("roll: shifts must not be empty")
    if not dims and len(shifts) == 1:
        flat = _rolled(reshape(input, (-1,)), shifts[0], 0)
        return reshape(flat, input.shape)
    if len(shifts) != len(dims):
        raise RuntimeError(f"roll: shifts and dims must have one length, got {shifts} and {dims}")
    if not input.ndim:
        raise OutOfRangeError(f"roll: dims must be empty for a tensor without dimensions, got {dims}")
    out = input
    for shift, dim in zip(shifts, dims):
        out = _rolled(out, shift, wrap_dim("roll", dim, input.ndim, "dims"))
    return out


def _rolled(input, shift, dim):
    n = input.shape[dim] if input.ndim else 1
    shift = shift % n if n else 0
    if not shift:
        return clone(input)
    before, behind = split_by_sizes(input, (n - shift, shift), dim)
    return cat([behind, before], dim)


def rot90(input, k, dims):
    dims = checked.integers("rot90", "dims", dims)
    if len(dims) != 2 or input.ndim < 2:
        raise RuntimeError(f"rot90: dims must be two dims of input, got {dims} for shape {list(input.shape)}")
    a, b = [wrap_dim("rot90", d, input.ndim, "dims") for d in dims]
    if a == b:
        raise RuntimeError(f"rot90: dims must differ, got {dims}")
    k = k % 4
    if k == 0:
        return clone(input)
    if k == 2:
        return flip(input, (a, b))
    return transpose(flip(input, (b,)), a, b) if k == 1 else flip(transpose(input, a, b), (b,))


def fliplr(input):
    if input.ndim < 2:
        raise ShapeError(f"fliplr: Input must be >= 2-d., got shape {list(input.shape)}")
    return flip(input, (1,))


def flipud(input):
    if input.ndim < 1:
        raise ShapeError("flipud: Input must be >= 1-d., got shape []")
    return flip(input, (0,))


# -- joins --------------------------------------------------------------------------------------
def atleast_1d(tensors):
    return _at_least("atleast_1d", tensors, _one_dim)


def atleast_2d(tensors):
    return _at_least("atleast_2d", tensors, _two_dims)


def atleast_3d(tensors):
    return _at_least("atleast_3d", tensors, _three_dims)


def _at_least(op, tensors, grow):
    if len(tensors) == 1 and isinstance(tensors[0], Tensor):
        return grow(tensors[0])
    return tuple([grow(t) for t in _all_tensors(op, tensors)])


def _one_dim(t):
    return t if t.ndim else reshape(t, (1,))


def _two_dims(t):
    return t if t.ndim > 1 else unsqueeze(t, 0) if t.ndim else reshape(t, (1, 1))


def _three_dims(t):
    return t if t.ndim > 2 else unsqueeze(_two_dims(t), 0 if t.ndim == 0 else -1)


def hstack(tensors, out=None):
    tensors = [_one_dim(t) for t in _several("hstack", tensors)]
    return _joined(tensors, 0 if tensors[0].ndim == 1 else 1, out)


def vstack(tensors, out=None):
    return _joined([_two_dims(t) for t in _several("vstack", tensors)], 0, out)


def dstack(tensors, out=None):
    return _joined([_three_dims(t) for t in _several("dstack", tensors)], 2, out)


def column_stack(tensors, out=None):
    tensors = _several("column_stack", tensors)
    return _joined([reshape(t, (t.numel(), 1)) if t.ndim < 2 else t for t in tensors], 1, out)


def block_diag(tensors):
    tensors = _all_tensors("block_diag", tensors)
    blocks = []
    for t in tensors:
        if t.ndim > 2:
            raise ShapeError(f"block_diag: tensors must have at most 2 dimensions, got shape {list(t.shape)}")
        blocks.append(_two_dims(t))
    if not blocks:
        return empty(1, 0)
    dtype = promoted(tuple(tensors))
    width = 0
    for b in blocks:
        width += b.shape[1]
    rows, start = [], 0
    for b in blocks:
        m, n = b.shape
        rows.append(cat([zeros(m, start, dtype=dtype, device=b.device), b.to(dtype),
                         zeros(m, width - start - n, dtype=dtype, device=b.device)], 1))
        start += n
    return cat(rows, 0)


def broadcast_tensors(tensors):
    tensors = _all_tensors("broadcast_tensors", tensors)
    shape = broadcast_shapes("broadcast_tensors", *[tuple(t.shape) for t in tensors]) if tensors else ()
    return tuple([expand(t, shape) for t in tensors])


def meshgrid(tensors, indexing):
    tensors = _all_tensors("meshgrid", tensors)
    if not tensors:
        raise ShapeError("meshgrid: tensors must not be empty")
    if indexing is not None:
        checked.word("meshgrid", "indexing", indexing, ("ij", "xy"), RuntimeError)
    for t in tensors:
        if t.ndim > 1:
            raise ShapeError(f"meshgrid: tensors must be vectors, got shape {list(t.shape)}")
        if t.dtype is not tensors[0].dtype:
            raise DTypeError(f"meshgrid: all tensors must have one dtype, got {tensors[0].dtype.name} and "
                             f"{t.dtype.name}")
    shape = [t.numel() for t in tensors]
    grids = []
    for i, t in enumerate(tensors):
        ones = [1] * len(shape)
        ones[i] = shape[i]
        grids.append(expand(reshape(t, ones), shape))
    if indexing == "xy" and len(grids) > 1:
        grids = [transpose(g, 0, 1) for g in grids]
    return tuple(grids)


def cartesian_prod(tensors):
    tensors = _all_tensors("cartesian_prod", tensors)
    for t in tensors:
        if t.ndim != 1:
            raise ShapeError(f"cartesian_prod: tensors must be vectors, got shape {list(t.shape)}")
    if len(tensors) == 1:
        return tensors[0]
    return stack([reshape(g, (-1,)) for g in meshgrid(tensors, "ij")], 1)


def combinations(input, r, with_replacement):
    if input.ndim != 1:
        raise ShapeError(f"combinations: input must be a vector, got shape {list(input.shape)}")
    if not 0 <= r <= 64:
        raise RuntimeError(f"combinations: r must be in [0, 64], got {r}")
    if r == 0:
        return empty(0, dtype=input.dtype, device=input.device)
    n = input.numel()
    with aside():                       # the chosen positions do not depend on values
        positions = meshgrid([arange(n, device=input.device)] * r, "ij")
        keep = None
        for a, b in itertools.pairwise(positions):
            rising = a <= b if with_replacement else a < b
            keep = rising if keep is None else keep & rising
        chosen = [reshape(p, (-1,)) if keep is None else p[keep] for p in positions]
    chosen = stack(chosen, 1)
    return reshape(index_select(input, 0, reshape(chosen, (-1,))), chosen.shape)


# -- diagonals ----------------------------------------------------------------------------------
def diag(input, diagonal):
    if input.ndim == 1:
        return diag_embed(input, diagonal, 0, 1)
    if input.ndim != 2:
        raise ShapeError(f"diag: input must be a vector or a matrix, got shape {list(input.shape)}")
    return clone(diagonal_of(input, diagonal, 0, 1))


diagonal_of = diagonal


def diagflat(input, offset):
    return diag_embed(reshape(input, (-1,)), offset, 0, 1)


def diag_embed(input, offset, dim1, dim2):
    if not input.ndim:
        raise ShapeError("diag_embed: input must have at least one dimension, got shape []")
    a = wrap_dim("diag_embed", dim1, input.ndim + 1, "dim1")
    b = wrap_dim("diag_embed", dim2, input.ndim + 1, "dim2")
    if input.ndim == 64:
        raise ShapeError("diag_embed: input must have at most 63 dimensions, got 64")
    if a == b:
        raise RuntimeError(f"diag_embed: dim1 and dim2 must differ, got {dim1} and {dim2}")
    rest, n = list(input.shape[:-1]), input.shape[-1] + (offset if offset > 0 else -offset)
    for d in sorted((a, b)):
        rest.insert(d, n)
    stride = _row_major(rest)
    start = -offset * stride[a] if offset < 0 else offset * stride[b]
    window = [s for d, s in enumerate(stride) if d not in (a, b)]
    return overwritten(zeros(rest, dtype=input.dtype, device=input.device), input, (*window, stride[a] + stride[b]),
                       start)


def trace(input):
    if input.ndim != 2:
        raise ShapeError(f"trace: input must be a matrix, got shape {list(input.shape)}")
    return sum_of(diagonal(input))


def _triangle(op, row, col, offset, dtype, device, lower):
    row, col = checked.integer(op, "row", row), checked.integer(op, "col", col)
    offset = checked.integer(op, "offset", offset)
    if row < 0 or col < 0:
        raise RuntimeError(f"{op}: row and col must not be negative, got {row} and {col}")
    dtype = INT64 if dtype is None else checked.dtype(op, "dtype", dtype)
    made = dtype if dtype.kind in "iuf" else INT64
    device = checked_device(device, op)
    count = _lower_count(row, col, offset) if lower else row * col - _lower_count(row, col, offset - 1)
    found = triangle_places(empty(0, dtype=made, device=device), row, col, offset, lower, (2, count))
    return found if made is dtype else found.to(dtype)


def _lower_count(row, col, offset):
    """The number of a matrix's elements on or below a diagonal: row i has i + offset + 1 of them, limited to 0..col."""
    first = -offset if offset < 0 else 0
    whole = col - offset - 1 if col - offset - 1 > first else first     # from this row on all elements count
    growing = (row if row < whole else whole) - first
    count = growing * (first + offset + 1) + growing * (growing - 1) // 2 if growing > 0 else 0
    return count + (row - whole) * col if row > whole else count


def tril_indices(row, col, offset, dtype, device, layout):
    return _triangle("tril_indices", row, col, offset, dtype, device, True)


def triu_indices(row, col, offset, dtype, device, layout):
    return _triangle("triu_indices", row, col, offset, dtype, device, False)


@ValueCheck
def check_classes(input, num_classes):
    low, high = int(amin(input)), int(amax(input))
    if low < 0 or (num_classes >= 0 and high >= num_classes):
        bounds = f"in [0, {num_classes})" if num_classes >= 0 else "at least 0"
        raise RuntimeError(f"one_hot: input must be {bounds}, got {low if low < 0 else high}")


def one_hot(input, num_classes):
    if input.dtype is not INT64:
        raise DTypeError(f"one_hot: input must be an int64 tensor, got {input.dtype.name}")
    empty_ = input.numel() == 0
    if num_classes < -1 or (empty_ and num_classes < 1):
        raise RuntimeError(f"one_hot: num_classes must be positive, got {num_classes}")
    if not empty_:
        check_classes(input, num_classes)
        if num_classes < 0 and has_values(input):
            num_classes = int(amax(input)) + 1
    if num_classes < 0:
        raise RuntimeError("one_hot: num_classes must be given for a tensor without data")
    return (unsqueeze(input, -1) == arange(num_classes, device=input.device)).to(INT64)


# -- views written to -----------------------------------------------------------------------------
def _row_major(shape):
    """Strides of a row-major tensor."""
    strides, step = [], 1
    for n in reversed(shape):
        strides.append(step)
        step *= n
    return strides[::-1]


def _fitting(op, src, shape, dtype):
    if tuple(src.shape) != tuple(shape):
        raise ShapeError(f"{op}: src must have shape {list(shape)}, got {list(src.shape)}")
    return src if src.dtype is dtype else src.to(dtype)


def select_scatter(input, src, dim, index):
    op = "select_scatter"
    dim = divided_dim(op, dim, input)
    n = input.shape[dim]
    if not -n <= index < n:
        raise OutOfRangeError(f"{op}: index must be in [{-n}, {n - 1}], got {index}")
    shape = input.shape
    src = _fitting(op, src, shape[:dim] + shape[dim + 1:], input.dtype)
    stride = _row_major(shape)
    start = index % n * stride[dim]
    return overwritten(input, src, (*stride[:dim], *stride[dim + 1:]), start)


def slice_scatter(input, src, dim, start, end, step):
    op = "slice_scatter"
    dim = divided_dim(op, dim, input)
    bounds = [None if x is None else checked.integer(op, name, x) for name, x in (("start", start), ("end", end))]
    if step < 1:
        raise RuntimeError(f"{op}: step must be positive, got {step}")
    n = input.shape[dim]
    shape, stride = list(input.shape), _row_major(input.shape)
    if any([is_symbolic_number(x) for x in (*bounds, n)]):
        from ptcore._ops.table.evaluate import slice_bounds
        start, shape[dim] = slice_bounds(*bounds, step, n)
    else:
        start, end, step = builtin_slice(*bounds, step).indices(n)
        shape[dim] = len(range(start, end, step))
    src = _fitting(op, src, shape, input.dtype)
    offset = start * stride[dim]
    stride[dim] *= step
    return overwritten(input, src, tuple(stride), offset)


def as_strided_scatter(input, src, size, stride, storage_offset):
    """Scatters on a line with numbered places, as the layout of the window need not be that of a slice.

    If elements lie in memory in their order, or input is a stand-in without memory, places number the elements.
    Otherwise they are places of the input's memory, and the result has the input's layout, as in PyTorch. Of elements
    of the window that share a place the last one counts, in row-major order, for values and for derivatives.
    """
    op = "as_strided_scatter"
    size = checked.integers(op, "size", size)
    stride = checked.integers(op, "stride", stride)
    if storage_offset is not None:
        storage_offset = checked.integer(op, "storage_offset", storage_offset)
    in_order = (not has_values(input) or _repeats(input.shape, input.stride())
                or (input.is_contiguous() and (storage_offset is None or input.storage_offset() == 0)))
    if in_order and has_values(input) and tuple(src.shape) == tuple(size) and not overlaps(size, stride):
        offset, count = storage_offset or 0, input.numel()
        if 0 <= offset and (not stride or min(stride) >= 0) and _end(size, stride, offset) <= count:
            return overwritten(input, src.to(input.dtype), tuple(stride), offset)
    if in_order:
        strides, start, room = empty(input.shape, device="meta").stride(), 0, input.numel()
    else:
        strides, start = input.stride(), input.storage_offset()
        room = input.untyped_storage().nbytes() // input.element_size()
    offset = start if storage_offset is None else storage_offset
    length = max(_end(input.shape, strides, start), _end(size, stride, offset))
    places = arange(min(room, length), device=input.device)
    own = reshape(places.as_strided(input.shape, strides, start), (-1,))
    window = places.as_strided(size, stride, offset)
    if tuple(src.shape) != tuple(window.shape):
        raise ShapeError(f"{op}: src must have shape {list(window.shape)}, got {list(src.shape)}")
    if _repeats(size, stride):
        raise RuntimeError(f"{op}: elements of the window must not share memory, got size {size} and stride {stride}")
    line = scatter_src(zeros(places.shape, dtype=input.dtype, device=input.device), 0, own, reshape(input, (-1,)))
    window, src = reshape(window, (-1,)), reshape(src, (-1,)).to(input.dtype)
    if overlaps(size, stride):
        last = scatter_amax(full(places.shape, -1, dtype=places.dtype, device=input.device), 0, window,
                            arange(src.numel(), device=input.device))
        line = where(last < 0, line, index_select(src, 0, maximum(last, 0)))
    else:
        line = scatter_src(line, 0, window, src)
    return reshape(line, input.shape) if in_order else line.as_strided(input.shape, strides, start)


def _repeats(shape, strides):
    return any([n > 1 and s == 0 for n, s in zip(shape, strides)])


def _end(shape, strides, start):
    """The last place of a window in memory, plus one."""
    return start + 1 + sum([(n - 1) * s for n, s in zip(shape, strides) if n and s > 0])


def diagonal_scatter(input, src, offset, dim1, dim2):
    op = "diagonal_scatter"
    a, b = divided_dim(op, dim1, input), wrap_dim(op, dim2, input.ndim, "dim2")
    src = _fitting(op, src, diagonal(input, offset, a, b).shape, input.dtype)
    stride = _row_major(input.shape)
    start = -offset * stride[a] if offset < 0 else offset * stride[b]
    window = [s for d, s in enumerate(stride) if d not in (a, b)]
    return overwritten(input, src, (*window, stride[a] + stride[b]), start)


# -- complex numbers ------------------------------------------------------------------------------
def complex_of(real, imag):
    if real.dtype is not imag.dtype or real.dtype.name not in ("float32", "float64", "float16"):
        raise DTypeError(f"complex: real and imag must both be float16, float32 or float64, got {real.dtype.name} and "
                         f"{imag.dtype.name}")
    if real.shape != imag.shape:
        real, imag = broadcast_tensors((real, imag))
    if real.dtype.itemsize == 2:            # the pair of float32 is exact
        return complex_pair(real.to(FLOAT32), imag.to(FLOAT32)).to(real.dtype.to_complex())
    return complex_pair(real, imag)


def polar(abs, angle):
    from ptcore._ops.functions import cos, sin
    if abs.dtype is not angle.dtype or abs.dtype.name not in ("float32", "float64"):
        raise DTypeError(f"polar: abs and angle must both be float32 or float64, got {abs.dtype.name} and "
                         f"{angle.dtype.name}")
    return complex_of(abs * cos(angle), abs * sin(angle))
