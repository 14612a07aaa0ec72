"""Programs that read state from outside, which changes between calls: the compiled program does what the program does.

Each program has a few of the ways of ``_outside_ways.py`` to read, in different places of its text. It is run in two
copies of its state, compiled and as it is. Results, errors, and what the program has changed itself are compared.

PTCORE_OUTSIDE_PROGRAMS random programs are run (by default 300), from the seed PTCORE_TEST_SEED on.
``python test_outside_state.py NUMBER [SEED]`` prints which ways differ, and how often.
"""
import collections
import linecache
import os
import random
import re
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))
from _outside_ways import EFFECTS, REPLACED, WAYS

import ptcore as pt
from ptcore.jit.capture import guards

PROGRAMS = int(os.environ.get("PTCORE_OUTSIDE_PROGRAMS", "300"))
SEED = int(os.environ.get("PTCORE_TEST_SEED", "0"))
PARTS = 10
HEAD = """
import abc, array, collections, contextlib, contextvars, dataclasses, datetime, decimal, enum, fractions, functools
import itertools, math, operator, random, threading, types, typing, weakref
import numpy as np
import ptcore as pt
from ptcore import nn

def tried(f, error):
    try:
        return f()
    except error:
        return "handled"

def suppressed(f):
    y = "suppressed"
    with contextlib.suppress(IndexError):
        y = f()
    return y

def finished(f, log):
    try:
        return f()
    except IndexError:
        return "handled"
    finally:
        log.append(1)

def passed_on(f):
    return f()
"""
# Where a read stands. ``{0}`` is the expression, ``{1}`` a number of its own.
PLACES = ("r{1} = {0}",
          "r{1} = passed_on(lambda: {0})",
          "r{1} = [{0} for _ in range(1)][0]",
          "def inner{1}():\n        return {0}\n    r{1} = inner{1}()",
          "if x.sum() > -1e9:\n        r{1} = {0}",
          "x = x * 2\n    r{1} = {0}",
          "try:\n        r{1} = {0}\n    except AttributeError:\n        r{1} = 'absent'",
          "r{1} = ({0}, x + 1)",
          "for _ in (0,):\n        r{1} = {0}",
          "{0}\n    r{1} = 'unused'",
          "try:\n        {0}\n        r{1} = 'fine'\n    except Exception:\n        r{1} = 'failed'",
          "try:\n        r{1} = {0}\n    except Exception as error:\n        r{1} = str(error)",
          "for _ in (0,):\n        r{1} = 'begun'\n        try:\n            r{1} = {0}\n"
          "        finally:\n            break",
          "r{1} = 'begun'\n    try:\n        try:\n            r{1} = {0}\n"
          "        finally:\n            raise KeyError\n    except KeyError:\n        r{1} = (r{1}, 'raised')")
TENSOR_METHODS = {name: getattr(pt.Tensor, name) for name, _, _ in REPLACED}
made = 0


def named(text, k):
    return re.sub(r"(?<=\w)@", str(k), text)


class Program:
    """A program over a few ways to read, as text, and its state."""

    def __init__(self, ways, places):
        self.ways = [[named(part, k) if isinstance(part, str) else [named(p, k) for p in part]
                      for part in (*way, "")[:5]] for k, way in enumerate(ways)]
        body = [place.format(way[2], k) for k, (way, place) in enumerate(zip(self.ways, places))]
        results = ", ".join([f"r{k}" for k in range(len(body))])
        self.text = "\n    ".join(["def program(x):", *body, f"return x, {results}"])
        self.setup = HEAD + "\n".join(way[1] for way in self.ways) + "\n" + self.text + "\n"

    def state(self):
        """A copy of the program with its state."""
        global made
        made += 1
        name = f"<outside state {made}>"
        linecache.cache[name] = len(self.setup), None, self.setup.splitlines(True), name
        space = {"__name__": name, **{f"settled_{n}": method for n, method in TENSOR_METHODS.items()}}
        exec(compile(self.setup, name, "exec"), space)
        return space, name

    def changed(self):
        """What the program may have changed itself."""
        return [way[4] for way in self.ways if way[4]]


def outcome(f, *args):
    try:
        return f(*args)
    except Exception as error:
        if isinstance(error, NotImplementedError):
            return RuntimeError
        return type(error)


def differ(a, b):
    """In what two results differ, or None."""
    if isinstance(b, pt.Tensor):
        if type(a) is not type(b) or a.dtype is not b.dtype or a.shape != b.shape or a.requires_grad != b.requires_grad:
            return f"{a!r} for {b!r}"
        x, y = a.detach().numpy(), b.detach().numpy()
        return None if np.array_equal(x, y, equal_nan=True) and (x.dtype.kind != "f" or np.array_equal(
            np.signbit(x) | np.isnan(x), np.signbit(y) | np.isnan(y))) else f"{a!r} for {b!r}"
    if type(a) is not type(b):
        return f"{a!r} for {b!r}"
    if isinstance(b, (list, tuple)):
        if len(a) != len(b):
            return f"{a!r} for {b!r}"
        return next((d for d in map(differ, a, b) if d), None)
    if type(b).__module__.startswith(("<outside", "ptcore")) or callable(b):
        return None                     # an object of each state
    return None if repr(a) == repr(b) else f"{a!r} for {b!r}"


