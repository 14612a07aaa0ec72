"""Reads the rows and the rule files and works out what the emitters need: ids, families,
derived gradient ops, saved sets. Standard library only."""
import ast
import importlib.util
import sys
import types
from pathlib import Path

MAX_SAVED = 9       # PT_MAX_SAVED of _opinfo.h
BY_TYPE = 32        # of a saved input: in half types only; of an output: in other types only (saved_code in call.pxd)
KEPT = 16           # of a saved input: also in other types, where it costs no memory (is_kept in call.pxd)
HALVES = {"float16", "bfloat16"}
HERE = Path(__file__).resolve().parent
PACKAGE = HERE.parent
OPS = PACKAGE / "_ops"


def topics():
    """The families of ops: the folders that hold rows, in the order of ids."""
    return sorted(path.parent.name for path in OPS.glob("*/rows.py"))


def _load(name, path):
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


# Rows say `from ptcore._ops.table.schema import ...`; the package itself is not built yet.
for _name in ("ptcore", "ptcore._ops", "ptcore._ops.table"):
    sys.modules.setdefault(_name, types.ModuleType(_name))
expr = _load("ptcore._ops.table.expr", OPS / "table" / "expr.py")
stored = _load("ptcore._ops.table.stored", OPS / "table" / "stored.py")
schema = _load("ptcore._ops.table.schema", OPS / "table" / "schema.py")
steps = _load("ptcore._ops.table.steps", OPS / "table" / "steps.py")
signature = _load("ptcore._ops.table.signature", OPS / "table" / "signature.py")


class Op:
    """A row with its id and everything inferred from it."""

    def __init__(self, row, number):
        self.row, self.id = row, number
        self.name, self.family = row.name, row.family
        self.args = [a for a in row.args if a.name not in (row.select or {})]
        self.tensors = [a for a in self.args if a.is_tensor]
        self.params = [a for a in self.args if not a.is_tensor]
        self.derived = {}               # input -> Op of the fused gradient
        self.rule = None                # ("text", [...]) or ("function", module, ast node)
        self.saved = []                 # (code, need mask)
        self.slots = {}                 # name used by the rule -> (slot, "data" | "meta")
        self.more_slots = {}            # name -> slot in half types, for gradients that need the name there alone
        self.again = False              # in half types the rule computes the output again from the inputs

    def position(self, name):
        """Index among the run-time arguments of a tensor called x, y, z, w or by its name."""
        names = [a.name for a in self.args]
        if name in names:
            return names.index(name)
        if name in expr.TENSOR_NAMES and expr.TENSOR_NAMES.index(name) < len(self.tensors):
            return names.index(self.tensors[expr.TENSOR_NAMES.index(name)].name)
        return None

    @property
    def nout(self):
        return len(self.row.fields) if self.row.fields else 1

    @property
    def differentiable(self):
        return self.rule is not None


def read_rows():
    ops = []
    for family in topics():
        for row in schema.declared(_load(f"ptcore._ops.{family}.rows", OPS / family / "rows.py")):
            ops.append(Op(row, len(ops)))
    names = [op.name for op in ops]
    twice = {n for n in names if names.count(n) > 1}
    if twice:
        raise ValueError(f"ops declared twice: {sorted(twice)}")
    return ops


def read_rules():
    """name -> (module, FunctionDef) of the functions marked @vjp("name") in autograd/rules/. A function whose mark says
    ``remade=True`` has the attribute ``remade``."""
    rules = {}
    for path in sorted((PACKAGE / "autograd" / "rules").glob("*.py")):
        for node in ast.parse(path.read_text()).body:
            if not isinstance(node, ast.FunctionDef):
                continue
            for d in node.decorator_list:
                if isinstance(d, ast.Call) and getattr(d.func, "id", None) == "vjp":
                    node.remade = any(k.arg == "remade" and k.value.value for k in d.keywords)
                    for name in d.args:
                        rules[name.value] = (path.stem, node)
    return rules


