"""The pages of the gallery: each example's docstring, picture and program.

The pictures are drawn when the pages are built, so that none is kept in the repository: by runs of a few seconds, half
a minute in all, or by those with the default settings if ``PTCORE_GALLERY=full`` (some minutes). A picture is drawn
again when its example has changed since.
"""
import importlib
import os
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

# What a run is given, so that it takes some seconds; the four with ``--compile`` alone are whole runs.
SHORT = {
    "digits": "--seeds 0 1 --epochs 3 --width 16",
    "gpt": "--steps 100 --every 10 --layers 2 --width 64 --length 32 --characters 100",
    "vae": "--compile",
    "pendulum": "--compile --iterations 16",
    "ode": "--compile",
    "heat": "--compile",
    "regression": "--compile",
    "hogwild": "--processes 2 --epochs 8",
}


def prose(docstring):
    """A docstring as reStructuredText, without its first line: what is indented in it is shown as it stands."""
    parts = []
    for part in re.split(r"\n\s*\n", docstring.strip())[1:]:
        if all(line.startswith("    ") for line in part.splitlines()):
            language = "console" if part.lstrip().startswith("python -m") else "text"
            part = f".. code-block:: {language}\n\n{part}"
        parts.append(part)
    return "\n\n".join(parts)


def page(name):
    """The page of one example."""
    doc = importlib.import_module(f"ptcore.examples.{name}").__doc__
    title = doc.partition("\n")[0].rstrip(".")
    return "\n\n".join([
        f"{title}\n{'=' * len(title)}", prose(doc), f".. image:: {name}.png\n   :alt: what the example draws",
        "The program\n-----------",
        f".. literalinclude:: /../../ptcore/examples/{name}.py\n   :language: python\n"]) + "\n"


def draw(name, folder, full):
    """Run an example in a folder of its own, and keep its picture."""
    arguments = [] if full else SHORT[name].split()
    kept = folder / f"{name}.png"
    with tempfile.TemporaryDirectory() as where:
        out = subprocess.run([sys.executable, "-P", "-m", f"ptcore.examples.{name}", "--quiet", *arguments], cwd=where,
                             env={**os.environ, "PTCORE_NUM_THREADS": "1"}, capture_output=True, text=True)
        if out.returncode:
            raise RuntimeError(f"the example {name} failed:\n{out.stdout}{out.stderr}")
        kept.write_bytes((Path(where) / f"{name}.png").read_bytes())


def write(folder):
    """Write the pages and the pictures that are missing or older than their example into ``folder``."""
    folder.mkdir(parents=True, exist_ok=True)
    full = os.environ.get("PTCORE_GALLERY") == "full"
    old = []
    for name in SHORT:
        path, text = folder / f"{name}.rst", page(name)
        if not path.exists() or path.read_text() != text:
            path.write_text(text)
        picture = folder / f"{name}.png"
        source = Path(importlib.import_module(f"ptcore.examples.{name}").__file__)
        if full or not picture.exists() or picture.stat().st_mtime < source.stat().st_mtime:
            old.append(name)
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda name: draw(name, folder, full), old))
