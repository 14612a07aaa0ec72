"""Random programs of buffers, views and writes, in float64: derivatives of first and second order.

A program has a vector and makes buffers and results, views of them, views of views, and writes to any of these, in any
order, so that most views are older than some writes. All that it has made enters its result. The oracle takes no
derivative: first order is compared with differences of the program itself, second order with differences of
first-order reverse mode. Other interpreters (batches, graphs, ``functionalize``, ``compile``) are compared with a
plain run, alone and with derivatives inside and outside of them. More programs than the suite runs:
``PTCORE_TEST_PROGRAMS=20000`` (from the seed ``PTCORE_TEST_SEED`` on).
"""
import os
import random

import numpy as np
import pytest

import ptcore as pt
from ptcore.autograd import forward_ad
from ptcore.func import functionalize, grad, hessian, jacfwd, jacrev, jvp, vmap
from ptcore.fx.experimental.proxy_tensor import make_fx

pytestmark = pytest.mark.core

N = 4
PROGRAMS = int(os.environ.get("PTCORE_TEST_PROGRAMS", "400"))
SEED = int(os.environ.get("PTCORE_TEST_SEED", "0"))
PARTS = 10
STEP = 1e-6


# -- steps: each takes the tensors made so far, and a random source that gives the same choices at every run ----------

def chosen(seen, r, *, ndim=1):
    return r.choice([x for x in seen if x.ndim >= ndim])


def fitting(seen, x, r):
    """A tensor that was made, seen in the shape of x by summing and broadcasting."""
    y = r.choice(seen)
    while y.ndim > x.ndim:
        y = y.sum(r.randrange(y.ndim))
    for k in range(1, y.ndim + 1):
        if y.shape[-k] not in (1, x.shape[-k]):
            y = y.narrow(y.ndim - k, 0, 1) if r.random() < 0.5 or y.shape[-k] < x.shape[-k] else y.narrow(
                y.ndim - k, 0, x.shape[-k])
    if y.is_complex() and not x.is_complex():
        y = pt.view_as_real(y).sum(-1)
    return r.choice([y * 0.5, y - 0.25, y.clone().sin(), y.sin()])


def made(seen, r, x):
    """A buffer or a result."""
    kind = r.randrange(9)
    y = r.choice(seen)
    if kind == 0:
        return pt.zeros(N, dtype=x.dtype)
    if kind == 1:
        return pt.zeros(2, 2, dtype=x.dtype)
    if kind == 2:
        return pt.full((3, 2), 0.25, dtype=x.dtype).t()
    if kind == 3:
        return y.clone()
    if kind == 4:
        return y * r.choice([1, 0.5, -1.5])
    if kind == 5:
        return y + r.choice([0, 1])
    if kind == 6:
        return y.sin()
    if kind == 7:
        return pt.zeros_like(y)
    return pt.zeros(2, dtype=pt.complex128) if r.random() < 0.5 else y.contiguous()


def view(seen, r):
    x = chosen(seen, r)
    kind = r.randrange(14)
    d = r.randrange(x.ndim)
    n = x.shape[d]
    if kind == 0:
        return x.select(d, r.randrange(n))
    if kind == 1:
        return x.narrow(d, r.randrange(n), 1)
    if kind == 2 and n > 1:
        return x[1:] if d == 0 else x[..., :-1] if d == x.ndim - 1 else x.narrow(d, 1, n - 1)
    if kind == 3:
        return x.T if x.ndim == 2 else x.transpose(0, -1)
    if kind == 4:
        return x.unsqueeze(r.randrange(x.ndim + 1)) if x.ndim < 3 else x[0]
    if kind == 5 and x.is_contiguous():
        return x.view(-1)
    if kind == 6 and x.ndim >= 2:
        return x.diagonal()
    if kind == 7 and x.is_contiguous() and x.numel() % 2 == 0:
        return x.view(2, -1)
    if kind == 8 and n > 1:
        return x.unfold(d, 2, 2) if x.ndim < 3 else x[:1]
    if kind == 9 and x.is_complex():
        return pt.view_as_real(x)
    if kind == 10 and x.is_complex():
        return x.real if r.random() < 0.5 else x.imag
    if kind == 11 and not x.is_complex() and x.is_contiguous() and x.shape[-1] == 2 and x.storage_offset() % 2 == 0:
        return pt.view_as_complex(x)
    if kind == 12:                      # a view, or a copy by the strides
        return x.reshape(-1)
    if kind == 13 and x.ndim >= 2:
        return x.transpose(0, -1).flatten(0, 1)
    return x[:]


