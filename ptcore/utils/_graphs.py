"""The graph of a model for TensorBoard: the calls of one run, grouped by module.

The model runs once on its input, and each call of a function becomes a node. The name of a node begins with the modules
that make the call. Its inputs are the nodes that made its tensors.
"""
from ptcore import no_grad
from ptcore._overrides import TorchFunctionMode
from ptcore._tensor import Tensor
from ptcore._trees.tree import tree_leaves
from ptcore.utils._summaries import integer, length

__all__ = ["graph_of"]

# Calls that make no node: they give no tensor, or the same tensor again.
_LEFT_OUT = {"__get__", "__set__", "__len__", "__repr__", "detach", "requires_grad_"}


class _Recorder(TorchFunctionMode):
    """Makes a node for each call that gives tensors. ``nodes`` are (name, op, inputs, shapes)."""

    def __init__(self):
        super().__init__()
        self.nodes, self.scopes, self.used = [], [], {}
        self.made_by = {}  # id of a tensor -> (name of its node, the tensor, kept alive so that its id stays unique)

    def name(self, word):
        path = "/".join([*self.scopes, word])
        count = self.used[path] = self.used.get(path, -1) + 1
        return f"{path}_{count}" if count else path

    def add(self, word, op, inputs, outputs, name=None):
        name = name or self.name(word)
        self.nodes.append((name, op, inputs, [tuple(t.shape) for t in outputs]))
        for t in outputs:
            self.made_by[id(t)] = name, t

    def sources(self, values):
        """The nodes that made the tensors; a tensor without one becomes a constant."""
        found = []
        for t in tree_leaves(values):
            if isinstance(t, Tensor):
                if id(t) not in self.made_by:
                    self.add("constant", "Constant", [], [t])
                found.append(self.made_by[id(t)][0])
        return found

    def __torch_function__(self, function, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        result = function(*args, **kwargs)
        word = getattr(function, "__name__", type(function).__name__)
        # A write by index returns nothing; later reads of the tensor refer to it.
        outputs = [t for t in tree_leaves(args[0] if word == "__setitem__" else result) if isinstance(t, Tensor)]
        if outputs and word not in _LEFT_OUT:
            word = word.strip("_") or word
            self.add(word, f"aten::{word}", self.sources((args, kwargs)), outputs)
        return result


def _enter(recorder, scope):
    def enter(module, args):
        recorder.scopes.append(scope)
    return enter


def _leave(recorder):
    def leave(module, args, result):
        recorder.scopes.pop()
    return leave


def _record(model, inputs):
    """The nodes of one call."""
    recorder = _Recorder()
    for k, t in enumerate(t for t in tree_leaves(inputs) if isinstance(t, Tensor)):
        recorder.add("", "IO Node", [], [t], f"input/{k}")
    handles, names = [], {"": type(model).__name__}
    try:
        for path, module in model.named_modules():
            above, _, own = path.rpartition(".")
            scope = f"{type(module).__name__}[{own}]" if path else names[""]
            names[path] = f"{names[above]}/{scope}" if path else scope
            for name, t in [*module.named_parameters(recurse=False), *module.named_buffers(recurse=False)]:
                recorder.add("", "Parameter", [], [t], f"{names[path]}/{name}")
            handles.append(module.register_forward_pre_hook(_enter(recorder, scope)))
            handles.append(module.register_forward_hook(_leave(recorder), always_call=True))
        with no_grad(), recorder:
            result = model(*inputs)
    finally:
        for handle in handles:
            handle.remove()
    recorder.scopes.clear()
    for k, t in enumerate(t for t in tree_leaves(result) if isinstance(t, Tensor)):
        recorder.nodes.append((f"output/{k}", "IO Node", recorder.sources(t), [tuple(t.shape)]))
    return recorder.nodes


def _node(name, op, inputs, shapes):
    """A ``NodeDef``."""
    sizes = b"".join(length(7, b"".join(length(2, integer(1, n)) for n in shape)) for shape in shapes)
    attributes = length(5, length(1, "_output_shapes") + length(2, length(1, sizes)))
    return length(1, length(1, name) + length(2, op) + b"".join(length(3, i) for i in inputs) + attributes)


def graph_of(model, input_to_model, verbose=False):
    """A ``GraphDef`` of a model.

    Parameters
    ----------
    model : Module
    input_to_model : Tensor or tuple
        The arguments of the model.
    verbose : bool
        Whether the nodes are printed.
    """
    inputs = tuple(input_to_model) if isinstance(input_to_model, (tuple, list)) else (input_to_model,)
    nodes = _record(model, inputs)
    if verbose:
        for name, op, sources, shapes in nodes:
            print(f"{name}: {op}({', '.join(sources)}) -> {', '.join(map(str, shapes))}")
    return b"".join(_node(*node) for node in nodes) + length(4, integer(1, 22))
