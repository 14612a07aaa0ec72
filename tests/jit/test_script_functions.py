"""``jit.script`` of functions: each construct, with the same function run by Python as the oracle."""
# ruff: noqa: UP006, UP007, UP031, UP032, UP035, UP045, B007, F841, RUF015, RUF043, RUF057 - these forms are what is tested
import enum
import math
from typing import Any, Dict, List, NamedTuple, Optional, Tuple, Union

import numpy as np
import pytest
from _script_outcomes import again, same

import ptcore
from ptcore import Tensor, jit

# -- containers ----------------------------------------------------------------------------------------

def list_methods(a: List[int]):
    a.append(4)
    a.extend([5, 6])
    a.insert(1, 9)
    x = a.pop()
    y = a.pop(0)
    a.reverse()
    b = a.copy()
    b.sort()
    c = [1, 2] + a
    c += [3]
    d = c * 2
    del d[0]
    d[1] = 7
    d[-1] += 5
    return a, b, c, d, x, y, a.count(5), a.index(5), d[1:3], d[::-1], d[:2], 5 in a, 50 not in a, len(d)


def list_errors(a: List[int]):
    a.remove(77)
    return a


def list_slices(a: List[int]):
    a[1:2] = [8, 8, 8]
    del a[0:1]
    return a, a == [8, 8, 8], a < [9]


def aliases(a: List[int]):
    b = a
    b.append(1)
    c = a[:]
    c.append(2)
    b += [5]
    return a, b, c, a is not None


def dict_methods(d: Dict[str, int]):
    d["a"] = 1
    d["b"] = d["a"] + 1
    d.update({"c": 3})
    x = d.pop("b")
    y = d.get("zz")
    z = d.get("a", 5)
    w = d.setdefault("n", 6)
    keys = [k for k in d]
    total = 0
    for k, v in d.items():
        total += v
    for v in d.values():
        total *= 2
        if v > 2:
            break
    del d["a"]
    return x, y, z, w, keys, total, "c" in d, d, len(d), {k: v + 1 for k, v in d.items()}, list(d.keys())


def dict_missing(d: Dict[str, int]):
    return d["nothing"]


def tuples(t: Tuple[int, str, float]):
    a, b, c = t
    (d, e), f = (a, b), c
    u = (a, c) + (1,)
    return t[0], t[-1], b, d, e, f, u, u[1:], len(u), (1, 2) == (1, a), 3 in (1, 2, 3)


def comprehensions(a: List[int], d: Dict[str, int]):
    b = [x * 2 for x in a]
    c = [x for x in a if x > 1]
    e = {str(x): x for x in a}
    f = [[x + y for y in a] for x in a]
    g = [k + str(v) for k, v in d.items() if v > 0 and k != "q"]
    x = 5
    h = [x for x in a]
    return b, c, e, f, g, x, h, sum([i for i in range(4)]), [i + j for i, j in zip(a, range(10))]


def iteration(a: List[str], b: List[int]):
    found: List[str] = []
    for i, s in enumerate(a):
        found.append(s * i)
    for i, (s, n) in enumerate(zip(a, b), 2):
        found.append(s + str(n + i))
    for n in reversed(b):
        found.append(str(n))
    for c in "xyz":
        found.append(c)
    for n in reversed(range(3)):
        found.append(str(n))
    for t in (1, 2.5, "z"):
        found.append(str(t))
    return found


def unpack_lists(a: List[int]):
    x, y = a
    x, y = y, x
    return x - y


def test_containers():
    same(list_methods, ([1, 2],), ([0, 5, 5],))
    same(list_errors, ([1],))
    same(list_slices, ([1, 2, 3],), ([1, 2],))
    same(aliases, ([1],))
    same(dict_methods, ({},), ({"c": 9, "a": 4},))
    same(dict_missing, ({"a": 1},))
    same(tuples, ((1, "x", 2.5),))
    same(comprehensions, ([1, 2, 3], {"q": 1, "r": 2, "s": 0}), ([], {}))
    same(iteration, (["a", "b"], [4, 5, 6]), ([], []))
    same(unpack_lists, ([5, 3],), ([1, 2, 3],))


