"""Cython text from rows: public functions, methods, and the derivative adapters."""
from tables import expr, schema

TENSOR_WORD = {"T": "Tensor", "O": "Tensor or None", "I": "Tensor", "J": "Tensor or None",
               "L": "sequence of Tensors"}
WORD = {"i": "int", "f": "float", "b": "bool", "s": "number", "j": "int or None",
        "g": "float or None", "d": "int", "e": "int or None", "n": "int",
        "D": "int, tuple of ints or None", "z": "sequence of ints", "Z": "sequence of ints", "t": "dtype or None",
        "w": "str", "o": "object"}


def default_text(a, spread):
    """A parameter with its default; the list of tensors that ``varargs`` names is spread out."""
    if a.letter == "L" and a.name == spread:
        return "*" + a.name
    return f"{a.name}={a.default!r}" if not a.required else a.name


def spellings(op):
    """Second names of dim and keepdim: NumPy's habits."""
    names = [a.name for a in op.row.args]
    pairs = []
    for mine, theirs in (("dim", "axis"), ("keepdim", "keepdims")):
        if mine in names:
            pairs.append((mine, theirs))
    return pairs


def parameters(op, *, out=True, first=None):
    """The parameter list of the public function, second spellings included."""
    positional, keyword = [], []
    pairs = spellings(op)
    optional = False
    for a in op.row.args:
        text = default_text(a, op.row.varargs)
        if op.row.absent and a.name in op.row.absent[0]:
            text = f"{a.name}=None"
        if a.required and (optional or any(a.name == mine for mine, _ in pairs)):
            text = f"{a.name}=None"
        if "=" in text:
            optional = True
        (keyword if a.keyword_only else positional).append(text)
    if op.row.inplace_argument and out:
        positional.append("inplace=False")
    keyword += [f"{theirs}=None" for _, theirs in pairs]
    if out:
        keyword.append("out=None")
    if first:
        positional[0] = first
    star = ["*"] if keyword and not any(text.startswith("*") for text in positional) else []
    return ", ".join(positional + star + keyword)


def docstring(op):
    row = op.row
    lines = (row.doc or f"{op.name}.").strip("\n").split("\n")
    examples = next((i for i, line in enumerate(lines) if line.startswith(">>>")), len(lines))
    text = "\n".join(lines[:examples]).rstrip()
    parts = [text, "", "Parameters", "----------"]
    for a in row.args:
        if a.is_tensor:
            parts.append(f"{a.name} : {TENSOR_WORD[a.letter]}")
        else:
            word = "{" + ", ".join(repr(c) for c in a.choices) + "}" if a.choices else WORD[a.letter]
            parts.append(f"{a.name} : {word}" + ("" if a.required else f", default {a.default!r}"))
    if row.kind == "elementwise" and len(op.tensors) > 1:
        parts += ["    The tensors broadcast against each other; numbers may stand for tensors."]
    parts += ["", "Returns", "-------"]
    if row.returns:
        parts.append(row.returns)
    elif row.fields:
        parts += [f"{f} : Tensor" for f in row.fields]
    else:
        parts.append("Tensor")
    if row.formula and not row.internal:
        parts += ["", "Notes", "-----", f"Formula: ``{row.formula}`` with x, y, z the tensors in "
                  "order."]
    if examples < len(lines):
        parts += ["", "Examples", "--------", *lines[examples:]]
    body = "\n".join(("    " + p).rstrip() for line in parts for p in line.split("\n"))
    return '    r"""' + body.strip() + '\n    """\n'


def unify(op):
    text = ""
    required = {a.name for a in op.row.args if a.required}
    defaults = {a.name: a.default for a in op.row.args}
    for mine, theirs in spellings(op):
        text += (f"    if {theirs} is not None:\n"
                 f'        {mine} = second_spelling("{op.row.called}", "{mine}", {mine}, "{theirs}", '
                 f"{theirs}, {defaults[mine]!r})\n")
        if mine in required:
            text += (f"    if {mine} is None:\n"
                     f'        raise TypeError("{op.row.called}: {mine} must be given, got None")\n')
    return text


