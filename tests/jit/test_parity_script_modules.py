"""``jit.script`` of modules and classes beside ``torch.jit.script``."""
# ruff: noqa: UP006, UP035 - these forms are what is tested
import enum
import itertools
import re
import sys
import types
from typing import Any, Dict, Final, List, NamedTuple, Optional, Tuple, Union

import pytest

import ptcore

torch = pytest.importorskip("torch")
NUMBER = itertools.count()

# Modules ``M``, which both accept: results on x and n are equal.
ACCEPTED = """
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(2))
        self.register_buffer("shift", torch.zeros(2))
        self.k = 3

    def forward(self, x, n: int):
        self.k += n
        self.shift.add_(1)
        return x * self.weight + self.shift, self.k
---
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.ReLU(), nn.Identity(), nn.Tanh()])
        self.table = nn.ModuleDict({"a": nn.ReLU(), "b": nn.Sigmoid()})

    def forward(self, x, n: int):
        for layer in self.layers:
            x = layer(x)
        for k, layer in enumerate(self.layers):
            if k < n:
                x = layer(x) + k
        names: List[str] = []
        for name, layer in self.table.items():
            x = layer(x)
            names.append(name)
        return x, names, self.layers[0](x), self.table["b"](x), len(self.layers)
---
class M(nn.Module):
    scale: Final[float]
    names: List[str]
    memory: Dict[str, int]

    def __init__(self):
        super().__init__()
        self.scale = 2.5
        self.names = []
        self.memory = {}

    def forward(self, x, n: int):
        self.names.append(str(n))
        self.memory[str(n)] = n
        return x * self.scale, self.names, self.memory
---
class Inner(nn.Module):
    def forward(self, x, k: int = 2):
        return x * k

    @torch.jit.export
    def other(self, x):
        return self.forward(x, 5) + 1

class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = Inner()
        self.absent = None

    def helper(self, x, n: int) -> Tensor:
        return self.inner(x, n) - self.inner(x, k=n)

    def forward(self, x, n: int):
        if self.absent is not None:
            x = self.absent(x)
        return self.inner(x), self.inner.other(x), self.helper(x, n), self.training
---
class M(nn.Module):
    maybe: Optional[int]

    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Flatten(0), nn.ReLU())
        self.maybe = None

    def forward(self, x, n: int):
        maybe = self.maybe
        if maybe is None:
            self.maybe = n
        else:
            n = n + maybe
        return self.body(x), n
---
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.f = torch.tanh

    @staticmethod
    def double(n: int):
        return n * 2

    @torch.jit.ignore
    def python(self, n: int) -> int:
        return len({n, n + 1, n + 2})

    @torch.jit.unused
    def unused(self, n: int) -> int:
        return [*range(n)][0]

    @property
    def three(self) -> int:
        return 3

    def forward(self, x, n: int):
        if n > 100:
            n = self.unused(n)
        return self.f(x), self.double(n), self.python(n), self.three
---
class Base(nn.Module):
    def step(self, x):
        return x + 1

    def forward(self, x, n: int):
        return self.step(x) * n

class M(Base):
    def step(self, x):
        return x - 1
---
class M(nn.Module):
    __constants__ = ["sizes", "flag", "word"]

    def __init__(self):
        super().__init__()
        self.sizes = (1, 2, 3)
        self.flag = False
        self.word = "a"

    def forward(self, x, n: int):
        total = 0
        for s in self.sizes:
            total += s
        if self.flag:
            total = total * 2
        return x + total, self.word + "b", self.sizes[1]
---
class M(nn.Module):
    def forward(self, x, n: int):
        p = Pair(x, n)
        q = Pair(first=p.first + 1, second=2)
        a, b = q
        return p, q.first, b, p.second + q[1]
---
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.color = Color.RED

    def forward(self, x, n: int):
        if self.color == Color.RED and n == Color.BLUE.value:
            x = x * 2
        return x, Color.BLUE.name
---
@torch.jit.script
class Counter:
    def __init__(self, start: int):
        self.n = start
        self.items = torch.jit.annotate(List[int], [])

    def add(self, k: int):
        self.n += k
        self.items.append(k)

    def __len__(self) -> int:
        return len(self.items)

class M(nn.Module):
    def forward(self, x, n: int):
        c = Counter(n)
        c.add(2)
        for k in range(3):
            c.add(k)
        return x + c.n, len(c), c.items
---
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(2, 3)
        for p in self.lstm.parameters():
            nn.init.constant_(p, 0.1)

    def forward(self, x, n: int):
        out, (h, c) = self.lstm(x.unsqueeze(0))
        return out.shape, h.shape, c.shape, out.round(decimals=4)
---
class M(nn.Module):
    def forward(self, x, n: int):
        future = torch.jit.fork(self.part, x, n)
        return torch.jit.wait(future), x

    def part(self, x, n: int):
        return x * n
---
class M(nn.Module):
    def forward(self, x, n: int):
        with torch.no_grad():
            y = x * n
            if n > 1:
                return y, n
        return x, n
"""
# Modules that both refuse.
REFUSED = """
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.ReLU()])

    def forward(self, x, n: int):
        return self.layers[n](x)
---
class M(nn.Module):
    def forward(self, x, n: int):
        self.new = n
        return x
---
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.thing = object()

    def forward(self, x, n: int):
        return self.thing
---
class M(nn.Module):
    def forward(self, x, n: int):
        return self.missing(x)
---
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.k = 3

    def forward(self, x, n: int):
        self.k = "a"
        return x
---
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.maybe: Optional[int] = None

    def forward(self, x, n: int):
        return self.maybe + n
---
class M(nn.Module):
    def forward(self, x, *args):
        return x
---
class M(nn.Module):
    def forward(self, x, n: int):
        return nn.Linear(2, 2)(x)
---
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.ReLU(), nn.Tanh()])

    def forward(self, x, n: int):
        for layer in self.layers:
            if n > 2:
                break
            x = layer(x)
        return x
---
class M(nn.Module):
    def forward(self, x, n: int):
        return self.forward(x, n - 1) if n > 0 else x
"""


