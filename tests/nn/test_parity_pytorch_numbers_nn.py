"""What nn draws with a generator of the kind "pytorch" against PyTorch: initialisers, modules, dropouts, attention."""
import importlib

import _pytorch_numbers
import numpy as np
import pytest
from _module_table import MODULES
from _pytorch_numbers import need_own_flags, states

import ptcore as pt

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.parity

LIBS = (pt, torch)


@pytest.fixture(autouse=True)
def pytorch():
    with pt.random.use("pytorch"):
        yield


def same(call, seed=5, close=None):
    """The values to the bit, or within ``close`` where they are computed from the draws; always the states."""
    if close is None:
        _pytorch_numbers.same(torch, call, seed)
        return
    for lib in LIBS:
        lib.manual_seed(seed)
    mine, theirs = [x if isinstance(x, (list, tuple)) else [x] for x in map(call, LIBS)]
    for a, b in zip(mine, theirs, strict=True):
        np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=close, atol=close)
    assert states(pt) == states(torch)


# -- initialisers --------------------------------------------------------------------------------

INITIALISERS = {
    "uniform_": [(), (-2, 3)], "normal_": [(), (1, 0.2)], "constant_": [(2.0,)], "ones_": [()], "zeros_": [()],
    "xavier_uniform_": [(), (2.0,)], "xavier_normal_": [()], "kaiming_uniform_": [(), (0.1, "fan_out")],
    "kaiming_normal_": [(), (0.1, "fan_out", "relu")], "eye_": [()], "sparse_": [(0.3,), (0.9, 2.0)],
    "trunc_normal_": [(), (0.5, 2.0), (0.0, 0.02), (0, 1, 1.5, 4.0), (3.0, 1.0, -1.0, 1.5), (0, 1, 2.5, 2.6)]}


@pytest.mark.filterwarnings("ignore:mean is more than 2 std:UserWarning")
@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "float16"])
@pytest.mark.parametrize("name", INITIALISERS)
def test_initialisers(name, dtype):
    for args in INITIALISERS[name]:
        for shape in ((3, 5), (20, 30)):
            same(lambda lib, a=args, s=shape: getattr(lib.nn.init, name)(lib.empty(s, dtype=getattr(lib, dtype)), *a))
            if name not in ("sparse_", "eye_"):
                same(lambda lib, a=args, s=shape: getattr(lib.nn.init, name)(
                    lib.empty(s, dtype=getattr(lib, dtype)).t(), *a))


def test_initialisers_with_a_generator():
    def run(lib):
        g = lib.Generator().manual_seed(3)
        made = [getattr(lib.nn.init, name)(lib.empty(4, 6), *args[0], generator=g)
                for name, args in INITIALISERS.items() if name not in ("constant_", "ones_", "zeros_", "eye_")]
        return [*made, g.get_state()]
    same(run)


def test_orthogonal():
    """The factors are those of LAPACK, so the values agree up to rounding."""
    for shape in ((5, 5), (3, 8), (8, 3), (6, 2, 3)):
        same(lambda lib, s=shape: lib.nn.init.orthogonal_(lib.empty(s), 1.5), close=1e-5)
        same(lambda lib, s=shape: lib.nn.init.orthogonal_(lib.empty(s, dtype=lib.float64)), close=1e-12)


# -- modules -------------------------------------------------------------------------------------

def there(lib, x):
    return lib.tensor(x.numpy()) if isinstance(x, pt.Tensor) else x


@pytest.mark.parametrize("name", MODULES)
def test_construction(name):
    args, _ = MODULES[name]

    def run(lib):
        args_here = [there(lib, a) for a in args]
        if any(isinstance(a, pt.nn.Module) for a in args):
            pytest.skip("its arguments are modules")
        module = getattr(lib.nn, name)(*args_here)
        return [x for x in module.state_dict().values() if not type(x).__name__.startswith("Uninit")]
    same(run)


