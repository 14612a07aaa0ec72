"""Helpers of distributions: broadcasting of parameters, forms of probabilities, lazily computed properties."""
import functools
import numbers

import ptcore as pt
from ptcore._sizes.symbolic import SymBool, SymFloat, SymInt
from ptcore.nn.functional import softmax
from ptcore.overrides import is_tensor_like

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = [
    "broadcast_all",
    "clamp_probs",
    "lazy_property",
    "logits_to_probs",
    "probs_to_logits",
    "tril_matrix_to_vec",
    "vec_to_tril_matrix",
]

EMPTY: "Sequence[int]" = pt.Size()           # the default shape of draws
euler_constant = 0.57721566490153286060


def log1p_of_square(z):
    """``log(1 + z * z)``, also where the square is beyond the largest number."""
    size = z.abs()
    far = size > 1
    outer, inner = pt.where(far, size, 1.0), pt.where(far, 0.0, z)    # where slopes are finite
    return pt.where(far, 2 * outer.log() + outer.pow(-2).log1p(), inner.pow(2).log1p())


def broadcast_all(*values):
    """Tensors and numbers as tensors of one shape.

    Parameters
    ----------
    *values : Tensor or number
        Numbers take dtype and device of the first tensor; if there is none, or its integers cannot hold the number,
        the default dtype.

    Returns
    -------
    tuple of Tensor
        Views of the common shape.

    Raises
    ------
    ValueError
        If a value is neither.

    Examples
    --------
    >>> import ptcore
    >>> from ptcore.distributions.utils import broadcast_all
    >>> broadcast_all(ptcore.zeros(2), 1.0)
    (tensor([0., 0.]), tensor([1., 1.]))
    """
    alike = [is_tensor_like(v) for v in values]
    if not all(alike):
        if not all(a or isinstance(v, (numbers.Number, SymInt, SymFloat, SymBool))
                   for a, v in zip(alike, values)):
            raise ValueError("Input arguments must all be instances of Number, ptcore.Tensor or objects implementing "
                             "__torch_function__.")
        like = next((v for v in values if isinstance(v, pt.Tensor)), None)
        options = {"dtype": pt.get_default_dtype()} if like is None else {"dtype": like.dtype, "device": like.device}
        cut = {**options, "dtype": pt.get_default_dtype()}
        values = [v if a else pt.tensor(v, **(options if _is_held(v, options["dtype"]) else cut))
                  for a, v in zip(alike, values)]
    shape = values[0].shape
    if all(v.shape == shape for v in values):
        return tuple(v.expand(shape) for v in values)
    return tuple(pt.broadcast_tensors(*values))


def _is_held(number, dtype):
    """Whether a dtype holds a number, which integers and bools do not cut."""
    return dtype.kind in "fc" or not isinstance(number, numbers.Real) or (
        number in (0, 1) if dtype.kind == "b" else number % 1 == 0)


def _standard_normal(shape, dtype, device):
    """Standard normals of the given shape."""
    return pt.randn(shape, dtype=dtype, device=device)


def _sum_rightmost(value, dim):
    """The sum over the last ``dim`` dims."""
    return value.flatten(-dim).sum(-1) if dim else value


def logits_to_probs(logits, is_binary=False):
    """Probabilities of log-odds (`is_binary`) or of logarithms up to a constant.

    Examples
    --------
    >>> import ptcore
    >>> from ptcore.distributions.utils import logits_to_probs
    >>> logits_to_probs(ptcore.zeros(2))
    tensor([0.5000, 0.5000])
    """
    return pt.sigmoid(logits) if is_binary else softmax(logits, dim=-1)


def clamp_probs(probs):
    """Probabilities limited to ``[eps, 1 - eps]`` with the eps of the dtype.

    Examples
    --------
    >>> import ptcore
    >>> from ptcore.distributions.utils import clamp_probs
    >>> clamp_probs(ptcore.tensor([0., 0.5])) > 0
    tensor([True, True])
    """
    eps = pt.finfo(probs.dtype).eps
    return probs.clamp(min=eps, max=1 - eps)


def probs_to_logits(probs, is_binary=False):
    """Logarithms of probabilities, or log-odds (`is_binary`), of limited probabilities.

    Examples
    --------
    >>> import ptcore
    >>> from ptcore.distributions.utils import probs_to_logits
    >>> probs_to_logits(ptcore.tensor([0.5]), is_binary=True)
    tensor([0.])
    """
    limited = clamp_probs(probs)
    return limited.log() - (-limited).log1p() if is_binary else limited.log()


class lazy_property:
    """A property that is computed at its first read, with gradients, and kept in the instance.

    Examples
    --------
    >>> from ptcore.distributions.utils import lazy_property
    >>> class Circle:
    ...     @lazy_property
    ...     def area(self):
    ...         return 3
    >>> Circle().area
    3
    """

    def __init__(self, wrapped):
        self.wrapped = wrapped
        functools.update_wrapper(self, wrapped)

    def __get__(self, instance, obj_type=None):
        if instance is None:
            return _lazy_property_and_property(self.wrapped)
        with pt.enable_grad():
            value = self.wrapped(instance)
        setattr(instance, self.wrapped.__name__, value)
        return value


class _lazy_property_and_property(lazy_property, property):
    """The value of a lazy property read on the class, for tools that look for properties."""

    def __init__(self, wrapped):
        property.__init__(self, wrapped)


def _lower(n, diag, device):
    """True on and below the diagonal ``diag`` of a square matrix."""
    return pt.ones(n, n, dtype=pt.bool, device=device).tril(diag)


def tril_matrix_to_vec(mat, diag=0):
    """The elements on and below a diagonal, row by row: (..., D, D) to (..., N).

    Examples
    --------
    >>> import ptcore
    >>> from ptcore.distributions.utils import tril_matrix_to_vec
    >>> tril_matrix_to_vec(ptcore.tensor([[1., 0.], [2., 3.]]))
    tensor([1., 2., 3.])
    """
    n = mat.shape[-1]
    if not -n <= diag < n:
        raise ValueError(f"diag ({diag}) provided is outside [{-n}, {n - 1}].")
    return mat[..., _lower(n, diag, mat.device)]


def vec_to_tril_matrix(vec, diag=0):
    """The matrices with the given elements on and below a diagonal, row by row: (..., N) to (..., D, D).

    Examples
    --------
    >>> import ptcore
    >>> from ptcore.distributions.utils import vec_to_tril_matrix
    >>> vec_to_tril_matrix(ptcore.tensor([1., 2., 3.]))
    tensor([[1., 0.],
            [2., 3.]])
    """
    count, above = vec.shape[-1], 1 + 2 * diag
    # count = n (n + 1) / 2 + n diag, minus the diagonals outside of the matrix
    n = ((above ** 2 + 8 * count + 4 * abs(diag) * (diag + 1)) ** 0.5 - above) / 2
    if abs(round(n) - n) > pt.finfo(vec.dtype).eps:
        raise ValueError(f"The size of last dimension is {count} which cannot be expressed as "
                         "the lower triangular part of a square D x D matrix.")
    n = round(n)
    where = _lower(n, diag, vec.device).flatten().nonzero().squeeze(-1)
    flat = vec.new_zeros(*vec.shape[:-1], n * n).index_copy(-1, where, vec)
    return flat.unflatten(-1, (n, n))
