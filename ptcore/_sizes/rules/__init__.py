"""The rules of shapes: what the outputs of an op are, by the sizes, dtypes and parameters of its arguments.

The ``out`` column of a row names one. Each file holds the rules of some topics, in the words of ``_sizes/language.py``.
"""
from importlib import import_module
from pathlib import Path

_FILES = sorted(path.stem for path in Path(__file__).parent.glob("*.py") if path.stem != "__init__")


def find(name):
    """The rule of a name; KeyError if there is none."""
    for file in _FILES:
        found = vars(import_module(f"{__name__}.{file}")).get(name)
        if found is not None:
            return found
    raise KeyError(name)
