"""Names that programs for several devices or versions ask for: settings, types, streams of the CPU, files as memory."""
import itertools
import subprocess
import sys
import threading

import numpy as np
import pytest

import ptcore as pt

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.parity
LIBS = (pt, torch)


def outcome(f, lib):
    """The result or the class of the error."""
    try:
        return f(lib)
    except Exception as e:
        return next(c for c in (TypeError, ValueError, RuntimeError, AttributeError, Exception) if isinstance(e, c))


# -- layouts and Tensor --------------------------------------------------------------------------------------------

def layouts(lib):
    for shape in [(), (3,), (2, 3), (2, 3, 5), (2, 3, 5, 7), (1, 2, 3, 4), (2, 1, 1, 3), (2, 3, 1, 1), (0, 3),
                  (2, 2, 2)]:
        x = lib.zeros(shape)
        for dims in itertools.permutations(range(len(shape))):
            yield x.permute(dims)
    yield from (lib.zeros(3, 1).expand(3, 4), lib.zeros(1, 1).expand(3, 4), lib.zeros(2, 3, 4)[:, :, ::2],
                lib.zeros(2, 3, 4, 5).contiguous(memory_format=lib.channels_last),
                lib.zeros(2, 1, 4, 5).contiguous(memory_format=lib.channels_last),
                lib.as_strided(lib.zeros(40), (3, 3), (2, 2)), lib.as_strided(lib.zeros(40), (2, 3, 3), (2, 2, 3)))


@pytest.mark.parametrize("check", [False, True, ["contiguous_format"], ["channels_last"],
                                   ["contiguous_format", "channels_last"], [], "wrong", [3]])
def test_dim_order(check):
    def of(lib, x):
        formats = [getattr(lib, f, f) if isinstance(f, str) else f for f in check] if isinstance(check, list) else check
        return outcome(lambda _: x.dim_order(ambiguity_check=formats), lib)
    for a, b in zip(layouts(pt), layouts(torch), strict=True):
        assert of(pt, a) == of(torch, b), (a.shape, a.stride())


def test_small_methods():
    for lib in LIBS:
        x = lib.arange(6).view(2, 3)
        assert reversed(x).tolist() == [[3, 4, 5], [0, 1, 2]] and reversed(x[0, 1]).tolist() == 1
        assert x.const_data_ptr() == x.data_ptr()
        a, b = lib.zeros(2, requires_grad=True), lib.ones(2)
        with lib.no_grad():
            got = a.module_load(b)
        assert got.tolist() == [1, 1] and a.tolist() == [1, 1] and not got.requires_grad
        assert got.data_ptr() == a.data_ptr() and a.module_load(b, assign=True).data_ptr() == b.data_ptr()


# -- settings ------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("mode", ["default", "warn", "error", 0, 1, 2, True, 3, -1, "no", 1.0, None])
def test_deterministic_debug_mode(mode):
    def run(lib):
        lib.set_deterministic_debug_mode(mode)
        return (lib.get_deterministic_debug_mode(), lib.are_deterministic_algorithms_enabled(),
                lib.is_deterministic_algorithms_warn_only_enabled())
    try:
        assert outcome(run, pt) == outcome(run, torch)
    finally:
        for lib in LIBS:
            lib.set_deterministic_debug_mode(0)


def test_warn_always():
    for lib in LIBS:
        lib.set_warn_always(True)
        assert lib.is_warn_always_enabled() is True
        lib.set_warn_always(False)
        assert lib.is_warn_always_enabled() is False
        with pytest.raises(RuntimeError):
            lib.set_warn_always(1)


def test_typename():
    things = (lambda lib: lib.tensor([1]), lambda lib: lib.ones(1, dtype=lib.bfloat16), lambda lib: lib.nn.Linear,
              lambda lib: lib.nn.Linear(1, 1), lambda lib: int, lambda lib: 3, lambda lib: np.ndarray, lambda lib: "x",
              lambda lib: np.zeros(1), lambda lib: len)
    for thing in things:
        assert pt.typename(thing(pt)) == torch.typename(thing(torch)).replace("torch.", "ptcore.")


def test_is_storage():
    for thing in (lambda lib: lib.ones(1).untyped_storage(), lambda lib: lib.ones(1), lambda lib: [1],
                  lambda lib: None):
        assert pt.is_storage(thing(pt)) == torch.is_storage(thing(torch))


def test_get_device_module():
    for lib in LIBS:
        assert lib.get_device_module("cpu") is lib.cpu and lib.get_device_module(lib.device("cuda", 0)) is lib.cuda
        assert lib.get_device_module() is (lib.cuda if lib.cuda.is_available() else lib.cpu)
        for bad in (3, "meta"):
            with pytest.raises(RuntimeError):
                lib.get_device_module(bad)