# letter -> (when a value is not plain yet, the function of _arguments.py that makes it so)
LONG = "type({0}) is not int or not -0x8000000000000000 <= {0} <= 0x7FFFFFFFFFFFFFFF"
CHECKS = {"s": (f"type({{0}}) is not float and ({LONG})", "number"),
          "b": ("{0} is not False and {0} is not True", "flag"),
          "f": ("type({0}) is not float", "real"),
          "g": ("{0} is not None and type({0}) is not float", "real"),
          "i": (LONG, "integer"),
          "I": ("not isinstance({0}, AnyTensor)", "tensor"),
          "T": ("not isinstance({0}, AnyTensor)", "operand"),
          "L": ("type({0}) is not tuple and type({0}) is not list", "tensors")}
COMPOSITE_CHECKS = {**CHECKS, "T": CHECKS["I"], "L": ("True", "tensors"),
                    "t": ("{0} is not None", "dtype")}


def checks(op):
    """Lines that bring each parameter to the plain type that dispatch or a composite expects."""
    kinds = COMPOSITE_CHECKS if op.row.kind == "composite" else CHECKS
    text = ""
    for a in op.row.args:
        if a.letter not in kinds or (op.row.kind in ("elementwise", "view") and a.letter in "TI"):
            continue
        if a.name == op.row.varargs and a.letter == "L":
            continue                    # the composite reads them itself
        condition, function = kinds[a.letter]
        text += (f"    if {condition.format(a.name)}:\n"
                 f'        {a.name} = _arguments.{function}("{op.row.called}", "{a.name}", {a.name})\n')
    return text


def selection(op, by_name, inplace):
    """The branches of a `select` column: another value goes to another op."""
    text = ""
    tensors = ", ".join(a.name for a in op.tensors)
    for a in op.row.args:
        choice = (op.row.select or {}).get(a.name)
        if choice is None:
            continue
        if op.row.kind != "elementwise":
            text += f"    if {a.name} is not {a.default}:\n        return {choice}({tensors}, {a.name})\n"
        elif isinstance(choice, (str, tuple)):
            name, *values = (choice, a.name) if isinstance(choice, str) else choice
            args = f"({tensors}, {', '.join(values)})"
            call = (f"elementwise_inplace({by_name[name].id}, {args})" if inplace
                    else f"elementwise({by_name[name].id}, {args}, out)")
            text += (f"    if {a.name} is not {a.default} and {a.name} != {a.default}:\n"
                     f"        return {call}\n")
        else:
            text += f"    if {a.name} is not {a.default!r}:\n" if a.default is None else (
                f"    if {a.name} != {a.default!r}:\n")
            for value, name in choice.items():
                other = by_name[name]
                call = (f"elementwise_inplace({other.id}, ({tensors},))" if inplace
                        else f"elementwise({other.id}, ({tensors},), out)")
                text += f"        if {a.name} == {value!r}:\n            return {call}\n"
            allowed = ", ".join(repr(v) for v in (a.default, *choice))
            text += (f'        from ptcore._errors import ChoiceError\n'
                     f'        raise ChoiceError(f"{op.row.called}: {a.name} must be one of {allowed}, '
                     f'got {{{a.name}!r}}")\n')
    return text


def function(op, by_name):
    """The public function of a row (it is the method as well)."""
    row = op.row
    out = row.out_argument
    head = f"def {op.name}({parameters(op, out=out)}):\n" + docstring(op)
    body = unify(op) + (checks(op) if "__d" not in op.name else "")
    args = ", ".join(a.name for a in op.args)
    packed = f"({args},)" if op.args else "()"
    if row.inplace_argument:
        body += (f"    if inplace is not False and inplace:\n"
                 f"        return elementwise_inplace({op.id}, {packed})\n")
    if row.kind == "elementwise":
        if row.absent:
            none = " and ".join(f"{name} is None" for name in row.absent[0])
            body += f"    if {none} and out is None:\n        return {row.absent[1]}\n"
        body += selection(op, by_name, False)
        plain = not op.params and len(op.tensors) in (1, 2)
        if plain:
            fast = "unary" if len(op.tensors) == 1 else "binary"
            body += f"    if out is None:\n        return {fast}({op.id}, {args})\n"
        body += f"    return elementwise({op.id}, {packed}, out)\n"
    elif row.kind == "view":
        body += f"    return _views.{op.name}({op.id}, {args})\n"
    elif row.kind == "composite":
        body += (f"    if overridden({packed}):\n"
                 f"        result = interpose({op.id}, {packed}, {'out' if out else 'None'}, 0)\n"
                 f"        if result is not NotImplemented:\n            return result\n")
        body += "    try:\n"
        if out:
            inside = ", out=out if isinstance(out, AnyTensor) else None" if out == "inside" else ""
            body += (f"        if out is not None:\n"
                     f"            result = _composite.{op.name}({args}{inside})\n"
                     f"            return out if result is out else write_outs({op.id}, out, result)\n")
        body += (f"        return _composite.{op.name}({args})\n"
                 f'    except Exception as e:\n        called_as(e, "{op.row.called}")\n        raise\n')
    elif row.fields and len(row.fields) > 1 and not row.internal:
        body += f"    return packed({op.name}_result, call({op.id}, {packed}, out))\n"
    elif row.out == "cat_spec('cat', tensors, dim)":
        body += f"    return join({op.id}, {args}, out)\n"
    else:
        body += selection(op, by_name, False)
        body += f"    return call({op.id}, {packed}, {'out' if out else 'None'})\n"
    return head + body


