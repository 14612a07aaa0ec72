"""segment_reduce, lobpcg, linear_cross_entropy, Adafactor, Muon and weighted losses against PyTorch."""
import re

import numpy as np
import pytest

import ptcore as pt

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.parity

LIBS = (pt, torch)
rng = np.random.default_rng(5)
DATA = rng.normal(size=(6, 4))
DATA[2, 1] = DATA[1, 1]                 # two of one size


def both(call, rtol=1e-12):
    mine, theirs = [call(lib) for lib in LIBS]
    for a, b in zip(mine, theirs, strict=True):
        assert tuple(a.shape) == tuple(b.shape)
        assert str(a.dtype).split(".")[1] == str(b.dtype).split(".")[1]
        np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=rtol, atol=rtol)


def refused(call, says):
    with pytest.raises((RuntimeError, TypeError, ValueError, IndexError, AssertionError)) as theirs:
        call(torch)
    with pytest.raises(theirs.type, match="^" + re.escape(says)):
        call(pt)


# -- segment_reduce ----------------------------------------------------------------------------

PIECES = [("lengths", [2, 0, 3, 1], 0), ("offsets", [0, 2, 2, 5, 6], 0), ("offsets", [1, 2, 4], 0),
          ("lengths", [[1, 3], [2, 2], [4, 0], [0, 4], [3, 1], [2, 2]], 1)]


@pytest.mark.parametrize("reduce", ["sum", "mean", "max", "min", "prod"])
@pytest.mark.parametrize(("kind", "pieces", "axis"), PIECES)
@pytest.mark.parametrize("initial", [None, 0.5])
def test_segment_reduce(reduce, kind, pieces, axis, initial):
    def call(lib, dtype="int64"):
        x = lib.tensor(DATA).requires_grad_()
        given = {kind: lib.tensor(pieces, dtype=getattr(lib, dtype))}
        out = lib.segment_reduce(x, reduce, axis=axis, initial=initial, **given)
        finite = out.isfinite()
        (out * out).masked_fill(~finite, 0).sum().backward()
        return out, x.grad
    both(call)
    both(lambda lib: call(lib, "int32")[:1])


@pytest.mark.parametrize("reduce", ["sum", "mean", "max", "min", "prod"])
@pytest.mark.parametrize("values", [[1, 2, 0, 3, float("nan"), 5, 0, 0, 7, 7],
                                    [1, 1, 1, float("nan"), float("nan"), 2, 2, float("inf"), 0, 1]])
@pytest.mark.parametrize("given", [{"lengths": [3, 0, 4, 3]}, {"offsets": [0, 3, 3, 7, 10]}, {"lengths": [2, 2]}])
@pytest.mark.parametrize("initial", [None, 0.5, 0.0])
def test_segment_reduce_of_zeros_equals_and_nan(reduce, values, given, initial):
    def call(lib):
        x = lib.tensor(values, dtype=lib.float64, requires_grad=True)
        pieces = {name: lib.tensor(of) for name, of in given.items()}
        out = lib.segment_reduce(x, reduce, initial=initial, unsafe=sum(given.get("lengths", [10])) < 10, **pieces)
        g = lib.arange(1, len(out) + 1).to(out.dtype)
        return out, *lib.autograd.grad(out, x, g)
    both(call)


def test_segment_reduce_of_nan_and_unsafe():
    for reduce in ("sum", "mean", "max", "min", "prod"):
        both(lambda lib, r=reduce: [lib.segment_reduce(lib.tensor([1., float("nan"), 2.]), r,
                                                       lengths=lib.tensor([2, 1]))], 1e-6)
        both(lambda lib, r=reduce: [lib.segment_reduce(lib.tensor([1., 3., 2.]), r, lengths=lib.tensor([1, 1]),
                                                       unsafe=True)], 1e-6)


SAID_SEGMENT_REDUCE_ERRORS = [
    "segment_reduce: lengths must add up to 3, the size of dim 0",
    "segment_reduce: reduce must be one of sum, mean, prod, max, min, got 'most'",
    "segment_reduce: lengths or offsets must be a Tensor, got NoneType",
    "segment_reduce: lengths must not be negative, got -1",
    "segment_reduce: lengths and offsets must have dtype int32 or int64, got float32",
    "segment_reduce: data must have a floating-point dtype, got int64",
    "segment_reduce: Dimension out of range (expected to be in range of [-1, 0], but got 1) for axis", "segment_reduce: axis must be the last dim of lengths or offsets",
    "segment_reduce: indices are not taken, got Tensor", "segment_reduce: data must be a Tensor, got float",
    "segment_reduce: lengths or offsets must be a Tensor, got list"]


