"""Reference pages from rows: one reStructuredText page per family. Text and signature of an op are its
docstring's, which autodoc reads; the notes below them are the row's.

    python emit_docs.py OUTPUT_DIR
"""
import re
import sys
from pathlib import Path

KIND = {
    "elementwise": "Elementwise: the tensors broadcast.",
    "linear": "Linear in its first tensor.",
    "bilinear": "Linear in each of its two tensors.",
    "view": "A view: the result shares the input's memory.",
    "composite": "Made of other ops.",
    "nondifferentiable": "Without derivative.",
}


RULES = Path(__file__).resolve().parent.parent / "autograd" / "rules"
LETTERS = ("In the derivatives the tensors are ``x``, ``y``, ``z`` in the order of the signature, ``out`` is the result, "
           "``g`` its gradient and ``t`` the tangent of the tensor named.")


def rule_of(name):
    """(file, function) of the rule that ``@vjp(name)`` marks."""
    for path in sorted(RULES.glob("*.py")):
        for words, function in re.findall(r"^@vjp\((.*?)\)\n(?:@.*\n)*def (\w+)", path.read_text(), re.M):
            if f'"{name}"' in words:
                return path.name, function
    raise ValueError(f"{name}: no rule in {RULES}")


def derivative(op):
    """What the row declares: texts, or the function that is the rule."""
    row = op.row
    if row.kind in ("composite", "nondifferentiable"):
        return []
    names, notes = [a.name for a in op.tensors], []
    for title, texts in (("Derivative for", row.partial), ("Gradient for", row.vjp),
                         ("Tangent by", row.jvp if isinstance(row.jvp, (list, tuple)) else None)):
        notes += [f"No derivative for {name}." if text.startswith("not_implemented(") else f"{title} {name}: ``{text}``"
                  for name, text in zip(names, texts or ()) if text]
    if row.partial is None and row.vjp is None:
        if row.kind == "elementwise":
            return ["Without derivative."]
        file, function = rule_of(op.name)
        notes.insert(0, f"Gradient: ``{function}`` of ``ptcore/autograd/rules/{file}``.")
    return list(dict.fromkeys(notes)) or ["Without derivative."]


def entry(op):
    row = op.row
    path = row.public[0] if row.public else f"Tensor.{row.method_name}"
    lines = [f".. auto{'function' if row.public else 'method'}:: ptcore.{path}", ""]
    notes = [KIND[row.kind]] if row.kind in KIND else []
    notes.append("Dtypes: " + ", ".join(row.types) + ".")
    if row.inplace:
        notes.append(f"In place: ``{f'Tensor.{row.method_name}' if row.method else path}_``.")
    others = [*row.alias, *row.public[1:]]
    if others:
        notes.append("Other names: " + ", ".join(f"``{n}``" for n in others) + ".")
    notes += derivative(op)
    return lines + [f"   * {note}" for note in notes] + [""]


def page(family, ops):
    title = f"{family} ops"
    text = [title, "=" * len(title), "", f".. Generated from ptcore/_ops/{family}/rows.py.", "", LETTERS, ""]
    for op in ops:
        if not op.row.internal:
            text += entry(op)
    return "\n".join(text) + "\n"


def pages(ops):
    """File name -> text."""
    families = {}
    for op in ops:
        families.setdefault(op.family, []).append(op)
    found = {f"{family}.rst": page(family, members) for family, members in families.items()
             if any(not op.row.internal for op in members)}
    index = ["Ops", "===", "", ".. toctree::", ""] + [f"   {name[:-4]}" for name in found]
    return {**found, "all.rst": "\n".join(index) + "\n"}


if __name__ == "__main__":
    import tables
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in pages(tables.read()).items():
        (folder / name).write_text(text)
