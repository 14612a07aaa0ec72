"""Strides of copies, dtypes named in other ways, and the kind of a number: as torch has them."""
import numpy as np
import pytest
from _walk import walk

import ptcore as pt

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.parity
LIBS = (pt, torch)
LAYOUTS = {
    "rows": lambda m: m.arange(24.0).reshape(2, 3, 4),
    "turned": lambda m: m.arange(24.0).reshape(2, 3, 4).permute(2, 0, 1),
    "matrix": lambda m: m.arange(12.0).reshape(3, 4).t(), "column": lambda m: m.arange(12.0).reshape(1, 12).t(),
    "channels last": lambda m: m.arange(120.0).reshape(2, 3, 4, 5).permute(0, 3, 1, 2),
    "gaps": lambda m: m.arange(24.0).reshape(4, 6).t()[::2], "every second": lambda m: m.arange(24.0)[::2],
    "gaps in the middle": lambda m: m.arange(120.0).reshape(2, 3, 4, 5).permute(0, 2, 3, 1)[:, ::2],
    "repeated": lambda m: m.arange(12.0).reshape(4, 3, 1).permute(2, 1, 0).expand(5, 3, 4),
    "repeated rows": lambda m: m.arange(3.0).expand(4, 3),
    "windows": lambda m: m.arange(16.0).reshape(4, 4).unfold(0, 2, 1),
    "empty": lambda m: m.zeros(0, 3).t(), "number": lambda m: m.tensor(2.0),
    "leaf": lambda m: m.ones(3, 4).t().requires_grad_()}
COPIES = {
    "clone": lambda m, x: x.clone(), "preserved": lambda m, x: x.clone(memory_format=m.preserve_format),
    "row-major clone": lambda m, x: x.clone(memory_format=m.contiguous_format),
    "contiguous": lambda m, x: x.contiguous(),
    "double": lambda m, x: x.double(), "to": lambda m, x: x.to(m.int64),
    "copied": lambda m, x: x.to(m.float32, copy=True),
    "row-major to": lambda m, x: x.to(m.float64, memory_format=m.contiguous_format), "half": lambda m, x: x.half(),
    "empty_like": lambda m, x: m.empty_like(x), "zeros_like": lambda m, x: m.zeros_like(x, dtype=m.int32),
    "ones_like": lambda m, x: m.ones_like(x), "full_like": lambda m, x: m.full_like(x, 3.0),
    "row-major like": lambda m, x: m.zeros_like(x, memory_format=m.contiguous_format),
    "reshape": lambda m, x: x.reshape(-1), "detach": lambda m, x: x.detach().clone()}


@walk("copy", COPIES)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_strides(layout, copy):
    mine, theirs = [COPIES[copy](m, LAYOUTS[layout](m)) for m in LIBS]
    assert (mine.shape, mine.dtype.name) == (theirs.shape, str(theirs.dtype)[6:])
    assert [s for n, s in zip(mine.shape, mine.stride()) if n > 1] == [s for n, s in zip(theirs.shape, theirs.stride())
                                                                      if n > 1]
    assert mine.is_contiguous() == theirs.is_contiguous()
    if copy != "empty_like":
        np.testing.assert_array_equal(mine.detach().numpy(), theirs.detach().numpy())


WINDOWED = {**LAYOUTS, "part": lambda m: m.arange(24.0).reshape(4, 6)[1:3, 2:5], "rear": lambda m: m.arange(24.0)[12:],
            "expanded": lambda m: m.arange(3.0).expand(4, 3), "column expanded": lambda m: m.ones(4, 1).expand(4, 3),
            "overlapping": lambda m: m.arange(24.0).unfold(0, 4, 2)}
# what torch gives its memory, places behind the elements, that nobody sees; and cannot differentiate
# (of repeated elements in another order than the rows' ours takes the rows')
NOT_WINDOWED = {"empty", "number", "leaf", "repeated"}
WINDOWS = [((2, 2), (5, 1), None), ((2, 2), (5, 1), 0), ((2, 2), (5, 1), 3), ((2, 3), (6, 1), None), ((0,), (1,), 1),
           ((), (), 7), ((2, 2), (10, 1), 20), ((3,), (0,), 2), ((1, 2), (0, 3), 1)]