def write(seen, r):
    x = chosen(seen, r, ndim=0)
    kind = r.randrange(16)
    if kind == 0:
        x.copy_(fitting(seen, x, r))
    elif kind == 1:
        x.add_(fitting(seen, x, r))
    elif kind == 2:
        x.mul_(fitting(seen, x, r))
    elif kind == 3:
        x.fill_(r.choice([0, 0.75]))
    elif kind == 4:
        x.mul_(r.choice([0.5, -1, 1.25]))
    elif kind == 5:
        x.sin_()
    elif kind == 6:
        x.mul_(0.25).exp_()
    elif kind == 7 and x.ndim:
        x[r.randrange(x.shape[0])] = r.choice([9.0, 0.5])
    elif kind == 8 and x.ndim:
        i = r.randrange(x.shape[0])
        x[i] = fitting(seen, x[i], r)
    elif kind == 9 and x.ndim:
        x[..., 0] *= 3
    elif kind == 10 and x.ndim:
        x.index_add_(0, pt.tensor([0]), fitting(seen, x[:1], r).expand(x[:1].shape).to(x.dtype))
    elif kind == 11:
        x.zero_()
    elif kind == 12 and x.ndim:
        x.index_fill_(0, pt.tensor([0]), 0.5)
    elif kind == 13 and not x.is_complex():
        x.clamp_(max=0.7).sub_(0.3)
    elif kind == 14 and x.ndim >= 2:
        x.transpose_(0, -1)
    else:
        x.addcmul_(fitting(seen, x, r), fitting(seen, x, r), value=0.5)
    return None


# -- custom functions, in programs of their own -----------------------------------------------------------------------

class Exponential(pt.autograd.Function):
    """exp(x / 4) in place of x; its result is saved."""

    @staticmethod
    def forward(ctx, x):
        x.mul_(0.25).exp_()
        ctx.mark_dirty(x)
        ctx.save_for_backward(x)
        return x

    @staticmethod
    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        return g * y.conj() * 0.25


class Moved(pt.autograd.Function):
    """x times a number, and w beside it, in place of x."""

    @staticmethod
    def forward(ctx, x, w, factor):
        ctx.factor = factor
        x.mul_(factor).add_(w)
        ctx.mark_dirty(x)
        return x

    @staticmethod
    def backward(ctx, g):
        return g * ctx.factor, g, None


class Overwritten(pt.autograd.Function):
    """tanh(w) in place of x; the result is saved. x gets no gradient."""

    @staticmethod
    def forward(ctx, x, w):
        x.copy_(w.tanh())
        ctx.mark_dirty(x)
        ctx.save_for_backward(x)
        return x

    @staticmethod
    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        return None, g * (1 - y * y).conj()


class Two(pt.autograd.Function):
    """Two results, of which the second is saved, and the input."""

    @staticmethod
    def forward(ctx, x):
        y = x.sin()
        ctx.save_for_backward(x, y)
        return x * x, y

    @staticmethod
    def backward(ctx, g, h):
        x, y = ctx.saved_tensors
        return (2 * g * x.conj() + h * x.cos().conj()) + 0 * y.conj()


class Part(pt.autograd.Function):
    """A view of the input."""

    @staticmethod
    def forward(ctx, x):
        ctx.shape = x.shape
        return x[:1]

    @staticmethod
    def backward(ctx, g):
        return pt.cat([g, pt.zeros((ctx.shape[0] - 1, *ctx.shape[1:]), dtype=g.dtype)])


class Same(pt.autograd.Function):
    """The input itself."""

    @staticmethod
    def forward(ctx, x):
        return x

    @staticmethod
    def backward(ctx, g):
        return g


