"""``fx`` beside torch's: names and targets of nodes, code, and results of what is traced, changed and run."""
import inspect

import numpy as np
import pytest

import ptcore as pt
import ptcore.fx

torch = pytest.importorskip("torch")
pytest.importorskip("torch.fx")

pytestmark = pytest.mark.parity


def networks(m):
    """{name: (module, inputs)} made of one library's parts."""
    nn, F = m.nn, m.nn.functional
    found = {}

    def enter(*inputs):
        def entered(cls):
            found[cls.__name__] = cls(), [m.asarray(x) for x in inputs]
            return cls
        return entered
    rng = np.random.default_rng(0)
    x = rng.normal(size=(2, 4)).astype(np.float32)
    image = rng.normal(size=(2, 3, 8, 8)).astype(np.float32)

    @enter(x)
    class Linear(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(4, 5)

        def forward(self, x):
            return m.relu(self.linear(x)) + 1

    @enter(x)
    class Parameters(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight, self.bias = nn.Parameter(m.ones(5, 4)), nn.Parameter(m.zeros(5))
            self.register_buffer("scale", m.full((5,), 2.0))

        def forward(self, x):
            return F.linear(x, self.weight, self.bias) * self.scale

    @enter(image)
    class Convolution(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv1, self.bn1, self.relu = nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4).eval(), nn.ReLU()
            self.pool = nn.MaxPool2d(2)

        def forward(self, x):
            x = self.pool(self.relu(self.bn1(self.conv1(x))))
            return m.flatten(x, 1).sum(dim=1, keepdim=True)

    @enter(image)
    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.body = nn.Sequential(nn.Conv2d(3, 3, 3, padding=1), nn.ReLU(), nn.Conv2d(3, 3, 1))

        def forward(self, x):
            return F.relu(self.body(x) + x)

    @enter(x)
    class Methods(nn.Module):
        def forward(self, x):
            y = x.view(2, 2, 2).transpose(1, 2).contiguous()
            return y.reshape(x.size(0), -1).softmax(-1).clamp(min=0.1).mean()

    @enter(x, x)
    class Operators(nn.Module):
        def forward(self, x, y):
            z = -x + y * 2 - 3 / (y.abs() + 1) ** 2
            return (z > 0) & ~(y == x), 2 - z @ y.t(), abs(z) // 1

    @enter(x)
    class Indices(nn.Module):
        def forward(self, x):
            a, b = x.split(2, dim=1)
            return x[:, 1:3] + a[0], b[..., None], x[0, 1], x.shape[0]

    @enter(x)
    class Nested(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.ModuleList([nn.Linear(4, 4), nn.Linear(4, 4)])
            self.norm = nn.LayerNorm(4)

        def forward(self, x):
            for layer in self.layers:
                x = self.norm(m.tanh(layer(x)) + x)
            return {"out": x, "parts": [x.sum(), (x * 2, None)]}

    @enter(x)
    class Defaults(nn.Module):
        def forward(self, x, scale=2.0, *, bias=None):
            return x * scale if bias is None else x

    @enter(x)
    class Functions(nn.Module):
        def forward(self, x):
            y = m.cat([x, x], dim=1)
            y = F.dropout(F.layer_norm(y, (8,)), 0.5, False)
            return m.stack((y, y)).max(dim=0)[0], F.pad(x, (1, 1)), m.einsum("ij,kj->ik", x, x)

    @enter(x)
    class Twice(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(4, 4)

        def forward(self, x):
            return self.linear(self.linear(x)).add(1).add(2).add(3)

    @enter(x)
    class Constants(nn.Module):
        def __init__(self):
            super().__init__()
            self.offset = m.ones(4)

        def forward(self, x):
            return x + self.offset + m.ones(4)

    @enter(np.array([[1, 2, 0], [3, 1, 1]]))
    class Language(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed, self.out = nn.Embedding(5, 4), nn.Linear(4, 5)
            self.act = nn.GELU()

        def forward(self, tokens):
            x = self.embed(tokens)
            weights = (x @ x.transpose(-2, -1) / 2).softmax(dim=-1)
            return F.log_softmax(self.out(self.act(weights @ x)), dim=-1)

    @enter(x)
    class Writes(nn.Module):
        def forward(self, x):
            y = x.clone()
            y += 1
            y.mul_(2)
            return y.add_(x)

    @enter(x)
    class Branches(nn.Module):
        def forward(self, x, flag: bool = True):
            if self.training:
                return x * 2
            return x * 3

    @enter(x, x)
    class Kwargs(nn.Module):
        def forward(self, x, y):
            return m.add(x, other=y, alpha=2), F.softmax(input=x, dim=0), m.sum(input=x, dim=(0, 1))

    @enter(image)
    class Pools(nn.Module):
        def __init__(self):
            super().__init__()
            self.pool, self.flat = nn.AdaptiveAvgPool2d(1), nn.Flatten()

        def forward(self, x):
            return self.flat(self.pool(F.interpolate(x, scale_factor=2.0))), F.avg_pool2d(x, 2), F.max_pool2d(x, 2)

    @enter(x)
    class Unused(nn.Module):
        def forward(self, x):
            x.sin()
            return x.cos()

    @enter(x)
    class Same(nn.Module):
        def forward(self, input):
            return input

    @enter(x)
    class Gates(nn.Module):
        def __init__(self):
            super().__init__()
            self.ih, self.hh = nn.Linear(4, 12), nn.Linear(4, 12)

        def forward(self, x):
            r, z, n = (self.ih(x) + self.hh(x)).chunk(3, 1)
            return m.sigmoid(r) * m.tanh(n) + m.sigmoid(z)
    return found


OURS, THEIRS = networks(pt), networks(torch)
# torch writes out all arguments of its functions in nn.functional, and shows what they are made of.
WITHOUT_FUNCTIONAL = ["Linear", "Convolution", "Methods", "Indices", "Nested", "Defaults", "Twice", "Writes",
                      "Branches", "Unused", "Same", "Gates", "Constants"]


def target_of(node, top):
    """The target of a node without the library's name."""
    if isinstance(node.target, str):
        return node.target
    return node.target.__name__


def leaves(result):
    if isinstance(result, dict):
        return [x for value in result.values() for x in leaves(value)]
    if isinstance(result, (tuple, list)) and not hasattr(result, "numel"):
        return [x for part in result for x in leaves(part)]
    return [result]


@pytest.mark.parametrize("name", OURS)
def test_networks(name):
    ours, inputs = OURS[name]
    theirs, their_inputs = THEIRS[name]
    ours.load_state_dict({key: pt.from_numpy(value.detach().numpy().copy()) for key,
                          value in theirs.state_dict().items()})
    a, b = pt.fx.symbolic_trace(ours), torch.fx.symbolic_trace(theirs)
    assert [(n.op, n.name, target_of(n, pt)) for n in a.graph.nodes] == [
        (n.op, n.name, target_of(n, torch)) for n in b.graph.nodes]
    if name in WITHOUT_FUNCTIONAL:
        assert [str(n.args) for n in a.graph.nodes] == [str(n.args) for n in b.graph.nodes]
    assert [[user.name for user in n.users] for n in a.graph.nodes] == [
        [user.name for user in n.users] for n in b.graph.nodes]
    a.graph.lint()
    eager = [ours] if name != "Defaults" else []        # a traced argument is never None
    for run in (a, *eager, pt.fx.Interpreter(a).run, pt.fx.Transformer(a).transform()):
        for got, want in zip(leaves(run(*inputs)), leaves(b(*their_inputs))):
            if hasattr(want, "detach"):
                np.testing.assert_allclose(got.detach().numpy(), want.detach().numpy(), rtol=1e-5, atol=1e-6)
            else:
                assert got == want


@pytest.mark.parametrize("name", WITHOUT_FUNCTIONAL)
def test_code(name):
    """The same code, but for the library's name."""
    a, b = pt.fx.symbolic_trace(OURS[name][0]).code, torch.fx.symbolic_trace(THEIRS[name][0]).code

    def plain(code):
        code = code.replace("ptcore.nn.functional.", "torch.nn.functional.").replace("ptcore.", "torch.")
        return [line.rstrip() for line in code.split("\n") if line.strip()][1:]
    assert plain(a) == plain(b)


@pytest.mark.parametrize("name", ["Graph", "Node", "GraphModule", "Interpreter", "Transformer", "Tracer", "Proxy"])
def test_public_methods(name):
    """Every public method that torch documents is there, with its parameters first in the same order."""
    ours, theirs = getattr(pt.fx, name), getattr(torch.fx, name)
    # Of torch's machinery: code that is run, sizes as proxies. (The names of the other options of texts differ.)
    later = {"set_codegen", "python_code", "print_readable", "format_node", "create_size_node", "create_stride_node",
             "create_storage_offset_node", "materialize_symints", "materialize_symint", "get_fresh_qualname"}
    for method, function in inspect.getmembers(theirs, inspect.isfunction):
        if method.startswith("_") or method in later or function.__module__ is None or "fx" not in function.__module__:
            continue
        own = getattr(ours, method, None)
        assert own is not None, method
        want = [p.name for p in inspect.signature(function).parameters.values()]
        assert [p.name for p in inspect.signature(own).parameters.values()][:len(want)] == want[:len(
            inspect.signature(own).parameters)], method




def _two_towers(m):
    class Towers(m.nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = m.nn.Linear(4, 4), m.nn.Sequential(m.nn.Linear(4, 4), m.nn.ReLU())
            self.scale = m.nn.Parameter(m.ones(4))

        def forward(self, x, y):
            p = m.relu(self.a(x)) * self.scale
            q = self.b(y) + x
            low, high = p.sum(0), q.sum(0)
            return m.tanh(low * high), q, {"p": p}
    return Towers()


@pytest.mark.parametrize("options", [{}, {"keep_original_order": True}, {"keep_original_node_name": True},
                                     {"keep_original_input_name": False}, {"partition_affix": "part"},
                                     {"tuple_return": True}], ids=str)
@pytest.mark.parametrize("of", [
    lambda names: {n: 0 for n in names}, lambda names: {n: int(k > 4) for k, n in enumerate(names)},
    lambda names: {n: k for k, n in enumerate(names)},
    lambda names: {n: int(n.startswith(("b_", "add", "sum_2"))) * 3 + 7 * int(n == "tanh") + 7 * int(n == "mul_1")
                   for n in names}], ids=["one", "two", "each", "towers"])
def test_split_module(of, options):
    import torch.fx.passes.split_module as theirs

    from ptcore.fx.passes import split_module as ours
    found = []
    x, y = np.random.default_rng(3).normal(size=(2, 5, 4)).astype(np.float32)
    state = _two_towers(pt).state_dict()
    for m, split in ((pt, ours.split_module), (torch, theirs.split_module)):
        net = _two_towers(m)
        net.load_state_dict({k: m.asarray(np.asarray(v)) for k, v in state.items()})
        traced = m.fx.symbolic_trace(net)
        names = [n.name for n in traced.graph.nodes if n.op not in ("placeholder", "get_attr", "output")]
        place, renamed = of(names), {}
        parts = split(traced, net, lambda node, place=place: place[node.name], renamed, **options)
        parts.graph.lint()
        result = parts(m.asarray(x), m.asarray(y))
        arrays = [np.asarray(a.detach()) for a in (*result[:2], result[2]["p"])]
        shape = {name: [(n.op, n.name) for n in part.graph.nodes] for name, part in parts.named_children()
                 if isinstance(part, m.fx.GraphModule)}
        found.append((arrays, [(n.op, n.name, [a.name for a in n.all_input_nodes]) for n in parts.graph.nodes], shape,
                      renamed))
    for a, b in zip(found[0][0], found[1][0]):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
    assert found[0][1:] == found[1][1:]
