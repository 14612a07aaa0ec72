"""Random programs about modules, their hooks, states and optimizers, with ptcore and with PyTorch."""
import math
import warnings

import _module_programs as programs
import pytest

import ptcore as pt

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.parity


def close(a, b):
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        return len(a) == len(b) and all(map(close, a, b))
    if isinstance(a, float) and isinstance(b, float):
        return a == b or (a != a and b != b) or math.isclose(a, b, rel_tol=1e-4, abs_tol=1e-4)
    return a == b


@pytest.mark.parametrize("seed", range(16))
def test_program(seed):
    program = programs.draw(seed)
    with warnings.catch_warnings(action="ignore"):
        seen, expected = programs.run(pt, program), programs.run(torch, program)
    for i, (a, b) in enumerate(zip(seen, expected)):
        done = [x for x in expected[:i + 1] if isinstance(x, str)][-4:]
        assert close(a, b), f"seed {seed}, {program[0]}, after {done}: {a!r:.300}, PyTorch: {b!r:.300}"
    assert len(seen) == len(expected)
