"""Bodies: windows of a tensor's memory under other names."""
from builtins import min as builtin_min
from builtins import sum as builtin_sum

import cython
from cython.cimports.ptcore._ops._common import divided_dim, wrap_dim

from ptcore._errors import DTypeError, OutOfRangeError, ShapeError
from ptcore._interpret import transformed
from ptcore._ops import checked
from ptcore._ops.functions import (
    as_strided,
    conj_physical,
    diagonal,
    expand,
    permute,
    reshape,
    row_major,
    select,
    slice,
    split_by_sizes,
    split_by_sizes_unsafely,
    split_by_slices,
    split_evenly,
    split_unsafely,
    squeeze,
    t,
    transpose,
    transpose_,
    unbind,
    unfold,
    unsqueeze,
    view,
    view_as_complex,
    view_as_real,
)
from ptcore._ops.functions import sum as sum_of
from ptcore._ops.history import has_values
from ptcore._ops.methods import detach, reinterpret
from ptcore._ops.table.shapes import broadcast_shapes
from ptcore._tensor import Tensor


def flatten(input, start_dim, end_dim):
    sizes = tuple(input.shape)
    ndim = len(sizes)
    start: cython.long = wrap_dim("flatten", start_dim, ndim, "start_dim")
    end: cython.long = wrap_dim("flatten", end_dim, ndim, "end_dim")
    if ndim == 0:
        return reshape(input, (1,))
    if start > end:
        raise RuntimeError(f"flatten: start_dim must not come after end_dim, got {start_dim} and "
                           f"{end_dim}")
    if start == end:
        return input
    n = 1
    for size in sizes[start:end + 1]:
        n *= size
    return reshape(input, (*sizes[:start], n, *sizes[end + 1:]))


def unflatten(input, dim, sizes):
    dim = divided_dim("unflatten", dim, input)
    sizes = checked.integers("unflatten", "sizes", sizes)
    shape = input.shape
    whole, known = shape[dim], 1
    for size in sizes:
        if size < -1:
            raise ShapeError(f"unflatten: sizes must be non-negative or one -1, got {sizes}")
        if size != -1:
            known *= size
    if sizes.count(-1) > 1 or (known == 0 and -1 in sizes) or (
            whole != known if -1 not in sizes else whole % known):
        raise ShapeError(f"unflatten: the product of sizes must be the size {whole} of dim {dim}, got sizes {sizes}")
    if -1 in sizes:
        sizes[sizes.index(-1)] = whole // known
    return reshape(input, (*shape[:dim], *sizes, *shape[dim + 1:]))


def movedim(input, source, destination):
    if type(source) is int and type(destination) is int:
        source = wrap_dim("movedim", source, input.ndim, "source")
        order = list(range(input.ndim))
        if order:
            order.insert(wrap_dim("movedim", destination, input.ndim, "destination"), order.pop(source))
        return permute(input, order)
    source = checked.integers("movedim", "source", source)
    destination = checked.integers("movedim", "destination", destination)
    if len(source) != len(destination):
        raise RuntimeError(f"movedim: Invalid source or destination dims: source ({source} dims) should contain the "
                           f"same number of dims as destination ({destination} dims), got {len(source)} and "
                           f"{len(destination)}")
    ndim = input.ndim
    order, taken, repeated = [-1] * ndim, [False] * ndim, False
    for s, d in zip(source, destination):
        s, d = wrap_dim("movedim", s, ndim, "source"), wrap_dim("movedim", d, ndim, "destination")
        repeated = repeated or (ndim and (taken[s] or order[d] >= 0))
        if ndim:
            taken[s], order[d] = True, s
    if repeated:
        raise RuntimeError(f"movedim: dims must not repeat, got {source} and {destination}")
    rest = 0
    for d in range(ndim):
        if order[d] < 0:
            while taken[rest]:
                rest += 1
            order[d] = rest
            rest += 1
    return permute(input, order)


def narrow(input, dim, start, length):
    dim = divided_dim("narrow", dim, input)
    if isinstance(start, Tensor) and (start.ndim or start.dtype.kind not in "iu"):
        raise RuntimeError(f"narrow: start must be an int or a 0-d tensor of integers, got {start.dtype.name} of shape "
                           f"{list(start.shape)}")
    if type(start) is not int:
        start = checked.integer("narrow", "start", start)
    size = input.shape[dim]
    first = start + size if start < 0 else start
    if not 0 <= first <= size or length < 0 or first + length > size:
        raise OutOfRangeError(f"narrow: start {start} and length {length} exceed size {size} of dim "
                         f"{dim}")
    return slice(input, dim, first, first + length, 1)


def split(tensor, split_size_or_sections, dim):
    return _split("split", tensor, split_size_or_sections, dim, split_evenly, split_by_sizes)


