"""Parametrisations: weights normalised by slices or by their largest singular value, and orthogonal ones."""
import ptcore
from ptcore import Tensor
from ptcore._ops.checked import integer
from ptcore.nn import functional as F
from ptcore.nn.modules.module import Module
from ptcore.nn.utils import parametrize
from ptcore.nn.utils._parameter_hooks import need_module
from ptcore.nn.utils.spectral_norm import as_matrix, check_iterations, default_dim, first_vectors, power_steps
from ptcore.nn.utils.weight_norm import norm_except_dim, of_length

__all__ = ["orthogonal", "spectral_norm", "weight_norm"]


def _tensor_of(op, module, name):
    tensor = getattr(module, name, None)
    if not isinstance(tensor, Tensor):
        raise ValueError(f"{op}: Module '{module}' has no parameter or buffer with name '{name}'")
    return tensor


class _WeightNorm(Module):
    def __init__(self, dim=0):
        super().__init__()
        self.dim = -1 if dim is None else dim

    def forward(self, weight_g, weight_v):
        return of_length(weight_v, weight_g, self.dim)

    def right_inverse(self, weight):
        return norm_except_dim(weight, 2, self.dim), weight


def weight_norm(module, name="weight", dim=0):
    """Parametrise a weight by its length and its direction, ``g * v / norm(v)``.

    Parameters
    ----------
    module : Module
    name : str, default: "weight"
    dim : int or None, default: 0
        The norm is taken of each slice along it; None takes it of the whole.

    Returns
    -------
    Module
        The module. ``parametrizations.weight.original0`` are the lengths, ``original1`` the directions; state dicts
        of the older :func:`ptcore.nn.utils.weight_norm` are understood.

    Examples
    --------
    >>> import ptcore
    >>> layer = ptcore.nn.utils.parametrizations.weight_norm(ptcore.nn.Linear(3, 2))
    >>> layer
    ParametrizedLinear(
      in_features=3, out_features=2, bias=True
      (parametrizations): ModuleDict(
        (weight): ParametrizationList(
          (0): _WeightNorm()
        )
      )
    )
    >>> layer.parametrizations.weight.original0.shape
    ptcore.Size([2, 1])
    """
    need_module("weight_norm", module)
    parametrize.register_parametrization(module, name, _WeightNorm(dim), unsafe=True)

    def older_names(state_dict, prefix, *_):
        old = [f"{prefix}{name}_g", f"{prefix}{name}_v"]
        if all(key in state_dict for key in old):
            for i, key in enumerate(old):
                state_dict[f"{prefix}parametrizations.{name}.original{i}"] = state_dict.pop(key)

    module._register_load_state_dict_pre_hook(older_names)
    return module


class _SpectralNorm(Module):
    def __init__(self, weight, n_power_iterations=1, dim=0, eps=1e-12):
        super().__init__()
        n = weight.ndim
        if not -n <= dim < n:
            raise IndexError("spectral_norm: Dimension out of range (expected to be in range of "
                             f"[-{n}, {n - 1}] but got {dim})")
        check_iterations(n_power_iterations)
        self.dim = dim % n
        self.eps = eps
        if n > 1:
            self.n_power_iterations = n_power_iterations
            matrix = as_matrix(weight.detach(), self.dim)
            for key, vector in zip(("_u", "_v"), first_vectors(matrix, eps), strict=True):
                self.register_buffer(key, vector)
            self._iterate(matrix, 15)

    def _iterate(self, matrix, steps):
        power_steps(matrix, self._u, self._v, steps, self.eps, left_first=True)

    def forward(self, weight):
        if weight.ndim == 1:
            return F.normalize(weight, dim=0, eps=self.eps)
        matrix = as_matrix(weight, self.dim)
        if self.training:
            self._iterate(matrix, self.n_power_iterations)
        # copies, since a second forward pass may change the buffers before the backward of the first
        u, v = self._u.clone(), self._v.clone()
        return weight / ptcore.vdot(u, ptcore.mv(matrix, v))

    def right_inverse(self, value):
        return value


def spectral_norm(module, name="weight", n_power_iterations=1, eps=1e-12, dim=None):
    """Parametrise a weight as itself divided by its largest singular value.

    Parameters
    ----------
    module : Module
    name : str, default: "weight"
    n_power_iterations : int, default: 1
        Steps of the power method for each reading of the weight in training mode.
    eps : float, default: 1e-12
        Keeps norms from being 0.
    dim : int, optional
        The dim of the outputs, which becomes the rows of the matrix: 0, for transposed convolutions 1.

    Returns
    -------
    Module
        The module.

    Examples
    --------
    >>> import ptcore
    >>> layer = ptcore.nn.utils.parametrizations.spectral_norm(ptcore.nn.Linear(3, 2))
    >>> round(ptcore.linalg.matrix_norm(layer.eval().weight, 2).item(), 2)
    1.0
    """
    need_module("spectral_norm", module)
    weight = _tensor_of("spectral_norm", module, name)
    dim = default_dim(module) if dim is None else integer("spectral_norm", "dim", dim)
    parametrize.register_parametrization(module, name, _SpectralNorm(weight, n_power_iterations, dim, eps))
    return module


def _orthonormal(a):
    """The factor q of ``a = q r`` with a positive diagonal of r."""
    q, r = ptcore.linalg.qr(a)
    return q * r.diagonal(dim1=-2, dim2=-1).sgn().unsqueeze(-2)


