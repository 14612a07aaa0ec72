"""Runs code in a process of its own, with the device that the tests have: for what a process can do or be only once."""
import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
STANDIN = os.environ.get("PTCORE_TEST_CUDA") == "standin"

START = """
import ctypes, faulthandler, gc, os, sys, traceback
faulthandler.enable()
sys.path.insert(0, %r)
DRIVER = None
if os.environ.get("PTCORE_TEST_CUDA") == "standin":
    import load
    DRIVER = load.load(%r)
import ptcore
from ptcore import cuda, nn
from ptcore.nn import functional as F

def failure(use):
    try:
        use()
    except Exception as e:
        return e
    raise AssertionError("nothing was raised")

def memory_limit(nbytes):
    DRIVER.standin_set_memory_limit(0, ctypes.c_uint64(nbytes))

def fail_next(function, code):
    DRIVER.standin_fail_after(function, 0, code)
"""


def start():
    from conftest import DRIVER
    return START % (str(HERE.parent / "host"), str(Path(DRIVER._name).parent) if DRIVER else "")


def run(code, status=0, quiet=False, **environment):
    """The lines that a process prints which runs ``code``; it ends with ``status`` within a minute.

    With ``quiet`` it says nothing on stderr.
    """
    done = subprocess.run([sys.executable, "-P", "-c", start() + code], env={**os.environ, **environment}, text=True,
                          capture_output=True, timeout=60)
    assert done.returncode == status and not (quiet and done.stderr), done.stdout + done.stderr
    return done.stdout.splitlines()
