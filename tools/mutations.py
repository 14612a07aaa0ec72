"""Mutations of Python text, for ``mutate.py``: where they can be made, which are drawn, and which are known to change
nothing.

A mutation replaces one span of a file's text. It is found in the syntax tree and made in the text, so that comments
and layout stay and a table can show the line before and after. Left alone are docstrings, annotations, what stands in
an f-string (Python 3.11 gives no places there), the text of an error, and what is at the top of a module or class,
where nearly every change is an ImportError.
"""
import ast
import bisect
import random
import re
from typing import NamedTuple

OPERATORS = ("comparison", "plus and minus", "and/or", "negation", "off by one", "statement dropped", "return None",
             "arguments swapped", "raise removed", "default changed")
_COMPARISON = {ast.Eq: ("==", "!="), ast.NotEq: ("!=", "=="), ast.Lt: ("<", "<="), ast.LtE: ("<=", "<"),
               ast.Gt: (">", ">="), ast.GtE: (">=", ">"), ast.Is: ("is", "is not"), ast.IsNot: (r"is\s+not", "is"),
               ast.In: ("in", "not in"), ast.NotIn: (r"not\s+in", "in")}
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


class Mutation(NamedTuple):
    """``text[start:stop]`` becomes ``new``; ``before`` and ``after`` are the line where that begins, ``scope`` the
    names of the classes and functions around it."""

    operator: str
    line: int
    start: int
    stop: int
    new: str
    before: str
    after: str
    scope: tuple


def applied(text, mutation):
    return text[:mutation.start] + mutation.new + text[mutation.stop:]


class _Sites(ast.NodeVisitor):
    """Collects the mutations of a file."""

    def __init__(self, text):
        self.text, self.found, self.scope = text, [], []
        lines = text.splitlines(keepends=True)
        self.lines = lines
        self.starts = [0]
        for line in lines:
            self.starts.append(self.starts[-1] + len(line))

    # -- places

    def place(self, line, column):
        """The index in the text: the tree counts bytes of UTF-8."""
        return self.starts[line - 1] + len(self.lines[line - 1].encode()[:column].decode())

    def span(self, node):
        return self.place(node.lineno, node.col_offset), self.place(node.end_lineno, node.end_col_offset)

    def source(self, node):
        start, stop = self.span(node)
        return self.text[start:stop]

    def between(self, left, right, pattern):
        """The span of an operator between two nodes: the rest of that text is parentheses and comments."""
        start, stop = self.span(left)[1], self.span(right)[0]
        gap = re.sub(r"#[^\n]*", lambda m: " " * len(m[0]), self.text[start:stop])
        match = re.search(pattern, gap)
        return start + match.start(), start + match.end()

    def add(self, operator, start, stop, new):
        if not self.scope:
            return
        line = bisect.bisect(self.starts, start)
        first = self.starts[line - 1]
        rest = self.text[stop:stop + 200].partition("\n")[0]
        after = (self.text[first:start] + new + rest).strip().partition("\n")[0]
        self.found.append(Mutation(operator, line, start, stop, new, self.lines[line - 1].strip(), after,
                                   tuple(self.scope)))

    # -- what is visited

    def visit_JoinedStr(self, node):
        pass

    def visit_Raise(self, node):
        self.add("raise removed", *self.span(node), "pass")

    def visit_If(self, node):
        if isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            return
        self.negated(node.test)
        self.generic_visit(node)

    def visit_ClassDef(self, node):
        self.scope.append(node.name)
        for statement in node.body:
            if isinstance(statement, (*_FUNCTIONS, ast.ClassDef, ast.If)):
                self.visit(statement)
        self.scope.pop()

    def visit_FunctionDef(self, node):
        for default in [*node.args.defaults, *filter(None, node.args.kw_defaults)]:
            self.scope.append(node.name)
            self.default(default)
            self.scope.pop()
        self.scope.append(node.name)
        for statement in node.body:
            self.visit(statement)
        self.scope.pop()

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_Lambda(self, node):
        self.visit(node.body)

    def visit_Expr(self, node):
        if isinstance(node.value, ast.Constant):
            return
        if isinstance(node.value, (ast.Call, ast.Await)):
            self.dropped(node)
        self.generic_visit(node)

    def visit_Assign(self, node):
        self.dropped(node)
        self.visit(node.value)
        for target in node.targets:
            self.visit(target)

    def visit_AnnAssign(self, node):
        if node.value is not None:
            self.dropped(node)
            self.visit(node.value)

    def visit_AugAssign(self, node):
        self.dropped(node)
        if isinstance(node.op, (ast.Add, ast.Sub)):
            sign = "-" if isinstance(node.op, ast.Sub) else "+"
            self.add("plus and minus", *self.between(node.target, node.value, re.escape(sign + "=")),
                     "+=" if sign == "-" else "-=")
        self.generic_visit(node)

    def visit_Delete(self, node):
        self.dropped(node)

    def visit_Return(self, node):
        if node.value is None:
            return
        if not (isinstance(node.value, ast.Constant) and node.value.value is None):
            self.add("return None", *self.span(node.value), "None")
        self.generic_visit(node)

    def visit_Compare(self, node):
        sides = [node.left, *node.comparators]
        for op, left, right in zip(node.ops, sides, sides[1:]):
            old, new = _COMPARISON[type(op)]
            self.add("comparison", *self.between(left, right, rf"\b{old}\b" if old[0] in "in" else re.escape(old)), new)
        self.generic_visit(node)

    def visit_BinOp(self, node):
        if isinstance(node.op, (ast.Add, ast.Sub)):
            sign = "-" if isinstance(node.op, ast.Sub) else "+"
            self.add("plus and minus", *self.between(node.left, node.right, re.escape(sign)),
                     "+" if sign == "-" else "-")
        self.generic_visit(node)

    def visit_BoolOp(self, node):
        old, new = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
        for left, right in zip(node.values, node.values[1:]):
            self.add("and/or", *self.between(left, right, rf"\b{old}\b"), new)
        self.generic_visit(node)

    def visit_UnaryOp(self, node):
        if isinstance(node.op, (ast.Not, ast.USub)):
            self.add("negation", *self.span(node), f"({self.source(node.operand)})")
        self.generic_visit(node)

    def visit_While(self, node):
        self.negated(node.test)
        self.generic_visit(node)

    def visit_IfExp(self, node):
        self.negated(node.test)
        self.generic_visit(node)

    def visit_comprehension(self, node):
        for test in node.ifs:
            self.negated(test)
        self.generic_visit(node)

    def visit_Constant(self, node):
        if type(node.value) is int:
            self.add("off by one", *self.span(node), str(node.value + 1))
            if node.value > 0:
                self.add("off by one", *self.span(node), str(node.value - 1))

    def visit_Call(self, node):
        first = node.args[:2]
        if len(first) == 2 and not any(isinstance(a, ast.Starred) for a in first):
            a, b = map(self.source, first)
            if ast.dump(first[0]) != ast.dump(first[1]):
                start, stop = self.span(first[0])[0], self.span(first[1])[1]
                middle = self.text[self.span(first[0])[1]:self.span(first[1])[0]]
                self.add("arguments swapped", start, stop, b + middle + a)
        self.generic_visit(node)

    # -- mutations of several kinds of nodes

    def negated(self, test):
        """A condition that begins with ``not`` loses it as any expression does."""
        if not (isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not)):
            self.add("negation", *self.span(test), f"not ({self.source(test)})")

    def dropped(self, node):
        self.add("statement dropped", *self.span(node), "pass")

    def default(self, node):
        if not isinstance(node, ast.Constant):
            return
        value = node.value
        if isinstance(value, bool):
            new = not value
        elif isinstance(value, (int, float)):
            new = value + 1
        elif isinstance(value, str):
            new = value + "_"
        else:
            return
        self.add("default changed", *self.span(node), repr(new))