def add_derived(ops):
    """The fused gradients of rows, behind the rows. Their rule is their formula, written out in ops."""
    for op in list(ops):
        for i, row in schema.derived(op.row).items():
            fused = Op(row, len(ops))
            fused.rule = ("formula",)
            op.derived[i] = fused
            ops.append(fused)


def infer_saved(ops, rules):
    for op in ops:
        row = op.row
        texts = row.partial or row.vjp
        if texts:
            if any(a.letter == "L" for a in op.tensors):
                raise ValueError(f"{op.name}: a list of tensors needs a rule in autograd/rules/")
            op.rule = ("text", texts)
            needs, meta_needs = {}, {}
            for i, text in enumerate(texts):
                if text is None:
                    continue
                data, meta = expr.uses(text, f"{op.name}, derivative {i}")
                for n in sorted(data):
                    needs[n] = needs.get(n, 0) | 1 << i
                for n in sorted(meta):
                    meta_needs[n] = meta_needs.get(n, 0) | 1 << i
            op.again = (row.kind == "elementwise" and bool(row.partial) and not HALVES.isdisjoint(row.types)
                        and any(t is not None and expr.computes_with(t, "out") for t in texts))
            _assign(op, needs, meta_needs)
            if row.exact and op.again:
                slot = op.slots["x"][0]
                op.saved[slot] = op.saved[slot][0] | KEPT, op.saved[slot][1]
        elif op.name in rules:
            module, node = rules[op.name]
            op.rule = ("function", module, node)
            names = [a.arg for a in node.args.args]
            data, meta = expr.function_uses(node, set(names))
            every = (1 << max(len(op.tensors), 1)) - 1
            op.again = any(isinstance(d, ast.Call) and getattr(d.func, "id", None) == "again"
                           for d in node.decorator_list)
            _assign(op, {n: every for n in names if n in data},
                    {n: every for n in names if n in meta})
        elif op.rule is not None:
            _assign(op, {a.name: (1 << len(op.tensors)) - 1 for a in op.tensors}, {})


def _assign(op, needs, meta_needs):
    for name in [*needs, *(n for n in meta_needs if n not in needs)]:
        mask = needs.get(name, 0) | meta_needs.get(name, 0)
        kind = "data" if name in needs else "meta"
        if name in ("g", "gs", "needs"):
            continue
        if name == "out" or (name.startswith("out") and name[3:].isdigit()):
            code = 128 + (int(name[3:]) if name[3:] else 0) + (BY_TYPE if op.again else 0)
        else:
            position = op.position(name)
            if position is None or not op.args[position].is_tensor:
                continue                # a parameter, or a function of the namespace
            code = position + (64 if kind == "meta" else 0)
        op.slots[name] = (len(op.saved), kind)
        op.saved.append((code, mask))
    for k, a in enumerate(op.tensors if op.again else ()):
        name = expr.TENSOR_NAMES[k] if op.row.kind == "elementwise" else a.name
        slot, kind = op.slots.get(name, (None, "data"))
        missing = needs["out"] & ~(op.saved[slot][1] if slot is not None and kind == "data" else 0)
        if slot is None:
            op.slots[name] = (len(op.saved), "data")
        elif missing:
            op.more_slots[name] = len(op.saved)
        if missing:
            op.saved.append((op.position(name) + BY_TYPE, missing))
    if len(op.saved) > MAX_SAVED:
        raise ValueError(f"{op.name}: its rule saves {len(op.saved)} values, at most {MAX_SAVED} are held")


def grad_mask(op):
    """Bit per tensor argument that can receive a gradient."""
    if op.rule is None:
        return 0
    mask = 0
    for i, a in enumerate(op.tensors):
        if a.letter in "IJ":
            continue
        if op.rule[0] == "text" and op.rule[1][i] is None:
            continue
        mask |= 1 << i
    return mask


def read():
    """All ops: the rows, then the derived ones; ids are positions."""
    ops = read_rows()
    rules = read_rules()
    add_derived(ops)
    infer_saved(ops, rules)
    families = {op.name: op.family for op in ops}
    for name, (module, _) in rules.items():
        if families.get(name) != module:
            raise ValueError(f"autograd/rules/{module}.py: {name} has no row in _ops/{module}/rows.py")
    return ops
