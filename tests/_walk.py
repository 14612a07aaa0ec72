"""One test over many cases: every case runs, whatever became of those before it, and the failures are told together.

    with every_case() as case:
        for dtype in dtypes(row):
            with case(dtype):
                check(row, dtype)

``walk`` is ``pytest.mark.parametrize`` whose values are the cases of few tests: those over rows of the table make one
for each family. ``--rows softmax,relu`` runs what is about these rows alone.

Every case starts from the same seeds. The name of the case that runs stands in a file of the worker, which survives a
crash and a time limit; ``running()`` reads the files, and the session prints them when a worker has crashed.
"""
import contextlib
import inspect
import os
import random
import shutil
import tempfile
import traceback
from pathlib import Path

import numpy as np
import pytest

import ptcore

# One folder for all the workers of a run, which get its name from the controller.
FOLDER = Path(tempfile.gettempdir()) / f"ptcore-tests-{os.getpid()}"
WIDTH, SHOWN = 400, 20
_file = None


def note(text):
    """Writes down what runs now: one call of the system, since it is made for every case."""
    global _file
    if _file is None:
        FOLDER.mkdir(exist_ok=True)
        _file = os.open(FOLDER / os.environ.get("PYTEST_XDIST_WORKER", "main"), os.O_CREAT | os.O_WRONLY, 0o600)
    os.pwrite(_file, f"{os.environ.get('PYTEST_CURRENT_TEST', '')} {text}".encode()[:WIDTH].ljust(WIDTH), 0)


def running():
    """{worker: the test and the case that it wrote down last}."""
    found = sorted(path for path in FOLDER.iterdir() if not path.suffix) if FOLDER.exists() else []
    return {path.name: path.read_text(errors="replace").strip() for path in found}


def forget():
    """Removes the files: nothing runs any more."""
    shutil.rmtree(FOLDER, ignore_errors=True)


def seed():
    """What every test and every case starts from."""
    random.seed(0)
    np.random.seed(0)
    ptcore.manual_seed(0)


class Cases:
    """Counts the cases and keeps their failures."""

    def __init__(self):
        self.tried, self.failed = 0, []

    @contextlib.contextmanager
    def __call__(self, *words):
        name = " ".join(map(str, words))
        note(name)
        self.tried += 1
        seed()
        try:
            yield
        except BaseException as error:
            # pytest's own outcomes are no Exceptions: ``raises`` without an exception fails this case alone, and a
            # skip, which would hide the other cases' failures, is one more. A time limit or an interrupt ends all.
            of_case = isinstance(error, (Exception, pytest.fail.Exception, pytest.skip.Exception))
            if not of_case or "from pytest-timeout" in str(error):
                error.add_note(f"in the case {name}, after {len(self.failed)} failures in {self.tried} cases")
                raise
            self.failed.append((name, error))


@contextlib.contextmanager
def every_case():
    """A `Cases`; raises AssertionError with every failed case at the end, the first of them as its cause."""
    cases = Cases()
    yield cases
    assert cases.tried, "no case was tried"
    if cases.failed:
        told = []
        for name, error in cases.failed[:SHOWN]:
            where = traceback.extract_tb(error.__traceback__)[-1]
            told.append(f"{name}: {type(error).__name__} at {Path(where.filename).name}:{where.lineno}: "
                        f"{str(error).strip()[:600]}")
        more = len(cases.failed) - len(told)
        raise AssertionError(f"{len(cases.failed)} of {cases.tried} cases failed\n" + "\n".join(told) +
                             (f"\nand {more} more" if more else "")) from cases.failed[0][1]


ROWS = None             # the names that ``--rows`` gives, or None


def family(value):
    """What a test is made for: the family of a row, or nothing."""
    return getattr(value, "family", "all")


def name_of(value):
    """The name of a row, or of what is given by its name; None of anything else."""
    value = getattr(value, "name", value)
    return value if isinstance(value, str) else None


def walk(names, values, by=family):
    """Like ``parametrize``, but values for whose first element ``by`` gives the same word are the cases of one test.

    Other fixtures and parametrizations of the function are those of its tests.
    """
    names = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)
    groups = {}
    for value in values:
        value = value if hasattr(value, "values") and hasattr(value, "marks") else pytest.param(
            *(value if len(names) > 1 else (value,)))
        assert not value.marks, "a mark belongs to a test, not to a case"
        label = value.id or "-".join(str(getattr(v, "name", getattr(v, "__name__", v))) for v in value.values)
        cases = groups.setdefault(str(by(value.values[0])), {})
        assert label not in cases, f"two cases are called {label}"
        cases[label] = value.values

    def decorate(f):
        def test(group, **fixtures):
            with every_case() as tried:
                for label, given in groups[group].items():
                    if ROWS is None or name_of(given[0]) in ROWS:
                        with tried(label):
                            f(**dict(zip(names, given)), **fixtures)
        own = [p.replace(kind=p.KEYWORD_ONLY) for p in inspect.signature(f).parameters.values() if p.name not in names]
        test.__signature__ = inspect.Signature([inspect.Parameter("group", inspect.Parameter.KEYWORD_ONLY), *own])
        test.__name__, test.__doc__, test.__module__ = f.__name__, f.__doc__, f.__module__
        test.pytestmark = list(getattr(f, "pytestmark", []))
        test.rows = {group: {name_of(given[0]) for given in cases.values()} for group, cases in groups.items()}
        return pytest.mark.parametrize("group", list(groups))(test)
    return decorate


def rows_of(item):
    """The names of the rows that a test is about."""
    given = getattr(getattr(item, "callspec", None), "params", {})
    walked = getattr(getattr(item, "function", None), "rows", None)
    if walked is not None:
        return walked[given["group"]]
    return {name_of(value) for key, value in given.items() if key in ("row", "name")}
