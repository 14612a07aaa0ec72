"""The source of a function that runs: found, and proved to be what the function was compiled from."""
import __future__

import ast
import copy
import inspect
import linecache

_FUTURE = 0
for _name in __future__.all_feature_names:
    _FUTURE |= getattr(__future__, _name).compiler_flag
_TRIES = 6                          # lines behind the last one with code at which a definition may end
CALL = "_ptcore_call"               # the dispatcher of functions that run eagerly, see shallow
KEEPS_FRAMES = {"locals", "globals", "vars", "dir", "eval", "exec", "super", "_getframe"}
_files = {}                         # file name -> (its lines, the tree)


class NoSource(Exception):
    """A function without source, or one whose source has changed since it was compiled."""


class _Calls(ast.NodeTransformer):
    """Writes each call as one of the dispatcher, in functions that are defined inside as well. Classes stay as they
    are: their methods are captured from their own source."""

    def visit_ClassDef(self, node):
        return node

    def visit_Call(self, node):
        self.generic_visit(node)
        name = node.func.id if isinstance(node.func, ast.Name) else node.func.attr if isinstance(
            node.func, ast.Attribute) else None
        if name in KEEPS_FRAMES:
            return node
        return ast.copy_location(ast.Call(ast.Name(CALL, ast.Load()), [node.func, *node.args], node.keywords), node)


def with_calls(found):
    """A definition that stands inside of a function that was written so."""
    body = found.body if isinstance(found, ast.Lambda) else [_Calls().visit(statement) for statement in found.body]
    if isinstance(found, ast.Lambda):
        return ast.copy_location(ast.Lambda(found.args, _Calls().visit(body)), found)
    return ast.copy_location(type(found)(name=found.name, args=found.args, body=body, decorator_list=[], returns=None,
                                         type_params=[]), found)


def find(code):
    """The definition or the lambda that a code object was compiled from, with the line numbers of its file.

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
            if CALL in code.co_freevars:    # defined inside of a function that runs with its calls handed on
                if _same(compiled_from(with_calls(copy.deepcopy(found)), code), code):
                    return found
                continue
            called = _called_globals(found, code)
            for imported in (called, ()) if called else ((),):
                if _same(compiled_from(found, code, imported), code):
                    return found
            if called and _same(compiled_from(found, code, called & _imported(code.co_filename, lines)), code):
                return found
    if not lines:
        raise NoSource(f"no source for {code.co_name}: {name} cannot be read")
    raise NoSource(f"the source of {code.co_name} has changed since it was compiled, or is rewritten by a tool")


def _candidates(code, lines):
    """Nodes that may be it: the text that begins at the function's line, then all lambdas of the file."""
    for tree in _blocks(code, lines):
        if code.co_name != "<lambda>":
            made = tree.body[0]
            made = made.body[0] if isinstance(made, ast.If) else made
            if isinstance(made, (ast.FunctionDef, ast.AsyncFunctionDef)) and made.name == code.co_name:
                yield made
            return
        found = _lambdas(tree, code)
        if found:
            yield from found
            return
    if code.co_name == "<lambda>":
        tree = _whole(code.co_filename, lines)
        if tree is not None:
            yield from map(copy.deepcopy, _lambdas(tree, code))     # who rewrites it writes to it


def _whole(name, lines):
    """The tree of a file, or None."""
    known = _files.get(name)
    if known is None or known[0] is not lines:
        try:
            known = _files[name] = lines, ast.parse("".join(lines))
        except SyntaxError:
            known = lines, None
    return known[1]


def _called_globals(found, code):
    """Names that may be global and whose methods are called: of those that an import gave, Python reads the attribute
    by another instruction."""
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
    """The names that imports outside of functions give."""
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


def _blocks(code, lines):
    """Parsed texts that begin at the function's first line and end behind its last one with code."""
    start = code.co_firstlineno - 1
    first = lines[start]
    indent = len(first) - len(first.lstrip())
    end = _last_line(code)
    for _ in range(_TRIES):
        while end < len(lines):             # up to the next line that is no part of the block by its indent
            line = lines[end]
            text = line.strip()
            if text and not text.startswith("#") and len(line) - len(line.lstrip()) <= indent:
                break
            end += 1
        text = "".join(lines[start:end])
        try:
            tree = ast.parse("if 1:\n" + text if indent else text)
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
    """The name of the class in whose body a function stands, which mangles its private names; or None."""
    parts = code.co_qualname.split(".")
    k = len(parts) - 2
    while k >= 0 and parts[k] == "<locals>":
        k -= 2
    return parts[k] if k >= 0 else None


def compiled_from(found, code, imported=()):
    """The code object that a definition has inside the scopes that ``code`` has around it, in a file that imports
    names."""
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
    outer = ast.FunctionDef(name="_outer", args=_arguments(code.co_freevars), body=body, decorator_list=[],
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
    """The parameters without defaults and annotations, which run outside of the function."""
    def plain(arg):
        return None if arg is None else ast.copy_location(ast.arg(arg.arg), arg)
    return ast.arguments(posonlyargs=[plain(x) for x in a.posonlyargs], args=[plain(x) for x in a.args],
                         vararg=plain(a.vararg), kwonlyargs=[plain(x) for x in a.kwonlyargs],
                         kw_defaults=[None] * len(a.kwonlyargs), kwarg=plain(a.kwarg), defaults=[])


def _same(made, code):
    """Whether two code objects do the same: all but places and the flag of standing inside another function."""
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
    """Whether two constants are the full name of the class whose body a code object is: it says where that stands."""
    return not code.co_flags & inspect.CO_OPTIMIZED and type(a) is str and (
        a.rpartition(".")[2] == b.rpartition(".")[2] == code.co_name)
