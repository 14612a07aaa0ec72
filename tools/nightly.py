#!/usr/bin/env python3
"""The long tests, in parts that may be interrupted:

    python tools/nightly.py              run what is not finished yet, in this order
    python tools/nightly.py --list       the parts and what is finished
    python tools/nightly.py --only PART  these parts alone, finished or not (a name or a group)
    python tools/nightly.py --fresh      forget what is finished

A finished part is written to a state file at once, so a run that was interrupted goes on where it
stopped, with its seed. The state belongs to one commit and its local changes; on any other it is
forgotten. When the last part is finished, one line is appended to benchmarks/NIGHTLY.md and the
state is removed. Each part is a process of its own; its output is a file in build-nightly/.

Tested is the `ptcore` that `python` imports here, except in the sanitizers' parts, which build
their own. The exit status is 0 if all parts passed, 1 if one failed, 130 after an interrupt.
"""
import argparse
import contextlib
import datetime
import hashlib
import json
import os
import random
import re
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
WORK = ROOT / "build-nightly"
RECORD = ROOT / "benchmarks" / "NIGHTLY.md"
HEADER = """# Nightly runs

One line for each finished run of `tools/nightly.py`.

| date (UTC) | commit | seed | parts | passed | failed | skipped | digits | minutes | failed parts |
|---|---|---|---|---|---|---|---|---|---|
"""
EXAMPLES = 20           # times the ordinary number of hypothesis' examples
DIGITS_SEEDS = 10
DIGITS_ACCURACY = 98.5
KILLS = 100             # runs that are killed and go on
INTERRUPTS = 100        # loaders that Ctrl-C ends, for each way to start processes
OP_DB_SEEDS = 3
PROGRAMS = 100_000
MUTATIONS = 150
KILLED = 75             # per cent of the mutations that were judged
STORM_CALLS = 1_000_000
STORM_PARTS = 8
ARCHITECTURES = (75, 80, 90, 100, 120)
LIMIT = 4 * 3600        # seconds of one part


# -- parts ---------------------------------------------------------------------------------------

