"""The package templates of the guide, built and used; ``ptcore-config`` and ``ptcore.pc``."""
import os
import shutil
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest

import ptcore as pt
from ptcore import config_tool

TEMPLATES = Path(__file__).resolve().parents[2] / "doc" / "source" / "guide" / "templates"
USE = """if True:
    import ptcore as pt, erfcx
    x = pt.linspace(-1, 2, 7, dtype=pt.float64).requires_grad_()
    assert pt.allclose(erfcx.erfcx(x), pt.exp(x * x) * pt.erfc(x), rtol=1e-12)
    assert erfcx.erfcx(x.float()).dtype == pt.float32 and erfcx.erfcx(x.to("meta")).shape == x.shape
    assert pt.autograd.gradcheck(erfcx.erfcx, x) and pt.autograd.gradgradcheck(erfcx.erfcx, x)
    print(erfcx.__file__)
"""


@pytest.mark.parametrize("template", ["meson_python", "setuptools"])
def test_a_template_becomes_a_package(template, tmp_path):
    source = shutil.copytree(TEMPLATES / template, tmp_path / "source")
    shutil.copytree(TEMPLATES / "erfcx", source / "erfcx")
    # The commands of this environment, ptcore-config among them, as they are when it is activated.
    path = os.pathsep.join([os.path.dirname(sys.executable), os.environ["PATH"]])
    command = [sys.executable, "-P", "-m", "pip", "install", "--no-build-isolation", "--no-deps", "--target",
               str(tmp_path / "site"), str(source)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, "PATH": path})
    assert done.returncode == 0, done.stdout + done.stderr
    use = [sys.executable, "-c", USE]
    said = subprocess.run(use, cwd=tmp_path / "site", capture_output=True, text=True, check=False)
    assert said.returncode == 0, said.stderr
    assert str(tmp_path / "site") in said.stdout


def test_config(capsys):
    asked = ["--version", "--includedir", "--cflags", "--libs", "--pkgconfigdir", "--cython-path"]
    config_tool.main(asked)
    version, include, cflags, libs, _, above = capsys.readouterr().out.splitlines()
    assert (version, include, cflags, libs) == (pt.__version__, pt.get_include(), f"-I{include}", "")
    assert os.path.isfile(os.path.join(above, "ptcore", "cython_tensor.pxd"))
    with pytest.raises(SystemExit):
        config_tool.main([])
    assert "nothing is asked for" in capsys.readouterr().err


def test_entry_points():
    assert {e.name: e.value for e in entry_points(group="pkg_config")}["ptcore"] == "ptcore._pkgconfig"
    commands = {e.name: e for e in entry_points(group="console_scripts")}
    assert commands["ptcore-config"].load() is config_tool.main
    assert commands["ptcore-examples"].value == "ptcore.examples.__main__:main"


def test_examples_command(capsys):
    from ptcore.examples.__main__ import main
    assert main(["--help"]) == 0
    assert "digits" in capsys.readouterr().out
    assert main(["nothing"]) == 2
    assert "there is no 'nothing'" in capsys.readouterr().err
    with pytest.raises(SystemExit) as stopped:
        main(["digits", "--help"])
    assert stopped.value.code == 0 and "--seeds" in capsys.readouterr().out


def test_the_source_folder_says_what_it_is(tmp_path):
    package = tmp_path / "ptcore"
    package.mkdir()
    source = Path(__file__).resolve().parents[2] / "ptcore"
    for name in ("__init__.py", "meson.build"):
        shutil.copy(source / name, package / name)
    code = """if True:
        import sys
        sys.meta_path = [f for f in sys.meta_path if 'editable' not in type(f).__module__]
        import ptcore
    """
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "ImportError: this is ptcore's source folder" in done.stderr and "pip install ." in done.stderr
