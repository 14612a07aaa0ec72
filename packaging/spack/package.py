# ruff: noqa: F403, F405
from spack.package import *
from spack_repo.builtin.build_systems.python import PythonPackage


class PyPtcore(PythonPackage):
    """Tensors, autograd and neural networks for the SciPy stack, with PyTorch's names and semantics."""

    homepage = "https://pypi.org/project/ptcore/"
    pypi = "ptcore/ptcore-0.1.0.dev0.tar.gz"

    license("BSD-3-Clause")
    version("0.1.0.dev0")       # of a release: with the sdist's sha256

    variant("examples", default=False, description="What the examples use: digits, gpt and others")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("python@3.11:", type=("build", "link", "run"))
    depends_on("py-meson-python@0.16:", type="build")
    depends_on("py-cython@3.3", type="build")
    depends_on("py-numpy@2.0:", type="run")
    depends_on("py-scipy@1.11:", type="run")
    for name in ("py-scikit-learn", "py-tqdm", "py-matplotlib"):
        depends_on(name, type="run", when="+examples")

    import_modules = ("ptcore", "ptcore.nn", "ptcore.optim", "ptcore.utils.data")

    def config_settings(self, spec, prefix):
        # The CUDA backend takes headers from PyPI's packages.
        return {"setup-args": {"-Dcuda": "disabled"}, "compile-args": f"-j{make_jobs}"}
