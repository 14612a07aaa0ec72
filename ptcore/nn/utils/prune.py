"""Pruning: parameters with some elements held at zero, by a mask that a hook applies before each forward pass.

A pruned parameter ``weight`` becomes the parameter ``weight_orig`` and the buffer ``weight_mask``; ``weight`` itself is
their product. Pruning it again prunes among the remaining elements.
"""
import abc
import contextlib
import numbers
from collections.abc import Iterable

import ptcore
from ptcore._ops.checked import need_tensors
from ptcore.nn.utils._parameter_hooks import hooks_of, need_module, need_parameter, take_hook
from ptcore.nn.utils.convert_parameters import parameters_to_vector

__all__ = ["BasePruningMethod", "CustomFromMask", "Identity", "L1Unstructured", "LnStructured", "PruningContainer",
           "RandomStructured", "RandomUnstructured", "custom_from_mask", "global_unstructured", "identity",
           "is_pruned", "l1_unstructured", "ln_structured", "random_structured", "random_unstructured", "remove"]


@contextlib.contextmanager
def _unchanged_by_errors(module):
    """Gives a module back its parameters, buffers and hooks if the block raises."""
    tables = [(table, dict(table)) for table in (module._parameters, module._buffers, module._forward_pre_hooks)]
    methods = [(hook, hook._pruning_methods) for hook in module._forward_pre_hooks.values()
               if isinstance(hook, PruningContainer)]
    try:
        yield
    except BaseException:
        for table, entries in tables:
            table.clear()
            table.update(entries)
        for hook, earlier in methods:
            hook._pruning_methods = earlier
        raise


class BasePruningMethod(abc.ABC):
    """Base of all ways of pruning. It is also the hook that keeps a parameter pruned.

    A subclass has ``PRUNING_TYPE`` ("unstructured", "structured" with an attribute ``dim``, or "global") and
    :meth:`compute_mask`.
    """

    _tensor_name = None

    def __call__(self, module, inputs):
        setattr(module, self._tensor_name, self.apply_mask(module))

    @abc.abstractmethod
    def compute_mask(self, t, default_mask):
        """The mask of the tensor or scores `t`, which is zero wherever `default_mask` is."""

    def apply_mask(self, module):
        """The pruned value of the module's parameter."""
        if self._tensor_name is None:
            raise AssertionError(f"Module {module} has to be pruned")
        original = getattr(module, self._tensor_name + "_orig")
        return getattr(module, self._tensor_name + "_mask").to(dtype=original.dtype) * original

    @classmethod
    def apply(cls, module, name, *args, importance_scores=None, **kwargs):
        """Prune a parameter of a module, and keep it pruned by a hook.

        Parameters
        ----------
        module : Module
        name : str
        *args, **kwargs
            Of the class.
        importance_scores : Tensor, optional
            A tensor of the parameter's shape from which the mask is computed; the parameter by default.

        Returns
        -------
        BasePruningMethod
            The hook.
        """
        method = cls(*args, **kwargs)
        original = need_parameter(cls.__name__, module, name)
        scores = original if importance_scores is None else importance_scores
        if scores.shape != original.shape:
            raise AssertionError(f"importance_scores should have the same shape as parameter {name} of {module}, got "
                                 f"{scores.shape} vs {original.shape}")
        with _unchanged_by_errors(module):
            method = cls._joined(module, name, method)
            if isinstance(method, PruningContainer):
                mask = getattr(module, name + "_mask").detach().clone(memory_format=ptcore.contiguous_format)
            else:
                module.register_parameter(name + "_orig", original)
                del module._parameters[name]
                mask = ptcore.ones_like(original)
            module.register_buffer(name + "_mask", method.compute_mask(scores, default_mask=mask))
            setattr(module, name, method.apply_mask(module))
            module.register_forward_pre_hook(method)
        return method

    @staticmethod
    def _joined(module, name, method):
        """The new method, or a container of the earlier methods and the new one; removes their hook."""
        need_module(type(method).__name__, module)
        hooks = module._forward_pre_hooks
        found = hooks_of(module, BasePruningMethod, name, "_tensor_name")
        if len(found) > 1:
            raise AssertionError(f"Avoid adding multiple pruning hooks to the same tensor {name} of module {module}. "
                                 "Use a PruningContainer.")
        method._tensor_name = name
        if not found:
            return method
        present = hooks[found[0]]
        del hooks[found[0]]
        container = present if isinstance(present, PruningContainer) else PruningContainer(present)
        container.add_pruning_method(method)
        return container

    def prune(self, t, default_mask=None, importance_scores=None):
        """A pruned copy of the tensor `t`, by the mask of `importance_scores` (`t` itself by default).

        Examples
        --------
        >>> import ptcore
        >>> L1Unstructured(amount=1).prune(ptcore.tensor([3., -1., 2.])).tolist()
        [3.0, -0.0, 2.0]
        """
        scores = t if importance_scores is None else importance_scores
        if scores.shape != t.shape:
            raise AssertionError(f"importance_scores should have the same shape as tensor t, got {scores.shape} vs "
                                 f"{t.shape}")
        mask = ptcore.ones_like(t) if default_mask is None else default_mask
        return t * self.compute_mask(scores, default_mask=mask)

    def remove(self, module):
        """Make the parameter an ordinary one, with the pruned values."""
        weight = self.apply_mask(module)
        name = self._tensor_name
        if hasattr(module, name):
            delattr(module, name)
        original = module._parameters[name + "_orig"]
        original.data = weight.data
        del module._parameters[name + "_orig"]
        del module._buffers[name + "_mask"]
        setattr(module, name, original)


