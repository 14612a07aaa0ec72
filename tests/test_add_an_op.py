"""Executes doc/source/dev/add_an_op.rst: puts its row into a copy of the source, builds that copy
(one ISA level, no optimisation) and runs the page's examples and the table's tests on the op.

The build is also the only one of two other forms, so that their tests are here: the path of unknown compilers
(``-Dportable=true``) and autograd as plain Python (``-Dcompile_python=false``), which is read and debugged.
"""
import os
import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from _since import since

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "doc" / "source" / "dev" / "add_an_op.rst"

# A build of its own takes minutes: it is made where what it is about has changed, and at night.
ABOUT = ("doc/source/dev/add_an_op.rst", "tests/test_add_an_op.py", "meson.build", "meson.options",
         "ptcore/meson.build", "ptcore/_build", "ptcore/_ops/kernels", "ptcore/_ops/include", "ptcore/autograd")
pytestmark = [pytest.mark.slow, since("builds", *ABOUT)]

# An editable install would be found before PYTHONPATH.
NOT_EDITABLE = """
import sys
sys.meta_path[:] = [f for f in sys.meta_path if "editable" not in type(f).__module__]
"""
START = NOT_EDITABLE + """
import ptcore
assert ptcore.__file__.startswith({tree!r}), ptcore.__file__
"""


def rows_of(text):
    """[(file, code)] of the blocks with a caption."""
    found = re.findall(r"\.\. code-block:: python\n   :caption: (\S+)\n\n((?:   .*\n|\n)+)", text)
    return [(name, textwrap.dedent(code)) for name, code in found]


def environment(**more):
    """With the tools of this Python's environment found first, activated or not."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    return {**os.environ, "PATH": path, **more}


def run(command, env=None, **keywords):
    done = subprocess.run(command, capture_output=True, text=True, env=env or environment(), **keywords)
    assert done.returncode == 0, f"{command}\n{done.stdout[-8000:]}\n{done.stderr[-8000:]}"
    return done.stdout


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    """A built copy of the source with the page's row: the folder that holds ``ptcore``."""
    folder = tmp_path_factory.mktemp("add_an_op")
    source = folder / "source"
    shutil.copytree(ROOT, source, ignore=shutil.ignore_patterns(
        "build", "build-*", ".git", "*.so", "__pycache__", ".*_cache", ".hypothesis"))
    for name, code in rows_of(PAGE.read_text()):
        with open(source / name, "a") as f:
            f.write("\n" + code)
    meson = [sys.executable, "-P", "-m", "mesonbuild.mesonmain"]
    run([*meson, "setup", str(folder / "build"), str(source), "-Doptimization=0", "-Dportable=true",
         "-Dcompile_python=false", "-Dcuda=disabled"])
    run([*meson, "compile", "-C", str(folder / "build")])
    run([*meson, "install", "-C", str(folder / "build"), "--destdir", str(folder / "out")])
    (package,) = (folder / "out").rglob("ptcore/__init__.py")
    return package.parent.parent


def run_in(tree, script):
    """Runs a script with the built copy."""
    return run([sys.executable, "-P", "-c", START.format(tree=str(tree)) + textwrap.dedent(script)],
               env=environment(PYTHONPATH=str(tree)), cwd=tree)


def test_examples(tree):
    run_in(tree, f"""
        import doctest
        result = doctest.testfile({str(PAGE)!r}, module_relative=False)
        assert result.attempted > 25, result
        raise SystemExit(result.failed)
    """)


@pytest.mark.timeout(1800)
def test_autograd_as_plain_python(tree):
    (tree / "not_editable.py").write_text(NOT_EDITABLE)         # for pytest's workers
    arguments = [str(ROOT / "tests" / "autograd"), "-q", "-p", "no:cacheprovider", "-p", "not_editable", "-n", "2",
                 "-m", "not alone and not counts"]
    out = run_in(tree, f"""
        import pytest
        config = ptcore.show_config()
        assert "plain Python" in config and "level: base" in config and "build: debug" in config, config
        raise SystemExit(pytest.main({arguments}))
    """)
    assert int(re.search(r"(\d+) passed", out)[1]) > 1000, out


def test_generated_files(tree):
    stub = (tree / "ptcore" / "__init__.pyi").read_text()
    assert stub.count("def softclip(") == 2       # function and method
    assert "def softclip_(" in stub
    assert "def softclip(" in (tree / "ptcore" / "nn" / "functional.pyi").read_text()


def test_table_tests_cover_it(tree):
    """The tests generated from the table pick the op up without being told."""
    arguments = ["-q", str(ROOT / "tests" / "ops"), "--rows", "softclip", "-p", "no:cacheprovider"]
    out = run_in(tree, f"""
        import pytest
        raise SystemExit(pytest.main({arguments}))
    """)
    passed = int(re.search(r"(\d+) passed", out)[1])
    assert passed > 20, out
