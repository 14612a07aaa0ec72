"""Spectral normalisation: a weight divided by its largest singular value, by a hook before each forward pass."""
import ptcore
from ptcore._ops.checked import integer
from ptcore.nn import functional as F
from ptcore.nn.modules.conv import ConvTranspose1d, ConvTranspose2d, ConvTranspose3d
from ptcore.nn.parameter import Parameter
from ptcore.nn.utils._parameter_hooks import need_module, need_parameter, refuse_lazy, refuse_second, take_hook

__all__ = ["SpectralNorm", "SpectralNormLoadStateDictPreHook", "SpectralNormStateDictHook", "remove_spectral_norm",
           "spectral_norm"]


def as_matrix(weight, dim):
    """The weight as a matrix whose rows are its slices along a dim."""
    return weight.movedim(dim, 0).reshape(weight.shape[dim], -1)


def check_iterations(n):
    """Refuse a number of steps that is not positive."""
    if n <= 0:
        raise ValueError(f"spectral_norm: Expected n_power_iterations to be positive, but got n_power_iterations={n}")


def default_dim(module):
    """The dim of a weight that belongs to the outputs."""
    return 1 if isinstance(module, (ConvTranspose1d, ConvTranspose2d, ConvTranspose3d)) else 0


@ptcore.no_grad()
def first_vectors(matrix, eps):
    """Random vectors of length 1 that start the power method, one for the rows and one for the columns."""
    return [F.normalize(matrix.new_empty(size).normal_(0, 1), dim=0, eps=eps) for size in matrix.shape]


@ptcore.no_grad()
def power_steps(matrix, u, v, steps, eps, left_first):
    """Steps of the power method, which moves u and v in place towards the first singular vectors."""
    turned = matrix.mH
    for _ in range(steps):
        for to_u in (left_first, not left_first):
            a, x, y = (matrix, v, u) if to_u else (turned, u, v)
            y.copy_(F.normalize(ptcore.mv(a, x), dim=0, eps=eps))


class SpectralNorm:
    """The hook that :func:`~ptcore.nn.utils.spectral_norm` registers."""

    _version = 1

    def __init__(self, name="weight", n_power_iterations=1, dim=0, eps=1e-12):
        check_iterations(n_power_iterations)
        self.name = name
        self.dim = dim
        self.n_power_iterations = n_power_iterations
        self.eps = eps

    def reshape_weight_to_matrix(self, weight):
        """The weight as a matrix."""
        return as_matrix(weight, self.dim)

    def compute_weight(self, module, do_power_iteration):
        """The weight divided by its norm, after steps of the power method if `do_power_iteration`."""
        weight, u, v = (getattr(module, self.name + suffix) for suffix in ("_orig", "_u", "_v"))
        matrix = self.reshape_weight_to_matrix(weight)
        if do_power_iteration:
            power_steps(matrix, u, v, self.n_power_iterations, self.eps, left_first=False)
            # copies, since a second forward pass may change the buffers before the backward of the first
            u, v = u.clone(), v.clone()
        return weight / ptcore.dot(u, ptcore.mv(matrix, v))

    def remove(self, module):
        """Put the parameter back, with the normalised value."""
        with ptcore.no_grad():
            weight = self.compute_weight(module, do_power_iteration=False)
        for suffix in ("", "_u", "_v", "_orig"):
            delattr(module, self.name + suffix)
        module.register_parameter(self.name, Parameter(weight.detach()))

    def __call__(self, module, inputs):
        setattr(module, self.name, self.compute_weight(module, do_power_iteration=module.training))

    def _solve_v(self, matrix, u, norm):
        """A vector v with ``u @ matrix @ v == norm`` and ``matrix @ v`` along u."""
        v = ((matrix.t() @ matrix).pinverse() @ (matrix.t() @ u.unsqueeze(1))).squeeze(1)
        return v * (norm / ptcore.dot(u, ptcore.mv(matrix, v)))

    @staticmethod
    def apply(module, name, n_power_iterations, dim, eps):
        """Replace a parameter by itself divided by its norm."""
        need_parameter("spectral_norm", module, name, KeyError, may_be_none=True)
        refuse_second("spectral_norm", module, SpectralNorm, name)
        hook = SpectralNorm(name, n_power_iterations, dim, eps)
        weight = module._parameters[name]
        if weight is None:
            raise ValueError(f"spectral_norm: `SpectralNorm` cannot be applied as parameter `{name}` is None")
        refuse_lazy("spectral_norm", SpectralNorm, weight)
        u, v = first_vectors(hook.reshape_weight_to_matrix(weight), eps)
        delattr(module, name)
        module.register_parameter(name + "_orig", weight)
        setattr(module, name, weight.data)
        module.register_buffer(name + "_u", u)
        module.register_buffer(name + "_v", v)
        module.register_forward_pre_hook(hook)
        module._register_state_dict_hook(SpectralNormStateDictHook(hook))
        module._register_load_state_dict_pre_hook(SpectralNormLoadStateDictPreHook(hook))
        return hook