@pytest.mark.parametrize("window", WINDOWS, ids=str)
@pytest.mark.parametrize("layout", sorted({*WINDOWED} - NOT_WINDOWED))
def test_scattered_windows(layout, window):
    """Which element a place of a window is."""
    def call(m):
        src = -1 - m.arange(float(np.prod(window[0]))).reshape(window[0])
        x = WINDOWED[layout](m)
        out = m.as_strided_scatter(x, src, *window)
        return out.detach().numpy(), tuple(s for n, s in zip(out.shape, out.stride()) if n > 1)

    try:
        want = call(torch)
    except RuntimeError:
        with pytest.raises(RuntimeError, match=r"^as_strided_scatter: .* (share memory|out of bounds)"):
            call(pt)
        return
    got = call(pt)
    np.testing.assert_array_equal(got[0], want[0])
    assert got[1] == want[1]


def test_scattered_windows_of_reversed_rows():
    """torch has no negative strides: places are those of the memory, of the last row first."""
    x = pt.arange(6.0).reshape(2, 3)[::-1]
    assert pt.as_strided_scatter(x, -pt.ones(2), (2,), (1,), 0).tolist() == [[3, 4, 5], [-1, -1, 2]]


def test_of_gaps_and_meta():
    """The order of the dims where the elements do not fill their memory; the same on meta, and through a graph."""
    x = pt.arange(24.0).reshape(4, 6).t()[::2]
    assert x.clone().stride() == x.double().stride() == pt.empty_like(x).stride() == (1, 3)
    assert pt.empty(4, 6, device="meta").t()[::2].clone().stride() == (1, 3)
    assert pt.ones(1).expand(3).clone().stride() == (1,)
    meta = pt.empty(3, 4, device="meta").t()
    assert meta.clone().stride() == meta.double().stride() == (1, 4)
    y = pt.ones(3, 4, requires_grad=True)
    (y.t().clone() * y.t().double()).sum().backward()
    assert y.grad.tolist() == [[2.0] * 4] * 3 and type(y.t().contiguous().grad_fn).__name__ == "Node"
    assert y.t().contiguous().grad_fn.name() == "CloneBackward0"


def last(x):
    return x.permute(0, 2, 3, 1).contiguous().permute(0, 3, 1, 2)


OPERANDS = {
    "rows": lambda m, x: x, "last": lambda m, x: last(x), "part of last": lambda m, x: last(m.cat([x, x], 3))[..., ::2],
    "turned": lambda m, x: x.permute(3, 2, 1, 0).contiguous().permute(3, 2, 1, 0),
    "swapped": lambda m, x: x.permute(1, 0, 3, 2).contiguous().permute(1, 0, 3, 2),
    "expanded": lambda m, x: x[:1].expand(2, 3, 4, 5), "expanded channels": lambda m, x: x[:, :1].expand(2, 3, 4, 5),
    "sliced": lambda m, x: m.cat([x, x], 3)[..., ::2], "sliced rows": lambda m, x: m.cat([x, x], 0)[::2],
    "channels": lambda m, x: x[:, :, :1, :1], "one channel": lambda m, x: last(x)[:, :1], "row": lambda m, x: x[0, 0, 0],
    "column": lambda m, x: x[0, :, :1, :1], "zero": lambda m, x: x[0, 0, 0, 0]}
ELEMENTWISE = {
    "add": lambda m, x, y: x + y, "mul": lambda m, x, y: y * x, "where": lambda m, x, y: m.where(x > y, x, y),
    "lt": lambda m, x, y: x < y, "addcmul": lambda m, x, y: m.addcmul(x, y, y), "exp": lambda m, x, y: x.exp(),
    "clamp": lambda m, x, y: x.clamp(max=y), "atan2": lambda m, x, y: m.atan2(x, y), "add twice": lambda m, x, y: x + y + y,
    "mixed": lambda m, x, y: x.double() * y, "number": lambda m, x, y: 2 - x, "pow": lambda m, x, y: x ** 2}


