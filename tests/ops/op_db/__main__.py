"""``python -m op_db``: walk torch's op database, print and write the table.

    python -m op_db [--entries REGEX] [--phases a,b] [--seed N] [--all] [--jobs N] [--table FILE] [--details FILE]

Each entry runs in a worker process; one that dies or takes too long is counted as wrong.
"""
import argparse
import json
import re
import sys
import time

from ._entries import entries
from ._phases import PHASES
from ._run import run


def main():
    parser = argparse.ArgumentParser(prog="op_db", description=__doc__.splitlines()[0])
    parser.add_argument("--entries", default="")
    parser.add_argument("--phases", default=",".join(PHASES))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--all", action="store_true", help="all samples and the reference inputs")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--table")
    parser.add_argument("--details")
    args = parser.parse_args()
    names = sorted(name for name in entries() if re.search(args.entries, name))
    results, start = {}, time.monotonic()
    details = open(args.details, "w") if args.details else None
    for name, found, notes, seconds in run(names, args.jobs, args.seed, not args.all, args.phases.split(",")):
        results[name] = found
        bad = {phase: len(wrong) for phase, (_, wrong, _) in found.items() if wrong}
        print(f"[{len(results)}/{len(names)}] {name} {seconds:.1f} s {bad or ''}", file=sys.stderr, flush=True)
        if details:
            details.write(json.dumps({"name": name, "found": found, "notes": notes, "seconds": seconds}) + "\n")
            details.flush()
    sys.exit(1 if report(results, args, time.monotonic() - start) else 0)


def report(results, args, seconds):
    """Prints and writes the table; how many entries are wrong."""
    lines = ["\t".join(("entry", *PHASES))]
    for name in sorted(results):
        cells = []
        for phase in PHASES:
            tried, wrong, meant = results[name].get(phase, (0, [], 0))
            cells.append("" if not tried and not wrong else f"{len(wrong)}/{tried}" if wrong else "meant" if meant else "pass")
        lines.append("\t".join((name, *cells)))
    if args.table:
        with open(args.table, "w") as f:
            f.write("\n".join(lines) + "\n")
    for phase in PHASES:
        of = [wrong for found in results.values() for p, (_, wrong, _) in found.items() if p == phase]
        if of:
            right = sum(not wrong for wrong in of)
            print(f"{phase:10s}{right:5d} of {len(of):4d} entries ({100 * right / len(of):.1f} %)")
    good = sum(not any(wrong for _, wrong, _ in found.values()) for found in results.values())
    meant = sum(any(n for _, _, n in found.values()) for found in results.values())
    print(f"{len(results)} entries: {len(results) - good} wrong, {meant} meant to differ in part, {seconds:.0f} s")
    return len(results) - good


if __name__ == "__main__":
    main()
