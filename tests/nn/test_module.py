"""Module: registration, iteration, modes, conversion, copies, text."""

import contextlib
import copy
import gc
import pickle
import weakref

import numpy as np
import pytest

import ptcore as pt
from ptcore import nn

pytestmark = pytest.mark.core


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(4, 3)
        self.norm = nn.LayerNorm(3)
        self.scale = nn.Parameter(pt.full((3,), 2.0))
        self.register_buffer("steps", pt.zeros(1))
        self.register_buffer("scratch", pt.ones(2), persistent=False)
        self.nothing = None

    def forward(self, x):
        return self.norm(self.first(x)) * self.scale


def names(pairs):
    return [name for name, _ in pairs]


def test_registration_and_iteration():
    net = Net()
    assert names(net.named_parameters()) == [
        "scale", "first.weight", "first.bias", "norm.weight", "norm.bias",
    ]  # fmt: skip
    assert names(net.named_buffers()) == ["steps", "scratch"]
    assert names(net.named_children()) == ["first", "norm"]
    assert names(net.named_modules(prefix="net")) == ["net", "net.first", "net.norm"]
    assert names(net.named_parameters(recurse=False)) == ["scale"]
    assert list(net.state_dict()) == [
        "scale", "steps", "first.weight", "first.bias", "norm.weight", "norm.bias",
    ]  # fmt: skip
    assert net.first.weight is net._modules["first"]._parameters["weight"]


def test_shared_parameter_is_listed_once():
    net = Net()
    net.second = nn.Linear(4, 3)
    net.second.weight = net.first.weight
    assert len(list(net.parameters())) == 6
    assert len(list(net.named_parameters(remove_duplicate=False))) == 7
    net.again = net.first
    assert names(net.named_children()).count("again") == 0
    assert "again" in names(net.named_modules(remove_duplicate=False))


@pytest.mark.parametrize("registry", ["_parameters", "_buffers", "_modules"])
def test_attributes_are_what_the_tables_hold(registry):
    def value():
        return nn.Identity() if registry == "_modules" else nn.Parameter(pt.ones(1))

    owner = nn.Module()
    table = getattr(owner, registry)
    assert type(table) is dict
    a, b, c, d = (value() for _ in range(4))
    table["a"] = a
    table.update({"b": b}, c=c)
    assert table.setdefault("d", d) is d
    assert owner.a is a
    assert owner.b is b
    assert owner.c is c
    assert owner.d is d
    table |= {"a": b}
    assert owner.a is b
    assert table.pop("a") is b
    assert table.pop("absent", None) is None
    assert table.popitem() == ("d", d)
    del table["b"]
    assert not any(hasattr(owner, name) for name in "abd")
    table.clear()
    assert not hasattr(owner, "c")
    setattr(owner, registry, {"e": a})
    assert owner.e is a
    assert "e" not in vars(owner)


def test_attribute_changes_its_kind():
    net = nn.Module()
    net.x = 3
    net.x = nn.Parameter(pt.ones(1))
    assert names(net.named_parameters()) == ["x"]
    with pytest.raises(TypeError, match=r"cannot assign .* as parameter 'x'"):
        net.x = nn.Identity()
    del net.x
    net.x = nn.Identity()
    assert names(net.named_parameters()) == []
    assert names(net.named_children()) == ["x"]
    net.x = None
    assert net.x is None
    assert net._modules == {"x": None}
    del net.x
    assert not hasattr(net, "x")
    net.register_buffer("b", None)
    net.b = pt.ones(2)
    assert names(net.named_buffers()) == ["b"]
    net.c = nn.Buffer(pt.zeros(1), persistent=False)
    assert list(net.state_dict()) == ["b"]
    net.register_parameter("p", None)
    assert net.p is None
    with pytest.raises(TypeError, match="cannot assign"):
        net.p = pt.ones(1)
    with pytest.raises(TypeError, match="cannot assign"):
        net.b = 3


