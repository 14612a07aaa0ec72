"""The type stubs agree with the package: names, parameters and defaults; the pages with the functions."""
import ast
import doctest
import importlib
import importlib.util
import inspect
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import ptcore as pt
from ptcore._lazy import TABLE
from ptcore.nn import functional

PACKAGE = Path(__file__).resolve().parent.parent / "ptcore"
SOURCE_ONLY = pytest.mark.skipif(not (PACKAGE / "_build").exists(), reason="needs the source tree")


@pytest.fixture(scope="module")
def stubs(tmp_path_factory):
    if not (PACKAGE / "_build").exists():
        pytest.skip("needs the source tree")
    folder = tmp_path_factory.mktemp("stubs")
    subprocess.run([sys.executable, str(PACKAGE / "_build" / "generate_ops.py"), str(folder), "--stubs"], check=True)
    return {path.name: ast.parse(path.read_text()) for path in folder.glob("*.pyi")}


def described(node):
    """[(name, kind, default text)] of a stub's function."""
    a = node.args
    plain = a.posonlyargs + a.args
    defaults = [None] * (len(plain) - len(a.defaults)) + [ast.unparse(d) for d in a.defaults]
    found = [(p.arg, "plain", d) for p, d in zip(plain, defaults)]
    if a.vararg:
        found.append((a.vararg.arg, "*", None))
    found += [(p.arg, "keyword", d and ast.unparse(d)) for p, d in zip(a.kwonlyargs, a.kw_defaults)]
    return found


def actual(function):
    kinds = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.KEYWORD_ONLY: "keyword"}
    return [(p.name, kinds.get(p.kind, "plain"), None if p.default is p.empty else repr(p.default))
            for p in inspect.signature(function).parameters.values() if p.kind is not p.VAR_KEYWORD]


def check(nodes, owner, is_class=False):
    checked = 0
    for node in nodes:
        if not isinstance(node, ast.FunctionDef) or any(
                getattr(d, "id", None) == "property" for d in node.decorator_list):
            continue
        assert hasattr(owner, node.name), node.name
        if (is_class and node.name.startswith("__")) or node.name.startswith("_foreach_"):
            continue                            # slots have no Python signature; a loop makes the others
        got, want = described(node), actual(getattr(owner, node.name))
        if any(getattr(d, "id", None) == "overload" for d in node.decorator_list):
            assert [p[:2] for p in got] == [p[:2] for p in want][:len(got)], node.name
            continue
        assert got[is_class:] == want[is_class:], node.name
        checked += 1
    return checked


def test_functions(stubs):
    assert check(stubs["__init__.pyi"].body, pt) > 250
    assert check(stubs["functional.pyi"].body, functional) > 10
    assert check(stubs["linalg.pyi"].body, pt.linalg) >= 1
    assert check(stubs["special.pyi"].body, pt.special) >= 1
    assert check(stubs["fft.pyi"].body, pt.fft) == 22


def test_tensor_methods(stubs):
    (tensor,) = [n for n in stubs["__init__.pyi"].body if isinstance(n, ast.ClassDef) and n.name == "Tensor"]
    assert check(tensor.body, pt.Tensor, True) > 250


def names(nodes):
    found = set()
    for n in nodes:
        if isinstance(n, (ast.FunctionDef, ast.ClassDef)):
            found.add(n.name)
        elif isinstance(n, ast.AnnAssign):
            found.add(n.target.id)
        elif isinstance(n, (ast.Import, ast.ImportFrom)):
            found |= {a.asname or a.name for a in n.names}
    return found


def offered(module):
    """The public names of a module that are no modules: what ``__all__`` says, or all that do not begin with _."""
    listed = getattr(module, "__all__", None)
    if listed is None:
        listed = [n for n in dir(module) if not n.startswith("_")
                  and getattr(getattr(module, n), "__module__", None) not in FOREIGN]
    return {n for n in listed if not inspect.ismodule(getattr(module, n))}


