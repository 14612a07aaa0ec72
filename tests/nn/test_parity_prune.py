"""Pruning, fusion, calls with other parameters and the small helpers of nn.utils against torch."""
import copy

import numpy as np
import pytest
from test_parity_parametrize import both, filled, linear, raises_alike, said

import ptcore as pt
import ptcore.func
import ptcore.nn.utils.prune

torch = pytest.importorskip("torch")
import torch.nn.utils.prune  # noqa: E402, F811

pytestmark = pytest.mark.parity


def state(m):
    return {"keys": list(m.state_dict()), **{f"state of {n}": v for n, v in m.state_dict().items()}}


def pruned(lib, *steps):
    """A layer after some steps of pruning: its state, its value, its gradients, and what remains."""
    m = filled(lib, lib.nn.Conv2d(4, 6, 2).double())
    weight = m.weight
    for step in steps:
        assert step(lib, lib.nn.utils.prune, m) in (m, None)
    hooks = [type(h).__name__ for h in m._forward_pre_hooks.values()]
    result = {**state(m), "value": m.weight, "pruned": lib.nn.utils.prune.is_pruned(lib.nn.Sequential(m)),
              "hooks": hooks, "buffers": [n for n, _ in m.named_buffers()]}
    m(lib.ones(1, 4, 3, 3, dtype=lib.float64)).cos().sum().backward()
    result["grad"] = m.weight_orig.grad
    result["methods"] = [len(h) for h in m._forward_pre_hooks.values() if hasattr(h, "__len__")]
    lib.nn.utils.prune.remove(m, "weight")
    assert m.weight is weight
    return {**result, "left": m.weight, "left keys": list(m.state_dict()), "none": len(m._forward_pre_hooks)}


def scores(lib):
    return lib.tensor(np.random.default_rng(1).normal(size=(6, 4, 2, 2)))


STEPS = {
    "identity": lambda lib, p, m: p.identity(m, "weight"),
    "l1": lambda lib, p, m: p.l1_unstructured(m, "weight", 0.3),
    "l1 number": lambda lib, p, m: p.l1_unstructured(m, "weight", amount=7),
    "l1 scores": lambda lib, p, m: p.l1_unstructured(m, "weight", 0.2, importance_scores=scores(lib)),
    "l1 none": lambda lib, p, m: p.l1_unstructured(m, "weight", 0.0),
    "l1 all": lambda lib, p, m: p.l1_unstructured(m, "weight", 1.0),
    "ln": lambda lib, p, m: p.ln_structured(m, "weight", 0.5, n=2, dim=1),
    "ln 1": lambda lib, p, m: p.ln_structured(m, "weight", 2, n=1, dim=0),
    "ln inf": lambda lib, p, m: p.ln_structured(m, "weight", 1, n=float("-inf"), dim=-1),
    "ln scores": lambda lib, p, m: p.ln_structured(m, "weight", 1, n=2, dim=-4, importance_scores=scores(lib)),
    "ln none": lambda lib, p, m: p.ln_structured(m, "weight", 0, n=2, dim=0),
    "mask": lambda lib, p, m: p.custom_from_mask(m, "weight", scores(lib) > 0),
}


@pytest.mark.parametrize("name", STEPS)
def test_one_step(name):
    both(lambda lib: pruned(lib, STEPS[name]))


@pytest.mark.parametrize("names", [("l1", "l1"), ("l1", "ln"), ("ln", "l1 number"), ("ln", "ln", "mask"),
                                   ("identity", "mask", "l1"), ("mask", "ln 1", "l1 number"), ("ln none", "ln")])
def test_steps_on_what_is_left(names):
    both(lambda lib: pruned(lib, *(STEPS[name] for name in names)))


@pytest.mark.parametrize(("prune", "zeros"), [
    (lambda p, m: p.random_unstructured(m, "weight", 0.25), 24),
    (lambda p, m: p.random_unstructured(m, "weight", 5), 5),
    (lambda p, m: p.random_structured(m, "weight", 2, dim=0), 32),
    (lambda p, m: p.random_structured(m, "weight", 0.5, dim=1), 48),
])  # fmt: skip
def test_by_chance(prune, zeros):
    for lib in (pt, torch):
        masks = []
        for _ in range(2):
            m = filled(lib, lib.nn.Conv2d(4, 6, 2).double())
            prune(lib.nn.utils.prune, m)
            assert int((m.weight_mask == 0).sum()) == zeros
            masks.append(m.weight_mask.numpy())
        assert masks[0].dtype == np.float64
    both(lambda lib: {"channels": sorted((m.weight_mask != 0).numpy().any(axis=(1, 2, 3)).tolist())}
         if zeros == 32 else {"zeros": zeros})