def test_bad_registration():
    net = Net()
    with pytest.raises(KeyError, match="already exists"):
        net.register_parameter("forward", None)
    with pytest.raises(KeyError, match=r'contain "\."'):
        net.register_buffer("a.b", None)
    with pytest.raises(KeyError, match="empty"):
        net.add_module("", None)
    with pytest.raises(TypeError, match="should be a string"):
        net.register_buffer(3, None)
    with pytest.raises(TypeError, match="not a Module"):
        net.add_module("m", 3)
    with pytest.raises(TypeError, match="cannot assign"):
        net.register_parameter("q", pt.ones(1))
    written = nn.Parameter(pt.ones(1), requires_grad=False)
    written.mul_(pt.ones(1, requires_grad=True))
    with pytest.raises(ValueError, match="non-leaf"):
        net.register_parameter("q", written)
    with pytest.raises(AttributeError, match="has no attribute 'q'"):
        net.q  # noqa: B018
    with pytest.raises(NotImplementedError, match="forward"):
        nn.Module()(1)

    class Early(nn.Module):
        def __init__(self):
            self.weight = nn.Parameter(pt.ones(1))

    with pytest.raises(AttributeError, match=r"before Module.__init__"):
        Early()
    with pytest.raises(TypeError, match="unexpected keyword argument 'x'"):
        nn.Module(x=1)


def test_call_forms():
    class Sum(nn.Module):
        def forward(self, *args, x=0, **kwargs):
            return sum(args) + 10 * x + 100 * kwargs.get("y", 0)

    module = Sum()
    for _ in range(2):
        assert module() == 0
        assert module(1, 2) == 3
        assert module(1, x=2, y=3) == 321
        module.register_forward_hook(lambda m, a, r: None)


def test_train_eval_requires_grad_zero_grad():
    net = Net()
    assert net.eval() is net
    assert not net.first.training
    net.train()
    assert net.norm.training
    with pytest.raises(ValueError, match="boolean"):
        net.train(1)
    net(pt.ones(2, 4)).sum().backward()
    net.zero_grad(set_to_none=False)
    assert np.array_equal(net.scale.grad.numpy(), np.zeros(3))
    net.zero_grad()
    assert net.scale.grad is None
    net.requires_grad_(False)
    assert not any(p.requires_grad for p in net.parameters())


def test_to_keeps_parameters_and_their_gradients():
    net = Net()
    net(pt.ones(2, 4)).sum().backward()
    before, grad = net.scale, net.scale.grad.numpy().copy()
    net.register_buffer("count", pt.zeros(1, dtype=pt.int64))
    assert net.to(pt.float64) is net
    assert net.scale is before
    assert net.scale.dtype == net.scale.grad.dtype == net.steps.dtype == pt.float64
    assert net.count.dtype == pt.int64
    assert net.scale.is_leaf
    assert net.scale.requires_grad
    np.testing.assert_allclose(net.scale.grad.numpy(), grad)
    for method, dtype in (
        ("half", pt.float16),
        ("bfloat16", pt.bfloat16),
        ("float", pt.float32),
        ("double", pt.float64),
    ):
        assert getattr(net, method)().scale.dtype == dtype
    assert net.to("cpu", pt.float32).scale.dtype == pt.float32
    assert net.to(pt.ones(1, dtype=pt.float64)).scale.dtype == pt.float64
    assert net.to(dtype=pt.float32, device="cpu").scale.dtype == pt.float32
    assert net.type(pt.float64).scale.dtype == pt.float64
    for bad in ((pt.int64,), (pt.float32, False, False, 3)):
        with pytest.raises(TypeError):
            net.to(*bad)
    with pytest.raises(TypeError, match="unexpected keyword"):
        net.to(dtyp=pt.float32)


def test_meta_and_to_empty():
    layer = nn.Linear(3, 2, device="meta")
    assert layer.weight.is_meta
    layer.to_empty(device="cpu")
    assert not layer.weight.is_meta
    assert layer.weight.shape == (2, 3)
    assert isinstance(layer.weight, nn.Parameter)


