#!/usr/bin/env python3
"""Runs one training program in every place where programs run, and compares what it prints with the plain run:

    python tools/places.py                   all places
    python tools/places.py --only NAME       these alone (may be repeated)

A place is a way to start Python, a limit, a surrounding program or a tool. Those whose package is not installed are
named as "absent"; the exit status is 1 if a place failed.
"""
import argparse
import importlib.util
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
from pathlib import Path

PROGRAM = textwrap.dedent('''
    import io, os
    import ptcore as pt
    from ptcore import nn
    from ptcore.utils.data import DataLoader, TensorDataset

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.body = nn.Sequential(nn.Conv1d(1, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(24, 2))

        def forward(self, x):
            assert x.shape[1] == 1
            return self.body(x).log_softmax(-1)

    def train(workers=0):
        pt.manual_seed(0)
        net = Net()
        data = TensorDataset(pt.randn(48, 1, 8), pt.arange(48) % 2)
        loader = DataLoader(data, batch_size=8, shuffle=True, num_workers=workers)
        step, optimizer = pt.compile(net), pt.optim.Adam(net.parameters(), lr=0.01)
        for _ in range(3):
            for x, y in loader:
                optimizer.zero_grad()
                nn.functional.nll_loss(step(x), y).backward()
                optimizer.step()
        file = io.BytesIO()
        pt.save(net.state_dict(), file)
        file.seek(0)
        other = Net()
        other.load_state_dict(pt.load(file))
        x = data.tensors[0]
        whole = other(x).exp() @ pt.eye(2)
        pt.linalg.svd(whole.detach())
        return f"{sum(p.double().abs().sum().item() for p in other.parameters()):.9f} {whole.sum().item():.4f}"

    if __name__ == "__main__":
        print(train(int(os.environ.get("PLACES_WORKERS", "0"))), flush=True)
''').lstrip()
LIMIT = 240             # seconds of one place
PLACES = {}


def place(f):
    PLACES[f.__name__.replace("_", " ")] = f
    return f


class Absent(Exception):
    """Raised where the package or the program of a place is not installed."""


def python(*args, text=None, before=None, folder=None, **environment):
    """The output of a run of Python in a folder; raises if it fails."""
    env = {k: v for k, v in {**os.environ, **environment}.items() if v is not None}
    done = subprocess.run([sys.executable, *map(str, args)], input=text, capture_output=True, text=True, timeout=LIMIT,
                          env=env, preexec_fn=before, cwd=folder or tempfile.gettempdir())
    if done.returncode:
        raise RuntimeError(f"exit status {done.returncode}: {(done.stderr or done.stdout).strip()[-600:]}")
    return done.stdout


def code(text):
    """A place that is a program of its own, which has ``program`` as a module."""
    text = f"import os, signal, sys, program\n{textwrap.dedent(text)}"
    return lambda folder: python("-c", text, PYTHONPATH=str(folder), folder=folder)


def needs(name):
    if importlib.util.find_spec(name) is None:
        raise Absent(name)


# -- ways to start Python -----------------------------------------------------------------------------------

for _name, _flags in {"dash O": "-O", "dash OO": "-OO", "dev mode": "-X dev", "isolated": "-I", "no bytecode": "-B",
                      "bytes warnings": "-bb", "utf8 mode": "-X utf8", "safe path": "-P",
                      "fault handler": "-X faulthandler", "traced memory": "-X tracemalloc=5",
                      "import times": "-X importtime", "unbuffered": "-u"}.items():
    PLACES[_name] = lambda folder, flags=_flags: python(*flags.split(), folder / "program.py")
