"""torch.special, further small functions and methods, functions at the top level, older names: values, dtypes,
gradients,
errors; and the names themselves."""
import numpy as np
import pytest

import ptcore as pt

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.parity

F = (pt.nn.functional, torch.nn.functional)


def draw(shape, seed=0, low=-3.0, high=3.0, dtype="float64"):
    return np.random.default_rng(seed).uniform(low, high, shape).astype(dtype)


def compare(call, *arrays, gradients=True, rtol=1e-10):
    results = []
    for lib in (pt, torch):
        tensors = [lib.tensor(a) for a in arrays]
        if gradients:
            tensors = [t.requires_grad_() if t.is_floating_point() or t.is_complex() else t for t in tensors]
        out = call(lib, *tensors)
        outs = list(out) if isinstance(out, (tuple, list)) else [out]
        if gradients:
            loss = sum([(o * (o.conj() if o.is_complex() else o)).real.sum() for o in outs if o.requires_grad])
            loss.backward()
            outs += [t.grad for t in tensors if t.grad is not None]
        results.append([o.detach().resolve_conj() for o in outs])
    for mine, theirs in zip(*results, strict=True):
        assert str(mine.dtype).split(".")[1] == str(theirs.dtype).split(".")[1]
        assert tuple(mine.shape) == tuple(theirs.shape)
        np.testing.assert_allclose(mine.numpy(), theirs.numpy(), rtol=rtol, atol=rtol)


SPECIAL = ["digamma", "psi", "erf", "erfc", "erfinv", "exp2", "expit", "expm1", "gammaln", "i0", "i0e", "i1", "i1e",
"log1p",
           "logit", "sinc", "entr", "ndtr", "log_ndtr", "erfcx", "round"]


@pytest.mark.parametrize("name", SPECIAL)
def test_special_functions(name):
    x = draw((4, 5), low=0.05, high=0.95) if name in ("erfinv", "logit", "entr") else draw((4, 5), low=0.1)
    # torch's trigamma, the derivative of digamma, has nine digits
    compare(lambda lib, a: getattr(lib.special, name)(a), x, gradients=name != "round",
            rtol=1e-8 if name in ("digamma", "psi") else 1e-10)
    compare(lambda lib, a: getattr(lib.special, name)(a), x.astype("float32"), gradients=name != "round", rtol=2e-5)
    if name != "round":
        integers = [getattr(lib.special, name)(lib.tensor([0, 1])) for lib in (pt, torch)]
        assert integers[0].dtype is pt.float32
        assert integers[1].dtype is torch.float32
        np.testing.assert_allclose(integers[0].numpy(), integers[1].numpy(), rtol=1e-5)


@pytest.mark.parametrize("k", range(13))
def test_functions_of_more(k):
    x, y = draw((3, 4), 1, 0.2, 6), draw((4,), 2, 0.2, 6)
    call = [
        lambda lib, a, b: lib.igamma(a.detach(), b), lambda lib, a, b: lib.igammac(a.detach(), b),
        lambda lib, a, b: lib.special.gammainc(a.detach(), b), lambda lib, a, b: a.detach().igammac(b),
        lambda lib, a, b: lib.special.xlog1py(a, b), lambda lib, a, b: lib.special.xlogy(a, b),
        lambda lib, a, b: lib.mvlgamma(a + 2, 3), lambda lib, a, b: lib.special.multigammaln(a + 2, 2),
        lambda lib, a, b: a.polygamma(1), lambda lib, a, b: lib.special.polygamma(2, a),
        lambda lib, a, b: lib.special.log_softmax(a, 1), lambda lib, a, b: lib.special.logsumexp(a, 0),
        lambda lib, a, b: lib.special.softmax(a, 0),
    ][k]
    compare(call, x, y, rtol=1e-8 if k == 8 else 1e-10)           # torch's trigamma has nine digits


def test_no_derivative_by_the_exponent():
    for lib in (pt, torch):
        a = lib.ones(2, requires_grad=True)
        with pytest.raises(RuntimeError, match="not implemented"):
            lib.igamma(a, lib.ones(2)).sum().backward()


@pytest.mark.parametrize("seed", range(3))
def test_logcumsumexp_of_complex_numbers(seed):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(3, 6)) * 3 + 1j * rng.normal(size=(3, 6)) * 5
    for dim in (0, 1):
        compare(lambda lib, a, dim=dim: lib.logcumsumexp(a, dim), x)
        compare(lambda lib, a, dim=dim: a.logcumsumexp(dim), x.astype("complex64"), rtol=1e-4)
    x[0, 1], x[1, 2], x[2, 3] = -np.inf, np.inf, np.nan
    got = [lib.logcumsumexp(lib.tensor(x), 1).numpy() for lib in (pt, torch)]
    np.testing.assert_allclose(got[0].real, got[1].real)