def test_copies_and_pickles_are_independent_and_equal():
    net = Net()
    net.tied = net.first
    net.first.register_forward_hook(_double)
    x = pt.ones(2, 4)
    expected = net(x).detach().numpy()
    for other in (copy.deepcopy(net), pickle.loads(pickle.dumps(net))):
        assert np.array_equal(other(x).detach().numpy(), expected)
        assert other.tied is other.first
        assert other.scale is not net.scale
        assert other.scale is other._parameters["scale"]
        with pt.no_grad():
            other.scale.add_(1)
        other._parameters["scale"] = nn.Parameter(pt.zeros(3))
        assert other.scale.tolist() == [0, 0, 0]
        assert np.array_equal(net(x).detach().numpy(), expected)
    shallow = copy.copy(net)
    assert shallow.scale is net.scale
    shallow.note = 3
    assert not hasattr(net, "note")
    assert shallow._modules is net._modules         # as in PyTorch


def _double(module, args, result):
    return result * 2


def test_modules_are_freed_without_the_collector():
    gc.disable()
    try:
        net = Net()
        alive = weakref.ref(net), weakref.ref(net.first)
        del net
        assert [ref() for ref in alive] == [None, None]
    finally:
        gc.enable()


def test_get_and_set_by_name():
    net = nn.Sequential(Net(), nn.ReLU())
    assert net.get_submodule("") is net
    assert net.get_submodule("0.first") is net[0].first
    assert net.get_parameter("0.first.weight") is net[0].first.weight
    assert net.get_buffer("0.steps") is net[0].steps
    net.set_submodule("0.first", nn.Identity())
    assert isinstance(net[0].first, nn.Identity)
    for target in ("0.absent", "0.scale.x"):
        with pytest.raises(AttributeError):
            net.get_submodule(target)
    with pytest.raises(AttributeError, match="not a buffer"):
        net.get_buffer("0.scale")
    with pytest.raises(AttributeError, match="no attribute"):
        net.get_parameter("0.absent")
    with pytest.raises(ValueError, match=r"not an nn.Module"):
        net.set_submodule("0.first", 3)


def test_apply_runs_children_first():
    seen = []
    net = nn.Sequential(nn.Linear(1, 1), nn.ReLU())
    assert net.apply(lambda m: seen.append(type(m).__name__)) is net
    assert seen == ["Linear", "ReLU", "Sequential"]


def test_repr_and_dir():
    assert repr(Net()) == (
        "Net(\n"
        "  (first): Linear(in_features=4, out_features=3, bias=True)\n"
        "  (norm): LayerNorm((3,), eps=1e-05, elementwise_affine=True, bias=True)\n"
        ")"
    )
    assert repr(nn.Identity()) == "Identity()"
    assert repr(nn.Sequential(nn.Sequential(nn.Dropout(0.5)))) == (
        "Sequential(\n  (0): Sequential(\n"
        "    (0): Dropout(p=0.5, inplace=False)\n  )\n)"
    )
    listed = dir(nn.Sequential(nn.ReLU()))
    assert "forward" in listed
    assert "0" not in listed
    assert {"scale", "first", "steps"} <= set(dir(Net()))


def test_parameter():
    data = pt.ones(2)
    param = nn.Parameter(data)
    assert param.requires_grad
    assert param.is_leaf
    assert isinstance(param, pt.Tensor)
    assert not isinstance(data, nn.Parameter)
    assert type(param * 2) is pt.Tensor
    with pt.no_grad():
        param.add_(1)
    assert data.tolist() == [2, 2]  # memory is shared
    assert repr(param).startswith("Parameter containing:\n")
    assert nn.Parameter(data, requires_grad=False).requires_grad is False
    assert nn.Parameter().shape == (0,)
    clone = pickle.loads(pickle.dumps(param))
    assert type(clone) is nn.Parameter
    assert clone.tolist() == param.tolist()
    deep = copy.deepcopy([param, param])
    assert deep[0] is deep[1]
    assert deep[0] is not param
    with pytest.raises(TypeError, match="Parameter: data must be a Tensor, got list"):
        nn.Parameter([1.0])
    buffer = nn.Buffer(data, persistent=False)
    assert isinstance(buffer, nn.Buffer)
    assert not isinstance(data, nn.Buffer)


