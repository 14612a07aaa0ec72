"""Activation, embedding, dropout, distance and loss modules against torch.nn: outputs, gradients, texts, arguments."""
import inspect

import numpy as np
import pytest

import ptcore as pt

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.parity

RNG = np.random.default_rng(0)
X = RNG.normal(0, 2, (4, 6))
UNIT = RNG.uniform(0.05, 0.95, (4, 6))
SIGNS = np.where(RNG.random((4, 6)) < 0.5, -1.0, 1.0)
LOGP = np.log(UNIT / UNIT.sum(axis=1, keepdims=True))
CLASSES = np.array([0, 3, 5, 2])
IMAGE = RNG.normal(size=(2, 3, 4, 5))

ONE_INPUT = [
    ("CELU", (), {}), ("CELU", (2.5,), {"inplace": True}), ("SELU", (), {}), ("SELU", (True,), {}), ("ReLU6", (), {}),
    ("Hardtanh", (), {}), ("Hardtanh", (-0.5, 2.0, True), {}), ("Hardsigmoid", (), {}), ("Hardswish", (), {}),
    ("Hardswish", (True,), {}), ("Hardshrink", (), {}), ("Hardshrink", (1.5,), {}), ("Softshrink", (), {}),
    ("Softshrink", (0.0,), {}), ("Tanhshrink", (), {}), ("Threshold", (0.3, -2.0), {}),
    ("Threshold", (0.3, -2.0, True), {}), ("PReLU", (), {}), ("PReLU", (6, 0.1), {}), ("Mish", (), {}),
    ("Mish", (True,), {}), ("LogSigmoid", (), {}), ("Softsign", (), {}), ("GLU", (), {}), ("GLU", (0,), {}),
    ("Softmin", (), {"dim": 1}), ("Softmin", (), {"dim": 0}),
]  # fmt: skip
SEVERAL = [
    ("BCELoss", (), {}, (UNIT, UNIT[::-1])), ("BCELoss", (), {"reduction": "sum"}, (UNIT, UNIT[::-1])),
    ("BCEWithLogitsLoss", (), {}, (X, UNIT)), ("BCEWithLogitsLoss", (), {"reduction": "none"}, (X, UNIT)),
    ("KLDivLoss", (), {"reduction": "batchmean"}, (LOGP, np.exp(LOGP[::-1]))),
    ("KLDivLoss", (), {"log_target": True, "reduction": "sum"}, (LOGP, LOGP[::-1])),
    ("HuberLoss", (), {}, (X, UNIT)), ("HuberLoss", ("sum", 0.5), {}, (X, UNIT)),
    ("SmoothL1Loss", (), {"beta": 2.0}, (X, UNIT)), ("SoftMarginLoss", (), {}, (X, SIGNS)),
    ("HingeEmbeddingLoss", (0.7,), {}, (X, SIGNS)), ("MarginRankingLoss", (0.3,), {}, (X[0], X[1], SIGNS[0])),
    ("CosineEmbeddingLoss", (0.2,), {}, (X, UNIT, SIGNS[:, 0])), ("TripletMarginLoss", (), {}, (X, UNIT, X[::-1])),
    ("TripletMarginLoss", (2.0, 1.0), {"swap": True, "reduction": "none"}, (X, UNIT, X[::-1])),
    ("TripletMarginWithDistanceLoss", (), {"margin": 3.0}, (X, UNIT, X[::-1])),
    ("MultiMarginLoss", (), {}, (X, CLASSES)), ("MultiMarginLoss", (2, 0.5), {"reduction": "sum"}, (X, CLASSES)),
    ("MultiLabelMarginLoss", (), {}, (X, np.array([[0, 3, -1, 1, 1, 1]] * 4))),
    ("MultiLabelSoftMarginLoss", (), {}, (X, (UNIT > 0.5) * 1.0)),
    ("PoissonNLLLoss", (), {"full": True}, (X, np.floor(UNIT * 9))),
    ("PoissonNLLLoss", (False,), {}, (UNIT, np.floor(UNIT * 9))), ("GaussianNLLLoss", (), {}, (X, UNIT, UNIT[::-1])),
    ("GaussianNLLLoss", (), {"full": True, "reduction": "none"}, (X, UNIT, UNIT[::-1])),
    ("PairwiseDistance", (), {}, (X, UNIT)), ("PairwiseDistance", (1, 1e-3, True), {}, (X, UNIT)),
    ("CosineSimilarity", (), {}, (X, UNIT)), ("CosineSimilarity", (0,), {}, (X, UNIT)),
]  # fmt: skip


