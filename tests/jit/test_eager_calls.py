"""Functions that are not captured: what they call meets the frames, keywords and depth that it meets in eager."""
import collections
import logging
import sys

import pytest

import ptcore as pt


def deep(x, n):
    return x if n == 0 else deep(x + 1, n - 1)


def test_a_deep_recursion_fits():
    n = sys.getrecursionlimit() // 2
    assert pt.compile(deep)(pt.zeros(2), n).tolist() == [n, n]


def test_an_endless_recursion_raises():
    def endless(x):
        return endless(x + 1)

    with pytest.raises(RecursionError):
        pt.compile(endless)(pt.zeros(2))


def scaled(x, f=1.0, *, args=2.0, kwargs=0.0, part_of=0.0):
    return x * f * args + kwargs + part_of


def caller():
    return sys._getframe(1).f_code.co_name


def variables(x):
    print(end="")
    y = abs(x)
    return sorted(vars()), sorted(dir()), y


def calls(x):
    print(end="")
    Pair = collections.namedtuple("Pair", "a b")
    logging.getLogger(__name__).warning("here")
    return scaled(x, f=3.0), scaled(x, args=3.0, kwargs=1.0, part_of=1.0), caller(), Pair.__module__


def test_keywords_and_frames(caplog):
    found, expected = pt.compile(calls)(pt.ones(2)), calls(pt.ones(2))
    assert [x.tolist() for x in found[:2]] == [[6.0, 6.0], [5.0, 5.0]] == [x.tolist() for x in expected[:2]]
    assert found[2:] == expected[2:] == ("calls", __name__)
    mine, theirs = caplog.records
    assert (mine.funcName, mine.lineno, mine.module) == (theirs.funcName, theirs.lineno, theirs.module)


def test_variables():
    assert pt.compile(variables)(pt.ones(2))[:2] == variables(pt.ones(2))[:2]


def closes(x):
    for y in left_open(x):
        return y + 1


LOG = []


def left_open(x):
    try:
        yield x * 2
    finally:
        LOG.append(len(LOG))


def test_a_generator_that_is_dropped_ends_quietly(capsys):
    """Its ``finally`` cannot be captured, and the interpreter drops errors that it raises."""
    f = pt.compile(closes)
    for k in range(3):
        assert f(pt.ones(1)).tolist() == [3.0]
        assert LOG == list(range(k + 1))
    assert capsys.readouterr().err == ""


W = pt.ones(3, requires_grad=True)


def views(x):
    y = x * W
    with pt.no_grad():
        return y[1:], y.view(3, 1), W.view(3), x.view(3)


@pytest.mark.parametrize("backend", ["cpu", "eager"])
@pytest.mark.parametrize("grad", [True, False])
def test_views_without_history_of_what_requires_grad_are_leaves(backend, grad):
    def looks(found):
        return [(x.requires_grad, x.is_leaf, x.tolist()) for x in found]

    f = pt.compile(views, backend=backend)
    one = [pt.compile(lambda x, k=k: views(x)[k], backend=backend) for k in range(4)]
    for x in (pt.ones(3), pt.ones(3, requires_grad=True), pt.ones(3), W):
        with pt.set_grad_enabled(grad):
            expected = looks(views(x))
            assert looks(f(x)) == looks(f(x)) == expected
            assert looks([g(x) for g in one]) == expected