def new_lists(n: int):
    a: List[int] = []
    b: List[List[str]] = []
    c = jit.annotate(Dict[str, List[int]], {})
    d: Dict[str, List[int]] = {"a": [1, 2], "b": []}
    for i in range(n):
        a.append(i)
        b.append([str(i)])
        c[str(i)] = []
        c[str(i)].append(i)
    d["b"].append(3)
    return a, b, c, d


def test_new_containers():
    same(new_lists, (0,), (3,))
    assert str(jit.script(new_lists).returns) == (
        "Tuple[List[int], List[List[str]], Dict[str, List[int]], Dict[str, List[int]]]")


# -- text and numbers ----------------------------------------------------------------------------------

def text(s: str, n: int):
    a = s.upper().lower().strip().split(",")
    b = ",".join(a) + "-" * 3
    c = f"{s}: {n:03d} {n!r} {{}} {a}"
    d = "{} and {}".format(s, n)
    return (a, b, c, d, s[0], s[-1], s[1:], s[::2], "a" in s, s.find("b"), s.replace("a", "zz"), s.startswith("a"),
            s.endswith("c"), s.isdigit(), s.center(9, "*"), s.partition(","), s.count("a"), s < "b", s == "abc",
            len(s), ord(s[0]), chr(n + 60), hex(n), bin(n), oct(n), s.splitlines(), s.title(), s.zfill(8),
            s.ljust(5) + "|", s.rsplit(",", 1), s.capitalize(), s.swapcase(), s + s, "%d %s" % (n, s), "%5.2f" % 2.5,
            str(n) + str(2.5) + str(True), int("12"), float("1.5"))


def numbers(a: int, b: float):
    c = a + b
    d = a // 2 + a % 3 - (-a)
    e = 7 / a
    return (c, d, e, a * b, a - 1, abs(-a), abs(-b), max(a, 3), min(b, 2.5), max([a, 2]), min([b, 1.0]), sum([a, 2]),
            sum([b, 0.5]), divmod(a, 2), int(b), float(a), bool(a), a & 3, a | 4, a ^ 1, a << 2, a >> 1, ~a, -b, +b,
            a == 3, a != 3, a < b, a <= b, a > b, b >= a, int(True), round(b, 1), b ** 2, b // 2, b % 2,
            any([a > 1, False]),
            all([a > 1, True]), sorted([a, 1, 5]), sorted([b, 1.0], reverse=True), True + 1)


def maths(x: float, n: int):
    return (math.sqrt(x), math.exp(x), math.log(x), math.log(x, 2), math.floor(x), math.ceil(x), math.sin(n), math.pi,
            math.gcd(n, 12), math.isnan(x), math.atan2(x, n), math.pow(x, 2), math.factorial(n), math.inf,
            math.copysign(x, -1), math.fmod(x, 2.0), math.frexp(x), math.modf(x))


def complexes(x: float):
    z = complex(x, 1.0) * 2j
    return z, abs(z), z == 2j, z + 1


def division(a: int, b: int):
    return a // b, a % b, a / b


def test_text_and_numbers():
    same(text, ("a,b,c", 7), ("abc", 12), ("zz\nb", 0))
    same(numbers, (3, 2.5), (-4, 0.5), (1, -1.5))
    same(maths, (2.5, 4), (0.3, 3))
    same(complexes, (1.5,))
    same(division, (7, 2), (-7, 2), (1, 0))


def test_powers_and_round_give_floats():
    """PyTorch types them so: ``int ** int`` and ``round(float)`` are floats."""
    @jit.script
    def f(a: int, b: float):
        return a ** 2, round(b), round(a)
    assert f(3, 2.5) == (9, 2, 3)
    assert [type(x) for x in f(3, 2.5)] == [float, float, int]


# -- optionals, unions and types -----------------------------------------------------------------------

def optionals(x: Optional[Tensor], n: Optional[int]):
    if x is None:
        x = ptcore.zeros(2)
    for _ in range(2):
        x = x + 1
    if n is not None and n > 2:
        m = n + 1
    else:
        m = 0
    if not (n is None or n == 7):
        m += n
    return x, m


def optional_in_loop(a: List[int]):
    best: Optional[int] = None
    for x in a:
        if best is None:
            best = x
        elif x > best:
            best = x
    return best


def optional_break(a: List[int]):
    found: Optional[int] = 3
    for x in a:
        if x == 9:
            found = None
            break
        found = x
    if found is None:
        return -1
    return found


