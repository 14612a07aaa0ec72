"""Neural networks: modules, parameters, functions and initialisers.

``nn.functional``, ``nn.init``, ``nn.utils`` and ``nn.parameter`` are modules;
``nn.utils`` is imported at first use.
"""

from ptcore.nn import functional, init, modules, parameter
from ptcore.nn.modules import *  # noqa: F403
from ptcore.nn.modules import __all__ as _modules_all
from ptcore.nn.parameter import Buffer, Parameter, UninitializedBuffer, UninitializedParameter

__all__ = [
    "Buffer",
    "Parameter",
    "UninitializedBuffer",
    "UninitializedParameter",
    "functional",
    "init",
    "modules",
    "parameter",
    "utils",  # noqa: F405
    *_modules_all,
]


def __getattr__(name):
    if name == "utils":
        from importlib import import_module

        return import_module("ptcore.nn.utils")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__():
    return sorted({*globals(), *__all__})
