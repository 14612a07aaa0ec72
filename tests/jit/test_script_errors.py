"""What ``jit.script`` refuses: the error shows file, line and column, and says what there is instead."""
# ruff: noqa: UP006, UP035 - these forms are what is tested
import itertools
import linecache
import textwrap
from typing import List

import pytest

import ptcore
from ptcore import jit, nn

# What is refused: the source, the text that the caret stands under, a part of the message.
REFUSED = [
    ("try:\n    x = 1\nexcept ValueError:\n    x = 2\nreturn x", "try:",
     "try is not supported.*instead: exceptions cannot"),
    ("import math\nreturn 1", "import math", "import is not supported"),
    ("global z\nreturn 1", "global z", "global is not supported"),
    ("def g():\n    return 1\nreturn g()", "def g", "functions inside functions"),
    ("g = lambda q: q\nreturn 1", "lambda q: q", "lambda is not supported.*by def"),
    ("y = {1, 2}\nreturn 1", "{1, 2}", "sets is not supported"),
    ("yield 1", "yield 1", "yield is not supported.*list"),
    ("class C:\n    pass\nreturn 1", "class C", "classes inside functions"),
    ("match n:\n    case 1:\n        return 1\nreturn 2", "match n", "match is not supported.*if"),
    ("while n > 0:\n    n -= 1\nelse:\n    n = 3\nreturn n", "while n", "else of a loop"),
    ("for i in range(3):\n    n -= 1\nelse:\n    n = 3\nreturn n", "for i", "else of a loop"),
    ("if (m := n) > 2:\n    return 1\nreturn 2", "m := n", "assignment in an expression"),
    ("a, *b = [1, 2, 3]\nreturn b", "a, *b", "starred target"),
    ("return {**{'a': 1}}", "{**{'a': 1}}", r"\*\* in a dict"),
    ("return [i for i in range(2) for j in range(2)]", "[i for", "one `for`"),
    ("return n + 'a'", "n + 'a'", r"\+ of int and str"),
    ("return n.foo()", "n.foo()", "type int has no method 'foo'"),
    ("return [1].foo()", "[1].foo()", "list has no method 'foo' in script; it has append"),
    ("return 'a'.encode()", "'a'.encode()", "str has no method 'encode'"),
    ("return x.foo", "x.foo", "Tensor has no attribute 'foo'"),
    ("return undefined", "undefined", "name 'undefined' is not defined"),
    ("if n > 1:\n    y = 1\nreturn y", "y", "set in one branch of the `if` in line 2 only"),
    ("for i in range(n):\n    y = i\nreturn y", "y", "set in the loop in line 2 only"),
    ("if n > 1:\n    y = 1\nelse:\n    y = 'a'\nreturn y", "y", "its type is int in one branch and str in the other"),
    ("del n\nreturn n", "n", "deleted in line 2"),
    ("y = 1\nif n > 1:\n    y = 'a'\nreturn y", "y", "'y' has type int and cannot get a value of type str"),
    ("y = 1\nif n > 1:\n    y = None\nreturn y", "y", "declare it as Optional"),
    ("if n > 1:\n    return 1\nreturn 'a'", None, "returns values of several types: int, str"),
    ("return maybe + 1", "maybe + 1", r"\+ of Optional\[int\] and int: .* `is not None` first"),
    ("return ptcore.relu(tensor)", "ptcore.relu(tensor)", r"Optional\[Tensor\], which may be None"),
    ("return tensor.sum()", "tensor.sum", "may be None: test it by `is not None`"),
    ("return ptcore.relu(x, 1, 2, 3)", "ptcore.relu(x, 1, 2, 3)", "relu: too many positional arguments"),
    ("return ptcore.relu(y=x)", "ptcore.relu(y=x)", "relu: "),
    ("return ptcore.sum(x, dim='a')", "ptcore.sum(x, dim='a')", "'dim' cannot be of type str"),
    ("return open('a')", "open('a')", "'open' cannot be called in script"),
    ("return ptcore.load('a')", "ptcore.load('a')", "'load' cannot be called in script"),
    ("ptcore.save(x, 'a')\nreturn 1", "ptcore.save(x, 'a')", "'save' cannot be called in script"),
    ("return helper('a')", "helper('a')", "argument 'x' of helper must be of type int, not str"),
    ("return helper()", "helper()", r"helper misses the argument 'x': helper\(x: int\)"),
    ("return helper(1, 2)", "helper(1, 2)", "helper takes 1 arguments, not 2"),
    ("return helper(1, z=3)", "helper(1, z=3)", "helper has no argument 'z'"),
    ("return bad_helper(1)", "yield 2", "yield is not supported"),
    ("return sorted([2, 1], key=n)", "sorted([2, 1], key=n)", "sorted has no argument 'key' in script; it has reverse"),
    ("return number", "number", "a global variable of type int is not a value of script"),
    ("return n and 2", "n", "and, or as a value take bools"),
    ("return (1, 'a')[n]", "(1, 'a')[n]", "index must be known at script time"),
    ("a = [1]\nreturn a[1, 2]", "a[1, 2]", "takes one index"),
    ("return {'a': 1}[3]", "{'a': 1}[3]", "the key must be of type str, not int"),
    ("a = [1]\na.append('a')\nreturn a", "a.append('a')", "append.*is not supported; there is append"),
    ("a: List[int] = ['a']\nreturn a", "['a']", "item of the list must be of type int, not str"),
    ("a: Foo = 1\nreturn a", "Foo", "annotation: name 'Foo' is not defined"),
    ("a: list = [1]\nreturn a", "[1]", "must be of type Tensor"),
    ("a: int\nreturn 1", "a: int", "annotation without a value"),
    ("with n:\n    return 1\nreturn 2", "with n", "with of a value of type int"),
    ("with open('a') as f:\n    return 1\nreturn 2", "open('a')", "'open' cannot be called"),
    ("raise 3", "raise 3", "class of exceptions"),
    ("raise", "raise", "raise alone"),
    ("async def g():\n    pass\nreturn 1", "async def", "async functions"),
    ("return [*[1]]", "[*[1]]", r"\* in a list"),
    ("return f'{n:{n}}'", "f'{n:{n}}'", "format that is computed"),
    ("return sorted([x])", "sorted([x])", "its items have no order"),
    ("for i in n:\n    pass\nreturn 1", "n", "cannot be looped over. What can: range, lists"),
    ("return recursive(n)", "recursive(x)", "recursive calls itself"),
    ("x.numpy()\nreturn 1", "x.numpy()", "Tensor.numpy is not supported"),
    ("return x.tolist()", "x.tolist()", "Tensor.tolist is not supported"),
    ("return len(n)", "len(n)", "len of a value of type int"),
    ("return int(maybe)", "int(maybe)", "is not None"),
    ("n.x = 1\nreturn n", "n.x", "attributes of a value of type int cannot be set"),
    ("return b'a'", "b'a'", "bytes are not supported"),
    ("return x if maybe else n", "maybe", "is no condition; write `is not None`"),
    ("return 1 if n else 'a'", "1 if n else 'a'", "one branch gives int, the other str"),
    ("return NotScripted(1).f", "NotScripted(1)", "has base classes"),
    ("return nn.Linear(1, 1)", "nn.Linear(1, 1)", "modules are not made in script: Linear belongs into __init__"),
    ("t = (1, 2)\nt[0] = 3\nreturn t", "t[0]", "items of a value of type Tuple"),
    ("return print", "print", "'print' of Python is not a value of script; it can be called"),
    ("return ptcore.jit.wait(n)", "ptcore.jit.wait(n)", "wait takes what fork gives, not a value of type int"),
    ("return ptcore.jit.fork(n)", "ptcore.jit.fork(n)", "fork takes a function, a method or a module"),
    ("return hasattr(n)", "hasattr(n)", "hasattr takes a value and a name that is known"),
    ("return hasattr(n, f'{n}')", "hasattr(n", "hasattr takes a value and a name that is known"),
    ("return 'a' in [n]", "'a' in [n]", r"in: str is no item of List\[int\]"),
    ("return x in [x]", "x in [x]", "in: equality of tensors is a tensor"),
]