def compare(name, args, settings, arrays):
    results = []
    for lib in (pt, torch):
        module = getattr(lib.nn, name)(*args, **settings).double()
        leaves = [lib.tensor(np.ascontiguousarray(a)) for a in arrays]
        leaves[0].requires_grad_()
        # A write into the input is one into a result, not into a leaf.
        out = module(leaves[0] * 1.0, *leaves[1:])
        out.backward(lib.ones_like(out))
        results.append([repr(module), out.detach().numpy(), leaves[0].grad.numpy(),
                        *[p.grad.numpy() for p in module.parameters()]])
    assert results[0][0] == results[1][0]
    # torch's derivative of hardsigmoid is 1/6 in float32 whatever the dtype.
    rtol = 1e-7 if name == "Hardsigmoid" else 1e-9
    for ours, theirs in zip(*(r[1:] for r in results), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=rtol, atol=1e-11)


@pytest.mark.parametrize(("name", "args", "settings"), ONE_INPUT, ids=str)
def test_activation(name, args, settings):
    compare(name, args, settings, (X,))


@pytest.mark.parametrize(("name", "args", "settings", "arrays"), SEVERAL, ids=lambda v: str(v)[:30])
def test_several_inputs(name, args, settings, arrays):
    compare(name, args, settings, arrays)


def test_softmax2d():
    compare("Softmax2d", (), {}, (IMAGE,))


def test_rrelu_in_evaluation():
    for lib in (pt, torch):
        out = lib.nn.RReLU().eval()(lib.tensor(X))
        np.testing.assert_allclose(out.numpy(), np.where(X > 0, X, X * (1 / 8 + 1 / 3) / 2), rtol=1e-12)
        x = lib.tensor(X, requires_grad=True)
        written = lib.nn.functional.rrelu(x * 1, inplace=True)
        slope = lib.autograd.grad((written * written).sum(), x)[0]
        np.testing.assert_allclose(slope.numpy(), np.where(X > 0, 2 * X, X * (1 / 8 + 1 / 3) ** 2 / 2), rtol=1e-12)


def test_weights_of_losses():
    w = RNG.uniform(0.5, 2, 6)
    for name, key, arrays in (("BCELoss", "weight", (UNIT, UNIT[::-1])), ("BCEWithLogitsLoss", "pos_weight", (X, UNIT)),
                              ("MultiMarginLoss", "weight", (X, CLASSES)),
                              ("MultiLabelSoftMarginLoss", "weight", (X, (UNIT > 0.5) * 1.0))):
        arrays = [np.ascontiguousarray(a) for a in arrays]
        ours, theirs = (getattr(lib.nn, name)(**{key: lib.tensor(w)})(*[lib.tensor(a) for a in arrays])
                        for lib in (pt, torch))
        assert ours.item() == pytest.approx(theirs.item(), rel=1e-12)


def test_ctc_loss():
    log_probs = np.log(RNG.dirichlet(np.ones(5), size=(9, 2)))
    targets, inputs, lengths = np.array([[1, 2, 2], [3, 4, 1]]), [9, 7], [3, 2]
    grads = []
    for lib in (pt, torch):
        x = lib.tensor(log_probs, requires_grad=True)
        loss = lib.nn.CTCLoss()(x, lib.tensor(targets), lib.tensor(inputs), lib.tensor(lengths))
        loss.backward()
        grads.append((loss.item(), x.grad.numpy()))
    assert grads[0][0] == pytest.approx(grads[1][0], rel=1e-10)


@pytest.mark.parametrize("options", [{}, {"padding_idx": 2}, {"padding_idx": -1}, {"max_norm": 1.0},
                                     {"scale_grad_by_freq": True}, {"max_norm": 1.5, "norm_type": 1.0}])
def test_embedding(options):
    table, index, results = RNG.normal(size=(5, 3)), np.array([[0, 2, 4], [2, 2, 1]]), []
    for lib in (pt, torch):
        layer = lib.nn.Embedding(5, 3, _weight=lib.tensor(table), **options)
        out = layer(lib.tensor(index))
        (out * out).sum().backward()
        results.append((repr(layer), out.detach().numpy(), layer.weight.grad.numpy(), layer.weight.detach().numpy()))
    assert results[0][0] == results[1][0]
    for ours, theirs in zip(*(r[1:] for r in results), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-12)


