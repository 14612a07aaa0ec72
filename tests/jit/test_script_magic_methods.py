"""Assignments that call methods of scripted classes and modules: operators in place, and setters of properties."""
# ruff: noqa: UP006, UP035 - these forms are what is tested
import importlib.util
from typing import List

import pytest
from _script_outcomes import again, same

from ptcore import jit, nn
from ptcore.jit._script.operators import BY_NODE

OPERATORS = [known for node, known in BY_NODE.items() if node.__name__ in (
    "Add", "Sub", "Mult", "Div", "FloorDiv", "Mod", "Pow", "MatMult", "BitAnd", "BitOr", "BitXor", "LShift", "RShift")]
TEXT = '''
class Both:
    def __init__(self, n: int):
        self.n = n
    def __{name}__(self, k: int) -> "Both":
        return Both(self.n + 10 * k)
    def __i{name}__(self, k: int) -> "Both":
        self.n += 1000 * k
        return self

class Plain:
    def __init__(self, n: int):
        self.n = n
    def __{name}__(self, k: int) -> "Plain":
        return Plain(self.n + 10 * k)

class Holder:
    def __init__(self):
        self.inner = Both(1)

def use(n: int):
    a, b, c, d = Both(n), Plain(n), [Both(n)], Holder()
    e = a
    a {symbol}= 2
    b {symbol}= 2
    c[0] {symbol}= 3
    d.inner {symbol}= 4
    return a.n, b.n, c[0].n, d.inner.n, e.n, (e {symbol} 1).n, a is e
'''


def test_operators_are_all_here():
    assert len(OPERATORS) == 13


@pytest.mark.parametrize("known", OPERATORS, ids=lambda known: known.magic)
def test_operators_in_place(known, tmp_path):
    """``a += b`` calls ``__iadd__`` where the class has it, and ``__add__`` where it has not."""
    path = tmp_path / f"classes_with{known.magic}.py"
    path.write_text(TEXT.format(name=known.magic.strip("_"), symbol=known.symbol))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    made = importlib.util.module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(__import__("sys").modules, path.stem, made)
        spec.loader.exec_module(made)
        assert made.use(5)[-1] is True
        same(made.use, (5,), (-3,))


class Scaled:
    def __init__(self, n: int):
        self.n = n
        self.seen: List[int] = []

    @property
    def size(self) -> int:
        return self.n

    @size.setter
    def size(self, value: int):
        self.seen.append(value)
        self.n = value * 10

    @property
    def fixed(self) -> int:
        return 7


def set_property(n: int):
    a = Scaled(n)
    a.size = n + 1
    a.size += 2
    return a.size, a.n, a.seen


def set_fixed(n: int):
    a = Scaled(n)
    a.fixed = 3
    return a.n


def set_to_text(n: int):
    a = Scaled(n)
    a.size = "text"
    return a.n


def test_setters_of_classes():
    same(set_property, (3,), (-1,))
    with pytest.raises(jit.ScriptError, match="the property 'fixed' of class Scaled has no setter"):
        jit.script(set_fixed)
    with pytest.raises(jit.ScriptError, match="value"):
        jit.script(set_to_text)


class Base(nn.Module):
    def __init__(self):
        super().__init__()
        self.n = 1

    @property
    def size(self) -> int:
        return self.n

    @size.setter
    def size(self, value: int):
        self.n = value * 10

    @property
    def fixed(self) -> int:
        return 7


class Sets(Base):
    def __init__(self):
        super().__init__()
        self.below = Base()

    def forward(self, k: int):
        self.size = k
        self.size += 1
        self.below.size = self.size
        return self.n, self.size, self.below.size


class SetsFixed(Base):
    def forward(self, k: int):
        self.fixed = k
        return self.n


def test_setters_of_modules():
    for scripted in (jit.script(Sets()), again(jit.script(Sets()))):
        module = Sets()
        for k in (3, 5):
            assert scripted(k) == module(k)
        assert (scripted.n, scripted.below.n) == (module.n, module.below.n)
    with pytest.raises(jit.ScriptError, match="the property 'fixed' of the module has no setter"):
        jit.script(SetsFixed())


class Unknown:
    size: "Nowhere"                     # noqa: F821

    def get(self) -> int:
        return 1


def use_unknown(n: int):
    return Unknown().get()


def test_annotations_that_mean_nothing():
    with pytest.raises(jit.ScriptError, match="class Unknown: the attribute 'size': there is no 'Nowhere' in"):
        jit.script(use_unknown)


class WithUnused:
    def __init__(self):
        self.n = 3

    @jit.unused
    def of_python(self):
        return {k: {k} for k in range(self.n)}.popitem()[1] | {*"ab"}

    def get(self) -> int:
        return self.n


def use_unused(n: int):
    return WithUnused().get() + n


def test_unused_methods_are_not_compiled():
    same(use_unused, (2,))
    assert jit.script(WithUnused) is not None


def reads_its_variables(x):
    y = abs(x)
    return sorted(locals()) + [y]


def test_functions_that_list_their_variables_run_as_they_are():
    """The dispatcher's cell would be one of them."""
    from ptcore.jit.capture.shallow import calling

    assert calling(reads_its_variables, lambda f, args, kwargs: f(*args, **kwargs)) is None
    assert reads_its_variables(-2) == ["x", "y", 2]
