"""RNN, LSTM, GRU, their cells and packed sequences against torch: values, derivatives of two orders, texts, errors."""
import copy
import pickle

import numpy as np
import pytest

import ptcore as pt
from ptcore.nn.utils import rnn as ours

torch = pytest.importorskip("torch")
theirs = torch.nn.utils.rnn

pytestmark = pytest.mark.parity

OPTIONS = {
    "RNN": [{}, {"nonlinearity": "relu", "num_layers": 2}, {"bias": False, "batch_first": True, "bidirectional": True}],
    "LSTM": [{}, {"num_layers": 2, "bidirectional": True}, {"bias": False, "batch_first": True},
             {"proj_size": 2, "num_layers": 2, "bidirectional": True}],
    "GRU": [{}, {"num_layers": 3}, {"bidirectional": True, "batch_first": True}, {"bias": False}],
}
ALL = [(name, options) for name, several in OPTIONS.items() for options in several]


def run(lib, name, options, state, arrays, lengths=None, given=True, second=False):
    """Outputs, final states and gradients of everything, as arrays."""
    utils = ours if lib is pt else theirs
    x, h, c = [lib.tensor(a, requires_grad=True) for a in arrays]
    module = getattr(lib.nn, name)(x.shape[-1], c.shape[-1], **options).double()
    module.load_state_dict({k: lib.tensor(v) for k, v in state.items()})
    hx = None if not given else (h, c) if name == "LSTM" else h
    batch_first = options.get("batch_first", False)
    inputs = x if lengths is None else utils.pack_padded_sequence(x, lengths, batch_first, enforce_sorted=False)
    out, states = module(inputs, hx)
    if lengths is not None:
        out, _ = utils.pad_packed_sequence(out, batch_first)
    states = states if isinstance(states, tuple) else (states,)
    loss = (out**2).sum() + sum([(s**3).sum() for s in states])
    if second:
        grads = lib.autograd.grad(loss, [x, *module.parameters()], create_graph=True)
        loss = sum([(g * g).sum() for g in grads])
    loss.backward()
    leaves = [x, *module.parameters()] + ([h] + [c] * (name == "LSTM") if given else [])
    return repr(module), [t.detach().numpy() for t in (out, *states)] + [t.grad.numpy() for t in leaves]


