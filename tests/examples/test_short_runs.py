"""The examples with stated results: short runs, options, what they print, their exit status; and the long runs."""
import argparse
import builtins
import importlib
import pkgutil
import re
import sys
from pathlib import Path

import pytest

import ptcore as pt

for package in ("sklearn", "tqdm", "matplotlib"):
    pytest.importorskip(package)

from ptcore import examples  # noqa: E402
from ptcore.examples import _common  # noqa: E402

SHORT = {
    "vae": "--epochs 2 --width 16 --hidden 2 --batch-size 256 --draws 5",
    "pendulum": "--iterations 2 --pendulums 4 --epochs 1 --batch-size 200 --width 8 --episodes 8",
    "ode": "--steps 4 --length 3 --width 8 --batch-size 8 --trajectories 2",
    "heat": "--steps 4 --polish 1 --points 16 --width 8 --layers 2",
    "regression": "--steps 4 --points 50 --held 200 --width 8",
}
NUMBERS = {"vae": ("elbo", "bound"), "pendulum": ("mean_return", "upright"), "ode": ("inside", "beyond"),
           "heat": ("error",), "regression": ("nll", "coverage", "constant")}
# What each says of its default settings; ``test_reaches_what_it_states`` sees that they reach it.
STATED = {
    "vae": [("test ELBO in nats an image", "at least -23.5"), ("test bound from 5 draws", "at least -23")],
    "pendulum": [("mean return of 8 episodes", "at least -200"), ("upright at the end", "at least 0.95")],
    "ode": [("relative error in the time of training", "at most 0.05"),
            ("relative error in the time after it", "at most 0.12")],
    "heat": [("relative L2 error against the closed form", "at most 0.005")],
    "regression": [("coverage of the interval of 90 %", "at least 0.87 and at most 0.93"),
                   ("nats better than a constant scale", "at least 0.2")],
}
GALLERY = Path(__file__).resolve().parents[2] / "doc" / "source"


def run(name, folder, *extra):
    example = importlib.import_module(f"ptcore.examples.{name}")
    found = example.main([*SHORT[name].split(), "--quiet", "--plot", str(folder / "a.png"), *extra])
    assert (folder / "a.png").read_bytes().startswith(b"\x89PNG\r\n\x1a\n")
    return found


def numbers(name, found):
    return [found[key] for key in NUMBERS[name]]


@pytest.mark.parametrize("name", SHORT)
def test_short_run(name, tmp_path, capsys):
    found = run(name, tmp_path)
    assert found["status"] == 0         # only the default settings are stated to reach something
    assert all(pt.isfinite(pt.tensor(numbers(name, found))))
    printed = capsys.readouterr().out
    assert re.findall(r"^(.*?):? \S+ \(stated: (.*); with the default settings\)$", printed, re.M) == STATED[name]


@pytest.mark.parametrize("name", SHORT)
def test_compiled_and_seeded(name, tmp_path):
    """Compiled steps give the numbers of eager ones, and another seed gives others."""
    eager = numbers(name, run(name, tmp_path))
    assert numbers(name, run(name, tmp_path, "--compile")) == eager
    assert numbers(name, run(name, tmp_path, "--seed", "1")) != eager


@pytest.mark.parametrize("name", ["vae", "heat"])
def test_threads_do_not_change_the_result(name, tmp_path):
    before = pt.get_num_threads()
    try:
        one, two = (numbers(name, run(name, tmp_path, "--threads", str(n))) for n in (1, 2))
    finally:
        pt.set_num_threads(before)
    assert one == two


@pytest.mark.slow
@pytest.mark.parametrize("name", SHORT)
def test_reaches_what_it_states(name, tmp_path):
    """Compiled as well: the pages' gallery runs most of them whole so, and short runs give equal numbers."""
    example = importlib.import_module(f"ptcore.examples.{name}")
    found = example.main(["--quiet", "--plot", str(tmp_path / "a.png")])
    assert found["reached"]
    assert found["status"] == 0


def example(*argv):
    settings = {"steps": (5, "of it"), "rough": (False, "or fine"), "kind": (("a", "b"), "which")}
    return _common.Example("test", "A title.\n\nMore.", ["--quiet", *argv], **settings)


def test_options():
    options = example("--steps", "3", "--rough", "--kind", "b", "--seed", "4").options
    assert (options.steps, options.rough, options.kind, options.seed) == (3, True, "b", 4)
    assert example().options.device == pt.device("cpu")
    assert pt.initial_seed() == 0


@pytest.mark.parametrize("argv, value, status", [
    ([], 1.0, 0), ([], 2.0, 1), ([], 0.4, 1), ([], float("nan"), 1), (["--steps", "3"], 2.0, 0),
    (["--seed", "1", "--compile"], 2.0, 1)])
def test_status(argv, value, status, capsys):
    """The exit status says whether the default settings, whatever the seed is, reached what is stated."""
    run = example(*argv)
    run.claim("another one", 3, high=3.0, form=".1f")
    run.claim("a number:", value, low=0.5, high=1.5)
    found = run.result(extra=7)
    assert (found["status"], found["reached"], found["extra"]) == (status, value == 1.0, 7)
    printed = capsys.readouterr().out
    assert "another one 3.0 (stated: at most 3.0; " in printed
    assert "at least 0.5 and at most 1.5" in printed
    assert ("NOT reached" in printed) == bool(status)


@pytest.mark.parametrize("device", ["toaster", "cuda:77"])
def test_absent_device_is_named(device, capsys):
    with pytest.raises(SystemExit):
        example("--device", device)
    assert device.partition(":")[0] in capsys.readouterr().err
    with pytest.raises(argparse.ArgumentTypeError):
        _common.device(device)


@pytest.mark.parametrize("package, call", [
    ("tqdm", lambda: example()), ("matplotlib", lambda: _common.pyplot("test")),
    ("sklearn", lambda: _common.load_images("test"))])
def test_missing_extra_is_named(package, call, monkeypatch):
    original = builtins.__import__

    def fails(name, *args, **kwargs):
        if name.partition(".")[0] == package:
            raise ImportError(f"No module named {name!r}")
        return original(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", fails)
    with pytest.raises(SystemExit, match=r"pip install ptcore\[examples\]"):
        call()


@pytest.mark.skipif(not (GALLERY / "_gallery.py").exists(), reason="needs the source tree")
def test_gallery(monkeypatch):
    """Every example has a page; short runs are given options that there are; docstrings are shown as they stand."""
    monkeypatch.syspath_prepend(str(GALLERY))
    gallery = importlib.import_module("_gallery")
    names = {m.name for m in pkgutil.iter_modules(examples.__path__) if not m.name.startswith("_")}
    assert set(gallery.SHORT) == names
    contents = (GALLERY / "gallery" / "index.rst").read_text()
    for name in names:
        assert f"generated/{name}\n" in contents
        page = gallery.page(name)
        assert f".. code-block:: console\n\n    python -m ptcore.examples.{name}\n" in page
        assert f".. image:: {name}.png" in page
        example = importlib.import_module(f"ptcore.examples.{name}")
        if hasattr(example, "parse_arguments"):
            example.parse_arguments(gallery.SHORT[name].split())
        else:
            monkeypatch.setattr(example, "Example", lambda name, doc, argv, **settings: sys.exit(
                str(_common.Example(name, doc, argv, **settings).options.quiet)))
            with pytest.raises(SystemExit, match="True"):
                example.main([*gallery.SHORT[name].split(), "--quiet"])
