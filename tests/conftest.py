"""What every test starts from: fixed seeds and the library's default state; which tests run alone, and in which order.

The suite runs by two workers, ``-n 2 --dist worksteal``, or in one process.
"""
import gc
import os
import re
import sys
from pathlib import Path

# pytest-xdist: each worker has a core to itself, and so have BLAS libraries, which read this when they are loaded.
WORKER = "PYTEST_XDIST_WORKER" in os.environ
if WORKER:
    os.environ["OPENBLAS_NUM_THREADS"] = os.environ["MKL_NUM_THREADS"] = "1"
# Options of this run are not those of the runs that tests start: a second ``-q`` hides how many tests passed.
os.environ.pop("PYTEST_ADDOPTS", None)

import _alone  # noqa: E402
import _draw  # noqa: E402
import _recorded  # noqa: E402
import _torch_warnings  # noqa: E402
import _walk  # noqa: E402
import numpy as np  # noqa: E402
import pytest  # noqa: E402

import ptcore  # noqa: E402

HERE = Path(__file__).resolve().parent


def pytest_addoption(parser):
    parser.addoption("--rows", help="names of ops: what is about other ones, or about none, is left out")


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node):
    """xdist: the controller makes a worker."""
    node.workerinput["ptcore_folder"] = str(_walk.FOLDER)


def pytest_configure(config):
    if hasattr(config, "workerinput"):
        _alone.WORKER, _walk.FOLDER = True, Path(config.workerinput["ptcore_folder"])
    # The inner loop is what is marked as core, without what takes seconds.
    config.option.markexpr = re.sub(r"\bcore\b", "(core and not slow and not outer)", config.option.markexpr)
    if config.getoption("--rows"):
        _walk.ROWS = set(config.getoption("--rows").split(","))
    # From Python 3.15 on a fork beside another thread raises where warnings are errors: xdist's worker has one, and
    # tests fork beside their own.
    if WORKER or sys.version_info >= (3, 15):
        config.addinivalue_line("filterwarnings", "ignore:This process .*is multi-threaded, use of:DeprecationWarning")


@pytest.hookimpl(optionalhook=True)
def pytest_handlecrashitem(crashitem, report, sched):
    """xdist: a worker has died. What each worker wrote down last names the case."""
    told = "\n".join(f"{worker}: {case}" for worker, case in _walk.running().items())
    report.sections.append(("the cases that ran last", told))


def pytest_unconfigure():
    if not _alone.WORKER:
        _walk.forget()


@pytest.hookimpl(wrapper=True)
def pytest_collection(session):
    """The tests themselves are millions of objects that live to the end: they are made without Python's collector,
    and no ``gc.collect()`` of a test walks them again."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.collect()
        gc.freeze()


def pytest_terminal_summary(terminalreporter):
    terminalreporter.write_line(_draw.described())
    for line in _recorded.lines():
        terminalreporter.write_line(line)


def pytest_collection_modifyitems(config, items):
    """What counts, by its folder; what compares with torch and may warn, by its name."""
    if _walk.ROWS is not None:
        config.hook.pytest_deselected(items=[item for item in items if not _walk.rows_of(item) & _walk.ROWS])
        items[:] = [item for item in items if _walk.rows_of(item) & _walk.ROWS]
    for item in items:
        folder = item.path.relative_to(HERE).parts[0] if item.path.is_relative_to(HERE) else None
        if folder in _alone.COUNTING and not item.get_closest_marker("alone"):
            item.add_marker(pytest.mark.counts)
        if item.path.name.startswith("test_parity_"):
            item.add_marker(pytest.mark.parity)
            for text in _torch_warnings.FILTERS:
                item.add_marker(pytest.mark.filterwarnings(text), append=False)
    items.sort(key=_alone.place)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item):
    """The time that a test waits for the machine is none of its own."""
    alone, counts = (item.get_closest_marker(name) is not None for name in ("alone", "counts"))
    with _alone.machine(alone, counts):
        return (yield)


@pytest.fixture(autouse=True)
def fixed_state():
    """Same numbers in every run and order; whatever a test sets is put back."""
    _walk.seed()
    if "torch.distributions" in sys.modules:        # PyTorch's compiler switches it off for the process
        sys.modules["torch.distributions"].Distribution.set_default_validate_args(True)
    dtype = ptcore.get_default_dtype()
    yield
    ptcore.set_default_dtype(dtype)
    assert ptcore.is_grad_enabled(), "a test left grad mode switched off"


@pytest.fixture(autouse=WORKER)
def one_thread():
    """Two workers with as many threads each as there are cores would wait for each other. Tests about threads set
    their own number."""
    ptcore.set_num_threads(1)
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(1)


@pytest.fixture(autouse=True)
def no_source_tree(monkeypatch):
    """Spawned processes get this one's path: the folder of the tests' checkout must not hide the installed package."""
    hides = {"", os.getcwd(), str(Path(__file__).parents[1])} - {str(Path(ptcore.__file__).parents[1])}
    if not hides.isdisjoint(sys.path):
        monkeypatch.setattr(sys, "path", [p for p in sys.path if p not in hides])


@pytest.fixture(scope="session", autouse=True)
def extensions(tmp_path_factory):
    """The cache of extensions that tests compile is none of the user's."""
    before = os.environ.get("PTCORE_EXTENSIONS_DIR")
    folder = os.environ["PTCORE_EXTENSIONS_DIR"] = str(tmp_path_factory.mktemp("extensions"))
    yield Path(folder)
    del os.environ["PTCORE_EXTENSIONS_DIR"]
    if before is not None:
        os.environ["PTCORE_EXTENSIONS_DIR"] = before


@pytest.fixture
def rng():
    return np.random.default_rng(0)
