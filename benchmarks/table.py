"""The group ``table`` of compare.py: measures, judges, keeps and compares (calls: workloads/table.py).

Bounds of the ratio, by DESIGN.md section 8. Where LAPACK computes (marked "hosted") they are wider, as its time
is part of either library's.
"""
import re
import time
import warnings
from pathlib import Path

import numpy as np
from measuring import geometric_mean, looped, measure
from workloads import table

BATCH = 24          # entries whose windows take turns; each batch is saved when it is measured
EACH = {"plain": (1.0, 1.3), "backward": (0.6, 1.0), "512": (1.1, 1.1)}      # of own kernels, of hosted ones
SHORT, SHORT_BOUND = 60e-6, 1.25        # seconds of torch's under which 512 x 512 have this bound
MEAN = {"plain": 0.25, "backward": 0.16, "512": 0.6}
COLUMNS = ("mode", "name", "ratio", "bound", "ptcore us", "torch us", "computed by", "note")


class Row:
    """What is known of one entry in one mode: times in seconds, or a note why there are none."""

    def __init__(self, mode, name, hosted=False, times=(), note=""):
        self.mode, self.name, self.hosted, self.times, self.note = mode, name, hosted, list(times), note

    @property
    def ratio(self):
        return self.times[0] / self.times[1]

    @property
    def bound(self):
        bound = EACH[self.mode][self.hosted]
        if self.mode == "512" and self.times[1] < SHORT:
            return SHORT_BOUND
        return bound

    @property
    def over(self):
        return bool(self.times) and self.ratio > self.bound

    def cells(self):
        us = [f"{t * 1e6:.4g}" for t in self.times] + [""] * (2 - len(self.times))
        ratios = [f"{self.ratio:.4f}", f"{self.bound:.3f}"] if self.times else ["", ""]
        return [self.mode, self.name, *ratios, *us, "LAPACK" if self.hosted else "", self.note]

    @classmethod
    def of(cls, cells):
        mode, name, _, _, *us, hosted, note = cells
        return cls(mode, name, bool(hosted), [float(t) * 1e-6 for t in us if t], note)

    def __str__(self):
        mode, name, ratio, bound, ours, theirs, hosted, note = self.cells()
        if not self.times:
            return f"{mode:9}{name:50}{note}"
        own = "  hosted" if hosted else ""
        return (f"{mode:9}{name:50}{ratio:>9}  of {bound}  {ours:>9} us  torch {theirs:>9} us"
                f"{'  over' if self.over else ''}{own}")


# -- the file ----------------------------------------------------------------------------------------

def read(path):
    """(source, rows) of a file that ``--save`` has written."""
    lines = Path(path).read_text().splitlines()
    if not lines or not lines[0].startswith("# "):
        raise SystemExit(f"compare: {path} is no table that --save has written")
    return lines[0][2:], [Row.of(line.split("\t")) for line in lines[2:]]


def write(path, source, rows):
    """All rows, the worst of each mode first, what was not timed last."""
    order = list(EACH)
    rows = sorted(rows, key=lambda r: (order.index(r.mode), not r.times, -r.ratio if r.times else 0, r.name))
    lines = [f"# {source}", "\t".join(COLUMNS), *["\t".join(row.cells()) for row in rows]]
    Path(path).write_text("\n".join(lines) + "\n")


def append(path, source, rows):
    if not Path(path).exists():
        write(path, source, [])
    with open(path, "a") as file:
        file.writelines("\t".join(row.cells()) + "\n" for row in rows)


# -- measuring ---------------------------------------------------------------------------------------

def prepared(mode, entry, libraries):
    """([(name, loops)], None), or none and the row that says why."""
    try:
        forms = table.MODES[mode](entry, libraries, np.random.default_rng(1))
        return [(name, [looped(*loop) for loop in loops]) for name, loops in forms], None
    except table.Unfit as e:
        return [], Row(mode, entry.name, entry.hosted, note=f"not timed: {e}")
    except Exception as e:              # whatever an op raises is a finding
        text = str(e) if isinstance(e, AssertionError) else f"{type(e).__name__}: {e}"
        return [], Row(mode, entry.name, entry.hosted, note=f"differs: {' '.join(text.split())[:160]}")


