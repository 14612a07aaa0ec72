"""Names of PyTorch's first years on a device: types of tensors, and functions of CUDA's runtime."""
import ctypes
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import ptcore


def test_types_make_tensors():
    x = ptcore.cuda.FloatTensor([[1, 2], [3, 4]])
    assert x.is_cuda
    assert x.dtype == ptcore.float32
    np.testing.assert_array_equal(x.cpu().numpy(), [[1, 2], [3, 4]])
    assert ptcore.cuda.LongTensor(2, 3).shape == (2, 3)
    assert ptcore.cuda.HalfTensor().shape == (0,)
    assert isinstance(x, ptcore.cuda.FloatTensor)
    assert not isinstance(x, ptcore.FloatTensor)
    assert not isinstance(x.cpu(), ptcore.cuda.FloatTensor)
    with pytest.raises(TypeError, match=r"^FloatTensor: data must be a float32 tensor on cuda, got float32 on cpu"):
        ptcore.cuda.FloatTensor(x.cpu())
    with pytest.raises(RuntimeError, match="device must be cuda, got cpu"):
        ptcore.cuda.FloatTensor(2, device="cpu")


def test_types_move_tensors():
    x = ptcore.tensor([1.5, 2.5])
    for there in (ptcore.cuda.IntTensor, "ptcore.cuda.IntTensor", "torch.cuda.IntTensor"):
        y = x.type(there)
        assert y.is_cuda
        assert y.type() == "ptcore.cuda.IntTensor"
        assert y.type("ptcore.FloatTensor").tolist() == [1, 2]
        assert not y.type(ptcore.FloatTensor).is_cuda
        assert y.type(ptcore.float64).is_cuda
    with pytest.raises(ValueError, match="no type of tensors"):
        x.type("ptcore.rocket.IntTensor")


def test_a_type_as_default():
    try:
        ptcore.set_default_tensor_type("torch.cuda.DoubleTensor")
        x = ptcore.ones(2)
        assert x.is_cuda
        assert x.dtype == ptcore.float64
    finally:
        ptcore.set_default_tensor_type(ptcore.FloatTensor)
    assert not ptcore.ones(2).is_cuda


def test_runtime():
    cudart = ptcore.cuda.cudart()
    free, total = cudart.cudaMemGetInfo(0)
    assert 0 < free <= total == ptcore.cuda.mem_get_info(0)[1]
    memory = np.zeros(1 << 16, np.uint8)
    assert cudart.cudaHostRegister(memory.ctypes.data, memory.nbytes, 0) == cudart.cudaError.success
    ptcore.cuda.check_error(cudart.cudaHostUnregister(memory.ctypes.data))
    with pytest.raises(ptcore.cuda.CudaError, match=r"\(\d+\)$"):
        ptcore.cuda.check_error(cudart.cudaHostUnregister(memory.ctypes.data))
    for f in (cudart.cudaProfilerStart, cudart.cudaProfilerStop):
        ptcore.cuda.check_error(f())
    stream = ctypes.c_void_p()
    ptcore.cuda.check_error(cudart.cudaStreamCreate(ctypes.addressof(stream)))
    with ptcore.cuda.stream(ptcore.cuda.ExternalStream(stream.value)):
        assert (ptcore.ones(3, device="cuda") + 1).sum().item() == 6
    ptcore.cuda.synchronize()
    ptcore.cuda.check_error(cudart.cudaStreamDestroy(stream.value))


def test_errors_of_the_runtime():
    ptcore.cuda.check_error(0)
    with pytest.raises(ptcore.cuda.CudaError, match=r"invalid argument \(1\)|\(1\)$"):
        ptcore.cuda.check_error(1)
    with pytest.raises(ptcore.cuda.CudaError, match=r"^unrecognized error code \(98765\)$"):
        ptcore.cuda.check_error(98765)


def test_handles_of_libraries():
    """One for each thread; after it was given, products of the library go on as before."""
    handles = [ptcore.cuda.current_blas_handle(), ptcore.cuda.current_solver_handle()]
    assert all(handles)
    x = ptcore.eye(3, device="cuda")
    ptcore.cuda.synchronize()
    with ptcore.cuda.stream(ptcore.cuda.Stream()):
        assert [ptcore.cuda.current_blas_handle(), ptcore.cuda.current_solver_handle()] == handles
        assert (x @ x).sum().item() == 3
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(ptcore.cuda.current_blas_handle).result() != handles[0]
