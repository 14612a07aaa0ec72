"""Structured ops called by id, the way generated functions, rules and interpreters reach them.

Nothing that a caller passes may crash the interpreter, in rows that are not public as well.
"""
import json
import random
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from _cases import ROWS, Sample, cases, dtypes

import ptcore
from ptcore._ops import rows
from ptcore._ops.call.run import call_op
from ptcore._ops.table.ids import op_id

STRUCTURED = sorted(r.name for r in rows()
                    if r.kind not in ("elementwise", "view", "composite") and r.family != "registered")
NUMBERS = [None, True, 0, 1, -1, 2, 7, 2**31, 2**40, 2**63 - 1, -2**63, 2**70, 1e300, float("nan"),
           float("inf"), 1j, "x", (), (1,), (2, 3), (0,) * 70, (2**40, 2**40), [1, 2], ptcore.float32,
           ptcore.complex64, ptcore.device("cpu"), ptcore.device("meta"), slice(None), object()]
TENSORS = [ptcore.ones(2, 3), ptcore.ones(3, 2).t(), ptcore.zeros(0, 3), ptcore.ones((1,) * 64),
           ptcore.tensor(5), ptcore.tensor([2**40, -9, 0]), ptcore.ones(3, dtype=ptcore.bool),
           ptcore.ones(2, 3, dtype=ptcore.complex64), ptcore.ones(2, 3, device="meta"), ptcore.empty(0),
           ptcore.ones(4, 4).expand(3, 4, 4), ptcore.ones(3, dtype=ptcore.bfloat16)]
CLEAR = (TypeError, ValueError, IndexError, RuntimeError, OverflowError, MemoryError, NotImplementedError)


def storm(name, draws, seed):
    """Calls a row with random arguments, more often than not of the letter's own kind."""
    letters = next(r.letters for r in rows() if r.name == name)
    rng = random.Random(f"{name} {seed}")

    def value(letter):
        if rng.random() < .1:
            return rng.choice(NUMBERS + TENSORS)
        if letter in "TIOJ":
            return rng.choice(TENSORS)
        if letter == "L":
            return tuple(rng.choices(TENSORS, k=rng.randrange(4)))
        return rng.choice(NUMBERS)

    done = 0
    for _ in range(draws):
        args = tuple(map(value, letters))
        try:
            call_op(op_id(name), args)
            done += 1
        except CLEAR:
            pass
        except Exception as e:
            raise AssertionError(f"{name}{args}") from e
    return done


def misfits(x):
    """Tensors with another shape, another dtype, or other integers."""
    shape = tuple(x.shape)
    shapes = [(), shape[1:], shape[:-1], (1, *shape), (*shape, 1)]
    shapes += [(*shape[:d], n, *shape[d + 1:]) for d, size in enumerate(shape)
               for n in (0, 1, abs(size - 1), size + 1, size + 7)]
    for other in dict.fromkeys(shapes):
        yield ptcore.ones(other, dtype=x.dtype)
    for dtype in (ptcore.bool, ptcore.uint8, ptcore.int32, ptcore.int64, ptcore.float16, ptcore.complex128):
        yield ptcore.ones(shape, dtype=dtype)
    if x.dtype.kind in "iu":
        for value in (100, ptcore.iinfo(x.dtype).max, ptcore.iinfo(x.dtype).min):
            yield ptcore.full(shape, value, dtype=x.dtype)


def call_misfits(name):
    """Calls a row with one tensor of three of its cases replaced by each misfit."""
    row, done = ROWS[name], 0
    some = cases(row)                   # none: random numbers, and what a composite of another row is tested by
    for case in {id(c): c for c in (some[:1] + some[len(some) // 2:][:1] + some[-1:])}.values():
        sample = Sample(row, case, "float64" if "float64" in dtypes(row) else dtypes(row)[-1], np.random.default_rng(0))
        args, keywords = sample.arguments()
        args = [*args, *(keywords.get(a.name, a.default) for a in row.args[len(args):])]
        for k, x in enumerate(args):
            if not isinstance(x, ptcore.Tensor):
                continue
            for other in misfits(x):
                try:
                    call_op(op_id(name), (*args[:k], other, *args[k + 1:]))
                    done += 1
                except CLEAR:
                    pass
                except Exception as e:
                    raise AssertionError(f"{name}, {row.args[k].name} of shape {tuple(other.shape)}") from e
    return done


@pytest.mark.parametrize("call", ["storm(n, 300, 0)", "call_misfits(n)"])
def test_no_argument_crashes(call):
    code = ("import json, sys; sys.path[:0] = ['.', '..']\n"
            "import test_call_op as t, ptcore\n"
            "ptcore.cpu.set_memory_cap(2**30)\n"
            f"print(json.dumps([t.{call} for n in t.STRUCTURED]))")
    run = subprocess.run([sys.executable, "-W", "ignore", "-X", "faulthandler", "-c", code],
                         capture_output=True, text=True, cwd=Path(__file__).resolve().parent, timeout=300)
    assert run.returncode == 0, run.stderr[-3000:]
    assert sum(json.loads(run.stdout)) > len(STRUCTURED)        # some of the calls are right ones


@pytest.mark.parametrize("args, error", [
    ((ptcore.ones(3), (1, 2), False, None), IndexError), ((ptcore.ones(3), (0,), (1,) * 50, None), TypeError),
    ((ptcore.ones(3), 2**70, False, None), (IndexError, OverflowError)), ((ptcore.ones(3),), TypeError),
    ((None, (0,), False, None), TypeError)])
def test_errors_name_the_op(args, error):
    with pytest.raises(error, match="sum"):
        call_op(op_id("sum"), args)