def inplace_function(op, by_name):
    row = op.row
    head = (f"def {op.name}_({parameters(op, out=False)}):\n"
            f'    """In-place form of ``{op.name}``: writes to {op.tensors[0].name} and returns '
            f'it."""\n')
    body = (checks(op) if row.kind == "elementwise" else "") + selection(op, by_name, True)
    args = ", ".join(a.name for a in op.args)
    if row.kind != "elementwise":
        call = ", ".join(f"{a.name}={a.name}" if a.keyword_only else a.name for a in row.args)
        body = unify(op)
        body += (f"    if not isinstance({op.tensors[0].name}, AnyTensor):\n"
                 f"        raise TypeError(f'{row.called}_: {op.tensors[0].name} must be a Tensor, got '\n"
                 f"                        f'{{type({op.tensors[0].name}).__name__}}')\n")
        if row.inplace == "inside":
            body += (f"    if not overridden(({args},)):\n"
                     f"        result = _composite.{op.name}_({args})\n"
                     f"        if result is not None:\n            return result\n")
        if row.updates:
            body += f"    if over_first({op.id}, ({args},)):\n        return {op.tensors[0].name}\n"
        first, rest = (call + ", ").split(", ", 1)
        body += (f"    return overwrite({first}, {op.name}(unwritten({first}, ({args},)), {rest}), "
                 f"b\"{row.called}\")\n")
    elif not op.params and len(op.tensors) == 2:
        body += f"    return inplace_binary({op.id}, {args})\n"
    else:
        body += f"    return elementwise_inplace({op.id}, ({args},))\n"
    return head + body


def varargs_method(op):
    """A method that takes its last sizes or dims spread out: x.view(2, 3)."""
    row = op.row
    name = row.varargs
    before = [a.name for a in op.args if a.name != name]
    call = ", ".join(a.name if a.name != name else "values" for a in op.args)
    extra = f", {name}=None"
    target = {"view": f"_views.{op.name}({op.id}, {call})",
              "composite": f"_composite.{op.name}({call})"}.get(
                  row.kind, f"call({op.id}, ({call}), None)")
    return (f"def _method_{op.name}({', '.join(before)}, *{name}s{extra}):\n"
            f'    """Method form of ``{op.name}``: {name} may be spread over arguments."""\n'
            f"    values = {name}s\n"
            f"    if {name} is not None:\n        values = {name}\n"
            f"    elif len({name}s) == 1:\n        values = {name}s[0]\n"
            f"    return {target}\n")


def numpy_method(op):
    """A method that answers NumPy's function of its name: ``np.max(x, axis=0)`` are values."""
    row = op.row
    names = ", ".join(a.name for a in row.args)
    given = parameters(op).replace("out=None", "out=NOT_GIVEN")
    return (f"def _method_{op.name}({given}):\n" + docstring(op)
            + f"    if out is NOT_GIVEN:\n"
            f"        if axis is None and keepdims is None:\n"
            f"            return {op.name}({names})\n"
            f"        return {op.name}({names}, axis=axis, keepdims=keepdims)\n"
            f"    if dim is None and (axis is not None or keepdims):\n"
            f"        return _composite.{row.numpy}({row.args[0].name}, () if axis is None else axis, "
            f"keepdim=bool(keepdims), out=out)\n"
            f"    return {op.name}({names}, axis=axis, keepdims=keepdims, out=out)\n")


