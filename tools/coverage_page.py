"""``python tools/coverage_page.py``: write doc/source/reference/coverage.md, which of PyTorch's names there are.

Needs PyTorch. A name is the same where every phase of its entries in the op database passes (tests/ops/op_db/table.tsv;
run this after the table was written anew), where tests/test_parity_names.py has a case of that name or
tests/ops/test_parity_ops.py compares its row, or where coverage_reasons.py names a test that holds it against PyTorch.
What is there without such a proof is called not proven.
"""
import argparse
import csv
import importlib
import re
import sys
import types
import warnings
from pathlib import Path

import coverage_reasons as reasons

ROOT = Path(__file__).resolve().parent.parent
TABLE = ROOT / "tests" / "ops" / "op_db" / "table.tsv"
PAGE = ROOT / "doc" / "source" / "reference" / "coverage.md"
MODULES = ("", "Tensor", "nn.functional", "linalg", "special", "fft", "random", "autograd", "serialization", "cpu",
           "accelerator", "cuda", "cuda.memory", "cuda.comm", "cuda.graphs", "cuda.nvtx", "cuda.profiler", "cuda.nccl",
           "cuda.tunable", "cuda.gds", "cuda.jiterator", "utils.checkpoint")
# The phases of an entry that speak of its function, method, operator and in-place form alike, and of each alone.
SHARED = ("forward", "layouts", "meta", "backward", "second", "errors")
OWN = {"forward": ("out",), "method": ("method",), "operator": ("operator",), "inplace": ("inplace",)}
SAME, MORE, DIFFERS, UNPROVEN, ABSENT = STATES = "same", "same, and more", "differs", "not proven", "absent"


def at(root, path):
    """The attribute at a dotted path, or None."""
    for part in filter(None, path.split(".")):
        root = getattr(root, part, None)
    return root


def is_documented(torch, module, name):
    """Whether a name belongs to PyTorch's reference: a dtype, a memory format, or what has a docstring of its own."""
    thing = at(torch, f"{module}.{name}")
    if isinstance(thing, (torch.dtype, torch.memory_format)):
        return True
    if thing is None or isinstance(thing, types.ModuleType) or not getattr(thing, "__doc__", None):
        return False
    if module == "Tensor":
        return name in reasons.OPERATORS or not name.startswith("_")
    home = getattr(thing, "__module__", None)
    # Constants have the docstrings of their types; what modules import of others is not theirs.
    if isinstance(thing, (int, float, str, tuple, dict, set, list)) or (home and not home.startswith("torch")):
        return False
    return not module or home is None or name in getattr(at(torch, module), "__all__", ()) or home.endswith(module)


def documented(torch):
    """{module: names} of PyTorch's reference without what the project leaves out, and {name: reason} of that."""
    found, left = {}, {}
    for module in MODULES:
        if module and module != "Tensor":
            importlib.import_module(f"torch.{module}")
        names = {*dir(at(torch, module)), *getattr(at(torch, module), "__all__", ())}
        shown = {n for n in names if (not n.startswith("_") or module == "Tensor") and is_documented(torch, module, n)}
        for name in sorted(shown):
            path = f"{module}.{name}".lstrip(".")
            reason = next((why for pattern, why in reasons.LEFT_OUT if re.fullmatch(pattern, path)), None)
            if reason:
                left[path] = reason
            else:
                found.setdefault(module, []).append(name)
    return found, left


def database():
    """{path: (state, how)} of every name that an entry of the op database tries."""
    sys.path.insert(0, str(ROOT / "tests" / "ops"))
    from op_db import _differences
    from op_db._entries import PRIVATE_OF_PUBLIC, entries, of_test
    with TABLE.open() as f:
        rows = {row.pop("entry"): row for row in csv.DictReader(f, delimiter="\t")}
    tried = {}
    for full, op in entries().items():
        phases = {phase: cell for phase, cell in rows.get(full, {}).items() if cell}
        wrong = {phase: f"{phase} ({cell.replace('/', ' of ')})" for phase, cell in phases.items() if cell != "pass"}
        why = _differences.DIFFERENCES.get(full, ((), "", None))[2]
        more = why in _differences.MORE and all(phases[phase] == "meant" for phase in wrong)
        name = PRIVATE_OF_PUBLIC.get(op.name, op.name)
        forms = {("Tensor." if name.startswith("__") else "") + name: "forward"}
        for phase, function in (("method", op.method_variant), ("operator", op.operator_variant),
                                ("inplace", op.inplace_variant), ("inplace", op.inplace_operator_variant)):
            if function is not None and not of_test(function) and hasattr(function, "__name__"):
                own = function.__name__
                in_operator = getattr(function, "__module__", "") == "_operator"
                forms[f"Tensor.__{own.strip('_')}__" if in_operator else f"Tensor.{own}"] = phase
        for alias in op.aliases:
            forms[alias.name] = "forward"
            for part in ("method_variant", "inplace_variant"):
                function = getattr(alias, part, None)
                if hasattr(function, "__name__"):
                    forms[f"Tensor.{function.__name__}"] = "method" if part == "method_variant" else "inplace"
        for path, phase in forms.items():
            if phase in phases:
                of_another = more and phase != "forward" and why in _differences.OF_FUNCTIONS
                mine = tried.setdefault(path, {})
                mine.update({text: why if more else None for w, text in wrong.items()
                             if (w in SHARED or w in OWN[phase]) and not of_another})
    verdicts = {}
    for path, found in tried.items():
        whys = set(found.values())
        verdicts[path] = ((SAME, "") if not found else (DIFFERS, "op database: " + ", ".join(found)) if None in whys
                          else (MORE, " ".join(sorted(whys)).replace("``", "`")))
    return verdicts


