"""What NVML, the driver's library for monitoring, says of a device, by the package nvidia-ml-py (``cuda13-tools``)."""
import uuid

from ptcore.cuda.driver.loading import index_of, runtime

__all__ = ["clock_rate", "device_memory_used", "list_gpu_processes", "memory_usage", "power_draw", "temperature",
           "utilization"]


def _nvml(device, op):
    """The package, and its handle of a device, found by UUID, because a program may see only some of the devices."""
    try:
        import pynvml
    except ImportError as e:
        raise ModuleNotFoundError(f"{op}: the package nvidia-ml-py is missing ({e}): pip install "
                                  "'ptcore[cuda13-tools]'") from None
    index = index_of(device, op)
    try:
        pynvml.nvmlInit()
        return pynvml, pynvml.nvmlDeviceGetHandleByUUID(f"GPU-{uuid.UUID(bytes=runtime().uuid(index))}")
    except pynvml.NVMLError as e:
        raise RuntimeError(f"{op}: NVML has no answer for cuda:{index}: {e}") from None


def _asked(op, device, question):
    nvml, handle = _nvml(device, op)
    try:
        return question(nvml, handle)
    except nvml.NVMLError as e:
        raise RuntimeError(f"{op}: NVML has no answer: {e}") from None


def utilization(device=None):
    """Percent of the last sample's time in which a kernel ran.

    Parameters
    ----------
    device : device, str or int, optional
        The current device if None.

    Raises
    ------
    ModuleNotFoundError
        If the package nvidia-ml-py is not installed; so do the others.
    RuntimeError
        If the device does not tell it.
    """
    return _asked("utilization", device, lambda n, h: n.nvmlDeviceGetUtilizationRates(h).gpu)


def memory_usage(device=None):
    """Percent of the last sample's time in which memory was read or written; see `utilization`."""
    return _asked("memory_usage", device, lambda n, h: n.nvmlDeviceGetUtilizationRates(h).memory)


def device_memory_used(device=None):
    """Bytes of the device's memory that all processes use; see `utilization`."""
    return _asked("device_memory_used", device, lambda n, h: n.nvmlDeviceGetMemoryInfo(h).used)


def temperature(device=None):
    """Degrees Celsius; see `utilization`."""
    return _asked("temperature", device, lambda n, h: n.nvmlDeviceGetTemperature(h, n.NVML_TEMPERATURE_GPU))


def power_draw(device=None):
    """Milliwatts; see `utilization`."""
    return _asked("power_draw", device, lambda n, h: n.nvmlDeviceGetPowerUsage(h))


def clock_rate(device=None):
    """Megahertz of the multiprocessors; see `utilization`."""
    return _asked("clock_rate", device, lambda n, h: n.nvmlDeviceGetClockInfo(h, n.NVML_CLOCK_SM))


def list_gpu_processes(device=None):
    """A text of the processes that compute on a device and of the memory that each uses; see `utilization`."""
    index = index_of(device, "list_gpu_processes")
    running = _asked("list_gpu_processes", index, lambda n, h: n.nvmlDeviceGetComputeRunningProcesses(h))
    lines = [f"GPU:{index}"]
    lines += [f"process {p.pid:>10d} uses {(p.usedGpuMemory or 0) / 2**20:>12.3f} MB GPU memory" for p in running]
    return "\n".join(lines if running else [*lines, "no processes are running"])
