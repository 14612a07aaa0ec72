"""Objects that a program makes of classes from outside: what their methods read and change is read and changed in each
call, whoever calls them: the program, an operator, or C code that gets the object."""
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from test_outside_state import Program, run

from ptcore.jit.capture import guards

READ = "K = [2]\nLOG = []\ndef val(): return K[0]\n"
WRITE = "K = [2]\nLOG = []\ndef val():\n    LOG.append(K[0])\n    return K[0]\n"
HELPERS = """
from functools import reduce
def stored(o):
    o.a = 3
    o.a += 2
    return o.a
def deleted(o):
    del o.a
    return o.a
def put(o, k, v):
    o[k] = v
    return o
def augmented(a, b):
    a += b
    return a
def united(a, b):
    a |= b
    return a
def taken(o):
    a, b = o
    *c, d = [1, *o]
    return a, b, c, d
def called(x, name, *args):
    getattr(x, name)(*args)
    return x
def first(x):
    return next(iter(x))
def passed_on(o):
    def g(): yield from o
    return list(g())
def extended(l, o):
    l[1:1] = o
    l.extend(o)
    return l
"""
ITERATED = ("list(C())", "[*C()]", "tuple(C())", "set(map(str, C()))", "sorted(C())", "sum(C())", "max(C())",
            "any(C())", "list(zip(C(), 'abc'))", "list(map(str, C()))", "first(C())", "first(enumerate(C()))",
            "passed_on(C())", "(lambda *a: a)(*C())", "list(v for v in C())", "list(itertools.chain(C()))",
            "extended([0], C())", "augmented([0], C())", "called(collections.deque(), 'extendleft', C())",
            "dict.fromkeys(C())", "list(itertools.accumulate(C()))", "reduce(max, C())", "called(set(), 'update', C())",
            "min(C(), key=str)")