@pytest.mark.parametrize("again", [False, True])
def test_global(again):
    def program(lib):
        p = lib.nn.utils.prune
        net = lib.nn.Sequential(linear(lib, 5, 4), lib.nn.ReLU(), linear(lib, 4, 2))
        where = [(net[0], "weight"), (net[2], "weight"), (net[2], "bias")]
        if again:
            p.l1_unstructured(net[0], "weight", 3)
        p.global_unstructured(where, p.L1Unstructured, amount=0.4)
        p.global_unstructured(iter(where[:2]) if lib is pt else where[:2], p.L1Unstructured, amount=2,
                              importance_scores={where[0]: lib.arange(20.0).reshape(4, 5).double() / 1e3})
        return state(net)

    both(program)


def test_containers_and_methods():
    def program(lib):
        p = lib.nn.utils.prune
        t = lib.tensor([[3.0, -1.0], [0.5, 2.0]])
        first, second = p.L1Unstructured(1), p.L1Unstructured(amount=1)
        first._tensor_name = second._tensor_name = "t"
        box = p.PruningContainer(first)
        box.add_pruning_method(second)
        mask = lib.tensor([[1.0, 1.0], [0.0, 1.0]])
        return {"prune": first.prune(t), "masked": first.prune(t, default_mask=mask),
                "by scores": first.prune(t, importance_scores=-t), "box": box.compute_mask(t, mask.clone()),
                "len": len(box), "all": [m is first for m in box], "second": box[1] is second,
                "ln": p.LnStructured(1, 2, 0).prune(t), "global": p.CustomFromMask(mask).prune(t),
                "types": [c.PRUNING_TYPE for c in (p.Identity, p.RandomUnstructured, p.L1Unstructured,
                                                   p.RandomStructured, p.LnStructured, p.CustomFromMask)]}

    both(program)


SAID_ERRORS_OF_PRUNING = [
    "amount=1.5 should either be a float in the range [0, 1] or a non-negative integer",
    "amount=-0.1 should either be a float in the range [0, 1] or a non-negative integer",
    "amount=-1 should either be a float in the range [0, 1] or a non-negative integer",
    "Invalid type for amount: all. Must be int or float.",
    "amount=10 should be smaller than the number of parameters to prune=9",
    "amount=4 should be smaller than the number of parameters to prune=3",
    "Structured pruning can only be applied to multidimensional tensors. Found tensor of shape",
    "Invalid index 2 for tensor of size ptcore.Size([3, 3])", "Invalid index 5 for tensor of size ptcore.Size([3, 3])",
    "Parameter 'weight' of module Linear(in_features=3, out_features=3, bias=True) has to be",
    "importance_scores should have the same shape as parameter weight of Linear(in_features=3,",
    "default_mask shape ptcore.Size([3, 3]) must match self.mask shape ptcore.Size([2])",
    "Identity: name must be that of a parameter of Linear, got 'nothing",
    "importance_scores should have the same shape as tensor t, got ptcore.Size([3]) vs",
    "<class 'int'> is not a BasePruningMethod subclass", "global_unstructured(): parameters is not an Iterable",
    "global_unstructured(): importance_scores must be of type dict",
    'Only "unstructured" PRUNING_TYPE supported for the `pruning_method`. Found method <class',
    "Can't instantiate abstract class BasePruningMethod with abstract method compute_mask"]


