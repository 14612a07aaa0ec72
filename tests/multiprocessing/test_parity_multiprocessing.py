"""ptcore.multiprocessing beside torch.multiprocessing: names, signatures, what is shared and what is refused."""
import inspect
import sys

import pytest

torch = pytest.importorskip("torch")
import torch.multiprocessing as theirs  # noqa: E402

import ptcore as pt  # noqa: E402
import ptcore.multiprocessing as mine  # noqa: E402

pytestmark = pytest.mark.parity

LIBS = pt, torch


def test_names_and_strategies():
    assert set(theirs.__all__) <= set(mine.__all__)
    assert mine.get_all_sharing_strategies() == theirs.get_all_sharing_strategies()
    assert mine.get_sharing_strategy() == theirs.get_sharing_strategy()
    for module in (mine, theirs):
        with pytest.raises(AssertionError):
            module.set_sharing_strategy("pigeon")


@pytest.mark.parametrize("name", ["spawn", "start_processes", "ProcessContext", "ProcessRaisedException",
                                  "ProcessExitedException", "set_sharing_strategy"])
def test_signatures(name):
    assert [str(p.replace(annotation=p.empty)) for p in inspect.signature(getattr(mine, name)).parameters.values()] == [
        str(p.replace(annotation=p.empty)) for p in inspect.signature(getattr(theirs, name)).parameters.values()]


CALLS = [lambda lib: lib.ones(2).share_memory_().is_shared(), lambda lib: lib.ones(2).is_shared(),
         lambda lib: lib.ones(2, 3).share_memory_()[1].is_shared(),
         lambda lib: lib.ones(2).share_memory_().clone().is_shared(),
         lambda lib: [p.is_shared() for p in lib.nn.Linear(2, 2).share_memory().parameters()],
         lambda lib: lib.ones(3).share_memory_().untyped_storage().is_shared(),
         lambda lib: lib.ones(0).share_memory_().is_shared()]


@pytest.mark.parametrize("k", range(len(CALLS)))
def test_sharing(k):
    assert CALLS[k](pt) == CALLS[k](torch)


SENT = [lambda lib: lib.arange(6.0).reshape(2, 3).t(), lambda lib: lib.ones(4)[1:3], lambda lib: lib.tensor(2),
        lambda lib: lib.nn.Parameter(lib.ones(2)), lambda lib: lib.nn.Parameter(lib.ones(2), requires_grad=False),
        lambda lib: lib.ones(2, requires_grad=True), lambda lib: lib.ones(2, 3, device="meta"),
        lambda lib: lib.ones(0, 2), lambda lib: lib.nn.Linear(2, 3).weight]


@pytest.mark.skipif(sys.platform != "linux", reason="torch needs descriptors")
@pytest.mark.parametrize("k", range(len(SENT)))
def test_what_arrives(k):
    seen = []
    for lib, module in zip(LIBS, (mine, theirs), strict=True):
        a, b = module.Pipe()
        x = SENT[k](lib)
        a.send(x)
        y = b.recv()
        a.close()
        b.close()
        seen.append((type(y).__name__, str(y.dtype).split(".")[1], tuple(y.shape), tuple(y.stride()),
                     y.storage_offset(), y.requires_grad, y.is_leaf, y.device.type, y.is_shared()))
    assert seen[0][:-1] == seen[1][:-1]
    assert seen[0][-1] == seen[1][-1] or not x.numel() or x.device.type == "meta"


def test_history_is_refused():
    for lib, module in zip(LIBS, (mine, theirs), strict=True):
        a, _ = module.Pipe()
        with pytest.raises(RuntimeError, match="detach"):
            a.send(lib.ones(2, requires_grad=True) * 2)
