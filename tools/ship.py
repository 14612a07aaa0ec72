#!/usr/bin/env python3
"""What ptcore promises to those who install it, each promise by one command:

    python tools/ship.py PART [--wheel FILE]     proves a part and writes its row of benchmarks/SHIP.md
    python tools/ship.py --list                  the parts; those marked (C) run in CI
    python tools/ship.py --ci --wheel FILE       the parts of CI, without writing a row

A part installs what it needs into an environment of its own (build-ship/), prints versions, bytes and minutes, and ends
with 0, with 1 if the promise is broken, or with 3 and the reason if it cannot be run here ("not run").
"""
import argparse
import datetime
import os
import sys
import time

from shipping import (  # noqa: F401
    PARTS,
    ROOT,
    WORK,
    Broken,
    NotRun,
    browser,
    clusters,
    conda,
    emulated,
    extensions,
    images,
    pages,
    platforms,
    pythons,
    releases,
    run,
    wheels,
)

RECORD = ROOT / "benchmarks" / "SHIP.md"
HEADER = """# Shipped

What `tools/ship.py` proved last: a row for each part.

| part | date (UTC) | commit | result | minutes | numbers |
|---|---|---|---|---|---|
"""


def prove(name, options):
    """(exit status, result, minutes, numbers) of a part."""
    function, _ = PARTS[name]
    start = time.monotonic()
    print(f"== {name}: {function.__doc__.strip().partition(chr(10))[0]}", flush=True)
    try:
        status, result, numbers = 0, "holds", function(options)
    except NotRun as e:
        status, result, numbers = 3, "not run", str(e)
    except Broken as e:
        status, result, numbers = 1, "broken", str(e)
    minutes = (time.monotonic() - start) / 60
    print(f"{name}: {result}, {minutes:.1f} minutes: {numbers}", flush=True)
    return status, result, minutes, numbers


def write_row(name, result, minutes, numbers):
    """Puts a part's row in the place of its last one."""
    lines = RECORD.read_text().splitlines() if RECORD.exists() else HEADER.splitlines()
    date = datetime.datetime.now(datetime.UTC).strftime("%F %H:%M")
    commit = run("git", "rev-parse", "--short=9", "HEAD").strip()
    if run("git", "status", "--porcelain", "--untracked-files=no").strip():
        commit += " and changes"
    first = " ".join(str(numbers).split())[:300].replace("|", "/")
    rows = [line for line in lines if not line.startswith(f"| {name} |")]
    rows.append(f"| {name} | {date} | {commit} | {result} | {minutes:.1f} | {first} |")
    head = len(HEADER.splitlines())
    temporary = RECORD.with_suffix(".tmp")
    temporary.write_text("\n".join([*rows[:head], *sorted(rows[head:])]) + "\n")
    os.replace(temporary, RECORD)


def main(argv=None):
    """The exit status of the parts."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("part", nargs="?", choices=sorted(PARTS))
    parser.add_argument("--list", action="store_true", help="the parts")
    parser.add_argument("--ci", action="store_true", help="the parts of CI, without writing rows")
    parser.add_argument("--wheel", help="a wheel of the part's Python, in place of building one")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes of the parts python-*")
    parser.add_argument("--whole", action="store_true", help="all tests but parity in the parts python-*")
    options = parser.parse_args(argv)
    if options.list:
        for name, (function, ci) in PARTS.items():
            print(f"{name:14}{'(C) ' if ci else '    '}{function.__doc__.strip().partition(chr(10))[0]}")
        return 0
    if not options.ci and not options.part:
        parser.error("name a part, or --list")
    WORK.mkdir(exist_ok=True)
    names = [name for name, (_, ci) in PARTS.items() if ci] if options.ci else [options.part]
    statuses = []
    for name in names:
        status, result, minutes, numbers = prove(name, options)
        statuses.append(status)
        if not options.ci:
            write_row(name, result, minutes, numbers)
    return max(statuses)


if __name__ == "__main__":
    sys.exit(main())