def test_generator_of_workers():
    for lib in LIBS:
        assert lib.thread_safe_generator() is None and lib.random.thread_safe_generator() is None


def test_to_dlpack():
    x = pt.arange(3)
    assert torch.from_dlpack(pt.to_dlpack(x)).tolist() == [0, 1, 2]
    assert pt.from_dlpack(torch.to_dlpack(torch.arange(3))).tolist() == [0, 1, 2]


def test_errors_of_devices():
    assert issubclass(pt.AcceleratorError, RuntimeError) and issubclass(torch.AcceleratorError, RuntimeError)


# -- devices -------------------------------------------------------------------------------------------------------

def test_streams_of_the_cpu():
    for lib in LIBS:
        cpu = lib.cpu
        assert cpu.is_initialized() is True and cpu.set_device("cpu") is None
        before, s = cpu.current_stream(), cpu.Stream()
        with cpu.stream(s):
            assert cpu.current_stream() is s
            with cpu.StreamContext(None):
                assert cpu.current_stream("cpu") is s
        assert cpu.current_stream() is before
        e = cpu.Event()
        assert (e.query(), e.record(), e.synchronize(), e.wait(), s.wait_stream(before), s.wait_event(e)) == (
            True, *[None] * 5)
        assert s.record_event() is None


@pytest.mark.skipif(pt.cuda.is_available(), reason="a machine with an accelerator")
def test_accelerator_without_one():
    for name in ("memory_allocated", "max_memory_allocated", "memory_reserved", "max_memory_reserved", "memory_stats",
                 "get_memory_info", "empty_cache", "empty_host_cache", "reset_peak_memory_stats", "current_device_idx",
                 "reset_accumulated_memory_stats"):
        with pytest.raises(RuntimeError, match=f"^{name}|current_device_index: no accelerator"):
            getattr(pt.accelerator, name)()
    for lib in LIBS:
        with lib.accelerator.device_index(None):
            pass


# -- autograd ------------------------------------------------------------------------------------------------------

def test_multithreading():
    for lib in LIBS:
        mode = lib.autograd.grad_mode.set_multithreading_enabled
        assert mode is getattr(lib.autograd, "set_multithreading_enabled", mode)
        threads = []

        @mode(False)
        def run(lib=lib, threads=threads):
            x = lib.ones(1, requires_grad=True)
            x.register_hook(lambda g: threads.append(threading.get_ident()))
            x.sum().backward()
            return x.grad.tolist()

        assert run() == [1] and threads == [threading.get_ident()]
        with mode(False):
            assert run() == [1]
        assert isinstance(mode(True).clone(), mode)
        with lib.autograd.grad_mode.no_grad():
            assert not lib.is_grad_enabled()


# -- memory of files -----------------------------------------------------------------------------------------------

@pytest.mark.parametrize("shared", [None, False, True])
def test_from_file(shared, tmp_path):
    for lib in LIBS:
        path = str(tmp_path / lib.__name__)
        np.arange(4.0).tofile(path)
        x = lib.from_file(path, shared, 3, dtype=lib.float64)
        assert x.tolist() == [0, 1, 2] and x.shape == (3,) and not x.requires_grad
        x[0] = 7
        assert np.fromfile(path)[0] == (7 if shared else 0)
        assert lib.from_file(path, shared=shared, size=2).dtype is lib.float32
        assert lib.from_file(path, shared=shared, size=0).shape == (0,)
        if shared:
            assert lib.from_file(path, shared=True, size=6, dtype=lib.float64).tolist() == [7, 1, 2, 3, 0, 0]
            new = str(tmp_path / f"{lib.__name__}_new")
            lib.from_file(new, shared=True, size=2, dtype=lib.int32).fill_(3)
            assert np.fromfile(new, "int32").tolist() == [3, 3]
        else:
            for name, size in ((path, 9), (str(tmp_path / "none"), 1), (path, -1)):
                with pytest.raises(RuntimeError):
                    lib.from_file(name, shared, size)


def test_from_file_outlives_its_name(tmp_path):
    path = tmp_path / "numbers"
    np.arange(3).tofile(path)
    x = pt.from_file(path, size=3, dtype=pt.int64)
    path.unlink()
    assert (x + 1).tolist() == [1, 2, 3]
    with pytest.raises(RuntimeError, match="from_file: device must be the CPU"):
        pt.from_file(path, size=1, device="meta")


def test_names_are_read_late():
    script = ("import sys, ptcore as pt\n"
              "pt.use_deterministic_algorithms(False)\n"
              "assert not any(m in sys.modules for m in ('ptcore.cuda', 'ptcore.accelerator', 'ptcore.serialization'))")
    subprocess.run([sys.executable, "-P", "-c", script], check=True)
