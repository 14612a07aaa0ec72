"""Which versions there are, by the tags of the repository: for the switcher and the page "Earlier versions".

``PTCORE_PAGES`` is the address where the pages are published, each version's in a folder of its name, those of the
development in ``dev``, with the newest ``switcher.json`` beside them. Without it the pages stand at the root alone.
"""
import json
import os
import re
import subprocess
from pathlib import Path

import ptcore

PUBLISHED = os.environ.get("PTCORE_PAGES")
ROOT = PUBLISHED or "/"
HERE = Path(__file__).resolve().parent


def git(*arguments):
    """What git says of the repository, or nothing where there is none."""
    if not (HERE.parent.parent / ".git").exists():
        return ""
    done = subprocess.run(["git", *arguments], cwd=HERE, capture_output=True, text=True, check=False)
    return done.stdout if done.returncode == 0 else ""


def tagged():
    """[(version, date, Pythons)] of the tags v1.2.3, newest first."""
    candidates = [word for end in ("a", "b", "rc") for word in ("-c", f"versionsort.suffix={end}")]
    said = git(*candidates, "tag", "--list", "v*", "--sort=-version:refname",
               "--format=%(refname:strip=2) %(creatordate:short)")
    found = []
    for line in said.splitlines():
        tag, date = line.split()
        if re.fullmatch(r"v\d+\.\d+\.\d+((a|b|rc)\d+)?", tag):
            pythons = re.search(r'requires-python = "([^"]+)"', git("show", f"{tag}:pyproject.toml"))
            found.append((tag[1:], date, pythons.group(1) if pythons else ""))
    return found


def shown():
    """The version of these pages: that of the package if it is tagged, else "dev"."""
    return ptcore.__version__ if ptcore.__version__ in [version for version, _, _ in tagged()] else "dev"


def write_switcher(path):
    """What the switcher offers. The newest is no candidate, if there is another."""
    versions = [version for version, _, _ in tagged()]
    newest = next((v for v in versions if re.fullmatch(r"[\d.]+", v)), None)
    entries = [{"name": "development", "version": "dev", "url": f"{ROOT}dev/" if PUBLISHED else ROOT}]
    for version in versions:
        name = f"{version} (newest)" if version == newest else version
        entries.append({"name": name, "version": version, "url": f"{ROOT}{version}/", "preferred": version == newest})
    path.write_text(json.dumps(entries, indent=1))


def commands(version, date, pythons):
    """A section of the page."""
    lines = {
        f"pip install ptcore=={version}": "",
        f'pip install "ptcore[cuda13]=={version}"': "with CUDA",
        f"conda install -c conda-forge ptcore={version}": "",
        f"pip install --no-binary ptcore ptcore=={version}": "its sdist",
        f"git checkout v{version} && pip install .": "in a clone",
        f"git checkout v{version} && make -f docker.Makefile": "an image",
    }
    return "\n".join([version, "-" * len(version), "", f"Of {date}, for Python {pythons}.", "",
                      ".. code-block:: console", "",
                      *[f"   $ {line:<58}# {told}".rstrip(" #") for line, told in lines.items()], "", ""])


def write(path):
    """What the page includes."""
    found = tagged()
    text = "".join(commands(*version) for version in found) or "There is no release yet.\n"
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists() or path.read_text() != text:
        path.write_text(text)
