#!/usr/bin/env python3
"""Runs PyTorch's own unit tests on ptcore, under the name ``torch``:

    python tools/torch_unit_tests.py SOURCES test_autograd.py nn/test_pooling.py ...

SOURCES is an unpacked source of PyTorch 2.6 (Debian's source package `pytorch` has one), whose folder `test` holds the
files and whose `torch/testing` holds what they import. Each file is a process of its own. Printed are, for each, how
many tests passed, and the messages of those that failed by their number; `--table FILE` writes them as well.

``torch.testing._internal`` looks for many private parts of PyTorch that no test calls. Where one of its files asks for
such a part and ptcore has none, it gets an empty class, or a mock. Files of `test` themselves get nothing that ptcore
has not.
"""
import argparse
import collections
import importlib.util
import os
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from pathlib import Path

SOURCES = "PTCORE_TORCH_SOURCES"        # the variable by which the processes know the folder
FROM_SOURCES = ("torch.testing._internal", "torch.testing._comparison")
SKIPPED = "not HPU and not cuda and not meta"


# -- in the process of a file, as a plugin of pytest -----------------------------------------------------------

class _Finder:
    """Lets the modules of FROM_SOURCES come from PyTorch's sources."""

    def __init__(self, folder):
        self.folder = folder

    def find_spec(self, name, path=None, target=None):
        if not any(name == n or name.startswith(n + ".") for n in FROM_SOURCES):
            return None
        base = self.folder.joinpath(*name.split("."))
        if base.is_dir():
            return importlib.util.spec_from_file_location(name, base / "__init__.py",
                                                          submodule_search_locations=[str(base)])
        return importlib.util.spec_from_file_location(name, f"{base}.py") if Path(f"{base}.py").exists() else None


def _asks_from(folder):
    """Whether the innermost frame outside of ptcore is one of a file in a folder."""
    frame = sys._getframe(2)
    while frame is not None and f"{os.sep}ptcore{os.sep}" in frame.f_code.co_filename:
        frame = frame.f_back
    return frame is not None and frame.f_code.co_filename.startswith(folder)


def _fill(owner, old, folder):
    """Gives what has a ``__getattr__``, or gets one, a stand-in for each name that it lacks."""
    from unittest.mock import MagicMock

    def find(*args):
        name = args[-1]
        try:
            if old is None:
                raise AttributeError(f"no attribute {name!r}")
            return old(*args)
        except (AttributeError, ImportError):
            if name.startswith("__") or not _asks_from(folder):
                raise
            return MagicMock(name=name) if name[:1].islower() or name[:1] == "_" else type(name, (), {})
    owner.__getattr__ = find


def _prepare():
    import builtins

    from ptcore._ops import namespaces
    from ptcore.compat.torch import _absent, install

    folder = Path(os.environ[SOURCES])
    testing = str(folder / "torch" / "testing")
    install()
    import torch
    sys.meta_path.insert(0, _Finder(folder))
    for cls in (_absent.Missing, *[c for c in vars(namespaces).values() if isinstance(c, type)
                                   and "__getattr__" in vars(c)]):
        _fill(cls, vars(cls)["__getattr__"], testing)
    plain = builtins.__import__
    filled = set()

    def filling(name, globals=None, locals=None, fromlist=(), level=0):
        found = plain(name, globals, locals, fromlist, level)
        if not str((globals or {}).get("__file__")).startswith(testing):
            return found
        for module in (torch, *[m for n, m in list(sys.modules.items()) if n.startswith("torch.")]):
            if id(module) not in filled and type(module) is type(sys):
                filled.add(id(module))
                _fill(module, vars(module).get("__getattr__"), testing)
        for word in fromlist or ():
            if word != "*" and not hasattr(found, word):
                setattr(found, word, type(word, (), {}))
        return found
    builtins.__import__ = filling
    torch.backends.disable_global_flags = lambda: None
    torch.sparse.check_sparse_tensor_invariants = type("check_sparse_tensor_invariants", (), {
        "is_enabled": staticmethod(bool), "enable": staticmethod(bool), "disable": staticmethod(bool)})
    importlib.import_module("torch.utils._import_utils")._check_module_exists = (
        lambda name: importlib.util.find_spec(name) is not None)
    sys.argv[1:] = []


if SOURCES in os.environ and __name__ != "__main__":
    _prepare()


# -- the tool -------------------------------------------------------------------------------------------------

def run(folder, file, limit):
    """{test: None or the message of its failure}, and the end of what was printed where nothing ran."""
    with tempfile.TemporaryDirectory() as place:
        result = Path(place) / "result.xml"
        done = subprocess.run(
            [sys.executable, "-P", "-m", "pytest", "-p", Path(__file__).stem, folder / "test" / file, "-q", "-p",
             "no:cacheprovider", "--noconftest", "--timeout", str(limit), "-k", SKIPPED, f"--junitxml={result}"],
            env={**os.environ, SOURCES: str(folder),
                 "PYTHONPATH": os.pathsep.join([str(Path(__file__).resolve().parent), str(folder / "test")])},
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if not result.exists():
            return {}, done.stdout[-2000:]
        found = {}
        for test in ElementTree.parse(result).getroot().iter("testcase"):
            if test.find("skipped") is None:
                wrong = test.find("failure") if test.find("failure") is not None else test.find("error")
                found[test.get("name")] = None if wrong is None else " ".join((wrong.get("message") or "").split())
        return found, done.stdout[-2000:]


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sources", type=Path, help="an unpacked source of PyTorch 2.6")
    parser.add_argument("files", nargs="+", help="files of its folder test")
    parser.add_argument("--limit", type=int, default=60, help="seconds of a test (default: %(default)s)")
    parser.add_argument("--most", type=int, default=20, help="messages that are shown (default: %(default)s)")
    parser.add_argument("--table", type=Path, help="a file for a line of each test: file, test, message")
    options = parser.parse_args(argv)
    lines, passed, total = [], 0, 0
    for file in options.files:
        found, text = run(options.sources.resolve(), file, options.limit)
        good = sum(message is None for message in found.values())
        passed, total = passed + good, total + len(found)
        print(f"{file}: {good} of {len(found)} passed")
        if not found:
            print(text)
        kinds = collections.Counter(message[:160] for message in found.values() if message is not None)
        for message, count in kinds.most_common(options.most):
            print(f"{count:6} {message}")
        lines += [f"{file}\t{test}\t{message or 'passed'}\n" for test, message in found.items()]
    print(f"in all: {passed} of {total}")
    if options.table:
        options.table.write_text("".join(lines))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
