"""Type stubs from rows: functions and Tensor methods, put into stub_base.pyi; stubs of the Python
modules that rows add functions to."""
import ast
from pathlib import Path

from tables import PACKAGE, signature

TYPE = {"T": "Tensor | _Number", "O": "Tensor | None", "I": "Tensor", "J": "Tensor | None",
        "L": "Sequence[Tensor]", "i": "_int", "f": "_float", "b": "_bool", "s": "_Number",
        "j": "_int | None", "g": "_float | None", "d": "_int", "e": "_int | None", "n": "_int",
        "D": "_int | Sequence[_int] | None", "R": "_int | Sequence[_int]", "z": "_int | Sequence[_int]", "Z": "_int | Sequence[_int]",
        "t": "_dtype | None", "o": "object"}
HEAD = '''"""Generated from the op rows and the signatures of {source}."""
import builtins
from collections.abc import Callable, Sequence
from typing import TypeAlias

from ptcore import Tensor, dtype as _dtype

_int: TypeAlias = builtins.int
_float: TypeAlias = builtins.float
_bool: TypeAlias = builtins.bool
_Number: TypeAlias = builtins.int | builtins.float | builtins.bool | complex

'''


def annotated(a, op):
    if a.choices:
        return "str" if a.required or a.default is not None else "str | None"
    if a.letter == "T" and op.row.kind != "elementwise":
        return "Tensor"
    return TYPE[a.letter] + (" | None" if a.letter == "R" and a.default is None else "")


def arguments(op, *, out, method=False, spread=None):
    """The parameters as text, as _signature.parameters has them, with types."""
    positional, keyword = [], []
    pairs = signature.second_names(op.row)
    optional = False
    for i, a in enumerate(op.row.args):
        if method and i == 0:
            positional.append("self")
            continue
        if a.name == spread:
            positional.append(f"*{a.name}s: {TYPE[a.letter]}")
            keyword.append(f"{a.name}: {TYPE[a.letter]} | None = None")
            continue
        if a.letter == "L" and a.name == op.row.varargs:
            positional.append(f"*{a.name}: Tensor | object")
            continue
        text = f"{a.name}: {annotated(a, op)}"
        if not a.required:
            text += f" = {a.default!r}"
        elif optional or any(a.name == mine for mine, _ in pairs):
            text += ("" if text.endswith("None") else " | None") + " = None"
        optional = optional or "=" in text
        (keyword if a.keyword_only else positional).append(text)
    if op.row.inplace_argument and out:
        positional.append("inplace: _bool = False")
    if not spread:
        keyword += [f"{theirs}: {annotated(a, op)}" + ("" if annotated(a, op).endswith("None") else " | None")
                    + " = None" for mine, theirs in pairs for a in op.row.args if a.name == mine]
    if out:
        keyword.append("out: " + ("tuple[Tensor, ...] | None" if op.nout > 1 else "Tensor | None") + " = None")
    star = ["*"] if keyword and not any(text.startswith("*") for text in positional) else []
    return ", ".join(positional + star + keyword)


def result(op):
    if op.row.fields and len(op.row.fields) > 1:
        return "tuple[" + ", ".join(["Tensor"] * len(op.row.fields)) + "]"
    return {"bool": "_bool"}.get(op.row.returns, op.row.returns) or "Tensor"


def functions(ops, where):
    """The functions that rows put into one public namespace."""
    lines = []
    for op in ops:
        if op.row.internal:
            continue
        for path in op.row.public:
            place, _, name = path.rpartition(".")
            if place != where:
                continue
            if op.row.absent:
                alone = ", ".join(f"{a.name}: Tensor" for a in op.row.args if a.name not in op.row.absent[0])
                lines += ["@overload", f"def {name}({alone}) -> tuple[Tensor, ...]: ...", "@overload"]
            names = [name, *(op.row.alias if not where else ())]
            lines += [f"def {n}({arguments(op, out=op.row.out_argument)}) -> {result(op)}: ..." for n in names]
            if op.row.inplace:
                lines.append(f"def {name}_({arguments(op, out=False)}) -> Tensor: ...")
    return lines


def methods(ops):
    lines = []
    for op in ops:
        row = op.row
        if row.internal:
            continue
        if row.method:
            text = (arguments(op, out=False, method=True, spread=row.varargs) if row.varargs
                    else arguments(op, out=op.row.out_argument, method=True))
            lines += [f"    def {n}({text}) -> {result(op)}: ..." for n in (row.method_name, *row.alias)]
        if row.inplace and row.method:
            text = arguments(op, out=False, method=True)
            lines += [f"    def {n}_({text}) -> Tensor: ..." for n in (row.method_name, *row.alias)]
    return lines


