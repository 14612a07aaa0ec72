"""The source of a function: where it is, what its names mean, and errors that show it."""
import __future__

import ast
import builtins
import functools
import inspect
import operator
import types as python_types

from ptcore.jit._script.types import AnnotationError, from_annotation

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
            lines, first = inspect.getsourcelines(function)
        except (OSError, TypeError, IndexError) as error:
            raise ScriptError(f"script: there is no source of {self.name}: {error}; script reads the source of "
                              "functions that are defined in files") from None
        self.first, self.lines = first, lines
        text, inside = "".join(lines), lines[0][:1].isspace()
        if inside:                      # a method keeps its indent, so that columns are those of the file
            text = "if True:\n" + text
        try:
            tree = _parsed(text)
        except SyntaxError as error:
            raise ScriptError(f"script: the source of {self.name} cannot be read alone: {error}; lambdas inside "
                              "expressions are not scripted, give them a def") from None
        if inside:
            tree = ast.increment_lineno(tree, -1).body[0]
        self.node = self._own(tree)
        self._check()
        self.known = {}                 # names that are not bound yet, such as a class that is being made
        self._closure = dict(zip(self.code.co_freevars, function.__closure__ or ()))

    def _own(self, tree):
        node = tree.body[0] if tree.body else None
        if isinstance(node, ast.FunctionDef):
            return node
        if isinstance(node, ast.AsyncFunctionDef):
            raise ScriptError(f"script: {self.name} is an async function; script has functions by def")
        raise NotSupportedError(f"script: {self.name} is a lambda ({self.file}:{self.first}); script compiles "
                                "functions that are written by def")

    def _check(self):
        """Compiles the file as it is now, and checks that the function's code is among the result."""
        lines, _ = inspect.findsource(self.function)
        text = "".join(lines)
        key = self.file, text
        if key not in _compiled:
            if len(_compiled) >= _FILES:
                _compiled.clear()
            try:
                made = compile(text, self.file, "exec", flags=self.code.co_flags & _FUTURE, dont_inherit=True)
            except SyntaxError:
                made = None
            _compiled[key] = [] if made is None else [*_codes(made)]
        if self.code in _compiled[key] or _was_rewritten(self.function):
            return
        raise ScriptError(f"script: the source of {self.name} in {self.file} is not what was imported: the file was "
                          "changed since; import it again")

    # -- places ------------------------------------------------------------------------------------

    def place(self, node):
        """Where a node of the tree is in the file."""
        line = getattr(node, "lineno", 1)
        text = self.lines[line - 1].rstrip("\n") if line <= len(self.lines) else ""
        raw = text.encode()
        column = len(raw[:getattr(node, "col_offset", 0)].decode(errors="ignore"))
        if getattr(node, "end_lineno", line) == line and getattr(node, "end_col_offset", None) is not None:
            end = len(raw[:node.end_col_offset].decode(errors="ignore"))
        else:
            end = len(text)
        return Place(self.file, self.first + line - 1, column, end, text, self.name)

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


_compiled = {}                  # (file name, text) -> the code objects in it
_FILES = 16
_FUTURE = functools.reduce(operator.or_, [getattr(__future__, name).compiler_flag
                                          for name in __future__.all_feature_names])


def _parsed(text):
    """The tree of a text, with comments of types where they can be read."""
    try:
        return ast.parse(text, type_comments=True)
    except SyntaxError:
        return ast.parse(text)


def _codes(code):
    for c in code.co_consts:
        if isinstance(c, python_types.CodeType):
            yield c
            yield from _codes(c)


def _was_rewritten(function):
    """Whether a loader that is not Python's own made the module. Loaders of test tools change the code."""
    spec = function.__globals__.get("__spec__")
    loader = getattr(spec, "loader", None)
    return loader is not None and type(loader).__module__.partition(".")[0] not in ("_frozen_importlib_external",
                                                                                   "importlib", "zipimport")
