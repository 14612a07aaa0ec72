"""Weights of convolutions in another memory format."""
from ptcore.nn.modules.conv import Conv2d, Conv3d, ConvTranspose2d, ConvTranspose3d

__all__ = ["convert_conv2d_weight_memory_format", "convert_conv3d_weight_memory_format"]


def _convert(module, memory_format, kinds):
    for part in module.modules():
        if isinstance(part, kinds):
            part.weight.data = part.weight.detach().clone(memory_format=memory_format)
    return module


def convert_conv2d_weight_memory_format(module, memory_format):
    """Lay out the weights of all two-dimensional convolutions of a module in a memory format; return the module.

    >>> import ptcore
    >>> layer = ptcore.nn.Conv2d(8, 4, 3)
    >>> layer = ptcore.nn.utils.convert_conv2d_weight_memory_format(layer, ptcore.channels_last)
    >>> layer.weight.stride()
    (72, 1, 24, 8)
    """
    return _convert(module, memory_format, (Conv2d, ConvTranspose2d))


def convert_conv3d_weight_memory_format(module, memory_format):
    """Lay out the weights of all three-dimensional convolutions of a module in a memory format; return the module."""
    return _convert(module, memory_format, (Conv3d, ConvTranspose3d))
