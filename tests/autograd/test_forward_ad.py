"""``autograd.forward_ad``: tangents follow views and in-place writes; forward and reverse mode over each other."""
import copy
import pickle

import numpy as np
import pytest

import ptcore as pt
from ptcore._interpret import entered
from ptcore._state import stack
from ptcore.autograd import forward_ad as fwAD
from ptcore.autograd.dual import Forward
from ptcore.fx.experimental.proxy_tensor import make_fx

pytestmark = pytest.mark.core

X = pt.tensor([[1., 2., 3.], [4., 5., 6.]], dtype=pt.float64)
T = pt.tensor([[.5, 1., 2.], [-1., 0., 3.]], dtype=pt.float64)


def same(got, want):
    np.testing.assert_allclose(got.detach().numpy(), np.asarray(want.detach() if isinstance(want, pt.Tensor) else want),
                               rtol=1e-12)


def pushed(f, x=X, t=T):
    with fwAD.dual_level():
        return tuple(fwAD.unpack_dual(f(fwAD.make_dual(x, t))))


def test_functions():
    for f, slope in ((pt.sin, pt.cos), (pt.exp, pt.exp), (lambda x: x * x, lambda x: 2 * x)):
        value, tangent = pushed(f)
        same(value, f(X))
        same(tangent, slope(X) * T)
    assert pushed(lambda x: x.detach())[1] is None
    assert pushed(lambda x: pt.ones(2))[1] is None
    assert pushed(lambda x: x.argmax())[1] is None


def test_views_follow_their_base():
    def f(x):
        y = x.clone()
        row, column, part = y[0], y[:, 1], y.t()[1:]
        y.mul_(x)                               # the base is written to
        return row * 1, column * 1, part * 1
    with fwAD.dual_level():
        found = [fwAD.unpack_dual(v).tangent for v in f(fwAD.make_dual(X, T))]
    whole = 2 * X * T
    for got, want in zip(found, (whole[0], whole[:, 1], whole.t()[1:])):
        same(got, want)


def test_writes_to_views_reach_the_base():
    def f(x):
        y = pt.zeros(2, 3, dtype=pt.float64)    # without a tangent at first
        other = y[1]
        y[0].copy_(x[0])
        y.t()[2].mul_(x[:, 2])
        y[1] = x[0] * x[1]
        return y + other
    want = pt.autograd.functional.jvp(lambda x: pt.stack([
        pt.stack([x[0, 0], x[0, 1], x[0, 2] * x[0, 2]]), x[0] * x[1]]) + x[0] * x[1], X, T)[1]
    same(pushed(f)[1], want)


def test_tangents_that_lie_otherwise_in_memory():
    turned = T.t().contiguous().t()
    for f in (lambda x: x.as_strided((3, 2), (1, 3)), lambda x: x.view(3, 2), lambda x: x.t(), lambda x: x[:, 1:],
              lambda x: x.reshape(-1).unflatten(0, (3, 2)), lambda x: x.as_strided((2,), (4,), 1).mul_(2) + x[0, 1]):
        same(pushed(f, X.clone(), turned)[1], pushed(f, X.clone(), T.clone())[1])
        same(pushed(f, X.clone(), T[0].expand(2, 3))[1], pushed(f, X.clone(), T[0].repeat(2, 1))[1])


def test_data_dependent_branches():
    same(pushed(lambda x: x * 2 if x.sum() > 0 and float(x[0, 0]) == 1 else x)[1], 2 * T)


def test_complex():
    z, t = pt.complex(X, T), pt.complex(T, X)
    same(pushed(lambda x: x * x * 1j, z, t)[1], 2 * z * t * 1j)
    same(pushed(lambda x: x.real * x.imag, z, t)[1], T * T + X * X)
    same(pushed(lambda x: x.abs() ** 2, z, t)[1], 2 * (X * T + T * X))