@pytest.mark.parametrize(("case", "says"), said(SAID_ERRORS_OF_PRUNING, [
    lambda lib, p, m: p.l1_unstructured(m, "weight", 1.5), lambda lib, p, m: p.l1_unstructured(m, "weight", -0.1),
    lambda lib, p, m: p.l1_unstructured(m, "weight", -1), lambda lib, p, m: p.l1_unstructured(m, "weight", "all"),
    lambda lib, p, m: p.l1_unstructured(m, "weight", 10), lambda lib, p, m: p.ln_structured(m, "weight", 4, 2, 0),
    lambda lib, p, m: p.ln_structured(m, "bias", 1, 2, 0), lambda lib, p, m: p.ln_structured(m, "weight", 1, 2, 2),
    lambda lib, p, m: p.random_structured(m, "weight", 1, 5), lambda lib, p, m: p.remove(m, "weight"),
    lambda lib, p, m: p.l1_unstructured(m, "weight", 1, importance_scores=lib.ones(2)),
    lambda lib, p, m: p.custom_from_mask(m, "weight", lib.ones(2)), lambda lib, p, m: p.identity(m, "nothing"),
    lambda lib, p, m: p.L1Unstructured(1).prune(lib.ones(2), importance_scores=lib.ones(3)),
    lambda lib, p, m: p.PruningContainer(*m._forward_pre_hooks.values()).add_pruning_method(3),
    lambda lib, p, m: p.global_unstructured(3, p.L1Unstructured, amount=1),
    lambda lib, p, m: p.global_unstructured([(m, "weight")], p.L1Unstructured, importance_scores=[1], amount=1),
    lambda lib, p, m: p.global_unstructured([(m, "weight")], p.LnStructured, amount=1, n=2),
    lambda lib, p, m: p.BasePruningMethod(),
]))  # fmt: skip
def test_errors_of_pruning(case, says):
    def program(lib):
        m = linear(lib)
        try:
            case(lib, lib.nn.utils.prune, m)
        finally:
            assert sorted(m.state_dict()) == ["bias", "weight"]      # as before
            m(lib.ones(3, dtype=lib.float64))

    raises_alike(program, says)


@pytest.mark.parametrize("which", range(6))
def test_fusion(which):
    def program(lib):
        nn = lib.nn
        layer, bn, shape = [
            (nn.Conv1d(2, 3, 2), nn.BatchNorm1d(3), (2, 2, 5)),
            (nn.Conv2d(2, 3, 2, bias=False), nn.BatchNorm2d(3), (2, 2, 5, 4)),
            (nn.Conv3d(2, 3, 2), nn.BatchNorm3d(3, affine=False), (2, 2, 3, 3, 3)),
            (nn.ConvTranspose2d(2, 3, 2), nn.BatchNorm2d(3), (2, 2, 4, 4)),
            (nn.Linear(4, 3), nn.BatchNorm1d(3), (2, 4)),
            (nn.Linear(4, 3, bias=False), nn.BatchNorm1d(3), (2, 4)),
        ][which]
        layer, bn = filled(lib, layer.double()).eval(), filled(lib, bn.double()).eval()
        bn.running_var.abs_()
        fuse = lib.nn.utils.fuse_linear_bn_eval if which > 3 else lib.nn.utils.fuse_conv_bn_eval
        fused = fuse(layer, bn, transpose=True) if which == 3 else fuse(layer, bn)
        x = lib.tensor(np.random.default_rng(2).normal(size=shape))
        np.testing.assert_allclose(fused(x).detach().numpy(), bn(layer(x)).detach().numpy(), atol=1e-10)
        return {"y": fused(x), "repr": repr(fused), **state(fused), "own": fused is not layer,
                "grad": [p.requires_grad for p in fused.parameters()]}

    both(program)


SAID_ERRORS_OF_FUSION = [
    "fuse_conv_bn_eval: Fusion only for eval!", "fuse_linear_bn_eval: Fusion only for eval!",
    "fuse_linear_bn_eval: To fuse, linear.out_features == bn.num_features or bn.num_features",
    "fuse_conv_bn_eval: bn.running_mean and bn.running_var must not be None", "skip_init: Expected a Module",
    "skip_init: Module must support a 'device' arg to skip initialization"]


@pytest.mark.parametrize(("case", "says"), said(SAID_ERRORS_OF_FUSION, [
    lambda lib, u: u.fuse_conv_bn_eval(lib.nn.Conv1d(1, 1, 1), lib.nn.BatchNorm1d(1).eval()),
    lambda lib, u: u.fuse_linear_bn_eval(lib.nn.Linear(2, 3).eval(), lib.nn.BatchNorm1d(3)),
    lambda lib, u: u.fuse_linear_bn_eval(lib.nn.Linear(2, 3).eval(), lib.nn.BatchNorm1d(2).eval()),
    lambda lib, u: u.fuse_conv_bn_eval(lib.nn.Conv1d(1, 1, 1).eval(),
                                       lib.nn.BatchNorm1d(1, track_running_stats=False).eval()),
    lambda lib, u: u.skip_init(dict, 3), lambda lib, u: u.skip_init(lib.nn.ReLU),
]))  # fmt: skip
def test_errors_of_fusion(case, says):
    raises_alike(lambda lib: case(lib, lib.nn.utils), says)