class SpectralNormLoadStateDictPreHook:
    """Computes the vector v for state dicts that were written without it."""

    def __init__(self, fn):
        self.fn = fn

    def __call__(self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs):
        fn = self.fn
        version = local_metadata.get("spectral_norm", {}).get(fn.name + ".version")
        if version is not None and version >= 1:
            return
        key = prefix + fn.name
        if version is None and key not in state_dict and all(key + s in state_dict for s in ("_orig", "_u", "_v")):
            return                  # a state dict in the new form, made by hand
        missing = [key + s for s in ("_orig", "", "_u") if key + s not in state_dict]
        if missing:
            if strict:
                missing_keys.extend(missing)
            return
        with ptcore.no_grad():
            original, weight = state_dict[key + "_orig"], state_dict.pop(key)
            norm = (original / weight).mean()
            matrix = fn.reshape_weight_to_matrix(original)
            state_dict[key + "_v"] = fn._solve_v(matrix, state_dict[key + "_u"], norm)


class SpectralNormStateDictHook:
    """Writes the version of the hook into the metadata of a state dict."""

    def __init__(self, fn):
        self.fn = fn

    def __call__(self, module, state_dict, prefix, local_metadata):
        versions = local_metadata.setdefault("spectral_norm", {})
        key = self.fn.name + ".version"
        if key in versions:
            raise RuntimeError(f"Unexpected key in metadata['spectral_norm']: {key}")
        versions[key] = self.fn._version


def spectral_norm(module, name="weight", n_power_iterations=1, eps=1e-12, dim=None):
    """Divide a weight by its largest singular value before each forward pass.

    Parameters
    ----------
    module : Module
    name : str, default: "weight"
    n_power_iterations : int, default: 1
        Steps of the power method for each forward pass in training mode.
    eps : float, default: 1e-12
        Keeps norms from being 0.
    dim : int, optional
        The dim of the outputs, which becomes the rows of the matrix: 0, for transposed convolutions 1.

    Returns
    -------
    Module
        The module, with the parameter ``weight_orig`` and the buffers ``weight_u`` and ``weight_v``.

    See Also
    --------
    ptcore.nn.utils.parametrizations.spectral_norm : the newer form.

    Examples
    --------
    >>> import ptcore
    >>> layer = ptcore.nn.utils.spectral_norm(ptcore.nn.Linear(3, 2))
    >>> sorted(layer.state_dict())
    ['bias', 'weight_orig', 'weight_u', 'weight_v']
    """
    need_module("spectral_norm", module)
    dim = default_dim(module) if dim is None else integer("spectral_norm", "dim", dim)
    SpectralNorm.apply(module, name, n_power_iterations, dim, eps)
    return module


def remove_spectral_norm(module, name="weight"):
    """Undo :func:`~ptcore.nn.utils.spectral_norm`; the weight keeps its normalised value.

    Raises
    ------
    ValueError
        If it was not applied to this parameter.

    Examples
    --------
    >>> import ptcore
    >>> layer = ptcore.nn.utils.spectral_norm(ptcore.nn.Linear(3, 2))
    >>> sorted(ptcore.nn.utils.remove_spectral_norm(layer).state_dict())
    ['bias', 'weight']
    """
    if not take_hook(module, SpectralNorm, name):
        raise ValueError(f"spectral_norm of '{name}' not found in {module}")
    for table, cls in ((module._state_dict_hooks, SpectralNormStateDictHook),
                       (module._load_state_dict_pre_hooks, SpectralNormLoadStateDictPreHook)):
        for key, hook in table.items():
            hook = getattr(hook, "hook", hook)
            if isinstance(hook, cls) and hook.fn.name == name:
                del table[key]
                break
    return module
