"""The few functions of CUDA's runtime that ``ptcore.cuda.cudart()`` gives, over the driver, and their errors; handles.

The runtime's codes of errors are the driver's.
"""
import enum

from ptcore.cuda.driver.loading import index_of, runtime

__all__ = ["CudaError", "check_error", "cudaStatus", "cudart", "current_blas_handle", "current_solver_handle"]


class cudaStatus:
    """Codes that PyTorch names."""

    SUCCESS: int = 0
    ERROR_NOT_READY: int = 34


class CudaError(RuntimeError):
    """A function of CUDA's runtime failed.

    Parameters
    ----------
    code : int
        What it returned.
    """

    def __init__(self, code):
        super().__init__(f"{_Runtime.cudaGetErrorString(code)} ({int(code)})")
        self._code = int(code)

    def __reduce__(self):
        return type(self), (self._code,)


def check_error(res):
    """Raises `CudaError` where what a function of CUDA's runtime returned is not 0.

    Parameters
    ----------
    res : int

    Examples
    --------
    >>> import ptcore
    >>> ptcore.cuda.check_error(ptcore.cuda.cudaStatus.SUCCESS)
    """
    if int(res):
        raise CudaError(res)


def _driver():
    runtime().check_device(-1)          # the same driver, started, with the current device's context
    from cuda.bindings import driver
    return driver


class _Error(enum.IntEnum):
    success = 0

    @classmethod
    def _missing_(cls, value):
        if not isinstance(value, int):
            return None
        code = int.__new__(cls, value)
        code._name_, code._value_ = f"error_{value}", value
        return code


class _Runtime:
    """Each function returns a code, of `cudaError`; 0 is success."""

    cudaError = _Error

    @staticmethod
    def cudaGetErrorString(error):
        try:
            from cuda.bindings import driver
            said = driver.cuGetErrorString(driver.CUresult(int(error)))[1]
        except (ImportError, ValueError, RuntimeError):     # a number that is no code; no driver
            said = None
        return said.decode() if said else "unrecognized error code"

    @staticmethod
    def cudaMemGetInfo(device):
        """(free, total) bytes of a device."""
        return runtime().memory_info(index_of(device, "cudaMemGetInfo"))

    @staticmethod
    def cudaProfilerStart():
        return _Error(int(_driver().cuProfilerStart()[0]))

    @staticmethod
    def cudaProfilerStop():
        return _Error(int(_driver().cuProfilerStop()[0]))

    @staticmethod
    def cudaHostRegister(pointer, nbytes, flags):
        """Page-locks memory of the host."""
        return _Error(int(_driver().cuMemHostRegister(pointer, nbytes, flags)[0]))

    @staticmethod
    def cudaHostUnregister(pointer):
        return _Error(int(_driver().cuMemHostUnregister(pointer)[0]))

    @staticmethod
    def cudaStreamCreate(pointer):
        """Writes the new stream to an address."""
        import ctypes
        result, stream = _driver().cuStreamCreate(0)
        if not int(result):
            ctypes.c_void_p.from_address(pointer).value = int(stream)
        return _Error(int(result))

    @staticmethod
    def cudaStreamDestroy(stream):
        return _Error(int(_driver().cuStreamDestroy(stream)[0]))


def cudart():
    """The functions of CUDA's runtime that PyTorch has under this name.

    Returns
    -------
    type
        With ``cudaMemGetInfo``, ``cudaHostRegister``, ``cudaHostUnregister``, ``cudaProfilerStart``,
        ``cudaProfilerStop``, ``cudaStreamCreate``, ``cudaStreamDestroy``, ``cudaGetErrorString`` and ``cudaError``.

    Raises
    ------
    RuntimeError
        Where there is no device.
    """
    runtime().initialise()
    return _Runtime


def _handle(name):
    index = runtime().current_device()
    runtime().check_device(index)
    from ptcore.cuda.driver import library_tables
    return library_tables.handle(name, index)


def current_blas_handle():
    """The address of this thread's ``cublasHandle_t`` for the current device, set to its current stream.

    Calls of cuBLAS by a program's own extension may use it; the stream and the workspace are to be left as they are.
    """
    return _handle("cublas")


def current_solver_handle():
    """The address of this thread's ``cusolverDnHandle_t`` for the current device, set to its current stream."""
    return _handle("cusolver")
