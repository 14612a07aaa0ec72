"""spawn and start_processes: results, tracebacks, exit codes, signals, and what becomes of the others."""
import os
import pickle
import signal
import sys
import tempfile
import threading
import time

import pytest

import ptcore as pt
import ptcore.multiprocessing as mp
from ptcore.multiprocessing.spawn import ProcessException

pytestmark = [pytest.mark.core, pytest.mark.timeout(60),
              pytest.mark.skipif("fork" not in mp.get_all_start_methods(), reason="no fork")]


def fill(i, x, value):
    x[i] = value + i


def fail(i, x):
    if i == 1:
        raise ValueError("number one does not like it")
    time.sleep(60)


def leave(i, x):
    if i == 0:
        sys.exit(3)
    time.sleep(60)


def kill(i, x):
    if i == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(60)


def stubborn(i, x):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    x[i] = 1
    if i == 0:
        while float(x.sum()) < 2:
            time.sleep(0.01)
        sys.exit(4)
    time.sleep(60)


def finish(context, **options):
    while not context.join(**options):
        pass


def start(fn, x, **options):
    return mp.start_processes(fn, (x,), 2, start_method="fork", **options)


@pytest.mark.parametrize("method", [m for m in ("spawn", "forkserver") if m in mp.get_all_start_methods()])
@pytest.mark.outer
def test_each_process_gets_its_number(method):
    x = pt.zeros(3).share_memory_()
    call = mp.spawn if method == "spawn" else lambda *args, **k: mp.start_processes(*args, start_method=method, **k)
    assert call(fill, args=(x, 10), nprocs=3) is None
    assert x.tolist() == [10, 11, 12]


def test_join_in_steps():
    x = pt.zeros(2).share_memory_()
    context = mp.start_processes(fill, (x, 1), 2, join=False, start_method="fork")
    assert isinstance(context, mp.ProcessContext)
    assert context.pids() == [p.pid for p in context.processes]
    while not context.join(timeout=30):
        pass
    assert context.join()
    assert x.tolist() == [1, 2]


def test_an_exception_comes_with_its_traceback():
    x = pt.zeros(2)
    with pytest.raises(mp.ProcessRaisedException, match="number one does not like it") as caught:
        start(fail, x)
    assert caught.value.error_index == 1
    assert caught.value.error_pid > 0
    assert "in fail" in caught.value.msg
    assert "Process 1 terminated with the following error" in caught.value.msg
    assert pickle.loads(pickle.dumps(caught.value)).error_index == 1


@pytest.mark.parametrize("fn, index, code, name, text",
                         [(leave, 0, 3, None, "process 0 terminated with exit code 3"),
                          (kill, 1, -signal.SIGKILL, "SIGKILL", "process 1 terminated with signal SIGKILL")])
def test_an_end_without_an_exception(fn, index, code, name, text):
    context = start(fn, pt.zeros(2), join=False)
    with pytest.raises(mp.ProcessExitedException, match=text) as caught:
        finish(context)
    error = caught.value
    assert isinstance(error, ProcessException)
    assert (error.error_index, error.exit_code, error.signal_name) == (index, code, name)
    assert not any(p.is_alive() for p in context.processes)
    again = pickle.loads(pickle.dumps(error))
    assert (again.msg, again.exit_code, again.signal_name) == (error.msg, code, name)


def test_who_ignores_sigterm_is_killed():
    context = start(stubborn, pt.zeros(2).share_memory_(), join=False)
    with pytest.raises(mp.ProcessExitedException, match="exit code 4"):
        finish(context, grace_period=0.2)
    assert context.processes[1].exitcode == -signal.SIGKILL


class Twice:
    """What is pickled two times, not three."""

    left = 2

    def __reduce__(self):
        Twice.left -= 1
        if Twice.left < 0:
            raise TypeError("not a third time")
        return int, (0,)


def rest(i, x):
    time.sleep(60)


def test_a_start_that_fails_ends_those_before_it():
    before = set(mp.active_children())
    with pytest.raises(TypeError, match="not a third time"):
        mp.spawn(rest, (Twice(),), 3)
    assert set(mp.active_children()) <= before


def work_on(i, x):
    x[i] = 1
    time.sleep(0.3)
    x[i] = 2


def test_processes_outlive_the_thread_that_started_them():
    def begin():
        made.append(start(work_on, x, join=False))
        while float(x.min()) == 0:
            time.sleep(0.01)

    x, made = pt.zeros(2).share_memory_(), []
    thread = threading.Thread(target=begin)
    thread.start()
    thread.join()
    finish(made[0])
    assert x.tolist() == [2, 2]


def test_reports_are_removed():
    def reports():
        return {n for n in os.listdir(tempfile.gettempdir()) if n.startswith("ptcore-process-")}
    before = reports()
    with pytest.raises(mp.ProcessRaisedException):
        start(fail, pt.zeros(2))
    assert reports() <= before


def test_older_names_warn():
    with pytest.warns(UserWarning, match="ProcessContext"):
        assert mp.SpawnContext([], []).join()
    with pytest.warns(FutureWarning, match="start_processes"):
        mp.spawn(fill, (pt.zeros(1).share_memory_(), 1), 1, start_method="fork")
