"""Prints the time and memory of ``import ptcore`` beside ``import numpy``.

The two are started in turn, each in a fresh interpreter, so that both see the same machine; the
medians over the pairs and their difference are printed. Usage: ``python benchmarks/import_time.py
[pairs]`` (21 unless given).
"""
import statistics
import subprocess
import sys

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
    pairs = int(sys.argv[1]) if len(sys.argv) > 1 else 21
    names = ("numpy", "ptcore")
    found = {name: [] for name in names}
    for name in names:                      # once for the disk cache
        measure(name)
    for i in range(pairs):
        for name in names if i % 2 else names[::-1]:
            found[name].append(measure(name))
    print(f"{pairs} interleaved pairs, Python {sys.version.split()[0]}, medians\n")
    print("| import | ms | MB | modules |\n|---|---|---|---|")
    medians = {name: [statistics.median(column) for column in zip(*found[name])] for name in names}
    for name in names:
        print("| {} | {:.1f} | {:.1f} | {:.0f} |".format(name, *medians[name]))
    print("| difference | {:.1f} | {:.1f} | {:.0f} |".format(
        *(b - a for a, b in zip(*(medians[name] for name in names)))))


if __name__ == "__main__":
    main()
