"""``verify``: checks a graph, and tells which of the two dialects it is in."""
import functools
import operator

from ptcore._ops import row
from ptcore._ops.table.ids import op_name
from ptcore._tensor import Tensor
from ptcore.fx.node import OpFunction, attribute_at


def verify(graph):
    """Checks a graph, and returns its dialect.

    Parameters
    ----------
    graph : Graph

    Returns
    -------
    str
        "rows" where each call is one of a row of the op table that is run by a kernel, on tensors alone: what
        :func:`ptcore.fx.experimental.proxy_tensor.make_fx` gives. "python" for all else: functions of Python, methods,
        modules.

    Raises
    ------
    RuntimeError
        If the graph fails ``lint``, or has no output.

    Examples
    --------
    >>> import ptcore
    >>> from ptcore.fx import symbolic_trace, verify
    >>> from ptcore.fx.experimental.proxy_tensor import make_fx
    >>> verify(symbolic_trace(ptcore.nn.Sequential(ptcore.nn.ReLU())).graph)
    'python'
    >>> verify(make_fx(ptcore.nn.ReLU())(ptcore.ones(2)).graph)
    'rows'
    """
    graph.lint()
    if not graph.find_nodes(op="output"):
        raise RuntimeError("verify: the graph has no output")
    return "rows" if all([_is_row(graph, node) for node in graph.nodes]) else "python"


def _is_row(graph, node):
    if node.op in ("placeholder", "output"):
        return not node.target.startswith("*")
    if node.op == "get_attr":
        return graph.owning_module is not None and isinstance(attribute_at(graph.owning_module, node.target), Tensor)
    if node.op != "call_function":
        return False
    if type(node.target) is OpFunction:
        name = op_name(node.target.op)          # a graph has as_strided as the program calls it
        return row(name).kind != "composite" or name == "as_strided"
    if node.target is operator.getitem:
        return isinstance(node.args[1], int)
    return node.target in of_sizes()


@functools.cache
def of_sizes():
    """The functions that nodes apply to sizes."""
    from ptcore._sizes.expressions import FUNCTIONS
    from ptcore.fx.experimental.sizes import check_guards, sym_dim, sym_size
    return {sym_dim, sym_size, check_guards, *FUNCTIONS.values()}
