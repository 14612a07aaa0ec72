"""Symbolic ints: arithmetic beside Python's ints, what is known without a guard, guards and other values of the leaves."""
import copy
import math
import operator
import os
import pickle
import subprocess
import sys

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import ptcore as pt
from ptcore._sizes.symbolic import DataDependentError, ShapeEnv, SymBool, SymFloat, SymInt

pytestmark = pytest.mark.core


@pytest.fixture
def env():
    return ShapeEnv()


def test_importing_the_package_does_not_read_it():
    code = "import sys, ptcore; assert 'ptcore._sizes.symbolic' not in sys.modules; ptcore.SymInt"
    subprocess.run([sys.executable, "-P", "-c", code], check=True)


def test_a_symint_is_no_int(env):
    n = env.symbol(6)
    assert type(n) is pt.SymInt and not isinstance(n, int)
    assert type(n / 2) is pt.SymFloat and type(n < env.symbol(7)) is pt.SymBool
    assert env.guards == []


# -- arithmetic beside Python's ints ----------------------------------------------------------------------------------

BINARY = {"+": operator.add, "-": operator.sub, "*": operator.mul, "//": operator.floordiv, "%": operator.mod,
          "max": pt.sym_max, "min": pt.sym_min}
NAMES = "abc"


def trees(depth):
    leaf = st.one_of(st.sampled_from(NAMES), st.integers(-7, 7))
    return st.recursive(leaf, lambda inner: st.tuples(st.sampled_from(sorted(BINARY)), inner, inner), max_leaves=depth)


def computed(tree, values):
    """The value of a tree; None where it divides by zero."""
    if isinstance(tree, tuple):
        x, y = computed(tree[1], values), computed(tree[2], values)
        if x is None or y is None or (tree[0] in ("//", "%") and not (y.hint if isinstance(y, SymInt) else y)):
            return None
        return BINARY[tree[0]](x, y)
    return values[tree] if isinstance(tree, str) else tree


VALUES = st.tuples(*[st.integers(2, 30)] * len(NAMES))


def symbols(env, hints):
    return {name: env.symbol(hint, name) for name, hint in zip(NAMES, hints)}


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.filter_too_much])
@given(trees(8), VALUES, st.lists(VALUES, min_size=3, max_size=3))
def test_expressions_have_the_values_of_pythons_ints(tree, hints, others):
    env = ShapeEnv(duck_shape=False)
    x = computed(tree, symbols(env, hints))
    expected = computed(tree, dict(zip(NAMES, hints)))
    assume(x is not None)
    assert (x.hint if isinstance(x, SymInt) else x) == expected
    for values in [hints, *others]:
        if env.check(values):           # what it divided by is not 0
            assert env.evaluate(x, list(values)) == computed(tree, dict(zip(NAMES, values)))


def power(x, y):
    """``x ** y``; a tower of powers would take hours and all memory."""
    base, exponent = [abs(v.hint if isinstance(v, (SymInt, SymFloat)) else v) for v in (x, y)]
    if base > 1e6 or exponent > 8:
        raise OverflowError
    return x ** y


TEXTS = {**BINARY, "/": operator.truediv, "**": power}


def texts(depth):
    leaf = st.one_of(st.sampled_from(NAMES), st.integers(-3, 3), st.sampled_from([0.5, -1.5]))
    return st.recursive(leaf, lambda inner: st.tuples(st.sampled_from(sorted(TEXTS)), inner, inner), max_leaves=depth)


def with_symbols(tree, values):
    if isinstance(tree, tuple):
        return TEXTS[tree[0]](*[with_symbols(part, values) for part in tree[1:]])
    return values[tree] if isinstance(tree, str) else tree


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.filter_too_much])
@given(texts(6), VALUES)
def test_texts_are_read_by_python_as_they_are_meant(tree, hints):
    env = ShapeEnv(duck_shape=False)
    try:
        x = with_symbols(tree, symbols(env, hints))
    except (ZeroDivisionError, OverflowError, TypeError, AttributeError):       # of numbers alone, or refused
        assume(False)
    assume(isinstance(x, (SymInt, SymFloat)) and isinstance(x.hint, (int, float)) and abs(x.hint) < 1e15)
    names = {f"s{k}": hint for k, hint in enumerate(hints)}
    calls = {"max": max, "min": min, "float_max": max, "float_min": min, "float": float, "float_floor": math.floor}
    assert eval(str(x), calls, names) == pytest.approx(env.evaluate(x, list(hints)), rel=1e-9)


