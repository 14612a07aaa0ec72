"""The source of a function, with a proof that the function's code was compiled from it.

Captures and scripted functions both read it here.
"""
import __future__

import ast
import copy
import inspect
import linecache
import sys

_FUTURE = 0
for _name in __future__.all_feature_names:
    _FUTURE |= getattr(__future__, _name).compiler_flag
_TRIES = 6                          # lines to try as the end of a definition behind its last line with code
CALL = "_ptcore_call"       # name of the dispatcher in functions that shallow.py rewrites: it gives what is called
KEEPS_FRAMES = {"locals", "globals", "vars", "dir", "eval", "exec", "super", "_getframe"}
PYTEST = {"@pytest_ar", "@py_builtins"}         # imports in files whose assertions pytest rewrites
_files = {}                         # file name -> (its lines, the tree)


class NoSource(Exception):
    """A function without source, or one whose source has changed since it was compiled."""


class _Calls(ast.NodeTransformer):
    """Replaces what is called by what the dispatcher gives for it, in nested functions as well. Classes stay as they
    are: their methods are captured from their own source."""

    def visit_ClassDef(self, node):
        return node

    def visit_Call(self, node):
        self.generic_visit(node)
        name = node.func.id if isinstance(node.func, ast.Name) else node.func.attr if isinstance(
            node.func, ast.Attribute) else None
        if name in KEEPS_FRAMES:
            return node
        node.func = ast.copy_location(ast.Call(ast.Name(CALL, ast.Load()), [node.func], []), node.func)
        return node


def with_calls(found):
    """A definition nested in a rewritten function, with its calls replaced in the same way."""
    body = found.body if isinstance(found, ast.Lambda) else [_Calls().visit(statement) for statement in found.body]
    if isinstance(found, ast.Lambda):
        return ast.copy_location(ast.Lambda(found.args, _Calls().visit(body)), found)
    return ast.copy_location(type(found)(name=found.name, args=found.args, body=body, decorator_list=[], returns=None,
                                         type_params=[]), found)


def lines_of(code):
    """The lines of the file of a code object, as ``find`` has read them."""
    return linecache.getlines(code.co_filename)


def was_rewritten(space):
    """Whether a loader that is not Python's own made the module with these globals. Loaders of test tools change the
    code, so that no text compiles to it."""
    loader = getattr(space.get("__spec__"), "loader", None)
    return loader is not None and type(loader).__module__.partition(".")[0] not in ("_frozen_importlib_external",
                                                                                   "importlib", "zipimport")


def find(code, is_proved=True):
    """The definition or the lambda that a code object was compiled from, with the line numbers of its file.

    Parameters
    ----------
    code : code
    is_proved : bool, default: True
        Whether the text must compile to this code. Without that the text at the function's line is taken.

    Raises
    ------
    NoSource
        If there is no text, or a text that compiles to another code object.
    """
    name = code.co_filename
    for again in (False, True):
        if again:
            linecache.checkcache(name)
        lines = linecache.getlines(name)
        if not lines or code.co_firstlineno > len(lines):
            continue
        for found in _candidates(code, lines):
            if not is_proved:
                return found
            if CALL in code.co_freevars:    # nested in a function whose calls were replaced
                if _same(compiled_from(with_calls(copy.deepcopy(found)), code), code):
                    return found
                continue
            called = _called_globals(found, code)
            for imported in (called, ()) if called else ((),):
                if _same(compiled_from(found, code, imported), code):
                    return found
            if called and _same(compiled_from(found, code, called & _imported(name, lines)), code):
                return found
            rewritten = _as_pytest_rewrites(found, code)
            if rewritten is not None and any([_same(compiled_from(rewritten, code, PYTEST | imported), code)
                                              for imported in (called, set(), called & _imported(name, lines))]):
                return found
    if not lines:
        raise NoSource(f"no source for {code.co_name}: {name} cannot be read")
    raise NoSource(f"the source of {code.co_name} has changed since it was compiled, or is rewritten by a tool")


