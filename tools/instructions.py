"""Instructions of one call of small ops, counted by valgrind: they do not depend on what else the machine does.

    python tools/instructions.py [PYTHON [PYTHON_OF_ANOTHER_BUILD]] [--only NAME,NAME,...] [--cuda]

Each PYTHON is one that imports a build of ptcore. With two of them a third and a fourth column compare the second with
the first (ratio and difference), and the exit status is 1 if an op needs over 1 % more, or one of those without
arithmetic (``item``, ``bool``, ``detach``, ``empty``) over ten instructions more.

With ``--cuda`` the tensors are on a device of the stand-in driver (tests/cuda/host), which does nothing with what is
launched, and the count is that of ptcore's own libraries: what a launch costs the host beside the driver.

``backward`` is that of ten nodes, ``adam`` a step of eight parameters. ``one``, ``two`` and ``four`` are functions of
as many small ops, ``train`` is a whole step of an MLP of width 16; compiled ones are called ``compiled``, or
``recorded`` where the calls have a history. A call's count is the difference of two loops of it, of which one has COUNT
more turns, less that of an empty loop.
"""
import argparse
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FEW, COUNT = 100, 400
RATIO, MORE = 1.01, 10              # what may be more
SETUP = """
import gc, os, sys
import ptcore
from ptcore.nn import functional as F
gc.disable()
ptcore.set_num_threads(1)
x = ptcore.arange(64.0).reshape(8, 8) / 64 - 0.5
y, b, scalar, true = x + 0.25, ptcore.ones(8), ptcore.tensor(1.5), ptcore.tensor(True)
leaf = x.clone().requires_grad_()
end = leaf
for _ in range(5):
    end = (end * y).relu()
noise, weights = ptcore.empty(8), [ptcore.ones(4).requires_grad_() for _ in range(8)]
for w in weights:
    w.grad = ptcore.ones(4)
adam = ptcore.optim.Adam(weights)
adam.step()
u, v = ptcore.arange(16.0) - 8, ptcore.arange(16.0) / 4
h = u.clone().requires_grad_()
def one(x, y): return x + y
def two(x, y): return (x + y).relu()
def four(x, y): return (x + y).relu() * y - x
nn = ptcore.nn
model = nn.Sequential(nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 4))
sgd = ptcore.optim.SGD(model.parameters(), lr=1e-4)
given, wanted = ptcore.arange(256.0).reshape(16, 16) / 256, ptcore.arange(16) % 4
def train(x, y):
    sgd.zero_grad()
    loss = F.cross_entropy(model(x), y)
    loss.backward()
    sgd.step()
    return loss
one_compiled, two_compiled, four_compiled, train_compiled = map(ptcore.compile, (one, two, four, train))
one_recorded, two_recorded, four_recorded = map(ptcore.compile, (one, two, four))
for _ in range(20):
    train_compiled(given, wanted)
    for f, g in ((one_compiled, one_recorded), (two_compiled, two_recorded), (four_compiled, four_recorded)):
        f(u, v), g(h, v)
"""
CALLS = {"nothing": "pass", "add": "x + y", "mul": "x * y", "relu": "ptcore.relu(x)", "sum": "x.sum()",
         "softmax": "x.softmax(1)", "matmul": "x @ y", "linear": "F.linear(x, y, b)", "cat": "ptcore.cat((x, y))",
         "a[1]": "x[1]", "backward": "end.backward(y, retain_graph=True)", "item": "scalar.item()",
         "bool": "bool(true)", "detach": "x.detach()", "empty": "ptcore.empty(8, 8)", "zeros": "ptcore.zeros(8)",
         "rand": "ptcore.rand(8)", "normal_": "noise.normal_()", "adam": "adam.step()",
         **{f"{n}{kind}{of}": f"{n}{kind}({x}, v)" for n in ("one", "two", "four")
            for kind, of, x in (("", "", "u"), ("_compiled", "", "u"), ("", " history", "h"),
                                ("_recorded", " history", "h"))},
         "train": "train(given, wanted)", "train_compiled": "train_compiled(given, wanted)"}
