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
            assert lib.storage.UntypedStorage.from_file(path, bool(shared)).nbytes() == 0
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


# -- streams and events of any device --------------------------------------------------------------------------------

@pytest.mark.skipif(pt.cuda.is_available(), reason="a machine with an accelerator")
def test_generic_streams():
    for lib in LIBS:
        for device in ((), ("cpu",), ("cpu:0",), (None,), (lib.device("cpu"),), ("meta",)):
            s, e = lib.Stream(*device), lib.Event(*device)
            kind = "meta" if device == ("meta",) else "cpu"
            assert isinstance(s, lib.Stream) and isinstance(e, lib.Event)
            assert s.device == lib.device(kind) == e.device and (s.device_index, s.stream_id, e.event_id) == (-1, 0, 0)
            if kind == "cpu":
                assert s.query() is True and s.synchronize() is None and e.query() is True and e.synchronize() is None
                assert s.wait_event(e) is None and e.wait() is None
                assert s == lib.Stream("cpu") and hash(s) == hash(lib.Stream("cpu")) and s != 3 and s is not None
                with s as entered:
                    assert entered is s
                for fails in (s.record_event, e.record, lambda s=s, lib=lib: s.wait_stream(lib.Stream())):
                    with pytest.raises(RuntimeError):
                        fails()
                with pytest.raises(ValueError):  # noqa: PT011
                    e.elapsed_time(e)
        lib.Stream(priority=-1), lib.Event("cpu", enable_timing=True, blocking=True, interprocess=True)
        for bad in (lambda lib: lib.Stream("no"), lambda lib: lib.Stream("cuda"), lambda lib: lib.Event("cuda")):
            with pytest.raises(RuntimeError):
                bad(lib)
        with pytest.raises(TypeError):
            lib.Stream("cpu", -1)
    assert issubclass(pt.cuda.Stream, pt.Stream) and issubclass(pt.cuda.Event, pt.Event)


def test_capabilities():
    mine, theirs = pt.cpu.get_capabilities(), torch.cpu.get_capabilities()
    assert pt.cpu.get_capabilities() is mine
    if sys.platform == "linux":
        # The processor's name as the kernel says it; PyTorch's library shortens some makers' names.
        assert {**mine, "cpu_name": None} == {**theirs, "cpu_name": None}
        assert theirs["cpu_name"].split()[0] in mine["cpu_name"]
    with pytest.raises(TypeError):
        mine["avx2"] = False


# -- hooks on several tensors ----------------------------------------------------------------------------------------

def hooked(lib, mode, run):
    """What the hook saw, and what was said around it."""
    seen = []
    a, b = [lib.tensor([1.0, 2.0], requires_grad=True) for _ in range(2)]
    c, d = a * b, a + 2 * b
    a.register_hook(lambda g: seen.append("a"))
    handle = lib.autograd.graph.register_multi_grad_hook(
        (a, b, c, d), lambda g: seen.append([x if x is None else x.tolist() for x in g] if mode == "all"
                                            else g.tolist()), mode=mode)
    run(lib, a, b, c, d)
    seen.append("then")
    handle.remove()
    (c.sum() + d.sum()).backward()
    return seen


@pytest.mark.parametrize("mode", ["all", "any"])
@pytest.mark.parametrize("run", [
    lambda lib, a, b, c, d: c.sum().backward(retain_graph=True),
    lambda lib, a, b, c, d: (c.sum() + d.sum()).backward(retain_graph=True),
    lambda lib, a, b, c, d: (c.sum() * d.sum()).backward(retain_graph=True),
    lambda lib, a, b, c, d: c.sum().backward(inputs=(a,), retain_graph=True),
    lambda lib, a, b, c, d: lib.autograd.grad((c * d).sum(), (d,), retain_graph=True),
    lambda lib, a, b, c, d: [c.sum().backward(retain_graph=True), d.sum().backward(retain_graph=True)],
    lambda lib, a, b, c, d: (a * 3).sum().backward(),
    lambda lib, a, b, c, d: lib.autograd.grad((c * d).sum(), (c, d), retain_graph=True),
    lambda lib, a, b, c, d: (c.sum() ** 2).backward(create_graph=True),
], ids=range(9))
def test_hook_on_several_tensors(mode, run):
    assert hooked(pt, mode, run) == hooked(torch, mode, run)