def compared():
    """{path: test} of the public names whose rows tests/ops/test_parity_ops.py holds against PyTorch."""
    sys.path.insert(0, str(ROOT / "tests"))
    sys.path.insert(0, str(ROOT / "tests" / "ops"))
    import test_parity_names
    import test_parity_ops
    found = {}
    for row in test_parity_ops.COMPARED:
        where = f"tests/ops/test_parity_ops.py[{row.name}]"
        found.update({path: where for path in row.public})
    found.update({name: f"tests/test_parity_names.py[{name}]" for name in test_parity_names.CASES})
    return found


def judged(path, pt, tried, rows):
    """(state, how or why) of a documented name."""
    if at(pt, path) is None:
        return ABSENT, next((why for pattern, why in reasons.ABSENT if re.fullmatch(pattern, path)), "not written yet")
    if path in reasons.DIFFERS:
        return DIFFERS, reasons.DIFFERS[path]
    if path in reasons.MORE:
        return MORE, reasons.MORE[path]
    if path in tried:
        return tried[path]
    test = next((test for pattern, test in reasons.PROOFS if re.fullmatch(pattern, path)), None) or rows.get(path)
    return (SAME, test) if test else (UNPROVEN, "")


def page(torch, pt):
    names, left = documented(torch)
    tried, rows = database(), compared()
    verdicts = {(m, n): judged(f"{m}.{n}".lstrip("."), pt, tried, rows) for m, own in names.items() for n in own}
    count = {state: sum(s == state for s, _ in verdicts.values()) for state in STATES}
    text = [reasons.HEAD, "", f"Of {len(verdicts)} names of PyTorch {torch.__version__.partition('+')[0]}:", "",
            "| module | " + " | ".join(STATES) + " |", "|---" * 6 + "|"]
    for module, own in names.items():
        cells = [sum(verdicts[module, n][0] == state for n in own) for state in STATES]
        text.append(f"| {'.'.join(filter(None, ('torch', module)))} | " + " | ".join(map(str, cells)) + " |")
    text += ["| all | " + " | ".join(str(n) for n in count.values()) + " |", ""]
    for module, own in names.items():
        text += [f"## torch{'.' * bool(module)}{module}", ""]
        for state in STATES:
            group = [n for n in own if verdicts[module, n][0] == state]
            plain = [n for n in group if not verdicts[module, n][1]]
            if plain:
                head = {SAME: "Same, by the op database", UNPROVEN: "Not proven"}[state]
                text += [f"**{head}**: " + ", ".join(f"`{n}`" for n in plain), ""]
            why = {}
            for n in group:
                if verdicts[module, n][1]:
                    why.setdefault(re.sub(r"\[[\w.]+\]$|\.$", "", verdicts[module, n][1]), []).append(n)
            head = {SAME: "Same, by the tests of", MORE: "Same, and more.", DIFFERS: "Differs", ABSENT: "Absent",
                    UNPROVEN: ""}[state]
            for reason, those in why.items():
                text += [f"**{head}** {reason}: " + ", ".join(f"`{n}`" for n in those), ""]
    text += ["## Left out", ""]
    why = {}
    for path, reason in left.items():
        why.setdefault(reason, []).append(path)
    for reason, those in why.items():
        text += [f"**{reason}**: " + ", ".join(f"`{n}`" for n in those), ""]
    return "\n".join(text).rstrip() + "\n", verdicts


def main():
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--print", action="store_true", help="print what is absent and not proven in place of writing")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    import torch

    import ptcore
    text, verdicts = page(torch, ptcore)
    if not args.print:
        PAGE.write_text(text)
    for state in STATES:
        those = [(f"{m}.{n}".lstrip("."), why) for (m, n), (s, why) in verdicts.items() if s == state]
        print(f"{state}: {len(those)}")
        if args.print and state in (UNPROVEN, ABSENT):
            print("\n".join(f"    {name}  {why}" for name, why in those))


if __name__ == "__main__":
    main()