# What nn.functional imports for itself: kernels of its functions, and names of other modules.
FOREIGN = {"ptcore._errors", "ptcore._tensor"}
STUBBED = {"__init__.pyi": pt, "functional.pyi": functional, "linalg.pyi": pt.linalg,
           "special.pyi": pt.special, "fft.pyi": pt.fft}


def test_nothing_public_is_missing(stubs):
    (tensor,) = [n for n in stubs["__init__.pyi"].body if isinstance(n, ast.ClassDef) and n.name == "Tensor"]
    assert {n for n in dir(pt.Tensor) if not n.startswith("_")} <= names(tensor.body)
    for stub, module in STUBBED.items():
        public = {n for n in dir(module) if not n.startswith("_") and not inspect.ismodule(getattr(module, n))
                  and (module is pt or getattr(getattr(module, n), "__module__", None) not in FOREIGN)}
        assert len(public) > 20
        assert public <= names(stubs[stub].body), stub


@pytest.mark.parametrize("module", [pt.nn, pt.nn.utils, pt.nn.init, pt.func, pt.optim,
                                    pt.optim.lr_scheduler, pt.masked, pt.distributions], ids=lambda m: m.__name__)
def test_sources_say_what_they_offer(module):
    """Without a stub a type checker reads the source: names stand there, they are not put in at run time."""
    def said(path):
        body = ast.parse(path.read_text()).body
        found = names(body) | {t.id for n in body if isinstance(n, ast.Assign) for t in ast.walk(n)
                               if isinstance(t, ast.Name) and isinstance(t.ctx, ast.Store)}
        for n in body:
            if isinstance(n, ast.ImportFrom) and n.names[0].name == "*":
                beside = PACKAGE.parent.joinpath(*n.module.split("."))
                found |= said(beside / "__init__.py" if beside.is_dir() else beside.with_suffix(".py"))
        return found
    public = offered(module)
    assert len(public) >= 2
    assert public <= said(Path(module.__file__))


@pytest.mark.parametrize("module", [pt, pt.autograd, pt.cuda, pt.fft, functional], ids=lambda m: m.__name__)
def test_lazy_names(module):
    """Every name of the table is there, listed, and what its file holds."""
    for file, found in TABLE[module.__name__].items():
        for name in found:
            assert name in dir(module)
            assert getattr(module, name) is getattr(importlib.import_module(f"ptcore.{file}"), name)
    with pytest.raises(AttributeError, match=f"module '{module.__name__}' has no attribute 'nothing'"):
        getattr(module, "nothing")          # noqa: B009


@SOURCE_ONLY
def test_reference_pages(tmp_path):
    subprocess.run([sys.executable, str(PACKAGE / "_build" / "emit_docs.py"), str(tmp_path)], check=True)
    text = "".join(path.read_text() for path in tmp_path.glob("*.rst"))
    for row in pt.ops.values():
        if row.internal or row.family == "registered":
            continue
        where = f"ptcore.{row.public[0]}" if row.public else f"ptcore.Tensor.{row.method_name}"
        assert f":: {where}\n" in text, row.name
    entries = dict(re.findall(r"^\.\. auto\w+:: ptcore\.(\S+)\n(.*?)(?=^\.\. auto|\Z)", text, re.M | re.S))
    for row in pt.ops.values():
        if row.internal or row.family == "registered" or row.kind in ("composite", "nondifferentiable"):
            continue
        entry = entries[row.public[0] if row.public else f"Tensor.{row.name}"]
        for texts in (row.partial, row.vjp, row.jvp if isinstance(row.jvp, (list, tuple)) else None):
            for declared in texts or ():
                assert not declared or f"``{declared}``" in entry or (
                    declared.startswith("not_implemented(") and "No derivative for" in entry), (row.name, declared)
        assert re.search("Derivative for|Gradient for|Gradient: |No derivative for|Without derivative", entry), row.name
    assert "Derivative for input: ``" in entries["relu"]
    assert "Gradient: ``softmax" in entries["softmax"]
    assert "``mm(g, adjoint_of(y))``" in entries["mm"]