# name -> (the text of class C, expressions that use it)
CLASSES = {
    "attributes that are set": (
        "class C:\n    def __setattr__(self, n, v): object.__setattr__(self, n, v * val())\n",
        ["stored(C())", "called(C(), '__setattr__', 'a', 2).a", "(lambda o: (setattr(o, 'a', 2), o.a))(C())"]),
    "attributes that are deleted": (
        "class C:\n    a = 5\n    def __delattr__(self, n): object.__setattr__(self, n, val())\n",
        ["deleted(C())", "(lambda o: (delattr(o, 'a'), o.a))(C())"]),
    "descriptor": (
        "class D:\n    def __set__(self, o, v): o.__dict__['q'] = v * val()\n"
        "    def __get__(self, o, c=None): return o.__dict__.get('q', 1)\n"
        "    def __delete__(self, o): o.__dict__['q'] = val() + 1\nclass C:\n    a = D()\n",
        ["stored(C())", "deleted(C())", "(lambda o: (setattr(o, 'a', 2), o.a))(C())"]),
    "property": (
        "class C:\n    @property\n    def a(self): return self.__dict__.get('q', 1)\n"
        "    @a.setter\n    def a(self, v): self.__dict__['q'] = v * val()\n"
        "    @a.deleter\n    def a(self): self.__dict__['q'] = val() + 1\n",
        ["stored(C())", "deleted(C())", "(lambda o: (delattr(o, 'a'), o.a))(C())"]),
    "property that raises": (
        "class C:\n    @property\n    def a(self): raise AttributeError(val())\n"
        "    def __getattr__(self, n): return n, val()\n",
        ["C().a", "getattr(C(), 'a', 3)", "hasattr(C(), 'a')"]),
    "missing keys": (
        "class C(dict):\n    def __missing__(self, k): return val()\n",
        ["C()['a']", "C(a=1).get('b', 4)", "operator.getitem(C(), 1)", "operator.itemgetter('k')(C())"]),
    "iterated dict": ("class C(dict):\n    def __iter__(self): return iter([val()])\n"
                      "    def keys(self): return [val()]\n"
                      "    def __getitem__(self, k): return val()\n",
                      [*ITERATED, "dict(C(a=1))", "called({}, 'update', C(a=1))", "list(reversed(C(a=1)))"]),
    "iterated list": ("class C(list):\n    def __iter__(self): return iter([val(), 1])\n",
                      [*ITERATED, "taken(C())", "list(reversed(C([5])))", "called(C(), 'append', 1)[0]"]),
    "reversed": ("class C(list):\n    def __reversed__(self): return iter([val(), 1])\n", ["list(reversed(C()))"]),
    "iterable": ("class C:\n    def __iter__(self): return iter([val(), 1])\n", [*ITERATED, "taken(C())"]),
    "iterator": ("class C:\n    n = 0\n    def __iter__(self): return self\n    def __next__(self):\n"
                 "        if self.n > 1: raise StopIteration\n        self.n += 1\n        return val()\n",
                 [*ITERATED, "next(C())", "(lambda i: [*zip(i, i)])(C())"]),
    "elements by number": ("class C:\n    def __getitem__(self, i):\n        if i >= 2: raise IndexError\n"
                           "        return val() + i\n    def __len__(self): return 2\n",
                           [*ITERATED, "taken(C())", "list(reversed(C()))"]),
    "mapping": ("class C:\n    def keys(self): return ['a']\n    def __getitem__(self, k): return val()\n",
                ["dict(C())", "{**C()}", "(lambda **k: k)(**C())", "(lambda **k: k)(b=1, **C())", "united({}, C())",
                 "called({}, 'update', C())", "collections.OrderedDict(C())", "collections.defaultdict(int, C())"]),
    "numbers": ("class C:\n    def __index__(self): return int(val())\n    def __bool__(self): return val() > 1\n",
                ["called([1, 2, 3, 4], 'insert', C(), 9)", "called([1, 2, 3, 4], 'pop', C())",
                 "first(enumerate('ab', C()))", "sorted([1, 2], reverse=C())", "[0, 1, 2, 3][C()]", "range(C())",
                 "list(itertools.repeat(1, C()))", "'a' * C()", "called(collections.deque('abc'), 'rotate', C())"]),
    "comparison": ("class C:\n    def __eq__(self, o): return val() > 1\n    def __hash__(self): return int(val())\n",
                   ["[1].__contains__(C())", "[1].__eq__([C()])", "1 in [C()]", "{C(): 1}.get(1)", "[C()].index(1)",
                    "len({C(), C()})"]),
    "operators": ("class C:\n    def __add__(self, o): return 'add', val()\n"
                  "    def __radd__(self, o): return 'r', val()\n"
                  "    def __ror__(self, o): return 'or', val()\n",
                  ["augmented([1], C())", "reduce(operator.add, [1, C()])", "list(itertools.accumulate([1, C()]))",
                   "united({1}, C())", "sum([1, C()])"]),
    "called": ("class C:\n    def __call__(self, *a): return val()\n",
               ["reduce(C(), [1, 2])", "list(itertools.starmap(C(), [(1, 2)]))", "sorted([1, 2], key=C())",
                "list(itertools.accumulate([1, 2], C()))", "list(itertools.takewhile(C(), [1]))",
                "[k for k, _ in itertools.groupby([1, 2], C())]", "list(map(C(), [1]))", "list(filter(C(), [1]))"]),
    "class": ("class M(type):\n    def __subclasscheck__(c, o): return val() > 1\n"
              "    def __str__(c): return str(val())\n"
              "class C(metaclass=M): pass\n", ["issubclass(int, C)", "str(C)", "f'{C}'"]),
}


@pytest.mark.parametrize("kind", CLASSES)
@pytest.mark.filterwarnings("ignore")
def test_each_expression(kind, monkeypatch):
    text, expressions = CLASSES[kind]
    for k, expression in enumerate(expressions):
        for value in (READ, WRITE):
            monkeypatch.setattr(guards, "SLOW_CHECKS", (0, 4)[k % 2])
            program = Program([(kind, value + HELPERS + text, expression, [], "(K, LOG)")], ["r{1} = {0}"])
            difference = run(program, [[], ["K[0] = 3"], ["K[0] = 1"], []], [3, 3, 3, 3])
            assert difference is None, f"{expression}: {difference}"
