"""Indexing against NumPy: what hypothesis thinks of, and the corners it may miss."""
import numpy as np
import pytest
from _examples import examples
from hypothesis import given
from hypothesis import strategies as st

import ptcore

pytestmark = pytest.mark.core
SHAPES = st.lists(st.integers(0, 4), min_size=1, max_size=4).map(tuple)


@st.composite
def slices(draw, n):
    bound = st.none() | st.integers(-n - 2, n + 2)
    step = draw(st.none() | st.integers(-3, 3).filter(bool))
    return slice(draw(bound), draw(bound), step)


@st.composite
def basic_keys(draw, shape):
    """Ints, slices, None and at most one Ellipsis, for a leading part of the dims."""
    used = draw(st.integers(0, len(shape)))
    key, ellipsis = [], draw(st.booleans())
    front = draw(st.integers(0, used)) if ellipsis else used
    dims = [*range(front), *range(len(shape) - used + front, len(shape))]
    for i, d in enumerate(dims):
        if ellipsis and i == front:
            key.append(Ellipsis)
        if draw(st.integers(0, 5)) == 0:
            key.append(None)
        if shape[d] and draw(st.booleans()):
            key.append(draw(st.integers(-shape[d], shape[d] - 1)))
        else:
            key.append(draw(slices(shape[d])))
    if ellipsis and front == used:
        key.append(Ellipsis)
    return tuple(key)


@st.composite
def advanced_keys(draw, shape):
    """As above, with integer arrays (that broadcast together) and one mask among them."""
    common = draw(st.sampled_from([(2,), (3,), (2, 1), (1,)]))
    key, d = [], 0
    masked = draw(st.booleans())
    count = None
    while d < len(shape):
        kind = draw(st.sampled_from(["slice", "array", "list", "none", "int", "stop", "mask"]))
        if kind == "stop":
            break
        if kind == "none":
            key.append(None)
            continue
        if kind == "mask" and masked and count is None and common == (1,):
            mask = np.array(draw(st.lists(st.booleans(), min_size=shape[d], max_size=shape[d])),
                            bool)
            count = int(mask.sum())
            key.append(mask)
        elif kind in ("array", "list") and shape[d]:
            values = draw(st.lists(st.integers(-shape[d], shape[d] - 1),
                                   min_size=int(np.prod(common)), max_size=int(np.prod(common))))
            index = np.array(values, draw(st.sampled_from([np.int64, np.int32]))).reshape(common)
            key.append(index.tolist() if kind == "list" else index)
        elif kind == "int" and shape[d]:
            key.append(draw(st.integers(-shape[d], shape[d] - 1)))
        else:
            key.append(draw(slices(shape[d])))
        d += 1
    return tuple(key)


@st.composite
def problems(draw, keys):
    shape = draw(SHAPES)
    return shape, draw(keys(shape))


def both(shape, reverse=False):
    a = np.arange(int(np.prod(shape)), dtype=np.float64).reshape(shape)
    x = ptcore.from_numpy(a.copy())
    if reverse:
        a, x = a[::-1], x[::-1]
    return a, x


def as_tensors(key):
    return tuple(ptcore.from_numpy(k.copy()) if isinstance(k, np.ndarray) else k for k in key)


def mixes_int_and_arrays(key):
    """NumPy counts an int beside arrays as an index array of its own; PyTorch, and so ptcore,
    selects first. The positions of the result's dims then differ."""
    arrays = [isinstance(k, (np.ndarray, list)) for k in key]
    return any(arrays) and any(isinstance(k, int) for k in key)


@examples(300)
@given(problems(basic_keys), st.booleans())
def test_basic_get(problem, reverse):
    shape, key = problem
    a, x = both(shape, reverse)
    want, got = a[key], x[key]
    np.testing.assert_array_equal(got.numpy(), want)
    if got.numel():
        before = x._version
        got.fill_(-1.0)                 # a view: the write is seen through x
        assert x._version == before + 1
        a = a.copy()
        a[key] = -1.0
        np.testing.assert_array_equal(x.numpy(), a)


