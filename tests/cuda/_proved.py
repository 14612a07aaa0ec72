"""Which programs have not changed since all of their kernels were compiled and held to their bounds.

``proved.tsv`` has a line for each structured program, for each eighth of the elementwise ones, and for the hot kernels
with the dtypes that their budgets are of: its name, and a digest of the texts, the headers that they include, the
compiler and the bounds. ``test_nvrtc.py`` compiles what has
another digest than its line; the nightly run compiles everything. The lines are made by compiling everything:

    python tests/cuda/_proved.py
"""
import hashlib
import os
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import _budgets
import _machine_code
import _usage

from ptcore.cuda import _compile, _programs

HALF = 9
ARCHITECTURES = (75, 80, 90)
PARTS = 8
HOT = "hot kernels"
RECORD = Path(__file__).with_name("proved.tsv")


class Verbose(_compile.NVRTC):
    OPTIONS = (*_compile.NVRTC.OPTIONS, _usage.VERBOSE)


def compile_all(programs, architecture, disassembled=False, first=True):
    """Also that no kernel takes more registers and memory than it may, on the architecture that the bounds are of.

    With ``disassembled`` also that its machine code keeps to the rules of ``_budgets``. Bounds are those of a program's
    ``first`` dtype, others have some room.
    """
    nvrtc, wrong = Verbose(), []
    for program, types in programs:
        text = _programs.text_of(program, types)
        cubin = nvrtc.compile(text, _compile.included(text, _programs.headers()), architecture)
        assert cubin[:4] == b"\x7fELF", program
        if architecture == 90:
            assert _usage.used(nvrtc.log), program
            lines = _usage.too_much(program, nvrtc.log, cubin, first)
            if disassembled and _machine_code.nvdisasm():
                lines += _budgets.too_much(program, [_programs.CPP[t] for t in types], cubin)
            wrong += [f"{program} {types}: {line}" for line in lines]
    assert not wrong, "\n".join(wrong)


def representative(program):
    """One tuple of dtypes of a structured program: with halves, if it has such."""
    rows = [types for name, types in _programs.every(program) if name == program]
    return next((types for types in rows if HALF in types), rows[0])


def elementwise(part):
    """Each formula of an eighth of them, with one dtype: a half where it takes halves."""
    ops, chosen = sorted(_programs.formulas()), {}
    for program, types in _programs.every("elementwise:"):
        if ops.index(program.partition(":")[2]) % PARTS == part and (program not in chosen or types[0] == HALF):
            chosen[program] = types
    return list(chosen.items())


def hot():
    """The programs of hot kernels, with the dtypes of their budgets."""
    rows = sorted({(row.program, row.types) for row in _budgets.BUDGETS})
    return [(program, tuple(_programs.CPP.index(t) for t in types.split())) for program, types in rows]


def units():
    """Name of a line to its (program, types)."""
    found = {program: [(program, representative(program))] for program in _programs.STRUCTURED}
    return found | {f"elementwise {part}": elementwise(part) for part in range(PARTS)} | {HOT: hot()}


def digests():
    """Name of a line to the digest of all that it depends on."""
    bounds = Path(_usage.__file__).read_text() + repr(_budgets.DIVIDING)
    identity, headers, found = Verbose().identity, _programs.headers(), {}
    for name, programs in units().items():
        h = hashlib.sha256(f"{bounds}\0{ARCHITECTURES}{_budgets.BUDGETS if name == HOT else ''}".encode())
        for program, types in programs:
            text = _programs.text_of(program, types)
            h.update(_compile.key_of(text, _compile.included(text, headers), 0, identity).encode())
        found[name] = h.hexdigest()[:20]
    return found


def changed():
    """Names of the lines that do not hold of what is here."""
    lines = RECORD.read_text().splitlines() if RECORD.exists() else []
    recorded = dict(line.split("\t") for line in lines if not line.startswith("#"))
    return [name for name, digest in digests().items() if recorded.get(name) != digest]


def write():
    text = "# Compiled and held to their bounds by tests/cuda/_proved.py\n"
    _compile.write(RECORD, (text + "".join(f"{name}\t{digest}\n" for name, digest in digests().items())).encode())


def prove(name):
    programs = units()[name]
    if name.startswith("elementwise "):
        compile_all(programs, 90)
    elif name == HOT:
        compile_all(programs, 90, disassembled=True, first=False)
    else:
        for architecture in ARCHITECTURES:
            compile_all(programs, architecture, disassembled=True)
    print(name, flush=True)


if __name__ == "__main__":
    assert _machine_code.nvdisasm(), "nvdisasm is not installed"
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(prove, changed()))
    write()
