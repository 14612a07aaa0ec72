#!/usr/bin/env python3
"""Writes ptcore/compat/torch/absent.tsv: the modules of PyTorch that ptcore has not, with their names.

    python tools/absent_names.py [--check]

It reads the sources of an installed PyTorch, whose modules it does not import. What the file has by hand stays: private
names that programs import, and the attributes of classes behind ``=``, which also marks a class whose name has no
capital. ``--check`` writes nothing, and fails if
something would change.
"""
import ast
import importlib.util
import re
import sys
from pathlib import Path

from ptcore.compat.torch import _absent_names, _paths

PACKAGE = Path(__file__).resolve().parent.parent / "ptcore"
FILE = PACKAGE / "compat" / "torch" / "absent.tsv"
# Private parts of PyTorch's tree that no program imports: other projects' files, kernels, documentation of compiled
# functions.
SKIPPED = ("_vendor", "_native", "_numpy", "_strobelight", "utils._strobelight", "_torch_docs", "_tensor_docs",
           "_storage_docs", "_size_docs", "_meta_registrations", "_appdirs", "_sources")
# Modules that have no file: PyTorch gives others under these paths.
ALSO = {f"distributed._tensor.{name}": f"distributed/tensor/{file}" for name, file in (
    ("device_mesh", "device_mesh.py"), ("experimental", "experimental/__init__.py"), ("_utils", "_utils.py"),
    ("_shards_wrapper", "_shards_wrapper.py"))}
# Tools that the tests of other projects import.
TOOLS = tuple("testing._internal.common_" + name for name in ("utils", "device_type", "dtype", "cuda"))
# Names that say nothing of a module.
COMMON = {"T", "P", "R", "_T", "log", "logger", "aten", "lib", "annotations", "TYPE_CHECKING"}


def root():
    """The folder of the installed PyTorch."""
    return Path(importlib.util.find_spec("torch").origin).parent


def tree():
    """Path below torch -> file, of every module that belongs in the list, ptcore's own among them."""
    found = {}
    for file in sorted(root().rglob("*.py")):
        parts = file.relative_to(root()).with_suffix("").parts
        parts = parts[:-1] if parts[-1] == "__init__" else parts
        path = ".".join(parts)
        if parts and all(p.isidentifier() for p in parts) and not any(
                path == s or path.startswith(s + ".") for s in SKIPPED):
            found[path] = file
    return {**found, **{path: root() / file for path, file in ALSO.items()}}


class _Names(ast.NodeVisitor):
    """What the top of one file defines: name -> kind, with the members of enumerations."""

    def __init__(self, path, file, files):
        self.path, self.files, self.is_package = path, files, file.name == "__init__.py"
        self.defined, self.imported, self.listed = {}, {}, []
        parts = path.split(".")
        # A single private file of a public part is taken as a whole, and so are the tools of PyTorch's tests.
        self.is_public = (not any(part.startswith("_") for part in parts) or path.startswith(TOOLS)
                          or (len(parts) == 2 and not parts[0].startswith("_")))
        try:
            body = ast.parse(file.read_text()).body
        except SyntaxError:             # written for a later Python
            body = []
        self.is_empty = not any(isinstance(n, (ast.FunctionDef, ast.ClassDef)) for n in body)
        self.body(body)

    def body(self, nodes):
        for node in nodes:
            self.visit(node)

    def visit_FunctionDef(self, node):
        if self.counts(node):
            self.defined[node.name] = ()

    visit_AsyncFunctionDef = visit_FunctionDef

    def counts(self, node):
        """Private modules have thousands of names; those count that other parts ask for, and classes not too deep."""
        return (self.is_public or node.name in asked(self.files).get(self.path, ())
                or (isinstance(node, ast.ClassDef) and (self.path.count(".") < 2 or not self.path.startswith("_"))))

    def visit_ClassDef(self, node):
        if not self.counts(node):
            return
        members = () if node.name.lstrip("_")[:1].isupper() else ("",)
        if any("Enum" in ast.unparse(base) for base in node.bases):
            members = tuple(t.id for n in node.body if isinstance(n, ast.Assign) for t in n.targets
                            if isinstance(t, ast.Name) and not t.id.startswith("_"))
        self.defined[node.name] = members

    def visit_Assign(self, node):
        for target in node.targets:
            for name in getattr(target, "elts", [target]):
                if not isinstance(name, ast.Name):
                    continue
                if name.id == "__all__":
                    self.listed += [c.value for c in getattr(node.value, "elts", ()) if isinstance(c, ast.Constant)]
                elif self.is_public:
                    self.defined[name.id] = ()

    def visit_AnnAssign(self, node):
        if isinstance(node.target, ast.Name) and self.is_public:
            self.defined[node.target.id] = ()

    def visit_If(self, node):
        if "TYPE_CHECKING" not in ast.unparse(node.test):
            self.body(node.body)
        self.body(node.orelse)

    def visit_Try(self, node):
        self.body([*node.body, *node.orelse, *[n for handler in node.handlers for n in handler.body]])

    def visit_ImportFrom(self, node):
        package = self.path if self.is_package else self.path.rpartition(".")[0]
        if node.level:
            parts = package.split(".")
            parts = parts[:len(parts) - node.level + 1]
            source = ".".join([*parts, *([node.module] if node.module else [])])
        elif (node.module or "").startswith("torch."):
            source = node.module[len("torch."):]
        else:
            return
        for alias in node.names:
            if alias.name == "*":
                self.imported.update(public(source, self.files))
            elif f"{source}.{alias.name}" not in self.files:
                self.imported[alias.asname or alias.name] = ()

    def generic_visit(self, node):
        pass


