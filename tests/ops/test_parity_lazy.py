"""Lazy modules and uninitialised parameters against torch."""
import copy
import pickle

import numpy as np
import pytest

import ptcore as pt

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.parity

MODULES = [
    ("LazyLinear", (3,), {}, (2, 5)), ("LazyLinear", (3, False), {}, (4, 2, 5)),
    ("LazyConv1d", (4, 3), {}, (2, 5, 7)), ("LazyConv2d", (4, 3), {"padding": 1, "groups": 2}, (1, 6, 5, 5)),
    ("LazyConv2d", (4, 3), {"bias": False}, (6, 5, 5)), ("LazyConv3d", (2, 2), {"stride": 2}, (1, 3, 4, 4, 4)),
    ("LazyConvTranspose1d", (4, 2), {}, (2, 5, 7)), ("LazyConvTranspose2d", (4, 2), {"groups": 2, "stride": 2},
                                                     (2, 4, 3, 3)),
    ("LazyConvTranspose3d", (2, 2), {}, (1, 3, 2, 2, 2)), ("LazyBatchNorm1d", (), {}, (4, 5)),
    ("LazyBatchNorm1d", (), {"affine": False}, (4, 5, 3)), ("LazyBatchNorm2d", (1e-3,), {}, (2, 3, 4, 4)),
    ("LazyBatchNorm3d", (), {"track_running_stats": False}, (2, 3, 2, 2, 2)), ("LazyInstanceNorm1d", (), {}, (2, 3, 5)),
    ("LazyInstanceNorm2d", (), {"affine": True}, (2, 3, 4, 4)), ("LazyInstanceNorm3d", (), {}, (2, 3, 2, 2, 2)),
]


def kinds(module):
    return {k: (type(v).__name__, None if "Uninit" in type(v).__name__ else tuple(v.shape))
            for k, v in [*module.named_parameters(), *module.named_buffers()]}


@pytest.mark.parametrize(("name", "args", "options", "shape"), MODULES, ids=str)
def test_life(name, args, options, shape):
    """Text, parameters and class before and after the first input; the plain module gives the same."""
    x = np.random.default_rng(0).normal(size=shape).astype("float32")
    seen = []
    for lib in (pt, torch):
        module = getattr(lib.nn, name)(*args, **options)
        plain = getattr(lib.nn, name.removeprefix("Lazy"))
        record = [repr(module), kinds(module), list(module.state_dict()), module.cls_to_become is plain,
                  module.has_uninitialized_params(), repr(next(iter([*module.parameters(), *module.buffers()]), None))]
        out = module(lib.tensor(x))
        assert type(module) is plain
        record += [repr(module), kinds(module), tuple(out.shape), len(module._forward_pre_hooks)]
        module(lib.tensor(x)).sum().backward() if list(module.parameters()) else None
        seen.append(record)
    assert seen[0] == seen[1]


@pytest.mark.parametrize(("name", "args", "options", "shape"), MODULES, ids=str)
def test_loaded_before_the_first_input(name, args, options, shape):
    x = np.random.default_rng(0).normal(size=shape).astype("float32")
    source = getattr(torch.nn, name)(*args, **options)
    source(torch.tensor(x))
    module = getattr(pt.nn, name)(*args, **options)
    module.load_state_dict({k: pt.tensor(v.numpy()) for k, v in source.state_dict().items()})
    assert type(module).__name__ == name
    out = module.eval()(pt.tensor(x))
    # in torch itself a module that was loaded so goes on to say that it has 0 features
    assert repr(module) == repr(source)
    np.testing.assert_allclose(out.detach().numpy(), source.eval()(torch.tensor(x)).detach().numpy(), rtol=1e-4,
                               atol=1e-5)


