"""The functions of rows as data: the C table that OpFunction reads, the modules of public names."""
import json

from tables import OPS, schema, signature

FORMS = ("unary", "binary", "elementwise", "structured", "view", "composite", "inplace_binary",
         "inplace_elementwise", "inplace_other", "inplace_view", "numpy")
ROLES = (signature.FUNCTION, signature.INPLACE, signature.METHOD)
NONE = 255
RESULTS = (OPS / "results.pyx").read_text()

# letter -> how a value is made plain (plain_of in functions.pyx); what is not here, dispatch reads itself.
CHECKS = {"s": "s", "b": "b", "f": "f", "g": "g", "i": "i"}
TENSOR_CHECKS = {"elementwise": {}, "view": {}, "composite": {"T": "X", "I": "X", "O": "O", "J": "O", "L": "L", "t": "t"}}
STRUCTURED_CHECKS = {"T": "T", "I": "X", "L": "l"}


class Pool:
    """Values by number, each once."""

    def __init__(self):
        self.items = []

    def __getitem__(self, item):
        key = (type(item), item)
        if key not in self.items:
            self.items.append(key)
        return self.items.index(key)


def text(value):
    return "NULL" if value is None else json.dumps(value)


def default(value):
    """A pt_value: kind, number, text."""
    if value is None or isinstance(value, bool):
        return f"{{'{str(value)[0]}', 0, 0, NULL}}"
    if isinstance(value, int):
        return f"{{'i', {value}, 0, NULL}}"
    if isinstance(value, float):
        return f"{{'f', 0, {value!r}, NULL}}"
    if isinstance(value, str):
        return f"{{'s', 0, 0, {json.dumps(value)}}}"
    if isinstance(value, tuple):        # of ints
        return f"{{'t', {len(value)}, 0, {json.dumps(','.join(map(str, value)))}}}"
    if value is NOT_GIVEN:
        return "{'n', 0, 0, NULL}"
    raise TypeError(f"no default can be {value!r}")


NOT_GIVEN = type("NotGiven", (), {"__hash__": lambda self: 0})()


def form_of(op, role):
    row = op.row
    plain = not op.params and len(op.tensors) in (1, 2)
    if role == signature.INPLACE:
        if row.kind != "elementwise":
            return "inplace_view" if row.kind == "view" else "inplace_other"
        return "inplace_binary" if plain and len(op.tensors) == 2 else "inplace_elementwise"
    if role == signature.METHOD and row.numpy:
        return "numpy"
    if row.kind in ("view", "composite"):
        return row.kind
    if row.kind == "elementwise":
        return {1: "unary", 2: "binary"}[len(op.tensors)] if plain else "elementwise"
    return "structured"


def place(op, role):
    """(module, qualified name) under which a function is found."""
    row = op.row
    suffix = "_" if role == signature.INPLACE else ""
    if role == signature.METHOD or (not row.public and row.method and not row.internal):
        return "ptcore", f"Tensor.{row.method_name}{suffix}"
    if not row.public:
        return "ptcore._ops.functions", row.name + suffix
    where, _, name = row.public[0].rpartition(".")
    return ("ptcore." + where if where else "ptcore"), name + suffix


def extra(op, role):
    """What a form needs beside the op: see pt_function_spec."""
    row = op.row
    if role == signature.METHOD and row.numpy:
        return row.numpy
    if row.kind == "composite":
        return f"ptcore._names.spellings:{row.name}" if row.spells else f"ptcore._ops.{op.family}.{row.file}:{row.name}"
    if row.absent:
        return row.absent[1]
    for choice in (row.select or {}).values():
        if isinstance(choice, dict):
            return ",".join(f"{value}={name}" for value, name in choice.items())
        return choice
    return None


def functions_of(op):
    """The roles for which a row has a function."""
    row = op.row
    roles = [signature.FUNCTION]
    if row.inplace:
        roles.append(signature.INPLACE)
    if row.method and not row.internal and (row.numpy or row.varargs):
        roles.append(signature.METHOD)
    return roles


