"""Reading and writing at positions, joining, and losses of class indices."""
from ptcore._errors import DTypeError, OutOfRangeError, ShapeError
from ptcore._sizes.language import (
    CATEGORY,
    INT64,
    Bool,
    Call,
    Int,
    Positions,
    Text,
    View,
    Words,
    dtype_name,
    like,
    output,
    tensor,
)
from ptcore._sizes.rules.elements import check_vector, stat_dtype

# -- parts of rules ---------------------------------------------------------------------------------------------------

def check_integers(call: Call, index: View, name: Text):
    if index.dtype != INT64 and CATEGORY[index.dtype] != 1:
        raise DTypeError(f"{call.name}: {name} must be an integer tensor, got {dtype_name(index.dtype)}")


def check_gathered(call: Call, x: View, dim: Int, index: View):
    """The index is no larger than x apart from one dim. A tensor without dims counts as one of one element."""
    check_integers(call, index, "index")
    if index.ndim != x.ndim:
        if index.ndim + x.ndim != 1 and index.numel != 0:
            raise ShapeError(f"{call.name}: index must have as many dimensions as input, got shapes {index.shape} and "
                             f"{x.shape}")
        return
    for j in range(x.ndim):
        if j != dim and index.sizes[j] > x.sizes[j] and index.numel != 0:
            raise ShapeError(f"{call.name}: index of shape {index.shape} is larger than input of shape {x.shape} apart "
                             f"from dim {dim}")


def check_vector_of_positions(call: Call, index: View):
    check_integers(call, index, "index")
    if index.ndim > 1:
        raise ShapeError(f"{call.name}: index must be a vector, got shape {index.shape}")


def check_positions_of(call: Call, x: View, index: View, copied: Bool):
    """The positions are a vector. A tensor without dims has one."""
    check_vector_of_positions(call, index)
    if x.ndim == 0 and index.numel != 1:
        raise (OutOfRangeError if copied else ShapeError)(
            f"{call.name}: index must have one element for an input without dimensions, got {index.numel}")


def check_source(call: Call, x: View, dim: Int, index: View, source: View, copied: Bool):
    """A source has the sizes of x, of one dim as many as there are positions."""
    check_positions_of(call, x, index, copied)
    if copied and source.ndim != x.ndim and source.ndim + x.ndim == 1 and source.numel == 1 and index.numel == 1:
        return                          # of a copy, a source of one element may have a dim more or less
    if source.ndim != x.ndim:
        raise source_error(call, x, dim, index, source, copied)
    for j in range(x.ndim):
        if source.sizes[j] != (index.numel if j == dim else x.sizes[j]):
            raise source_error(call, x, dim, index, source, copied)


def source_error(call, x, dim, index, source, copied):
    expected = [index.numel if j == dim else n for j, n in enumerate(x.sizes)]
    return (OutOfRangeError if copied else ShapeError)(
        f"{call.name}: source must have shape {expected}, got {source.shape}")


def is_nothing(x: View) -> Bool:
    """PyTorch's old empty tensor of one dim."""
    return x.ndim == 1 and x.sizes[0] == 0


# -- rules ------------------------------------------------------------------------------------------------------------

def gather(call: Call, input: View, dim: Int, index: Positions):
    check_gathered(call, input, dim, index)
    like(call, 0, index, input.dtype)


def scatter(call: Call, input: View, dim: Int, index: Positions, src: View):
    check_gathered(call, input, dim, index)
    if src.ndim != index.ndim:
        if src.ndim + index.ndim != 1 and index.numel != 0:
            raise ShapeError(f"{call.name}: index of shape {index.shape} is larger than src of shape {src.shape}")
    else:
        for j in range(index.ndim):
            if index.sizes[j] > src.sizes[j] and index.numel != 0:
                raise ShapeError(f"{call.name}: index of shape {index.shape} is larger than src of shape {src.shape}")
    like(call, 0, input, input.dtype)


def index_select(call: Call, input: View, dim: Int, index: Positions):
    check_positions_of(call, input, index, False)
    out = like(call, 0, input, input.dtype)
    if input.ndim > 0:
        out.sizes[dim] = index.numel


def index_add(call: Call, input: View, dim: Int, index: Positions, source: View):
    check_source(call, input, dim, index, source, False)
    like(call, 0, input, input.dtype)


def index_copy(call: Call, input: View, dim: Int, index: Positions, source: View):
    check_source(call, input, dim, index, source, True)
    like(call, 0, input, input.dtype)


