"""A plugin for pytest: SciPy's own tests, of each the runs on other libraries' arrays, with tensors.

    SCIPY_ARRAY_API=1 PYTHONPATH=tests/outside python -P -m pytest -p _scipy_backend --pyargs scipy.ndimage

SciPy's fixture ``xp`` gives each test the namespaces that SciPy knows. This one gives it ``ptcore.array_api`` alone,
and leaves out the tests without that fixture: they know NumPy's arrays only. What a test marks for all foreign namespaces,
or for those that are not on the CPU, holds for this one.
"""
import os

import pytest

os.environ.setdefault("SCIPY_ARRAY_API", "1")

import scipy.conftest

import ptcore
from ptcore import array_api

scipy.conftest.xp_known_backends.add(array_api.__name__)
ptcore.set_default_dtype(ptcore.float64)        # as SciPy expects of every library, and sets for PyTorch
BACKEND = pytest.param(array_api, id=array_api.__name__, marks=pytest.mark.array_api_backends)


@pytest.hookimpl(tryfirst=True)
def pytest_generate_tests(metafunc):
    for definition in metafunc._arg2fixturedefs.get("xp", ()):
        definition.params = (BACKEND,)


def pytest_collection_modifyitems(config, items):
    chosen = [item for item in items if item.get_closest_marker("array_api_backends")]
    config.hook.pytest_deselected(items=[item for item in items if item not in set(chosen)])
    items[:] = chosen