def functions(family, ops, by_name):
    """The module of one family's public functions."""
    text = [f'"""Generated from _ops/{family}.py: public functions and methods."""',
            "from ptcore._ops._dispatch cimport interpose, over_first, overridden",
            "from ptcore._ops._writing cimport write_outs",
            "from ptcore._ops._structured cimport call, join",
            "from ptcore._ops._elementwise cimport elementwise, elementwise_inplace, overwrite, unwritten",
            "from ptcore._ops._fast cimport binary, inplace_binary, unary",
            "from ptcore._ops cimport _views",
            "from ptcore._tensor import Tensor",
            "from ptcore._tensor cimport Tensor as AnyTensor",
            "from ptcore._ops._table import called_as, set_functions, set_spec",
            "from ptcore._ops import _arguments, _shapes",
            "from ptcore._ops._shapes import *",
            "from ptcore._ops._results import NOT_GIVEN, packed, second_spelling"]
    if any(op.row.kind == "composite" for op in ops):
        bodies = schema.bodies(family)
        text += ["from ptcore._ops import _composite"] if bodies == "_composite" else [
            "from ptcore._ops._results import Bodies", f'_composite = Bodies("ptcore._ops.{bodies}")']
    methods, public = [], {}
    register = []
    for op in ops:
        row = op.row
        if row.kind == "elementwise" and op.family == family and "__d" in op.name:
            continue
        if row.fields and len(row.fields) > 1 and not row.internal:
            text.append(f"from ptcore._ops._results import {op.name} as {op.name}_result")
        text += ["", "", f"# {family}.py: {row.signature}", function(op, by_name)]
        inplace = "None"
        if row.inplace:
            text += ["", "", inplace_function(op, by_name)]
            inplace = f"{op.name}_"
            if row.method and not row.internal:
                methods.append((f"{op.name}_", f"{op.name}_"))
                methods += [(f"{n}_", f"{op.name}_") for n in row.alias]
        if row.kind in ("structured", "linear", "bilinear", "nondifferentiable"):
            params = ", ".join(a.name for a in op.args)
            text += ["", "", f"def _spec_{op.name}({params}):", f"    return {row.out}"]
            register.append(f"set_spec({op.id}, _spec_{op.name})")
        register.append(f"set_functions({op.id}, {op.name}, {inplace})")
        if row.internal:
            continue
        if row.varargs and row.method:
            text += ["", "", varargs_method(op)]
        if row.numpy:
            text += ["", "", numpy_method(op)]
        if row.method:
            name = f"_method_{op.name}" if row.varargs or row.numpy else op.name
            methods += [(n, name) for n in (op.name, *row.alias)]
        for path in row.public:
            where, _, name = path.rpartition(".")
            public.setdefault(where, []).append((name, op.name))
            if not where:
                public[where] += [(n, op.name) for n in row.alias]
            if inplace != "None":
                public.setdefault(where, []).append((name + "_", inplace))
    text += ["", "", *register, "", "# What this family adds to Tensor."]
    text += [f'Tensor.{m} = {f}' for m, f in methods]
    text += ["", "# What this family adds to each public namespace.", "PUBLIC = {"]
    for where, names in public.items():
        text.append(f'    "{where}": {{')
        text += [f'        "{n}": {f},' for n, f in names]
        text.append("    },")
    text.append("}")
    return "\n".join(text) + "\n"


# -- derivatives -------------------------------------------------------------------------------

def loads(op, names, needed_by, indent="    "):
    """Lines that read the saved values and parameters a rule uses into locals."""
    text = ""
    for name in names:
        if name in op.slots:
            slot, kind = op.slots[name]
            mask = op.saved[slot][1]
            read = f"node.saved({slot})"
            if kind == "data" and needed_by:
                text += f"{indent}{name} = {read} if needs & {mask} else None\n"
            else:
                text += f"{indent}{name} = {read}\n"
        else:
            params = [a.name for a in op.params]
            if name in params:
                text += f"{indent}{name} = node.params[{params.index(name)}]\n"
    return text


