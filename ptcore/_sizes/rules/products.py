"""Products of vectors and matrices, distances, and attention."""
from ptcore._errors import ShapeError
from ptcore._sizes.language import Bool, Call, Int, Text, View, fits, given, like, output
from ptcore._sizes.rules.elements import check_ndim, stat_dtype

# -- parts of rules ---------------------------------------------------------------------------------------------------

def check_product(call: Call, x: View, y: View):
    check_ndim(call, x, "input", 2)
    check_ndim(call, y, "mat2", 2)
    if x.sizes[1] != y.sizes[0]:
        raise ShapeError(f"{call.name}: inner sizes must agree, got shapes {x.shape} and {y.shape}")


# -- rules ------------------------------------------------------------------------------------------------------------

def mm(call: Call, input: View, mat2: View):
    check_product(call, input, mat2)
    out = output(call, 0, 2, input.dtype)
    out.sizes[0] = input.sizes[0]
    out.sizes[1] = mat2.sizes[1]


def bmm(call: Call, input: View, mat2: View):
    check_ndim(call, input, "input", 3)
    check_ndim(call, mat2, "mat2", 3)
    if input.sizes[0] != mat2.sizes[0] or input.sizes[2] != mat2.sizes[1]:
        raise ShapeError(f"{call.name}: batch and inner sizes must agree, got shapes {input.shape} and {mat2.shape}")
    out = output(call, 0, 3, input.dtype)
    out.sizes[0] = input.sizes[0]
    out.sizes[1] = input.sizes[1]
    out.sizes[2] = mat2.sizes[2]


def mv(call: Call, input: View, vec: View):
    check_ndim(call, input, "input", 2)
    check_ndim(call, vec, "vec", 1)
    if input.sizes[1] != vec.sizes[0]:
        raise ShapeError(f"{call.name}: sizes must agree, got shapes {input.shape} and {vec.shape}")
    out = output(call, 0, 1, input.dtype)
    out.sizes[0] = input.sizes[0]


def dot(call: Call, input: View, tensor: View):
    check_ndim(call, input, "input", 1)
    check_ndim(call, tensor, "tensor", 1)
    if input.sizes[0] != tensor.sizes[0]:
        raise ShapeError(f"{call.name}: sizes must agree, got shapes {input.shape} and {tensor.shape}")
    output(call, 0, 0, input.dtype)


def addmm(call: Call, input: View, mat1: View, mat2: View):
    """A product of matrices, to which the input broadcasts."""
    check_product(call, mat1, mat2)
    if input.ndim > 2:
        raise ShapeError(added_error(call, input, mat1, mat2))
    if input.ndim > 0:
        n = input.sizes[input.ndim - 1]
        if n != mat2.sizes[1] and n != 1:
            raise ShapeError(added_error(call, input, mat1, mat2))
    if input.ndim > 1 and input.sizes[0] != mat1.sizes[0] and input.sizes[0] != 1:
        raise ShapeError(added_error(call, input, mat1, mat2))
    out = output(call, 0, 2, mat1.dtype)
    out.sizes[0] = mat1.sizes[0]
    out.sizes[1] = mat2.sizes[1]


def added_error(call, input, x, y):
    """The message for an input that does not broadcast with a product, or not to the product's shape."""
    shape = [x.sizes[0], y.sizes[1]]
    if any(1 != n != m != 1 for n, m in zip(reversed(input.sizes), reversed(shape))):
        return f"{call.name}: shapes must broadcast, got {input.shape} and {shape}"
    return f"{call.name}: input of shape {input.shape} does not broadcast to {shape}"


