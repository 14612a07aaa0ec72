"""Memory formats and the constructors by type, against torch's documented behaviour."""
import pickle

import numpy as np
import pytest

import ptcore as pt

pytestmark = pytest.mark.core


def test_channels_last():
    x = pt.arange(120.0).reshape(2, 3, 4, 5)
    y = x.contiguous(memory_format=pt.channels_last)
    assert y.stride() == (60, 1, 15, 3)
    assert y.is_contiguous(memory_format=pt.channels_last) and not y.is_contiguous()
    assert x.is_contiguous() and not x.is_contiguous(memory_format=pt.channels_last)
    assert pt.equal(x, y)
    assert y.contiguous(memory_format=pt.channels_last) is y
    assert y.contiguous().stride() == x.stride()
    assert x.to(memory_format=pt.channels_last).stride() == y.stride()
    assert x.to(pt.float64, memory_format=pt.channels_last).stride() == y.stride()
    assert x.double(memory_format=pt.channels_last).stride() == y.stride()
    assert pt.empty(2, 3, 4, 5, memory_format=pt.channels_last).stride() == y.stride()
    assert pt.zeros_like(x, memory_format=pt.channels_last).stride() == y.stride()
    assert pt.rand_like(x, memory_format=pt.channels_last).stride() == y.stride()


def test_other_formats():
    x = pt.ones(2, 3)
    assert x.contiguous(memory_format=pt.contiguous_format) is x
    assert x.to(memory_format=pt.preserve_format) is x
    assert pt.zeros_like(x, memory_format=pt.preserve_format).stride() == (3, 1)
    assert pt.ones(1, 2, 3, 4, 5).contiguous(memory_format=pt.channels_last_3d).stride() == (120, 1, 40, 10, 2)
    assert repr(pt.channels_last) == "ptcore.channels_last"
    assert isinstance(pt.channels_last, pt.memory_format)
    assert pickle.loads(pickle.dumps(pt.channels_last)) is pt.channels_last


def test_gradient_passes_a_format():
    x = pt.randn(1, 2, 3, 3, requires_grad=True)
    x.contiguous(memory_format=pt.channels_last).mul(2).sum().backward()
    assert (x.grad == 2).all()


@pytest.mark.parametrize("call", [
    lambda: pt.ones(2, 3).contiguous(memory_format=pt.channels_last),
    lambda: pt.ones(2, 3).to(memory_format=pt.channels_last), lambda: pt.empty(2, memory_format=pt.channels_last),
    lambda: pt.ones(2).is_contiguous(memory_format="x"), lambda: pt.ones(2).contiguous(memory_format=3)])
def test_errors(call):
    with pytest.raises((RuntimeError, TypeError), match=r"^(contiguous|to|empty|is_contiguous): "):
        call()


@pytest.mark.parametrize(("name", "dtype"), [
    ("FloatTensor", "float32"), ("DoubleTensor", "float64"), ("HalfTensor", "float16"), ("BFloat16Tensor", "bfloat16"),
    ("ByteTensor", "uint8"), ("CharTensor", "int8"), ("ShortTensor", "int16"), ("IntTensor", "int32"),
    ("LongTensor", "int64"), ("BoolTensor", "bool")])
def test_types(name, dtype):
    kind, dtype = getattr(pt, name), getattr(pt, dtype)
    assert kind().shape == (0,) and kind().dtype is dtype
    assert kind(2, 3).shape == (2, 3) and kind(pt.Size([2, 3])).shape == (2, 3)
    x = kind([1, 0])
    assert x.dtype is dtype and x.tolist() == [1, 0] and type(x) is pt.Tensor
    assert isinstance(x, kind) and not isinstance(x, pt.FloatTensor if name != "FloatTensor" else pt.LongTensor)
    assert kind(np.array([1, 1])).dtype is dtype
    assert x.type() == f"ptcore.{name}"
    with pytest.raises(TypeError, match=name):
        kind("x")
    with pytest.raises(TypeError, match=name):
        kind(pt.ones(2, dtype=pt.complex64))


def test_new():
    x = pt.ones(2, dtype=pt.int32)
    assert x.new(2, 3).shape == (2, 3) and x.new().shape == (0,) and x.new(pt.Size([4])).shape == (4,)
    assert x.new([1, 2]).tolist() == [1, 2] and x.new([1, 2]).dtype is pt.int32


def test_broadcast_shapes():
    assert pt.broadcast_shapes((2, 1), (3,), 1) == (2, 3)
    with pytest.raises((RuntimeError, ValueError), match="broadcast_shapes"):
        pt.broadcast_shapes((2,), (3,))
    assert pt.is_nonzero(pt.tensor([2.0])) and not pt.is_nonzero(pt.tensor(0))
