"""A default device is that of tensors a program makes: ops and functions of tensors compute where these are.

Every row, its gradients and every public function of tensors give under another default device, which has no values,
what they give without one.
"""
import warnings
from functools import reduce

import _call_table
import numpy as np
import pytest
from _cases import case_id
from _row_graphs import BACKWARD, FORWARD, assert_equal, backward_calls, flat, forward_calls, pulled, seeded
from _walk import every_case, walk

import ptcore as pt
from ptcore._ops.calling import run


def check(f, args, where):
    want = seeded(f, *args)
    with pt.device("meta"):
        got = seeded(f, *args)
    assert_equal(got, want, where)


@walk("row", FORWARD, by=lambda row: row.family)
def test_rows(row):
    with every_case() as tried:
        for case, args, _ in forward_calls(row):
            name = case_id(row, case)
            with tried(name):
                if flat(args):
                    check(lambda *given: run(row.name, given), args, name)


@walk("row", BACKWARD, by=lambda row: row.family)
def test_gradients(row):
    with every_case() as tried:
        for case, call, inputs in backward_calls(row):
            name = case_id(row, case)
            f = pulled(call, inputs)
            with tried(name):
                if f is not None:
                    check(f, inputs, name)


def leaves(x):
    if isinstance(x, pt.nn.Module):
        return [*x.parameters(), *x.buffers()]
    if isinstance(x, pt.masked.MaskedTensor):
        return [x.get_data(), x.get_mask()]
    if isinstance(x, (list, tuple)):
        return [y for part in x for y in leaves(part)]
    return [x] if isinstance(x, pt.Tensor) else []


