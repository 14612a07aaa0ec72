"""The expression language of formulas and derivatives: Python syntax, one expression.

Formulas use x, y, z (the tensors in signature order), the parameters by name, ``out`` and
numbers; ``+ - * / **2``, one comparison, ``and or not & | ^``, ``a if c else b`` and calls of
functions that exist both in include/ptcore/scalar.h and as ops. vjp texts of structured rows
are Python expressions over the same names plus ``g``.

Readers: ``to_cpp`` (host loops and NVRTC), ``to_python`` (ops: differentiable again),
``uses`` (the values to save: the names with data in use, and those with only metadata in use).
"""
import ast
import struct

TENSOR_NAMES = ("x", "y", "z", "w")
META = ("shape", "dtype", "device", "ndim")
_BINARY = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.BitAnd: "&",
           ast.BitOr: "|", ast.BitXor: "^"}
_COMPARE = {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==",
            ast.NotEq: "!="}


class ExpressionError(ValueError):
    """Raised for a text outside the expression language."""


def parse(text, where):
    try:
        return ast.parse(text.strip(), mode="eval").body
    except SyntaxError as e:
        raise ExpressionError(f"{where}: {e.msg} at column {e.offset} of {text!r}") from None


def uses(text, where="expression"):
    """(names with data in use, names with only shape, dtype, device or ndim in use)."""
    data, meta = set(), set()

    def visit(node):
        if (isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
                and node.attr in META):
            meta.add(node.value.id)
            return
        if isinstance(node, ast.Name):
            data.add(node.id)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            children = [*node.args, *(k.value for k in node.keywords)]
        else:
            children = ast.iter_child_nodes(node)
        for child in children:
            visit(child)

    visit(parse(text, where))
    return data, meta - data


def computes_with(text, name, where="expression"):
    """Whether a value is more than compared in a text."""
    tree = parse(text, where)
    inside = {id(n) for c in ast.walk(tree) if isinstance(c, ast.Compare) for n in ast.walk(c)}
    return any(isinstance(n, ast.Name) and n.id == name and id(n) not in inside for n in ast.walk(tree))


def _loops(function, names):
    """({loop variable: the lists of tensors that it runs over}, the nodes that name these lists in loops)."""
    found, heads = {}, set()
    for node in ast.walk(function):
        if not isinstance(node, (ast.For, ast.comprehension)):
            continue
        pairs = [(node.target, node.iter)]
        if (isinstance(node.iter, ast.Call) and getattr(node.iter.func, "id", None) == "zip"
                and isinstance(node.target, ast.Tuple)):
            pairs = list(zip(node.target.elts, node.iter.args))
        for target, source in pairs:
            if isinstance(target, ast.Name) and isinstance(source, ast.Name) and source.id in names:
                found[target.id] = source.id
                heads.add(source)
    return found, heads


def function_uses(function, names):
    """``uses`` for the ast.FunctionDef of a structured rule and its parameter names. A list of tensors that occurs only
    in loops is used in the same way as the variables of these loops."""
    data, meta = set(), set()
    variables, heads = _loops(function, names)
    of = {**{name: name for name in names}, **variables}

    def visit(node):
        if node in heads:
            meta.add(node.id)
            return
        if (isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
                and node.attr in META and node.value.id in of):
            meta.add(of[node.value.id])
            return
        if isinstance(node, ast.Name) and node.id in of and isinstance(node.ctx, ast.Load):
            data.add(of[node.id])
        for child in ast.iter_child_nodes(node):
            visit(child)

    for statement in function.body:
        visit(statement)
    return data, meta - data


def to_cpp(text, where, params=()):
    """C++ text over values of type T; parameters are named ``p_<name>``."""

    def emit(node):
        if isinstance(node, ast.Constant):
            if node.value is True or node.value is False:
                return "T(1)" if node.value else "T(0)"
            return f"T({node.value!r})"
        if isinstance(node, ast.Name):
            return f"p_{node.id}" if node.id in params else node.id
        if isinstance(node, ast.UnaryOp):
            if isinstance(node.op, ast.USub):
                return f"(-{emit(node.operand)})"
            if isinstance(node.op, ast.Not):
                return f"(!{condition(node.operand)})"
        if isinstance(node, ast.BinOp):
            if isinstance(node.op, ast.Pow):
                if isinstance(node.right, ast.Constant) and node.right.value == 2:
                    return f"pt::square({emit(node.left)})"
            elif type(node.op) in _BINARY:
                return f"({emit(node.left)} {_BINARY[type(node.op)]} {emit(node.right)})"
        if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in _COMPARE:
            return (f"({emit(node.left)} {_COMPARE[type(node.ops[0])]} "
                    f"{emit(node.comparators[0])})")
        if isinstance(node, ast.BoolOp):
            sign = " & " if isinstance(node.op, ast.And) else " | "
            return "(" + sign.join(emit(v) for v in node.values) + ")"
        if isinstance(node, ast.IfExp):
            return f"({condition(node.test)} ? {emit(node.body)} : {emit(node.orelse)})"
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not node.keywords:
            if node.func.id == "where":
                test, a, b = node.args
                return f"({condition(test)} ? {emit(a)} : {emit(b)})"
            if node.func.id == "with_values":           # the first one is for derivatives alone
                return emit(node.args[1])
            return f"pt::{node.func.id}({', '.join(emit(a) for a in node.args)})"
        raise ExpressionError(f"{where}: {ast.unparse(node)!r} is outside the expression "
                              f"language, in {text!r}")

    def condition(node):
        if isinstance(node, ast.Name):
            return f"({emit(node)} != T(0))"
        return emit(node)

    return emit(parse(text, where))


