"""Gradients where a function has no single one: at ties, equal inputs, zeros and the ends of a range."""
import itertools
import warnings

import numpy as np
import pytest
from _walk import walk

import ptcore as pt

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.parity

INF = float("inf")
NAN = float("nan")
ROWS = {"equal": [[1.0, 1, 1, 1], [2, 2, 2, 2]], "pairs": [[1.0, 3, 3, 0], [3, 0, 0, 3]],
        "zeros": [[0.0, 0, 0, 0], [0, 0, 0, 0]], "a zero": [[0.0, 2, 3, 4], [1, 1, 0, 0]], "one column": [[1.0], [2.0]],
        "negative": [[-1.0, -1, 1, 0.5], [-0.5, 0.5, 3, -3]]}
ORDERS = (0, 0.5, 1, 2, 3, INF, -INF, -1)
ALONG = ("max min median nanmedian mode cummax cummin amax amin logcumsumexp logsumexp cumprod prod sum nansum mean "
         "nanmean std var norm softmax log_softmax cumsum").split()


def other(m, x):
    return x.detach().flip(0)


def ones(m, x):
    return m.ones_like(x)


def of(name, *arguments, **keywords):
    return lambda m, x: getattr(m, name)(x, *arguments, **keywords)


def functional(name, *arguments, **keywords):
    return lambda m, x: getattr(m.nn.functional, name)(x, *arguments, **keywords)


REDUCTIONS = {
    **{n: of(n) for n in "max min amax amin aminmax median nanmedian prod sum nansum std var norm".split()},
    **{f"{n} along {d}": of(n, dim=d) for n in ALONG for d in (0, 1)},
    "aminmax along 1": of("aminmax", dim=1), "std by n": of("std", dim=1, correction=0), "var_mean": of("var_mean", 1),
    **{f"norm {p}": of("norm", p) for p in (*ORDERS, "fro", "nuc")},
    **{f"vector_norm {p}": lambda m, x, p=p: m.linalg.vector_norm(x, p, dim=1) for p in ORDERS},
    **{f"matrix_norm {p}": lambda m, x, p=p: m.linalg.matrix_norm(x, p) for p in (1, -1, 2, INF, -INF, "fro", "nuc")},
    **{f"renorm {p}": of("renorm", p, 0, 1.0) for p in ORDERS if p > 0},
    **{f"dist {p}": lambda m, x, p=p: m.dist(x, ones(m, x), p) for p in ORDERS if p},
    **{f"dist of equals {p}": lambda m, x, p=p: m.dist(x, x * 1.0, p) for p in ORDERS if p},
    **{f"pdist {p}": lambda m, x, p=p: m.pdist(m.cat([x, x]), p) for p in ORDERS if p >= 0},
    **{f"cdist {p}": lambda m, x, p=p: m.cdist(x, m.cat([x.detach(), ones(m, x)]), p) for p in ORDERS if p >= 0},
    **{f"pairwise_distance {p}": lambda m, x, p=p: m.nn.functional.pairwise_distance(x, ones(m, x), p) for p in ORDERS},
    **{f"normalize {p}": functional("normalize", p, 1) for p in ORDERS},
    **{f"quantile {q} {i}": of("quantile", q, dim=1, interpolation=i) for q in (0, 0.3, 0.5, 1.0)
       for i in ("linear", "lower", "higher", "nearest", "midpoint")},
    "sort": of("sort", dim=1, stable=True), "trapezoid": of("trapezoid"), "diff": of("diff"), "cov": of("cov"),
    **{f"{n} {k}": functional(n, k, 1) for n in ("max_pool1d", "avg_pool1d") for k in (1, 2, 3)},
    "max_pool2d": lambda m, x: m.nn.functional.max_pool2d(x[None], (2, 1), 1),
    "adaptive_max_pool1d": functional("adaptive_max_pool1d", 3), "lp_pool1d": functional("lp_pool1d", 2, 2, 1),
    "lp_pool1d of order 3": functional("lp_pool1d", 3, 2, 1),
    **{f"{n}, {r}, {s}": lambda m, x, n=n, r=r, s=s: scattered(m, x, ones(m, x), n, r, s)
       for n in ("scatter_reduce", "index_reduce") for r in ("amax", "amin", "prod", "mean") for s in (True, False)},
    **{f"{n} into, {r}, {s}": lambda m, x, n=n, r=r, s=s: scattered(m, ones(m, x), x, n, r, s)
       for n in ("scatter_reduce", "index_reduce") for r in ("amax", "amin", "prod", "mean") for s in (True, False)},
    "embedding_bag": lambda m, x: m.nn.functional.embedding_bag(m.tensor([[0, 1, 1]]), x, mode="max")}