def compare(name, options, steps=5, batch=3, inputs=4, hidden=6, unbatched=False, **more):
    rng = np.random.default_rng(3)
    first = getattr(torch.nn, name)(inputs, hidden, **options)
    state = {k: rng.normal(size=tuple(v.shape)) * 0.5 for k, v in first.state_dict().items()}
    assert list(getattr(pt.nn, name)(inputs, hidden, **options).state_dict()) == list(state)
    count = options.get("num_layers", 1) * (2 if options.get("bidirectional") else 1)
    lead = (steps,) if unbatched else (batch, steps) if options.get("batch_first") else (steps, batch)
    middle = () if unbatched else (batch,)
    arrays = [rng.normal(size=(*lead, inputs)),
              rng.normal(size=(count, *middle, options.get("proj_size", 0) or hidden)),
              rng.normal(size=(count, *middle, hidden))]
    mine, expected = [run(lib, name, options, state, arrays, **more) for lib in (pt, torch)]
    assert mine[0] == expected[0]
    for a, b in zip(mine[1], expected[1], strict=True):
        assert a.shape == b.shape
        np.testing.assert_allclose(a, b, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize(("name", "options"), ALL, ids=str)
def test_padded(name, options):
    compare(name, options)
    compare(name, options, given=False, second=True)
    compare(name, options, unbatched=True)


@pytest.mark.parametrize(("name", "options"), ALL, ids=str)
def test_packed(name, options):
    compare(name, options, lengths=[3, 5, 1])
    compare(name, options, lengths=[2, 5, 5], second=True)


@pytest.fixture
def one_thread():
    """torch's threads wait for each other at each step, for long where they have no processors of their own."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.mark.parametrize(("name", "options"), ALL, ids=str)
def test_long(name, options, one_thread):
    """More steps than a tensor may have dims."""
    compare(name, options, steps=70, lengths=[70, 3, 66])
    compare(name, options, steps=66, second=True)


@pytest.mark.parametrize("name", OPTIONS)
def test_thousands_of_steps(name, one_thread):
    compare(name, {}, steps=3000, batch=2)
    compare(name, {"bidirectional": True}, steps=2000, lengths=[2000, 1, 1999])


@pytest.mark.parametrize("name", OPTIONS)
@pytest.mark.parametrize(("batch", "hidden"), [(1, 1), (70, 37), (2, 300), (33, 64), (0, 3)])
def test_sizes(name, batch, hidden):
    """Blocks of rows and of columns, whole and in part."""
    compare(name, {}, steps=3, batch=batch, hidden=hidden)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
@pytest.mark.parametrize("name", OPTIONS)
def test_dtypes(name, dtype):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(6, 4, 5)).astype("float32")
    single = getattr(pt.nn, name)(5, 7)
    expected = single.double()(pt.tensor(x).double())[0].detach().numpy()
    module = single.to(getattr(pt, dtype))
    out = module(pt.tensor(x).to(getattr(pt, dtype)))[0]
    assert out.dtype is getattr(pt, dtype)
    tolerance = {"float32": 1e-5, "float16": 5e-3, "bfloat16": 4e-2}[dtype]
    np.testing.assert_allclose(out.detach().double().numpy(), expected, atol=tolerance)
    out.sum().backward()
    assert all(p.grad.dtype is p.dtype and bool(p.grad.isfinite().all()) for p in module.parameters())


def test_drop_between_layers():
    pt.manual_seed(0)
    module = pt.nn.LSTM(3, 4, num_layers=2, dropout=0.5)
    x = pt.randn(5, 2, 3)
    assert not pt.equal(module(x)[0], module(x)[0])
    module.eval()
    assert pt.equal(module(x)[0], module(x)[0])
    # the last layer's output is never dropped
    module = pt.nn.RNN(3, 200, num_layers=2, dropout=1.0)
    assert bool((module(x)[0] != 0).all())


def test_initial_values_and_attributes():
    for name in OPTIONS:
        module = getattr(pt.nn, name)(8, 16, num_layers=2, bidirectional=True)
        assert all(bool((p.abs() <= 0.25).all()) and float(p.abs().max()) > 0.2 for p in module.parameters())
        expected = getattr(torch.nn, name)(8, 16, num_layers=2, bidirectional=True)
        assert [[tuple(w.shape) for w in ws] for ws in module.all_weights] == [
            [tuple(w.shape) for w in ws] for ws in expected.all_weights]
        assert module._flat_weights_names == expected._flat_weights_names
        assert module.mode == expected.mode
        assert module.flatten_parameters() is None
        again = pickle.loads(pickle.dumps(module))
        assert pt.equal(again(pt.ones(2, 1, 8))[0], module(pt.ones(2, 1, 8))[0])
        assert repr(copy.deepcopy(module)) == repr(expected)


@pytest.mark.parametrize(("name", "options"), [
    ("RNNCell", {}), ("RNNCell", {"nonlinearity": "relu", "bias": False}), ("LSTMCell", {}),
    ("LSTMCell", {"bias": False}), ("GRUCell", {}), ("GRUCell", {"bias": False})], ids=str)
@pytest.mark.parametrize("batch", [None, 1, 5])
@pytest.mark.parametrize("given", [True, False])
def test_cells(name, options, batch, given):
    rng = np.random.default_rng(0)
    lead = () if batch is None else (batch,)
    first = getattr(torch.nn, name)(4, 6, **options)
    state = {k: rng.normal(size=tuple(v.shape)) for k, v in first.state_dict().items()}
    arrays = [rng.normal(size=(*lead, n)) for n in (4, 6, 6)]
    results = []
    for lib in (pt, torch):
        module = getattr(lib.nn, name)(4, 6, **options).double()
        module.load_state_dict({k: lib.tensor(v) for k, v in state.items()})
        x, h, c = [lib.tensor(a, requires_grad=True) for a in arrays]
        hx = None if not given else (h, c) if name == "LSTMCell" else h
        out = module(x, hx)
        out = out if isinstance(out, tuple) else (out,)
        loss = sum([(o**2).sum() for o in out])
        grads = lib.autograd.grad(loss, [x, *module.parameters()], create_graph=True)
        sum([(g * g).sum() for g in grads]).backward()
        results.append([repr(module), *[t.detach().numpy() for t in (*out, *grads)], x.grad.numpy(),
                        *[p.grad.numpy() for p in module.parameters()]])
    assert results[0][0] == results[1][0]
    for a, b in zip(results[0][1:], results[1][1:], strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-8, atol=1e-10)


# -- packed sequences --------------------------------------------------------------------------------

def sequences(lib, dtype="float64"):
    rng = np.random.default_rng(5)
    return [lib.tensor(rng.normal(size=(n, 2)).astype(dtype), requires_grad=True) for n in (2, 4, 1, 4)]


def plain(value):
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    return value.tolist() if hasattr(value, "tolist") else value


def numbers(value):
    """All numbers of nested lists, and the lengths of the lists."""
    if isinstance(value, list):
        yield len(value)
        for v in value:
            yield from numbers(v)
    else:
        yield value


@pytest.mark.parametrize("batch_first", [False, True])
@pytest.mark.parametrize("side", ["left", "right"])
def test_pad_and_pack(batch_first, side):
    results = []
    for lib, utils in ((pt, ours), (torch, theirs)):
        seqs = sequences(lib)
        padded = utils.pad_sequence(seqs, batch_first, -1.5, side)
        packed = utils.pack_sequence(seqs, enforce_sorted=False)
        again, lengths = utils.pad_packed_sequence(packed, batch_first, 2.0, total_length=6)
        lists = utils.unpack_sequence(packed)
        back = utils.unpad_sequence(again.clone(), lengths, batch_first)      # torch transposes it in place
        ((padded**2).sum() + (again**3).sum()).backward()
        results.append(plain([padded, packed, again, lengths, lists, back, [s.grad for s in seqs]]))
    mine, expected = [list(numbers(r)) for r in results]
    np.testing.assert_allclose(mine, expected, rtol=1e-12)


def test_packed_sequence():
    for lib, utils in ((pt, ours), (torch, theirs)):
        packed = utils.pack_padded_sequence(lib.arange(12.0).reshape(4, 3), [2, 4, 3], enforce_sorted=False)
        assert packed._fields == ("data", "batch_sizes", "sorted_indices", "unsorted_indices")
        assert plain(packed) == [[1.0, 2.0, 0.0, 4.0, 5.0, 3.0, 7.0, 8.0, 10.0], [3, 3, 2, 1], [1, 2, 0], [2, 0, 1]]
        assert isinstance(packed, tuple)
        assert packed.double().data.dtype is lib.float64
        assert packed.half().data.dtype is lib.float16
        assert packed.int().data.dtype is lib.int32
        assert packed.to(packed.data.dtype) is packed
        assert packed.to("cpu") is packed
        assert not packed.is_cuda
        assert not packed.is_pinned()
        assert packed.cpu().data.tolist() == packed.data.tolist()
        assert plain(pickle.loads(pickle.dumps(packed))) == plain(packed)
        assert plain(utils.invert_permutation(lib.tensor([2, 0, 1]))) == [1, 2, 0]
        assert utils.invert_permutation(None) is None
        assert next(iter(packed)) is packed.data
        made = utils.PackedSequence(lib.zeros(3), lib.tensor([2, 1]), lib.tensor([1, 0]))
        assert made.unsorted_indices.tolist() == [1, 0]
        with pytest.raises(AssertionError):
            utils.PackedSequence(lib.zeros(3))
        with pytest.raises(ValueError, match="CPU"):
            utils.PackedSequence(lib.zeros(3), lib.zeros(2, dtype=lib.int64, device="meta"))


BAD_PACKS = [
    (RuntimeError, "sorted", lambda lib, u: u.pack_padded_sequence(lib.zeros(4, 3), [3, 4, 1])),
    (RuntimeError, "greater than 0", lambda lib, u: u.pack_padded_sequence(lib.zeros(4, 3), [3, 0, 1], False, False)),
    (RuntimeError, "batch_size", lambda lib, u: u.pack_padded_sequence(lib.zeros(4, 3), [3, 2])),
    (RuntimeError, "sorted", lambda lib, u: u.pack_sequence([lib.zeros(2), lib.zeros(3)])),
    (ValueError, "total_length", lambda lib, u: u.pad_packed_sequence(u.pack_sequence([lib.zeros(3)]), total_length=2)),
    (RuntimeError, "empty list", lambda lib, u: u.pad_sequence([])),
    (RuntimeError, "iterable", lambda lib, u: u.pad_sequence(5)),
    (RuntimeError, "padding_side", lambda lib, u: u.pad_sequence([lib.zeros(1)], padding_side="x")),
    (RuntimeError, None, lambda lib, u: u.pad_sequence([lib.zeros(3, 2), lib.zeros(2, 3)])),
]
BAD_MODULES = [
    (ValueError, "2D or 3D", lambda nn, lib: nn.LSTM(3, 4)(lib.zeros(2, 3, 3, 1))),
    (RuntimeError, "input_size", lambda nn, lib: nn.LSTM(3, 4)(lib.zeros(2, 3, 2))),
    (ValueError, "does not match weight dtype", lambda nn, lib: nn.GRU(3, 4)(lib.zeros(2, 3, 3).double())),
    (ValueError, "dtype", lambda nn, lib: nn.GRU(3, 4)(lib.zeros(2, 3, 3, dtype=lib.int64))),
    (RuntimeError, "larger than 0", lambda nn, lib: nn.GRU(3, 4)(lib.zeros(0, 3, 3))),
    (RuntimeError, r"hidden\[0\]", lambda nn, lib: nn.LSTM(3, 4)(lib.zeros(2, 3, 3), (lib.zeros(1, 3, 3),) * 2)),
    (RuntimeError, "3-D", lambda nn, lib: nn.GRU(3, 4)(lib.zeros(2, 3, 3), lib.zeros(1, 4))),
    (RuntimeError, "2-D", lambda nn, lib: nn.GRU(3, 4)(lib.zeros(2, 3), lib.zeros(1, 1, 4))),
    (RuntimeError, "Expected hidden size", lambda nn, lib: nn.GRU(3, 4)(lib.zeros(2, 3, 3), lib.zeros(1, 2, 4))),
    (ValueError, "proj_size", lambda nn, lib: nn.GRU(3, 4, proj_size=2)),
    (ValueError, "proj_size", lambda nn, lib: nn.RNN(3, 4, proj_size=2)),
    (TypeError, "mode", lambda nn, lib: nn.RNN(3, 4, mode="x")),
    (ValueError, "nonlinearity", lambda nn, lib: nn.RNN(3, 4, nonlinearity="x")),
    (TypeError, "hidden_size", lambda nn, lib: nn.LSTM(3, 4.0)),
    (TypeError, "input_size", lambda nn, lib: nn.LSTM("a", 4)),
    (ValueError, "hidden_size", lambda nn, lib: nn.LSTM(3, 0)),
    (ValueError, "input_size", lambda nn, lib: nn.LSTM(0, 3)),
    (ValueError, "dropout", lambda nn, lib: nn.LSTM(3, 4, dropout=2)),
    (ValueError, "dropout", lambda nn, lib: nn.LSTM(3, 4, dropout=True)),
    (ValueError, "proj_size", lambda nn, lib: nn.LSTM(3, 4, proj_size=4)),
    (ValueError, "num_layers", lambda nn, lib: nn.LSTM(3, 4, 0)),
    (RuntimeError, "input_size", lambda nn, lib: nn.GRUCell(3, 4)(lib.zeros(2, 2))),
    (RuntimeError, "batch size", lambda nn, lib: nn.GRUCell(3, 4)(lib.zeros(2, 3), lib.zeros(3, 4))),
    (ValueError, "1D or 2D", lambda nn, lib: nn.LSTMCell(3, 4)(lib.zeros(2, 3, 1))),
    (TypeError, None, lambda nn, lib: nn.LSTMCell(3, 4)(lib.zeros(2, 3), lib.zeros(2, 4))),
    (RuntimeError, "hidden_size", lambda nn, lib: nn.RNNCell(3, 4)(lib.zeros(2, 3), lib.zeros(2, 5))),
    (RuntimeError, "dtype", lambda nn, lib: nn.RNNCell(3, 4)(lib.zeros(2, 3).double())),
    (RuntimeError, "nonlinearity", lambda nn, lib: nn.RNNCell(3, 4, nonlinearity="x")(lib.zeros(2, 3))),
]


@pytest.mark.parametrize("k", range(len(BAD_PACKS)))
def test_bad_packs(k):
    kind, text, call = BAD_PACKS[k]
    for lib, utils in ((pt, ours), (torch, theirs)):
        with pytest.raises(kind, match=text):
            call(lib, utils)


@pytest.mark.parametrize("k", range(len(BAD_MODULES)))
def test_bad_modules(k):
    kind, text, call = BAD_MODULES[k]
    for lib in (pt, torch):
        with pytest.raises(kind, match=text):
            call(lib.nn, lib)


def test_refused_here():
    with pytest.raises(RuntimeError, match="at most the 4 steps"):
        ours.pack_padded_sequence(pt.zeros(4, 3), [5, 2, 1])
    with pytest.raises(TypeError, match="PackedSequence"):
        pt.nn.GRU(3, 4)([1.0])
    with pytest.raises(TypeError, match="pair"):
        pt.nn.LSTM(3, 4)(pt.zeros(2, 3, 3), pt.zeros(1, 3, 4))


@pytest.mark.parametrize("name", ["RNN", "LSTM", "GRU", "RNN relu"])
@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_numbers_that_are_not_finite(name, value):
    """Also a recorded backward, which is made of ops."""
    options = {"nonlinearity": "relu"} if name == "RNN relu" else {}
    x = np.random.default_rng(0).normal(size=(4, 2, 3))
    x[1, 0, 1] = value
    module = getattr(torch.nn, name.split()[0])(3, 2, **options).double()
    results = []
    for lib, create_graph in ((torch, False), (pt, False), (pt, True)):
        made = getattr(lib.nn, name.split()[0])(3, 2, **options).double()
        made.load_state_dict({k: lib.tensor(v.numpy()) for k, v in module.state_dict().items()})
        leaf = lib.tensor(x, requires_grad=True)
        out = made(leaf)[0]
        gradients = lib.autograd.grad(out.sum(), [leaf, *made.parameters()], create_graph=create_graph)
        results.append([t.detach().numpy() for t in (out, *gradients)])
    for result in results[1:]:
        for got, want in zip(result, results[0], strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-12)