def assert_refines(x: Optional[int]):
    assert x is not None, "x is missing"
    return x + 1


def unions(x: Union[int, str, List[int]]):
    if isinstance(x, int):
        return x + 1
    elif isinstance(x, str):
        return len(x)
    return x[0]


def anything(x: Any):
    if jit.isinstance(x, List[int]):
        return sum(x)
    if isinstance(x, str):
        return len(x)
    if isinstance(x, Tensor):
        return int(x.sum())
    return -1


def while_optional(x: Optional[int]):
    n = 0
    while x is not None:
        n += x
        if x > 0:
            x = x - 1
        else:
            x = None
    return n


def test_optionals_and_unions():
    same(optionals, (None, None), (ptcore.ones(2), 5), (ptcore.ones(1), 7), (None, 2))
    same(optional_in_loop, ([],), ([3, 9, 2],))
    same(optional_break, ([1, 2],), ([1, 9, 2],), ([],))
    same(assert_refines, (1,), (None,))
    same(unions, (3,), ("abc",), ([8, 9],))
    same(anything, ([1, 2],), ("abc",), (ptcore.ones(3),), (2.5,), (["a"],))
    same(while_optional, (None,), (4,))


class Color(enum.Enum):
    RED = 1
    BLUE = 2


class Point(NamedTuple):
    x: int
    y: Tensor
    label: str = "p"


def enums(c: Color, n: int):
    if c == Color.RED:
        n += 1
    found = [e.value for e in Color]
    for e in Color:
        n += e.value
    return c, n, c.name, c.value, c is Color.RED, Color.BLUE, found, [c, Color.RED]


def named(p: Point, n: int):
    q = Point(n, p.y + 1)
    r = Point(x=1, label="r", y=q.y)
    a, b, c = q
    return q, r.x + a, b, c + r.label, p[0], p.label, q.y


def enum_of(n: int):
    c = Color(n)
    return c, c is Color.BLUE


def test_enums_and_named_tuples():
    same(enums, (Color.RED, 1), (Color.BLUE, 2))
    same(enum_of, (1,), (2,))
    same(named, (Point(1, ptcore.ones(2)), 4))


def is_among(n: int, items: List[Optional[int]], table: Dict[float, str]):
    return n in items, n in table, None in items


KINDS = (int, str)
CONTAINERS = (list, tuple)


def of_kinds(x: Any, y: Union[int, str, float], z: List[int]):
    return isinstance(x, KINDS), isinstance(y, KINDS), isinstance(z, CONTAINERS), isinstance(z, KINDS)


def function_set_in_a_loop(x, n: int):
    h = ptcore.sin
    for _ in range(n):
        h = ptcore.sin
        x = h(x)
    return h(x)


def test_items_of_wider_types_and_functions_in_loops():
    same(is_among, (1, [1, None], {1.0: "a"}), (2, [1], {}))
    same(of_kinds, (1, 2.5, [1]), ("a", "b", []), (2.5, 3, [2]))
    same(function_set_in_a_loop, (ptcore.ones(2), 0), (ptcore.ones(2), 3))


# -- errors that programs raise ------------------------------------------------------------------------

def raises(n: int):
    if n == 0:
        raise ValueError("zero")
    if n == 1:
        raise RuntimeError
    if n == 2:
        raise KeyError(f"{n}", 3)
    assert n != 4
    assert n < 6, f"{n} is big"
    a = [1, 2, 3]
    return a[n - 3]


def test_raised_errors():
    same(raises, *[(n,) for n in range(9)])
    with pytest.raises(jit.Error):
        jit.script(raises)(0)
    with pytest.raises(ValueError, match="zero") as info:
        jit.script(raises)(0)
    assert "in raises (scripted)" in info.value.__notes__[0] and "raise ValueError" in info.value.__notes__[0]


# -- calls ---------------------------------------------------------------------------------------------

def helper(x: int, y: int = 3, *, z: int = 1):
    return x * y + z


def calls(n: int):
    return helper(n), helper(n, 2), helper(y=n, x=1), helper(n, z=5), twice(twice(n))


def twice(n: int) -> int:
    return 2 * n


@jit.ignore
def from_python(n: int) -> int:
    return len({n, n + 1})


def calls_python(n: int):
    return from_python(n) + 1


@jit.unused
def not_compiled(n: int) -> int:
    return [*range(n)][0]


