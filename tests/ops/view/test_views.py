"""View ops against NumPy: values, strides, memory shared both ways, and when a copy is due."""
import numpy as np
import pytest

import ptcore

pytestmark = pytest.mark.core
VIEWS = {
    "view": ((2, 6), lambda x: x.view(3, 4), lambda a: a.reshape(3, 4)),
    "reshape": ((2, 6), lambda x: x.reshape(4, -1), lambda a: a.reshape(4, -1)),
    "expand": ((3, 1), lambda x: x.expand(2, 3, 4), lambda a: np.broadcast_to(a, (2, 3, 4))),
    "transpose": ((2, 3, 4), lambda x: x.transpose(0, -1), lambda a: a.swapaxes(0, -1)),
    "permute": ((2, 3, 4), lambda x: x.permute(2, 0, 1), lambda a: a.transpose(2, 0, 1)),
    "squeeze": ((1, 3, 1), lambda x: x.squeeze(), lambda a: a.squeeze()),
    "squeeze_dim": ((1, 3, 1), lambda x: x.squeeze(0), lambda a: a.squeeze(0)),
    "unsqueeze": ((2, 3), lambda x: x.unsqueeze(1), lambda a: a[:, None]),
    "select": ((2, 3), lambda x: x.select(1, -1), lambda a: a[:, -1]),
    "slice": ((7, 3), lambda x: x[1:6:2], lambda a: a[1:6:2]),
    "reversed": ((7, 3), lambda x: x[::-1, ::-2], lambda a: a[::-1, ::-2]),
    "diagonal": ((3, 4), lambda x: x.diagonal(1), lambda a: a.diagonal(1)),
    "diagonal_dims": ((2, 3, 4), lambda x: x.diagonal(-1, 1, 2), lambda a: a.diagonal(-1, 1, 2)),
    "narrow": ((5, 2), lambda x: x.narrow(0, 1, 3), lambda a: a[1:4]),
    "t": ((2, 3), lambda x: x.t(), lambda a: a.T), "T": ((2, 3, 4), lambda x: x.T, lambda a: a.T),
    "mT": ((2, 3, 4), lambda x: x.mT, lambda a: a.swapaxes(-1, -2)),
    "movedim": ((2, 3, 4), lambda x: x.movedim(0, 2), lambda a: np.moveaxis(a, 0, 2)),
    "flatten": ((2, 3, 4), lambda x: x.flatten(1), lambda a: a.reshape(2, 12)),
    "unflatten": ((2, 12), lambda x: x.unflatten(1, (3, 4)), lambda a: a.reshape(2, 3, 4)),
    "split": ((5, 2), lambda x: x.split(2)[1], lambda a: a[2:4]),
    "chunk": ((6, 2), lambda x: x.chunk(3)[2], lambda a: a[4:]),
    "unbind": ((3, 2), lambda x: x.unbind(1)[1], lambda a: a[:, 1]),
    "as_strided": ((6,), lambda x: x.as_strided((2, 3), (1, 2), 0),
                   lambda a: np.lib.stride_tricks.as_strided(a, (2, 3), (8, 16))),
    "detach": ((2, 3), lambda x: x.detach(), lambda a: a[:]),
    "broadcast_to": ((3,), lambda x: x.broadcast_to((2, 3)), lambda a: np.broadcast_to(a, (2, 3))),
}


def pair(shape):
    a = np.arange(float(np.prod(shape))).reshape(shape)
    return a, ptcore.from_numpy(a.copy())


@pytest.mark.parametrize("name", VIEWS)
def test_values_and_strides(name):
    shape, view, reference = VIEWS[name]
    a, x = pair(shape)
    want, got = reference(a), view(x)
    np.testing.assert_array_equal(got.numpy(), want)
    for n, mine, theirs in zip(got.shape, got.stride(), want.strides):
        if n > 1:
            assert mine * 8 == theirs


@pytest.mark.parametrize("name", VIEWS)
def test_memory_is_shared(name):
    """A write to the base is seen in the view and the other way round; versions are one."""
    shape, view, _ = VIEWS[name]
    _, x = pair(shape)
    v = view(x)
    before = v.tolist()
    x.add_(100.0)
    assert v.numpy().min() >= 100.0
    assert np.array_equal(v.numpy(), np.array(before) + 100)
    assert v._version == x._version == 1
    if all(s for n, s in zip(v.shape, v.stride()) if n > 1):
        v.zero_()
        assert (x == 0).sum().item() == v.numel()
        assert x._version == 2
    else:
        with pytest.raises(RuntimeError, match="single memory location"):
            v.add_(1)


@pytest.mark.parametrize("name", [n for n in VIEWS if n != "as_strided"])       # that is one of the storage
def test_of_transposed_and_reversed(name):
    """The same window of memory that is laid out otherwise."""
    shape, view, reference = VIEWS[name]
    for lay in (lambda a: a.T, lambda a: a[::-1]):
        base = np.arange(float(np.prod(shape))).reshape(shape)
        a = lay(base).reshape(shape) if lay(base).shape != shape else lay(base)
        x = ptcore.from_numpy(a)
        try:
            got = view(x)
        except RuntimeError:
            assert name == "view", "only view may refuse a layout"
            continue
        np.testing.assert_array_equal(got.numpy(), reference(a))


