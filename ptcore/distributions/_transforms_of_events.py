"""Transforms of vectors and matrices."""
import math

import ptcore as pt
from ptcore import linalg
from ptcore.distributions import constraints
from ptcore.distributions._transform import Transform, clipped_sigmoid
from ptcore.distributions.utils import tril_matrix_to_vec, vec_to_tril_matrix
from ptcore.nn.functional import logsigmoid, pad, softplus


def _at_least(shape, dims):
    if len(shape) < dims:
        raise ValueError("Too few dimensions on input")


class ReshapeTransform(Transform):
    """The event in another shape.

    Parameters
    ----------
    in_shape, out_shape : Size
        Shapes of an event before and after, with as many elements.

    Examples
    --------
    >>> import ptcore
    >>> from ptcore.distributions import ReshapeTransform
    >>> ReshapeTransform((4,), (2, 2))(ptcore.zeros(3, 4)).shape
    ptcore.Size([3, 2, 2])
    """

    bijective = True

    def __init__(self, in_shape, out_shape, cache_size=0):
        self.in_shape, self.out_shape = pt.Size(in_shape), pt.Size(out_shape)
        if self.in_shape.numel() != self.out_shape.numel():
            raise ValueError("in_shape, out_shape have different numbers of elements")
        super().__init__(cache_size=cache_size)

    @constraints.dependent_property
    def domain(self):
        return constraints.independent(constraints.real, len(self.in_shape))

    @constraints.dependent_property
    def codomain(self):
        return constraints.independent(constraints.real, len(self.out_shape))

    def with_cache(self, cache_size=1):
        if self._cache_size == cache_size:
            return self
        return ReshapeTransform(self.in_shape, self.out_shape, cache_size=cache_size)

    def _call(self, x):
        return x.reshape(x.shape[:x.ndim - len(self.in_shape)] + self.out_shape)

    def _inverse(self, y):
        return y.reshape(y.shape[:y.ndim - len(self.out_shape)] + self.in_shape)

    def log_abs_det_jacobian(self, x, y):
        return x.new_zeros(x.shape[:x.ndim - len(self.in_shape)])

    @staticmethod
    def _exchanged(shape, before, after):
        _at_least(shape, len(before))
        cut = len(shape) - len(before)
        if shape[cut:] != before:
            raise ValueError(f"Shape mismatch: expected {shape[cut:]} but got {before}")
        return shape[:cut] + after

    def forward_shape(self, shape):
        return self._exchanged(shape, self.in_shape, self.out_shape)

    def inverse_shape(self, shape):
        return self._exchanged(shape, self.out_shape, self.in_shape)