@cython.cfunc
def _split(op, tensor, sections, dim, evenly, by_sizes, name="split_size_or_sections"):
    dim = divided_dim(op, dim, tensor)
    size = tensor.shape[dim]
    if not isinstance(sections, (tuple, list)):
        sections = checked.integer(op, name, sections)
        if sections < 0 or (sections == 0 and size):
            raise RuntimeError(f"{op}: {name} must be positive, got {sections}")
        return evenly(tensor, _even(size, sections), dim)
    return by_sizes(tensor, sections, dim)


@cython.cfunc
def _even(size, step):
    """The sizes of parts of ``step`` elements each; the last part has the rest."""
    if not step or not size:
        return [0]
    n = -(-size // step)
    parts = [step] * n
    parts[n - 1] = size - step * (n - 1)
    return parts


def chunk(input, chunks, dim):
    return _chunk("chunk", input, chunks, dim, split_evenly, split_by_sizes)


@cython.cfunc
def _chunk(op, input, chunks, dim, evenly, by_sizes):
    if chunks < 1:
        raise RuntimeError(f"{op}: chunk expects `chunks` to be greater than 0, got {chunks}")
    dim = divided_dim(op, dim, input)
    size = input.shape[dim]
    if size == 0:
        return by_sizes(input, [0] * chunks, dim)
    return evenly(input, _even(size, -(-size // chunks)), dim)


def swapaxes(input, axis0, axis1):
    axis0 = wrap_dim("swapaxes", axis0, input.ndim, "axis0")
    return transpose(input, axis0, wrap_dim("swapaxes", axis1, input.ndim, "axis1"))


def swapaxes_(input, axis0, axis1):
    axis0 = wrap_dim("swapaxes_", axis0, input.ndim, "axis0")
    return transpose_(input, axis0, wrap_dim("swapaxes_", axis1, input.ndim, "axis1"))


def sum_to_size(input, size):
    if not isinstance(size, (tuple, list)):
        size = (size,)
    shape = tuple([checked.integer("sum_to_size", "size", n) for n in size])
    own = tuple(input.shape)
    lead = len(own) - len(shape)
    fits = lead >= 0
    for k in range(len(shape) if fits else 0):
        fits = fits and (shape[k] == 1 or shape[k] == own[lead + k])
    if not fits:
        raise ShapeError(f"sum_to_size: size {list(shape)} is not expandable to size {list(own)}")
    dims = [d for d, m in enumerate(own) if d < lead or (shape[d - lead] == 1 and m != 1)]
    return reshape(sum_of(input, tuple(dims), True), shape) if dims or not shape else input


def fill_diagonal_inplace(input, fill_value, wrap):
    shape = tuple(input.shape)
    if len(shape) < 2:
        raise ShapeError(f"fill_diagonal_: at least 2 dimensions are needed, got {len(shape)}")
    if len(shape) > 2 and any([n != shape[0] for n in shape]):
        raise ShapeError(f"fill_diagonal_: all dimensions must be of equal length, got {list(shape)}")
    step = builtin_sum(input.stride())
    as_strided(input, (builtin_min(shape),), (step,), None).fill_(fill_value)
    if wrap and len(shape) == 2 and shape[0] > shape[1] + 1:
        fill_diagonal_inplace(input[shape[1] + 1:], fill_value, True)
    return input


# -- parts --------------------------------------------------------------------------------------
def _parts(op, input, indices_or_sections, dim):
    n = input.shape[dim]
    sections = indices_or_sections
    if isinstance(sections, Tensor):
        if sections.ndim > 1 or sections.dtype.kind not in "iu":
            raise RuntimeError(f"{op}: indices_or_sections must be an integer or a vector of integers, got "
                               f"{sections.dtype.name} of shape {list(sections.shape)}")
        sections = sections.tolist()
    if isinstance(sections, (tuple, list)):
        points = checked.integers(op, "indices_or_sections", sections)
        points = [min(max(p + n if p < 0 else p, 0), n) for p in points]
        starts, ends = [0, *points], [*points, n]
        if any([s > e for s, e in zip(starts, ends)]):              # overlapping parts
            return tuple([slice(input, dim, s, e, 1) for s, e in zip(starts, ends)])
        return split_by_slices(input, [e - s for s, e in zip(starts, ends)], dim)
    sections = checked.integer(op, "indices_or_sections", sections)
    if sections < 1:
        raise RuntimeError(f"{op}: the number of sections must be positive, got {sections}")
    if sections > 2**24:
        raise RuntimeError(f"{op}: the number of sections must be at most {2**24}, got {sections}")
    small, larger = n // sections, n % sections
    return split_by_slices(input, [small + 1 if k < larger else small for k in range(sections)], dim)


def tensor_split(input, indices_or_sections, dim):
    return _parts("tensor_split", input, indices_or_sections, divided_dim("tensor_split", dim, input))


def _evenly(op, input, indices_or_sections, dim):
    sections = indices_or_sections
    if not isinstance(sections, (tuple, list)) and not (isinstance(sections, Tensor) and sections.ndim):
        sections = checked.integer(op, "indices_or_sections", sections)
        if sections > 0 and input.shape[dim] % sections:
            raise RuntimeError(f"{op}: the size {input.shape[dim]} of dim {dim} must be a multiple of {sections}")
    return _parts(op, input, sections, dim)


def _need(op, input, ndim):
    if input.ndim < ndim:
        raise ShapeError(f"{op}: input must have at least {ndim} dimension{'s' if ndim > 1 else ''}, got shape "
                         f"{list(input.shape)}")


def hsplit(input, indices_or_sections):
    _need("hsplit", input, 1)
    return _evenly("hsplit", input, indices_or_sections, 0 if input.ndim == 1 else 1)


def vsplit(input, indices_or_sections):
    _need("vsplit", input, 2)
    return _evenly("vsplit", input, indices_or_sections, 0)


def dsplit(input, indices_or_sections):
    _need("dsplit", input, 3)
    return _evenly("dsplit", input, indices_or_sections, 2)


def ravel(input):
    return reshape(input.contiguous(), (-1,))


def split_with_sizes(input, split_sizes, dim):
    return split(input, checked.integers("split_with_sizes", "split_sizes", split_sizes), dim)


def unsafe_split(input, split_size, dim):
    return _split("unsafe_split", input, split_size, dim, split_unsafely, split_by_sizes_unsafely, "split_size")


def unsafe_split_with_sizes(input, split_sizes, dim):
    sizes = checked.integers("unsafe_split_with_sizes", "split_sizes", split_sizes)
    return _split("unsafe_split_with_sizes", input, sizes, dim, split_unsafely, split_by_sizes_unsafely)


def unsafe_chunk(input, chunks, dim):
    return _chunk("unsafe_chunk", input, chunks, dim, split_unsafely, split_by_sizes_unsafely)


# -- copies ---------------------------------------------------------------------------------------
def _whole(input):
    return input


def _expanded(input, size, implicit):
    return expand(input, size)


def _split_evenly(input, split_size, dim):
    return _split("split_copy", input, checked.integer("split_copy", "split_size", split_size), dim, split_evenly,
                  split_by_sizes, "split_size")


def _seen_as(input, size):
    """``view`` with a shape or a dtype; a copy can have either for any strides."""
    return reshape(input, size) if isinstance(size, (tuple, list, int)) else reinterpret(input, size)


def _sliced(input, dim, start, end, step):
    if step <= 0:
        raise RuntimeError(f"slice_copy: step must be positive, got {step}")
    start, end = [None if x is None else checked.integer("slice_copy", name, x) for name, x in (
        ("start", start), ("end", end))]
    return slice(input, divided_dim("slice_copy", dim, input), start, end, step)


def window_of(input, size, stride, storage_offset):
    """``as_strided``; under a transformation by picking elements by their order, which can be batched."""
    if has_values(input) or input.device.type == "meta" or not transformed():
        return as_strided(input, size, stride, storage_offset)
    from ptcore._ops.index.decompositions import picked
    return picked(input, size, stride, storage_offset or 0)


def _copied(window):
    """The body of a copy op: the result of the view op, in memory of its own."""
    def body(*args):
        shown = window(*args)
        return tuple([row_major(x) for x in shown]) if type(shown) is tuple else row_major(shown)
    return body


for _name, _view in {
        "alias": _whole, "detach": detach, "as_strided": window_of, "diagonal": diagonal, "expand": _expanded,
        "narrow": narrow, "permute": permute, "select": select, "slice": _sliced, "split": _split_evenly,
        "split_with_sizes": split_with_sizes, "squeeze": squeeze, "t": t, "transpose": transpose, "unbind": unbind,
        "unfold": unfold, "unsqueeze": unsqueeze, "view": _seen_as, "view_as_real": view_as_real,
        "view_as_complex": view_as_complex}.items():
    globals()[f"{_name}_copy"] = _copied(_view)


# -- as another tensor is, conjugation, a selection ------------------------------------------------
def view_as(input, other):
    return view(input, other.shape)


def reshape_as(input, other):
    return reshape(input, other.shape)


def expand_as(input, other):
    return expand(input, other.shape)


def type_as(input, other):
    return input.to(other)


def broadcast_to(input, size):
    return expand(input, size)


def conj(input):
    return conj_physical(input) if input.dtype.kind == "c" else input


def adjoint(input):
    if input.ndim == 1:
        raise RuntimeError("adjoint: tensor.adjoint() is only supported on matrices or batches of matrices, got a 1-D "
                           "tensor")
    return conj(input.mT)


def to_dense(input, dtype, masked_grad):
    return input if dtype is None else input.to(dtype)


def resolve_conj(input):
    return input


def resolve_neg(input):
    return input


def masked_select(input, mask):
    if mask.dtype.name != "bool":
        raise DTypeError(f"masked_select: mask must have dtype bool, got {mask.dtype.name}")
    shape = broadcast_shapes("masked_select", tuple(input.shape), tuple(mask.shape))
    return expand(input, shape)[expand(mask, shape)]
