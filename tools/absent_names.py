#!/usr/bin/env python3
"""Writes ptcore/compat/torch/absent.tsv: the modules of PyTorch that ptcore has not, with their public names.

    python tools/absent_names.py [--check]

It reads the sources of an installed PyTorch, whose modules it does not import. Every module has a line. Public names
have no underscore: the functions and classes of a module, other names of classes (CamelCase), what ``__all__`` lists,
and in a package also what it imports and its other values; no constants (UPPER_CASE). A module with an underscore in
its path has no public names. Beside these stand the names of any module that programs import:
``tests/compat/imports.tsv`` and ``api_usage.tsv`` have those of 45 code bases, `ASKED` those that no file of PyTorch
binds, and those of private modules that other packages ask for. ``--check`` writes nothing, and fails if something
would change.
"""
import ast
import importlib.util
import sys
from pathlib import Path

from ptcore.compat.torch import _absent_names, _paths
from ptcore.compat.torch._more import MORE

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "ptcore"
FILE = PACKAGE / "compat" / "torch" / "absent.tsv"
IMPORTS, USES = (ROOT / "tests" / "compat" / name for name in ("imports.tsv", "api_usage.tsv"))
# Private parts of PyTorch's tree that no program imports: other projects' files, kernels, documentation of compiled
# functions.
SKIPPED = ("_vendor", "_native", "_numpy", "_strobelight", "utils._strobelight", "_torch_docs", "_tensor_docs",
           "_storage_docs", "_size_docs", "_meta_registrations", "_appdirs", "_sources")
# Modules that have no file: PyTorch gives others under these paths.
ALSO = {f"distributed._tensor.{name}": f"distributed/tensor/{file}" for name, file in (
    ("device_mesh", "device_mesh.py"), ("experimental", "experimental/__init__.py"), ("_utils", "_utils.py"),
    ("_shards_wrapper", "_shards_wrapper.py"))}
# Module -> further names that programs import.
ASKED = {
    "_VF": "gru lstm rnn_relu rnn_tanh",
    "_dynamo.backends.registry": "lookup_backend",
    "_dynamo.exc": "TensorifyScalarRestartAnalysis Unsupported",
    "_dynamo.variables.base": "VariableTracker",
    "_inductor": "compile",
    "_inductor.codecache": "FxGraphCache",
    "_inductor.cpu_vec_isa": "pick_vec_isa",
    "_inductor.runtime.cache_dir_utils": "cache_dir",
    "_inductor.utils": "run_and_get_code",
    "_logging": "getArtifactLogger",
    **dict.fromkeys(("cuda.sparse", "sparse"), " ".join(f"{kind}Tensor" for kind in (
        "BFloat16", "Byte", "Char", "Double", "Float", "Half", "Int", "Long", "Short"))),
    "distributed": "ProcessGroupGloo ProcessGroupMPI ProcessGroupNCCL _all_gather_base _get_process_group_name "
                   "_reduce_scatter_base rendezvous",
    "distributed._functional_collectives": "all_to_all_single_autograd wait_tensor",
    "distributed._tensor.experimental": "implicit_replication",
    "distributed.algorithms._checkpoint.checkpoint_wrapper": "offload_wrapper",
    "distributed.checkpoint.state_dict_loader": "_load_state_dict",
    "distributed.distributed_c10d": "ProcessGroupGloo _pg_map _resolve_process_group",
    "distributed.fsdp.fully_sharded_data_parallel":
        "FullOptimStateDictConfig FullStateDictConfig MixedPrecision ShardedOptimStateDictConfig "
        "ShardedStateDictConfig ShardingStrategy StateDictType",
    "distributed.fsdp.wrap": "_or_policy",
    "distributed.launch": "get_args_parser run",
    **dict.fromkeys(("distributed.nn", "distributed.nn.functional"), "ReduceOp group"),
    "distributed.rpc": "BackendValue backend_registered construct_rpc_backend_options init_backend register_backend",
    "distributed.run": "LaunchConfig Std elastic_launch get_logger record",
    "distributed.tensor._utils": "compute_local_shape_and_global_offset",
    "distributed.tensor.experimental._attention": "set_rotate_method",
    "onnx._internal.exporter._core": "TorchTensor",
    "onnx.symbolic_helper": "_get_tensor_dim_size _maybe_get_const",
    "utils.deterministic": "fill_uninitialized_memory",
    "utils._sympy.numbers": "IntInfinity",
    "utils._sympy.value_ranges": "ValueRanges",
    "utils._triton": "has_triton has_triton_package"}


def torch_folder():
    """The folder of the installed PyTorch."""
    return Path(importlib.util.find_spec("torch").origin).parent


def tree():
    """Path below torch -> file, of every module that belongs in the list, ptcore's own among them."""
    root, found = torch_folder(), {}
    for file in sorted(root.rglob("*.py")):
        parts = file.relative_to(root).with_suffix("").parts
        parts = parts[:-1] if parts[-1] == "__init__" else parts
        path = ".".join(parts)
        if parts and all(p.isidentifier() for p in parts) and not any(
                path == s or path.startswith(s + ".") for s in SKIPPED):
            found[path] = file
    return {**found, **{path: root / file for path, file in ALSO.items()}}


