"""``func`` beside torch's: signatures, results, classes of errors, and who requires grad afterwards."""
import inspect
import warnings

import numpy as np
import pytest

import ptcore as pt

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.parity

NAMES = ["functional_call", "grad", "grad_and_value", "hessian", "jacfwd", "jacrev", "jvp", "linearize",
         "stack_module_state", "vjp", "vmap", "debug_unwrap"]


@pytest.mark.parametrize("name", NAMES)
def test_signatures(name):
    ours, theirs = (inspect.signature(getattr(m.func, name)).parameters.values() for m in (pt, torch))
    assert [(p.name, p.kind, p.default) for p in ours] == [(p.name, p.kind, p.default) for p in theirs]


X = np.random.default_rng(0).normal(size=(3, 4))
Y = np.random.default_rng(1).normal(size=(3, 4))
W = np.random.default_rng(2).normal(size=(4, 4))


def outer(m, x):
    return (x[:, None] * x).sin()


# Each is called with the library and its float64 tensors X, Y, W.
CALLS = {
    "vmap": lambda m, x, y, w: m.vmap(m.dot)(x, y),
    "vmap in_dims": lambda m, x, y, w: m.vmap(m.dot, in_dims=(1, 1))(x, y),
    "vmap None": lambda m, x, y, w: m.vmap(lambda a, b: a @ b, in_dims=(0, None))(x, w),
    "vmap out_dims": lambda m, x, y, w: m.vmap(lambda a: (a, a.sum()), out_dims=(1, 0))(x),
    "vmap negative": lambda m, x, y, w: m.vmap(lambda a: a * 2, in_dims=-1, out_dims=-1)(x),
    "vmap tuple out_dims": lambda m, x, y, w: m.vmap(lambda a: a * 2, out_dims=(1,))(x),
    "vmap dict": lambda m, x, y, w: (
        m.vmap(lambda d: {"r": d["a"] + d["b"]}, in_dims=({"a": 0, "b": None},))({"a": x, "b": y[0]})),
    "vmap list arg": lambda m, x, y, w: m.vmap(lambda pair: pair[0] * pair[1])([x, y]),
    "vmap nested": lambda m, x, y, w: m.vmap(m.vmap(lambda a, b: a * b, (0, None)), (None, 0))(x[0], y[0]),
    "vmap chunk": lambda m, x, y, w: m.vmap(lambda a: (a, a.sum()), chunk_size=2)(x),
    "vmap kwargs": lambda m, x, y, w: m.vmap(lambda a, *, k: a * k)(x, k=3),
    "vmap method": lambda m, x, y, w: m.vmap(m.Tensor.cumsum, (0, None))(x, 0),
    "grad": lambda m, x, y, w: m.func.grad(lambda a: (a.sin() * a).sum())(x),
    "grad argnums": lambda m, x, y, w: m.func.grad(lambda a, b: (a * b.exp()).sum(), argnums=1)(x, y),
    "grad tuple": lambda m, x, y, w: m.func.grad(lambda a, b: (a * b.exp()).sum(), argnums=(0, 1))(x, y),
    "grad negative": lambda m, x, y, w: m.func.grad(lambda a, b: (a * b.exp()).sum(), argnums=-1)(x, y),
    "grad aux": lambda m, x, y, w: m.func.grad(lambda a: ((a ** 2).sum(), {"a": a * 2}), has_aux=True)(x),
    "grad dict": lambda m, x, y, w: m.func.grad(lambda d: (d["a"] * d["b"]).sum())({"a": x, "b": y}),
    "grad unused": lambda m, x, y, w: m.func.grad(lambda a, b: b.sum(), argnums=(0, 1))(x, y),
    "grad constant": lambda m, x, y, w: m.func.grad(lambda a: m.ones((), dtype=m.float64))(x),
    "grad_and_value": lambda m, x, y, w: m.func.grad_and_value(lambda a: (a ** 3).sum())(x),
    "grad_and_value aux": lambda m, x, y, w: m.func.grad_and_value(lambda a: ((a ** 3).sum(), a), has_aux=True)(x),
    "grad grad": lambda m, x, y, w: m.func.grad(m.func.grad(lambda a: a.sin() * a ** 2))(x[0, 0]),
    "grad no_grad inside": lambda m, x, y, w: m.func.grad(lambda a: no_grad_inside(m, a))(x),
    "grad grad no_grad": lambda m, x, y, w: (
        m.func.grad(lambda b: m.func.grad(lambda a: no_grad_inside(m, a * b))(x).sum())(y)),
    "grad detach": lambda m, x, y, w: m.func.grad(lambda a: (a.detach() * a).sum())(x),
    "grad in place": lambda m, x, y, w: m.func.grad(lambda a: a.clone().mul_(a).sin_().sum())(x),
    "grad view write": lambda m, x, y, w: m.func.grad(lambda a: written(m, a).sum())(x),
    "vmap grad": lambda m, x, y, w: m.vmap(m.func.grad(lambda a: (a ** 3).sum()))(x),
    "vmap grad in place": lambda m, x, y, w: m.vmap(m.func.grad(lambda a: written(m, a).sum()))(x.reshape(1, 3, 4)),
    "grad vmap": lambda m, x, y, w: m.func.grad(lambda a: m.vmap(lambda r: (r ** 3).sum())(a).sum())(x),
    "grad vmap grad": lambda m, x, y, w: m.func.grad(
        lambda s: m.vmap(m.func.grad(lambda a: ((a * s) ** 3).sum()))(x).sum())(y[0]),
    "vjp": lambda m, x, y, w: (lambda r: (r[0], r[1](y)))(m.func.vjp(lambda a: a.sin(), x)),
    "vjp two": lambda m, x, y, w: (lambda r: (r[0], r[1]((y, y))))(m.func.vjp(lambda a, b: (a * b, a + b), x, y)),
    "vjp aux": lambda m, x, y, w: (
        (lambda r: (r[0], r[1](y), r[2]))(m.func.vjp(lambda a: (a.sin(), a), x, has_aux=True))),
    "vjp dict": lambda m, x, y, w: (
        (lambda r: (r[0], r[1]({"o": y})))(m.func.vjp(lambda d: {"o": d["a"] ** 2}, {"a": x}))),
    "vjp complex": lambda m, x, y, w: m.view_as_real(m.func.vjp(
        lambda a: a * a * 1j, m.complex(x, y))[1](m.complex(y, x))[0]),
    "vmap vjp": lambda m, x, y, w: m.vmap(m.func.vjp(lambda a: a @ w, x[0])[1])(y),
    "jvp": lambda m, x, y, w: m.func.jvp(lambda a: a.sin(), (x,), (y,)),
    "jvp two": lambda m, x, y, w: m.func.jvp(lambda a, b: (a * b, {"s": a.sum()}), (x, y), (y, x)),
    "jvp aux": lambda m, x, y, w: m.func.jvp(lambda a: (a.sin(), a.cos()), (x,), (y,), has_aux=True),
    "jvp constant": lambda m, x, y, w: m.func.jvp(lambda a: m.ones(2), (x,), (y,)),
    "jvp jvp": lambda m, x, y, w: m.func.jvp(lambda a: m.func.jvp(lambda b: a * b.sin(), (y,), (x,))[1], (x,), (y,)),
    "jvp in place": lambda m, x, y, w: m.func.jvp(lambda a: written(m, a), (x,), (y,)),
    "jvp write to zeros": lambda m, x, y, w: m.func.jvp(lambda a: onto_zeros(m, a), (x,), (y,)),
    "jvp data": lambda m, x, y, w: m.func.jvp(lambda a: a * 2 if a.sum() > 0 else a * 3, (x,), (y,)),
    "vmap jvp": lambda m, x, y, w: m.vmap(lambda a, t: m.func.jvp(lambda b: b ** 2, (a,), (t,)))(x, y),
    "jvp vmap": lambda m, x, y, w: m.func.jvp(m.vmap(lambda b: b.cumsum(0)), (x,), (y,)),
    "jvp grad": lambda m, x, y, w: m.func.jvp(m.func.grad(lambda a: (a ** 3).sum()), (x,), (y,)),
    "grad jvp": lambda m, x, y, w: m.func.grad(lambda a: m.func.jvp(lambda b: b ** 3, (a,), (y,))[1].sum())(x),
    "jacrev": lambda m, x, y, w: m.func.jacrev(lambda a: outer(m, a))(x[0]),
    "jacrev argnums": lambda m, x, y, w: m.func.jacrev(lambda a, b: (a * b.sum(), a), argnums=(0, 1))(x[0], y[0]),
    "jacrev one in tuple": lambda m, x, y, w: m.func.jacrev(lambda a: a ** 2, argnums=(0,))(x[0]),
    "jacrev dict": lambda m, x, y, w: m.func.jacrev(lambda d: {"o": d["a"] * d["b"].sum()})({"a": x[0], "b": y[0]}),
    "jacrev aux": lambda m, x, y, w: m.func.jacrev(lambda a: (a ** 2, a * 3), has_aux=True)(x[0]),
    "jacrev chunk": lambda m, x, y, w: m.func.jacrev(lambda a: outer(m, a), chunk_size=3)(x[0]),
    "jacrev chunk 1": lambda m, x, y, w: m.func.jacrev(lambda a: (a.sum(), a ** 2), chunk_size=1)(x[0]),
    "jacfwd": lambda m, x, y, w: m.func.jacfwd(lambda a: outer(m, a))(x[0]),
    "jacfwd argnums": lambda m, x, y, w: m.func.jacfwd(lambda a, b: (a * b.sum(), a), argnums=(0, 1))(x[0], y[0]),
    "jacfwd aux": lambda m, x, y, w: m.func.jacfwd(lambda a: (a ** 2, a * 3), has_aux=True)(x[0]),
    "jacfwd dict": lambda m, x, y, w: m.func.jacfwd(lambda d: {"o": d["a"] * d["b"].sum()})({"a": x[0], "b": y[0]}),
    "jacfwd scalar": lambda m, x, y, w: m.func.jacfwd(m.sin)(x[0, 0]),
    "jacrev scalar": lambda m, x, y, w: m.func.jacrev(m.sin)(x[0, 0]),
    "hessian": lambda m, x, y, w: m.func.hessian(lambda a: (a @ w @ a).sin())(x[0]),
    "hessian argnums": lambda m, x, y, w: m.func.hessian(lambda a, b: (a * b ** 2).sum(), argnums=(0, 1))(x[0], y[0]),
    "jacrev jacrev": lambda m, x, y, w: m.func.jacrev(m.func.jacrev(lambda a: (a ** 3).sum()))(x[0]),
    "vmap hessian": lambda m, x, y, w: m.vmap(m.func.hessian(lambda a: (a ** 3).sum()))(x),
    "vmap jacrev": lambda m, x, y, w: m.vmap(m.func.jacrev(lambda a: a ** 3))(x),
    "jacfwd of vmap": lambda m, x, y, w: m.func.jacfwd(m.vmap(lambda a: a.sum() * a))(x),
    "linearize": lambda m, x, y, w: (lambda r: (r[0], r[1](y)))(m.func.linearize(lambda a: a.sin() * a, x)),
    "linearize two": lambda m, x, y, w: (
        (lambda r: (r[0], r[1](y, x)))(m.func.linearize(lambda a, b: a.sin() * b, x, y))),
    "vmap conv": lambda m, x, y, w: (
        m.vmap(lambda a, k: m.nn.functional.conv1d(a.reshape(1, 1, 4), k.reshape(1, 1, 4)[..., :2]))(x, y)),
    "vmap bmm": lambda m, x, y, w: m.vmap(m.mm, (None, 0))(w, w.expand(2, 4, 4)),
    "vmap linalg": lambda m, x, y, w: m.vmap(m.linalg.solve)(w.expand(3, 4, 4) + 3 * m.eye(4, dtype=m.float64), x),
    "vmap index_put": lambda m, x, y, w: m.vmap(lambda a, b: a.index_put((m.tensor([0, 2]),), b[:2]))(x, y),
    "vmap where": lambda m, x, y, w: m.vmap(lambda a: m.where(a > 0, a, m.zeros((), dtype=m.float64)))(x),
    "vmap argmax": lambda m, x, y, w: m.vmap(m.argmax)(x),
    "vmap topk": lambda m, x, y, w: tuple(m.vmap(lambda a: m.topk(a, 2))(x)),
    "vmap std": lambda m, x, y, w: m.vmap(m.std)(x),
    "vmap softmax": lambda m, x, y, w: m.vmap(lambda a: m.softmax(a, 0))(x),
    "vmap promotes": lambda m, x, y, w: m.vmap(lambda a: a.float() * m.tensor(2, dtype=m.float64))(x),
    "vmap of 0-d": lambda m, x, y, w: m.vmap(lambda a: a.float() * y)(x[0]),
}


