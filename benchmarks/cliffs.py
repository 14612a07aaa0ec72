"""Where a public call takes many times PyTorch's time: a walk over sizes, dtypes, layouts and forms of every op.

    python benchmarks/cliffs.py --save cells.tsv                   ten minutes of cells, drawn by a seed
    python benchmarks/cliffs.py --save cells.tsv --minutes 480     for longer; what the file holds is not run again
    python benchmarks/cliffs.py --save cells.tsv --match pool      those of some ops
    python benchmarks/cliffs.py --save cells.tsv --again           the cells over their bound, each alone, three times
    python benchmarks/cliffs.py --save cells.tsv --report          what the file says: by cause, and the worst cells

Both libraries run with one thread and take turns in one process; a time is the least of the rounds, in processor time
of the thread. The cells are those of workloads/cells.py; a ratio is our time over torch's. A cell of torch against
itself is "| torch" in the file: so far are ratios off by chance.
"""
import argparse
import collections
import random
import re
import time
import warnings
from pathlib import Path

import numpy as np
from measuring import looped, measure, window
from workloads import cells, table
from workloads.calls import Unfit

BOUND, MOST = 1.2, 2.0          # 1 % of the cells may be above the one, none above the other
TOLD = 1.5                      # cells that a report groups by cause
LONGEST = 0.3                   # seconds of torch's call, beyond which a cell is not timed
MEMORY = 10 << 30               # bytes that the process may map beside its libraries: a larger call is refused
COLUMNS = ("cell", "ratio", "ptcore us", "torch us", "note")


def rows_of(path):
    """{label: (ratio or None, ours, theirs, note)} of a file."""
    if not Path(path).exists():
        return {}
    found = {}
    for line in Path(path).read_text().splitlines()[1:]:
        label, ratio, ours, theirs, note = line.split("\t")
        found[label] = (float(ratio) if ratio else None, float(ours or 0), float(theirs or 0), note)
    return found


def append(path, label, times, note=""):
    new = not Path(path).exists()
    with open(path, "a") as file:
        if new:
            file.write("\t".join(COLUMNS) + "\n")
        row = [f"{times[0] / times[1]:.3f}", *(f"{t * 1e6:.4g}" for t in times)] if times else ["", "", ""]
        file.write("\t".join([label, *row, note]) + "\n")


class Cells:
    """The calls of the entries, settled when they are first asked for."""

    def __init__(self, libraries):
        self.libraries = libraries
        self.entries = {e.name: e for e in table.entries(*libraries)[0]}
        self.calls = {}

    def call(self, name):
        if name not in self.calls:
            try:
                self.calls[name] = table.settled(self.entries[name], self.libraries)[0]
            except Unfit:
                self.calls[name] = None
        return self.calls[name]

    def labels(self, match):
        """The labels of all cells of the entries whose names match."""
        for name, entry in self.entries.items():
            if re.search(match, name) and self.call(name) is not None:
                for cell in cells.grid(entry.kind, self.call(name)):
                    yield cells.label(name, cell)

    def loops(self, label):
        """The loops of both libraries; Unfit where torch refuses the call, an exception where ptcore does."""
        name, cell = cells.parsed(label)
        entry, call = self.entries[name], self.call(name)
        form = cells.made(entry.kind, call, cell, np.random.default_rng(1))
        if cell["mode"] == "backward":
            alone = table.Entry(name, entry.path, [lambda: [form]])
            _, loops = table.backward_mode(alone, self.libraries, np.random.default_rng(2), False)[0]
            return [looped(*loop) for loop in loops]
        try:
            theirs = form.run(self.libraries[1])[0]
        except Exception as e:
            raise Unfit(f"torch: {type(e).__name__}: {e}") from e
        ours = form.run(self.libraries[0])[0]
        differs = table.difference(ours, theirs, [xp.Tensor for xp in self.libraries], False)
        assert not differs, differs
        return [looped(*form.prepared(xp)[:2]) for xp in self.libraries]


def line(label, ratio, ours, theirs):
    return f"{ratio:8.2f}  {ours * 1e6:10.4g} us  torch {theirs * 1e6:10.4g}  {label}"


def run(walk, labels, args):
    end, done = time.monotonic() + args.minutes * 60, 0
    for label in labels:
        if time.monotonic() > end:
            break
        try:
            loops = walk.loops(label)
        except Unfit as e:
            append(args.save, label, (), f"not timed: {' '.join(str(e).split())[:100]}")
            continue
        except Exception as e:          # whatever an op raises is a finding
            append(args.save, label, (), f"differs: {type(e).__name__}: {' '.join(str(e).split())[:100]}")
            continue
        if window(loops[1], 1) > LONGEST:
            append(args.save, label, (), f"not timed: a call of torch takes more than {LONGEST} s")
            continue
        if args.itself:
            loops, label = [loops[1], loops[1]], label + " | torch"
        times = measure([loops], args.rounds, time.thread_time)[0]
        append(args.save, label, times)
        done += 1
        if times[0] > TOLD * times[1]:
            print(line(label, times[0] / times[1], *times), flush=True)
    print(f"{done} cells timed")


