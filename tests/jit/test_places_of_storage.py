"""Programs that name places of a storage: traced and captured ones give what the program gives for any offset."""
import numpy as np
import pytest

import ptcore as pt
from ptcore.fx.experimental.proxy_tensor import make_fx

BASE = pt.arange(12.0)
PROGRAMS = {
    "absolute": lambda x: x.as_strided((2,), (1,), 1) * 1,
    "default": lambda x: x.as_strided((2,), (1,)) * 1,
    "of a view": lambda x: x[1:].as_strided((2,), (1,)) * 1,
    "copy": lambda x: pt.as_strided_copy(x, (2,), (1,), 1) + 0,
    "of a result": lambda x: (x * 1).as_strided((2,), (1,), 1) * 2,
    "gradient": lambda x: pt.func.grad(lambda y: (y * y).as_strided((2,), (1,), 1).sum())(x),
}


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("wrap", ["compile", "eager backend", "trace", "real", "fake", "symbolic"])
def test_offsets(name, wrap):
    f = PROGRAMS[name]
    if wrap == "compile" or wrap == "eager backend":
        g = pt.compile(f, backend="cpu" if wrap == "compile" else "eager")
    else:
        g = pt.jit.trace(f, (BASE[0:4],)) if wrap == "trace" else make_fx(f, tracing_mode=wrap)(BASE[0:4])
    for start in (0, 4, 2, 0, 7):
        x = BASE[start:start + 4]
        np.testing.assert_array_equal(g(x).numpy(), f(x).numpy(), f"offset {start}")


@pytest.mark.filterwarnings("ignore:An output with one or more elements was resized")
def test_guards_do_not_fix_memory():
    """Guards compare addresses; the memory may still be resized."""
    @pt.compile
    def program(x, out):
        return pt.add(x, 1, out=out) * 2
    for n in (3, 3, 5):
        out = pt.zeros(n)
        program(pt.ones(3), out)
        assert out.tolist() == [2.0] * 3
        out.resize_(100)
