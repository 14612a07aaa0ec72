"""Writing: ``out=``, in-place forms, versions, refused dtypes, overlap, read-only memory."""
import contextlib

import numpy as np
import pytest
from _cases import (
    CASES,
    ELEMENTWISE,
    LAYOUTS,
    ROWS,
    F,
    Sample,
    array,
    cases,
    draw,
    dtypes,
    function,
    inplace_function,
    tensor,
)
from _tolerance import ACCUMULATED, assert_near
from _walk import walk

import ptcore

pytestmark = pytest.mark.core


def dtype_for(row):
    """A dtype in which the result fits its first input: what an in-place form needs."""
    types = dtypes(row)
    return next(d for d in ("float64", "complex128", "int32", "bool") if d in types)


def all_in_first(case):
    """Whether every operand broadcasts to the first."""
    shapes = [s.shape for s in case if hasattr(s, "shape")]
    return np.broadcast_shapes(*shapes) == shapes[0]


INPLACE = [r for r in ELEMENTWISE if r.inplace]
OUT = [r for r in ROWS.values() if r.out_argument
       and not r.internal and (r.kind == "elementwise" or CASES.get(r.name))]


def parameters(rows):
    return [pytest.param(r, id=r.name) for r in rows]


def run(row, case, dtype, layout="contiguous"):
    sample = Sample(row, case, dtype, np.random.default_rng(5))
    positional, keyword = sample.arguments(layout)
    return sample, positional, keyword


@pytest.mark.parametrize("row", parameters(INPLACE))
def test_inplace(row):
    """The in-place form writes what the function returns, into the very same memory."""
    dtype = dtype_for(row)
    for case in cases(row):
        if not all_in_first(case):
            continue
        for layout in LAYOUTS:
            sample, positional, keyword = run(row, case, dtype, layout)
            x = positional[0]
            address, version, strides = x.data_ptr(), x._version, x.stride()
            want = sample.expected()[0]
            assert inplace_function(row)(*positional, **keyword) is x
            assert (x.data_ptr(), x.stride()) == (address, strides)
            assert x._version == version + 1, "one write counts once"
            assert_near(array(x), want, dtype, f"{row.name}_ {layout}", ACCUMULATED)


@pytest.mark.parametrize("row", parameters(
    r for r in INPLACE if len(r.tensors) > 1 and not r.internal
    and not all(all_in_first(c) for c in cases(r))))
def test_inplace_does_not_grow(row):
    """An in-place result that is larger than its first operand is refused, nothing is written."""
    dtype = dtype_for(row)
    case = next(c for c in cases(row) if not all_in_first(c))
    _, positional, keyword = run(row, case, dtype)
    before = array(positional[0]).copy()
    with pytest.raises(RuntimeError, match=row.name):
        inplace_function(row)(*positional, **keyword)
    np.testing.assert_array_equal(array(positional[0]), before)


def several(result):
    return result if isinstance(result, tuple) else (result,)


@walk("row", parameters(OUT))
def test_out(row):
    """``out=`` takes the results in any layout, is returned, and its version counts once."""
    dtype = dtype_for(row)
    case = cases(row)[0]
    _, positional, keyword = run(row, case, dtype)
    result = function(row)(*positional, **keyword)
    wants = several(result)
    for layout in LAYOUTS:
        outs = tuple(tensor(np.zeros(w.shape, w.dtype.name), w.dtype.name, layout) for w in wants)
        before = [(o._version + 1, o.stride()) for o in outs]
        back = function(row)(*positional, **keyword, out=outs if isinstance(result, tuple) else outs[0])
        assert type(back) is type(result)
        assert all(a is b for a, b in zip(several(back), outs, strict=True))
        assert [(o._version, o.stride()) for o in outs] == before
        for out, want in zip(outs, wants, strict=True):
            np.testing.assert_array_equal(array(out), array(want))


def viewed(value):
    if isinstance(value, (list, tuple)):
        return type(value)(map(viewed, value))
    return value.view(value.shape) if isinstance(value, ptcore.Tensor) else value


@walk("row", parameters(OUT))
def test_out_of_views(row):
    """Views are written out like other tensors, unless their base requires grad and the op has a derivative."""
    dtype = dtype_for(row)
    _, positional, keyword = run(row, cases(row)[0], dtype)
    wants = several(function(row)(*positional, **keyword))
    outs = tuple(ptcore.zeros_like(w) for w in wants)
    function(row)(*viewed(positional), **keyword, out=outs if len(outs) > 1 else outs[0])
    for out, want in zip(outs, wants, strict=True):
        np.testing.assert_array_equal(array(out), array(want))


