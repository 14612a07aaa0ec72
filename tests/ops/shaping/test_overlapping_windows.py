"""Windows whose elements share memory: the last element in row-major order counts, for values and derivatives."""
import numpy as np
import pytest

import ptcore as pt
from ptcore import func

pytestmark = pytest.mark.core

# (sizes, strides, offset) over ten places
WINDOWS = [((3, 3), (2, 1), 0), ((4, 2), (1, 1), 1), ((2, 3), (1, 2), 0), ((2, 2, 2), (1, 1, 3), 0),
           ((3, 2), (1, 3), 4), ((2, 1, 4), (3, 7, 2), 0)]


def written(whole, part, size, stride, offset):
    """``whole`` with ``part`` written element by element, and the element of ``part`` that each place shows, or -1."""
    flat, last = whole.reshape(-1).copy(), np.full(whole.size, -1)
    for k, at in enumerate(np.ndindex(*size)):
        place = offset + sum(i * s for i, s in zip(at, stride))
        flat[place], last[place] = part[at], k
    return flat.reshape(whole.shape), last


@pytest.mark.parametrize("window", WINDOWS, ids=str)
@pytest.mark.parametrize("shape", [(10,), (2, 5)], ids=str)
def test_as_strided_scatter(window, shape):
    size, stride, offset = window
    r = np.random.default_rng(7)
    x, s, w = r.normal(size=shape), r.normal(size=size), r.normal(size=shape)
    expected, last = written(x, s, *window)

    def f(x, s):
        return pt.as_strided_scatter(x, s, size, stride, offset)

    a, b = pt.tensor(x, requires_grad=True), pt.tensor(s, requires_grad=True)
    y = f(a, b)
    np.testing.assert_array_equal(y.detach().numpy(), expected)
    (y * pt.tensor(w)).sum().backward()
    np.testing.assert_array_equal(a.grad.numpy(), w * (last < 0).reshape(shape))
    by_part = np.zeros(s.size)
    by_part[last[last >= 0]] = w.reshape(-1)[last >= 0]
    np.testing.assert_array_equal(b.grad.numpy().reshape(-1), by_part)
    tangent = r.normal(size=size)
    pushed = func.jvp(lambda s: f(pt.tensor(x), s), (pt.tensor(s),), (pt.tensor(tangent),))[1]
    np.testing.assert_array_equal(pushed.numpy(), written(np.zeros(shape), tangent, *window)[0])
    assert pt.autograd.gradgradcheck(lambda x, s: f(x, s) ** 3, (a, b))
    many = r.normal(size=(3, *size))
    np.testing.assert_array_equal(func.vmap(lambda s: f(pt.tensor(x), s))(pt.tensor(many)).numpy(),
                                  np.stack([written(x, s, *window)[0] for s in many]))
    np.testing.assert_array_equal(pt.compile(f)(pt.tensor(x), pt.tensor(s)).numpy(), expected)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128", "float16", "int8"])
@pytest.mark.parametrize("window", WINDOWS, ids=str)
def test_copies_are_in_order(window, dtype):
    """With and without a conversion; the source's layout does not matter."""
    part = np.arange(1, 1 + int(np.prod(window[0]))).reshape(window[0])
    expected = written(np.zeros(10), part, *window)[0]
    turned = pt.tensor(np.ascontiguousarray(part.transpose()), dtype=getattr(pt, dtype)).permute(*range(part.ndim)[::-1])
    for source in (pt.tensor(part, dtype=getattr(pt, dtype)), pt.tensor(part), turned):
        x = pt.zeros(10, dtype=getattr(pt, dtype))
        x.as_strided(*window).copy_(source)
        np.testing.assert_array_equal(x.numpy(), expected)
    x = pt.zeros(10, dtype=getattr(pt, dtype))
    written_by = func.functionalize(lambda x: (x.as_strided(*window).copy_(pt.tensor(part)), x)[1])
    np.testing.assert_array_equal(written_by(x).numpy(), expected)


def test_copies_of_many_elements_are_in_order():
    """Several threads would race."""
    n = 300_000
    x = pt.zeros(n + 7)
    x.as_strided((8, n), (1, 1)).copy_(pt.arange(8 * n).reshape(8, n))
    expected = np.concatenate([np.arange(8) * n, 7 * n + np.arange(1, n)]).astype(np.float32)
    np.testing.assert_array_equal(x.numpy(), expected)


def test_a_derivative_through_functionalize():
    """The tangent is of the element that counts."""
    def f(s):
        x = pt.zeros(5, dtype=s.dtype)
        x.as_strided((2, 3), (1, 1)).copy_(s)
        return x * pt.arange(1.0, 6, dtype=s.dtype)
    s, t = pt.arange(6.0).reshape(2, 3), pt.arange(10.0, 16).reshape(2, 3)
    value, tangent = func.jvp(func.functionalize(f), (s,), (t,))
    assert value.tolist() == [0, 6, 12, 20, 0] and tangent.tolist() == [10, 26, 42, 60, 0]


def test_a_function_that_marks_such_a_view_dirty_is_refused():
    class Write(pt.autograd.Function):
        @staticmethod
        def forward(ctx, view, y):
            ctx.mark_dirty(view)
            return view.copy_(y)

        @staticmethod
        def backward(ctx, g):
            return None, g

    x = pt.zeros(10)
    y = pt.ones(3, 3, requires_grad=True)
    with pytest.raises(RuntimeError, match="mark_dirty: elements of the written-to view overlap in memory"):
        Write.apply(x.as_strided((3, 3), (2, 1)), y)
    Write.apply(x.as_strided((3, 3), (3, 1)), y).sum().backward()
    assert y.grad.equal(pt.ones(3, 3))
