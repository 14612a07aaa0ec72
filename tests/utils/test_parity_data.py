"""Data loading, testing helpers and files against torch."""

import inspect
from collections import OrderedDict, namedtuple

import numpy as np
import pytest

import ptcore as pt
from ptcore import testing
from ptcore.utils import data

torch = pytest.importorskip("torch")
import torch.utils.data  # noqa: E402, F811

pytestmark = pytest.mark.parity
LIBRARIES = ((pt, data), (torch, torch.utils.data))

Pair = namedtuple("Pair", "a b")


def plain(value):
    """Nested values with (dtype name, list) in place of tensors."""
    if isinstance(value, (pt.Tensor, torch.Tensor)):
        return str(value.dtype).rpartition(".")[2], value.tolist()
    if isinstance(value, dict):
        return type(value), {k: plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value), [plain(v) for v in value]
    return value


SAMPLES = [
    [1, 2],
    [1.5, 2.5],
    [True, False],
    ["a", "b"],
    [b"a", b"b"],
    [(1, "x"), (2, "y")],
    [[1, 2.0], [3, 4.0]],
    [{"a": 1, "b": [1, 2]}, {"a": 2, "b": [3, 4]}],
    [OrderedDict(x=1), OrderedDict(x=2)],
    [Pair(1, 2.0), Pair(3, 4.0)],
    [np.float32(1), np.float32(2)],
    [np.int16(1), np.int16(2)],
    [np.bool_(True), np.bool_(False)],
    [np.ones((2, 1), np.float16), np.zeros((2, 1), np.float16)],
    [{"n": np.arange(2), "t": (np.float64(1), "s")}] * 2,
]


@pytest.mark.parametrize("samples", SAMPLES, ids=range(len(SAMPLES)))
def test_collation(samples):
    results = [plain(d.default_collate(list(samples))) for _, d in LIBRARIES]
    assert results[0] == results[1]
    results = [plain(d.default_convert(samples[0])) for _, d in LIBRARIES]
    assert results[0] == results[1]


@pytest.mark.parametrize("n", [0, 1, 7, 8])
@pytest.mark.parametrize(
    "options",
    [
        {"batch_size": 3},
        {"batch_size": 4, "drop_last": True},
        {"batch_size": None},
        {"batch_size": 2, "sampler": "first"},
        {"batch_sampler": "first"},
    ],
)
def test_loading(n, options):
    options = dict(options)
    if "sampler" in options:
        options["sampler"] = range(min(n, 1))
    if "batch_sampler" in options:
        options["batch_sampler"] = [[0], [0, 0]] if n else []
    results = []
    for pt_, d in LIBRARIES:
        ds = d.TensorDataset(pt_.arange(n), pt_.arange(2.0 * n).reshape(n, 2))
        loader = d.DataLoader(ds, **options)
        results.append((len(loader), [plain(b) for b in loader]))
    assert results[0] == results[1]


@pytest.mark.parametrize("lengths", [[0.5, 0.5], [0.3, 0.3, 0.4], [1.0], [4, 7]])
def test_split_sizes(lengths):
    sizes = [[len(p) for p in d.random_split(range(11), lengths)] for _, d in LIBRARIES]
    assert sizes[0] == sizes[1]


@pytest.mark.parametrize("shuffle", [False])
@pytest.mark.parametrize("drop_last", [False, True])
def test_distributed_sampler(shuffle, drop_last):
    for n in (1, 5, 12):
        for rank in range(4):
            orders = [
                list(
                    d.DistributedSampler(
                        range(n), 4, rank, shuffle, drop_last=drop_last
                    )
                )
                for _, d in LIBRARIES
            ]
            assert orders[0] == orders[1]


def arguments(function):
    parameters = inspect.signature(function).parameters.values()
    return [(p.name, p.kind, p.default) for p in parameters]


@pytest.mark.parametrize(
    "name",
    [n for n in data.__all__ if isinstance(getattr(data, n), type) and n not in ("Sampler", "SharedList")],
)
def test_signatures(name):
    ours, theirs = getattr(data, name), getattr(torch.utils.data, name)
    assert arguments(ours.__init__) == arguments(theirs.__init__)


CLOSE = [
    (1.0, 1.1), (1, 2), (1, 1.0), ([1, [2.0]], [1, [3.0]]), ({"a": 1}, {"b": 1}),
    (float("nan"), float("nan")), ([1], [1, 2]), (1 + 2j, 1 + 2j), (1 + 2j, 2 + 2j),
    (True, False), (1.0, 1.0 + 5e-8),
]  # fmt: skip


@pytest.mark.parametrize(("actual", "expected"), CLOSE)
def test_assert_close_messages(actual, expected):
    texts = []
    for module in (testing, torch.testing):
        try:
            module.assert_close(actual, expected)
            texts.append(None)
        except AssertionError as error:
            texts.append(str(error))
    assert texts[0] == texts[1]


def test_assert_close_signature():
    assert arguments(testing.assert_close) == arguments(torch.testing.assert_close)


def test_safetensors_files_are_exchanged(tmp_path):
    io = pytest.importorskip("safetensors.torch")
    path = tmp_path / "x.safetensors"
    values = {"a": [[1.5, -2.0]], "b": [3.0]}
    for dtype in ("float32", "bfloat16", "float16", "int64", "bool", "uint8"):
        ours = {k: pt.tensor(v).to(getattr(pt, dtype)) for k, v in values.items()}
        theirs = {
            k: torch.tensor(v).to(getattr(torch, dtype)) for k, v in values.items()
        }
        pt.save(ours, path)
        assert plain(io.load_file(path)) == plain(theirs)
        io.save_file(theirs, path)
        assert plain(dict(pt.load(path))) == plain(ours)
