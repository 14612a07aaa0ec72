"""Copies of views: memory of their own, row-major, with gradients and out=; splits that may be written to."""
import numpy as np
import pytest

import ptcore as pt

pytestmark = pytest.mark.core
COPIES = {
    "alias": ((), (3, 4)), "detach": ((), (3, 4)), "as_strided": (((2, 3), (1, 4), 1), (3, 4)),
    "diagonal": ((1,), (3, 4)), "expand": (((2, 3, 4),), (3, 4)), "narrow": ((1, 1, 2), (3, 4)),
    "permute": (((1, 0),), (3, 4)), "select": ((1, -1), (3, 4)), "slice": ((1, 1, 4, 2), (3, 4)), "split": ((2,), (3, 4)),
    "split_with_sizes": (([1, 2],), (3, 4)), "squeeze": ((), (3, 1)), "t": ((), (3, 4)), "transpose": ((0, 1), (3, 4)),
    "unbind": ((1,), (3, 4)), "unfold": ((1, 2, 1), (3, 4)), "unsqueeze": ((1,), (3, 4)), "view": (((2, -1),), (3, 4)),
    "view_as_complex": ((), (3, 2))}


def arguments(name):
    args, shape = COPIES[name]
    return pt.arange(float(np.prod(shape)), dtype=pt.float64).view(shape), args


def parts(result):
    return result if isinstance(result, tuple) else (result,)


def view_of(name, x, args):
    if name == "alias":
        return x
    if name == "slice":
        _, start, end, step = args
        return x[:, start:end:step]
    return getattr(x, name)(*args) if hasattr(x, name) else getattr(pt, name)(x, *args)


@pytest.mark.parametrize("name", COPIES)
def test_values_and_memory(name):
    x, args = arguments(name)
    got, want = [parts(r) for r in (getattr(pt, f"{name}_copy")(x, *args), view_of(name, x, args))]
    assert len(got) == len(want)
    before = [w.clone() for w in want]
    for a, b in zip(got, want):
        assert pt.equal(a, b) and a.is_contiguous() and a._base is None
    x.zero_()
    for a, b in zip(got, before):
        assert pt.equal(a, b)
    assert len({a.untyped_storage().data_ptr() for a in got}) == len(got)


@pytest.mark.parametrize("name", COPIES)
def test_out(name):
    x, args = arguments(name)
    function = getattr(pt, f"{name}_copy")
    want = function(x, *args)
    for make in (pt.empty_like, lambda r: pt.empty(0, dtype=r.dtype),
                 lambda r: pt.empty((*r.shape, 2), dtype=r.dtype)[..., 0]):
        outs = tuple([make(r) for r in parts(want)])
        got = function(x, *args, out=outs if isinstance(want, tuple) else outs[0])
        for a, b, c in zip(parts(got), outs, parts(want)):
            assert a is b and pt.equal(b, c)


@pytest.mark.parametrize("name", [n for n in COPIES if n != "detach"])
def test_gradients(name):
    x, args = arguments(name)
    x.requires_grad_()
    function = lambda x: [pt.view_as_real(r) if r.is_complex() else r
                          for r in parts(getattr(pt, f"{name}_copy")(x, *args))]
    assert pt.autograd.gradcheck(function, (x,)) and pt.autograd.gradgradcheck(function, (x,))


def test_detached():
    x = pt.ones(2, requires_grad=True)
    assert not pt.detach_copy(x).requires_grad


def test_views_of_a_dtype_and_of_any_strides():
    x = pt.tensor([1.0, -2.0])
    assert pt.view_copy(x, pt.int32).tolist() == x.view(pt.int32).tolist()
    assert pt.view_copy(pt.arange(6).view(2, 3).t(), (6,)).tolist() == [0, 3, 1, 4, 2, 5]
    with pytest.raises(RuntimeError, match="view_copy: "):
        pt.view_copy(x, (3,))
    z = pt.tensor([1 + 2j])
    assert pt.view_as_real_copy(z).tolist() == [[1, 2]]


def test_errors_name_the_copy():
    x = pt.ones(2, 3)
    for call, error, text in ((lambda: pt.slice_copy(x, 2), IndexError, "Dimension out of range"), (lambda: pt.slice_copy(x, 0, 0, 2, -1),
                              RuntimeError, "step must be positive, got -1"), (lambda: pt.slice_copy(x[0, 0]), RuntimeError, "")):
        with pytest.raises(error, match=f"^slice_copy: .*{text}"):
            call()
    for call, error in ((lambda: pt.transpose_copy(x, 0, 2), IndexError), (lambda: pt.permute_copy(x, (0,)), RuntimeError),
                        (lambda: pt.select_copy(x, 0, 2), IndexError), (lambda: pt.narrow_copy(x, 2, 0, 1), IndexError),
                        (lambda: pt.narrow_copy(x, 2, 0, 1), RuntimeError), (lambda: pt.t_copy(x[None]), RuntimeError),
                        (lambda: pt.expand_copy(x, (3, 3)), RuntimeError), (lambda: pt.alias_copy([1]), TypeError)):
        with pytest.raises(error, match=r"^\w+_copy: "):
            call()


@pytest.mark.parametrize(("name", "argument"), [("unsafe_split", 2), ("unsafe_chunk", 2),
                                                ("unsafe_split_with_sizes", [2, 1])])