def again(walk, args):
    """Measures the cells over their bound alone, three times; the least ratio counts."""
    kept = rows_of(args.save)
    over = [label for label, (ratio, *_) in kept.items()
            if ratio and ratio > BOUND and re.search(args.match, label) and "| torch" not in label]
    for k, label in enumerate(sorted(over, key=lambda c: -kept[c][0])):
        loops = walk.loops(label)
        found = min((measure([loops], 2 * args.rounds, time.thread_time)[0] for _ in range(3)),
                    key=lambda times: times[0] / times[1])
        if found[0] / found[1] < kept[label][0]:
            append(args.save, label, found, "again")
        print(f"{k + 1} of {len(over)}: {kept[label][0]:.2f} is {found[0] / found[1]:.2f}  {label}", flush=True)


def causes(rows):
    """[(worst ratio, name, number of cells, what they have in common)] of the cells above TOLD."""
    groups = collections.defaultdict(list)
    for label, (ratio, *_) in rows.items():
        if ratio and ratio > TOLD:
            name, cell = cells.parsed(label)
            groups[name].append((ratio, cell))
    found = []
    for name, members in groups.items():
        common = [f"{k}={v}" for k, v in members[0][1].items()
                  if v != cells.PLAIN[k] and all(c[k] == v for _, c in members)]
        found.append((max(r for r, _ in members), name, len(members), " ".join(common)))
    return sorted(found, reverse=True)


def report(path, text):
    rows = {label: row for label, row in rows_of(path).items() if re.search(text, label)}
    own = {label: row for label, row in rows.items() if "| torch" not in label}
    timed = {label: row for label, row in own.items() if row[0]}
    itself = sorted(row[0] for label, row in rows.items() if "| torch" in label and row[0])
    if not timed:
        raise SystemExit(f"cliffs: {path} holds no cell that was timed")
    ratios = [row[0] for row in timed.values()]
    over = sum(r > BOUND for r in ratios)
    print(f"{len(timed)} cells; {over} above {BOUND} ({100 * over / len(ratios):.1f} %), "
          f"{sum(r > MOST for r in ratios)} above {MOST}; median {sorted(ratios)[len(ratios) // 2]:.2f}")
    if itself:
        print(f"torch against itself: {len(itself)} cells, {sum(r > BOUND for r in itself)} above {BOUND}, "
              f"from {itself[0]:.2f} to {itself[-1]:.2f}")
    print(f"\nAbove {TOLD}, by op")
    for worst, name, count, common in causes(timed):
        print(f"{worst:8.2f}  {count:4}  {name:45}{common}")
    print("\nThe worst")
    for label, (ratio, ours, theirs, _) in sorted(timed.items(), key=lambda item: -item[1][0])[:100]:
        print(line(label, ratio, ours * 1e-6, theirs * 1e-6))
    differs = [(label, row[3]) for label, row in own.items() if row[3].startswith("differs")]
    print(f"\nWhere torch computes and ptcore differs or raises: {len(differs)}")
    for label, note in differs[:100]:
        print(f"{label}: {note}")


def limit_memory():
    """Lets a call that asks for too much fail, where the system would end the process."""
    try:
        import resource
        mapped = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    except (ImportError, OSError):
        return
    resource.setrlimit(resource.RLIMIT_AS, (mapped + MEMORY, resource.RLIM_INFINITY))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--save", required=True, metavar="FILE", help="cells that were timed; it is made or continued")
    parser.add_argument("--match", default="", help="only cells whose op matches")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--itself", action="store_true", help="torch against itself")
    parser.add_argument("--again", action="store_true", help="the cells over their bound, each alone")
    parser.add_argument("--report", action="store_true")
    args = parser.parse_args()
    if args.report:
        report(args.save, args.match)
        return
    import torch

    import ptcore
    warnings.simplefilter("ignore")
    ptcore.set_num_threads(1)
    torch.set_num_threads(1)
    limit_memory()
    walk = Cells((ptcore, torch))
    if args.again:
        again(walk, args)
        return
    kept = rows_of(args.save)
    labels = [label for label in walk.labels(args.match) if label + " | torch" * args.itself not in kept]
    print(f"{len(labels)} cells are not in {args.save}")
    random.Random(args.seed).shuffle(labels)
    run(walk, labels, args)


if __name__ == "__main__":
    main()
