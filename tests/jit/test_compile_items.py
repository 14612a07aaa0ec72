"""``item()`` under compile: what is only returned ends no graph; what is looked at selects one, as a branch does."""
# ruff: noqa: UP031 - these forms are what is tested
import pytest

import ptcore as pt
from ptcore import nn
from ptcore.jit import compiled as _compile

X = pt.tensor([0.5, -2.0, 3.0])


def plain(x):
    if isinstance(x, pt.Tensor):
        return "tensor", x.tolist()
    if isinstance(x, (list, tuple)):
        return type(x), [plain(y) for y in x]
    if isinstance(x, dict):
        return [(k, plain(v)) for k, v in x.items()]
    return type(x), x


def counted(f, calls, captures, eager=0, **options):
    g = pt.compile(f, **options)
    before = dict(_compile.counts)
    for args in calls:
        assert plain(g(*args)) == plain(f(*args))
    found = {k: n - before[k] for k, n in _compile.counts.items() if k != "raised"}
    assert found == {"captures": captures, "eager": eager}
    return g


CALLS = [(X * k,) for k in range(1, 13)]


def test_what_is_returned_is_one_graph():
    counted(lambda x: x.sum().item(), CALLS, 1, fullgraph=True)
    counted(lambda x: {"sum": x.sum().item(), "all": [x.max().item(), (x.argmax().item(), x * 2)]}, CALLS, 1,
            fullgraph=True)
    found = pt.compiler.explain(lambda x: x.sum().item())(X)
    assert found.graph_count == 1 and not found.break_reasons


def test_kinds_of_numbers():
    def f(x):
        return (x.item(), x.double().item(), x.int().item(), (x > 0).item(), (x + 1j).item(), x.half().item(),
                x.bool().logical_not().item())
    counted(f, [(pt.tensor(float(k)),) for k in range(5)] + [(pt.tensor([2.5]),)] * 2, 2, fullgraph=True)


def test_a_helper_returns_it():
    def loss(x):
        value = x.square().mean()
        return value, value.item()

    def f(x):
        value, number = loss(x)
        return value + 1, number
    counted(f, CALLS, 1, fullgraph=True)


def test_it_is_the_value_of_its_time():
    def written(x):
        y = x.clone()
        before = y.sum().item(), y[0].item()
        y.mul_(2)
        y[0] = 7
        return before, y[0].item(), y.sum().item()
    counted(written, CALLS, 1, fullgraph=True)

    def argument(x):
        before = x[0].item()
        x.add_(1)
        return before, x[0].item()
    g = pt.compile(argument, fullgraph=True)
    x, y = pt.zeros(3), pt.zeros(3)
    for _ in range(4):
        assert g(x) == argument(y)


def test_around_a_step():
    def program(compiled):
        pt.manual_seed(0)
        net = nn.Linear(3, 1)
        opt = pt.optim.SGD(net.parameters(), lr=0.1)

        def step(x):
            opt.zero_grad()
            before = net.weight[0, 0].item()
            loss = net(x).square().mean()
            loss.backward()
            norm = nn.utils.clip_grad_norm_(net.parameters(), 0.5)
            opt.step()
            return loss.item(), norm.item(), before, net.weight[0, 0].item()
        call = pt.compile(step, fullgraph=True) if compiled else step
        return [call(X * (k % 3 + 1)) for k in range(12)]
    before = _compile.counts["captures"]
    assert program(True) == program(False) and _compile.counts["captures"] == before + 1


USES = {
    "branch": lambda x, v: x * 2 if v > 0 else x - 1, "truth": lambda x, v: x if v else -x,
    "sum": lambda x, v: (v + 1, x), "negative": lambda x, v: -v, "reflected": lambda x, v: 2 - v,
    "tensor": lambda x, v: x * v, "argument": lambda x, v: x.clamp(max=v), "text": lambda x, v: f"{v:.3f}",
    "percent": lambda x, v: "%.2f" % v, "builtin": lambda x, v: (round(v, 2), abs(v), max(v, 0.0), int(v)),
    "kind": lambda x, v: isinstance(v, float), "is": lambda x, v: v is None, "in": lambda x, v: v in (1.5, 3.0),
    "list": lambda x, v: sum([v, v]), "sorted": lambda x, v: sorted([v, 0.0, 1.0]), "chain": lambda x, v: -5 < v < 5,
    "or": lambda x, v: v or 3.0, "not": lambda x, v: not v, "key": lambda x, v: {v: 1}[v],
    "index": lambda x, v: x[int(v) % 3],
    "method": lambda x, v: v.is_integer(), "unpacked": lambda x, v: [*[v], 1], "power": lambda x, v: v ** 2,
    "conditional": lambda x, v: [y for y in [v, 2.0] if y > 1], "call": lambda x, v: (lambda a: a * 3)(v),
    "same": lambda x, v: v == x.sum().item(),
}


@pytest.mark.parametrize("name", USES)
def test_what_is_looked_at_selects(name):
    """One value after another: the first four are met twice."""
    use = USES[name]

    def f(x):
        return use(x, x.sum().item())
    g = pt.compile(f)
    for k in [1, 2, -1, 0, 1, 2, -1, 0]:
        assert plain(g(X * k)) == plain(f(X * k)), k


def test_fullgraph_raises_where_it_is_looked_at():
    @pt.compile(fullgraph=True)
    def f(x):
        v = x.sum().item()
        if v > 0:
            return v
        return x
    with pytest.raises(RuntimeError, match="reads the value of a tensor"):
        f(X)


def test_errors_are_those_of_eager_calls():
    f = pt.compile(lambda x: x.item())
    for _ in range(2):
        with pytest.raises(RuntimeError, match="item"):
            f(X)
    assert f(pt.tensor([[3]])) == 3