def test_unsafe_splits(name, argument):
    x = pt.arange(6.0, dtype=pt.float64).view(3, 2).requires_grad_()
    for function in (getattr(pt, name), getattr(pt.Tensor, name)):
        a, b = function(x * 1, argument)
        assert a.tolist() == [[0, 1], [2, 3]] and b.tolist() == [[4, 5]]
        assert a.grad_fn.name() == ("UnsafeSplitWithSizesBackward0" if name.endswith("sizes") else
                                    "UnsafeSplitBackward0")
        a.mul_(3)                           # which split would refuse
        (g,) = pt.autograd.grad(a.sum() + b.sum(), x)
        assert g.tolist() == [[3, 3], [3, 3], [1, 1]]
    assert pt.autograd.gradcheck(lambda x: getattr(pt, name)(x, argument), (x,))
    with pytest.raises(RuntimeError, match=f"^{name}: "):
        getattr(pt, name)(x, [1, 1] if name.endswith("sizes") else -1)
    if not name.endswith("sizes"):
        with pytest.raises(TypeError, match=f"^{name}: .* must be int, got list"):
            getattr(pt, name)(x, [2, 1])


def test_windows_of_any_layout():
    """Strides speak of the memory."""
    x = pt.arange(12.0, dtype=pt.float64).view(3, 4)
    assert pt.as_strided_copy(x.t(), (2, 2), (4, 1), 1).tolist() == [[1, 2], [5, 6]]


def test_split_by_its_keywords():
    x = pt.arange(5)
    for parts_ in (pt.split(tensor=x, split_size_or_sections=2), x.split(split_size=2), x.split(split_size=2, dim=0),
                   x.split(split_size_or_sections=2), pt.split(x, split_size=[2, 2, 1])):
        assert [p.tolist() for p in parts_] == [[0, 1], [2, 3], [4]]
    for call in (lambda: x.split(2, split_size=2), lambda: x.split(), lambda: x.split(split=2)):
        with pytest.raises(TypeError, match="split"):
            call()


def test_narrow_by_a_tensor():
    x = pt.arange(5)
    assert x.narrow(0, pt.tensor(1), 2).tolist() == [1, 2]
    for start in (pt.tensor([1]), pt.tensor(True), pt.tensor(1.0)):
        with pytest.raises(RuntimeError, match="narrow: start must be an int or a 0-d tensor of integers"):
            x.narrow(0, start, 2)


@pytest.mark.parametrize("dtype", ["float32", "int64", "bool", "complex64"])
@pytest.mark.parametrize("shape", [(3, 4), (0, 3), (5,), (2, 3, 4), ()])
def test_nonzero_static(shape, dtype):
    rng = np.random.default_rng(0)
    x = np.asarray(rng.random(shape) < 0.5).astype(dtype)
    found = np.argwhere(x)
    for size in (0, 2, 30):
        for t in (pt.tensor(x), pt.tensor(x.T.copy()).T if x.ndim < 3 else pt.tensor(x)):
            got = pt.nonzero_static(t, size=size, fill_value=-7).numpy()
            assert got.shape == (size, x.ndim) and got.dtype == np.int64
            n = min(size, len(found))
            np.testing.assert_array_equal(got[:n], found[:n])
            assert (got[n:] == -7).all()
    assert pt.nonzero_static(pt.empty(shape, device="meta"), size=3).shape == (3, len(shape))
    with pytest.raises(RuntimeError, match="nonzero_static: size must be non-negative"):
        pt.nonzero_static(pt.ones(2), size=-1)


def test_fill():
    x = pt.arange(6.0).view(2, 3).t()
    got = pt.fill(x, 2.5)
    assert got.stride() == x.stride() and (got == 2.5).all() and x[0, 1] == 3
    assert pt.fill(pt.arange(2), 2.5).tolist() == [2, 2]
    a, v = pt.ones(3, requires_grad=True), pt.tensor(2.0, requires_grad=True)
    ga, gv = pt.autograd.grad(pt.fill(a, v).sum(), (a, v))
    assert ga.tolist() == [0, 0, 0] and gv.item() == 3
    with pytest.raises(RuntimeError, match="value must be a number or a 0-d tensor"):
        pt.fill(x, pt.ones(1))


def test_where_and_masked_fill_stop_nan():
    """The gradient of what was not chosen is 0, whatever comes in."""
    mask = pt.tensor([True, False])
    for function, want in ((lambda x: pt.where(mask, x, 0.0), [1, 0]), (lambda x: pt.where(mask, 0.0, x), [0, 1]),
                           (lambda x: x.masked_fill(mask, 0.0), [0, 1])):
        x = pt.ones(2, dtype=pt.float64, requires_grad=True)
        for create in (False, True):
            (g,) = pt.autograd.grad(function(x), x, pt.tensor([np.nan, np.nan]).double(), create_graph=create)
            assert g.isnan().tolist() == [bool(w) for w in want]
        assert pt.autograd.gradcheck(function, (x,)) and pt.autograd.gradgradcheck(function, (x,))


@pytest.mark.parametrize("layout", [pt.contiguous_format, pt.channels_last])
@pytest.mark.parametrize(("call", "shape"), [
    (lambda x: pt.pixel_shuffle(x, 1), (1, 2, 3, 3)), (lambda x: pt.pixel_shuffle(x, 2), (1, 4, 1, 1)),
    (lambda x: pt.pixel_unshuffle(x, 1), (1, 2, 3, 3)), (lambda x: pt.pixel_unshuffle(x, 2), (1, 1, 2, 2)),
    (lambda x: pt.channel_shuffle(x, 1), (2, 4, 3, 3)), (lambda x: pt.channel_shuffle(x, 4), (2, 4, 3, 3))])
def test_shuffles_where_nothing_moves_are_copies(call, shape, layout):
    x = pt.ones(shape).contiguous(memory_format=layout)
    y = call(x)
    y.zero_()
    assert (x == 1).all()