def text_rule(op):
    """vjp_<op>(node, g, needs) from the texts of the row."""
    texts = op.rule[1]
    used = []
    for t in texts:
        if t is not None:
            data, meta = expr.uses(t)
            used += [n for n in sorted(data | meta) if n not in used]
    complex_too = any(t.startswith("complex") for t in op.row.types)
    names = [n for n in used if n in op.slots or n in [a.name for a in op.params]]
    body = loads(op, names, True)
    results = []
    elementwise = op.row.kind == "elementwise" and op.row.partial is not None
    numbers = [a.name for a in op.params]
    for i, t in enumerate(texts):
        if t is None:
            results.append("None")
            continue
        bit = f"needs & {1 << i}"
        body += f"    r{i} = None\n    if {bit}:\n"
        if not elementwise:
            body += f"        r{i} = {expr.to_python(t, op.name)}\n"
        elif t.strip() == "1":
            body += f"        r{i} = g\n"
        elif t.strip() == "-1":
            body += f"        r{i} = -g\n"
        elif t.strip() == "0":
            body += f"        r{i} = zeros_for(g, g.shape)\n"
        else:
            conj = (lambda s: f"conj_of({s})") if complex_too else (lambda s: s)
            if i in op.derived:
                fused = op.derived[i]
                tensors, params = fused.uses
                args = ", ".join(["g", *tensors, *params])
                body += (f"        if fusible(g):\n"
                         f"            r{i} = elementwise({fused.id}, ({args},), None)\n"
                         f"        else:\n")
                for n in tensors:
                    body += f"            {n} = lift({n}, g)\n"
                body += f"            r{i} = g * {conj('(' + expr.to_python(t, op.name, numbers) + ')')}\n"
            else:
                body += f"        r{i} = g * {conj(expr.to_python(t, op.name, numbers))}\n"
        results.append(f"r{i}")
    packed = results[0] if len(texts) == 1 else f"({', '.join(results)})"
    return (f"# {op.family}.py: {op.name}: {texts}\n"
            f"def vjp_{op.name}(Node node, g, int needs):\n{body}    return {packed}\n")


def function_rule(op):
    """vjp_<op>(node, g, needs) that calls the hand-written rule."""
    _, module, node = op.rule
    names = [a.arg for a in node.args.args]
    body = loads(op, [n for n in names if n not in ("g", "gs", "needs")], False)
    return (f"# autograd/_rules/{module}.py: {node.name}\n"
            f"def vjp_{op.name}(Node node, g, int needs):\n"
            f"    {'gs = g' if 'gs' in names else ''}\n{body}"
            f"    return _{module}.{node.name}({', '.join(names)})\n").replace("    \n", "")


def derivatives(family, ops, by_name):
    """The module of one family's derivative adapters."""
    ops = [op for op in ops if op.rule is not None and op.family == family]
    text = [f'"""Generated: derivatives of _ops/{family}.py, from row texts and rule files."""',
            "from ptcore._node cimport Node",
            "from ptcore._ops._elementwise cimport elementwise",
            "from ptcore._ops._table import set_vjp",
            "from ptcore.autograd._helpers cimport conj_of, fusible, lift"]
    needed = {}
    for op in ops:
        if op.rule[0] == "function":
            needed.setdefault(None, set()).add(op.rule[1])
        else:
            for t in op.rule[1]:
                for name in expr.called(t) if t else ():
                    if name in by_name:
                        needed.setdefault(by_name[name].family, set()).add(name)
    for module in sorted(needed.pop(None, ())):
        text.append(f"from ptcore.autograd._rules import {module} as _{module}")
    helpers = {n for op in ops if op.rule[0] == "text" for t in op.rule[1] if t
               for n in expr.called(t)} - set(by_name) - {"conj_of"}
    if any("0" in op.rule[1] for op in ops if op.rule[0] == "text"):
        helpers.add("zeros_for")
    if helpers:
        text.append(f"from ptcore.autograd._helpers import {', '.join(sorted(helpers))}")
    for where, names in sorted(needed.items()):
        text.append(f"from ptcore._ops._functions_{where} import {', '.join(sorted(names))}")
    for op in ops:
        text += ["", "", text_rule(op) if op.rule[0] == "text" else function_rule(op)]
    text += [""] + [f"set_vjp({op.id}, vjp_{op.name})" for op in ops]
    return "\n".join(text) + "\n"