class CorrCholeskyTransform(Transform):
    r"""Vectors of length :math:`D (D - 1) / 2` to Cholesky factors of correlation matrices :math:`D \times D`.

    The tanh of each number is the partial correlation of two variables given the earlier ones. The squares of a row sum
    to 1: each takes its share of the remainder.

    Examples
    --------
    >>> import ptcore
    >>> from ptcore.distributions import CorrCholeskyTransform
    >>> CorrCholeskyTransform()(ptcore.zeros(1))
    tensor([[1., 0.],
            [0., 1.]])
    """

    domain = constraints.real_vector
    codomain = constraints.corr_cholesky
    bijective = True

    def _call(self, x):
        eps = pt.finfo(x.dtype).eps
        share = vec_to_tril_matrix(x.tanh().clamp(min=-1 + eps, max=1 - eps), diag=-1)
        left = (1 - share ** 2).sqrt().cumprod(-1)[..., :-1]
        share = share + pt.eye(share.shape[-1], dtype=share.dtype, device=share.device)
        return share * pad(left, [1, 0], value=1)

    def _inverse(self, y):
        left = pad(1 - (y * y).cumsum(-1)[..., :-1], [1, 0], value=1)
        share = tril_matrix_to_vec(y, diag=-1) / tril_matrix_to_vec(left, diag=-1).sqrt()
        return (share.log1p() - share.neg().log1p()) / 2

    def log_abs_det_jacobian(self, x, y, intermediates=None):
        left = tril_matrix_to_vec(1 - (y * y).cumsum(-1), diag=-2)
        of_tanh = (x + softplus(-2 * x) - math.log(2.0)).sum(-1)
        return 0.5 * left.log().sum(-1) - 2 * of_tanh

    def forward_shape(self, shape):
        _at_least(shape, 1)
        n = round((0.25 + 2 * shape[-1]) ** 0.5 + 0.5)
        if n * (n - 1) // 2 != shape[-1]:
            raise ValueError("Input is not a flattened lower-diagonal number")
        return shape[:-1] + (n, n)

    def inverse_shape(self, shape):
        _at_least(shape, 2)
        if shape[-2] != shape[-1]:
            raise ValueError("Input is not square")
        return shape[:-2] + (shape[-1] * (shape[-1] - 1) // 2,)


class SoftmaxTransform(Transform):
    """Vectors to the simplex by softmax, which is not bijective: a shift of the input is lost.

    Examples
    --------
    >>> import ptcore
    >>> from ptcore.distributions import SoftmaxTransform
    >>> SoftmaxTransform()(ptcore.zeros(2))
    tensor([0.5000, 0.5000])
    """

    domain = constraints.real_vector
    codomain = constraints.simplex

    def __eq__(self, other):
        return isinstance(other, SoftmaxTransform)

    def _call(self, x):
        return x.softmax(-1)

    def _inverse(self, y):
        return y.log()

    def forward_shape(self, shape):
        _at_least(shape, 1)
        return shape

    inverse_shape = forward_shape


class StickBreakingTransform(Transform):
    """Vectors of length K - 1 to the simplex of K numbers: each breaks a share off the remainder.

    Zeros give equal parts.

    Examples
    --------
    >>> import ptcore
    >>> from ptcore.distributions import StickBreakingTransform
    >>> StickBreakingTransform()(ptcore.zeros(1))
    tensor([0.5000, 0.5000])
    """

    domain = constraints.real_vector
    codomain = constraints.simplex
    bijective = True

    def __eq__(self, other):
        return isinstance(other, StickBreakingTransform)

    @staticmethod
    def _centres(like, n):
        """log(n), ..., log(1): offsets by which zeros give equal parts."""
        return pt.arange(n, 0, -1, dtype=like.dtype, device=like.device).log()

    def _call(self, x):
        share = clipped_sigmoid(x - self._centres(x, x.shape[-1]))
        return pad(share, [0, 1], value=1) * pad((1 - share).cumprod(-1), [1, 0], value=1)

    def _inverse(self, y):
        parts = y[..., :-1]
        left = (1 - parts.cumsum(-1)).clamp(min=pt.finfo(y.dtype).tiny)
        return parts.log() - left.log() + self._centres(y, parts.shape[-1])

    def log_abs_det_jacobian(self, x, y):
        x = x - self._centres(x, x.shape[-1])
        return (logsigmoid(x) - x + y[..., :-1].log()).sum(-1)

    def forward_shape(self, shape):
        _at_least(shape, 1)
        return shape[:-1] + (shape[-1] + 1,)

    def inverse_shape(self, shape):
        _at_least(shape, 1)
        return shape[:-1] + (shape[-1] - 1,)


class LowerCholeskyTransform(Transform):
    """Square matrices to lower triangular ones with a positive diagonal, which is the exponential of the original.

    Examples
    --------
    >>> import ptcore
    >>> from ptcore.distributions import LowerCholeskyTransform
    >>> LowerCholeskyTransform()(ptcore.zeros(2, 2))
    tensor([[1., 0.],
            [0., 1.]])
    """

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.lower_cholesky

    def __eq__(self, other):
        return isinstance(other, LowerCholeskyTransform)

    def _call(self, x):
        return x.tril(-1) + x.diagonal(dim1=-2, dim2=-1).exp().diag_embed()

    def _inverse(self, y):
        return y.tril(-1) + y.diagonal(dim1=-2, dim2=-1).log().diag_embed()


class PositiveDefiniteTransform(Transform):
    """Square matrices to positive definite ones: L L^T with L from :class:`LowerCholeskyTransform`.

    Examples
    --------
    >>> import ptcore
    >>> from ptcore.distributions import PositiveDefiniteTransform
    >>> PositiveDefiniteTransform()(ptcore.zeros(2, 2))
    tensor([[1., 0.],
            [0., 1.]])
    """

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.positive_definite

    def __eq__(self, other):
        return isinstance(other, PositiveDefiniteTransform)

    def _call(self, x):
        factor = LowerCholeskyTransform()(x)
        return factor @ factor.mT

    def _inverse(self, y):
        return LowerCholeskyTransform().inv(linalg.cholesky(y))