def linear(call: Call, input: View, weight: View, bias: View):
    """(..., in) by (out, in) and a bias (out); or by (in), and a bias without dims."""
    if weight.ndim != 2 and weight.ndim != 1:
        raise ShapeError(f"{call.name}: weight must have 2 dimensions (out_features, in_features), got shape "
                         f"{weight.shape}")
    if input.ndim == 0 or input.sizes[input.ndim - 1] != weight.sizes[weight.ndim - 1]:
        raise ShapeError(f"{call.name}: the last size of input must equal in_features of weight, got shapes "
                         f"{input.shape} and {weight.shape}")
    if given(bias) and (bias.ndim != weight.ndim - 1 or (bias.ndim == 1 and bias.sizes[0] != weight.sizes[0])):
        raise ShapeError(f"{call.name}: bias must have shape {weight.shape[:-1]}, got {bias.shape}")
    out = like(call, 0, input, input.dtype)
    if weight.ndim == 2:
        out.sizes[input.ndim - 1] = weight.sizes[0]
    else:
        out.ndim = input.ndim - 1


def pair_distances(call: Call, x1: View, x2: View):
    """The distance of each row of one stack of matrices to each row of another."""
    if x1.ndim < 2 or x2.ndim < 2:
        raise ShapeError(f"{call.name}: x1 and x2 must have at least 2 dimensions, got shapes {x1.shape} and "
                         f"{x2.shape}")
    out = like(call, 0, x1, x1.dtype)
    out.sizes[x1.ndim - 1] = x2.sizes[x2.ndim - 2]


def row_distances(call: Call, input: View):
    """The distance of each row to each later one."""
    check_ndim(call, input, "input", 2)
    fits(input.sizes[0], 31)
    out = output(call, 0, 1, input.dtype)
    out.sizes[0] = input.sizes[0] * (input.sizes[0] - 1) // 2


def check_scores(call: Call, x: View, name: Text, query: View, key: View):
    """An optional tensor has a number for each query and key."""
    if given(x) and (x.ndim != 4 or x.sizes[0] != query.sizes[0] or x.sizes[1] != query.sizes[1]
                     or x.sizes[2] != query.sizes[2] or x.sizes[3] != key.sizes[2]):
        raise ShapeError(f"{call.name}: {name} must have shape {[*query.sizes[:3], key.sizes[2]]}, got {x.shape}")


def attended(call: Call, query: View, key: View, value: View, mask: View, keep: View):
    """Output and log-sum-exp of attention over (N, H, L, E), (N, G, S, E) and (N, G, S, V)."""
    check_ndim(call, query, "query", 4)
    check_ndim(call, key, "key", 4)
    check_ndim(call, value, "value", 4)
    heads = query.sizes[1]
    held = key.sizes[1]
    if (query.sizes[0] != key.sizes[0] or key.sizes[0] != value.sizes[0] or held != value.sizes[1]
            or key.sizes[2] != value.sizes[2] or query.sizes[3] != key.sizes[3]
            or (heads % held != 0 if held != 0 else heads != 0)):
        raise ShapeError(f"{call.name}: shapes of query, key and value must agree, got {query.shape}, {key.shape} "
                         f"and {value.shape}")
    check_scores(call, mask, "mask", query, key)
    check_scores(call, keep, "keep", query, key)
    out = like(call, 0, query, query.dtype)
    out.sizes[3] = value.sizes[3]
    lse = output(call, 1, 3, stat_dtype(query))
    for j in range(3):
        lse.sizes[j] = query.sizes[j]


def attention_gradients(call: Call, query: View, key: View, value: View, scores: Bool):
    """Those of query, key and value, and of the scores if they are asked for."""
    like(call, 0, query, query.dtype)
    like(call, 1, key, key.dtype)
    like(call, 2, value, value.dtype)
    if scores:
        check_ndim(call, query, "query", 4)
        check_ndim(call, key, "key", 4)
        out = like(call, 3, query, query.dtype)
        out.sizes[3] = key.sizes[2]
    else:
        nothing(call, 3, query.dtype)


def nothing(call: Call, k: Int, dtype: Int):
    """Output k has no elements: it is not asked for."""
    out = output(call, k, 1, dtype)
    out.sizes[0] = 0
