"""``symbolic_trace`` of every module of the class table: the graph gives what the module gives, bit for bit."""
import pytest
from _module_table import MODULES, OTHERS, RANDOM, as_made, given

import ptcore as pt
from ptcore import fx, nn
from ptcore._trees.tree import tree_leaves

# Modules that ask how many dims or elements their input has and branch on it: what is traced has no number of dims.
BRANCHES = {
    *[f"{lazy}{kind}Norm{n}d" for lazy in ("", "Lazy") for kind in ("Batch", "Instance") for n in (1, 2, 3)],
    "SyncBatchNorm", "Softmax2d", "CrossMapLRN2d", "AdaptiveLogSoftmaxWithLoss",
    *[f"{lazy}ConvTranspose{n}d" for lazy in ("", "Lazy") for n in (1, 2, 3)],
    *[f"CircularPad{n}d" for n in (1, 2, 3)],
    "RNN", "GRU", "LSTM", "RNNCell", "GRUCell", "LSTMCell", "MultiheadAttention", "Transformer"}
# Its masks are arguments with a default: they are traced, and what is no tensor is no mask.
MASKS = {"TransformerEncoderLayer"}


def equal(a, b):
    """Whether two results are the same, bit for bit."""
    a, b = tree_leaves(a), tree_leaves(b)
    return len(a) == len(b) and all(
        x.dtype is y.dtype and x.shape == y.shape and bool(((x == y) | ((x != x) & (y != y))).all())
        if isinstance(x, pt.Tensor) else x == y for x, y in zip(a, b))


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("name", sorted(MODULES))
@pytest.mark.filterwarnings("ignore")
def test_the_graph_is_the_module(name, training):
    module, args = as_made(name, training), given(name)
    if name in BRANCHES:
        with pytest.raises(fx.TraceError, match=r"before the program\s+runs"):
            fx.symbolic_trace(module)
        return
    if name in MASKS:
        with pytest.raises(TypeError, match="must be a Tensor or None, got Proxy"):
            fx.symbolic_trace(module)
        return
    graph = fx.symbolic_trace(module)
    graph.graph.lint()
    pt.manual_seed(0)
    expected = module(*args)
    pt.manual_seed(0)
    assert equal(graph(*args), expected)
    if training and name.startswith(RANDOM):
        pt.manual_seed(0)
        assert equal(fx.Interpreter(graph).run(*args), expected)


CALLS = {1: lambda self, x: self.part(x), 2: lambda self, x, y: self.part(x, y),
         3: lambda self, x, y, z: self.part(x, y, z), 4: lambda self, x, y, z, w: self.part(x, y, z, w)}


@pytest.mark.parametrize("name", sorted(MODULES))
@pytest.mark.filterwarnings("ignore")
def test_inside_of_a_program(name):
    """Modules of ``nn`` are one node of what calls them, whatever they ask of their inputs."""
    module, args = as_made(name, False), given(name)

    class Program(nn.Module):
        forward = CALLS[len(args)]

        def __init__(self):
            super().__init__()
            self.part = module
    graph = fx.symbolic_trace(Program())
    assert [(n.op, n.target) for n in graph.graph.nodes if n.op != "placeholder"] == [
        ("call_module", "part"), ("output", "output")]
    assert equal(graph(*args), module(*args))


def test_containers():
    """What has no input of its own: through what it holds."""
    assert set(OTHERS) & set(MODULES) == set()

    class Program(nn.Module):
        def __init__(self):
            super().__init__()
            self.list, self.dict = nn.ModuleList([nn.Linear(4, 4)]), nn.ModuleDict({"act": nn.ReLU()})
            self.parameters_ = nn.ParameterList([pt.ones(4)])
            self.named = nn.ParameterDict({"b": pt.full((4,), 2.0)})
            self.inner = nn.Sequential(nn.Linear(4, 4), nn.Tanh())

        def forward(self, x):
            for layer in self.list:
                x = layer(x) * self.parameters_[0]
            return self.inner(self.dict["act"](x) + self.named["b"])
    program, x = Program(), pt.randn(3, 4)
    graph = fx.symbolic_trace(program)
    assert equal(graph(x), program(x))
    assert [str(n.target) for n in graph.graph.nodes if n.op in ("call_module", "get_attr")] == [
        "list.0", "parameters_.0", "dict.act", "named.b", "inner.0", "inner.1"]
    layer = nn.TransformerEncoderLayer(4, 2, 8, dropout=0.0)
    for module in (nn.TransformerEncoder(layer, 2, enable_nested_tensor=False),
                   nn.TransformerDecoder(nn.TransformerDecoderLayer(4, 2, 8, dropout=0.0), 2)):
        class Holds(nn.Module):
            def __init__(self, module=module):
                super().__init__()
                self.part = module

            def forward(self, x, memory):
                return self.part(x) if isinstance(self.part, nn.TransformerEncoder) else self.part(x, memory)
        holds, x = Holds().eval(), pt.randn(3, 2, 4)
        assert equal(fx.symbolic_trace(holds)(x, x), holds(x, x))
