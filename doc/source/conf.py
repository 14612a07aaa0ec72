"""Sphinx: ``pip install ".[doc]" && sphinx-build -W -b html doc/source doc/build/html``.

The reference is written into ``reference/generated`` when a build begins: pages of ops from the rows, the
others from what each module's ``__all__`` names. Its text is the docstrings of the installed package. The pages and
pictures of the gallery are written into ``gallery/generated`` then (``_gallery.py``).
"""
import importlib
import inspect
import operator
import re
import sys
import types
from pathlib import Path

import ptcore
import ptcore._ops

HERE = Path(__file__).resolve().parent
PACKAGE = HERE.parent.parent / "ptcore"

project = "ptcore"
copyright = "ptcore developers"
version = release = ptcore.__version__

extensions = ["sphinx.ext.autodoc", "sphinx.ext.mathjax", "numpydoc", "myst_parser"]
source_suffix = {".rst": "restructuredtext", ".md": "markdown"}
autodoc_typehints = "none"
numpydoc_show_class_members = False
numpydoc_xref_param_type = False

html_theme = "pydata_sphinx_theme"
html_theme_options = {"show_prev_next": False, "navigation_with_keys": False}
html_title = "ptcore"


MODULES = {
    "autograd": ("ptcore.autograd", "ptcore.autograd.function", "ptcore.autograd.functional",
                 "ptcore.autograd.graph"),
    "nn": ("ptcore.nn.modules", "ptcore.nn.functional", "ptcore.nn.parameter", "ptcore.nn.init", "ptcore.nn.grad",
           "ptcore.nn.utils",
           "ptcore.nn.utils.rnn", "ptcore.nn.utils.parametrize", "ptcore.nn.utils.parametrizations",
           "ptcore.nn.utils.prune", "ptcore.nn.utils.stateless", "ptcore.nn.modules.lazy"),
    "func": ("ptcore.func", "ptcore.autograd.forward_ad", "ptcore.utils._pytree"),
    "fx": ("ptcore.fx", "ptcore.fx.experimental.proxy_tensor", "ptcore.fx.passes.shape_prop",
           "ptcore.fx.passes.split_module", "ptcore.overrides", "ptcore._symbolic"),
    "jit": ("ptcore.jit", "ptcore.compiler"),
    "optim": ("ptcore.optim", "ptcore.optim.lr_scheduler"),
    "data": ("ptcore.utils.data",),
    "processes": ("ptcore.multiprocessing",),
    "files": ("ptcore.serialization", "ptcore.utils.restart"),
    "watching": ("ptcore.utils.tensorboard", "ptcore.utils.benchmark"),
    "backends": ("ptcore.backends", "ptcore.backends.cuda", "ptcore.nn.attention",
                 "ptcore.nn.attention.flex_attention", "ptcore.backends.cudnn",
                 "ptcore.backends.cpu", "ptcore.backends.mkl", "ptcore.backends.mkldnn", "ptcore.backends.openmp",
                 "ptcore.backends.mps"),
    "misc": ("ptcore.linalg", "ptcore.special", "ptcore.fft", "ptcore.signal.windows",
             "ptcore.testing", "ptcore.cpu", "ptcore.cuda", "ptcore.cuda.streams",
             "ptcore.cuda.memory", "ptcore.utils.hooks",
             "ptcore.utils.dlpack", "ptcore.utils.checkpoint", "ptcore.accelerator"),
    "library": ("ptcore.library", "ptcore.utils.cpp_extension"),
    "profiler": ("ptcore.profiler", "ptcore.autograd.profiler", "ptcore.autograd.profiler_util"),
    "masked": ("ptcore.masked",),
    "distributions": ("ptcore.distributions", "ptcore.distributions.constraints",
                      "ptcore.distributions.constraint_registry", "ptcore.distributions.utils",
                      "ptcore.distributions.relaxed_bernoulli", "ptcore.distributions.relaxed_categorical"),
}


def described(path, thing):
    """The directive that shows one public name."""
    if isinstance(thing, type):
        return f".. autoclass:: {path}\n   :members:\n"
    return f".. autofunction:: {path}\n" if callable(thing) else f".. autodata:: {path}\n"


def is_function(thing):
    thing = inspect.unwrap(thing)       # Overridable
    return inspect.isfunction(thing) or type(thing).__name__ == "cython_function_or_method"


