"""Lazy modules, which take some of their sizes from the first input.

A lazy module is made with parameters that have no shape. Its first call infers them from the input,
initialises them and turns the module into an object of the ordinary class.
"""

import ptcore
from ptcore._errors import ShapeError
from ptcore.nn.modules._checks import need_tensor
from ptcore.nn.modules.batchnorm import (
    BatchNorm1d,
    BatchNorm2d,
    BatchNorm3d,
    InstanceNorm1d,
    InstanceNorm2d,
    InstanceNorm3d,
    _BatchNorm,
)
from ptcore.nn.modules.conv import (
    Conv1d,
    Conv2d,
    Conv3d,
    ConvTranspose1d,
    ConvTranspose2d,
    ConvTranspose3d,
)
from ptcore.nn.modules.linear import Linear
from ptcore.nn.parameter import UninitializedBuffer, UninitializedParameter, is_lazy

__all__ = [
    "LazyBatchNorm1d",
    "LazyBatchNorm2d",
    "LazyBatchNorm3d",
    "LazyConv1d",
    "LazyConv2d",
    "LazyConv3d",
    "LazyConvTranspose1d",
    "LazyConvTranspose2d",
    "LazyConvTranspose3d",
    "LazyInstanceNorm1d",
    "LazyInstanceNorm2d",
    "LazyInstanceNorm3d",
    "LazyLinear",
    "LazyModuleMixin",
]


class LazyModuleMixin:
    """Makes a module whose parameters are :class:`~ptcore.nn.UninitializedParameter` wait for its first input.

    It comes before the module's class among the bases. The class defines ``initialize_parameters(*args, **kwargs)``,
    which gets the arguments of ``forward`` and materialises the parameters. It may define ``cls_to_become``, the class
    that the object gets afterwards.
    """

    cls_to_become = None

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self._load_hook = self._register_load_state_dict_pre_hook(self._lazy_load_hook)
        self._initialize_hook = self.register_forward_pre_hook(self._infer_parameters, with_kwargs=True)

    def _own(self):
        return [*self._parameters.items(), *self._buffers.items()]

    def _lazy_load_hook(self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs):
        """Gives parameters the shapes of the entries that are about to be loaded."""
        for name, value in self._own():
            given = state_dict.get(prefix + name)
            if value is not None and given is not None and is_lazy(value) and not is_lazy(given):
                with ptcore.no_grad():
                    value.materialize(given.shape)

    def initialize_parameters(self, *args, **kwargs):
        """Materialise the parameters for an input; called by the first forward pass."""
        raise NotImplementedError(f"initialize_parameters is not implemented for {type(self).__name__}")

    def has_uninitialized_params(self):
        """Whether a parameter or buffer waits for its shape."""
        return any(is_lazy(value) for _, value in self._own())

    def _infer_parameters(self, module, args, kwargs=None):
        self.initialize_parameters(*args, **(kwargs or {}))
        if self.has_uninitialized_params():
            raise RuntimeError(f"module {self._get_name()} has not been fully initialized")
        self._initialize_hook.remove()
        self._load_hook.remove()
        del self._initialize_hook, self._load_hook
        if self.cls_to_become is not None:
            self.__class__ = self.cls_to_become


def _uninitialized(module, names, device, dtype):
    """Replaces existing, empty parameters by uninitialised ones."""
    for name in names:
        if getattr(module, name) is not None:
            setattr(module, name, UninitializedParameter(device=device, dtype=dtype))


class LazyLinear(LazyModuleMixin, Linear):
    """:class:`~ptcore.nn.Linear` whose ``in_features`` are those of its first input.

    Examples
    --------
    >>> import ptcore
    >>> layer = ptcore.nn.LazyLinear(3)
    >>> layer(ptcore.ones(2, 5)).shape, layer
    (ptcore.Size([2, 3]), Linear(in_features=5, out_features=3, bias=True))
    """

    cls_to_become = Linear

    def __init__(self, out_features, bias=True, device=None, dtype=None):
        super().__init__(0, 0, bias, device, dtype)
        self.out_features = out_features
        _uninitialized(self, ("weight", "bias"), device, dtype)

    def reset_parameters(self):
        """Draw the initial values again."""
        if not self.has_uninitialized_params() and self.in_features != 0:
            super().reset_parameters()

    def initialize_parameters(self, input):
        """Take ``in_features`` from the input's last size."""
        need_tensor(self, "input", input)
        if self.has_uninitialized_params():
            if input.ndim == 0:
                raise ShapeError("LazyLinear: input must have at least 1 dimension, got 0")
            with ptcore.no_grad():
                self.in_features = input.shape[-1]
                self.weight.materialize((self.out_features, self.in_features))
                if self.bias is not None:
                    self.bias.materialize((self.out_features,))
                self.reset_parameters()
        if self.in_features == 0:               # otherwise its state was loaded
            self.in_features = self.weight.shape[-1]


