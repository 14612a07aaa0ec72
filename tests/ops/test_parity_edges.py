"""Edges of single functions beside PyTorch, or beside NumPy where PyTorch wraps around: what the whole op database and
random calls had shown."""
import itertools

import numpy as np
import pytest

import ptcore as pt

torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.parity, pytest.mark.filterwarnings("ignore:size_average and reduce args:UserWarning"),
              pytest.mark.filterwarnings("ignore:.*reduction.*mean:UserWarning")]
INF = float("inf")


def same(call):
    """A call gives the same dtype, shape and numbers in both libraries, or raises."""
    results = []
    for lib in (pt, torch):
        try:
            found = call(lib)
            results.append((str(found.dtype).rpartition(".")[2], tuple(found.shape), found.detach().tolist()))
        except Exception as e:
            results.append(next(c for c in (IndexError, RuntimeError, ValueError, TypeError) if isinstance(e, c)))
    a, b = results
    assert type(a) is type(b)
    if isinstance(a, tuple):
        assert a[:2] == b[:2]
        np.testing.assert_allclose(a[2], b[2], rtol=1e-5)
    else:
        assert a is b


@pytest.mark.parametrize("shape", [(0, 0), (0, 3), (3, 0), (2, 0, 3), (2, 3, 0)])
def test_matrix_norms_of_no_elements(shape):
    for order, keepdim in itertools.product((INF, -INF, 1, -1, 2, -2, "fro", "nuc"), (False, True)):
        same(lambda lib, o=order, k=keepdim: lib.linalg.norm(lib.zeros(shape), o, (-2, -1), k))
        same(lambda lib, o=order, k=keepdim: lib.linalg.matrix_norm(lib.zeros(shape), o, keepdim=k))


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32", "uint16", "uint32", "int64"])
def test_closeness_of_integers_does_not_wrap(dtype):
    ends = np.iinfo(dtype if dtype != "int64" else "int32")         # float64 holds these
    a = np.array([ends.min, ends.min + 1, ends.min + 3, 0, 5, ends.max - 3, ends.max], dtype=dtype)
    for how in ({}, {"rtol": 0.1, "atol": 3.0}, {"rtol": 0.0, "atol": 4.0}, {"rtol": 0.0, "atol": 0.0}):
        exact = [[abs(int(x) - int(y)) <= how.get("atol", 1e-8) + how.get("rtol", 1e-5) * abs(int(y)) for y in a] for x in a]
        assert pt.isclose(pt.from_numpy(a[:, None].copy()), pt.from_numpy(a), **how).tolist() == exact


def test_two_numbers():
    for name in ("add", "sub", "mul", "div", "true_divide", "divide", "floor_divide", "subtract", "multiply"):
        for a, b in ((5, 2), (5, 2.5), (-7, 2), *(((True, 2), (1.5, True)) if "sub" not in name else ()), (2, 1j)):
            same(lambda lib, n=name, a=a, b=b: getattr(lib, n)(a, b))
    for mode in ("trunc", "floor"):
        same(lambda lib, m=mode: lib.div(-7, 2, rounding_mode=m))


def test_no_differences():
    x = np.arange(6.0).reshape(2, 3) ** 2
    for dim in (0, 1):
        same(lambda lib, d=dim: lib.diff(lib.tensor(x), 0, d, lib.ones(2, 3), lib.ones(2, 3)))
        same(lambda lib, d=dim: lib.diff(lib.tensor(x), 1, d, out=lib.zeros(0, dtype=lib.complex128)))
        same(lambda lib, d=dim: lib.diff(lib.tensor(x), 1, d, out=lib.zeros(0, dtype=lib.int64)))
    y = pt.tensor(x)
    assert pt.diff(y, 0).data_ptr() != y.data_ptr()


