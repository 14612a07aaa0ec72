"""Cython text from rows: the derivative adapters."""
from tables import expr


def loads(op, names, needed_by, indent="    ", remade=False):
    """Lines that read the saved values and parameters a rule uses into locals. ``remade``: an output that was written to
    is None."""
    text = ""
    for name in names:
        if name in op.slots:
            slot, kind = op.slots[name]
            mask = op.saved[slot][1]
            read = f"saved_unless_written(node, {slot})" if remade and name.startswith("out") else f"node.saved({slot})"
            if kind == "data" and needed_by:
                text += f"{indent}{name} = {read} if needs & {mask} else None\n"
            else:
                text += f"{indent}{name} = {read}\n"
            if name in op.more_slots:
                slot = op.more_slots[name]
                text += f"{indent}held = node.saved({slot}) if needs & {op.saved[slot][1]} else None\n"
                text += f"{indent}if held is not None:\n{indent}    {name} = held\n"
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
    used += [n for n in expr.TENSOR_NAMES if op.again and n in op.slots and n not in used]
    names = [n for n in used if n in op.slots or n in [a.name for a in op.params]]
    kept = op.row.exact and op.again
    body = loads(op, [n for n in names if n != "x" or not kept], True)
    if kept:            # half types have no output: an operand that was written to since is an error there
        slot = op.slots["x"][0]
        body += (f"    x = saved_unless_written(node, {slot})\n"
                 f"    if x is None and out is None:\n        written_operand(node, {slot})\n")
    if op.again and not kept:
        left = iter(expr.TENSOR_NAMES)
        given = [next(left) if a.is_tensor else f"node.params[{op.params.index(a)}]" for a in op.args]
        body += (f"    if out is None and needs & {op.saved[op.slots['out'][0]][1]}:\n"
                 f"        out = elementwise_of({op.id}, widened(({', '.join(given)},)))\n")
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
            if i in op.derived:
                fused = op.derived[i]
                tensors, params = fused.row.uses
                args = ", ".join([f"summed(node, {i}, g)", *tensors, *params])
                loop = f"elementwise_of({fused.id}, ({args},))"
                if op.again:
                    loop = f"once(node, {i}, {loop}, g)"
                first = "if"
                if op.row.exact:
                    first = "elif"
                    text = expr.to_python(expr.times("wide", op.row.exact), op.name, numbers, "wide")
                    body += (f"        if {'x is not None' if kept else 'is_real(x)'}:\n"
                             f"            if fusible(g):\n"
                             f"                r{i} = elementwise_of({op.derived.get('x', fused).id}, (summed(node, {i}, g), x))\n"
                             f"            else:\n"
                             f"                wide = widened(g)\n"
                             f"                x = widened(lift(x, wide))\n"
                             f"                r{i} = once(node, {i}, {text}, g)\n")
                body += (f"        {first} fusible(g):\n"
                         f"            r{i} = {loop}\n"
                         f"        else:\n"
                         f"            wide = widened(g)\n")
                for n in tensors:
                    body += f"            {n} = widened(lift({n}, wide))\n"
                text = f"wide * conj_of({expr.to_python(t, op.name, numbers, 'wide')})" if complex_too else (
                    expr.to_python(expr.times("wide", t), op.name, numbers, "wide"))
                body += f"            r{i} = once(node, {i}, {text}, g)\n"
            elif complex_too:
                body += f"        r{i} = summed(node, {i}, g) * conj_of({expr.to_python(t, op.name, numbers)})\n"
            else:
                text = expr.times(f"summed(node, {i}, g)", t)
                body += f"        r{i} = {expr.to_python(text, op.name, numbers)}\n"
        results.append(f"r{i}")
    packed = results[0] if len(texts) == 1 else f"({', '.join(results)})"
    return (f"# {op.family}/rows.py: {op.name}: {texts}\n"
            f"def vjp_{op.name}(Node node, g, int needs):\n{body}    return {packed}\n")


def function_rule(op):
    """vjp_<op>(node, g, needs) that calls the hand-written rule."""
    _, module, node = op.rule
    names = [a.arg for a in node.args.args]
    body = loads(op, [n for n in names if n not in ("g", "gs", "needs")], False, remade=node.remade)
    return (f"# autograd/rules/{module}.py: {node.name}\n"
            f"def vjp_{op.name}(Node node, g, int needs):\n"
            f"    {'gs = g' if 'gs' in names else ''}\n{body}"
            f"    return _{module}.{node.name}({', '.join(names)})\n").replace("    \n", "")


def derivatives(family, ops, by_name):
    """The module of one family's derivative adapters."""
    ops = [op for op in ops if op.rule is not None and op.rule != ("formula",) and op.family == family]
    text = [f'"""Generated: derivatives of _ops/{family}/rows.py, from row texts and rule files."""',
            "from ptcore._node cimport Node",
            "from ptcore._ops.call.elementwise cimport elementwise_of",
            "from ptcore._ops.table.ids import set_vjp",
            "from ptcore._ops.halves cimport widened",
            "from ptcore.autograd.helpers cimport conj_of, fusible, is_real, lift, once, summed"]
    modules, needed = set(), set()
    for op in ops:
        if op.rule[0] == "function":
            modules.add(op.rule[1])
        else:
            needed |= {name for t in (*op.rule[1], op.row.exact) if t
                       for name in expr.called(expr.to_python(t, op.name)) if name in by_name}
    text += [f"from ptcore.autograd.rules import {module} as _{module}" for module in sorted(modules)]
    if any(op.rule[2].remade if op.rule[0] == "function" else op.row.exact and op.again for op in ops):
        text.append("from ptcore._ops.history import saved_unless_written, written_operand")
    helpers = {n for op in ops if op.rule[0] == "text" for t in op.rule[1] if t
               for n in expr.called(t)} - set(by_name) - {"conj_of"}
    if any("0" in op.rule[1] for op in ops if op.rule[0] == "text"):
        helpers.add("zeros_for")
    if helpers:
        text.append(f"from ptcore.autograd.helpers import {', '.join(sorted(helpers))}")
    if needed:
        text.append(f"from ptcore._ops.functions import {', '.join(sorted(needed))}")
    for op in ops:
        text += ["", "", text_rule(op) if op.rule[0] == "text" else function_rule(op)]
    text += [""] + [f"set_vjp({op.id}, vjp_{op.name})" for op in ops]
    return "\n".join(text) + "\n"
