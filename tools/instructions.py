"""Instructions of one call of small ops, counted by valgrind: they do not depend on what else the machine does.

    python tools/instructions.py [PYTHON [PYTHON_OF_ANOTHER_BUILD]] [--only NAME,NAME,...]

Each PYTHON is one that imports a build of ptcore. With two of them a third and a fourth column compare the second with
the first (ratio and difference), and the exit status is 1 if an op needs over 1 % more, or one of those without
arithmetic (``item``, ``bool``, ``detach``, ``empty``) over ten instructions more.

``backward`` is that of ten nodes. A call's count is the difference of two loops of it, of which one has COUNT more
turns, less that of an empty loop.
"""
import argparse
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

FEW, COUNT = 100, 400
RATIO, MORE = 1.01, 10              # what may be more
SETUP = """
import gc, os, sys
import ptcore
from ptcore.nn import functional as F
gc.disable()
ptcore.set_num_threads(1)
x = ptcore.arange(64.0).reshape(8, 8) / 64 - 0.5
y, b, one, true = x + 0.25, ptcore.ones(8), ptcore.tensor(1.5), ptcore.tensor(True)
leaf = x.clone().requires_grad_()
end = leaf
for _ in range(5):
    end = (end * y).relu()
"""
CALLS = {"nothing": "pass", "add": "x + y", "mul": "x * y", "relu": "ptcore.relu(x)", "sum": "x.sum()",
         "softmax": "x.softmax(1)", "matmul": "x @ y", "linear": "F.linear(x, y, b)", "cat": "ptcore.cat((x, y))",
         "a[1]": "x[1]", "backward": "end.backward(y, retain_graph=True)", "item": "one.item()", "bool": "bool(true)",
         "detach": "x.detach()", "empty": "ptcore.empty(8, 8)"}
PLAIN = ("item", "bool", "detach", "empty")
# getppid is where valgrind begins a new count.
LOOPS = """
def measure(loop):
    loop({few})
    os.getppid()
    loop({few})
    os.getppid()
    loop({more})
    os.getppid()
for text in {calls}:
    scope = {{}}
    exec("def loop(n, ptcore=ptcore, F=F, x=x, y=y, b=b, one=one, true=true, end=end):\\n"
         "    for _ in range(n):\\n        " + text, globals(), scope)
    measure(scope["loop"])
"""


def counts(python, names):
    """{name: instructions of one call} in a Python's build."""
    program = SETUP + LOOPS.format(few=FEW, more=FEW + COUNT, calls=[CALLS[n] for n in names])
    environment = {**os.environ, "PYTHONHASHSEED": "0"}
    subprocess.run([python, "-P", "-c", "import ptcore"], check=True, env=environment)      # an editable build is made
    with tempfile.TemporaryDirectory() as folder:
        command = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={folder}/out", "--dump-before=getppid",
                   "--combine-dumps=no", python, "-P", "-c", program]
        done = subprocess.run(command, capture_output=True, text=True, env=environment)
        if done.returncode:
            raise SystemExit(f"{python}: {done.stderr}")
        totals = []
        for path in sorted(Path(folder).glob("out.*"), key=lambda p: int(p.suffix[1:])):
            totals.append(int(re.search(r"^(?:totals|summary): (\d+)", path.read_text(), re.M)[1]))
    if len(totals) != 3 * len(names):
        raise SystemExit(f"valgrind made {len(totals)} counts for {len(names)} calls")
    return {name: (totals[3 * k + 2] - totals[3 * k + 1]) / COUNT for k, name in enumerate(names)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("python", nargs="*", default=[sys.executable])
    parser.add_argument("--only", help="names, with commas between them")
    args = parser.parse_args()
    wanted = args.only.split(",") if args.only else [n for n in CALLS if n != "nothing"]
    names = ["nothing", *wanted]
    tables = [counts(python, names) for python in args.python[:2]]
    failed = False
    for name in wanted:
        found = [table[name] - table["nothing"] for table in tables]
        line = f"{name:10}" + "".join(f"{n:12.1f}" for n in found)
        if len(found) == 2:
            more = found[1] - found[0]
            over = more > MORE if name in PLAIN else found[1] > RATIO * found[0]
            failed = failed or over
            line += f"{found[1] / found[0]:9.3f}{more:+10.1f}" + "  over" * over
        print(line)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