def test_reshape_copies_only_where_it_must():
    _, x = pair((2, 3))
    assert x.reshape(6).data_ptr() == x.data_ptr()
    y = x.t().reshape(6)
    assert y.data_ptr() != x.data_ptr()
    assert y.tolist() == [0.0, 3.0, 1.0, 4.0, 2.0, 5.0]
    with pytest.raises(RuntimeError, match=r"view: shape .* is not compatible"):
        x.t().view(6)


def test_sixty_four_dims():
    x = ptcore.ones(2).reshape((1,) * 63 + (2,))
    assert x.ndim == 64
    with pytest.raises(ValueError, match=r"at most 64|fewer than 64"):
        x.unsqueeze(0)


def test_view_of_dtype():
    x = ptcore.tensor([1.0, -2.0])
    assert x.view(ptcore.int32).tolist() == np.float32([1, -2]).view(np.int32).tolist()
    assert x.view(ptcore.uint8).shape == (8,)
    x.view(ptcore.int32).zero_()
    assert x.tolist() == [0.0, 0.0]


def test_real_and_imag_are_views():
    z = ptcore.tensor([1 + 2j, 3 + 4j])
    z.real.mul_(10)
    z.imag[0] = 7
    assert z.tolist() == [10 + 7j, 30 + 4j]
    x = ptcore.ones(2)
    assert x.real is x
    with pytest.raises(RuntimeError, match="imag: input must be complex"):
        _ = x.imag


def test_real_and_imag_are_assigned():
    z = ptcore.tensor([1 + 2j, 3 + 4j])
    z.real = ptcore.tensor([5.0, 6.0])
    z.imag = 7
    assert z.tolist() == [5 + 7j, 6 + 7j]
    z.imag += z.real
    assert z.tolist() == [5 + 12j, 6 + 13j]
    x = ptcore.ones(2)
    x.real = np.zeros(2)
    assert x.tolist() == [0, 0]
    with pytest.raises(RuntimeError, match="imag: input must be complex"):
        x.imag = x
    with pytest.raises(RuntimeError, match="leaf"):
        ptcore.ones(2, dtype=ptcore.complex128, requires_grad=True).real = 1.0
    leaf = ptcore.tensor([2.0, 3.0], dtype=ptcore.float64, requires_grad=True)
    z = ptcore.zeros(2, dtype=ptcore.complex128)
    z.imag = leaf**2
    z.abs().sum().backward()
    assert leaf.grad.tolist() == [4, 6]


@pytest.mark.parametrize("name", ["view", "reshape", "expand", "permute", "flip", "repeat", "tile", "sum_to_size"])
def test_sizes_and_dims_are_given(name):
    """As in PyTorch; an empty tuple stands for none."""
    with pytest.raises(TypeError, match=rf"^{name}\(\) missing required argument"):
        getattr(ptcore.ones(()), name)()
    assert getattr(ptcore.ones(()), name)(()).shape == ()


def test_ravel_is_contiguous():
    x = ptcore.arange(10)[::2]
    flat = x.ravel()
    assert flat.is_contiguous() and flat.tolist() == [0, 2, 4, 6, 8] and flat.data_ptr() != x.data_ptr()
    x = ptcore.ones(2, 3)
    assert x.ravel().data_ptr() == x.data_ptr() and x.ravel()._base is x
    assert x[:, :1].ravel().is_contiguous() and ptcore.tensor(3).ravel().shape == (1,)


def test_resize_to_the_same_sizes_keeps_the_strides():
    x = ptcore.arange(6).view(2, 3).t()
    x.resize_(3, 2).resize_as_(x)
    assert x.stride() == (1, 3) and x.tolist() == [[0, 3], [1, 4], [2, 5]]
    assert x.resize_(3, 2, memory_format=ptcore.contiguous_format).stride() == (2, 1)
    like = ptcore.empty(1, 4, 2, 2).to(memory_format=ptcore.channels_last)
    assert ptcore.arange(16).resize_as_(like, memory_format=ptcore.preserve_format).stride() == (16, 1, 8, 4)
    assert ptcore.arange(16).resize_as_(like).stride() == (16, 4, 2, 1)


@pytest.mark.parametrize("key, dim, index, size", [
    ((0, 5), 1, 5, 5), ((0, 1, 15), 2, 15, 10), ((4, 5), 0, 4, 2), ((None, 3), 0, 3, 2),
    ((slice(None), 0, -11), 2, -11, 10), ((..., 12), 2, 12, 10), ((0, None, 7), 1, 7, 5), ((ptcore.tensor(1), 9), 1, 9, 5)])
def test_the_dim_of_a_bad_index_is_that_of_the_tensor(key, dim, index, size):
    with pytest.raises(IndexError, match=f"^index {index} is out of bounds for dimension {dim} with size {size}"):
        ptcore.ones(2, 5, 10)[key]


def test_sizes_that_broadcast_are_not_negative():
    for shapes in (((-1,), (2,)), ((-1,), (1,)), (-11,), (1, 1, -12), ((4, -11),)):
        with pytest.raises(ValueError, match=r"broadcast_shapes: Trying to create tensor with negative dimension: .* got -1"):
            ptcore.broadcast_shapes(*shapes)