@pytest.mark.parametrize(("make", "text"), [
    (lambda a, b: a // (2 * b), "s0 // (2*s1)"), (lambda a, b: a % (b * b), "s0 % (s1**2)"),
    (lambda a, b: (2 * a) // (3 * b + 1), "2*s0 // (3*s1 + 1)"), (lambda a, b: a / (2 * b), "s0 / (2*s1)"),
    (lambda a, b: (2 * a) ** (a / b), "(2*s0) ** (s0 / s1)"), (lambda a, b: (a + 1) // -b, "(s0 + 1) // (-s1)"),
    (lambda a, b: -a // b, "-s0 // s1"), (lambda a, b: 2 * (a // (2 * b)) + 1, "2*(s0 // (2*s1)) + 1"),
])
def test_a_text_has_the_parentheses_that_it_needs(env, make, text):
    assert str(make(env.symbol(7), env.symbol(5))) == text


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.filter_too_much])
@given(trees(5), trees(5), st.sampled_from(["lt", "le", "eq", "ne", "gt", "ge"]), VALUES,
       st.lists(VALUES, min_size=5, max_size=5))
@pytest.mark.outer
def test_what_is_known_without_a_guard_holds_for_all_values(left, right, relation, hints, others):
    env = ShapeEnv(duck_shape=False)
    leaves = symbols(env, hints)
    x, y = computed(left, leaves), computed(right, leaves)
    assume(x is not None and y is not None)
    compare = getattr(operator, relation)
    answer = compare(x, y)
    known = isinstance(answer, bool)
    assert bool(answer) == compare(*[v.hint if isinstance(v, SymInt) else v for v in (x, y)])
    assert known == (isinstance(answer, bool) or not isinstance(answer, SymBool))
    for values in others:
        if env.check(values):
            at = dict(zip(NAMES, values))
            assert compare(computed(left, at), computed(right, at)) == bool(answer)


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.filter_too_much])
@given(st.lists(st.tuples(trees(4), trees(4), st.sampled_from(["lt", "le", "eq", "ne"])), min_size=2, max_size=4), VALUES,
       st.lists(VALUES, min_size=8, max_size=8))
@pytest.mark.outer
def test_branches_after_branches_answer_as_the_guards_say(asked, hints, others):
    """What follows from earlier guards must follow from them at other values too."""
    env = ShapeEnv(duck_shape=False)
    leaves = symbols(env, hints)
    answers = []
    for left, right, relation in asked:
        x, y = computed(left, leaves), computed(right, leaves)
        assume(x is not None and y is not None)
        answers.append(bool(getattr(operator, relation)(x, y)))
    for values in others:
        if env.check(values):
            at = dict(zip(NAMES, values))
            assert answers == [getattr(operator, r)(computed(x, at), computed(y, at)) for x, y, r in asked]


