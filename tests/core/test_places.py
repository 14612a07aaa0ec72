"""Where programs run: without docstrings, packed, under settings of the environment, beside other libraries."""
import os
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

import ptcore as pt

SOURCE = Path(pt.__file__).parent
EVERY_MODULE = """
import importlib, pkgutil, warnings
warnings.simplefilter("ignore")
import ptcore
def fail(name):
    raise ImportError(name)
for m in pkgutil.walk_packages(ptcore.__path__, "ptcore.", onerror=fail):
    if not {"_build", "_pyinstaller", "examples"} & set(m.name.split(".")):
        importlib.import_module(m.name)
"""


def run(*args, **environment):
    done = subprocess.run([sys.executable, "-P", *args], capture_output=True, text=True, env={**os.environ, **environment})
    return done.returncode, done.stdout, done.stderr


def test_every_module_without_docstrings():
    assert run("-OO", "-c", EVERY_MODULE) == (0, "", "")


def test_programs_without_docstrings():
    for name in ("regression", "digits"):
        code, out, errors = run("-OO", "-m", f"ptcore.examples.{name}", "--help")
        assert (code, errors) == (0, "") and out.startswith("usage: ")
    code, out, errors = run("-OO", "-c", "import ptcore as pt\nm = pt.compile(pt.nn.Sequential(pt.nn.Conv1d(1, 2, 3), "
                            "pt.nn.MaxPool1d(2)))\nm(pt.ones(1, 1, 8)).sum().backward()\n"
                            "print(pt.jit.script(pt.nn.Linear(2, 2))(pt.ones(1, 2)).shape)")
    assert (code, out, errors) == (0, "ptcore.Size([1, 2])\n", "")


def test_the_hook_of_pyinstaller_names_every_module():
    hook = runpy.run_path(str(SOURCE / "_pyinstaller" / "hook-ptcore.py"))
    named = set(hook["hiddenimports"])
    for name in ("ptcore", "ptcore._memory.segments", "ptcore.nn.modules.linear", "ptcore.cuda.driver.loading"):
        assert name in named, name
    code, out, _ = run("-c", "import sys, ptcore as pt\npt.compile(pt.nn.Linear(2, 2))(pt.ones(1, 2)).sum().backward()\n"
                       "pt.fft.fft(pt.ones(4)); pt.linalg.svd(pt.eye(2)); pt.distributions.Normal(0., 1.).sample()\n"
                       "repr(pt.ones(2) @ pt.ones(2)); list(pt.utils.data.DataLoader([1, 2]))\n"
                       "for n, m in list(sys.modules.items()):\n    file = getattr(m, '__file__', None)\n"
                       "    if n.split('.')[0] == 'ptcore' and file: print(n, file)")
    lines = [line.split(" ", 1) for line in out.splitlines()]
    assert code == 0 and len(lines) > 200
    # Others are in a build folder, or several in one file.
    here = {name for name, file in lines if Path(file).is_relative_to(SOURCE)
            and Path(file).name.partition(".")[0] in (name.rpartition(".")[2], "__init__")}
    assert len(here) > 100 and here <= named
    assert ("absent.tsv", "ptcore/compat/torch") in [(Path(a).name, Path(b).as_posix()) for a, b in hook["datas"]]
    assert runpy.run_path(str(SOURCE / "_pyinstaller" / "__init__.py"))["get_hook_dirs"]() == [
        str(SOURCE / "_pyinstaller")]


@pytest.mark.parametrize(("name", "value", "told"), [
    ("PTCORE_CPU_CAPABILITY", "zz", "none of the levels"), ("PTCORE_NUM_THREADS", "abc", "no positive number"),
    ("PTCORE_NUM_THREADS", "-2", "no positive number"), ("PTCORE_NUM_THREADS", "0", "no positive number")])
def test_settings_without_effect_are_told(name, value, told):
    code, _, errors = run("-c", "import ptcore", **{name: value})
    assert code == 0 and errors.count("RuntimeWarning") == 1 and f"{name}={value!r}" in errors and told in errors


def test_settings_with_effect_are_not_told():
    code, out, errors = run("-c", "import ptcore; print(ptcore.get_num_threads(), ptcore._ops.levels.cpu_capability())",
                            PTCORE_CPU_CAPABILITY="base", PTCORE_NUM_THREADS="1")
    assert (code, out, errors) == (0, "1 base\n", "")


def test_a_modulus_is_refused():
    for call in (lambda: pow(pt.tensor(2), 3, 5), lambda: pow(2, pt.tensor(3), 5)):
        with pytest.raises(TypeError, match="pow: a tensor takes no third argument"):
            call()
    assert pow(pt.tensor(2), 3).item() == pow(2, pt.tensor(3)).item() == 8


@pytest.fixture
def flushed():
    done = pt.set_flush_denormal(True)
    yield done
    pt.set_flush_denormal(False)


@pytest.mark.parametrize("threads", [1, 2])
def test_denormal_numbers(flushed, threads):
    x = pt.full((1 << 18,), 1e-310, dtype=pt.float64)
    before = pt.get_num_threads()
    pt.set_num_threads(threads)
    try:
        assert (x * 1).count_nonzero() == (0 if flushed else x.numel())
        pt.set_flush_denormal(False)
        assert (x * 1).count_nonzero() == x.numel()
    finally:
        pt.set_num_threads(before)


def test_the_adjoint_names_itself():
    with pytest.raises(RuntimeError, match=r"^mH: tensor.mH is only supported on matrices or batches of matrices, got a 1-D tensor"):
        pt.ones(2).mH  # noqa: B018


@pytest.mark.skipif(os.name != "posix", reason="limits and signals of POSIX")
def test_some_places_of_the_night():
    names = ("exec", "fork after use", "pool by spawn", "alarms", "closed standard streams", "few descriptors")
    code, out, errors = run(str(Path(__file__).parents[2] / "tools" / "places.py"), *[f"--only={n}" for n in names])
    assert code == 0 and out.count(" same (") == len(names), out + errors
