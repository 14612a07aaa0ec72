"""Weight normalisation: a weight as a length and a direction, by a hook before each forward pass."""
from ptcore._ops.functions import norm_except_dim
from ptcore.nn.parameter import Parameter
from ptcore.nn.utils._parameter_hooks import need_module, need_parameter, refuse_lazy, refuse_second, take_hook

__all__ = ["WeightNorm", "remove_weight_norm", "weight_norm"]


def of_length(v, g, dim):
    """v with its slices along a dim scaled to the lengths in g."""
    return v * (g / norm_except_dim(v, 2, dim))


class WeightNorm:
    """The hook that :func:`~ptcore.nn.utils.weight_norm` registers."""

    def __init__(self, name, dim):
        self.name, self.dim = name, -1 if dim is None else dim

    def compute_weight(self, module):
        """The weight of length g and direction v."""
        return of_length(getattr(module, self.name + "_v"), getattr(module, self.name + "_g"), self.dim)

    @staticmethod
    def apply(module, name, dim):
        """Replace a parameter by its length and its direction."""
        weight = need_parameter("weight_norm", module, name)
        refuse_second("weight_norm", module, WeightNorm, name)
        norm = WeightNorm(name, dim)
        refuse_lazy("weight_norm", WeightNorm, weight)
        del module._parameters[name]
        module.register_parameter(name + "_g", Parameter(norm_except_dim(weight, 2, norm.dim).data))
        module.register_parameter(name + "_v", Parameter(weight.data))
        setattr(module, name, norm.compute_weight(module))
        module.register_forward_pre_hook(norm)
        return norm

    def remove(self, module):
        """Put the parameter back."""
        weight = self.compute_weight(module)
        delattr(module, self.name)
        del module._parameters[self.name + "_g"]
        del module._parameters[self.name + "_v"]
        setattr(module, self.name, Parameter(weight.data))

    def __call__(self, module, inputs):
        setattr(module, self.name, self.compute_weight(module))


def weight_norm(module, name="weight", dim=0):
    """Reparametrise a weight as ``g * v / norm(v)``, the norm of each slice along `dim` (None: of the whole).

    Parameters
    ----------
    module : Module
    name : str, default: "weight"
    dim : int or None, default: 0

    Returns
    -------
    Module
        The module, with the parameters ``weight_g`` and ``weight_v``.

    Examples
    --------
    >>> import ptcore, warnings
    >>> with warnings.catch_warnings(action="ignore"):
    ...     layer = ptcore.nn.utils.weight_norm(ptcore.nn.Linear(3, 2))
    >>> sorted(layer.state_dict())
    ['bias', 'weight_g', 'weight_v']
    """
    need_module("weight_norm", module)
    import warnings

    warnings.warn("`weight_norm` is deprecated in PyTorch in favor of `nn.utils.parametrizations.weight_norm`.",
                  FutureWarning, stacklevel=2)
    WeightNorm.apply(module, name, dim)
    return module


def remove_weight_norm(module, name="weight"):
    """Undo :func:`~ptcore.nn.utils.weight_norm`.

    Raises
    ------
    ValueError
        If it was not applied to this parameter.
    """
    need_module("remove_weight_norm", module)
    if not take_hook(module, WeightNorm, name):
        raise ValueError(f"weight_norm: {name!r} not found in {module}")
    return module
