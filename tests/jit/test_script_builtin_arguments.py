"""Builtins in scripted functions: what Python refuses is refused when the function is scripted; types of sums; what
they do, with Python as the oracle."""
from typing import Any

import pytest

import ptcore as pt
from ptcore import jit

pytestmark = pytest.mark.core


def enumerated_from_a_float(x: list[int], start: float):
    for i, _ in enumerate(x, start):
        print(i)


def enumerated_by_name_from_a_float(x: list[int], start: float):
    for i, _ in enumerate(x, start=start):
        print(i)


def dict_of_two(x: list[tuple[str, int]]):
    return dict(x, x)


def nothing_to_fork():
    return jit.fork()


def sum_from_text(x: list[int]):
    return sum(x, "a")


def rounded_to_digits(x):
    return round(x, 2)


def some_inverse(x, flag: bool):
    return pt.unique(x, return_inverse=flag)


@pytest.mark.parametrize(("function", "message"), [
    (rounded_to_digits, r"ptcore\.round\(x, decimals=n\) has it"),
    (some_inverse, "'return_inverse' decides how many results there are: it must be known"),
    (enumerated_from_a_float, "must be an int, not float"),
    (enumerated_by_name_from_a_float, "must be an int, not float"),
    (dict_of_two, "dict takes 0 to 1 arguments, not 2"), (nothing_to_fork, "fork takes a function"),
    (sum_from_text, "sum does not begin with a value of type str")])
def test_refused(function, message):
    with pytest.raises(RuntimeError, match=message):
        jit.script(function)


def enumerated(x: list[int], start: int):
    found: list[int] = []
    for i, y in enumerate(x, start):
        found.append(i * y)
    for i, y in enumerate(x, start=start + 1):
        found.append(i * y)
    return found


def test_enumerate():
    assert jit.script(enumerated)([3, 4], 2) == enumerated([3, 4], 2) == [6, 12, 9, 16]


def sum_to_complex(x: list[float]):
    total = sum(x, 1j)
    return total.real + abs(total)


def sum_to_float(x: list[int]):
    return sum(x, 0.5) / 2


def sum_of_bools(x: list[bool]):
    return sum(x, True) + 1


def sum_to_tensor(x: list[float], t: pt.Tensor):
    return sum(x, t).tanh()


@pytest.mark.parametrize(("function", "args"), [
    (sum_to_complex, ([1.0, 3.0],)), (sum_to_float, ([1, 2],)), (sum_of_bools, ([True, False, True],)),
    (sum_to_tensor, ([1.0, -0.5], pt.tensor(0.25)))])
def test_types_of_sums(function, args):
    found, want = jit.script(function)(*args), function(*args)
    assert type(found) is type(want)
    assert found == want


def zipped_with_a_tuple(x: list[int]):
    found: list[int] = []
    for a, b, c in zip((1, 2, 3), x, range(100)):
        if b == 9:
            break
        found.append(a * b + c)
    for a, b in zip(x, (2, 4)):
        found.append(a - b)
    return found


def comprehensions_that_keep_nothing(x: list[int]):
    kept = [a for a in x if False]
    named = {str(a): a for a in x if a is None}
    return len(kept) + len(named), [a for a in x if True]


def kinds(x: Any):
    if isinstance(x, int):
        return 1
    if isinstance(x, float):
        return 2
    return 3


def kinds_of_items(x):
    return isinstance(x.item(), int), isinstance(x.item(), float), isinstance(x.item(), bool)


def devices_and_ranges(n: int):
    device = pt.device("cpu", index=0)
    other = pt.device(type="cpu")
    return str(device), str(other), pt.finfo(type=pt.float16).max, pt.iinfo(type=pt.int8).max, round(n / 2, None) + 0.0


def lists_of_pairs(x: list[int]):
    named = dict(zip([str(a) for a in x], x))
    pairs = sorted(zip(x, [a * 0.5 for a in x]))
    return (list(zip(x, pairs)), list(enumerate(x)), list(zip(x, range(2), x)), named, list(enumerate(reversed(x))),
            [p for p in zip(x, x)])


def flags_by_position(x):
    a, b = pt.unique(x, True, True)
    c, d, e = x.unique(True, True, True)
    f, g = pt.nn.functional.max_pool1d(x.float()[None], 2, None, 0, 1, False, True)
    return [a, b, c, d, e, f, g]


@pytest.mark.parametrize(("function", "calls"), [
    (zipped_with_a_tuple, [[1, 2, 3, 4], [5], [], [1, 9, 1]]), (comprehensions_that_keep_nothing, [[1, 2], []]),
    (kinds, [True, 1, 1.5, "a"]), (kinds_of_items, [pt.tensor(True), pt.tensor(1), pt.tensor(1.5)]),
    (devices_and_ranges, [5]), (lists_of_pairs, [[3, 1, 2], []]), (flags_by_position, [pt.tensor([3, 1, 3, 2])])])
def test_as_python(function, calls):
    scripted = jit.script(function)
    for x in calls:
        got, want = scripted(x), function(x)
        if isinstance(want, list) and want and isinstance(want[0], pt.Tensor):
            got, want = [t.tolist() for t in got], [t.tolist() for t in want]
        assert got == want


def with_lists(n: int, a: list[list[int]] = [[1], [2]], d: dict[str, int] = {}):    # noqa: B006
    a[0].append(n)
    d["n"] = d.get("n", 0) + n
    return len(a[0]) + d["n"]


def added(x, more: list[pt.Tensor] = [pt.ones(1)]):    # noqa: B006, B008
    return x + sum(more)


def adds(x):
    return added(x)


def test_defaults_are_new_in_each_call():
    scripted = jit.script(with_lists)
    assert [scripted(1), scripted(1), scripted(2)] == [3, 3, 4]
    with pytest.raises(RuntimeError, match="the default of 'more' is no constant of script"):
        jit.script(adds)
