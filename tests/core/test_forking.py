"""A fork while another thread is at its first use of something: the child neither hangs nor sees half a module."""
import os
import subprocess
import sys
import textwrap

import pytest

pytestmark = [pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork"), pytest.mark.timeout(120),
              pytest.mark.counts]

FIRST_USES = """
    import os, sys, threading, time
    import ptcore as pt

    def first_uses():
        pt.randn(9, 9) @ pt.randn(9, 9)
        pt.nn.Conv2d(1, 1, 3)(pt.randn(1, 1, 5, 5))
        pt.linalg.svd(pt.eye(3))
        pt.fft.fft(pt.ones(4))
        pt.special.bessel_j0(pt.ones(2))

    threading.Thread(target=first_uses, daemon=True).start()
    time.sleep(float(sys.argv[1]))
    pid = os.fork()
    if pid == 0:
        first_uses()
        os._exit(0)
    end = time.monotonic() + 60
    while time.monotonic() < end:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            os._exit(os.waitstatus_to_exitcode(status) & 255)
        time.sleep(0.002)
    os.kill(pid, 9)
    os.waitpid(pid, 0)
    os._exit(99)
"""


def run(text, *args):
    done = subprocess.run([sys.executable, "-P", "-c", textwrap.dedent(text), *map(str, args)], capture_output=True, text=True)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("delay", [0, 0.006, 0.02, 0.05, 0.12])
def test_first_uses_of_both_processes(delay):
    code, _, errors = run(FIRST_USES, delay)
    assert (code, errors) == (0, "")


GATE = ("import os, threading\nparent, reached, event = os.getpid(), threading.Event(), threading.Event()\n"
        "def wait():\n    reached.set()\n    os.getpid() != parent or event.wait()\n")


def test_an_import_that_does_not_end(tmp_path):
    """Of a library: the child imports it again."""
    (tmp_path / "never.py").write_text("import gate\nvalue = 1\ngate.wait()\nvalue = 2\n")
    (tmp_path / "gate.py").write_text(GATE)
    code, out, errors = run("""
        import os, sys, threading, time
        sys.path.insert(0, sys.argv[1])
        import ptcore, gate
        from ptcore import _forking
        _forking.LIBRARIES.add("never")
        threading.Thread(target=lambda: __import__("never"), daemon=True).start()
        gate.reached.wait()
        assert _forking.wait_for_imports(0.01) == {"never"}
        _forking.wait_for_imports.__defaults__ = (0.05,)
        pid = os.fork()
        if pid == 0:
            import never
            print(never.value, flush=True)
            os._exit(0)
        status = os.waitpid(pid, 0)[1]
        assert sys.modules["never"].value == 1                      # the parent goes on as it was
        gate.event.set()
        import never
        print(status, never.value)
    """, tmp_path)
    assert (code, out.split(), errors) == (0, ["2", "0", "2"], "")


def test_a_program_that_an_import_runs(tmp_path):
    """It is not waited for, and its child does not run it again."""
    (tmp_path / "program.py").write_text(
        "import os, threading, time\nimport ptcore\nfrom ptcore import _forking\nstate = 'half'\n"
        "def fork():\n    begin = time.monotonic()\n    pid = os.fork()\n    if pid == 0:\n"
        "        import program\n        os._exit(program.state != 'half')\n"
        "    print(os.waitpid(pid, 0)[1], time.monotonic() - begin < _forking.LONGEST / 2)\n"
        "t = threading.Thread(target=fork)\nt.start()\nt.join()\n")
    code, out, errors = run("import sys; sys.path.insert(0, sys.argv[1]); import program", tmp_path)
    assert (code, out.split(), errors) == (0, ["0", "True"], "")


def test_a_fork_within_an_import(tmp_path):
    (tmp_path / "forks.py").write_text("import os\nimport ptcore\npid = os.fork()\nif pid == 0:\n    import json.tool\n"
                                       "    ptcore.linalg.svd(ptcore.eye(2))\n    os._exit(3)\n"
                                       "status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])\n")
    code, out, errors = run("import sys; sys.path.insert(0, sys.argv[1]); import forks; print(forks.status)", tmp_path)
    assert (code, out.strip(), errors) == (0, "3", "")


def test_a_loader_starts_while_a_thread_is_at_its_first_use():
    code, out, errors = run("""
        import threading
        import ptcore as pt
        loader = pt.utils.data.DataLoader(list(range(8)), num_workers=2, multiprocessing_context="fork")
        threading.Thread(target=lambda: (pt.nn.Conv2d(3, 8, 3)(pt.randn(2, 3, 9, 9)), pt.linalg.svd(pt.eye(9)))).start()
        print(sum(x.item() for x in loader))
    """)
    assert (code, out.strip(), errors) == (0, "28", "")


def test_a_fork_keeps_no_frame_alive():
    code, out, errors = run("""
        import gc, os, weakref
        import ptcore
        gc.disable()
        class Held:
            pass
        def fork(held):
            pid = os.fork()
            if pid == 0:
                os._exit(0)
            os.waitpid(pid, 0)
            return weakref.ref(held)
        print(fork(Held())())
    """)
    assert (code, out, errors) == (0, "None\n", "")


def test_threads_that_fork_at_the_same_moment(monkeypatch):
    """Each notes what its own fork waited for in vain."""
    import threading

    from ptcore import _forking
    waited, found = threading.Barrier(2), {}

    def wait_for_imports():
        waited.wait()
        return {threading.current_thread().name}

    def before():
        _forking.before_fork()
        waited.wait()
        found[threading.current_thread().name] = _forking._fork.unfinished
    monkeypatch.setattr(_forking, "wait_for_imports", wait_for_imports)
    monkeypatch.setattr(_forking, "LOCKS", {})
    threads = [threading.Thread(target=before, name=name) for name in ("one", "other")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {"one": {"one"}, "other": {"other"}} and not _forking._fork.unfinished
