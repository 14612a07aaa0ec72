"""NVTX ranges and what NVML says, by stand-ins of their packages; without the packages the errors name the extra."""
import sys
import types
import uuid

import pytest

from ptcore import cuda
from ptcore.cuda import _monitor, nvtx

pytestmark = pytest.mark.core


def package(monkeypatch, name, **members):
    made = types.ModuleType(name)
    vars(made).update(members)
    monkeypatch.setitem(sys.modules, name, made)


@pytest.fixture
def calls(monkeypatch):
    seen = []
    package(monkeypatch, "nvtx", push_range=lambda m: seen.append(("push", m)), pop_range=lambda: seen.append(("pop",)),
            start_range=lambda m: ("range", m), end_range=lambda r: seen.append(("end", r)),
            mark=lambda m: seen.append(("mark", m)))
    return seen


def test_ranges(calls):
    assert nvtx.range_push("outer") == 0
    assert nvtx.range_push("inner") == 1
    assert nvtx.range_pop() == 1
    nvtx.mark("here")
    assert nvtx.range_pop() == 0
    assert nvtx.range_pop() == -1                       # none is open, and nothing is asked of the package
    handle = nvtx.range_start("anywhere")
    nvtx.range_end(handle)
    with pytest.raises(ZeroDivisionError), nvtx.range("step {} of {n}", 3, n=5):
        nvtx.mark(1 // 0)
    assert calls == [("push", "outer"), ("push", "inner"), ("pop",), ("mark", "here"), ("pop",),
                     ("end", ("range", "anywhere")), ("push", "step 3 of 5"), ("pop",)]


class NVMLError(Exception):
    pass


class Runtime:
    """Of two devices, which are others than the machine's first."""

    def uuid(self, index):
        return bytes([index]) * 16


@pytest.fixture
def nvml(monkeypatch):
    def handle(name):
        return uuid.UUID(name.removeprefix("GPU-")).bytes[0]

    def processes(h):
        made = [types.SimpleNamespace(pid=77, usedGpuMemory=3 << 20), types.SimpleNamespace(pid=8, usedGpuMemory=None)]
        return made[:h * 2]

    def clock(h, which):
        if h == 0:
            raise NVMLError("Not Supported")
        return 1000 * which

    package(monkeypatch, "pynvml", NVMLError=NVMLError, NVML_TEMPERATURE_GPU=0, NVML_CLOCK_SM=1, nvmlInit=lambda: None,
            nvmlDeviceGetHandleByUUID=handle,
            nvmlDeviceGetUtilizationRates=lambda h: types.SimpleNamespace(gpu=40 + h, memory=20 + h),
            nvmlDeviceGetMemoryInfo=lambda h: types.SimpleNamespace(used=h << 30),
            nvmlDeviceGetTemperature=lambda h, which: 50 + h, nvmlDeviceGetPowerUsage=lambda h: 70000 + h,
            nvmlDeviceGetClockInfo=clock, nvmlDeviceGetComputeRunningProcesses=processes)
    monkeypatch.setattr(_monitor, "runtime", Runtime)
    monkeypatch.setattr(_monitor, "index_of", lambda device, op: 0 if device is None else device)


def test_what_nvml_says(nvml):
    assert (cuda.utilization(), cuda.utilization(1)) == (40, 41)
    assert cuda.memory_usage(1) == 21
    assert cuda.device_memory_used(1) == 1 << 30
    assert cuda.temperature(1) == 51
    assert cuda.power_draw(1) == 70001
    assert cuda.clock_rate(1) == 1000
    assert cuda.list_gpu_processes(0) == "GPU:0\nno processes are running"
    assert cuda.list_gpu_processes(1).splitlines() == [
        "GPU:1", "process         77 uses        3.000 MB GPU memory",
        "process          8 uses        0.000 MB GPU memory"]
    with pytest.raises(RuntimeError, match="clock_rate: NVML has no answer: Not Supported"):
        cuda.clock_rate(0)


def test_packages_that_are_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "nvtx", None)
    monkeypatch.setitem(sys.modules, "pynvml", None)
    for call in (lambda: nvtx.range_push("x"), lambda: nvtx.mark("x")):
        with pytest.raises(RuntimeError, match=r"the package nvtx is missing.*pip install 'ptcore\[cuda13-tools\]'"):
            call()
    with pytest.raises(ModuleNotFoundError, match=r"temperature: the package nvidia-ml-py is missing.*cuda13-tools"):
        cuda.temperature()
