"""What captures and scripts know of Python: its operators in a program's text, and its builtins.

``tests/jit/test_names.py`` walks the tables: each entry works in both, or is refused by its name.
"""
import ast
import builtins
import operator

from ptcore.fx.operators import OPERATORS

__all__ = ["BESIDE_OPERATORS", "BUILTINS", "BY_NODE", "COMPARISONS", "OUTSIDE"]

# Class of a node of Python's syntax -> the operator.
BY_NODE = {getattr(ast, node): OPERATORS[name] for node, name in (
    ("Add", "add"), ("Sub", "sub"), ("Mult", "mul"), ("Div", "truediv"), ("FloorDiv", "floordiv"), ("Mod", "mod"),
    ("Pow", "pow"), ("MatMult", "matmul"), ("LShift", "lshift"), ("RShift", "rshift"), ("BitAnd", "and_"),
    ("BitOr", "or_"), ("BitXor", "xor"), ("UAdd", "pos"), ("USub", "neg"), ("Invert", "invert"), ("Eq", "eq"),
    ("NotEq", "ne"), ("Lt", "lt"), ("LtE", "le"), ("Gt", "gt"), ("GtE", "ge"))}
# What stands between the values of a comparison, with the names that a capture has for the rest.
COMPARISONS = {**{node: o.name for node, o in BY_NODE.items() if o.kind == "compare"},
               ast.Is: "is_", ast.IsNot: "is_not", ast.In: "in_", ast.NotIn: "not_in"}
# Functions of ``operator``, beside those of operators, that programs of rows may call.
BESIDE_OPERATORS = {n: getattr(operator, n) for n in ("index", "contains", "getitem", "setitem", "delitem")}

# The builtins, by what a program does with them; "frozendict" and "sentinel" are of Python 3.15.
BUILTINS = {name: kind for kind, names in {
    "value": "abs all any ascii bin bool chr complex divmod float format hash hex int len max min oct ord pow repr "
             "round sorted str sum",
    "container": "bytearray bytes dict frozendict frozenset list memoryview set slice tuple",
    "iterator": "aiter anext enumerate filter iter map next range reversed zip",
    "object": "callable classmethod delattr getattr hasattr id isinstance issubclass object property sentinel "
              "setattr staticmethod super type",
    "outside": "__build_class__ __import__ breakpoint compile dir eval exec globals input locals open print vars",
}.items() for name in names.split() if hasattr(builtins, name)}
# Those that reach out of a program, and what it does by a call.
OUTSIDE = {getattr(builtins, name): text for name, text in {
    "__import__": "calls __import__()", "breakpoint": "stops at a breakpoint", "compile": "compiles source",
    "dir": "calls dir()", "eval": "calls eval()", "exec": "calls exec()", "globals": "calls globals()",
    "input": "asks the user", "locals": "calls locals()", "open": "opens a file", "print": "prints",
    "vars": "calls vars()"}.items()}