def spec(op, role, names, values, slots):
    """One line of the table; its slots go to `slots`."""
    row = op.row
    found = signature.parameters(row, role)
    numpy = role == signature.METHOD and row.numpy
    where = {p.name: k for k, p in enumerate(found)}
    checks = {**CHECKS, **TENSOR_CHECKS.get(row.kind, STRUCTURED_CHECKS)}
    first = len(slots)
    pairs = dict(signature.second_names(row))
    for p in found:
        value = p.default
        if numpy and p.name == "out":
            value = NOT_GIVEN
        required = value is signature.REQUIRED or (role == signature.METHOD and p.kind == signature.REST) or (p.arg is not None and p.arg.required and p.name in pairs)
        check = checks.get(p.arg.letter, ".") if p.arg is not None and p.kind != signature.REST else "."
        if len(slots) == first and role == signature.INPLACE:
            check = "."         # the entry says that it must be a Tensor
        slots.append(f"{{{names[p.name]}, {NONE if required else values[value]}, "
                     f"{where[p.second] if p.second else NONE}, '{check}'}}")
    rest = next((k for k, p in enumerate(found) if p.kind == signature.REST), NONE)
    module, qualname = place(op, role)
    choice = next((where[name] for name in row.select or ()), NONE)
    absent = where[row.absent[0][0]] if row.absent else NONE
    result = op.name if row.fields and len(row.fields) > 1 and not row.internal and row.kind != "composite" else None
    if result is not None:
        made = f"_result_type({', '.join(map(json.dumps, (result, *row.fields)))})"
        if f"\n{result} = {made}\n" not in RESULTS:
            raise ValueError(f"{row.name}: the class of its results is missing in _ops/results.pyx: {made}")
    # A public function has the name that messages say: an op may have taken the row's.
    name = (row.called.replace(".", "_") if row.public or row.method_name != row.name else row.name)
    name += "_" if role == signature.INPLACE else ""
    if len(found) > 28:
        raise ValueError(f"{row.name}: more parameters than OpFunction binds")
    return (f"    {{{text(name)}, {text(qualname)}, {text(module)}, {text(extra(op, role))}, {text(result)}, "
            f"pt_slots + {first}, {op.id}, {FORMS.index(form_of(op, role))}, {len(found)}, "
            f"{sum(p.kind == signature.POSITIONAL for p in found)}, {len(op.args)}, {rest}, "
            f"{int(role == signature.METHOD and bool(row.varargs))}, {where.get('out', NONE)}, "
            f"{where.get('inplace', NONE)}, {choice}, {absent}, {ROLES.index(role)}, "
            f"{int(row.inplace == 'inside' if role == signature.INPLACE else row.out_argument == 'inside')}, "
            f"{int(row.wide)}}},")


def table(ops):
    """_functions.h: every function of every row."""
    names, values = Pool(), Pool()
    slots, lines = [], []
    for op in ops:
        for role in functions_of(op):
            lines.append(spec(op, role, names, values, slots))
    return "\n".join([
        "/* Generated: the functions of the op table. */", '#include "call/op_function.h"', "",
        "static const char *const pt_names[] = {", *[f"    {text(n)}," for _, n in names.items], "};",
        f"enum {{ PT_N_NAMES = {len(names.items)}, PT_N_VALUES = {len(values.items)}, "
        f"PT_N_FUNCTIONS = {len(lines)} }};",
        "typedef struct pt_value { char kind; long long i; double f; const char *text; } pt_value;",
        "static const pt_value pt_values[] = {", *[f"    {default(v)}," for _, v in values.items], "};",
        "static const pt_slot pt_slots[] = {", *[f"    {s}," for s in slots], "};",
        "static const pt_function_spec pt_function_specs[] = {", *lines, "};"]) + "\n"


def names(ops):
    """Namespace -> [(public name, function)]; "Tensor": the methods."""
    found = {}
    for op in ops:
        row = op.row
        if row.internal:
            continue
        roles = functions_of(op)
        if row.method:
            own = f"_method_{op.name}" if signature.METHOD in roles else op.name
            found.setdefault("Tensor", []).extend((n, own) for n in (row.method_name, *row.alias))
            if row.inplace:
                found["Tensor"] += [(f"{n}_", f"{op.name}_") for n in (row.method_name, *row.alias)]
        for path in row.public:
            where, _, name = path.rpartition(".")
            place = found.setdefault(where, [])
            place.append((name, op.name))
            if not where:
                place += [(n, op.name) for n in row.alias]
            if row.inplace:
                place.append((f"{name}_", f"{op.name}_"))
    return found


def name_module(where, pairs):
    """One of the plain modules of public names."""
    if where == "Tensor":
        text = ['"""Generated from the op rows: the methods of Tensor that are ops."""',
                "from ptcore._ops import functions as _f", "from ptcore._tensor import Tensor", ""]
        return "\n".join(text + [f"Tensor.{n} = _f.{own}" for n, own in pairs]) + "\n"
    title = f"ptcore.{where}" if where else "ptcore"
    text = [f'"""Generated from the op rows: the functions of {title} that are ops."""',
            "from ptcore._ops.functions import (  # noqa: F401"]
    text += [f"    {own}," if own == n else f"    {own} as {n}," for n, own in sorted(set(pairs))]
    return "\n".join([*text, ")", "", f"__all__ = {sorted({n for n, _ in pairs})}"]) + "\n"


def spellings(ops):
    """spellings.py: the bodies of rows that spell others."""
    by_name = {op.name: op.row for op in ops}
    text = ['"""Generated from the op rows: functions that are others with parameters of their own."""',
            "from ptcore._ops import functions as _f", "from ptcore._ops.checked import reduction_word"]
    for op in ops:
        if not op.row.spells:
            continue
        base, values = op.row.spells
        letters, given, left_out = {a.name: a.letter for a in op.row.args}, [], False
        for a in by_name[base].args:
            value = values.get(a.name, a.name if a.name in letters else None)
            if value == "reduction" and letters[value] == "i":
                value = f'reduction_word("{op.row.called}", reduction)'
            if value is not None:
                given.append(f"{a.name}={value}" if left_out or a.keyword_only else value)
            left_out = left_out or value is None
        text += ["", "", f"def {op.name}({', '.join(letters)}):", f"    return _f.{base}({', '.join(given)})"]
    return "\n".join(text) + "\n"


MODULES = {"": "root", "Tensor": "methods", "nn.functional": "functional", "linalg": "linalg", "special": "special",
           "fft": "fft"}
