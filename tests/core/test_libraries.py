"""Imports of other libraries at their first use: a handler of a signal that raises does not break them."""
import gc
import os
import subprocess
import sys
import textwrap
import weakref

import pytest

from ptcore._libraries import library

pytestmark = [pytest.mark.timeout(60), pytest.mark.counts]
SLOW = """
    import builtins, time
    builtins.times = getattr(builtins, "times", 0) + 1
    if builtins.times > 1:
        raise ImportError("cannot load module more than once per process")
    end = time.monotonic() + 0.3
    while time.monotonic() < end:
        pass
    value = 7
"""


def run(folder, text):
    done = subprocess.run([sys.executable, "-P", "-c", textwrap.dedent(text)], capture_output=True, text=True,
                          env={**os.environ, "PYTHONPATH": str(folder)})
    return done.returncode, done.stdout.split(), done.stderr


@pytest.mark.skipif(not hasattr(__import__("signal"), "setitimer"), reason="needs timers of signals")
def test_an_interrupted_import_goes_on(tmp_path):
    (tmp_path / "loads_once.py").write_text(textwrap.dedent(SLOW))
    assert run(tmp_path, """
        import builtins, signal
        from ptcore._libraries import library
        def late(*args):
            raise TimeoutError
        signal.signal(signal.SIGALRM, late)
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        try:
            library("loads_once")
        except TimeoutError:
            print("told")
        print(library("loads_once").value, builtins.times, library("loads_once") is __import__("loads_once"))
    """) == (0, ["told", "7", "1", "True"], "")


def test_imports_within_each_other_and_in_threads(tmp_path):
    (tmp_path / "outer.py").write_text("from ptcore._libraries import library\ninner = library('inner')\n")
    (tmp_path / "inner.py").write_text("import time\ntime.sleep(0.05)\nvalue = 3\n")
    (tmp_path / "broken.py").write_text("raise ValueError('as it is')\n")
    assert run(tmp_path, """
        import atexit, threading
        from ptcore._libraries import library
        found = []
        threads = [threading.Thread(target=lambda: found.append(library("outer").inner.value)) for _ in range(4)]
        for t in threads: t.start()
        for t in threads: t.join()
        print(*found)
        for _ in range(2):
            try:
                library("broken")
            except ValueError as error:
                print(str(error).replace(" ", "_"))
        atexit.register(lambda: print(library("json.tool").__name__))
    """) == (0, ["3", "3", "3", "3", "as_it_is", "as_it_is", "json.tool"], "")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_fork_while_a_library_is_imported(tmp_path):
    (tmp_path / "held.py").write_text("import gate\ngate.wait()\nvalue = 5\n")
    (tmp_path / "gate.py").write_text("import os, threading\nparent, event, reached = os.getpid(), "
                                      "threading.Event(), threading.Event()\n"
                                      "def wait():\n    reached.set()\n    os.getpid() != parent or event.wait()\n")
    assert run(tmp_path, """
        import os, _thread
        import ptcore, gate
        from ptcore import _forking
        from ptcore._libraries import library
        _forking.LIBRARIES.add("held")
        _forking.wait_for_imports.__defaults__ = (0.05,)
        _thread.start_new_thread(library, ("held",))
        gate.reached.wait()
        pid = os.fork()
        if pid == 0:
            print(library("held").value, library("json.tool").__name__, flush=True)
            os._exit(0)
        print(os.waitpid(pid, 0)[1], flush=True)
        gate.event.set()
        print(library("held").value)
    """) == (0, ["5", "json.tool", "0", "5"], "")


def test_a_module_that_is_there():
    assert library("os") is os
    with pytest.raises(ModuleNotFoundError, match="no_such_library"):
        library("no_such_library")


def test_an_import_that_fails_keeps_nothing_alive():
    class Held:
        pass

    def call():
        held = Held()
        with pytest.raises(ModuleNotFoundError):
            library("no_such_library")
        return weakref.ref(held)
    gc.disable()
    try:
        assert call()() is None
    finally:
        gc.enable()


def test_numpy_and_scipy_are_imported_by_this_function_alone(tmp_path):
    """Elsewhere, a file of the package imports NumPy and SciPy for types alone, or is imported after NumPy."""
    assert run(tmp_path, """
        import signal, sys, builtins
        import ptcore as pt
        main, seen, plain = __import__("_thread").get_ident(), [], builtins.__import__
        def watched(name, globals=None, locals=None, fromlist=(), level=0):
            if level == 0 and name.partition(".")[0] in ("numpy", "scipy") and name not in sys.modules and (
                    __import__("_thread").get_ident() == main):
                seen.append(((globals or {}).get("__name__"), name))
            return plain(name, globals, locals, fromlist, level)
        builtins.__import__ = watched
        pt.linalg.svd(pt.eye(2)); pt.fft.fft(pt.ones(3)); pt.ones(2).numpy(); pt.nn.init.trunc_normal_(pt.ones(3))
        pt.ones(2, 2) @ pt.ones(2, 2); pt.distributions.Normal(0., 1.).sample(); pt.compile(pt.nn.ReLU())(pt.ones(2))
        pt.quasirandom.SobolEngine(2).draw(2); list(pt.utils.data.DataLoader([1.0, 2.0]))
        print(*seen)
    """) == (0, [], "")