class PruningContainer(BasePruningMethod):
    """Several ways of pruning one after the other, each among the elements that the previous one kept."""

    def __init__(self, *args):
        self._pruning_methods = ()
        if len(args) == 1:
            self._tensor_name = args[0]._tensor_name
        for method in args:
            self.add_pruning_method(method)

    def add_pruning_method(self, method):
        """Add a method for the same parameter."""
        if method is not None and not isinstance(method, BasePruningMethod):
            raise TypeError(f"{type(method)} is not a BasePruningMethod subclass")
        if method is not None and self._tensor_name != method._tensor_name:
            raise ValueError(f"Can only add pruning methods acting on the parameter named '{self._tensor_name}' to "
                             f"PruningContainer {self}. Found '{method._tensor_name}'")
        self._pruning_methods += (method,)

    def __len__(self):
        return len(self._pruning_methods)

    def __iter__(self):
        return iter(self._pruning_methods)

    def __getitem__(self, idx):
        return self._pruning_methods[idx]

    def compute_mask(self, t, default_mask):
        """The mask of the last method among the elements that `default_mask` keeps."""
        method = self._pruning_methods[-1]
        result = default_mask.to(dtype=t.dtype, copy=True)
        place = self._left(method, t, default_mask)
        result[place] = method.compute_mask(t[place], default_mask=default_mask[place]).to(dtype=result.dtype)
        return result

    @staticmethod
    def _left(method, t, mask):
        """The index of the elements, or of the channels, that are not pruned yet."""
        if method.PRUNING_TYPE == "unstructured":
            return mask == 1
        if method.PRUNING_TYPE == "global":
            return ()
        if method.PRUNING_TYPE != "structured":
            raise ValueError(f"Unrecognized PRUNING_TYPE {method.PRUNING_TYPE}")
        if not hasattr(method, "dim"):
            raise AttributeError('Pruning methods of PRUNING_TYPE "structured" need to have the attribute `dim` '
                                 "defined.")
        n = t.ndim
        dim = method.dim + n if method.dim < 0 else method.dim
        if dim < 0:
            raise IndexError(f"Index is out of bounds for tensor with dimensions {n}")
        kept = mask.sum(dim=[d for d in range(n) if d != dim]) != 0
        return tuple(kept if d == dim else slice(None) for d in range(n))


