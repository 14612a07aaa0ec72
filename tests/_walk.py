"""One test over many cases: every case runs, whatever became of those before it, and the failures are told together.

    with every_case() as case:
        for dtype in dtypes(row):
            with case(dtype):
                check(row, dtype)

The name of the case that runs stands in a file of the worker, which survives a crash and a time limit; ``running()``
reads the files, and the session prints them when a worker has crashed.
"""
import contextlib
import os
import tempfile
import traceback
from pathlib import Path

# One folder for all the workers of a run: they inherit the controller's environment.
FOLDER = Path(os.environ.setdefault("PTCORE_TEST_RUNNING", tempfile.gettempdir() + f"/ptcore-tests-{os.getpid()}"))
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
    found = sorted(FOLDER.iterdir()) if FOLDER.exists() else []
    return {path.name: path.read_text(errors="replace").strip() for path in found}


def forget():
    """Removes the files: nothing runs any more."""
    for name in running():
        (FOLDER / name).unlink(missing_ok=True)
    with contextlib.suppress(OSError):
        FOLDER.rmdir()


class Cases:
    """Counts the cases and keeps their failures."""

    def __init__(self):
        self.tried, self.failed = 0, []

    @contextlib.contextmanager
    def __call__(self, *words):
        name = " ".join(map(str, words))
        note(name)
        self.tried += 1
        try:
            yield
        except Exception as error:
            self.failed.append((name, error))
        except BaseException as error:          # a time limit, or an interrupt: of no other case
            error.add_note(f"in the case {name}")
            raise


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
