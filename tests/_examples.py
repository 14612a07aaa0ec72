"""How many examples hypothesis tries: a test's own number, times PTCORE_TEST_EXAMPLES at night."""
import os

from hypothesis import settings

FACTOR = int(os.environ.get("PTCORE_TEST_EXAMPLES", "1"))


def examples(n):
    """A decorator: `n` examples, without a deadline."""
    return settings(max_examples=n * FACTOR, deadline=None)
