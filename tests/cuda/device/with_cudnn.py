"""Runs code in a process of its own, with the stand-in cuDNN."""
from pathlib import Path

from in_process import run

START = f"""
import sys
sys.path.insert(0, {str(Path(__file__).resolve().parents[1] / "host")!r})
import host_compiler
from pathlib import Path
from ptcore.cuda.driver import libraries
PATH = str(host_compiler.build_cudnn(Path(libraries.library_path("cufft")).parent))
libraries.set_library("cudnn", PATH)
dnn = ctypes.CDLL(PATH)
launched = dnn.standin_cudnn_launched
"""


def started(text, **environment):
    """What it prints."""
    return run(START + text, **environment)
