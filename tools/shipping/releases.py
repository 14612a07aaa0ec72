"""Releases, and the workflows that make them."""
import re
import sys

from . import ROOT, Broken, environment, part, run


@part("release", ci=True)
def release(options):
    """A release could be made of this commit: the dry run of ``tools/release.py`` for a version that is not used."""
    said = run(sys.executable, ROOT / "tools" / "release.py", "999.0.0", "--dry-run", show=True)
    return re.search(r"\d+ fragments", said).group()


@part("workflows", ci=True)
def workflows(options):
    """The workflows and CITATION.cff are of their schemas, and zizmor finds nothing in them. They have not run."""
    command = environment("workflows", "check-jsonschema", "zizmor")
    files = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
    for schema, given in (("github-workflows", files), ("dependabot", [ROOT / ".github" / "dependabot.yml"]),
                          ("citation-file-format", [ROOT / "CITATION.cff"])):
        run(command("check-jsonschema"), "--builtin-schema", f"vendor.{schema}", *given, show=True)
    run(command("zizmor"), "--offline", "--quiet", ROOT / ".github", show=True)
    loose = [line for f in files for line in f.read_text().splitlines()
             if "uses:" in line and not re.search(r"@[0-9a-f]{40} # v[\d.]+$", line)]
    if loose:
        raise Broken(f"actions that are not pinned by a hash: {loose}")
    return f"{len(files)} workflows, not run"
