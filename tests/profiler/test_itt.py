"""Ranges for Intel's VTune, which ptcore is built without."""
import pytest

from ptcore.profiler import itt

pytestmark = pytest.mark.core


def test_a_range_is_refused_before_its_body():
    body = []
    with pytest.raises(RuntimeError, match="ITT functions not installed"), itt.range("step {}", 3):
        body.append(1)
    assert body == [] and not itt.is_available()


def test_functions_are_refused():
    for call in (itt.range_pop, lambda: itt.range_push("a"), lambda: itt.mark("a")):
        with pytest.raises(RuntimeError, match="ITT functions not installed"):
            call()
