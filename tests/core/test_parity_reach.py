"""Two threads in one context or mode at once, beside torch: what each of them sees at each moment."""
import pytest
from _reach import DIFFERENT, LATER, PROCESS, TABLE, THREAD, reach_of, walked

import ptcore

torch = pytest.importorskip("torch")

pytestmark = [pytest.mark.filterwarnings(f"ignore::{kind}") for kind in (
    "UserWarning", "FutureWarning", "DeprecationWarning")]


@pytest.fixture(autouse=True)
def threads_of_torch():
    """torch has a number of threads for each thread that asks for one first."""
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


def changes(seen):
    """At which moments and for whom a mode shows, whatever its values are."""
    base = seen[0][1]
    return [(moment, *[one != base for one in others]) for moment, *others in seen]


@pytest.mark.parametrize("name", [name for name, entry in TABLE.items() if not entry.is_own])
def test_as_in_torch(name):
    entry = TABLE[name]
    if name in DIFFERENT:
        single = type(entry)(entry.reach, entry.seen, run=entry.run, around=entry.around, is_single=True)
        assert (reach_of(walked(torch, single)), reach_of(walked(ptcore, single))) == (PROCESS, THREAD)
        return
    theirs = walked(torch, entry)
    if name in LATER:
        assert [one == theirs[1][1] for one in theirs[1][1:]] == [True, False, True]
        return
    if reach_of(theirs) == entry.reach:
        assert changes(theirs) == changes(walked(ptcore, entry))
    else:                               # of what torch has and ptcore's processors have not
        assert entry.reach == "nowhere", theirs
