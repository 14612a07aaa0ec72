"""Ways in which a program reads state from outside, and statements that change that state between two calls.

A way is (name, statements that make the state, expression that reads it, statements that change it, expression of what
the program may have changed itself). ``@`` stands for a suffix that keeps the names of several ways apart. The
expression may use the program's tensor ``x`` (float32, one dim).
"""

CLASS = """
class C@:
    kind = 1.0
    def __init__(self, a): self.a = a
    def read(self, k=1): return self.a * k + self.kind
    def more(self): return 3.0
    @property
    def twice(self): return self.a * 2
    @classmethod
    def of(cls): return cls.kind + 4
    @staticmethod
    def fixed(): return N@[0]
N@ = [2.0]
o@ = C@(1.5)
"""
NUMBERS = """
CFG@ = {"s": 1.0}
class Num@:
    def __abs__(self): return CFG@["s"]
    def __index__(self): return int(CFG@["s"])
    def __int__(self): return int(CFG@["s"]) + 1
    def __float__(self): return CFG@["s"] * 2
    def __round__(self, n=None): return CFG@["s"] + 5
    def __bool__(self): return CFG@["s"] > 2
    def __len__(self): return int(CFG@["s"])
    def __hash__(self): return int(CFG@["s"])
    def __eq__(self, other): return CFG@["s"] == 1.0
    def __lt__(self, other): return CFG@["s"] > 2
    def __neg__(self): return -CFG@["s"]
    def __add__(self, other): return CFG@["s"] + other
    def __radd__(self, other): return CFG@["s"] - other
    def __getitem__(self, k): return [1.0, 2.0, 3.0][k] * CFG@["s"]
    def __contains__(self, k): return CFG@["s"] == k
    def __iter__(self): return iter([CFG@["s"], 2.0])
    def __call__(self, k): return k * CFG@["s"]
    def __str__(self): return "x" * int(CFG@["s"])
    def __format__(self, spec): return "y" * int(CFG@["s"]) + spec
    def __getattr__(self, name):
        if name.startswith("_"): raise AttributeError(name)
        return CFG@["s"]
u@ = Num@()
"""
ANSWERS = "A@ = [1]\nclass P@:\n" + "".join([f"    def __{name}__(self): return A@[0]\n" for name in (
    "float", "int", "len", "bool", "hash", "index", "str", "iter", "complex")])
SET = ['CFG@["s"] = 3.0', 'CFG@["s"] = 2.0', 'CFG@["s"] = 1.0']
CHANGES = ["o@.a = 4.0", "C@.kind = 5.0", "o@ = C@(2.5)", "C@.read = lambda self, k=1: k + 9.0", "N@[0] = 8.0",
           "o@.read = lambda k=1: 11.0", "o@.__class__ = type('D@', (C@,), {'kind': 7.0})", "del o@.a"]
MODULE = """
class M@(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(pt.tensor([2.0]))
        self.register_buffer("b", pt.tensor([3.0]))
        self.inner = nn.Linear(1, 1)
        with pt.no_grad(): self.inner.weight.fill_(2.0); self.inner.bias.fill_(0.5)
    def forward(self, x): return x * self.w + self.b
m@ = M@()
l@ = nn.ModuleList([nn.Identity(), nn.ReLU()])
"""
# Special methods of tensors that a user replaces: the name, an expression that uses it, the other.
REPLACED = [("__matmul__", "x @ x", "lambda a, b: a * 3"), ("__rpow__", "2 ** x", "lambda a, b: a * 3"),
            ("__ixor__", "operator.ixor(x.long(), 1)", "lambda a, b: a * 3"),
            ("__invert__", "~x.long()", "lambda a: a"),
            ("__ge__", "(x >= 2, 2 <= x)", "lambda a, b: a * 3"), ("__contains__", "7.0 in x", "lambda a, b: True"),
            ("diff", "x.diff()", "lambda a: a * 3")]
