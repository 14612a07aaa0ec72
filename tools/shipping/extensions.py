"""Extensions of those who have the package."""
import shutil
import sys

from . import WORK, environment, part, passed, run, wheel_of

ZIG_ONLY = """
import resource, sys, time
def cpu():
    return sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
import ptcore as pt
from ptcore.utils.cpp_extension import load_inline
for name, text, functions in (("cpp_sources", "pt::Tensor f(pt::Tensor x) { return x * 2; }", "f"),
                              ("cython_sources", "def f(x):\\n    return x * 2\\n", None)):
    start = cpu()
    m = load_inline(f"zig_{name}", functions=functions, **{name: text})
    assert m.f(pt.ones(2)).tolist() == [2, 2]
    print(f"{name} {cpu() - start:.1f} s of CPU")
"""


@part("compiler")
def compiler(options):
    """Extensions compile where there is no compiler but that of the extra ``compiler``."""
    command = environment("compiler", str(wheel_of(options)), "ziglang", "cython>=3.3,<3.4")
    empty = WORK / "compiler-cache"
    shutil.rmtree(empty, ignore_errors=True)
    env = {"PATH": str(WORK / "nothing"), "CXX": "", "CC": "", "PTCORE_EXTENSIONS_DIR": str(empty)}
    said = run(command("python"), "-P", "-c", ZIG_ONLY, env=env, cwd=WORK, show=True)
    return ", ".join(said.split("\n")[:-1])


@part("extensions")
def extensions(options):
    """The tests of extensions: C, C++, Cython, templates of packages; the six layers of the guide."""
    said = run(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/extension", "tests/test_guide.py",
               "-k", "extension or template or api", show=True)
    return passed(said)