COUNT = itertools.count()


def helper(x: int):
    return x


def bad_helper(x: int):
    yield 2


def recursive(x: int):
    return recursive(x)


class Parent:
    pass


class NotScripted(Parent):
    def __init__(self, n: int):
        self.f = n


def made(body):
    text = "def f(x, n: int, maybe: Optional[int], tensor: Optional[Tensor]):\n" + textwrap.indent(body, "    ") + "\n"
    name = f"<refused {next(COUNT)}>"
    linecache.cache[name] = len(text), None, text.splitlines(True), name
    from typing import List, Optional
    space = {"Optional": Optional, "List": List, "Tensor": ptcore.Tensor, "ptcore": ptcore, "helper": helper,
             "number": 3, "bad_helper": bad_helper, "recursive": recursive, "NotScripted": NotScripted, "nn": nn}
    exec(compile(text, name, "exec"), space)
    return space["f"], text


@pytest.mark.parametrize("body, shown, message", REFUSED, ids=[r[0].replace("\n", " ")[:50] for r in REFUSED])
def test_refused(body, shown, message):
    f, _ = made(body)
    with pytest.raises(RuntimeError, match=message) as info:
        jit.script(f)
    error = str(info.value)
    assert isinstance(info.value, jit.ScriptError)
    *_, file, line, mark = error.split("\n")
    assert "line " in file and file.strip().startswith("File")
    assert mark.strip() and set(mark.strip()) == {"^"}
    if shown is not None:
        place = mark.index("^") - 4
        assert line[4:][place:].startswith(shown) or shown.startswith(line[4:][place:][:len(mark.strip())]), error
        number = int(file.split("line ")[1].split(",")[0])
        assert linecache.getline(file.split('"')[1], number).rstrip("\n") == line[4:]