@walk("path", _call_table.FUNCTIONS, by=lambda path: path.rpartition(".")[0])
def test_functions(path):
    f = reduce(getattr, path.split("."), pt)
    found = []
    for default in ("cpu", "meta"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")     # of deprecated names
            pt.manual_seed(5)
            args, kwargs = _call_table.FUNCTIONS[path](pt)
            given = leaves([*args, *kwargs.values()])
            if not given:
                return
            with pt.device(default):
                result = f(*args, **kwargs)
        found.append([*leaves(result), *given])
    assert_equal(*found[::-1], path)


KEYS = {
    "list": [0, 2], "lists": ([0, 1], [1, 2]), "array": np.array([0, 2]), "array of bool": np.array([True, False, True]),
    "bools": [True, False, True], "none": [], "true": True, "false": False, "number": np.int64(1), "range": range(2),
    "tensor": pt.tensor([0, 2]), "mask": pt.arange(12).reshape(3, 4) > 3, "0-d": pt.tensor(1), "slice": slice(1, None),
    "mixed": (slice(None), [0, 1]), "tensors": (pt.tensor([0, 1]), pt.tensor([2, 3])),
}
VALUES = {"int": 3, "bool": True, "float": 1.0, "NumPy's": np.float32(2), "0-d": pt.tensor(5), "list": [7]}


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("dtype", ["int64", "float16", "float32", "complex64"])
def test_indexing(key, dtype):
    for value in [None, *VALUES]:
        found = []
        for default in ("cpu", "meta"):
            x = pt.arange(12).reshape(3, 4).to(getattr(pt, dtype))
            with pt.device(default):
                if value is None:
                    found.append([x[KEYS[key]]])
                else:
                    x[KEYS[key]] = VALUES[value]
                    found.append([x])
        assert_equal(*found[::-1], value)


def test_empty_batches_and_slices():
    x, empty, queries = pt.zeros(3, 0), pt.zeros(0, 9, 9, dtype=pt.float64), pt.zeros(0, 1, 2, 3)
    with pt.device("meta"):
        assert [t.device.type for t in pt.unique_consecutive(x, True, True, 0)] == ["cpu"] * 3
        assert [t.device.type for t in pt.unique(x, True, True, True, 0)] == ["cpu"] * 3
        drawn = pt.func.vmap(lambda q: pt.nn.functional.scaled_dot_product_attention(q, q, q, dropout_p=0.5),
                             randomness="different")(queries)
        assert drawn.device.type == "cpu"
        for t in pt.lobpcg(empty, k=1):
            assert (t.device.type, t.dtype) == ("cpu", pt.float64)


@pytest.mark.parametrize("suffix", ["pt", "npz", "safetensors"])
def test_files(suffix, tmp_path):
    x = pt.arange(6.0)
    with pt.device("meta"):
        pt.save({"x": x}, tmp_path / f"x.{suffix}")
        found = pt.load(tmp_path / f"x.{suffix}")["x"]
    assert found.tolist() == x.tolist()


def test_bytes_of_images():
    image = pt.arange(12, dtype=pt.uint8).reshape(1, 1, 3, 4)
    for options in ({"mode": "bilinear"}, {"mode": "bicubic", "antialias": True}):
        check(lambda x, options=options: pt.nn.functional.interpolate(x, scale_factor=2.0, **options), [image], options)


def test_generators_and_traces():
    g = pt.Generator().manual_seed(3)
    with pt.device("meta"):
        g.set_state(g.get_state())
        traced = pt.jit.trace(lambda x: x * 2, pt.ones(2, device="cpu"))
    assert g.initial_seed() == 3
    assert traced(pt.ones(2)).tolist() == [2, 2]


@pytest.mark.parametrize("name", [
    "SGD", "Adam", "AdamW", "RMSprop", "Adagrad", "Adadelta", "Adamax", "NAdam", "RAdam", "Rprop", "ASGD", "Adafactor",
    "Muon"])
def test_optimizers(name):
    """Counters are read in every step, so they are on the CPU."""
    def steps():
        p = pt.nn.Parameter(pt.ones(2, 2, device="cpu"))
        made = getattr(pt.optim, name)([p], lr=0.1)
        for k in range(3):
            p.grad = pt.full((2, 2), 1.0 + k, device="cpu")
            made.step()
        counters = [s["step"] for s in made.state.values() if "step" in s]
        assert all(t.device.type == "cpu" for t in counters if isinstance(t, pt.Tensor))
        return p.detach()
    check(steps, [], name)


def test_data_are_drawn_where_the_generator_is():
    from ptcore.utils import data
    x = pt.arange(6.0)
    whole = data.TensorDataset(x)

    def draws():
        g = pt.Generator().manual_seed(1)
        order = [*data.RandomSampler(whole), *data.RandomSampler(whole, replacement=True, num_samples=4, generator=g),
                 *data.SubsetRandomSampler([3, 1, 2], g), *data.WeightedRandomSampler([1.0, 2, 3], 4, generator=g),
                 *data.DistributedSampler(whole, num_replicas=2, rank=0)]
        parts = data.random_split(whole, [2, 4], generator=g)
        batches = [b for options in ({}, {"shuffle": True}, {"shuffle": True, "generator": g})
                   for (b,) in data.DataLoader(whole, batch_size=4, **options)]
        return [pt.tensor([*order, *parts[0].indices], device="cpu"), *batches]
    check(draws, [], "draws")
    with pt.device("meta"):
        assert list(data.SharedList([1, "a"])) == [1, "a"]


def test_arrays_beside_tensors_stay_where_they_are():
    """Only what is asked for by name is made on the default device."""
    x, a = pt.arange(6.0).reshape(2, 3), np.ones((3, 2), np.float32)
    with pt.device("meta"):
        assert (x @ a).device == (a @ x).device == np.add(x, a.T).device == np.sin(x).device == x.device
        pt.testing.assert_close(x, x + 0)
        pt.testing.assert_close(a, a.copy())
        assert pt.distributions.AffineTransform(x, 2.0) == pt.distributions.AffineTransform(x + 0, 2.0)
        assert pt.vmap(lambda row: row + 1)(x).device == x.device
        lengths = pt.nn.utils.rnn.pack_padded_sequence(x.reshape(3, 2, 1), [3, 2]).batch_sizes
    assert lengths.tolist() == [2, 2, 1]


def test_windows_around_what_is_not_finite():
    """The taps of a filter lie where the image does."""
    x = pt.arange(64.0).reshape(1, 1, 8, 8)
    x[0, 0, 2, 3] = float("nan")
    want = pt.nn.functional.interpolate(x, size=(3, 5), mode="bilinear", antialias=True)
    with pt.device("meta"):
        got = pt.nn.functional.interpolate(x, size=(3, 5), mode="bilinear", antialias=True)
    assert got.is_cpu and got.isnan().any() and not got.isnan().all()
    pt.testing.assert_close(got, want, equal_nan=True, rtol=0, atol=0)