def function(seen, r):
    """Runs a custom function; what it makes anew."""
    x = chosen(seen, r, ndim=0)
    kind = r.randrange(14)
    if kind < 2:
        Exponential.apply(x)
    elif kind < 4:
        Moved.apply(x, fitting(seen, x, r).expand(x.shape).to(x.dtype), 0.5)
    elif kind < 8:
        Overwritten.apply(x, fitting(seen, x, r).expand(x.shape).to(x.dtype))
    elif kind < 12:
        return Two.apply(x)[r.randrange(2)]
    elif kind == 12 and x.ndim:
        return Part.apply(x)
    else:
        return Same.apply(x)
    return None


STEPS = {"view": view, "write": write, "function": function}


def program(seed, functions=False):
    """A function of a vector to a number."""
    source = random.Random(seed)
    kinds = {"made": 2, "view": 3, "write": 4, **({"function": 5} if functions else {})}
    steps = [(source.choices(list(kinds), kinds.values())[0], source.random()) for _ in range(source.randint(3, 10))]

    def f(x):
        seen = [x * 1.0]
        for step, number in steps:
            r = random.Random(number)
            y = made(seen, r, x) if step == "made" else STEPS[step](seen, r)
            if y is not None:
                seen.append(y)
        total = 0
        for k, y in enumerate(seen):
            y = pt.view_as_real(y) if y.is_complex() else y
            total = total + (y * (0.3 + 0.1 * pt.arange(y.numel(), dtype=x.dtype).reshape(y.shape))).tanh().sum() * (
                1 + 0.1 * k)
        return total
    return f


# -- oracles ---------------------------------------------------------------------------------------------------------

def differences(f, x):
    """Central differences of f, a function of a vector to an array, along each element of x."""
    rows = []
    for k in range(N):
        e = pt.zeros(N, dtype=x.dtype)
        e[k] = STEP
        rows.append((np.asarray(f(x + e)) - np.asarray(f(x - e))) / (2 * STEP))
    return np.stack(rows, -1)


def reverse(f, x):
    y = x.clone().requires_grad_()
    out = f(y)
    (g,) = pt.autograd.grad(out, y, materialize_grads=True) if out.requires_grad else (pt.zeros_like(x),)
    return g.numpy()


def double_backward(f, x):
    y = x.clone().requires_grad_()
    out = f(y)
    if not out.requires_grad:
        return np.zeros((N, N))
    (g,) = pt.autograd.grad(out, y, create_graph=True, materialize_grads=True)
    if not g.requires_grad:
        return np.zeros((N, N))
    return np.stack([pt.autograd.grad(g[k], y, retain_graph=k < N - 1, materialize_grads=True)[0].numpy()
                     for k in range(N)])            # the last frees the graph


def dual_numbers(f, x):
    with forward_ad.dual_level():
        t = pt.zeros(N, dtype=x.dtype)
        t[1] = 1.0
        out = forward_ad.unpack_dual(f(forward_ad.make_dual(x.clone(), t))).tangent
    return np.zeros(()) if out is None else out.numpy()


FIRST = {"reverse": reverse, "grad": lambda f, x: grad(f)(x).numpy(), "jacfwd": lambda f, x: jacfwd(f)(x).numpy(),
         "jacrev": lambda f, x: jacrev(f)(x).numpy()}
SECOND = {"double backward": double_backward, "hessian": lambda f, x: hessian(f)(x).numpy(),
          "jacfwd of jacfwd": lambda f, x: jacfwd(jacfwd(f))(x).numpy(),
          "jacrev of jacfwd": lambda f, x: jacrev(jacfwd(f))(x).numpy(),
          "jacrev of jacrev": lambda f, x: jacrev(jacrev(f))(x).numpy()}


def samples(f, x):
    return vmap(f)(pt.stack([x * 0.5, x]))[1]


def columns(f, x):
    """The gradient by forward mode of two samples."""
    return pt.stack([samples(lambda y, e=e: jvp(f, (y,), (e,))[1], x) for e in pt.eye(N, dtype=x.dtype)])