def may_call_unused(n: int):
    if n > 0:
        return not_compiled(n)
    return n


def scripting(n: int):
    if jit.is_scripting():
        return n
    else:
        return [*range(n)]


def test_calls():
    same(calls, (2,), (5,))
    same(calls_python, (3,))
    f = jit.script(may_call_unused)
    assert f(-1) == -1
    with pytest.raises(jit.Error, match="not_compiled is marked @unused"):
        f(1)
    assert jit.script(scripting)(3) == 3 and jit.is_scripting() is False
    assert jit.script(helper)(2, z=0) == 6
    declaration = r"Declaration: helper\(int x, int y=3, \*, int z=1\)"
    with pytest.raises(RuntimeError, match=f"misses the argument 'x'. {declaration}"):
        jit.script(helper)()
    with pytest.raises(RuntimeError, match="unknown argument, for 'w'"):
        jit.script(helper)(1, w=2)
    with pytest.raises(RuntimeError, match="argument 'x' .position 0.: expected a value of type int, got"):
        jit.script(helper)("a")
    with pytest.raises(RuntimeError, match="expected a value of type Tensor"):
        jit.script(tensors_alone)(1)


def fork_and_wait(x):
    a = jit.fork(tensors_alone, x)
    b = jit.fork(twice, 4)
    return jit.wait(a), jit.wait(b)


def tensors_alone(x):
    return x + 1


def test_fork_and_wait():
    same(fork_and_wait, (ptcore.ones(2),))


def prints(n: int):
    print("n is", n, [n], sep="|")
    print()


def test_print(capsys):
    prints(3)
    want = capsys.readouterr().out
    jit.script(prints)(3)
    assert capsys.readouterr().out == want


# -- tensors -------------------------------------------------------------------------------------------

def tensors(x):
    y = x + 1 - x * 2 / 3
    y[0] = 5
    y[1:] += 1
    y += 2
    y.mul_(2)
    z = ptcore.relu(y).sum(dim=0, keepdim=True)
    a, b = y.split(1)
    values, indices = ptcore.max(y, dim=0)
    m = y.max(1)
    s = y.shape
    return (y, z, a, b, values, indices, m.values, m.indices, s[0] + s[-1], y.size(0), y.dim(), len(y), y[..., 0],
            y[None], y[:, 1:], y[[0]], y[y > 1], y == 2, -y, y @ y.t(), ptcore.cat([a, b]), y.mean(), y.float(),
            y.to(ptcore.int64), y.dtype == ptcore.float32, y.view(-1), y.view([2, -1]), y.reshape(y.shape[0], -1),
            float(y.sum()) > 2,
            ptcore.zeros(2, 3), ptcore.ones([2]), ptcore.full((1, 2), 3.0), ptcore.arange(4),
            y.transpose(0, 1).contiguous(), ptcore.nn.functional.softmax(y, dim=-1), ptcore.tensor([1.0, 2.0]),
            ptcore.stack((a, b)),
            y.clamp(min=0, max=3), ptcore.where(y > 1, y, y * 2), y.device.type, bool((y > 0).all()), y.numel(),
            ptcore.tensor(3), sum([a, b]))


def to_lists(x):
    a: List[List[float]] = x.tolist()
    b: float = x.sum().tolist()
    return a[0][0] + b


def tensor_loop(x):
    total = 0.0
    for row in x:
        total += float(row.sum())
    while total > 3:
        total /= 2
    if x.sum() > 3:
        x = x * 2
    return total, x


def writes(x, a: List[Tensor]):
    x.add_(1)
    a.append(x)
    for t in a:
        t.mul_(2)
    return a


def with_blocks(x):
    with ptcore.no_grad():
        y = x * 2
        z = 1
    with ptcore.enable_grad(), ptcore.profiler.record_function("name"):
        w = x * y
        if z == 1:
            return w, y.requires_grad, w.requires_grad
    return w, False, False


def test_tensors():
    x = ptcore.arange(6.0).view(2, 3)
    same(tensors, (x,))
    same(to_lists, (x,))
    with pytest.raises(TypeError, match=r"expected a value of type List.List.float.., got one of type list"):
        jit.script(to_lists)(x[0])
    same(tensor_loop, (x,), (x / 10,))
    same(writes, (x, [ptcore.ones(2)]))
    same(with_blocks, (x.requires_grad_(),))