def test_out_where_nothing_is_differentiable():
    x = ptcore.tensor([3.0, 1.0], requires_grad=True)
    out = ptcore.zeros(2, dtype=ptcore.bool)
    assert ptcore.gt(x, 2, out=out).tolist() == [True, False]
    assert ptcore.argmax(x, out=ptcore.zeros((), dtype=ptcore.int64)).item() == 0
    with pytest.raises(RuntimeError, match="floor: out= does not support"):
        ptcore.floor(x, out=ptcore.zeros(2))


@walk("row", parameters(OUT))
def test_out_gets_the_shape(row):
    """In silence where it was empty, else with a warning, as in PyTorch."""
    dtype = dtype_for(row)
    _, positional, keyword = run(row, cases(row)[0], dtype)
    want = function(row)(*positional, **keyword)
    if isinstance(want, tuple):
        return
    empty = ptcore.empty(0, dtype=want.dtype)
    function(row)(*positional, **keyword, out=empty)
    np.testing.assert_array_equal(array(empty), array(want))
    wrong = ptcore.zeros(tuple(n + 1 for n in want.shape) or (7,), dtype=want.dtype)
    with pytest.warns(UserWarning, match=rf"An output .* was resized .* of {row.called};"):
        assert function(row)(*positional, **keyword, out=wrong) is wrong
    np.testing.assert_array_equal(array(wrong), array(want))
    other = ptcore.float32 if want.dtype is not ptcore.float32 else ptcore.float64
    taken = row.out_dtype != "exact" and ptcore.can_cast(want.dtype, other)
    with contextlib.nullcontext() if taken else pytest.raises(RuntimeError, match=row.called):
        function(row)(*positional, **keyword, out=ptcore.empty(want.shape, dtype=other))


@pytest.mark.parametrize("row", parameters(
    r for r in OUT if r.kind == "elementwise" and r.out == "same" and "float64" in r.types
    and r.promote == "default"))
def test_out_dtype(row):
    """A result is cast to a dtype of its kind or a higher one, and refused by a lower one; some take their own alone."""
    _, positional, keyword = run(row, cases(row)[0], "float64")
    want = array(function(row)(*positional, **keyword))
    narrow = ptcore.zeros(want.shape, dtype=ptcore.float32)
    if row.out_dtype == "exact":
        with pytest.raises(RuntimeError, match="out must have dtype float64, got float32"):
            function(row)(*positional, **keyword, out=narrow)
        return
    function(row)(*positional, **keyword, out=narrow)
    np.testing.assert_array_equal(array(narrow), want.astype("float32"))
    with pytest.raises(RuntimeError, match="int64"):
        function(row)(*positional, **keyword, out=ptcore.zeros(want.shape, dtype=ptcore.int64))


# Windows of a vector of 12 that overlap, not both of them dense.
WINDOWS = ((slice(0, 10, 2), slice(2, 12, 2)), (slice(2, 12, 2), slice(0, 10, 2)), (slice(None), slice(None, None, -1)),
           (slice(0, 6), slice(0, 12, 2)), (slice(0, 12, 2), slice(3, 9)))


@pytest.mark.parametrize("row", parameters(
    r for r in OUT if r.kind == "elementwise" and len(r.tensors) == 1 and r.out == "same" and r.name != "threshold"))
def test_out_overlaps_input(row):
    """``out=`` may be the input itself or another window of its memory, unless both are dense, as in PyTorch."""
    dtype = dtype_for(row)
    values = draw(np.random.default_rng(5), (12,), dtype, row.sample)
    want = array(function(row)(tensor(values, dtype)))
    for source, target in WINDOWS:
        x = tensor(values, dtype)
        function(row)(x[source], out=x[target])
        np.testing.assert_array_equal(array(x[target]), want[source])
    x = tensor(values, dtype)
    with pytest.raises(RuntimeError, match="refer to a single memory location"):
        function(row)(x[:10], out=x[2:])
    np.testing.assert_array_equal(array(x), array(tensor(values, dtype)))


