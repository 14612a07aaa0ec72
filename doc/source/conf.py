"""Sphinx: ``make -C doc html``. When a build begins ``_reference.py`` writes the reference, ``_gallery.py`` the gallery
and ``_versions.py`` what there is of other versions, and sphinx-gallery runs the tutorials.

Links to Python, NumPy and SciPy are made where ``make inventories`` has put their inventories. There, a link that
leads nowhere is an error of a build with ``-W``; elsewhere such links stay text.
"""
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import _gallery  # noqa: E402
import _reference  # noqa: E402
import _versions  # noqa: E402

import ptcore  # noqa: E402

project = "ptcore"
copyright = "ptcore developers"
version = release = ptcore.__version__

extensions = ["sphinx.ext.autodoc", "sphinx.ext.intersphinx", "sphinx.ext.mathjax", "numpydoc", "myst_parser",
              "sphinx_gallery.gen_gallery"]
source_suffix = {".rst": "restructuredtext", ".md": "markdown"}
exclude_patterns = ["tutorials/GALLERY_HEADER.rst"]
autodoc_typehints = "none"
if not (HERE / "dev" / "decisions").exists():        # an sdist is without the records of development
    suppress_warnings = ["toc.not_readable", "ref.doc"]

ADDRESSES = {"python": "https://docs.python.org/3/", "numpy": "https://numpy.org/doc/stable/",
             "scipy": "https://docs.scipy.org/doc/scipy/"}
INVENTORIES = HERE.parent / "inventories"
intersphinx_mapping = {name: (address, str(INVENTORIES / f"{name}.inv")) for name, address in ADDRESSES.items()
                       if (INVENTORIES / f"{name}.inv").exists()}
nitpicky = len(intersphinx_mapping) == len(ADDRESSES)

# In the types of docstrings, words that are classes of the package or stand in Python's glossary become links. Each
# other word stands here, so that a misspelt class is found.
numpydoc_show_class_members = False
numpydoc_xref_param_type = nitpicky
numpydoc_xref_aliases = _reference.words_of_types() | {
    "Tensors": "ptcore.Tensor", "tensor": "ptcore.Tensor", "tensors": "ptcore.Tensor", "int64": "ptcore.int64",
    **{plural: f":class:`{plural} <python:{plural[:-1]}>`" for plural in ("ints", "tuples")},
    "number": ":class:`number <python:numbers.Number>`", "module": ":term:`python:module`",
    "mapping": ":term:`python:mapping`", "file": ":term:`file <python:file object>`",
    "function": ":term:`python:function`", "LowLevelCallable": "scipy.LowLevelCallable",
    "OpFunction": ":term:`OpFunction`"}
numpydoc_xref_ignore = set("""
    optional default of or and a an the these them its to by with on one two three such nested
    NumPy CPU SIGTERM SIGUSR1 setuptools.Extension
    arrays buffer callables capsule context formats handle managers memory name node op output outputs pairs path
    product source tree
    shape N L S E batch columns embed_dim in1_features in2_features in_features lengths num_heads out_features rows
    """.split())
# What a constraint that is a class of its own, and not of the page, is an alias of.
nitpick_ignore_regex = [("py:class", r"ptcore\.distributions\.constraints\._\w+")]

# The tutorials are run at each build, in the order of their names; one that fails ends it.
sphinx_gallery_conf = {
    "examples_dirs": "tutorials", "gallery_dirs": "getting_started", "filename_pattern": r"\.py$",
    "within_subsection_order": "FileNameSortKey", "run_stale_examples": True, "abort_on_example_error": True,
    "reference_url": {"ptcore": None}, "download_all_examples": False, "write_computation_times": False,
    "min_reported_time": 1e9, "junit": "../tutorials.xml", "show_signature": False,
    "copyfile_regex": "", "capture_repr": (), "thumbnail_size": (320, 224)}

html_theme = "pydata_sphinx_theme"
html_theme_options = {
    "show_prev_next": False, "navigation_with_keys": False, "check_switcher": False,
    "switcher": {"json_url": f"{_versions.ROOT}switcher.json", "version_match": _versions.shown()},
    "navbar_persistent": ["search-button"],
    "navbar_end": ["version-switcher", "theme-switcher", "navbar-icon-links"]}
html_title = "ptcore"
html_sidebars = {name: [] for name in ("index", "install", "changes", "versions", "search", "genindex", "py-modindex")}
html_static_path = ["_static"]
html_css_files = ["pages.css"]
html_copy_source = False

# The PDF: fonts with the letters of all pages, makeindex.
latex_engine = "xelatex"
latex_use_xindy = False
latex_documents = [("index", "ptcore.tex", "ptcore", "ptcore developers", "manual")]
latex_elements = {
    "papersize": "a4paper", "extraclassoptions": "openany",
    "fontpkg": r"""
\setmainfont{DejaVu Serif}[Scale=0.9]
\setsansfont{DejaVu Sans}[Scale=0.9]
\setmonofont{DejaVu Sans Mono}[Scale=0.85]
"""}


def write_pages(app):
    for name, text in _reference.pages().items():
        path = HERE / "reference" / "generated" / name
        if not path.exists() or path.read_text() != text:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)


def write_gallery(app):
    _gallery.write(HERE / "gallery" / "generated")


def write_versions(app):
    _versions.write(HERE / "reference" / "generated" / "versions.txt")


def write_switcher(app, error):
    if error is None and app.builder.format == "html":
        _versions.write_switcher(Path(app.outdir) / "switcher.json")


def enter_other_names(app, env):
    """Puts each public name into the inventory: beside the one that a page shows, the others that it has."""
    from sphinx.domains.python import ObjectEntry
    objects = env.domains.python_domain.objects
    shown = {name for name, entry in objects.items() if not entry.aliased}
    for name, where in _reference.other_names(shown).items():
        entry = objects[where]
        kind = "function" if entry.objtype == "module" else entry.objtype
        objects[name] = ObjectEntry(entry.docname, entry.node_id, kind, True)


def keep_template():
    """numpydoc compiles its template anew for each docstring, a fifth of the time of a build: keeps it compiled."""
    import functools

    import jinja2
    import numpydoc.docscrape_sphinx as numpydoc

    class Kept(jinja2.BytecodeCache):
        codes: dict = {}        # noqa: RUF012

        def load_bytecode(self, bucket):
            bucket.code = self.codes.get(bucket.key)

        def dump_bytecode(self, bucket):
            self.codes[bucket.key] = bucket.code

    if not isinstance(numpydoc.SandboxedEnvironment, functools.partial):
        numpydoc.SandboxedEnvironment = functools.partial(numpydoc.SandboxedEnvironment, bytecode_cache=Kept())


def setup(app):
    keep_template()
    app.connect("builder-inited", write_pages)
    app.connect("builder-inited", write_gallery)
    app.connect("builder-inited", write_versions)
    app.connect("env-updated", enter_other_names)
    app.connect("build-finished", write_switcher)
