"""The compiler: the source of one function or method becomes a graph."""
import ast
import inspect

from ptcore.jit._script.calls import Calls
from ptcore.jit._script.expressions import Expressions
from ptcore.jit._script.frames import Frame
from ptcore.jit._script.methods import Methods
from ptcore.jit._script.source import NotSupportedError, Source
from ptcore.jit._script.statements import EXIT, RETURN, Statements
from ptcore.jit._script.types import INT, NONE, TENSOR, holds, is_subtype, unify_all
from ptcore.jit._script.values import Mod, Parameter, Val

__all__ = ["Compiler"]


class Compiler(Statements, Expressions, Calls, Methods):
    """Compiles a function.

    Parameters
    ----------
    function : function
        Of Python.
    module : ScriptModule, optional
        Whose method it is.
    cls : Type, optional
        The scripted class whose method it is.
    defined_in : type, optional
        The class of Python that defines the method.

    Attributes
    ----------
    graph : Graph
    parameters : list of Parameter
        Without ``self`` of a module, with ``self`` of a class.
    result : Type
    """

    def __init__(self, function, module=None, cls=None, defined_in=None):
        self.source = Source(function)
        self.module, self.cls, self.defined_in = module, cls, defined_in
        if cls is not None:
            self.source.known[cls.cls.__name__] = cls.cls
        self.place = self.source.place(self.source.node)
        self.frame = Frame()
        self.returns, self.returned = None, []
        self.depth = 0
        self.written_out, self.number, self.last_type, self.leaving = False, None, None, {}

    def compile(self):
        node = self.source.node
        self.parameters = self.read_parameters(node)
        for p in self.parameters:
            made = self.frame.input(p.name, p.type)
            made.target = p.name
            if p.has_default:
                made.args = (p.default,)
            if p.keyword_only:
                made.meta["keyword_only"] = True
            made.meta["where"] = self.place.where
            self.frame.vars[p.name], self.frame.types[p.name] = Val(made, p.type), p.type
            self.frame.annotated.add(p.name)
        if self.module is not None:
            self.frame.vars[node.args.args[0].arg] = Mod("", self.module)
        self.frame.vars[EXIT] = Val(0, INT)
        self.block(node.body)
        self.finish(node)
        self.graph = self.frame.graph
        return self

    def finish(self, node):
        """Writes the result; a function whose end is reached returns None."""
        if not self.frame.exited:
            self.returned.append(NONE)
            if self.returns is not None and not is_subtype(NONE, self.returns):
                raise self.source.place(node).error(
                    f"{self.source.name} must return {self.returns}, but its end can be reached without `return`")
        value = self.frame.lookup(RETURN)
        arg = self.frame.local(value.arg) if value is not None else None
        if self.returns is not None:
            self.result = self.returns
        elif not self.returned:
            self.result = NONE
        else:
            self.result = unify_all(self.returned)
            if self.result is None:
                kinds = ", ".join(dict.fromkeys(map(str, self.returned)))
                raise self.source.place(node).error(f"{self.source.name} returns values of several types: {kinds}; "
                                                    "annotate the result, with Union or Any if it is so")
        out = self.frame.graph.output(arg, self.result)
        out.meta["where"] = self.place.where

    def read_parameters(self, node):
        a = node.args
        if a.vararg is not None or a.kwarg is not None:
            star = a.vararg or a.kwarg
            with self.at(star):
                raise self.error("*args and **kwargs are not supported in script. Supported instead: a list, or "
                                 "arguments one by one", NotSupportedError)
        trees = [*a.posonlyargs, *a.args]
        signature = inspect.signature(self.source.function)
        comment = self.comment_types(node, len(trees))
        made = []
        for k, tree in enumerate([*trees, *a.kwonlyargs]):
            if k == 0 and (self.module is not None or self.cls is not None):
                if self.cls is not None:
                    made.append(Parameter(tree.arg, self.cls))
                continue
            if comment is not None:
                t = comment[0][k - (len(trees) - len(comment[0]))]
            else:
                t = TENSOR if tree.annotation is None else self.source.annotation(tree.annotation)
            default = signature.parameters[tree.arg].default
            has = default is not inspect.Parameter.empty
            if has and not holds(t, default):
                default = self.fitting_default(tree, t, default)
            made.append(Parameter(tree.arg, t, has, default if has else None, tree in a.kwonlyargs))
        if comment is not None:
            self.returns = comment[1]
        elif node.returns is not None:
            self.returns = self.source.annotation(node.returns)
        return made

    def fitting_default(self, tree, t, default):
        from ptcore.jit._script.types import given
        try:
            return given(t, default)
        except TypeError:
            with self.at(tree):
                inferred = "" if tree.annotation is not None else " (an argument without an annotation is a Tensor)"
                raise self.error(f"the default of {tree.arg!r} must be of type {t}{inferred}, not "
                                 f"{type(default).__name__}") from None

    def comment_types(self, node, n):
        """Types from a comment ``# type: (int, Tensor) -> Tensor``, as Python 2 had them."""
        if not node.type_comment:
            return None
        try:
            tree = ast.parse(node.type_comment, mode="func_type")
        except SyntaxError:
            raise self.error(f"the comment of types {node.type_comment!r} cannot be read") from None
        for x in ast.walk(tree):
            if hasattr(x, "lineno"):
                x.lineno, x.col_offset, x.end_lineno, x.end_col_offset = (
                    node.lineno, node.col_offset, node.end_lineno, node.end_col_offset)
        return [self.source.annotation(x) for x in tree.argtypes], self.source.annotation(tree.returns)
