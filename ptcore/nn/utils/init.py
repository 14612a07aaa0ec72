"""Modules without initial values."""
from ptcore.nn.modules.module import Module

__all__ = ["skip_init"]


def skip_init(module_cls, *args, **kwargs):
    """Make a module whose parameters and buffers are not initialised.

    Parameters
    ----------
    module_cls : type
        A subclass of :class:`~ptcore.nn.Module` with an argument ``device``.
    *args, **kwargs
        Of the class.

    Returns
    -------
    Module

    Raises
    ------
    RuntimeError
        If the class is no Module or has no such argument.

    Examples
    --------
    >>> import ptcore
    >>> ptcore.nn.utils.skip_init(ptcore.nn.Linear, 3, 2).weight.shape
    ptcore.Size([2, 3])
    """
    import inspect

    if not issubclass(module_cls, Module):
        raise RuntimeError(f"skip_init: Expected a Module; got {module_cls}")
    if "device" not in inspect.signature(module_cls).parameters:
        raise RuntimeError("skip_init: Module must support a 'device' arg to skip initialization")
    device = kwargs.pop("device", "cpu")
    return module_cls(*args, **kwargs, device="meta").to_empty(device=device)