@examples(300)
@given(problems(basic_keys), st.booleans())
def test_basic_set(problem, reverse):
    shape, key = problem
    a, x = both(shape, reverse)
    a = a.copy()
    value = -1.0 - np.arange(a[key].size, dtype=float).reshape(a[key].shape)
    a[key] = value
    x[key] = ptcore.from_numpy(np.array(value))
    np.testing.assert_array_equal(x.numpy(), a)


@examples(400)
@given(problems(advanced_keys), st.booleans())
def test_advanced_get(problem, reverse):
    shape, key = problem
    if mixes_int_and_arrays(key):
        return
    a, x = both(shape, reverse)
    try:
        want = a[key]
    except IndexError:                  # index arrays that do not broadcast
        with pytest.raises(IndexError):
            x[as_tensors(key)]
        return
    np.testing.assert_array_equal(x[as_tensors(key)].numpy(), want)
    np.testing.assert_array_equal(x[key].numpy(), want)


@examples(300)
@given(problems(advanced_keys), st.booleans())
def test_advanced_set(problem, as_number):
    shape, key = problem
    if mixes_int_and_arrays(key):
        return
    a, x = both(shape)
    try:
        window = a[key]
    except IndexError:
        return
    if as_number:
        a[key] = 7.0
        x[as_tensors(key)] = 7
    else:
        row = np.zeros(window.shape[-1:]) - 3
        a[key] = row                    # one value for all: repeated positions do not matter
        x[as_tensors(key)] = ptcore.from_numpy(row)
    np.testing.assert_array_equal(x.numpy(), a)


@examples(100)
@given(SHAPES, st.randoms(use_true_random=False))
def test_masks(shape, random):
    a, x = both(shape)
    mask = np.array([random.random() < 0.5 for _ in range(a.size)], bool).reshape(shape)
    m = ptcore.from_numpy(mask)
    np.testing.assert_array_equal(x[m].numpy(), a[mask])
    np.testing.assert_array_equal(ptcore.masked_select(x, m).numpy(), a[mask])
    a[mask] = -1
    x[m] = -1
    np.testing.assert_array_equal(x.numpy(), a)


@pytest.mark.parametrize("key", [
    (), Ellipsis, None, True, False, (True, None), np.int64(1), np.array(1), [0, 1], ([[0, 1], [1, 0]],),
    ([0, 1], [1, 2]), (slice(None), [2, 0]), (slice(None), slice(None, None, -1)), (-1, -1),
    ([True, False, True],), (slice(None), [True, False, True, False]), (np.array([0, 2]), Ellipsis),
    (Ellipsis, np.array([0, 2])), (None, [1], None), ([0, 1], None, [1, 2]),
    np.zeros((3, 4), bool), np.uint8([0, 2]), (slice(np.int64(1), np.int64(3)),)])
def test_forms(key):
    a, x = both((3, 4))
    np.testing.assert_array_equal(x[key].numpy(), a[key])


def test_gradient_through_indexing():
    x = ptcore.arange(6, dtype=ptcore.float64).reshape(2, 3).requires_grad_()
    (x[:, [0, 0, 2]] * ptcore.tensor([1.0, 10.0, 100.0])).sum().backward()
    assert x.grad.tolist() == [[11.0, 0.0, 100.0]] * 2
    x.grad = None
    y = x.clone()
    y[0] = 5.0
    y[y > 4.5] = 0.0
    y.sum().backward()
    assert x.grad.tolist() == [[0.0, 0.0, 0.0], [1.0, 1.0, 0.0]]


def test_accumulate():
    x = ptcore.zeros(3)
    x.index_put_((ptcore.tensor([0, 0, 2]),), ptcore.ones(3), accumulate=True)
    assert x.tolist() == [2.0, 0.0, 1.0]


@pytest.mark.parametrize(("key", "error"), [
    (3, IndexError), (-4, IndexError), ((0, 0, 0), IndexError), (1.0, IndexError),
    ("a", IndexError), (np.array([3]), IndexError), (np.array([0.0]), IndexError),
    (np.zeros(2, bool), IndexError), (([0, 1], [0, 1, 2]), IndexError),
    (slice(None, None, 0), ValueError), ((Ellipsis, Ellipsis), IndexError), ({}, IndexError)])
