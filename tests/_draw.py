"""For generated tests that are over their minutes: a tenth of the rows in CI, another one with each commit, and all of
them at night and by hand. Which tenth is said at the end of a run."""
import os

PARTS = 10
DRAW = os.environ.get("PTCORE_TEST_DRAW")       # a number: CI gives that of the commit


def drawn(rows, draw=DRAW):
    """The rows that a run tries, in their order: all where no draw is given."""
    rows = list(rows)
    return rows if draw is None else rows[int(draw) % PARTS::PARTS]


def described(draw=DRAW):
    """The line that says what is drawn."""
    if draw is None:
        return "generated tests: all rows"
    part = int(draw) % PARTS
    return f"generated tests over their minutes: rows {part}, {part + PARTS}, ... (PTCORE_TEST_DRAW={draw})"
