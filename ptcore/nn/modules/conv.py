"""Convolutions and their transposes in 1, 2 and 3 dims: one class body, a subclass for each."""

import math

import ptcore
from ptcore.nn import functional as F
from ptcore.nn import init
from ptcore.nn.modules.module import Module
from ptcore.nn.parameter import Parameter

__all__ = ["Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d"]

_MODES = {"zeros", "reflect", "replicate", "circular"}


def ntuple(value, n):
    """A tuple of n from one value or from several."""
    return tuple(value) if isinstance(value, (tuple, list)) else (value,) * n


class _ConvNd(Module):
    """Parameters and text of both kinds; `_n` is the number of spatial dims."""

    _n = 0
    _torch_computed = ("_reversed_padding_repeated_twice",)
    _torch_later = (("padding_mode", "zeros"),)

    def __init__(
        self, in_channels, out_channels, kernel_size, stride, padding, dilation, transposed,
        output_padding, groups, bias, padding_mode, device=None, dtype=None,
    ):
        # By PyTorch's signature, since programs derive from this class; they give tuples, which say how many dims.
        super().__init__()
        n = self._n or len(kernel_size)
        if groups <= 0:
            raise ValueError("groups must be a positive integer")
        if in_channels % groups != 0:
            raise ValueError("in_channels must be divisible by groups")
        if out_channels % groups != 0:
            raise ValueError("out_channels must be divisible by groups")
        if isinstance(padding, str):
            if padding not in ("same", "valid"):
                raise ValueError(
                    f"Invalid padding string {padding!r}, should be one of 'same', 'valid'"
                )
            if padding == "same" and any(s != 1 for s in ntuple(stride, n)):
                raise ValueError("padding='same' is not supported for strided convolutions")
        if padding_mode not in _MODES:
            raise ValueError(
                f"padding_mode must be one of {sorted(_MODES)}, but got padding_mode={padding_mode!r}"
            )
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.kernel_size = ntuple(kernel_size, n)
        self.stride = ntuple(stride, n)
        self.padding = padding if isinstance(padding, str) else ntuple(padding, n)
        self.dilation = ntuple(dilation, n)
        self.transposed = transposed
        self.output_padding = ntuple(output_padding, n)
        self.groups = groups
        self.padding_mode = padding_mode
        if transposed:
            shape = (in_channels, out_channels // groups, *self.kernel_size)
        else:
            shape = (out_channels, in_channels // groups, *self.kernel_size)
        self.weight = Parameter(ptcore.empty(shape, device=device, dtype=dtype))
        if bias:
            self.bias = Parameter(ptcore.empty(out_channels, device=device, dtype=dtype))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def reset_parameters(self):
        """Draw the initial values again."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            fan_in, _ = init._calculate_fan_in_and_fan_out(self.weight)
            bound = 1 / math.sqrt(fan_in) if fan_in > 0 else 0
            init.uniform_(self.bias, -bound, bound)

    @property
    def _reversed_padding_repeated_twice(self):
        """(before, after) of each dim, the last dim first, as `nn.functional.pad` wants them."""
        pads = []
        for k in reversed(range(len(self.kernel_size))):
            if self.padding == "same":
                total = self.dilation[k] * (self.kernel_size[k] - 1)
                pads += [total // 2, total - total // 2]
            else:
                pads += [0, 0] if self.padding == "valid" else [self.padding[k]] * 2
        return pads

    def extra_repr(self):
        """Channels, sizes and options that differ from their defaults."""
        n = len(self.kernel_size)
        text = f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}"
        if self.padding != (0,) * n:
            text += f", padding={self.padding}"
        if self.dilation != (1,) * n:
            text += f", dilation={self.dilation}"
        if self.output_padding != (0,) * n:
            text += f", output_padding={self.output_padding}"
        if self.groups != 1:
            text += f", groups={self.groups}"
        if self.bias is None:
            text += ", bias=False"
        if self.padding_mode != "zeros":
            text += f", padding_mode={self.padding_mode}"
        return text


class _Conv(_ConvNd):
    """The forward pass of convolutions. Padding other than zeros is applied first."""

    def __init__(
        self, in_channels, out_channels, kernel_size, stride=1, padding=0, dilation=1,
        groups=1, bias=True, padding_mode="zeros", device=None, dtype=None,
    ):
        super().__init__(
            in_channels, out_channels, kernel_size, stride, padding, dilation, False, 0,
            groups, bias, padding_mode, device, dtype,
        )

    def forward(self, input):
        """Convolve `input`, with or without a batch dimension."""
        return self._conv_forward(input, self.weight, self.bias)

    def _conv_forward(self, input, weight, bias):
        """The same by weights that are given. Subclasses override it by this name, as Whisper's layers do."""
        conv, padding = type(self)._function, self.padding
        if self.padding_mode != "zeros":
            input, padding = F.pad(input, self._reversed_padding_repeated_twice, mode=self.padding_mode), 0
        return conv(input, weight, bias, self.stride, padding, self.dilation, self.groups)


class _ConvTransposeNd(_ConvNd):
    """The part of transposed convolutions that programs derive from."""

    def __init__(
        self, in_channels, out_channels, kernel_size, stride, padding, dilation, transposed,
        output_padding, groups, bias, padding_mode, device=None, dtype=None,
    ):
        if padding_mode != "zeros":
            raise ValueError(f'Only "zeros" padding mode is supported for {type(self).__name__}')
        super().__init__(
            in_channels, out_channels, kernel_size, stride, padding, dilation, transposed,
            output_padding, groups, bias, padding_mode, device, dtype,
        )

    def _output_padding(
        self, input, output_size, stride, padding, kernel_size, num_spatial_dims, dilation=None
    ):
        """What is added to the sizes of the output so that they become `output_size`."""
        if output_size is None:
            return self.output_padding
        n, leading = num_spatial_dims, input.ndim - num_spatial_dims
        output_size = list(output_size)
        if len(output_size) == n + leading:
            output_size = output_size[leading:]
        if len(output_size) != n:
            raise ValueError(
                f"ConvTranspose{n}D: for {input.ndim}D input, output_size must have {n} or "
                f"{n + leading} elements (got {len(output_size)})"
            )
        least = [
            (m - 1) * s - 2 * p + d * (k - 1) + 1
            for m, s, p, d, k in zip(
                input.shape[leading:], stride, padding, dilation or (1,) * n, kernel_size
            )
        ]
        most = [m + s - 1 for m, s in zip(least, stride)]
        if any(not a <= o <= b for a, o, b in zip(least, output_size, most)):
            raise ValueError(
                f"requested an output size of {output_size}, but valid sizes range from {least} "
                f"to {most} (for an input of {list(input.shape[leading:])})"
            )
        return [o - m for o, m in zip(output_size, least)]


class _ConvTranspose(_ConvTransposeNd):
    """The forward pass of transposed convolutions: `output_size` chooses among the possible sizes."""

    def __init__(
        self, in_channels, out_channels, kernel_size, stride=1, padding=0, output_padding=0,
        groups=1, bias=True, dilation=1, padding_mode="zeros", device=None, dtype=None,
    ):
        super().__init__(
            in_channels, out_channels, kernel_size, stride, padding, dilation, True,
            output_padding, groups, bias, padding_mode, device, dtype,
        )

    def forward(self, input, output_size=None):
        """Spread `input` over windows, to `output_size` where given."""
        extra = self._output_padding(
            input, output_size, self.stride, self.padding, self.kernel_size, self._n, self.dilation
        )
        return type(self)._function(
            input, self.weight, self.bias, self.stride, self.padding, extra, self.groups, self.dilation
        )


_CONV = """{what} over {n} spatial dim{s}.

    Parameters
    ----------
    in_channels, out_channels : int
        Channels of input and output.
    kernel_size : int or tuple of int
    stride : int or tuple of int, default: 1
    padding : {padding}
    {extra}dilation : int or tuple of int, default: 1
        Distance between the taps of the kernel.
    groups : int, default: 1
        Input and output channels are divided into so many groups that do not see each other.
    bias : bool, default: True
        Whether to add a bias for each output channel.
    padding_mode : {modes}
    device, dtype : optional
        Of the parameters.

    Attributes
    ----------
    weight : Parameter, shape {shape}
    bias : Parameter, shape (out_channels,), or None
        Both start uniform in ``[-k, k]`` with ``k`` one over the square root of the numbers
        that weight has for each entry of its first dimension.

    Examples
    --------
    >>> import ptcore
    >>> ptcore.nn.{name}(2, 3, 3)(ptcore.ones({size})).shape
    ptcore.Size([{out}])
    """


def _text(cls):
    n, transposed = cls._n, issubclass(cls, _ConvTransposeNd)
    grown = 7 if transposed else 3
    return _CONV.format(
        what="Transposed convolution" if transposed else "Convolution", n=n, s="s" * (n > 1), name=cls.__name__,
        padding="int or tuple of int, default: 0\n        What the convolution it transposes is padded with."
        if transposed else "int, tuple of int, 'same' or 'valid', default: 0\n        Added at both ends of each dim.",
        extra="output_padding : int or tuple of int, default: 0\n        Added to the sizes of the output.\n    "
        * transposed,
        modes="{'zeros'}" if transposed else "{'zeros', 'reflect', 'replicate', 'circular'}, default: 'zeros'",
        shape="``(in_channels, out_channels / groups, *kernel_size)``" if transposed
        else "``(out_channels, in_channels / groups, *kernel_size)``",
        size=", ".join(["1", "2"] + ["5"] * n), out=", ".join(["1", "3"] + [str(grown)] * n))


class Conv1d(_Conv):
    _n = 1
    _function = F.conv1d


class Conv2d(_Conv):
    _n = 2
    _function = F.conv2d


class Conv3d(_Conv):
    _n = 3
    _function = F.conv3d


class ConvTranspose1d(_ConvTranspose):
    _n = 1
    _function = F.conv_transpose1d


class ConvTranspose2d(_ConvTranspose):
    _n = 2
    _function = F.conv_transpose2d


class ConvTranspose3d(_ConvTranspose):
    _n = 3
    _function = F.conv_transpose3d


for _class in (Conv1d, Conv2d, Conv3d, ConvTranspose1d, ConvTranspose2d, ConvTranspose3d):
    _class.__doc__ = _text(_class)