def parts(seed):
    """{name: (command, additions to the environment)} in the order of a run.

    ``{junit}`` in a command stands for the file that pytest counts its tests in.
    """
    folders = sorted(p.parent.name for p in (ROOT / "tests").glob("*/test_*.py"))
    folders = {name: [f"tests/{name}"] for name in dict.fromkeys(folders)}
    folders["top"] = sorted(f"tests/{p.name}" for p in (ROOT / "tests").glob("test_*.py"))
    common = ["-q", "-p", "no:cacheprovider", "--durations=15", f"--hypothesis-seed={seed}", "--junitxml={junit}"]
    pytest = [sys.executable, "-P", "-m", "pytest", *common]
    found = {f"suite/{name}": ([*pytest, "-m", "not parity", *paths], {}) for name, paths in folders.items()}
    found["parity"] = ([*pytest, "-m", "parity", "tests"],
                       {"PTCORE_TEST_WRONG_CALLS": "all", "PTCORE_TEST_PEAKS": "all"})
    found["hypothesis"] = ([*pytest, "tests", "-m", "hypothesis"], {"PTCORE_TEST_EXAMPLES": str(EXAMPLES)})
    seeds = random.Random(seed).sample(range(2**31), DIGITS_SEEDS)
    # tests/cuda itself runs the device's tests on the stand-in driver; here more seeds of it, products fused into sums
    # as a GPU does, checks of every access, and every program for every architecture
    device = [*pytest, "tests/cuda/device"]
    for more in range(3):
        found[f"cuda/{more}"] = (device, {"PTCORE_TEST_CUDA": "standin", "PTCORE_STANDIN_SEED": str(seed + more)})
    found["cuda/fused"] = (device, {"PTCORE_TEST_CUDA": "standin", "PTCORE_STANDIN_FUSED": "1"})
    found["cuda/races"] = (device, {"PTCORE_TEST_CUDA": "standin", "PTCORE_STANDIN_SANITIZE": "races",
                                    "PTCORE_STANDIN_DIR": str(WORK / "standin-races")})
    every = {"PTCORE_TEST_EXAMPLES": str(EXAMPLES), "PTCORE_TEST_CUDA": "standin"}
    nvrtc = [*pytest, "tests/cuda/test_nvrtc.py"]
    found["cuda/every"] = ([*nvrtc, "tests/cuda/device/test_device_ops.py", "-k", "not everything"], every)
    for architecture in ARCHITECTURES:
        found[f"cuda/sm_{architecture}"] = ([*nvrtc, "-k", f"everything and {architecture}"], every)
    # the functions that the backend finds in NVIDIA's libraries, with these installed
    libraries = str(WORK / "cuda-libraries")
    found["cuda/libraries"] = ([sys.executable, "-P", "tools/cuda_libraries.py", libraries, *common], {})
    # packages that were written for PyTorch, beside PyTorch
    found["packages"] = ([sys.executable, "-P", "tools/packages.py", str(WORK / "packages"), *common], {})
    found["restart"] = ([*pytest, "tests/utils/test_restart.py"], {"PTCORE_TEST_KILLS": str(KILLS)})
    found["interrupts"] = ([*pytest, "tests/utils/test_workers.py", "-k", "ctrl_c"],
                           {"PTCORE_TEST_INTERRUPTS": str(INTERRUPTS)})
    found["digits"] = ([sys.executable, "-P", "-m", "ptcore.examples.digits", "--quiet", "--output", str(WORK),
                        "--seeds", *map(str, seeds)], {})
    found["files"] = ([sys.executable, "-P", "tools/fuzz_files.py", "--cases", "1000000", "--seed", str(seed), "--jobs",
                       str(os.cpu_count())], {})
    found["sanitizers/files"] = (["sh", "tools/sanitize.sh", "--run", "tools/fuzz_files.py", "--cases", "100000",
                                  "--seed", str(seed)], {"PYTHON": sys.executable})
    # torch's op database: every sample of every dtype, with three seeds
    for more in range(OP_DB_SEEDS):
        found[f"op_db/{more}"] = ([sys.executable, "-P", "-m", "op_db", "--all", "--seed", str(seed + more), "--jobs",
                                   str(os.cpu_count()), "--table", str(WORK / f"op_db_{more}.tsv"), "--details",
                                   str(WORK / f"op_db_{more}.jsonl")], {"PYTHONPATH": str(ROOT / "tests" / "ops")})
    # torch's databases of modules and of optimizers
    for name, folder in (("module_db", "nn"), ("optim_db", "optim")):
        found[name] = ([sys.executable, "-P", "-m", name, "--all", "--seed", str(seed), "--table",
                        str(WORK / f"{name}.tsv"), "--details", str(WORK / f"{name}.json")],
                       {"PYTHONPATH": os.pathsep.join(str(ROOT / "tests" / part) for part in ("", "ops", folder))})
    # random programs under nested transformations
    found["programs"] = ([*pytest, "tests/func/test_programs.py"],
                         {"PTCORE_TEST_PROGRAMS": str(PROGRAMS), "PTCORE_TEST_SEED": str(seed % 10**9)})
    # random programs of script, and such of ``compile`` between whose calls what they read changes
    found["script_programs"] = ([*pytest, "tests/jit/test_script_programs.py"],
                                {"PTCORE_SCRIPT_PROGRAMS": str(PROGRAMS), "PTCORE_TEST_SEED": str(seed % 10**9)})
    found["compiled_programs"] = ([*pytest, "tests/jit/test_guards_random.py", "tests/jit/test_compile_random.py"],
                                  {"PTCORE_GUARD_EXAMPLES": str(PROGRAMS // 4)})
    # random calls, which the sanitizers watch; a part is one that ends within its limit
    storm = ["tools/storm.py", "--seed", str(seed), "--torch", sys.executable]
    found["storm"] = ([sys.executable, "-P", *storm, "--calls", "200000", "--report", str(WORK / "storm.json")], {})
    for more in range(STORM_PARTS):
        found[f"sanitizers/storm_{more}"] = (
            ["sh", "tools/sanitize.sh", "--run", *storm, "--calls", str(STORM_CALLS // STORM_PARTS), "--first",
             str(STORM_CALLS // STORM_PARTS * more), "--report", str(WORK / f"storm_{more}.json")],
            {"PYTHON": sys.executable})
    # the public suite of the array API standard: a clone of data-apis/array-api-tests with its submodule
    suite = os.environ.get("ARRAY_API_TESTS_DIR")
    if suite:
        found["array_api"] = ([*pytest, "-c", f"{suite}/pytest.ini", "--rootdir", suite, "--max-examples", "100",
                               "--disable-deadline", "--xfails-file", str(ROOT / "tools" / "array_api_xfails.txt"),
                               f"{suite}/array_api_tests"],
                              {"ARRAY_API_TESTS_MODULE": "ptcore.array_api", "PYTHONPATH": suite})
    else:
        print("nightly: no part array_api, as ARRAY_API_TESTS_DIR names no clone of array-api-tests", file=sys.stderr)
    # SciPy's own tests, those that take other libraries' arrays, with tensors
    found["scipy"] = ([*pytest, "-c", os.devnull, "-p", "_scipy_backend", "--pyargs", "scipy"],
                      {"PYTHONPATH": str(ROOT / "tests" / "outside")})
    # how strong the tests are: changed lines that a test has to notice
    found["mutate"] = ([sys.executable, "-P", "tools/mutate.py", "--number", str(MUTATIONS), "--seed", str(seed),
                        "--jobs", str(os.cpu_count()), "--minutes", str(LIMIT // 60 - 30), "--least", str(KILLED),
                        "--output", str(WORK / "mutate")], {})
    found["install"] = ([sys.executable, "-P", "tools/check_install.py"], {})
    for name, paths in folders.items():
        # tests of kernels compile them themselves, without sanitizers
        found[f"sanitizers/{name}"] = (["sh", "tools/sanitize.sh", *common[3:], "-m", "not slow", "-k", "not _kernels",
                                        *paths], {"PYTHON": sys.executable})
    return found


def run_part(name, command, additions):
    """Runs one part; returns its result: ok, seconds, and counts or a score."""
    log = WORK / (name.replace("/", "_") + ".log")
    junit = log.with_suffix(".xml")
    junit.unlink(missing_ok=True)
    command = [word.replace("{junit}", str(junit)) for word in command]
    start = time.monotonic()
    with open(log, "w") as output:
        process = subprocess.Popen(command, cwd=ROOT, stdout=output, stderr=subprocess.STDOUT,
                                   env={**os.environ, **additions}, start_new_session=True)
        try:
            code = process.wait(LIMIT)
        except BaseException as error:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            if not isinstance(error, subprocess.TimeoutExpired):
                raise
            code = None
            output.write(f"\nnightly: stopped after {LIMIT} s\n")
    result = {"ok": code == 0, "seconds": round(time.monotonic() - start, 1), **counts(junit)}
    if name == "digits":
        score = re.search(r"mean test accuracy ([\d.]+)%", log.read_text())
        result["digits"] = float(score[1]) if score else None
        result["ok"] &= score is not None and result["digits"] >= DIGITS_ACCURACY
    return result


def counts(junit):
    """Tests by outcome from pytest's XML; nothing where a part wrote none."""
    try:
        suites = list(ElementTree.parse(junit).getroot().iter("testsuite"))
    except (OSError, ElementTree.ParseError):
        return {}
    total = {key: sum(int(s.get(key, 0)) for s in suites) for key in ("tests", "failures", "errors", "skipped")}
    failed = total["failures"] + total["errors"]
    return {"passed": total["tests"] - failed - total["skipped"], "failed": failed, "skipped": total["skipped"]}


# -- state ---------------------------------------------------------------------------------------

def commit():
    """The short commit, with a hash of the local changes if there are any."""
    def git(*arguments):
        return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, check=True).stdout
    try:
        name = git("rev-parse", "--short=10", "HEAD").decode().strip()
        changes = git("diff", "HEAD", "--", ".", f":!{RECORD.relative_to(ROOT).as_posix()}")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return name + ("+" + hashlib.sha256(changes).hexdigest()[:8] if changes else "")


class State:
    """What is finished: {"commit", "seed", "done": {part: result}}, on disk after every change."""

    def __init__(self, path, at, seed=None, fresh=False):
        self.path = path
        stored = {} if fresh else self.read()
        if stored and (stored["commit"] != at or seed not in (None, stored["seed"])):
            print(f"nightly: the state of commit {stored['commit']}, seed {stored['seed']}, is forgotten")
            stored = {}
        self.commit = at
        self.seed = stored["seed"] if stored else random.SystemRandom().getrandbits(32) if seed is None else seed
        self.done = stored["done"] if stored else {}

    def read(self):
        try:
            stored = json.loads(self.path.read_text())
            return stored if {"commit", "seed", "done"} <= stored.keys() else {}
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, AttributeError) as error:
            print(f"nightly: {self.path} cannot be read ({error}): everything is run")
            return {}

    def finish(self, name, result):
        """Adds a result; the file holds the old state or the new one whenever this is cut short."""
        self.done[name] = result
        text = json.dumps({"commit": self.commit, "seed": self.seed, "done": self.done}, indent=1)
        temporary = self.path.with_suffix(".tmp")
        with open(temporary, "w") as f:
            f.write(text)
            f.flush()
            os.fsync(f.fileno())
        os.replace(temporary, self.path)

    def forget(self):
        self.path.unlink(missing_ok=True)


# -- report --------------------------------------------------------------------------------------

def total(results, key):
    return sum(result.get(key, 0) for result in results)


def line(state, names):
    """The run's line of the record."""
    results = [state.done[name] for name in names]
    digits = next((f"{r['digits']} %" for r in results if r.get("digits") is not None), "-")
    failed = [name for name in names if not state.done[name]["ok"]]
    date = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M")
    cells = [date, state.commit, state.seed, len(names), total(results, "passed"), total(results, "failed"),
             total(results, "skipped"), digits, round(total(results, "seconds") / 60), ", ".join(failed) or "-"]
    return "| " + " | ".join(map(str, cells)) + " |\n"


def append(text, record):
    """Appends a line; the record's header comes with its first line."""
    record.parent.mkdir(parents=True, exist_ok=True)
    with open(record, "a") as f:
        if f.tell() == 0:
            f.write(HEADER)
        f.write(text)


def describe(result):
    words = ["ok" if result["ok"] else "FAILED"]
    words += [f"{result[key]} {key}" for key in ("passed", "failed", "skipped") if result.get(key)]
    if result.get("digits") is not None:
        words.append(f"{result['digits']} %")
    return f"{', '.join(words)} in {result['seconds']:.0f} s"


@contextlib.contextmanager
def progress(number):
    """A function (name, result or None) that shows a part's start or end: on a bar where tqdm is
    installed and somebody watches, as plain lines otherwise."""
    try:
        from tqdm import tqdm
    except ImportError:
        tqdm = None
    if tqdm is None or not sys.stderr.isatty():
        yield lambda name, result: print(f"{name}: {describe(result) if result else 'started'}", flush=True)
        return
    with tqdm(total=number, unit="part") as bar:
        def show(name, result):
            if result:
                tqdm.write(f"{name}: {describe(result)}")
                bar.update()
            else:
                bar.set_description(name)
        yield show


def select(names, wanted):
    """The names that are wanted or belong to a wanted group."""
    for word in wanted:
        if not any(name == word or name.startswith(word + "/") for name in names):
            raise SystemExit(f"nightly: no part {word!r}; --list names them")
    return [name for name in names if any(name == word or name.startswith(word + "/") for word in wanted)]


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--list", action="store_true", help="name the parts")
    parser.add_argument("--only", action="append", metavar="PART", help="may be repeated")
    parser.add_argument("--fresh", action="store_true", help="forget what is finished")
    parser.add_argument("--seed", type=int, help="that of an earlier run (default: random)")
    options = parser.parse_args(argv)
    WORK.mkdir(exist_ok=True)
    state = State(WORK / "state.json", commit(), options.seed, options.fresh)
    found = parts(state.seed)
    names = select(found, options.only) if options.only else list(found)
    if options.list:
        for name in names:
            print(f"{name:24}{describe(state.done[name]) if name in state.done else '-'}")
        return 0

    print(f"nightly: commit {state.commit}, seed {state.seed}, output in {WORK}")
    todo = [name for name in names if options.only or name not in state.done]
    if len(todo) < len(names):
        print(f"nightly: {len(names) - len(todo)} of {len(names)} parts were finished before")
    try:
        with progress(len(todo)) as show:
            for name in todo:
                show(name, None)
                state.finish(name, run_part(name, *found[name]))
                show(name, state.done[name])
    except KeyboardInterrupt:
        print("nightly: interrupted; the next run goes on with the rest", file=sys.stderr)
        return 130
    text = line(state, names)
    append(text, RECORD)
    print(text, end="")
    if not options.only:
        state.forget()
    return 0 if all(state.done[name]["ok"] for name in names) else 1


if __name__ == "__main__":
    raise SystemExit(main())
