"""What modes see of the in-place forms of rows, beside torch's."""
import pytest
from _cases import ROWS, cases, dtypes, inplace_function
from _walk import walk
from test_parity_ops import both

import ptcore as pt
import ptcore.overrides

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.parity


def counterpart(row):
    for space in (torch.Tensor, torch.nn.functional, torch):
        found = getattr(space, f"{row.called}_", None)
        if found is not None:
            return found
    return None


INPLACE = [r for r in ROWS.values() if r.inplace and not r.internal and cases(r) and counterpart(r)]


def mode_of(m):
    class Log(m.overrides.TorchFunctionMode):
        """Names the calls and answers them with their first argument."""
        names = ()

        def __torch_function__(self, func, types, args=(), kwargs=None):
            self.names += (func.__name__,)
            return args[0]
    return Log()


@walk("row", INPLACE)
def test_in_place(row):
    dtype = "float64" if "float64" in dtypes(row) else dtypes(row)[0]
    (positional, keyword), forms = both(row, cases(row)[0], dtype, "contiguous")
    with mode_of(pt) as ours:
        inplace_function(row)(*positional, **keyword)
    for given, named in forms:
        try:
            with mode_of(torch) as theirs:
                counterpart(row)(*given, **named)
        except TypeError:               # torch takes another form of the call
            continue
        assert ours.names == theirs.names
        return
    raise AssertionError("torch takes no form of the call")


def test_how_many():
    assert len(INPLACE) >= 110