def no_grad_inside(m, a):
    with m.no_grad():
        c = a ** 2
    return (a ** 2 - c * a).sum()


def written(m, a):
    b = a * 2
    b[0] = a[1] * a[0]
    b[..., 1:].add_(a[..., :-1] ** 2)
    return b.mul_(3)


def onto_zeros(m, a):
    z = m.zeros(3, 4, dtype=m.float64)
    row = z[1]
    row.add_(a[0])
    z[:, 1].mul_(3)
    return z * 2, row


def leaves(result):
    if isinstance(result, dict):
        return [x for k in result for x in leaves(result[k])]
    if isinstance(result, (tuple, list)):
        return [x for r in result for x in leaves(r)]
    return [result]


def structure(result):
    if isinstance(result, dict):
        return {k: structure(v) for k, v in result.items()}
    return [structure(r) for r in result] if isinstance(result, (tuple, list)) else "*"


@pytest.mark.parametrize("tracked", [False, True], ids=["plain", "tracked"])
@pytest.mark.parametrize("name", CALLS)
def test_results(name, tracked):
    """Equal results, of the same structure and dtype; tensors that require grad at entry get the same gradients."""
    if tracked and name.startswith("linearize"):
        return              # torch's linear function takes what it is made of for constants, as far as gradients go
    found = []
    for m in (pt, torch):
        inputs = [m.asarray(a.copy()).requires_grad_(tracked) for a in (X, Y, W)]
        with warnings.catch_warnings():
            if m is torch:              # of torch's own graph
                warnings.filterwarnings(action="ignore", message="Attempted to insert a get_attr")
            result = CALLS[name](m, *inputs)
        flat = leaves(result)
        total = [(x * x.cos()).sum() for x in flat if x.requires_grad]
        grads = m.autograd.grad(sum(total), inputs, allow_unused=True) if total else [None] * 3
        found.append((structure(result), flat, grads))
    ours, theirs = found
    assert ours[0] == theirs[0]
    for a, b in zip(ours[1], theirs[1]):
        assert str(a.dtype).split(".")[1] == str(b.dtype).split(".")[1]
        assert a.requires_grad == b.requires_grad
        rtol = 1e-7 if a.dtype is pt.float64 else 1e-5
        np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=rtol, atol=1e-9)
    for a, b in zip(ours[2], theirs[2]):
        assert (a is None) == (b is None) or not (a if b is None else b).any()
        if a is not None and b is not None:
            rtol = 1e-7 if ours[1][0].dtype is pt.float64 else 1e-5
            np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=rtol, atol=1e-9)