def test_out_overlaps_result():
    """A result that is a view of the input is read before anything is written over it."""
    a = np.arange(12.0)
    for call, want in (
            (lambda x: ptcore.narrow_copy(x, 0, 0, 9, out=x[1:10]), [*a[:1], *a[:9], *a[10:]]),
            (lambda x: ptcore.narrow_copy(x, 0, 1, 9, out=x[:9]), [*a[1:10], *a[9:]]),
            (lambda x: ptcore.diagonal_copy(x.view(3, 4), out=x[4:7]), [*a[:4], 0, 5, 10, *a[7:]]),
            (lambda x: ptcore.t_copy(x[:9].view(3, 3), out=x[:9].view(3, 3)), [*a[:9].reshape(3, 3).T.ravel(), *a[9:]]),
            (lambda x: ptcore.split_copy(x[:8], 4, out=[x[2:6], x[6:10]]), [*a[:2], *a[:8], *a[10:]])):
        x = ptcore.tensor(a)
        call(x)
        np.testing.assert_array_equal(array(x), want)


@pytest.mark.parametrize("row", parameters(r for r in INPLACE if len(r.tensors) == 2
                                           and all(a.letter == "T" for a in r.tensors)
                                           and sum(a.required for a in r.args) == 2))
def test_inplace_overlaps_operand(row):
    """x.op_(window of x) reads x as it was; both may not be dense, as in PyTorch."""
    dtype = dtype_for(row)
    values = draw(np.random.default_rng(5), (12,), dtype, row.sample)
    x = tensor(values, dtype)
    with pytest.raises(RuntimeError, match="refer to a single memory location"):
        inplace_function(row)(x[:10], x[2:])
    np.testing.assert_array_equal(array(x), array(tensor(values, dtype)))
    for left, right in WINDOWS:
        want = array(function(row)(tensor(values[left], dtype), tensor(values[right], dtype)))
        x = tensor(values, dtype)
        inplace_function(row)(x[left], x[right])
        np.testing.assert_array_equal(array(x[left]), want)


@pytest.mark.parametrize("row", parameters(INPLACE))
def test_expanded_memory_is_refused(row):
    dtype = dtype_for(row)
    _, positional, keyword = run(row, [F(3, 5) if isinstance(s, F) else s
                                       for s in cases(row)[0]], dtype)
    positional[0] = positional[0][:1].expand(3, 5)
    with pytest.raises(RuntimeError, match=r"single memory location"):
        inplace_function(row)(*positional, **keyword)


def test_expanded_memory_can_be_filled():
    """Each element is written the same number as often as it shows."""
    x = ptcore.zeros(3).expand(2, 3)
    assert x.fill_(1).tolist() == [[1, 1, 1]] * 2
    assert x.fill_(ptcore.tensor(4.0)).tolist() == [[4, 4, 4]] * 2
    x.zero_()
    x[:, 1] = 3
    assert x.tolist() == [[0, 3, 0]] * 2
    assert ptcore.zeros(1, 3).expand(40, 3).fill_(2).sum() == 240
    with pytest.raises(RuntimeError, match="single memory location"):
        x.copy_(ptcore.ones(3))


def test_read_only_memory():
    a = np.arange(3.0)
    a.flags.writeable = False
    x = ptcore.from_numpy(a)
    for write in (lambda: x.add_(1), lambda: x.zero_(), lambda: x.__setitem__(0, 1.0),
                  lambda: x.copy_(ptcore.ones(3)), lambda: x[1:].mul_(2),
                  lambda: ptcore.add(x, 1, out=x), lambda: x.fill_(1),
                  lambda: x.index_put_((ptcore.tensor([0]),), ptcore.tensor(1.0)),
                  lambda: x.normal_(), lambda: x.masked_fill_(x > 0, 0)):
        with pytest.raises(RuntimeError, match="read-only"):
            write()
    np.testing.assert_array_equal(a, np.arange(3.0))
    np.testing.assert_array_equal((x + 1).numpy(), a + 1)


@pytest.mark.parametrize(("x", "y"), [("int32", "float32"), ("float32", "complex64"),
                                      ("bool", "int32"), ("uint8", "float64")])
def test_inplace_refuses_higher_kind(x, y):
    a, b = ptcore.ones(3, dtype=getattr(ptcore, x)), ptcore.ones(3, dtype=getattr(ptcore, y))
    with pytest.raises(RuntimeError, match="add_: result type"):
        a.add_(b)
    a.copy_(b)                          # a copy casts, as in PyTorch
    assert a.dtype is getattr(ptcore, x)


@pytest.mark.parametrize("bounds", [{"min": 0.5}, {"max": 2.5}, {"min": ptcore.tensor(1.5)}, {"min": 0, "max": 1.5}])
def test_composites_in_place_refuse_higher_kind(bounds):
    x = ptcore.tensor([1, 5])
    with pytest.raises(RuntimeError, match="clamp_: result type float32 can't be cast to the desired output type"):
        x.clamp_(**bounds)
    assert x.tolist() == [1, 5]


