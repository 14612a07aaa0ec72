"""Neural networks: modules, parameters, functions and initialisers.

``nn.functional``, ``nn.grad``, ``nn.init``, ``nn.utils`` and ``nn.parameter`` are modules;
``nn.grad`` and ``nn.utils`` are imported at first use.
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
    "grad",  # noqa: F405
    "init",
    "modules",
    "parameter",
    "utils",  # noqa: F405
    *_modules_all,
]


def __getattr__(name):
    if name in ("grad", "utils"):
        from importlib import import_module

        return import_module(f"ptcore.nn.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__():
    return sorted({*globals(), *__all__})