class Identity(BasePruningMethod):
    """Prunes nothing: makes the parameter and a mask of ones, for others to change."""

    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t, default_mask):
        """The mask, unchanged."""
        return default_mask

    @classmethod
    def apply(cls, module, name):
        """Prune a parameter of a module."""
        return super().apply(module, name)


class _Amount(BasePruningMethod):
    """The option `amount`, a share or a number, and the number of elements that it means."""

    def __init__(self, amount):
        if not isinstance(amount, numbers.Real):
            raise TypeError(f"Invalid type for amount: {amount}. Must be int or float.")
        if amount < 0 or (amount > 1 and not isinstance(amount, numbers.Integral)):
            raise ValueError(f"amount={amount} should either be a float in the range [0, 1] or a non-negative integer")
        self.amount = amount

    def _count(self, size):
        amount = self.amount
        if not isinstance(amount, numbers.Integral):
            return round(amount * size)
        if amount > size:
            raise ValueError(f"amount={amount} should be smaller than the number of parameters to prune={size}")
        return amount


class _Unstructured(_Amount):
    """Prunes the elements of the lowest scores."""

    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t, default_mask):
        """The mask of the tensor or scores `t`."""
        count = self._count(t.numel())
        mask = default_mask.clone(memory_format=ptcore.contiguous_format)
        if count:
            mask.view(-1)[self._chosen(t, count)] = 0
        return mask


class RandomUnstructured(_Unstructured):
    """Prunes elements by chance.

    Parameters
    ----------
    amount : int or float
        How many, or which share of them.
    """

    def _chosen(self, t, count):
        return ptcore.topk(ptcore.rand_like(t).reshape(-1), k=count).indices

    @classmethod
    def apply(cls, module, name, amount):
        """Prune a parameter of a module."""
        return super().apply(module, name, amount=amount)


class L1Unstructured(_Unstructured):
    """Prunes the smallest elements.

    Parameters
    ----------
    amount : int or float
        How many, or which share of them.
    """

    def _chosen(self, t, count):
        return ptcore.topk(t.abs().reshape(-1), k=count, largest=False).indices

    @classmethod
    def apply(cls, module, name, amount, importance_scores=None):
        """Prune a parameter of a module."""
        return super().apply(module, name, amount=amount, importance_scores=importance_scores)


class _Structured(_Amount):
    """Prunes whole slices along a dim."""

    PRUNING_TYPE = "structured"

    def __init__(self, amount, dim):
        super().__init__(amount)
        self.dim = dim

    def compute_mask(self, t, default_mask):
        """The mask of the tensor or scores `t`."""
        if t.ndim <= 1:
            raise ValueError("Structured pruning can only be applied to multidimensional tensors. Found tensor of "
                             f"shape {t.shape} with {t.ndim} dims")
        if self.dim >= t.ndim:
            raise IndexError(f"Invalid index {self.dim} for tensor of size {t.shape}")
        size = t.shape[self.dim]
        count = self._count(size)
        if count == 0:
            return default_mask
        mask = ptcore.zeros_like(t)
        mask.movedim(self.dim, 0)[self._kept(t, size, count)] = 1
        return mask * default_mask.to(dtype=mask.dtype)


class RandomStructured(_Structured):
    """Prunes slices along a dim by chance.

    Parameters
    ----------
    amount : int or float
        How many, or which share of them.
    dim : int, default: -1
    """

    def __init__(self, amount, dim=-1):
        super().__init__(amount, dim)

    def _kept(self, t, size, count):
        chance = ptcore.rand(size, device=t.device)
        return chance > ptcore.kthvalue(chance, k=count).values

    @classmethod
    def apply(cls, module, name, amount, dim=-1):
        """Prune a parameter of a module."""
        return super().apply(module, name, amount=amount, dim=dim)


