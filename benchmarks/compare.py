"""Times named workloads in ptcore and in torch, in turn in one process, and prints ratios.

    python benchmarks/compare.py [--groups small,record,...] [--only REGEX] [--rounds 30] [--write]
    python benchmarks/compare.py --groups table [--modes plain,backward,512] [--only REGEX] [--rounds 30]
                                 [--shared] [--save FILE.tsv] [--against FILE.tsv]

Each workload (folder workloads) is a statement over a namespace that is either library, compiled
into the loop that is timed: what remains besides the op is the loop itself, about 10 ns. All
workloads of a group take turns, ptcore and torch back to back, in windows of a few milliseconds; the minimum
of the rounds counts. Threads are set alike in both. The ratio is ptcore's time over torch's:
below 1 is faster. ``--write`` puts the table into benchmarks/RESULTS.md; of some groups, their rows.

The group ``table`` (never among the others: it is long) has every public op that torch has too, plainly on small
tensors, with backward, and elementwise and reducing ops on 512 x 512. Results are compared before anything is
timed. What is measured is added to ``--save``, from where a run that was cut short goes on; ``--against`` prints what
has changed since another such file.
"""
import argparse
import datetime
import os
import platform
import re
import subprocess
from pathlib import Path

import table as table_group
from measuring import geometric_mean, looped, measure
from workloads import WORKLOADS, core, data, large, layers, spectra, training  # noqa: F401  (each registers its own)

HERE = Path(__file__).resolve().parent
BIG = ("large", "layer", "train")


ALL = "small,record,view,backward,step,large,layer,train,data,fft"


def machine():
    model = platform.processor() or platform.machine()
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                model = line.split(":")[1].strip()
                break
    except OSError:
        pass
    return f"{model}, {os.cpu_count()} cores"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--groups", default=ALL)
    parser.add_argument("--only", "--match", dest="match", default="", metavar="REGEX",
                        help="only workloads in whose name this regular expression is found")
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--modes", default="plain,backward,512", help="of the group table")
    parser.add_argument("--shared", action="store_true",
                        help="the group table by its thread's processor time, for a machine that others use")
    parser.add_argument("--save", metavar="FILE.tsv", help="where the group table keeps what is measured")
    parser.add_argument("--against", metavar="FILE.tsv", help="an earlier file of --save to compare with")
    args = parser.parse_args()
    import torch

    import ptcore
    import ptcore.fft
    import ptcore.nn
    import ptcore.optim
    import ptcore.utils.data
    if "autograd: compiled" not in ptcore.show_config():
        raise SystemExit("compare: this ptcore was built with -Dcompile_python=false, to be read and debugged")
    if "build: release" not in ptcore.show_config():
        raise SystemExit("compare: this ptcore was built to be debugged: with assertions, or not optimised")
    torch.set_num_threads(args.threads)
    ptcore.set_num_threads(args.threads)
    groups = args.groups.split(",")
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True,
                            text=True, cwd=HERE).stdout.strip()
    source = (f"{machine()}; {args.threads} thread(s); torch {torch.__version__}; commit {commit}; "
              f"{datetime.date.today()}; minimum of {args.rounds} rounds")
    if "table" in groups:
        if len(groups) > 1 or args.write or args.threads != 1:
            parser.error("the group table is run alone, with one thread, and kept by --save")
        if args.shared:
            source += " of the processor's time"
        return table_group.main((ptcore, torch), args, source)
    rows = []
    for group in groups:
        found = [w for w in WORKLOADS if w[0] == group and re.search(args.match, w[1])]
        loops = [[looped(statement, make(xp)) for xp in (ptcore, torch)] for _, _, statement, make, _ in found]
        rows += [(group, name, target, *times)
                 for (_, name, _, _, target), times in zip(found, measure(loops, args.rounds))]
    print(table({None: source}, rows))
    if args.write:
        results = HERE / "RESULTS.md"
        before, mark, rest = results.read_text().partition("\n# Import\n") if results.exists() else ("", "", "")
        if args.groups == ALL and not args.match:
            sources = {None: source}
        else:                           # the other rows, and where they come from, stay
            sources, kept = read(before)
            names = {(group, name) for group, name, *_ in rows}
            new = {group for group, *_ in rows}
            rows += [row for row in kept if row[0] not in new or (args.match and row[:2] not in names)]
            rows.sort(key=lambda row: ALL.split(",").index(row[0]))
            sources.update(dict.fromkeys(groups, source))
        results.write_text(
            "# ptcore against torch\n\nRatios are ptcore's time over torch's, one process, in "
            "turn. Made by `python benchmarks/compare.py --write`.\n\n" + table(sources, rows) + "\n"
            + mark + rest)              # import_time.py writes that part


def table(sources, rows):
    """The text of RESULTS.md for rows (group, name, target, seconds here, seconds there); ``sources`` tells of a group,
    and by None of the others, how they were measured."""
    lines = [source if group is None else f"Group {group}: {source}" for group, source in sources.items()]
    lines = "\n\n".join(lines).split("\n")
    lines += ["", "| group | workload | ptcore us | torch us | ratio | must | |", "|---|---|---|---|---|---|---|"]
    for group, name, target, ours, theirs in rows:
        ratio = ours / theirs
        mark = "" if target is None or ratio <= target else "over"
        lines.append(f"| {group} | {name} | {ours * 1e6:.3f} | {theirs * 1e6:.3f} | {ratio:.3f} | "
                     f"{target:.3f} | {mark} |")
    big = [ours / theirs for group, _, _, ours, theirs in rows if group in BIG]
    if big:
        lines += ["", f"Geometric mean of the {len(big)} ratios of large kernels, layers and training: "
                      f"{geometric_mean(big):.3f} (must 0.9)"]
    return "\n".join(lines)


def read(text):
    """(sources, rows) of a table that ``table`` has made."""
    sources, rows = {}, []
    for line in text.splitlines():
        if "minimum of" in line:
            group, _, source = line.partition(": ") if line.startswith("Group ") else ("Group ", "", line)
            sources[group.removeprefix("Group ") or None] = source
        elif line.startswith("| ") and not line.startswith("| group"):
            group, name, ours, theirs, _, target = (cell.strip() for cell in line.split("|")[1:7])
            rows.append((group, name, float(target), float(ours) / 1e6, float(theirs) / 1e6))
    return sources, rows


if __name__ == "__main__":
    main()
