"""Python's operators: the functions of the module ``operator`` behind them, their kinds, and how they are written.

Graphs are printed by this table, and captures and scripts know the operators of a program by it.
"""
import operator


class Operator:
    """An operator of Python.

    Attributes
    ----------
    name : str
        Of its function in ``operator``.
    kind : str
        "unary", "binary" or "compare".
    symbol : str
    function, inplace : callable
        That of ``operator``; of a binary one the function of its augmented assignment, None of others.
    magic : str
        The special method of its first operand.
    """

    __slots__ = ("function", "inplace", "kind", "magic", "name", "symbol")

    def __init__(self, name, kind, symbol):
        self.name, self.kind, self.symbol = name, kind, symbol
        self.function, self.magic = getattr(operator, name), f"__{name.rstrip('_')}__"
        self.inplace = getattr(operator, f"i{name.rstrip('_')}") if kind == "binary" else None

    def __repr__(self):
        return f"<operator {self.symbol}>"

    @property
    def infix(self):
        """The operator between the places of its operands."""
        return f"{self.symbol}{{}}" if self.kind == "unary" else f"{{}} {self.symbol} {{}}"


OPERATORS = {name: Operator(name, kind, symbol) for kind, symbols in (
    ("binary", {"add": "+", "sub": "-", "mul": "*", "truediv": "/", "floordiv": "//", "mod": "%", "pow": "**",
                "matmul": "@", "and_": "&", "or_": "|", "xor": "^", "lshift": "<<", "rshift": ">>"}),
    ("compare", {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}),
    ("unary", {"neg": "-", "pos": "+", "invert": "~"})) for name, symbol in symbols.items()}
# Function of ``operator`` -> its text around the places of its arguments.
INFIX = {**{o.function: o.infix for o in OPERATORS.values()}, operator.getitem: "{}[{}]"}
# Function of ``operator`` that writes to its first argument -> the sign of the assignment.
INPLACE = {o.inplace: f"{o.symbol}=" for o in OPERATORS.values() if o.inplace is not None}
# Comparisons -> what the second operand is asked where the first one does not know.
COMPARED = {"eq": "eq", "ne": "ne", "lt": "gt", "gt": "lt", "le": "ge", "ge": "le"}