def _as_pytest_rewrites(found, code):
    """The definition with its assertions as pytest rewrites them in test files; None for a code without such ones."""
    rewrite = sys.modules.get("_pytest.assertion.rewrite")
    if rewrite is None or not any([not PYTEST.isdisjoint(c.co_names) for c in (code, *_all_codes(code))]):
        return None
    module = ast.Module([copy.deepcopy(found)], [])
    rewrite.rewrite_asserts(module, b"")
    return module.body[-1]


def _candidates(code, lines):
    """Candidates for the definition: the text that begins at the function's line, then those of its name, or all
    lambdas, of the file: an editor or a tool that loads modules again may have moved it."""
    for tree in _blocks(code, lines):
        if code.co_name == "<lambda>":
            found = _lambdas(tree, code)
            if found:
                yield from found
                return
        elif tree.body:
            made = tree.body[0]
            made = made.body[0] if isinstance(made, ast.If) else made
            if _is_named(made, code):
                yield made
    tree = _whole(code.co_filename, lines)
    if tree is not None:                # copies, since the rewriter changes the tree
        found = [node for node in ast.walk(tree) if (
            isinstance(node, ast.Lambda) if code.co_name == "<lambda>" else _is_named(node, code))]
        found.sort(key=lambda node: node.lineno != code.co_firstlineno)
        yield from map(copy.deepcopy, found)


def _is_named(node, code):
    return isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name == code.co_name


def _whole(name, lines):
    """The tree of a file, or None."""
    known = _files.get(name)
    if known is None or known[0] is not lines:
        try:
            known = _files[name] = lines, _parsed("".join(lines))
        except SyntaxError:
            known = lines, None
    return known[1]


def _called_globals(found, code):
    """Names in calls of the form ``name.method()`` that may be global. If an import binds the name, Python compiles the
    attribute's read to another instruction."""
    names = set(code.co_names).union(*[c.co_names for c in _all_codes(code)])
    return {node.func.value.id for node in ast.walk(found) if isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Name)
            and node.func.value.id in names}


def _all_codes(code):
    for c in code.co_consts:
        if inspect.iscode(c):
            yield c
            yield from _all_codes(c)


def _imported(name, lines):
    """The names that imports outside of functions bind."""
    found, todo = set(), [_whole(name, lines)]
    while todo:
        node = todo.pop()
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            found |= {(a.asname or a.name).split(".")[0] for a in node.names}
        elif node is not None and not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.expr)):
            todo += ast.iter_child_nodes(node)
    return found


def _lambdas(tree, code):
    return [node for node in ast.walk(tree) if isinstance(node, ast.Lambda) and node.lineno == code.co_firstlineno]


def _parsed(text):
    """The tree of a text, with comments of types where they can be read."""
    try:
        return ast.parse(text, type_comments=True)
    except SyntaxError:
        return ast.parse(text)


def _blocks(code, lines):
    """Parsed texts from the function's first line to a line behind its last one with code."""
    start = code.co_firstlineno - 1
    first = lines[start]
    indent = len(first) - len(first.lstrip())
    end = _last_line(code)
    for _ in range(_TRIES):
        while end < len(lines):             # up to the next line whose indent ends the block
            line = lines[end]
            text = line.strip()
            if text and not text.startswith("#") and len(line) - len(line.lstrip()) <= indent:
                break
            end += 1
        text = "".join(lines[start:end])
        try:
            tree = _parsed("if 1:\n" + text if indent else text)
        except SyntaxError:
            end += 1
            if end > len(lines):
                return
            continue
        yield ast.increment_lineno(tree, start - (1 if indent else 0))
        return


def _last_line(code):
    last = max([line for _, _, line in code.co_lines() if line is not None], default=code.co_firstlineno)
    return max([last] + [_last_line(c) for c in code.co_consts if inspect.iscode(c)])