_asked = {}


def asked(files):
    """Path -> the names that other parts of PyTorch import from that module."""
    if not _asked:
        _asked[""] = set()
        for path, file in files.items():
            for module, names in re.findall(r"^ *from torch\.([\w.]+) import (\([^)]*\)|.*)", file.read_text(), re.M):
                if module.split(".")[:2] != path.split(".")[:2] and module in files:
                    _asked.setdefault(module, set()).update(re.findall(r"(?<!as )\b\w+", names))
    return _asked


_read = {}


def public(path, files):
    """The names that belong to a module: name -> members."""
    if path not in files:
        return {}
    if path not in _read:
        _read[path] = {}                # against circles of imports
        found = _Names(path, files[path], files)
        names = dict(found.defined)
        # A file that only hands on what others define is asked for that.
        if found.is_package or found.is_empty:
            names = {**found.imported, **names}
        names.update({name: found.imported.get(name, ()) for name in found.listed if name not in names})
        _read[path] = {name: members for name, members in names.items()
                       if not name.startswith("_") and name not in COMMON and f"{path}.{name}" not in files}
    return _read[path]


def is_own(path):
    """Whether ptcore has a module of that path: a public one, or a private one that must stay in its package."""
    place = PACKAGE.joinpath(*path.split("."))
    found = place.is_dir() or any(place.parent.glob(f"{place.name}.py*"))
    return found and ("." in path or not path.startswith("_"))


def absent(files):
    """The paths that ptcore answers in no other way."""
    found = []
    for path in files:
        package = path.rpartition(".")[0]
        hidden = package.rpartition(".")[2].startswith("_") and is_own(package) and package not in _paths.TABLE
        if path not in _paths.TABLE and not is_own(path) and not hidden:
            found.append(path)
    return found


def text():
    """The contents of the file."""
    files = tree()
    table = {}
    for path in absent(files):
        names = {name: ",".join(sorted(members)) for name, members in public(path, files).items()}
        for word in _absent_names.ABSENT.get(path, "").split():
            name, _, attributes = word.partition("=")
            names[name] = ",".join(sorted({*names.get(name, "").split(","), *attributes.split(",")} - {""}))
        lower = {name for name, members in public(path, files).items() if members == ("",)}
        table[path] = " ".join(f"{name}={more}" if more or name in lower else name
                               for name, more in sorted(names.items()))
    lines, written = [], set()
    for path in sorted(table, key=lambda p: p.split(".")):
        parts = path.split(".")
        for depth in range(1, len(parts)):
            above = ".".join(parts[:depth])
            if above not in written:
                written.add(above)
                lines.append(" " * (depth - 1) + parts[depth - 1] + "/")
        written.add(path)
        lines.append((" " * (len(parts) - 1) + parts[-1] + " " + table[path]).rstrip())
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    new = text()
    if "--check" in sys.argv[1:]:
        sys.exit(0 if FILE.read_text() == new else f"{FILE.name} is not what PyTorch's sources give")
    FILE.write_text(new)
