"""The parameters and docstrings of an op's functions, derived from its row.

Read at build time by the generator and the stubs, at run time by ``inspect`` and ``help``. Standard library only.
"""

TENSOR_WORD = {"T": "Tensor", "O": "Tensor or None", "I": "Tensor", "J": "Tensor or None",
               "L": "sequence of Tensors"}
WORD = {"i": "int", "f": "float", "b": "bool", "s": "number", "j": "int or None",
        "g": "float or None", "d": "int", "e": "int or None", "n": "int",
        "D": "int, tuple of ints or None", "R": "int or sequence of ints",
        "z": "sequence of ints", "Z": "sequence of ints", "t": "dtype or None",
        "w": "str", "o": "object"}
# The functions of a row: the plain one, the one that ends in "_", and a method that differs from the plain function.
FUNCTION, INPLACE, METHOD = "function", "inplace", "method"
SECOND = (("dim", "axis"), ("keepdim", "keepdims"), ("split_size_or_sections", "split_size"))
REQUIRED = object()
POSITIONAL, REST, KEYWORD = "positional", "rest", "keyword"


class Parameter:
    """One parameter of a function; ``second`` is the name of another parameter for which it is a second name."""

    __slots__ = ("arg", "default", "kind", "name", "second")

    def __init__(self, name, kind, default, arg=None, second=None):
        self.name, self.kind, self.default, self.arg, self.second = name, kind, default, arg, second


def second_names(row):
    """Second names: NumPy's names of dim and keepdim, and the name that PyTorch's method split uses."""
    names = [a.name for a in row.args]
    return [(mine, theirs) for mine, theirs in SECOND if mine in names]


def parameters(row, form=FUNCTION):
    """The parameters of one of a row's functions, in the order in which they are bound: the row's arguments,
    ``inplace``, second names, ``out``."""
    if form == METHOD and row.varargs:
        return _spread(row)
    if row.kind == "custom":
        return [Parameter(a.name, KEYWORD if a.keyword_only else POSITIONAL, REQUIRED if a.required else a.default, a)
                for a in row.args]
    pairs = second_names(row)
    result, optional = [], False
    for a in row.args:
        if a.letter == "L" and a.name == row.varargs:
            result.append(Parameter(a.name, REST, (), a))
            continue
        default = REQUIRED if a.required else a.default
        if row.absent and a.name in row.absent[0]:
            default = None
        if a.required and (optional or any(a.name == mine for mine, _ in pairs)):
            default = None
        optional = optional or default is not REQUIRED
        result.append(Parameter(a.name, KEYWORD if a.keyword_only else POSITIONAL, default, a))
    out = row.out_argument and form != INPLACE
    if row.inplace_argument and out:
        result.append(Parameter("inplace", POSITIONAL, False))
    result += [Parameter(theirs, KEYWORD, None, second=mine) for mine, theirs in pairs]
    if out:
        result.append(Parameter("out", KEYWORD, None))
    return result


def _spread(row):
    """The parameters of a method with sizes or dims as separate last arguments: ``x.view(2, 3)``."""
    result = [Parameter(a.name, POSITIONAL, REQUIRED, a) for a in row.args if a.name != row.varargs]
    (a,) = [a for a in row.args if a.name == row.varargs]
    return [*result, Parameter(a.name, REST, (), a)]


def signature(row, form):
    """The ``inspect.Signature`` of one of a row's functions."""
    import inspect
    word = {POSITIONAL: inspect.Parameter.POSITIONAL_OR_KEYWORD, REST: inspect.Parameter.VAR_POSITIONAL,
            KEYWORD: inspect.Parameter.KEYWORD_ONLY}
    found = []
    for p in parameters(row, form):
        spread = p.kind == REST and form == METHOD and row.varargs
        found.append(inspect.Parameter(
            p.name + "s" if spread else p.name, word[p.kind],
            default=inspect.Parameter.empty if p.default is REQUIRED or p.kind == REST else p.default))
        if spread:
            found.append(inspect.Parameter(p.name, inspect.Parameter.KEYWORD_ONLY, default=None))
    return inspect.Signature(sorted(found, key=lambda p: p.kind))


def docstring(row, form):
    """The docstring of one of a row's functions."""
    if form == INPLACE:
        does = "becomes the result, and is returned" if row.family == "view" else "is written to, and returned"
        return f"In-place form of ``{row.called}``: {row.args[0].name} {does}."
    if form == METHOD and row.varargs:
        return f"Method form of ``{row.name}``: {row.varargs} may be spread over arguments."
    if "\nParameters\n----------\n" in (row.doc or ""):
        return row.doc.strip()          # the text is complete
    lines = (row.doc or f"{row.name}.").strip("\n").split("\n")
    examples = next((i for i, line in enumerate(lines) if line.startswith(">>>")), len(lines))
    parts = ["\n".join(lines[:examples]).rstrip(), "", "Parameters", "----------"]
    for a in row.args:
        if a.is_tensor:
            parts.append(f"{a.name} : {TENSOR_WORD[a.letter]}")
        else:
            word = "{" + ", ".join(repr(c) for c in a.choices) + "}" if a.choices else WORD[a.letter]
            if a.letter == "R" and a.default is None:
                word += " or None"
            parts.append(f"{a.name} : {word}" + ("" if a.required else f", default {a.default!r}"))
    if row.kind == "elementwise" and len(row.tensors) > 1:
        parts += ["    The tensors broadcast against each other; numbers may stand for tensors."]
    parts += ["", "Returns", "-------"]
    if row.returns:
        parts.append(row.returns)
    elif row.fields:
        parts += [f"{f} : Tensor" for f in row.fields]
    else:
        parts.append("Tensor")
    if row.formula and not row.internal:
        parts += ["", "Notes", "-----", f"Formula: ``{row.formula}`` with x, y, z the tensors in order."]
    if examples < len(lines):
        parts += ["", "Examples", "--------", *lines[examples:]]
    return "\n".join(parts).strip()
