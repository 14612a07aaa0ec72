"""Methods of Tensor in the array API standard that PyTorch lacks."""
from ptcore._device import device as _device

_VERSIONS = ("2021.12", "2022.12", "2023.12", "2024.12", "2025.12")


def __array_namespace__(self, /, *, api_version=None):
    """The namespace of the array API standard that goes with tensors: the module ``ptcore.array_api``.

    Parameters
    ----------
    api_version : str, optional
        A version of the standard, ``"2025.12"`` or an earlier one, which it contains.

    Returns
    -------
    module

    Raises
    ------
    ValueError
        If the version is not known.

    Examples
    --------
    >>> import ptcore
    >>> ptcore.tensor([1]).__array_namespace__().__name__
    'ptcore.array_api'
    """
    if api_version not in (None, *_VERSIONS):
        raise ValueError(f"__array_namespace__: api_version must be one of {', '.join(_VERSIONS)}, got {api_version!r}")
    from ptcore import array_api
    return array_api


def to_device(self, device, /, *, stream=None):
    """The tensor on a device; returned unchanged if it is already there.

    Parameters
    ----------
    device : device or str
    stream : None
        There for the standard's sake; copies wait for each other as those of ``to`` do.

    Returns
    -------
    Tensor

    Raises
    ------
    ValueError
        If a stream is given.

    Examples
    --------
    >>> import ptcore
    >>> ptcore.tensor([1]).to_device("cpu")
    tensor([1])
    """
    if stream is not None:
        raise ValueError(f"to_device: stream must be None, got {stream!r}")
    return self.to(_device(device))
