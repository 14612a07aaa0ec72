"""Forward locations on nodes, and anomaly mode: whole stacks, and a NaN check after every rule."""
import warnings

from ptcore._errors import place_text
from ptcore._ops.checked import flag
from ptcore._ops.history import node_name
from ptcore._state import AnomalyMode, SourceLines, decorate, is_anomaly_check_nan_enabled, is_anomaly_enabled
from ptcore._tensor import Tensor


class detect_anomaly(AnomalyMode):
    """Context manager: backward reports the forward line of a rule that raises or returns NaN.

    As in PyTorch it holds for all threads.

    Parameters
    ----------
    check_nan : bool
        Whether NaN in a gradient raises RuntimeError.
    """

    def __init__(self, check_nan=True):
        super().__init__(True, flag("detect_anomaly", "check_nan", check_nan))
        warnings.warn("Anomaly Detection has been enabled. This mode will increase the runtime and should only be "
                      "enabled for debugging.", stacklevel=2)


class set_detect_anomaly(AnomalyMode):
    """Switches anomaly mode of all threads on or off, at once and, as a context manager, for a block."""

    def __init__(self, mode, check_nan=True):
        super().__init__(*[flag("set_detect_anomaly", n, x) for n, x in (("mode", mode), ("check_nan", check_nan))])
        self._switch()


class set_source_lines(SourceLines):
    """Whether nodes of the graph keep the line of the program that made them; at once and, as a context manager or
    decorator, for a block. Each thread begins with True.

    Errors in a backward name that line, and ``grad_fn.source_line`` is its (file, line, function). Tracers of
    :mod:`ptcore.fx` keep lines too, unless this setting or their ``record_stack_traces`` is off. PyTorch has no such
    setting.

    Parameters
    ----------
    mode : bool

    Examples
    --------
    >>> import ptcore
    >>> x = ptcore.ones(1, requires_grad=True)
    >>> with ptcore.autograd.set_source_lines(False):
    ...     y = 2 * x
    >>> y.grad_fn.source_line is None
    True
    """

    def __init__(self, mode):
        self.mode = flag("set_source_lines", "mode", mode)
        super().__init__(self.mode)
        self._switch()

    def __call__(self, function):
        self._undo()
        return decorate(self, function)

    def clone(self):
        """A new context manager of the same mode."""
        return type(self)(self.mode)


def report(node):
    """Warns with the forward location of a node."""
    if node.trace:
        text = f"Traceback of forward call that caused the error:\n{''.join(node.trace)}"
    else:
        text = ("No forward pass information available. Enable detect anomaly during forward pass for more "
                "information.")
        if node.source_line is not None:
            text += f" The forward call was at {place_text(node.source_line)}"
    warnings.warn(f"Error detected in {node_name(node)}. {text}", stacklevel=3)


def locate(error, node):
    """Adds notes to an exception: the node whose rule or hook raised it, and the place where its op was called.

    The innermost backward adds its notes first; an outer one adds none.
    """
    if node is None or getattr(error, "_ptcore_located", False):
        return
    note = f"This happened in the backward of {node_name(node)}."
    if node.trace:
        note += f" Its forward call:\n{''.join(node.trace).rstrip()}"
    else:
        if node.source_line is not None:
            note += f" The forward call was at {place_text(node.source_line)}"
        if not is_anomaly_enabled():
            note += "\nUnder detect_anomaly() the forward call is shown here with the calls that led to it."
    error.add_note(note)
    try:
        error._ptcore_located = True
    except AttributeError:              # an exception class with __slots__ refuses notes
        pass


def check(node, grads):
    """Raises if a rule returned NaN."""
    if not is_anomaly_check_nan_enabled():
        return
    for i, g in enumerate(grads if isinstance(grads, tuple) else (grads,)):
        if isinstance(g, Tensor) and g.dtype.kind in "fc" and bool((g != g).any()):
            raise RuntimeError(f"Function '{node_name(node)}' returned nan values in its {i}th output.")
