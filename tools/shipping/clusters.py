"""Clusters: EasyBuild's easyconfig, Spack's package."""
import os
import shutil
import sys

from . import ROOT, WORK, Broken, NotRun, debian, environment, part, run


@part("easybuild")
def easybuild(options):
    """eb installs the sdist by the easyconfig; ``module load ptcore`` makes it importable."""
    debian("lmod")
    tools = environment("easybuild", "easybuild==5.4.*", "setuptools", "numpy>=2.0", "scipy>=1.11",
                        "meson-python>=0.16", "cython>=3.3,<3.4", "ninja")
    folder = WORK / "eb"
    shutil.rmtree(folder, ignore_errors=True)
    sources = folder / "sources" / "p" / "ptcore"
    sources.mkdir(parents=True)
    build = "import sys; sys.path.insert(0, 'tools'); import build_backend; build_backend.build_sdist(sys.argv[1])"
    run(tools("python"), "-c", build, sources)
    lmod = "/usr/share/lmod/lmod/libexec/lmod"
    env = {"PATH": f"{tools('python').parent}:{os.environ['PATH']}", "LMOD_CMD": lmod, "HOME": str(folder)}
    (config,) = (ROOT / "packaging" / "easybuild").glob("*.eb")
    # Root builds in containers and in CI; EasyBuild asks for consent to it.
    said = run(tools("eb"), config, "--prefix", folder, "--sourcepath", folder / "sources", "--modules-tool=Lmod",
               "--allow-use-as-root-and-accept-consequences", "--parallel", os.cpu_count(), env=env, cwd=folder)
    if "COMPLETED: Installation ended successfully" not in said:
        raise Broken(said[-4000:])
    code = ("import ptcore as pt; x = pt.ones(2, requires_grad=True); (x * x).sum().backward(); "
            "print(pt.__file__, x.grad.tolist())")
    lines = [". /usr/share/lmod/lmod/init/bash", f"module use {folder}/modules/all", "module load ptcore",
             "module list", f"ptcore-config --version && python -P -c '{code}'"]
    loaded = run("bash", "-c", " && ".join(lines), env=env, cwd=folder, show=True)
    if f"{folder}/software/ptcore" not in loaded or "[2.0, 2.0]" not in loaded:
        raise Broken(f"the module is not the one that is imported:\n{loaded}")
    version = run(tools("eb"), "--version", env=env, cwd=folder).strip()
    return f"{version.partition(' (')[0]}, module load {config.stem.replace('-', '/', 1)}"


@part("spack")
def spack(options):
    """Spack's package runs against stubs of its API (tests/test_packaging.py)."""
    said = run(sys.executable, "-P", "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/test_packaging.py",
               "-k", "spack", show=True)
    if "1 passed" not in said:
        raise Broken(said[-2000:])
    raise NotRun("Spack itself is in no registry of Python packages; its package ran against stubs")