def names_of(module, seen):
    """(name, thing) of what a module offers itself: its __all__ without modules and what is shown elsewhere.

    A module without __all__ offers the functions of Python files, compiled or not, that it names without an underscore.
    """
    own = [n for n in dir(module) if not n.startswith("_") and is_function(getattr(module, n))]
    for name in sorted(getattr(module, "__all__", own)):
        thing = getattr(module, name)
        if (getattr(thing, "__module__", None) or "").partition(".")[0] == "multiprocessing":
            continue                    # the standard module's own
        if not isinstance(thing, types.ModuleType) and id(thing) not in seen:
            seen.add(id(thing))
            yield name, thing


def module_page(title, paths, seen):
    text = [title, "=" * len(title), ""]
    for path in paths:
        module = importlib.import_module(path)
        text += [path, "-" * len(path), "", inspect.cleandoc(module.__doc__), ""]
        text += [described(f"{path}.{name}", thing) for name, thing in names_of(module, seen)]
    return "\n".join(text)


def front_page(rows, seen):
    """Tensor's own methods and attributes, and the functions of the package that are no ops."""
    methods = {row.name for row in rows} | {name + "_" for name in (row.name for row in rows)}
    aliases = {name for row in rows for name in row.alias}
    text = ["Tensors", "=======", "", ".. autoclass:: ptcore.Tensor", ""]
    for name, thing in inspect.getmembers_static(ptcore.Tensor):
        if name.startswith("_") or name in methods | aliases or name.rstrip("_") in aliases:
            continue
        kind = "method" if callable(thing) or isinstance(thing, (staticmethod, classmethod)) else "attribute"
        text.append(f".. auto{kind}:: ptcore.Tensor.{name}\n")
    text += ["Functions and types", "-------------------", ""]
    for name in sorted(dir(ptcore), key=str.lower):
        thing = getattr(ptcore, name)
        if not name.startswith("_") and callable(thing) and id(thing) not in seen and name != "Tensor":
            text.append(described(f"ptcore.{name}", thing))
    return "\n".join(text)


def cuda_page(rows):
    """Which ops have a CUDA kernel, which run there by smaller ops, and which say that they have none."""
    sys.path.insert(0, str(PACKAGE.parent))
    tables = "".join(path.read_text() for path in sorted((PACKAGE / "cuda" / "launch").glob("*.cpp")))
    have = set(re.findall(r'\{"(\w+)", \w+\}', tables))
    kernels = {}
    for row in rows:
        if row.kernel and row.kernel not in have:
            kernels.setdefault(row.kernel, []).append(row)
    decomposed = {name for name, row_list in kernels.items() if all("decompose" in (r.batch, r.jvp) for r in row_list)}
    title = "Kernels of CUDA devices"
    text = [title, "=" * len(title), "",
            "All elementwise ops, views and copies run on a CUDA device, and whatever consists of ops that do.", ""]
    for heading, names in (("Run by smaller ops", sorted(decomposed)),
                           ("Without a kernel", sorted(set(kernels) - decomposed))):
        text += [heading, "-" * len(heading), ""]
        text += [f"- ``{name}``: {', '.join(sorted({f'``{r.called or r.name}``' for r in kernels[name]}))}"
                 for name in names]
        text.append("")
    text += ["An op without a kernel raises NotImplementedError: move its argument to the CPU.", ""]
    return "\n".join(text)


def pages():
    """The reference, file name -> text: ops from the rows, the rest from what the modules offer."""
    sys.path.insert(0, str(PACKAGE / "_build"))
    ptcore._ops.rows()          # docstrings come from the package's own rows, which the generator's take the place of
    import emit_docs
    import tables
    ops = tables.read()
    found = {f"ops/{name}": text for name, text in emit_docs.pages(ops).items()}
    rows = [op.row for op in ops]
    seen = {id(operator.attrgetter(path)(ptcore)) for row in rows for path in row.public}
    for title, paths in MODULES.items():
        found[f"{title}.rst"] = module_page(title, paths, seen)
    return {**found, "tensor.rst": front_page(rows, seen), "cuda_kernels.rst": cuda_page(rows)}


def write_pages(app):
    for name, text in pages().items():
        path = HERE / "reference" / "generated" / name
        if not path.exists() or path.read_text() != text:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)


def write_gallery(app):
    sys.path.insert(0, str(HERE))
    import _gallery
    _gallery.write(HERE / "gallery" / "generated")


def setup(app):
    app.connect("builder-inited", write_pages)
    app.connect("builder-inited", write_gallery)