ERRORS = {
    "grad of a vector": lambda m, x, y, w: m.func.grad(lambda a: a)(x),
    "grad of a number": lambda m, x, y, w: m.func.grad(lambda a: 3.0)(x),
    "grad of integers": lambda m, x, y, w: m.func.grad(lambda a: a.sum())(m.arange(3)),
    "grad argnums": lambda m, x, y, w: m.func.grad(lambda a: a.sum(), argnums=1)(x),
    "grad argnums twice": lambda m, x, y, w: m.func.grad(lambda a, b: a.sum(), argnums=(0, 0))(x, y),
    "grad argnums empty": lambda m, x, y, w: m.func.grad(lambda a: a.sum(), argnums=())(x),
    "grad argnums str": lambda m, x, y, w: m.func.grad(lambda a: a.sum(), argnums="a")(x),
    "grad of no tensor": lambda m, x, y, w: m.func.grad(lambda a: a)(2.0),
    "grad aux": lambda m, x, y, w: m.func.grad(lambda a: a.sum(), has_aux=True)(x),
    "grad complex": lambda m, x, y, w: m.func.grad(lambda a: (a * 1j).sum())(x),
    "vjp of nothing": lambda m, x, y, w: m.func.vjp(lambda a: None, x),
    "vjp of integers": lambda m, x, y, w: m.func.vjp(lambda a: a.argmax(), x),
    "vjp structure": lambda m, x, y, w: m.func.vjp(lambda a: (a, a), x)[1](y),
    "vjp shape": lambda m, x, y, w: m.func.vjp(lambda a: a, x)[1](y[0]),
    "jvp no tuple": lambda m, x, y, w: m.func.jvp(lambda a: a, x, y),
    "jvp structure": lambda m, x, y, w: m.func.jvp(lambda a: a, (x,), (y, y)),
    "jvp shape": lambda m, x, y, w: m.func.jvp(lambda a: a, (x,), (y[0],)),
    "jvp numbers": lambda m, x, y, w: m.func.jvp(lambda a: a, (2.0,), (1.0,)),
    "jvp strict": lambda m, x, y, w: m.func.jvp(lambda a: m.ones(2), (x,), (y,), strict=True),
    "jvp of nothing": lambda m, x, y, w: m.func.jvp(lambda a: None, (x,), (y,)),
    "jvp aux": lambda m, x, y, w: m.func.jvp(lambda a: a, (x,), (y,), has_aux=True),
    "jacrev complex": lambda m, x, y, w: m.func.jacrev(lambda a: a)(m.complex(x, y)),
    "jacfwd complex": lambda m, x, y, w: m.func.jacfwd(lambda a: a * 1j)(x),
    "jacrev chunk": lambda m, x, y, w: m.func.jacrev(lambda a: a, chunk_size=0)(x),
    "vmap no inputs": lambda m, x, y, w: m.vmap(lambda: x)(),
    "vmap in_dims list": lambda m, x, y, w: m.vmap(m.sin, in_dims=[0])(x),
    "vmap sizes": lambda m, x, y, w: m.vmap(m.add)(x, w),
    "vmap number": lambda m, x, y, w: m.vmap(m.add)(x, 2.0),
    "vmap in_dim": lambda m, x, y, w: m.vmap(m.sin, in_dims=2)(x),
    "vmap none mapped": lambda m, x, y, w: m.vmap(m.sin, in_dims=None)(x),
    "vmap all None": lambda m, x, y, w: m.vmap(m.sin, in_dims=(None,))(x),
    "vmap out_dims": lambda m, x, y, w: m.vmap(lambda a: (a, a), out_dims=(0, 0, 0))(x),
    "vmap out_dims str": lambda m, x, y, w: m.vmap(m.sin, out_dims="0")(x),
    "vmap number out": lambda m, x, y, w: m.vmap(lambda a: 1)(x),
    "vmap out None": lambda m, x, y, w: m.vmap(m.sin, out_dims=None)(x),
    "vmap branch": lambda m, x, y, w: m.vmap(lambda a: a if a.sum() > 0 else -a)(x),
    "vmap item": lambda m, x, y, w: m.vmap(lambda a: a.sum().item())(x),
    "vmap write": lambda m, x, y, w: m.vmap(lambda a: y[0].add_(a))(x),
    "vmap random": lambda m, x, y, w: m.vmap(lambda a: m.rand(3))(x),
    "vmap randomness": lambda m, x, y, w: m.vmap(m.sin, randomness="x")(x),
    "vmap nonzero": lambda m, x, y, w: m.vmap(lambda a: a.nonzero())(x),
    "vmap mask": lambda m, x, y, w: m.vmap(lambda a: a[a > 0])(x),
    "vmap chunk": lambda m, x, y, w: m.vmap(m.sin, chunk_size=0)(x),
    "vmap shapes": lambda m, x, y, w: m.vmap(lambda a: a @ w[:3])(x),
    "vmap dim": lambda m, x, y, w: m.vmap(lambda a: a.sum(1))(x),
    "linearize shape": lambda m, x, y, w: m.func.linearize(m.sin, x)[1](y[0]),
    "linearize structure": lambda m, x, y, w: m.func.linearize(m.sin, x)[1](y, y),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors(name):
    from ptcore._interpret import entered
    caught = []
    for m in (pt, torch):
        inputs = [m.asarray(a.copy()) for a in (X, Y, W)]
        with warnings.catch_warnings():
            if m is torch:
                warnings.filterwarnings(action="ignore", message="Attempted to insert a get_attr")
            try:
                ERRORS[name](m, *inputs)
            except Exception as e:
                caught.append(e)
    ours, theirs = caught
    # What torch asserts is an error of the user's here.
    expected = (RuntimeError, ValueError) if type(theirs) is AssertionError else type(theirs)
    assert isinstance(ours, expected), (ours, theirs)
    assert not entered() and pt.is_grad_enabled()