@given(VALUES, st.integers(1, 9), st.floats(-3, 3))
@settings(max_examples=50, deadline=None)
def test_floats_are_computed_as_python_computes_them(hints, k, f):
    def scale(a, b, sqrt, to_float, floor):
        return [1 / sqrt(a), a / b, a * f - b, (a * b) ** 0.5, -(a / k), abs(f - a), to_float(a) * f, 2 ** -a, f / a,
                floor(a * 1.5), (a / b) // 0.25, (a * f) % b, to_float(max_(a, b)), a ** -k]
    max_ = pt.sym_max
    env = ShapeEnv(duck_shape=False)
    a, b, _ = [env.symbol(h) for h in hints]
    found = scale(a, b, pt.sym_sqrt, pt.sym_float, math.floor)
    assert [x.hint for x in found] == scale(*hints[:2], math.sqrt, float, math.floor)
    assert not env.guards
    others = [h + 1 for h in hints[:2]]
    assert env.evaluate(found, dict(zip(["s0", "s1"], others))) == scale(*others, math.sqrt, float, math.floor)
    assert all(type(x) in (SymFloat, SymInt) for x in found)


# -- what is known without a guard ------------------------------------------------------------------------------------

def test_equal_expressions_are_equal_without_a_guard(env):
    n, m, k = env.symbol(6), env.symbol(4), env.symbol(12)
    for same in (n + 0 == n, n * 1 == n, (n + m) - m == n, n * 2 // 2 == n, n * m == m * n, n + m + k == k + (m + n),
                 (n + 1) * (n - 1) == n * n - 1, n * m // m == n, (n * m + 3) // n == m + 3 // n, n // 2 // 3 == n // 6,
                 (n // 2) * 2 + n % 2 == n, (2 * n + 4) // 2 == n + 2, n * m % m == 0, (n * 4) % 8 == 4 * (n % 2),
                 pt.sym_max(n, m) == pt.sym_max(m, n), pt.sym_max(n, 1) == n, pt.sym_min(n * 2, n) == n, 0 - -n == n,
                 n << 1 == n + n, n >> 1 == n // 2, abs(-n) == n, (n - 1) // n == 0, pt.sym_sum([n, m, n]) == 2 * n + m,
                 n ** 2 == n * n, n / 2 == n / 2, divmod(n, m)[0] == n // m):
        assert same is True
    for different in (n + 1 == n, n == 0, n == 1, n < 2, n * m == 1, n + m < 3, n % 2 == 2, n % 2 < 0, n // 2 < 1):
        assert different is False
    assert env.guards == []
    assert type(n - n) is int and n - n == 0


def test_an_int_is_below_infinity_without_a_guard(env):
    n = env.symbol(6)
    assert (n < math.inf) is (-math.inf < n) is (n != math.nan) is True and (n == math.inf) is (n > math.nan) is False
    assert env.guards == []


def test_a_branch_makes_later_ones_known(env):
    n, m, k = env.symbol(6), env.symbol(4), env.symbol(9)
    assert n % 2 == 0 and len(env.guards) == 1
    assert (n // 2) * 2 == n and n % 2 != 1 and len(env.guards) == 1
    assert n > m and len(env.guards) == 2
    assert not m >= n and m + 1 <= n and m != n and not m == n and len(env.guards) == 2
    assert k == n + 3 and len(env.guards) == 3
    assert k * m == n * m + 3 * m and k > m and len(env.guards) == 3
    assert int(m) == 4 and len(env.guards) == 4
    assert m * 2 == 8 and m == 4 and range(m) == range(4) and len(env.guards) == 4


def test_a_bound_of_a_difference_is_no_tighter_than_its_guard(env):
    n, m = env.symbol(6), env.symbol(8)
    assert n - m >= -3 and len(env.guards) == 1
    assert not n - m < -3 and n >= m - 3 and n - m > -4 and len(env.guards) == 1
    assert n < m and len(env.guards) == 2           # -2 and 2 are left open by the first: the sizes have to say
    assert n - m >= -2 and len(env.guards) == 3


def test_guards_say_where_they_were_asked(env):
    n = env.symbol(6)
    line = sys._getframe().f_lineno + 1
    assert n > 4
    guard, = env.guards
    assert (os.path.basename(guard.file), guard.line, guard.text) == ("test_symbolic.py", line, "4 < s0")


@pytest.mark.parametrize("ask", [operator.index, int, float, hash, complex, range, lambda n: [0] * n, "abc".__getitem__,
                                 lambda n: {n: 1}, lambda n: round(n, -1), lambda n: f"{n:3d}"])
def test_what_python_needs_as_an_int_is_guarded(env, ask):
    n = env.symbol(2)
    expected = ask(2)
    assert ask(n) == expected or isinstance(expected, dict)
    assert [g.text for g in env.guards] == ["s0 == 2"]
    assert env.check([2]) and not env.check([3])


@pytest.mark.parametrize("ask", [bool, lambda b: not b, int, float, lambda b: 1 if b else 2, hash])
def test_what_python_needs_as_a_bool_is_guarded(env, ask):
    n, m = env.symbol(6), env.symbol(4)
    assert ask(n < 2 * m) == ask(True)
    assert [g.text for g in env.guards] == ["s0 < 2*s1"]
    assert env.check([9, 5]) and not env.check([10, 5])


def test_floats_are_guarded(env):
    n = env.symbol(9)
    assert float(n / 2) == 4.5 and math.sqrt(n) == 3.0 and (n / 2 > 4)
    assert env.check([9]) and not env.check([8])


def test_conditions_combine_without_a_branch(env):
    n, m = env.symbol(6), env.symbol(4)
    both, either = (n > 5) & (m > 5), (n > 5) | (m > 5)
    assert (both.hint, either.hint, pt.sym_not(both).hint, (~either).hint) == (False, True, True, False)
    assert (True & (n > 5)).hint and ((n > 5) & False) is False and ((n > 5) | True) is True
    assert pt.sym_not(True) is False and pt.sym_not(n > 2 * m).expr is (n <= 2 * m).expr
    chosen = pt.sym_ite(n > m, n, m)
    assert chosen.hint == 6 and env.evaluate(chosen, [3, 8]) == 8 and pt.sym_ite(False, 1, 2) == 2
    assert ((n > 5) == (n > 5)) is True and type((n > 2 * m) == False) is SymBool  # noqa: E712
    assert env.guards == []


def test_functions_of_plain_numbers_are_pythons():
    assert (pt.sym_int(2.7), pt.sym_float(3), pt.sym_max(2, 3), pt.sym_min(2, 3.5)) == (2, 3.0, 3, 2.0)
    assert type(pt.sym_min(2, 3.5)) is float and pt.sym_not(0) is True and pt.sym_sqrt(4) == 2.0
    with pytest.raises(TypeError, match="sym_max"):
        pt.sym_max("a", 1)
    with pytest.raises(TypeError, match="sym_ite"):
        pt.sym_ite(True, 1, 2.0)


def test_functions_of_numbers_ask_objects():
    class Asked:
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return func.__name__, len(args)

    x = Asked()
    assert [f(x) for f in (pt.sym_int, pt.sym_float, pt.sym_not)] == [(f"sym_{n}", 1) for n in ("int", "float", "not")]
    assert pt.sym_max(1, x) == ("sym_max", 2) and pt.sym_ite(x, 1, 2) == ("sym_ite", 3) and pt.sym_sum([x, 1])[1] == 1


def test_errors_are_pythons(env):
    n = env.symbol(6)
    for ask in (lambda: n // 0, lambda: n % 0, lambda: n / 0, lambda: 1 // (n - 6)):
        with pytest.raises(ZeroDivisionError):
            ask()
    for ask in (lambda: n + "a", lambda: n < "a", lambda: [] + n, lambda: n & 1.5):
        with pytest.raises(TypeError):
            ask()
    assert (n == "a") is False and (n != None) is True  # noqa: E711


def test_copies_are_the_same_and_pickles_are_refused(env):
    n = env.symbol(6)
    assert copy.deepcopy({"n": [n, n / 2]})["n"][0] is n and copy.copy(n) is n and copy.deepcopy(n.expr) is n.expr
    for x in (n, n / 2, n < 4):
        with pytest.raises(TypeError, match="cannot be pickled"):
            pickle.dumps(x)
    assert env.guards == []


# -- environments -----------------------------------------------------------------------------------------------------

def test_inputs_share_symbols_by_hint():
    env = ShapeEnv()
    n, m, one, zero = env.symbol(6, "x0"), env.symbol(6, "x1"), env.symbol(1, "x2"), env.symbol(0, "x3")
    assert n is m and (one, zero) == (1, 0) and type(one) is int
    assert env.check([5, 5, 1, 0])
    assert env.failures([5, 4, 1, 0]) == ["x1 == s0"] and env.failures([5, 5, 2, 0]) == ["x2 == 1"]
    assert env.failures([1, 1, 1, 0]) == ["s0 >= 2"]
    assert env.failures({"s0": 1}) == ["s0 >= 2"] and env.failures({"s0": 5}) == []
    with pytest.raises(ValueError, match="4 inputs"):
        env.check([5])


def test_inputs_may_be_kept_apart():
    env = ShapeEnv(duck_shape=False, specialize_zero_one=False)
    n, m, one = env.symbol(6), env.symbol(6), env.symbol(1)
    assert n is not m and type(one) is SymInt
    assert n == m and len(env.guards) == 1 and n + one == m + one and one > 0 and len(env.guards) == 2
    assert env.check([5, 5, 3]) and not env.check([5, 4, 3]) and not env.check([5, 5, 0])


def test_sizes_that_depend_on_data_are_not_branched_on(env):
    n, u = env.symbol(6), env.fresh()
    assert (u + n - u == n) is True and (u >= 0) is True and (u * n / 2).hint is None
    for ask in (lambda: int(u), lambda: bool(u == 3), lambda: float(u / 2), lambda: n // u):
        with pytest.raises(DataDependentError):
            ask()
    assert env.guards == []


def test_guards_on_sizes_of_results_are_deferred(env):
    n, u = env.symbol(6), env.fresh(4, "nonzero")
    assert u < n
    assert [g.is_deferred for g in env.guards] == [True] and env.check([3])
    assert env.check({"s0": 3, "u1": 2}) and not env.check({"s0": 3, u.expr.atoms()[0]: 3})


def test_two_environments_do_not_mix(env):
    with pytest.raises(RuntimeError, match="two ShapeEnvs"):
        env.symbol(6) + ShapeEnv().symbol(6)


def test_an_expression_can_be_built_anew(env):
    n, m = env.symbol(6), env.symbol(4)
    x = pt.sym_max((n * 2 - m) // 3, 1) + m % n
    text = x.expr.fold(lambda leaf: leaf.name, lambda f, args: f"{f.__name__}({', '.join(map(str, args))})")
    assert eval(text, {**vars(operator), "sym_max": max, "s0": 7, "s1": 5}) == env.evaluate(x, [7, 5]) == 8
    assert [leaf.name for leaf in x.expr.atoms()] == ["s0", "s1"]


def test_sizes_keep_symbols(env):
    n = env.symbol(6)
    size = pt.Size([n, 2, 1])
    assert size[0] is n and size[:2][0] is n and (size + (n,))[3] is n and ((3,) + size)[1] is n and (size * 2)[3] is n
    assert type(size[:2]) is type(size + (1,)) is pt.Size
    assert (size.numel() == 2 * n) is True and repr(size) == "ptcore.Size([s0, 2, 1])"
    assert env.guards == []


def test_shapes_broadcast_with_symbols(env):
    n, m = env.symbol(6), env.symbol(4)
    assert pt.broadcast_shapes((n, 1), (1, m), (3, 1, 1))[1] is n and pt.broadcast_shapes((2, 1), (n,))[1] is n
    assert env.guards == []
    assert pt.broadcast_shapes((n,), (m + 2,))[0].hint == 6 and len(env.guards) == 1
    assert env.check([7, 5]) and not env.check([7, 6])
    with pytest.raises(RuntimeError, match="broadcast"):
        pt.broadcast_shapes((n,), (m,))


@pytest.mark.parametrize("relation", [operator.eq, operator.ne, operator.xor])
@pytest.mark.parametrize("limit", [3, 9])
@pytest.mark.parametrize("other", [True, False, 0, 1, 2, 1.0, 0.5, "text"])
def test_a_condition_compares_as_a_bool_does(env, relation, limit, other):
    n = env.symbol(6)
    if relation is operator.xor and not isinstance(other, bool):
        return
    for a, b in ((n > limit, other), (other, n > limit)):
        plain = [6 > limit if isinstance(x, SymBool) else x for x in (a, b)]
        assert bool(relation(a, b)) is relation(*plain)
    m = env.symbol(4)
    assert bool(relation(n > limit, m > 3)) is relation(6 > limit, True)


def test_a_condition_equals_the_int_that_it_is(env):
    n, m = env.symbol(6), env.symbol(4, "m")
    assert env.guards == []
    same = (n > 3) == m - 3
    assert isinstance(same, SymBool) and env.evaluate(same, [7, 4]) and not env.evaluate(same, [2, 4])


@pytest.mark.parametrize("shift", [operator.lshift, operator.rshift])
def test_shifts_are_those_of_ints(env, shift):
    n, m = env.symbol(6), env.symbol(4)
    assert (shift(n, 1).hint, shift(100, n).hint, (~n).hint) == (shift(6, 1), shift(100, 6), ~6)
    for a, b in ((n, -1), (n, m - 5), (100, m - 5)):
        with pytest.raises(ValueError, match="negative shift count"):
            shift(a, b)