@SOURCE_ONLY
@pytest.mark.parametrize("module", [pt, functional, pt.linalg, pt.special, pt.fft, pt.signal.windows, pt.nn,
                                    pt.nn.utils, pt.nn.init, pt.func, pt.autograd, pt.optim, pt.optim.lr_scheduler,
                                    pt.masked, pt.distributions],
                         ids=lambda m: m.__name__)
def test_reference_names_all(module, reference):
    """What is public stands on a page, under its name or the one that it has elsewhere."""
    shown, written = reference
    public = {n for n in offered(module) if callable(getattr(module, n))}
    elsewhere = set() if module is pt else {n for n in public if id(getattr(module, n)) in shown}
    assert public <= written | elsewhere


@pytest.fixture(scope="module")
def reference():
    """(ids of all objects that the reference shows, the names that it gives them)."""
    conf = PACKAGE.parent / "doc" / "source" / "_reference.py"
    spec = importlib.util.spec_from_file_location("reference_pages", conf)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    text = "\n".join(module.pages().values())
    paths = re.findall(r"^\.\. auto\w+:: ptcore\.(\S+)$", text, re.M)
    assert len(paths) == len(set(paths)) > 1000
    written = {path.rpartition(".")[2] for path in paths}
    for note in re.findall(r"\* (?:Other names|In place): (.*)", text):
        written |= {name.rpartition(".")[2] for name in re.findall(r"``(\S+?)``", note)}
    return {id(module.thing_of(f"ptcore.{path}")) for path in paths}, written


def test_no_name_is_listed_twice():
    """Nor one that is kept in the module when it is first asked for."""
    assert callable(pt.fill_)
    assert callable(pt.logspace)
    for module in (pt, functional, pt.linalg, pt.special, pt.fft):
        names = module.__dir__() if hasattr(module, "__dir__") else dir(module)
        assert len(names) == len(set(names))


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    """A folder with the guide's pages as programs, and what a type checker reads of the package in ``stubs``."""
    folder = tmp_path_factory.mktemp("programs")
    package = folder / "stubs" / "ptcore"

    def left_out(folder, names):
        return [n for n in names if n in ("_build", "__pycache__") or not (
            n.endswith(".py") or (Path(folder) / n).is_dir())]
    shutil.copytree(PACKAGE, package, ignore=left_out)
    subprocess.run([sys.executable, str(PACKAGE / "_build" / "generate_ops.py"), str(package), "--stubs"], check=True)
    (package / "functional.pyi").rename(package / "nn" / "functional.pyi")
    for page in (PACKAGE.parent / "doc" / "source" / "guide").glob("*.rst"):
        (folder / f"guide_{page.stem}.py").write_text(doctest.script_from_examples(page.read_text()))
    return folder


@SOURCE_ONLY
def test_examples_of_the_guide_have_types(programs, tmp_path):
    """mypy takes the guide's examples as programs. A page is one program, whose names get new values of other types."""
    pytest.importorskip("mypy")
    pages = sorted(path.name for path in programs.glob("guide_*.py"))
    config = tmp_path / "mypy.ini"
    config.write_text(f"[mypy]\nignore_missing_imports = True\nallow_redefinition = True\ncheck_untyped_defs = True\n"
                      f"follow_imports = silent\ncache_dir = {tmp_path / 'cache'}")
    done = subprocess.run([sys.executable, "-P", "-m", "mypy", "--config-file", str(config),
                           *pages], cwd=programs, text=True, capture_output=True,
                          env={**os.environ, "MYPYPATH": str(programs / "stubs")})
    said = [line for line in done.stdout.splitlines() if ": error: " in line]
    assert f"{len(pages)} source files" in done.stdout, done.stdout + done.stderr
    assert [line for line in said if not MEANT_IN_EXAMPLES.search(line)] == []