def scattered(m, into, x, name, reduce, include_self):
    at = m.zeros_like(x).long() if name == "scatter_reduce" else m.zeros(x.shape[1]).long()
    return getattr(m, name)(into, 1, at, x, reduce, include_self=include_self)


LIMITS = ((1.0, 2.0), (0.0, 0.0), (3.0, 1.0), (None, 1.0), (0.0, None))
ELEMENTWISE = {
    **{f"{n}, {w}": lambda m, x, n=n, f=f: getattr(m, n)(*f(m, x))
       for n in ("maximum minimum fmax fmin atan2 hypot pow copysign xlogy logaddexp logaddexp2 div fmod "
                 "remainder").split()
       for w, f in (("first", lambda m, x: (x, other(m, x))), ("second", lambda m, x: (other(m, x), x)),
                    ("both", lambda m, x: (x, x)))},
    **{f"clamp {a} {b}": of("clamp", a, b) for a, b in LIMITS},
    **{f"clamp by tensors {a} {b}": lambda m, x, limits=(a, b): m.clamp(
        x, *[None if v is None else m.tensor(v) for v in limits]) for a, b in LIMITS},
    "clamp to at least": lambda m, x: m.clamp(ones(m, x), min=x),
    "clamp to at most": lambda m, x: m.clamp(ones(m, x), max=x),
    **{f"{n} at {s}": lambda m, x, n=n, s=s: getattr(m.nn.functional, n)(x * s)
       for n in ("relu hardshrink softshrink hardtanh hardsigmoid hardswish relu6 leaky_relu elu celu selu silu gelu "
                 "logsigmoid softplus tanhshrink mish softsign").split() for s in (1, 0.5, -1, 3, -3, 6)},
    "threshold": functional("threshold", 1.0, 7.0), "glu": functional("glu", 0),
    **{n: of(n) for n in ("abs sign sgn sqrt rsqrt floor ceil round trunc frac nan_to_num sinc acos asin atanh log "
                          "log1p reciprocal square asinh erf i0").split()},
    **{f"{n}, {w}": lambda m, x, n=n, f=f: getattr(m.nn.functional, n)(*f(m, x))
       for n in "l1_loss mse_loss smooth_l1_loss huber_loss".split()
       for w, f in (("input", lambda m, x: (x, ones(m, x))), ("target", lambda m, x: (ones(m, x), x)))},
    **{n: lambda m, x, n=n: getattr(m.nn.functional, n)(x, ones(m, x)) for n in (
        "hinge_embedding_loss", "soft_margin_loss", "kl_div", "poisson_nll_loss", "cosine_similarity")},
    "margin_ranking_loss": lambda m, x: m.nn.functional.margin_ranking_loss(x, ones(m, x), ones(m, x)),
    "triplet_margin_loss": lambda m, x: m.nn.functional.triplet_margin_loss(x, ones(m, x), ones(m, x), swap=True),
    "multi_margin_loss": lambda m, x: m.nn.functional.multi_margin_loss(x, m.tensor([0, 0])),
    "cosine_embedding_loss": lambda m, x: m.nn.functional.cosine_embedding_loss(x, ones(m, x), m.tensor([1.0, -1.0])),
    "layer_norm": lambda m, x: m.nn.functional.layer_norm(x, x.shape[1:])}
# The 0 of what does not count holds beside an infinite or undefined gradient that comes in.
GUARDED = {f"{g} of {f}": lambda m, x, f=f, g=g: getattr(m, g)(INNER[f](m, x)) for f, g in itertools.product(
    ("relu", "relu6", "hardtanh", "clamp", "maximum", "minimum", "fmax", "softshrink", "hardshrink", "where",
     "threshold"), ("sqrt", "log", "reciprocal")) if (f, g) != ("softshrink", "reciprocal")}     # of -0.0 here
