"""Calls by signatures of earlier releases of PyTorch, which it still takes: the same results, beside it."""
import warnings

import numpy as np
import pytest

import ptcore as pt

torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.parity, pytest.mark.filterwarnings("ignore:This overload")]

RNG = np.random.default_rng(0)
M, N, V, B = (RNG.standard_normal(shape) for shape in ((3, 3), (3, 3), (3,), (2, 3, 3)))


def tensors(lib, *arrays):
    return [(pt.tensor if lib is pt else torch.tensor)(a) for a in arrays]


CALLS = {
    "add": lambda lib, m, n, v, b: lib.add(m, 2, n),
    "x.add": lambda lib, m, n, v, b: m.add(2, n),
    "x.add_": lambda lib, m, n, v, b: m.add_(-0.5, n),
    "x.sub_": lambda lib, m, n, v, b: m.sub_(2, v),
    "x.addcmul_": lambda lib, m, n, v, b: m.addcmul_(0.5, n, n),
    "addcdiv": lambda lib, m, n, v, b: lib.addcdiv(m, 0.5, n, n),
    "x.addcdiv_": lambda lib, m, n, v, b: m.addcdiv_(-0.1, n, n),
    "addmm, beta": lambda lib, m, n, v, b: lib.addmm(2, m, n, n),
    "addmm, beta, alpha": lambda lib, m, n, v, b: lib.addmm(2, m, 3, n, n),
    "x.addmm_": lambda lib, m, n, v, b: m.addmm_(2, 3, n, n),
    "x.addmm": lambda lib, m, n, v, b: m.addmm(2, n, n),
    "addmv": lambda lib, m, n, v, b: lib.addmv(0.5, v, 2, m, v),
    "addr": lambda lib, m, n, v, b: lib.addr(0.5, m, 2, v, v),
    "x.baddbmm": lambda lib, m, n, v, b: b.baddbmm(0.5, 2, b, b),
    "addbmm": lambda lib, m, n, v, b: lib.addbmm(0.5, m, 2, b, b),
    "view": lambda lib, m, n, v, b: m.view(dtype=lib.int32),
}


@pytest.mark.parametrize("name", CALLS)
def test_values(name):
    call = CALLS[name]
    if name == "view":
        assert call(pt, *tensors(pt, M, N, V, B)).tolist() == call(torch, *tensors(torch, M, N, V, B)).tolist()
        return
    with pytest.warns(UserWarning, match="is deprecated: a number before a tensor") as caught:
        ours = call(pt, *tensors(pt, M, N, V, B))
    assert caught[0].filename == __file__
    np.testing.assert_allclose(ours.numpy(), call(torch, *tensors(torch, M, N, V, B)).numpy(), rtol=1e-12)


def test_they_are_recorded_and_traced():
    x, y = (pt.tensor(a, requires_grad=True) for a in (M, N))
    with pytest.warns(UserWarning, match="overload of .* is deprecated"):
        product = pt.addmm(2, x, 3, y, y)
    product.sum().backward()
    assert x.grad.tolist() == np.full((3, 3), 2.0).tolist()
    with pytest.warns(UserWarning, match="overload of .* is deprecated"):
        gradient = pt.func.grad(lambda t: t.add(3, t).sum())(pt.tensor(V))
    assert gradient.tolist() == [4.0] * 3


def test_probabilities_by_position():
    for lib in (pt, torch):
        x = lib.ones(1000, dtype=lib.float64)
        assert 200 < float(lib.bernoulli(x, 0.3).sum()) < 400
        assert lib.bernoulli(x, 0.0).sum() == 0


@pytest.mark.parametrize("call", [
    lambda lib, x: x.add_(2, x, alpha=3), lambda lib, x: x.mul(2, x),
    lambda lib, x: lib.addmm(x, x, x, x), lambda lib, x: x.view(2, dtype=lib.int32),
    lambda lib, x: lib.addmm(1, 2, x, x, x), lambda lib, x: x.add(2, 3, x), lambda lib, x: x.add(None, x),
    lambda lib, x: x.add("2", x), lambda lib, x: lib.addmm([1], x, x, x)])
def test_what_is_none_is_refused_as_before(call):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(TypeError, match=r"^\w+\(\) (takes|got)"):
            call(pt, pt.ones(2, 2))
    with pytest.raises(TypeError):
        call(torch, torch.ones(2, 2))