def test_reverse_over_forward_and_forward_over_reverse():
    w = X.clone().requires_grad_()
    with fwAD.dual_level():
        y = fwAD.unpack_dual((fwAD.make_dual(w, T) ** 3).sum())
        same(pt.autograd.grad(y.tangent, w, retain_graph=True)[0], 6 * X * T)
        same(pt.autograd.grad(y.primal, w)[0], 3 * X ** 2)
        dual = fwAD.make_dual(w, T)
        (g,) = pt.autograd.grad((dual ** 3).sum(), dual)
        value, tangent = fwAD.unpack_dual(g)
        same(value, 3 * X ** 2)
        same(tangent, 6 * X * T)
        (dual ** 3).sum().backward()
    same(w.grad, 3 * X ** 2)


def test_levels():
    with pytest.raises(RuntimeError, match="outside of a dual level"):
        fwAD.make_dual(X, T)
    assert fwAD.unpack_dual(X) == (X, None)
    with fwAD.dual_level(), pytest.raises(RuntimeError, match="Nested forward mode AD is not supported"):
        fwAD.enter_dual_level()
    assert fwAD.enter_dual_level() == 0
    with pytest.raises(RuntimeError, match="was not the last one"):
        fwAD.exit_dual_level(level=1)
    fwAD.exit_dual_level(level=0)
    with pytest.raises(RuntimeError, match="was not the last one"):
        fwAD.exit_dual_level()
    with pytest.raises(ZeroDivisionError), fwAD.dual_level():
        raise ZeroDivisionError
    assert not entered()


@pytest.mark.parametrize(("x", "t", "error", "words"), [
    (X, T[0], RuntimeError, "a different size"), (X, T.float(), RuntimeError, "dtype of the primal"),
    (X.long(), T, ValueError, "Expected primal to be floating"), (X, T.long(), ValueError, "Expected tangent to be"),
    (X, 1.0, TypeError, "argument 'tangent' must be Tensor, not float"), (None, T, TypeError, "argument 'tensor'")])
def test_bad_tangents(x, t, error, words):
    with fwAD.dual_level(), pytest.raises(error, match=words):
        fwAD.make_dual(x, t)


def test_out_and_random_numbers():
    with fwAD.dual_level():
        x = fwAD.make_dual(X, T)
        with pytest.raises(RuntimeError, match="out= does not support"):
            pt.sin(x, out=X.clone())
        out = pt.empty(2, 3, dtype=pt.float64)
        same(pt.sin(X, out=out), X.sin())
        y = pt.nn.functional.dropout(x, 0.5)
        kept = fwAD.unpack_dual(y).primal != 0
        same(fwAD.unpack_dual(y).tangent, pt.where(kept, 2 * T, 0.0))


def test_modules_and_optimizers_see_tangents():
    layer = pt.nn.Sequential(pt.nn.Linear(3, 4), pt.nn.Tanh(), pt.nn.LayerNorm(4)).double()
    value, tangent = pushed(layer)
    want = pt.autograd.functional.jvp(layer, X, T)
    same(value, want[0])
    same(tangent, want[1])


def test_values_of_duals_are_read():
    """As in PyTorch; those of a batch, or of a value that is traced, are not."""
    with fwAD.dual_level():
        x = fwAD.make_dual(pt.tensor([1.0, 2.0]), pt.ones(2))
        y = x * 2
        assert y.tolist() == [2.0, 4.0] and y.numpy().tolist() == [2.0, 4.0] and np.asarray(y)[1] == 4
        assert fwAD.unpack_dual(y).tangent.tolist() == [2.0, 2.0]
        with pytest.raises(RuntimeError, match="not known here"):
            pt.vmap(lambda a: pt.tensor((a * x[0]).tolist()))(pt.ones(3))
    seen = []
    pt.func.grad(lambda a: (seen.append(a.tolist()), a.square().sum())[1])(pt.ones(2))
    assert seen == [[1.0, 1.0]]
    with pytest.raises(RuntimeError, match="not known here"):
        make_fx(lambda a: pt.tensor(a.tolist()))(pt.ones(2))


