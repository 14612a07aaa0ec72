"""``utils.cpp_extension``: texts and files, the cache, errors of compilers, setuptools."""
import os
import stat
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import ptcore as pt
from ptcore.utils import _extension_build, cpp_extension
from ptcore.utils.cpp_extension import load, load_inline

SCALED = "pt::Tensor f(pt::Tensor x, double a) { return x * a; }"


def test_a_whole_program():
    m = load_inline("m", SCALED, functions=["f"])
    assert m.f(pt.ones(2), 3.0).tolist() == [3, 3] and m.__name__ == "m"
    x = pt.ones(2, requires_grad=True)
    m.f(x, 2.0).sum().backward()
    assert x.grad.tolist() == [2, 2]
    documented = load_inline("m", [SCALED, "double g(double x) { return x + 1; }"],
                             functions={"f": 'says "x" \\ é?', "g": "plus one"})
    assert documented.f.__doc__ == 'says "x" \\ é?' and documented.g(1) == 2


def test_cython():
    m = load_inline("in_cython", "static double twice(double x) { return 2 * x; }", cython_sources="""
        from ptcore.cython_tensor cimport Tensor, data_ptr, numel
        cdef extern from "in_cython.hpp":
            double twice(double)
        def total(Tensor x):
            cdef double *p = <double *>data_ptr(x)
            return sum([twice(p[i]) for i in range(numel(x))])
    """.replace("\n        ", "\n"))
    assert m.total(pt.arange(4, dtype=pt.float64)) == 12
    with pytest.raises(RuntimeError, match=r"(?s)bad_cython does not compile:.*return x \+.*bad_cython.pyx:2"):
        load_inline("bad_cython", cython_sources="def f(int x):\n    return x +\n")


def test_the_compiler_s_message_and_no_cache_of_it():
    for _ in range(2):
        with pytest.raises(RuntimeError, match=r"(?s)load_inline: wrong does not compile:.*wrong.cpp:2:\d+:.*x \* y;"):
            load_inline("wrong", "pt::Tensor f(pt::Tensor x) {\n    return x * y;\n}", functions=["f"])
    mended = load_inline("wrong", "pt::Tensor f(pt::Tensor x) {\n    return x * x;\n}", functions="f")
    assert mended.f(pt.full((1,), 3.0)) == 9


def counting_compiler(folder, monkeypatch):
    """Sets CXX to a program that notes its calls; how many compiled."""
    log, script = folder / "calls", folder / "counted"
    script.write_text(f"#!/bin/sh\necho \"$@\" >> {log}\nexec {cpp_extension.get_cxx_compiler()} \"$@\"\n")
    script.chmod(script.stat().st_mode | stat.S_IEXEC)
    monkeypatch.setenv("CXX", str(script))
    return lambda: sum(" -c " in line for line in log.read_text().splitlines()) if log.exists() else 0


def test_eight_processes_compile_once(tmp_path, monkeypatch):
    count = counting_compiler(tmp_path, monkeypatch)
    code = f"""if True:
        import ptcore as pt
        from ptcore.utils.cpp_extension import load_inline
        m = load_inline("together", {SCALED!r}, functions=["f"], build_directory={str(tmp_path)!r})
        print(m.f(pt.ones(1), 5.0).item())
    """
    command = [sys.executable, "-P", "-c", code]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(8)]
    assert [p.communicate()[0].strip() for p in running] == ["5.0"] * 8
    assert count() == 1


def test_what_the_cache_knows(tmp_path, monkeypatch):
    count = counting_compiler(tmp_path, monkeypatch)
    header, source = tmp_path / "number.h", tmp_path / "it.cpp"
    header.write_text("#define NUMBER 1\n")
    source.write_text('#include <ptcore/extension.h>\n#include "number.h"\nint64_t f() { return NUMBER + MORE; }\n'
                      'PT_MODULE(it, m) { m.def("f", &f); }\n')

    def build(more=0):
        return load("it", source, extra_cflags=[f"-DMORE={more}"], build_directory=tmp_path / "build").f()

    assert (build(), build(), count()) == (1, 1, 1)
    assert (build(5), build(), count()) == (6, 1, 2)
    header.write_text("#define NUMBER 2\n")
    assert (build(), build(), count()) == (2, 2, 3)
    source.write_text(source.read_text().replace("NUMBER +", "10 * NUMBER +"))
    assert (build(), count()) == (20, 4)
    (tmp_path / "counted").write_text((tmp_path / "counted").read_text() + "# another compiler\n")
    assert (build(), count()) == (20, 5)
    left = [p.name for p in (tmp_path / "build").iterdir() if p.suffix == ".tmp"]
    assert not left


