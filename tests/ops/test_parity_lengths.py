"""Lengths across internal limits (those of dims, tiles, chunks and stacks): lists of tensors, dims and sequences of 1, 64,
65 and 1000 elements, values and gradients."""
import functools

import numpy as np
import pytest
from _walk import walk

import ptcore as pt

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.parity

LENGTHS = (1, 2, 63, 64, 65, 129, 1000)
SHORT = (1, 2, 63, 64, 65, 129)         # of what takes memory or time by the square
DIMS = (1, 2, 63, 64)


def numbers(m, n, *rest):
    count = n * int(np.prod(rest, initial=1))
    return m.tensor(np.sin(np.arange(count) * 1.3 + 1)).reshape(n, *rest).requires_grad_()        # no two are equal


def pieces(m, n, *shape):
    x = numbers(m, n, *shape)
    return [x[i] for i in range(n)], x


def of_list(name, *shape, **keywords):
    def f(m, n):
        parts, x = pieces(m, n, *shape)
        return getattr(m, name)(parts, **keywords), x
    return f


def joined(split):
    """Parts in another order, so that each has a gradient of its own."""
    def f(m, n):
        x = numbers(m, n, 2)
        return m.cat([part * (i + 1) for i, part in enumerate(split(m, x, n))][::-1]), x
    return f


def of_vector(f, *shape):
    def call(m, n):
        x = numbers(m, n, *shape)
        return f(m, x, n), x
    return call


def clipped(m, n):
    params = [m.ones(2, dtype=m.float64, requires_grad=True) for _ in range(n)]
    for i, p in enumerate(params):
        p.grad = m.ones(2, dtype=m.float64) * i
    m.nn.utils.clip_grad_norm_(params, 1.0)
    return m.stack([p.grad for p in params]), None


def recurrent(m, n, kind, packed):
    net = getattr(m.nn, kind)(2, 3).double()
    with m.no_grad():
        for p in net.parameters():
            p.copy_((m.arange(p.numel(), dtype=m.float64).reshape(p.shape) % 5 - 2) / 5)
    x = numbers(m, n, 2, 2)
    y = net(m.nn.utils.rnn.pack_padded_sequence(x, [n, max(n - 1, 1)]) if packed else x)[0]
    return (m.nn.utils.rnn.pad_packed_sequence(y)[0] if packed else y), x


LISTS = {
    "stack": of_list("stack", 3), "cat": of_list("cat", 3), "cat of columns": of_list("cat", 3, 2, dim=1),
    "hstack": of_list("hstack", 3), "vstack": of_list("vstack", 3), "dstack": of_list("dstack", 3),
    "column_stack": of_list("column_stack", 3), "unbind": joined(lambda m, x, n: x.unbind(1)),
    "split": joined(lambda m, x, n: x.split(1)), "split by a list": joined(lambda m, x, n: x.split([1] * n)),
    "chunk": joined(lambda m, x, n: x.chunk(n)), "tensor_split": joined(lambda m, x, n: x.tensor_split(list(range(1, n)))),
    "iteration": joined(lambda m, x, n: [row[None] for row in x]), "clip_grad_norm_": clipped,
    "index by a list": lambda m, n: (lambda x: (x[[i % 7 for i in range(n)]], x))(numbers(m, 7)),
    "tensor of tensors": lambda m, n: (m.tensor([m.tensor(float(i)) for i in range(n)]), None),
    "pad_sequence": lambda m, n: (m.nn.utils.rnn.pad_sequence([m.arange(float(1 + i % 3)) for i in range(n)]), None),
    "broadcast_tensors": lambda m, n: (lambda parts, x: (m.broadcast_tensors(*parts, m.ones(2, 3))[n - 1], x))(
        *pieces(m, n, 3)),
    "parameters_to_vector": lambda m, n: (lambda parts, x: (m.nn.utils.parameters_to_vector(parts), x))(*pieces(m, n, 2)),
    "roll": lambda m, n: (m.arange(5).roll([1] * n, [0] * n), None)}
