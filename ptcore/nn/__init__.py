"""Neural networks: modules, parameters, functions and initialisers.

``nn.attention``, ``nn.functional``, ``nn.grad``, ``nn.init``, ``nn.utils`` and ``nn.parameter`` are modules;
``nn.attention``, ``nn.grad`` and ``nn.utils`` are imported at first use.
"""

from ptcore import _lazy
from ptcore.nn import functional, init, modules, parameter
from ptcore.nn.modules import *  # noqa: F403
from ptcore.nn.modules import __all__ as _modules_all
from ptcore.nn.parameter import Buffer, Parameter, UninitializedBuffer, UninitializedParameter

__all__ = [
    "Buffer",
    "Parameter",
    "UninitializedBuffer",
    "UninitializedParameter",
    "attention",  # noqa: F405
    "functional",
    "grad",  # noqa: F405
    "init",
    "modules",
    "parameter",
    "utils",  # noqa: F405
    *_modules_all,
]

__getattr__, __dir__ = _lazy.names(__name__)
