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


# -- values that a shorter way had cut, lost or made NaN ---------------------------------------------------------------

@pytest.mark.parametrize("shape", [(1, 1, 2), (2, 3, 2), (1, 1, 2, 2), (1, 2, 2, 3), (1, 1, 2, 1), (1, 1, 2, 2, 2)])
@pytest.mark.parametrize("padding", ["same", "valid", 0])
def test_convolution_with_a_kernel_of_the_input_s_size(shape, padding):
    name = f"conv{len(shape) - 2}d"
    numbers = np.arange(float(np.prod(shape))).reshape(shape)
    same(lambda lib: getattr(lib.nn.functional, name)(lib.tensor(numbers), lib.tensor(numbers[:1] - 2),
                                                      padding=padding))


@pytest.mark.parametrize("p", [1, -1, INF, -INF])
@pytest.mark.parametrize("scale", [1e-20, 1e20, 1.0])
def test_condition_numbers_where_the_determinant_has_no_value(p, scale):
    matrix = np.array([[2.0, 1, 0], [0, 1, 3], [1, 0, 4]])
    same(lambda lib: lib.linalg.cond(lib.tensor(scale * matrix, dtype=lib.float32), p))
    same(lambda lib: lib.linalg.cond(lib.tensor(np.ones((2, 2)), dtype=lib.float32), p))
    found = pt.linalg.cond(pt.tensor(scale * matrix, dtype=pt.float32), "fro")      # PyTorch's norm overflows
    np.testing.assert_allclose(found.item(), np.linalg.cond(matrix, "fro"), rtol=1e-5)


@pytest.mark.parametrize("first", [-INF, INF, float("nan")])
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_ignored_targets_of_infinite_scores(first, reduction):
    scores, classes = [[first, 1.0], [1.0, 2.0]], [-100, 0]

    def one(lib, name, **options):
        def loss(x):
            return getattr(lib.nn.functional, name)(x, lib.tensor(classes), reduction=reduction, **options)
        return loss

    for name in ("nll_loss", "cross_entropy"):
        whole = one(pt, name)(pt.tensor(scores))
        assert np.isfinite(whole.numpy()).all()
        same(lambda lib, n=name: one(lib, n)(lib.tensor(scores)))
        batched = pt.func.vmap(one(pt, name))(pt.tensor([scores]))[0]
        pushed, tangent = pt.func.jvp(one(pt, name), (pt.tensor(scores),), (pt.ones(2, 2),))
        for other in (batched, pushed):
            np.testing.assert_allclose(other.numpy(), whole.numpy(), rtol=1e-6)
        assert np.isfinite(tangent.numpy()).all()
        x = pt.tensor(scores, requires_grad=True)
        (g,) = pt.autograd.grad(one(pt, name)(x).sum(), x, create_graph=True)
        assert (g[0] == 0).all() and g[1].isfinite().all()
    smooth = one(pt, "cross_entropy", label_smoothing=0.25)
    whole = smooth(pt.tensor(scores))
    np.testing.assert_allclose(pt.func.vmap(smooth)(pt.tensor([scores]))[0].numpy(), whole.numpy(), rtol=1e-6)


@pytest.mark.parametrize("var", [[INF, 1.0], [float("nan"), 1.0], [0.0, 1e-9], [0.5, 2.0], [-1.0, 1.0]])
def test_gaussian_nll_loss_of_special_variances(var):
    def loss(lib, v):
        return lib.nn.functional.gaussian_nll_loss(lib.ones(2), lib.zeros(2), v, reduction="none")

    same(lambda lib: loss(lib, lib.tensor(var)))
    same(lambda lib: loss(lib, lib.tensor(var, dtype=lib.float64)))

    def slope(lib):
        v = lib.tensor(var, requires_grad=True)
        return lib.autograd.grad(loss(lib, v).sum(), v)[0]
    if all(np.isfinite(var)):
        same(slope)


def test_embedding_with_gradients_scaled_by_frequency():
    rows = [[INF, 1.0], [float("nan"), 2.0], [3.0, -INF], [0.5, 4.0]]
    places = [0, 1, 1, 2, 2, 2, 3]

    def value(lib):
        return lib.nn.functional.embedding(lib.tensor(places), lib.tensor(rows, requires_grad=True),
                                           scale_grad_by_freq=True)

    def slope(lib):
        weight = lib.tensor(rows, requires_grad=True)
        out = lib.nn.functional.embedding(lib.tensor(places), weight, scale_grad_by_freq=True)
        return lib.autograd.grad(out, weight, lib.arange(14.0).reshape(7, 2))[0]

    same(value)
    same(slope)

    def inside(lib):                    # the weights require grad outside of the batch alone
        weights = lib.arange(6.0).reshape(2, 3, 1).requires_grad_()
        found = lib.func.vmap(lambda w: lib.nn.functional.embedding(lib.tensor([0, 1, 1]), w,
                                                                    scale_grad_by_freq=True))(weights)
        return lib.autograd.grad(found.sum(), weights)[0]
    assert inside(pt).tolist() == [[[1], [1], [0]]] * 2
    weight = pt.ones(2, 1, dtype=pt.bfloat16, requires_grad=True)       # counts above 256 are no bfloat16 numbers
    out = pt.nn.functional.embedding(pt.zeros(601, dtype=pt.int64), weight, scale_grad_by_freq=True)
    np.testing.assert_allclose(pt.autograd.grad(out.sum(), weight)[0].float().numpy(), [[1], [0]], atol=0.01)
    weight = pt.full((1, 1), 0.25, dtype=pt.float16)
    found = pt.nn.functional.embedding_bag(pt.zeros(1, 70000, dtype=pt.int64), weight, mode="mean")
    assert found.item() == 0.25                                         # nor is 70000 a float16


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64", "int64"])
@pytest.mark.parametrize("number", [0.1, 1.0, 1, 2.5])
def test_isin_of_numbers(dtype, number):
    for invert in (False, True):
        same(lambda lib, i=invert: lib.isin(lib.tensor([number, 3, 1]).to(getattr(lib, dtype)), number, invert=i))
        same(lambda lib, i=invert: lib.isin(number, lib.tensor([3, number]).to(getattr(lib, dtype)), invert=i))