def test_states():
    """Uninitialised to uninitialised loads nothing, to initialised is refused."""
    for lib in (pt, torch):
        assert repr(lib.nn.LazyLinear(3).load_state_dict(lib.nn.LazyLinear(3).state_dict())) == (
            "<All keys matched successfully>")
        with pytest.raises(RuntimeError, match="uninitialized"):
            lib.nn.Linear(4, 3).load_state_dict(lib.nn.LazyLinear(3).state_dict())
        for again in (copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))):
            module = again(lib.nn.Sequential(lib.nn.LazyLinear(3), lib.nn.ReLU()))
            assert module(lib.zeros(2, 4)).shape == (2, 3)
            assert repr(module[0]) == "Linear(in_features=4, out_features=3, bias=True)"
        module = lib.nn.Sequential(lib.nn.LazyLinear(3)).double()
        assert module[0].weight.dtype is lib.float64
        assert module(lib.zeros(1, 2).double()).dtype is lib.float64
        assert type(module[0]) is lib.nn.Linear
        with pytest.raises(RuntimeError, match="share memory"):
            lib.nn.LazyLinear(3).share_memory()


def test_uninitialized():
    for lib in (pt, torch):
        U, B = lib.nn.UninitializedParameter, lib.nn.UninitializedBuffer
        assert (repr(U()), repr(B())) == ("<UninitializedParameter>", "<UninitializedBuffer>")
        w = U(requires_grad=False, dtype=lib.float64)
        assert (w.requires_grad, w.dtype, w.is_leaf, w.device.type) == (False, lib.float64, True, "cpu")
        assert isinstance(w, lib.nn.Parameter)
        w.materialize((2, 3))
        assert type(w) is lib.nn.Parameter
        assert (tuple(w.shape), w.dtype) == ((2, 3), lib.float64)
        assert type(w + 1) is lib.Tensor
        b = B()
        b.materialize((2,), dtype=lib.float16)
        assert type(b) is lib.Tensor
        assert isinstance(b, lib.nn.Buffer)
        assert b.dtype is lib.float16
        module = lib.nn.LazyLinear(3)
        with pytest.raises(RuntimeError, match="shape"):
            module.weight.shape  # noqa: B018
        for use in (lambda w, lib=lib: w + 1, lambda w: w.view(-1), lambda w, lib=lib: lib.cat([w, w]),
                    lambda w, lib=lib: lib.nn.functional.linear(lib.zeros(1, 0), w)):
            with pytest.raises(ValueError, match="uninitialized parameter"):
                use(module.weight)
        with pytest.raises(ValueError, match="uninitialized"):
            lib.nn.utils.parameters_to_vector(module.parameters())
        optimizer = lib.optim.SGD(module.parameters(), 0.1)
        module(lib.ones(1, 2)).sum().backward()
        before = module.weight.detach().clone()
        optimizer.step()
        assert not lib.equal(module.weight, before)


@pytest.mark.parametrize("lib", [pt, torch])
def test_own_modules(lib):
    Mixin = __import__(f"{lib.__name__}.nn.modules.lazy", fromlist=["LazyModuleMixin"]).LazyModuleMixin

    class Scale(Mixin, lib.nn.Module):
        def __init__(self):
            super().__init__()
            self.w = lib.nn.UninitializedParameter()

        def initialize_parameters(self, x, *, by):
            self.w.materialize((x.shape[-1],))
            with lib.no_grad():
                self.w.fill_(by)

        def forward(self, x, *, by):
            return x * self.w

    class Silent(Scale):
        def initialize_parameters(self, x):
            pass

    class Missing(Mixin, lib.nn.Module):
        def forward(self, x):
            return x

    scale = Scale()
    assert scale(lib.ones(3), by=2.0).tolist() == [2.0, 2.0, 2.0]
    assert type(scale) is Scale
    assert scale(lib.ones(3), by=9.0).tolist() == [2.0, 2.0, 2.0]
    with pytest.raises(NotImplementedError, match="initialize_parameters is not implemented for Missing"):
        Missing()(lib.ones(2))
    with pytest.raises(RuntimeError, match="module Silent has not been fully initialized"):
        Silent()(lib.ones(2))


@pytest.mark.parametrize(("kind", "text", "call"), [
    (RuntimeError, "Expected 3D", lambda lib: lib.nn.LazyConv2d(4, 3)(lib.zeros(5, 5))),
    (ValueError, "expected 4D", lambda lib: lib.nn.LazyBatchNorm2d()(lib.zeros(2, 3))),
    (ValueError, "divisible", lambda lib: lib.nn.LazyConv2d(4, 3, groups=2)(lib.zeros(1, 3, 5, 5))),
])
def test_bad_inputs(kind, text, call):
    for lib in (pt, torch):
        with pytest.raises(kind, match=text):
            call(lib)
