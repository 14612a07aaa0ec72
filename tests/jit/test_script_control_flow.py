"""``jit.script`` of branches and loops, with the same function run by Python as the oracle."""
# ruff: noqa: UP006, UP035, UP045, B007, RUF021 - these forms are what is tested
from typing import List, Optional, Tuple

import pytest
from _script_outcomes import same

from ptcore import jit


def if_else(x: int):
    if x > 3:
        y = 1
    elif x > 1:
        y = 2
    else:
        y = 3
    return y


def early_returns(x: int):
    if x == 0:
        return "zero"
    if x < 0:
        if x < -10:
            return "small"
        if x == -5:
            return "five"
    else:
        if x > 10:
            return "big"
    return "other"


def while_loop(n: int):
    total, k = 0, 0
    while k < n:
        k += 1
        if k == 3:
            continue
        if k == 8:
            break
        total += k
    return total, k


def nested_loops(n: int):
    found: List[Tuple[int, int]] = []
    for i in range(n):
        for j in range(n):
            if (i + j) % 3 == 0:
                continue
            if j > i:
                break
            for k in range(2):
                if k == 1 and j == 2:
                    break
                if i == 6 and j == 5:
                    return found, True
                found.append((i, j))
    return found, False


def return_in_while(a: List[int]):
    k = 0
    while True:
        if k >= len(a):
            return -1
        if a[k] < 0:
            return k
        k += 1


def while_condition_reads(a: List[int]):
    n = 0
    while len(a) > 0 and a[-1] != 7:
        n += a.pop()
    return n


def variables_after_break(n: int):
    x, last = 0, -1
    for i in range(n):
        last = i
        x += 1
        if i == 4:
            x = 100
            break
        if i == 2:
            x = 50
            continue
        x += 1
    return x, last


def deep(a: int, b: int):
    r = 0
    for i in range(a):
        while r < 50:
            if i % 2 == 0:
                for j in range(b):
                    if j == 3:
                        if r > 20:
                            return r, "inner"
                        break
                    r += j
                else_ = r
                if else_ > 30:
                    break
            else:
                if r % 5 == 0:
                    r += 1
                    continue
                break
            r += 2
    return r, "end"


def list_grows(a: List[int]):
    for x in a:
        if len(a) < 8:
            a.append(x + 1)
    return a


def ranges(n: int):
    return [i for i in range(n)], [i for i in range(2, n)], [i for i in range(n, 0, -2)], [i for i in range(1, n, 3)]


def loop_variables(n: int):
    i = -1
    for i in range(n):
        pass
    return i


def while_not(n: int):
    done = False
    while not done:
        n -= 1
        done = n < 3
    return n


def chained(x: int):
    return 1 < x < 5, 1 < x <= 3 != 2, x == 2 or 1 < x < 3


def ternary(x: int, y: Optional[int]):
    return (1 if x > 2 else 2), (y if y is not None else -1), ("a" if x else "b")


def boolean(a: bool, b: bool, n: int):
    return a and b, a or b, not a, a and not b or n > 2, n != 0 and 10 // n > 2


@pytest.mark.parametrize("n", range(-1, 14))
def test_control_flow(n):
    for f in (if_else, early_returns, while_loop, nested_loops, variables_after_break, ranges, loop_variables,
              while_not, chained):
        same(f, (n,))
    same(deep, (n, 3), (n, 5), (3, n))
    same(early_returns, (-5 * n,), (-12,))
    same(ternary, (n, None), (n, 4))
    same(boolean, (True, n > 2, n), (False, True, n), (False, n > 3, n))


def test_loops_over_lists():
    for a in ([], [1, 2], [3, -1, 2], [7], [1, 7, 2]):
        same(return_in_while, (a,))
        same(while_condition_reads, (a,))
        same(list_grows, (a,))


@pytest.mark.parametrize("count", [60, 400])
def test_many_early_returns(count):
    def source(n):
        lines = ["def f(x: int):"] + [f"    if x == {k}:\n        return {k * k}" for k in range(n)] + ["    return -1"]
        return "\n".join(lines)
    import linecache
    text = source(count)
    name = f"<{count} returns>"
    linecache.cache[name] = len(text), None, text.splitlines(True), name
    space = {}
    exec(compile(text, name, "exec"), space)
    same(space["f"], (3,), (59,), (count - 1,), (count,))


def test_threads_do_not_meet():
    import threading
    f = jit.script(deep)
    wanted = [[deep(a, b) for b in range(6)] for a in range(8)]
    found = [None] * 8

    def run(a):
        for _ in range(20):
            found[a] = [f(a, b) for b in range(6)]
    threads = [threading.Thread(target=run, args=(a,)) for a in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert found == wanted


def continued(n: int, maybe: Optional[int]):
    """A round that is left early goes on with what was known before it."""
    k, found = 0, 0
    while k < n and (maybe is None or maybe < 10):
        k += 1
        if maybe is None:
            if k % 2 == 0:
                maybe = k
            continue
        found += maybe
        maybe = None if found % 3 == 0 else found
    return k, found, maybe


def continued_outside(n: int, maybe: Optional[int]):
    k, found = 0, 0
    while k < n and (maybe is None or maybe < k):
        k += 1
        if maybe is None:
            continue
        found += maybe
    return k, found


def test_what_a_round_learns_does_not_hold_in_the_next():
    same(continued, *[(n, m) for n in (0, 1, 5, 9) for m in (None, 0, 3)])
    same(continued_outside, *[(n, m) for n in (0, 1, 5) for m in (None, 0, 3)])
