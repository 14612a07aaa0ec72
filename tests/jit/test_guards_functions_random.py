"""Random functions that hold functions, made anew for each call of a compiled function: the results are eager's, and
what was captured is not captured again.

A recipe says how a function is made: a kind, a number, and the recipes of functions that it holds.
"""
import functools
import itertools
import types

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from test_guards import Watched, X
from test_guards_functions import Scaled, apply, times

import ptcore as pt
from ptcore.jit.capture import guards


@pytest.fixture(autouse=True, params=[0, 4], ids=["compiled", "asked"])
def slow_checks(request, monkeypatch):
    monkeypatch.setattr(guards, "SLOW_CHECKS", request.param)


def of_number(k, inner):
    return lambda t: inner[0](t) * k if inner else t * k


def of_tensor(k, inner):
    w = pt.full((4,), k)

    def f(t):
        for g in inner:
            t = g(t)
        return t + w
    return f


def of_defaults(k, inner):
    def f(t, n=k, *, gs=tuple(inner)):
        for g in gs:
            t = t - g(t) * n
        return t
    return f


def of_method(k, inner):
    made = Scaled(k)
    made.inner = inner
    return types.MethodType(lambda self, t: sum([g(t) for g in self.inner]) + t * self.k, made)


def of_partial(k, inner):
    return functools.partial(lambda a, t, gs: a + sum([g(t) for g in gs]), k, gs=inner)


def of_itself(k, inner):
    def go(t, n=2):
        return go(inner[0](t) if inner else t + k, n - 1) if n else t
    return go


def of_wrapper(k, inner):
    def wrap(f):
        @functools.wraps(f)
        def wrapper(*args):
            return f(*args) / k
        return wrapper
    return wrap(inner[0] if inner else times(k))


def of_branch(k, inner):
    def f(t):
        return inner[-1](t) if inner and inner[0] is inner[-1] else t * k + len(inner)
    return f


KINDS = (of_number, of_tensor, of_defaults, of_method, of_partial, of_itself, of_wrapper, of_branch)
NUMBERS = st.sampled_from([1.0, 2.0, 2.5, -1.5, 2, 3, 5])
RECIPES = st.recursive(st.tuples(st.sampled_from(KINDS), NUMBERS, st.just(())), lambda inner: st.tuples(
    st.sampled_from(KINDS), NUMBERS, st.lists(inner, max_size=2).map(tuple)), max_leaves=5)


def build(recipe):
    kind, k, inner = recipe
    return kind(k, [build(r) for r in inner])


def renumbered(recipe, numbers):
    kind, _, inner = recipe
    return kind, next(numbers), tuple([renumbered(r, numbers) for r in inner])


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(recipe=RECIPES, other=RECIPES, numbers=st.lists(NUMBERS, min_size=1, max_size=4),
       order=st.lists(st.integers(0, 3), min_size=3, max_size=9))
def test_random_functions(recipe, other, numbers, order):
    recipes = [recipe, renumbered(recipe, itertools.cycle(numbers)), other]
    kept = build(recipe)                            # one object, among those that are made anew
    watched = Watched(apply, recompile_limit=50)
    for k in (0, 0, *order):
        watched(X, kept if k == 3 else build(recipes[k]))
    assert watched.eager == 0
    seen = watched.captures
    for k in order:                                 # nothing is new
        watched(X, kept if k == 3 else build(recipes[k]))
    assert watched.captures == seen
