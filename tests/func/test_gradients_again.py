"""Graphs and compiled programs of gradients of products, differentiated again at zeros, against differences of eager
gradients in float64: a rule that chooses by values must not leave the choice in the graph."""
import numpy as np
import pytest

import ptcore as pt
from ptcore import func
from ptcore.fx.experimental.proxy_tensor import make_fx

FLAT = [0.0, 2.0, 3.0, -1.0]
SQUARE = [[0.0, 2.0, 0.0, 3.0], [1.0, 2.0, 3.0, 4.0], [0.0, 0.0, 0.0, 1.0]]
WEIGHT = pt.linspace(0.5, 2, 12, dtype=pt.float64).view(3, 4)
ONE_PLACE = pt.tensor([0, 0, 0, 1])
PROGRAMS = {
    "prod": (lambda x: pt.prod(x), FLAT),
    "prod of a dim": (lambda x: (pt.prod(x, 1) * WEIGHT[:, 0]).sum(), SQUARE),
    "prod of the first dim": (lambda x: (pt.prod(x, 0, True) * WEIGHT[:1]).sum(), SQUARE),
    "prod of all": (lambda x: pt.prod(x[:2] + 1e-3), SQUARE),
    "prod of halves": (lambda x: pt.prod(x.view(3, 2, 2).transpose(0, 1)[:, 1:], 0).sum(), SQUARE),
    "cumprod": (lambda x: (pt.cumprod(x, 1) * WEIGHT).sum(), SQUARE),
    "cumprod of the first dim": (lambda x: (pt.cumprod(x, 0) * WEIGHT).sum(), SQUARE),
    "scatter_reduce": (lambda x: pt.ones(3, dtype=x.dtype).scatter_reduce(0, ONE_PLACE, x, "prod").sum(), FLAT),
    "index_reduce": (lambda x: pt.ones(3, dtype=x.dtype).index_reduce(0, ONE_PLACE, x, "prod").sum(), FLAT),
    "segment_reduce": (lambda x: pt.segment_reduce(x, "prod", lengths=pt.tensor([3, 1])).sum(), FLAT),
}
MAKERS = {
    "make_fx": lambda gradient, x: make_fx(gradient)(x),
    "make_fx of other numbers": lambda gradient, x: make_fx(gradient)(x.abs() + 1),
    "trace": lambda gradient, x: pt.jit.trace(lambda x: gradient(x), (x,)),
    "compile": lambda gradient, x: pt.compile(gradient),
    "eager": lambda gradient, x: gradient,
}


@pytest.mark.parametrize("maker", MAKERS)
@pytest.mark.parametrize("program", PROGRAMS)
def test_second_order_at_zeros(program, maker):
    f, numbers = PROGRAMS[program]
    x = pt.tensor(numbers, dtype=pt.float64)
    along = pt.from_numpy(np.random.default_rng(0).standard_normal(x.shape))
    gradient = func.grad(f)
    step = 1e-6
    want = ((gradient(x + step * along) - gradient(x - step * along)) / (2 * step)).numpy()
    made = MAKERS[maker](gradient, x)
    first, forward = func.jvp(made, (x,), (along,))
    np.testing.assert_allclose(first.numpy(), gradient(x).numpy(), rtol=1e-14)
    np.testing.assert_allclose(forward.numpy(), want, rtol=1e-6, atol=1e-6)
    leaf = x.clone().requires_grad_()
    (reverse,) = pt.autograd.grad((made(leaf) * along).sum(), leaf)
    np.testing.assert_allclose(reverse.numpy(), want, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("maker", MAKERS)
@pytest.mark.parametrize("program", ["scatter_reduce", "index_reduce", "segment_reduce"])
def test_unknown_derivatives_are_not_numbers(program, maker):
    """With two zeros in a place the derivative is not known: it is refused where values are read, NaN elsewhere."""
    x = pt.tensor([0.0, 0.0, 3.0, -1.0], dtype=pt.float64)
    made = MAKERS[maker](func.grad(PROGRAMS[program][0]), x)
    leaf = x.clone().requires_grad_()

    def reverse():
        return pt.autograd.grad(made(leaf).sum(), leaf)[0]

    def forward():
        return func.jvp(made, (x,), (pt.ones_like(x),))[1]
    for derivative in (reverse, forward):
        if maker == "eager" or program == "segment_reduce" or (maker == "compile" and derivative is forward):
            with pytest.raises(RuntimeError, match="not known where several of its factors are 0"):
                derivative()
        else:
            found = derivative().tolist()
            assert np.isnan(found[2]) and found[3] == 0
