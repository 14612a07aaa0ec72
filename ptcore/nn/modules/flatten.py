"""Layers that reshape: Flatten and Unflatten."""

from ptcore.nn.modules._checks import need_tensor
from ptcore.nn.modules.module import Module

__all__ = ["Flatten", "Unflatten"]


class Flatten(Module):
    """Flatten the dimensions from `start_dim` to `end_dim` into one.

    Parameters
    ----------
    start_dim : int, default: 1
        First dimension to flatten.
    end_dim : int, default: -1
        Last dimension to flatten.

    Examples
    --------
    >>> import ptcore
    >>> ptcore.nn.Flatten()(ptcore.zeros(2, 3, 4)).shape
    ptcore.Size([2, 12])
    """

    def __init__(self, start_dim=1, end_dim=-1):
        super().__init__()
        self.start_dim = start_dim
        self.end_dim = end_dim

    def forward(self, input):
        """Return the flattened `input`."""
        need_tensor(self, "input", input)
        return input.flatten(self.start_dim, self.end_dim)

    def extra_repr(self):
        """The dimensions."""
        return f"start_dim={self.start_dim}, end_dim={self.end_dim}"


class Unflatten(Module):
    """Split dimension `dim` into the sizes `unflattened_size`.

    Parameters
    ----------
    dim : int
        Dimension to split.
    unflattened_size : tuple of int
        Its new sizes; one may be -1.

    Examples
    --------
    >>> import ptcore
    >>> ptcore.nn.Unflatten(1, (3, 4))(ptcore.zeros(2, 12)).shape
    ptcore.Size([2, 3, 4])
    """

    def __init__(self, dim, unflattened_size):
        super().__init__()
        if not isinstance(dim, int):
            raise TypeError(
                "Unflatten: dim must be an int (named dimensions do not exist), got "
                f"{type(dim).__name__}"
            )
        if not isinstance(unflattened_size, (tuple, list)):
            raise TypeError(
                "Unflatten: unflattened_size must be a tuple of int, got "
                f"{type(unflattened_size).__name__}"
            )
        for i, size in enumerate(unflattened_size):
            if not isinstance(size, int):
                raise TypeError(
                    "Unflatten: unflattened_size must be a tuple of ints, but found "
                    f"element of type {type(size).__name__} at pos {i}"
                )
        self.dim = dim
        self.unflattened_size = unflattened_size

    def forward(self, input):
        """Return `input` with the dimension split."""
        need_tensor(self, "input", input)
        return input.unflatten(self.dim, self.unflattened_size)

    def extra_repr(self):
        """The dimension and its sizes."""
        return f"dim={self.dim}, unflattened_size={self.unflattened_size}"
