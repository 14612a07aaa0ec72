"""What the files of the package import, function bodies included: for test_layers.py and test_rooms.py."""
import ast
import functools
import re
from pathlib import Path
from typing import NamedTuple

PACKAGE = Path(__file__).resolve().parent.parent / "ptcore"
CYTHON = re.compile(r"^[ \t]*(?:from[ \t]+(ptcore[\w.]*)[ \t]+c?import[ \t]+(\([^)]*\)|[^#\n]*)"
                    r"|c?import[ \t]+(ptcore[\w.]*)(?:[ \t]+as[ \t]+(\w+))?)", re.M)
BY_NAME = re.compile(r"""\b(?:import_module|__import__)\(f?["'](ptcore\.[\w.]*)""")


class Import(NamedTuple):
    module: str             # the module of the package; "ptcore" is the package itself
    name: str               # what is taken from it, or None
    alias: str              # what the file calls it


def module_of(path):
    return ".".join(("ptcore", *path.relative_to(PACKAGE).with_suffix("").parts)).removesuffix(".__init__")


@functools.cache
def sources():
    """The package's files but for those that make it."""
    return [path for path in sorted(PACKAGE.rglob("*")) if path.suffix in (".py", ".pyx", ".pxd")
            and path.relative_to(PACKAGE).parts[0] != "_build"]


@functools.cache
def tree_of(path):
    return ast.parse(path.read_text())


@functools.cache
def own_names(folder):
    """What the face of a package binds."""
    face, found = folder / "__init__.py", set()
    for node in ast.walk(tree_of(face)) if face.exists() else ():
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.Name):
            found.add(node.id)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            found |= {a.asname or a.name for a in node.names}
    return found


@functools.cache
def is_module(name):
    """Whether a dotted name is one of a file, or of a module that the build makes: no face binds its name."""
    path = PACKAGE.parent.joinpath(*name.split("."))
    if path.is_dir() or any(path.with_suffix(suffix).exists() for suffix in (".py", ".pyx", ".pxd")):
        return True
    return path.parent != PACKAGE and path.parent.is_dir() and path.name not in own_names(path.parent)


def _raw(path):
    text = path.read_text()
    for name in BY_NAME.findall(text) if path.name != "_lazy.py" else ():
        yield f"{name}*" if name.endswith(".") else name, None, None    # some module of a package
    if path.suffix == ".py":
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.Import):
                yield from ((a.name, None, a.asname or a.name.partition(".")[0]) for a in node.names)
            elif isinstance(node, ast.ImportFrom):
                assert node.level == 0, f"{path}: a relative import"
                yield from ((node.module.removeprefix("cython.cimports."), a.name, a.asname or a.name)
                            for a in node.names)
        return
    for where, names, plain, alias in CYTHON.findall(text):
        if plain:
            yield plain, None, alias or "ptcore"
        for item in re.sub(r"#.*", "", names).strip("()").split(","):
            if item.strip():
                name, _, alias = item.strip().partition(" as ")
                yield where, name.strip(), alias.strip() or name.strip()


@functools.cache
def imports(path):
    """Every import of the package in a source; of ``from ptcore.a import b`` the module b, if it is one."""
    found = []
    for where, name, alias in _raw(path):
        if where.partition(".")[0] == "ptcore":
            inner = f"{where}.{name}"
            found.append(Import(inner, None, alias) if name and is_module(inner) else Import(where, name, alias))
    return found


def private_attributes(path):
    """(module, name) of the private attributes of the package's modules that a source reads; of a private module it
    and None."""
    aliases = {i.alias: ("ptcore" if i.alias == "ptcore" else i.module) for i in imports(path)
               if i.name is None and i.alias}
    if path.suffix == ".py":
        used = [(ast.unparse(node.value), node.attr) for node in ast.walk(tree_of(path))
                if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name | ast.Attribute)]
    else:
        used = re.findall(r"(?<![\w.])([A-Za-z_][\w.]*)\.(_[A-Za-z]\w*)", path.read_text())
    for base, name in used:
        head, _, rest = base.partition(".")
        if name.startswith("_") and not name.startswith("__") and head in aliases:
            module = ".".join(filter(None, (aliases[head], rest)))
            if is_module(f"{module}.{name}"):
                yield f"{module}.{name}", None
            elif module == "ptcore" or is_module(module):
                yield module, name


@functools.cache
def read_through_face(path):
    """The modules of the root that a source reads as ``ptcore.name``, which imports them."""
    faces = {i.alias for i in imports(path) if i.alias and (i.module == "ptcore" or i.alias == "ptcore")
             and i.name is None}
    if path.suffix != ".py":
        return []
    names = {node.attr for node in ast.walk(tree_of(path)) if isinstance(node, ast.Attribute)
             and isinstance(node.value, ast.Name) and node.value.id in faces}
    return [f"ptcore.{name}" for name in sorted(names) if not name.startswith("_") and (
        PACKAGE.joinpath(name).is_dir() or PACKAGE.joinpath(f"{name}.py").exists())]


def circles(graph):
    """The strongly connected parts of a graph that have several nodes, by Tarjan's algorithm."""
    index, low, stack, on, found = {}, {}, [], set(), []
    for root in sorted(graph):
        if root in index:
            continue
        index[root] = low[root] = len(index)
        stack.append(root)
        on.add(root)
        work = [(root, iter(sorted(graph.get(root, ()))))]
        while work:
            node, rest = work[-1]
            for other in rest:
                if other not in index:
                    index[other] = low[other] = len(index)
                    stack.append(other)
                    on.add(other)
                    work.append((other, iter(sorted(graph.get(other, ())))))
                    break
                if other in on:
                    low[node] = min(low[node], index[other])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    part = set()
                    while node not in part:
                        part.add(stack.pop())
                    on -= part
                    if len(part) > 1:
                        found.append(sorted(part))
    return found