def test_the_call_is_shown():
    f, _ = made("return bad_helper(1)")
    with pytest.raises(jit.NotSupportedError) as info:
        jit.script(f)
    assert "return bad_helper(1)" in info.value.__notes__[0] and 'line 2, in f' in info.value.__notes__[0]


def test_stale_source(tmp_path):
    """A file that was changed since it was imported is refused."""
    path = tmp_path / "stale_program.py"
    path.write_text("def f(n: int):\n    return n + 1\n")
    space = {}
    exec(compile(path.read_text(), str(path), "exec"), space)
    assert jit.script(space["f"])(1) == 2
    space = {}
    exec(compile(path.read_text(), str(path), "exec"), space)
    path.write_text("def f(n: int):\n    return n + 2\n")
    linecache.checkcache()
    with pytest.raises(jit.ScriptError, match="has changed since"):
        jit.script(space["f"])


def test_what_has_no_source():
    space = {}
    exec("def f(n):\n    return n", space)
    with pytest.raises(jit.ScriptError, match="no source"):
        jit.script(space["f"])
    with pytest.raises(jit.ScriptError, match="has no source"):
        jit.script(len)
    with pytest.raises(jit.ScriptError, match="lambda"):
        jit.script(lambda x: x)
    with pytest.raises(RuntimeError, match="no function, module or class"):
        jit.script(3)


@ptcore.no_grad()
def decorated(x):
    return x + 1


def calls_decorated(x):
    return decorated(x)


def test_decorators_are_not_left_out():
    for f in (decorated, calls_decorated):
        with pytest.raises(jit.NotSupportedError, match=r"decorated is wrapped by a decorator.*with no_grad"):
            jit.script(f)


def variadic(*args):
    return 1


def named_variadic(x, **more):
    return 1


def wrong_default(x, n=2):
    return n


def missing_return(n: int) -> int:
    if n > 1:
        return 2


def tuple_of_any(x: "tuple[int, ...]"):
    return 1


def plain_dict(x: dict):
    return 1


def plain_list(x: List):
    return 1


def module_argument(x: nn.Linear):
    return 1


@pytest.mark.parametrize("function, message", [
    (variadic, r"\*args and \*\*kwargs are not supported"), (named_variadic, r"\*args and \*\*kwargs"),
    (wrong_default, "default of 'n' must be of type Tensor .an argument without an annotation is a Tensor"),
    (missing_return, "must return int, but its end can be reached"), (tuple_of_any, "a Tuple has a fixed number"),
    (plain_dict, "needs the types of what it holds"), (plain_list, "needs the types of what it holds"),
    (module_argument, "is a module: modules are not arguments")])
def test_signatures(function, message):
    with pytest.raises(jit.ScriptError, match=message) as info:
        jit.script(function)
    assert "test_script_errors.py" in str(info.value)


class BadModule(nn.Module):
    def __init__(self, what):
        super().__init__()
        self.what = what
        self.layers = nn.ModuleList([nn.ReLU()])

    def forward(self, x, k: int):
        return self.layers[k](x)


class BadLoop(BadModule):
    def forward(self, x, k: int):
        for layer in self.layers:
            if k > 2:
                break
            x = layer(x)
        return x


class BadAttribute(BadModule):
    def forward(self, x, k: int):
        return self.what


class Wide(BadModule):
    def forward(self, x, k: int):
        return "äöü", "é" + k, x


class NewAttribute(BadModule):
    def forward(self, x, k: int):
        self.other = 3
        return x


class Missing(BadModule):
    def forward(self, x, k: int):
        return self.nothing(x)


class UnknownKey(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.ModuleDict({"a": nn.ReLU()})

    def forward(self, x, k: str):
        return k in self.table


class InChild(nn.Module):
    def __init__(self):
        super().__init__()
        self.child = BadModule(1)

    def forward(self, x):
        return self.child(x, 2)


@pytest.mark.parametrize("module, message", [
    (BadModule(1), "by what is known at script time"), (BadLoop(1), "break in a loop over modules"),
    (BadAttribute(object()), "attribute 'what': a value of type object has no type of script"),
    (NewAttribute(1), "no attribute 'other' that could be set"), (Missing(1), "has no attribute 'nothing'"),
    (InChild(), "by what is known at script time"),
    (UnknownKey(), "in of a ModuleDict takes text that is known at script time")])
def test_modules(module, message):
    with pytest.raises(jit.ScriptError, match=message):
        jit.script(module)


def test_columns_count_characters():
    with pytest.raises(jit.ScriptError) as info:
        jit.script(Wide(1))
    *_, file, line, mark = str(info.value).split("\n")
    assert line[mark.index("^"):].startswith('"é" + k') and f"column {line[4:].index('é')}," in file


def test_declined():
    assert jit.interface(Parent) is Parent
    with pytest.raises(RuntimeError, match="interface must be applied to a class"):
        jit.interface(3)
    with pytest.raises(NotImplementedError, match="CompilationUnit: declined"):
        jit.CompilationUnit("")
    with pytest.raises(RuntimeError, match="class of modules; script takes one of its objects"):
        jit.script(nn.Linear)
