"""Reference pages from rows: one reStructuredText page per family. Text and signature of an op are its
docstring's, which autodoc reads; the notes below them are the row's.

    python emit_docs.py OUTPUT_DIR
"""
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


def derivative(op):
    row = op.row
    if row.partial:
        names = [a.name for a in op.tensors]
        return [f"Derivative for {name}: ``{text}``" for name, text in zip(names, row.partial)
                if text and not text.startswith("not_implemented(")]
    return []


def entry(op):
    row = op.row
    path = row.public[0] if row.public else f"Tensor.{op.name}"
    lines = [f".. auto{'function' if row.public else 'method'}:: ptcore.{path}", ""]
    notes = [KIND[row.kind]] if row.kind in KIND else []
    notes.append("Dtypes: " + ", ".join(row.types) + ".")
    if row.inplace:
        notes.append(f"In place: ``{f'Tensor.{op.name}' if row.method else path}_``.")
    others = [*row.alias, *row.public[1:]]
    if others:
        notes.append("Other names: " + ", ".join(f"``{n}``" for n in others) + ".")
    notes += derivative(op)
    return lines + [f"   * {note}" for note in notes] + [""]


def page(family, ops):
    title = f"{family} ops"
    text = [title, "=" * len(title), "", f".. Generated from ptcore/_ops/{family}/rows.py.", ""]
    for op in ops:
        if not op.row.internal and "__d" not in op.name:
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