class LnStructured(_Structured):
    """Prunes the slices along a dim with the smallest norms.

    Parameters
    ----------
    amount : int or float
        How many, or which share of them.
    n : float or str
        The order of the norm, as for :func:`ptcore.norm`.
    dim : int, default: -1
    """

    def __init__(self, amount, n, dim=-1):
        super().__init__(amount, dim)
        self.n = n

    def _kept(self, t, size, count):
        norms = ptcore.norm(t, p=self.n, dim=[d for d in range(t.ndim) if d != self.dim % t.ndim])
        return ptcore.topk(norms, k=size - count, largest=True).indices

    @classmethod
    def apply(cls, module, name, amount, n, dim, importance_scores=None):
        """Prune a parameter of a module."""
        return super().apply(module, name, amount=amount, n=n, dim=dim, importance_scores=importance_scores)


class CustomFromMask(BasePruningMethod):
    """Prunes elements that are zero in a given mask.

    Parameters
    ----------
    mask : Tensor
    """

    PRUNING_TYPE = "global"

    def __init__(self, mask):
        need_tensors("CustomFromMask", mask=mask)
        self.mask = mask

    def compute_mask(self, t, default_mask):
        """The product of the masks."""
        if default_mask.shape != self.mask.shape:
            raise AssertionError(f"default_mask shape {default_mask.shape} must match self.mask shape "
                                 f"{self.mask.shape}")
        return default_mask * self.mask.to(dtype=default_mask.dtype)

    @classmethod
    def apply(cls, module, name, mask):
        """Prune a parameter of a module."""
        return super().apply(module, name, mask=mask)


def identity(module, name):
    """Give a parameter a mask of ones, for others to change; return the module."""
    Identity.apply(module, name)
    return module


def random_unstructured(module, name, amount):
    """Prune elements of a parameter by chance.

    Parameters
    ----------
    module : Module
    name : str
    amount : int or float
        How many elements, or which share of them.

    Returns
    -------
    Module
        The module.

    Examples
    --------
    >>> import ptcore
    >>> layer = ptcore.nn.utils.prune.random_unstructured(ptcore.nn.Linear(4, 3), "weight", 0.25)
    >>> int((layer.weight == 0).sum())
    3
    """
    RandomUnstructured.apply(module, name, amount)
    return module


def l1_unstructured(module, name, amount, importance_scores=None):
    """Prune the elements of a parameter with the smallest scores.

    Parameters
    ----------
    module : Module
    name : str
    amount : int or float
        How many elements, or which share of them.
    importance_scores : Tensor, optional
        Of the parameter's shape; its absolute values count. The parameter itself by default.

    Returns
    -------
    Module
        The module.

    Examples
    --------
    >>> import ptcore
    >>> layer = ptcore.nn.utils.prune.l1_unstructured(ptcore.nn.Linear(2, 3), "weight", 2)
    >>> sorted(layer.state_dict())
    ['bias', 'weight_mask', 'weight_orig']
    """
    L1Unstructured.apply(module, name, amount=amount, importance_scores=importance_scores)
    return module


def random_structured(module, name, amount, dim):
    """Prune slices of a parameter along a dim by chance; return the module."""
    RandomStructured.apply(module, name, amount, dim)
    return module


def ln_structured(module, name, amount, n, dim, importance_scores=None):
    """Prune the slices of a parameter along a dim with the smallest norms.

    Parameters
    ----------
    module : Module
    name : str
    amount : int or float
        How many slices, or which share of them.
    n : float or str
        The order of the norm, as for :func:`ptcore.norm`.
    dim : int
    importance_scores : Tensor, optional
        Of the parameter's shape, whose norms count; the parameter itself by default.

    Returns
    -------
    Module
        The module.

    Examples
    --------
    >>> import ptcore
    >>> layer = ptcore.nn.utils.prune.ln_structured(ptcore.nn.Conv2d(5, 3, 2), "weight", 0.3, n=2, dim=1)
    >>> layer.weight_mask.sum((0, 2, 3)).sort().values
    tensor([ 0.,  0., 12., 12., 12.])
    """
    LnStructured.apply(module, name, amount, n, dim, importance_scores=importance_scores)
    return module