CUDA_SETUP = f"""
sys.path.insert(0, {str(ROOT / "tests" / "cuda" / "host")!r})
import load
driver = load.load(os.environ["PTCORE_STANDIN_DIR"])
x, y, b, scalar, true, leaf = (t.detach().cuda() for t in (x, y, b, scalar, true, leaf))
end = leaf.requires_grad_()
for _ in range(5):
    end = (end * y).relu()
driver.standin_idle(1)
"""
CUDA_CALLS = {**{name: CALLS[name] for name in ("nothing", "add", "relu", "sum", "softmax", "cat", "backward")},
              "add number": "x + 1.5", "add transposed": "x + y.T", "layer_norm": "F.layer_norm(x, (8,), b, b)"}
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
    exec("def loop(n, ptcore=ptcore, F=F, x=x, y=y, b=b, scalar=scalar, true=true, end=end, noise=noise, "
         "adam=adam):\\n"
         "    for _ in range(n):\\n        " + text, globals(), scope)
    measure(scope["loop"])
"""


def spent(path, folder=None):
    """The instructions in a file of callgrind, with a folder those of the libraries there."""
    if not folder:
        return int(re.search(r"^(?:totals|summary): (\d+)", path.read_text(), re.M)[1])
    names, here, after_call, total = {}, None, False, 0
    for line in path.read_text().splitlines():
        if line.startswith(("ob=", "cob=")):
            kind, number, name = re.match(r"(c?)ob=\((\d+)\)(?: (.*))?", line).groups()
            if name:
                names[number] = name
            if not kind:
                here = names[number]
        elif line.startswith("calls="):
            after_call = True                       # the next line is what the called function spent
        elif line[:1] in "+-*0123456789" and line:
            total += int(line.split()[1]) if not after_call and here and here.startswith(folder) else 0
            after_call = False
    return total


def counts(python, names, cuda=False):
    """{name: instructions of one call} in a Python's build."""
    calls = CUDA_CALLS if cuda else CALLS
    program = SETUP + CUDA_SETUP * cuda + LOOPS.format(few=FEW, more=FEW + COUNT, calls=[calls[n] for n in names])
    environment = {**os.environ, "PYTHONHASHSEED": "0"}
    if cuda:
        environment.setdefault("PTCORE_STANDIN_DIR", str(Path(tempfile.gettempdir()) / "ptcore-standin"))
    # An editable build is made here.
    package = subprocess.run([python, "-P", "-c", "import os, ptcore; print(os.path.dirname(ptcore._core.__file__))"],
                             check=True, env=environment, capture_output=True, text=True).stdout.strip()
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "program.py").write_text(program)      # compiled functions need their source
        command = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={folder}/out", "--dump-before=getppid",
                   "--combine-dumps=no", python, "-P", f"{folder}/program.py"]
        done = subprocess.run(command, capture_output=True, text=True, env=environment)
        if done.returncode:
            raise SystemExit(f"{python}: {done.stderr}")
        totals = []
        for path in sorted(Path(folder).glob("out.*"), key=lambda p: int(p.suffix[1:])):
            totals.append(spent(path, cuda and package))
    if len(totals) != 3 * len(names):
        raise SystemExit(f"valgrind made {len(totals)} counts for {len(names)} calls")
    return {name: (totals[3 * k + 2] - totals[3 * k + 1]) / COUNT for k, name in enumerate(names)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("python", nargs="*", default=[sys.executable])
    parser.add_argument("--only", help="names, with commas between them")
    parser.add_argument("--cuda", action="store_true", help="launches on the stand-in driver")
    args = parser.parse_args()
    known = CUDA_CALLS if args.cuda else CALLS
    wanted = args.only.split(",") if args.only else [n for n in known if n != "nothing"]
    names = ["nothing", *wanted]
    tables = [counts(python, names, args.cuda) for python in args.python[:2]]
    failed = False
    for name in wanted:
        found = [table[name] - table["nothing"] for table in tables]
        line = f"{name:22}" + "".join(f"{n:12.1f}" for n in found)
        if len(found) == 2:
            more = found[1] - found[0]
            over = more > MORE if name in PLAIN else found[1] > RATIO * found[0]
            failed = failed or over
            line += f"{found[1] / (found[0] or 1):9.3f}{more:+10.1f}" + "  over" * over
        print(line)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
