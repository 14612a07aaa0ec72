"""The linalg extension beside NumPy's."""
import itertools

import numpy as np
import pytest
from _array_api_standard import DTYPES, SIGNATURES

import ptcore as pt
from ptcore import array_api as xp

pytestmark = pytest.mark.core
FLOATS = DTYPES[9:]


def data(dtype, *shape, seed=0):
    rng = np.random.default_rng(seed)
    a = rng.normal(size=shape)
    return (a + 1j * rng.normal(size=shape)).astype(dtype) if np.dtype(dtype).kind == "c" else a.astype(dtype)


def hermitian(dtype, *shape):
    a = data(dtype, *shape)
    return a @ np.conj(np.swapaxes(a, -1, -2)) + np.eye(shape[-1], dtype=dtype)


def close(got, want, factor=1.0):
    want = np.asarray(want)
    assert got._is_standard
    assert got.dtype.name == want.dtype.name
    assert tuple(got.shape) == want.shape
    tolerance = factor * (1e-12 if want.dtype.name in ("float64", "complex128") else 2e-4)
    np.testing.assert_allclose(np.asarray(got), want, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("batch", [(), (2,), (0,), (2, 1)])
def test_decompositions(dtype, batch):
    a, h = data(dtype, *batch, 4, 4), hermitian(dtype, *batch, 4, 4)
    x, y, la = xp.asarray(a), xp.asarray(h), xp.linalg
    close(la.cholesky(y), np.linalg.cholesky(h))
    close(la.cholesky(y, upper=True), np.conj(np.swapaxes(np.linalg.cholesky(h), -1, -2)))
    close(la.det(x), np.linalg.det(a))
    close(la.inv(x), np.linalg.inv(a), 10)
    close(la.eigvalsh(y), np.linalg.eigvalsh(h))
    values, vectors = la.eigh(y)
    close(vectors * values[..., None, :] @ xp.conj(xp.matrix_transpose(vectors)), h, 10)
    q, r = la.qr(x)
    close(q @ r, a, 10)
    assert la.qr(x[..., :2], mode="complete")[0].shape == (*batch, 4, 4)
    u, s, vh = la.svd(x, full_matrices=False)
    close(u * s[..., None, :] @ vh, a, 10)
    assert la.svd(x[..., :2])[0].shape == (*batch, 4, 4)
    close(la.svdvals(x), np.linalg.svdvals(a))
    sign, logabsdet = la.slogdet(x)
    close(sign, np.linalg.slogdet(a).sign)
    close(logabsdet, np.linalg.slogdet(a).logabsdet)
    values, vectors = la.eig(x)
    assert values.dtype is vectors.dtype is la.eigvals(x).dtype is x.dtype.to_complex()
    close(x.to(values.dtype) @ vectors, np.asarray(vectors * values[..., None, :]), 10)
    for n in (0, 1, 3, -2):
        close(la.matrix_power(x, n), np.linalg.matrix_power(a, n), 1000)
    close(la.pinv(x[..., :2]), np.linalg.pinv(a[..., :2]), 10)
    close(la.pinv(x, rtol=0.5), np.linalg.pinv(a, rtol=0.5), 10)
    for ord, keepdims in itertools.product(("fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf), (False, True)):
        close(la.matrix_norm(x, ord=ord, keepdims=keepdims), np.linalg.matrix_norm(a, ord=ord, keepdims=keepdims), 10)


@pytest.mark.parametrize("dtype", FLOATS)
def test_solve(dtype):
    """Only a vector is a vector: of (2, 3, 3) and (2, 3) the latter is a matrix, as NumPy 2 has it."""
    for left, right in (((3, 3), (3,)), ((2, 3, 3), (3,)), ((3, 3), (3, 2)), ((2, 3, 3), (3, 2)), ((3, 3), (2, 3, 1)),
                        ((3, 3, 3), (3, 3)), ((0, 0), (0,)), ((0, 3, 3), (3, 1)), ((3, 3), (3, 0))):
        a, b = data(dtype, *left), data(dtype, *right, seed=1)
        close(xp.linalg.solve(xp.asarray(a), xp.asarray(b)), np.linalg.solve(a, b), 100)


@pytest.mark.parametrize("dtype", FLOATS)
def test_vector_norm(dtype):
    a = data(dtype, 2, 3, 4)
    orders, axes = (2, 1, 0, 3, 0.5, -1, np.inf, -np.inf), (None, 0, (0, 2), (-1,), (1, 0, 2), ())
    for ord, axis, keepdims in itertools.product(orders, axes, (False, True)):
        if axis == ():
            got = xp.linalg.vector_norm(xp.asarray(a), axis=axis, ord=ord, keepdims=keepdims)
            close(got, np.abs(a) if ord else (a != 0).astype(np.abs(a).dtype))
            continue
        close(xp.linalg.vector_norm(xp.asarray(a), axis=axis, ord=ord, keepdims=keepdims),
              np.linalg.vector_norm(a, axis=axis, ord=ord, keepdims=keepdims))


def test_matrix_rank():
    a = np.diag([1.0, 1e-3, 0.0])
    x = xp.asarray(a, dtype=xp.float64)
    assert int(xp.linalg.matrix_rank(x)) == 2
    assert int(xp.linalg.matrix_rank(x, rtol=0.1)) == 1
    assert xp.linalg.matrix_rank(xp.stack([x, x]), rtol=xp.asarray([0.1, 1e-9], dtype=xp.float64)).tolist() == [1, 2]


@pytest.mark.parametrize("a, b", [("int8", "int16"), ("uint8", "int8"), ("float32", "float64"),
                                  ("float32", "complex64"), ("uint16", "uint64"), ("uint32", "int32")])
def test_products_promote(a, b):
    p, q = (np.arange(9).reshape(3, 3) % 4).astype(a), (np.arange(9).reshape(3, 3) % 5).astype(b)
    x, y = xp.asarray(p), xp.asarray(q)
    for name, arguments in (("matmul", {}), ("vecdot", {}), ("tensordot", {"axes": 1})):
        close(getattr(xp, name)(x, y, **arguments), getattr(np, name)(p, q, **arguments))
        assert getattr(xp.linalg, name) is getattr(xp, name)
    close(xp.linalg.outer(x[0, ...], y[0, ...]), np.outer(p[0], q[0]))
    close(xp.linalg.cross(x, y), np.linalg.cross(p, q))


def test_vecdot_conjugates_the_first():
    a, b = data("complex128", 2, 3), data("complex128", 2, 3, seed=1)
    close(xp.vecdot(xp.asarray(a), xp.asarray(b), axis=0), np.vecdot(a, b, axis=0))
    close(xp.linalg.trace(xp.asarray(a), offset=1, dtype=xp.complex64), np.trace(a, 1).astype("complex64"))


def test_every_function_is_called():
    with open(__file__) as file:
        text = file.read()
    for line in SIGNATURES["linalg"]:
        name = line.partition("(")[0]
        assert name in text or name in ("diagonal", "matrix_transpose"), name


def test_gradients():
    x = pt.tensor(hermitian("float64", 3, 3), requires_grad=True)
    for function in (lambda a: xp.linalg.cholesky(a), lambda a: xp.linalg.solve(a, a[0]), lambda a: xp.linalg.trace(a),
                     lambda a: xp.vecdot(a, a), lambda a: xp.linalg.vector_norm(a, axis=0), lambda a: xp.std(a, axis=0),
                     lambda a: xp.take(a, xp.asarray([0, -1]), axis=1), lambda a: xp.cumulative_prod(a, axis=0)):
        assert pt.autograd.gradcheck(lambda a, function=function: function(xp.asarray(a + a.mT)), (x,))