class _Types(ast.NodeTransformer):
    """Annotations in the names of stub_base.pyi, where int and its like are dtypes."""

    def visit_Name(self, node):
        return ast.Name(f"_{node.id}") if node.id in ("int", "float", "bool") else node


def body_of(path):
    return ast.parse(Path(path).read_text()).body


def literal(body, name, default):
    """What a module assigns to a name."""
    found = [n.value for n in body if isinstance(n, ast.Assign) and getattr(n.targets[0], "id", None) == name]
    return ast.literal_eval(found[0]) if found else default


def written(node):
    """The stub of a function from its source; what says nothing of its result returns a tensor."""
    returned = ast.unparse(_Types().visit(node.returns or ast.Name("Tensor")))
    return f"def {node.name}({ast.unparse(_Types().visit(node.args))}) -> {returned}: ..."


def lazy(name):
    """A literal of _lazy.py."""
    return literal(body_of(PACKAGE / "_lazy.py"), name, {})


def later(namespace, known=()):
    """Stubs of what the lazy table says is in other files, unless it is known."""
    lines = []
    for file, names in lazy("TABLE").get(namespace, {}).items():
        names = [name for name in names if name not in known]
        if not names:
            continue
        path = PACKAGE / file.replace(".", "/")
        found = {n.name: n for n in body_of(path / "__init__.py" if path.is_dir() else path.with_suffix(".py"))
                 if isinstance(n, (ast.FunctionDef, ast.ClassDef))}
        for name in names:
            if name not in found:               # functions that a loop makes
                lines.append(f"def {name}(*args: Any, **kwargs: Any) -> Any: ...")
            elif isinstance(found[name], ast.FunctionDef):
                lines.append(written(found[name]))
            else:
                lines.append(f"from .{file} import {name} as {name}")
    return lines


def methods_as_functions(ops, text):
    """The methods that the lazy table says are functions as well, from the stubs of a class."""
    by_name = {n: op for op in ops if op.row.method for n in (op.row.method_name, *op.row.alias)}
    given = {n.name: n for n in ast.walk(ast.parse(text)) if isinstance(n, ast.FunctionDef)}
    for name in lazy("METHODS"):
        if name in given:
            node = given[name]
            node.args.args[0].annotation = ast.Name("Tensor")
            yield f"def {name}({ast.unparse(node.args)}) -> {ast.unparse(node.returns)}: ..."
        else:
            op = by_name[name.rstrip("_")]
            given_to = arguments(op, out=False).replace("Tensor | _Number", "Tensor", 1)
            yield f"def {name}({given_to}) -> {result(op)}: ..."


def package(ops, base):
    """ptcore/__init__.pyi."""
    text = Path(base).read_text()
    known = {n.id for n in ast.walk(ast.parse(text)) if isinstance(n, ast.Name)} | {
        n.name for n in ast.parse(text).body if isinstance(n, (ast.FunctionDef, ast.ClassDef))}
    return text.replace("    # {methods}\n", "\n".join(methods(ops)) + "\n").replace(
        "# {functions}\n", "\n".join([*functions(ops, ""), *later("ptcore", known), *methods_as_functions(ops, text)])
        + "\n")


def python_module(source, ops, where):
    """The stub of a Python module: its own functions' signatures and those of rows."""
    lines = []
    for node in body_of(source):
        if isinstance(node, ast.ImportFrom) and node.module == "ptcore._ops.functions":
            lines += [f"{n.asname}: Callable[..., Tensor]" for n in node.names if not (n.asname or "_").startswith("_")]
        elif isinstance(node, ast.ImportFrom) and node.module.startswith("ptcore._ops."):
            theirs = {n.name: n for n in body_of(PACKAGE.parent / f"{node.module.replace('.', '/')}.py")
                      if isinstance(n, ast.FunctionDef)}
            lines += [written(theirs[n.name]) for n in node.names]
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
            lines.append(written(node))
        elif isinstance(node, ast.Assign):
            for target in node.targets:
                lines += [f"{n.id}: Callable[..., Tensor]" for n in ast.walk(target)
                          if isinstance(n, ast.Name) and not n.id.startswith("_")]
    return HEAD.format(source=Path(source).name) + "\n".join(lines + later(f"ptcore.{where}") + functions(ops, where)) + "\n"