def test_positions_of_no_elements():
    def gathered(lib):
        x = lib.ones(5, requires_grad=True)
        lib.gather(x, 0, lib.zeros(2, 0, dtype=lib.int64)).sum().backward()
        return x.grad
    same(gathered)
    same(lambda lib: lib.ones(5).scatter_add(0, lib.zeros(2, 0, dtype=lib.int64), lib.zeros(2, 0)))
    same(lambda lib: lib.ones(5).scatter(0, lib.zeros(0, 3, dtype=lib.int64), lib.zeros(2)))


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int16", "int32", "int64", "float32", "float64"])
def test_length_of_ranges(dtype):
    for bounds in ((0.0, -8.000001, -4.0), (1.0, 5.000001, 2.0), (0.5, 4.5, 1.5), (2.9, 3.1, 1.0), (3.0, 3.0, 1.0)):
        same(lambda lib, b=bounds: lib.arange(*b, dtype=getattr(lib, dtype)))


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int16", "int32", "int64", "float32"])
def test_ends_of_ranges_of_integers(dtype):
    for start, end, steps in ((4.3, 0, 8), (0, 10.9, 4), (50, 4.7, 50), (2.9, 2.1, 3), (1, 1, 1)):
        same(lambda lib, a=start, b=end, n=steps: lib.linspace(a, b, n, dtype=getattr(lib, dtype)))
    for start, end, base in ((0, 2.9, 10), (0, 4.5, 2.5), (3.7, 0, 2)):
        same(lambda lib, a=start, b=end, c=base: lib.logspace(a, b, 4, c, dtype=getattr(lib, dtype)))
    for lib in (pt, torch):
        for f in (lib.linspace, lib.logspace):
            with pytest.raises((RuntimeError, OverflowError, ValueError)):
                f(0, INF, 3, dtype=lib.int32)


def test_dtypes_of_joined_blocks():
    for a, b in ((("float32", 1), ("complex128", 0)), (("bfloat16", 1), ("float16", 0)), (("int8", 2), ("int64", 0)),
                 (("int8", 1), ("float64", 1)), (("bool", 0), ("uint8", 0))):
        same(lambda lib, a=a, b=b: lib.block_diag(*[lib.ones([2] * n, dtype=getattr(lib, d)) for d, n in (a, b)]))


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "int32", "float32", "complex64"])
@pytest.mark.parametrize("n", [None, 0, 1, 2, 4])
def test_powers_of_a_vector(dtype, n):
    same(lambda lib: lib.vander(lib.tensor([1, 0, 1], dtype=getattr(lib, dtype)), n))


def test_older_reductions_of_the_divergence():
    for average, reduce, reduction in itertools.product((None, True, False), (None, True, False),
                                                        ("mean", "batchmean", "sum", "none")):
        same(lambda lib, a=average, r=reduce, n=reduction: lib.nn.functional.kl_div(
            lib.tensor([[1., 2], [3, 4]]).log_softmax(1), lib.tensor([[.3, .7], [.2, .8]]), a, r, n))


def test_fractional_pooling_by_any_samples():
    x = np.random.default_rng(0).standard_normal((1, 2, 9, 8))
    for numbers in ([0.3, 0.7], [-3.07, -7.23], [12.5, 1.0], [1e4, -1e4]):
        for kernel in (1, 2, 3):
            same(lambda lib, u=numbers, k=kernel: lib.nn.functional.fractional_max_pool2d(
                lib.tensor(x), k, (4, 5), _random_samples=lib.tensor([[u, u[::-1]]], dtype=lib.float64)))


def test_normalised_groups_of_no_rows():
    def run(lib):
        x = lib.ones(0, 2, dtype=lib.float64, requires_grad=True)
        w = lib.ones(2, dtype=lib.float64, requires_grad=True)
        (g,) = lib.autograd.grad(lib.nn.functional.group_norm(x, 1, w).sum(), w, create_graph=True)
        return lib.autograd.grad(g.sum(), w, allow_unused=True)[0] + g
    same(run)
    same(lambda lib: lib.nn.functional.local_response_norm(lib.zeros(0, 1, 2, dtype=lib.int64), 1))


def test_integers_at_their_ends():
    for offset in (-(2 ** 63), -(2 ** 62), 2 ** 62):
        same(lambda lib, o=offset: lib.tril_indices(3, 3, o))
        assert pt.triu_indices(3, 3, offset).tolist() == [x.tolist() for x in np.triu_indices(3, max(-9, min(9, offset)))]
    same(lambda lib: lib.nn.functional.avg_pool2d(lib.full((1, 4, 4), 2 ** 62, dtype=lib.int64), 2))


