"""The build folder beside the tests: the objects of kernels, where one is there (``build``, or PTCORE_BUILD)."""
import importlib.util
import json
import os
import shutil
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def folder():
    """The folder of the build."""
    given = os.environ.get("PTCORE_BUILD")
    if given:
        return Path(given)
    return next((path.parent.parent for path in sorted((ROOT / "build").glob("*/meson-info/intro-buildoptions.json"))),
                ROOT / "build")


BUILD = folder()


def is_release():
    """Whether BUILD holds objects made for release, no sanitizer, no debug, and there are tools to read them."""
    options = BUILD / "meson-info" / "intro-buildoptions.json"
    if not options.exists() or not shutil.which("nm") or not shutil.which("size"):
        return False
    values = {o["name"]: o["value"] for o in json.loads(options.read_text())}
    return values["buildtype"] == "release" and values.get("b_sanitize", "none") in ("none", [])


def size_report():
    """The module ``tools/size_report.py``, or None without a source tree."""
    path = ROOT / "tools" / "size_report.py"
    if not path.exists():
        return None
    spec = importlib.util.spec_from_file_location("size_report", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
