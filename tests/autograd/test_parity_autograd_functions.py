"""Custom functions, with ptcore and with torch."""

import pytest
from autograd_programs import compare, leaf

pytestmark = [pytest.mark.parity, pytest.mark.core]

PROGRAMS = {}


def program(function):
    PROGRAMS[function.__name__] = function
    return function


# -- custom functions -----------------------------------------------------------------------


def make_square(T):
    class Square(T.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return 2 * x * g

    return Square


@program
def function_double_backward(T):
    x = leaf(T)
    y = make_square(T).apply(x)
    (g,) = T.autograd.grad(y.sum(), x, create_graph=True)
    return g, T.autograd.grad(g.sum(), x), y.grad_fn.name()


@program
def function_saved_then_written(T):
    x = leaf(T)
    y = x * 1
    z = make_square(T).apply(y)
    y.add_(1)
    z.sum().backward()


@program
def function_second_backward(T):
    z = make_square(T).apply(leaf(T)).sum()
    z.backward()
    z.backward()


@program
def function_setup_context(T):
    class Scale(T.autograd.Function):
        @staticmethod
        def forward(x, k):
            return x * k

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.k = inputs[1]

        @staticmethod
        def backward(ctx, g):
            return g * ctx.k, None

    x = leaf(T)
    Scale.apply(x, 3).sum().backward()
    return x.grad


@program
def function_wrong_count(T):
    class F(T.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            return x * y

        @staticmethod
        def backward(ctx, g):
            return g

    F.apply(leaf(T), leaf(T)).sum().backward()


@program
def function_extra_nones(T):
    class F(T.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * 2, None, None

    x = leaf(T)
    F.apply(x).sum().backward()
    return x.grad


@program
def function_wrong_shape(T):
    class F(T.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return T.ones(7, dtype=T.float64)

    F.apply(leaf(T)).sum().backward()


@program
def function_wrong_type(T):
    class F(T.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return 3.0

    F.apply(leaf(T)).sum().backward()


@program
def function_broadcast_gradient(T):
    class F(T.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.expand(3, 4) * 2

        @staticmethod
        def backward(ctx, g):
            return g * 2

    x = leaf(T)
    F.apply(x).sum().backward()
    return x.grad


@program
def function_returns_input(T):
    class F(T.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x

        @staticmethod
        def backward(ctx, g):
            return g * 5

    x = leaf(T)
    y = F.apply(x)
    y.sum().backward()
    return x.grad, y is x, y.data_ptr() == x.data_ptr(), y.is_leaf


@program
def function_returns_input_non_differentiable(T):
    class F(T.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.mark_non_differentiable(x)
            return x, x * 2

        @staticmethod
        def backward(ctx, g, h):
            return h * 2

    x = leaf(T)
    a, b = F.apply(x)
    b.sum().backward()
    return a.requires_grad, b.requires_grad, x.grad


@program
def function_non_differentiable(T):
    class F(T.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            index = x.argmax()
            mask = x * 0
            ctx.mark_non_differentiable(index, mask)
            return x * 2, index, mask

        @staticmethod
        def backward(ctx, g, gi, gm):
            return g * 2 + gm

    x = leaf(T)
    y, index, mask = F.apply(x)
    y.sum().backward()
    return x.grad, index, mask.requires_grad, index.requires_grad


@program
def function_integer_output(T):
    class F(T.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2, x.argmax()

        @staticmethod
        def backward(ctx, g, gi):
            return g * 2

    x = leaf(T)
    y, index = F.apply(x)
    y.sum().backward()
    return x.grad, index.requires_grad


@program
def function_mark_dirty(T):
    class F(T.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            x.mul_(2)
            ctx.mark_dirty(x)
            return x

        @staticmethod
        def backward(ctx, g):
            return g * 2

    x = leaf(T)
    y = x * 1
    z = F.apply(y)
    (z * z).sum().backward()
    return x.grad, z is y


@program
def function_mark_dirty_leaf(T):
    class F(T.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.mark_dirty(x)
            return x.mul_(2)

        @staticmethod
        def backward(ctx, g):
            return g * 2

    F.apply(leaf(T))


@program
def function_mark_dirty_view(T):
    class F(T.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.mark_dirty(x)
            return x.mul_(2)

        @staticmethod
        def backward(ctx, g):
            return g * 2

    x = leaf(T)
    y = x * 1
    F.apply(y[:2])
    (y * y).sum().backward()
    return x.grad


@program
def function_materialize(T):
    seen = []

    def build(flag):
        class F(T.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.set_materialize_grads(flag)
                return x * 2, x * 3

            @staticmethod
            def backward(ctx, a, b):
                seen.append(b is None)
                return a * 2

        return F

    x = leaf(T)
    for flag in (True, False):
        build(flag).apply(x)[0].sum().backward()
    return seen, x.grad


@program
def function_needs_input_grad(T):
    seen = []

    class F(T.autograd.Function):
        @staticmethod
        def forward(ctx, x, k, y):
            seen.append(ctx.needs_input_grad)
            return x * y

        @staticmethod
        def backward(ctx, g):
            seen.append(ctx.needs_input_grad)
            return g, None, None

    F.apply(leaf(T), 3, T.ones(4, dtype=T.float64)).sum().backward()
    return seen


@program
def function_once_differentiable(T):
    class F(T.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        @T.autograd.function.once_differentiable
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return 2 * x * g

    x = leaf(T)
    y = F.apply(x).sum()
    (g,) = T.autograd.grad(y, x, create_graph=True)
    g.sum().backward()


@program
def function_saves_output(T):
    class F(T.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            y = x.exp()
            ctx.save_for_backward(y)
            return y

        @staticmethod
        def backward(ctx, g):
            (y,) = ctx.saved_tensors
            return g * y

    x = leaf(T)
    (g,) = T.autograd.grad(F.apply(x).sum(), x, create_graph=True)
    return g, T.autograd.grad(g.sum(), x)


@program
def function_under_no_grad(T):
    with T.no_grad():
        y = make_square(T).apply(leaf(T))
    return y.requires_grad, y


@program
def function_returns_tuple_and_constant(T):
    class F(T.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2, "text", 3

        @staticmethod
        def backward(ctx, g, *rest):
            return g * 2

    x = leaf(T)
    y, text, number = F.apply(x)
    y.sum().backward()
    return x.grad, text, number


@program
def function_keyword_arguments(T):
    make_square(T).apply(x=leaf(T))


@program
def function_returns_none(T):
    class F(T.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * 2, None

    x, y = leaf(T), leaf(T)
    F.apply(x, y).sum().backward()
    return x.grad, y.grad


@program
def function_instance(T):
    make_square(T)()(leaf(T))


@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name):
    compare(PROGRAMS[name])


def _forward_mode_of_functions(lib):
    """Values, tangents, gradients, tangents of gradients and gradients of tangents of custom Functions whose
    ``forward`` takes a context, with arguments that also need gradients."""
    ad, found = lib.autograd.forward_ad, []

    class Product(lib.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            result = x ** 3 * y
            ctx.save_for_backward(x, y, result)
            ctx.save_for_forward(x, y)
            found.append(ctx.needs_input_grad)
            return result

        @staticmethod
        def backward(ctx, g):
            x, y, result = ctx.saved_tensors
            return g * 3 * x ** 2 * y, g * result / y

        @staticmethod
        def jvp(ctx, s, t):
            x, y = ctx.saved_tensors
            return 3 * x ** 2 * y * s + x ** 3 * t

    class Scale(lib.autograd.Function):
        @staticmethod
        def forward(ctx, x, k):
            ctx.mark_dirty(x)
            ctx.k = k
            return x.mul_(k)

        @staticmethod
        def backward(ctx, g):
            return g * ctx.k, None

        @staticmethod
        def jvp(ctx, t, _):
            return t.mul_(ctx.k)

    def parts(x):
        return None if x is None else [None if p is None else [round(v, 12) for v in p.detach().tolist()]
                                      for p in ad.unpack_dual(x)]

    def double(*numbers):
        return lib.tensor(numbers, dtype=lib.float64)

    x, y = double(1., 2.).requires_grad_(), double(3., 4.).requires_grad_()
    levels = [ad._current_level]
    with ad.dual_level():
        levels.append(ad._current_level)
        u, v = ad.make_dual(x, double(1., 10.)), ad.make_dual(y, double(1., 5.))
        for a, b in ((u, v), (u, y), (x, v)):
            r = Product.apply(a, b)
            found.append(parts(r))
            found.append([parts(g) for g in lib.autograd.grad(r.sum(), (x, y), create_graph=True)])
            found.append([parts(g)[0] for g in lib.autograd.grad(ad.unpack_dual(r).tangent.sum(), (x, y))])
        for whole in (True, False):
            z = u * 2
            w = Scale.apply(z if whole else z[:1], 3)
            found.append([w is z, parts(z), parts(w), parts(lib.autograd.grad((z * double(1., 7.)).sum(), x)[0])])
        with lib.no_grad():
            z = u * 2
            found.append([Scale.apply(z, 3) is z, parts(z)])
    return found, levels


def test_forward_mode_of_functions_that_are_recorded():
    torch = pytest.importorskip("torch")
    import ptcore
    assert _forward_mode_of_functions(ptcore) == _forward_mode_of_functions(torch)