@pytest.mark.parametrize("numbers", [[1.0, 2, 0, 3, 4], [0.0, 2, 0, 3, 4], [0.0, 0, 0, 3, 4], [1.0, 2, 3, 4, 5]])
def test_second_derivatives_of_products_with_zeros(numbers):
    x = pt.tensor(numbers, dtype=pt.float64, requires_grad=True)
    for f in (lambda x: x.prod(), lambda x: x.view(1, 5).prod(1), lambda x: x.view(5, 1).prod(0, keepdim=True),
              lambda x: pt.view_as_real(pt.complex(x, 2 * x).prod()), lambda x: x.cumprod(0)):
        assert pt.autograd.gradcheck(f, (x,)) and pt.autograd.gradgradcheck(f, (x,))
    places = pt.zeros(5, dtype=pt.int64)
    for f in (lambda x: pt.ones(1, dtype=pt.float64).scatter_reduce(0, places, x, "prod"),
              lambda x: pt.ones(1, dtype=pt.float64).index_reduce(0, places, x, "prod"),
              lambda x: pt.segment_reduce(x, "prod", lengths=pt.tensor([5]), axis=0)):
        assert pt.autograd.gradcheck(f, (x,))
        if numbers.count(0) < 2:
            assert pt.autograd.gradgradcheck(f, (x,))
        else:
            with pytest.raises(RuntimeError, match="second derivative of a product"):
                pt.autograd.gradgradcheck(f, (x,))


@pytest.mark.parametrize("name", ["quantile", "nanquantile"])
def test_gradients_by_the_quantile(name):
    x = np.random.default_rng(0).standard_normal((3, 6))
    x[0, 2] = np.nan if name == "nanquantile" else 9

    def run(lib):
        q = lib.tensor([0.0, 0.3, 0.4, 0.77, 1.0], dtype=lib.float64, requires_grad=True)
        y = lib.tensor(x, requires_grad=True)
        found = getattr(lib, name)(y, q, 1)
        weights = lib.arange(1.0, 16, dtype=lib.float64).view(5, 3)
        a, b = lib.autograd.grad((found[:, :2] * weights[:, :2]).sum(), (q, y), create_graph=True)
        return lib.cat([a, b.reshape(-1)])
    same(run)
    q = pt.tensor(0.3, dtype=pt.float64, requires_grad=True)
    y = pt.tensor(x[1], requires_grad=True)
    assert pt.autograd.gradgradcheck(lambda y, q: getattr(pt, name)(y, q), (y, q))
    for interpolation in ("lower", "higher", "nearest", "midpoint"):
        assert not getattr(pt, name)(y.detach(), q, interpolation=interpolation).requires_grad


def test_repeats_without_values():
    x, repeats = pt.ones(4, 2, device="meta"), pt.ones(4, dtype=pt.int64, device="meta")
    assert x.repeat_interleave(repeats, 0, output_size=6).shape == (6, 2)
    assert pt.repeat_interleave(repeats, output_size=3).shape == (3,)


@pytest.mark.parametrize("dtype", ["float32", "complex64"])
def test_logsumexp_of_no_elements(dtype):
    for shape, dim in (((0,), 0), ((2, 0), 1), ((0, 3), 0), ((0, 3), 1), ((0, 3), (0, 1))):
        same(lambda lib, s=shape, d=dim: lib.logsumexp(lib.zeros(s, dtype=getattr(lib, dtype)), d))


def test_bounds_that_are_nan():
    for bounds in ((np.nan, 1.0), (-1.0, np.nan), (np.nan, np.nan)):
        for name in ("clamp", "nn.functional.hardtanh"):
            def run(lib, bounds=bounds, name=name):
                f = lib
                for part in name.split("."):
                    f = getattr(f, part)
                return f(lib.tensor([-2.0, 0.5, 2.0, np.nan]), *bounds)
            same(run)


def test_state_of_another_dtype():
    for change in (lambda x: x.bool(), lambda x: x.long(), lambda x: x.tolist()):
        for lib in (pt, torch):
            with pytest.raises(TypeError):
                lib.set_rng_state(change(lib.get_rng_state()))


def test_dtype_of_similarities():
    for a, b in (("bfloat16", "int32"), ("float16", "uint8"), ("float16", "float32"), ("float64", "float32"),
                 ("float32", "int64")):
        x, y = [[1.0, 2.0, 3.0]], [[2.0, 0.0, 1.0]]
        found = [lib.cosine_similarity(lib.tensor(x, dtype=getattr(lib, a)), lib.tensor(y, dtype=getattr(lib, b)))
                 for lib in (pt, torch)]
        assert found[0].dtype.name == str(found[1].dtype).removeprefix("torch.")
        np.testing.assert_allclose(found[0].tolist(), found[1].tolist(), rtol=1e-2)