def test_hook_on_several_tensors_and_gradients_of_leaves():
    """PyTorch takes no leaves here."""
    seen = []
    a, b = pt.ones(2, requires_grad=True), pt.ones(2, requires_grad=True)
    c = a * b
    with pt.autograd.graph.register_multi_grad_hook((a, b, c), seen.append):
        pt.autograd.grad((c * 3).sum(), (a, c), retain_graph=True)
        pt.autograd.grad((c * 3).sum(), (a, b), retain_graph=True)
        (c * 3).sum().backward(retain_graph=True)
    (c * 3).sum().backward()
    assert [[x is None or x.tolist() for x in g] for g in seen] == [[[3, 3], True, [3, 3]], *[[[3, 3]] * 3] * 2]


def test_hook_on_several_tensors_errors():
    for lib in LIBS:
        f = lib.autograd.graph.register_multi_grad_hook
        with pytest.raises(ValueError, match="mode"):
            f((), print, mode="no")
        with pytest.raises((RuntimeError, AssertionError)):
            f((lib.ones(1),), print)
        f((lib.ones(1),), print, mode="any").remove()


# -- what is saved ---------------------------------------------------------------------------------------------------

def squared(lib, w):
    y = w * 3
    z = y * y
    y.zero_()
    return z


def output_saved(lib, w):
    return w.exp().mul_(2).sigmoid().add_(1)


def through_a_view(lib, w):
    y = w * 1
    z = y.sin() * y[0]
    y[0] = 5.0
    return z + y


def position_written(lib, w):
    i = lib.tensor([1, 0, 1])
    z = w[i] * 2
    i.zero_()
    return z


@pytest.mark.parametrize("program", [squared, output_saved, through_a_view, position_written])
def test_allow_mutation_on_saved_tensors(program):
    grads = []
    for lib in LIBS:
        w = lib.tensor([0.5, -1.0], dtype=lib.float64, requires_grad=True)
        with lib.autograd.graph.allow_mutation_on_saved_tensors() as context:
            program(lib, w).sum().backward()
            context.clear()
        grads.append(w.grad.tolist())
    assert grads[0] == pytest.approx(grads[1])


def test_increment_version():
    for lib in LIBS:
        x = lib.ones(3, 2)
        lib.autograd.graph.increment_version([x, x.t()])
        lib.autograd.graph.increment_version(lib.tensor(1.0))
        with pytest.raises(RuntimeError):
            lib.autograd.graph.increment_version([1.0])
        assert x._version == 2
        w = lib.ones(2, requires_grad=True)
        y = (w * 1).exp()
        lib.autograd.graph.increment_version(y)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            y.sum().backward()


def test_disable_saved_tensors_hooks():
    for lib in LIBS:
        graph = lib.autograd.graph

        @graph.disable_saved_tensors_hooks("none here")
        def function(graph=graph):
            with graph.saved_tensors_hooks(lambda t: t, lambda t: t):
                pass
        with pytest.raises(RuntimeError, match="none here"):
            function()
        with graph.saved_tensors_hooks(lambda t: t, lambda t: t):
            with pytest.raises(RuntimeError, match="nor here"):
                with graph.disable_saved_tensors_hooks("nor here"):
                    pass
        with graph.saved_tensors_hooks(lambda t: t, lambda t: t):       # as before
            pass


# -- places of storages in files ---------------------------------------------------------------------------------------

def test_register_package(tmp_path):
    script = """
import sys, importlib
lib = importlib.import_module(sys.argv[1])
def tagger(storage):
    return "shelf:3" if storage.nbytes() == 12 else None
def deserializer(storage, location):
    if location.startswith("shelf"):
        asked.append((location, storage.nbytes()))
        return lib.arange(3, dtype=lib.float32).untyped_storage()
asked = []
lib.serialization.register_package(5, tagger, deserializer)
lib.serialization.register_package(1000, lambda storage: "never", lambda storage, location: None)
lib.save([lib.zeros(3), lib.ones(2), lib.zeros(3)[1:]], sys.argv[2])
print([x.tolist() for x in lib.load(sys.argv[2])], sorted(asked))
print([x.tolist() for x in lib.load(sys.argv[2], map_location="cpu")])
print([x.tolist() for x in lib.load(sys.argv[2], map_location=lambda s, where: s if "shelf" in where else None)])
"""
    said = [subprocess.run([sys.executable, "-P", "-c", script, lib.__name__, str(tmp_path / lib.__name__)], check=True,
                           capture_output=True, text=True).stdout for lib in LIBS]
    assert said[0] == said[1] != ""
    for lib in LIBS:                    # without the package the place is unknown
        with pytest.raises(RuntimeError):
            lib.load(str(tmp_path / "torch"))
