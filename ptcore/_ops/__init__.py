"""Ops: the mapping ``ops`` from names to rows, read lazily by family."""
import importlib

_families = ("arithmetic", "math", "activation", "compare", "reduction", "view", "copy", "index",
             "linalg", "normalize", "loss", "scan", "sort", "random", "composite")
_rows = {}                          # name -> Row; ops registered at run time stand here too
_loaded = False


def _load():
    global _loaded
    from ptcore._ops import _schema
    for family in _families:
        _schema.collect(None)
        importlib.import_module(f"ptcore._ops.{family}")
        for r in _schema.collect(family):
            _rows[r.name] = r
    _loaded = True


def row(name):
    """The row of an op; KeyError if there is none."""
    if not _loaded:
        _load()
    return _rows[name]


def rows():
    """All rows, in the order of declaration."""
    if not _loaded:
        _load()
    return list(_rows.values())


def function(name, inplace=False):
    """The function that calls an op, or its in-place form."""
    from ptcore._ops import _table
    return _table.function_of(_table.op_id(name), inplace)


def run(op, args, inplace=False):
    """Calls an op, or its in-place form, on arguments in the order that interpreters get them.

    A parameter that selects another op is not among them: it keeps its default.
    """
    own = row(op)
    positional, keyword = [], {}
    values = iter(args)
    for a in own.args:
        if a.name in (own.select or ()):
            continue
        value = next(values)
        if a.keyword_only:
            keyword[a.name] = value
        elif own.varargs == a.name and a.letter == "L":
            positional += value
        else:
            positional.append(value)
    return function(op, inplace)(*positional, **keyword)
