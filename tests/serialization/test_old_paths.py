"""Pickles and files that name modules by the paths where they lay before."""
import importlib
import io
import pickle
import subprocess
import sys

import pytest

import ptcore as pt
from ptcore._lazy import MOVED
from ptcore.optim.lr_scheduler import LRScheduler
from ptcore.utils import _pytree

NEEDS_A_BACKEND = {old for old, new in MOVED.items() if new.startswith("ptcore.cuda.")
                   and new.rpartition(".")[2] in ("allocators", "graph", "ipc", "library_tables", "runtime")}


@pytest.mark.parametrize("old", sorted(MOVED))
def test_old_paths_are_todays_modules(old):
    if old in NEEDS_A_BACKEND:
        pytest.skip("it is no module without a backend")
    assert importlib.import_module(old) is sys.modules[old] is importlib.import_module(MOVED[old])
    assert sys.modules[old].__name__ == MOVED[old] and sys.modules[old].__spec__.name == MOVED[old]


def test_modules_in_a_package_that_has_moved():
    from ptcore.jit.capture import guards
    assert importlib.import_module("ptcore.jit._capture.guards") is guards


def test_what_there_never_was():
    with pytest.raises(ModuleNotFoundError, match=r"ptcore\.jit\._capture\.nothing|ptcore\.jit\.capture\.nothing"):
        importlib.import_module("ptcore.jit._capture.nothing")
    with pytest.raises(ModuleNotFoundError, match=r"ptcore\._nothing"):
        importlib.import_module("ptcore._nothing")


@pytest.fixture
def old_names(monkeypatch):
    """What is written within names the old paths."""
    monkeypatch.setattr(_pytree.LeafSpec, "__module__", "ptcore._pytree")
    monkeypatch.setattr(_pytree.TreeSpec, "__module__", "ptcore._pytree")
    monkeypatch.setattr(LRScheduler, "__module__", "ptcore.optim._scheduler")


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_pickles(old_names, protocol):
    spec = _pytree.tree_structure({"a": (1, [2, 3])})
    written = pickle.dumps((spec, LRScheduler), protocol)
    assert b"ptcore._pytree" in written and b"ptcore.optim._scheduler" in written
    sys.modules.pop("ptcore._pytree", None)
    assert pickle.loads(written) == (spec, LRScheduler)


def test_files(old_names, monkeypatch):
    spec, file = _pytree.tree_structure([1, (2, 3)]), io.BytesIO()
    with pt.serialization.safe_globals([_pytree.LeafSpec, _pytree.TreeSpec]):
        pt.save({"spec": spec, "x": pt.ones(2)}, file)
    assert b"ptcore._pytree" in file.getvalue()
    for cls in (_pytree.LeafSpec, _pytree.TreeSpec):
        cls.__module__ = "ptcore._trees.tree"
    with pt.serialization.safe_globals([_pytree.LeafSpec, _pytree.TreeSpec]):
        assert pt.load(io.BytesIO(file.getvalue()))["spec"] == spec
    monkeypatch.setenv("PTCORE_ALLOW_PICKLE", "1")
    assert pt.load(io.BytesIO(file.getvalue()), weights_only=False)["spec"] == spec


def test_a_process_that_has_imported_nothing_else():
    written = b"cptcore._pytree\nLeafSpec\n."
    assert b"_trees.tree" in subprocess.run(
        [sys.executable, "-P", "-c", f"import pickle; print(pickle.loads({written!r}))"], capture_output=True,
        check=True).stdout
