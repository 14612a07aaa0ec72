"""Ops: the mapping ``ops`` from names to rows, read lazily by family."""
import importlib
import weakref

_rows = {}                          # name -> Row; includes ops registered at run time
_derived = {}                       # name -> Row of a fused gradient, filled at the first request
_by_id = {}                         # id -> Row; an id is never reused
_declared_rows = None               # all of them by name, in the order of declaration, once they were asked for
_offered = weakref.WeakKeyDictionary()        # row -> the arguments that interpreters get


def _declared(family):
    """The rows that a family declares."""
    from ptcore._ops.table import schema
    return schema.declared(importlib.import_module(f"ptcore._ops.{family}.rows"))


def _find(name):
    """A row, whose family is read if it is a built-in op; None if there is none."""
    found = _rows.get(name)
    if found is None and _declared_rows is None:
        from ptcore._ops.table import ids as _table
        try:
            family = _table.family_of(name)
        except KeyError:
            return None
        _rows.update({r.name: r for r in _declared(family)})
        found = _rows.get(name)
    return found


def row(op):
    """The row of an op, by its id or its name; KeyError if there is none.

    A fused gradient, such as ``gelu__d0``, has a row too: it is derived from the row of ``gelu``.
    """
    if type(op) is int:
        found = _by_id.get(op)
        if found is None:
            from ptcore._ops.table.ids import op_name
            found = _by_id[op] = row(op_name(op))
        return found
    name = op
    found = _derived.get(name) or _find(name)
    if found is None:
        from ptcore._ops.table import schema
        source = _find(name.rpartition("__d")[0])
        if source is not None:
            _derived.update({r.name: r for r in schema.derived(source).values()})
        found = _derived[name]
    return found


def rows():
    """All rows, in the order of declaration.

    Fused gradients are left out: nobody declared them, and the users of all rows (pages, stubs, tests, the
    names of ``ptcore.ops``) need the ops that users call.
    """
    global _declared_rows
    if _declared_rows is None:
        from ptcore._ops.table import ids as _table
        declared = {r.name: r for family in _table.families() for r in _declared(family)}
        _rows.update(declared)
        _declared_rows = declared
    known = list(_rows.items())         # another thread may register an op meanwhile
    return [*_declared_rows.values(), *[r for name, r in known if name not in _declared_rows]]


def function(op, inplace=False):
    """The function, or its in-place form, that calls an op given by its id or its name."""
    from ptcore._ops.table import ids as _table
    return _table.function_of(op if type(op) is int else _table.op_id(op), inplace)


def arguments(row):
    """The parameters of an op in the order that interpreters get them.

    A parameter that selects another op is left out: it keeps its default.
    """
    found = _offered.get(row)
    if found is None:
        found = _offered[row] = [a for a in row.args if a.name not in (row.select or ())]
    return found


def bound(row, args):
    """Splits arguments in the order of ``arguments`` into positional and keyword arguments of the row's function."""
    positional, keyword = [], {}
    for a, value in zip(arguments(row), args):
        if a.keyword_only:
            keyword[a.name] = value
        elif row.varargs == a.name and a.letter == "L":
            positional += value
        else:
            positional.append(value)
    return positional, keyword


def wrapped(row, args):
    """args with every dim non-negative and Dims a tuple, as dispatch hands them to a rule.

    The op must have accepted the arguments already: nothing is checked here.
    """
    result, ndim = list(args), None
    for k, a in enumerate(arguments(row)):
        value = result[k]
        if a.is_tensor:
            lead = value[0] if a.letter == "L" else value
            if ndim is None and hasattr(lead, "ndim"):
                ndim = lead.ndim
        elif a.letter == "n":
            result[k] = value % (ndim + 1)
        elif a.letter in "de" and value is not None:
            result[k] = value % max(ndim, 1)
        elif a.letter in "DR":
            if value is None or (a.letter == "D" and isinstance(value, (tuple, list)) and not value):
                result[k] = tuple(range(ndim))
            else:
                dims = value if isinstance(value, (tuple, list)) else (value,)
                result[k] = tuple(d % ndim for d in dims) if ndim else ()
    return tuple(result)
