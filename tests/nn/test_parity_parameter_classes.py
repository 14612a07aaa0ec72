"""Subclasses of Parameter and of Tensor in modules, in gradients and in functions that ask for overrides."""
import copy
import importlib

import pytest
from _two_libraries import attempt, same, values

import ptcore as pt

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.parity


def kind(x):
    return type(x).__name__


def classes(m):
    """A subclass of Parameter as libraries of quantised weights have it, and one of Tensor."""
    class Quantised(m.nn.Parameter):
        def __new__(cls, data=None, requires_grad=True, state=None):
            made = m.Tensor._make_subclass(cls, m.empty(0) if data is None else data, requires_grad)
            made.state = state
            return made

        def to(self, *args, **kwargs):
            return Quantised(super().to(*args, **kwargs), self.requires_grad, "new")

        def __deepcopy__(self, memo):
            return Quantised(self.data.clone(), self.requires_grad, copy.deepcopy(self.state, memo))

    class Plain(m.Tensor):
        pass
    return Quantised, Plain


def conversions(m):
    """A conversion keeps the parameter and its attributes, whatever class its function returns."""
    Quantised, Plain = classes(m)
    found = []
    for change in (lambda net: net.to(m.float64), lambda net: net.double(), lambda net: net.bfloat16(),
                   lambda net: net._apply(lambda t: t.as_subclass(Plain)), lambda net: net._apply(lambda t: t * 2),
                   lambda net: net.requires_grad_(False), lambda net: net.to_empty(device="cpu"),
                   lambda net: net.share_memory(), lambda net: net.type(m.float64)):
        net = m.nn.Linear(2, 2)
        net.weight = Quantised(values(m, 2, 2), state="old")
        net.bias = m.nn.Parameter(values(m, 2).as_subclass(Plain))
        net.register_buffer("b", values(m, 2).as_subclass(Plain))
        net.register_parameter("q", Quantised(values(m, 2), False, 1))
        weight, bias, q = net.weight, net.bias, net.q
        weight.grad = m.ones(2, 2)
        result = attempt(lambda change=change, net=net: change(net) is net)
        found.append((result, net.weight is weight, net.bias is bias, net.q is q, kind(net.weight), kind(net.bias),
                      kind(net.b), net.weight.state, net.q.state, net.weight.dtype, net.b.dtype, net.q.requires_grad,
                      net.weight.grad is not None and net.weight.grad.dtype))
    return found


def copies_and_states(m):
    Quantised, _ = classes(m)
    net = m.nn.Linear(2, 2)
    net.weight = Quantised(values(m, 2, 2), state={"scale": 2})
    found = [kind(net.weight + 1), kind(net.weight.detach()), kind(net.weight.data), kind(net.state_dict()["weight"]),
             isinstance(net.weight, m.nn.Parameter), list(net._parameters)]
    other = copy.deepcopy(net).double()
    found += [kind(other.weight), other.weight.state, other.weight.dtype]
    other.load_state_dict({"weight": m.ones(2, 2), "bias": m.ones(2)})
    found += [kind(other.weight), other.weight]
    other.load_state_dict({"weight": m.ones(2, 2), "bias": m.ones(2)}, assign=True)
    return found, kind(other.weight)


def conversions_of_lazy_modules(m):
    found = []
    for net in (m.nn.LazyLinear(2), m.nn.LazyBatchNorm1d()):
        for change in (net.double, lambda net=net: net.to("meta")):
            change()
            found += [(kind(t), t.dtype, t.device.type) for t in (*net.parameters(), *net.buffers())]
    return found


class Foreign:
    """Holds a tensor, is none."""

    def __init__(self, tensor):
        self.tensor = tensor

    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        def inner(x):
            if isinstance(x, Foreign):
                return x.tensor
            return type(x)(map(inner, x)) if isinstance(x, (list, tuple)) else x
        return "foreign", function(*inner(args), **(kwargs or {}))


def gradients(m):
    """``autograd.grad`` asks the classes of outputs and inputs, and modes."""
    _, Plain = classes(m)
    seen = []

    class Noting(m.Tensor):
        @classmethod
        def __torch_function__(cls, function, types, args=(), kwargs=None):
            seen.append((function.__name__, sorted(t.__name__ for t in types), sorted(kwargs or {})))
            return super().__torch_function__(function, types, args, kwargs or {})
    grad = m.autograd.grad
    x, y, p = values(m, 2).as_subclass(Plain).requires_grad_(), values(m, 2).requires_grad_(), m.nn.Parameter(m.ones(2))
    z = values(m, 2).as_subclass(Noting).requires_grad_()
    found = [grad((x * y * p).sum(), (x, y, p)), grad((y * p).sum(), [y, p]),
             grad((x * 2).sum().as_subclass(m.Tensor), x), grad((x * y).sum(), {"x": x, "y": y}),
             grad((y * 2).sum(), (t for t in (y,))), grad((x * 2).sum(), x, create_graph=True),
             grad((x * 2).sum(), p, allow_unused=True), grad(x * 2, x, x * 1)]
    total = (z * y).sum()
    seen.clear()
    found += [grad(total, (z, y)), [call for call in seen if call[0] == "grad"]]
    total = Foreign((y * 3).sum())
    found += [attempt(grad, total, y), attempt(grad, [total], [y]), attempt(grad, (y * 2).sum(), Foreign(y)),
              attempt(grad, (y * 2).sum(), z), attempt(grad, (y * 2).sum(), [])]

    class Mode(importlib.import_module(f"{m.__name__}.overrides").TorchFunctionMode):
        def __torch_function__(self, function, types, args=(), kwargs=None):
            seen.append(function.__name__)
            return function(*args, **(kwargs or {}))
    total = (y * 2).sum()
    seen.clear()
    with Mode():
        found.append(grad(total, y))
    return found, list(seen)


def types_of_a_call(m):
    """A function in Python names Tensor among the types; a row does not."""
    overrides = importlib.import_module(f"{m.__name__}.overrides")

    def named(cls, function, types, args=(), kwargs=None):
        return [t.__name__ for t in types]
    Sub = type("Sub", (m.Tensor,), {"__torch_function__": classmethod(named)})
    Other = type("Other", (), {"__torch_function__": classmethod(named)})
    Neither = type("Neither", (), {"__torch_function__": classmethod(lambda *args, **kwargs: NotImplemented)})

    def f(*args):
        return overrides.handle_torch_function(f, args, *args) if overrides.has_torch_function(args) else "none"
    t, s, o, n, p = m.ones(1), m.ones(1).as_subclass(Sub), Other(), Neither(), m.nn.Parameter(m.ones(1))
    calls = ((t,), (t, o), (o, t), (t, s), (s, t), (s, o, t), (n, t), (t, n, o), (p, o), (p, t), (1, o, "x"), (n, s, t))
    return [attempt(f, *args) for args in calls], [attempt(m.add, *args) for args in ((t, o), (o, t), (t, s), (s, o))]


def padded_sequences(m):
    pad = m.nn.utils.rnn.pad_sequence
    _, Plain = classes(m)
    return (attempt(pad, [Foreign(m.ones(3)), m.ones(2)]), attempt(pad, [m.ones(2).as_subclass(Plain), m.ones(1)]),
            attempt(pad, [m.ones(2), 3]))


PROGRAMS = [conversions, copies_and_states, conversions_of_lazy_modules, gradients, types_of_a_call, padded_sequences]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_programs(program):
    same(program, pt, torch)