def test_out_and_gradients():
    x = ptcore.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match=r"exp: out= does not support automatic"):
        ptcore.exp(x, out=ptcore.zeros(2))
    with ptcore.no_grad():
        assert ptcore.exp(x, out=ptcore.zeros(2)).grad_fn is None
    for name, args in (("mm", (ptcore.ones(2, 2, requires_grad=True), ptcore.ones(2, 2))),
                       ("sum", (x,))):
        out = ptcore.zeros(0)
        with pytest.raises(RuntimeError, match=f"{name}: out= does not support automatic"):
            getattr(ptcore, name)(*args, out=out)


def test_out_is_a_tensor():
    with pytest.raises(TypeError, match="exp: out must be a Tensor, got ndarray"):
        ptcore.exp(ptcore.ones(2), out=np.ones(2))


@pytest.mark.counts
@pytest.mark.parametrize("name", ["index_add_", "scatter_add_"])
def test_additions_in_place_touch_what_they_add_to_alone(name):
    """A few sums into a large tensor neither copy it nor allocate beside it."""
    x, index, source = ptcore.zeros(1 << 20), ptcore.tensor([5, 7, 5]), ptcore.ones(3)
    getattr(x, name)(0, index, source)
    ptcore.cpu.reset_peak_memory_stats()
    before, version, where = ptcore.cpu.memory_allocated(), x._version, x.data_ptr()
    assert getattr(x, name)(0, index, source) is x
    assert ptcore.cpu.max_memory_allocated() - before < 1 << 16
    assert (x._version, x.data_ptr()) == (version + 1, where)
    assert x[[5, 6, 7]].tolist() == [4, 0, 2]


@pytest.mark.parametrize("name", ["index_add_", "scatter_add_"])
def test_additions_in_place_from_their_own_memory(name):
    x = ptcore.arange(6.)
    expected = x.numpy().copy()
    np.add.at(expected, [0, 1, 2], expected[::2].copy())
    getattr(x, name)(0, ptcore.tensor([0, 1, 2]), x[::2])
    assert np.array_equal(x.numpy(), expected)
    with pytest.raises(RuntimeError, match="refer to a single memory location"):
        getattr(x, name)(0, ptcore.tensor([0, 1, 2]), x[3:])        # PyTorch refuses what is dense
    refused = x.clone()
    with pytest.raises(IndexError):
        getattr(refused, name)(0, ptcore.tensor([0, 6]), ptcore.ones(2))
    assert ptcore.equal(refused, x)


@pytest.mark.parametrize("name", ["index_add_", "scatter_add_"])
def test_additions_in_place_are_recorded(name):
    x, source = ptcore.ones(4, dtype=ptcore.float64), ptcore.ones(2, dtype=ptcore.float64, requires_grad=True)
    getattr(x, name)(0, ptcore.tensor([1, 1]), source)
    (x * x).sum().backward()
    assert source.grad.tolist() == [6, 6]
    with pytest.raises(RuntimeError, match="read-only"):
        getattr(ptcore.from_numpy(np.broadcast_to(np.ones(1), 3)), name)(0, ptcore.tensor([0]), ptcore.ones(1).double())


# -- out= is written, not copied to ---------------------------------------------------------------

def allocations():
    stats = ptcore.cpu.memory_stats()
    return stats["hits"] + stats["misses"]


@pytest.mark.counts
@walk("row", parameters(r for r in OUT if r.kind != "composite" or r.out_argument == "inside"))
def test_out_needs_no_memory_of_its_own(row):
    """As many tensors fewer are allocated as results are given; what lies before and behind them is not touched."""
    dtype = dtype_for(row)
    _, positional, keyword = run(row, cases(row)[0], dtype)
    function(row)(*positional, **keyword)
    before = allocations()
    wants = several(function(row)(*positional, **keyword))
    plain = allocations() - before
    rooms = [ptcore.full((w.numel() + 128,), 1).to(w.dtype) for w in wants]
    outs = tuple(r[64:64 + w.numel()].view(w.shape) for r, w in zip(rooms, wants, strict=True))
    before = allocations()
    function(row)(*positional, **keyword, out=outs if len(outs) > 1 else outs[0])
    assert plain - (allocations() - before) == len(outs)
    for out, want, room in zip(outs, wants, rooms, strict=True):
        np.testing.assert_array_equal(array(out), array(want))
        around = array(room)
        assert (around[:64] == 1).all()
        assert (around[64 + want.numel():] == 1).all()