@pytest.mark.parametrize(("call", "says"), [*zip([
    lambda m: m.segment_reduce(m.ones(3), "max", lengths=m.tensor([2])),
    lambda m: m.segment_reduce(m.ones(3), "most", lengths=m.tensor([3])),
    lambda m: m.segment_reduce(m.ones(3), "max"),
    lambda m: m.segment_reduce(m.ones(3), "max", lengths=m.tensor([-1, 4])),
    lambda m: m.segment_reduce(m.ones(3), "max", lengths=m.tensor([3.])),
    lambda m: m.segment_reduce(m.ones(3, dtype=m.int64), "max", lengths=m.tensor([3])),
    lambda m: m.segment_reduce(m.ones(3), "max", lengths=m.tensor([3]), axis=1),
    lambda m: m.segment_reduce(m.ones(3, 2), "max", lengths=m.tensor([3]), axis=1),
    lambda m: m.segment_reduce(m.ones(3), "max", indices=m.tensor([0])),
    lambda m: m.segment_reduce(3.0, "max", lengths=m.tensor([3])),
    lambda m: m.segment_reduce(m.ones(3), "max", lengths=[3])], SAID_SEGMENT_REDUCE_ERRORS, strict=True)])
def test_segment_reduce_errors(call, says):
    refused(call, says)


def test_segment_reduce_of_nothing():
    both(lambda lib: [lib.segment_reduce(lib.ones(0), r, lengths=lib.tensor([0])) for r in ("sum", "max")])


def test_segment_offsets_beyond_the_end():
    """PyTorch reads behind the data."""
    with pytest.raises(RuntimeError, match="segment_reduce: offsets must rise from 0 to 3"):
        pt.segment_reduce(pt.ones(3), "sum", offsets=pt.tensor([0, 4]))


# -- lobpcg ------------------------------------------------------------------------------------

def spectrum(m=30, dtype="float64", lead=()):
    q = np.linalg.qr(np.random.default_rng(1).normal(size=(*lead, m, m)))[0]
    e = np.linspace(1, 5, m) ** 2
    return (q * e @ np.swapaxes(q, -1, -2)).astype(dtype), e


@pytest.mark.parametrize("largest", [True, False])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("lead", "k", "general"), [((), 3, False), ((), 2, True), ((2,), 2, False)])
def test_lobpcg(largest, dtype, lead, k, general):
    a, _ = spectrum(dtype=dtype, lead=lead)
    b = spectrum(dtype=dtype)[0] / 4 + np.eye(30, dtype=dtype) if general else None
    pt.manual_seed(0), torch.manual_seed(0)
    for lib in LIBS:
        A, B = lib.tensor(a), None if b is None else lib.tensor(b)
        E, X = lib.lobpcg(A, k, B=B, largest=largest)
        assert tuple(E.shape) == (*lead, k)
        assert tuple(X.shape) == (*lead, 30, k)
        full = np.linalg.eigvals(np.linalg.solve(b, a) if general else a).real
        want = np.sort(full, -1)
        want = want[..., ::-1][..., :k] if largest else want[..., :k]
        reached = 3.5e-4 if dtype == "float32" else 1.5e-8      # the residual that it stops at, relative to A
        np.testing.assert_allclose(E.numpy(), want, rtol=0, atol=reached * np.linalg.norm(a, 2, (-2, -1)).max())
        BX = X if B is None else B @ X
        residual = (A @ X - BX * E.unsqueeze(-2)).norm() / A.norm()
        assert residual < (2e-3 if dtype == "float32" else 1e-6)


def test_lobpcg_options():
    a, e = spectrum()
    x0, inverse = np.random.default_rng(0).normal(size=(30, 4)), np.linalg.inv(a)
    for lib in LIBS:
        A = lib.tensor(a)
        E, _ = lib.lobpcg(A, k=2, X=lib.tensor(x0), iK=lib.tensor(inverse), largest=False, tol=1e-10)
        np.testing.assert_allclose(E.numpy(), e[:2], rtol=1e-8)
        loose = lib.lobpcg(A, X=lib.tensor(x0), niter=2)[0]
        assert tuple(loose.shape) == (4,)
        assert (loose <= e[-1] + 1e-9).all()


