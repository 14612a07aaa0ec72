"""``python -m ptcore.compat.torch script.py ...``, ``-m module ...`` and ``-c text ...``: runs a program on ptcore."""
import sys

from ptcore.compat.torch import install
from ptcore.compat.torch._run import run

if __name__ == "__main__":
    install()
    run(sys.argv[1:])