VALUES = {
    "vmap": samples, "functionalize": lambda f, x: functionalize(f)(x),
    "make_fx": lambda f, x: make_fx(f)(x * 0.5)(x),
    "make_fx of functionalize": lambda f, x: make_fx(functionalize(f))(x * 0.5)(x),
    "compile": lambda f, x: pt.compile(f)(x),
    "trace": lambda f, x: pt.jit.trace(f, (x * 0.5,), check_trace=False)(x),
}
GRADIENTS = {
    "vmap of grad": lambda f, x: samples(grad(f), x), "vmap of jvp": columns,
    "grad of vmap": lambda f, x: grad(lambda y: samples(f, y))(x),
    "reverse of compile": lambda f, x: pt.tensor(reverse(pt.compile(f), x)),
    "reverse of trace": lambda f, x: pt.tensor(reverse(pt.jit.trace(f, (x * 0.5,), check_trace=False), x)),
    "make_fx of jacfwd": lambda f, x: make_fx(jacfwd(f))(x * 0.5)(x),
    "make_fx of grad": lambda f, x: make_fx(grad(f))(x * 0.5)(x),
    "compile of grad": lambda f, x: pt.compile(grad(f))(x),
    "grad of functionalize": lambda f, x: grad(functionalize(f))(x),
    "functionalize of grad": lambda f, x: functionalize(grad(f))(x),
    "jacfwd of functionalize": lambda f, x: jacfwd(functionalize(f))(x),
}
CURVATURES = {
    "compile of hessian": lambda f, x: pt.compile(hessian(f))(x),
    "make_fx of hessian": lambda f, x: make_fx(hessian(f))(x * 0.5)(x),
    "trace of hessian": lambda f, x: pt.jit.trace(hessian(f), (x * 0.5,), check_trace=False)(x),
    "functionalize of hessian": lambda f, x: functionalize(hessian(f))(x),
    "hessian of functionalize": lambda f, x: hessian(functionalize(f))(x),
    "jacfwd of functionalize of jacrev": lambda f, x: jacfwd(functionalize(jacrev(f)))(x),
    "functionalize of jacrev of jacfwd": lambda f, x: functionalize(jacrev(jacfwd(f)))(x),
    "vmap of hessian": lambda f, x: samples(hessian(f), x),
    "hessian of vmap": lambda f, x: hessian(lambda y: samples(f, y))(x),
    "compile of jacrev of jacrev": lambda f, x: pt.compile(jacrev(jacrev(f)))(x),
    "compile of jacrev of jacfwd": lambda f, x: pt.compile(jacrev(jacfwd(f)))(x),
    "double backward of compile": lambda f, x: pt.tensor(double_backward(pt.compile(f), x)),
}


def is_refused(e):
    """Whether reverse mode refuses a program for one of PyTorch's reasons: a saved tensor was written to, or a view
    cannot have a history."""
    return isinstance(e, RuntimeError) and any(text in str(e) for text in (
        "modified by an inplace operation", "returns multiple views", "refers to a single memory location",
        "share memory", "inside a custom Function", "and its base or another view of its base",
        "runs no custom autograd.Function"))


def is_refused_alone(e, f, x):
    """Whether an interpreter refuses a program that reverse mode alone refuses too, or a write of samples to memory
    that has none."""
    if "input is not batched, but a value that is would be written to it" in str(e):
        return True
    try:
        reverse(f, x)
    except RuntimeError as plain:
        return is_refused(plain) and is_refused(e)
    return False


def vector(seed):
    source = random.Random(-1 - seed)
    return pt.tensor([source.uniform(-1, 1) for _ in range(N)], dtype=pt.float64)