def test_no_compiler(monkeypatch):
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setenv("PATH", "")
    find_spec = _extension_build.importlib.util.find_spec
    monkeypatch.setattr(_extension_build.importlib.util, "find_spec",
                        lambda name: None if name in ("ziglang", "Cython") else find_spec(name))
    with pytest.raises(RuntimeError, match=r"load_inline: there is no C\+\+ compiler.* 'ptcore\[compiler\]'"):
        load_inline("without", SCALED + " ", functions=["f"])
    monkeypatch.setenv("CXX", "no-such-compiler -O2")
    with pytest.raises(RuntimeError, match="CXX names 'no-such-compiler -O2', which is no program"):
        load_inline("without", SCALED + " ", functions=["f"])
    monkeypatch.setenv("CXX", sys.executable)
    with pytest.raises(RuntimeError, match=r"written in Cython, which is not installed.* 'ptcore\[compiler\]'"):
        load_inline("without", cython_sources="x = 1")


@pytest.mark.parametrize("abi", [1, 2, 99])
def test_another_abi(abi):
    headers = f"#include <ptcore/kernel.h>\n#undef PT_ABI\n#define PT_ABI {abi}\n#include <ptcore/extension.h>\n"
    with pytest.raises(ImportError, match=rf"compiled against ABI {abi} of ptcore, and the ptcore that runs has ABI 3: "
                                          "build it again"):
        load_inline(f"abi_{abi}", headers + SCALED, functions=["f"], no_implicit_headers=True)


@pytest.mark.parametrize("call, error, message", [
    (lambda: load_inline("no name", SCALED), ValueError, "name must be an identifier, got 'no name'"),
    (lambda: load_inline(3, SCALED), TypeError, "name must be a str, got int"),
    (lambda: load_inline("m"), ValueError, "cpp_sources or cython_sources must be given"),
    (lambda: load_inline("m", 3), TypeError, "int"),
    (lambda: load_inline("m", [SCALED, 3]), TypeError, "cpp_sources must be a str or a list of them, got int at 1"),
    (lambda: load_inline("m", SCALED, cuda_sources="x"), RuntimeError, "cuda_sources is not supported.*register_k"),
    (lambda: load_inline("m", SCALED, with_cuda=True), RuntimeError, "register_kernel"),
    (lambda: load_inline("m", "", functions=["f"], cython_sources="x = 1"), ValueError, "cython_sources export theirs"),
    (lambda: load_inline("m", "int x;"), ImportError, r"m exports no module.*PT_MODULE\(m, m\)"),
    (lambda: load("m", "none.cpp"), FileNotFoundError, "there is no source none.cpp"),
    (lambda: load("m", "k.cu"), RuntimeError, "k.cu is not supported"),
    (lambda: load("m", []), ValueError, "sources must not be empty"),
    (lambda: load("m", __file__), ValueError, "sources must be C, C.. or Cython, got .*py"),
    (lambda: load("m", "x.cpp", is_standalone=True), RuntimeError, "is_standalone=True is not supported"),
    (lambda: cpp_extension.CUDAExtension("m", []), RuntimeError, "register_kernel")])
def test_errors(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_no_module_but_a_library():
    path = load_inline("library", 'extern "C" __attribute__((visibility("default"))) int answer() { return 42; }',
                       no_implicit_headers=True, is_python_module=False)
    import ctypes
    assert ctypes.CDLL(path).answer() == 42


def test_setuptools(tmp_path):
    (tmp_path / "scaled.cpp").write_text("#include <ptcore/extension.h>\n" + SCALED
                                         + '\nPT_MODULE(PT_EXTENSION_NAME, m) { m.def("f", &f, "doc"); }\n')
    (tmp_path / "setup.py").write_text(textwrap.dedent("""
        from setuptools import setup
        from ptcore.utils.cpp_extension import BuildExtension, CppExtension
        setup(name="scaled", ext_modules=[CppExtension("scaled", ["scaled.cpp"], extra_compile_args={"cxx": ["-O1"]})],
              cmdclass={"build_ext": BuildExtension.with_options(no_python_abi_suffix=True)})
    """))
    done = subprocess.run([sys.executable, "-P", "setup.py", "-q", "build_ext", "--inplace"], cwd=tmp_path, text=True,
                          capture_output=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "scaled.so").exists()
    code = "import scaled, ptcore; print(scaled.f(ptcore.ones(1), 4.0))"
    said = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert said.stdout.strip() == "tensor([4.])"


def test_questions():
    assert os.path.isfile(os.path.join(cpp_extension.include_paths()[0], "ptcore", "extension.h"))
    assert cpp_extension.library_paths() == [] and cpp_extension.CUDA_HOME is None
    compiler = cpp_extension.get_cxx_compiler()
    assert cpp_extension.check_compiler_ok_for_platform(compiler)
    fits, version = cpp_extension.get_compiler_abi_compatibility_and_version(compiler)
    assert fits and np.all([part.isdigit() for part in version.split(".")])
