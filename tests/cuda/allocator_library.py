"""The allocators over a pretended driver (``allocator_driver.cpp``), compiled and driven from Python."""
import ctypes
from pathlib import Path

import pytest
from native import COMPILER, call

HERE = Path(__file__).parent
FOLDER = HERE.parents[1] / "ptcore" / "cuda" / "allocator"
SOURCES = [HERE / "allocator_driver.cpp", *(FOLDER / f for f in ("block_allocator.cpp", "allocator_text.cpp",
                                                                "pinned_pool.cpp"))]
FUNCTIONS = ("allocate release info create record query synchronize destroy device host_allocate host_release "
             "foreign_allocate foreign_release granularity reserve unreserve map unmap").split()
OUT_OF_MEMORY, NOT_READY = 2, 600
EXPANDABLE = "expandable_segments:True"


def compile_sources(out, *flags):
    flags = ["-std=c++17", "-Wall", "-Wextra", "-Werror", "-fPIC", "-pthread", f"-I{FOLDER}", *flags]
    objects = [f"{out}.{source.stem}.o" for source in SOURCES]
    for source, o in zip(SOURCES, objects):
        call([*COMPILER, *flags, "-c", str(source), "-o", o])
    shared = [] if "-DHAMMER" in flags else ["-shared"]
    call([*COMPILER, *flags, *shared, *objects, "-o", str(out)])


_loaded = []


@pytest.fixture(scope="session")
def library(tmp_path_factory):
    if not _loaded:
        _loaded.append(_load(tmp_path_factory.mktemp("allocator") / "lib.so"))
    return _loaded[0]


def _load(out):
    compile_sources(out, "-O2", "-fvisibility=hidden")
    lib = ctypes.CDLL(str(out))
    size, pointer, text, number = ctypes.c_size_t, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int
    for name, result, *arguments in [
            ("start", text, number, text, text, size, size, size),
            ("allocate", size, number, size, pointer, ctypes.c_uint64),
            ("release", number, number, pointer), ("record_stream", number, number, pointer, pointer),
            ("make_pool", None, number, ctypes.c_uint64, number, number, size), ("foreign_used", size),
            ("record_history", None, number, number, number, number, ctypes.c_uint, size, number),
            ("set_stack", None, ctypes.c_uint), ("history", text, number), ("stacks", text, number),
            ("retire_pool", None, number, ctypes.c_uint64), ("set_fraction", number, number, ctypes.c_double),
            ("fraction", ctypes.c_double, number), ("stats", text, number), ("snapshot", text, number),
            ("failure", text, ctypes.POINTER(size)), ("calls", ctypes.c_long, number),
            ("complete", None, number, pointer, ctypes.c_long), ("used", size, number),
            ("live_events", ctypes.c_long), ("mistakes", ctypes.c_long), ("pinned_allocate", size, size),
            ("pinned_release", number, pointer), ("pinned_record", number, pointer, number, pointer),
            ("pinned_owns", number, pointer), ("pinned_stats", text), ("host_used", size),
            ("steady", ctypes.c_double, ctypes.POINTER(size), number, number, ctypes.POINTER(ctypes.c_long)),
            ("hammer", ctypes.c_long, number, number)]:
        function = getattr(lib, name)
        function.restype, function.argtypes = result, arguments
    return lib


class Driver:
    """The library started anew."""

    def __init__(self, lib, settings="", backend="", limit=1 << 40, host_limit=1 << 40, devices=2, source=0):
        self.lib = lib
        problem = lib.start(devices, settings.encode(), backend.encode(), limit, host_limit, source)
        assert problem is None, problem.decode()

    def allocate(self, n, stream=0, device=0, pool=0):
        return self.lib.allocate(device, n, stream, pool)

    def release(self, address, device=0):
        return self.lib.release(device, address)

    def record(self, address, stream, device=0):
        assert self.lib.record_stream(device, address, stream)

    def stats(self, device=0):
        return parsed(self.lib.stats(device))

    def snapshot(self, device=0):
        rows = [tuple(map(int, line.split())) for line in self.lib.snapshot(device).decode().splitlines()]
        return [(*r[:4], r[4] if r[8] else None, *r[5:]) for r in rows]     # bytes asked for where there are some

    def failure(self):
        numbers = (ctypes.c_size_t * 9)()
        text = self.lib.failure(numbers).decode()
        names = "status requested segment device_free device_total allocated reserved cap largest_free".split()
        return dict(zip(names, numbers)) | {"text": text}

    def fail(self, function, status=OUT_OF_MEMORY, after=0, count=1):
        self.lib.fail(FUNCTIONS.index(function), status, after, count)

    def calls(self, *functions):
        return [self.lib.calls(FUNCTIONS.index(f)) for f in functions or FUNCTIONS]


def parsed(text):
    return {key: int(value) for key, value in (line.split() for line in text.decode().splitlines())}


@pytest.fixture
def start(library):
    def make(*args, **kwargs):
        return Driver(library, *args, **kwargs)
    yield make
    assert library.mistakes() == 0


def current(driver, *keys, device=0):
    stats = driver.stats(device)
    values = tuple(stats[k + ".all.current"] for k in keys)
    return values if len(values) > 1 else values[0]
