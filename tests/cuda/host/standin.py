"""The stand-in driver from Python: loaded by ctypes, with CUDA's functions by name and what only tests call.

A process that loads it has a CUDA driver from then on (``dlopen("libcuda.so.1")`` finds it by its soname): tests do
that in a process of their own, before anything looks for a driver.
"""

import ctypes as c
import os
from pathlib import Path

COUNTERS = ("launches host_to_device device_to_host device_to_device peer host_to_host fills allocations frees "
            "host_allocations host_frees synchronisations waits host_calls libraries graphs "
            "pieces pieces_released").split()
u64 = c.c_uint64


class DriverError(RuntimeError):
    """A function of the driver returned another status than 0: ``function``, ``code``."""

    def __init__(self, function, code):
        super().__init__(f"{function} returned {code}")
        self.function, self.code = function, code


def load(folder):
    """Loads ``libcuda.so.1`` from a folder of ``host_compiler.build_standin``: a ``Driver``."""
    return Driver(c.CDLL(os.fspath(Path(folder) / "libcuda.so.1"), c.RTLD_GLOBAL))


class Driver:
    """Functions raise ``DriverError``; ``call`` returns the status instead."""

    def __init__(self, library):
        self.library = library
        for name in ("standin_launched", "standin_launched_names", "standin_memory_used", "standin_blocks"):
            getattr(library, name).restype = c.c_size_t
        library.standin_last_failure.restype = c.c_char_p

    # ----------------------------------------------------------------------------------- for tests
    def seed(self, n):
        self.library.standin_seed(u64(n))

    def counters(self):
        """A dict of how often what was done."""
        out = (u64 * len(COUNTERS))()
        self.library.standin_counters(out, len(COUNTERS))
        return dict(zip(COUNTERS, out))

    def launched(self):
        """A dict of kernel names with how often each was launched."""
        n = self.library.standin_launched_names(None, c.c_size_t(0))
        text = c.create_string_buffer(n)
        self.library.standin_launched_names(text, c.c_size_t(n))
        return {name: self.library.standin_launched(name.encode()) for name in text.value.decode().split()}

    def blocks(self, name):
        """How many blocks the largest launch of a kernel had since this was asked last; 0: there was none."""
        return self.library.standin_blocks(name.encode())

    def set_memory_limit(self, device, nbytes):
        self.library.standin_set_memory_limit(device, u64(nbytes))

    def memory_used(self, device):
        return self.library.standin_memory_used(device)

    def fail_next(self, function, code, skip=0):
        """The next call of ``function`` but ``skip`` returns ``code``."""
        self.library.standin_fail_after(function.encode(), skip, code)

    def eager(self, eager=True):
        """Whether work runs as soon as it is queued."""
        self.library.standin_eager(int(eager))

    def idle(self, idle=True):
        """Whether kernels are not run, so that the time of an op is the library's own."""
        self.library.standin_idle(int(idle))

    def time_limit(self, seconds):
        self.library.standin_time_limit(c.c_double(seconds))

    def check(self):
        """How many allocations were written to outside of their bounds."""
        return self.library.standin_check()

    def failure(self):
        """The text of the last failure of a kernel or of memory."""
        return self.library.standin_last_failure().decode()

    def clear(self):
        self.library.standin_clear()

    def reset(self):
        self.library.standin_reset()

    # ----------------------------------------------------------------------------------- the driver
    def call(self, function, *args):
        return getattr(self.library, function)(*args)

    def __getattr__(self, function):
        if not function.startswith("cu"):
            raise AttributeError(function)
        for name in (function + "_v2", function):
            try:
                f = getattr(self.library, name)
                break
            except AttributeError:
                continue
        else:
            raise AttributeError(function)

        def checked(*args):
            code = f(*args)
            if code:
                raise DriverError(function, code)

        return checked

    def handle(self, function, *args):
        """What a function writes to its first argument, a pointer."""
        out = c.c_void_p()
        getattr(self, function)(c.byref(out), *args)
        return out

    def init(self, device=0):
        """cuInit, and the device's primary context made current; the context."""
        self.cuInit(0)
        context = self.handle("cuDevicePrimaryCtxRetain", device)
        self.cuCtxSetCurrent(context)
        return context

    def alloc(self, nbytes):
        out = u64()
        self.cuMemAlloc(c.byref(out), c.c_size_t(nbytes))
        return out.value

    def free(self, address):
        self.cuMemFree(u64(address))

    def upload(self, array):
        """A copy of a contiguous NumPy array in device memory."""
        address = self.alloc(array.nbytes)
        self.cuMemcpyHtoD(u64(address), c.c_void_p(array.ctypes.data), c.c_size_t(array.nbytes))
        return address

    def download(self, address, like):
        """Fills the NumPy array ``like`` from device memory, and returns it."""
        self.cuMemcpyDtoH(c.c_void_p(like.ctypes.data), u64(address), c.c_size_t(like.nbytes))
        return like

    def program(self, image):
        return self.handle("cuLibraryLoadData", image, None, None, 0, None, None, 0)

    def kernel(self, program, name):
        return self.handle("cuLibraryGetKernel", program, name.encode())

    def launch(self, kernel, grid, block, args, stream=None, shared=0):
        """``args`` is a ctypes structure; ``grid`` and ``block`` ints or tuples of three."""
        g, b = (x if isinstance(x, tuple) else (x, 1, 1) for x in (grid, block))
        parameters = (c.c_void_p * 1)(c.addressof(args))
        self.cuLaunchKernel(kernel, *g, *b, shared, stream, parameters, None)

    def stream(self, flags=1):
        return self.handle("cuStreamCreate", flags)

    def event(self, flags=0):
        return self.handle("cuEventCreate", flags)

    def sync(self):
        self.cuCtxSynchronize()