INNER = {
    "relu": lambda m, x: m.relu(x), "relu6": functional("relu6"), "hardtanh": functional("hardtanh", 0.0, 2.0),
    "clamp": of("clamp", 0.0, 3.0), "maximum": lambda m, x: m.maximum(x, m.zeros_like(x) + 0.25),
    "minimum": lambda m, x: m.minimum(x, m.zeros_like(x)), "fmax": lambda m, x: m.fmax(x, m.zeros_like(x)),
    "softshrink": functional("softshrink"), "hardshrink": functional("hardshrink"),
    "where": lambda m, x: m.where(x > 0.6, x, m.zeros_like(x)), "threshold": functional("threshold", 1.0, 0.0)}
# Why a gradient differs, and for which rows; an entry that is torch's in all of them fails.
DIFFERENT = {
    **{f"{n} into, {r}, False": (("equal", "a zero", "one column", "pairs", "negative"),
                                 "torch counts an element that is left out among the ties")
       for n in ("scatter_reduce", "index_reduce") for r in ("amax", "amin")},
    **{f"{n}, {w}": (rows, "torch has nan where the derivative of a zero is 0")
       for n, w, rows in (("hypot", "first", ("zeros",)), ("hypot", "second", ("zeros",)),
                          ("hypot", "both", ("zeros", "pairs", "a zero")), ("xlogy", "second", ("zeros",)),
                          ("xlogy", "both", ("zeros", "pairs", "a zero")))}}


def result(m, f, rows):
    x = m.tensor(rows, dtype=m.float64, requires_grad=True)
    with warnings.catch_warnings(record=True):
        warnings.simplefilter("always")
        return differentiated(m, f, x)


def differentiated(m, f, x):
    try:
        y = f(m, x)
        y = y[0] if isinstance(y, tuple) else y
        if not y.requires_grad:
            return y.detach().numpy(), None
        (y * (m.arange(y.numel(), dtype=m.float64).reshape(y.shape) + 1)).sum().backward()
    except (RuntimeError, NotImplementedError) as e:
        return e
    return y.detach().numpy(), np.zeros(x.shape) if x.grad is None else x.grad.numpy(**(
        {"force": True} if m is torch else {}))


def check_subgradient(x, g):
    """Of the nuclear norm: where a singular value is 0 there are many, and LAPACK's vectors choose one."""
    assert np.linalg.norm(g, 2) <= 1 + 1e-9
    np.testing.assert_allclose((g * x).sum(), np.linalg.norm(x, "nuc"), rtol=1e-9)


@walk("name", [*REDUCTIONS, *ELEMENTWISE, *GUARDED])
def test_gradient_at_ties(name):
    f = {**REDUCTIONS, **ELEMENTWISE, **GUARDED}[name]
    rows, reason = DIFFERENT.get(name, ((), None))
    compared = differ = 0
    for which, values in ROWS.items():
        theirs, mine = result(torch, f, values), result(pt, f, values)
        if isinstance(theirs, Exception):
            assert isinstance(mine, Exception), (which, theirs, mine)
            continue
        assert not isinstance(mine, Exception), (which, mine)
        np.testing.assert_allclose(mine[0], theirs[0], rtol=1e-7, atol=1e-8, err_msg=which)
        assert (mine[1] is None) == (theirs[1] is None), which
        compared += 1
        if theirs[1] is not None:
            if name.endswith("nuc") and np.linalg.matrix_rank(values) < min(np.shape(values)):
                check_subgradient(np.array(values), mine[1])
                continue
            same = np.allclose(mine[1], theirs[1], rtol=1e-6, atol=1e-8, equal_nan=True)
            assert same or which in rows, f"{which}: {mine[1].tolist()}, torch {theirs[1].tolist()}"
            differ += not same
    assert compared, "torch took none"
    assert differ or reason is None, f"equal now: {reason}"