def batches(entries, size=BATCH):
    return [entries[i:i + size] for i in range(0, len(entries), size)]


def measured(mode, entries, libraries, rounds, clock=time.perf_counter):
    """The rows of some entries, which take turns."""
    rows, names, loops = [], [], []
    for entry in entries:
        forms, row = prepared(mode, entry, libraries)
        rows += [row] if row else []
        names += [(name, entry.hosted) for name, _ in forms]
        loops += [pair for _, pair in forms]
    return rows + [Row(mode, name, hosted, times)
                   for (name, hosted), times in zip(names, measure(loops, rounds, clock))]


def run(libraries, args, source):
    """Measures what the file does not hold yet; returns (rows of these modes, what has no entry)."""
    warnings.simplefilter("ignore")             # torch's, of deprecated functions
    entries, left = table.entries(*libraries)
    entries = [e for e in entries if re.search(args.match, e.name)]
    left = {name: why for name, why in left.items() if re.search(args.match, name)}
    rows = []
    if args.save and Path(args.save).exists():
        kept, rows = read(args.save)
        if kept != source:
            raise SystemExit(f"compare: {args.save} was measured otherwise ({kept}); name another file")
    modes = args.modes.split(",")
    for mode in modes:
        done = {name for r in rows if r.mode == mode for name in (r.name, r.name.partition(", dim=")[0])}
        todo = [e for e in entries if e.name not in done and (mode != "512" or e.kind)]
        for batch in batches(todo):
            new = measured(mode, batch, libraries, args.rounds, time.thread_time if args.shared else time.perf_counter)
            rows += new
            if args.save:
                append(args.save, source, new)
            for row in new:
                if row.times:
                    print(row, flush=True)
    if args.save:
        write(args.save, source, rows)
    wanted = {e.name for e in entries}
    return [r for r in rows if r.mode in modes and r.name.partition(", dim=")[0] in wanted], left


# -- reports -----------------------------------------------------------------------------------------

def report(rows, left):
    for mode in EACH:
        timed = sorted((r for r in rows if r.mode == mode and r.times), key=lambda r: -r.ratio)
        if not timed:
            continue
        over = [r for r in timed if r.over]
        mean = geometric_mean([r.ratio for r in timed])
        print(f"\n{mode}: {len(timed)} calls, geometric mean {mean:.3f} (must {MEAN[mode]}); "
              f"{len(over)} over their bound")
        for row in over:
            print(row)
    for word, title in (("differs", "Results that differ from torch's, or calls that raise"),
                        ("not timed", "Without a call in both libraries")):
        found = [r for r in rows if r.note.startswith(word) and table.NO_GRADIENT not in r.note]
        print(f"\n{title}: {len(found)}")
        for row in found:
            print(row)
    without = sorted(r.name for r in rows if table.NO_GRADIENT in r.note)
    if without:
        print(f"\nWithout a backward ({table.NO_GRADIENT}): {', '.join(without)}")
    print(f"\nPublic names that are not in the table: {len(left)}")
    for name, why in left.items():
        print(f"{name:50}{why}")


def changes(rows, path):
    """What has changed since another file: by the ratios, since machines and their load differ."""
    source, old = read(path)
    old = {(r.mode, r.name): r for r in old if r.times}
    pairs = [(r, old[r.mode, r.name]) for r in rows if r.times and (r.mode, r.name) in old]
    print(f"\nAgainst {path} ({source})")
    for mode in EACH:
        factors = [(new.ratio / before.ratio, new, before) for new, before in pairs if new.mode == mode]
        if not factors:
            continue
        print(f"{mode}: {len(factors)} calls, geometric mean of new ratios over old ones "
              f"{geometric_mean([f for f, *_ in factors]):.3f}")
        for factor, new, before in sorted(factors, key=lambda f: -f[0]):
            if not 1 / 1.15 < factor < 1.15:
                print(f"    {new.name:50}{before.ratio:9.3f} to {new.ratio:.3f}")


def main(libraries, args, source):
    rows, left = run(libraries, args, source)
    report(rows, left)
    if args.against:
        changes(rows, args.against)