def class_of(code):
    """The name of the class whose body contains a function, for mangling private names; or None."""
    parts = code.co_qualname.split(".")
    k = len(parts) - 2
    while k >= 0 and parts[k] == "<locals>":
        k -= 2
    return parts[k] if k >= 0 else None


def compiled_from(found, code, imported=(), more=()):
    """Compiles a definition inside scopes like those around ``code``, in a file with these imports; returns its code
    object, or None. ``more``: names of the scopes around it beside the free ones of ``code``."""
    if isinstance(found, ast.Lambda):
        inner = ast.Lambda(_bare(found.args), found.body)
        body = ast.Expr(inner)
    else:
        inner = body = type(found)(name=found.name, args=_bare(found.args), body=found.body, decorator_list=[],
                                   returns=None, type_params=[])
    ast.copy_location(inner, found)
    within = class_of(code)
    if within is not None:
        body = ast.ClassDef(name=within, bases=[], keywords=[], body=[body], decorator_list=[], type_params=[])
    outside = sorted({within or code.co_name} - {*code.co_freevars, "<lambda>"})
    body = [ast.Global(outside), body] if outside else [body]
    outer = ast.FunctionDef(name="_outer", args=_arguments((*code.co_freevars, *more)), body=body, decorator_list=[],
                            type_params=[])
    imports = [ast.Import([ast.alias(n)]) for n in sorted(imported)]
    tree = ast.fix_missing_locations(ast.Module([outer, *imports], []))
    try:
        made = compile(tree, code.co_filename, "exec", flags=code.co_flags & _FUTURE, dont_inherit=True)
    except (SyntaxError, ValueError):
        return None
    return _within(made, code.co_name, 3 if within is not None else 2)


def _within(code, name, depth):
    for c in code.co_consts:
        if inspect.iscode(c):
            if depth == 1:
                if c.co_name == name:
                    return c
            else:
                found = _within(c, name, depth - 1)
                if found is not None:
                    return found
    return None


def _arguments(names):
    return ast.arguments(posonlyargs=[], args=[ast.arg(n) for n in names if n != "__class__"], vararg=None,
                         kwonlyargs=[], kw_defaults=[], kwarg=None, defaults=[])


def _bare(a):
    """The parameters without defaults and annotations, which are evaluated outside of the function."""
    def plain(arg):
        return None if arg is None else ast.copy_location(ast.arg(arg.arg), arg)
    return ast.arguments(posonlyargs=[plain(x) for x in a.posonlyargs], args=[plain(x) for x in a.args],
                         vararg=plain(a.vararg), kwonlyargs=[plain(x) for x in a.kwonlyargs],
                         kw_defaults=[None] * len(a.kwonlyargs), kwarg=plain(a.kwarg), defaults=[])


def _same(made, code):
    """Whether two code objects are equal except for places and the flag of nested functions."""
    if made is None:
        return False
    mask = ~(inspect.CO_NESTED | _FUTURE)
    if (made.co_code != code.co_code or made.co_names != code.co_names or made.co_varnames != code.co_varnames
            or made.co_freevars != code.co_freevars or made.co_cellvars != code.co_cellvars
            or made.co_flags & mask != code.co_flags & mask or made.co_argcount != code.co_argcount
            or made.co_posonlyargcount != code.co_posonlyargcount or made.co_kwonlyargcount != code.co_kwonlyargcount
            or made.co_exceptiontable != code.co_exceptiontable or len(made.co_consts) != len(code.co_consts)):
        return False
    return all([_same(a, b) if inspect.iscode(a) and inspect.iscode(b) else type(a) is type(b) and (
        repr(a) == repr(b) or _is_qualname(a, b, code)) for a, b in zip(made.co_consts, code.co_consts)])


def _is_qualname(a, b, code):
    """Whether two constants are the qualified name in a class body's code. It depends on the place of the class."""
    return not code.co_flags & inspect.CO_OPTIMIZED and type(a) is str and (
        a.rpartition(".")[2] == b.rpartition(".")[2] == code.co_name)
