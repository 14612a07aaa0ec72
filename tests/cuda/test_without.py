"""Where there is no CUDA device: the answers, the errors, and what is not imported."""
import subprocess
import sys

import pytest

import ptcore

pytestmark = pytest.mark.skipif(ptcore.cuda.is_available(), reason="there is a device")


def run(code):
    return subprocess.run([sys.executable, "-P", "-c", code], text=True, capture_output=True, check=True).stdout.strip()


def test_import_loads_nothing_of_cuda():
    loaded = run("import sys, ptcore; ptcore.cuda.is_available(); ptcore.cuda.device_count();"
                 "print([m for m in sys.modules if m.split('.')[0] in ('cuda', 'nvidia') or"
                 " m == 'ptcore.cuda.driver.runtime'])")
    assert loaded == "[]"


def test_probe_maps_no_library():
    """Nothing of CUDA is mapped into the process, the driver excepted where there is one."""
    names = run("import ptcore; ptcore.cuda.is_available();"
                "print([l.split('/')[-1].strip() for l in open('/proc/self/maps') if 'cuda' in l or 'nvrtc' in l or"
                " 'cublas' in l or '_backend' in l])") if sys.platform.startswith("linux") else "[]"
    assert names == "[]"


def test_answers():
    assert ptcore.cuda.is_available() is False
    assert ptcore.cuda.device_count() == 0
    assert ptcore.cuda.is_initialized() is False
    assert ptcore.cuda.memory_allocated() == ptcore.cuda.max_memory_reserved() == 0
    assert ptcore.cuda.memory_stats() == {}
    assert ptcore.cuda.empty_cache() is None
    assert ptcore.cuda.get_arch_list() == []
    assert set(ptcore.cuda.__all__) <= set(dir(ptcore.cuda))
    assert all(hasattr(ptcore.cuda, name) for name in ptcore.cuda.__all__)


@pytest.mark.parametrize("use", [
    lambda: ptcore.ones(2, device="cuda"), lambda: ptcore.ones(2).cuda(), lambda: ptcore.ones(2).to("cuda:1"),
    lambda: ptcore.cuda.current_device(), lambda: ptcore.cuda.synchronize(), lambda: ptcore.cuda.Stream(),
    lambda: ptcore.cuda.get_device_properties(0), lambda: ptcore.cuda.set_device(0), lambda: ptcore.cuda.init(),
    lambda: ptcore.cuda.memory_summary(), lambda: ptcore.cuda.current_stream()])
def test_uses_say_what_is_missing(use):
    with pytest.raises(RuntimeError, match=r"no NVIDIA driver with a device was found|built without the CUDA backend"):
        use()


def test_config():
    assert "CUDA backend: " in ptcore.show_config()


def test_the_probe_is_quick():
    """Counts are asserted elsewhere; the time is printed: best of three in a fresh process, and once more."""
    lines = run("import ptcore, time\n"
                "for _ in range(4):\n"
                "    start = time.perf_counter()\n"
                "    found = ptcore.cuda.is_available()\n"
                "    took = time.perf_counter() - start\n"
                "    print(found, f'{1e6 * took:.0f} us')").splitlines()
    assert [line.split()[0] for line in lines] == ["False"] * 4
    print(lines)


def test_threads_start_the_backend_once(monkeypatch):
    """A thread that comes while another one starts it waits, so that it finds the kernels."""
    import threading
    import time

    from ptcore.cuda.driver import loading, probe

    class Backend:
        starts, is_ready = 0, False

        def register(self, start_memory, cubin):
            self.starts += 1
            time.sleep(0.05)
            self.is_ready = True

    backend, found = Backend(), []
    monkeypatch.setattr(loading, "_started", None)
    monkeypatch.setattr(loading, "compiled", lambda: backend)
    monkeypatch.setattr(probe, "device_count", lambda: 1)
    threads = [threading.Thread(target=lambda: found.append(loading.runtime().is_ready)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [True] * 4
    assert backend.starts == 1
