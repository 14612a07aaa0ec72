"""Tensors of a device shared with other libraries: DLPack with its streams, ``__cuda_array_interface__``."""
import numpy as np
import pytest

import ptcore
from ptcore import cuda

NAMES = ("bool", "uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64", "float16", "bfloat16",
         "float32", "float64", "complex64", "complex128")


class Other:
    """An object of another library that has one of the two protocols alone."""

    def __init__(self, tensor, **changes):
        self.tensor, self.changes = tensor, changes


class Dl(Other):
    def __dlpack__(self, **kwargs):
        self.asked = kwargs
        return self.tensor.__dlpack__(**kwargs)

    def __dlpack_device__(self):
        return self.tensor.__dlpack_device__()


class Cai(Other):
    @property
    def __cuda_array_interface__(self):
        return {**self.tensor.__cuda_array_interface__, **self.changes}


@pytest.fixture(autouse=True)
def done():
    yield
    cuda.synchronize()


@pytest.mark.parametrize("share", [ptcore.from_dlpack, lambda x: ptcore.as_tensor(Cai(x))])
@pytest.mark.parametrize("dtype", NAMES)
def test_memory_is_shared(share, dtype):
    x = ptcore.tensor([[0, 1, 1], [0, 0, 1]]).to(getattr(ptcore, dtype)).cuda()
    for view in (x, x.t(), x[:, ::2], x[1], x.flip(0)[::1], x[0, 1], x[:0]):
        y = share(view)
        assert y.device == x.device and y.dtype is x.dtype and y.shape == view.shape
        assert y.tolist() == view.tolist()
        if view.numel():
            assert y.data_ptr() == view.data_ptr()
            assert y.stride() == view.stride()
    y = share(x)
    before = x.untyped_storage().nbytes()
    y.fill_(1)
    assert x.tolist() == ptcore.ones(2, 3, dtype=x.dtype).tolist()
    del x                                       # y keeps the memory
    assert y.untyped_storage().nbytes() == before
    assert y.cpu().tolist() == ptcore.ones(2, 3, dtype=y.dtype).tolist()


def test_memory_comes_back():
    x = ptcore.ones(1000, device="cuda")
    used = cuda.memory_allocated()
    y = ptcore.from_dlpack(x)
    z = ptcore.as_tensor(Cai(x))
    capsule = x.__dlpack__()
    del x
    assert cuda.memory_allocated() == used
    del y, z
    assert cuda.memory_allocated() == used
    del capsule                                 # nobody has consumed it
    assert cuda.memory_allocated() < used


def test_devices():
    x = ptcore.arange(3., device="cuda")
    assert x.__dlpack_device__() == (2, 0)
    assert ptcore.ones(2).pin_memory().__dlpack_device__() == (3, 0)
    assert np.from_dlpack(ptcore.ones(2).pin_memory()).tolist() == [1, 1]
    assert ptcore.from_dlpack(ptcore.ones(2).pin_memory()).is_pinned()
    on_host = ptcore.from_dlpack(x, device="cpu")
    assert on_host.device.type == "cpu" and on_host.tolist() == [0, 1, 2]
    assert np.from_dlpack(x, device="cpu").tolist() == [0, 1, 2]            # by dl_device
    assert ptcore.from_dlpack(np.ones(2), device="cuda").device == x.device
    assert ptcore.from_dlpack(x, copy=True).data_ptr() != x.data_ptr()
    assert ptcore.from_dlpack(x, copy=False).data_ptr() == x.data_ptr()
    with pytest.raises(ValueError, match="must be copied from cuda:0 to cpu, but copy=False was given"):
        ptcore.from_dlpack(x, device="cpu", copy=False)
    with pytest.raises(BufferError, match="dl_device is cpu, but copy=False and the tensor is on cuda:0"):
        x.__dlpack__(dl_device=(1, 0), copy=False)
    with pytest.raises(BufferError, match=r"dl_device \(2, 77\)"):
        x.__dlpack__(dl_device=(2, 77))
    with pytest.raises(BufferError, match=r"dl_device \(8, 0\): it must be the CPU"):
        x.__dlpack__(dl_device=(8, 0))
    with pytest.raises(BufferError, match="requires grad"):
        ptcore.ones(1, device="cuda", requires_grad=True).__dlpack__()
    if cuda.device_count() > 1:
        y = ptcore.from_dlpack(x.to("cuda:1"))
        assert y.device.index == 1 and y.tolist() == [0, 1, 2]
        assert ptcore.from_dlpack(x, device="cuda:1").device.index == 1
        assert x.to("cuda:1").__dlpack_device__() == (2, 1)
        assert ptcore.as_tensor(Cai(x.to("cuda:1"))).device.index == 1


