"""The rules of shapes as C functions: _shape_rules.pyx, from the text of _sizes/rules/ and the ``out`` columns of rows.

Every function of the rules becomes one of Cython over C ints (_sizes/language.py says what they are written in). For
each way in which rows bind their arguments to a rule there is one more function, whose address the op gets.
"""
import ast
import functools

from tables import PACKAGE, schema

RULES = PACKAGE / "_sizes" / "rules"
TYPES = {"Call": "Call *", "View": "const pt_view *", "Positions": "const pt_view *", "Int": "int64_t",
         "Bool": "bint", "DType": "int64_t", "Ints": "const pt_param *", "Dims": "uint64_t", "Text": "const char *",
         "Words": "int64_t", "Device": "PyObject *", "Out": "Out *"}
DTYPES = {"BOOL": "PT_BOOL", "INT32": "PT_INT32", "INT64": "PT_INT64", "FLOAT32": "PT_FLOAT32"}
# Annotation -> the letters of the arguments that it takes (table/schema.py).
LETTERS = {"View": "TOIJ", "Positions": "I", "Int": "idn", "Bool": "b", "DType": "t", "Ints": "zZDR", "Dims": "deDR",
           "Device": "o", "Words": "w"}
CHECKS = ("place", "fits")          # of language.py: they fail as rules do

HEAD = '''# cython: infer_types=True, cdivision=True
"""Generated from _sizes/rules/ and the `out` columns: the rules of shapes in C."""
from ptcore._types cimport *
from ptcore._dtype cimport CATEGORY, COMPLEX_OF, ITEMSIZE, REAL_OF
from ptcore._ops.table.ids cimport info
from ptcore._ops.call.call cimport *
from ptcore._ops.call.rule cimport *
'''


class Rule:
    """A function of the rules: its parameters as (name, type, words)."""

    def __init__(self, path, node):
        self.path, self.node, self.name = path, node, node.name
        self.parameters = [(a.arg, *self.type_of(a)) for a in node.args.args]
        self.returns = node.returns.id if node.returns is not None else None

    def type_of(self, argument):
        """(annotation, None), or ("Words", the words)."""
        kind = argument.annotation
        if isinstance(kind, ast.Call) and kind.func.id == "Words":
            return "Words", kind.args[0].value.split("|")
        if not isinstance(kind, ast.Name) or kind.id not in TYPES:
            self.refuse(argument, f"{argument.arg} must be annotated with one of {sorted(TYPES)} or with Words")
        return kind.id, None

    def refuse(self, node, why):
        raise ValueError(f"_sizes/rules/{self.path.name}:{node.lineno}: {self.name}: {why}")


@functools.cache
def read():
    """name -> Rule of every file."""
    rules = {}
    for path in sorted(RULES.glob("*.py")):
        if path.stem != "__init__":
            read_text(path, path.read_text(encoding="utf-8"), rules)
    return rules


def read_text(path, text, rules):
    """Adds the functions of a file. One without annotations is of Python alone: the text of an error."""
    for node in ast.parse(text).body:
        if not isinstance(node, ast.FunctionDef) or node.args.args[0].annotation is None:
            continue
        if node.name in rules:
            raise ValueError(f"_sizes/rules: {node.name} stands in {rules[node.name].path.name} and in {path.name}")
        rules[node.name] = Rule(path, node)


class Compiled(ast.NodeTransformer):
    """The body of a rule as Cython gets it. What fails returns False; what describes or checks returns True."""

    def __init__(self, rule, rules):
        self.rule, self.rules = rule, rules
        self.words = {name: words for name, kind, words in rule.parameters if kind == "Words"}
        self.dims = {name for name, kind, _ in rule.parameters if kind == "Dims"}

    def visit_Raise(self, node):
        if self.rule.returns:
            self.rule.refuse(node, "a function that returns a value cannot raise")
        return ast.Return(ast.Constant(False))

    def visit_Return(self, node):
        if (node.value is None) == bool(self.rule.returns):
            self.rule.refuse(node, "a function returns a value where its annotation says so, and only there")
        self.generic_visit(node)
        return node if node.value is not None else ast.Return(ast.Constant(True))

    def visit_Expr(self, node):
        if not isinstance(node.value, ast.Call):
            return None                         # a docstring
        name = node.value.func.id
        self.generic_visit(node)
        if name in CHECKS or (name in self.rules and not self.rules[name].returns):
            return ast.If(ast.UnaryOp(ast.Not(), node.value), [ast.Return(ast.Constant(False))], [])
        return node

    def visit_Compare(self, node):
        left, right = node.left, node.comparators[0]
        if len(node.ops) > 1:
            self.rule.refuse(node, "one comparison at a time")
        if isinstance(node.ops[0], (ast.In, ast.NotIn)):
            if getattr(right, "id", None) not in self.dims:
                self.rule.refuse(node, "`in` is for dims")
            found = ast.BinOp(ast.BinOp(right, ast.RShift(), left), ast.BitAnd(), ast.Constant(1))
            return found if isinstance(node.ops[0], ast.In) else ast.UnaryOp(ast.Not(), found)
        if isinstance(right, ast.Constant) and isinstance(right.value, str):
            words = self.words.get(getattr(left, "id", None), ())
            if right.value not in words:
                self.rule.refuse(node, f"{right.value!r} is none of {words}")
            node.comparators[0] = ast.Constant(words.index(right.value))
            return node
        return self.generic_visit(node)

    def visit_Name(self, node):
        node.id = DTYPES.get(node.id, node.id)
        return node

    def visit_Constant(self, node):
        return ast.Constant(node.value.encode()) if isinstance(node.value, str) else node


