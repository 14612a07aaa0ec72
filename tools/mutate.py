#!/usr/bin/env python3
"""How strong the tests are: changes a line of the package at a time, and sees whether a test fails.

    python tools/mutate.py --seed 7 --number 150 --jobs 4
    python tools/mutate.py --only jit --minutes 60      files of ptcore/jit/, as many as an hour holds

Mutations are drawn by a seed over the package's Python files (``mutations.py``), weighted by their lines. Each is
applied to a copy of the installed package, one copy a worker, never to the source tree, so that this process may be
killed at any time. The tests of the file's room (``ROOMS``) run against the copy and stop at the first that fails:
first the test files that speak most of what was changed, then the room's others, then other rooms' that speak of it
and the examples of docstrings, then what runs alone. A failure counts if the same test passes on the unchanged copy;
one that does not is left out from then on.

Not mutated are files that Cython compiles (the engine, derivative rules, bodies of ops), as the compiled form runs;
what the build reads (``rows.py``, ``_ops/table/``); ``cuda/`` and more for a device, whose tests compile; and public
names that the build writes.

Verdicts: killed, survived, equivalent (in ``mutate_equivalent.tsv``, by its line's text), timeout (the tests of a
stage took longer than ``--limit``; a single test that hangs is a failure). What is judged is written to the folder
``--output`` after every mutation: ``state.json``, from which a run of the same seed and files goes on, and tables
``mutations.tsv`` and ``survivors.md``. Exit status: 0, 1 if less than ``--least`` per cent of the judged was killed,
130 after an interrupt.
"""
import argparse
import concurrent.futures
import contextlib
import ctypes
import hashlib
import itertools
import json
import os
import posixpath
import random
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import mutations as m

ROOT = Path(__file__).resolve().parent.parent
TESTS = ROOT / "tests"
EQUIVALENT = ROOT / "tools" / "mutate_equivalent.tsv"
# Folder of the package -> folders of tests. Files of the root have those of "", and with others the test files that
# stand in no folder.
TOP = "test_*.py"
ROOMS = {
    "": ["core", "compat", "exchange", "utils", TOP], "_exchange": ["exchange"], "_memory": ["core", "multiprocessing"],
    "_ops": ["ops"], "_sizes": ["core", "fx"], "_trees": ["utils", "func"],
    "amp": ["amp"], "array_api": ["array_api"], "autograd": ["autograd", "func"], "backends": ["core", TOP],
    "compat": ["compat"], "cpu": ["core", "amp"], "distributions": ["distributions"], "examples": ["examples"],
    "func": ["func", "autograd"], "fx": ["fx"], "jit": ["jit"], "library": ["library"], "masked": ["masked"],
    "multiprocessing": ["multiprocessing"], "nn": ["nn"], "optim": ["optim"], "profiler": ["profiler", "autograd"],
    "serialization": ["serialization"], "signal": ["signal"], "utils": ["utils", "nn"],
}
NOT_MUTATED = re.compile(r"(_build|cuda|_names|_pkgconfig|_pyinstaller|_ops/table)/|.*/rows\.py$|cpu/amp/|version\.py$"
                         r"|nn/_cuda_graphs\.py$|amp/_of_cuda\.py$")
LIBC = ctypes.CDLL(None) if sys.platform == "linux" else None
PR_SET_PDEATHSIG = 1
DOCTESTS = "tests/test_doctests.py"
FIRST, OTHERS = 4, 6            # test files of the first stage, and of other rooms
ONE_TEST = 180                  # seconds until a test counts as hanging
# A plug-in of pytest that writes which test failed, or which file could not be collected.
PLUGIN = '''
import os
def write(report):
    with open(os.environ["PTCORE_MUTATE_FAILED"], "a") as f:
        f.write(report.nodeid + "\\n")
def pytest_runtest_logreport(report):
    if report.failed:
        write(report)
def pytest_collectreport(report):
    if report.failed:
        write(report)
'''


# -- which tests ---------------------------------------------------------------------------------

def room_of(path):
    """The folder of a file below ``ptcore/``; "" for a file of the root."""
    parts = path.split("/")
    return parts[1] if len(parts) > 2 else ""


def folder_of(test):
    """The folder of a test file below ``tests/``; ``TOP`` for one of no folder."""
    parts = test.split("/")
    return parts[1] if len(parts) > 2 else TOP


def words_of(path, mutation):
    """What a test says that concerns a mutation, the nearest first: public names around it, then the file's name."""
    names = [name for name in reversed(mutation.scope) if not name.startswith("_")]
    stem = path.rpartition("/")[2].removesuffix(".py").strip("_")
    return [*dict.fromkeys([*names, stem if stem != "init" else path.split("/")[-2]])]