def check(seed):
    """Checks a program; the names of the derivatives that were compared, those in reverse being refused where a saved
    tensor was written to."""
    f, x = program(seed), vector(seed)
    try:
        f(x.clone())
    except RuntimeError:
        return None                     # memory that overlaps itself cannot be written to, by PyTorch's rule
    found = []
    want = differences(lambda y: float(f(y)), x)
    for name, call in FIRST.items():
        try:
            got = call(f, x)
        except RuntimeError as e:
            if name == "jacfwd" or "reverse" in found or not is_refused(e):
                raise
            continue
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6, err_msg=name)
        found.append(name)
    np.testing.assert_allclose(dual_numbers(f, x), want[1], rtol=1e-5, atol=1e-6, err_msg="dual numbers")
    t = x.cos()
    np.testing.assert_allclose(jvp(f, (x,), (t,))[1].numpy(), want @ t.numpy(), rtol=1e-5, atol=1e-6, err_msg="jvp")
    if "reverse" not in found:
        second = differences(lambda y: jacfwd(f)(y).numpy(), x)
    else:
        second = differences(lambda y: reverse(f, y), x)
    for name, call in SECOND.items():
        try:
            got = call(f, x)
        except RuntimeError as e:
            if name == "jacfwd of jacfwd" or not is_refused(e):
                raise
            continue
        np.testing.assert_allclose(got, second, rtol=1e-5, atol=2e-6, err_msg=name)
        found.append(name)
    return found


def check_modes(seed):
    """Checks two interpreters each of values, gradients and second derivatives on a program; how many ran it."""
    f, x, source = program(seed), vector(seed), random.Random(seed)
    try:
        value = float(f(x))
    except RuntimeError:
        return 0
    ran = 0
    tables = [(VALUES, value), (GRADIENTS, differences(lambda y: float(f(y)), x))]
    try:
        tables.append((CURVATURES, differences(lambda y: reverse(f, y), x)))
    except RuntimeError as e:
        if not is_refused(e):
            raise
    for table, want in tables:
        for name in source.sample(list(table), 2):
            try:
                got = table[name](f, x).detach().numpy()
            except RuntimeError as e:
                if is_refused_alone(e, f, x):
                    continue
                raise RuntimeError(f"{name}: {e}") from e
            np.testing.assert_allclose(got, want, rtol=1e-5, atol=2e-6, err_msg=name)
            ran += 1
    return ran


def check_functions(seed):
    """Checks a program with custom functions in reverse mode; how many derivatives were compared, None where it is
    refused."""
    f, x = program(seed, functions=True), vector(seed)
    compared = 0
    want = None
    for name, call in {**FIRST, **SECOND}.items():
        if "jacfwd" in name or name == "hessian":       # these functions have no rule of forward mode
            continue
        try:
            got = call(f, x)
        except RuntimeError as e:
            if not is_refused(e):
                raise RuntimeError(f"{name}: {e}") from e
            continue
        if name in FIRST:
            want = differences(lambda y: float(f(y)), x) if want is None else want
            np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6, err_msg=name)
        else:
            second = differences(lambda y: reverse(f, y), x)
            np.testing.assert_allclose(got, second, rtol=1e-5, atol=2e-6, err_msg=name)
        compared += 1
    if want is not None:
        for name in ("hessian of functionalize", "jacfwd of functionalize of jacrev", "double backward of compile"):
            try:
                got = CURVATURES[name](f, x)
            except RuntimeError as e:       # forward mode finds no rule of the function
                if not is_refused(e) and "override the setup_context" not in str(e):
                    raise RuntimeError(f"{name}: {e}") from e
                continue
            np.testing.assert_allclose(got, differences(lambda y: reverse(f, y), x), rtol=1e-5, atol=2e-6, err_msg=name)
    return compared


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.outer
def test_functions(part):
    compared = 0
    for seed in range(SEED + part, SEED + PROGRAMS, PARTS):
        try:
            compared += check_functions(seed)
        except Exception as e:
            raise AssertionError(f"program {seed}: {type(e).__name__}: {e}") from e
    assert compared > 0.5 * PROGRAMS / PARTS


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.outer
def test_modes(part):
    ran = 0
    for seed in range(SEED + part, SEED + PROGRAMS, PARTS):
        try:
            ran += check_modes(seed)
        except Exception as e:
            raise AssertionError(f"program {seed}: {type(e).__name__}: {e}") from e
    assert ran > 2.5 * PROGRAMS / PARTS


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.outer
def test_programs(part):
    compared = refused = 0
    for seed in range(SEED + part, SEED + PROGRAMS, PARTS):
        try:
            found = check(seed)
        except Exception as e:
            raise AssertionError(f"program {seed}: {type(e).__name__}: {e}") from e
        if found is not None:
            compared += len(found)
            refused += len(FIRST) + len(SECOND) - len(found)
    assert compared > refused