def second(m, f, rows):
    """The derivative of second order, None where PyTorch has none."""
    x = m.tensor(rows, dtype=m.float64, requires_grad=True)
    try:
        y = f(m, x)
        y = y[0] if isinstance(y, tuple) else y
        if not y.requires_grad:
            return np.zeros(x.shape)
        g, = m.autograd.grad((y * (m.arange(y.numel(), dtype=m.float64).reshape(y.shape) + 1)).sum(), x,
                             create_graph=True)
        if not g.requires_grad:
            return np.zeros(x.shape)
        h, = m.autograd.grad((g * m.arange(1.0, g.numel() + 1, dtype=m.float64).reshape(g.shape)).sum(), x,
                             allow_unused=True)
    except (RuntimeError, NotImplementedError):
        assert m is torch
        return None
    return np.zeros(x.shape) if h is None else h.numpy(**({"force": True} if m is torch else {}))


# Singular values that are equal have no derivative of second order, and fmod none at 0.
@walk("name", [n for n in (*REDUCTIONS, *ELEMENTWISE, *GUARDED)
                                  if not n.endswith("nuc") and not n.startswith("fmod")])
def test_second_order_at_ties(name):
    """PyTorch's wherever that is a number."""
    f = {**REDUCTIONS, **ELEMENTWISE, **GUARDED}[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        for which, rows in ROWS.items():
            theirs = second(torch, f, rows)
            if theirs is not None:
                finite = np.isfinite(theirs)
                np.testing.assert_allclose(second(pt, f, rows)[finite], theirs[finite], rtol=1e-6, atol=1e-8,
                                           err_msg=which)


def test_second_order_of_a_rank_that_is_not_full():
    """Of the largest singular value, beside others that are 0 to the bit: as differences of NumPy's gradient."""
    def gradient(x):
        u, _, vh = np.linalg.svd(x, full_matrices=False)
        return np.outer(u[:, 0], vh[0])

    x, by = np.array([[2.0, 0, 0], [0, 0, 0]]), np.arange(1.0, 7).reshape(2, 3)
    t = pt.tensor(x, requires_grad=True)
    g, = pt.autograd.grad(pt.linalg.matrix_norm(t, 2), t, create_graph=True)
    h, = pt.autograd.grad((g * pt.tensor(by)).sum(), t)
    want = np.empty_like(x)
    for i in np.ndindex(*x.shape):
        step = np.zeros_like(x)
        step[i] = 1e-5
        want[i] = ((gradient(x + step) - gradient(x - step)) * by).sum() / 2e-5
    np.testing.assert_allclose(h.numpy(), want, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("name", ["median", "nanmedian"])
@pytest.mark.parametrize("values", [[1.0, 2, 2, 3, 2], [NAN, 1, NAN], [NAN, 1, 1, 2, 1], [INF, INF, -INF],
                                    [-INF, -INF, 1]])
def test_median_shares(name, values):
    theirs, mine = [result(m, lambda m, x: getattr(m, name)(x), values) for m in (torch, pt)]
    np.testing.assert_allclose(mine[1], theirs[1])


@pytest.mark.parametrize("rows", [[0.0, 2, INF], [0.0, INF], [0.0, -INF, -1], [0.0, NAN, 2], [[0.0, INF], [3, 0]],
                                  [[INF, 0, 2], [0, 1, 2]]], ids=str)
@pytest.mark.parametrize("dim", [None, -1])
def test_products_of_zero_and_infinity(rows, dim):
    """The product is NaN, but that of the others, which a factor gets, need not be.

    With two zeros in all PyTorch gives 0 for every factor, though some of the products of the others are NaN.
    """
    def f(m, x):
        return m.prod(x) if dim is None else m.prod(x, dim)
    (_, theirs), (_, mine) = [result(m, f, rows) for m in (torch, pt)]
    if dim is None and np.count_nonzero(np.equal(rows, 0)) > 1:
        flat = np.ravel(rows)
        with np.errstate(invalid="ignore"):
            theirs = np.reshape([np.prod(np.delete(flat, k)) for k in range(flat.size)], np.shape(rows))
    np.testing.assert_array_equal(mine, theirs)