@walk("first", OPERANDS)
@pytest.mark.parametrize("second", OPERANDS)
def test_layout_of_elementwise(first, second):
    """The dims of a result follow each other as in the first operand that tells them apart."""
    for name, f in ELEMENTWISE.items():
        mine, theirs = [f(m, *[OPERANDS[k](m, m.arange(120.0).reshape(2, 3, 4, 5)) for k in (first, second)])
                        for m in LIBS]
        assert mine.shape == theirs.shape, name
        assert [s for n, s in zip(mine.shape, mine.stride()) if n > 1] == [
            s for n, s in zip(theirs.shape, theirs.stride()) if n > 1], name
        np.testing.assert_allclose(mine.numpy(), theirs.numpy(), rtol=1e-5, err_msg=name)


@pytest.mark.parametrize("call", [
    lambda m: m.zeros(2, dtype=float), lambda m: m.ones(2).to(float), lambda m: m.ones(2, dtype=complex),
    lambda m: m.arange(3, dtype=int), lambda m: m.tensor([1, 0], dtype=bool), lambda m: m.ones(2).sum(dtype=float),
    lambda m: m.full((2,), 2.5), lambda m: m.full((2,), 2), lambda m: m.full((2,), True), lambda m: m.full((2,), 1j),
    lambda m: m.full((2,), np.float64(2.5)), lambda m: m.full((2,), np.int32(2)),
    lambda m: m.full((2,), np.complex128(1j)),
    lambda m: m.full((2,), m.tensor(2.5, dtype=m.float64)), lambda m: m.full((2,), 1, dtype=m.float64),
    lambda m: m.ones(2).type(m.DoubleTensor), lambda m: m.ones(2).type(m.LongTensor), lambda m: m.ones(2).type(m.int8),
    lambda m: m.ones(2).type(f"{m.__name__}.IntTensor"), lambda m: m.ones(2).type("torch.HalfTensor"),
    lambda m: m.ones(2).type("torch.DoubleTensor").type()[-12:], lambda m: m.ones(2).type("torch.NoTensor"),
    lambda m: m.linalg.vecdot(m.ones(3, 4), m.arange(4.0)), lambda m: m.linalg.vecdot(m.ones(3, 1), m.ones(3)),
    lambda m: m.linalg.vecdot(m.tensor(2.0), m.tensor(3.0)), lambda m: m.linalg.vecdot(m.ones(0), m.ones(0)),
    lambda m: m.linalg.vecdot(m.full((2, 3), 1 + 1j), m.full((2, 3), 1 - 2j), dim=0),
    lambda m: m.linalg.vecdot(m.ones(2).long(), m.ones(2).long()),
    lambda m: m.linalg.vecdot(m.ones(2), m.ones(2).double()),
    lambda m: m.tensor(2.0).unfold(0, 1, 1), lambda m: m.arange(6).unfold(0, 2, 3),
    lambda m: m.ones(2, 3).unfold(-1, 3, 1),
    lambda m: m.zeros(3, 0).unfold(0, 2, 1), lambda m: m.arange(4).unfold(0, 5, 1),
    lambda m: m.arange(4).unfold(0, 2, 0),
    lambda m: m.arange(4).unfold(1, 2, 1), lambda m: m.arange(4).unfold(0, -1, 1),
    lambda m: m.nn.ParameterDict({"a": m.nn.Parameter(m.ones(2, 3))}).__repr__().replace("ptcore", "torch")])
def test_call(call):
    try:
        theirs = call(torch)
    except Exception as e:
        with pytest.raises(type(e)):
            call(pt)
        return
    mine = call(pt)
    if isinstance(theirs, str):
        assert mine == theirs
        return
    assert (mine.shape, mine.dtype.name) == (theirs.shape, str(theirs.dtype)[6:])
    np.testing.assert_array_equal(mine.numpy(), theirs.numpy())


def test_windows_are_a_view():
    for m in LIBS:
        x = m.arange(6.0)
        x.unfold(0, 2, 2)[1] = -1
        assert x.tolist() == [0, 1, -1, -1, 4, 5]
        y = m.ones(4, requires_grad=True)
        z = y * 1
        z.unfold(0, 2, 2).mul_(3)
        z.sum().backward()
        assert y.grad.tolist() == [3.0] * 4
        assert y.unfold(0, 2, 1).grad_fn.name() == "UnfoldBackward0"
