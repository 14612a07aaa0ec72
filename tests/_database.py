"""Tables of what was compared with torch's databases of modules and of optimizers: a line for each entry."""
import argparse
import json
import re
import sys
import time
import warnings

import torch
from op_db._convert import NotCarried


def walked(state, phases, reason):
    """{phase: [tried, [what is wrong], how many are meant to differ]} of an entry.

    A phase of ``state`` gives pairs of a label and a check, which returns what is wrong or None.
    ``reason(phase, text)`` tells what is meant.
    """
    found = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for phase in phases:
            tried, wrong, meant = 0, [], 0
            for label, check in getattr(state, phase)():
                try:
                    text = check()
                except NotCarried:
                    continue
                except Exception as e:
                    text = f"the comparison failed: {type(e).__name__}: {e}"
                tried += 1
                if text and reason(phase, text):
                    meant += 1
                elif text:
                    wrong.append(f"{text} | {label}")
            if tried:
                found[phase] = [tried, wrong, meant]
    return found


def cell(tried, wrong, meant):
    if not tried:
        return ""
    return f"{len(wrong)}/{tried}" if wrong else "meant" if meant else "pass"


def main(name, entries, phases, walk):
    """Walks the entries, ``walk(entry, seed, quick, phases)`` each; prints the table and writes it."""
    parser = argparse.ArgumentParser(prog=name)
    parser.add_argument("--entries", default="")
    parser.add_argument("--phases", default=",".join(phases))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--all", action="store_true", help="all inputs")
    parser.add_argument("--table")
    parser.add_argument("--details")
    args = parser.parse_args()
    torch.set_num_threads(1)
    results, start = {}, time.monotonic()
    for entry in sorted(entries):
        if re.search(args.entries, entry):
            results[entry] = walk(entries[entry], args.seed, not args.all, args.phases.split(","))
            bad = {phase: len(wrong) for phase, (_, wrong, _) in results[entry].items() if wrong}
            print(f"{entry} {bad or ''}", file=sys.stderr, flush=True)
    if args.details:
        with open(args.details, "w") as f:
            json.dump(results, f, indent=1)
    if args.table:
        with open(args.table, "w") as f:
            for line in lines(results, phases):
                f.write(line + "\n")
    for phase in phases:
        of = [found[phase][1] for found in results.values() if phase in found]
        if of:
            print(f"{phase:10s}{sum(not wrong for wrong in of):5d} of {len(of):4d} entries")
    bad = [entry for entry, found in results.items() if any(wrong for _, wrong, _ in found.values())]
    print(f"{len(results)} entries: {len(bad)} wrong, {time.monotonic() - start:.0f} s")
    sys.exit(1 if bad else 0)


def lines(results, phases):
    yield "\t".join(("entry", *phases))
    for entry in sorted(results):
        yield "\t".join((entry, *[cell(*results[entry].get(phase, (0, [], 0))) for phase in phases]))