def _is_orthonormal(q):
    one = ptcore.eye(q.shape[-1], dtype=q.dtype, device=q.device)
    return ptcore.allclose(q.mH @ q, one, atol=10.0 * q.shape[-2] * ptcore.finfo(q.dtype).eps)


class _Orthogonal(Module):
    def __init__(self, weight, orthogonal_map, *, use_trivialization=True):
        super().__init__()
        if weight.is_complex() and orthogonal_map == "householder":
            raise ValueError("orthogonal: The householder parametrization does not support complex tensors.")
        self.shape = weight.shape
        self.orthogonal_map = orthogonal_map
        if use_trivialization:
            self.register_buffer("base", None)

    def forward(self, x):
        wide = x.shape[-2] < x.shape[-1]
        x = x.mT if wide else x
        q = self._reflections(x) if self.orthogonal_map == "householder" else self._of_skew(x)
        if hasattr(self, "base"):
            q = self.base @ q
        return q.mT if wide else q

    def _of_skew(self, x):
        """The exponential or the Cayley transform of a skew matrix whose lower half is that of x."""
        n, k = x.shape[-2:]
        x = x.tril()
        if n != k:
            x = ptcore.cat([x, x.new_zeros((*x.shape[:-1], n - k))], dim=-1)
        a = x - x.mH
        if self.orthogonal_map == "matrix_exp":
            q = ptcore.matrix_exp(a)
        else:
            one = ptcore.eye(n, dtype=a.dtype, device=a.device)
            q = ptcore.linalg.solve(one - 0.5 * a, one + 0.5 * a)
        return q[..., :k]

    @staticmethod
    def _reflections(x):
        """The product of reflections by the vectors below the diagonal, with the signs on it."""
        a = x.tril(diagonal=-1)
        tau = 2.0 / (1.0 + (a * a).sum(dim=-2))
        return ptcore.linalg.householder_product(a, tau) * x.diagonal(dim1=-2, dim2=-1).int().unsqueeze(-2)

    @ptcore.no_grad()
    def right_inverse(self, q):
        if q.shape != self.shape:
            raise ValueError(f"orthogonal: Expected a matrix or batch of matrices of shape {list(self.shape)}. Got a "
                             f"tensor of shape {list(q.shape)}.")
        given = q
        wide = q.shape[-2] < q.shape[-1]
        q = q.mT if wide else q
        n, k = q.shape[-2:]
        if not hasattr(self, "base"):
            if self.orthogonal_map != "householder":
                raise NotImplementedError("orthogonal: It is not possible to assign to the matrix exponential or the "
                                          "Cayley parametrizations when use_trivialization=False.")
            a, tau = ptcore.geqrf(q)
            diagonal = a.diagonal(dim1=-2, dim2=-1)
            diagonal.copy_(ptcore.where(tau == 0.0, -diagonal.sign(), diagonal.sign()))
            return a.mT if wide else a
        if n != k:
            rest = ptcore.randn((*q.shape[:-2], n, n - k), dtype=q.dtype, device=q.device)
            q = _orthonormal(ptcore.cat([q, rest], dim=-1))
        else:
            q = q.clone() if _is_orthonormal(q) else _orthonormal(q)
        self.base = q
        # The map of this matrix is the identity: its skew part is 0. With reflections, each of the vectors that are 0
        # has tau 2 and changes the sign of one column, which the sign -1 on the diagonal changes back.
        result = ptcore.zeros_like(given)
        result.diagonal(dim1=-2, dim2=-1).fill_(-1.0)
        return result


def orthogonal(module, name="weight", orthogonal_map=None, *, use_trivialization=True):
    """Parametrise a matrix, or a batch of matrices, as orthogonal (complex: unitary) ones.

    Parameters
    ----------
    module : Module
    name : str, default: "weight"
    orthogonal_map : {"matrix_exp", "cayley", "householder"}, optional
        How it is computed: from a skew matrix, or as a product of reflections. By default "matrix_exp" for square
        and complex matrices, otherwise "householder".
    use_trivialization : bool, default: True
        Whether the map starts from a fixed orthogonal matrix, the buffer ``parametrizations.weight[0].base``.

    Returns
    -------
    Module
        The module. Columns of the weight are orthonormal, or its rows where there are fewer of them.

    Examples
    --------
    >>> import ptcore
    >>> layer = ptcore.nn.utils.parametrizations.orthogonal(ptcore.nn.Linear(4, 4))
    >>> ptcore.allclose(layer.weight @ layer.weight.T, ptcore.eye(4), atol=1e-5)
    True
    """
    need_module("orthogonal", module)
    weight = _tensor_of("orthogonal", module, name)
    if weight.ndim < 2:
        raise ValueError(f"orthogonal: Expected a matrix or batch of matrices. Got a tensor of {weight.ndim} "
                         "dimensions.")
    if orthogonal_map is None:
        square = weight.shape[-2] == weight.shape[-1]
        orthogonal_map = "matrix_exp" if square or weight.is_complex() else "householder"
    if not isinstance(orthogonal_map, str):
        raise TypeError(f"orthogonal: orthogonal_map must be str, got {type(orthogonal_map).__name__}")
    if orthogonal_map not in ("matrix_exp", "cayley", "householder"):
        raise ValueError('orthogonal: orthogonal_map has to be one of "matrix_exp", "cayley", "householder". '
                         f"Got: {orthogonal_map}")
    orth = _Orthogonal(weight, orthogonal_map, use_trivialization=use_trivialization)
    parametrize.register_parametrization(module, name, orth, unsafe=True)
    return module