def function(rule, rules):
    """A rule as a C function."""
    body = [s for s in map(Compiled(rule, rules).visit, rule.node.body) if s is not None]
    if not rule.returns:
        body.append(ast.Return(ast.Constant(True)))
    parameters = ", ".join(f"{TYPES[kind]} {name}" for name, kind, _ in rule.parameters)
    text = ast.unparse(ast.fix_missing_locations(ast.Module(body, [])))
    result = TYPES[rule.returns] if rule.returns else "bint"
    # Without the GIL Cython refuses a local that it cannot make a C number of. A device is an object.
    nogil = "" if any(kind == "Device" for _, kind, _ in rule.parameters) else " nogil"
    return "\n".join([f"cdef inline {result} {rule.name}({parameters}) noexcept{nogil}:",
                      *[f"    {line}" for line in text.splitlines()], "", ""])


def bound(op, rules):
    """(rule, the text of each of its arguments) for an op."""
    name, arguments = schema.shape_rule(op.row.out)
    rule = rules.get(name)
    if rule is None:
        raise ValueError(f"{op.name}: there is no shape rule {name!r}")
    given = arguments if arguments is not None else [p for p, _, _ in rule.parameters[1:]]
    if len(given) != len(rule.parameters) - 1:
        raise ValueError(f"{op.name}: the shape rule {name!r} takes {[p for p, _, _ in rule.parameters[1:]]}, got "
                         f"{given}")
    return rule, ["c", *[binding(op, rule, value, kind, words)
                         for value, (_, kind, words) in zip(given, rule.parameters[1:])]]


def binding(op, rule, value, kind, words):
    """An argument of a rule in C: of the row by its name, or a dtype."""
    if kind == "DType" and value in DTYPES:
        return DTYPES[value]
    argument = next((a for a in op.args if a.name == value), None)
    if argument is None:
        raise ValueError(f"{op.name}: the shape rule {rule.name!r} wants {value!r}, which is no argument of the row")
    if kind == "Words" and argument.choices != tuple(words):
        raise ValueError(f"{op.name}: {value} must be one of {argument.choices}, {rule.name} has {words}")
    if argument.letter not in LETTERS[kind]:
        raise ValueError(f"{op.name}: {value}, of the letter {argument.letter!r}, cannot be a {kind} of {rule.name}")
    if argument.is_tensor:
        return f"&c.inputs[{op.tensors.index(argument)}]"
    k = op.params.index(argument)
    if kind == "Device":
        return f"c.plain[{k}]"
    # An object before it is among the call's parameters only if it holds no tensors: the place is counted from the end.
    if any(a.letter == "o" for a in op.params[:k]):
        k = f"c.nparams - {len(op.params) - k}"
    param = f"c.params[{k}]"
    if kind == "Dims":
        return "c.dims" if argument.letter != "e" else f"(c.dims if {param}.kind else <uint64_t>-1)"
    if kind == "DType":
        return f"({param}.i if {param}.kind else -1)"
    return {"Ints": f"&{param}", "Bool": f"{param}.i != 0"}.get(kind, f"{param}.i")


def structured(ops):
    return [op for op in ops if op.row.kind in ("structured", "linear", "bilinear", "nondifferentiable")]


def takes_positions(op):
    """Whether the op has positions along a dim, which it takes as int64."""
    if op.row.kind in ("elementwise", "view", "composite"):
        return False
    rules = read()
    rule = rules.get(schema.shape_rule(op.row.out)[0])
    return rule is not None and any(kind == "Positions" for _, kind, _ in rule.parameters)


def module(ops):
    """_shape_rules.pyx."""
    rules = read()
    text = [HEAD, ""] + [function(rule, rules) for rule in rules.values()]
    known, enter = {}, []
    for op in structured(ops):
        rule, arguments = bound(op, rules)
        key = (rule.name, *arguments, op.nout)
        if key not in known:
            known[key] = f"of_{op.name}"
            text += [f"cdef int {known[key]}(void *call) noexcept:", "    cdef Call *c = <Call *>call",
                     f"    c.nout = {op.nout}", f"    return {rule.name}({', '.join(arguments)})", "", ""]
        enter.append(f"info({op.id}).shape = {known[key]}")
    return "\n".join([*text, *enter]) + "\n"