def module_of(package, text, folder):
    """The scripted module of a text, which stands in a file."""
    name = f"parity_module_{next(NUMBER)}"
    path = folder / f"{name}.py"
    path.write_text(text)
    module = sys.modules[name] = types.ModuleType(name)
    module.__file__ = str(path)

    class Pair(NamedTuple):
        first: package.Tensor
        second: int

    class Color(enum.Enum):
        RED = 1
        BLUE = 2
    Pair.__module__ = Color.__module__ = __name__
    space = module.__dict__
    space |= {"torch": package, "nn": package.nn, "Tensor": package.Tensor, "List": List, "Dict": Dict, "Any": Any,
             "Optional": Optional, "Tuple": Tuple, "Union": Union, "Final": Final, "Pair": Pair, "Color": Color}
    exec(compile(text, path, "exec"), space)
    return package.jit.script(space["M"]())


def plain(x):
    if hasattr(x, "tolist") and hasattr(x, "dtype"):
        return str(x.dtype).split(".")[-1], (x * 1e5).round().tolist()
    if isinstance(x, (list, tuple)):
        return "list" if isinstance(x, list) else "tuple", [plain(i) for i in x]
    if isinstance(x, dict):
        return [(k, plain(v)) for k, v in x.items()]
    return type(x).__name__, x


def split(text):
    return [part.strip("\n") + "\n" for part in text.split("---\n")]


@pytest.mark.parametrize("text", split(ACCEPTED), ids=[str(k) for k in range(len(split(ACCEPTED)))])
def test_accepted_by_both(text, tmp_path):
    ours, theirs = module_of(ptcore, text, tmp_path), module_of(torch, text, tmp_path)
    assert [*ours.state_dict()] == [*theirs.state_dict()]
    assert [n for n, _ in ours.named_modules()] == [n for n, _ in theirs.named_modules()]
    assert ours.original_name == theirs.original_name and repr(ours) == repr(theirs)
    for n in (2, 1):
        got = ours(ptcore.tensor([1.0, -2.0]), n)
        want = theirs(torch.tensor([1.0, -2.0]), n)
        assert plain(got) == plain(want)
    ours.eval()
    theirs.eval()
    assert plain(ours(ptcore.tensor([0.5, 2.0]), 3)) == plain(theirs(torch.tensor([0.5, 2.0]), 3))


# What is said of each.
REFUSED_SAYS = [
    "modules are taken from ModuleList, Sequential and ModuleDict by what",
    "the module has no attribute 'new' that could be set",
    "the attribute 'thing': a value of type object has no type of script", "module M has no attribute 'missing'",
    "the attribute 'k' must be of type int, not str",
    "+ of Optional[int] and int: a value that may be None has no operators",
    "*args and **kwargs are not supported in script", "modules are not made in script: Linear belongs into __init__",
    "break in a loop over modules or a tuple is not supported: such a loop",
    "forward calls itself: script has no recursion"]


@pytest.mark.parametrize(("text", "says"), [*zip(split(REFUSED), REFUSED_SAYS, strict=True)],
                         ids=range(len(REFUSED_SAYS)))
def test_refused_by_both(text, says, tmp_path):
    with pytest.raises((RuntimeError, torch.jit.frontend.FrontendError, UserWarning)):      # it warns before it refuses
        module_of(torch, text, tmp_path)
    with pytest.raises(ptcore.jit.ScriptError, match="^" + re.escape(says)):
        module_of(ptcore, text, tmp_path)
