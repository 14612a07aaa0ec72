"""``_foreach_*``: an op for each tensor of a list; lists of other lengths, gradients, what is refused."""
import numpy as np
import pytest

import ptcore as pt
from ptcore._ops import foreach

NUMPY = {"abs": np.abs, "exp": np.exp, "sqrt": np.sqrt, "neg": np.negative, "sign": np.sign, "tanh": np.tanh,
         "reciprocal": lambda x: 1 / x, "rsqrt": lambda x: 1 / np.sqrt(x), "log1p": np.log1p, "floor": np.floor,
         "trunc": np.trunc, "frac": lambda x: x - np.trunc(x), "sigmoid": lambda x: 1 / (1 + np.exp(-x))}
BINARY = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "pow": np.power,
          "maximum": np.maximum, "minimum": np.minimum, "clamp_min": np.maximum, "clamp_max": np.minimum}


def lists():
    pt.manual_seed(0)
    return [pt.rand(3, 2, dtype=pt.float64) + 0.5, pt.rand(4, dtype=pt.float64) + 1, pt.rand((), dtype=pt.float64) + 2]


def close(got, want):
    assert type(got) is tuple
    for g, w in zip(got, want, strict=True):
        np.testing.assert_allclose(g.detach().numpy(), w, rtol=1e-12)


def both(name, want, *args, **kwargs):
    """The function, and the one that writes."""
    xs = lists()
    close(getattr(pt, f"_foreach_{name}")(xs, *args, **kwargs), want)
    versions = [x._version for x in xs]
    assert getattr(pt, f"_foreach_{name}_")(xs, *args, **kwargs) is xs
    close(tuple(xs), want)
    assert all(x._version > v for x, v in zip(xs, versions))


@pytest.mark.parametrize("name", sorted(NUMPY))
def test_functions_of_one_list(name):
    both(name, [NUMPY[name](x.numpy()) for x in lists()])


@pytest.mark.parametrize("name", sorted(BINARY))
def test_functions_of_two(name):
    f, xs = BINARY[name], [x.numpy() for x in lists()]
    ys = lists()[::-1][:1] * 3
    both(name, [f(x, y.numpy()) for x, y in zip(xs, ys)], ys)
    both(name, [f(x, 1.5) for x in xs], 1.5)
    both(name, [f(x, v) for x, v in zip(xs, (1.0, 2.0, 3.0))], [1.0, 2.0, 3.0])
    if name in ("add", "mul", "div"):
        both(name, [f(x, 1.25) for x in xs], pt.tensor(1.25, dtype=pt.float64))
    if name in ("add", "sub"):
        both(name, [f(x, 3 * y.numpy()) for x, y in zip(xs, ys)], ys, alpha=3)


def test_functions_of_more():
    xs, ys, zs = [[x.numpy() for x in lists()] for _ in range(3)]
    for name, f in (("addcmul", np.multiply), ("addcdiv", np.divide)):
        for value, each in ((1, [1] * 3), (0.5, [0.5] * 3), ([1.0, 2.0, 3.0], [1.0, 2.0, 3.0]),
                            (pt.tensor([1.0, 2.0, 3.0]), [1.0, 2.0, 3.0])):
            both(name, [x + v * f(y, z) for x, y, z, v in zip(xs, ys, zs, each)], lists(), lists(), value)
    for weight, each in ((0.25, [0.25] * 3), ([0.1, 0.2, 0.3], [0.1, 0.2, 0.3])):
        both("lerp", [x + w * (1 - x) for x, w in zip(xs, each)], [pt.ones_like(x) for x in lists()], weight)
    close(pt._foreach_norm(lists()), [np.linalg.norm(x.ravel()) for x in xs])
    close(pt._foreach_norm(lists(), 1), [np.abs(x).sum() for x in xs])
    close(pt._foreach_powsum(lists(), 3), [(np.abs(x) ** 3).sum() for x in xs])
    close(pt._foreach_max(lists()), [x.max() for x in xs])
    close(pt._foreach_pow(2.0, lists()), [2.0 ** x for x in xs])
    close(pt._foreach_mm([pt.ones(2, 3), pt.ones(1, 2)], [pt.ones(3, 1), pt.ones(2, 2)]), [np.full((2, 1), 3), np.full((1, 2), 2)])
    made = lists()
    copies = pt._foreach_clone(made)
    assert pt._foreach_zero_(made) is made and not any(x.any() for x in made)
    pt._foreach_copy_(made, copies)
    close(tuple(made), xs)


def test_gradients():
    xs = [x.requires_grad_() for x in lists()]
    made = pt._foreach_mul(pt._foreach_exp(xs), 2.0)
    sum([y.sum() for y in made]).backward()
    for x in xs:
        np.testing.assert_allclose(x.grad.numpy(), 2 * np.exp(x.detach().numpy()))


def test_lists_that_do_not_fit():
    a = [pt.ones(2)]
    for call in (lambda: pt._foreach_exp([]), lambda: pt._foreach_add_([], 1), lambda: pt._foreach_add(a, a + a),
                 lambda: pt._foreach_add(a, [1, 2]), lambda: pt._foreach_addcmul(a, a, a + a),
                 lambda: pt._foreach_lerp(a, a, [0.1, 0.2]), lambda: pt._foreach_mul(a, pt.ones(3))):
        with pytest.raises(RuntimeError, match="_foreach_"):
            call()
    for call in (lambda: pt._foreach_add(pt.ones(2), 1), lambda: pt._foreach_exp([1]), lambda: pt._foreach_copy_(a, [1])):
        with pytest.raises(TypeError, match="expected a list or tuple of Tensors"):
            call()


def test_names_are_pytorchs():
    torch = pytest.importorskip("torch")
    assert {n for n in dir(torch) if n.startswith("_foreach")} == set(foreach.__all__)
    assert all(hasattr(pt, n) for n in foreach.__all__)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_sums_of_powers_are_rounded_once(dtype):
    """No root is taken on the way, and halves are computed in float32."""
    x = pt.from_numpy(np.random.default_rng(4).random(1000) * 3).to(getattr(pt, dtype))
    for order in (0.5, 1.0, 3.0, 4.0):
        want = pt.tensor((x.double().numpy() ** order).sum()).to(x.dtype).item()
        got = pt._foreach_powsum([x], order)[0]
        assert got.dtype == x.dtype and abs(got.item() - want) <= pt.finfo(x.dtype).eps * want
    assert pt._foreach_powsum([pt.full((10000,), 1e30)], 0.25)[0].item() == pytest.approx(10000 * 1e30**0.25, rel=1e-6)
