"""Derivatives of determinants at singular matrices: the determinant is a polynomial, so all orders exist. The oracle is
the expansion by permutations, differentiated by hand: a derivative is the determinant of what is left, with its sign."""
import itertools

import numpy as np
import pytest

import ptcore
from ptcore import func
from ptcore.autograd.rules import linalg

pytestmark = pytest.mark.core


def minor(a, rows, columns):
    """The derivative of the determinant by the entries (rows[k], columns[k])."""
    n = len(a)
    if len(set(rows)) < len(rows) or len(set(columns)) < len(columns):
        return 0.0
    total = 0.0
    for order in itertools.permutations(range(n)):
        if any(order[r] != c for r, c in zip(rows, columns)):
            continue
        sign = np.linalg.det(np.eye(n)[list(order)])
        total += sign * np.prod([a[r, order[r]] for r in range(n) if r not in rows])
    return total


def by_hand(a, order):
    n = len(a)
    out = np.zeros((n, n) * order)
    for at in itertools.product(range(n), repeat=2 * order):
        out[at] = minor(a, at[::2], at[1::2])
    return out


RANK = np.array([[1.0, 2.0, 3.0], [2.0, 4.0, 6.0], [1.0, 0.0, 1.0]])
CASES = {
    "rank 2": RANK,
    "rank 1": np.outer([1.0, 2.0, -1.0], [3.0, 0.5, 1.0]),
    "rank 0": np.zeros((3, 3)),
    "rank 2 of 4": np.outer([1.0, 2, 0, 1], [1.0, 0, 1, 2]) + np.outer([0.0, 1, 1, 1], [2.0, 1, 0, 1]),
    "nearly singular": RANK + 1e-13 * np.eye(3),
    "regular": RANK + np.eye(3),
    "two by two": np.zeros((2, 2)),
}


@pytest.mark.parametrize("name", CASES)
def test_orders(name):
    a = CASES[name]
    x, want = ptcore.tensor(a), by_hand(a, 2)
    first = func.grad(ptcore.linalg.det)
    np.testing.assert_allclose(first(x).numpy(), by_hand(a, 1), atol=1e-12)
    for second in (func.jacfwd(func.jacrev(ptcore.linalg.det)), func.jacrev(func.jacrev(ptcore.linalg.det)),
                   func.jacfwd(func.jacfwd(ptcore.linalg.det))):
        np.testing.assert_allclose(second(x).numpy(), want, atol=1e-7)
    x = x.requires_grad_()
    g = ptcore.autograd.grad(ptcore.linalg.det(x), x, create_graph=True)[0]
    rows = [ptcore.autograd.grad(v, x, retain_graph=True)[0].numpy() for v in g.reshape(-1)]
    np.testing.assert_allclose(np.reshape(rows, want.shape), want, atol=1e-7)


def test_third_order_and_batches():
    x = ptcore.zeros(3, 3, dtype=ptcore.float64)
    third = func.jacrev(func.jacrev(func.jacrev(ptcore.linalg.det)))(x).numpy()
    np.testing.assert_allclose(third, by_hand(np.zeros((3, 3)), 3), atol=1e-12)
    both = ptcore.tensor(np.stack([CASES["rank 1"], CASES["regular"]])).requires_grad_()
    g = ptcore.autograd.grad(ptcore.linalg.det(both).sum(), both, create_graph=True)[0]
    second = ptcore.autograd.grad(g[:, 0, 0].sum(), both)[0].numpy()
    np.testing.assert_allclose(second, [by_hand(a, 2)[0, 0] for a in (CASES["rank 1"], CASES["regular"])], atol=1e-7)


def test_complex():
    a = np.outer([1, 2j, 1 - 1j], [1j, 0.5, 2]) + np.outer([1, 1, 0], [0, 1j, 1])
    x = ptcore.tensor(a).requires_grad_()
    g = ptcore.autograd.grad(ptcore.linalg.det(x).real, x, create_graph=True)[0]
    step = np.array([[1, 0, 2], [0, 1j, 0], [1, 1, 0]]) * 1e-5
    second = ptcore.autograd.grad((g * ptcore.tensor(step.conj())).sum().real, x)[0].numpy()

    def slope(a):
        x = ptcore.tensor(a).requires_grad_()
        return ptcore.autograd.grad(ptcore.linalg.det(x).real, x)[0].numpy()
    np.testing.assert_allclose(second, (slope(a + step) - slope(a - step)) / 2, atol=1e-12)


MODES = {"backward": lambda f, x: func.grad(lambda x: f(x).sum())(x),
         "forward": lambda f, x: func.jacfwd(lambda x: f(x).sum())(x)}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("singular", [[], [1], [0, 2, 3], [0, 1, 2, 3]])
def test_singular_ones_alone(monkeypatch, mode, singular):
    """The regular matrices of a batch are no reason for singular values, and singular ones change nothing of theirs."""
    decomposed = []
    svd = linalg._linalg_svd

    def counting(A, *rest):
        decomposed.append(A.reshape(-1, 3, 3).shape[0])
        return svd(A, *rest)
    monkeypatch.setattr(linalg, "_linalg_svd", counting)
    batch = np.stack([CASES["regular"] + k for k in range(4)])
    for k in singular:
        batch[k] = CASES[("rank 2", "rank 1", "rank 0", "nearly singular")[k]]
    x = ptcore.tensor(batch.reshape(2, 2, 3, 3))
    first = MODES[mode](ptcore.linalg.det, x).numpy().reshape(-1, 3, 3)
    np.testing.assert_allclose(first, [by_hand(a, 1) for a in batch], atol=1e-12)
    assert max(decomposed, default=0) <= len(singular) and bool(decomposed) == bool(singular)
    second = func.grad(lambda x: MODES[mode](ptcore.linalg.det, x)[..., 0, 0].sum())(x).numpy()
    np.testing.assert_allclose(second.reshape(-1, 3, 3), [by_hand(a, 2)[0, 0] for a in batch], atol=1e-7)
    assert max(decomposed, default=0) <= len(singular) and bool(decomposed) == bool(singular)