def test_what_has_no_shape_yet_needs_no_gradient_but_a_parameter():
    assert nn.UninitializedParameter().requires_grad and not nn.UninitializedBuffer().requires_grad
    assert not nn.UninitializedParameter(False).requires_grad and nn.UninitializedBuffer(True).requires_grad


def test_registration_hooks():
    from ptcore.nn.modules.module import (
        register_module_module_registration_hook,
        register_module_parameter_registration_hook,
    )

    seen = []
    with (
        register_module_parameter_registration_hook(lambda m, n, p: seen.append(n)),
        register_module_module_registration_hook(lambda m, n, c: seen.append(n)),
    ):
        nn.Sequential(nn.Linear(1, 1))
    assert seen == ["weight", "bias", "0"]
    nn.Linear(1, 1)
    assert len(seen) == 3


def _with_notes(call, kind=RuntimeError, match="^linear: "):
    with pytest.raises(kind, match=match) as caught:
        call()
    return getattr(caught.value, "__notes__", [])


def test_errors_name_the_module_by_its_path():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.body = nn.ModuleList([nn.Sequential(nn.ReLU(), nn.Linear(2, 3))])
            self.head = nn.Linear(3, 1)

        def forward(self, x, wrong=False):
            x = self.body[0](x)
            if wrong:
                raise KeyError("mine")
            return self.head(x.unsqueeze(0).mean(-1) if x.ndim == 1 else x)

    net = Net()
    assert _with_notes(lambda: net(pt.zeros(1, 5))) == [
        "in module 'body.0.1' (Linear) of Net"
    ]
    assert _with_notes(lambda: nn.Sequential(net)(pt.zeros(2))) == [
        "in module '0.head' (Linear) of Sequential"
    ]
    assert _with_notes(lambda: net(pt.zeros(1, 2), wrong=True), KeyError, "mine") == ["in module Net"]
    net.body[0][1].register_forward_pre_hook(lambda m, args: 1 / 0)
    assert _with_notes(lambda: net(pt.zeros(1, 2)), ZeroDivisionError, "division") == [
        "in module 'body.0.1' (Linear) of Net"
    ]


def test_errors_keep_nothing_alive():
    class Fails(nn.Module):
        def forward(self, x):
            kept = x + 1
            seen.append(weakref.ref(kept))
            raise RuntimeError("after some work")

    seen = []
    gc.disable()  # a cycle would be found by it
    try:
        with contextlib.suppress(RuntimeError):
            nn.Sequential(Fails())(pt.zeros(2))
        assert seen[0]() is None
    finally:
        gc.enable()


def test_errors_of_modules_outside_the_model_keep_their_own_path():
    other = nn.Sequential(nn.Linear(2, 3))

    class Calls(nn.Module):
        def forward(self, x):
            return other(x)

    assert _with_notes(lambda: Calls()(pt.zeros(1, 5))) == [
        "in module '0' (Linear) of Sequential"
    ]


def test_errors_from_modules_stay_what_they_were():
    class Fails(nn.Module):
        def forward(self, x):
            error = ValueError("text", 3)
            error.add_note("mine")
            raise error

    with pytest.raises(ValueError, match="text") as caught:
        nn.Sequential(Fails())(pt.zeros(1))
    assert caught.value.args == ("text", 3)
    assert caught.value.__notes__ == ["mine", "in module '0' (Fails) of Sequential"]
    assert pickle.loads(pickle.dumps(caught.value)).args == ("text", 3)
    assert copy.copy(caught.value).args == ("text", 3)
