"""Builtins in scripted functions: what Python refuses is refused when the function is scripted; types of sums."""

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


@pytest.mark.parametrize(("function", "message"), [
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