TRANSFORMERS = {
    "MultiheadAttention": lambda nn: nn.MultiheadAttention(8, 2, dropout=0.1, add_bias_kv=True),
    "kdim": lambda nn: nn.MultiheadAttention(8, 2, kdim=5, vdim=3),
    "encoder": lambda nn: nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16), 2),
    "decoder": lambda nn: nn.TransformerDecoder(nn.TransformerDecoderLayer(8, 2, 16), 2),
    "Transformer": lambda nn: nn.Transformer(8, 2, 1, 1, 16),
    "LSTM": lambda nn: nn.LSTM(4, 5, 2, bidirectional=True, proj_size=3),
    "adaptive": lambda nn: nn.AdaptiveLogSoftmaxWithLoss(8, 20, [5, 10]),
    "sequence": lambda nn: nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.Linear(8, 4),
                                             nn.Embedding(10, 3, 0)),
    "spectral": lambda nn: nn.utils.spectral_norm(nn.Linear(4, 6)),
    "parametrized": lambda nn: nn.utils.parametrizations.spectral_norm(nn.Linear(4, 6)),
    "weight": lambda nn: nn.utils.parametrizations.weight_norm(nn.Linear(4, 6)),
    "orthogonal": lambda nn: nn.utils.parametrizations.orthogonal(nn.Linear(4, 6))}


@pytest.mark.parametrize("name", TRANSFORMERS)
def test_construction_of_larger_modules(name):
    same(lambda lib: list(TRANSFORMERS[name](lib.nn).state_dict().values()),
         close=1e-6 if name in ("spectral", "parametrized", "weight", "orthogonal") else None)


# -- dropouts and other functions ------------------------------------------------------------------

FUNCTIONS = {
    "dropout": lambda F, x: F.dropout(x, 0.3),
    "sure": lambda F, x: F.dropout(x, 1.0), "none": lambda F, x: F.dropout(x, 0.0),
    "half": lambda F, x: F.dropout(x), "eval": lambda F, x: F.dropout(x, 0.3, False),
    "inplace": lambda F, x: F.dropout(x.clone(), 0.3, inplace=True),
    "alpha": lambda F, x: F.alpha_dropout(x, 0.3, True), "all alpha": lambda F, x: F.alpha_dropout(x, 1.0, True),
    "feature_alpha": lambda F, x: F.feature_alpha_dropout(x, 0.3, True),
    "gumbel": lambda F, x: F.gumbel_softmax(x, 0.7, True), "rrelu": lambda F, x: F.rrelu(x, training=True)}
CHANNELS = {"dropout1d": [(3, 4, 5), (4, 5)], "dropout2d": [(3, 4, 5, 6)], "dropout3d": [(3, 4, 2, 3, 4), (4, 2, 3, 4)]}


def image(lib, dtype, *shape):
    x = lib.tensor(np.random.default_rng(0).normal(size=shape)).to(getattr(lib, dtype))
    return x


@pytest.mark.parametrize("name, dtype", [
    (name, dtype) for name in FUNCTIONS for dtype in ("float32", "float64", "float16", "bfloat16")
    if (name, dtype) != ("rrelu", "float16")])          # PyTorch has no kernel for it
def test_functions(name, dtype):
    if name not in ("gumbel", "rrelu"):
        need_own_flags(torch)
    for shape in ((3, 4, 5, 6), (2, 3, 4, 4)):
        for lay in (lambda lib, x: x, lambda lib, x: x.permute(0, 2, 3, 1), lambda lib, x: x[:, 1:, ::2],
                    lambda lib, x: x.contiguous(memory_format=lib.channels_last)):
            same(lambda lib, s=shape, f=lay: FUNCTIONS[name](lib.nn.functional, f(lib, image(lib, dtype, *s))))


@pytest.mark.parametrize("name", CHANNELS)
def test_dropouts_of_channels(name):
    need_own_flags(torch)
    for shape in CHANNELS[name]:
        for p in (0.2, 0.5, 1.0):
            same(lambda lib, s=shape, p=p: getattr(lib.nn.functional, name)(image(lib, "float32", *s), p))


def test_native_dropout():
    need_own_flags(torch)
    same(lambda lib: lib.native_dropout(image(lib, "float32", 3, 4, 5).permute(2, 0, 1), 0.3, True))
    same(lambda lib: lib.native_dropout(image(lib, "float32", 3, 4, 5), 1.0, None))


