"""The pages: HTML, how they look, PDF."""
import importlib.util
import json
import re
import resource
import shutil
import sys
import xml.etree.ElementTree as ET

from . import ROOT, WORK, Broken, NotRun, debian, environment, part, run, wheel_of

DOC = ROOT / "doc"
HTML = DOC / "build" / "html"
TUTORIALS = 7
SECONDS_A_TUTORIAL, SECONDS = 20, 180


def python(options):
    """A Python with ptcore and what builds its pages: this one, if it has them."""
    if options.wheel is None and all(map(importlib.util.find_spec, ("ptcore", "sphinx_gallery", "numpydoc"))):
        return sys.executable
    if options.ci:
        return sys.executable           # CI's environment has the wheel and its extra "doc"
    return environment("pages", f"{wheel_of(options)}[doc]")("python")


def make(target, options, *arguments):
    """What ``make`` says, and the CPU seconds that it took. A page that is never done ends it."""
    if not shutil.which("make"):
        raise NotRun("there is no make")
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    said = run("timeout", "1200", "make", "-s", "-C", DOC, f"PYTHON={python(options)}", *arguments, *target.split(),
               env={"OPENBLAS_NUM_THREADS": "1"})
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return said.strip(), sum(after[:2]) - sum(before[:2])


def inventories(options):
    """Whether there are inventories of other projects. CI builds without them where Debian's packages are not."""
    try:
        make("inventories", options)
    except Broken as e:
        if not options.ci:
            raise NotRun(f"there are no inventories of Python, NumPy and SciPy: {e}") from None
        print(e)
        return False
    return True


@part("html", ci=True)
def html(options):
    """``make html`` says nothing under ``-W -n``, each public name has its place, seven tutorials were executed."""
    if "make html" not in make("", options)[0]:
        raise Broken("make in doc/ does not list the formats")
    nitpicky = "-n" if inventories(options) else ""
    shutil.rmtree(DOC / "build", ignore_errors=True)
    shutil.rmtree(DOC / "source" / "getting_started", ignore_errors=True)
    said, seconds = make("html", options, f"SPHINXOPTS=-q -W {nitpicky} --keep-going -j auto")
    if said:
        raise Broken(f"it says: {said[-3000:]}")
    names = run(python(options), "-P", DOC / "source" / "_reference.py", HTML / "objects.inv").strip()
    report = ET.parse(DOC / "build" / "tutorials.xml")
    cases = {case.get("classname"): float(case.get("time")) for case in report.iter("testcase")}
    sources = {path.stem for path in (DOC / "source" / "tutorials").glob("*.py")}
    if len(sources) != TUTORIALS or set(cases) != sources:
        raise Broken(f"tutorials: {sorted(sources)}, executed: {sorted(cases)}")
    for name in sources:
        page = (HTML / "getting_started" / f"{name}.html").read_text()
        if not re.search(rf'src="[^"]*sphx_glr_{name}_\d+\.png', page) or f"{name}.ipynb" not in page:
            raise Broken(f"the tutorial {name} has no picture or no notebook")
        (notebook,) = HTML.glob(f"_downloads/*/{name}.ipynb")
        if not any(cell["cell_type"] == "code" for cell in json.loads(notebook.read_text())["cells"]):
            raise Broken(f"the notebook of {name} has no code")
    longest = max(cases.values())
    if not options.ci and (longest > SECONDS_A_TUTORIAL or seconds > SECONDS):      # CI's machine may be busy
        raise Broken(f"a tutorial takes {longest:.0f} s, of {SECONDS_A_TUTORIAL}; all {seconds:.0f} s, of {SECONDS}")
    without = "" if nitpicky else ", WITHOUT inventories"
    return f"{seconds:.0f} s of CPU{without}, {names}, {TUTORIALS} tutorials of at most {longest:.1f} s"


@part("screenshots")
def screenshots(options):
    """The site in headless Chromium, light, dark, narrow: no texts overlap, nothing sticks out, no empty image."""
    debian("chromium")
    if not (HTML / "index.html").exists():
        make("html", options)
    command = environment("screenshots", "playwright")
    folder = WORK / "screens"
    shutil.rmtree(folder, ignore_errors=True)
    return run(command("python"), ROOT / "tools" / "screenshots.py", HTML, folder, show=True).strip().splitlines()[-1]


@part("pdf")
def pdf(options):
    """``make latexpdf``, by xelatex and makeindex: no error, no character that a font lacks."""
    debian("make", "latexmk", "texlive-xetex", "texlive-latex-extra", "texlive-fonts-recommended", "fonts-dejavu",
           "poppler-utils")
    inventories(options)
    shutil.rmtree(DOC / "build" / "latex", ignore_errors=True)
    _, seconds = make("latexpdf", options)
    log = (DOC / "build" / "latex" / "ptcore.log").read_text(errors="replace")
    signs = r"! |Missing character|.*Error: |No file ptcore\.ind|.*undefined references|.*multiply defined"
    wrong = [line for line in log.splitlines() if re.match(signs, line)]
    if wrong:
        raise Broken(f"{len(wrong)}: {wrong[:10]}")
    file = DOC / "build" / "latex" / "ptcore.pdf"
    pages = re.search(r"Pages:\s+(\d+)", run("pdfinfo", file)).group(1)
    if seconds > SECONDS:
        raise Broken(f"{seconds:.0f} s of CPU, at most {SECONDS}")
    return f"{seconds:.0f} s of CPU, {pages} pages, {file.stat().st_size / 1e6:.1f} MB"
