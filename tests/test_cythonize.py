"""ptcore/_build/cythonize.py: many modules in one process; what has not changed is not made again."""
import importlib.util
import os
import shutil
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parent.parent / "ptcore" / "_build" / "cythonize.py"

pytestmark = pytest.mark.skipif(not SCRIPT.exists() or not shutil.which("cython"),
                                reason="needs the source tree and Cython")


@pytest.fixture
def modules(tmp_path, monkeypatch):
    """``run()`` makes what ``one.pyx``, which reads ``shared.pxd``, and ``two.py`` give."""
    (tmp_path / "shared.pxd").write_text("cdef extern from *:\n    ctypedef int number\n")
    (tmp_path / "one.pyx").write_text("from shared cimport number\ndef f(number x):\n    return x + 1\n")
    (tmp_path / "two.py").write_text("def g(x):\n    return x\n")
    out = tmp_path / "out"
    out.mkdir()
    monkeypatch.chdir(tmp_path)

    def run(here=True):
        spec = importlib.util.spec_from_file_location("cythonize", SCRIPT)
        script = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(script)
        if not here:
            script.VERSION = None
        monkeypatch.setattr(sys, "argv", ["cythonize", "--out", str(out), "--depfile", "d", "--cython",
                                          shutil.which("cython"), "--include", str(tmp_path), "one=one.pyx",
                                          "sub.two=two.py"])
        script.main()

    run.out, run.folder = out, tmp_path
    return run


def times(run):
    return {path.name: path.stat().st_mtime_ns for path in run.out.glob("*.cpp")}


def test_what_has_changed_is_made_again(modules):
    modules()
    first = times(modules)
    assert set(first) == {"one.cpp", "sub_two.cpp"}
    rule = (modules.folder / "d").read_text().split()
    assert rule[0] == f"{modules.out}/one.cpp:" and {Path(word).name for word in rule[1:]} == {
        "cythonize.py", "one.pyx", "shared.pxd", "two.py"}
    for path in modules.folder.glob("*.p*"):
        os.utime(path)
    modules()
    assert times(modules) == first
    (modules.folder / "two.py").write_text("def g(x):\n    return -x\n")
    modules()
    second = times(modules)
    assert second["one.cpp"] == first["one.cpp"] and second["sub_two.cpp"] > first["sub_two.cpp"]
    (modules.folder / "shared.pxd").write_text("cdef extern from *:\n    ctypedef long number\n")
    modules()
    assert times(modules)["one.cpp"] > first["one.cpp"]
    (modules.out / "one.cpp").unlink()
    modules()
    assert (modules.out / "one.cpp").stat().st_size


def test_an_equal_result_keeps_its_time(modules):
    modules()
    first = times(modules)
    with open(modules.folder / "shared.pxd", "a") as file:
        file.write("# a remark\n")
    modules()
    assert times(modules) == first


def test_an_error_leaves_no_result(modules, capsys):
    modules()
    (modules.folder / "one.pyx").write_text("def f(:\n")
    with pytest.raises(SystemExit, match="1"):
        modules()
    assert "one.pyx:1:6" in capsys.readouterr().err
    assert not (modules.out / "one.cpp").exists()


def test_the_program_gives_the_same(modules):
    """Where the build's Python has no Cython."""
    modules()
    here = {path.name: path.read_bytes() for path in modules.out.glob("*.cpp")}
    modules(here=False)
    assert {path.name: path.read_bytes() for path in modules.out.glob("*.cpp")} == here


def test_a_new_pxd_is_noticed(modules, monkeypatch):
    """Beside a source that had none: it would give types to the source."""
    from Cython.Compiler import Main
    made, compile_single = [], Main.compile_single

    def counted(source, *args, **keywords):
        made.append(source)
        return compile_single(source, *args, **keywords)

    monkeypatch.setattr(Main, "compile_single", counted)
    modules()
    assert made == ["one.pyx", "two.py"]
    (modules.folder / "two.pxd").write_text("cpdef g(int x)\n")
    modules()
    modules()
    assert made == ["one.pyx", "two.py", "two.py"]
    (modules.folder / "two.pxd").unlink()
    modules()
    assert made == ["one.pyx", "two.py", "two.py", "two.py"]


def test_a_run_that_was_broken_off_is_made_again(modules, monkeypatch):
    """Though the source is again as it was before that run."""
    modules()
    source, whole = (modules.folder / "two.py").read_text(), (modules.out / "sub_two.cpp").read_text()
    (modules.folder / "two.py").write_text("def g(x):\n    return -x\n")

    def broken_off(source, options, full_module_name):
        Path(options.output_file).write_text(whole[:100])
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("Cython.Compiler.Main.compile_single", broken_off)
        with pytest.raises(KeyboardInterrupt):
            modules()
    (modules.folder / "two.py").write_text(source)
    modules()
    assert (modules.out / "sub_two.cpp").read_text() == whole