def test_lobpcg_gradients():
    a, _ = spectrum(9)
    grads = []
    for lib in LIBS:
        A = lib.tensor(a, requires_grad=True)
        E, X = lib.lobpcg(A, 2)
        (E.sum() + (X * X * lib.arange(9.).double().unsqueeze(1)).sum()).backward()
        grads.append((A.grad + A.grad.mT).numpy())
    np.testing.assert_allclose(*grads, rtol=1e-5, atol=1e-6)
    x = pt.tensor(a, requires_grad=True)
    assert pt.autograd.gradcheck(lambda A: pt.lobpcg((A + A.mT) / 2, 2, largest=False)[0], x)


@pytest.mark.parametrize("call", [
    lambda m: m.lobpcg(m.eye(5), 2), lambda m: m.lobpcg(m.eye(5, dtype=m.int64), 1),
    lambda m: m.lobpcg(m.ones(9), 1)])
def test_lobpcg_errors(call):
    with pytest.raises((ValueError, RuntimeError, TypeError, IndexError)):
        call(torch)
    with pytest.raises((ValueError, RuntimeError, TypeError), match=r"^lobpcg: "):
        call(pt)


def test_lobpcg_is_strict():
    for more, error in (({"tracker": print}, NotImplementedError), ({"method": "x"}, ValueError),
                        ({"k": 0}, ValueError), ({"B": pt.ones(3, 3)}, RuntimeError), ({"X": 3}, TypeError)):
        with pytest.raises(error, match=r"^lobpcg: "):
            pt.lobpcg(pt.eye(9), **more)


# -- losses ------------------------------------------------------------------------------------

TARGETS = [((4, 5), (3, 5), [0, 1, 2, -100], {}), ((5,), (3, 5), 1, {}), ((4, 5), (3, 5), [0, 1, 2, 1],
                                                                       {"ignore_index": 1, "label_smoothing": 0.2}),
           ((2, 5), (3, 2, 2, 5), [[[0, 1], [2, 0]], [[1, 1], [2, 2]]], {"reduction": "none"}),
           ((2, 5), (3, 5), [[0.2, 0.3, 0.5], [1.0, 0, 0]], {"reduction": "sum"})]


@pytest.mark.parametrize(("shape", "weight", "target", "options"), TARGETS)
@pytest.mark.parametrize("bias", [False, True])
def test_linear_cross_entropy(shape, weight, target, options, bias):
    x, w = np.random.default_rng(0).normal(size=shape), np.random.default_rng(1).normal(size=weight)
    b = np.random.default_rng(2).normal(size=weight[:-1])

    def call(lib):
        tensors = [lib.tensor(a, requires_grad=True) for a in (x, w, b)]
        y = lib.tensor(target, dtype=lib.float64 if "sum" in options.values() else None)
        loss = lib.nn.functional.linear_cross_entropy(
            *tensors[:2], y, linear_bias=tensors[2] if bias else None,
            weight=lib.tensor([1., 2., 0.5], dtype=lib.float64), **options)
        (loss * loss).sum().backward()
        return loss, tensors[0].grad, tensors[1].grad
    both(call)


SAID_LINEAR_CROSS_ENTROPY_ERRORS = [
    "linear_cross_entropy: input and linear_weight must have one number of features, got 5 and 4",
    "linear_cross_entropy: input must be (N, features), or (features) of a linear_weight of 2 dims, got shapes [1, 2, 5] and [3, 5]",
    "linear_cross_entropy: input must be (N, features), or (features) of a linear_weight of 2 dims, got shapes [2, 5] and [5]",
    "linear_cross_entropy: input must be (N, features), or (features) of a linear_weight of 2 dims, got shapes [5] and [3, 2, 5]",
    "linear_cross_entropy: linear_bias must have shape [3], got [2]",
    "linear_cross_entropy: ignore_index goes with class indices"]