def test_errors(key, error):
    x = ptcore.zeros(3, 4)
    with pytest.raises(error):
        x[key]
    with pytest.raises(error):
        x[key] = 1
    assert not x.any()


@pytest.mark.parametrize("big", [2**70, -2**70, 2**63])
def test_an_index_beyond_int64_is_named(big):
    x = ptcore.zeros(3, 4)
    for attempt in (lambda: x[big], lambda: x[1, big], lambda: x.__setitem__(big, 1),
                    lambda: x.__setitem__((0, big), 1)):
        with pytest.raises(IndexError, match=rf"index: index {big} is out of range for dim \d with size \d"):
            attempt()
    with pytest.raises(OverflowError, match="stride: dim must be a 64-bit integer, got"):
        x.stride(big)
    with pytest.raises(RuntimeError, match=r"device: index must be in \[0, 127\]"):
        x.to(big)
    assert x[:big].shape == x[:(2**62 if big > 0 else -2**62)].shape


def test_set_overlapping_source():
    a, x = both((6,))
    with pytest.raises(RuntimeError, match="refer to a single memory location"):
        x[1:] = x[:-1]                  # PyTorch refuses what is dense
    np.testing.assert_array_equal(x.numpy(), a)
    x[1::2] = x[::2]
    a[1::2] = a[::2]
    np.testing.assert_array_equal(x.numpy(), a)
    x[2::2] = x[:-2:2]
    a[2::2] = a[:-2:2].copy()
    np.testing.assert_array_equal(x.numpy(), a)
    x[::-1] = x
    np.testing.assert_array_equal(x.numpy(), a[::-1])


# -- writes happen in place ----------------------------------------------------------------------

@pytest.mark.counts
@pytest.mark.parametrize("accumulate", [False, True])
def test_write_at_positions_copies_nothing(accumulate):
    x = ptcore.zeros(1_000_000)
    index = ptcore.tensor([3, -1])
    x.index_put_((index,), ptcore.ones(2), accumulate=accumulate)
    ptcore.cpu.reset_peak_memory_stats()
    before = ptcore.cpu.memory_stats()["peak_allocated"]
    x.index_put_((index,), ptcore.ones(2), accumulate=accumulate)
    x[[5, 6]] = 1.0
    assert ptcore.cpu.memory_stats()["peak_allocated"] - before < 100_000
    assert x.sum().item() == (6 if accumulate else 4)


def test_write_from_and_by_its_own_memory(rng):
    a = rng.permutation(8)
    x = ptcore.from_numpy(a.copy())
    x[x[:4]] = x[4:]            # the positions and the values lie in what is written
    wanted = a.copy()
    wanted[a[:4]] = a[4:]
    np.testing.assert_array_equal(x.numpy(), wanted)


@pytest.mark.parametrize("index", [[0, 5], [0, -4], [2, 1, 3]])
def test_write_at_a_bad_position_writes_nothing(index):
    x = ptcore.zeros(3)
    with pytest.raises(IndexError):
        x[index] = 1.0
    with pytest.raises(IndexError):
        x.index_put_((ptcore.tensor(index),), ptcore.ones(()), accumulate=True)
    assert not x.any()


def test_write_at_positions_of_transposed_and_reversed(rng):
    a = rng.standard_normal((4, 5))
    for view in (lambda x: x.T, lambda x: x[::-1], lambda x: x[:, ::2]):
        x, wanted = ptcore.from_numpy(a.copy()), a.copy()
        view(x)[[0, 2, 2]] = 7.0
        view(wanted)[[0, 2, 2]] = 7.0
        np.testing.assert_array_equal(x.numpy(), wanted)
        view(x).index_put_((ptcore.tensor([1, 1]),), ptcore.ones(()).double(), accumulate=True)
        np.add.at(view(wanted), [1, 1], 1.0)
        np.testing.assert_array_equal(x.numpy(), wanted)


