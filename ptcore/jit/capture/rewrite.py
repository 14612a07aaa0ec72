"""A function's source, rewritten so that every read of something outside of it passes a recorder.

Python runs the rewritten function itself. Its local names stay as they are. Globals and cells of outer functions are
read through the function's ``Outside``. Attributes, elements, calls, operators, truth, iteration and writes go through
the ``Recorder``.
"""
import __future__

import ast
import sys

from ptcore.jit._names import BY_NODE, COMPARISONS
from ptcore.jit._source import NoSource, class_of, find

RECORDER, OUTSIDE = "_ptcore_recorder", "_ptcore_outside"
# The globals of rewritten functions, by which they are recognised as well.
NAMESPACE = {"__name__": "ptcore.jit.rewritten", "__builtins__": __builtins__}

SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


class Unwritable(Exception):
    """A function that cannot be rewritten; ``line`` is the place of the reason."""

    def __init__(self, reason, line):
        super().__init__(reason)
        self.reason, self.line = reason, line


KEPT = 10_000
_known = {}                         # code object's id -> (the code, the maker of rewritten functions or an exception)


def rewritten(code):
    """The maker of a rewritten function; it takes a recorder and the function's ``Outside``.

    Raises
    ------
    NoSource, Unwritable
    """
    known = _known.get(id(code))
    if known is None:
        try:
            made = _write(code)
        except (NoSource, Unwritable) as error:
            made = error.with_traceback(None)
        if len(_known) > KEPT:          # limits memory where functions are made again and again
            _known.clear()
        known = _known[id(code)] = code, made
    if isinstance(known[1], Exception):
        raise known[1]
    return known[1]


def is_rewritten(function):
    """Whether a function was made by this module, or is defined inside such a function."""
    return function.__globals__ is NAMESPACE


def _write(code):
    if code.co_flags & 0x280:           # a coroutine, or a generator of one
        raise Unwritable("a coroutine", code.co_firstlineno)
    found = find(code)
    writer = Writer(code)
    inner = writer.function(found)
    outer = ast.FunctionDef(name="_ptcore_make", args=_plain_arguments([RECORDER, OUTSIDE]), body=inner,
                            decorator_list=[], type_params=[])
    tree = ast.Module([outer], [])
    ast.copy_location(outer, found)
    ast.fix_missing_locations(tree)
    space = {}
    made = compile(tree, code.co_filename, "exec", dont_inherit=True)
    # Only the text of the user's function runs, with its reads written as calls.
    exec(made, NAMESPACE, space)
    return space["_ptcore_make"]


def _plain_arguments(names):
    return ast.arguments(posonlyargs=[], args=[ast.arg(n) for n in names], vararg=None, kwonlyargs=[], kw_defaults=[],
                         kwarg=None, defaults=[])


def _argument_list(a):
    return [x for x in (*a.posonlyargs, *a.args, a.vararg, *a.kwonlyargs, a.kwarg) if x is not None]


def _bound(node):
    """The names that a scope binds, and the names that it declares global or nonlocal."""
    found, declared_global, declared_outer = set(), set(), set()
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
        found |= {x.arg for x in _argument_list(node.args)}
        todo = list(node.body) if not isinstance(node, ast.Lambda) else [node.body]
    else:
        todo = [g.target for g in node.generators]      # only := in the conditions binds a name outside
    while todo:
        x = todo.pop()
        if isinstance(x, ast.Name):
            if isinstance(x.ctx, (ast.Store, ast.Del)):
                found.add(x.id)
        elif isinstance(x, ast.Global):
            declared_global |= set(x.names)
        elif isinstance(x, ast.Nonlocal):
            declared_outer |= set(x.names)
        elif isinstance(x, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            found.add(x.name)
            todo += x.decorator_list
            if not isinstance(x, ast.ClassDef):
                todo += [d for d in (*x.args.defaults, *x.args.kw_defaults) if d is not None]
        elif isinstance(x, ast.Lambda):
            todo += [d for d in (*x.args.defaults, *x.args.kw_defaults) if d is not None]
        elif isinstance(x, SCOPES):
            todo += [w.target for w in ast.walk(x) if isinstance(w, ast.NamedExpr)]
            todo.append(x.generators[0].iter)
        elif isinstance(x, (ast.Import, ast.ImportFrom)):
            found |= {(a.asname or a.name).split(".")[0] for a in x.names}
        else:
            if isinstance(x, ast.ExceptHandler) and x.name:
                found.add(x.name)
            todo += ast.iter_child_nodes(x)
    return found - declared_global - declared_outer, declared_global, declared_outer


def _targets(target):
    """A target of an assignment and those in it."""
    yield target
    for x in target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target.value] if isinstance(
            target, ast.Starred) else ():
        yield from _targets(x)