@pytest.mark.parametrize(("call", "says"), [*zip([
    lambda m, f: f(m.ones(2, 5), m.ones(3, 4), m.tensor([0, 1])),
    lambda m, f: f(m.ones(1, 2, 5), m.ones(3, 5), m.tensor([0, 1])),
    lambda m, f: f(m.ones(2, 5), m.ones(5), m.tensor([0, 1])),
    lambda m, f: f(m.ones(5), m.ones(3, 2, 5), m.tensor([0, 1])),
    lambda m, f: f(m.ones(2, 5), m.ones(3, 5), m.tensor([0, 1]), linear_bias=m.ones(2)),
    lambda m, f: f(m.ones(2, 5), m.ones(3, 5), m.ones(2, 3), ignore_index=1)], SAID_LINEAR_CROSS_ENTROPY_ERRORS, strict=True)])
def test_linear_cross_entropy_errors(call, says):
    refused(lambda m: call(m, m.nn.functional.linear_cross_entropy), says)


def test_linear_cross_entropy_module():
    torch.manual_seed(0)
    theirs = torch.nn.LinearCrossEntropyLoss(5, 3, out_features=(2,), bias=True, weight=torch.tensor([1., 2., 3.]))
    mine = pt.nn.LinearCrossEntropyLoss(5, 3, out_features=(2,), bias=True, weight=pt.tensor([1., 2., 3.]))
    assert str(mine) == str(theirs)
    assert list(mine.state_dict()) == list(theirs.state_dict())
    mine.load_state_dict({k: pt.from_numpy(v.numpy()) for k, v in theirs.state_dict().items()})
    x, y = rng.normal(size=(4, 5)).astype("float32"), [[0, 1], [2, 1], [0, 0], [1, 2]]
    np.testing.assert_allclose(mine(pt.tensor(x), pt.tensor(y)).item(),
                               theirs(torch.tensor(x), torch.tensor(y)).item(), rtol=1e-5)
    refused(lambda m: m.nn.LinearCrossEntropyLoss(5, 3, weight=m.ones(2)),
            "LinearCrossEntropyLoss: weight must have shape [3], got [2]")
    refused(lambda m: m.nn.LinearCrossEntropyLoss(5, 3, label_smoothing=2),
            "LinearCrossEntropyLoss: label_smoothing must be in [0, 1], got 2")


@pytest.mark.parametrize("name", ["l1_loss", "mse_loss", "huber_loss"])
def test_weighted_losses(name):
    for reduction in ("mean", "sum", "none"):
        def call(lib, r=reduction):
            x = lib.tensor([1., 2., 3.], requires_grad=True)
            f = getattr(lib.nn.functional, name)
            loss = f(x, lib.tensor([1., 4., -1.]), weight=lib.tensor([1., 2., 0.5]), reduction=r)
            loss.sum().backward()
            return loss, x.grad
        both(call, 1e-6)


def test_ctc_loss_at_the_top_takes_numbers():
    probs = np.log(np.random.default_rng(0).dirichlet(np.ones(4), (6, 2)))
    for more in ((), (0, 0), (0, 1), (0, 2, True)):
        both(lambda lib, more=more: [lib.ctc_loss(lib.tensor(probs), lib.tensor([[1, 2], [3, 1]]), lib.tensor([6, 5]),
                                                  lib.tensor([2, 1]), *more)])
    with pytest.raises((TypeError, ValueError)):
        pt.ctc_loss(pt.zeros(4, 1, 3), pt.tensor([[1]]), pt.tensor([4]), pt.tensor([1]), 0, "mean")


# -- older names and parameters -----------------------------------------------------------------

def test_variable():
    for lib in LIBS:
        V = lib.autograd.Variable
        x = lib.ones(2, requires_grad=True)
        y = V(x)
        assert (y.requires_grad, y.data_ptr() == x.data_ptr(), isinstance(x, V), isinstance(3, V)) == (
            False, True, True, False)
        assert V(lib.ones(2), requires_grad=True).requires_grad
        assert V(x * 2).grad_fn is None
        assert tuple(V().shape) == (0,)
        assert tuple(V(lib.ones(1), volatile=True).shape) == (1,)
    for bad in (3, [1.0]):
        with pytest.raises(TypeError):
            torch.autograd.Variable(bad)
        with pytest.raises(TypeError, match="Variable: data must be a Tensor"):
            pt.autograd.Variable(bad)