def mutations(text):
    """All mutations of a file's text in the text's order; some are no Python, or another writing of the same tree."""
    sites = _Sites(text)
    sites.visit(ast.parse(text))
    return sorted(set(sites.found), key=lambda m: (m.start, m.stop, m.operator, m.new))


def is_change(text, mutation):
    """Whether the mutated text is Python, and another tree."""
    try:
        changed = ast.parse(applied(text, mutation))
    except SyntaxError:
        return False
    return ast.dump(changed) != ast.dump(ast.parse(text))


# -- drawing -------------------------------------------------------------------------------------

def draw(files, seed):
    """Endless (path, mutation), each once: a file by its lines, an operator of those it has, one of its places.

    ``files`` is {path: text}. The order is a function of the texts and the seed alone.
    """
    rng = random.Random(seed)
    paths = sorted(files)
    weights = [files[path].count("\n") + 1 for path in paths]
    left = {}
    while paths:
        path = rng.choices(paths, weights)[0]
        if path not in left:
            groups = {}
            for mutation in mutations(files[path]):
                groups.setdefault(mutation.operator, []).append(mutation)
            left[path] = groups
        groups = left[path]
        if not groups:
            place = paths.index(path)
            del paths[place], weights[place]
            continue
        operator = rng.choice([operator for operator in OPERATORS if operator in groups])
        mutation = groups[operator].pop(rng.randrange(len(groups[operator])))
        if is_change(files[path], mutation):
            yield path, mutation
        if not groups[operator]:
            del groups[operator]


# -- those that change nothing -------------------------------------------------------------------

def read_equivalent(text):
    """{(path, operator, line before, line after)} of a table with a head: a line of it has these and a reason."""
    rows = [line.split("\t") for line in text.splitlines()[1:] if line]
    short = [row for row in rows if len(row) != 5 or not row[4].strip()]
    if short:
        raise ValueError(f"mutate: a line of equivalent mutations has 5 columns, the last a reason, got {short[0]}")
    return {tuple(row[:4]) for row in rows}


def key(path, mutation):
    """What a table knows a mutation by: its line's text, as numbers of lines change."""
    return path, mutation.operator, mutation.before, mutation.after