def test_where_torchs_scaled_gradients_are_wrong():
    """Its tangents of embedding are not those that its gradients belong to, and embedding_bag divides by the counts of
    other rows. Ours are one linear map and its transpose, by each row's own count."""
    table, t = RNG.normal(size=(4, 3)), RNG.normal(size=(4, 3))
    index, count = np.array([0, 0, 0, 1, 1, 2]), np.array([[3.0], [2.0], [1.0], [1.0]])
    found = []
    for lib in (pt, torch):
        def f(w, lib=lib):
            return lib.nn.functional.embedding(lib.tensor(index), w, scale_grad_by_freq=True).sum()

        w = lib.tensor(table)
        gradient, tangent = lib.func.grad(f)(w), lib.func.jvp(f, (w,), (lib.tensor(t),))[1]
        w.requires_grad_()
        bags = lib.nn.functional.embedding_bag(lib.tensor(index), w, lib.tensor([0, 2]), mode="sum",
                                               scale_grad_by_freq=True)
        found.append(((gradient * lib.tensor(t)).sum().item(), tangent.item(),
                      lib.autograd.grad(bags.sum(), w)[0].numpy()))
    (ours, tangent, bag), (theirs, torchs, torchs_bag) = found
    assert ours == pytest.approx(theirs, rel=1e-12) and tangent == pytest.approx(ours, rel=1e-12)
    assert torchs != pytest.approx(theirs, rel=1e-3)
    each = np.bincount(index, minlength=4)[:, None] / count
    np.testing.assert_allclose(bag, np.broadcast_to(each, (4, 3)), rtol=1e-12)
    assert not np.allclose(torchs_bag, bag)


@pytest.mark.parametrize("options", [{}, {"mode": "sum"}, {"mode": "max"}, {"padding_idx": 2},
                                     {"include_last_offset": True}])
def test_embedding_bag(options):
    table, results = RNG.normal(size=(5, 3)), []
    index = np.array([0, 2, 4, 2, 1, 3])
    offsets = np.array([0, 2, 6] if options.get("include_last_offset") else [0, 2, 5])
    for lib in (pt, torch):
        layer = lib.nn.EmbeddingBag(5, 3, _weight=lib.tensor(table), **options)
        out = layer(lib.tensor(index), lib.tensor(offsets))
        (out * out).sum().backward()
        results.append((repr(layer), out.detach().numpy(), layer.weight.grad.numpy()))
    assert results[0][0] == results[1][0]
    for ours, theirs in zip(*(r[1:] for r in results), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-12)


def test_tables_at_first():
    layer = pt.nn.Embedding(1000, 64, padding_idx=3)
    assert layer.weight[3].abs().sum().item() == 0
    rest = np.delete(layer.weight.detach().numpy(), 3, axis=0)
    assert abs(rest.mean()) < 0.02
    assert abs(rest.std() - 1) < 0.02
    assert not pt.nn.Embedding.from_pretrained(pt.ones(2, 3)).weight.requires_grad


@pytest.mark.parametrize("name", ["Dropout1d", "Dropout2d", "Dropout3d", "AlphaDropout", "FeatureAlphaDropout"])
def test_dropout(name):
    shape = {"Dropout2d": (50, 40, 3, 2), "Dropout3d": (50, 40, 2, 2, 2)}.get(name, (50, 40, 3))
    ours, theirs = (getattr(lib.nn, name)(0.3) for lib in (pt, torch))
    assert repr(ours) == repr(theirs)
    x = pt.ones(shape)
    out, expected = ours(x).numpy(), theirs(torch.ones(shape)).numpy()
    # The same two values, in about the same shares.
    np.testing.assert_allclose(np.unique(out), np.unique(expected), rtol=1e-5)
    assert abs((out == out.max()).mean() - (expected == expected.max()).mean()) < 0.06
    if name != "AlphaDropout":
        channels = out.reshape(50, 40, -1)
        assert (channels == channels[..., :1]).all()
    assert pt.equal(ours.eval()(x), x)


NAMES = sorted({c[0] for c in ONE_INPUT + SEVERAL} | {
    "Softmax2d", "RReLU", "CTCLoss", "Embedding", "EmbeddingBag", "Dropout1d", "AlphaDropout"})


@pytest.mark.parametrize("name", NAMES)
def test_signatures(name):
    ours, theirs = (inspect.signature(getattr(lib.nn, name)) for lib in (pt, torch))
    assert [(p.name, p.kind, p.default) for p in ours.parameters.values()] == [
        (p.name, p.kind, p.default) for p in theirs.parameters.values()]


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (lambda nn: nn.Hardtanh(1.0, -1.0), (ValueError, AssertionError)),
        (lambda nn: nn.TripletMarginLoss(margin=0), ValueError),
        (lambda nn: nn.MultiMarginLoss(p=3), ValueError),
        (lambda nn: nn.Embedding(3, 2, padding_idx=3), (ValueError, AssertionError)),
        (lambda nn: nn.Dropout2d(1.5), ValueError),
    ],
)
def test_errors(make, error):
    for lib in (pt, torch):
        with pytest.raises(error):
            make(lib.nn)