def test_with_is_left_by_errors():
    @jit.script
    def f(n: int):
        with ptcore.no_grad():
            if n > 0:
                raise ValueError("n")
        return n
    with pytest.raises(ValueError, match="n"):
        f(1)
    assert ptcore.is_grad_enabled() and f(0) == 0


def polynomial(x, n: int):
    y = x
    for k in range(n):
        if k % 2 == 0:
            y = y * x + k
        else:
            y = ptcore.sin(y)
    return y.sum()


def test_gradients():
    x = ptcore.linspace(0.1, 2, 5).requires_grad_()
    (want,) = ptcore.autograd.grad(polynomial(x, 5), x)
    (got,) = ptcore.autograd.grad(jit.script(polynomial)(x, 5), x)
    assert ptcore.equal(got, want)


def comment(a, b):
    # type: (int, List[int]) -> int
    return a + b[0]


def quoted(a: "int", b: "List[int]") -> "Tuple[int, str]":
    return a + b[0], "x"


def test_annotations():
    same(comment, (1, [2]))
    same(quoted, (1, [2]))
    assert jit.script(comment).schema == "comment(int a, List[int] b) -> int"
    assert jit.script(quoted).schema == "quoted(int a, List[int] b) -> Tuple[int, str]"


def test_arguments_are_converted():
    @jit.script
    def f(x: float, a: List[float], t: Optional[float] = None):
        return x, a, t
    assert repr(f(1, (2, 3))) == "(1.0, [2.0, 3.0], None)"
    assert repr(f(1.5, [2.0], 3)) == "(1.5, [2.0], 3.0)"


def test_deleted_variables():
    @jit.script
    def f(n: int):
        m = n + 1
        del m
        m = "a"
        return m
    assert f(1) == "a"


def test_graph_is_dead_code_safe():
    """Calls that change something stay."""
    @jit.script
    def f(a: List[int]):
        a.append(1)
        for k in range(3):
            a.append(k)
        b = [5]
        if len(a) > 2:
            b.append(1)
        unused = len(a) + 1
        return 1
    n = len(f.graph.nodes)
    assert f.graph.eliminate_dead_code() and len(f.graph.nodes) < n
    found = [7]
    assert jit.ScriptFunction("f", f.graph, f.parameters, f.returns)(found) == 1
    assert found == [7, 1, 0, 1, 2]


def test_transformations_of_scripted_functions():
    f = jit.script(polynomial)
    x = ptcore.linspace(0.1, 2, 5)
    assert ptcore.equal(ptcore.func.grad(f)(x, 4), ptcore.func.grad(polynomial)(x, 4))
    rows = ptcore.stack([x, x + 1])
    assert ptcore.allclose(ptcore.vmap(f, (0, None))(rows, 3), ptcore.vmap(polynomial, (0, None))(rows, 3))
    (value,), (tangent,) = zip(ptcore.func.jvp(lambda t: f(t, 4), (x,), (x,)))
    wanted = ptcore.func.jvp(lambda t: polynomial(t, 4), (x,), (x,))
    assert ptcore.equal(value, wanted[0]) and ptcore.equal(tangent, wanted[1])


def order(a: List[int]):
    d = {a.pop(): a.pop(), a.pop(): a.pop()}
    b = [a.pop(), a.pop()]
    c = (a.pop(), a.pop())
    a[a.pop()] = a.pop()
    a[a.pop()] += a.pop()
    e = a.pop() < a.pop() < a.pop()
    return a, b, c, d, e, a[a.pop():a.pop()], f"{a.pop()} {a.pop()}", helper(a.pop(), z=a.pop(), y=a.pop())


def is_int(b: bool, n: int, x: float):
    return (isinstance(b, int), isinstance(n, bool), isinstance(x, int), isinstance(b, (float, int)),
            isinstance(n, float))


def products(x):
    y = x
    y @= x
    y -= 1
    return x, y


def items(x):
    n = x.sum().item()
    return helper(n), [i for i in range(n)], [5, 6, 7, 8][n], math.sqrt(x.max()), math.gcd(x.min(), 6)


