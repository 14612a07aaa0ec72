"""Functions that are no rows, called with one wrong argument: ours raises and takes what torch raises and takes."""
import warnings

import pytest

torch = pytest.importorskip("torch")
import _call_table  # noqa: E402
import _open_calls  # noqa: E402
import _wrong_calls  # noqa: E402

import ptcore as pt  # noqa: E402

pytest.importorskip("torch.nn.utils.prune")      # torch imports neither by itself
pytest.importorskip("torch.nn.utils.parametrizations")

pytestmark = pytest.mark.parity
OPEN = _open_calls.OPEN


@pytest.fixture(autouse=True)
def modes():
    """A call that is taken may switch them."""
    yield
    for lib in (pt, torch):
        lib.autograd.set_detect_anomaly(False)
        lib.set_grad_enabled(True)


@pytest.mark.parametrize("path", sorted(_call_table.FUNCTIONS))
def test_function(path):
    make, found = _call_table.FUNCTIONS[path], []
    with warnings.catch_warnings(), torch.random.fork_rng():
        warnings.simplefilter("ignore", UserWarning)
        warnings.simplefilter("ignore", FutureWarning)
        warnings.simplefilter("ignore", DeprecationWarning)
        for what, *rest in _wrong_calls.walk(path, make, not path.startswith(_call_table.RANDOM)):
            found.append(f"{what}: {rest}")
    assert not [text for text in found if text.startswith("as it should be")]
    assert len(found) <= OPEN.get(path, 0), "\n".join(found)