for _name, _environment in {
        "one thread": {"PTCORE_NUM_THREADS": "1"}, "no ISA extension": {"PTCORE_CPU_CAPABILITY": "base"},
        "C locale": {"LC_ALL": "C", "PYTHONUTF8": "0"}, "no home": {"HOME": None, "USER": None},
        "hash seed": {"PYTHONHASHSEED": "12345"}, "malloc of Python": {"PYTHONMALLOC": "malloc"},
        "debug of malloc": {"PYTHONMALLOC": "debug"}, "two workers": {"PLACES_WORKERS": "2"},
        "temporary folder that is absent": {"TMPDIR": "/nonexistent"}}.items():
    PLACES[_name] = lambda folder, environment=_environment: python(folder / "program.py", **environment)


@place
def standard_input(folder):
    return python("-", text=PROGRAM)


@place
def dash_c(folder):
    return python("-c", PROGRAM)


@place
def dash_m(folder):
    return python("-m", "program", PYTHONPATH=str(folder), folder=folder)


@place
def zip_application(folder):
    shutil.make_archive(str(folder / "app"), "zip", folder / "zipped")
    return python(folder / "app.zip")


@place
def path_with_spaces_and_letters(folder):
    there = folder / "a b ü 数"
    there.mkdir()
    shutil.copy(folder / "program.py", there)
    return python(there / "program.py")


@place
def folder_that_is_gone(folder):
    there = folder / "gone"
    there.mkdir()
    return python("-c", f"import os, shutil; os.chdir({str(there)!r}); shutil.rmtree({str(there)!r})\n"
                  f"import runpy; runpy.run_path({str(folder / 'program.py')!r}, run_name='__main__')")


# -- limits --------------------------------------------------------------------------------------------------

@place
def few_descriptors(folder):
    return python(folder / "program.py", before=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64)),
                  PLACES_WORKERS="2")


@place
def limited_address_space(folder):
    return python(folder / "program.py", before=lambda: resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30)),
                  PTCORE_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")


@place
def closed_standard_streams(folder):
    out = folder / "streams.txt"
    python("-c", f"import os\nfor k in (0, 1, 2): os.close(k)\nimport runpy\n"
           f"space = runpy.run_path({str(folder / 'program.py')!r})\nopen({str(out)!r}, 'w').write(space['train'](2))")
    return out.read_text()


@place
def ignored_signals(folder):
    def before():
        for number in (signal.SIGINT, signal.SIGHUP, signal.SIGPIPE):
            signal.signal(number, signal.SIG_IGN)
    return python(folder / "program.py", before=before, PLACES_WORKERS="2")


# -- surrounding programs -------------------------------------------------------------------------------------

SHOWN = "print(program.train(), flush=True)"
for _name, _text in {
        "exec": "exec(open('program.py').read())",
        "thread": f"""
            import threading
            t = threading.Thread(target=lambda: {SHOWN})
            t.start()
            t.join()""",
        "executor": """
            import concurrent.futures
            with concurrent.futures.ThreadPoolExecutor(2) as executor:
                print(executor.submit(program.train).result())""",
        "fork": f"""
            pid = os.fork()
            if not pid:
                {SHOWN}
                os._exit(0)
            raise SystemExit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) & 255)""",
        "fork after use": """
            program.train()
            pid = os.fork()
            if not pid:
                print(program.train(2), flush=True)
                os._exit(0)
            raise SystemExit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) & 255)""",
        "at exit": f"""
            import atexit
            atexit.register(lambda: {SHOWN})""",
        "asyncio": """
            import asyncio
            async def main():
                print(await asyncio.to_thread(program.train))
            asyncio.run(main())""",
        "no garbage collection": f"""
            import gc
            gc.disable()
            {SHOWN}""",
        "frequent garbage collection": f"""
            import gc
            gc.set_threshold(5)
            {SHOWN}""",
        "profile": """
            import cProfile
            print(cProfile.Profile().runcall(program.train))""",
        "trace function": f"""
            sys.settrace(lambda *a: None)
            {SHOWN}""",
        "errors of floats in NumPy": f"""
            import numpy
            numpy.seterr(all="raise")
            {SHOWN}""",
        "warnings as errors": f"""
            import warnings
            warnings.simplefilter("error")
            {SHOWN}""",
        "low limit of recursion": f"""
            program.train()
            sys.setrecursionlimit(160)
            {SHOWN}""",
        "alarms": """
            signal.signal(signal.SIGALRM, lambda *a: None)
            signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
            print(program.train(2))
            signal.setitimer(signal.ITIMER_REAL, 0)""",
        "device as a context": f"""
            import ptcore
            with ptcore.device("cpu"):
                {SHOWN}""",
}.items():
    PLACES[_name] = code(_text)
