"""Linux on aarch64, by qemu's emulation of a user's program."""
import shutil
import sys

from . import ROOT, Broken, NotRun, debian, debian_root, part, run
from .platforms import CROSS, cross_build

# The suite of Debian that has this Python, whose interpreter runs there.
SUITES = {(3, 11): "bookworm", (3, 13): "trixie"}
# qemu 7.2's default processor gets NumPy's products wrong.
PROCESSOR = "cortex-a72"
ABOUT = """
import platform, numpy, scipy, ptcore
a = numpy.arange(81.0).reshape(9, 9)
assert (a @ numpy.eye(9) == a).all(), "NumPy's products are wrong"
print(platform.machine(), numpy.__version__, scipy.__version__)
print(ptcore.show_config())
"""


def interpreter(folder):
    """Debian's Python for arm64, unpacked and not installed, with NumPy and SciPy of PyPI: their folders."""
    if sys.version_info[:2] not in SUITES:
        raise NotRun(f"no suite of Debian has Python {sys.version_info[0]}.{sys.version_info[1]}")
    version = "{}.{}".format(*sys.version_info[:2])
    root, site = folder / "root", folder / "site"
    if not (root / "usr" / "bin" / f"python{version}").exists():
        shutil.rmtree(root, ignore_errors=True)
        folder.mkdir(parents=True, exist_ok=True)
        debian_root(SUITES[sys.version_info[:2]], root, f"python{version}", "libstdc++6",
                    options=("--variant=extract", "--architectures=arm64"))
        if not (root / "lib").exists():         # a link that base-files makes when it is installed
            (root / "lib").symlink_to("usr/lib")
    if not (site / "numpy").exists():
        platforms = [f"--platform={name}_aarch64" for name in ("manylinux_2_28", "manylinux_2_27", "manylinux2014")]
        run(sys.executable, "-m", "pip", "install", "--quiet", "--target", site, "--only-binary=:all:", *platforms,
            f"--python-version={version}", "numpy", "scipy", "mpmath", "pytest")
    return root, site


@part("aarch64")
def aarch64(options):
    """On aarch64, by qemu: each row forward and backward on one sample, files both ways, x86_64's random bits."""
    debian("qemu-user")
    folder = CROSS / "python-aarch64"
    root, site = interpreter(folder)
    package = cross_build("linux-aarch64")
    shutil.rmtree(site / "ptcore", ignore_errors=True)
    shutil.copytree(package, site / "ptcore")
    env = {"QEMU_CPU": PROCESSOR, "PYTHONPATH": str(site), "OPENBLAS_NUM_THREADS": "1"}
    python = ("qemu-aarch64", "-L", root, root / "usr" / "bin" / "python{}.{}".format(*sys.version_info[:2]), "-P")
    said = run(*python, "-c", ABOUT, env=env, show=True)
    if said.split()[0] != "aarch64":
        raise Broken(f"it runs on {said.split()[0]}")
    ours, theirs = folder / "x86_64.pt", folder / "aarch64.pt"
    program = (ROOT / "tools" / "shipping" / "one_sample.py", ROOT / "tests")
    here = (sys.executable, "-P")
    run(*here, *program, "write", ours, show=True)
    there = run(*python, *program, "check", ours, env=env, show=True)
    run(*python, *program, "write", theirs, env=env, show=True)
    back = run(*here, *program, "check", theirs, show=True)
    if there.split()[-2:] != back.split()[-2:]:
        raise Broken("one machine finds what the other does not")
    size = sum(p.stat().st_size for p in package.rglob("*.so"))
    return f"{there.strip().splitlines()[-1]}; files both ways; {size / 1e6:.1f} MB compiled"