def test_grad_variables():
    for lib in LIBS:
        x = lib.ones(2, requires_grad=True)
        lib.autograd.backward(x * 2, grad_variables=lib.tensor([1., 3.]))
        assert x.grad.tolist() == [2, 6]
        with pytest.raises(RuntimeError, match="grad_variables"):
            lib.autograd.backward((x * 2).sum(), lib.tensor(1.), grad_variables=lib.tensor(1.))


def test_results_in_out():
    """Of functions whose result has a size that only the data say."""
    def call(lib):
        x = lib.tensor([[0., 1., 2.], [3., 0., 0.]])
        out, places = lib.empty(0), lib.empty(0, dtype=lib.int64)
        assert lib.masked_select(x, x > 0, out=out) is out
        assert lib.nonzero(x, out=places) is places
        known = lib.empty(0, dtype=lib.bool)
        assert lib.isin(x, lib.tensor([2., 3.]), out=known) is known
        product = lib.empty(0)
        assert lib.chain_matmul(x, x.T, x, out=product) is product
        return out, places, known, product
    both(call)
    refused(lambda m: m.nonzero(m.ones(2), out=m.empty(0)), "nonzero: out must have dtype int64, got float32")
    refused(lambda m: m.masked_select(m.ones(2), m.tensor([True, False]), out=m.empty(0, dtype=m.int64)),
            "masked_select: out must have dtype float32, got int64")


def test_positions_and_names():
    x = np.arange(6.).reshape(2, 3)
    both(lambda lib: [lib.softmax(lib.tensor(x), 1, lib.float32), lib.tensor(x).log_softmax(0, lib.float32)], 1e-6)
    both(lambda lib: [lib.swapaxes(lib.tensor(x), axis0=0, axis1=-1), lib.tensor(x).swapaxes(0, 1)])
    refused(lambda m: m.swapaxes(m.ones(2, 2), 0, 2), "swapaxes: Dimension out of range (expected to be in range of [-2, 1], but got 2) for axis1")
    for lib in LIBS:
        assert 0 <= lib.zeros(9).uniform_(to=0.5).max() < 0.5
        assert lib.zeros(99).random_(to=3).max() <= 2
        made = lib.tensor(x).new_zeros(2, layout=lib.strided, pin_memory=False)
        assert str(made.dtype).endswith("float64")
        ones = lib.randint_like(lib.tensor(x), 1, 2, dtype=lib.int64, layout=lib.strided, pin_memory=False)
        assert ones.tolist() == [[1, 1, 1], [1, 1, 1]]
        assert [len(p) for p in (lib.nn.Sequential().extend(sequential=[lib.nn.ReLU()]),)] == [1]
        assert lib.utils.data.ConcatDataset.cumsum([[1, 2], [3]]) == [2, 3]
    refused(lambda m: m.zeros(2).uniform_(1, to=0), "uniform_: from must not exceed to, got 1.0 and 0.0")


@pytest.mark.parametrize("name", ["l1_loss", "mse_loss"])
def test_weighted_losses_errors(name):
    for shape in ((2,), (1, 3), ()):
        refused(lambda m, s=shape: getattr(m.nn.functional, name)(m.ones(3), m.zeros(3), weight=m.ones(s)),
                f"{name}: weight must have input's shape [3], got {list(shape)}")


def test_embedding_bag_from_pretrained():
    table = rng.normal(size=(4, 3))
    for options in ({}, {"freeze": False, "mode": "sum", "padding_idx": 1}, {"max_norm": 0.5}):
        def call(lib, options=options):
            layer = lib.nn.EmbeddingBag.from_pretrained(lib.tensor(table), **options)
            assert layer.weight.requires_grad == (not options.get("freeze", True))
            return [layer(lib.tensor([[0, 1], [3, 2]]))]
        both(call)
    refused(lambda m: m.nn.EmbeddingBag.from_pretrained(m.ones(3)), "from_pretrained: embeddings must be 2D, got 1D")


# -- optimisers --------------------------------------------------------------------------------

ADAFACTOR = [{}, {"lr": 0.3, "weight_decay": 0.1}, {"lr": 0.1, "eps": (1e-4, 0.1), "d": 2.0, "maximize": True},
             {"lr": 0.5, "beta2_decay": -0.3}]
MUON = [{}, {"lr": 0.02, "nesterov": False, "momentum": 0.8}, {"adjust_lr_fn": "match_rms_adamw", "weight_decay": 0.0},
        {"adjust_lr_fn": "original", "ns_steps": 3}]