def test_streams_are_named():
    x = ptcore.ones(3, device="cuda")
    other = Dl(x)
    ptcore.from_dlpack(other)
    assert other.asked["stream"] == 1                           # the default one
    assert x.__cuda_array_interface__["stream"] == 1
    side = cuda.Stream()
    with cuda.stream(side):
        ptcore.from_dlpack(other)
        assert other.asked["stream"] == side.cuda_stream
        assert x.__cuda_array_interface__["stream"] == side.cuda_stream
    for stream in (None, -1, 1, side.cuda_stream):
        x.__dlpack__(stream=stream)
    for stream in (0, 2, -5):
        with pytest.raises(BufferError, match=f"stream must be None, -1, 1 or the address of a stream, got {stream}"):
            x.__dlpack__(stream=stream)
    with pytest.raises(TypeError, match="stream must be an int or None, got str"):
        x.__dlpack__(stream="1")
    with pytest.raises(ValueError, match="stream must be None or a positive number, got 0"):
        ptcore.as_tensor(Cai(x, stream=0))
    assert ptcore.as_tensor(Cai(x, stream=None)).tolist() == [1, 1, 1]


def by_dlpack(x, side):
    capsule = x.__dlpack__(stream=side.cuda_stream)             # on the producer's stream
    with cuda.stream(side):
        return ptcore.from_dlpack(capsule)


def by_interface(x, side):
    described = Cai(x)
    described.changes = x.__cuda_array_interface__              # names the producer's stream
    with cuda.stream(side):
        return ptcore.as_tensor(described)


@pytest.mark.parametrize("share", [by_dlpack, by_interface])
def test_readers_wait(order, share):
    """What a consumer's stream does comes behind what the producer's has been given."""
    side = cuda.Stream()
    for seed in range(12):
        order(seed)
        x = ptcore.zeros(500, device="cuda")
        for _ in range(4):
            x.add_(1)
        y = share(x, side)
        with cuda.stream(side):
            total = (y * 2).sum()
        side.synchronize()
        assert total.item() == 4000


def test_bad_interfaces():
    x = ptcore.ones(2, 3, device="cuda")
    with pytest.raises(AttributeError, match="must be on a CUDA device, got cpu"):
        _ = ptcore.ones(1).__cuda_array_interface__
    assert not hasattr(ptcore.ones(1), "__cuda_array_interface__")
    with pytest.raises(RuntimeError, match="requires grad"):
        _ = ptcore.ones(1, device="cuda", requires_grad=True).__cuda_array_interface__
    with pytest.raises(TypeError, match="typestr '<M8' has no tensor dtype"):
        ptcore.as_tensor(Cai(x, typestr="<M8"))
    with pytest.raises(ValueError, match=r"strides must be multiples of 4 bytes, got \(12, 3\)"):
        ptcore.as_tensor(Cai(x, strides=(12, 3)))
    with pytest.raises(ValueError, match="masked"):
        ptcore.as_tensor(Cai(x, mask=x))
    with pytest.raises(RuntimeError, match="the address 0x1000 is of no cuda device"):
        ptcore.as_tensor(Cai(x, data=(4096, False)))
    with pytest.raises(RuntimeError, match="read-only"):
        ptcore.as_tensor(Cai(x, data=(x.data_ptr(), True))).add_(1)
    assert ptcore.tensor(Cai(x)).data_ptr() != x.data_ptr()
    assert ptcore.asarray(Cai(x), copy=False).data_ptr() == x.data_ptr()
    assert ptcore.as_tensor(Cai(x), dtype=ptcore.float16, device="cpu").tolist() == [[1] * 3] * 2