def take(call: Call, input: View, index: View):
    if index.dtype != INT64:
        raise DTypeError(f"{call.name}: index must be int64, got {dtype_name(index.dtype)}")
    like(call, 0, index, input.dtype)


def put(call: Call, input: View, index: View, source: View):
    if index.dtype != INT64:
        raise DTypeError(f"{call.name}: index must be int64, got {dtype_name(index.dtype)}")
    if index.numel != source.numel:
        raise OutOfRangeError(f"{call.name}: source must have as many elements as index, got shapes {source.shape} and "
                              f"{index.shape}")
    like(call, 0, input, input.dtype)


def cat(call: Call, dim: Int):
    """Tensors that differ in one dim at most; those of the shape (0,) are passed over."""
    first = 0
    while first < call.nin - 1 and is_nothing(tensor(call, first)):
        first += 1
    x = tensor(call, first)
    if is_nothing(x):
        x = tensor(call, 0)
    if x.ndim == 0:
        raise ShapeError(f"{call.name}: zero-dimensional tensors cannot be concatenated")
    out = like(call, 0, x, x.dtype)
    total = x.sizes[dim]
    for i in range(call.nin):
        t = tensor(call, i)
        if t.ndim == x.ndim:
            for j in range(x.ndim):
                if j != dim and t.sizes[j] != x.sizes[j]:
                    raise ShapeError(f"{call.name}: sizes must match except in dim {dim}, got shapes {x.shape} and "
                                     f"{t.shape}")
            if i != first:
                total = total + t.sizes[dim]
        elif not is_nothing(t):
            raise ShapeError(f"{call.name}: sizes must match except in dim {dim}, got shapes {x.shape} and {t.shape}")
    out.sizes[dim] = total


# -- losses of class indices ------------------------------------------------------------------------------------------

def check_classes(call: Call, x: View, target: View, weight: View):
    """The target has the sizes of the input, (C) or (N, C, ...), without the classes."""
    if x.ndim == 0:
        raise ShapeError(f"{call.name}: input must have shape (C), (N, C) or (N, C, ...), got []")
    if target.ndim != x.ndim - 1:
        raise target_error(call, x, target)
    for j in range(target.ndim):
        if target.sizes[j] != x.sizes[0 if j == 0 else j + 1]:
            raise target_error(call, x, target)
    check_integers(call, target, "target")
    check_vector(call, weight, "weight", x.sizes[0 if x.ndim == 1 else 1])


def target_error(call, x, target):
    expected = [] if x.ndim == 1 else x.shape[:1] + x.shape[2:]
    return ShapeError(f"{call.name}: target must have shape {expected} for input of shape {x.shape}, got "
                      f"{target.shape}")


def classified(call: Call, k: Int, target: View, whole: Bool, dtype: Int):
    """Output k has a number for each sample, or one for all."""
    if whole:
        output(call, k, 0, dtype)
    else:
        like(call, k, target, dtype)


def cross_entropy(call: Call, input: View, target: View, weight: View, reduction: Words("none|mean|sum")):
    """The loss, the log-sum-exp of each sample, the total weight."""
    check_classes(call, input, target, weight)
    classified(call, 0, target, reduction != "none", input.dtype)
    classified(call, 1, target, False, stat_dtype(input))
    output(call, 2, 0, stat_dtype(input))


def nll_loss(call: Call, input: View, target: View, weight: View, reduction: Words("none|mean|sum")):
    """The loss and the total weight."""
    check_classes(call, input, target, weight)
    classified(call, 0, target, reduction != "none", input.dtype)
    output(call, 1, 0, input.dtype)


def of_rows(call: Call, input: View):
    """A number for each row."""
    if input.ndim == 0:
        raise ShapeError(f"{call.name}: input must have at least one dimension, got shape []")
    out = like(call, 0, input, input.dtype)
    out.ndim = input.ndim - 1


def ctc_loss(call: Call, log_probs: View, labels: View):
    """The losses, and a state for each label, and for each blank around them, after each step."""
    if log_probs.ndim < 2 or labels.ndim < 2:
        raise ShapeError(f"{call.name}: log_probs and labels must have at least 2 dimensions, got shapes "
                         f"{log_probs.shape} and {labels.shape}")
    loss = output(call, 0, 1, log_probs.dtype)
    loss.sizes[0] = log_probs.sizes[1]
    states = output(call, 1, 3, stat_dtype(log_probs))
    states.sizes[0] = log_probs.sizes[1]
    states.sizes[1] = log_probs.sizes[0]
    states.sizes[2] = 2 * labels.sizes[1] + 1
