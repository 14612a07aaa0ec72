"""autograd.Function: what parity with torch does not show (identity, errors, contexts)."""

import numpy as np
import pytest

import ptcore as pt
from ptcore.autograd import Function, gradcheck, gradgradcheck
from ptcore.autograd.function import once_differentiable

pytestmark = pytest.mark.core


def leaf(*values):
    return pt.tensor(list(values), dtype=pt.float64, requires_grad=True)


def values(t):
    return t.detach().numpy().tolist()


class Cube(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 3 * x**2 * g


class Exp(Function):
    """Saves its output."""

    @staticmethod
    def forward(ctx, x):
        y = x.exp()
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        return g * y


@pytest.mark.parametrize("f", [Cube, Exp])
def test_all_orders(f):
    x = leaf(0.3, -1.2)
    assert gradcheck(f.apply, (x,))
    assert gradgradcheck(f.apply, (x,))


def test_gradient_of_a_broadcast_output_is_reduced_between_functions():
    class Tile(Function):
        @staticmethod
        def forward(ctx, x):
            return x.expand(3, 2) * 1

        @staticmethod
        def backward(ctx, g):
            return g

    x = leaf(1.0, 2.0)
    y = Cube.apply(x)
    Tile.apply(y).sum().backward()
    assert values(x.grad) == [9, 36]


def test_gradient_takes_the_dtype_of_its_input():
    class Wide(Function):
        @staticmethod
        def forward(ctx, x):
            return x.to(pt.float64)

        @staticmethod
        def backward(ctx, g):
            return g

    x = pt.ones(2, requires_grad=True)
    y = x * 1
    y.retain_grad()
    Wide.apply(y).sum().backward()
    assert y.grad.dtype is pt.float32
    assert x.grad.dtype is pt.float32


@pytest.mark.parametrize(
    ("result", "error", "text"),
    [
        (lambda g: pt.ones(5).double(), RuntimeError, "gradient 0"),
        (lambda g: pt.ones(()).double(), RuntimeError, "gradient 0"),
        (lambda g: "text", RuntimeError, "str"),
        (lambda g: (g, g), RuntimeError, "2 gradients, expected 1"),
        (lambda g: (), RuntimeError, "0 gradients, expected 1"),
    ],
)
def test_wrong_returns(result, error, text):
    class F(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, g):
            return result(g)

    with pytest.raises(error, match=text):
        F.apply(leaf(1.0, 2.0)).sum().backward()


def test_gradient_of_an_argument_that_is_no_tensor():
    class F(Function):
        @staticmethod
        def forward(ctx, x, k):
            return x * k

        @staticmethod
        def backward(ctx, g):
            return g, g

    with pytest.raises(RuntimeError, match="gradient 1 must be None"):
        F.apply(leaf(1.0), 3).sum().backward()
    x = leaf(1.0)
    F.apply(x, pt.ones(1)).sum().backward()
    assert x.grad.tolist() == [1]


def test_writing_to_an_input_that_was_handed_through_is_refused():
    class F(Function):
        @staticmethod
        def forward(ctx, x):
            return x

        @staticmethod
        def backward(ctx, g):
            return g * 10

    x = leaf(1.0, 2.0)
    y = F.apply(x)
    with pytest.raises(RuntimeError, match="modified inplace"):
        y.add_(1)
    assert x.tolist() == [1, 2]
    y.sum().backward()
    assert x.grad.tolist() == [10, 10]
    plain = pt.ones(2)
    F.apply(plain).add_(1)
    assert plain.tolist() == [2, 2]
    with pt.no_grad():
        assert not F.apply(x).requires_grad


def test_missing_methods():
    class OnlyForward(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

    class Nothing(Function):
        pass

    y = OnlyForward.apply(leaf(1.0))
    with pytest.raises(NotImplementedError, match="backward"):
        y.sum().backward()
    with pytest.raises(NotImplementedError, match="forward"):
        Nothing.apply(leaf(1.0))
    with pytest.raises(RuntimeError, match="apply"):
        Cube()(leaf(1.0))


def test_forward_runs_without_recording_and_restores_the_mode():
    modes = []

    class F(Function):
        @staticmethod
        def forward(ctx, x):
            modes.append(pt.is_grad_enabled())
            raise KeyError

    with pytest.raises(KeyError):
        F.apply(leaf(1.0))
    assert modes == [False]
    assert pt.is_grad_enabled()


def test_backward_mode_follows_create_graph():
    modes = []

    class F(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, g):
            modes.append(pt.is_grad_enabled())
            return g

    y = F.apply(leaf(1.0)).sum()
    y.backward(retain_graph=True)
    y.backward(create_graph=True)
    assert modes == [False, True]


def test_needs_input_grad_under_no_grad_input():
    seen = []

    class F(Function):
        @staticmethod
        def forward(ctx, x, y, k):
            seen.append(ctx.needs_input_grad)
            return x * y

        @staticmethod
        def backward(ctx, g):
            return g, None, None

    F.apply(leaf(1.0), pt.ones(1).double(), 3)
    F.apply(pt.ones(1).double(), leaf(1.0), None)
    assert seen == [(True, False, False), (False, True, False)]


def test_attributes_of_the_context_survive():
    class Scale(Function):
        @staticmethod
        def forward(ctx, x, k):
            ctx.k = k
            return x * k

        @staticmethod
        def backward(ctx, g):
            return g * ctx.k, None

    x = leaf(1.0)
    (Scale.apply(x, 3) + Scale.apply(x, 5)).sum().backward()
    assert values(x.grad) == [8]


def test_only_tensors_are_saved():
    class F(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x, None, 3)

    with pytest.raises(TypeError, match="only Tensors"):
        F.apply(leaf(1.0))


def test_none_can_be_saved_and_values_are_freed():
    class F(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(None, x)
            return x * 1

        @staticmethod
        def backward(ctx, g):
            a, x = ctx.saved_tensors
            assert a is None
            return g * x

    x = leaf(3.0)
    y = F.apply(x).sum()
    y.backward()
    assert values(x.grad) == [3]
    with pytest.raises(RuntimeError, match="freed"):
        y.backward()


def test_many_saved_tensors():
    class F(Function):
        @staticmethod
        def forward(ctx, *xs):
            ctx.save_for_backward(*xs)
            return sum(x * x for x in xs)

        @staticmethod
        def backward(ctx, g):
            return tuple(2 * x * g for x in ctx.saved_tensors)

    xs = [leaf(float(k)) for k in range(20)]
    F.apply(*xs).sum().backward()
    assert [values(x.grad)[0] for x in xs] == [2.0 * k for k in range(20)]


def test_dirty_must_be_returned():
    class F(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.mark_dirty(x)
            x.add_(1)
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * 2

    with pytest.raises(RuntimeError, match="dirty"):
        F.apply(leaf(1.0) * 1)


def test_dirty_bumps_the_version_seen_by_earlier_savers():
    class Double(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.mark_dirty(x)
            return x.mul_(2)

        @staticmethod
        def backward(ctx, g):
            return g * 2

    x = leaf(3.0)
    y = x * 1
    z = y * y
    w = Double.apply(y)
    assert w is y
    with pytest.raises(RuntimeError, match="inplace"):
        (z + w).sum().backward()


class Dirty(Function):
    """x * 2 and y * 3 in place, returned with x * y * 6 in a given order. Output k has the gradients of a matrix."""

    @staticmethod
    def forward(ctx, x, y, order):
        x.mul_(2)
        y.mul_(3)
        ctx.mark_dirty(x, y)
        ctx.save_for_backward(x, y)
        outputs = x, y, x * y
        return tuple([outputs[k] for k in order])

    @staticmethod
    def backward(ctx, *gs):
        x, y = ctx.saved_tensors            # as they were written
        return sum(gs[k] * 10.0**k for k in range(3)) * x, sum(gs[k] * 10.0**(3 + k) for k in range(3)) * y, None


@pytest.mark.parametrize("order", [(0, 1, 2), (1, 0, 2), (2, 1, 0), (2, 0, 1), (1, 2, 0)])
@pytest.mark.parametrize("retained", [False, True])
def test_dirty_inputs_may_be_any_outputs(order, retained):
    a, b = leaf(3.0), leaf(5.0)
    x, y = a * 1, b * 1
    if retained:
        x.retain_grad()
        y.retain_grad()
    outputs = Dirty.apply(x, y, order)
    assert outputs[order.index(0)] is x
    assert outputs[order.index(1)] is y
    assert [t.output_nr for t in outputs] == [0, 1, 2]
    for k in range(3):
        # 6 and 15 are x and y after the write.
        grads = pt.autograd.grad(outputs[k].sum(), (a, b), retain_graph=True)
        assert [values(g)[0] for g in grads] == [6.0 * 10.0**k, 15.0 * 10.0**(3 + k)]
    if retained:
        x.grad = y.grad = None
        (2 * x + 3 * y).sum().backward()
        assert (values(x.grad), values(y.grad)) == ([2.0], [3.0])


def test_a_dirty_input_may_be_returned_twice():
    class Twice(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.mark_dirty(x)
            ctx.save_for_backward(x.mul_(2))
            return x, x

        @staticmethod
        def backward(ctx, g, h):
            return ctx.saved_tensors[0] * (g + 10 * h)

    x = leaf(3.0)
    first, second = Twice.apply(x * 1)
    assert first is second
    (g,) = pt.autograd.grad(first.sum(), x)
    assert values(g) == [60.0]              # the later output counts


@pytest.mark.parametrize("base_has_history", [True, False])
def test_a_dirty_view_must_be_the_only_output(base_has_history):
    class F(Function):
        @staticmethod
        def forward(ctx, x, y, both):
            ctx.mark_dirty(x.mul_(y))
            return (x.sum(), x) if both else x

        @staticmethod
        def backward(ctx, g):
            return g * 2, g * 3, None

    y = leaf(2.0)
    base = leaf(1.0, 1.0, 1.0) * 1 if base_has_history else pt.ones(3)
    with pytest.raises(RuntimeError, match=r"mark_dirty: .*view.* alone, got 2 outputs"):
        F.apply(base[1:2], y, True)
    F.apply(base[:1], y, False)
    (g,) = pt.autograd.grad(base.sum(), y)
    assert values(g) == [3.0]


def test_once_differentiable_first_order_works():
    class F(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        @once_differentiable
        def backward(ctx, g):
            assert not pt.is_grad_enabled()
            (x,) = ctx.saved_tensors
            return 2 * x * g

    x = leaf(3.0)
    F.apply(x).sum().backward()
    assert values(x.grad) == [6]
    seed = leaf(1.0)
    (g,) = pt.autograd.grad(F.apply(x), x, seed, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        g.sum().backward()


def test_through_numpy():
    class Sinc(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return pt.from_numpy(np.sinc(x.detach().numpy()))

        @staticmethod
        def backward(ctx, g):
            a = ctx.saved_tensors[0].detach().numpy()
            d = (np.pi * a * np.cos(np.pi * a) - np.sin(np.pi * a)) / (np.pi * a**2)
            return g * pt.from_numpy(d)

    assert gradcheck(Sinc.apply, (leaf(0.3, 1.2),))


class Scaled(Function):
    @staticmethod
    def forward(x, by=2.0, *, plus=0.0):
        return x * by + plus

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.by = inputs[1]

    @staticmethod
    def backward(ctx, g):
        return g * ctx.by, None


def test_setup_context_is_given_the_defaults():
    x = leaf(1.0, 2.0)
    Scaled.apply(x).sum().backward()
    assert values(x.grad) == [2.0, 2.0]


def test_keywords_take_their_place():
    class Exponential(Function):
        @staticmethod
        def forward(ctx, x, unused=1, by=3):
            ctx.seen = ctx.needs_input_grad
            return x * by

        @staticmethod
        def backward(ctx, g):
            return g * len(ctx.seen), None, None

    x = leaf(1.0, 2.0)
    for y, slope in ((Scaled.apply(x, by=3.0), 3.0), (Scaled.apply(by=3.0, x=x), 3.0), (Exponential.apply(x=x), 1.0),
                     (Exponential.apply(x, by=4), 3.0)):
        x.grad = None
        y.sum().backward()
        assert values(x.grad) == [slope, slope]


@pytest.mark.parametrize("args, kwargs, text", [
    ((), {}, "Scaled.apply: missing a required argument: 'x'"), ((1, 2, 3), {}, "Scaled.apply: too many"),
    ((1,), {"z": 1}, "Scaled.apply: got an unexpected keyword argument 'z'"),
    ((1,), {"plus": 1}, "Scaled.apply: forward.. got an unexpected keyword argument 'plus'")])
def test_arguments_that_do_not_fit(args, kwargs, text):
    with pytest.raises(TypeError, match=text):
        Scaled.apply(*args, **kwargs)


# -- behind a Function that gives None -------------------------------------------------------------

class GivesNone(Function):
    @staticmethod
    def forward(ctx, x, y):
        return x * 1 + y

    @staticmethod
    def backward(ctx, g):
        return None, g


def seen_behind_none(materialize, between=lambda x: x, times=1):
    """What a Function's backward sees, the gradient of its argument, and what a hook on its result sees."""

    class Seen(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.set_materialize_grads(materialize)
            return x * 2

        @staticmethod
        def backward(ctx, g):
            seen.append(None if g is None else g.tolist())
            return None if g is None else g + 1

    seen, hooked = [], []
    x, y = pt.ones(2, requires_grad=True), pt.ones(2, requires_grad=True)
    made = Seen.apply(x)
    made.register_hook(hooked.append)
    sum(GivesNone.apply(between(made), y) for _ in range(times)).sum().backward()
    assert y.grad.tolist() == [times] * 2
    return seen, None if x.grad is None else x.grad.tolist(), hooked


@pytest.mark.parametrize("between", [lambda x: x, lambda x: x.sin(), lambda x: x.unbind()[0].expand(2)],
                         ids=["directly", "an op", "several outputs"])
@pytest.mark.parametrize("times", [1, 2])
def test_a_function_behind_one_that_gives_none_is_called(between, times):
    assert seen_behind_none(True, between, times) == ([[0.0, 0.0]], [1.0, 1.0], [None])
    assert seen_behind_none(False, between, times) == ([None], None, [None])


def test_a_gradient_that_comes_after_none():
    x, y = pt.ones(2, requires_grad=True), pt.ones(2, requires_grad=True)
    a = x * 3
    (GivesNone.apply(a, y) + a.exp()).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), 3 * np.exp(3.0), rtol=1e-6)
    a, b = (x * 3).unbind()
    x.grad = None
    (GivesNone.apply(a, y[0]) + b).backward()
    assert x.grad.tolist() == [0.0, 3.0]


def test_leaves_behind_none():
    x, y, seen = pt.ones(2, requires_grad=True), pt.ones(2, requires_grad=True), []
    x.register_hook(seen.append)
    x.register_post_accumulate_grad_hook(lambda t: seen.append("accumulated"))
    GivesNone.apply(x, y).sum().backward()
    assert seen == [None, "accumulated"] and x.grad is None
    assert pt.autograd.grad(GivesNone.apply(x, y).sum(), x, allow_unused=True) == (None,)
    x.register_hook(lambda g: pt.full((2,), 7.0) if g is None else None)
    GivesNone.apply(x, y).sum().backward()
    assert x.grad.tolist() == [7.0, 7.0]


def test_a_hook_that_gives_a_gradient_in_place_of_none():
    x, y = pt.ones(2, requires_grad=True), pt.ones(2, requires_grad=True)
    a = x * 3
    a.register_hook(lambda g: pt.ones(2) if g is None else None)
    GivesNone.apply(a, y).sum().backward()
    assert x.grad.tolist() == [3.0, 3.0]


def test_a_backward_inside_of_one_that_visits():
    """Two backwards that visit the same node: the inner one runs while the outer one waits for it."""
    x, y = pt.ones(2, requires_grad=True), pt.ones(2, requires_grad=True)
    a = x * 3

    class Again(GivesNone):
        @staticmethod
        def backward(ctx, g):
            with pt.enable_grad():
                GivesNone.apply(a, y.detach().requires_grad_()).sum().backward(retain_graph=True)
            return None, g

    (Again.apply(a, y) + GivesNone.apply(a, y)).sum().backward()
    assert x.grad is None and y.grad.tolist() == [2.0, 2.0]


class InPlace(Function):
    """exp in place; saves its result."""

    @staticmethod
    def forward(ctx, x):
        x.exp_()
        ctx.mark_dirty(x)
        ctx.save_for_backward(x)
        return x

    @staticmethod
    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        return g * y


@pytest.mark.parametrize("view", [lambda y: y, lambda y: y[:], lambda y: y[1:], lambda y: y.t()[0], lambda y: y[0][1:]])
def test_a_saved_result_that_is_a_view(view):
    """Three derivatives, each of which frees what it goes through at its end."""
    def f(x):
        y = x * 0.5
        InPlace.apply(view(y))
        return y.sin()

    x = pt.tensor([[0.1, 0.2], [-0.3, 0.4]], dtype=pt.float64, requires_grad=True)
    assert gradcheck(f, (x,))
    assert gradgradcheck(f, (x,))
    (g,) = pt.autograd.grad(f(x).sum(), x, create_graph=True)
    (h,) = pt.autograd.grad((g * g).sum(), x, create_graph=True)
    pt.autograd.grad(h.sum(), x)[0].sum()


def test_a_saved_result_in_a_constant_base():
    def f(x):
        y = pt.zeros(3, dtype=x.dtype)
        y[1:] = x
        InPlace.apply(y[:2])
        return y * y

    x = leaf(0.1, -0.2)
    assert gradcheck(f, (x,))
    assert gradgradcheck(f, (x,))


def test_a_view_and_several_results_are_refused():
    class Both(Function):
        @staticmethod
        def forward(ctx, x):
            x.mul_(2)
            ctx.mark_dirty(x)
            return x, x * 2

        @staticmethod
        def backward(ctx, g, h):
            return 2 * g + 4 * h

    y = leaf(1, 2) * 1
    with pytest.raises(RuntimeError, match="must return the view alone, got 2 outputs"):
        Both.apply(y[:1])
    a, b = Both.apply(leaf(1, 2) * 1)
    assert values(a + b) == [6, 12]


def test_inputs_that_are_views_of_what_was_written():
    """An input that is older than its base's history gets a node of its own before the function does."""
    class Add(Function):
        @staticmethod
        def forward(ctx, x, y):
            return x + y

        @staticmethod
        def backward(ctx, g):
            return g, g

    class AddTo(Add):
        @staticmethod
        def forward(ctx, x, y):
            x.add_(y)
            ctx.mark_dirty(x)
            return x

    x = leaf(1, 2)
    base = x * 1
    a, b = base[:1], base[1:]
    base.mul_(3)
    Add.apply(a, b).sum().backward()
    assert values(x.grad) == [3, 3]
    x.grad = None
    base = x * 1
    a, b = base[:1], base[1:]
    AddTo.apply(a, b)               # the write makes the other view older, too
    base.sum().backward()
    assert values(x.grad) == [1, 2]


def test_what_was_saved_for_outputs_that_are_gone():
    kept = []

    class Keeps(Cube):
        @staticmethod
        def forward(ctx, x):
            kept.append(ctx)
            return Cube.forward(ctx, x)

    y = Keeps.apply(leaf(2.0))
    assert values(kept[0].saved_tensors[0]) == [2]
    del y
    with pytest.raises(RuntimeError, match="Keeps: saved_tensors are gone with the outputs"):
        _ = kept[0].saved_tensors


def test_marks_of_a_generated_batch_rule_by_what_requires_grad():
    class Same(Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(*tensors):
            return tuple(t.clone() for t in tensors)

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.mark_non_differentiable(*[y for x, y in zip(inputs, output) if not x.requires_grad])

        @staticmethod
        def backward(ctx, *grads):
            return grads

    w, c = pt.ones(3, requires_grad=True), pt.full((2, 3), 5.0)
    outs = pt.func.vmap(Same.apply)(w.expand(2, 3), c)
    assert outs[0].requires_grad and not outs[1].requires_grad
    assert pt.autograd.grad(outs[0].sum(), w)[0].tolist() == [2, 2, 2]
    outs = pt.func.vmap(Same.apply, (None, 0))(w, c)
    assert pt.autograd.grad(outs[0].sum(), w)[0].tolist() == [2, 2, 2]

    def total(a):
        return pt.func.vmap(lambda x: Same.apply(x, x.detach())[0].sum())(a).sum()

    assert pt.func.grad(total)(c).tolist() == [[1, 1, 1], [1, 1, 1]]
