"""Numbers that are recorded: each run prints them beside what they were at e54336a5, and one that is 10 % above that
fails. Those of the import are of an installed wheel. A value here moves with a line in ``doc/source/dev/decisions``
alone.
"""
import _walk

AT = "e54336a5"
ROOM = 1.1
VALUES = {
    "import ptcore: modules of ptcore": 59, "import ptcore: other modules": 13, "import ptcore: files opened": 36,
    "bytes of kernels at level base": 2_800_000, "bytes of kernels at level v3": 4_100_000,
    "bytes of kernels at level v4": 3_139_958, "bytes of what all levels call": 400_000,
}


def held(name, value, was=None):
    """Tells a number; raises AssertionError where it is over its value by more than ROOM."""
    was = VALUES[name] if was is None else was
    _walk.FOLDER.mkdir(exist_ok=True)
    with open(_walk.FOLDER / "recorded.txt", "a") as f:
        f.write(f"{name}: {value:,} ({was:,} at {AT})\n")
    assert value <= ROOM * was, f"{name}: {value:,}, {value / was - 1:.0%} over {was:,}, which it was at {AT}"


def lines():
    """What was told in this run."""
    path = _walk.FOLDER / "recorded.txt"
    return sorted(path.read_text().splitlines()) if path.exists() else []