def stages(path, mutation, tests):
    """[(test files, marks)] in the order in which they run; ``tests`` is {path of a test file: its text}."""
    words = words_of(path, mutation)

    def score(test):
        text, stem = tests[test], Path(test).stem
        return sum(1000.0 ** -k * (min(text.count(word), 99) + 50 * (word.lower() in stem))
                   for k, word in enumerate(words))

    own = [test for test in tests if folder_of(test) in ROOMS[room_of(path)]]
    ranked = sorted(own, key=score, reverse=True)
    others = [test for test in sorted(tests, key=score, reverse=True)
              if test not in own and score(test) and folder_of(test) not in ("cuda", "outside", "multiprocessing")]
    fast = "not alone and not slow"
    if room_of(path) == "multiprocessing":
        fast = "not slow"
    others = [*others[:OTHERS], *(test for test in tests if test == DOCTESTS)]
    found = [(ranked[:FIRST], fast), (ranked[FIRST:], fast), (others, fast), (ranked[:FIRST], "alone or slow")]
    return [(files, marks) for files, marks in found if files]


# -- state ---------------------------------------------------------------------------------------

class State:
    """What is judged: {"of", "seed", "judged": [row]}, on disk after every change."""

    def __init__(self, path, of, seed, fresh=False):
        self.path = path
        try:
            stored = {} if fresh else json.loads(path.read_text())
            kept = stored["of"] == of and seed in (None, stored["seed"])
        except (OSError, ValueError, KeyError, TypeError):
            kept = False
        self.of = of
        self.seed = stored["seed"] if kept else random.SystemRandom().getrandbits(32) if seed is None else seed
        self.judged = stored["judged"] if kept else []

    def verdict(self, number):
        return next((row["verdict"] for row in self.judged if row["number"] == number), None)

    def add(self, row):
        """Adds a row; the file holds the old state or the new one whenever this is cut short."""
        self.judged.append(row)
        self.judged.sort(key=lambda row: row["number"])
        write(self.path, json.dumps({"of": self.of, "seed": self.seed, "judged": self.judged}, indent=1))


def write(path, text):
    temporary = path.with_suffix(".tmp")
    with open(temporary, "w") as f:
        f.write(text)
        f.flush()
        os.fsync(f.fileno())
    os.replace(temporary, path)


# -- report --------------------------------------------------------------------------------------

COLUMNS = ("number", "file", "line", "operator", "before", "after", "verdict", "by", "seconds")


def table(rows):
    """The tab-separated table of what was judged."""
    def cell(x):
        return str(x).replace("\t", " ").replace("\n", " ")
    return "\n".join(["\t".join(COLUMNS), *("\t".join(cell(row[c]) for c in COLUMNS) for row in rows)]) + "\n"


def rate(rows):
    """(killed, judged): what is equivalent or took too long is not judged."""
    killed = sum(row["verdict"] == "killed" for row in rows)
    return killed, killed + sum(row["verdict"] == "survived" for row in rows)


def report(rows, seed):
    """The page: rates by room and by operator, and what survived."""
    killed, judged = rate(rows)
    percent = f" ({100 * killed / judged:.1f} %)" if judged else ""
    counts = {v: sum(row["verdict"] == v for row in rows) for v in ("equivalent", "timeout")}
    text = [f"# Mutations of seed {seed}", "",
            f"{len(rows)} mutations: {killed} killed of {judged} judged{percent}, {counts['equivalent']} equivalent, "
            f"{counts['timeout']} not judged in time."]
    for title, part in (("room", lambda row: room_of(row["file"]) or "root files"),
                        ("operator", lambda row: row["operator"])):
        text += ["", f"| {title} | killed | judged |", "|---|---|---|"]
        for name in sorted({part(row) for row in rows}):
            text.append("| {} | {} | {} |".format(name, *rate([row for row in rows if part(row) == name])))
    for verdict in ("survived", "timeout"):
        text += ["", f"## {verdict.capitalize()}"]
        for row in rows:
            if row["verdict"] == verdict:
                text += ["", f"{row['file']}:{row['line']}, {row['operator']}", "", f"    {row['before']}",
                         f"    {row['after']}"]
    return "\n".join(text) + "\n"


# -- running -------------------------------------------------------------------------------------

