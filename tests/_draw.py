"""For second oracles and further dtypes: a fifth of the rows in CI, another one with each commit, and all of them at
night and by hand. Each row keeps an undrawn test of its values and one of its derivative elsewhere.

The draw is a number that ``.ci/run`` takes from HEAD's commit, so that a rehearsal of a commit draws what CI draws. A
row belongs to a part by its name alone: a new row moves no other. Which part is said at the end of a run.
"""
import os
import zlib

PARTS = 5
DRAW = os.environ.get("PTCORE_TEST_DRAW")


def part(name):
    """The part, 0 to PARTS - 1, that a name belongs to."""
    return zlib.crc32(name.encode()) % PARTS


def drawn(rows, name=str, draw=DRAW):
    """The rows that a run tries, in their order: all where no draw is given. ``name`` gives a row's name."""
    return [row for row in rows if draw is None or part(name(row)) == int(draw) % PARTS]


def described(draw=DRAW):
    """The line that says what is drawn."""
    if draw is None:
        return "second oracles: all rows"
    return f"second oracles: part {int(draw) % PARTS} of {PARTS} of the rows (PTCORE_TEST_DRAW={draw})"
