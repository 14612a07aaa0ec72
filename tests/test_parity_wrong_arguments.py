"""Functions, modules, schedules and methods that are no rows, called with one wrong argument.

Ours raises and takes what torch raises and takes. The calls that differ are listed in ``_open_calls``, one by one.
"""
import warnings

import pytest
from _walk import walk

torch = pytest.importorskip("torch")
import _call_table  # noqa: E402
import _class_table  # noqa: E402
import _open_calls  # noqa: E402
import _wrong_calls  # noqa: E402

import ptcore as pt  # noqa: E402

pytest.importorskip("torch.nn.utils.prune")      # torch imports neither by itself
pytest.importorskip("torch.nn.utils.parametrizations")

pytestmark = pytest.mark.parity
CASES = {path: (make, not path.startswith(_call_table.RANDOM), None) for path, make in _call_table.FUNCTIONS.items()}
CASES |= {path: (case.make, case.values, case.call) for path, case in _class_table.CASES.items()}


@pytest.fixture(autouse=True)
def modes():
    """A call that is taken may switch them."""
    yield
    for lib in (pt, torch):
        lib.autograd.set_detect_anomaly(False)
        lib.set_grad_enabled(True)


@pytest.mark.parametrize("path", sorted(CASES))
def test_call(path):
    make, values, call = CASES[path]
    listed = _open_calls.listed(path)
    with warnings.catch_warnings(), torch.random.fork_rng():
        for kind in (UserWarning, FutureWarning, DeprecationWarning, RuntimeWarning, SyntaxWarning):
            warnings.simplefilter("ignore", kind)
        found = {what: f"{what}: {rest}" for what, *rest in _wrong_calls.walk(path, make, values, call)}
    assert "as it should be" not in found, found["as it should be"]
    differ = [text for what, text in found.items() if what not in listed]
    assert not differ, "\n".join(differ)
    alike = [what for what in listed if what not in found and _wrong_calls.tried(path, what)]
    assert not alike, f"these no longer differ: {alike}"


@walk("path", sorted(_open_calls.LISTED))
def test_what_is_listed(path):
    """Each is a call that there is, and stands there once."""
    calls = [what for what, _ in _wrong_calls.wrong_calls(CASES[path][0])]
    assert set(_open_calls.listed(path)) <= set(calls)
    assert len(set(_open_calls.listed(path))) == len(_open_calls.listed(path))


def test_no_schedule_is_left_out():
    schedule = pt.optim.lr_scheduler
    found = {name for name in schedule.__all__ if isinstance(getattr(schedule, name), type)}
    assert found == set(_class_table.SCHEDULES)
