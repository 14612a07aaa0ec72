"""Long random programs about modules, with what ptcore and PyTorch have compared after every operation."""
import math

import _state_machine as machine
import pytest

import ptcore as pt

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.parity


def close(a, b):
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        return len(a) == len(b) and all(map(close, a, b))
    if isinstance(a, float) and isinstance(b, float):
        return a == b or (a != a and b != b) or math.isclose(a, b, rel_tol=1e-3, abs_tol=1e-3)
    return a == b


# What errors of these leave half done: names, keys and given tensors in PyTorch, gradients in both.
PARTIAL = ("prune", "functional", "parameter_tables", "backward", "step")


def difference(seed):
    """Where a program differs, as a line, or None.

    It ends where PyTorch refuses what ptcore runs, or an error leaves something half done.
    """
    start, program = machine.draw(seed)
    ours, theirs = (machine.World(m, start) for m in (pt, torch))
    for i, (name, number) in enumerate(program):
        (kind, a), (expected, b) = (machine.step(w, name, number) for w in (ours, theirs))
        if expected == "error" and (kind != "error" or name in PARTIAL):
            return None
        if kind != expected or (not a & b if kind == "error" else not close(a, b)):
            return f"{program[:i + 1]}: {kind} {a!r:.300}, PyTorch: {expected} {b!r:.300}"
        a, b = machine.seen(ours), machine.seen(theirs)
        for key in a:
            if not close(a[key], b[key]):
                if b[key] == "failed":
                    return None
                return f"{program[:i + 1]}, {key}: {a[key]!r:.500}, PyTorch: {b[key]!r:.500}"
    return None


@pytest.mark.parametrize("seed", range(24))
def test_programs(seed):
    with pt.random.use("pytorch"):
        found = difference(seed)
    assert found is None, f"seed {seed}, {found}"
