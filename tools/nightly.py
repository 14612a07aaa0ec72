#!/usr/bin/env python3
"""The long tests, in parts, which go round:

    python tools/nightly.py                  parts for two hours, those first that have waited longest
    python tools/nightly.py --minutes 480    for longer
    python tools/nightly.py --only PART      these parts alone (a name or a group; may be repeated)
    python tools/nightly.py --list           the parts, and when each of them ran last

benchmarks/NIGHTLY.md has a row for each part: when it ran last, at which commit and with which seed, what came of it,
and the commit at which it passed last. A row is written as soon as its part has ended, so that an interrupted run goes
on with the part that it was in. Each part is a process of its own; its output is a file in build-nightly/.

Tested is the `ptcore` that `python` imports here, except in the sanitizers' parts, which build
their own. The exit status is 0 if all parts passed, 1 if one failed, 130 after an interrupt.
"""
import argparse
import contextlib
import datetime
import hashlib
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

What `tools/nightly.py` ran last: a row for each part.

| part | date (UTC) | commit | seed | result | minutes | passed last at |
|---|---|---|---|---|---|---|
"""
EXAMPLES = 20           # times the ordinary number of hypothesis' examples
DIGITS_SEEDS = 10
DIGITS_ACCURACY = 98.5
KILLS = 100             # runs that are killed and go on
INTERRUPTS = 100        # loaders that Ctrl-C ends, for each way to start processes
MOMENTS = 6000          # interrupts of programs at random moments
OP_DB_SEEDS = 3
PROGRAMS = 100_000
MUTATIONS = 150
KILLED = 75             # per cent of the mutations that were judged
STORM_CALLS = 1_000_000
STORM_PARTS = 8
ARCHITECTURES = (75, 80, 90, 100, 120)
PYTHONS = ("3.12", "3.13", "3.14", "3.15")
LIMIT = 4 * 3600        # seconds of one part
MINUTES = 120


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
    # what CI runs only where it has changed
    found["cuda/host"] = ([*pytest, *(f"tests/cuda/test_{name}.py" for name in (
        "allocator", "host_kernels", "launch_cost"))], {"PTCORE_TEST_BUILDS": "1"})
    found["cuda/device"] = ([*pytest, "tests/cuda/test_on_standin.py"], {"PTCORE_TEST_BUILDS": "1"})
    # the CPU's tests with tensors that are on the device by default
    found["cuda/everywhere"] = (
        [*pytest, "-p", "_everywhere", *(f"tests/{name}" for name in (
            "autograd", "distributions", "func", "nn", "ops", "optim"))],
        {"PYTHONPATH": str(ROOT / "tests" / "cuda")})
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
    found["moments"] = ([*pytest, "tests/core/test_moments.py"],
                        {"PTCORE_TEST_MOMENTS": str(MOMENTS), "PTCORE_TEST_SEED": str(seed % 10**9)})
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
    for name, number in (("programs", PROGRAMS), ("write_programs", PROGRAMS // 5),
                         ("storage_windows", PROGRAMS // 20)):
        found[name] = ([*pytest, f"tests/func/test_{name}.py"],
                       {"PTCORE_TEST_PROGRAMS": str(number), "PTCORE_TEST_SEED": str(seed % 10**9)})
    # random programs of script, and such of ``compile`` between whose calls what they read changes
    found["script_programs"] = ([*pytest, "tests/jit/test_script_programs.py"],
                                {"PTCORE_SCRIPT_PROGRAMS": str(PROGRAMS), "PTCORE_TEST_SEED": str(seed % 10**9)})
    found["compiled_programs"] = ([*pytest, "tests/jit/test_guards_random.py", "tests/jit/test_compile_random.py"],
                                  {"PTCORE_GUARD_EXAMPLES": str(PROGRAMS // 4)})
    found["outside_state"] = ([*pytest, "tests/jit/test_outside_state.py"],
                              {"PTCORE_OUTSIDE_PROGRAMS": str(PROGRAMS // 5), "PTCORE_TEST_SEED": str(seed % 10**9)})
    # one training program wherever programs run
    found["places"] = ([sys.executable, "-P", "tools/places.py"], {})
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
    # scipy.datasets needs a network
    found["scipy"] = ([*pytest, "-c", os.devnull, "-p", "_scipy_backend", "--ignore-glob", "*/scipy/datasets/*",
                       "--pyargs", "scipy"], {"PYTHONPATH": str(ROOT / "tests" / "outside")})
    # what CI runs only where it has changed: the builds of two other forms, with the page about adding an op
    found["builds"] = ([*pytest, "tests/test_add_an_op.py"], {"PTCORE_TEST_BUILDS": "1"})
    # wheels of the other Pythons, with the core tests and what knows the interpreter, and with the whole suite
    for version in PYTHONS:
        command = [sys.executable, "tools/ship.py", f"python-{version}", "--jobs", str(os.cpu_count())]
        found[f"python/{version}"], found[f"whole/{version}"] = (command, {}), ([*command, "--whole"], {})
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


# -- record --------------------------------------------------------------------------------------

def rows():
    """{part: its row's cells} of the record."""
    lines = RECORD.read_text().splitlines() if RECORD.exists() else []
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("| ")]
    return {row[0]: row for row in cells[1:] if len(row) == 7}


def write(name, at, seed, result):
    """Puts a part's row in the place of its last one; the file holds the old rows or the new ones at any moment."""
    found = rows()
    date = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M")
    passed = at if result["ok"] else found[name][6] if name in found else "never"
    found[name] = [name, date, at, seed, describe(result).partition(" in ")[0], f"{result['seconds'] / 60:.1f}", passed]
    text = HEADER + "".join(f"| {' | '.join(map(str, found[key]))} |\n" for key in sorted(found))
    RECORD.parent.mkdir(parents=True, exist_ok=True)
    temporary = RECORD.with_suffix(".tmp")
    with open(temporary, "w") as f:
        f.write(text)
        f.flush()
        os.fsync(f.fileno())
    os.replace(temporary, RECORD)


def in_turn(names):
    """The parts in the order in which they are run: those that never ran, then those that have waited longest."""
    found = rows()
    return sorted(names, key=lambda name: found[name][1] if name in found else "")


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
    parser.add_argument("--minutes", type=float, default=MINUTES, help="no part starts later (default: %(default)s)")
    parser.add_argument("--seed", type=int, help="that of an earlier run (default: random)")
    options = parser.parse_args(argv)
    WORK.mkdir(exist_ok=True)
    at = commit()
    seed = random.SystemRandom().getrandbits(32) if options.seed is None else options.seed
    found = parts(seed)
    names = select(found, options.only) if options.only else in_turn(found)
    if options.list:
        known = rows()
        for name in names:
            print(f"{name:24}{', '.join(known[name][1:3] + known[name][4:5]) if name in known else '-'}")
        return 0

    print(f"nightly: commit {at}, seed {seed}, output in {WORK}")
    end = time.monotonic() + 60 * options.minutes
    ok = True
    try:
        with progress(len(names)) as show:
            for name in names:
                if not options.only and time.monotonic() >= end:
                    print("nightly: the time is over; the next run goes on with the rest")
                    break
                show(name, None)
                result = run_part(name, *found[name])
                write(name, at, seed, result)
                show(name, result)
                ok &= result["ok"]
    except KeyboardInterrupt:
        print("nightly: interrupted; the next run goes on with the rest", file=sys.stderr)
        return 130
    return 0 if ok else 1


if __name__ == "__main__":
    raise SystemExit(main())