VECTORS = {
    **{name: of_vector(lambda m, x, n, name=name: getattr(m, name)(x, 0)) for name in (
        "cumsum", "cumprod", "logcumsumexp", "logsumexp", "softmax", "log_softmax", "sum", "mean", "amax")},
    **{name: of_vector(lambda m, x, n, name=name: getattr(m, name)(x, 0)[0]) for name in ("cummax", "cummin", "max", "min")},
    **{name: of_vector(lambda m, x, n, name=name: getattr(m, name)(x)) for name in (
        "median", "trapezoid", "norm", "prod", "nansum")},
    "sort": of_vector(lambda m, x, n: m.sort(x + m.arange(n) * 0.01)[0]), "topk": of_vector(
        lambda m, x, n: (x + m.arange(n) * 0.01).topk(min(n, 64))[0]),
    "kthvalue": of_vector(lambda m, x, n: (x + m.arange(n) * 0.01).kthvalue((n + 1) // 2)[0]),
    "var": of_vector(lambda m, x, n: x.var(correction=0)), "quantile": of_vector(lambda m, x, n: x.quantile(0.3)),
    "dot": of_vector(lambda m, x, n: x.dot(x)), "outer": of_vector(lambda m, x, n: m.outer(x, m.arange(3).double())),
    "mm": of_vector(lambda m, x, n: x.t() @ x, 3), "mm outside": of_vector(lambda m, x, n: (x @ x.t()).sum(1), 3),
    "bmm": of_vector(lambda m, x, n: x @ x.mT, 2, 3), "cdist": of_vector(lambda m, x, n: m.cdist(x, x[:1] + 1), 3),
    "conv1d": of_vector(lambda m, x, n: m.nn.functional.conv1d(x[None, None], m.arange(3).double()[None, None], padding=1)),
    "conv1d of channels": of_vector(lambda m, x, n: m.nn.functional.conv1d(x[None], m.ones(2, n, 3).double()), 5),
    "conv1d of groups": of_vector(lambda m, x, n: m.nn.functional.conv1d(x[None], m.ones(n, 1, 3).double(), groups=n), 5),
    "avg_pool1d": of_vector(lambda m, x, n: m.nn.functional.avg_pool1d(x[None, None], n)),
    "max_pool1d": of_vector(lambda m, x, n: m.nn.functional.max_pool1d(x[None, None], min(n, 3), 1)),
    "layer_norm": of_vector(lambda m, x, n: m.nn.functional.layer_norm(x.t(), (n,)), 2),
    "group_norm": of_vector(lambda m, x, n: m.nn.functional.group_norm(x[None], n), 4),
    "cross_entropy": of_vector(lambda m, x, n: m.nn.functional.cross_entropy(x[None], m.tensor([n - 1]))),
    "embedding": of_vector(lambda m, x, n: m.nn.functional.embedding(m.arange(2 * n) % n, x), 3),
    "scatter_add": of_vector(lambda m, x, n: m.zeros(5).double().scatter_add(0, m.arange(n) % 5, x)),
    "masked": of_vector(lambda m, x, n: x[x > 0]), "interpolate": of_vector(
        lambda m, x, n: m.nn.functional.interpolate(x[None, None], size=7, mode="linear")),
    "fft": of_vector(lambda m, x, n: m.view_as_real(m.fft.fft(x))), "diff": of_vector(lambda m, x, n: x.diff()),
    "repeat_interleave": of_vector(lambda m, x, n: x.repeat_interleave(m.arange(n) % 3)),
    "unfold": of_vector(lambda m, x, n: x.unfold(0, 1, 1))}
SQUARES = {
    "scaled_dot_product_attention": of_vector(lambda m, x, n: m.nn.functional.scaled_dot_product_attention(
        x[None], x[None], x[None], is_causal=True), 4),
    "solve": of_vector(lambda m, x, n: m.linalg.solve(m.eye(n).double() * 2, x), 1),
    "tril": of_vector(lambda m, x, n: m.outer(x, x).tril()),
    "ctc_loss": of_vector(lambda m, x, n: m.nn.functional.ctc_loss(x[:, None].log_softmax(-1), m.tensor([[1]]), [n], [1]), 5),
    "multi_dot": lambda m, n: (lambda x: (m.linalg.multi_dot([x, x + m.eye(2)] + [m.eye(2).double()] * n), x))(
        numbers(m, 2, 2)),
    **{f"{kind}{' of a packed sequence' * packed}": functools.partial(recurrent, kind=kind, packed=packed)
       for kind in ("LSTM", "GRU", "RNN") for packed in (False, True)}}
RANKS = {
    "sum": lambda m, x, n: x.sum(tuple(range(n))), "flip": lambda m, x, n: x.flip(tuple(range(n))),
    "movedim": lambda m, x, n: x.movedim(list(range(n)), list(range(n))[::-1]),
    "permute": lambda m, x, n: x.permute(*range(n)[::-1]), "index": lambda m, x, n: x[(slice(None),) * n],
    "reshape": lambda m, x, n: x.reshape(-1), "expand": lambda m, x, n: x.expand(2, *[1] * (n - 1)),
    "add": lambda m, x, n: x + x.exp(), "mean": lambda m, x, n: x.mean(-1, keepdim=True), "clone": lambda m, x, n: x.mT.clone()
            if n > 1 else x.clone(), "cat": lambda m, x, n: m.cat([x, x], n // 2), "repeat": lambda m, x, n: x.repeat(*[1] * n)}


def compared(call):
    found = []
    for m in (pt, torch):
        y, x = call(m)
        g = None
        if x is not None:
            (g,) = m.autograd.grad((y * (m.arange(y.numel()).reshape(y.shape) % 7 + 1)).sum(), x)
        found.append((y.detach().numpy(), None if g is None else g.numpy()))
    (a, g), (b, h) = found
    assert a.shape == b.shape
    np.testing.assert_allclose(a, b, rtol=1e-7, atol=1e-9)
    if h is not None:
        np.testing.assert_allclose(g, h, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("n", LENGTHS)
@walk("name", [*LISTS, *VECTORS])
def test_length(name, n):
    compared(lambda m: {**LISTS, **VECTORS}[name](m, n))


@pytest.mark.parametrize("n", SHORT)
@pytest.mark.parametrize("name", SQUARES)
def test_square(name, n):
    compared(lambda m: SQUARES[name](m, n))


@pytest.mark.parametrize("n", DIMS)
@pytest.mark.parametrize("name", RANKS)
def test_rank(name, n):
    def call(m):
        x = numbers(m, 2).reshape([2] + [1] * (n - 1)).detach().requires_grad_()
        return RANKS[name](m, x[:1] if name == "expand" else x, n), x
    compared(call)