class _ToOps(ast.NodeTransformer):
    """Rewrites conditional expressions and boolean operators, which tensors do not have, as ``where``, ``&`` and ``|``.

    A parameter as a branch of `where` would be rounded to the default dtype: parameters named in
    ``lifted`` become tensors of the dtype of ``beside``, and so do constants that float32 rounds."""

    def __init__(self, lifted, beside):
        self.lifted, self.beside = lifted, beside

    def visit_Name(self, node):
        if node.id in self.lifted:
            return ast.Call(ast.Name("lift"), [node, ast.Name(self.beside)], [])
        return node

    def visit_Call(self, node):
        if isinstance(node.func, ast.Name):         # a function's name is not a parameter
            node.args = [self.visit(a) for a in node.args]
            if node.func.id == "where":
                node.args[1:] = [self.exact(a) for a in node.args[1:]]
            node.keywords = [self.visit(k) for k in node.keywords]
            return node
        return self.generic_visit(node)

    def visit_IfExp(self, node):
        self.generic_visit(node)
        return ast.Call(ast.Name("where"), [node.test, self.exact(node.body), self.exact(node.orelse)], [])

    def exact(self, node):
        """A constant that float32 cannot hold, lifted to a tensor."""
        if isinstance(node, ast.Constant) and struct.unpack("f", struct.pack("f", node.value))[0] != node.value:
            return ast.Call(ast.Name("lift"), [node, ast.Name(self.beside)], [])
        return node

    def visit_BoolOp(self, node):
        self.generic_visit(node)
        op = ast.BitAnd() if isinstance(node.op, ast.And) else ast.BitOr()
        result = node.values[0]
        for value in node.values[1:]:
            result = ast.BinOp(result, op, value)
        return result


def to_python(text, where, params=(), beside="g"):
    """A text as a Python expression over tensors; ``params`` are numbers."""
    tree = parse(text, where)
    chosen = "where" in called(text, where) or any(isinstance(n, ast.IfExp) for n in ast.walk(tree))
    return ast.unparse(_ToOps(params if chosen else (), beside).visit(tree))


def renamed(text, names):
    """A text with its variables renamed; functions keep their names."""
    class Rename(ast.NodeTransformer):
        def visit_Name(self, node):
            return ast.Name(names.get(node.id, node.id))

        def visit_Call(self, node):
            node.args = [self.visit(a) for a in node.args]
            return node

    return ast.unparse(Rename().visit(parse(text, "derivative")))


def trivial(text):
    """Whether a partial is 1, -1, 0 or a name, so that it needs no fused loop."""
    text = text.strip()
    return text in ("1", "-1", "0") or text.isidentifier()


def times(g, text, where="derivative"):
    """``g * (text)``. A choice with a branch of 0 is moved out of the product, so that this 0 holds even if g is NaN or
    inf: gradients of elements that do not count are ignored."""
    node = parse(text, where)
    if isinstance(node, ast.Constant) and node.value == 0:
        return "0.0"
    if isinstance(node, ast.Constant) and node.value == 1:
        return g
    if isinstance(node, ast.Call) and getattr(node.func, "id", None) == "where":
        a, b = [ast.unparse(branch) for branch in node.args[1:]]
        if "0.0" in (times(g, a, where), times(g, b, where)) or "where(" in times(g, a, where) + times(g, b, where):
            return f"where({ast.unparse(node.args[0])}, {times(g, a, where)}, {times(g, b, where)})"
    return f"{g} * ({text})"


def called(text, where="expression"):
    """The names of the functions that a text calls."""
    return {n.func.id for n in ast.walk(parse(text, where))
            if isinstance(n, ast.Call) and isinstance(n.func, ast.Name)}