@SOURCE_ONLY
def test_examples_of_the_guide_in_an_editor(programs):
    """Pyright, which editors run, takes them too."""
    pytest.importorskip("basedpyright")
    settings = {"typeCheckingMode": "standard", "extraPaths": ["stubs"], "include": ["guide_*.py"],
                "reportMissingImports": False, "reportMissingModuleSource": False, "reportRedeclaration": False,
                "reportUnusedExpression": False}
    (programs / "pyrightconfig.json").write_text(json.dumps(settings))
    done = subprocess.run([sys.executable, "-P", "-m", "basedpyright", "--outputjson", "--pythonpath", sys.executable],
                          cwd=programs, text=True, capture_output=True)
    said = json.loads(done.stdout)
    assert said["summary"]["filesAnalyzed"] == len(list(programs.glob("guide_*.py")))
    errors = [f"{Path(e['file']).name}:{e['range']['start']['line'] + 1}: {e['message']}"
              for e in said["generalDiagnostics"] if e["severity"] == "error"]
    assert [text for text in errors if not MEANT_IN_AN_EDITOR.search(text)] == []


# What mypy says of programs that are right.
MEANT_IN_EXAMPLES = re.compile("|".join([
    r"\[no-redef\]",                        # a class or function that the page writes anew
]))

# What pyright says of programs that are right.
MEANT_IN_AN_EDITOR = re.compile("|".join([
    r'is not a known attribute of "None"',  # ``.grad`` of a leaf before and after a backward
    r'"\w+" is possibly unbound',           # after a loop
]))

# What stubtest says of the stubs that is meant.
MEANT = re.compile("|".join([
    r'stub parameter "self" differs from runtime parameter "\w+"',      # one function is method and function
    r"^ptcore\._foreach_",                              # a loop makes them
    r"disjoint_base",                                   # typing has it from Python 3.15 on
    r"variable differs from runtime type ptcore\.(_memory_format|_ops\.creation\.tensor_types|storage)\.",    # others
    r"^ptcore\._(device|dtype) ",                       # aliases of the stub alone
    r"^ptcore\.where .*default value of type None",     # where(condition) has no others
    r'^ptcore\.(Tensor|dtype)\.__init__ .*does not have \*args',      # what a type without __init__ of its own takes
    r'^ptcore\.Tensor\.random_ .*parameter "to"',      # not given differs from None, and is shown as it
    r'runtime does not have parameter "mode"',          # set_grad_enabled and inference_mode: compiled
]))
STUBTEST = """
import sys
sys.meta_path[:] = [f for f in sys.meta_path if "editable" not in type(f).__module__]
sys.path.insert(0, sys.argv[1])
from mypy import stubtest
sys.argv[1:] = ["ptcore", "--concise", "--ignore-missing-stub", "--mypy-config-file", sys.argv[2]]
sys.exit(stubtest.main())
"""


def test_stubtest(tmp_path):
    """mypy compares the stubs with the package that is installed."""
    pytest.importorskip("mypy")
    site = Path(pt.__file__).parent.parent
    if not (site / "ptcore" / "__init__.pyi").exists():
        pytest.skip("an editable build has no stubs beside the package")
    stubs = tmp_path / "stubs"          # mypy refuses a path that is site-packages itself
    stubs.mkdir()
    (stubs / "ptcore").symlink_to(site / "ptcore")
    config = tmp_path / "mypy.ini"
    config.write_text("[mypy]\nignore_errors = True\nignore_missing_imports = True\ncache_dir = " + str(tmp_path))
    done = subprocess.run([sys.executable, "-P", "-c", STUBTEST, str(site), str(config)], cwd=tmp_path, text=True,
                          capture_output=True, env={**os.environ, "MYPYPATH": str(stubs)})
    assert not done.stderr and "not checking stubs" not in done.stdout, done.stderr + done.stdout
    said = [line for line in done.stdout.splitlines() if line.startswith("ptcore.")]
    of_stubs = [line for line in said if re.match(
        r"ptcore\.([a-z_]+|[A-Z]\w*(\.\w+)?|(no_grad|enable_grad|\w+info|device|dtype|memory_format)\.\w+|"
        r"(linalg|special|fft|nn\.functional)\.\w+) ", line)]
    assert len(of_stubs) > 300          # the functions that are methods as well
    assert [line for line in of_stubs if not MEANT.search(line)] == []
