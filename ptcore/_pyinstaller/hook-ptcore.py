"""What a packed program needs of ptcore: every module, since most are imported at their first use, and the data that
modules read. Folders of ops are namespaces, which PyInstaller's own search does not enter."""
import importlib.machinery
import importlib.util
from pathlib import Path

ROOT = Path(importlib.util.find_spec("ptcore").origin).parent
SUFFIXES = sorted(importlib.machinery.all_suffixes(), key=len, reverse=True)
LEFT_OUT = ("_build", "_pyinstaller", "include", "examples")    # of the build, of other packages, programs


def module_of(path):
    """The name of the module in a file of the package, or None."""
    suffix = next((s for s in SUFFIXES if path.name.endswith(s)), None)
    parts = path.relative_to(ROOT.parent).parts
    if suffix is None or not set(parts[:-1]).isdisjoint(LEFT_OUT):
        return None
    name = path.name.removesuffix(suffix)
    return None if not name.isidentifier() else ".".join(parts[:-1] if name == "__init__" else (*parts[:-1], name))


hiddenimports = sorted(filter(None, map(module_of, ROOT.rglob("*"))))
datas = [(str(path), str(path.parent.relative_to(ROOT.parent))) for path in ROOT.rglob("*.tsv")]
excludedimports = ["torch"]             # ptcore never imports it
