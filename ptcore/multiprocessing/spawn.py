"""Runs one function in several processes, and ends all of them when one fails."""
import ctypes
import multiprocessing.connection
import os
import signal
import sys
import tempfile
import threading
import time
import traceback
import warnings

from ptcore.multiprocessing._context import get_context

__all__ = ["ProcessContext", "ProcessException", "ProcessExitedException", "ProcessRaisedException", "SpawnContext",
           "spawn", "start_processes"]

PR_SET_PDEATHSIG = 1
PATIENCE = 30       # seconds from SIGTERM to SIGKILL


class ProcessException(Exception):
    """A process of :func:`~ptcore.multiprocessing.spawn.spawn` failed.

    Attributes
    ----------
    msg : str
    error_index : int
        The number of the process.
    error_pid : int
    """

    def __init__(self, msg, error_index, error_pid):
        super().__init__(msg)
        self.msg = msg
        self.error_index = error_index
        self.error_pid = error_pid

    def __reduce__(self):
        return type(self), (self.msg, self.error_index, self.error_pid)


class ProcessRaisedException(ProcessException):
    """The function raised; the message holds the traceback of the process."""


class ProcessExitedException(ProcessException):
    """The process ended by a signal or with an exit code other than 0.

    Attributes
    ----------
    exit_code : int
        The negative number of a signal.
    signal_name : str or None
    """

    def __init__(self, msg, error_index, error_pid, exit_code, signal_name=None):
        super().__init__(msg, error_index, error_pid)
        self.exit_code = exit_code
        self.signal_name = signal_name

    def __reduce__(self):
        return type(self), (self.msg, self.error_index, self.error_pid, self.exit_code, self.signal_name)


def _run(fn, i, args, report, parent):
    if sys.platform == "linux" and parent is not None:     # the process ends with the process that started it
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGINT)
        if parent not in (0, os.getppid()):
            sys.exit(1)
    try:
        fn(i, *args)
    except KeyboardInterrupt:
        pass                        # interrupted by the parent, which needs no report
    except Exception:
        with open(report, "w", encoding="utf-8", errors="backslashreplace") as f:
            f.write(traceback.format_exc())
        sys.exit(1)


class ProcessContext:
    """The processes of :func:`~ptcore.multiprocessing.spawn.spawn`.

    Attributes
    ----------
    processes : list of Process
    """

    def __init__(self, processes, error_files):
        self.processes = processes
        self.error_files = error_files
        self.sentinels = {process.sentinel: i for i, process in enumerate(processes)}

    def pids(self):
        """The numbers of the processes."""
        return [process.pid for process in self.processes]

    def join(self, timeout=None, grace_period=None):
        """Waits for at least one more process to end.

        The first one that fails ends the others: after ``grace_period`` by SIGTERM, at last by SIGKILL.

        Parameters
        ----------
        timeout : float, optional
            Seconds to wait at most.
        grace_period : float, optional
            Seconds that the others have to end by themselves, and again from SIGTERM to SIGKILL.

        Returns
        -------
        bool
            Whether all have ended.

        Raises
        ------
        ProcessRaisedException, ProcessExitedException
            If one failed.
        """
        if not self.sentinels:
            return True
        for sentinel in multiprocessing.connection.wait(list(self.sentinels), timeout):
            i = self.sentinels.pop(sentinel)
            self.processes[i].join()
            if self.processes[i].exitcode:
                self._end_all(grace_period)
                raise self._failure(i)
            self._report(i)
        return not self.sentinels

    def _wait_for_all(self, seconds):
        end = time.monotonic() + seconds
        for process in self.processes:
            process.join(max(0, end - time.monotonic()))

    def _end_all(self, grace_period):
        if grace_period is not None:
            self._wait_for_all(grace_period)
        for process in self.processes:
            if process.is_alive():
                process.terminate()
        self._wait_for_all(PATIENCE if grace_period is None else grace_period)
        for process in self.processes:
            if process.is_alive():
                process.kill()
            process.join()
        self.sentinels.clear()

    def _report(self, i):
        """The text that a failed process wrote, or None; the file is removed."""
        try:
            with open(self.error_files[i], encoding="utf-8") as f:
                text = f.read()
            os.unlink(self.error_files[i])
        except FileNotFoundError:
            return None
        return text

    def _failure(self, failed):
        reports = [self._report(i) for i in range(len(self.processes))]
        process = self.processes[failed]
        if reports[failed] is not None:
            text = f"\n\n-- Process {failed} terminated with the following error:\n{reports[failed]}"
            return ProcessRaisedException(text, failed, process.pid)
        if process.exitcode > 0:
            return ProcessExitedException(f"process {failed} terminated with exit code {process.exitcode}", failed,
                                          process.pid, process.exitcode)
        try:
            name = signal.Signals(-process.exitcode).name
        except ValueError:
            name = f"<Unknown signal {-process.exitcode}>"
        return ProcessExitedException(f"process {failed} terminated with signal {name}", failed, process.pid,
                                      process.exitcode, name)


class SpawnContext(ProcessContext):
    """The older name of :class:`ProcessContext`."""

    def __init__(self, processes, error_files):
        warnings.warn("SpawnContext is called ProcessContext", stacklevel=2)
        super().__init__(processes, error_files)


def start_processes(fn, args=(), nprocs=1, join=True, daemon=False, start_method="spawn"):
    """Runs ``fn(i, *args)`` in ``nprocs`` processes started by ``start_method``; otherwise as ``spawn``."""
    context = get_context(start_method)
    if start_method == "forkserver":
        parent = 0              # the server is the parent, and ends with this process
    else:                       # Linux watches the thread that forks, which may end long before its process
        parent = os.getpid() if threading.current_thread() is threading.main_thread() else None
    processes, reports = [], []
    try:
        for i in range(nprocs):
            handle, report = tempfile.mkstemp(prefix="ptcore-process-", suffix=".txt")
            os.close(handle)
            os.unlink(report)
            process = context.Process(target=_run, args=(fn, i, args, report, parent), daemon=daemon)
            process.start()
            processes.append(process)
            reports.append(report)
    except BaseException:       # such as unpicklable args; no caller could join the processes started so far
        ProcessContext(processes, reports)._end_all(None)
        raise
    started = ProcessContext(processes, reports)
    if not join:
        return started
    while not started.join():
        pass
    return None


def spawn(fn, args=(), nprocs=1, join=True, daemon=False, start_method="spawn"):
    """Runs ``fn(i, *args)`` in ``nprocs`` new interpreters, with i from 0 on.

    Parameters
    ----------
    fn : callable
        At the top of a module, since it is sent by its name.
    args : tuple
        Tensors among them are shared with all processes.
    nprocs : int
    join : bool, default: True
        Whether to wait for the processes.
    daemon : bool, default: False
        Whether they end with this process.
    start_method : str
        Another one than ``spawn`` only warns; see ``start_processes``.

    Returns
    -------
    ProcessContext
        With ``join=False``; else None.

    Raises
    ------
    ProcessRaisedException
        If fn raised in one of them: with its traceback. The others are ended.
    ProcessExitedException
        If one was ended by a signal or left with another code than 0.
    """
    if start_method != "spawn":
        warnings.warn(f"spawn: the start method is always spawn, got {start_method!r}; see start_processes",
                      FutureWarning, stacklevel=2)
    return start_processes(fn, args, nprocs, join, daemon, "spawn")
