"""The source of a function in script: what its names mean, and errors that show a place in it."""
import ast
import builtins
import types as python_types

from ptcore.jit._script.types import AnnotationError, from_annotation
from ptcore.jit._source import NoSource, find, lines_of, was_rewritten

__all__ = ["NotSupportedError", "Place", "ScriptError", "Source"]


class ScriptError(RuntimeError):
    """A program that script does not compile; the message shows the line."""


class NotSupportedError(ScriptError):
    """Python that script does not support; the message names the alternative."""


class Place:
    """A place in a source: a file, a line and columns."""

    __slots__ = ("column", "end", "file", "function", "line", "text")

    def __init__(self, file, line, column, end, text, function):
        self.file, self.line, self.column, self.end, self.text, self.function = file, line, column, end, text, function

    def error(self, message, kind=ScriptError):
        """An error with a message that shows the place."""
        mark = " " * self.column + "^" * max(1, self.end - self.column)
        return kind(f"{message}\n  File \"{self.file}\", line {self.line}, column {self.column + 1}, in "
                    f"{self.function}\n    {self.text}\n    {mark}")

    @property
    def where(self):
        """The file, line and function, which nodes keep."""
        return self.file, self.line, self.function


class Source:
    """The source of a Python function. It is read and never run.

    Parameters
    ----------
    function : function
        Of Python.

    Raises
    ------
    ScriptError
        If there is no source, or it is another function's because the file was changed after the import.
    """

    def __init__(self, function):
        if hasattr(function, "__wrapped__"):
            raise NotSupportedError(f"script: {getattr(function, '__qualname__', function)} is wrapped by a decorator, "
                                    "which would be left out: script reads what the function itself says. Write what "
                                    "the decorator does into it, as in `with no_grad():`")
        if not isinstance(function, python_types.FunctionType):
            raise ScriptError(f"script: {function!r} is no function of Python and has no source")
        self.function, self.code = function, function.__code__
        self.name, self.file = function.__qualname__, self.code.co_filename
        try:
            self.node = find(self.code, is_proved=not was_rewritten(function.__globals__))
        except NoSource as error:
            raise ScriptError(f"script: {error}; script reads the source of functions that are defined in "
                              "files") from None
        if isinstance(self.node, ast.AsyncFunctionDef):
            raise ScriptError(f"script: {self.name} is an async function; script has functions by def")
        if isinstance(self.node, ast.Lambda):
            raise NotSupportedError(f"script: {self.name} is a lambda ({self.file}:{self.node.lineno}); script "
                                    "compiles functions that are written by def")
        self.lines = lines_of(self.code)
        self.known = {}                 # names that are not bound yet, such as a class that is being made
        self._closure = dict(zip(self.code.co_freevars, function.__closure__ or ()))

    # -- places ------------------------------------------------------------------------------------

    def place(self, node):
        """Where a node of the tree is in the file."""
        line = getattr(node, "lineno", self.node.lineno)
        text = self.lines[line - 1].rstrip("\n") if line <= len(self.lines) else ""
        raw = text.encode()
        column = len(raw[:getattr(node, "col_offset", 0)].decode(errors="ignore"))
        if getattr(node, "end_lineno", line) == line and getattr(node, "end_col_offset", None) is not None:
            end = len(raw[:node.end_col_offset].decode(errors="ignore"))
        else:
            end = len(text)
        return Place(self.file, line, column, end, text, self.name)

    # -- names -------------------------------------------------------------------------------------

    def outside(self, name):
        """The meaning of a name outside the function; raises NameError."""
        if name in self.known:
            return self.known[name]
        if name in self._closure:
            try:
                return self._closure[name].cell_contents
            except ValueError:
                raise NameError(f"the variable {name} of the function around is not set yet") from None
        found = self.function.__globals__
        if name in found:
            return found[name]
        if hasattr(builtins, name):
            return getattr(builtins, name)
        raise NameError(f"name {name!r} is not defined")

    def annotation(self, node):
        """The type of an annotation in the source."""
        place = self.place(node)
        try:
            return from_annotation(self.evaluate(node), lambda text: self.evaluate(ast.parse(text, mode="eval").body))
        except (AnnotationError, NameError, AttributeError, SyntaxError) as error:
            raise place.error(f"annotation: {error}") from None

    def evaluate(self, node):
        """An annotation's object; only names, attributes, subscripts and ``|`` are evaluated."""
        if isinstance(node, ast.Name):
            if node.id == "T_co":
                raise AnnotationError("type variables are not supported")
            return self.outside(node.id)
        if isinstance(node, ast.Attribute):
            return getattr(self.evaluate(node.value), node.attr)
        if isinstance(node, ast.Constant):
            if isinstance(node.value, str):
                return self.evaluate(ast.parse(node.value, mode="eval").body)
            return node.value
        if isinstance(node, ast.Subscript):
            base = self.evaluate(node.value)
            items = node.slice
            if isinstance(items, ast.Tuple):
                index = tuple([self.evaluate(x) for x in items.elts])
            else:
                index = self.evaluate(items)
            try:
                return base[index]
            except TypeError as error:
                raise AnnotationError(str(error)) from None
        if isinstance(node, ast.Tuple):
            return tuple([self.evaluate(x) for x in node.elts])
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
            try:
                return self.evaluate(node.left) | self.evaluate(node.right)
            except TypeError as error:
                raise AnnotationError(str(error)) from None
        raise AnnotationError(f"{ast.unparse(node)} is no type")
