"""What the folders say: the topics of ops, their bodies and kernels, the rules. Printed for meson.build.

A folder of _ops that holds rows.py is a topic. The C++ files of folders are kernels, their Python files are compiled
except those of PLAIN; a file of autograd/rules holds the rules of the topic of its name.

    python topics.py        lines "KIND NAME [FILE]"
"""
import levels

import tables


# Data and classes.
PLAIN = ("__init__", "rows", "tensor_types")


def bodies():
    """(folder, file) of the functions behind composite rows, and of those that are no rows."""
    return [(path.parent.name, path) for path in sorted(tables.OPS.glob("*/*.py"))
            if path.parent.name not in ("call", "table") and path.stem not in PLAIN]


def kernels():
    """The kernel files of topics; each defines the tables pt_kernels_<name>_<level>."""
    found = [path for path in tables.OPS.glob("*/*.cpp") if path.parent.name not in ("call", "kernels")]
    return sorted([path for path in found if levels.group(path.stem) != "common"], key=lambda path: path.stem)


def without_tables():
    """The other files: those of kernels/, and what is compiled once."""
    return sorted({*(tables.OPS / "kernels").glob("*.cpp"),
                   *(path for path in tables.OPS.glob("*/*.cpp") if levels.group(path.stem) == "common")})


def loops(ops):
    """The topics with elementwise rows: their loops are generated."""
    return [topic for topic in tables.topics() if any(op.family == topic and op.row.kind == "elementwise" for op in ops)]


def main():
    for topic in tables.topics():
        print("topic", topic)
    for topic in loops(tables.read_rows()):
        print("loops", topic)
    for topic, path in bodies():
        print("body", f"{topic}.{path.stem}", path.relative_to(tables.PACKAGE).as_posix())
    for path in [*kernels(), *without_tables()]:
        print("kernel", levels.group(path.stem), path.relative_to(tables.PACKAGE).as_posix())
    for path in sorted((tables.PACKAGE / "autograd" / "rules").glob("*.py")):
        if path.stem != "__init__":
            print("rule", path.stem)


if __name__ == "__main__":
    main()