def test_gradients_of_dropouts():
    need_own_flags(torch)
    def run(lib):
        x = image(lib, "float32", 4, 5, 6).permute(1, 2, 0).clone().requires_grad_()
        F = lib.nn.functional
        y = F.dropout(x, 0.1) + F.alpha_dropout(x, 0.2, True) + F.dropout1d(x, 0.4)
        y.sum().backward()
        return x.grad
    same(run, close=1e-6)


def test_fractional_max_pool():
    for dtype in ("float32", "float64"):
        same(lambda lib, d=dtype: lib.nn.functional.fractional_max_pool2d(image(lib, d, 2, 3, 9, 9), 2, (4, 4)))
        same(lambda lib, d=dtype: lib.nn.functional.fractional_max_pool3d(image(lib, d, 2, 3, 7, 8, 9), 2, (3, 4, 4)))


@pytest.mark.parametrize("causal", [False, True])
def test_attention_with_dropout(causal):
    need_own_flags(torch)
    for shape in ((2, 3, 5, 4), (7, 4), (3, 6, 4)):
        same(lambda lib, s=shape: lib.nn.functional.scaled_dot_product_attention(
            image(lib, "float32", *s), image(lib, "float32", *s), image(lib, "float32", *s), dropout_p=0.3,
            is_causal=causal), close=1e-5)
    same(lambda lib: lib.nn.functional.scaled_dot_product_attention(
        image(lib, "float64", 2, 4, 5, 6), image(lib, "float64", 2, 2, 5, 6), image(lib, "float64", 2, 2, 5, 6),
        dropout_p=0.4, enable_gqa=True, is_causal=causal), close=1e-12)


NETWORKS = {
    "attention": lambda nn, x: nn.MultiheadAttention(6, 2, dropout=0.3)(x, x, x)[0],
    "unweighted": lambda nn, x: nn.MultiheadAttention(6, 2, dropout=0.3)(x, x, x, need_weights=False)[0],
    "encoder": lambda nn, x: nn.TransformerEncoder(nn.TransformerEncoderLayer(6, 2, 8), 2)(x),
    "batch first": lambda nn, x: nn.TransformerEncoderLayer(6, 2, 8, batch_first=True, norm_first=True)(x),
    "decoder": lambda nn, x: nn.TransformerDecoderLayer(6, 3, 8)(x, x),
    "LSTM": lambda nn, x: nn.LSTM(6, 4, 3, dropout=0.4)(x)[0],
    "both ways": lambda nn, x: nn.LSTM(6, 4, 3, dropout=0.4, bidirectional=True, batch_first=True)(x)[0],
    "GRU": lambda nn, x: nn.GRU(6, 4, 2, dropout=0.4)(x)[0],
    "RNN": lambda nn, x: nn.RNN(6, 4, 2, dropout=0.4)(x)[0]}


@pytest.mark.parametrize("name", NETWORKS)
def test_networks_in_training(name):
    need_own_flags(torch)
    same(lambda lib: NETWORKS[name](lib.nn, image(lib, "float32", 5, 3, 6)), close=1e-5)


def test_a_training_run():
    """Initial weights, the order of the data and dropouts are those of PyTorch, and so are the losses."""
    need_own_flags(torch)

    def run(lib):
        data = importlib.import_module(lib.utils.__name__ + ".data")
        x = lib.randn(96, 10)
        y = (x[:, 0] * x[:, 1] > 0).long()
        net = lib.nn.Sequential(lib.nn.Linear(10, 32), lib.nn.ReLU(), lib.nn.Dropout(0.2), lib.nn.Linear(32, 2))
        optimizer = lib.optim.SGD(net.parameters(), 0.1, momentum=0.9)
        losses = []
        for _ in range(3):
            for a, b in data.DataLoader(data.TensorDataset(x, y), 16, shuffle=True):
                optimizer.zero_grad()
                loss = lib.nn.functional.cross_entropy(net(a), b)
                loss.backward()
                optimizer.step()
                losses.append(loss)
        return losses
    same(run, close=1e-5)


def test_pruning():
    def run(lib):
        prune = importlib.import_module(lib.nn.utils.__name__ + ".prune")
        m = prune.random_unstructured(lib.nn.Linear(8, 9), "weight", amount=0.3)
        n = prune.random_structured(lib.nn.Linear(8, 9), "weight", amount=3, dim=0)
        return [m.weight_mask, n.weight_mask]
    same(run)
