"""What other processes do with a device's memory, for test_ipc.py. They have the device that the tests have."""
import gc
import os
import sys
import tempfile
from pathlib import Path

import ptcore
from ptcore import cuda
from ptcore.multiprocessing import _devices

if os.environ.get("PTCORE_TEST_CUDA") == "standin" and "conftest" not in sys.modules:
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "host"))
    import load
    load.load(os.environ.get("PTCORE_STANDIN_DIR") or Path(tempfile.gettempdir()) / "ptcore-standin")


def serve(pipe, *kept):
    """Does what it is told, ``(function, arguments)``, and answers with the result or the error's text, until None."""
    kept = list(kept)
    while True:
        try:
            order = pipe.recv()
            if order is None:
                return
            pipe.send(globals()[order[0]](kept, *order[1:]))
        except EOFError:
            return
        except Exception as e:
            pipe.send(f"{type(e).__name__}: {e}")


def keep(kept, *tensors):
    kept.extend(tensors)
    return len(kept)


def needed(kept):
    """How many of this process's storages others have."""
    _devices.collect()
    return len(_devices._sent)


def values(kept, *tensors):
    kept.extend(tensors)
    return [t.detach().cpu().numpy() for t in kept]


def add(kept, value):
    for t in kept:
        t += value
    cuda.synchronize()


def share(kept):
    """Whether the two that are kept are over one memory: the one sees what is written to the other."""
    kept[0].fill_(7)
    return kept[1].tolist()


def fork_and_drop(kept):
    """A child of the receiver lets its copies go; how many the receiver has then."""
    child = os.fork()
    if child == 0:
        kept.clear()
        gc.collect()
        os._exit(0)
    os.waitpid(child, 0)
    return len(kept)


def drop(kept):
    kept.clear()


def double_and_drop(kept, value):
    """Work that is still to be done when the tensor ends."""
    for t in kept:
        t *= value
    kept.clear()


def make(kept, n):
    return ptcore.arange(float(n), device="cuda")


def waits(kept, event):
    event.wait()
    event.synchronize()
    return event.query(), event.device.index


def train(rank, model, x, y):
    optimizer = ptcore.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        ((model(x) - y) ** 2).mean().backward()
        optimizer.step()
    cuda.synchronize()
