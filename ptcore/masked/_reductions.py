"""Reductions over the elements that a mask marks; the other elements are replaced by an identity."""
import ptcore
from ptcore._ops.checked import integer, number
from ptcore.masked._masks import described, dims_of, filled, identity, read


@described("The sum.", "tensor([-4.,  1.])", dtype="Of the result; integers are summed as int64.")
def sum(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    input, mask = read("sum", input, mask)
    return ptcore.sum(filled("sum", input, mask, "sum"), dims_of("sum", dim, input.ndim), bool(keepdim), dtype=dtype)


@described("The product.", "tensor([3., 0.])", dtype="Of the result; integers are multiplied as int64.")
def prod(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    input, mask = read("prod", input, mask)
    if dtype is None and not (input.dtype.is_floating_point or input.dtype.is_complex):
        dtype = ptcore.promote_types(input.dtype, ptcore.int64) if input.dtype is not ptcore.uint64 else input.dtype
    result = filled("prod", input, mask, "prod").to(input.dtype if dtype is None else dtype)
    for d in reversed(dims_of("prod", dim, input.ndim)):
        result = result.prod(d, bool(keepdim))
    return result


@described("The largest element.", "tensor([-1.,  1.])")
def amax(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    return _extreme("amax", ptcore.amax, input, dim, keepdim, dtype, mask)


@described("The smallest element.", "tensor([-3.,  0.])")
def amin(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    return _extreme("amin", ptcore.amin, input, dim, keepdim, dtype, mask)


def _extreme(op, function, input, dim, keepdim, dtype, mask):
    input, mask = read(op, input, mask)
    result = function(filled(op, input, mask, op), dims_of(op, dim, input.ndim), bool(keepdim))
    return result.to(input.dtype if dtype is None else dtype)


_PLACE = "Of the result: that of the input unless given, as in PyTorch."


@described("The position of the largest element along a dim, or in the flattened input.", "tensor([2, 1])",
           ", 1, dtype=ptcore.int64", dtype=_PLACE)
def argmax(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    return _place("argmax", ptcore.argmax, input, dim, keepdim, dtype, mask)


@described("The position of the smallest element along a dim, or in the flattened input.", "tensor([0, 0])",
           ", 1, dtype=ptcore.int64", dtype=_PLACE)
def argmin(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    return _place("argmin", ptcore.argmin, input, dim, keepdim, dtype, mask)


def _place(op, function, input, dim, keepdim, dtype, mask):
    input, mask = read(op, input, mask)
    return function(filled(op, input, mask, op), dim, bool(keepdim)).to(input.dtype if dtype is None else dtype)


def _count(input, mask, dim, keepdim):
    """The number of elements that count."""
    if mask is None:
        mask = ptcore.ones(input.shape, dtype=ptcore.bool, device=input.device)
    return mask.sum(dim, bool(keepdim))


@described("The mean; NaN where no element counts.", "tensor([-2.0000,  0.5000])",
           dtype="Floating-point or complex; that of the input, which must be such, unless given.")
def mean(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    input, mask = read("mean", input, mask)
    kind, dtype = ("Input", input.dtype) if dtype is None else ("Optional", dtype)
    if not (dtype.is_floating_point or dtype.is_complex):
        raise ValueError(f"mean: Could not infer output dtype. {kind} dtype must be either a floating point or complex "
                         f"dtype. Got: {dtype}")
    dims = dims_of("mean", dim, input.ndim)
    return sum(input, dims, keepdim=keepdim, dtype=dtype, mask=mask) / _count(input, mask, dims, keepdim)


@described("The median along a dim, the lower one of two; NaN where no element counts.", "tensor([-3.,  0.])",
           dim="dim")
def median(input, dim=-1, *, keepdim=False, dtype=None, mask=None):
    input, mask = read("median", input, mask)
    dim = integer("median", "dim", dim)
    (dim,) = dims_of("median", dim, input.ndim) or (0,)
    wide = input if input.dtype.is_floating_point else input.to(ptcore.float32)
    values = ptcore.nanmedian(filled("median", wide, mask, "median"), dim, bool(keepdim)).values
    if wide is input:
        return values
    if bool(ptcore.isnan(values).any()):
        raise ValueError("median: no row may be masked out fully where the dtype is not floating-point")
    return values.to(input.dtype if dtype is None else dtype)


@described("``log(sum(exp(input)))``, without overflow.", "tensor([-0.8731,  1.3133])")
def logsumexp(input, dim=None, *, keepdim=False, dtype=None, mask=None):
    input, mask = read("logsumexp", input, mask)
    whole, dims = filled("logsumexp", input, mask, "logsumexp"), dims_of("logsumexp", dim, input.ndim)
    if input.dtype.is_complex:
        largest = whole.real.detach().amax(dims, True).nan_to_num(posinf=0, neginf=0)
        result = (whole - largest).exp().sum(dims, True).log() + largest
        result = result if keepdim else result.squeeze(dims)
    else:
        result = ptcore.logsumexp(whole, dims, bool(keepdim))
    return result.to(input.dtype if dtype is None else dtype)


def logaddexp(input, other, *, dtype=None, input_mask=None, other_mask=None):
    """``log(exp(input) + exp(other))`` without overflow; masked-out elements count as -inf.

    Parameters
    ----------
    input, other : Tensor or MaskedTensor
        They broadcast.
    dtype : dtype, optional
        Dtype of the result; the input's by default.
    input_mask, other_mask : Tensor, optional
        Bools that broadcast to the shape of their tensor, True where an element counts.

    Returns
    -------
    Tensor

    Examples
    --------
    >>> import ptcore
    >>> x, y = ptcore.tensor([-100., -200., -300.]), ptcore.tensor([-1., -2., -3.])
    >>> mask = ptcore.tensor([True, False, True])
    >>> ptcore.masked.logaddexp(x, y, input_mask=mask, other_mask=mask)
    tensor([-1., -inf, -3.])
    """
    input, input_mask = read("logaddexp", input, input_mask)
    other, other_mask = read("logaddexp", other, other_mask)
    result = ptcore.logaddexp(filled("logaddexp", input, input_mask, "logaddexp"),
                              filled("logaddexp", other, other_mask, "logaddexp"))
    return result.to(input.dtype if dtype is None else dtype)


@described("The norm of the elements as one vector.", "tensor([3.1623, 1.0000])", ", 2, 1", dim="ord",
           dtype="In which it is computed; that of the input unless given.")
def norm(input, ord=2.0, dim=None, *, keepdim=False, dtype=None, mask=None):
    input, mask = read("norm", input, mask)
    ord = number("norm", "ord", ord)
    stand_in = identity("norm", input.dtype, ord) if mask is not None else 0
    return ptcore.linalg.vector_norm(filled("norm", input, mask, stand_in), ord, dims_of("norm", dim, input.ndim),
                                     bool(keepdim), dtype=input.dtype if dtype is None else dtype)


@described("The variance.", "tensor([1.0000, 0.2500])", ", 1, False", dim="unbiased",
           dtype="In which it is computed: that of the input, of integers float32, unless given.")
def var(input, dim=None, unbiased=None, *, correction=None, keepdim=False, dtype=None, mask=None):
    return _variance("var", input, dim, unbiased, correction, keepdim, dtype, mask)


@described("The standard deviation.", "tensor([1.0000, 0.5000])", ", 1, False", dim="unbiased",
           dtype="In which it is computed: that of the input, of integers float32, unless given.")
def std(input, dim=None, unbiased=None, *, correction=None, keepdim=False, dtype=None, mask=None):
    return _variance("std", input, dim, unbiased, correction, keepdim, dtype, mask).sqrt()


def _variance(op, input, dim, unbiased, correction, keepdim, dtype, mask):
    if unbiased is not None and correction is not None:
        raise AssertionError(f"{op}: only one of unbiased and correction may be given")
    if correction is None:
        correction = 1.0 if unbiased is None or unbiased else 0.0
    input, mask = read(op, input, mask)
    numeric = input.dtype.is_floating_point or input.dtype.is_complex
    dtype = (input.dtype if numeric else ptcore.float32) if dtype is None else dtype
    compute = dtype if dtype.is_floating_point or dtype.is_complex else ptcore.float32
    dims = dims_of(op, dim, input.ndim)
    count = _count(input, mask, dims, True)
    x = input - sum(input, dims, keepdim=True, dtype=dtype, mask=mask) / count
    total = sum(x * x.conj(), dims, keepdim=keepdim, dtype=compute, mask=mask)
    if not keepdim:
        count = count.reshape(total.shape)
    if correction:
        real = compute.to_real() if compute.is_complex else compute
        count = (count.to(real) - correction).clamp(min=0)
    return (total / count).to(dtype)