MODES = ("default dtype", "grad mode", "deterministic", "anomaly", "precision")


def settled():
    for name, method in TENSOR_METHODS.items():
        setattr(pt.Tensor, name, method)
    pt.set_default_dtype(pt.float32)
    pt.set_grad_enabled(True)
    pt.use_deterministic_algorithms(False)
    pt.autograd.set_detect_anomaly(False)
    pt.set_float32_matmul_precision("highest")


def run(program, steps, sizes, **options):
    """Runs a program compiled and as it is; returns the first difference, or None.

    ``steps``: for each call a list of statements that are executed before it. ``sizes``: of the argument of each call.
    """
    settled()
    (compiled, first), (plain, second) = program.state(), program.state()
    f, g = pt.compile(compiled["program"], **options), plain["program"]
    try:
        for k, (statements, n) in enumerate(zip(steps, sizes)):
            results = []
            for space, h in ((compiled, f), (plain, g)):
                for statement in statements:
                    try:
                        exec(statement, space)
                    except Exception:       # the state has no such thing any more
                        pass
                pt.manual_seed(k) if not any("seed" in s for s in statements) else None
                mode = pt.is_grad_enabled()
                found = outcome(h, pt.arange(1.0, n + 1.0))
                own = [outcome(eval, text, space) for text in program.changed()]
                results.append((found, own))
                if space is compiled:
                    pt.set_grad_enabled(mode)
            difference = differ(*results)
            if difference:
                return f"call {k} ({'; '.join(statements)}): {difference}"
        return None
    finally:
        settled()
        for name in (first, second):
            linecache.cache.pop(name, None)


def drawn(seed):
    """(program, the statements before each call, the sizes of each call, the options) of a seed."""
    rng = random.Random(seed)
    ways = rng.sample(WAYS, rng.choice((1, 1, 2, 2, 3)))
    program = Program(ways, [rng.choice(PLACES) for _ in ways])
    steps = [[]]
    for _ in range(rng.randint(2, 5)):
        steps.append([rng.choice(way[3]) for way in rng.choices(program.ways, k=rng.choice((1, 1, 2))) if way[3]])
    n = rng.randint(2, 4)
    sizes = [n if rng.random() < 0.7 else rng.randint(2, 5) for _ in steps]
    return program, steps, sizes, {"backend": rng.choice(("cpu", "eager"))}


def checked(seed):
    before = guards.SLOW_CHECKS
    guards.SLOW_CHECKS = (0, 4)[seed % 2]
    try:
        program, steps, sizes, options = drawn(seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return program, run(program, steps, sizes, **options)
    finally:
        guards.SLOW_CHECKS = before


@pytest.mark.parametrize("part", range(PARTS))
def test_random_programs(part):
    for seed in range(SEED + part, SEED + PROGRAMS, PARTS):
        program, difference = checked(seed)
        assert difference is None, f"seed {seed}: {difference}\n{program.setup[len(HEAD):]}"


@pytest.mark.parametrize("way", WAYS + EFFECTS, ids=lambda w: w[0].replace(" ", "_"))
@pytest.mark.filterwarnings("ignore")
def test_each_way(way, monkeypatch):
    """Each change by itself, all of them behind each other, and other sizes; with checks of both kinds."""
    for slow, place in ((0, PLACES[0]), (4, PLACES[(WAYS + EFFECTS).index(way) % len(PLACES)])):
        monkeypatch.setattr(guards, "SLOW_CHECKS", slow)
        program = Program([way], [place])
        changes = program.ways[0][3]
        for steps, sizes in [([[], *[[c] for c in changes], []], [3, 3]), ([[]] * 3, [2, 3, 4]),
                             *[([[], [], [c], []], [3, 3]) for c in changes if not slow]]:
            sizes = (sizes * len(steps))[:len(steps)]
            difference = run(program, steps, sizes)
            assert difference is None, f"{difference}\n{program.setup[len(HEAD):]}"


def test_there_are_enough_ways():
    names = [way[0] for way in WAYS]
    assert len(set(names)) == len(names) >= 60


def alone(name):
    """Whether a way differs by itself."""
    program = Program([next(way for way in WAYS if way[0] == name)], [PLACES[0]])
    changes = program.ways[0][3]
    return any(run(program, steps, [3, 3, 3, 4, 2][:len(steps)]) for steps in [
        [[]] * 5, *[[[], [], [c], []] for c in changes], [[], *[[c] for c in changes[:4]]]])


if __name__ == "__main__":
    number, seed = int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else SEED
    found = collections.Counter()
    for k in range(seed, seed + number):
        program, difference = checked(k)
        if difference:
            rng = random.Random(k)
            names = [way[0] for way in rng.sample(WAYS, rng.choice((1, 1, 2, 2, 3)))]
            found.update([n for n in names if alone(n)] or ["+".join(names) + f" (seed {k}): {difference[:150]}"])
    for name, n in sorted(found.items()):
        print(f"{n:4} {name}")
    print(len(found), "ways differ in", number, "programs")
