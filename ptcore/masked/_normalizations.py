"""Normalisations and scans over the elements that a mask marks."""
import ptcore
from ptcore.masked._masks import described, dims_of, filled, read
from ptcore.masked._reductions import norm


def _read(op, input, dim, dtype, mask, stand_in):
    """The filled input, the dim and the dtype."""
    input, mask = read(op, input, mask)
    (dim,) = dims_of(op, dim, input.ndim)[:1] or (0,)
    return filled(op, input, mask, stand_in), dim, input.dtype if dtype is None else dtype


@described("Running sums along a dim.", "tensor([[-3., -3., -4.],\n        [ 0.,  1.,  1.]])", dim="dim",
           reduces=False)
def cumsum(input, dim, *, dtype=None, mask=None):
    input, dim, dtype = _read("cumsum", input, dim, dtype, mask, "sum")
    return ptcore.cumsum(input, dim, dtype=dtype).to(dtype)


@described("Running products along a dim.", "tensor([[-3., -3.,  3.],\n        [ 0.,  0.,  0.]])", dim="dim",
           reduces=False)
def cumprod(input, dim, *, dtype=None, mask=None):
    input, dim, dtype = _read("cumprod", input, dim, dtype, mask, "prod")
    return ptcore.cumprod(input, dim, dtype=dtype).to(dtype)


@described("``exp(x) / sum(exp(x))`` along a dim.",
           "tensor([[0.1192, 0.0000, 0.8808],\n        [0.2689, 0.7311, 0.0000]])", dim="dim", reduces=False)
def softmax(input, dim, *, dtype=None, mask=None):
    return ptcore.softmax(*_read("softmax", input, dim, dtype, mask, "amax"))


@described("``log(exp(x) / sum(exp(x)))`` along a dim.",
           "tensor([[-2.1269,    -inf, -0.1269],\n        [-1.3133, -0.3133,    -inf]])", dim="dim", reduces=False)
def log_softmax(input, dim, *, dtype=None, mask=None):
    return ptcore.log_softmax(*_read("log_softmax", input, dim, dtype, mask, "amax"))


@described("``exp(-x) / sum(exp(-x))`` along a dim.",
           "tensor([[0.8808, 0.0000, 0.1192],\n        [0.7311, 0.2689, 0.0000]])", dim="dim", reduces=False)
def softmin(input, dim, *, dtype=None, mask=None):
    input, dim, dtype = _read("softmin", input, dim, dtype, mask, "amin")
    return ptcore.nn.functional.softmin(input, dim, dtype=dtype)


@described("``x / max(norm(x, ord), eps)`` along a dim.",
           "tensor([[-0.9487,  0.0000, -0.3162],\n        [ 0.0000,  1.0000,  0.0000]])", ", 2, 1", dim="ord, dim",
           dtype="In which the norm is computed; that of the input unless given.", reduces=False)
def normalize(input, ord, dim, *, eps=1e-12, dtype=None, mask=None):
    size = norm(input, ord, dim, keepdim=True, dtype=dtype, mask=mask)
    input, mask = read("normalize", input, mask)
    return filled("normalize", input, mask, "sum") / ptcore.maximum(size, size.new_full((), eps))
