"""Random programs of real and complex views of every kind beside torch: parts of splits, windows, copies, scatters,
changes of class, empty and 0-d tensors, and writes to any of them. Values, gradients and second derivatives.

A program that both run has the same derivatives, unless torch's are not those of its values: of these, differences
decide. What torch runs is not refused here, but for writes to windows that overlap. More programs than the suite runs:
``PTCORE_TEST_PROGRAMS=20000`` (from the seed ``PTCORE_TEST_SEED`` on).
"""
import os
import random

import numpy as np
import pytest

import ptcore as pt

torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.parity, pytest.mark.filterwarnings("ignore::UserWarning")]

N = 6
PROGRAMS = int(os.environ.get("PTCORE_TEST_PROGRAMS", "400"))
SEED = int(os.environ.get("PTCORE_TEST_SEED", "0"))
SHAPES = [(N,), (2, 3), (3, 2), (2, 2, 2), (), (0,), (2, 0), (1, 2)]


def real(T, x):
    return T.view_as_real(x.resolve_conj()) if x.is_complex() else x


def dim(x, r):
    return r.randrange(-x.ndim, x.ndim)


def fitting(T, seen, x, r):
    """Something of what was made, in the shape of x."""
    y = r.choice(seen).reshape(-1)
    if y.is_complex() and not x.is_complex():
        y = y.real if r.random() < 0.5 else T.view_as_real(y.resolve_conj()).reshape(-1)
    n = x.numel()
    if not y.numel() or not n:
        y = T.zeros(x.shape, dtype=x.dtype) + y.sum()
    else:
        y = y.repeat(-(-n // y.numel()))[:n].reshape(x.shape)
    y = r.choice([lambda: y * 0.5, lambda: y - 0.25, lambda: y.sin(), lambda: y.cos()])()
    if x.is_complex() and not y.is_complex():
        y = y.to(x.dtype) if r.random() < 0.5 else T.complex(y, y * 0.5)
    return y


def narrowed(T, x, r):
    d, start = dim(x, r), r.random()
    start = int(start * (x.shape[d] + 1))
    return x.narrow(d, start, r.randrange(x.shape[d] - start + 1))


def sized(T, x, r):
    d = dim(x, r)
    k = r.randrange(x.shape[d] + 1)
    return x.split([k, x.shape[d] - k], d)[r.randrange(2)]


def unfolded(T, x, r):
    d = dim(x, r)
    return x.unfold(d, r.randrange(x.shape[d] + 1), r.choice([1, 2])) if x.ndim < 4 else None


def strided(T, x, r):
    if x.numel() < 4 or not x.is_contiguous():
        return None
    return x.as_strided(*r.choice([((2, 2), (1, 2)), ((2, 2), (2, 1)), ((2,), (3,)), ((2, 3), (1, 1)), ((), ()),
                                   ((2, 2), (0, 1)), ((x.numel(),), (1,))]))


def classed(T, x, r):
    made = type("Sub", (T.Tensor,), {})
    return x.as_subclass(made).as_subclass(T.Tensor)


def part(parts, x, r):
    return r.choice(parts)


# Of what has dims. torch's conj and mH are views, and parts of unsafe_split have one counter each: they are copied.
VIEWS = {
    "select": lambda T, x, r: x.select(d := dim(x, r), r.randrange(-x.shape[d], x.shape[d])),
    "narrow": narrowed, "step": lambda T, x, r: x[r.randrange(2)::r.choice([1, 2, 3])],
    "transpose": lambda T, x, r: x.transpose(dim(x, r), dim(x, r)),
    "movedim": lambda T, x, r: x.movedim(dim(x, r), dim(x, r)),
    "unsqueeze": lambda T, x, r: x.unsqueeze(r.randrange(x.ndim + 1)) if x.ndim < 4 else None,
    "squeeze": lambda T, x, r: x.squeeze() if r.random() < 0.5 else x.squeeze(dim(x, r)),
    "reshape": lambda T, x, r: x.reshape(-1), "view": lambda T, x, r: x.view(-1) if x.is_contiguous() else None,
    "two": lambda T, x, r: x.reshape(2, -1) if x.numel() % 2 == 0 and x.numel() else None,
    "diagonal": lambda T, x, r: x.diagonal(r.choice([-1, 0, 1]), *r.choice([(0, 1), (1, 0), (-1, -2)])),
    "unfold": unfolded, "expand": lambda T, x, r: x.expand(r.choice([1, 2]), *x.shape) if x.ndim < 4 else None,
    "expand ones": lambda T, x, r: x.expand([r.choice([1, 2, 3, 0]) if n == 1 else n for n in x.shape]),
    "unbind": lambda T, x, r: r.choice(x.unbind(dim(x, r))),
    "split": lambda T, x, r: r.choice(x.split(r.choice([1, 2]), dim(x, r))), "split sizes": sized,
    "chunk": lambda T, x, r: r.choice(x.chunk(r.choice([1, 2, 3]), dim(x, r))),
    "tensor_split": lambda T, x, r: r.choice(x.tensor_split(r.choice([2, 3, (1, 2), (0, 1), (-1,)]), dim(x, r))),
    "hsplit": lambda T, x, r: r.choice(x.hsplit((1,))), "vsplit": lambda T, x, r: r.choice(x.vsplit((1,))),
    "unsafe_split": lambda T, x, r: r.choice(T.unsafe_split(x, 1, dim(x, r))).clone(),
    "view_as_real": lambda T, x, r: T.view_as_real(x.resolve_conj()) if x.is_complex() and x.ndim < 4 else None,
    "view_as_complex": lambda T, x, r: T.view_as_complex(x) if (
        not x.is_complex() and x.shape[-1] == 2 and x.is_contiguous() and x.storage_offset() % 2 == 0) else None,
    "real": lambda T, x, r: x.real, "imag": lambda T, x, r: x.imag if x.is_complex() else None,
    "conj": lambda T, x, r: x.conj().clone().contiguous(), "mH": lambda T, x, r: x.mH.clone(),
    "mT": lambda T, x, r: x.mT, "unflatten": lambda T, x, r: x.unflatten(-1, (2, x.shape[-1] // 2)) if (
        x.shape[-1] % 2 == 0 and x.shape[-1] and x.ndim < 4) else None,
    "flatten": lambda T, x, r: x.flatten(0, 1), "as_strided": strided, "class": classed,
    "same": lambda T, x, r: r.choice([lambda: x[...], lambda: x.view_as(x), lambda: x.ravel(), lambda: x.expand_as(x),
                                      lambda: x.to(x.dtype), lambda: T.atleast_2d(x), lambda: x.positive()])()}
OF_ALL = ("real", "imag", "unsqueeze", "reshape", "same", "expand", "view_as_real", "class")
MATRICES = ("diagonal", "vsplit", "mT", "mH", "flatten")


def scattered(T, seen, x, r):
    d, kind = dim(x, r), r.randrange(4)
    if kind == 0 and x.shape[d]:
        return x.index_copy(d, T.tensor([0]), fitting(T, seen, x.narrow(d, 0, 1), r))
    if x.is_complex() or not x.is_contiguous():         # torch: no derivative, or the strides of the operand
        return None
    if kind == 1 and x.shape[d]:
        return T.select_scatter(x, fitting(T, seen, x.select(d, 0), r), d, r.randrange(-1, 1))
    if kind == 2:
        return T.slice_scatter(x, fitting(T, seen, x.narrow(d, 0, x.shape[d] // 2), r), d, 0, x.shape[d] // 2)
    return T.diagonal_scatter(x, fitting(T, seen, x.diagonal(1), r), 1) if x.ndim > 1 else None


MADE = {
    "zeros": lambda T, seen, x, r: T.zeros(r.choice(SHAPES), dtype=r.choice([T.float64, T.complex128])),
    "clone": lambda T, seen, x, r: x.clone(), "scaled": lambda T, seen, x, r: x * r.choice([0.5, -1.5, 1]),
    "complex": lambda T, seen, x, r: x.to(T.complex128), "sum": lambda T, seen, x, r: x.sum(dim(x, r), keepdim=True),
    "sum_to_size": lambda T, seen, x, r: x.sum_to_size([1 if r.random() < 0.5 else n for n in x.shape]),
    "prod": lambda T, seen, x, r: x.prod(dim(x, r)), "cumsum": lambda T, seen, x, r: x.cumsum(dim(x, r)),
    "cat": lambda T, seen, x, r: T.cat([x.reshape(-1), r.choice(seen).reshape(-1)])[:12], "scattered": scattered,
    "product": lambda T, seen, x, r: x @ fitting(T, seen, x.mT, r) if x.ndim == 2 else None,
    "abs": lambda T, seen, x, r: x.abs(), "with conj": lambda T, seen, x, r: x / (x.conj() + 3),
    "vdot": lambda T, seen, x, r: T.vdot(x.reshape(-1), x.reshape(-1))}


def overlaps(x):
    places = np.zeros((), int)
    for n, step in zip(x.shape, x.stride()):
        places = places[..., None] + step * np.arange(n)
    return len(np.unique(places)) < places.size


def write(T, seen, r):
    x = r.choice(seen)
    kind, rows = r.randrange(22), x.shape[0] if x.ndim else 0
    if overlaps(x):
        return

    def like(y):
        return fitting(T, seen, y, r)
    writes = {
        0: lambda: x.copy_(like(x)), 1: lambda: x.add_(like(x)), 2: lambda: x.mul_(like(x)), 3: lambda: x.fill_(0.75),
        4: lambda: x.sin_(), 5: lambda: x.mul_(0.25).exp_(), 6: lambda: x.zero_(), 7: lambda: x.neg_(),
        8: lambda: x.masked_fill_(T.arange(x.numel()).reshape(x.shape) % 2 == 0, 0.4),
        9: lambda: x.fill_(like(T.zeros((), dtype=x.dtype))), 10: lambda: x.addcmul_(like(x), like(x), value=0.5),
        11: lambda: x.lerp_(like(x), 0.3), 12: lambda: T._foreach_mul_([x], [like(x)])}
    if x.is_complex():
        writes |= {13: lambda: x.real.copy_(like(x.real)), 14: lambda: setattr(x, "imag", like(x.imag)),
                   15: lambda: x.conj_physical_()}
    if rows:
        writes |= {16: lambda: x.__setitem__(r.randrange(rows), like(x[0])), 17: lambda: x.transpose_(0, -1),
                   18: lambda: x.index_add_(0, T.tensor([0]), like(x[:1])), 19: lambda: x.cumsum_(0),
                   20: lambda: x.index_put_((T.tensor([0, 0]),), like(x[:1]).expand(2, *x.shape[1:]), accumulate=True)}
    writes.get(kind, lambda: x.div_(like(x) + 3))()


def program(seed):
    source = random.Random(seed)
    steps = [(source.choices(["view", "made", "write"], [5, 3, 3])[0], source.random())
             for _ in range(source.randint(3, 11))]

    def f(T, x):
        seen = [x * 1.0]
        for kind, number in steps:
            r = random.Random(number)
            y, x0 = None, r.choice(seen)
            if kind == "write":
                write(T, seen, r)
            elif kind == "made":
                name = r.choice(list(MADE))
                y = MADE[name](T, seen, x0, r) if x0.ndim or name in ("zeros", "clone", "scaled", "complex") else None
            else:
                name = r.choice(list(VIEWS))
                if (x0.ndim or name in OF_ALL) and (x0.ndim > 1 or name not in MATRICES) and (
                        x0.numel() or name not in ("select", "unbind")):
                    y = VIEWS[name](T, x0, r)
            if y is not None:
                seen.append(y.reshape(-1)[:12] if y.numel() > 60 else y)
        total = 0
        for k, y in enumerate(seen):
            y = real(T, y)
            weights = 0.3 + 0.1 * T.arange(y.numel(), dtype=T.float64).reshape(y.shape)
            total = total + (y * weights).tanh().sum() * (1 + 0.1 * k)
        return total
    return lambda T, x: f(T, T.view_as_complex(x.reshape(2, N).T.contiguous()) if len(x) > N else x)


def derivatives(T, f, numbers):
    """(value, gradient, derivative of the gradient along a direction), or what refuses one."""
    x = T.tensor(numbers, dtype=T.float64, requires_grad=True)
    try:
        y = f(T, x)
        g = T.autograd.grad(y, x, create_graph=True, allow_unused=True)[0] if y.requires_grad else None
        g = T.zeros_like(x) if g is None else g
        h = T.autograd.grad((g * T.cos(T.arange(len(x)).double())).sum(), x, allow_unused=True)[0] if (
            g.requires_grad) else None
    except (RuntimeError, IndexError) as e:
        return e
    return float(y.detach()), g.detach().numpy(), np.zeros(len(x)) if h is None else h.numpy()


def differences(f, numbers):
    ends = [[float(f(pt, pt.tensor(numbers + s * e)).detach()) for s in (1e-6, -1e-6)] for e in np.eye(len(numbers))]
    return np.array([(high - low) / 2e-6 for high, low in ends])


def check(seed):
    """Whether a program was compared."""
    f = program(seed)
    numbers = np.random.default_rng(seed).uniform(-1, 1, N * (1 + seed % 2))
    ours, theirs = derivatives(pt, f, numbers.tolist()), derivatives(torch, f, numbers.tolist())
    if isinstance(ours, Exception):
        assert isinstance(theirs, Exception) or "overlap" in str(ours) or "single memory" in str(ours), str(ours)
        return False
    if not isinstance(theirs, Exception) and all(
            np.allclose(a, b, 1e-7, 1e-7, equal_nan=True) for a, b in zip(ours, theirs)):
        return True
    np.testing.assert_allclose(ours[1], differences(f, numbers), rtol=1e-4, atol=1e-5)
    return False


@pytest.mark.parametrize("part", range(4))
def test_programs(part):
    compared = 0
    for seed in range(SEED + part, SEED + PROGRAMS, 4):
        try:
            compared += check(seed)
        except Exception as e:
            raise AssertionError(f"program {seed}: {type(e).__name__}: {e}") from e
    assert compared > 0.3 * PROGRAMS / 4