def installed():
    """(path of the build folder or None, {path below site-packages: file}) of the package that Python imports here."""
    code = ("import json, sys, ptcore; f = [x for x in sys.meta_path if hasattr(x, '_build_path')"
            " and 'ptcore' in x._top_level_modules]; from ptcore._core import MODULES;"
            "print(json.dumps([f[0]._build_path if f else None, ptcore.__file__, sorted(MODULES)]))")
    found = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, check=True, text=True, cwd=TESTS)
    build, file, compiled = json.loads(found.stdout)
    if build is None:
        folder = Path(file).parent
        files = {f"ptcore/{p.relative_to(folder).as_posix()}": p for p in folder.rglob("*")
                 if p.is_file() and "__pycache__" not in p.parts}
    else:
        plan = json.loads((Path(build) / "meson-info" / "intro-install_plan.json").read_text())
        files = {posixpath.normpath(where["destination"].partition("}/")[2]): Path(source) for group in plan.values()
                 for source, where in group.items()}
    return build, {path: source for path, source in files.items() if path.startswith("ptcore/")}, set(compiled)


def mutable(files, compiled):
    """{path: text} of what can be mutated."""
    return {path: source.read_text() for path, source in files.items() if path.endswith(".py")
            and not NOT_MUTATED.match(path.removeprefix("ptcore/"))
            and path.removesuffix(".py").replace("/", ".") not in compiled}


def die_with_parent():
    """Tests end with the process that started them, also where that is killed: they are a session of their own."""
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


