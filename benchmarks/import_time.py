"""Prints the time and memory of ``import ptcore`` beside ``import numpy``.

The two are started in turn, each in a fresh interpreter, so that both see the same machine; the
medians over the pairs and their difference are printed. ``--write`` puts them into RESULTS.md.
"""
import argparse
import statistics
import subprocess
import sys
from pathlib import Path

PROGRAM = """
import resource, sys, time
start = time.perf_counter()
import {0}
seconds = time.perf_counter() - start
unit = 1 if sys.platform == "darwin" else 1024
print(seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit, len(sys.modules))
"""


def measure(name):
    """(milliseconds, megabytes, modules) of one import."""
    out = subprocess.run([sys.executable, "-P", "-c", PROGRAM.format(name)], check=True,
                         capture_output=True, text=True).stdout
    seconds, size, modules = map(float, out.split())
    return seconds * 1e3, size / 1e6, modules


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=21)
    parser.add_argument("--write", action="store_true")
    args = parser.parse_args()
    names = ("numpy", "ptcore")
    found = {name: [] for name in names}
    for name in names:                      # once for the disk cache
        measure(name)
    for i in range(args.pairs):
        for name in names if i % 2 else names[::-1]:
            found[name].append(measure(name))
    medians = {name: [statistics.median(column) for column in zip(*found[name])] for name in names}
    lines = [f"{args.pairs} interleaved pairs, Python {sys.version.split()[0]}, medians", "",
             "| import | ms | MB | modules |", "|---|---|---|---|"]
    lines += ["| {} | {:.1f} | {:.1f} | {:.0f} |".format(name, *medians[name]) for name in names]
    lines.append("| difference | {:.1f} | {:.1f} | {:.0f} |".format(
        *(b - a for a, b in zip(*(medians[name] for name in names)))))
    print("\n".join(lines))
    if args.write:
        results = Path(__file__).resolve().parent / "RESULTS.md"
        head = results.read_text().partition("\n# Import\n")[0] if results.exists() else ""
        results.write_text(head + "\n# Import\n\nMade by `python benchmarks/import_time.py --write`.\n\n"
                           + "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
