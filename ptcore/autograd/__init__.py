"""Tape-based automatic differentiation: ``backward``, ``grad``, custom functions, hooks."""
from ptcore import _lazy
from ptcore._state import enable_grad, inference_mode, is_grad_enabled, no_grad, set_grad_enabled
from ptcore.autograd.entry import backward, grad

__getattr__, __dir__ = _lazy.names(__name__)


__all__ = ["Function", "Variable", "backward", "detect_anomaly", "enable_grad", "grad", "gradcheck",
           "gradgradcheck", "inference_mode", "is_grad_enabled", "no_grad", "set_detect_anomaly",
           "set_grad_enabled", "set_multithreading_enabled", "set_source_lines"]