def tensors_in(value):
    if isinstance(value, ptcore.Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from tensors_in(item)


# Rows whose result is written by loops over elements, those that call one such op at the end included.
ELEMENTWISE = {"clamp", "nan_to_num", "outer", *[r.name for r in OUT if r.kind == "elementwise"]}


@pytest.mark.parametrize("aliased", [False, True], ids=["storage", "array"])
@walk("row", parameters(OUT))
def test_out_lies_in_an_argument(row, aliased):
    """Each result, written over each argument and beside it, in one storage or in two of the same memory, is what it is
    elsewhere. Elementwise ops refuse a dense part of a dense argument of the same storage, as in PyTorch."""
    dtype = dtype_for(row)
    _, positional, keyword = run(row, cases(row)[0], dtype)
    wants = several(function(row)(*positional, **keyword))
    values = [array(w).copy() for w in wants]
    for k, want in enumerate(wants):
        for n, x in enumerate(tensors_in(positional)):
            for shift in (0, 1, 3):
                if x.dtype is not want.dtype or not x.numel() or x.requires_grad:
                    continue
                size = max(x.numel(), want.numel())
                room = ptcore.zeros(size + 3, dtype=x.dtype)
                other = ptcore.from_numpy(room.numpy()) if aliased else room
                mine = room[:x.numel()].view(x.shape).copy_(x)
                outs = [ptcore.zeros_like(w) for w in wants]
                outs[k] = other[shift:shift + want.numel()].view(want.shape)
                given = replaced(positional, n, mine)
                if row.name in ELEMENTWISE and not aliased and (shift or x.shape != want.shape) and shift < x.numel():
                    with pytest.raises(RuntimeError, match="refer to a single memory location"):
                        function(row)(*given, **keyword, out=outs[0])
                    continue
                function(row)(*given, **keyword, out=tuple(outs) if len(outs) > 1 else outs[0])
                for out, value in zip(outs, values, strict=True):
                    np.testing.assert_array_equal(array(out), value)


def replaced(value, n, new):
    """The arguments with another one in the place of the tensor number n."""
    found = []

    def walk(v):
        if isinstance(v, ptcore.Tensor):
            found.append(v)
            return new if len(found) - 1 == n else v
        return type(v)(map(walk, v)) if isinstance(v, (list, tuple)) else v
    return walk(value)


@pytest.mark.parametrize(("f", "args"), [("add", (ptcore.ones(3), 1)), ("sum", (ptcore.ones(3, 2), 1))])
def test_out_of_repeated_memory_is_refused(f, args):
    with pytest.raises(RuntimeError, match=f"{f}: more than one element of out refers to a single memory location"):
        getattr(ptcore, f)(*args, out=ptcore.zeros(1).expand(3))


def test_results_are_not_written_over_each_other():
    x, same = ptcore.tensor([[3.0, 1.0], [2.0, 5.0]]), ptcore.zeros(2)
    values = ptcore.linalg.slogdet(ptcore.stack([x, x]))
    ptcore.linalg.slogdet(ptcore.stack([x, x]), out=(same, same))
    assert same.tolist() == values[1].tolist()          # the last one stands


@pytest.mark.parametrize("first", [0, 1])
def test_in_place_over_another_array_of_the_same_memory(first):
    a = np.arange(10.0)
    mine, other = a[first:first + 9], a[1 - first:10 - first]
    want = mine + other
    ptcore.from_numpy(mine).add_(ptcore.from_numpy(other))
    np.testing.assert_array_equal(mine, want)


COMPOSITE = [r for r in ROWS.values() if r.kind != "elementwise" and r.inplace and not r.internal and CASES.get(r.name)
             and "float64" in dtypes(r)]


@pytest.mark.parametrize("row", parameters(COMPOSITE))
def test_gradients_of_composites_in_place(row):
    """What is recorded of the argument is kept as it was, though the result is written over it."""
    for case in cases(row):
        _, positional, keyword = run(row, case, "float64")
        result = function(row)(*positional, **keyword)
        if not isinstance(result, ptcore.Tensor) or result.shape != positional[0].shape or result.dtype.kind != "f":
            continue
        grads = []
        for f in (function(row), inplace_function(row)):
            x = positional[0].detach().clone().requires_grad_()
            y = f(x * 1, *positional[1:], **keyword)
            if not y.requires_grad:
                return
            (y * y).sum().backward()
            grads.append(array(x.grad))
        np.testing.assert_array_equal(*grads)