def _has_names_alone(target):
    """Whether a target is a tuple of names."""
    return isinstance(target, (ast.Tuple, ast.List)) and all([
        isinstance(t.value if isinstance(t, ast.Starred) else t, ast.Name) for t in target.elts])


def _is_plain(node):
    """Whether the evaluation of an expression runs no code of the user."""
    if isinstance(node, ast.UnaryOp):
        node = node.operand
    return isinstance(node, (ast.Constant, ast.Name)) or (
        isinstance(node, (ast.Tuple, ast.List)) and all(map(_is_plain, node.elts)))


def _raises_again(handler):
    """Whether a handler ends by ``raise`` in any case, so that the error leaves the program."""
    last = handler.body[-1]
    return isinstance(last, ast.Raise) and last.exc is None and not any(
        [isinstance(x, (ast.Return, ast.Break, ast.Continue)) for x in ast.walk(handler)])


class Writer(ast.NodeTransformer):
    """Rewrites one function and those defined inside it."""

    def __init__(self, code):
        self.outer = set(code.co_freevars)
        self.within = class_of(code)
        self.scopes, self.kinds, self.temporaries = [], [], 0
        self.reads_annotations = sys.version_info < (3, 14) and not (
            code.co_flags & __future__.annotations.compiler_flag)

    # -- names ---------------------------------------------------------------------------------------------------

    def mangled(self, name):
        """A private name, mangled by the enclosing class."""
        if self.within and name.startswith("__") and not name.endswith("__") and self.within.strip("_"):
            return f"_{self.within.lstrip('_')}{name}"
        return name

    def is_own(self, name):
        return self.scope_of(name) == "own"

    def scope_of(self, name):
        """Where a name is looked up: "own" names are the function's, "global" ones are declared so; or None."""
        for own, declared_global, _ in reversed(self.scopes):
            if name in own:
                return "own"
            if name in declared_global:
                return "global"
        return None

    def visit_Name(self, node):
        name = self.mangled(node.id)
        if self.is_own(node.id):
            return ast.copy_location(ast.Name(name, node.ctx), node)
        if not isinstance(node.ctx, ast.Load):
            kind = "the name" if name in self.outer else "the global name"
            raise Unwritable(f"it writes {kind} {name}, which is outside of it", node.lineno)
        return self.outside(name, node)

    def outside(self, name, node):
        kind = "cell" if name in self.outer and self.scope_of(name) != "global" else "name"
        return self.at(node, ast.Call(ast.Attribute(ast.Name(OUTSIDE, ast.Load()), kind, ast.Load()),
                                      [ast.Constant(name)], []))

    def temporary(self):
        self.temporaries += 1
        return f"_ptcore_{self.temporaries}"

    @staticmethod
    def at(node, made):
        ast.copy_location(made, node)
        return made

    def ask(self, node, method, *args, keywords=()):
        """A call of a method of the recorder."""
        args = [a if isinstance(a, ast.AST) else ast.Constant(a) for a in args]
        return self.at(node, ast.Call(ast.Attribute(ast.Name(RECORDER, ast.Load()), method, ast.Load()), args,
                                      list(keywords)))

    # -- scopes --------------------------------------------------------------------------------------------------

    def function(self, found):
        """The statements that make the function and return it."""
        if isinstance(found, ast.Lambda):
            made = self.lambda_(found, outermost=True)
            return [ast.copy_location(ast.Return(made), found)]
        made = self.definition(found, outermost=True)
        return [made, ast.copy_location(ast.Return(ast.Name(self.mangled(found.name), ast.Load())), found)]

    def parameters(self, a, outermost):
        """The parameters, without defaults for the outermost function, which gets those of the original."""
        def plain(arg):
            return None if arg is None else ast.copy_location(ast.arg(self.mangled(arg.arg)), arg)
        defaults = [] if outermost else [self.visit(d) for d in a.defaults]
        kw_defaults = [None if outermost or d is None else self.visit(d) for d in a.kw_defaults]
        return ast.arguments(posonlyargs=[plain(x) for x in a.posonlyargs], args=[plain(x) for x in a.args],
                             vararg=plain(a.vararg), kwonlyargs=[plain(x) for x in a.kwonlyargs],
                             kw_defaults=kw_defaults, kwarg=plain(a.kwarg), defaults=defaults)

    def definition(self, node, outermost=False):
        parameters = self.parameters(node.args, outermost)
        self.enter(node)
        body = self.statements(node.body)
        self.leave()
        if body and isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant):
            body = body[1:]
        return ast.copy_location(ast.FunctionDef(name=self.mangled(node.name), args=parameters,
                                                 body=body or [ast.copy_location(ast.Pass(), node)],
                                                 decorator_list=[], returns=None, type_params=[]), node)

    def enter(self, node):
        self.scopes.append(_bound(node))
        self.kinds.append(node)

    def leave(self):
        self.scopes.pop()
        self.kinds.pop()

    def visit_FunctionDef(self, node):
        found, decorators = [], []
        for d in node.decorator_list:       # they are evaluated before the defaults
            decorators.append(self.temporary())
            found.append(self.at(d, ast.Assign([ast.Name(decorators[-1], ast.Store())], self.visit(d))))
        found += self.annotations(node)
        made = self.definition(node)
        found.append(made)
        decorated = ast.Name(made.name, ast.Load())
        for d in reversed(decorators):
            decorated = self.ask(node, "call", ast.Name(d, ast.Load()), decorated)
        if decorators:
            found.append(self.at(node, ast.Assign([ast.Name(made.name, ast.Store())], decorated)))
        return found

    def annotations(self, node):
        """Reads of the names in annotations of an inner function. The annotations themselves are left out."""
        found = [a.annotation for a in _argument_list(node.args)] + [node.returns]
        made = []
        for annotation in found if self.reads_annotations else ():
            for x in ast.walk(annotation) if annotation is not None else ():
                if isinstance(x, (ast.Call, ast.NamedExpr, *SCOPES[2:])):
                    raise Unwritable("an annotation that is computed", x.lineno)
                if isinstance(x, ast.Name):
                    made.append(self.at(x, ast.Expr(self.visit(ast.copy_location(ast.Name(x.id, ast.Load()), x)))))
        return made

    def lambda_(self, node, outermost=False):
        parameters = self.parameters(node.args, outermost)
        self.enter(node)
        body = self.visit(node.body)
        self.leave()
        return ast.copy_location(ast.Lambda(parameters, body), node)

    def visit_Lambda(self, node):
        return self.lambda_(node)

    def comprehension(self, node):
        first = self.visit(node.generators[0].iter)
        self.enter(node)
        for k, g in enumerate(node.generators):
            if not all([isinstance(x, (ast.Name, ast.Tuple, ast.List, ast.Starred)) for x in _targets(g.target)]):
                raise Unwritable("a comprehension that writes attributes or elements", node.lineno)
            iterable = first if k == 0 else self.visit(g.iter)
            g.iter = self.ask(node, "iterate", iterable, self.pattern(g.target))
            g.target = self.visit(g.target)
            g.ifs = [self.truth(x) for x in g.ifs]
            if g.is_async:
                raise Unwritable("an asynchronous comprehension", node.lineno)
        for name in ("elt", "key", "value"):
            if hasattr(node, name):
                made = self.visit(getattr(node, name))
                hashed = name == "key" or isinstance(node, ast.SetComp)
                setattr(node, name, self.ask(node, "key", made) if hashed else made)
        self.leave()
        return node

    visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = comprehension

    def refuse(what):
        def visit(self, node):
            raise Unwritable(what, node.lineno)
        return visit

    visit_ClassDef = refuse("a class is defined inside of it")
    visit_AsyncFunctionDef = visit_AsyncFor = visit_AsyncWith = visit_Await = refuse("asynchronous code")
    visit_Match = refuse("a match statement")
    visit_TryStar = refuse("except*")
    visit_TypeAlias = refuse("a type alias")
    del refuse

    def visit_Global(self, node):
        return ast.copy_location(ast.Pass(), node)

    def visit_Nonlocal(self, node):
        mine = [name for name in node.names if any(name in own for own, _, _ in self.scopes[:-1])]
        if not mine:
            return ast.copy_location(ast.Pass(), node)
        return ast.copy_location(ast.Nonlocal([self.mangled(name) for name in mine]), node)

    # -- statements ----------------------------------------------------------------------------------------------

    def statements(self, body):
        found = []
        for statement in body:
            made = self.visit(statement)
            found += made if isinstance(made, list) else [made]
        return found

    def pattern(self, target):
        """How a target unpacks, as an expression: None for a name, a tuple for a tuple, "*" for the rest."""
        if isinstance(target, ast.Starred):
            return ast.Constant("*")
        if isinstance(target, (ast.Tuple, ast.List)):
            return ast.Tuple([self.pattern(t) for t in target.elts], ast.Load())
        return ast.Constant(None)

    def outer_pattern(self, target):
        """``pattern`` of a target whose inner tuples are unpacked later."""
        return ast.Tuple([ast.Constant("*" if isinstance(t, ast.Starred) else None) for t in target.elts], ast.Load())

    def store(self, target, value, node):
        """The statements that put a value, an expression, into a target."""
        if isinstance(target, ast.Name):
            return [self.at(node, ast.Assign([self.visit(target)], value))]
        if isinstance(target, ast.Starred):
            return self.store(target.value, value, node)
        if isinstance(target, ast.Attribute):
            return [self.at(node, ast.Expr(self.ask(node, "set_attribute", value, self.visit(target.value),
                                                    self.mangled(target.attr))))]
        if isinstance(target, ast.Subscript):
            return [self.at(node, ast.Expr(self.ask(node, "set_item", value, self.visit(target.value),
                                                    self.index(target.slice))))]
        unpacked = self.ask(node, "unpack", value, self.outer_pattern(target))
        if _has_names_alone(target):
            return [self.at(node, ast.Assign([self.names(target)], unpacked))]
        # The elements are stored from left to right: the place of one may depend on another.
        names, made = [self.temporary() for _ in target.elts], []
        places = [ast.Starred(ast.Name(name, ast.Store()), ast.Store()) if isinstance(t, ast.Starred) else
                  ast.Name(name, ast.Store()) for name, t in zip(names, target.elts)]
        made.append(self.at(node, ast.Assign([ast.Tuple(places, ast.Store())], unpacked)))
        for name, t in zip(names, target.elts):
            made += self.store(t, ast.Name(name, ast.Load()), node)
        return made

    def names(self, target):
        """A name, or a tuple of names, as a target."""
        if isinstance(target, ast.Name):
            return self.visit(target)
        return self.at(target, ast.Tuple([ast.Starred(self.visit(t.value), ast.Store()) if isinstance(t, ast.Starred)
                                          else self.visit(t) for t in target.elts], ast.Store()))

    def visit_Assign(self, node):
        value = self.visit(node.value)
        if len(node.targets) == 1:
            return self.store(node.targets[0], value, node)
        name = self.temporary()
        made = [self.at(node, ast.Assign([ast.Name(name, ast.Store())], value))]
        for target in node.targets:
            made += self.store(target, ast.Name(name, ast.Load()), node)
        return made

    def visit_AnnAssign(self, node):
        if node.value is not None:
            return self.store(node.target, self.visit(node.value), node)
        target, made = node.target, [ast.copy_location(ast.Pass(), node)]
        if isinstance(target, (ast.Attribute, ast.Subscript)):      # evaluated, but nothing is stored
            made.append(self.at(node, ast.Expr(self.visit(target.value))))
        if isinstance(target, ast.Subscript):
            made.append(self.at(node, ast.Expr(self.index(target.slice))))
        return made

    def visit_AugAssign(self, node):
        name, target = "i" + BY_NODE[type(node.op)].name.rstrip("_"), node.target
        if isinstance(target, ast.Name):
            read = self.visit(ast.copy_location(ast.Name(target.id, ast.Load()), target))
            return self.store(target, self.ask(node, "augmented", name, read, self.visit(node.value)), node)
        held, key = self.temporary(), None
        made = [self.at(node, ast.Assign([ast.Name(held, ast.Store())], self.visit(target.value)))]
        if isinstance(target, ast.Attribute):
            key, read, write = ast.Constant(self.mangled(target.attr)), "attribute", "set_attribute"
        else:
            where = self.temporary()
            made.append(self.at(node, ast.Assign([ast.Name(where, ast.Store())], self.index(target.slice))))
            key, read, write = ast.Name(where, ast.Load()), "item", "set_item"
        old = self.ask(node, read, ast.Name(held, ast.Load()), key)
        new = self.ask(node, "augmented", name, old, self.visit(node.value))
        made.append(self.at(node, ast.Expr(self.ask(node, write, new, ast.Name(held, ast.Load()), key))))
        return made

    def visit_Delete(self, node):
        made = []
        for target in node.targets:
            if isinstance(target, ast.Name):
                made.append(self.at(node, ast.Delete([self.visit(target)])))
            elif isinstance(target, ast.Attribute):
                made.append(self.at(node, ast.Expr(self.ask(node, "delete_attribute", self.visit(target.value),
                                                            self.mangled(target.attr)))))
            elif isinstance(target, ast.Subscript):
                made.append(self.at(node, ast.Expr(self.ask(node, "delete_item", self.visit(target.value),
                                                            self.index(target.slice)))))
            else:
                made += self.visit_Delete(self.at(node, ast.Delete(list(target.elts))))
        return made

    def visit_For(self, node):
        body, pattern = [], self.pattern(node.target)
        if isinstance(node.target, ast.Name) or _has_names_alone(node.target):
            target = self.names(node.target)
        else:
            name, pattern = self.temporary(), None
            target = self.at(node, ast.Name(name, ast.Store()))
            body += self.store(node.target, ast.Name(name, ast.Load()), node)
        iterable = self.ask(node, "iterate", self.visit(node.iter), pattern)
        body += self.statements(node.body)
        return ast.copy_location(ast.For(target, iterable, body, self.statements(node.orelse)), node)

    def visit_While(self, node):
        return ast.copy_location(ast.While(self.truth(node.test), self.statements(node.body),
                                           self.statements(node.orelse)), node)

    def visit_If(self, node):
        return ast.copy_location(ast.If(self.truth(node.test), self.statements(node.body),
                                        self.statements(node.orelse)), node)

    def visit_Assert(self, node):
        return ast.copy_location(ast.Assert(self.truth(node.test),
                                            None if node.msg is None else self.visit(node.msg)), node)

    def visit_With(self, node):
        if len(node.items) > 1 and any([not isinstance(item.optional_vars, (ast.Name, type(None)))
                                        for item in node.items]):
            # what one item stores, the next one may read
            inner = self.at(node, ast.With(node.items[1:], node.body))
            return self.visit_With(self.at(node, ast.With(node.items[:1], [inner])))
        items, first = [], []
        for item in node.items:
            target = item.optional_vars
            made = ast.withitem(self.ask(node, "context", self.visit(item.context_expr)), None)
            if isinstance(target, ast.Name):
                made.optional_vars = self.visit(target)
            elif target is not None:
                name = self.temporary()
                made.optional_vars = ast.Name(name, ast.Store())
                first += self.store(target, ast.Name(name, ast.Load()), node)
            items.append(made)
        return ast.copy_location(ast.With(items, first + self.statements(node.body)), node)

    def visit_Try(self, node):
        handlers = []
        for h in node.handlers:
            caught = ast.copy_location(ast.Expr(self.ask(h, "caught", h.name is not None)), h)
            kinds = None if h.type is None else self.ask(h, "classes_caught", self.later(h.type))
            handlers.append(ast.copy_location(ast.ExceptHandler(kinds, h.name and self.mangled(h.name),
                                                                [caught, *self.statements(h.body)]), h))
        body = self.statements(node.body)
        if node.finalbody or not all(map(_raises_again, node.handlers)):
            body = [self.at(node, ast.With([ast.withitem(self.ask(node, "watched"), None)], body))]
        final = self.statements(node.finalbody)
        if final:
            final.insert(0, self.at(node, ast.Expr(self.ask(node, "finished"))))
        return ast.copy_location(ast.Try(body, handlers, self.statements(node.orelse), final), node)

    def visit_Import(self, node):
        made = []
        for a in node.names:
            name = a.asname or a.name.split(".")[0]
            value = self.ask(node, "import_module", ast.Name(OUTSIDE, ast.Load()), a.name, bool(a.asname))
            made.append(self.at(node, ast.Assign([ast.Name(self.mangled(name), ast.Store())], value)))
        return made

    def visit_ImportFrom(self, node):
        made = []
        for a in node.names:
            if a.name == "*":
                raise Unwritable("from ... import *", node.lineno)
            value = self.ask(node, "import_name", ast.Name(OUTSIDE, ast.Load()), node.module or "", a.name, node.level)
            made.append(self.at(node, ast.Assign([ast.Name(self.mangled(a.asname or a.name), ast.Store())], value)))
        return made

    # -- expressions ---------------------------------------------------------------------------------------------

    def truth(self, node):
        """A condition, as a bool."""
        if isinstance(node, ast.BoolOp):
            return ast.copy_location(ast.BoolOp(node.op, [self.truth(x) for x in node.values]), node)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            return ast.copy_location(ast.UnaryOp(node.op, self.truth(node.operand)), node)
        if isinstance(node, ast.Constant):
            return node
        return self.ask(node, "truth", self.visit(node))

    def later(self, node):
        """An expression that may stay unevaluated, as a function without arguments."""
        if any(isinstance(x, (ast.NamedExpr, ast.Yield, ast.YieldFrom)) for x in ast.walk(node)):
            raise Unwritable("a := or yield behind and, or, or a comparison", node.lineno)
        return ast.copy_location(ast.Lambda(_plain_arguments([]), self.visit(node)), node)

    def visit_BoolOp(self, node):
        method = "both" if isinstance(node.op, ast.And) else "either"
        return self.ask(node, method, self.visit(node.values[0]), *[self.later(x) for x in node.values[1:]])

    def visit_UnaryOp(self, node):
        if isinstance(node.op, ast.Not):
            return self.truth(node)
        if isinstance(node.operand, ast.Constant):
            return node
        return self.ask(node, "unary", BY_NODE[type(node.op)].name, self.visit(node.operand))

    def visit_BinOp(self, node):
        if isinstance(node.left, ast.Constant) and isinstance(node.right, ast.Constant):
            return node
        return self.ask(node, "binary", BY_NODE[type(node.op)].name, self.visit(node.left), self.visit(node.right))

    def visit_Compare(self, node):
        names = [COMPARISONS[type(op)] for op in node.ops]
        if len(names) == 1:
            return self.ask(node, "compare", names[0], self.visit(node.left), self.visit(node.comparators[0]))
        pairs = [x for name, right in zip(names, node.comparators) for x in (ast.Constant(name), self.later(right))]
        return self.ask(node, "chain", self.visit(node.left), *pairs)

    def visit_IfExp(self, node):
        return ast.copy_location(ast.IfExp(self.truth(node.test), self.visit(node.body), self.visit(node.orelse)), node)

    def visit_NamedExpr(self, node):
        return ast.copy_location(ast.NamedExpr(self.visit(node.target), self.visit(node.value)), node)

    def visit_Attribute(self, node):
        return self.ask(node, "attribute", self.visit(node.value), self.mangled(node.attr))

    def index(self, node):
        if isinstance(node, ast.Slice):
            parts = [ast.Constant(None) if x is None else self.visit(x) for x in (node.lower, node.upper, node.step)]
            return self.ask(node, "sliced", *parts)
        if isinstance(node, ast.Tuple):
            return ast.copy_location(ast.Tuple([self.index(x) for x in node.elts], ast.Load()), node)
        return self.visit(node)

    def visit_Subscript(self, node):
        return self.ask(node, "item", self.visit(node.value), self.index(node.slice))

    def visit_Starred(self, node):
        return ast.copy_location(ast.Starred(self.ask(node, "elements", self.visit(node.value)), node.ctx), node)

    def visit_Call(self, node):
        if isinstance(node.func, ast.Name) and node.func.id == "super" and not node.args and not node.keywords \
                and not self.is_own("super"):
            return self.ask(node, "super_of", self.outside("__class__", node), ast.Name(self.first(node), ast.Load()))
        if isinstance(node.func, ast.Attribute) and all([_is_plain(x) for x in (
                *node.args, *[k.value for k in node.keywords])]):
            # The most frequent call asks the recorder once. Python reads the method before it evaluates the arguments.
            return self.arguments_of(node, "method", [self.visit(node.func.value),
                                                      ast.Constant(self.mangled(node.func.attr))])
        return self.arguments_of(node, "call", [self.visit(node.func)])

    def first(self, call):
        """The first argument of the function that calls ``super()``."""
        inner = [x for x in self.kinds if sys.version_info < (3, 12) or not isinstance(
            x, (ast.ListComp, ast.SetComp, ast.DictComp))][-1]
        if not isinstance(inner, ast.FunctionDef) or not inner.args.posonlyargs + inner.args.args:
            raise Unwritable("super() without an argument", call.lineno)
        return self.mangled((inner.args.posonlyargs + inner.args.args)[0].arg)

    def arguments_of(self, node, method, first):
        args, keywords = [self.visit(a) for a in node.args], [(k.arg, self.visit(k.value)) for k in node.keywords]
        if any([name is None for name, _ in keywords]) and len(keywords) > 1:
            pairs = [x for name, value in keywords for x in (ast.Constant(name), value)]
            words = [ast.keyword(None, self.ask(node, "merged", *pairs))]
        else:
            words = [ast.keyword(name, value if name else self.ask(node, "keywords", value))
                     for name, value in keywords]
        return self.ask(node, method, *first, *args, keywords=words)

    def visit_Dict(self, node):
        keys = [None if k is None else k if isinstance(k, ast.Constant) else self.ask(k, "key", self.visit(k))
                for k in node.keys]
        values = [self.visit(v) if k is not None else self.ask(node, "keywords", self.visit(v))
                  for k, v in zip(node.keys, node.values)]
        return ast.copy_location(ast.Dict(keys, values), node)

    def visit_Set(self, node):
        def key(x):
            if isinstance(x, ast.Starred):
                return self.at(x, ast.Starred(self.ask(x, "keys", self.visit(x.value)), x.ctx))
            return x if isinstance(x, ast.Constant) else self.ask(x, "key", self.visit(x))
        return ast.copy_location(ast.Set([key(x) for x in node.elts]), node)

    def visit_FormattedValue(self, node):
        spec = None if node.format_spec is None else self.visit(node.format_spec)
        return ast.copy_location(ast.FormattedValue(self.ask(node, "text", self.visit(node.value), node.conversion),
                                                    -1, spec), node)

    def visit_YieldFrom(self, node):
        return ast.copy_location(ast.YieldFrom(self.ask(node, "iterate", self.visit(node.value), None)), node)


class Outside:
    """The values that a function reads from outside by name: globals, built-in names and cells of outer functions."""

    __slots__ = ("function", "known", "places", "recorder", "space_")

    def __init__(self, recorder, function):
        self.recorder, self.function, self.space_ = recorder, function, None
        self.places = {name: k for k, name in enumerate(function.__code__.co_freevars)}
        self.known = {}

    @property
    def space(self):
        if self.space_ is None:
            self.space_ = self.recorder.globals_of(self.function)
        return self.space_

    def name(self, name):
        known = self.known
        return known[name] if name in known else known.setdefault(name, self.recorder.global_(self.space, name))

    def cell(self, name):
        return self.recorder.cell(self.function, self.places[name], name)


def made_by(make, recorder, function, defaults, kwdefaults):
    """The rewritten function of a function."""
    made = make(recorder, Outside(recorder, function))
    made.__defaults__, made.__kwdefaults__ = defaults, kwdefaults
    made.__name__, made.__qualname__ = function.__name__, function.__qualname__
    return made
