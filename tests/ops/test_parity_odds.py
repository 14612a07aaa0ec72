"""Small public functions that many programs call: weight norm, windows, settings, tuples of settings."""
import numpy as np
import pytest

import ptcore as pt

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.parity
LIBS = (pt, torch)


@pytest.mark.parametrize("dim", [0, 1, None, -1])
@pytest.mark.parametrize("kind", ["Linear", "Conv1d"])
def test_weight_norm(kind, dim):
    rng = np.random.default_rng(0)
    sizes, shape = ((4, 3), (5, 4)) if kind == "Linear" else ((4, 3, 2), (2, 4, 6))
    weight, bias, x = [rng.normal(size=s) for s in ((3, 4) if kind == "Linear" else (3, 4, 2), (3,), shape)]
    results = []
    for lib in LIBS:
        module = getattr(lib.nn, kind)(*sizes).double()
        module.load_state_dict({"weight": lib.tensor(weight), "bias": lib.tensor(bias)})
        assert lib.nn.utils.weight_norm(module, dim=dim) is module
        names = list(module.state_dict())
        with lib.no_grad():
            module.weight_v.mul_(2.0)
        out = module(lib.tensor(x))
        (out**2).sum().backward()
        grads = [p.grad.numpy() for p in module.parameters()]
        with pytest.raises(RuntimeError, match="two weight_norm"):
            lib.nn.utils.weight_norm(module, dim=dim)
        lib.nn.utils.remove_weight_norm(module)
        again = module(lib.tensor(x)).detach().numpy()
        with pytest.raises(ValueError, match="not found"):
            lib.nn.utils.remove_weight_norm(module)
        results.append([names, list(module.state_dict()), out.detach().numpy(), again, *grads])
    assert results[0][:2] == results[1][:2]
    for mine, theirs in zip(results[0][2:], results[1][2:], strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-10)
    with pytest.warns(FutureWarning, match="weight_norm"):
        pt.nn.utils.weight_norm(pt.nn.Linear(2, 2))


@pytest.mark.parametrize("name", ["hann", "hamming", "blackman", "bartlett", "kaiser"])
@pytest.mark.parametrize("n", [0, 1, 2, 5, 16])
@pytest.mark.parametrize("periodic", [True, False])
def test_windows(name, n, periodic):
    mine, theirs = [getattr(lib, name + "_window")(n, periodic, dtype=lib.float64) for lib in LIBS]
    assert tuple(mine.shape) == tuple(theirs.shape)
    np.testing.assert_allclose(mine.numpy(), theirs.numpy(), rtol=1e-6, atol=1e-12)
    assert getattr(pt, name + "_window")(4).dtype is pt.float32
    for bad in ({"window_length": -1}, {"window_length": 3, "dtype": "int64"}):
        for lib in LIBS:
            if "dtype" in bad:
                bad = {**bad, "dtype": lib.int64}
            with pytest.raises(RuntimeError):
                getattr(lib, name + "_window")(**bad)


def test_settings():
    for lib in LIBS:
        before = lib.are_deterministic_algorithms_enabled()
        lib.use_deterministic_algorithms(True, warn_only=True)
        assert lib.are_deterministic_algorithms_enabled()
        assert lib.is_deterministic_algorithms_warn_only_enabled()
        lib.use_deterministic_algorithms(before)
        with pytest.raises(TypeError):
            lib.use_deterministic_algorithms("x")
        assert lib.get_float32_matmul_precision() == "highest"
        lib.set_float32_matmul_precision("high")
        assert lib.get_float32_matmul_precision() == "high"
        lib.set_float32_matmul_precision("highest")
    with pytest.raises(RuntimeError, match="precision"):
        pt.set_float32_matmul_precision("low")


def test_modules():
    for lib in LIBS:
        assert lib.accelerator.device_count() == 0
        assert not lib.accelerator.is_available()
        assert lib.accelerator.current_accelerator(check_available=True) is None
        assert lib.version.cuda is None
        assert lib.nn.modules.utils._pair(3) == (3, 3)
        assert lib.nn.modules.utils._triple([1, 2, 3]) == (1, 2, 3)
        assert lib.nn.modules.utils._single(1) == (1,)
        with lib.profiler.record_function("a"), lib.autograd.profiler.record_function("b"):
            assert lib.autograd.profiler.record_function("c")(lambda x: x + 1)(1) == 2


def test_gradients_lie_as_their_leaf():
    """Of a leaf without gaps the gradient has the strides, as fused optimisers read them side by side."""
    strides = []
    for lib in LIBS:
        mine = []
        for leaf in (lib.ones(3, 4).t(), lib.ones(2, 3, 4).permute(2, 0, 1), lib.ones(6, 4)[::2], lib.ones(3, 4)):
            x = leaf.detach().requires_grad_()
            for _ in range(2):
                (x * 2).sum().backward()
                mine.append(tuple(x.grad.stride()))
            x.grad = None
            x.clone().sum().backward()
            mine.append(tuple(x.grad.stride()))
            assert bool((x.grad == 1).all())
        strides.append(mine)
    assert strides[0] == strides[1]


def test_an_empty_batch_leaves_running_statistics():
    for lib in LIBS:
        for shape in ((0, 3), (0, 3, 5), (4, 3, 0)):
            norm = lib.nn.BatchNorm1d(3)
            assert norm(lib.ones(shape)).shape == shape
            assert norm.running_mean.tolist() == [0, 0, 0]
            assert norm.running_var.tolist() == [1, 1, 1]


def test_new_of_an_array():
    for lib in LIBS:
        zeros = lib.zeros(1, dtype=lib.int64)
        for given in (np.array([3, 4]), [3, 4], (3, 4), lib.tensor([3, 4])):
            assert zeros.new(given).tolist() == [3, 4]
        assert zeros.new(3, 4).shape == zeros.new(lib.Size([3, 4])).shape == (3, 4)


def test_gradcheck_of_what_a_closure_holds():
    """Parameters are moved where they lie; afterwards they are what they were."""
    for lib in LIBS:
        x = lib.tensor(np.random.default_rng(0).normal(size=(4, 3)), requires_grad=True)
        for module in (lib.nn.Linear(3, 2).double(), lib.nn.PReLU().double()):
            before = [p.tolist() for p in module.parameters()]

            def function(*_, module=module, x=x):
                return module(x)

            assert lib.autograd.gradcheck(function, (x, *module.parameters()))
            assert lib.autograd.gradgradcheck(function, (x, *module.parameters()))
            assert [p.tolist() for p in module.parameters()] == before