WAYS = [
    # -- names
    ("global number", "K@ = 1.5", "x * K@",
     ["K@ = 2.5", "K@ = 0.0", "K@ = -0.0", "K@ = float('nan')", "K@ = 2", "del K@", "K@ = True", "K@ = 1e-300"]),
    ("global divisor", "K@ = 1.5", "x / K@", ["K@ = 2.5", "K@ = 3.5", "K@ = 0.0", "K@ = -0.0"]),
    ("global complex", "K@ = complex(1.0, 0.0)", "str(K@)", ["K@ = complex(1.0, -0.0)", "K@ = complex(2.0, 0.0)"]),
    ("global word", "S@ = 'ab'", "x * len(S@)", ["S@ = 'abc'", "S@ = b'abcd'", "S@ = None"]),
    ("name of builtins", "", "len((1, 2))", ["len = lambda v: 7", "globals().pop('len', 0)"]),
    ("cell", "def make@():\n    k = 1.0\n    def read(): return k\n    def put(v):\n        nonlocal k\n        k = v\n"
     "    return read, put\nread@, put@ = make@()", "x * read@()", ["put@(2.0)", "put@(3.0)", "read@, put@ = make@()"]),
    ("defaults", "def f@(k=1.0, *, j=2.0): return k + j", "f@()",
     ["f@.__defaults__ = (3.0,)", "f@.__kwdefaults__ = {'j': 5.0}", "f@.__kwdefaults__['j'] = 6.0", "f@.k = 1"]),
    ("fewer defaults", "def f@(k=1.0, j=(2.0, 3.0)): return k + sum(j)", "f@(1.0)",
     ["f@.__defaults__ = (1.0, (4.0,))", "f@.__defaults__ = ((5.0,),)", "f@.__defaults__ = None",
      "f@.__defaults__ = (1.0, ())"]),
    ("attribute of a function", "def f@(): return f@.k\nf@.k = 1.0", "f@()", ["f@.k = 2.0", "del f@.k"]),
    ("absent attribute of a function", "def f@(): return 1.0", "getattr(f@, 'k', 1.0)", ["f@.k = 2.0"]),
    ("function", "def f@(): return 1.0\ndef g@(): return 2.0", "f@()", ["f@ = g@", "f@.__code__ = g@.__code__"]),
    ("lambda in a list", "F@ = [lambda v: v + 1]", "F@[0](x)", ["F@[0] = lambda v: v + 2", "F@[0] = abs"]),
    ("default that is a list", "def f@(k=[1.0]): return k[0]", "f@()", ["f@.__defaults__[0][0] = 4.0"]),
    ("name of a function", "def f@(): return 1.0", "f@.__name__", ["f@.__name__ = 'other'"]),
    ("name of a class", CLASS, "type(o@).__name__", ["C@.__name__ = 'Z'", "C@.__qualname__ = 'Y'"]),
    # -- containers
    ("item", "L@ = [1.0, 2.0]", "x * L@[0]", ["L@[0] = 3.0", "L@.insert(0, 7.0)", "L@.clear()"]),
    ("index from outside", "L@ = [1.0, 2.0, 3.0]\nI@ = 0", "L@[I@]", ["I@ = 1", "I@ = -1", "I@ = True"]),
    ("length", "L@ = [1.0, 2.0]", "len(L@)", ["L@.append(1)", "L@.clear()"]),
    ("truth of a list", "L@ = [1.0]", "x if L@ else -x", ["L@.clear()", "L@.append(2)"]),
    ("elements", "L@ = [1.0, 2.0]", "[v * 2 for v in L@]", ["L@.append(3.0)", "L@[1] = 5.0", "L@.reverse()"]),
    ("membership", "L@ = [1.0, 2.0]", "2.0 in L@", ["L@.remove(2.0)", "L@.append(2.0)"]),
    ("copy of a list", "L@ = [1.0, [2.0]]", "[*L@, len(L@[1])]", ["L@[1].append(1)", "L@.append(3)"]),
    ("sum of a list", "L@ = [1, 2]", "sum(L@)", ["L@[1] = 5", "L@.append(1.5)"]),
    ("sorted by a key", "L@ = [2.0, 1.0]\nW@ = [1]", "sorted(L@, key=lambda v: v * W@[0])",
     ["W@[0] = -1", "L@.append(0)"]),
    ("count and index", "L@ = [2.0, 1.0]", "L@.count(2.0) + L@.index(1.0)", ["L@.insert(0, 2.0)"]),
    ("tuple", "T@ = (1.0, (2.0, 3.0))", "T@[1][0] + len(T@)", ["T@ = (1.0, (4.0,))", "T@ = ()"]),
    ("named tuple", "NT@ = collections.namedtuple('NT@', 'a b')\nt@ = NT@(1.0, 2)", "(t@.a, t@._asdict(), str(t@))",
     ["t@ = NT@(5.0, 2)", "t@ = t@._replace(b=3)"]),
    ("dict", "D@ = {'a': 1.0, 'b': 2.0}", "x * D@['a']", ["D@['a'] = 3.0", "del D@['a']", "D@ = dict(D@)"]),
    ("get of a dict", "D@ = {'a': 1.0}", "D@.get('b', 7.0)", ["D@['b'] = 3.0"]),
    ("keys", "D@ = {'a': 1.0, 'b': 2.0}", "list(D@)", ["D@['c'] = 0", "D@['a'] = D@.pop('a', 1)"]),
    ("items", "D@ = {'a': 1.0, 'b': 2.0}", "[(k, v) for k, v in D@.items()]",
     ["D@['b'] = 5.0", "D@['a'] = D@.pop('a', 1)"]),
    ("membership in a dict", "D@ = {'a': 1.0}", "'b' in D@", ["D@['b'] = 1", "D@.clear()"]),
    ("keywords", "D@ = {'k': 1.0}\ndef f@(k=2.0, j=3.0): return k - j", "f@(**D@)", ["D@['j'] = 1.0", "D@.clear()"]),
    ("view of values", "D@ = {'a': 1.0}\nV@ = D@.values()", "sum(V@)", ["D@['a'] = 4.0", "D@['z'] = 1.0"]),
    ("view of items", "D@ = {'a': 1.0}\nV@ = D@.items()", "[k + str(v) for k, v in V@]",
     ["D@['a'] = 4.0", "D@['z'] = 1.0"]),
    ("view of keys", "D@ = {'a': 1.0}\nV@ = D@.keys()", "('z' in V@, [*V@])", ["D@['z'] = 1.0", "D@.clear()"]),
    ("truth of a view", "D@ = {'a': 1.0}\nV@ = D@.keys()", "x if V@ else -x", ["D@.clear()"]),
    ("bound get", "D@ = {'a': 1.0}\ng@ = D@.get", "x * g@('a')", ["D@['a'] = 5.0", "g@ = {'a': 7.0}.get"]),
    ("bound append", "log@ = []\npush@ = log@.append", "push@(1)", ["log@.clear()"], "list(log@)"),
    ("bound update", "D@ = {}\nup@ = D@.update", "up@(n=x.shape[0])", ["D@.clear()"], "str(D@)"),
    ("bound count", "L@ = [1.0]\nc@ = L@.count", "c@(1.0)", ["L@.append(1.0)"]),
    ("append", "log@ = []", "log@.append(x.shape[0])", ["log@.clear()"], "str(log@)"),
    ("setdefault", "D@ = {}", "D@.setdefault('a', 1.0)", ["D@.clear()", "D@['a'] = 2.0"], "str(D@)"),
    ("write of a key", "D@ = {}", "D@.__setitem__('n', x.shape[0])", ["D@.clear()"], "str(D@)"),
    ("set", "S@ = {1.0, 2.0}", "(len(S@), 3.0 in S@, sorted(S@))", ["S@.add(3.0)", "S@.discard(1.0)"]),
    ("union of sets", "S@ = {1}", "sorted(S@ | {5})", ["S@.add(9)"]),
    ("ordered dict", "D@ = collections.OrderedDict(a=1.0, b=2.0)", "list(D@.values())",
     ["D@.move_to_end('a')", "D@['b'] = 3.0", "D@.popitem()"]),
    ("default dict", "D@ = collections.defaultdict(lambda: 3.0, a=1.0)", "D@['a'] + len(D@)",
     ["D@['a'] = 2.0", "D@['q']"]),
    ("default factory", "D@ = collections.defaultdict(int)", "D@.default_factory()",
     ["D@.default_factory = float", "D@.default_factory = list"]),
    ("copy of a default dict", "D@ = collections.defaultdict(lambda: 3.0)", "D@.copy()['z']",
     ["D@.default_factory = lambda: 4.0", "D@['z'] = 1.0"]),
    ("deque", "Q@ = collections.deque([1.0, 2.0], 3)", "(Q@[0], len(Q@), list(Q@))",
     ["Q@.append(3.0)", "Q@.rotate(1)"]),
    ("maxlen", "Q@ = collections.deque([1.0], 3)", "Q@.maxlen", ["Q@ = collections.deque([1.0], 4)"]),
    ("counter", "D@ = collections.Counter('aab')", "D@['a'] + D@['q']", ["D@.update('a')", "D@['q'] = 4"]),
    ("chain map", "D@ = {'a': 1.0}\nC@ = collections.ChainMap({}, D@)", "C@['a']", ["D@['a'] = 3.0", "C@['a'] = 9.0"]),
    ("user dict", "D@ = collections.UserDict(a=1.0)", "D@['a'] + len(D@)", ["D@['a'] = 3.0", "D@['b'] = 3.0"]),
    ("proxy of a dict", "D@ = {'a': 1.0}\nP@ = types.MappingProxyType(D@)", "P@['a'] if P@ else 0.0",
     ["D@['a'] = 3.0", "D@.clear()"]),
    ("slice", "s@ = slice(0, 2)", "x[s@]", ["s@ = slice(1, 3)", "s@ = slice(None, None, 2)"]),
    ("slice in an attribute", "n@ = types.SimpleNamespace(win=slice(0, 2))", "x[n@.win].sum()",
     ["n@.win = slice(1, 3)"]),
    ("slice of a list", "s@ = slice(0, 1)", "[1, 2, 3][s@]", ["s@ = slice(1, 3)"]),
    ("slice of a word", "s@ = slice(0, 1)", "'abcd'[s@]", ["s@ = slice(1, 3)"]),
    ("parts of a slice", "s@ = slice(0, 1)", "(s@.stop, s@.step)", ["s@ = slice(0, 3, 2)"]),
    ("range", "r@ = range(3)", "(len(r@), [*r@], str(r@))", ["r@ = range(1, 4)", "r@ = range(0)", "r@ = range(1, 1)"]),
    ("bytes", "b@ = b'ab'", "b@[0] + len(b@)", ["b@ = b'ba'"]),
    ("bytearray", "b@ = bytearray(b'ab')", "b@[0] + len(b@)", ["b@[0] = 7", "b@.append(1)"]),
    ("truth of a bytearray", "b@ = bytearray(b'a')", "x if b@ else -x", ["b@.clear()"]),
    ("array", "a@ = array.array('d', [1.0, 2.0])", "a@[0] + len(a@)", ["a@[0] = 7.0", "a@.append(1)"]),
    ("memoryview", "b@ = bytearray(b'ab')\nv@ = memoryview(b@)", "v@[0]", ["b@[0] = 7"]),
    # -- iterators
    ("next", "i@ = iter(range(99))", "next(i@)", [], "next(i@)"),
    ("bound next", "i@ = iter(range(99))", "i@.__next__()", [], "next(i@)"),
    ("generator", "i@ = (k * 2 for k in range(99))", "next(i@)", [], "next(i@)"),
    ("zip of an iterator", "i@ = iter(range(99))", "list(zip([1, 2], i@))", [], "next(i@)"),
    ("count", "i@ = itertools.count()", "next(i@)", [], "next(i@)"),
    ("unpacked iterator", "L@ = [1, 2]\ni@ = iter(L@)", "[*i@]", ["i@ = iter(L@)", "L@.append(4)"]),
    ("truth of an iterator", "i@ = iter([])", "x if i@ else -x", ["i@ = []", "i@ = iter([1])"]),
    ("iterator class",
     "class I@:\n    k = 0\n    def __iter__(self): return self\n    def __next__(self):\n        self.k += 1\n"
     "        return self.k\ni@ = I@()", "next(i@)", ["i@.k = 5"], "i@.k"),
    ("random number", "R@ = random.Random(3)", "R@.random()", ["R@.seed(4)"], "R@.getrandbits(8)"),
    ("bound random", "R@ = random.Random(3)\nr@ = R@.random", "r@()", ["R@.seed(4)"], "R@.getrandbits(8)"),
    # -- objects
    ("attribute", CLASS, "x * o@.a", CHANGES),
    ("class attribute", CLASS, "x * o@.kind", [*CHANGES, "o@.kind = 6.0"]),
    ("method", CLASS, "o@.read()", CHANGES),
    ("property", CLASS, "o@.twice", [*CHANGES, "C@.twice = property(lambda self: 3.0)"]),
    ("class method", CLASS, "o@.of() + C@.of()", CHANGES),
    ("static method", CLASS, "C@.fixed()", [*CHANGES, "C@.fixed = staticmethod(lambda: 1.25)"]),
    ("bound method", CLASS + "r@ = o@.read\n", "r@(2)", [*CHANGES, "r@ = o@.more", "r@ = o@.read"]),
    ("absent attribute", CLASS, "getattr(o@, 'none', 1.0)", ["o@.none = 2.0", "C@.none = 3.0"]),
    ("has attribute", CLASS, "hasattr(o@, 'none')", ["o@.none = 2.0", "C@.none = 3.0"]),
    ("identity", CLASS, "o@ is C@.first if hasattr(C@, 'first') else None", ["C@.first = o@", "C@.first = C@(1.0)"]),
    ("equality of objects", CLASS + "p@ = o@\n", "o@ == p@",
     ["p@ = C@(1.5)", "C@.__eq__ = lambda self, other: True", "p@ = 3"]),
    ("isinstance", CLASS, "isinstance(o@, C@)", ["o@ = 3", "o@ = C@(1)"]),
    ("abstract class", CLASS + "class A@(abc.ABC): pass\n", "isinstance(o@, A@)", ["A@.register(C@)"]),
    ("abstract subclass", CLASS + "class A@(abc.ABC): pass\n", "issubclass(C@, A@)", ["A@.register(C@)"]),
    ("protocol", CLASS + "@typing.runtime_checkable\nclass P@(typing.Protocol):\n    z: float\n",
     "isinstance(o@, P@)", ["o@.z = 1.0"]),
    ("callable", CLASS, "callable(o@)", ["C@.__call__ = lambda self: 1"]),
    ("superclass", CLASS + "class E@(C@):\n    def read(self): return super().read() + 1\ne@ = E@(1.0)\n", "e@.read()",
     [*CHANGES[:5], "E@.read = lambda self: 2.0"]),
    ("simple namespace", "n@ = types.SimpleNamespace(a=1.0)", "n@.a",
     ["n@.a = 2.0", "n@ = types.SimpleNamespace(a=4.0)"]),
    ("equality of namespaces", "n@ = types.SimpleNamespace(a=1.0)\nq@ = types.SimpleNamespace(a=1.0)", "n@ == q@",
     ["n@.a = 2.0"]),
    ("slots", "class S@: __slots__ = ('a', 'b')\ns@ = S@()\ns@.a = 1.0", "s@.a", ["s@.a = 2.0", "del s@.a"]),
    ("absent slot", "class S@: __slots__ = ('a', 'b')\ns@ = S@()", "hasattr(s@, 'a')", ["s@.a = 2.0"]),
    ("data class",
     "@dataclasses.dataclass\nclass D@:\n    a: float = 1.0\n"
     "    b: list = dataclasses.field(default_factory=lambda: [2.0])\nd@ = D@()",
     "(d@.a, d@.b[0], D@().a, d@ == D@())", ["d@.a = 3.0", "d@.b[0] = 4.0", "D@.a = 9.0"]),
    ("data class that sets",
     "F@ = [2]\n@dataclasses.dataclass\nclass D@:\n    a: float\n"
     "    def __setattr__(self, n, v): object.__setattr__(self, n, v * F@[0])\n", "D@(3.0).a", ["F@[0] = 5"]),
    ("data class with a hook",
     "F@ = [2]\n@dataclasses.dataclass\nclass D@:\n    a: float\n"
     "    def __post_init__(self): self.b = self.a * F@[0]\n", "D@(3.0).b", ["F@[0] = 5"]),
    ("frozen data class",
     "@dataclasses.dataclass(frozen=True)\nclass D@:\n    a: float\nd@ = D@(1.0)\nt@ = {D@(1.0): 5.0}",
     "t@.get(d@, 0.0)", ["d@ = D@(2.0)", "t@[D@(2.0)] = 6.0"]),
    ("descriptor", "F@ = [2.0]\nclass G@:\n    def __get__(self, o, c): return F@[0]\nclass H@: a = G@()\nh@ = H@()",
     "h@.a + H@.a if False else h@.a", ["F@[0] = 3.0", "h@.a = 7.0", "G@.__set__ = lambda s, o, v: None"]),
    ("metaclass",
     "class Q@(type):\n    k = 1.0\n    def __getattr__(cls, name): return Q@.k\nclass W@(metaclass=Q@): pass",
     "W@.anything", ["Q@.k = 2.0", "W@.anything = 5.0"]),
    ("property of a metaclass",
     "class Q@(type):\n    k = 1.0\n    @property\n    def p(cls): return Q@.k\nclass W@(metaclass=Q@): pass",
     "W@.p", ["Q@.k = 2.0"]),
    ("element by a metaclass",
     "F@ = [2.0]\nclass Q@(type):\n    def __getitem__(cls, k): return F@[0] + k\nclass W@(metaclass=Q@): pass",
     "x * W@[1]", ["F@[0] = 3.0", "Q@.__getitem__ = lambda cls, k: 9.0"]),
    ("element of a class", "class W@:\n    t = {'a': 1.0}\n    def __class_getitem__(cls, k): return cls.t[k]\n",
     "x * W@['a']", ["W@.t['a'] = 3.0", "W@.t = {'a': 5.0}", "W@.__class_getitem__ = classmethod(lambda c, k: 7.0)"]),
    ("generic class", "T@ = typing.TypeVar('T@')\nclass W@(typing.Generic[T@]):\n    k = 1.0\n", "W@[int]().k * x",
     ["W@.k = 2.0"]),
    ("call by a metaclass", "class Q@(type): pass\nclass W@(metaclass=Q@):\n    k = 1.0\n", "x * W@().k",
     ["Q@.__call__ = lambda cls: types.SimpleNamespace(k=7.0)", "del Q@.__call__"]),
    ("property of a module",
     "F@ = [1.0]\nclass M@(types.ModuleType):\n    @property\n    def k(self): return F@[0]\nm@ = M@('m@')", "x * m@.k",
     ["F@[0] = 3.0", "M@.k = property(lambda m: 9.0)", "M@.k = 4.0"]),
    ("own getattribute", "F@ = [1.0]\nclass A@:\n    def __getattribute__(self, name): return F@[0]\na@ = A@()",
     "a@.z", ["F@[0] = 2.0"]),
    *[(f"method of a number: {read}", NUMBERS, read, SET) for read in (
        "abs(u@)", "abs(Num@())", "[0.0, 1.0, 2.0, 3.0][Num@()]", "[0.0, 1.0, 2.0, 3.0][u@]", "int(Num@())",
        "float(Num@())", "round(Num@())", "bool(Num@())", "len(Num@())", "hash(Num@())", "Num@() == 1",
        "Num@() != 1", "Num@() < Num@()", "-Num@()", "Num@() + 1", "1 + Num@()", "Num@()[1]",
        "Num@()['a':'b'] if False else Num@()[0:1]", "1.0 in Num@()", "list(Num@())", "Num@()(2.0)", "str(Num@())",
        "f'{Num@()}'", "format(Num@(), 'z')", "f'{Num@():>3}'", "'%s' % Num@()", "'{}'.format(Num@())", "Num@().zzz",
        "range(4)[Num@()]", "'abcd'[Num@()]", "list(range(Num@()))", "(1, 2, 3, 4)[0:Num@()]", "math.sqrt(Num@())",
        "max([Num@(), Num@()]) is None", "x[Num@()]", "x * float(Num@())", "{1: 'a', 3: 'b'}.get(Num@())",
        "Num@() in [2.0]", "sorted([Num@(), Num@()]) == 1", "[1, 2] * Num@()", "'ab' * Num@()", "bin(Num@())",
        "divmod(7, Num@())", "sum([Num@()], 0)", "any([Num@()])", "x.reshape(Num@(), -1)", "operator.index(Num@())",
        "complex(Num@())", "chr(Num@())", "1 if u@ else 0", "pow(2, Num@())", "slice(0, Num@()).stop is None",
        "x[:Num@()]", "not Num@()", "[*Num@()]", "isinstance(u@, typing.Hashable)",
        "operator.itemgetter(Num@())([1, 2, 3, 4])", "' '.join(map(str, [Num@()]))")],
    # -- what a class or a function gets later
    ("class that gets getattribute", CLASS, "o@.a",
     ["C@.__getattribute__ = lambda self, name: 7.0", "del C@.__getattribute__", "o@.a = 3.0"]),
    ("descriptor that gets another get",
     "class G@:\n    def __get__(self, o, c): return 2.0\nclass H@: a = G@()\nh@ = H@()",
     "h@.a if isinstance(h@.a, float) else 'object'",
     ["G@.__get__ = lambda s, o, c: 5.0", "G@.__set__ = lambda s, o, v: None", "h@.__dict__['a'] = 9.0",
      "del G@.__get__", "del G@.__set__"]),
    ("other bases",
     "class A@:\n    def read(self): return 1.0\nclass B@:\n    def read(self): return 2.0\n"
     "class E@(A@):\n    def read(self): return super().read() + 1\ne@ = E@()", "e@.read()",
     ["E@.__bases__ = (B@,)", "E@.__bases__ = (A@,)", "E@.__bases__ = (B@, A@)"]),
    ("metaclass that gets a property", "class Q@(type): pass\nclass W@(metaclass=Q@): k = 1.0", "x * W@.k",
     ["Q@.k = property(lambda cls: 5.0)", "del Q@.k", "W@.k = 2.0"]),
    ("dict that misses later", "class I@(dict): pass\nk@ = I@()", "tried(lambda: k@['z'], KeyError)",
     ["I@.__missing__ = lambda s, k: 4.0", "k@['z'] = 5.0"]),
    ("truth of a list subclass", "class I@(list): pass\nk@ = I@([1.0])", "x if k@ else -x",
     ["I@.__bool__ = lambda s: False", "k@.clear()", "I@.__len__ = lambda s: 0"]),
    ("equality of a list subclass", "class I@(list): pass\nk@ = I@([1.0, 2.0])", "k@ == [1.0, 2.0]",
     ["I@.__len__ = lambda s: 7", "k@[0] = 3.0", "I@.__eq__ = lambda s, o: False"]),
    ("order of a float subclass", "class I@(float): pass\nk@ = [I@(1.0), I@(2.0)]",
     "(float(max(k@)), float(sorted(k@)[0]))",
     ["I@.__lt__ = lambda s, o: float(s) > float(o)", "I@.__gt__ = lambda s, o: float(s) < float(o)", "del I@.__lt__"]),
    ("number with methods beside a tensor",
     "F@ = [2.0]\nclass I@(float):\n    def __rmul__(self, o): return o * F@[0]\n"
     "    def __eq__(self, o): return F@[0]\n    __hash__ = float.__hash__\nk@ = I@(3.0)",
     "(x * k@, x == k@, 2.0 * k@)", ["F@[0] = 5.0", "del I@.__rmul__", "k@ = I@(4.0)"]),
    *[(f"type of a number that varies: {read}", "K@ = 2\nL@ = [1]", f"(len(L@), {read})",
       ["K@ = 3\nL@.append(1)", "K@ = 2\nL@.append(1)", "K@ = 3.5\nL@.append(1)", "K@ = 1.5\nL@.append(1)"])
      for read in ("min(K@, 3)", "max(2.0, K@)", "complex(K@, K@)", "x.long() * min(K@, 3)")],
    *[(f"answer of a special method: {read}", ANSWERS, f"tried(lambda: {read}, (TypeError, ValueError))",
       [f"A@[0] = {value}" for value in ("2", "1.5", "True", "-1", "'ab'", "None", "[1]")]) for read in (
        "float(P@())", "int(P@())", "len(P@())", "bool(P@())", "hash(P@())", "str(P@())", "list(P@())",
        "complex(P@())", "[1, 2, 3][P@()]", "x[P@()].shape", "1 if P@() else 2", "f'{P@()}'")],
    ("defaults of a named tuple", "class Q@(typing.NamedTuple):\n    a: float\n    b: float = 2.0\n",
     "x * Q@(1.0).b",
     ["Q@.__new__.__defaults__ = (7.0,)", "Q@.__new__.__defaults__ = (1.0, 3.0)"]),
    ("subclass of a data class",
     "@dataclasses.dataclass\nclass D@:\n    a: float = 1.0\nclass E@(D@):\n"
     "    def __post_init__(self): self.a = 9.0\n", "x * E@().a",
     ["D@.__init__.__defaults__ = (4.0,)", "D@.a = 5.0", "D@.__post_init__ = lambda self: None"]),
    ("object with a finalizer",
     "log@ = []\nclass A@:\n    def __del__(self): log@.append(1)\ndef f@(v):\n    A@()\n    return v * 2\n", "f@(x)",
     ["log@.clear()"], "len(log@)"),
    ("object that gets a finalizer",
     "log@ = []\nclass A@: k = 2.0\ndef f@(v): return v * A@().k\n", "f@(x)",
     ["A@.__del__ = lambda self: log@.append(1)"], "len(log@)"),
    ("field without an argument",
     "@dataclasses.dataclass\nclass D@:\n    a: float = dataclasses.field(default=1.0, init=False)\n"
     "    b: list = dataclasses.field(default_factory=list, init=False)\n", "(x * D@().a, len(D@().b))",
     ["D@.a = 5.0"]),
    # -- values
    ("decimal", "d@ = decimal.Decimal(1)", "x * 2 if d@ else x",
     ["d@ = decimal.Decimal(0)", "d@ = decimal.Decimal('nan')"]),
    ("comparison of decimals", "d@ = decimal.Decimal(1)", "d@ > 0",
     ["d@ = decimal.Decimal(0)", "d@ = decimal.Decimal(5)"]),
    ("sum of decimals", "d@ = decimal.Decimal(1)", "float(d@ + 1)",
     ["d@ = decimal.Decimal(7)", "decimal.getcontext().prec = 28"]),
    ("text of a decimal", "d@ = decimal.Decimal('1.0')", "str(d@)", ["d@ = decimal.Decimal('1.00')"]),
    ("fraction", "f@ = fractions.Fraction(1, 3)", "float(f@)",
     ["f@ = fractions.Fraction(2, 3)", "f@ = fractions.Fraction(0)"]),
    ("date", "d@ = datetime.date(2020, 1, 2)", "(d@.year, str(d@))", ["d@ = datetime.date(2021, 1, 2)"]),
    ("time delta", "d@ = datetime.timedelta(1)", "x if d@ else -x",
     ["d@ = datetime.timedelta(0)", "d@ = datetime.timedelta(2)"]),
    ("sum of dates", "d@ = datetime.date(2020, 1, 2)", "(d@ + datetime.timedelta(3)).day",
     ["d@ = datetime.date(2020, 1, 5)"]),
    ("int subclass", "class I@(int): pass\nk@ = I@(0)", "[1.0, 5.0][k@] - (-k@)", ["k@ = I@(1)", "k@ = 1", "k@.z = 3"]),
    ("float subclass", "class I@(float): pass\nk@ = I@(1.0)", "x * k@",
     ["k@ = I@(2.0)", "k@ = I@(-0.0)", "k@ = I@(0.0)"]),
    ("int subclass that adds",
     "class I@(int):\n    more = 1\n    def __add__(self, o): return int(self) * I@.more + o\nk@ = I@(3)", "k@ + 1",
     ["I@.more = 2", "k@ = I@(4)"]),
    ("word subclass", "class I@(str): pass\nk@ = I@('ab')", "len(k@) + len(f'{k@}')", ["k@ = I@('abc')"]),
    ("list subclass", "class I@(list): pass\nk@ = I@([1.0])", "k@[0] + len(k@)", ["k@.append(2)", "k@[0] = 3.0",
     "I@.__getitem__ = lambda s, i: 9.0"]),
    ("dict subclass", "class I@(dict): pass\nk@ = I@(a=1.0)", "k@['a'] + len(k@)", ["k@['b'] = 2", "k@['a'] = 3.0",
     "I@.__len__ = lambda s: 50", "I@.__missing__ = lambda s, k: 1"]),
    ("dict that misses", "F@ = [1.0]\nclass I@(dict):\n    def __missing__(self, k): return F@[0]\nk@ = I@()",
     "k@['z']", ["F@[0] = 3.0", "k@['z'] = 5.0"]),
    ("enumeration", "class E@(enum.Enum):\n    A = 1\n    B = 2\ne@ = E@.A", "(e@.value, e@.name, e@ is E@.A)",
     ["e@ = E@.B"]),
    ("int enumeration", "class E@(enum.IntEnum):\n    A = 1\n    B = 2\ne@ = E@.A", "x * e@ + [0, 1, 2][e@]",
     ["e@ = E@.B"]),
    ("flag", "class E@(enum.Flag):\n    A = 1\n    B = 2\ne@ = E@.A", "x if e@ & E@.A else -x",
     ["e@ = E@.B", "e@ = E@.A | E@.B"]),
    ("number of NumPy", "k@ = np.float32(1.5)", "x * float(k@)", ["k@ = np.float32(2.5)", "k@ = np.float64(1.5)"]),
    ("complex number of NumPy", "k@ = np.complex64(complex(1, 0.0))", "str(k@)",
     ["k@ = np.complex64(complex(1, -0.0))"]),
    ("structured number", "a@ = np.zeros(1, [('f', 'f8')])\nk@ = a@[0]", "float(k@['f'])", ["a@['f'] = 3.0"]),
    ("truth of an array", "a@ = np.array([1])", "x * 2 if a@ else x", ["a@ = np.array([0])", "a@[0] = 0", "a@[0] = 1"]),
    ("array of NumPy", "a@ = np.array([1.0, 2.0])", "float(a@[0])", ["a@[0] = 3.0"]),
    ("shape of an array", "a@ = np.ones((2, 3))", "x * a@.shape[1] + a@.ndim",
     ["a@ = np.ones((2, 4))", "a@ = np.ones(3)"]),
    ("length of an array", "a@ = np.ones(2)", "len(a@)", ["a@ = np.ones(3)"]),
    # -- state of the interpreter
    ("thread local", "t@ = threading.local()\nt@.a = 1.0", "x * t@.a", ["t@.a = 2.0", "del t@.a"]),
    ("absent in a thread local", "t@ = threading.local()", "getattr(t@, 'a', 1.0)", ["t@.a = 2.0"]),
    ("context variable", "v@ = contextvars.ContextVar('v@', default=1.0)", "v@.get()", ["v@.set(2.0)"]),
    ("bound context variable", "v@ = contextvars.ContextVar('v@', default=1.0)\ng@ = v@.get", "g@()", ["v@.set(2.0)"]),
    ("weak reference", CLASS + "w@ = weakref.ref(o@)\n", "x if w@() is None else -x", ["del o@", "o@ = C@(3.0)"]),
    ("weak proxy", CLASS + "keep@ = o@\nw@ = weakref.proxy(o@)\n", "w@.a", ["keep@.a = 8.0", "del keep@.a"]),
    ("environment", "import os\nos.environ['PTCORE_WAY@'] = 'a'", "os.environ.get('PTCORE_WAY@', '')",
     ["os.environ['PTCORE_WAY@'] = 'abc'"]),
    ("module", "m@ = types.ModuleType('m@')\nm@.K = 1.0", "m@.K", ["m@.K = 2.0", "del m@.K"]),
    ("absent in a module", "m@ = types.ModuleType('m@')", "getattr(m@, 'K', 1.0)", ["m@.K = 2.0"]),
    ("module with getattr", "m@ = types.ModuleType('m@')\nF@ = [1.0]\nm@.__getattr__ = lambda name: F@[0]", "m@.K",
     ["F@[0] = 2.0", "m@.K = 3.0"]),
    ("absent in a module with getattr",
     "m@ = types.ModuleType('m@')\nF@ = {}\ndef found@(name):\n    if name in F@: return F@[name]\n"
     "    raise AttributeError(name)\nm@.__getattr__ = found@", "getattr(m@, 'K', 1.0)",
     ["F@['K'] = 2.0", "m@.K = 3.0"]),
    ("absent in a module that gets getattr", "m@ = types.ModuleType('m@')", "hasattr(m@, 'K')",
     ["m@.__getattr__ = lambda name: 2.0"]),
    ("partial function", "def f@(a, b=2.0): return a + b\nA@ = [1.0]\np@ = functools.partial(f@, 1.0, b=3.0)", "p@()",
     ["p@.keywords['b'] = 7.0", "p@ = functools.partial(f@, 5.0)"]),
    ("cached function", "F@ = [1.0]\n@functools.lru_cache\ndef f@(): return F@[0]", "f@()",
     ["F@[0] = 2.0", "f@.cache_clear()"]),
    ("cached property", "class A@:\n    @functools.cached_property\n    def p(self): return 2.0\na@ = A@()", "a@.p",
     ["a@.p = 3.0", "a@ = A@()"], "str(vars(a@))"),
    ("single dispatch", "@functools.singledispatch\ndef f@(v): return 1.0", "f@(2)",
     ["f@.register(int, lambda v: 2.0)"]),
    ("getter of items", "D@ = {'a': 1.0, 'b': 2.0}\ng@ = operator.itemgetter('a')", "g@(D@)",
     ["D@['a'] = 3.0", "g@ = operator.itemgetter('b')"]),
    ("getter of attributes", CLASS + "g@ = operator.attrgetter('a')\n", "g@(o@)",
     ["o@.a = 3.0", "g@ = operator.attrgetter('kind')"]),
    ("caller of methods", CLASS + "g@ = operator.methodcaller('read', 2)\n", "g@(o@)",
     [*CHANGES[:5], "g@ = operator.methodcaller('more')"]),
    ("map over a list", "L@ = [1.0]\nF@ = [2.0]", "list(map(lambda v: v * F@[0], L@))",
     ["F@[0] = 3.0", "L@.append(4.0)"]),
    ("reduction", "L@ = [1.0, 2.0]\ndef f@(a, b): return a + b", "functools.reduce(f@, L@)",
     ["L@.append(4.0)", "f@ = lambda a, b: a * b + 1"]),
    ("regular expression", "import re\nr@ = re.compile('a+')", "r@.match('aab').end()", ["r@ = re.compile('a')"]),
    ("format from outside", "S@ = '{:.1f}'\nP@ = '.1f'", "(S@.format(1.25), f'{1.25:{P@}}')",
     ["S@ = '{:.2f}'", "P@ = '.2f'"]),
    ("text of an object", CLASS + "C@.__repr__ = lambda self: 'C' * int(self.a)\n", "(str([o@.a]), repr(o@))", CHANGES),
    ("write of an attribute", CLASS, "setattr(o@, 'n', x.shape[0])", ["o@.n = 0"], "str(getattr(o@, 'n', None))"),
    ("counter in an object",
     "class A@:\n    n = 0\n    def step(self):\n        self.n += 1\n        return self.n\na@ = A@()", "a@.step()",
     ["a@.n = 7"], "a@.n"),
    ("counter in a cell",
     "def make@():\n    k = 0\n    def step():\n        nonlocal k\n        k += 1\n        return k\n"
     "    return step\nf@ = make@()", "f@()", ["f@ = make@()"]),
    # -- tensors
    ("tensor", "t@ = pt.tensor([2.0])", "x * t@",
     ["t@ = pt.tensor([3.0])", "t@.mul_(2)", "t@ = t@.double()", "t@ = pt.ones(3)"]),
    ("dtype", "t@ = pt.ones(2)", "str(t@.dtype)", ["t@ = t@.double()", "t@ = t@.long()"]),
    ("requires grad", "t@ = pt.ones(3)", "(t@.requires_grad, t@.is_leaf, x * t@)",
     ["t@.requires_grad_(True)", "t@ = (t@ * 2)", "t@.requires_grad_(False) if t@.is_leaf else None"]),
    ("gradient", "t@ = pt.ones(3).requires_grad_()", "x if t@.grad is None else x * t@.grad",
     ["t@.grad = pt.ones(3) * 3", "t@.grad = None", "(t@ * 2).sum().backward()"]),
    ("shape and strides", "t@ = pt.ones(2, 3)", "(t@.shape[0], t@.stride(), t@.is_contiguous(), str(t@.shape))",
     ["t@ = pt.ones(3, 2).t()", "t@ = pt.ones(4, 3)", "t@ = pt.ones(5, 3)"]),
    ("offset", "b@ = pt.arange(8.0)\nt@ = b@[0:3]", "x * t@.storage_offset()", ["t@ = b@[4:7]", "t@ = b@[1:4]"]),
    ("offset of a view", "b@ = pt.arange(8.0)\nt@ = b@[0:3]", "x[1:] * t@[1:].storage_offset()",
     ["t@ = b@[4:7]", "t@ = b@[1:4]"]),
    ("places", "b@ = pt.arange(8.0)\nt@ = b@[0:3]", "t@.as_strided((2,), (1,), 1) * 1",
     ["t@ = b@[4:7]", "t@ = b@[2:5]"]),
    ("places from the start", "b@ = pt.arange(8.0)\nt@ = b@[0:3]", "t@.as_strided((2,), (1,)) * 1",
     ["t@ = b@[4:7]", "t@ = b@[2:5]"]),
    ("copied places", "b@ = pt.arange(8.0)\nt@ = b@[0:3]", "pt.as_strided_copy(t@, (2,), (1,), 1)", ["t@ = b@[4:7]"]),
    ("is view", "t@ = pt.ones(2)", "t@._is_view()", ["t@ = pt.ones(4)[:2]"]),
    ("base", "t@ = pt.ones(2)", "t@._base is None", ["t@ = pt.ones(4)[:2]"]),
    ("version", "t@ = pt.ones(2)", "t@._version", ["t@.add_(1)"]),
    ("same memory", "t@ = pt.ones(2)\nq@ = pt.ones(2)", "t@.is_set_to(q@)", ["q@ = t@", "q@ = t@.clone()"]),
    ("same tensor", "t@ = pt.ones(2)\nq@ = pt.ones(2)", "t@ is q@", ["q@ = t@", "q@ = t@.clone()"]),
    ("tensor as key", "t@ = pt.ones(2)\nq@ = pt.ones(2)", "{t@: 1.0}.get(q@, 2.0)", ["q@ = t@", "q@ = t@.clone()"]),
    ("attribute of a tensor", "t@ = pt.ones(2)\nt@.scale = 1.0", "t@.scale", ["t@.scale = 2.0", "del t@.scale"]),
    ("absent attribute of a tensor", "t@ = pt.ones(2)", "getattr(t@, 'scale', 1.0)", ["t@.scale = 2.0"]),
    ("method put into Tensor", "pt.Tensor.way@ = lambda t: t * 2", "x.way@()",
     ["pt.Tensor.way@ = lambda t: t * 5", "pt.Tensor.way@ = pt.Tensor.sin", "pt.Tensor.way@ = pt.Tensor.cos"]),
    ("property put into Tensor", "F@ = [2]\npt.Tensor.way@ = property(lambda t: t * F@[0])", "x.way@",
     ["F@[0] = 3\npt.Tensor.way@ = property(lambda t: t * F@[0])", "pt.Tensor.way@ = 5.0"]),
    *[(f"{name} put into Tensor", "", read,
       [f"pt.Tensor.{name} = {other}", f"pt.Tensor.{name} = settled_{name}"]) for name, read, other in REPLACED],
    ("inference tensor", "t@ = pt.ones(2)", "t@.is_inference()", ["t@ = pt.inference_mode()(lambda: pt.ones(2))()"]),
    ("retains grad", "t@ = pt.ones(2).requires_grad_() * 1", "t@.retains_grad", ["t@.retain_grad()"]),
    ("value read", "t@ = pt.tensor([1.0])", "x if t@ > 2 else -x", ["t@.fill_(5.0)", "t@ = pt.tensor([3.0])"]),
    ("tensor from a parameter", "t@ = nn.Parameter(pt.ones(3))", "pt.tensor(t@) * x",
     ["t@ = nn.Parameter(pt.zeros(3))"]),
    ("written memory", "b@ = pt.zeros(4)\nt@ = b@[:3]\nq@ = b@[1:]", "(t@.add_(1), q@ * 1)[1]",
     ["q@ = pt.zeros(3)", "q@ = t@"], "b@.sum().item()"),
    # -- modules
    ("parameter", MODULE, "m@(x)",
     ["m@.w.data.fill_(5.0)", "m@.w = nn.Parameter(pt.tensor([7.0]))", "m@.b = pt.tensor([1.0])", "m@.b.add_(1)",
      "m@.w.requires_grad_(False)", "m@.forward = lambda x: x * 9", "M@.forward = lambda self, x: x * 8"]),
    ("training", MODULE, "x if m@.training else -x", ["m@.eval()", "m@.train()"]),
    ("dropout", MODULE + "d@ = nn.Dropout(0.5)\n", "d@(x)", ["d@.eval()", "d@.p = 0.0", "d@.train()"]),
    ("submodule", MODULE, "m@.inner(x[:1])", ["m@.inner = nn.Identity()", "m@.inner.eval()", "m@.inner.bias = None"]),
    ("hook", MODULE, "m@(x)",
     ["h@ = m@.register_forward_hook(lambda mod, a, out: out * 2)", "globals().get('h@') and h@.remove()"]),
    ("list of modules", MODULE, "len(l@) + (l@[0](x)).sum()", ["l@.append(nn.Identity())", "l@[0] = nn.Hardtanh()"]),
    ("named parameters", MODULE, "[n for n, p in m@.named_parameters()]",
     ["m@.extra = nn.Parameter(pt.ones(1))", "del m@.w"]),
    ("text of a module", MODULE, "'{}'.format(m@.inner)", ["m@.inner = nn.Identity()"]),
    ("f text of a module", MODULE, "f'{m@.inner}'", ["m@.inner = nn.Identity()"]),
    ("absent attribute of nn", MODULE, "getattr(m@, 'none', 1.0)",
     ["m@.none = 2.0", "m@.none = nn.Identity()", "m@.register_buffer('none', pt.ones(1))"]),
    ("state dict", MODULE, "m@.state_dict()['w'] * 1", ["m@.w.data.fill_(5.0)"]),
    # -- modes
    ("default dtype", "", "str(pt.ones(1).dtype) + str((x.long() / 2).dtype)",
     ["pt.set_default_dtype(pt.float64)", "pt.set_default_dtype(pt.float32)"]),
    ("grad mode", "t@ = pt.ones(3).requires_grad_()", "(x * t@, pt.is_grad_enabled())",
     ["pt.set_grad_enabled(False)", "pt.set_grad_enabled(True)"]),
    ("deterministic", "", "pt.are_deterministic_algorithms_enabled()",
     ["pt.use_deterministic_algorithms(True)", "pt.use_deterministic_algorithms(False)"]),
    ("anomaly", "", "pt.is_anomaly_enabled()",
     ["pt.autograd.set_detect_anomaly(True, False)", "pt.autograd.set_detect_anomaly(False)"]),
    ("precision", "", "pt.get_float32_matmul_precision()",
     ["pt.set_float32_matmul_precision('high')", "pt.set_float32_matmul_precision('highest')"]),
    ("seed", "", "pt.initial_seed()", ["pt.manual_seed(4)", "pt.manual_seed(5)"]),
    # -- sizes
    ("sizes in the result", "t@ = pt.tensor([0, 1])",
     "(x.shape, {'a': x[t@].shape}, [x.shape[:1], x.shape + (1,)], pt.Size([x.shape[0], 2]), x[None].size())",
     ["t@ = pt.tensor([0, 1, 1])", "t@ = pt.tensor([0])"]),
    ("text of a shape", "",
     "(f'{x.shape}', str(x.shape), repr([x.shape[0]]), '%s' % (x.shape,), '{}'.format(x.shape))", []),
    ("text of a size", "NT@ = collections.namedtuple('NT@', 'a')",
     "(str(NT@(x.shape[0])), str({x.shape[0]}), str({'a': x.shape}), str(slice(x.shape[0])))", []),
    ("error with a size", "", "str(ValueError(x.shape[0], list(x.shape)))", []),
    ("text of a deque", "", "str(collections.deque([x.shape[0]])) + str(frozenset([x.shape[0]]))", []),
    # -- errors
    ("handled key", "D@ = {'a': 1.0}", "tried(lambda: D@['a'], KeyError)", ["D@.clear()", "D@['a'] = 4.0"]),
    ("handled element", "L@ = [1.0]\nT@ = (2.0,)",
     "(tried(lambda: L@[1], IndexError), tried(lambda: T@[-2], IndexError))",
     ["L@.append(4.0)", "T@ = (3.0, 5.0)", "L@.clear()", "L@.extend([6.0, 7.0])"]),
    ("handled division", "K@ = 1.5", "tried(lambda: x * (1 / K@), ZeroDivisionError)",
     ["K@ = 2.5", "K@ = 0.0", "K@ = 3.5"]),
    ("tuple of errors", "E@ = (KeyError, (IndexError,))\ndef bad@():\n    try: return [][0]\n"
     "    except E@: return 1.0\n    except Exception: return 2.0", "bad@()",
     ["E@ = (KeyError,)", "E@ = (LookupError,)", "E@ = ValueError", "E@ = ()", "E@ = (3,)"]),
    ("handled integer division", "K@ = 3", "tried(lambda: x * (12 // (K@ - 3) if K@ > 2 else 1), ZeroDivisionError)",
     ["K@ = 4", "K@ = 5", "K@ = 3"]),
    ("handled factorization", "t@ = pt.eye(2)", "tried(lambda: pt.linalg.cholesky(t@), RuntimeError)",
     ["t@ = -pt.eye(2)", "t@.neg_()", "t@ = pt.eye(2) * 4"]),
    ("handled index", "t@ = pt.tensor([0, 1])", "tried(lambda: x[t@], IndexError)",
     ["t@ = pt.tensor([0, 9])", "t@[0] = 99", "t@[0] = 0"]),
    ("suppressed index", "t@ = pt.tensor([0, 1])", "suppressed(lambda: x[t@])",
     ["t@ = pt.tensor([0, 9])", "t@[0] = 99", "t@[0] = 0"]),
    ("final clause", "t@ = pt.tensor([0, 1])\nlog@ = []", "finished(lambda: x[t@], log@)",
     ["t@[0] = 99", "t@[0] = 0"], "len(log@)"),
    ("error behind a write", "t@ = pt.zeros(3)\ni@ = pt.tensor([0, 9])", "(t@.add_(1), x[i@])[1]",
     ["i@[1] = 1", "i@[1] = 9"], "t@.sum().item()"),
    *[(f"text of an error: {read}", "K@ = 5\ndef f@(v, k=1): return v * k\ndef text@(f):\n    try: return f()\n"
       "    except Exception as error: return str(error)\n", f"text@(lambda: {read})",
       ["K@ = 7", "f@.__defaults__ = None", "K@ = [1]", "K@ = None"]) for read in (
        "[1].index(K@)", "(1,).index(K@)", "[1].remove(K@)", "1 in K@", "[*K@]", "f@(x)", "f@(x, 1, K@)", "{}[K@]",
        "int('a')", "K@.nothing", "len(K@)", "K@()", "x @ K@", "math.sqrt(-1)", "max([])")],
    *[(f"defaults and code of a function that runs as it is: {read}",
       "def f@(v, k=1.0, *, j=2.0):\n    print(end='')\n    return v * k + j\ndef g@(v, k=1.0, *, j=2.0):\n"
       "    print(end='')\n    return v - k\n", read,
       ["f@.__defaults__ = (3.0,)", "f@.__kwdefaults__ = {'j': 5.0}", "f@.__kwdefaults__['j'] = 6.0",
        "f@.__defaults__ = None", "f@.__code__ = g@.__code__"]) for read in ("f@(x)", "f@(x, 4.0)", "f@(x, 1, j=3.0)")],
    # -- identity
    *[(f"identity of values: {read}", "K@ = float('nan')\nN@ = 1000\nS@ = 'ab-c'\nL@ = [K@, N@, S@]", read,
       ["K@ = float('nan')", "N@ = int('1000')", "S@ = '-'.join(['ab', 'c'])", "L@[:] = [K@, N@, S@]"])
      for read in ("N@ is L@[1]", "S@ is not L@[2]", "K@ in L@", "[K@] == [L@[0]]", "{K@: 1}.get(L@[0], 2)",
                   "len({K@, L@[0]})", "L@.count(K@)", "(lambda a, b: a is b)(N@, L@[1])", "L@[1] in (N@, 5)")],
    *[(f"keys that are modules or functions: {read}", MODULE + "def f@(): return 1\ng@ = f@\nq@ = nn.Linear(1, 1)\n",
       read, ["l@[1] = l@[0]", "q@ = m@", "q@ = nn.Linear(1, 1)", "g@ = lambda: 1", "g@ = f@", "m@.inner = q@"])
      for read in ("[n for n, _ in l@.named_modules()]", "(m@ in {m@}, q@ in {m@}, {m@} == {q@})",
                   "(g@ in {f@}, {f@} == {g@}, {f@} <= {g@, m@})", "len(list(m@.modules()))",
                   "{m@: 1}.keys() == {q@: 1}.keys()", "((m@, g@) in {(q@, f@)}, len({m@, q@}))")],
    ("methods as keys", CLASS + "p@ = C@(9.0)\nr@ = o@.read\n",
     "(o@.read in {r@}, {r@: 1}.get(p@.read), {r@} == {o@.read})",
     ["r@ = p@.read", "p@ = o@", "r@ = o@.more", "C@.read = lambda self, k=1: k"]),
    # -- gradients
    ("view of a leaf without history", "a@ = pt.ones(3, requires_grad=True)\nm@ = [True]\ndef f@(v):\n"
     "    with pt.set_grad_enabled(m@[0]): return v.view(3), v[1:], v * 2\n",
     "([(v.requires_grad, v.is_leaf) for v in f@(a@)], f@(a@))",
     ["m@[0] = False", "a@ = a@.detach()", "m@[0] = True", "a@ = pt.ones(3, requires_grad=True) * 1"]),
    ("number that varies and is written", "G@ = 1.5\ndef f@(v):\n    v = v.clone()\n    v[0] = G@\n"
     "    return v, v.sum().item()\n", "f@(x)", ["G@ = 2.5", "G@ = 3.5", "G@ = 4.5"]),
    ("view of an intermediate without history", "a@ = pt.ones(3, requires_grad=True)\nm@ = [True]\ndef f@(v):\n"
     "    v = v * a@\n    with pt.set_grad_enabled(m@[0]): return v.exp().view(3), v[1:], v * 2\n",
     "([(v.requires_grad, v.is_leaf) for v in f@(x)], f@(x))",
     ["m@[0] = False", "a@ = a@.detach()", "m@[0] = True", "a@ = pt.ones(3, requires_grad=True) * 1"]),
    # -- ends of contexts and generators
    ("null context", "c@ = contextlib.nullcontext(3.0)\ndef f@(v):\n    with c@ as k: return v * k\n", "f@(x)",
     ["c@ = contextlib.nullcontext(4.0)", "c@.enter_result = 5.0"]),
    ("generator that is dropped",
     "log@ = []\ndef g@(v):\n    try: yield v\n    finally: log@.append(1)\n"
     "def f@(v):\n    for k in g@(v): return k\n", "f@(x)", ["log@.clear()"], "len(log@)"),
    # -- calls by what runs as it is
    *[(f"called by a function that runs as it is: {read}",
       "F@ = [1.0]\ndef f@(v, f=1.0, args=2, kwargs=3): return v * f + args + kwargs + F@[0]\n"
       "ev@ = eval\nimport logging\nlog@, lg@, h@ = [], logging.Logger('way@'), logging.Handler()\n"
       "lg@.addHandler(h@)\nh@.emit = lambda r: log@.append(r.funcName)\n",
       f"(print(end=''), {read})[1]", ["F@[0] = 5.0", "log@.clear()"], "str(log@)")
      for read in ("f@(x, f=F@[0])", "f@(x, args=3, kwargs=F@[0])", "lg@.warning('a')", "ev@('F@[0]')",
                   "collections.namedtuple('N', 'a').__module__ == __name__",
                   "type('T', (), {}).__module__ == __name__")],
    # -- results that nobody uses, and what stands before and behind an error
    ("unused index", "t@ = pt.tensor([0, 1])\ndef f@(v):\n    v[t@]\n    return v + 1\n", "f@(x)",
     ["t@[0] = 50", "t@[0] = 0"]),
    ("unused factorization",
     "t@ = pt.eye(2)\ndef f@():\n    try: pt.linalg.cholesky(t@)\n    except RuntimeError: return False\n"
     "    return True\n", "f@()", ["t@.neg_()", "t@ = pt.zeros(2, 2)"]),
    ("unused division", "t@ = pt.tensor([1, 2])\ndef f@(v):\n    7 // t@\n    return v * 2\n", "f@(x)",
     ["t@[0] = 0", "t@[0] = 3"]),
    ("unused class of a loss",
     "t@ = pt.tensor([0])\ndef f@(v):\n    nn.functional.cross_entropy(v[None], t@)\n    return v\n", "f@(x)",
     ["t@[0] = 50", "t@[0] = 1"]),
    ("writes around an error",
     "b@ = pt.zeros(2)\nt@ = pt.eye(2)\ndef f@():\n    b@.add_(1)\n    y = pt.linalg.inv(t@)\n    b@.add_(10)\n"
     "    return y\n", "f@()", ["t@.zero_()", "t@.fill_diagonal_(1.0)"], "b@.tolist()"),
    ("text of an error",
     "K@ = 7\ndef f@(v):\n    try: return v[K@]\n    except IndexError as error: return str(error)\n", "f@(x)",
     ["K@ = 1", "K@ = -9", "K@ = 8"]),
    # -- checks by value
    ("classes of one_hot", "t@ = pt.tensor([0, 1])", "nn.functional.one_hot(t@, 3)",
     ["t@[0] = 5", "t@[0] = 0", "t@[0] = -1"]),
    ("index out of bounds", "t@ = pt.tensor([0, 1])", "x[t@]", ["t@[0] = 50", "t@[0] = 0", "t@[0] = -1"]),
    ("class of a loss", "t@ = pt.tensor([0])", "nn.functional.cross_entropy(x[None], t@)", ["t@[0] = 50", "t@[0] = 1"]),
    ("probabilities", "t@ = pt.tensor([0.5, 0.5])", "pt.distributions.Categorical(probs=t@).entropy()",
     ["t@[0] = -1.0", "t@[0] = 0.25", "t@.fill_(float('nan'))"]),
    ("rate", "t@ = pt.tensor([0.5])", "pt.distributions.Exponential(t@).mean", ["t@[0] = -1.0", "t@[0] = 2.0"]),
    ("binary loss", "t@ = pt.tensor([0.5])", "nn.functional.binary_cross_entropy(t@, pt.ones(1))",
     ["t@[0] = 2.0", "t@[0] = 0.25"]),
    ("counts of bins", "t@ = pt.tensor([0, 1])", "pt.bincount(t@, minlength=2)",
     ["t@[0] = -1", "t@[0] = 4", "t@[0] = 1"]),
    ("repeats", "t@ = pt.tensor([1, 2])", "pt.repeat_interleave(pt.tensor([1.0, 2.0]), t@)",
     ["t@[0] = 3", "t@[0] = -1", "t@[0] = 0"]),
    ("indices of an embedding", "t@ = pt.tensor([1, 2])", "nn.functional.embedding(t@, pt.ones(4, 2))",
     ["t@[0] = 9", "t@[0] = 0"]),
    ("gathered", "t@ = pt.tensor([1, 2])", "x.gather(0, t@)", ["t@[0] = 9", "t@[0] = 0"]),
    ("bernoulli", "t@ = pt.tensor([0.0, 1.0])", "pt.bernoulli(t@)", ["t@[0] = 9.0", "t@[0] = 1.0"]),
    ("multinomial", "t@ = pt.tensor([0.0, 1.0])", "pt.multinomial(t@, 1)", ["t@[1] = -9.0", "t@[0] = 1.0"]),
]
# Ways with effects, each for itself: a call refuses to go on behind an effect where it meets what cannot be captured.
EFFECTS = [
    *[(f"gradients by tensors that others lead to: {read}",
       "a@ = pt.ones(3, requires_grad=True)\nb@ = pt.ones(3, requires_grad=True)\n"
       "def back@(*by):\n    (a@ * 2 + b@ * 3).sum().backward(inputs=list(by))\n    return a@.grad * 1\n", read,
       ["b@ = a@", "b@ = a@ * 2", "b@ = a@[:]", "b@ = pt.ones(3, requires_grad=True)",
        "a@ = pt.ones(3, requires_grad=True) * 1"])
      for read in ("pt.autograd.grad((a@ * 2 + b@ * 3).sum(), [a@, b@])", "back@(a@)",
                   "pt.autograd.grad((a@ * 2 + b@ * 3).sum(), a@)", "back@(a@, b@)",
                   "pt.autograd.grad((b@ * 3).sum(), a@, allow_unused=True)")],
    *[(f"hooks on gradients: {read}",
       "G@, b@ = [1.0], pt.zeros(3)\na@ = pt.ones(3, requires_grad=True)\nc@ = a@ * 2\n"
       "def seen@(g):\n    G@[0] += 1\n    b@.add_(1)\ndef back@(v):\n    (v * a@).sum().backward()\n"
       "    return v * G@[0] + b@\n", read,
       ["h@ = a@.register_hook(lambda g: g * 2)", "h@ = a@.register_hook(seen@)", "globals().get('h@') and h@.remove()",
        "h@ = a@.register_post_accumulate_grad_hook(seen@)", "h@ = c@.register_hook(lambda g: g * 3)"],
       "(G@[0], b@.tolist(), a@.grad)")
      for read in ("back@(x)", "pt.autograd.grad((x * a@).sum(), a@)", "pt.autograd.grad((x * c@).sum(), c@)")],
    ("write before an error behind a step",
     "a@ = pt.ones(3, requires_grad=True)\nb@ = pt.zeros(3)\no@ = pt.optim.SGD([a@], lr=0.1)\n"
     "def f@(v):\n    o@.step()\n    b@.add_(1)\n    (v * a@).sum().backward()\n    return b@ * 1\n", "f@(x)",
     ["a@.requires_grad_(False)", "a@.requires_grad_(True)"], "(b@.tolist(), a@.tolist())"),
    *[(f"gradients of an optimizer that is made inside: {made}",
       "a@ = pt.ones(3, requires_grad=True)\n"
       "def f@(v):\n    o = pt.optim." + made + "\n    o.zero_grad()\n    (v * a@ * a@).sum().backward()\n"
       "    o.zero_grad()\n    (v * a@).sum().backward()\n" + end, "f@(x)",
       ["a@.grad = pt.ones(3)", "a@.grad = None", "a@.data = pt.zeros(3)"], "(a@, a@.grad)")
      for made in ("SGD([a@])", "Adam([a@], lr=0.1)", "LBFGS([a@])", "SGD([{'params': [a@]}], momentum=0.5)")
      for end in ("", "    return a@.grad + 1\n")],
    ("step of L-BFGS that is made inside",
     "a@ = pt.tensor([3.0, -2.0], requires_grad=True)\n"
     "def f@(v):\n    o = pt.optim.LBFGS([a@], max_iter=3, line_search_fn='strong_wolfe')\n    def closure():\n"
     "        o.zero_grad()\n        loss = ((a@ - v.sum()) ** 4).sum()\n        loss.backward()\n        return loss\n"
     "    return o.step(closure)\n", "f@(x)", ["a@.data = pt.ones(2)", "a@.grad = None"], "(a@, a@.grad)"),
    *[(f"a copy of a result: {read}", "w@ = pt.ones(3, requires_grad=True)\nimport copy\n"
       "def f@(v):\n    h = v.sum() * w@\n    c = " + read + "\n    loss = (c * w@).sum()\n    w@.grad = None\n"
       "    loss.backward()\n    return c\n", "f@(x)", ["w@ = pt.full((3,), 2.0, requires_grad=True)"], "w@.grad")
      for read in ("copy.copy(h)", "h.__copy__()", "nn.Parameter(h)", "copy.copy(w@)", "copy.deepcopy(w@)",
                   "copy.copy([h])[0]", "copy.copy(h.detach())")],
]
