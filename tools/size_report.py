"""Bytes of machine code by family, ISA level and file of a build, and the size of what is installed.

    python tools/size_report.py [BUILD_FOLDER] [--loops N] [--wheel FILE]

Reads the object files with ``size`` and ``nm`` (binutils or LLVM). The loops of an elementwise
family are counted by their symbols; ``--loops`` lists the N largest. ``--wheel`` weighs a wheel that has been
built, instead of estimating one, and exits with status 1 if it is heavier than DESIGN.md allows.
"""
import argparse
import re
import shutil
import subprocess
import zipfile
import zlib
from pathlib import Path

LEVELS = ("base", "v3", "v4")
LOOP = re.compile(r"\b(loop(?:\d|_vs|_sv))<(?:\(anonymous namespace\)::)?op_(\w+), (.*)>\(")
INSTALLED = {".py", ".pxd", ".pyi", ".so", ".pyd"}
WHEEL, UNPACKED = 13_000_000, 36_000_000      # bytes of a wheel, and of what it installs
HEADERS = {"__init__.pxd", "cython_tensor.pxd", "cython_ops.pxd"}


def text_bytes(objects):
    """{object: bytes of code and constants}."""
    listing = subprocess.run(["size", *map(str, objects)], capture_output=True, text=True, check=True).stdout
    rows = [line.split(None, 5) for line in listing.splitlines()[1:]]
    return {Path(row[5]): int(row[0]) for row in rows}


def family_of(path):
    """(kind, family) of a kernel object's name."""
    name = path.name.removesuffix(".o").rsplit(".", 1)[0]
    if "loops_" in name:
        return "loops", name.split("loops_")[1]
    return "kernels", re.sub(r"^_ops_[a-z]+_", "", name).removeprefix("_")


def kernel_objects(build):
    """(level, kind, family, object) of every object of the kernel libraries."""
    for folder in sorted((build / "ptcore").glob("lib*.a.p")):
        if folder.name.startswith("libglue"):
            continue
        level = folder.name.removesuffix(".a.p").rpartition("_")[2]
        for path in sorted(folder.glob("*.o")):
            yield (level, *family_of(path), path)


def kernel_sizes(build):
    """{(kind, family): {level: bytes}}; what is compiled once has the level "common"."""
    rows = list(kernel_objects(build))
    sizes = text_bytes([path for *_, path in rows]) if rows else {}
    table = {}
    for level, kind, family, path in rows:
        table.setdefault((kind, family), {})[level] = sizes[path]
    return table


def loops(path):
    """[(bytes, "loop2 add float")] of an object of elementwise loops."""
    listing = subprocess.run(["nm", "-S", "-C", str(path)], capture_output=True, text=True, check=True).stdout
    found = []
    for line in listing.splitlines():
        fields = line.split(None, 3)
        match = LOOP.search(line)
        if match and len(fields) == 4 and fields[2] in "tT":
            found.append((int(fields[1], 16), f"{match[1]} {match[2]} {match[3].split('::')[-1].strip()}"))
    return found


def glue_sizes(build):
    """{module: bytes} of the compiled Cython modules."""
    objects = [p for pattern in ("_core*.p", "libglue*.p") for p in sorted((build / "ptcore").glob(f"{pattern}/*.o"))]
    sizes = text_bytes(objects) if objects else {}
    return {p.name.removeprefix("meson-generated_..").removesuffix(".cpp.o").lstrip("_"): n for p, n in sizes.items()}


def installed(package):
    """(files, bytes, bytes deflated) of what an installation of the package folder holds, or would hold of a source
    tree."""
    from ptcore._core import MODULES
    compiled = {package.joinpath(*name.split(".")[1:]).with_suffix(".py") for name in MODULES}
    files = [p for p in package.rglob("*") if p.suffix in INSTALLED and p.is_file() and p not in compiled
             and (p.suffix != ".pxd" or p.name in HEADERS)
             and not {"__pycache__", "_build"} & set(p.relative_to(package).parts)]
    data = [p.read_bytes() for p in files]
    return len(files), sum(map(len, data)), sum(len(zlib.compress(d, 6)) for d in data)


def report(build, largest=0):
    levels = (*LEVELS, "common")
    print(f"{'family':<28}" + "".join(f"{level:>10}" for level in levels) + f"{'loops':>8}{'B/loop':>8}")
    totals = dict.fromkeys(levels, 0)
    counts = {}
    every = []
    for level, kind, family, path in kernel_objects(build):
        if kind == "loops":
            found = loops(path)
            every += [(n, f"{level} {family}: {name}") for n, name in found]
            count, size = counts.get(family, (0, 0))
            counts[family] = (count + len(found), size + sum(n for n, _ in found))
    for (kind, family), sizes in sorted(kernel_sizes(build).items()):
        line = f"{kind + ' ' + family:<28}" + "".join(f"{sizes.get(level, ''):>10}" for level in levels)
        for level, n in sizes.items():
            totals[level] += n
        if kind == "loops" and counts[family][0]:
            count, size = counts[family]
            line += f"{count:>8}{size // count:>8}"
        print(line)
    print(f"{'kernels':<28}" + "".join(f"{totals[level]:>10}" for level in levels) + f"{sum(totals.values()):>16}")
    glue = glue_sizes(build)
    print(f"\n{'Cython modules':<44}{sum(glue.values()):>10}")
    for name, n in sorted(glue.items(), key=lambda item: -item[1])[:12]:
        print(f"    {name:<40}{n:>10}")
    if largest:
        print("\nlargest loops")
        for n, name in sorted(every, reverse=True)[:largest]:
            print(f"    {name:<60}{n:>8}")


def weigh(wheel):
    """Prints what a wheel weighs, by the suffixes of its files; whether that is allowed."""
    sizes = {}
    with zipfile.ZipFile(wheel) as archive:
        for file in archive.infolist():
            n, size, packed = sizes.get(Path(file.filename).suffix, (0, 0, 0))
            sizes[Path(file.filename).suffix] = n + 1, size + file.file_size, packed + file.compress_size
    print(f"\n{'in the wheel':<28}{'files':>10}{'bytes':>12}{'packed':>12}")
    for suffix, row in sorted(sizes.items(), key=lambda item: -item[1][1]):
        print(f"    {suffix or 'none':<24}{row[0]:>10}{row[1]:>12}{row[2]:>12}")
    total, unpacked = wheel.stat().st_size, sum(size for _, size, _ in sizes.values())
    print(f"{wheel.name}: {total} bytes (at most {WHEEL}), {unpacked} unpacked (at most {UNPACKED})")
    return total <= WHEEL and unpacked <= UNPACKED


def main():
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("build", nargs="?", type=Path, default=Path("build"))
    parser.add_argument("--loops", type=int, default=0, metavar="N")
    parser.add_argument("--wheel", type=Path, metavar="FILE")
    args = parser.parse_args()
    for tool in ("size", "nm"):
        if not shutil.which(tool):
            parser.error(f"{tool} is needed (binutils or LLVM)")
    if not (args.build / "ptcore").is_dir():
        parser.error(f"{args.build} is no build folder")
    report(args.build, args.loops)
    if args.wheel:
        raise SystemExit(not weigh(args.wheel))
    package = Path(__file__).resolve().parent.parent / "ptcore"
    files, size, packed = installed(package)
    print(f"\ninstalled: {files} files, {size / 1e6:.1f} MB; as a wheel about {packed / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