for _method in ("fork", "spawn", "forkserver"):
    PLACES[f"pool by {_method}"] = lambda folder, method=_method: python(_written(folder, f"pool_{method}.py", f"""
import multiprocessing, program
if __name__ == "__main__":
    with multiprocessing.get_context({method!r}).Pool(1) as pool:
        print(pool.apply(program.train))
"""))


def _written(folder, name, text):
    path = folder / name
    path.write_text(text)
    return path


# -- tools ---------------------------------------------------------------------------------------------------

@place
def pytest_with_rewritten_assertions(folder):
    needs("pytest")
    _written(folder, "test_inner.py", PROGRAM.split("if __name__")[0] + textwrap.dedent('''
        def test_train():
            open("out.txt", "w").write(train())
            assert pt.compiler.explain(Net())(pt.ones(2, 1, 8)).graph_count == 1
    '''))
    python("-m", "pytest", "-q", "-p", "no:cacheprovider", folder / "test_inner.py", folder=folder)
    return (folder / "out.txt").read_text()


@place
def ipython(folder):
    needs("IPython")
    return python("-m", "IPython", "--no-banner", "--quick", "--colors=NoColor", folder / "program.py",
                  IPYTHONDIR=str(folder / "ipython"))


@place
def pyinstaller(folder):
    needs("PyInstaller")
    python("-m", "PyInstaller", "--noconfirm", "--log-level=ERROR", folder / "program.py", folder=folder)
    done = subprocess.run([folder / "dist" / "program" / "program"], capture_output=True, text=True, timeout=LIMIT)
    if done.returncode:
        raise RuntimeError(done.stderr[-600:])
    return done.stdout


def is_near(got, want):
    """Whether the numbers agree to the last digits of float32, which depend on the level of kernels."""
    try:
        found = [float(word) for word in got.split()]
    except ValueError:
        return False
    wanted = [float(word) for word in want.split()]
    return len(found) == len(wanted) and all([abs(a - b) <= 1e-6 * abs(b) for a, b in zip(found, wanted)])


def main(arguments=None):
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--only", action="append", default=[], help="names of places")
    options = parser.parse_args(arguments)
    unknown = set(options.only) - PLACES.keys()
    if unknown:
        parser.error(f"there is no place {sorted(unknown)}; the places are {sorted(PLACES)}")
    failed, absent = [], []
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        _written(folder, "program.py", PROGRAM)
        (folder / "zipped").mkdir()
        _written(folder / "zipped", "__main__.py", PROGRAM)
        want = python(folder / "program.py").strip()
        print(f"{'the plain run':40} {want}")
        for name in options.only or PLACES:
            begin = time.monotonic()
            try:
                got = PLACES[name](folder).strip()
                result = "same" if is_near(got, want) else f"differs: {got[-300:]!r}"
            except Absent as error:
                absent.append(name)
                result = f"absent: {error}"
            except (RuntimeError, OSError, subprocess.SubprocessError) as error:
                result = f"failed: {error}"
            if result.startswith(("differs", "failed")):
                failed.append(name)
            print(f"{name:40} {result} ({time.monotonic() - begin:.1f} s)", flush=True)
    passed = len(options.only or PLACES) - len(failed) - len(absent)
    print(f"{passed} passed, {len(failed)} failed, {len(absent)} absent")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