class Copy:
    """A copy of the package that a worker mutates, and how tests run against it."""

    def __init__(self, folder, files, build, limit):
        self.folder, self.limit, self.process, self.stopped = folder, limit, None, False
        shutil.rmtree(folder, ignore_errors=True)
        for path, source in files.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, folder / path)
        (folder / "_ptcore_mutate.py").write_text(PLUGIN)
        self.failed = folder / "failed"
        self.environment = {**os.environ, "PYTHONPATH": str(folder), "PTCORE_MUTATE_FAILED": str(self.failed),
                            "MESONPY_EDITABLE_SKIP": str(build), "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}

    def put(self, path, text):
        """Writes a file. Its bytecode goes: of two texts of one length and second Python cannot tell which it has."""
        file = self.folder / path
        for cached in (file.parent / "__pycache__").glob(file.stem + ".*"):
            cached.unlink()
        file.write_text(text)

    def pytest(self, arguments, limit):
        """(exit status or None at the limit, ids of what failed)."""
        self.failed.unlink(missing_ok=True)
        command = [sys.executable, "-P", "-m", "pytest", "-x", "-q", "--tb=no", "-p", "no:cacheprovider", "-p",
                   "_ptcore_mutate", "--timeout", str(ONE_TEST), *arguments]
        if self.stopped:
            raise KeyboardInterrupt
        with open(self.folder / "output", "w") as output:
            self.process = subprocess.Popen(command, cwd=ROOT, stdout=output, stderr=subprocess.STDOUT,
                                            env=self.environment, start_new_session=True,
                                            preexec_fn=die_with_parent if LIBC else None)
            try:
                status = self.process.wait(limit)
            except subprocess.TimeoutExpired:
                status = None
            finally:
                self.kill()
        if self.stopped:
            raise KeyboardInterrupt
        return status, self.failed.read_text().splitlines() if self.failed.exists() else []

    def kill(self):
        with contextlib.suppress(ProcessLookupError, AttributeError):
            os.killpg(self.process.pid, signal.SIGKILL)
        with contextlib.suppress(AttributeError):
            self.process.wait()

    def stop(self):
        self.stopped = True
        self.kill()


class Runner:
    """Judges mutations; several threads share what is known of the unchanged package's tests."""

    def __init__(self, tests, equivalent):
        self.tests, self.equivalent = tests, equivalent
        self.passes, self.lock = {}, threading.Lock()

    def judge(self, copy, text, path, mutation):
        """(verdict, by which test)."""
        if m.key(path, mutation) in self.equivalent:
            return "equivalent", ""
        copy.put(path, m.applied(text, mutation))
        verdict = "survived", ""
        try:
            for files, marks in stages(path, mutation, self.tests):
                while True:
                    left_out = [word for test, passes in list(self.passes.items()) if not passes
                                and test.partition("::")[0] in files for word in ("--deselect", test)]
                    status, failed = copy.pytest(["-m", marks, *left_out, *files], copy.limit)
                    if status in (0, 5):
                        break
                    if status is None:
                        verdict = "timeout", ""
                        break
                    by = failed[0] if failed else "the process died" if status != 4 else "nothing is imported"
                    if not failed or self.passes_unchanged(copy, text, path, mutation, by):
                        return "killed", by
        finally:
            copy.put(path, text)
        return verdict

    def passes_unchanged(self, copy, text, path, mutation, test):
        if test not in self.passes:
            copy.put(path, text)
            status, _ = copy.pytest([test], copy.limit)
            copy.put(path, m.applied(text, mutation))
            with self.lock:
                self.passes[test] = status == 0
            if status != 0:
                print(f"mutate: {test} fails on the unchanged package and is left out", file=sys.stderr)
        return self.passes[test]


@contextlib.contextmanager
def progress(number):
    """A function (row) that shows a verdict: a bar where tqdm is installed and somebody watches, lines otherwise."""
    def line(row):
        return f"{row['verdict']:10} {row['file']}:{row['line']} {row['operator']}: {row['after']}"
    try:
        from tqdm import tqdm
    except ImportError:
        tqdm = None
    if tqdm is None or not sys.stderr.isatty():
        yield lambda row: print(line(row), flush=True)
        return
    with tqdm(total=number, unit="mutation") as bar:
        def show(row):
            if row["verdict"] != "killed":
                tqdm.write(line(row))
            bar.update()
        yield show


def run(options, state, todo, files, texts, build, output, tests):
    runner = Runner(tests, m.read_equivalent(EQUIVALENT.read_text()))
    end = time.monotonic() + 60 * options.minutes
    todo, lock = iter(todo), threading.Lock()
    copies = [Copy(output / f"worker-{k}", files, build, options.limit) for k in range(options.jobs)]

    def work(copy, show):
        while time.monotonic() < end:
            with lock:
                number, path, mutation = next(todo, (None, None, None))
            if number is None:
                return
            start = time.monotonic()
            verdict, by = runner.judge(copy, texts[path], path, mutation)
            row = {"number": number, "file": path, "line": mutation.line, "operator": mutation.operator,
                   "before": mutation.before, "after": mutation.after, "verdict": verdict, "by": by,
                   "seconds": round(time.monotonic() - start, 1)}
            with lock:
                state.add(row)
                write(output / "mutations.tsv", table(state.judged))
                write(output / "survivors.md", report(state.judged, state.seed))
                show(row)

    with progress(options.number - len(state.judged)) as show, concurrent.futures.ThreadPoolExecutor(
            options.jobs) as pool:
        futures = [pool.submit(work, copy, show) for copy in copies]
        try:
            for future in concurrent.futures.as_completed(futures):
                future.result()
        except BaseException:
            for copy in copies:
                copy.stop()
            raise


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, help="that of an earlier run (default: that of the state, or random)")
    parser.add_argument("--number", type=int, default=150, help="of mutations (default: 150)")
    parser.add_argument("--jobs", type=int, default=1, help="workers (default: 1)")
    parser.add_argument("--only", metavar="ROOM", help="files of one folder of the package; 'root' for those of none")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="after which no other one is begun")
    parser.add_argument("--limit", type=float, default=1800, help="seconds of one stage of tests (default: 1800)")
    parser.add_argument("--least", type=float, default=0, metavar="PERCENT", help="of the judged to be killed")
    parser.add_argument("--fresh", action="store_true", help="forget what is judged")
    parser.add_argument("--output", type=Path, default=ROOT / "build-mutate", help="folder (default: build-mutate)")
    options = parser.parse_args(argv)
    options.output.mkdir(parents=True, exist_ok=True)
    build, files, compiled = installed()
    texts = mutable(files, compiled)
    if options.only:
        texts = {path: text for path, text in texts.items() if room_of(path) == options.only.replace("root", "")}
        if not texts:
            raise SystemExit(f"mutate: no files to mutate in ptcore/{options.only}/")
    of = hashlib.sha256(json.dumps(sorted(texts.items())).encode()).hexdigest()
    state = State(options.output / "state.json", of, options.seed, options.fresh)
    tests = {path.relative_to(ROOT).as_posix(): path.read_text() for path in sorted(
        [*TESTS.glob("*/**/test_*.py"), *TESTS.glob("test_parity_*.py"), TESTS / "test_testing.py", ROOT / DOCTESTS])}
    drawn = itertools.islice(m.draw(texts, state.seed), options.number)
    todo = [(k, *each) for k, each in enumerate(drawn) if state.verdict(k) is None]
    print(f"mutate: seed {state.seed}, {len(texts)} files, {len(todo)} of {options.number} mutations to judge, "
          f"tables in {options.output}", flush=True)
    try:
        run(options, state, todo, files, texts, build, options.output, tests)
    except KeyboardInterrupt:
        print("mutate: interrupted; a run of the same seed goes on with the rest", file=sys.stderr)
        return 130
    killed, judged = rate(state.judged)
    print(f"mutate: {killed} killed of {judged} judged")
    return int(judged and 100 * killed < options.least * judged)


if __name__ == "__main__":
    raise SystemExit(main())