def asked():
    """Path below torch -> the names of that module that programs import, or that behave in a way of their own."""
    found, special = {}, _absent_names
    for name in special.FALSE | special.ZERO | special.NONE | special.MARKERS | special.BASES:
        path, _, own = name.removeprefix("torch.").rpartition(".")
        found.setdefault(path, set()).add(own)
    for sources in MORE.values():       # names that a module of ptcore has from an absent one
        for source, words in sources.items():
            if source and source.startswith("torch."):
                own = {name for word in words.split() for name in word.split("=")}
                found.setdefault(source.removeprefix("torch."), set()).update(own)
    for line in USES.read_text().splitlines():
        path, _, own = line.partition("\t")[0].removeprefix("torch.").rpartition(".")
        found.setdefault(path, set()).add(own)
    for line in IMPORTS.read_text().splitlines():
        module, _, names = line.partition("\t")
        found.setdefault(module.removeprefix("torch."), set()).update(names.split())
    return found


class Names(ast.NodeVisitor):
    """What the top of a file binds: names of functions, of classes, of other values, of what is imported."""

    def __init__(self, path, file, files):
        self.path, self.files, self.is_package = path, files, file.name == "__init__.py"
        self.functions, self.classes, self.values, self.imported, self.listed = set(), set(), set(), set(), set()
        try:
            body = ast.parse(file.read_text()).body
        except SyntaxError:             # written for a later Python
            body = []
        self.visit_all(body)

    def visit_all(self, nodes):
        for node in nodes:
            self.visit(node)

    def visit_FunctionDef(self, node):
        self.functions.add(node.name)

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_ClassDef(self, node):
        self.classes.add(node.name)

    def visit_Assign(self, node):
        for target in node.targets:
            names = [t.id for t in getattr(target, "elts", [target]) if isinstance(t, ast.Name)]
            if names == ["__all__"]:
                self.listed.update(c.value for c in getattr(node.value, "elts", ()) if isinstance(c, ast.Constant))
            self.values.update(names)

    def visit_AnnAssign(self, node):
        if isinstance(node.target, ast.Name):
            self.values.add(node.target.id)

    def visit_If(self, node):
        if "TYPE_CHECKING" not in ast.unparse(node.test):
            self.visit_all(node.body)
        self.visit_all(node.orelse)

    def visit_Try(self, node):
        self.visit_all([*node.body, *node.orelse, *[n for handler in node.handlers for n in handler.body]])

    def visit_ImportFrom(self, node):
        source = node.module or ""
        if node.level:
            package = self.path.split(".") if self.is_package else self.path.split(".")[:-1]
            source = ".".join([*package[:len(package) - node.level + 1], *filter(None, [node.module])])
        elif source.startswith("torch."):
            source = source[len("torch."):]
        else:
            return
        for alias in node.names:
            if alias.name == "*":
                self.imported.update(public(source, self.files))
            elif f"{source}.{alias.name}" not in self.files:
                self.imported.add(alias.asname or alias.name)

    def generic_visit(self, node):
        pass


def aliases(found):
    """Names of other values that are written as those of classes are."""
    return {n for n in found.values if n.lstrip("_")[:1].isupper() and not n.isupper()}


_read = {}


def names(path, files):
    """`Names` of a module, read once."""
    if path not in _read:
        _read[path] = None              # against circles of imports
        _read[path] = Names(path, files[path], files)
    return _read[path]


def public(path, files):
    """The public names of a module, each as it stands in the file."""
    found = names(path, files) if path in files else None
    if found is None:
        return set()
    own = found.functions | found.classes
    if found.is_package or not own:             # a module without any only hands on names of others
        own |= found.imported
    own |= aliases(found) | {n for n in found.values if found.is_package and not n.isupper()}
    return {n for n in own | found.listed if not n.startswith("_") and f"{path}.{n}" not in files}


def line(path, files, programs):
    """The names of a module's line; behind a class whose name has no capital stands ``=``."""
    found = names(path, files)
    bound = found.functions | found.classes | found.imported | found.listed
    if path.rpartition(".")[2].strip("_") != "config":      # no function stands for a setting
        bound |= found.values
    own = programs.get(path, set()) & bound
    if not any(part.startswith("_") for part in path.split(".")):
        own |= public(path, files)
    own.update(ASKED.get(path, "").split())
    lower = {name for name in own & found.classes if not name.lstrip("_")[:1].isupper()}
    return " ".join(f"{name}=" if name in lower else name for name in sorted(own))


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
    files, programs = tree(), asked()
    lines, written = [], set()
    for path in sorted(absent(files), key=lambda p: p.split(".")):
        parts = path.split(".")
        for depth in range(1, len(parts)):
            above = ".".join(parts[:depth])
            if above not in written:
                written.add(above)
                lines.append(" " * (depth - 1) + parts[depth - 1] + "/")
        written.add(path)
        lines.append((" " * (len(parts) - 1) + parts[-1] + " " + line(path, files, programs)).rstrip())
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    new = text()
    if "--check" in sys.argv[1:]:
        sys.exit(0 if FILE.read_text() == new else f"{FILE.name} is not what PyTorch's sources give")
    FILE.write_text(new)