class _LazyConv(LazyModuleMixin):
    """The common part of lazy convolutions."""

    def _wait(self, out_channels, device, dtype):
        self.out_channels = out_channels
        _uninitialized(self, ("weight", "bias"), device, dtype)

    def reset_parameters(self):
        """Draw the initial values again."""
        if not self.has_uninitialized_params() and self.in_channels != 0:
            super().reset_parameters()

    def initialize_parameters(self, input, *args, **kwargs):
        """Take ``in_channels`` from the input."""
        channels = self._channels(input)
        if self.has_uninitialized_params():
            self.in_channels = channels
            if channels % self.groups != 0:
                raise ValueError(f"{type(self).__name__}: in_channels must be divisible by groups, got {channels} and "
                                 f"{self.groups}")
            if self.transposed:
                shape = (channels, self.out_channels // self.groups, *self.kernel_size)
            else:
                shape = (self.out_channels, channels // self.groups, *self.kernel_size)
            with ptcore.no_grad():
                self.weight.materialize(shape)
                if self.bias is not None:
                    self.bias.materialize((self.out_channels,))
                self.reset_parameters()
        if self.in_channels == 0:
            self.in_channels = channels

    def _channels(self, input):
        n = self._n
        need_tensor(self, "input", input)
        if input.ndim not in (n + 1, n + 2):
            raise ShapeError(f"{type(self).__name__}: Expected {n + 1}D (unbatched) or {n + 2}D (batched) input, "
                             f"but got input of size: {tuple(input.shape)}")
        return input.shape[-n - 1]


class _LazyForward(_LazyConv):
    def __init__(self, out_channels, kernel_size, stride=1, padding=0, dilation=1, groups=1, bias=True,
                 padding_mode="zeros", device=None, dtype=None):
        # With 0 channels any number of groups is valid; the parameters stay empty until the first input.
        super().__init__(0, 0, kernel_size, stride, padding, dilation, groups, bias, padding_mode, device, dtype)
        self._wait(out_channels, device, dtype)


class _LazyTransposed(_LazyConv):
    def __init__(self, out_channels, kernel_size, stride=1, padding=0, output_padding=0, groups=1, bias=True,
                 dilation=1, padding_mode="zeros", device=None, dtype=None):
        super().__init__(0, 0, kernel_size, stride, padding, output_padding, groups, bias, dilation, padding_mode,
                         device, dtype)
        self._wait(out_channels, device, dtype)


class _LazyNorm(LazyModuleMixin):
    """The common part of lazy batch and instance normalisation, with the defaults of batch normalisation."""

    def __init__(self, eps=1e-5, momentum=0.1, affine=True, track_running_stats=True, device=None, dtype=None, *,
                 bias=True):
        super().__init__(0, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)
        _uninitialized(self, ("weight", "bias"), device, dtype)
        for name in ("running_mean", "running_var"):
            if getattr(self, name) is not None:
                setattr(self, name, UninitializedBuffer(device=device, dtype=dtype))

    def reset_running_stats(self):
        """Set the running mean to zeros, the running variance to ones, the count to zero."""
        if not self.has_uninitialized_params():
            super().reset_running_stats()

    def reset_parameters(self):
        """Set the weight to ones and the bias to zeros, and reset the running statistics."""
        if not self.has_uninitialized_params() and self.num_features != 0:
            super().reset_parameters()

    def initialize_parameters(self, input):
        """Take ``num_features`` from the input."""
        need_tensor(self, "input", input)
        channel = 1 if isinstance(self, _BatchNorm) else input.ndim - max(self._ndims) + 1
        if input.ndim not in self._ndims:
            self._check_input_dim(input)
        features = input.shape[channel]
        if self.has_uninitialized_params():
            self.num_features = features
            with ptcore.no_grad():
                for _, value in self._own():
                    if value is not None and is_lazy(value):
                        value.materialize((features,))
                self.reset_parameters()
        if self.num_features == 0:
            self.num_features = features


_DOC = """:class:`~ptcore.nn.{of}` whose ``{what}`` are those of its first input.

    Examples
    --------
    >>> import ptcore
    >>> layer = ptcore.nn.{name}({arguments})
    >>> result = layer(ptcore.ones(2, 3, {sizes}))
    >>> layer.{what}, type(layer).__name__
    (3, '{of}')
    """


def _for_dims(base, what, arguments, *classes):
    """The lazy classes for modules of 1, 2 and 3 dimensions."""
    def made(n, of):
        name = "Lazy" + of.__name__
        return type(name, (base, of), {
            "cls_to_become": of, "__module__": __name__, "__qualname__": name,
            "__doc__": _DOC.format(of=of.__name__, what=what, name=name, arguments=arguments,
                                   sizes=", ".join("2" * n)),
        })
    return tuple([made(n, of) for n, of in enumerate(classes, 1)])


LazyConv1d, LazyConv2d, LazyConv3d = _for_dims(_LazyForward, "in_channels", "4, 1", Conv1d, Conv2d, Conv3d)
LazyConvTranspose1d, LazyConvTranspose2d, LazyConvTranspose3d = _for_dims(
    _LazyTransposed, "in_channels", "4, 1", ConvTranspose1d, ConvTranspose2d, ConvTranspose3d)
LazyBatchNorm1d, LazyBatchNorm2d, LazyBatchNorm3d = _for_dims(
    _LazyNorm, "num_features", "", BatchNorm1d, BatchNorm2d, BatchNorm3d)
LazyInstanceNorm1d, LazyInstanceNorm2d, LazyInstanceNorm3d = _for_dims(
    _LazyNorm, "num_features", "", InstanceNorm1d, InstanceNorm2d, InstanceNorm3d)
