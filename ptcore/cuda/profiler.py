"""When the tool that a program runs under, such as Nsight Systems, is to record: from ``start`` to ``stop``."""
from contextlib import contextmanager

from ptcore.cuda.driver.loading import runtime

__all__ = ["profile", "start", "stop"]


def start():
    """Makes the tool record (``nsys profile --capture-range=cudaProfilerApi``); nothing happens without one."""
    runtime().profiler(True)


def stop():
    """Makes the tool record no more."""
    runtime().profiler(False)


@contextmanager
def profile():
    """``with profile():`` the tool records what happens within."""
    start()
    try:
        yield
    finally:
        stop()
