"""Anomaly mode: forward locations on nodes, a NaN check after every rule."""
import warnings

from ptcore._ops._arguments import flag
from ptcore._ops._record import node_name
from ptcore._state import is_anomaly_enabled, set_anomaly
from ptcore._tensor import Tensor


class detect_anomaly:
    """Context manager: backward reports the forward line of a rule that raises or returns NaN.

    Parameters
    ----------
    check_nan : bool
        Whether NaN in a gradient raises RuntimeError.
    """

    nan = True

    def __init__(self, check_nan=True):
        self.check_nan = flag("detect_anomaly", "check_nan", check_nan)

    def __enter__(self):
        self.before = is_anomaly_enabled(), detect_anomaly.nan
        set_anomaly(True)
        detect_anomaly.nan = self.check_nan

    def __exit__(self, *exc):
        set_anomaly(self.before[0])
        detect_anomaly.nan = self.before[1]


class set_detect_anomaly(detect_anomaly):
    """Switches anomaly mode on or off, at once and, as a context manager, for a block."""

    def __init__(self, mode, check_nan=True):
        self.before = is_anomaly_enabled(), detect_anomaly.nan
        mode, check_nan = [flag("set_detect_anomaly", n, x) for n, x in (("mode", mode), ("check_nan", check_nan))]
        set_anomaly(mode)
        detect_anomaly.nan = check_nan

    def __enter__(self):
        return self


def report(node):
    """Warns with the forward location of a node."""
    where = "".join(node.trace) if node.trace else "(made outside anomaly mode)\n"
    warnings.warn(f"Error detected in {node_name(node)}. Traceback of the forward call that "
                  f"caused the error:\n{where}", stacklevel=3)


def locate(error, node):
    """Notes on an exception which node's rule or hook raised it, and where its op was called.

    The innermost backward notes first; an outer one adds nothing.
    """
    if node is None or getattr(error, "_ptcore_located", False):
        return
    note = f"This happened in the backward of {node_name(node)}."
    if node.trace:
        note += f" Its forward call:\n{''.join(node.trace).rstrip()}"
    elif not is_anomaly_enabled():
        note += " Under detect_anomaly() the forward call is shown here."
    error.add_note(note)
    try:
        error._ptcore_located = True
    except AttributeError:              # an exception class with __slots__
        pass


def check(node, grads):
    """Raises if a rule returned NaN."""
    if not detect_anomaly.nan:
        return
    for i, g in enumerate(grads if isinstance(grads, tuple) else (grads,)):
        if isinstance(g, Tensor) and g.dtype.kind in "fc" and bool((g != g).any()):
            report(node)
            raise RuntimeError(f"{node_name(node)}: returned nan values in its gradient {i}")