def test_isclose_without_tolerance_is_exact():
    for a, b in ((2**53, 2**53 + 1), (2**62, 2**62 + 1), (-2**63, 2**63 - 1), (5, 5)):
        same(lambda lib, a=a, b=b: lib.isclose(lib.tensor([a]), lib.tensor([b]), rtol=0, atol=0))
    values = [1.0, float("nan"), INF, -0.0], [1.0, float("nan"), INF, 0.0]
    for equal_nan in (False, True):
        same(lambda lib, e=equal_nan: lib.isclose(*[lib.tensor(v) for v in values], rtol=0, atol=0, equal_nan=e))


@pytest.mark.parametrize("draw", [lambda x: x.normal_(0, float("nan")), lambda x: x.log_normal_(0, float("nan")),
                                  lambda x: x.exponential_(float("nan")), lambda x: x.cauchy_(0, float("nan"))])
def test_draws_with_a_scale_of_nan(draw):
    same(lambda lib: draw(lib.zeros(2)))
    same(lambda lib: lib.normal(0.0, float("nan"), (2,)))


@pytest.mark.parametrize("sections", [2, np.int64(2), np.int64(3), 0, -1, [2], (1, np.int64(4))])
def test_even_parts(sections):
    for n in (5, 6):
        for name, ndim in (("hsplit", 1), ("hsplit", 2), ("vsplit", 2), ("dsplit", 3)):
            same(lambda lib, n=n, name=name, d=ndim: lib.cat([part.reshape(-1) for part in getattr(lib, name)(
                lib.arange(n**d).reshape((n,) * d), sections)]))
    with pytest.raises(RuntimeError, match="multiple of 2"):
        pt.hsplit(pt.arange(5), pt.tensor(2))


def test_indices_in_subclasses_of_tuple():
    import collections
    Point = collections.namedtuple("Point", "x y")
    for key in (lambda lib: lib.ones(1, 2).shape, lambda lib: Point(slice(None), 1), lambda lib: Point([0, 2], [1, 1])):
        same(lambda lib, k=key: lib.arange(12).reshape(3, 4)[k(lib)])

        def written(lib, k=key):
            x = lib.zeros(3, 4)
            x[k(lib)] = 5
            return x
        same(written)


def test_squeeze_of_a_dim_twice():
    for dims in ((0, 0), (0, -2), (0, 1), ()):
        same(lambda lib, d=dims: lib.ones(1, 1).squeeze(d))
        same(lambda lib, d=dims: lib.squeeze_copy(lib.ones(1, 1), d))


@pytest.mark.parametrize("eps", [0.1, 0.5, 0.7, 1.5, -0.1, float("nan"), 0])
def test_logit_with_bounds_in_any_order(eps):
    points = [-0.5, 0, 0.1, 0.3, 0.5, 0.9, 1, 2, float("nan")]
    for dtype in ("float32", "float64"):
        same(lambda lib, d=dtype: lib.logit(lib.tensor(points, dtype=getattr(lib, d)), eps))


@pytest.mark.parametrize("norm_type", [1, 2, 3.5, INF, -INF])
def test_power_average_pooling_of_infinite_order(norm_type):
    for name, ndim in (("lp_pool1d", 3), ("lp_pool2d", 4)):
        x = np.linspace(-2, 3, 6**(ndim - 2)).reshape((1, 1) + (6,) * (ndim - 2))
        x = x if norm_type in (2, INF, -INF) else np.abs(x)
        for ceil_mode in (False, True):
            same(lambda lib, n=name, x=x, c=ceil_mode: getattr(lib.nn.functional, n)(lib.tensor(x), norm_type, 2, 3, c))


def test_sums_of_powers():
    for order in (0, 1, 2, 3, 1.5):
        same(lambda lib, o=order: lib._foreach_powsum([lib.tensor([1.0, 0, -3])], o)[0])


def test_writes_to_tensors_without_data():
    def written(lib, source, sizes=(3,), device="meta", **options):
        x = lib.empty(*sizes, device="meta")
        y = lib.empty(*source, device=device, **options)
        x.copy_(y)
        return lib.zeros(*x.shape).add(int(x.requires_grad))

    for sizes in ((3,), (2,), (1,), (), (1, 3), (3, 1)):
        for device in ("meta", "cpu"):
            same(lambda lib, s=sizes, d=device: written(lib, s, device=d))
        same(lambda lib, s=sizes: written(lib, s, requires_grad=True))

    def set_item(lib):
        x = lib.empty(3, device="meta")
        x[0] = lib.empty((), device="meta", requires_grad=True)
        return lib.tensor(x.requires_grad)
    same(set_item)


def test_old_constructor_of_one_argument():
    for given in (lambda lib: 2.5, lambda lib: True, lambda lib: lib.ones(2, 0).shape, lambda lib: lib.ones(()).shape):
        same(lambda lib, g=given: lib.zeros_like(lib.Tensor(g(lib))))
    with pytest.raises(TypeError, match="complex"):
        pt.tensor([np.complex64(1 + 2j)], dtype=pt.float32)
    same(lambda lib: lib.tensor([np.complex64(1 + 2j)], dtype=lib.int64))


def test_plus_of_booleans():
    same(lambda lib: +lib.tensor([True]))
    same(lambda lib: +lib.tensor([2]))
