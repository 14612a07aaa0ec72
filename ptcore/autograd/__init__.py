"""Tape-based automatic differentiation: ``backward``, ``grad``, custom functions, hooks."""
from ptcore._ops._results import names_of_files as _names_of_files
from ptcore._state import enable_grad, inference_mode, is_grad_enabled, no_grad, set_grad_enabled
from ptcore.autograd._backward import backward, grad

_LATER = {"_anomaly": ("detect_anomaly", "set_detect_anomaly"), "_gradcheck": ("gradcheck", "gradgradcheck"),
          "function": ("Function",), "variable": ("Variable",)}
__getattr__, __dir__ = _names_of_files(__name__, _LATER, ("function", "functional", "graph", "profiler", "variable"))


__all__ = ["Function", "Variable", "backward", "detect_anomaly", "enable_grad", "grad", "gradcheck",
           "gradgradcheck", "inference_mode", "is_grad_enabled", "no_grad", "set_detect_anomaly",
           "set_grad_enabled"]
