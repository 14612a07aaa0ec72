"""Generates everything that follows from the op rows into the build tree.

    python generate_ops.py OUTPUT_DIR [--loops TOPIC,TOPIC,...]
    python generate_ops.py OUTPUT_DIR --stubs
    python generate_ops.py OUTPUT_DIR --names

Files are written only when their text changes, so that ninja rebuilds no more than it must.
"""
import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import emit_cpp
import emit_functions
import emit_rules
import emit_shapes
import emit_steps
import emit_stubs
import levels
import tables
import topics


def write(path, text):
    if not path.exists() or path.read_text() != text:
        path.write_text(text)


def write_stubs(output, ops):
    package = tables.PACKAGE
    write(output / "__init__.pyi", emit_stubs.package(ops, package / "_build" / "stub_base.pyi"))
    write(output / "functional.pyi",
          emit_stubs.python_module(package / "nn" / "functional.py", ops, "nn.functional"))
    write(output / "linalg.pyi",
          emit_stubs.python_module(package / "linalg.py", ops, "linalg"))
    write(output / "special.pyi",
          emit_stubs.python_module(package / "special.py", ops, "special"))
    write(output / "fft.pyi", emit_stubs.python_module(package / "fft.py", ops, "fft"))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("output", type=Path)
    parser.add_argument("--loops", default=None, help="the topics with loops that the build was configured for")
    parser.add_argument("--stubs", action="store_true")
    parser.add_argument("--names", action="store_true")
    args = parser.parse_args()
    args.output.mkdir(parents=True, exist_ok=True)
    ops = tables.read()
    if args.stubs:
        return write_stubs(args.output, ops)
    if args.names:
        for where, pairs in emit_functions.names(ops).items():
            write(args.output / f"{emit_functions.MODULES[where]}.py", emit_functions.name_module(where, pairs))
        write(args.output / "spellings.py", emit_functions.spellings(ops))
        return None
    by_name = {op.name: op for op in ops}
    write(args.output / "_optable.h", emit_cpp.optable(ops))
    kernels = {path.stem: levels.HIGHEST.get(levels.group(path.stem), emit_cpp.LEVELS[-1]) for path in topics.kernels()}
    write(args.output / "_select.cpp", emit_cpp.select(ops, kernels))
    write(args.output / "_functions.h", emit_functions.table(ops))
    write(args.output / "_letters.h", emit_cpp.letters())
    write(args.output / "_shape_rules.pyx", emit_shapes.module(ops))
    write(args.output / "steps.h", emit_steps.header())
    loops = emit_cpp.families(ops)
    if args.loops is not None and sorted(loops) != args.loops.split(","):
        raise SystemExit("a topic has got its first elementwise row, or lost its last: run meson setup --reconfigure")
    for family in tables.topics():
        members = [op for op in ops if op.family == family]
        if family in loops:
            write(args.output / f"formulas_{family}.h", emit_cpp.formulas(family, loops[family]))
            write(args.output / f"loops_{family}.cpp", emit_cpp.loops(family, loops[family]))
        if members:
            write(args.output / f"_vjp_{family}.pyx", emit_rules.derivatives(family, members, by_name))


if __name__ == "__main__":
    main()