def global_unstructured(parameters, pruning_method, importance_scores=None, **kwargs):
    """Prune the elements of several parameters as if they were one.

    Parameters
    ----------
    parameters : iterable of (Module, str)
    pruning_method : type
        A subclass of :class:`BasePruningMethod` for single elements, such as :class:`L1Unstructured`.
    importance_scores : dict of (Module, str) to Tensor, optional
        Scores in place of the parameters.
    **kwargs
        Of the class, such as ``amount``.

    Raises
    ------
    TypeError
        If the method prunes no single elements.

    Examples
    --------
    >>> import ptcore
    >>> from ptcore.nn.utils import prune
    >>> net = ptcore.nn.Sequential(ptcore.nn.Linear(10, 4), ptcore.nn.Linear(4, 1))
    >>> prune.global_unstructured([(net[0], "weight"), (net[1], "weight")], prune.L1Unstructured, amount=10)
    >>> sum(int((mask == 0).sum()) for mask in net.buffers())
    10
    """
    if not isinstance(parameters, Iterable):
        raise TypeError("global_unstructured(): parameters is not an Iterable")
    parameters = list(parameters)
    scores = {} if importance_scores is None else importance_scores
    if not isinstance(scores, dict):
        raise TypeError("global_unstructured(): importance_scores must be of type dict")
    values = [getattr(module, name) for module, name in parameters]
    masks = [getattr(module, name + "_mask", ptcore.ones_like(value))
             for (module, name), value in zip(parameters, values, strict=True)]
    for (module, name), value in zip(parameters, values, strict=True):
        if scores.get((module, name), value).shape != value.shape:
            raise AssertionError(f"importance_scores should have the same shape as parameter {name} of {module}, got "
                                 f"{scores[module, name].shape} vs {value.shape}")
    method = pruning_method(**kwargs)
    if method.PRUNING_TYPE != "unstructured":
        raise TypeError('Only "unstructured" PRUNING_TYPE supported for the `pruning_method`. Found method '
                        f"{pruning_method} of type {method.PRUNING_TYPE}")
    all_scores = parameters_to_vector([scores.get(key, value) for key, value in zip(parameters, values, strict=True)])
    mask = PruningContainer(method).compute_mask(all_scores, parameters_to_vector(masks))
    parts = mask.split([value.numel() for value in values])
    for (module, name), value, part in zip(parameters, values, parts, strict=True):
        custom_from_mask(module, name, mask=part.view_as(value))


def custom_from_mask(module, name, mask):
    """Prune elements that are zero in a mask; return the module.

    >>> import ptcore
    >>> from ptcore.nn.utils import prune
    >>> prune.custom_from_mask(ptcore.nn.Linear(5, 3), "bias", ptcore.tensor([0, 1, 0])).bias_mask
    tensor([0., 1., 0.])
    """
    CustomFromMask.apply(module, name, mask)
    return module


def remove(module, name):
    """Make a pruned parameter an ordinary one, with the pruned values; return the module.

    Raises
    ------
    ValueError
        If it is not pruned.
    """
    if not take_hook(module, BasePruningMethod, name, "_tensor_name"):
        raise ValueError(f"Parameter '{name}' of module {module} has to be pruned before pruning can be removed")
    return module


def is_pruned(module):
    """Whether a parameter of a module, or of one below it, is pruned.

    >>> import ptcore
    >>> from ptcore.nn.utils import prune
    >>> layer = ptcore.nn.Linear(3, 2)
    >>> prune.is_pruned(layer), prune.is_pruned(prune.identity(layer, "weight"))
    (False, True)
    """
    return any(isinstance(hook, BasePruningMethod) for part in module.modules()
               for hook in part._forward_pre_hooks.values())