INPLACE = [
    lambda t: t.i0_(), lambda t: t.mvlgamma_(2), lambda t: t.polygamma_(1), lambda t: t.igamma_(t.clone()),
    lambda t: t.igammac_(t.clone()), lambda t: t.conj_physical_(), lambda t: t.apply_(lambda v: v * 2),
    lambda t: t.map_(t.clone(), lambda a, b: a + b),
]


@pytest.mark.parametrize("k", range(len(INPLACE)))
def test_in_place(k):
    x = draw((3, 4), 1, 1.2, 6)
    results = []
    for lib in (pt, torch):
        t = lib.tensor(x)
        result = INPLACE[k](t)
        assert result is t
        results.append(t.numpy())
    np.testing.assert_allclose(*results, rtol=1e-8 if k == 2 else 1e-12)       # torch's trigamma has nine digits


SMALL = [
    lambda lib, a, b: lib.isin(a.round(), b.round()), lambda lib, a, b: lib.isin(a.round(), 1, invert=True),
    lambda lib, a, b: lib.isin(2, b.round()), lambda lib, a, b: lib.gradient(a),
    lambda lib, a, b: lib.gradient(a, dim=1),
    lambda lib, a, b: lib.gradient(a, spacing=2.0, edge_order=2), lambda lib, a, b: lib.gradient(a, spacing=[1.0, 0.5]),
    lambda lib, a, b: lib.gradient(a, spacing=(lib.tensor([0.0, 1, 3, 4], dtype=lib.float64),), dim=0),
    lambda lib, a, b: lib.histogram(a, 4), lambda lib, a, b: a.histogram(3, range=(-1, 2), density=True),
    lambda lib, a, b: lib.histogram(a, lib.tensor([-1.0, 0, 2], dtype=lib.float64)),
    lambda lib, a, b: lib.histogramdd(a[:, :2], [2, 3])[0], lambda lib, a, b: lib.histogramdd(a[:, :2], 2)[1],
    lambda lib, a, b: lib.unravel_index(lib.tensor([0, 11, 5]), (3, 4)), lambda lib, a, b: a.split_with_sizes([1, 3]),
    lambda lib, a, b: lib.split_with_sizes(a, (2, 2), 1), lambda lib, a, b: a.conj_physical(),
    lambda lib, a, b: lib.as_strided_scatter(a, b[:2, :2], (2, 2), (5, 1), 1), lambda lib, a, b: lib.logspace(0, 2, 5),
    lambda lib, a, b: lib.logspace(0, 2, 5, 2, dtype=lib.float64), lambda lib, a, b: lib.range(0, 2, 0.5),
    lambda lib, a, b: lib.range(5, 1, -2), lambda lib, a, b: lib.scalar_tensor(3),
    lambda lib, a, b: lib.constant_pad_nd(a, (1, 2), 7),
    lambda lib, a, b: lib.norm_except_dim(a, 2, 1), lambda lib, a, b: lib.norm_except_dim(a, 2, 0),
    lambda lib, a, b: lib.empty_permuted((2, 3), (1, 0)).fill_(0), lambda lib, a, b: lib.arccos_(a.clone() / 9),
    lambda lib, a, b: lib.fill_(a.clone(), 3), lambda lib, a, b: lib.clip_(a.clone(), 0, 1),
    lambda lib, a, b: lib.zero_(a.clone()),
    lambda lib, a, b: lib.index_put(a, (lib.tensor([0, 1]),), b[:2]), lambda lib, a, b: a.clone().resize_as_(b[:2]),
    lambda lib, a, b: lib.vander(a[0], 3), lambda lib, a, b: lib.vander(b[1], increasing=True),
    lambda lib, a, b: lib.pca_lowrank(a, 4)[1], lambda lib, a, b: lib.svd_lowrank(a, 4)[1],
]


@pytest.mark.parametrize("k", range(len(SMALL)))
def test_small_functions(k):
    compare(SMALL[k], draw((4, 4), 3), draw((4, 4), 4), gradients=False)


def test_gradients_of_small_functions():
    x, y = draw((4, 4), 3), draw((4, 4), 4)
    for call in (lambda lib, a, b: lib.gradient(a, spacing=0.5, edge_order=2),
    lambda lib, a, b: lib.conj_physical(a * b),
                 lambda lib, a, b: (a * b).split_with_sizes([1, 3], 1)):
        compare(call, x, y)