class Tied:
    """A module with a tied weight, a buffer that it assigns to, and a child."""

    def __new__(cls, lib):
        class Net(lib.nn.Module):
            def __init__(self):
                super().__init__()
                self.inner = linear(lib, 3, 3)
                self.again = self.inner.weight
                self.register_buffer("count", lib.zeros((), dtype=lib.float64))
                self.plain = lib.ones(3, dtype=lib.float64)

            def forward(self, x, scale=1):
                self.count = self.count + 1
                return self.inner(x) * scale + self.again.sum() + self.plain

        return Net()


def call(lib, values, *args, **kwargs):
    return lib.func.functional_call(Tied(lib), values, *args, **kwargs)


def test_functional_call():
    def program(lib):
        net, x = Tied(lib), lib.ones(2, 3, dtype=lib.float64)
        w = (lib.arange(9).reshape(3, 3) / 7).double().requires_grad_()
        values = {"inner.weight": w, "count": lib.full((), 5.0)}
        before = {k: v.clone() for k, v in net.state_dict().items()}
        y = lib.func.functional_call(net, values, x)
        y.cos().sum().backward()
        untied = lib.func.functional_call(net, values, (x,), {"scale": 2}, tie_weights=False)
        joined = lib.func.functional_call(net, ({"inner.weight": w}, {"inner.bias": w[0]}), x, strict=False)
        plain = lib.func.functional_call(net, {"plain": w[1]}, x)
        same = all(lib.equal(v, before[k]) for k, v in net.state_dict().items() if k != "count")
        strict = lib.func.functional_call(net, {**dict(net.named_parameters(remove_duplicate=False)),
                                                **dict(net.named_buffers())}, x, strict=True)
        return {"y": y, "grad": w.grad, "untied": untied, "joined": joined, "plain": plain, "count": values["count"],
                "own count": net.count, "same": same, "strict": strict, "own": net.inner.weight.grad is None,
                "leaf": isinstance(net.inner.weight, lib.nn.Parameter), "keys": list(net.state_dict()),
                "older": lib.nn.utils.stateless.functional_call(net, {"inner.weight": w}, x)}

    both(program)


SAID_ERRORS_OF_FUNCTIONAL_CALL = [
    "functional_call got multiple values for keys ['again', 'inner.weight'], which are tied.",
    "Error(s) in reparametrizing for Net:", "Net has no attribute `nothing`",
    "functional_call: inner.weight must be a Tensor, got int",
    "functional_call: ['inner.weight'] appeared in multiple dictionaries",
    "functional_call: Expected parameter_and_buffer_dicts to be a dict, or a list/tuple of",
    "functional_call: Expected all elements of parameter_and_buffer_dicts to be dictionaries",
    "functional_call: tensor name can",
    "linear: the last size of input must equal in_features of weight, got shapes [2, 2] and [3]"]


@pytest.mark.parametrize(("case", "says"), said(SAID_ERRORS_OF_FUNCTIONAL_CALL, [
    lambda lib, x: call(lib, {"inner.weight": x, "again": x + 1}, x),
    lambda lib, x: call(lib, {"inner.weight": x}, x, strict=True),
    lambda lib, x: call(lib, {"nothing.weight": x}, x), lambda lib, x: call(lib, {"inner.weight": 3}, x),
    lambda lib, x: call(lib, ({"inner.weight": x}, {"inner.weight": x}), x), lambda lib, x: call(lib, 3, x),
    lambda lib, x: call(lib, [3], x), lambda lib, x: call(lib, {"inner.": x}, x),
    lambda lib, x: call(lib, {"inner.weight": x[0]}, lib.ones(2, 2, dtype=lib.float64)),
]))  # fmt: skip
def test_errors_of_functional_call(case, says):
    raises_alike(lambda lib: case(lib, lib.ones(3, 3, dtype=lib.float64)), says)