def test_order_and_identity():
    same(order, (list(range(30)),), ([k % 7 for k in range(60)],), ([1, 2],))
    same(is_int, (True, 1, 2.5))
    same(products, (ptcore.ones(2, 2),))
    same(items, (ptcore.tensor([1, 2]),))
    with pytest.raises(TypeError, match="expected a value of type int, got one of type float"):
        jit.script(items)(ptcore.tensor([1.0, 2.0]))


def test_isinstance_in_python():
    assert jit.isinstance({"a": [1]}, Dict[str, List[int]]) and not jit.isinstance({"a": [1]}, Dict[str, List[str]])
    assert jit.isinstance((1, "a"), Tuple[int, str]) and jit.isinstance(None, Optional[int])
    assert jit.isinstance(1, (str, int)) and jit.isinstance(ptcore.ones(1), Tensor)
    assert jit.isinstance([1], List["int"]) and not jit.isinstance(["a"], List["int"])
    for t in (list, dict, tuple, List, Dict, Tuple, Optional):
        for found in (t, (int, t)):
            with pytest.raises(RuntimeError, match="needs the types of what it holds"):
                jit.isinstance([1], found)


def test_numbers_of_numpy_are_pythons():
    def doubled(n: int, x: float, z: complex):
        return 2 * n, 2 * x, 2 * z
    scripted = jit.script(doubled)
    for n, x, z in ((np.int64(3), np.float32(1.5), np.complex64(1j)), (np.uint8(4), np.int32(2), np.float16(0.5)),
                    (np.array(5), np.float16(2.5), np.complex128(2))):
        found = scripted(n, x, z)
        assert found == (2 * int(n), 2 * float(x), 2 * complex(z))
        assert [type(y) for y in found] == [int, float, complex]
    for wrong in ((1.5, 1.0, 1j), (np.float64(1.0), 1.0, 1j), (1, "a", 1j), (ptcore.tensor(1), 1.0, 1j),
                  (np.True_, 1.0, 1j), (1, np.complex64(1), 1j), (1, np.True_, 1j), (1, 1.0, np.array([1.0]))):
        with pytest.raises(RuntimeError, match="expected a value of type (int|float|complex)"):
            scripted(*wrong)


def test_flags_of_numpy_are_bools():
    def negated(flag: bool):
        return not flag, flag
    scripted = jit.script(negated)
    for flag in (np.True_, np.False_):
        found = scripted(flag)
        assert found == (not flag, bool(flag)) and type(found[1]) is bool
    with pytest.raises(RuntimeError, match="'flag' .*: expected a value of type bool, got 1 of type int"):
        scripted(1)


def test_values_are_dropped_after_their_last_use():
    import weakref
    refs = []

    @jit.ignore
    def watch(x: Tensor) -> int:
        refs.append(weakref.ref(x))
        return 0

    @jit.ignore
    def look(n: int) -> int:
        return 1 if refs[0]() is None else 0

    def f(x):
        y = x + 1
        n = watch(y)
        z = y * 2
        return look(n), z
    assert jit.script(f)(ptcore.ones(2))[0] == 1


def test_gradients_inside():
    """``autograd.grad`` and ``backward``: second order, unused inputs, gradients of results, out of files as well."""
    @jit.script
    def second(x, w):
        y = ((x * w) ** 2).sum()
        first = ptcore.autograd.grad([y], [x, w], create_graph=True)[0]
        assert first is not None
        found = ptcore.autograd.grad([first], [w, x], [ptcore.ones_like(x)], allow_unused=True)
        of_w = found[0]
        if of_w is None:
            return x
        return of_w

    @jit.script
    def unused(x, w):
        return ptcore.autograd.grad([x.sum()], [x, w], allow_unused=True)

    @jit.script
    def backward(x):
        (x ** 3).sum().backward()
        found = x.grad
        assert found is not None
        return found * 2
    x, w = ptcore.tensor([1., 2.], requires_grad=True), ptcore.tensor([3., 5.], requires_grad=True)
    for f in (second, again(second)):
        assert f(x, w).tolist() == [12., 40.]           # 4 x w
    for f in (unused, again(unused)):
        found = f(x, w)
        assert found[0].tolist() == [1., 1.] and found[1] is None and type(found) is list
    for f in (backward, again(backward)):
        x.grad = None
        assert f(x).tolist() == [6., 24.]

    def one(x):
        return ptcore.autograd.grad(x.sum(), x)
    with pytest.raises(RuntimeError, match="outputs: List"):
        jit.script(one)
