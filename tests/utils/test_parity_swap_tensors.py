"""``utils.swap_tensors`` and conversions of modules by it, beside PyTorch."""
import importlib

import pytest
from _two_libraries import attempt, filled, same, values

import ptcore as pt

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.parity


def swapping(m, f):
    """The outcome of a call while conversions exchange parameters."""
    future = importlib.import_module(f"{m.__name__}.__future__")
    future.set_swap_module_params_on_conversion(True)
    try:
        return attempt(f)
    finally:
        future.set_swap_module_params_on_conversion(False)


def tensors(m):
    a, b, p = values(m, 2, 3).t(), m.arange(4), m.nn.Parameter(m.ones(2))
    p.grad, p.note = m.zeros(2), 1
    m.utils.swap_tensors(a, b)
    m.utils.swap_tensors(b, p)
    return a, b, p, b.grad, b.note, hasattr(p, "note"), p.stride(), attempt(m.utils.swap_tensors, a, a)


def hooks(m):
    seen, a, b = [], m.ones(2, requires_grad=True), m.ones(2, requires_grad=True)
    a.register_hook(lambda g: seen.append("a"))
    a.register_post_accumulate_grad_hook(lambda leaf: seen.append("after a"))
    m.utils.swap_tensors(a, b)
    (a * 2).sum().backward()
    seen.append("then b")
    (b * 3).sum().backward()
    return seen, a.grad, b.grad


def optimizers(m):
    net = filled(m, m.nn.Linear(2, 2))
    optimizer = m.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    for new in (None, m.nn.Parameter(m.ones(2, 2))):
        if new is not None:
            m.utils.swap_tensors(net.weight, new)
        optimizer.zero_grad()
        net(values(m, 1, 2)).sum().backward()
        optimizer.step()
    return net.weight, optimizer.param_groups[0]["params"][0] is net.weight


def conversions(m):
    found = []
    for convert in (lambda net: net.double(), lambda net: net.to("meta"), lambda net: net.bfloat16(),
                    lambda net: net.float(), lambda net: net.requires_grad_(False).double(),
                    lambda net: net._apply(lambda t: t * 2), lambda net: net._apply(lambda t: t),
                    lambda net: net._apply(lambda t: t[:1])):
        net = filled(m, m.nn.Sequential(m.nn.Linear(2, 2), m.nn.BatchNorm1d(2)))
        net[1].weight = net[0].bias
        weight = net[0].weight
        weight.note = 3
        net(values(m, 3, 2)).sum().backward()
        grad = weight.grad
        result = swapping(m, lambda convert=convert, net=net: convert(net) and None)
        found.append((result, weight is net[0].weight, weight.grad is grad, net[1].weight is net[0].bias,
                      hasattr(weight, "note"), [(p.dtype, p.is_meta, p.requires_grad) for p in net.parameters()],
                      [p.grad is None or (p.grad.dtype, p.grad.is_meta) for p in net.parameters()]))
    return found


def conversions_beside_a_graph(m):
    found = []
    for needs in (False, True):
        net, x = filled(m, m.nn.Linear(2, 2)), values(m, 3, 2).requires_grad_(needs)
        loss = net(x).sum()
        result = swapping(m, lambda net=net: net.double() and None)
        found.append((result, net.weight.dtype))
        if not needs:
            found.append(attempt(loss.backward))
            net(x.double()).sum().backward()
            found.append(net.weight.grad)
    return found


def states(m):
    found = []
    for assign in (False, True):
        for state in ({"weight": m.ones(2, 2), "bias": m.zeros(2)},
                      {"weight": m.ones(2, 2).double(), "bias": m.nn.Parameter(m.zeros(2), False)},
                      {"weight": m.ones(3, 2), "bias": m.zeros(2)}, {"weight": m.ones(2, 2), "more": m.ones(1)}):
            net = filled(m, m.nn.Linear(2, 2))
            weight = net.weight
            weight.note = 1
            result = swapping(m, lambda net=net, state=state, assign=assign: list(net.load_state_dict(
                state, assign=assign)))
            found.append((result, weight is net.weight, hasattr(weight, "note"), net.weight, net.bias,
                          type(state["weight"]).__name__))
    net = m.nn.BatchNorm1d(2)
    mean = net.running_mean
    swapping(m, lambda: net.load_state_dict({k: v + 1 for k, v in net.state_dict().items()}))
    return found, mean is net.running_mean, mean


def states_beside_a_graph(m):
    """Graphs and views from before the call, and from a hook that runs within it; a parameter of two modules."""
    found = []
    for when in ("never", "before", "view", "gradient", "hook", "shared"):
        net = filled(m, m.nn.Sequential(m.nn.Linear(2, 2), m.nn.Tanh(), m.nn.Linear(2, 2), m.nn.BatchNorm1d(2)))
        kept, x = [], values(m, 3, 2).requires_grad_()
        if when == "before":
            kept.append(net(x))
        elif when == "view":
            kept.append(net[2].bias[:1])
        elif when == "gradient":
            net(x).pow(2).sum().backward()
        elif when == "shared":
            net[2].weight = net[0].weight
        elif when == "hook":
            net[2].register_load_state_dict_pre_hook(lambda *args, net=net, kept=kept, x=x: kept.append(net(x)))
        weights, state = list(net.parameters()), {key: t + 1 for key, t in net.state_dict().items()}
        result = swapping(m, lambda net=net, state=state: list(net.load_state_dict(state)))
        found.append((when, result, [a is b for a, b in zip(weights, net.parameters())], list(net.parameters())[:2]))
    return found


def what_module_load_returns(m):
    class Tenfold(m.Tensor):
        def module_load(self, other, assign=False):
            return (other * 10).as_subclass(m.Tensor).detach()

    class Same(m.Tensor):
        def module_load(self, other, assign=False):
            return other
    found = []
    for cls in (Tenfold, Same):
        net = m.nn.Module()
        net.register_buffer("b", m.ones(2).as_subclass(cls))
        result = swapping(m, lambda net=net: list(net.load_state_dict({"b": m.ones(2)})))
        found.append((result, type(net.b).__name__, net.b.tolist()))
    return found


@pytest.mark.parametrize("program", [tensors, hooks, optimizers, conversions, conversions_beside_a_graph, states,
                                     states_beside_a_graph,
                                     what_module_load_returns], ids=lambda f: f.__name__)
def test_programs(program):
    same(program, pt, torch)
