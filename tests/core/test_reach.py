"""Two threads in one public context or mode at once: which of them are in it is the thread's or the process's business,
as in PyTorch (test_parity_reach.py). No public context manager is missing here."""
import contextlib
import importlib
import inspect
import pkgutil
import threading

import pytest
from _reach import CONTEXTS, DIFFERENT, NOWHERE, OTHERS, PROCESS, TABLE, THREAD, reach_of, walked

import ptcore

pytestmark = [pytest.mark.core, pytest.mark.filterwarnings("ignore:.*(is deprecated|CUDA is not available|Error detected)")]


@pytest.mark.parametrize("name", TABLE)
def test_two_threads(name):
    entry = TABLE[name]
    seen = walked(ptcore, entry)
    assert reach_of(seen) == entry.reach, seen
    base, here = seen[0][1], seen[1][1]
    for moment, a, b, new in seen:
        inside = {"before": "", "A inside": "a", "both inside": "ab", "one inside": "b", "after": ""}[moment]
        if entry.reach == THREAD:
            expected = [here if one in inside else base for one in "abn"]
        else:
            expected = 3 * [here if inside else base]
        assert [a, b, new] == expected, (moment, seen)


# -- which contexts there are ---------------------------------------------------------------------------------------

HELPER = contextlib.contextmanager(lambda: None).__code__


def makes_context(x):
    """Whether x is a class of contexts, or a function of ``contextlib.contextmanager``."""
    if inspect.isclass(x):
        return hasattr(x, "__enter__") and hasattr(x, "__exit__")
    return getattr(x, "__code__", None) is HELPER


def public_contexts():
    """Object -> its public names."""
    found = {}
    for info in [None, *pkgutil.walk_packages(ptcore.__path__, "ptcore.")]:
        module = "ptcore" if info is None else info.name
        parts = module.split(".")[1:]
        if any(part.startswith("_") for part in parts) or parts[:1] in (["compat"], ["examples"]):
            continue
        loaded = importlib.import_module(module)
        if info is not None and not hasattr(loaded, "__all__"):     # of the package alone
            continue
        for name in getattr(loaded, "__all__", None) or dir(loaded):
            if name.startswith("_"):
                continue
            try:
                x = getattr(loaded, name)
            except RuntimeError:                    # an optional package is missing
                continue
            if makes_context(x) and getattr(x, "__module__", "").startswith("ptcore"):
                found.setdefault(x, set()).add(".".join((*parts, name)))
    return found


def test_no_context_is_missing():
    known = {*CONTEXTS, *OTHERS}
    found = public_contexts()
    assert len(found) > 45
    assert [sorted(names) for names in found.values() if not names & known] == []


def test_the_table_names_what_there_is():
    for name in [*TABLE, *OTHERS]:
        where, _, last = name.rpartition(".")
        owner = importlib.import_module(f"ptcore.{where}".rstrip(".")) if where and not where[0].isupper() and (
            not where.rpartition(".")[2][0].isupper()) else None
        if owner is None and where:
            module, _, cls = where.rpartition(".")
            owner = getattr(importlib.import_module(f"ptcore.{module}"), cls)
        assert hasattr(owner or ptcore, last), name
    assert {*DIFFERENT} <= {*TABLE}
    assert {entry.reach for entry in TABLE.values()} == {THREAD, PROCESS, NOWHERE}


# -- one context object ----------------------------------------------------------------------------------------------

SHARED = [name for name, entry in CONTEXTS.items() if entry.reach == THREAD and not entry.is_single
          and name not in ("no_grad", "enable_grad", "set_grad_enabled", "inference_mode", "device")]


@pytest.mark.parametrize("name", SHARED)
def test_one_object_in_two_threads(name):
    """What a context found lies in the state of the thread that entered it."""
    entry = TABLE[name]
    context = entry.context(ptcore)
    if hasattr(context, "_undo"):                   # set at once on the thread that made it
        context._undo()
    base = entry.seen(ptcore)
    failures = []

    def use():
        try:
            for _ in range(20):
                assert entry.seen(ptcore) == base
                with context:
                    inside = entry.seen(ptcore)
                    assert inside != base
                    if name not in ("autograd.forward_ad.dual_level", "autograd.graph.disable_saved_tensors_hooks"):
                        with context:
                            assert entry.seen(ptcore) == inside
                        assert entry.seen(ptcore) == inside
        except BaseException as error:
            failures.append(error)
    threads = [threading.Thread(target=use) for _ in range(3)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(120)
    assert failures == [] and entry.seen(ptcore) == base


def test_a_context_is_left_where_it_was_entered():
    hooks = ptcore.autograd.graph.saved_tensors_hooks(lambda x: x, lambda x: x)
    failures = []

    def leave():
        with pytest.raises(RuntimeError, match="saved_tensors_hooks: left without having been entered on this thread"):
            hooks.__exit__(None, None, None)
        failures.append(None)
    with hooks:
        thread = threading.Thread(target=leave)
        thread.start()
        thread.join(60)
    assert failures == [None]
    assert ptcore._state.innermost_saved_hooks() is None