@pytest.mark.parametrize("device", ["cpu", "meta"])
@pytest.mark.parametrize("positions", [[], [0, 0], [0, 0, 0]])
@pytest.mark.parametrize("call", [
    lambda x, i: ptcore.index_select(x, 0, i), lambda x, i: ptcore.index_add(x, 0, i, ptcore.ones_like(i) * 1.0),
    lambda x, i: ptcore.index_copy(x, 0, i, ptcore.ones_like(i) * 1.0),
    lambda x, i: ptcore.vmap(lambda row: row.index_select(0, i))(ptcore.stack([x, x]))])
def test_a_tensor_without_dims_has_one_position(call, positions, device):
    """The result has one element: no position would leave it as its memory was."""
    x = ptcore.full((), 5.0, device=device)
    with pytest.raises((RuntimeError, IndexError), match="one element"):
        call(x, ptcore.tensor(positions, dtype=ptcore.int64, device=device))
    assert x.index_select(0, ptcore.tensor([0], device=device)).shape == ()


@pytest.mark.parametrize(("positions", "expected"), [([], 5), ([0], 7), ([0, -1], 7), (0, 7)])
def test_filling_a_tensor_without_dims(positions, expected):
    x, value = (ptcore.tensor(v, requires_grad=True) for v in (5.0, 7.0))
    y = x.index_fill(0, ptcore.tensor(positions, dtype=ptcore.int64), value)
    assert y.item() == expected
    y.backward()
    assert (x.grad.item(), value.grad.item()) == ((1, 0) if expected == 5 else (0, 1))


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("op", ["scatter_reduce", "index_reduce"])
@pytest.mark.parametrize(("reduce", "sign"), [("amax", 1), ("amin", -1)])
def test_extremes_that_equal_the_start(reduce, sign, op, dtype):
    """Without the elements of input the infinity with which a scatter begins has no share, even if it is the result."""
    inf, index = float("inf"), ptcore.tensor([0, 0, 1])
    for start, source, shares in (([0.0, 0.0, 5.0], [-inf, -inf, -inf], [0.5, 0.5, 1]),
                                  ([-inf, 2.0, 5.0], [-inf, -inf, 2.0], [0.5, 0.5, 1]),
                                  ([3.0, 3.0, 5.0], [3.0, 1.0, -inf], [1, 0, 1])):
        x, y = (ptcore.tensor(numbers, dtype=getattr(ptcore, dtype)).mul(sign).requires_grad_()
                for numbers in (start, source))

        def f(x, y):
            return getattr(x, op)(0, index, y, reduce, include_self=False)
        for recorded in (False, True):
            got = ptcore.autograd.grad(f(x, y).sum(), (x, y), create_graph=recorded)
            assert [g.tolist() for g in got] == [[0, 0, 1], shares]
        tangent = ptcore.func.jvp(f, (x.detach(), y.detach()), (ptcore.ones_like(x), ptcore.ones_like(y)))[1]
        assert tangent.tolist() == [1, 1, 1]


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32"])
@pytest.mark.parametrize("places", [[3, 77, 50, -1], [3, 3, -9997, 9], [5] * 600])
def test_few_numbers_added_in_place(places, dtype):
    """Into many: each place is rounded once, whether it gets one number or several."""
    dtype = getattr(ptcore, dtype)
    index = ptcore.tensor(places)
    values = ptcore.linspace(1, 2, len(places)).to(dtype)
    start = ptcore.full((10_000,), 256.0, dtype=dtype)
    want = start.double()
    for at, value in zip(places, values.double().tolist(), strict=True):
        want[at] += value
    want = want.to(dtype)
    found = [start.clone().index_put_((index,), values, accumulate=True), start.clone().put_(index, values, True),
             start.clone().index_add_(0, index % 10_000, values),
             start.reshape(100, 100).T.clone().T.index_put_((index // 100, index % 100), values, True).reshape(-1),
             start.repeat_interleave(2)[::2].index_put_((index,), values, True),
             start.unsqueeze(1).repeat(1, 2).index_add_(0, index % 10_000, values.unsqueeze(1).expand(-1, 2))[:, 1]]
    for got in found:
        np.testing.assert_allclose(got.double().numpy(), want.double().numpy(),
                                   rtol=1e-5 if dtype is ptcore.float32 else 0)