TOP = [
    lambda lib, x, w: lib.layer_norm(x, (4,), w, w), lambda lib, x, w: lib.rms_norm(x, (4,), w),
    lambda lib, x, w: lib.group_norm(x, 2, w, w),
    lambda lib, x, w: lib.batch_norm(x, w, None, None, None, True, 0.1, 1e-5, False),
    lambda lib, x, w: lib.instance_norm(x.reshape(1, 4, 3), w, w, None, None, True, 0.1, 1e-5, False),
    lambda lib, x, w: lib.kl_div(x, x.exp(), 2), lambda lib, x, w: lib.kl_div(x, x, 0, log_target=True),
    lambda lib, x, w: lib.binary_cross_entropy_with_logits(x, x.sigmoid().detach(), None, w.detach(), 1),
    lambda lib, x, w: lib.cosine_embedding_loss(x, x * w, lib.tensor([1, -1, 1])),
    lambda lib, x, w: lib.hinge_embedding_loss(w, lib.tensor([1, -1, 1, -1]), 0.5, 2),
    lambda lib, x, w: lib.margin_ranking_loss(x[0], w, lib.tensor([1, -1, 1, -1]), 0.1),
    lambda lib, x, w: lib.poisson_nll_loss(x, x.abs().detach(), True, False, 1e-8, 1),
    lambda lib, x, w: lib.triplet_margin_loss(x, x * w, x + w),
    lambda lib, x, w: lib.adaptive_max_pool1d(x.reshape(1, 3, 4), 2)[0],
    lambda lib, x, w: lib.max_pool1d_with_indices(x.reshape(1, 3, 4), 2)[0],
]


@pytest.mark.parametrize("k", range(len(TOP)))
def test_networks_at_the_top_level(k):
    compare(TOP[k], draw((3, 4), 3), draw((4,), 4))


@pytest.mark.parametrize("mode", ["lstm", "gru", "rnn_tanh", "rnn_relu"])
def test_cells(mode):
    n = {"lstm": 4, "gru": 3}.get(mode, 1) * 2
    arrays = [draw(s, i) for i, s in enumerate([(3, 5), (3, 2), (3, 2), (n, 5), (n, 2), (n,), (n,)])]

    def call(lib, x, h, c, w, v, b, d):
        state = (h, c) if mode == "lstm" else h
        return getattr(lib, mode + "_cell")(x, state, w, v, b, d)

    compare(call, *arrays)


POOLS = [
    lambda f, x: f.max_pool2d_with_indices(x, 2), lambda f, x: f.max_pool1d_with_indices(x[0], 2, 1),
    lambda f, x: f.max_pool3d_with_indices(x, 2), lambda f, x: f.adaptive_max_pool2d_with_indices(x, (2, 1)),
    lambda f, x: f.adaptive_max_pool1d_with_indices(x[0], 2), lambda f, x: f.adaptive_max_pool3d_with_indices(x, 1),
    lambda f, x: f.upsample(x, scale_factor=2), lambda f, x: f.upsample_nearest(x, (3, 5)),
    lambda f, x: f.upsample_bilinear(x, scale_factor=2), lambda f, x: f.native_channel_shuffle(x, 2),
]


@pytest.mark.parametrize("k", range(len(POOLS)))
def test_other_names_in_functional(k):
    x = draw((1, 4, 4, 4))
    results = []
    for lib, f in zip((pt, torch), F, strict=True):
        out = POOLS[k](f, lib.tensor(x))
        results.append([o.numpy() for o in (out if isinstance(out, tuple) else (out,))])
    for mine, theirs in zip(*results, strict=True):
        assert mine.dtype == theirs.dtype
        np.testing.assert_allclose(mine, theirs)


def test_convolution_of_time_batch_channels():
    arrays = [draw(s, i) for i, s in enumerate([(6, 2, 3), (3, 3, 4), (4,)])]
    compare(lambda lib, x, w, b: lib.conv_tbc(x, w, b, 1) if lib is torch else F[0].conv_tbc(x, w, b, 1), *arrays)


def test_rrelu_in_place():
    x = pt.tensor([-3.0, 2.0])
    assert F[0].rrelu_(x, 0.5, 0.5) is x
    assert x.tolist() == F[1].rrelu_(torch.tensor([-3.0, 2.0]), 0.5, 0.5).tolist() == [-1.5, 2]


def test_initialisers():
    for shape, groups in (((4, 2, 3), 1), ((4, 2, 3), 2), ((2, 3, 3, 4), 1), ((6, 2, 2, 3, 2), 3)):
        got = [lib.nn.init.dirac_(lib.empty(*shape), groups).numpy() for lib in (pt, torch)]
        np.testing.assert_array_equal(*got)
    for lib in (pt, torch):
        for bad in (lambda lib=lib: lib.nn.init.dirac_(lib.empty(2, 2)),
        lambda lib=lib: lib.nn.init.dirac_(lib.empty(3, 2, 2), 2)):
            with pytest.raises(ValueError, match=r"dirac|Only tensors|dim 0"):
                bad()
        with pytest.warns(FutureWarning, match="now deprecated in favor of"):
            assert lib.nn.init.constant(lib.empty(2), 3).tolist() == [3, 3]
    for name in ("dirac", "eye", "kaiming_normal", "kaiming_uniform", "normal", "orthogonal", "sparse", "uniform",
                 "xavier_normal", "xavier_uniform"):
        assert getattr(pt.nn.init, name).__name__ == getattr(torch.nn.init, name).__name__ == name