def test_a_failed_call_leaves_the_module_as_it_was():
    net, x = Tied(pt), pt.ones(3, 3, dtype=pt.float64)
    before = dict(net.named_parameters(remove_duplicate=False))
    for values in ({"inner.weight": x, "nothing.weight": x}, {"inner.weight": x[0], "inner.bias": x}):
        with pytest.raises((AttributeError, RuntimeError)):
            pt.func.functional_call(net, values, x[:, :2])
        now = dict(net.named_parameters(remove_duplicate=False))
        assert list(now) == list(before)
        assert all(now[key] is before[key] for key in now)


def test_functional_call_of_parametrised_modules():
    def program(lib):
        m = lib.nn.utils.parametrizations.weight_norm(linear(lib))
        x = lib.ones(2, 3, dtype=lib.float64)
        given = {"parametrizations.weight.original0": lib.ones(3, 1, dtype=lib.float64)}
        return {"original": lib.func.functional_call(m, given, x), "after": m(x), "keys": list(m.state_dict())}

    both(program)
    # by its own name a tensor is read as it is given
    m = pt.nn.utils.parametrizations.weight_norm(linear(pt))
    x, w = pt.ones(2, 3, dtype=pt.float64), pt.eye(3, dtype=pt.float64).requires_grad_()
    before = m(x)
    y = pt.func.functional_call(m, {"weight": w, "bias": pt.zeros(3, dtype=pt.float64)}, x)
    assert pt.equal(y, x)
    y.sum().backward()
    assert w.grad is not None
    assert pt.equal(m(x), before)
    assert list(m.state_dict()) == ["bias", "parametrizations.weight.original0", "parametrizations.weight.original1"]


def test_stacked_state():
    def program(lib):
        models = [filled(lib, lib.nn.BatchNorm1d(2).double()) for _ in range(3)]
        params, buffers = lib.func.stack_module_state(models)
        return {**params, **buffers, "leaf": [p.is_leaf and p.requires_grad for p in params.values()],
                "no": [b.requires_grad for b in buffers.values()]}

    both(program)


SAID_ERRORS_OF_STACKED_STATE = [
    "stack_module_state: Expected at least one model, got 0.",
    "stack_module_state: Expected all models to be of the same class.",
    "stack_module_state: Expected all models to have the same training/eval mode.",
    "stack_module_state: Expected weight from each model to have the same .requires_grad"]


@pytest.mark.parametrize(("models", "says"), said(SAID_ERRORS_OF_STACKED_STATE, [
    lambda nn: [], lambda nn: [nn.ReLU(), nn.Linear(1, 1)], lambda nn: [nn.Linear(1, 1), nn.Linear(1, 1).eval()],
    lambda nn: [nn.Linear(1, 1), nn.Linear(1, 1).requires_grad_(False)]]))
def test_errors_of_stacked_state(models, says):
    raises_alike(lambda lib: lib.func.stack_module_state(models(lib.nn)), says)


def test_small_helpers():
    def program(lib):
        u = lib.nn.utils
        m = u.skip_init(lib.nn.Linear, 3, out_features=2, dtype=lib.float64)
        net = lib.nn.Sequential(lib.nn.Conv2d(3, 4, 2), lib.nn.ConvTranspose2d(4, 2, 3), lib.nn.Conv3d(2, 2, 2))
        values = [p.detach().numpy().copy() for p in net.parameters()]
        u.convert_conv2d_weight_memory_format(net, lib.channels_last)
        two = [tuple(p.stride()) for p in net.parameters()]
        u.convert_conv3d_weight_memory_format(net, lib.channels_last_3d)
        assert all(np.array_equal(p.detach().numpy(), v) for p, v in zip(net.parameters(), values, strict=True))
        p = lib.nn.Parameter(lib.ones(2, dtype=lib.float64))
        p.grad = lib.tensor([3.0, 4.0], dtype=lib.float64)
        return {"shape": tuple(m.weight.shape), "dtype": str(m.weight.dtype).split(".")[1], "repr": repr(m),
                "device": str(m.weight.device), "two": two, "three": [tuple(p.stride()) for p in net.parameters()],
                "norm": u.clip_grad_norm(p, 1.0), "grad": p.grad, "copy": copy.deepcopy(m).in_features}

    both(program)
