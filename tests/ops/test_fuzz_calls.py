"""Random calls with arguments of every kind: whatever happens is an ordinary exception.

Nothing may crash, hang or raise SystemError (a C function that failed without saying so); a wrong
kind of argument is a TypeError or a relative, not an AttributeError from inside.
"""
import random

import numpy as np
import pytest

import ptcore
from ptcore.nn import functional

pytestmark = pytest.mark.core

ORDINARY = (RuntimeError, TypeError, ValueError, IndexError, OverflowError, ZeroDivisionError, BufferError, MemoryError)
HUGE = 2**40
# They change the state of the process, read files or memory addresses, or hand over ownership.
LEFT_OUT = {*(f"set_autocast_{name}" for name in ("enabled", "cpu_enabled", "dtype", "cpu_dtype", "gpu_dtype",
                                                  "cache_enabled")),
            "autocast_increment_nesting", "autocast_decrement_nesting", "set_default_dtype", "set_default_device", "set_grad_enabled", "set_printoptions", "set_num_threads",
            "set_rng_state", "manual_seed", "seed", "save", "load", "from_dlpack", "enable_grad", "no_grad",
            "inference_mode", "data_ptr", "storage", "untyped_storage", "share_memory_", "resize_",
            "is_complex", "is_floating_point", "is_signed", "numel"}


def pool():
    return [None, 0, 1, -1, HUGE, 2**70, 1.5, float("nan"), "a", b"x", (), (0,), (1, -1), [0, [1]], slice(None), print,
            {}, object(), np.ones(2), ptcore.float64, [ptcore.ones(2)] * 2, ptcore.ones(2), ptcore.ones(0),
            ptcore.tensor(1), ptcore.ones(2, 3), ptcore.zeros(2, dtype=ptcore.int64), ptcore.tensor([True, False]),
            ptcore.ones(2, device="meta"), ptcore.ones(1, 2, 3, dtype=ptcore.complex64),
            ptcore.ones(3, dtype=ptcore.bfloat16), ptcore.ones(2, requires_grad=True)]


def check(call, name, arguments):
    try:
        call(*arguments)
    except ORDINARY:
        pass
    except AttributeError as e:
        pytest.fail(f"{name}{tuple(map(repr, arguments))}: AttributeError {e}")


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.filterwarnings("ignore")
def test_functions(seed):
    rng = random.Random(seed)
    names = [(module, n) for module in (ptcore, functional, ptcore.linalg) for n in sorted(dir(module))
             if callable(getattr(module, n)) and not n.startswith("_") and n not in LEFT_OUT
             and not isinstance(getattr(module, n), type)]
    for _ in range(4000):
        module, name = rng.choice(names)
        arguments = [rng.choice(pool()) for _ in range(rng.randint(0, 4))]
        if any(isinstance(a, int) and a >= HUGE for a in arguments):
            continue                    # an honest request for terabytes
        check(getattr(module, name), name, arguments)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.filterwarnings("ignore")
def test_methods(seed):
    rng = random.Random(seed)
    special = ("__getitem__", "__setitem__", "__add__", "__pow__", "__matmul__", "__contains__", "__array__", "__dlpack__")
    names = [n for n in sorted(dir(ptcore.Tensor)) if not n.startswith("__") and n not in LEFT_OUT] + list(special)
    for _ in range(4000):
        tensors = [x for x in pool() if isinstance(x, ptcore.Tensor)]
        x, name = rng.choice(tensors).clone(), rng.choice(names)
        arguments = [rng.choice(pool()) for _ in range(rng.randint(0, 3))]
        if name.startswith("new_") and any(isinstance(a, int) and a >= HUGE for a in arguments):
            continue
        try:
            method = getattr(x, name)
        except ORDINARY:
            continue
        if callable(method):
            check(method, name, arguments)