def test_functions_that_return_lists():
    class Both(pt.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_forward(x)
            return [x.sin(), x * x]

        @staticmethod
        def jvp(ctx, t):
            x, = ctx.saved_tensors
            return [t * x.cos(), 2 * x * t]

    with fwAD.dual_level():
        outputs = Both.apply(fwAD.make_dual(X, T))
        assert type(outputs) is list
        (_, sine), (value, square) = [fwAD.unpack_dual(y) for y in outputs]
    same(sine, X.cos() * T)
    same(value, X * X)
    same(square, 2 * X * T)
    _, tangents = pt.func.jvp(lambda x: tuple(Both.apply(x)), (X,), (T,))
    same(tangents[0], X.cos() * T)


def test_one_tangent_a_level():
    with fwAD.dual_level():
        x = fwAD.make_dual(X, T)
        with pytest.raises(RuntimeError, match="already has a forward gradient at the same level 0"):
            fwAD.make_dual(x, T)
        same(fwAD.unpack_dual(fwAD.make_dual(x.detach(), 2 * T)).tangent, 2 * T)


def test_reshapes_that_copy():
    """A copy has a tangent of its own: later writes to it, to the tensor that it was made from, and to its views."""
    def base_written(x):
        y = x * 1
        z = y.t().reshape(-1)
        y.mul_(3)
        return z * 1 + y.sum()

    def copy_written(x):
        y = x * 1
        z = y.t().reshape(-1)
        part = z[1:]
        z.mul_(x.reshape(-1))
        part.mul_(x[0, 1])
        return z.sin() + y.sum()

    def turned(x):
        y = x.expand(2, 2, 3).square()
        y.transpose_(0, -1)
        z = y.flatten()
        z[:2] = x[1, :2]
        return z.reshape(3, -1).t().flatten()

    h = 1e-6
    for f in (base_written, copy_written, turned):
        want = (f(X + h * T) - f(X - h * T)) / (2 * h)
        np.testing.assert_allclose(pushed(f)[1].numpy(), want.numpy(), atol=1e-7)
        for g in (pt.func.vmap(lambda x, f=f: pushed(f, x)[1]),
                  make_fx(lambda x, f=f: pushed(f, x[0])[1][None])(X[None] + 1)):
            np.testing.assert_allclose(g(X[None])[0].numpy(), want.numpy(), atol=1e-7)
        g = pt.func.grad(lambda x, f=f: f(x).square().sum())
        np.testing.assert_allclose(pt.func.jvp(g, (X,), (T,))[1].numpy(),
                                   ((g(X + h * T) - g(X - h * T)) / (2 * h)).numpy(), rtol=1e-6, atol=1e-5)


def test_operands_in_the_memory_that_is_written_to():
    """The tangent is that of the operands before the write (PyTorch takes them as they are after it)."""
    def itself(x):
        y = x * 1
        return y.mul_(y)

    def views(x):
        y = x * 1
        y.mul_(y.view_as(y))
        y[0].mul_(y[0].detach().view(3) + y[0])
        y[:, 0].atan2_(y[:, 0])
        return y.addcmul_(y, y.view(-1).view(2, 3))

    def numbers(x):
        y = pt.complex(x, x.sin())
        y.real.mul_(y.imag)
        pt.view_as_real(y)[..., 0].hypot_(y.real)
        y.mul_(y)
        return pt.view_as_real(y.mul_(y.conj()))

    def several(x):
        y = x[:2, :2] * 0.1
        y.addmm_(y, y.t())
        return y.lerp_(y.view(2, 2), 0.3)

    h = 1e-6
    for f in (itself, numbers, several):
        want = ((f(X + h * T) - f(X - h * T)) / (2 * h)).numpy()
        def tangent(x, f=f):
            return pushed(f, x)[1]

        for g in (tangent, pt.func.functionalize(tangent), make_fx(tangent)(X + 1)):
            np.testing.assert_allclose(g(X).numpy(), want, rtol=1e-6)
        got = pt.func.jvp(pt.func.vmap(f), (X[None],), (T[None],))[1][0]
        np.testing.assert_allclose(got.numpy(), want, rtol=1e-6)
    got = pushed(views)[1]                      # detached: a constant in the tangent
    x = X.clone()

    def without(x, fixed):
        y = x * x
        y = pt.cat([(y[0] * (fixed + y[0])).unsqueeze(0), y[1:]])
        y = pt.cat([pt.full((2, 1), np.pi / 4, dtype=pt.float64), y[:, 1:]], 1)
        return y + y * y

    fixed = (x * x)[0]
    np.testing.assert_allclose(got.numpy(), ((without(x + h * T, fixed) - without(x - h * T, fixed)) / (2 * h)).numpy(),
                               rtol=1e-6)


def made_in_a_level():
    """Tensors of every kind that a level makes, with the plain tensors that they show; the level has ended."""
    x = pt.tensor([1.0, 2.0, 3.0], requires_grad=True)
    base, leaf = pt.zeros(3), pt.tensor([1.0, 1.0, 1.0], requires_grad=True)
    early = base[1:]
    inner = leaf * 2
    with fwAD.dual_level():
        dual = fwAD.make_dual(x, pt.ones(3))
        result = dual.exp() * dual
        view, parts = dual[1:], dual.split(1)
        base.copy_(dual * 3)
        inner.mul_(dual)
        with pt.no_grad():
            leaf.add_(dual)
        assert fwAD.unpack_dual(base).tangent.tolist() == [3, 3, 3]
    v = pt.tensor([1.0, 2.0, 3.0])
    return x, leaf, {"dual": (dual, v), "result": (result, v.exp() * v), "view": (view, v[1:]),
                     "part": (parts[2], v[2:]), "base": (base, v * 3), "early": (early, v[1:] * 3),
                     "inner": (inner, v * 2), "leaf": (leaf, v + 1)}


USES = {
    "number": lambda t: t * 2, "sum": lambda t: t.sum(), "clone": lambda t: t.clone(), "deepcopy": copy.deepcopy,
    "pickle": lambda t: pickle.loads(pickle.dumps(t.detach())), "numpy": lambda t: pt.tensor(t.detach().numpy()),
    "address": lambda t: pt.tensor(float(t.data_ptr() != 0)), "write": lambda t: t.detach().add_(1),
    "storage": lambda t: pt.tensor(t.untyped_storage().nbytes() / 12),
    "text": lambda t: pt.tensor(float("tangent" in repr(t))),
    "vmap": lambda t: pt.func.vmap(lambda e: e * 3)(t), "compile": lambda t: pt.compile(lambda e: e * 3 + 1)(t),
    "parameter": lambda t: pt.nn.Parameter(t.detach()) + 1,
    "jvp": lambda t: pt.func.jvp(lambda e: e * t.detach(), (t.detach(),), (pt.ones_like(t),))[1],
}


@pytest.mark.parametrize("use", USES)
def test_tensors_are_plain_after_their_level(use):
    for name in made_in_a_level()[2]:
        t, plain = made_in_a_level()[2][name]
        got = USES[use](t if use != "deepcopy" or t.is_leaf else t.detach())
        want = {"address": 1, "storage": 1, "text": 0}.get(use)
        want = USES[use](plain) if want is None else pt.tensor(float(want))
        assert pt.equal(got.detach(), want.detach()), name


def test_gradients_through_a_level_that_has_ended():
    for name, slopes in (("dual", ([1, 1, 1], None)), ("view", ([0, 1, 1], None)), ("part", ([0, 0, 1], None)),
                         ("base", ([3, 3, 3], None)), ("early", ([0, 3, 3], None)), ("inner", ([2, 2, 2], [2, 4, 6])),
                         ("leaf", (None, [1, 1, 1]))):
        x, leaf, made = made_in_a_level()
        (made[name][0] * 1).sum().backward()
        assert [None if g is None else g.tolist() for g in (x.grad, leaf.grad)] == list(slopes), name
    x, _, made = made_in_a_level()
    made["result"][0].sum().backward()                  # of an output that a node saved
    v = x.detach()
    assert pt.allclose(x.grad, v.exp() * (v + 1))


def test_a_level_keeps_no_tensors():
    with fwAD.dual_level():
        dual = fwAD.make_dual(pt.ones(2), pt.ones(2))
        for _ in range(5000):
            dual * 2
        assert len(stack("dual levels")[-1].stand_ins) < 2500


def test_levels_by_number():
    x, t = pt.ones(2), pt.ones(2)
    assert fwAD.unpack_dual(x).primal is x and fwAD.unpack_dual(x).tangent is None
    with pytest.raises(RuntimeError, match="unpack_dual: forward AD is used outside of a dual level"):
        fwAD.unpack_dual(x, level=0)
    with fwAD.dual_level():
        dual = fwAD.make_dual(x, t, level=0)
        assert fwAD.unpack_dual(dual, level=0).tangent.tolist() == [1, 1]
        assert fwAD.unpack_dual(dual, level=-1).tangent is None
        with pytest.raises(RuntimeError, match="unpack_dual: forward AD"):
            fwAD.unpack_dual(dual, level=1)
        for level in (-1, 1):
            with pytest.raises(RuntimeError, match="make_dual: forward AD"):
                fwAD.make_dual(x, t, level=level)
        with pytest.raises(RuntimeError, match="Setting a forward grad that itself has a forward gradient"):
            fwAD.make_dual(x, dual)
        with pytest.raises(TypeError, match=r"unpack_dual\(\): argument 'tensor' must be Tensor, not int"):
            fwAD.unpack_dual(3)


def test_aliases_that_outlive_a_level():
    """An alias that a node saved becomes plain at its next op, of every kind and form."""
    from ptcore._subclass import counter_of_writes  # an alias

    def alias():
        with fwAD.dual_level():
            return counter_of_writes(fwAD.make_dual(pt.ones(3), pt.ones(3)) * 2)

    out = pt.zeros(3)
    pt.add(alias(), 1, out=out)
    assert out.tolist() == [3, 3, 3]
    assert alias().mul_(3).tolist() == [6, 6, 6]
    assert pt.nn.functional.softplus(alias()).tolist() == pt.nn.functional.softplus(pt.full((3,), 2.)).tolist()
    assert pt.cat([pt.zeros(1), alias()]).tolist() == [0, 2, 2, 2]
    assert pt.nn.functional.mse_loss(alias(), pt.zeros(3)) == 4             # a composite
    assert alias()[1:].tolist() == [2, 2]
    assert pt.func.vmap(lambda x: x + alias())(pt.ones(2, 3)).tolist() == [[3, 3, 3]] * 2
    late = alias()
    with fwAD.dual_level():
        y = fwAD.make_dual(pt.ones(3), pt.ones(3)) * late
        assert fwAD.unpack_dual(y).tangent.tolist() == [2, 2, 2]
    w = pt.ones(3, requires_grad=True)
    (w * alias()).sum().backward()
    assert w.grad.tolist() == [2, 2, 2]


def test_a_level_ends_after_what_was_entered_inside():
    number = fwAD.enter_dual_level()
    with Forward(), pytest.raises(RuntimeError, match="another transformation that was entered inside has not ended"):
        fwAD.exit_dual_level(level=number)
    fwAD.exit_dual_level(level=number)
    assert fwAD._current_level == -1