def trajectory(lib, name, options, shapes, dtype, steps):
    draws = np.random.default_rng(3)
    params = [lib.tensor(draws.normal(size=s), dtype=getattr(lib, dtype), requires_grad=True) for s in shapes]
    optimizer = getattr(lib.optim, name)(params, **options)
    for _ in range(steps):
        for p in params:
            p.grad = lib.tensor(draws.normal(size=tuple(p.shape)), dtype=p.dtype)
        optimizer.step()
    return params, optimizer.state_dict()


@pytest.mark.parametrize("options", ADAFACTOR)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_adafactor(options, dtype):
    results = [trajectory(lib, "Adafactor", options, [(3, 4), (5,), (), (2, 3, 4)], dtype, 100) for lib in LIBS]
    for a, b in zip(results[0][0], results[1][0]):
        np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), *((1e-10, 1e-12) if dtype == "float64"
                                                                            else (1e-4, 1e-5)))
    assert results[0][1]["param_groups"] == results[1][1]["param_groups"]
    for mine, theirs in zip(results[0][1]["state"].values(), results[1][1]["state"].values(), strict=True):
        assert list(mine) == list(theirs)
        for key in mine:
            np.testing.assert_allclose(mine[key].numpy(), theirs[key].numpy(), rtol=1e-4)


@pytest.mark.parametrize("options", MUON)
def test_muon(options):
    """A step is computed in bfloat16 in both: equal to its rounding."""
    results = [trajectory(lib, "Muon", options, [(3, 4), (6, 2), (5, 5)], "float32", 10) for lib in LIBS]
    lr = options.get("lr", 1e-3)
    for a, b in zip(results[0][0], results[1][0]):
        np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=1e-3, atol=10 * lr * 0.05)
    assert results[0][1]["param_groups"] == results[1][1]["param_groups"]
    for mine, theirs in zip(results[0][1]["state"].values(), results[1][1]["state"].values(), strict=True):
        assert list(mine) == list(theirs)
        np.testing.assert_allclose(mine["momentum_buffer"].numpy(), theirs["momentum_buffer"].numpy(), rtol=1e-5)


def test_muon_is_orthogonal():
    """Singular values of a step in float arithmetic of NumPy: between the ends that the coefficients have."""
    w = pt.zeros(8, 5, requires_grad=True)
    w.grad = pt.tensor(rng.normal(size=(8, 5)), dtype=pt.float32)
    pt.optim.Muon([w], lr=1.0, weight_decay=0.0).step()
    sizes = np.linalg.svd(w.detach().numpy() / (8 / 5) ** 0.5, compute_uv=False)
    assert 0.4 < sizes.min() <= sizes.max() < 1.4


@pytest.mark.parametrize("call", [
    lambda m: m.optim.Adafactor([m.ones(1, requires_grad=True)], lr=-1), lambda m: m.optim.Adafactor([], lr=1),
    lambda m: m.optim.Adafactor([m.ones(1, requires_grad=True)], beta2_decay=1),
    lambda m: m.optim.Adafactor([m.ones(1, requires_grad=True)], d=0.5),
    lambda m: m.optim.Adafactor([m.ones(1, requires_grad=True)], eps=(-1, 1)),
    lambda m: m.optim.Adafactor([m.ones(1, requires_grad=True)], eps=(None, -1)),
    lambda m: m.optim.Muon([m.ones(1, requires_grad=True)]),
    lambda m: m.optim.Muon([m.ones(1, 1, requires_grad=True)], lr=-1),
    lambda m: m.optim.Muon([m.ones(1, 1, requires_grad=True)], momentum=-1),
    lambda m: m.optim.Muon([m.ones(1, 1, requires_grad=True)], adjust_lr_fn="x")])
def test_optimizers_errors(call):
    for lib in LIBS:
        with pytest.raises(ValueError):             # noqa: PT011
            call(lib)


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (0,)])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_cross_entropy_of_nothing(shape, smoothing, reduction):
    mine, theirs = (m.nn.functional.cross_entropy(m.zeros(shape), m.zeros(shape), label_smoothing=smoothing,
                                                   reduction=reduction) for m in LIBS)
    np.testing.assert_array_equal(mine.numpy(), theirs.numpy())
